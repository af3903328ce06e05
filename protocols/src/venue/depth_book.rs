//! The book of one security as its adapter knows it, and what its shard knows of it.
//!
//! ```text
//! messages of the venue ──► set, clear ──► all levels ── publish: what differs ──► shard: the best levels
//! ```
//!
//! An adapter keeps more levels than a shard publishes, because a level that disappears makes room
//! for the next one. Where only a part of a side is known, levels behind that part are ignored:
//! those of them that did not change since would be missing.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{CommandKind, VenueLevels};
use pitlane_engine::event::{DepthLevel, LEVELS_PER_SIDE_MAX};
use pitlane_engine::id::SecurityId;
use pitlane_engine::level_book::each_change;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;

/// Levels of each side that an adapter keeps, so that the memory is bounded whatever a venue sends:
/// far more than are published, and as many as venues give in a snapshot.
pub const BOOK_LEVELS_MAX: usize = 5_000;

/// See the module's comment.
#[derive(Debug)]
pub struct DepthBook {
    /// Bids, asks.
    sides: [BookSide; 2],
    /// The levels that the shard knows; `None` if it knows nothing.
    sent: Option<[Vec<DepthLevel>; 2]>,
    /// Reused buffer for one side.
    current: Vec<DepthLevel>,
    /// Best levels of each side that the shard gets.
    published_max: usize,
}

#[derive(Debug, Default)]
struct BookSide {
    /// By rank: a better price has a lower one.
    levels: BTreeMap<i64, Qty>,
    /// Rank up to which the side is known; `None`: it is known whole.
    known_to: Option<i64>,
}

/// Returns the rank of a price, and the price of a rank.
fn rank(side: Side, value: i64) -> i64 {
    match side {
        Side::Buy => value.saturating_neg(),
        Side::Sell => value,
    }
}

/// Returns whether a price of a side comes before another.
pub(crate) fn is_better(side: Side, price: Price, other: Price) -> bool {
    rank(side, price.raw()) < rank(side, other.raw())
}

impl DepthBook {
    /// Creates an empty book of which a shard gets so many levels of each side.
    pub fn new(published_max: usize) -> DepthBook {
        DepthBook {
            sides: Default::default(),
            sent: None,
            current: Vec::new(),
            published_max: published_max.min(LEVELS_PER_SIDE_MAX),
        }
    }

    /// Empties the book before a snapshot is read. The shard keeps the old one until
    /// [`DepthBook::publish`].
    pub fn clear(&mut self) {
        self.sides = Default::default();
    }

    /// Sets the quantity at a price. One that is not positive removes it.
    pub fn set(&mut self, side: Side, price: Price, qty: Qty) {
        let BookSide { levels, known_to } = &mut self.sides[side as usize];
        let rank = rank(side, price.raw());
        if known_to.is_some_and(|known_to| rank > known_to) {
            return;
        }
        if !qty.is_positive() {
            levels.remove(&rank);
            return;
        }
        levels.insert(rank, qty);
        if levels.len() > BOOK_LEVELS_MAX {
            levels.pop_last();
            *known_to = levels.last_key_value().map(|(rank, _)| *rank);
        }
    }

    /// Returns the quantity at a price; zero if there is none.
    pub fn qty(&self, side: Side, price: Price) -> Qty {
        self.sides[side as usize].levels.get(&rank(side, price.raw())).copied().unwrap_or(Qty::ZERO)
    }

