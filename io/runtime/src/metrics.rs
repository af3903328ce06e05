//! The metrics of `/metrics`: a closed list of numbers, each with a description, in the Prometheus
//! text format.
//!
//! Each thread owns its counters and publishes them as atomics that others read; no thread writes
//! to another's counter. Each number is read on its own, so two numbers of one scrape may differ
//! slightly in time.

pub mod exposition;
pub mod process;

use std::sync::atomic::{AtomicU64, Ordering};

use pitlane_engine::worker::WorkerCounts;

use crate::latency_buckets::LatencyBuckets;

/// A number with one writer. Readers see a recent value of it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to the value. Only the one writer may call this, so load and store need not be one
    /// atomic step.
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of all threads except the http thread, which publishes them.
#[derive(Debug)]
pub struct Registry {
    /// By shard.
    pub shards: Vec<ShardMeter>,
    /// Free bytes on the file system of the data folder; 0 if unknown.
    pub data_free_bytes: Counter,
    pub history: HistoryMeter,
}

impl Registry {
    pub fn new(shards: u8) -> Registry {
        Registry {
            shards: (0..shards).map(|_| ShardMeter::default()).collect(),
            data_free_bytes: Counter::default(),
            history: HistoryMeter::default(),
        }
    }
}

/// Counters of a shard's thread, on cache lines of their own, so that the writes of one shard do
/// not slow another.
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
    /// Publishes the counts with eight stores; cheap enough for every cycle with work.
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

/// Counters of a shard's journal; all zero if there is none.
#[derive(Debug, Default)]
pub struct JournalMeter {
    pub records: Counter,
    pub bytes: Counter,
    pub syncs: Counter,
    pub snapshots: Counter,
    /// Records that are written and not yet forced to disk.
    pub unsynced: Counter,
    /// Bytes of all segments on disk.
    pub segment_bytes: Counter,
    /// Time of the newest snapshot since the epoch, in nanoseconds; 0 if there is none.
    pub snapshot_at_ns: Counter,
}

/// Counters of the history of the market; all zero if none is kept.
#[derive(Debug, Default)]
pub struct HistoryMeter {
    /// Ticks that the history received.
    pub ticks: Counter,
    /// Ticks dropped because the history had no room for them. The http thread writes it.
    pub dropped: Counter,
    /// Writes that the disk refused.
    pub failed_writes: Counter,
    /// Bytes of all files.
    pub bytes: Counter,
}

/// Latency of one stage in one thread, in its last second with work; in nanoseconds.
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

/// Latency of one stage in one thread since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageTotal {
    pub thread: String,
    pub stage: &'static str,
    pub buckets: LatencyBuckets,
}

/// Latencies of all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageReport {
    pub summaries: Vec<StageSummary>,
    pub totals: Vec<StageTotal>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_counts_of_the_worker() {
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
