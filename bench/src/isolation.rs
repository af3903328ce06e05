//! A well-behaved FIX client while somebody attacks: orders at a steady rate, from the planned moment of each to its first report, in short
//! parts quiet, attacked, quiet. The service is on one core with its default idling, the client and the attacker on the other. Service and client
//! go before everything else wherever the system permits it (SCHED_RR), so that what is measured is the service, and neither the attacker's own cost
//! nor whatever else the machine does. What the host of a virtual machine takes from these cores cannot be hindered. What it
//! tells of that (ticks of 10 ms) is seen, and the part run again; of what it does not tell, a slice of two or three milliseconds here and there, every
//! part suffers or does not, so it is the parts that suffered least, the lower quartile, that are compared. A steady attack is in all of them.

use std::error::Error;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::attacker::{Attack, Attacker, Listeners};
use crate::conditions::Pinning;
use crate::fix_wire::{READ_BYTES, Server, Session};
use crate::measure::{histogram, lower_quartile, median};

type Failure = Box<dyn Error>;

/// For a report that does not come.
const PATIENCE: Duration = Duration::from_secs(5);
/// Before a part counts: connections are opened, buffers fill.
const WARM_UP: Duration = Duration::from_millis(200);
/// Of /proc/stat, behind the name.
const STOLEN_COLUMN: usize = 7;

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Orders a second of the client.
    pub rate: u64,
    /// Acts a second of the attacker.
    pub attacks: u64,
    pub part: Duration,
    pub rounds: usize,
    /// How often a part is run at most, on a host that takes time from us in each; the last one counts as it is.
    pub tries: usize,
}

/// What one kind of attack did.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub attack: Attack,
    /// Of the parts that suffered least from others.
    pub quiet_us_p99: f64,
    pub attacked_us_p99: f64,
    /// Attacked beside the quiet parts around it, at the median of the rounds: with all that the host adds.
    pub median_ratio: f64,
    /// How far the second quiet part of a round is from the first, at the median: nothing smaller can be told.
    pub noise: f64,
    /// Acts a second that the attacker came to.
    pub attacks_per_s: f64,
    /// Parts in which the host took time: they were run again, as often as may be.
    pub disturbed: usize,
}

impl Outcome {
    /// How much longer the good client waits.
    pub fn ratio(&self) -> f64 {
        self.attacked_us_p99 / self.quiet_us_p99
    }
}

/// A client that is logged on to a service with every door open.
pub struct Stage {
    server: Server,
    doors: Listeners,
    session: Session,
    pinning: Pinning,
    /// Whether service and client go first on their cores.
    pub is_first: bool,
    /// Parts in which the host took time, of the attack under way.
    disturbed: usize,
}

impl Stage {
    pub fn set(pinning: &Pinning) -> Result<Stage, Failure> {
        let (server, doors) = Server::with_every_door(pinning)?;
        let session = Session::open(doors.fix, 0, true)?;
        let is_first =
            goes_first(&server.process().to_string()) && this_thread().is_some_and(|id| goes_first(&id));
        Ok(Stage { server, doors, session, pinning: *pinning, is_first, disturbed: 0 })
    }

    pub fn suffer(&mut self, attack: Attack, load: Load) -> Result<Outcome, Failure> {
        let (mut quiet, mut attacked, mut ratios, mut noise) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut acts, mut seconds) = (0, 0.0);
        self.disturbed = 0;
        for _ in 0..load.rounds.max(1) {
            let before = self.part(load)?;
            let attacker = Attacker::start(attack, self.doors, load.attacks, self.pinning.first);
            let begin = Instant::now();
            let between = self.part(load)?;
            acts += attacker.acts();
            seconds += begin.elapsed().as_secs_f64();
            drop(attacker);
            let after = self.part(load)?;
            quiet.extend([before, after]);
            attacked.push(between);
            ratios.push(between / ((before + after) / 2.0));
            noise.push((after / before).ln().abs().exp() - 1.0);
        }
        if !self.server.is_there() {
            return Err(format!("the service did not survive {}", attack.words()).into());
        }
        Ok(Outcome {
            attack,
            disturbed: self.disturbed,
            quiet_us_p99: lower_quartile(&quiet),
            attacked_us_p99: lower_quartile(&attacked),
            median_ratio: median(&ratios),
            noise: median(&noise),
            attacks_per_s: acts as f64 / seconds,
        })
    }

    /// The 99 % of one part, in microseconds.
    fn part(&mut self, load: Load) -> Result<f64, Failure> {
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

    /// Orders at planned moments for so long, each cancelled with the next.
    fn trade(&mut self, rate: u64, time: Duration) -> Result<Histogram<u64>, Failure> {
        let gap = Duration::from_nanos(1_000_000_000 / rate.max(1));
        let (mut took, mut buffer) = (histogram(), vec![0; READ_BYTES]);
        let begin = Instant::now() + gap;
        let orders = (time.as_nanos() / gap.as_nanos().max(1)) as u32;
        for nth in 0..orders {
            let planned = begin + gap * nth;
            let mut frame = Vec::new();
            self.session.order(&mut frame);
            thread::sleep(planned.saturating_duration_since(Instant::now()));
            self.session.say(&frame)?;
            let late = Instant::now() + PATIENCE;
            while self.session.hear(crate::fix_wire::FIRST_REPORT, &mut buffer)? == 0 {
                if Instant::now() > late {
                    return Err("the good client's order is not answered".into());
                }
            }
            took.saturating_record(planned.elapsed().as_nanos() as u64);
            let mut cancel = Vec::new();
            self.session.cancel_last(&mut cancel);
            self.session.say(&cancel)?;
        }
        Ok(took)
    }
}

fn this_thread() -> Option<String> {
    let task = fs::read_link("/proc/thread-self").ok()?;
    Some(task.file_name()?.to_str()?.to_string())
}

/// Asks the system that a thread, or all of a process, go before all others on their cores whenever they have something to do. Threads begun later do
/// not: an attacker of ours must not inherit it.
fn goes_first(id: &str) -> bool {
    let asked =
        Command::new("chrt").args(["--rr", "--reset-on-fork", "--all-tasks", "--pid", "1", id]).output();
    asked.is_ok_and(|output| output.status.success())
}

/// What the host has taken from all cores so far, in ticks of 10 ms as a rule; always the same where none is counted.
fn stolen_ticks() -> u64 {
    let told = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = told.lines().find_map(|line| line.strip_prefix("cpu "));
    all.and_then(|all| all.split_whitespace().nth(STOLEN_COLUMN)?.parse().ok()).unwrap_or(0)
}
