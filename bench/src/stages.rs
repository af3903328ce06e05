//! The cost of the stage timestamps: an order's path from lane to lane, with them and without, in
//! alternating rounds. Everything runs in one thread, so that only the timestamps differ.

use std::sync::Arc;

use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_gateway::shard_thread::{CommandJournaling, ShardDuty};
use pitlane_runtime::lifecycle::LifecyclePhase;
use pitlane_runtime::metrics::Registry;
use pitlane_runtime::stages::stages;
use pitlane_runtime::wakeups::Wakeups;
use quanta::Clock;

use crate::lane::LaneClient;
use crate::measure::counted;
use crate::platform::{self, START};
use crate::workload::Workload;

/// Open orders: the oldest is cancelled when this many are open.
const OPEN_MAX: usize = 1_000;
/// Virtual nanoseconds between two commands.
const STEP_NS: u64 = 1_000;

/// Nanoseconds per command, the best of all rounds: every disturbance makes a round longer.
pub struct StageCost {
    pub bare_ns: f64,
    pub stamped_ns: f64,
}

impl StageCost {
    pub fn cost_percent(&self) -> f64 {
        100.0 * (self.stamped_ns / self.bare_ns - 1.0)
    }
}

/// Commands of a round: few, so that some rounds are undisturbed.
const ROUND: usize = 20_000;

/// Measures this many commands of each kind, in alternating rounds.
pub fn measure(commands: usize) -> StageCost {
    let round = commands.clamp(1, ROUND);
    let mut cost = StageCost { bare_ns: f64::INFINITY, stamped_ns: f64::INFINITY };
    for _ in 0..commands.div_ceil(round) {
        cost.bare_ns = cost.bare_ns.min(path_ns(false, round));
        cost.stamped_ns = cost.stamped_ns.min(path_ns(true, round));
    }
    cost
}

/// Returns the nanoseconds of a command from its lane to the last event that it causes.
pub fn path_ns(stamped: bool, commands: usize) -> f64 {
    let (shard, outbox) = platform::shard_for(&Workload::empty());
    let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
    let worker = Worker::restored(shard, ends.remove(0), outbox.seq(), START);
    let (recorder, mut reader) = stages();
    let keeping = CommandJournaling { journal: None, recorder: stamped.then_some(recorder), reloads: None };
    let (wakeups, registry) = (Arc::new(Wakeups::silent(1, 1)), Arc::new(Registry::new(1)));
    let mut duty = ShardDuty::new(worker, keeping, wakeups, registry);
    let mut client = LaneClient::at(ports.remove(0));
    // The first tenth warms the caches.
    let warm_up = commands / 10;
    let mut take = |n: usize| {
        let command = client.next_command(OPEN_MAX);
        client.port.send(ShardId(0), command).expect("one is in flight, and the lane has space for more");
        duty.poll(Timestamp(START.0 + n as u64 * STEP_NS), LifecyclePhase::Open);
        while let Some((_, event)) = client.port.poll_event() {
            client.handle_event(&event);
        }
        reader.poll();
    };
    (0..warm_up).for_each(&mut take);
    let clock = Clock::new();
    let begin = clock.raw();
    counted(|| (warm_up..warm_up + commands).for_each(take));
    clock.delta_as_nanos(begin, clock.raw()) as f64 / commands as f64
}
