//! A well-behaved FIX client during an attack: orders at a steady rate, from the planned time of
//! each to its first report, in short parts quiet, attacked, quiet. The service runs on one core
//! with its default idling, the client and the attacker on the other. Service and client have
//! priority over everything else where the system permits it (SCHED_RR), so that the measurement
//! shows the service, and neither the attacker's own cost nor other activity of the machine.
//!
//! The time that the host of a virtual machine takes from these cores cannot be prevented. What the
//! host reports of it (ticks of 10 ms) is visible, and such a part is run again. What it does not
//! report, a slice of two or three milliseconds here and there, affects some parts and not others.
//! So the parts that suffered least, the lower quartile, are compared. A steady attack is in all of
//! them.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::attacker::{Attack, AttackTargets, Attacker};
use crate::conditions::Pinning;
use crate::convert::duration_ns;
use crate::fix_wire::{BoxError, FixServer, FixServerKind, LoadSession, LoadTarget, READ_BYTES};
use crate::measure::{histogram, lower_quartile, median};
use crate::noise::stolen_ticks;

/// Longest wait for a report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time before a part counts, in which connections are opened and buffers fill.
const WARM_UP: Duration = Duration::from_millis(200);

/// Amount of load.
#[derive(Clone, Copy, Debug)]
pub struct AttackLoad {
    /// Orders per second of the client.
    pub rate: u64,
    /// Acts per second of the attacker.
    pub attacks: u64,
    pub part: Duration,
    pub rounds: usize,
    /// Most runs of a part, on a host that takes time in each of them; the last run counts as it
    /// is.
    pub tries: usize,
}

/// Result of one kind of attack.
#[derive(Clone, Debug)]
pub struct AttackOutcome {
    pub attack: Attack,
    /// From the parts that suffered least from others.
    pub quiet_us_p99: f64,
    pub attacked_us_p99: f64,
    /// Attacked relative to the quiet parts around it, at the median of the rounds; includes
    /// everything that the host adds.
    pub median_ratio: f64,
    /// Difference of the second quiet part of a round from the first, at the median: smaller
    /// effects cannot be seen.
    pub noise: f64,
    /// Acts per second that the attacker reached.
    pub attacks_per_s: f64,
    /// Parts in which the host took time; they were run again, up to the limit.
    pub disturbed: usize,
}

impl AttackOutcome {
    /// Returns how many times as long the well-behaved client waits.
    pub fn ratio(&self) -> f64 {
        self.attacked_us_p99 / self.quiet_us_p99
    }
}

/// A client that is logged on to a service with all listeners open.
pub struct IsolationRun {
    server: FixServer,
    targets: AttackTargets,
    session: LoadSession,
    pinning: Pinning,
    /// Whether service and client have real-time priority on their cores.
    pub has_priority: bool,
    /// Parts of the current attack in which the host took time.
    disturbed: usize,
}

impl IsolationRun {
    pub fn start(pinning: &Pinning) -> Result<IsolationRun, BoxError> {
        let (server, targets) = FixServer::with_all_listeners(pinning)?;
        let session = LoadSession::open(&LoadTarget::new(targets.fix, FixServerKind::Pitlane), 0)?;
        let has_priority =
            set_realtime(&server.process().to_string()) && this_thread().is_some_and(|id| set_realtime(&id));
        Ok(IsolationRun { server, targets, session, pinning: *pinning, has_priority, disturbed: 0 })
    }

    pub fn measure(&mut self, attack: Attack, load: AttackLoad) -> Result<AttackOutcome, BoxError> {
        let (mut quiet, mut attacked, mut ratios, mut noise) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut actions, mut seconds) = (0, 0.0);
        self.disturbed = 0;
        for _ in 0..load.rounds.max(1) {
            let before = self.part(load)?;
            let attacker = Attacker::start(attack, self.targets, load.attacks, self.pinning.first);
            let begin = Instant::now();
            let between = self.part(load)?;
            actions += attacker.actions();
            seconds += begin.elapsed().as_secs_f64();
            drop(attacker);
            let after = self.part(load)?;
            quiet.extend([before, after]);
            attacked.push(between);
            ratios.push(between / ((before + after) / 2.0));
            noise.push((after / before).ln().abs().exp() - 1.0);
        }
        if !self.server.is_running() {
            return Err(format!("the service did not survive {}", attack.description()).into());
        }
        Ok(AttackOutcome {
            attack,
            disturbed: self.disturbed,
            quiet_us_p99: lower_quartile(&quiet),
            attacked_us_p99: lower_quartile(&attacked),
            median_ratio: median(&ratios),
            noise: median(&noise),
            attacks_per_s: actions as f64 / seconds,
        })
    }

    /// Returns the 99th percentile of one part, in microseconds.
    fn part(&mut self, load: AttackLoad) -> Result<f64, BoxError> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.trade(load.rate, WARM_UP)?;
            let taken = stolen_ticks();
            let took = self.trade(load.rate, load.part)?;
            let is_disturbed = stolen_ticks() != taken;
            self.disturbed += usize::from(is_disturbed);
            if !is_disturbed || tries >= load.tries {
                return Ok(took.value_at_quantile(0.99) as f64 / 1e3);
            }
        }
    }

    /// Sends orders at planned times for `time`, and cancels each after its report.
    fn trade(&mut self, rate: u64, time: Duration) -> Result<Histogram<u64>, BoxError> {
        let gap = Duration::from_nanos(1_000_000_000 / rate.max(1));
        let (mut took, mut buffer) = (histogram(), vec![0; READ_BYTES]);
        let begin = Instant::now() + gap;
        let orders = u32::try_from(time.as_nanos() / gap.as_nanos().max(1)).unwrap_or(u32::MAX);
        for nth in 0..orders {
            let planned = begin + gap * nth;
            let mut frame = Vec::new();
            self.session.order(&mut frame);
            thread::sleep(planned.saturating_duration_since(Instant::now()));
            self.session.send(&frame)?;
            let deadline = Instant::now() + REPORT_TIMEOUT;
            while self.session.receive_reports(crate::fix_wire::FIRST_REPORT, &mut buffer)? == 0 {
                if Instant::now() > deadline {
                    return Err("the well-behaved client's order is not answered".into());
                }
            }
            took.saturating_record(duration_ns(planned.elapsed()));
            let mut cancel = Vec::new();
            self.session.cancel_last(&mut cancel);
            self.session.send(&cancel)?;
        }
        Ok(took)
    }
}

fn this_thread() -> Option<String> {
    let task = fs::read_link("/proc/thread-self").ok()?;
    Some(task.file_name()?.to_str()?.to_string())
}

/// Requests real-time priority for a thread, or for all threads of a process. Threads that are
/// started later do not get it: our attacker must not inherit it.
fn set_realtime(id: &str) -> bool {
    let chrt =
        Command::new("chrt").args(["--rr", "--reset-on-fork", "--all-tasks", "--pid", "1", id]).output();
    chrt.is_ok_and(|output| output.status.success())
}
