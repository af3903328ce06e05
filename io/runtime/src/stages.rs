//! Latency of each stage on the path of an order: every thread records its own stages, and once per
//! second hands the histograms to the thread that publishes them.
//!
//! ```text
//! wire-in ─Decode─► decoded ─Send─► ring-out ═ lane ═► taken ─Journal─► journaled ─Apply─► applied ═ lane ═► taken ─Encode─► encoded ─Write─► wire-out
//!                                      └─────────────────────────── Answer ─────────────────────────────────────┘
//! ```
//!
//! The broker has a path of its own, from one lane to many clients. It is sampled per cycle, not
//! per message:
//!
//! ```text
//! wire-in ─StompDecode─► done                    taken ─StompRender─► rendered for all ─StompWrite─► wire-out to all
//! ```
//!
//! A command carries no timestamp: it would no longer fit into its two cache lines. The sending
//! thread stores the time and records `Answer` at the first event about the command; the shard
//! records its own part; the difference is the time in the lanes.
//!
//! **Lock-free.** Each thread owns a set of histograms. At the end of each second it hands the set
//! over and takes an empty one that the reader has returned; if there is none (the reader is slow),
//! it continues with its current set, and nothing is lost. Timestamps are raw values of the
//! processor's counter, converted into nanoseconds only when they are recorded. One command in
//! [`EVERY`] is sampled.

use hdrhistogram::Histogram;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::latency_buckets::LatencyBuckets;
use crate::metrics::{StageSummary, StageTotal};

/// One command in this many is sampled, and the first of each second. The number is prime, so that
/// a regular pattern of messages cannot hide from the sampling, and so large that all timestamps of
/// an order cost less than a hundredth of its path.
pub const EVERY: u32 = 61;
/// Interval between two handovers of the histograms.
const HANDOVER_NS: u64 = NS_PER_S;
/// Longest recorded time, in nanoseconds; longer times are recorded as this.
const LONGEST_NS: u64 = 10 * NS_PER_S;
/// Significant digits: a latency is accurate to one percent, and a histogram takes 14 KiB.
const DIGITS: u8 = 2;
/// Sets of histograms per thread: one being written, one being read, one in transit.
const SETS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyStage {
    /// From the arrival of the bytes to the decoded message.
    Decode,
    /// From the decoded message to its command on the lane.
    Send,
    /// From taking a command off the lane to the command in the journal.
    Journal,
    /// From the end of `Journal` until all events of the command are on their lanes.
    Apply,
    /// From the command on its lane to the first event about it.
    Answer,
    /// From reading an event to the encoded bytes.
    Encode,
    /// From the encoded bytes to the end of the write to the socket.
    Write,
    /// From the arrival of a STOMP client's bytes to the end of their processing.
    StompDecode,
    /// From the first event of a cycle on its lane until all events are rendered for their
    /// subscribers.
    StompRender,
    /// From the end of `StompRender` until all clients with pending output have been written to.
    StompWrite,
}

impl LatencyStage {
    pub const ALL: [LatencyStage; 10] = [
        LatencyStage::Decode,
        LatencyStage::Send,
        LatencyStage::Journal,
        LatencyStage::Apply,
        LatencyStage::Answer,
        LatencyStage::Encode,
        LatencyStage::Write,
        LatencyStage::StompDecode,
        LatencyStage::StompRender,
        LatencyStage::StompWrite,
    ];

    pub fn name(self) -> &'static str {
        match self {
            LatencyStage::Decode => "decode",
            LatencyStage::Send => "send",
            LatencyStage::Journal => "journal",
            LatencyStage::Apply => "apply",
            LatencyStage::Answer => "answer",
            LatencyStage::Encode => "encode",
            LatencyStage::Write => "write",
            LatencyStage::StompDecode => "stomp-decode",
            LatencyStage::StompRender => "stomp-render",
            LatencyStage::StompWrite => "stomp-write",
        }
    }
}

/// A raw value of the processor's counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterStamp(u64);

/// One histogram per stage.
#[derive(Debug)]
struct LatencyHistograms {
    stages: [Histogram<u32>; LatencyStage::ALL.len()],
    is_empty: bool,
}

impl LatencyHistograms {
    fn new() -> LatencyHistograms {
        LatencyHistograms { stages: LatencyStage::ALL.map(|_| histogram()), is_empty: true }
    }