    /// Returns the levels of a side, best first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = DepthLevel> {
        let levels = self.sides[side as usize].levels.iter();
        levels.map(move |(at, qty)| DepthLevel { price: Price::from_raw(rank(side, *at)), qty: *qty })
    }

    /// Records that a snapshot of at most so many levels was read: a side that has as many goes on
    /// behind them, and is known up to the last one.
    pub fn set_snapshot_limit(&mut self, limit: usize) {
        for BookSide { levels, known_to } in &mut self.sides {
            *known_to = levels.last_key_value().filter(|_| levels.len() >= limit).map(|(rank, _)| *rank);
        }
    }

    /// Keeps the best levels of each side only, for a venue that counts no others.
    pub fn truncate(&mut self, levels_max: usize) {
        for BookSide { levels, .. } in &mut self.sides {
            while levels.len() > levels_max {
                levels.pop_last();
            }
        }
    }

    /// Returns whether fewer levels are known than are published, although the venue has more: the
    /// adapter needs a new snapshot.
    pub fn is_thin(&self) -> bool {
        let is_thin = |side: &BookSide| side.known_to.is_some() && side.levels.len() < self.published_max;
        self.sides.iter().any(is_thin)
    }

    /// Appends the commands that bring the shard up to date, if anything differs.
    pub fn publish(&mut self, security: SecurityId, out: &mut VecDeque<CommandKind>) {
        let is_new = self.sent.is_none();
        let mut sent = self.sent.take().unwrap_or_default();
        let mut current = std::mem::take(&mut self.current);
        let mut part = VenueLevels::new(security, is_new);
        let mut has_changes = is_new;
        for side in Side::BOTH {
            current.clear();
            current.extend(self.levels(side).take(self.published_max));
            each_change(side, &sent[side as usize], &current, |change| {
                if part.is_full() {
                    out.push_back(CommandKind::VenueLevels(part));
                    part = VenueLevels::new(security, false);
                }
                part.push(change.side, change.price, change.qty);
                has_changes = true;
            });
            std::mem::swap(&mut sent[side as usize], &mut current);
        }
        if has_changes {
            out.push_back(CommandKind::VenueLevels(part));
            out.push_back(CommandKind::VenueBook { security, is_known: true });
        }
        (self.sent, self.current) = (Some(sent), current);
    }

    /// Empties the book, which is unknown now; the shard learns it if it knew the book.
    pub fn lose(&mut self, security: SecurityId, out: &mut VecDeque<CommandKind>) {
        self.clear();
        if self.sent.take().is_some() {
            out.push_back(CommandKind::VenueBook { security, is_known: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECURITY: SecurityId = SecurityId(7);

    fn set(book: &mut DepthBook, side: Side, price: usize, qty: i64) {
        book.set(side, Price::from_raw(price as i64), Qty::from_raw(qty));
    }

    /// Returns the commands as text: `*` for a book that begins again, `.` for a complete change.
    fn published(book: &mut DepthBook) -> String {
        let mut out = VecDeque::new();
        book.publish(SECURITY, &mut out);
        text_of(&out)
    }

    fn text_of(out: &VecDeque<CommandKind>) -> String {
        let mut text = String::new();
        for command in out {
            if let CommandKind::VenueLevels(part) = command {
                text += if part.replaces { "* " } else { "" };
                for (side, price, qty) in part.levels() {
                    text += &format!("{side:?} {}x{} ", qty.raw(), price.raw());
                }
            } else if let CommandKind::VenueBook { is_known, .. } = command {
                text += if *is_known { "." } else { "unknown" };
            } else {
                panic!("{command:?}");
            }
        }
        text
    }

    #[test]
    fn a_higher_bid_and_a_lower_ask_come_first() {
        let [low, high] = [1, 2].map(Price::from_raw);
        for (side, first, then) in [(Side::Buy, high, low), (Side::Sell, low, high)] {
            assert!(is_better(side, first, then) && !is_better(side, then, first));
            assert!(!is_better(side, low, low));
        }
    }

    #[test]
    fn a_shard_gets_the_whole_book_first_and_then_what_differs() {
        let mut book = DepthBook::new(LEVELS_PER_SIDE_MAX);
        assert_eq!(published(&mut book), "* .", "an empty book is known too");
        set(&mut book, Side::Buy, 10, 1);
        set(&mut book, Side::Buy, 11, 2);
        set(&mut book, Side::Sell, 13, 3);
        set(&mut book, Side::Sell, 12, 4);
        assert_eq!(published(&mut book), "Buy 2x11 Buy 1x10 Sell 4x12 Sell 3x13 .");
        assert_eq!(published(&mut book), "");
        set(&mut book, Side::Buy, 11, 0);
        set(&mut book, Side::Sell, 13, -1);
        set(&mut book, Side::Sell, 14, 0);
        assert_eq!(published(&mut book), "Buy 0x11 Sell 0x13 .");
        assert_eq!(book.qty(Side::Sell, Price::from_raw(12)).raw(), 4);
        let mut out = VecDeque::new();
        book.lose(SECURITY, &mut out);
        book.lose(SECURITY, &mut out);
        assert_eq!(text_of(&out), "unknown", "once");
        set(&mut book, Side::Buy, 9, 1);
        assert_eq!(published(&mut book), "* Buy 1x9 .");
    }

    #[test]
    fn a_long_change_has_several_parts_and_levels_behind_the_best_follow_them() {
        let mut book = DepthBook::new(8);
        (1..=10).for_each(|price| set(&mut book, Side::Sell, price, 1));
        let text = published(&mut book);
        assert_eq!((text.matches("Sell").count(), text.matches('.').count()), (8, 1), "{text}");
        set(&mut book, Side::Sell, 1, 0);
        assert_eq!(published(&mut book), "Sell 0x1 Sell 1x9 .");
    }

    #[test]
    fn levels_behind_a_snapshot_are_unknown_until_the_next_one() {
        let mut book = DepthBook::new(3);
        (1..=4).for_each(|price| set(&mut book, Side::Sell, price, 1));
        set(&mut book, Side::Buy, 1, 1);
        book.set_snapshot_limit(4);
        set(&mut book, Side::Sell, 9, 1);
        assert_eq!(book.levels(Side::Sell).count(), 4, "what is between 4 and 9 is unknown");
        set(&mut book, Side::Sell, 4, 7);
        assert_eq!(book.qty(Side::Sell, Price::from_raw(4)).raw(), 7, "the last known one changes");
        set(&mut book, Side::Sell, 1, 0);
        assert!(!book.is_thin());
        set(&mut book, Side::Sell, 2, 0);
        assert!(book.is_thin(), "the bids are known whole, the asks are not");
        book.clear();
        assert!(!book.is_thin());
    }

    #[test]
    fn the_memory_of_a_book_is_bounded() {
        let mut book = DepthBook::new(LEVELS_PER_SIDE_MAX);
        (0..BOOK_LEVELS_MAX + 10).for_each(|price| set(&mut book, Side::Buy, price + 1, 1));
        assert_eq!(book.levels(Side::Buy).count(), BOOK_LEVELS_MAX);
        let worst = book.levels(Side::Buy).last().map(|level| level.price.raw());
        assert_eq!(worst, Some(11), "the worst are dropped");
        set(&mut book, Side::Buy, 5, 1);
        assert_eq!(book.levels(Side::Buy).count(), BOOK_LEVELS_MAX, "and not taken again");
        book.truncate(3);
        assert_eq!(book.levels(Side::Buy).count(), 3);
    }
}
