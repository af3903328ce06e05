//! A thread of the platform: a loop around duties, and its waiting without work.

use std::hint;
use std::io;
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pitlane_auth::Authenticator;
use pitlane_auth::audit::AuditWriter;
use pitlane_config::IdleBy;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_gateway::gateway::Gateway;
use pitlane_gateway::shard_thread::ShardDuty;
use pitlane_journal::{SegmentManager, Syncer};
use pitlane_net::Net;
use pitlane_net::settings::NetSettings;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::fault_injection;
use pitlane_runtime::idle::{IdleAction, IdlePolicy};
use pitlane_runtime::lifecycle::{Lifecycle, LifecyclePhase, StopReason};
use pitlane_runtime::thread_class::ThreadClass;
use pitlane_runtime::thread_wakeup::ThreadWakeup;
use pitlane_runtime::wakeup::Wakeup;
use pitlane_sys::affinity::pin_current_thread;

/// Maximum time a thread parks. Senders of work wake it; only a clock that was set ahead is noticed
/// this late.
const SLEEP_NS_MAX: u64 = 1_000 * NS_PER_MS;
/// Maximum time a thread parks while something waits for a free slot of a lane: a receiver does not
/// wake the sender, since full lanes are rare and a receiver that drains one is busy.
const LANE_FULL_SLEEP_NS: u64 = NS_PER_MS / 10;

/// The parts that a thread polls in turn.
#[derive(Debug)]
pub enum Duty {
    Shard(Box<ShardDuty>),
    Gateway(Box<Gateway>),
    Syncer(Box<SyncerDuty>),
    SegmentManager(Box<SegmentManager>),
    Authenticator(Box<Authenticator>),
    AuditWriter(Box<AuditWriter>),
}

/// The journal's syncer, which wakes the segment manager when there may be segments to archive.
#[derive(Debug)]
pub struct SyncerDuty {
    pub syncer: Syncer,
    pub segment_manager: Wakeup,
    /// Whether everything is on disk and no more will be written.
    pub finished: bool,
}

impl SyncerDuty {
    fn poll(&mut self, now: Timestamp, phase: LifecyclePhase) -> usize {
        let work = self.syncer.poll(now);
        if work > 0 {
            self.segment_manager.wake();
        }
        // The shards have closed, so these were their last records.
        if phase == LifecyclePhase::Ended && work == 0 && !self.finished {
            self.syncer.finish(now);
            self.finished = true;
        }
        work
    }
}

impl Duty {
    /// Polls the duty. The first gateway of a thread takes its sockets.
    fn poll(&mut self, now: Timestamp, phase: LifecyclePhase, net: &mut Option<&mut Net>) -> usize {
        match self {
            Duty::Shard(shard) => shard.poll(now, phase),
            Duty::Gateway(gateway) => gateway.poll(now, phase, net.take()),
            Duty::Syncer(syncer) => syncer.poll(now, phase),
            Duty::SegmentManager(segment_manager) if phase <= LifecyclePhase::Open => {
                segment_manager.poll(now)
            }
            Duty::SegmentManager(_) => 0,
            Duty::Authenticator(authenticator) if phase <= LifecyclePhase::Open => authenticator.poll(now),
            Duty::Authenticator(authenticator) => authenticator.close(now),
            Duty::AuditWriter(audit_writer) => audit_writer.poll(now),
        }
    }

    fn is_done(&self, phase: LifecyclePhase) -> bool {
        match self {
            Duty::Shard(shard) => shard.is_done(phase),
            Duty::Gateway(gateway) => gateway.is_done(phase),
            Duty::Syncer(syncer) => phase != LifecyclePhase::Ended || syncer.finished,
            Duty::SegmentManager(_) | Duty::Authenticator(_) | Duty::AuditWriter(_) => true,
        }
    }

    /// Returns whether the duty cannot continue before another thread has acted.
    fn is_held_up(&self) -> bool {
        match self {
            Duty::Shard(shard) => shard.is_held_up(),
            Duty::Gateway(_)
            | Duty::Syncer(_)
            | Duty::SegmentManager(_)
            | Duty::Authenticator(_)
            | Duty::AuditWriter(_) => false,
        }
    }

    fn is_waiting(&self) -> bool {
        match self {
            Duty::Shard(shard) => shard.is_waiting(),
            Duty::Gateway(gateway) => gateway.is_waiting(),
            Duty::Syncer(_) | Duty::SegmentManager(_) | Duty::Authenticator(_) | Duty::AuditWriter(_) => {
                false
            }
        }
    }

    fn deadline(&self, phase: LifecyclePhase) -> Timestamp {
        match self {
            Duty::Shard(shard) => shard.deadline(),
            Duty::Gateway(gateway) => gateway.deadline(phase),
            Duty::Syncer(syncer) => syncer.syncer.deadline().unwrap_or(Timestamp::MAX),
            // These are polled whenever the thread wakes up, at least every `SLEEP_NS_MAX`.
            Duty::SegmentManager(_) | Duty::Authenticator(_) | Duty::AuditWriter(_) => Timestamp::MAX,
        }
    }
}

/// A thread that is not started yet.
#[derive(Debug)]
pub struct ThreadSpec {
    pub name: String,
    pub duties: Vec<Duty>,
    pub idle: IdleBy,
    /// The core that the thread is pinned to.
    pub core: Option<u32>,
    pub wakeup_slot: ThreadWakeup,
    pub wakeup: Wakeup,
    /// Socket settings of threads with a gateway.
    pub net: Option<NetSettings>,
    /// What waits for the thread.
    pub class: ThreadClass,
}

