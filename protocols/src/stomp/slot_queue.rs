//! Order in which the subscriptions of a session send their waiting market data.
//!
//! A throttled session prefers subscriptions that name their topic, because that is what the
//! consumer looks at. Within each class the topic whose last delivery is oldest goes first. One
//! turn in ten is for wildcards, so that they are never silent. A session without a rate sends
//! whatever has waited longest.
//!
//! Rules: docs/stomp.md#throttling.

use std::collections::{BTreeMap, BTreeSet};

/// Turns of named topics in a row while a wildcard waits.
const NAMED_IN_A_ROW_MAX: u8 = 9;
/// Deliveries that a throttled session remembers: a minute and more at the usual rate. Forgotten
/// ones are older than all others, so their topics go first.
pub const DELIVERIES_MAX: usize = 4_096;
/// Memory of a remembered delivery, in bytes: its entry in a tree whose nodes are half full.
pub const DELIVERY_BYTES_MAX: usize = 2 * size_of::<((u16, u32), u64)>();

/// Subscriptions by the turn of their first waiting topic.
#[derive(Debug, Default)]
pub struct SlotQueue {
    named: BTreeSet<(u64, u16)>,
    wildcards: BTreeSet<(u64, u16)>,
    /// Turns of named topics since the last one of a wildcard.
    in_a_row: u8,
}

impl SlotQueue {
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.wildcards.is_empty()
    }

    /// Adds a subscription under the turn of its first waiting topic.
    pub fn insert(&mut self, is_named: bool, turn: u64, place: u16) {
        self.class(is_named).insert((turn, place));
    }

    pub fn remove(&mut self, is_named: bool, turn: u64, place: u16) {
        self.class(is_named).remove(&(turn, place));
    }

    pub fn clear(&mut self) {
        *self = SlotQueue::default();
    }

    /// Returns the subscription with the lowest turn of all.
    pub fn first(&self) -> Option<u16> {
        let first = [self.named.first(), self.wildcards.first()].into_iter().flatten().min();
        first.map(|&(_, place)| place)
    }

    /// Returns the subscription whose turn it is by the rule above. The caller sends its first
    /// topic.
    pub fn next_turn(&mut self) -> Option<u16> {
        let (named, wildcard) = (self.named.first(), self.wildcards.first());
        let is_named = named.is_some() && (wildcard.is_none() || self.in_a_row < NAMED_IN_A_ROW_MAX);
        let &(_, place) = if is_named { named? } else { wildcard? };
        self.in_a_row = if is_named && wildcard.is_some() { self.in_a_row + 1 } else { 0 };
        Some(place)
    }

    fn class(&mut self, is_named: bool) -> &mut BTreeSet<(u64, u16)> {
        if is_named { &mut self.named } else { &mut self.wildcards }
    }
}

/// Turn of the last delivery of each topic to each subscription of a throttled session.
#[derive(Debug, Default)]
pub struct RecentDeliveries {
    turns: BTreeMap<(u16, u32), u64>,
}

impl RecentDeliveries {
    pub fn held_bytes(&self) -> usize {
        self.turns.len() * DELIVERY_BYTES_MAX
    }

    /// Returns the turn of the last delivery, or zero if there was none or it is forgotten.
    pub fn last(&self, place: u16, topic: u32) -> u64 {
        self.turns.get(&(place, topic)).copied().unwrap_or(0)
    }

    /// Records a delivery. The older half is forgotten when there is no room for another topic.
    pub fn record(&mut self, place: u16, topic: u32, turn: u64) {
        let is_known = self.turns.contains_key(&(place, topic));
        if !is_known && self.turns.len() >= DELIVERIES_MAX {
            let mut turns: Vec<u64> = self.turns.values().copied().collect();
            let (_, &mut middle, _) = turns.select_nth_unstable(DELIVERIES_MAX / 2);
            self.turns.retain(|_, turn| *turn > middle);
        }
        self.turns.insert((place, topic), turn);
    }

    /// Forgets the deliveries to a subscription, whose place another one may get.
    pub fn forget(&mut self, place: u16) {
        self.turns.retain(|(of, _), _| *of != place);
    }

    pub fn clear(&mut self) {
        self.turns.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_topics_go_first_and_wildcards_get_one_turn_in_ten() {
        let mut queue = SlotQueue::default();
        assert!(queue.is_empty() && queue.next_turn().is_none());
        queue.insert(true, 1, 7);
        assert!(!queue.is_empty(), "a named topic waits");
        queue.remove(true, 1, 7);
        assert!(queue.is_empty());
        queue.insert(false, 1, 7);
        assert!(!queue.is_empty(), "a wildcard waits");
        assert_eq!(queue.next_turn(), Some(7), "nothing else waits");
        queue.insert(true, 3, 1);
        queue.insert(true, 2, 2);
        assert_eq!(queue.first(), Some(7), "without a rate the longest waiting goes first");
        let order: Vec<u16> = (0..20).filter_map(|_| queue.next_turn()).collect();
        let ten = [[2; 9].as_slice(), &[7]].concat();
        assert_eq!(order, [ten.clone(), ten].concat(), "the lowest turn of the named ones");
        queue.remove(true, 2, 2);
        assert_eq!(queue.next_turn(), Some(1));
        queue.remove(true, 3, 1);
        assert_eq!(queue.next_turn(), Some(7));
        queue.clear();
        assert!(queue.is_empty() && queue.next_turn().is_none());
    }

    #[test]
    fn remembered_deliveries_are_bounded_and_the_newest_stay() {
        let mut recent = RecentDeliveries::default();
        let count = 3 * DELIVERIES_MAX as u64;
        for turn in 1..=count {
            recent.record((turn % 2) as u16, turn as u32, turn);
            assert!(recent.held_bytes() <= DELIVERIES_MAX * DELIVERY_BYTES_MAX);
        }
        let last = |turn: u64| recent.last((turn % 2) as u16, turn as u32);
        for turn in count - DELIVERIES_MAX as u64 / 2 + 2..=count {
            assert_eq!(last(turn), turn);
        }
        assert_eq!(last(1), 0, "what is forgotten is older than everything");
        assert!(last(count) > 0 && count.is_multiple_of(2));
        recent.forget(0);
        assert_eq!((recent.last(0, count as u32), recent.last(1, count as u32 - 1)), (0, count - 1));
        recent.clear();
        assert_eq!(recent.held_bytes(), 0);
    }

    #[test]
    fn a_repeated_delivery_needs_no_room_and_forgets_no_other() {
        let mut recent = RecentDeliveries::default();
        let count = DELIVERIES_MAX as u64;
        for turn in 1..=count {
            recent.record(1, turn as u32, turn);
        }
        assert_eq!(recent.held_bytes(), DELIVERIES_MAX * DELIVERY_BYTES_MAX);
        // The topic that was delivered last, and the one that would be forgotten first.
        for (topic, turn) in [(count, count + 1), (1, count + 2)] {
            recent.record(1, topic as u32, turn);
            assert_eq!(recent.last(1, topic as u32), turn);
        }
        assert!((2..count).all(|turn| recent.last(1, turn as u32) == turn));
        recent.record(1, count as u32 + 1, count + 3);
        assert_eq!(recent.held_bytes(), DELIVERIES_MAX / 2 * DELIVERY_BYTES_MAX, "the newer half is left");
    }
}
