//! Timers of a shard: dates of GTD orders, and everything in transit to or from a simulated venue
//! with delays. A heap in order of time, then of arrival.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec, encode_list};
use crate::command::VenueReport;
use crate::event::{Tick, VenueRequest};
use crate::id::OrderHandle;
use crate::rng::Rng;
use crate::settings::DelayTable;
use crate::time::Timestamp;

/// Dates of ended orders stay in the heap up to this many beyond those that matter; then they are
/// swept.
const STALE_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// The date of a GTD order.
    Date(OrderHandle),
    ToVenue {
        order: OrderHandle,
        request: VenueRequest,
    },
    FromVenue {
        order: OrderHandle,
        report: VenueReport,
    },
    /// A delayed tick to publish.
    Shown(Tick),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimerEntry {
    at: Timestamp,
    seq: u64,
    what: Timed,
}

impl Ord for TimerEntry {
    /// Reversed: the heap returns its greatest entry, which must be the earliest.
    fn cmp(&self, other: &TimerEntry) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

impl PartialOrd for TimerEntry {
    fn partial_cmp(&self, other: &TimerEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<TimerEntry>,
    seq: u64,
    /// Dates in the heap, stale ones included.
    dates: usize,
}

impl Timers {
    pub fn push(&mut self, at: Timestamp, what: Timed) {
        self.seq += 1;
        self.dates += matches!(what, Timed::Date(_)) as usize;
        self.heap.push(TimerEntry { at, seq: self.seq, what });
    }

    pub fn deadline(&self) -> Option<Timestamp> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Returns the next due entry.
    pub fn pop(&mut self, now: Timestamp) -> Option<Timed> {
        if self.deadline()? > now {
            return None;
        }
        let entry = self.heap.pop()?;
        self.dates -= matches!(entry.what, Timed::Date(_)) as usize;
        Some(entry.what)
    }

    /// Delivers everything in transit now: first what comes from a venue, then what goes there,
    /// each in its order. No later report of a venue thus overtakes an earlier one.
    pub fn deliver_all(&mut self, now: Timestamp) {
        let mut entries = std::mem::take(&mut self.heap).into_sorted_vec();
        // The order is reversed, so the last is the earliest.
        entries.reverse();
        let (dates, mut under_way): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| matches!(entry.what, Timed::Date(_)));
        under_way.sort_by_key(|entry| matches!(entry.what, Timed::ToVenue { .. }));
        self.heap = BinaryHeap::from(dates);
        for entry in under_way {
            self.push(now, entry.what);
        }
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Timed> {
        self.heap.iter().map(|entry| &entry.what)
    }

    /// Sweeps dates of ended orders, when there are many: a client that enters and cancels GTD
    /// orders all day must not fill the memory. `live` is the number of dates that matter.
    pub fn sweep(&mut self, live: usize, matters: impl Fn(OrderHandle) -> bool) {
        if self.dates <= 2 * live + STALE_MAX {
            return;
        }
        self.heap.retain(|entry| match entry.what {
            Timed::Date(order) => matters(order),
            Timed::ToVenue { .. } | Timed::FromVenue { .. } | Timed::Shown(_) => true,
        });
        self.dates = self.heap.iter().filter(|entry| matches!(entry.what, Timed::Date(_))).count();
    }
}

codec!(TimerEntry { at, seq, what });
codec!(enum Timed { 0 = Date(order), 1 = ToVenue { order, request }, 2 = FromVenue { order, report }, 3 = Shown(tick) });
codec!(DelayLine { last, rng });

/// In due order, whatever the layout of the heap.
impl Codec for Timers {
    fn encode(&self, out: &mut impl ByteSink) {
        let mut entries: Vec<&TimerEntry> = self.heap.iter().collect();
        entries.sort_unstable_by(|a, b| b.cmp(a));
        encode_list(entries.into_iter(), out);
        self.seq.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Timers, DecodeError> {
        let entries: Vec<TimerEntry> = Codec::decode(from)?;
        let seq = from.counter()?;
        let sound = entries.is_sorted_by(|a, b| a > b) && entries.iter().all(|entry| entry.seq <= seq);
        from.check(sound, DecodeProblem::Contradiction)?;
        let dates = entries.iter().filter(|entry| matches!(entry.what, Timed::Date(_))).count();
        Ok(Timers { heap: BinaryHeap::from(entries), seq, dates })
    }
}

/// The transit to or from a venue for one security: what is sent later never arrives earlier.
#[derive(Debug)]
pub struct DelayLine {
    last: Timestamp,
    rng: Rng,
}

impl DelayLine {
    pub fn new(seed: u64) -> DelayLine {
        DelayLine { last: Timestamp::ZERO, rng: Rng::new(seed) }
    }

    /// Marks the transit as empty.
    pub fn clear(&mut self, now: Timestamp) {
        self.last = self.last.min(now);
    }