    fn clear(&mut self) {
        for stage in &mut self.stages {
            stage.reset();
        }
        self.is_empty = true;
    }
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are sound")
}

/// Creates the two ends of one thread's latency records.
pub fn stages() -> (LatencyRecorder, LatencyReader) {
    let (full_in, full_out) = RingBuffer::new(SETS);
    let (mut empty_in, empty_out) = RingBuffer::new(SETS);
    for _ in 1..SETS {
        empty_in.push(Box::new(LatencyHistograms::new())).expect("there is room for all sheets");
    }
    let recorder = LatencyRecorder {
        clock: quanta::Clock::new(),
        histograms: Box::new(LatencyHistograms::new()),
        full: full_in,
        empty: empty_out,
        handover_at: Timestamp::ZERO,
        skip: 0,
        skip_cycles: 0,
    };
    let latest = Box::new(LatencyHistograms::new());
    let totals = LatencyStage::ALL.map(|_| LatencyBuckets::default());
    (recorder, LatencyReader { full: full_out, empty: empty_in, latest, totals })
}

/// The end of the thread that records.
#[derive(Debug)]
pub struct LatencyRecorder {
    clock: quanta::Clock,
    histograms: Box<LatencyHistograms>,
    full: Producer<Box<LatencyHistograms>>,
    empty: Consumer<Box<LatencyHistograms>>,
    /// Time of the next handover.
    handover_at: Timestamp,
    /// Commands until the next sample.
    skip: u32,
    /// Broker cycles until the next sample.
    skip_cycles: u32,
}

impl LatencyRecorder {
    /// Returns the current time if this command is sampled.
    #[inline]
    pub fn sample(&mut self) -> Option<CounterStamp> {
        is_sampled(&mut self.skip).then(|| self.stamp())
    }

    /// Returns the current time if this broker cycle is sampled. It has a counter of its own, so
    /// that commands and broker cycles do not hide each other.
    #[inline]
    pub fn sample_cycle(&mut self) -> Option<CounterStamp> {
        is_sampled(&mut self.skip_cycles).then(|| self.stamp())
    }

    #[inline]
    pub fn stamp(&self) -> CounterStamp {
        CounterStamp(self.clock.raw())
    }

    /// Records the duration of a stage.
    pub fn count(&mut self, stage: LatencyStage, from: CounterStamp, to: CounterStamp) {
        let ns = self.clock.delta_as_nanos(from.0, to.0);
        self.histograms.stages[stage as usize].saturating_record(ns.max(1));
        self.histograms.is_empty = false;
    }

    /// Hands the histograms over when their second has ended. Called in every cycle; it usually
    /// compares two numbers.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) {
        if now >= self.handover_at {
            self.hand_over(now);
        }
    }

    #[cold]
    fn hand_over(&mut self, now: Timestamp) {
        self.handover_at = now.plus(HANDOVER_NS);
        self.skip = 0;
        if self.histograms.is_empty || self.full.is_full() {
            return;
        }
        if let Ok(empty) = self.empty.pop() {
            let full = std::mem::replace(&mut self.histograms, empty);
            self.full.push(full).expect("there was room, and no other thread writes");
        }
    }

    /// Returns when the thread should run to hand its histograms over; `Timestamp::MAX` if they are
    /// empty.
    pub fn deadline(&self) -> Timestamp {
        if self.histograms.is_empty { Timestamp::MAX } else { self.handover_at }
    }
}

#[inline]
fn is_sampled(skip: &mut u32) -> bool {
    let is_it = *skip == 0;
    *skip = if is_it { EVERY - 1 } else { *skip - 1 };
    is_it
}

/// The end of the thread that publishes the latencies.
#[derive(Debug)]
pub struct LatencyReader {
    full: Consumer<Box<LatencyHistograms>>,
    empty: Producer<Box<LatencyHistograms>>,
    latest: Box<LatencyHistograms>,
    /// All records since the start, by stage.
    totals: [LatencyBuckets; LatencyStage::ALL.len()],
}

impl LatencyReader {
    /// Takes the sets that were handed over; the newest is the one that is published.
    pub fn poll(&mut self) {
        while let Ok(histograms) = self.full.pop() {
            let recorded = self.totals.iter_mut().zip(&histograms.stages);
            for (total, stage) in recorded.filter(|(_, stage)| !stage.is_empty()) {
                for value in stage.iter_recorded() {
                    total.add(value.value_iterated_to(), value.count_since_last_iteration());
                }
            }
            let mut old = std::mem::replace(&mut self.latest, histograms);
            old.clear();
            self.empty.push(old).expect("there is room for all sheets");
        }
    }

