//! Market data topics that wait for one subscription, in the order of their turns. When its turn
//! comes, a topic's newest message is sent, so a slot holds no message, and a newer message costs
//! nothing.

use std::collections::VecDeque;

/// Memory of a waiting topic, in bytes: its place in a queue that has just grown, and its cells in
/// the table.
pub const SLOT_BYTES_MAX: usize = 2 * size_of::<TopicSlot>() + CELLS_PER_SLOT_MAX * size_of::<u32>();
/// Cells per slot. A table is at least a quarter full, except while it is copied to one of twice
/// its size.
const CELLS_PER_SLOT_MAX: usize = 6;

/// Length up to which a linear search is faster than a table.
const LINE_MAX: usize = 8;

/// Queue of waiting topics.
///
/// Invariant: turns do not fall; a topic is in the queue at most once; `table` has the topics of a
/// queue longer than [`LINE_MAX`].
#[derive(Debug, Default)]
pub struct Slots {
    line: VecDeque<TopicSlot>,
    table: NumberSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicSlot {
    /// Place in the order of all slots of the session.
    pub turn: u64,
    pub topic: u32,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.line.len()
    }

    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub fn contains(&self, topic: u32) -> bool {
        if self.line.len() <= LINE_MAX {
            return self.line.iter().any(|slot| slot.topic == topic);
        }
        self.table.contains(topic)
    }

    /// Adds a topic that is not in the queue yet, behind those of the same turn.
    pub fn push(&mut self, slot: TopicSlot) {
        debug_assert!(!self.contains(slot.topic), "a topic waits once");
        if self.line.back().is_none_or(|last| last.turn <= slot.turn) {
            self.line.push_back(slot);
        } else {
            let at = self.line.partition_point(|other| other.turn <= slot.turn);
            self.line.insert(at, slot);
        }
        if self.line.len() == LINE_MAX + 1 {
            self.line.iter().for_each(|slot| self.table.insert(slot.topic));
        } else if self.line.len() > LINE_MAX {
            self.table.insert(slot.topic);
        }
    }

    pub fn front(&self) -> Option<TopicSlot> {
        self.line.front().copied()
    }

    pub fn pop(&mut self) -> Option<TopicSlot> {
        let slot = self.line.pop_front()?;
        self.forget(slot.topic);
        Some(slot)
    }

    /// Removes a topic from anywhere in the queue.
    pub fn remove(&mut self, topic: u32) -> bool {
        let Some(at) = self.line.iter().position(|slot| slot.topic == topic) else { return false };
        self.line.remove(at);
        self.forget(topic);
        true
    }

    fn forget(&mut self, topic: u32) {
        if self.line.len() == LINE_MAX {
            self.table = NumberSet::default();
        } else if self.line.len() > LINE_MAX {
            self.table.remove(topic);
        }
    }
}

/// A set of small numbers by open addressing. The numbers are ours and dense, so no client can make
/// them collide.
#[derive(Debug, Default)]
struct NumberSet {
    /// Zero for an empty cell, else the number + 1. At most half of the cells are used.
    cells: Vec<u32>,
    len: usize,
}

impl NumberSet {
    fn contains(&self, number: u32) -> bool {
        !self.cells.is_empty() && self.cells[self.place(number)] != 0
    }

    fn insert(&mut self, number: u32) {
        if (self.len + 1) * 2 > self.cells.len() {
            let old = std::mem::take(&mut self.cells);
            self.cells = vec![0; (old.len() * 2).max(32)];
            for cell in old.into_iter().filter(|cell| *cell != 0) {
                let place = self.place(cell - 1);
                self.cells[place] = cell;
            }
        }
        let place = self.place(number);
        self.cells[place] = number + 1;
        self.len += 1;
    }

    fn remove(&mut self, number: u32) {
        let mask = self.cells.len() - 1;
        let mut gap = self.place(number);
        if self.cells[gap] == 0 {
            return;
        }
        self.len -= 1;
        // Following cells move up, so that no search ends too early.
        let mut at = (gap + 1) & mask;
        while self.cells[at] != 0 {
            let home = self.home(self.cells[at] - 1);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.cells[gap] = self.cells[at];
                gap = at;
            }
            at = (at + 1) & mask;
        }
        self.cells[gap] = 0;
    }

    /// Returns the cell of a number, or the cell where it would be.
    fn place(&self, number: u32) -> usize {
        let mut at = self.home(number);
        while self.cells[at] != 0 && self.cells[at] != number + 1 {
            at = (at + 1) & (self.cells.len() - 1);
        }
        at
    }

    fn home(&self, number: u32) -> usize {
        (number.wrapping_mul(0x9e37_79b9) >> 7) as usize & (self.cells.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_behaves_as_a_set() {
        let (mut slots, mut naive) = (Slots::default(), BTreeSet::new());
        let mut rng = 1u64;
        for turn in 0..200_000u64 {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let range = if turn % 40_000 < 20_000 { 12 } else { 3_000 };
            let topic = (rng >> 33) as u32 % range;
            assert_eq!(slots.contains(topic), naive.contains(&topic));
            match rng >> 60 {
                0..8 if !slots.contains(topic) => {
                    slots.push(TopicSlot { turn, topic });
                    naive.insert(topic);
                }
                8..13 => {
                    let slot = slots.pop();
                    assert!(slot.is_none_or(|slot| naive.remove(&slot.topic)));
                }
                13 => assert_eq!(slots.remove(topic), naive.remove(&topic)),
                _ => {}
            }
            assert_eq!(slots.len(), naive.len());
        }
    }

    #[test]
    fn a_table_does_not_grow_while_as_many_topics_wait() {
        let mut slots = Slots::default();
        for topic in 0..10_000 {
            slots.push(TopicSlot { turn: topic.into(), topic });
            if slots.len() > 20 {
                assert!(slots.pop().is_some());
            }
            assert!(slots.table.cells.len() <= 64, "{topic}");
        }
    }

    #[test]
    fn the_lowest_turn_is_first_and_equal_turns_keep_their_order() {
        let mut slots = Slots::default();
        let turns = [5, 0, 9, 0, 5, 7, 0, 3, 9, 1, 2];
        for (topic, turn) in (0..).zip(turns) {
            slots.push(TopicSlot { turn, topic });
        }
        let order: Vec<u32> = std::iter::from_fn(|| slots.pop()).map(|slot| slot.topic).collect();
        assert_eq!(order, [1, 3, 6, 9, 10, 7, 0, 4, 5, 2, 8]);
    }

    #[test]
    fn the_longest_waiting_topic_is_first() {
        let mut slots = Slots::default();
        for topic in 0..20 {
            slots.push(TopicSlot { turn: topic as u64, topic });
        }
        assert!(slots.remove(3) && !slots.remove(3));
        let order: Vec<u32> = std::iter::from_fn(|| slots.pop()).map(|slot| slot.topic).collect();
        assert_eq!(order, (0..20).filter(|topic| *topic != 3).collect::<Vec<_>>());
    }
}