    /// Returns the arrival time of something sent now with this delay.
    pub fn arrival_after(&mut self, now: Timestamp, delay_ns: u64) -> Timestamp {
        self.last = self.last.max(now.plus(delay_ns));
        self.last
    }

    /// Draws a delay.
    pub fn draw(&mut self, table: &DelayTable) -> u64 {
        table.draw(&mut self.rng)
    }

    /// Returns the arrival time of something sent now.
    pub fn arrival(&mut self, now: Timestamp, delay_ns: u64, jitter_ns: u64) -> Timestamp {
        let jitter = if jitter_ns == 0 { 0 } else { self.rng.below(jitter_ns.saturating_add(1)) };
        self.last = self.last.max(now.plus(delay_ns).plus(jitter));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ShardId;

    fn date(slot: u32) -> Timed {
        Timed::Date(OrderHandle::new(ShardId(0), 0, slot))
    }

    #[test]
    fn due_timers_come_in_order_of_time_then_of_arrival() {
        let mut timers = Timers::default();
        assert_eq!(timers.deadline(), None);
        for (at, slot) in [(5, 1), (3, 2), (5, 3), (9, 4)] {
            timers.push(Timestamp(at), date(slot));
        }
        assert_eq!(timers.deadline(), Some(Timestamp(3)));
        let due: Vec<_> = std::iter::from_fn(|| timers.pop(Timestamp(5))).collect();
        assert_eq!(due, [date(2), date(1), date(3)]);
        assert_eq!(timers.len(), 1);
        assert!(!timers.is_empty());
    }

    #[test]
    fn dates_of_ended_orders_do_not_pile_up() {
        let mut timers = Timers::default();
        timers.push(Timestamp(1), Timed::Shown(Tick::default()));
        for slot in 0..10_000 {
            timers.push(Timestamp(10), date(slot));
            timers.sweep(1, |order| order.slot() == 7);
        }
        assert!(timers.len() <= STALE_MAX + 5, "{}", timers.len());
    }

    #[test]
    fn nothing_overtakes_on_its_way() {
        let mut way = DelayLine::new(3);
        let mut last = Timestamp::ZERO;
        for now in 0..1_000 {
            let arrival = way.arrival(Timestamp(now), 50, 500);
            assert!(arrival >= last && arrival.0 >= now + 50 && arrival.0 <= now.max(last.0) + 550);
            last = arrival;
        }
        assert_eq!(DelayLine::new(1).arrival(Timestamp(1), 2, 0), Timestamp(3));
    }

    #[test]
    fn a_fixed_delay_is_added_unless_something_earlier_is_still_on_its_way() {
        let mut way = DelayLine::new(3);
        assert_eq!(way.arrival_after(Timestamp(10), 50), Timestamp(60));
        assert_eq!(way.arrival_after(Timestamp(20), 5), Timestamp(60));
        assert_eq!(way.arrival_after(Timestamp(100), 5), Timestamp(105));
        let table = DelayTable::new(vec![7, 8]);
        let drawn: Vec<u64> = (0..100).map(|_| way.draw(&table)).collect();
        assert!(drawn.contains(&7) && drawn.contains(&8), "{drawn:?}");
        assert!(drawn.iter().all(|delay| [7, 8].contains(delay)));
    }

    #[test]
    fn the_jitter_has_its_bound_and_zero_is_none() {
        let arrivals = |jitter| {
            let arrival = |seed| DelayLine::new(seed).arrival(Timestamp(100), 5, jitter).0 - 105;
            (0..200).map(arrival).collect::<std::collections::BTreeSet<u64>>()
        };
        assert_eq!(arrivals(0), [0].into());
        assert_eq!(arrivals(2), [0, 1, 2].into());
    }

    #[test]
    fn stored_timers_are_in_order_and_numbered_up_to_the_last() {
        let entry = |at, seq| TimerEntry { at: Timestamp(at), seq, what: date(1) };
        let problem = |entries: &[TimerEntry], seq: u64| {
            let mut bytes = Vec::new();
            encode_list(entries.iter(), &mut bytes);
            seq.encode(&mut bytes);
            crate::codec::decode_whole::<Timers>(&bytes).err().map(|damage| damage.problem)
        };
        assert_eq!(problem(&[entry(3, 2), entry(5, 1), entry(5, 3)], 3), None);
        let bad = Some(DecodeProblem::Contradiction);
        assert_eq!(problem(&[entry(5, 1), entry(3, 2)], 3), bad);
        assert_eq!(problem(&[entry(5, 3), entry(5, 1)], 3), bad);
        assert_eq!(problem(&[entry(5, 3), entry(5, 3)], 3), bad, "an entry twice");
        assert_eq!(problem(&[entry(3, 2), entry(5, 4)], 3), bad, "a number that was not given yet");
    }
}