impl ThreadSpec {
    /// Starts the thread, with a clock that does not start before `now`. The thread ends with the
    /// last phase of the lifecycle.
    pub fn start(self, lifecycle: Arc<Lifecycle>, now: Timestamp) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(self.name.clone()).spawn(move || {
            pin(self.core);
            self.class.apply();
            let net = self.net.clone().and_then(|settings| open_net(settings, &lifecycle));
            self.wakeup_slot.bind_current_thread(net.as_ref().map(Net::wakeup));
            let (idle, clock) = (IdlePolicy::new(self.idle), Clock::starting_at(now));
            ThreadLoop { idle, spec: self, net, lifecycle, clock, acknowledged: None, answered: 0 }.run();
        })
    }
}

/// Opens the sockets of this thread, which must be created on it.
fn open_net(settings: NetSettings, lifecycle: &Lifecycle) -> Option<Net> {
    let net = match Net::open(settings) {
        Ok(net) => net,
        Err(error) => {
            lifecycle.stop(StopReason::Failed(format!("cannot open sockets: {error}")));
            return None;
        }
    };
    if let Some(reason) = net.fallback() {
        tracing::warn!("net.driver: {reason}");
    }
    if let Some(reason) = net.busy_poll_refused() {
        // Once, although each thread with sockets asks.
        static LOGGED: Once = Once::new();
        LOGGED.call_once(|| tracing::warn!("net.busy_poll_us: {reason}; the kernel's own setting applies"));
    }
    Some(net)
}

/// Pins the calling thread to a core. A failure is not fatal: the thread runs on any core.
pub fn pin(core: Option<u32>) {
    let Some(core) = core else { return };
    if let Err(error) = pin_current_thread(core as usize) {
        tracing::warn!(core, thread = thread::current().name(), %error, "cannot pin a thread");
    }
}

/// The loop of a thread.
struct ThreadLoop {
    spec: ThreadSpec,
    /// Sockets of a thread with a gateway, which waits in their poller.
    net: Option<Net>,
    idle: IdlePolicy,
    lifecycle: Arc<Lifecycle>,
    clock: Clock,
    /// The last phase that this thread has acknowledged.
    acknowledged: Option<LifecyclePhase>,
    /// The last liveness check that this thread has answered.
    answered: u32,
}

impl ThreadLoop {
    fn run(mut self) {
        loop {
            let phase = self.lifecycle.phase();
            self.lifecycle.answer_liveness_check(&mut self.answered);
            let (now, work) = self.poll(phase);
            if work == 0 && self.has_ended(phase) {
                return;
            }
            match self.idle.after(now, work) {
                // The thread it waits for may need this core.
                IdleAction::None | IdleAction::Spin if self.is_held_up() => thread::yield_now(),
                IdleAction::None => {}
                IdleAction::Spin => hint::spin_loop(),
                IdleAction::Yield => thread::yield_now(),
                IdleAction::Sleep => self.sleep(now, phase),
            }
        }
    }

    fn is_held_up(&self) -> bool {
        self.spec.duties.iter().any(Duty::is_held_up)
    }

    fn poll(&mut self, phase: LifecyclePhase) -> (Timestamp, usize) {
        let now = self.clock.now();
        let (duties, mut net) = (&mut self.spec.duties, self.net.as_mut());
        let work = duties.iter_mut().map(|duty| duty.poll(now, phase, &mut net)).sum();
        fault_injection::after_round(&self.spec.name, work);
        (now, work)
    }

    /// Acknowledges each phase once, when all duties have completed it; returns whether it was the
    /// last.
    fn has_ended(&mut self, phase: LifecyclePhase) -> bool {
        if !self.can_acknowledge(phase) {
            return false;
        }
        self.acknowledged = Some(phase);
        self.lifecycle.ack_phase(phase);
        phase == LifecyclePhase::Ended
    }

    fn can_acknowledge(&self, phase: LifecyclePhase) -> bool {
        phase != LifecyclePhase::Open
            && self.acknowledged != Some(phase)
            && self.spec.duties.iter().all(|duty| duty.is_done(phase))
    }

    /// Blocks until woken or due, unless there is work after all: see `wakeup.rs` for why it polls
    /// once more.
    fn sleep(&mut self, now: Timestamp, phase: LifecyclePhase) {
        let wakeup = self.spec.wakeup.clone();
        wakeup.prepare_sleep();
        let (_, work) = self.poll(phase);
        if work == 0 && self.lifecycle.phase() == phase && !self.can_acknowledge(phase) {
            let longest = self.longest_sleep(now, phase);
            match &mut self.net {
                Some(net) => net.wait(now, longest),
                None => thread::park_timeout(longest),
            }
        }
        wakeup.finish_sleep();
    }

    fn longest_sleep(&self, now: Timestamp, phase: LifecyclePhase) -> Duration {
        let duties = &self.spec.duties;
        let is_waiting = duties.iter().any(Duty::is_waiting);
        let longest = if is_waiting { LANE_FULL_SLEEP_NS } else { SLEEP_NS_MAX };
        let deadline = duties.iter().map(|duty| duty.deadline(phase)).min().unwrap_or(Timestamp::MAX);
        Duration::from_nanos(deadline.since(now).min(longest))
    }
}
