//! How long each stage of an order's road takes: every thread counts its own, and once a second hands the counts to
//! whoever shows them.
//!
//! ```text
//! wire-in ─Decode─► decoded ─Send─► ring-out ═ lane ═► taken ─Journal─► journaled ─Apply─► applied ═ lane ═► heard ─Encode─► encoded ─Write─► wire-out
//!                                      └─────────────────────────── Answer ─────────────────────────────────────┘
//! ```
//!
//! The broker has a road of its own, from a lane to many. It is stamped by the turn, not by the message:
//!
//! ```text
//! wire-in ─StompDecode─► done                    taken ─StompRender─► rendered for all ─StompWrite─► wire-out to all
//! ```
//!
//! A command carries no stamp: it would have to be wider than its two cache lines. The thread that sends it keeps the
//! moment and counts `Answer` when it hears of it; the shard counts its own part; the difference is what the lanes took.
//!
//! **Without a lock.** Each thread owns a sheet of histograms. When a second is over it gives the sheet away and takes an
//! empty one that came back; if none has (the reader is slow) it goes on with the one it has, and nothing is lost.
//! Stamps are the processor's raw counter, turned into nanoseconds only when they are counted. One in [`EVERY`] is taken.

use hdrhistogram::Histogram;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use rtrb::{Consumer, Producer, RingBuffer};

use crate::metrics::StageSummary;

/// Of so many commands one is stamped, and the first of each second. Prime, so that no pattern of the flow hides behind
/// it; so large that all stamps of an order cost less than a hundredth of its road.
pub const EVERY: u32 = 61;
/// How often a sheet is handed over.
const TURN_NS: u64 = NS_PER_S;
/// Longest time counted, in nanoseconds; what took longer counts as this.
const LONGEST_NS: u64 = 10 * NS_PER_S;
/// Significant digits: a latency is known to one percent, and a histogram takes 14 KiB.
const DIGITS: u8 = 2;
/// Sheets of one thread: one it writes, one that is read, one on its way.
const SHEETS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From the arrival of bytes to a message.
    Decode,
    /// From a message to its command on the lane.
    Send,
    /// From a command taken to the command in the journal.
    Journal,
    /// From there until all its events are on their lanes.
    Apply,
    /// From the command on its lane to the first event about it.
    Answer,
    /// From an event heard to bytes.
    Encode,
    /// From bytes to the system's having taken them.
    Write,
    /// From the arrival of a STOMP client's bytes to what they say being done.
    StompDecode,
    /// From the first event of a turn on its lane to all of them rendered for their subscribers.
    StompRender,
    /// From there until everybody who has something to hear was written to.
    StompWrite,
}

impl Stage {
    pub const ALL: [Stage; 10] = [
        Stage::Decode,
        Stage::Send,
        Stage::Journal,
        Stage::Apply,
        Stage::Answer,
        Stage::Encode,
        Stage::Write,
        Stage::StompDecode,
        Stage::StompRender,
        Stage::StompWrite,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Stage::Decode => "decode",
            Stage::Send => "send",
            Stage::Journal => "journal",
            Stage::Apply => "apply",
            Stage::Answer => "answer",
            Stage::Encode => "encode",
            Stage::Write => "write",
            Stage::StompDecode => "stomp-decode",
            Stage::StompRender => "stomp-render",
            Stage::StompWrite => "stomp-write",
        }
    }
}

/// A moment, by the processor's counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u64);

/// One histogram for each stage.
#[derive(Debug)]
struct Sheet {
    stages: [Histogram<u32>; Stage::ALL.len()],
    is_empty: bool,
}

impl Sheet {
    fn new() -> Sheet {
        Sheet { stages: Stage::ALL.map(|_| histogram()), is_empty: true }
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

/// The two ends of one thread's counts.
pub fn stages() -> (Recorder, Reader) {
    let (full_in, full_out) = RingBuffer::new(SHEETS);
    let (mut empty_in, empty_out) = RingBuffer::new(SHEETS);
    for _ in 1..SHEETS {
        empty_in.push(Box::new(Sheet::new())).expect("there is room for all sheets");
    }
    let recorder = Recorder {
        clock: quanta::Clock::new(),
        sheet: Box::new(Sheet::new()),
        full: full_in,
        empty: empty_out,
        turn: Timestamp::ZERO,
        skip: 0,
        skip_turns: 0,
    };
    (recorder, Reader { full: full_out, empty: empty_in, latest: Box::new(Sheet::new()) })
}

/// The end of the thread that counts.
#[derive(Debug)]
pub struct Recorder {
    clock: quanta::Clock,
    sheet: Box<Sheet>,
    full: Producer<Box<Sheet>>,
    empty: Consumer<Box<Sheet>>,
    /// When the sheet is handed over.
    turn: Timestamp,
    /// Commands until the next that is stamped.
    skip: u32,
    /// Turns until the next that is stamped.
    skip_turns: u32,
}

impl Recorder {
    /// The moment, if this command is one of those that are looked at.
    #[inline]
    pub fn sample(&mut self) -> Option<Stamp> {
        is_sampled(&mut self.skip).then(|| self.stamp())
    }

    /// The same for the turns of a broker, so that neither hides the other.
    #[inline]
    pub fn sample_turn(&mut self) -> Option<Stamp> {
        is_sampled(&mut self.skip_turns).then(|| self.stamp())
    }

    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp(self.clock.raw())
    }

    /// Counts what a stage took.
    pub fn count(&mut self, stage: Stage, from: Stamp, to: Stamp) {
        let ns = self.clock.delta_as_nanos(from.0, to.0);
        self.sheet.stages[stage as usize].saturating_record(ns.max(1));
        self.sheet.is_empty = false;
    }

    /// Hands the sheet over when its second is over. To be called in every round; most of the time it compares two
    /// numbers.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) {
        if now >= self.turn {
            self.turn_over(now);
        }
    }

