//! What `/metrics` shows: a closed list of numbers, each with a sentence, in the text format of Prometheus.
//!
//! Each thread owns its counters and publishes them as plain words that others may read; nobody adds to another's.
//! A number is read on its own, so two numbers of one scrape may be an instant apart.

pub mod exposition;
pub mod process;

use std::sync::atomic::{AtomicU64, Ordering};

use pitlane_engine::worker::WorkerCounts;

/// A number with one writer. Readers see some recent value of it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Only its one writer may call this; then reading and writing need not be one step.
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of all threads but http's own, which shows them.
#[derive(Debug)]
pub struct Registry {
    /// By shard.
    pub shards: Vec<ShardMeter>,
}

impl Registry {
    pub fn new(shards: u8) -> Registry {
        Registry { shards: (0..shards).map(|_| ShardMeter::default()).collect() }
    }
}

/// What a shard's thread publishes. On cache lines of its own, so that one shard's writing does not slow another's.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ShardMeter {
    pub commands: Counter,
    pub timers: Counter,
    pub resumed: Counter,
    pub events: Counter,
    pub stalls: Counter,
    pub waits: Counter,
    pub refused: Counter,
    pub dropped: Counter,
    pub journal: JournalMeter,
}

impl ShardMeter {
    /// Eight stores; cheap enough for every cycle with work in it.
    pub fn publish(&self, counts: &WorkerCounts) {
        let WorkerCounts { commands, timers, resumed, events, stalls, waits, refused, dropped } = *counts;
        self.commands.set(commands);
        self.timers.set(timers);
        self.resumed.set(resumed);
        self.events.set(events);
        self.stalls.set(stalls);
        self.waits.set(waits);
        self.refused.set(refused);
        self.dropped.set(dropped);
    }
}

/// What a shard's journal publishes; all zero where there is none.
#[derive(Debug, Default)]
pub struct JournalMeter {
    pub records: Counter,
    pub bytes: Counter,
    pub syncs: Counter,
    pub snapshots: Counter,
}

/// How long one stage of the road took in one thread, in its last second with work; in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageSummary {
    pub thread: String,
    pub stage: &'static str,
    pub count: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_counted_is_what_a_reader_sees() {
        let registry = Registry::new(2);
        let counts = WorkerCounts {
            commands: 8,
            timers: 7,
            resumed: 6,
            events: 5,
            stalls: 4,
            waits: 3,
            refused: 2,
            dropped: 1,
        };
        registry.shards[1].publish(&counts);
        let meter = &registry.shards[1];
        let seen = WorkerCounts {
            commands: meter.commands.get(),
            timers: meter.timers.get(),
            resumed: meter.resumed.get(),
            events: meter.events.get(),
            stalls: meter.stalls.get(),
            waits: meter.waits.get(),
            refused: meter.refused.get(),
            dropped: meter.dropped.get(),
        };
        assert_eq!(seen, counts);
        assert_eq!(registry.shards[0].commands.get(), 0);
        meter.journal.records.add(7);
        meter.journal.records.add(1);
        assert_eq!(meter.journal.records.get(), 8);
    }
}
