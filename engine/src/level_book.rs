//! The price levels of one security, rebuilt from the events of its shard.
//!
//! ```text
//! Unknown ── first part of a snapshot ──► Filling ── last part ──► Whole ─┐
//!    ▲                                       ▲      part of an update     │
//!    └── an update of another picture ───────┴────────────────────────────┘
//! ```

use std::cmp::Ordering;

use crate::event::{DepthLevel, LEVELS_PER_SIDE_MAX, LevelChange, LevelChanges, LevelsKind};
use crate::number::{Price, Qty};
use crate::terms::Side;

/// Levels of a side while a message is half applied: all old ones and all new ones.
const HELD_LEVELS_MAX: usize = 2 * LEVELS_PER_SIDE_MAX;

/// See the module's comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelBook {
    /// Bids, asks; each best first.
    sides: [Vec<DepthLevel>; 2],
    seq: u64,
    state: LevelBookState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LevelBookState {
    #[default]
    Unknown,
    Filling(LevelsKind, u64),
    Whole,
}

/// Effect of one part on a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelsProgress {
    /// More parts follow; the book is not valid until then.
    Partial,
    /// The message is complete, and the book is that of its sequence number.
    Complete,
    /// The part does not follow the book, which is unknown until the next snapshot.
    Gap,
}

impl LevelBook {
    /// Applies one part of a message.
    pub fn apply(&mut self, part: &LevelChanges) -> LevelsProgress {
        let filling = LevelBookState::Filling(part.kind, part.seq);
        if self.state != filling {
            match part.kind {
                LevelsKind::Snapshot => self.sides.iter_mut().for_each(Vec::clear),
                LevelsKind::Update if self.state == LevelBookState::Whole && self.seq == part.prev_seq => {}
                LevelsKind::Update => return self.lose(),
            }
            self.state = filling;
        }
        for change in part.changes() {
            if !self.set(change) {
                return self.lose();
            }
        }
        if !part.is_last {
            return LevelsProgress::Partial;
        }
        (self.seq, self.state) = (part.seq, LevelBookState::Whole);
        LevelsProgress::Complete
    }

    /// Returns whether the book is that of its sequence number.
    pub fn is_whole(&self) -> bool {
        self.state == LevelBookState::Whole
    }

    /// Returns the number of the last command that the book includes.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the levels of a side, best first.
    pub fn levels(&self, side: Side) -> &[DepthLevel] {
        &self.sides[side as usize]
    }

    /// Returns the quantity at a price; zero if there is none.
    pub fn qty(&self, side: Side, price: Price) -> Qty {
        let levels = &self.sides[side as usize];
        place_of(levels, side, price).map_or(Qty::ZERO, |at| levels[at].qty)
    }

    /// Applies one change. Returns false if there are more levels than a sound message leaves.
    fn set(&mut self, change: LevelChange) -> bool {
        let levels = &mut self.sides[change.side as usize];
        set_level(levels, change.side, DepthLevel { price: change.price, qty: change.qty });
        levels.len() <= HELD_LEVELS_MAX
    }

    fn lose(&mut self) -> LevelsProgress {
        self.state = LevelBookState::Unknown;
        self.sides.iter_mut().for_each(Vec::clear);
        LevelsProgress::Gap
    }
}

/// Calls `push` with every price at which two pictures of a side differ, best first.
pub fn each_change(side: Side, old: &[DepthLevel], new: &[DepthLevel], mut push: impl FnMut(LevelChange)) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => match side {
                Side::Buy => new.price.cmp(&old.price),
                Side::Sell => old.price.cmp(&new.price),
            },
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let Some(price) = after.or(before).map(|level| level.price) else { return };
        let [before, after] = [before, after].map(|level| level.map_or(Qty::ZERO, |level| level.qty));
        if before != after {
            push(LevelChange { side, price, qty: after });
        }
    }
}

/// Returns the index of a price among the levels of a side, or the index at which it would be.
fn place_of(levels: &[DepthLevel], side: Side, price: Price) -> Result<usize, usize> {
    levels.binary_search_by(|level| match side {
        Side::Buy => price.cmp(&level.price),
        Side::Sell => level.price.cmp(&price),
    })
}

