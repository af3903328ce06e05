//! A thread of the platform: a loop around duties, and its waiting without work.

use std::hint;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_sys::affinity::pin_current_thread;

use crate::audit::AuditWriter;
use crate::auth::Authenticator;
use crate::clock::Clock;
use crate::config::IdleBy;
use crate::fault;
use crate::idle::{IdleAction, IdlePolicy};
use crate::journal::{SegmentManager, Syncer};
use crate::lifecycle::{Lifecycle, LifecyclePhase, StopReason};
use crate::net::Net;
use crate::net::settings::NetSettings;
use crate::platform::gateway::Gateway;
use crate::platform::shard_thread::ShardDuty;
use crate::thread_wakeup::ThreadWakeup;
use crate::wakeup::Wakeup;

/// Maximum time a thread parks. Senders of work wake it; only a clock that was set ahead is noticed
/// this late.
const SLEEP_NS_MAX: u64 = 1_000 * NS_PER_MS;
/// Maximum time a thread parks while something waits for a free slot of a lane: a receiver does not
/// wake the sender, since full lanes are rare and a receiver that drains one is busy.
const NAP_NS: u64 = NS_PER_MS / 10;

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
    pub keeper: Syncer,
    pub steward: Wakeup,
    /// Whether everything is on disk and no more will be written.
    pub finished: bool,
}

impl SyncerDuty {
    fn poll(&mut self, now: Timestamp, course: LifecyclePhase) -> usize {
        let work = self.keeper.poll(now);
        if work > 0 {
            self.steward.wake();
        }
        // The shards have closed, so these were their last records.
        if course == LifecyclePhase::Ended && work == 0 && !self.finished {
            self.keeper.finish(now);
            self.finished = true;
        }
        work
    }
}

impl Duty {
    /// Polls the duty. The first gateway of a thread takes its sockets.
    fn poll(&mut self, now: Timestamp, course: LifecyclePhase, net: &mut Option<&mut Net>) -> usize {
        match self {
            Duty::Shard(shard) => shard.poll(now, course),
            Duty::Gateway(gateway) => gateway.poll(now, course, net.take()),
            Duty::Syncer(keeper) => keeper.poll(now, course),
            Duty::SegmentManager(steward) if course <= LifecyclePhase::Open => steward.poll(now),
            Duty::SegmentManager(_) => 0,
            Duty::Authenticator(clerk) if course <= LifecyclePhase::Open => clerk.poll(now),
            Duty::Authenticator(clerk) => clerk.close(now),
            Duty::AuditWriter(scribe) => scribe.poll(now),
        }
    }

    fn is_done(&self, course: LifecyclePhase) -> bool {
        match self {
            Duty::Shard(shard) => shard.is_done(course),
            Duty::Gateway(gateway) => gateway.is_done(course),
            Duty::Syncer(keeper) => course != LifecyclePhase::Ended || keeper.finished,
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

    fn deadline(&self, course: LifecyclePhase) -> Timestamp {
        match self {
            Duty::Shard(shard) => shard.deadline(),
            Duty::Gateway(gateway) => gateway.deadline(course),
            Duty::Syncer(keeper) => keeper.keeper.deadline().unwrap_or(Timestamp::MAX),
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
    pub wakeup: ThreadWakeup,
    pub bell: Wakeup,
    /// Socket settings of threads with a gateway.
    pub net: Option<NetSettings>,
}

impl ThreadSpec {
    /// Starts the thread, with a clock that does not start before `now`. The thread ends with the
    /// last phase of the lifecycle.
    pub fn start(self, life: Arc<Lifecycle>, now: Timestamp) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name(self.name.clone()).spawn(move || {
            pin(self.core);
            let net = self.net.clone().and_then(|settings| open_net(settings, &life));
            self.wakeup.bind_current_thread(net.as_ref().map(Net::bell));
            let (idle, clock) = (IdlePolicy::new(self.idle), Clock::starting_at(now));
            ThreadLoop { idle, member: self, net, life, clock, arrived: None }.run();
        })
    }
}

/// Opens the sockets of this thread, which must be created on it.
fn open_net(settings: NetSettings, life: &Lifecycle) -> Option<Net> {
    let net = match Net::open(settings) {
        Ok(net) => net,
        Err(error) => {
            life.stop(StopReason::Failed(format!("cannot open sockets: {error}")));
            return None;
        }
    };
    if let Some(reason) = net.fallback() {
        tracing::warn!("net.driver: {reason}");
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
    member: ThreadSpec,
    /// Sockets of a thread with a gateway, which waits in their poller.
    net: Option<Net>,
    idle: IdlePolicy,
    life: Arc<Lifecycle>,
    clock: Clock,
    /// The last phase that this thread has acknowledged.
    arrived: Option<LifecyclePhase>,
}

impl ThreadLoop {
    fn run(mut self) {
        loop {
            let course = self.life.course();
            let (now, work) = self.poll(course);
            if work == 0 && self.has_ended(course) {
                return;
            }
            match self.idle.after(now, work) {
                // The thread it waits for may need this core.
                IdleAction::None | IdleAction::Spin if self.is_held_up() => thread::yield_now(),
                IdleAction::None => {}
                IdleAction::Spin => hint::spin_loop(),
                IdleAction::Yield => thread::yield_now(),
                IdleAction::Sleep => self.sleep(now, course),
            }
        }
    }

    fn is_held_up(&self) -> bool {
        self.member.duties.iter().any(Duty::is_held_up)
    }

    fn poll(&mut self, course: LifecyclePhase) -> (Timestamp, usize) {
        let now = self.clock.now();
        let (duties, mut net) = (&mut self.member.duties, self.net.as_mut());
        let work = duties.iter_mut().map(|duty| duty.poll(now, course, &mut net)).sum();
        fault::after_round(&self.member.name, work);
        (now, work)
    }

    /// Acknowledges each phase once, when all duties have completed it; returns whether it was the
    /// last.
    fn has_ended(&mut self, course: LifecyclePhase) -> bool {
        if !self.can_arrive(course) {
            return false;
        }
        self.arrived = Some(course);
        self.life.ack_phase(course);
        course == LifecyclePhase::Ended
    }

    fn can_arrive(&self, course: LifecyclePhase) -> bool {
        course != LifecyclePhase::Open
            && self.arrived != Some(course)
            && self.member.duties.iter().all(|duty| duty.is_done(course))
    }

    /// Blocks until woken or due, unless there is work after all: see `wakeup.rs` for why it polls
    /// once more.
    fn sleep(&mut self, now: Timestamp, course: LifecyclePhase) {
        let bell = self.member.bell.clone();
        bell.prepare_sleep();
        let (_, work) = self.poll(course);
        if work == 0 && self.life.course() == course && !self.can_arrive(course) {
            let longest = self.longest_sleep(now, course);
            match &mut self.net {
                Some(net) => net.wait(now, longest),
                None => thread::park_timeout(longest),
            }
        }
        bell.finish_sleep();
    }

    fn longest_sleep(&self, now: Timestamp, course: LifecyclePhase) -> Duration {
        let duties = &self.member.duties;
        let is_waiting = duties.iter().any(Duty::is_waiting);
        let longest = if is_waiting { NAP_NS } else { SLEEP_NS_MAX };
        let deadline = duties.iter().map(|duty| duty.deadline(course)).min().unwrap_or(Timestamp::MAX);
        Duration::from_nanos(deadline.since(now).min(longest))
    }
}
