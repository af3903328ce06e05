//! Events of one strategy, newest last, as far as they are kept: all of them after a sequence
//! number by shard.

use std::collections::VecDeque;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::index::index_usize;
use pitlane_protocols::remote::strategy::{NumberedEvent, ShardHead};

/// Events of one strategy. Invariant: the events of each shard are in their order, each with the
/// number of its predecessor.
#[derive(Debug)]
pub(crate) struct EventHistory {
    events: VecDeque<NumberedEvent>,
    max: usize,
    /// Number of events that are no longer kept, of all shards: the position of the first that is.
    dropped: u64,
    /// By shard: sequence number of the last event.
    last: Vec<u64>,
    /// By shard: all events after this sequence number are here.
    from: Vec<u64>,
}

impl EventHistory {
    pub(crate) fn new(shards: u8, max: usize) -> EventHistory {
        let zero = || vec![0; shards as usize];
        EventHistory { events: VecDeque::new(), max, dropped: 0, last: zero(), from: zero() }
    }

    /// Sets the sequence number after which the events of a shard follow.
    pub(crate) fn begin(&mut self, shard: ShardId, from: u64) {
        (self.last[shard.0 as usize], self.from[shard.0 as usize]) = (from, from);
    }

    pub(crate) fn add(&mut self, shard: ShardId, event: &Event) {
        let last = &mut self.last[shard.0 as usize];
        let before = std::mem::replace(last, event.seq);
        if self.events.len() >= self.max
            && let Some(oldest) = self.events.pop_front()
        {
            self.from[oldest.shard.0 as usize] = oldest.event.seq;
            self.dropped += 1;
        }
        self.events.push_back(NumberedEvent { shard, before, event: *event });
    }

    /// Returns how far the shards are; `seen` has the last event of each shard, of whatever
    /// strategy.
    pub(crate) fn heads(&self, seen: &[u64]) -> Vec<ShardHead> {
        self.last.iter().zip(seen).map(|(&last, &seen)| ShardHead { last, seen: seen.max(last) }).collect()
    }

    /// Returns whether a receiver that has these events has all.
    pub(crate) fn is_received_by(&self, received: &[u64]) -> bool {
        received.len() == self.last.len()
            && self.last.iter().zip(received).all(|(last, received)| last <= received)
    }

    /// Returns whether all events that a receiver lacks are here.
    pub(crate) fn covers(&self, received: &[u64]) -> bool {
        received.len() == self.from.len()
            && self.from.iter().zip(received).all(|(from, received)| from <= received)
    }

    /// Returns at most `most` events that a receiver lacks, and whether there are more.
    pub(crate) fn after(&self, received: &[u64], most: usize) -> (Vec<NumberedEvent>, bool) {
        let is_new = |numbered: &&NumberedEvent| {
            received.get(numbered.shard.0 as usize).is_none_or(|received| numbered.event.seq > *received)
        };
        let mut new = self.events.iter().filter(is_new);
        let events = new.by_ref().take(most).copied().collect();
        (events, new.next().is_some())
    }

    /// Returns the position after the last event.
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// Returns at most `most` events from a position on, and the position after them. Events that
    /// are no longer kept are skipped.
    pub(crate) fn since(&self, position: u64, most: usize) -> (Vec<NumberedEvent>, u64) {
        let position = position.clamp(self.dropped, self.end());
        let skip = index_usize(position - self.dropped);
        let events: Vec<NumberedEvent> = self.events.range(skip..).take(most).copied().collect();
        let next = position + events.len() as u64;
        (events, next)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::EventKind;
    use pitlane_engine::time::{Day, Timestamp};

    use super::*;

    fn event(seq: u64) -> Event {
        Event { seq, at: Timestamp(1), body: EventKind::TradingDay { day: Day(1) } }
    }

    fn history() -> EventHistory {
        let mut history = EventHistory::new(2, 4);
        history.begin(ShardId(0), 10);
        history.begin(ShardId(1), 20);
        for (shard, seq) in [(0, 13), (1, 21), (0, 17), (0, 18)] {
            history.add(ShardId(shard), &event(seq));
        }
        history
    }

    fn seqs(history: &EventHistory, received: &[u64]) -> Vec<u64> {
        history.after(received, 9).0.iter().map(|numbered| numbered.event.seq).collect()
    }

    #[test]
    fn a_receiver_gets_exactly_the_events_that_it_has_missed() {
        let history = history();
        assert!(history.covers(&[10, 20]) && history.covers(&[15, 40]) && !history.covers(&[9, 20]));
        assert!(!history.covers(&[10]), "of another number of shards");
        assert_eq!(seqs(&history, &[10, 20]), [13, 21, 17, 18]);
        assert_eq!(seqs(&history, &[13, 30]), [17, 18]);
        assert!(history.after(&[10, 20], 3).1);
        assert!(!history.after(&[10, 20], 4).1);
        let befores: Vec<u64> = history.since(0, 9).0.iter().map(|numbered| numbered.before).collect();
        assert_eq!(befores, [10, 20, 13, 17]);
        assert!(history.is_received_by(&[18, 21]) && !history.is_received_by(&[17, 21]));
        assert_eq!(history.heads(&[50, 3])[0], ShardHead { last: 18, seen: 50 });
        assert_eq!(history.heads(&[50, 3])[1], ShardHead { last: 21, seen: 21 });
    }

    #[test]
    fn events_that_were_dropped_are_not_covered() {
        let mut history = history();
        history.add(ShardId(1), &event(30));
        history.add(ShardId(1), &event(31));
        assert!(!history.covers(&[12, 21]) && history.covers(&[13, 21]));
        let since = |position| (history.since(position, 9).0.len(), history.since(position, 9).1);
        assert_eq!((history.end(), since(0), since(5), since(99)), (6, (4, 6), (1, 6), (0, 6)));
    }
}
