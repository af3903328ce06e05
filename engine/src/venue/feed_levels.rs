//! The feed's book behind its best prices: at each price how much the feed shows, and how much of
//! it is ahead of the clients' orders there.
//!
//! Rules: docs/engine-rules.md#queue-ahead.

use super::book::{BookMode, FeedQueue};
use super::{BookDetail, BookSpec, Venue};
use crate::codec::codec;
use crate::command::FeedLevel;
use crate::ladder::Ladder;
use crate::number::Qty;
use crate::settings::FillModel;
use crate::terms::Side;

/// Most levels on each side: more than the feeds of exchanges show. A better level replaces the
/// worst one.
pub const FEED_LEVELS_MAX: usize = 64;

/// Levels of one side, best last, because most changes are near the best price. Empty: the feed has
/// no levels, and the queue is that of its quote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FeedLevels(Vec<FeedQueue>);

codec!(FeedLevels(levels));

impl FeedLevels {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the levels are in order, and as many as there may be.
    pub(super) fn is_sound(&self, ladder: &Ladder) -> bool {
        self.0.len() <= FEED_LEVELS_MAX
            && self.0.iter().all(FeedQueue::is_sound)
            && self.0.is_sorted_by(|worse, better| ladder.rank(worse.ticks) > ladder.rank(better.ticks))
    }

    /// Returns the level at a price.
    pub(super) fn at_mut(&mut self, ladder: &Ladder, ticks: i64) -> Option<&mut FeedQueue> {
        let place = self.place(ladder, ticks).ok()?;
        self.0.get_mut(place)
    }

    fn place(&self, ladder: &Ladder, ticks: i64) -> Result<usize, usize> {
        let rank = ladder.rank(ticks);
        self.0.binary_search_by(|level| rank.cmp(&ladder.rank(level.ticks)))
    }

    /// Applies another size at a price. `rests` says whether a client's order rests there.
    fn set(&mut self, ladder: &Ladder, ticks: i64, shown: Qty, rests: bool, spec: &BookSpec) {
        match self.place(ladder, ticks) {
            Ok(place) if !shown.is_positive() => _ = self.0.remove(place),
            Ok(place) if rests => self.0[place].resize(shown, spec),
            Ok(place) => self.0[place] = FeedQueue::new(ticks, shown),
            Err(_) if !shown.is_positive() => {}
            Err(place) => {
                let mut level = FeedQueue::new(ticks, shown);
                // A level behind all others was only hidden so far: all of it may be older than the
                // order. Between the others it is new, and behind the order.
                if rests && place > 0 && spec.settings.fill_model != FillModel::QueueBack {
                    level.ahead = Qty::ZERO;
                }
                self.insert(place, level);
            }
        }
    }

    fn insert(&mut self, place: usize, level: FeedQueue) {
        if self.0.len() < FEED_LEVELS_MAX {
            if self.0.capacity() == 0 {
                self.0.reserve_exact(FEED_LEVELS_MAX);
            }
            self.0.insert(place, level);
        } else if place > 0 {
            // The worst level leaves its place.
            self.0[..place].rotate_left(1);
            self.0[place - 1] = level;
        }
    }
}

impl BookDetail {
    /// Returns whether the feed shows a quote or levels.
    pub(super) fn is_quoted(&self) -> bool {
        self.shown.iter().any(|shown| shown.size.is_positive())
            || self.levels.iter().any(|levels| !levels.is_empty())
    }
}

impl Venue {
    /// Applies a level of the feed's book.
    pub fn level(&mut self, book: u32, level: &FeedLevel) {
        if !self.is_idle(book) {
            return;
        }
        let size = self.whole_lots(book, level.size);
        let (front, detail) = (&mut self.books[book as usize], &mut self.details[book as usize]);
        let tick = front.tick().raw();
        // No order can rest between two ticks.
        if level.price.raw() % tick != 0 {
            return;
        }
        let (side, ticks) = (level.side as usize, level.price.raw() / tick);
        let rests = front.sides[side].front(&self.nodes, ticks).is_some();
        detail.levels[side].set(&front.sides[side], ticks, size, rests, &detail.spec);
        if !detail.levels[side].is_empty() {
            // From now on the levels say what is ahead.
            detail.queues[side] = None;
        }
        front.mode.set(BookMode::QUOTED, detail.is_quoted());
    }

    /// Returns the feed's orders at a price ahead of the clients', if there are any.
    pub(super) fn queue_mut(&mut self, book: u32, side: Side, ticks: i64) -> Option<&mut FeedQueue> {
        let (front, detail) = (&self.books[book as usize], &mut self.details[book as usize]);
        let side = side as usize;
        match detail.levels[side].is_empty() {
            true => detail.queues[side].as_mut().filter(|queue| queue.ticks == ticks),
            false => detail.levels[side].at_mut(&front.sides[side], ticks),
        }
    }
}
