//! Changes of the price levels of a book (L2), so that a receiver can rebuild it.
//!
//! A port that watches the levels of a security ([`crate::command::WatchTarget::Levels`]) receives
//! one snapshot and then updates. Each message has as many parts as it needs; the last part is
//! marked, and no other event of the same shard comes between them.
//!
//! ```text
//! Watch ─► Snapshot seq 40 ─► Update 40 → 44 ─► Update 44 → 45 ─► …
//! ```
//!
//! A further snapshot follows where the book of an outside venue is lost or has begun again. A
//! sequence number is the number of the last command that the picture includes, so it continues
//! after a restart. An update is valid for the picture that its `prev_seq` names.
//! [`crate::level_book::LevelBook`] applies the messages.

use crate::event::DepthLevel;
use crate::id::SecurityId;
use crate::index::index_u8;
use crate::number::{Price, Qty};
use crate::terms::Side;

/// Price levels of each side that are published, the best ones. A snapshot of them and a message
/// that replaces all of them stay below [`crate::event::EVENTS_PER_COMMAND_MAX`] events.
pub const LEVELS_PER_SIDE_MAX: usize = 200;
/// Changes in one event: as many as fit.
pub const LEVEL_CHANGES_MAX: usize = 8;
/// Most events of one message: both sides lose all their levels and get others.
pub const LEVEL_EVENTS_MAX: usize = (4 * LEVELS_PER_SIDE_MAX).div_ceil(LEVEL_CHANGES_MAX);

/// The new quantity at a price. Zero removes the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelChange {
    pub side: Side,
    pub price: Price,
    pub qty: Qty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelsKind {
    /// The whole picture; `prev_seq` equals `seq`.
    Snapshot,
    /// What differs from the picture at `prev_seq`.
    Update,
}

/// One part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChanges {
    /// The first `count` of them are valid.
    levels: [DepthLevel; LEVEL_CHANGES_MAX],
    pub prev_seq: u64,
    pub seq: u64,
    pub security: SecurityId,
    /// A bit for each level of the ask side.
    asks: u8,
    count: u8,
    pub kind: LevelsKind,
    /// Whether this is the last part of its message.
    pub is_last: bool,
}

impl LevelChanges {
    pub fn new(security: SecurityId, kind: LevelsKind, prev_seq: u64, seq: u64) -> LevelChanges {
        let levels = [DepthLevel::default(); LEVEL_CHANGES_MAX];
        LevelChanges { levels, prev_seq, seq, security, asks: 0, count: 0, kind, is_last: false }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn is_full(&self) -> bool {
        self.count as usize == LEVEL_CHANGES_MAX
    }

    /// Adds a change; the caller has checked that there is room.
    pub fn push(&mut self, change: LevelChange) {
        let at = self.count as usize;
        self.levels[at] = DepthLevel { price: change.price, qty: change.qty };
        self.asks |= u8::from(change.side == Side::Sell) << at;
        self.count = index_u8(at + 1);
    }

    /// Returns the changes, bids before asks and the best price first.
    pub fn changes(&self) -> impl Iterator<Item = LevelChange> {
        self.levels.iter().take(self.count as usize).enumerate().map(|(at, level)| {
            let side = if self.asks >> at & 1 == 1 { Side::Sell } else { Side::Buy };
            LevelChange { side, price: level.price, qty: level.qty }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_with_their_side() {
        let mut part = LevelChanges::new(SecurityId(7), LevelsKind::Update, 3, 4);
        assert!(part.is_empty());
        let change = |at: usize| LevelChange {
            side: Side::BOTH[at % 2],
            price: Price::from_raw(at as i64),
            qty: Qty::from_raw(10 * at as i64),
        };
        let all: Vec<LevelChange> = (0..LEVEL_CHANGES_MAX).map(change).collect();
        all.iter().for_each(|change| part.push(*change));
        assert!(part.is_full() && part.changes().eq(all));
    }
}