    /// Returns all records since the start of the stages that have any, under this thread name.
    pub fn totals(&self, thread: &str) -> impl Iterator<Item = StageTotal> {
        let stages = LatencyStage::ALL.into_iter().zip(&self.totals);
        stages.filter(|(_, buckets)| buckets.count() > 0).map(move |(stage, buckets)| StageTotal {
            thread: thread.to_string(),
            stage: stage.name(),
            buckets: buckets.clone(),
        })
    }

    /// Returns the summaries of the stages that have records, under this thread name.
    pub fn summaries(&self, thread: &str) -> impl Iterator<Item = StageSummary> {
        let stages = LatencyStage::ALL.into_iter().zip(&self.latest.stages);
        stages.filter(|(_, counts)| !counts.is_empty()).map(move |(stage, counts)| StageSummary {
            thread: thread.to_string(),
            stage: stage.name(),
            count: counts.len(),
            p50: counts.value_at_quantile(0.5),
            p90: counts.value_at_quantile(0.9),
            p99: counts.value_at_quantile(0.99),
            p999: counts.value_at_quantile(0.999),
            max: counts.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(recorder: &mut LatencyRecorder, stage: LatencyStage, times: usize) {
        for _ in 0..times {
            let from = recorder.stamp();
            let to = recorder.stamp();
            recorder.count(stage, from, to);
        }
    }

    /// Returns the number of records per stage.
    fn shown(reader: &mut LatencyReader) -> Vec<(&'static str, u64)> {
        reader.poll();
        reader.summaries("t").map(|summary| (summary.stage, summary.count)).collect()
    }

    #[test]
    fn records_are_published_at_the_end_of_their_second() {
        let (mut recorder, mut reader) = stages();
        let second = |n: u64| Timestamp(n * NS_PER_S);
        recorder.poll(second(1));
        assert_eq!(recorder.deadline(), Timestamp::MAX);
        count(&mut recorder, LatencyStage::Apply, 5);
        assert_eq!(recorder.deadline(), second(2));
        recorder.poll(Timestamp(second(2).0 - 1));
        assert_eq!(shown(&mut reader), []);
        recorder.poll(second(2));
        assert_eq!(shown(&mut reader), [("apply", 5)]);
        count(&mut recorder, LatencyStage::Journal, 1);
        recorder.poll(second(3));
        assert_eq!(shown(&mut reader), [("journal", 1)], "a second begins with nothing");
        recorder.poll(second(4));
        assert_eq!(shown(&mut reader), [("journal", 1)], "without work the last numbers stay");
        let totals: Vec<_> = reader.totals("t").map(|total| (total.stage, total.buckets.count())).collect();
        assert_eq!(totals, [("journal", 1), ("apply", 5)], "the totals have every record");
    }

    #[test]
    fn a_slow_reader_loses_no_records() {
        let (mut recorder, mut reader) = stages();
        for second in 1..=10 {
            recorder.poll(Timestamp(second * NS_PER_S));
            count(&mut recorder, LatencyStage::Answer, 1);
        }
        // Two sets were handed over; the other records are in the third.
        assert_eq!(shown(&mut reader), [("answer", 1)]);
        recorder.poll(Timestamp(11 * NS_PER_S));
        assert_eq!(shown(&mut reader), [("answer", 8)]);
    }

    #[test]
    fn one_command_in_every_is_sampled_and_quantiles_are_ordered() {
        let (mut recorder, mut reader) = stages();
        recorder.poll(Timestamp(1));
        for _ in 0..100 * EVERY {
            if let Some(from) = recorder.sample() {
                let to = recorder.stamp();
                recorder.count(LatencyStage::Send, from, to);
            }
        }
        recorder.poll(Timestamp(2 * NS_PER_S));
        reader.poll();
        let summary = reader.summaries("t").next().unwrap();
        assert_eq!(summary.count, 100);
        let StageSummary { p50, p90, p99, p999, max, .. } = summary;
        assert!(1 <= p50 && p50 <= p90 && p90 <= p99 && p99 <= p999 && p999 <= max);
        for (at, stage) in LatencyStage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, at, "{}", stage.name());
        }
    }
}
