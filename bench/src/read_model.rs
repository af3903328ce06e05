//! The read model alone: the time that the copy of the state behind REST takes for each event of a
//! shard.

use std::hint::black_box;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::view::{View, ViewSettings};
use quanta::Clock;

use crate::whole_shard::WholeShard;
use crate::workload::{Matcher, Workload};

/// Records whose events are collected before they are applied: the events stay in the outer caches,
/// like those of a lane.
const CHUNK: usize = 1_000;

pub struct Applied {
    pub events: u64,
    pub ns_per_event: f64,
    /// Number of the last published event, and of the last event that the read model applied: they
    /// are equal.
    pub seq: (u64, u64),
}

/// Applies the events of a workload's timed records; the events of the pre-fill are applied before,
/// untimed.
pub fn apply(workload: &Workload) -> Applied {
    let mut matcher = WholeShard::new(workload);
    matcher.watch_everything();
    let mut view = View::new(1, ViewSettings::default());
    let mut last = 0;
    for record in &workload.prefill {
        matcher.apply_observed(record, |event| {
            last = event.seq;
            view.apply(ShardId(0), event);
        });
    }
    let clock = Clock::new();
    let mut events: Vec<Event> = Vec::with_capacity(CHUNK * 8);
    let (mut count, mut ns) = (0, 0);
    for records in workload.timed.chunks(CHUNK) {
        events.clear();
        records.iter().for_each(|record| matcher.apply_observed(record, |event| events.push(*event)));
        let begin = clock.raw();
        events.iter().for_each(|event| view.apply(ShardId(0), black_box(event)));
        ns += clock.delta_as_nanos(begin, clock.raw());
        count += events.len() as u64;
        last = events.last().map_or(last, |event| event.seq);
    }
    assert!(matcher.outcome() == workload.expected, "the shard did what it had to");
    Applied {
        events: count,
        ns_per_event: ns as f64 / count.max(1) as f64,
        seq: (last, view.seq(ShardId(0))),
    }
}