    #[cold]
    fn turn_over(&mut self, now: Timestamp) {
        self.turn = now.plus(TURN_NS);
        self.skip = 0;
        if self.sheet.is_empty || self.full.is_full() {
            return;
        }
        if let Ok(empty) = self.empty.pop() {
            let full = std::mem::replace(&mut self.sheet, empty);
            self.full.push(full).expect("there was room, and nobody else writes");
        }
    }

    /// When this thread should be awake to hand its sheet over; the end of time if there is nothing on it.
    pub fn deadline(&self) -> Timestamp {
        if self.sheet.is_empty { Timestamp::MAX } else { self.turn }
    }
}

#[inline]
fn is_sampled(skip: &mut u32) -> bool {
    let is_it = *skip == 0;
    *skip = if is_it { EVERY - 1 } else { *skip - 1 };
    is_it
}

/// The end of the thread that shows the counts.
#[derive(Debug)]
pub struct Reader {
    full: Consumer<Box<Sheet>>,
    empty: Producer<Box<Sheet>>,
    latest: Box<Sheet>,
}

impl Reader {
    /// Takes in what has been handed over; the newest sheet is the one that is shown.
    pub fn poll(&mut self) {
        while let Ok(sheet) = self.full.pop() {
            let mut old = std::mem::replace(&mut self.latest, sheet);
            old.clear();
            self.empty.push(old).expect("there is room for all sheets");
        }
    }

    /// The stages that this thread has, under its name.
    pub fn summaries(&self, thread: &str) -> impl Iterator<Item = StageSummary> {
        let stages = Stage::ALL.into_iter().zip(&self.latest.stages);
        stages.filter(|(_, counts)| !counts.is_empty()).map(move |(stage, counts)| StageSummary {
            thread: thread.to_string(),
            stage: stage.word(),
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

    fn count(recorder: &mut Recorder, stage: Stage, times: usize) {
        for _ in 0..times {
            let from = recorder.stamp();
            let to = recorder.stamp();
            recorder.count(stage, from, to);
        }
    }

    /// How often each stage was counted, as shown.
    fn shown(reader: &mut Reader) -> Vec<(&'static str, u64)> {
        reader.poll();
        reader.summaries("t").map(|summary| (summary.stage, summary.count)).collect()
    }

    #[test]
    fn what_was_counted_is_shown_when_its_second_is_over() {
        let (mut recorder, mut reader) = stages();
        let second = |n: u64| Timestamp(n * NS_PER_S);
        recorder.poll(second(1));
        assert_eq!(recorder.deadline(), Timestamp::MAX);
        count(&mut recorder, Stage::Apply, 5);
        assert_eq!(recorder.deadline(), second(2));
        recorder.poll(Timestamp(second(2).0 - 1));
        assert_eq!(shown(&mut reader), []);
        recorder.poll(second(2));
        assert_eq!(shown(&mut reader), [("apply", 5)]);
        count(&mut recorder, Stage::Journal, 1);
        recorder.poll(second(3));
        assert_eq!(shown(&mut reader), [("journal", 1)], "a second begins with nothing");
        recorder.poll(second(4));
        assert_eq!(shown(&mut reader), [("journal", 1)], "without work the last numbers stay");
    }

    #[test]
    fn a_reader_that_does_not_come_costs_no_counts() {
        let (mut recorder, mut reader) = stages();
        for second in 1..=10 {
            recorder.poll(Timestamp(second * NS_PER_S));
            count(&mut recorder, Stage::Answer, 1);
        }
        // Two sheets were handed over; the rest is on the third.
        assert_eq!(shown(&mut reader), [("answer", 1)]);
        recorder.poll(Timestamp(11 * NS_PER_S));
        assert_eq!(shown(&mut reader), [("answer", 8)]);
    }

    #[test]
    fn one_of_so_many_is_stamped_and_a_summary_is_in_order() {
        let (mut recorder, mut reader) = stages();
        recorder.poll(Timestamp(1));
        for _ in 0..100 * EVERY {
            if let Some(from) = recorder.sample() {
                let to = recorder.stamp();
                recorder.count(Stage::Send, from, to);
            }
        }
        recorder.poll(Timestamp(2 * NS_PER_S));
        reader.poll();
        let summary = reader.summaries("t").next().unwrap();
        assert_eq!(summary.count, 100);
        let StageSummary { p50, p90, p99, p999, max, .. } = summary;
        assert!(1 <= p50 && p50 <= p90 && p90 <= p99 && p99 <= p999 && p999 <= max);
        for (at, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, at, "{}", stage.word());
        }
    }
}