/// Sets the quantity at a price of a side whose levels are sorted, the best first. A quantity that
/// is not positive removes the price.
pub(crate) fn set_level(levels: &mut Vec<DepthLevel>, side: Side, level: DepthLevel) {
    match place_of(levels, side, level.price) {
        Ok(at) if !level.qty.is_positive() => drop(levels.remove(at)),
        Ok(at) => levels[at].qty = level.qty,
        Err(_) if !level.qty.is_positive() => {}
        Err(at) => levels.insert(at, level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SecurityId;

    fn part(kind: LevelsKind, seqs: [u64; 2], is_last: bool, changes: &[(Side, i64, i64)]) -> LevelChanges {
        let mut part = LevelChanges::new(SecurityId(1), kind, seqs[0], seqs[1]);
        for &(side, price, qty) in changes {
            part.push(LevelChange { side, price: Price::from_raw(price), qty: Qty::from_raw(qty) });
        }
        part.is_last = is_last;
        part
    }

    fn levels(book: &LevelBook, side: Side) -> Vec<(i64, i64)> {
        book.levels(side).iter().map(|level| (level.price.raw(), level.qty.raw())).collect()
    }

    #[test]
    fn parts_make_a_book_and_updates_change_it() {
        let (buy, sell) = (Side::Buy, Side::Sell);
        let mut book = LevelBook::default();
        let first = part(LevelsKind::Snapshot, [5, 5], false, &[(buy, 10, 1), (buy, 9, 2)]);
        assert_eq!(book.apply(&first), LevelsProgress::Partial);
        assert!(!book.is_whole());
        let last = part(LevelsKind::Snapshot, [5, 5], true, &[(sell, 12, 4), (sell, 13, 5)]);
        assert_eq!(book.apply(&last), LevelsProgress::Complete);
        assert_eq!((book.seq(), levels(&book, buy)), (5, vec![(10, 1), (9, 2)]));
        let changes = [(buy, 11, 7), (buy, 9, 0), (sell, 12, 1), (sell, 14, 0), (sell, 11, 3)];
        assert_eq!(book.apply(&part(LevelsKind::Update, [5, 8], true, &changes)), LevelsProgress::Complete);
        assert_eq!(levels(&book, buy), [(11, 7), (10, 1)]);
        assert_eq!(levels(&book, sell), [(11, 3), (12, 1), (13, 5)]);
        assert_eq!(book.qty(sell, Price::from_raw(12)).raw(), 1);
        assert_eq!(book.qty(sell, Price::from_raw(99)), Qty::ZERO);
    }

    #[test]
    fn an_update_of_another_picture_is_a_gap_until_the_next_snapshot() {
        let mut book = LevelBook::default();
        let update = |prev, seq| part(LevelsKind::Update, [prev, seq], true, &[(Side::Buy, 10, 1)]);
        assert_eq!(book.apply(&update(0, 1)), LevelsProgress::Gap, "nothing is known yet");
        let snapshot = part(LevelsKind::Snapshot, [5, 5], true, &[]);
        assert_eq!(book.apply(&snapshot), LevelsProgress::Complete);
        assert_eq!(book.apply(&update(6, 7)), LevelsProgress::Gap);
        assert!(!book.is_whole() && levels(&book, Side::Buy).is_empty());
        assert_eq!(book.apply(&update(7, 8)), LevelsProgress::Gap);
        assert_eq!(book.apply(&snapshot), LevelsProgress::Complete);
        assert_eq!(book.apply(&update(5, 7)), LevelsProgress::Complete);
    }

    #[test]
    fn a_message_without_end_does_not_fill_the_memory() {
        let mut book = LevelBook::default();
        let mut applied = LevelsProgress::Partial;
        for price in 0..=HELD_LEVELS_MAX as i64 {
            assert_eq!(applied, LevelsProgress::Partial);
            applied = book.apply(&part(LevelsKind::Snapshot, [5, 5], false, &[(Side::Sell, price, 1)]));
        }
        assert_eq!(applied, LevelsProgress::Gap);
        assert!(levels(&book, Side::Sell).is_empty());
    }
}
