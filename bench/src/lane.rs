//! Command lane → worker → shard → event lane. With one command in flight, for the difference to
//! the bare ring; and open loop, where commands leave at planned times and latency counts from the
//! plan, so that a stall shows.
//!
//! The flow is the simplest possible: a limit order that rests, then its cancel. A command counts
//! as answered with the last event that it causes.

use std::collections::VecDeque;
use std::hint::spin_loop;

use hdrhistogram::Histogram;
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::event::{Event, EventKind, ExecType};
use pitlane_engine::id::{IntId, OrderHandle, ShardId};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use quanta::Clock;

use crate::conditions::Pinning;
use crate::measure::histogram;
use crate::platform::{self, START};
use crate::ring::{PollThread, WARM_UP};
use crate::workload::Workload;

const SHARD: ShardId = ShardId(0);
/// Open orders in the open loop: the oldest is cancelled when this many are open.
const OPEN_MAX: usize = 1_000;

/// Nanoseconds from sending a command to its first and to its last event.
pub struct CommandLatencies {
    pub first: Histogram<u64>,
    pub last: Histogram<u64>,
}

/// Measures with one command in flight at a time.
pub fn round_trips(pinning: &Pinning, trips: usize) -> CommandLatencies {
    let (mut client, worker) = LaneClient::start(pinning);
    let clock = Clock::new();
    let mut latencies = CommandLatencies { first: histogram(), last: histogram() };
    for trip in 0..WARM_UP + trips {
        let command = client.next_command(1);
        let begin = clock.raw();
        client.port.send(SHARD, command).expect("one is in flight, and the lane has space for more");
        let mut first = None;
        loop {
            let Some((_, event)) = client.port.poll_event() else {
                spin_loop();
                continue;
            };
            let ns = clock.delta_as_nanos(begin, clock.raw());
            let first = *first.get_or_insert(ns);
            if client.handle_event(&event) {
                if trip >= WARM_UP {
                    latencies.first.saturating_record(first);
                    latencies.last.saturating_record(ns);
                }
                break;
            }
        }
    }
    worker.stop();
    latencies
}

/// Result of an open loop at one rate.
pub struct OpenLoopResult {
    pub per_s_planned: u64,
    pub per_s_reached: f64,
    pub latencies: Histogram<u64>,
}

/// Sends `commands` commands at planned times, `per_s` of them per second.
pub fn open_loop(pinning: &Pinning, per_s: u64, commands: usize) -> OpenLoopResult {
    let (mut client, worker) = LaneClient::start(pinning);
    let clock = Clock::new();
    let mut latencies = histogram();
    let mut planned = VecDeque::with_capacity(4_096);
    let (begin, mut sent) = (clock.raw(), 0);
    let since_begin = || clock.delta_as_nanos(begin, clock.raw());
    let mut waiting = None;
    let mut answered = 0;
    while answered < commands {
        let plan = sent as u64 * 1_000_000_000 / per_s;
        if sent < commands && since_begin() >= plan {
            let command = waiting.take().unwrap_or_else(|| client.next_command(OPEN_MAX));
            match client.port.send(SHARD, command) {
                Ok(()) => {
                    planned.push_back(plan);
                    sent += 1;
                }
                Err(_) => waiting = Some(command),
            }
        }
        while let Some((_, event)) = client.port.poll_event() {
            if client.handle_event(&event) {
                let plan = planned.pop_front().expect("an answer to something sent");
                latencies.saturating_record(since_begin() - plan);
                answered += 1;
            }
        }
    }
    let reached = commands as f64 * 1e9 / since_begin() as f64;
    worker.stop();
    OpenLoopResult { per_s_planned: per_s, per_s_reached: reached, latencies }
}

/// The client's side: its port and its open orders.
pub struct LaneClient {
    pub port: PortEnd,
    /// Open orders, oldest first.
    open: VecDeque<OrderHandle>,
    requests: u64,
    entered: u64,
}

impl LaneClient {
    fn start(pinning: &Pinning) -> (LaneClient, PollThread) {
        let (shard, outbox) = platform::shard_for(&Workload::empty());
        let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
        let mut worker = Worker::restored(shard, ends.remove(0), outbox.seq(), START);
        let clock = Clock::new();
        let begin = clock.raw();
        let poll_thread = PollThread::start(pinning, move || {
            worker.poll(Timestamp(START.0 + clock.delta_as_nanos(begin, clock.raw())));
        });
        (LaneClient::at(ports.remove(0)), poll_thread)
    }

    /// Creates a client without orders.
    pub fn at(port: PortEnd) -> LaneClient {
        LaneClient { port, open: VecDeque::with_capacity(4_096), requests: 0, entered: 0 }
    }

    /// Cancels the oldest order when `open_max` are open, else enters a new one.
    pub fn next_command(&mut self, open_max: usize) -> Command {
        let oldest = if self.open.len() < open_max { None } else { self.open.pop_front() };
        let Some(order) = oldest else {
            self.entered += 1;
            let record = platform::resting(self.entered);
            return platform::command(platform::body_of(&record, OrderHandle::NONE, 0));
        };
        self.requests += 1;
        platform::command(CommandKind::Cancel { order, id: IntId::numbered(b'c', self.requests) })
    }

    /// Processes an event, and returns whether it is the last one of its command.
    pub fn handle_event(&mut self, event: &Event) -> bool {
        if let EventKind::Order(order) = &event.body {
            assert!(order.what == ExecType::Entered, "nothing is refused here, but {:?}", order.reason);
            self.open.push_back(order.order);
        }
        matches!(&event.body, EventKind::Status(report) if matches!(report.what, ExecType::Accepted | ExecType::Canceled))
    }
}
