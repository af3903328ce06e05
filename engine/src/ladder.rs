//! One side of a price ladder: orders in queues, one queue per price, with fast access to the best
//! price.
//!
//! ```text
//!    page of 128 prices                best                     next page with an order
//!   better ─── ┌───┬───┬───┬───┬───┬───┬───┬─ ─ ─┬───┐   ┌───┬───┬─ ─ ─┬───┐ ─── worse
//!    far       │   │   │   │ ▪ │   │ ▪ │ ▪ │     │   │   │   │ ▪ │     │   │      far
//!              └───┴───┴───┴─│─┴───┴───┴───┴─ ─ ─┴───┘   └───┴───┴─ ─ ─┴───┘
//!                            └ head ⇄ ○ ⇄ ○ ⇄ tail     (nodes, linked by slot)
//! ```
//!
//! Levels are in pages that never move, with one bit for each level, so that a bit scan finds the
//! next occupied one. The few levels that get no page are in a map ([`crate::level_pages`]).
//! Inside, a price is a *rank*: the lower, the better, in both directions.
//!
//! The nodes belong to the caller: one slab serves all ladders, and an order is on at most one of
//! them.

use crate::level_pages::{LevelPages, PriceLevel, first_of};
use crate::number::Qty;
use crate::order::NIL;
use crate::order_nodes::{Node, NodePlace, Nodes};

/// Levels that may be moved for each access to a far level: the cost of an evicted page, paid in
/// advance.
const MOVES_PER_STRAY: u32 = 4;
/// Rank of an empty ladder: worse than every price.
const EMPTY: i64 = i64::MAX;

/// Which price is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    HighestFirst,
    LowestFirst,
}

/// Invariants: `best` is the rank of the best occupied level, or `EMPTY`; without a directory there
/// is no order.
///
/// The fields that every order needs are here, so that both ladders of a book share a cache line;
/// the rest is with the levels.
#[derive(Clone, Debug)]
pub struct Ladder {
    best: i64,
    /// Index of its directory of pages, or [`NIL`].
    directory: u32,
    /// Converts ticks into a rank and back: all ones if the highest price is best.
    flip: i32,
}

const _: () = assert!(size_of::<Ladder>() == 16, "two ladders leave room for more in a cache line");

impl Ladder {
    pub fn new(direction: Direction) -> Ladder {
        let flip = match direction {
            Direction::HighestFirst => -1,
            Direction::LowestFirst => 0,
        };
        Ladder { best: EMPTY, directory: NIL, flip }
    }

    /// Creates a ladder with its directory: two created one after the other are adjacent in memory.
    pub fn with_directory(direction: Direction, nodes: &mut Nodes) -> Ladder {
        Ladder { directory: nodes.pages.add_directory(), ..Ladder::new(direction) }
    }

    /// Returns the rank of a price: the lower, the better.
    #[inline]
    pub fn rank(&self, ticks: i64) -> i64 {
        ticks ^ self.flip as i64
    }

    /// Returns the rank of the best price; `i64::MAX` if the ladder is empty.
    #[inline]
    pub fn best_rank(&self) -> i64 {
        self.best
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.best == EMPTY
    }

    /// Returns the best price, in ticks.
    #[inline]
    pub fn best(&self) -> Option<i64> {
        (self.best != EMPTY).then_some(self.rank(self.best))
    }

    /// Returns the oldest order at the best price.
    #[inline]
    pub fn best_front(&self, nodes: &Nodes) -> Option<u32> {
        if self.best == EMPTY {
            return None;
        }
        self.level(&nodes.pages, self.best).and_then(|level| level.queue.front())
    }

    /// Returns the oldest order at a price.
    pub fn front(&self, nodes: &Nodes, ticks: i64) -> Option<u32> {
        self.level(&nodes.pages, self.rank(ticks)).and_then(|level| level.queue.front())
    }

    /// Returns the quantity that rests at a price.
    pub fn qty(&self, nodes: &Nodes, ticks: i64) -> Qty {
        Qty::from_raw(self.level(&nodes.pages, self.rank(ticks)).map_or(0, |level| level.qty))
    }

    /// Returns the next worse price at which an order rests.
    pub fn worse(&self, nodes: &Nodes, ticks: i64) -> Option<i64> {
        let from = self.rank(ticks).checked_add(1)?;
        self.occupied_from(&nodes.pages, from).map(|rank| self.rank(rank))
    }

    /// Returns prices and their quantities, from the best outward.
    pub fn levels(&self, nodes: &Nodes) -> impl Iterator<Item = (i64, Qty)> {
        let all = std::iter::successors(self.best(), |&ticks| self.worse(nodes, ticks));
        all.map(|ticks| (ticks, self.qty(nodes, ticks)))
    }

    /// Adds an order, whose node has the remaining quantity, behind all others at its price.
    /// Returns false, and adds nothing, if the price or the sum at that price is too large to be
    /// counted.
    #[must_use = "the order may be on no ladder now"]
    pub fn push_back(&mut self, nodes: &mut Nodes, slot: u32, ticks: i64) -> bool {
        let mut node = nodes[slot];
        node.ticks = ticks;
        self.insert(nodes, slot, node)
    }

    /// Adds an order with a node that is not in its slot yet.
    #[inline(always)]
    #[must_use = "the order may be on no ladder now"]
    pub fn insert(&mut self, nodes: &mut Nodes, slot: u32, node: Node) -> bool {
        // Writes the node in its place before it is known whether it may stay: carried about, it
        // would be copied.
        let (rank, qty) = (self.rank(node.ticks), node.qty.raw());
        nodes.set(slot, node);
        let Some(page) = nodes.pages.find(self.directory, rank) else {
            return self.insert_stray(nodes, slot);
        };
        let level = nodes.pages.level_mut(page, rank);
        let Some(sum) = level.qty.checked_add(qty) else {
            nodes[slot].set_place(NodePlace::Nowhere);
            return false;
        };
        level.qty = sum;
        let tail = std::mem::replace(&mut level.queue.tail, slot);
        if tail == NIL {
            level.queue.head = slot;
            nodes.pages.occupy(self.directory, page, rank);
            self.best = self.best.min(rank);
        } else {
            nodes[tail].next = slot;
        }
        let node = &mut nodes[slot];
        (node.prev, node.next) = (tail, NIL);
        true
    }

    /// Removes an order, which is on this ladder.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, prev, next, .. } = nodes[slot];
        let rank = self.rank(ticks);
        let Some(page) = nodes.pages.find(self.directory, rank) else {
            return self.remove_stray(nodes, slot);
        };
        // Every decision uses the node's own links, not the queue: they arrive from memory first,
        // so a mispredicted branch is detected sooner.
        let level = nodes.pages.level_mut(page, rank);
        level.qty -= qty.raw();
        if prev == NIL {
            level.queue.head = next;
        }
        if next == NIL {
            level.queue.tail = prev;
        } else {
            nodes[next].prev = prev;
        }
        if prev != NIL {
            nodes[prev].next = next;
        } else if next == NIL {
            self.vacate(&mut nodes.pages, page, rank);
        }
    }

    /// Reduces an order's quantity; it keeps its place in the queue.
    #[inline]
    pub fn reduce(&mut self, nodes: &mut Nodes, slot: u32, by: Qty) {
        let node = &mut nodes[slot];
        assert!(by < node.qty, "an order with nothing left is removed");
        node.qty = Qty::from_raw(node.qty.raw() - by.raw());
        let rank = self.rank(node.ticks);
        if let Some(level) = self.level_mut(&mut nodes.pages, rank) {
            level.qty -= by.raw();
        }
    }

    /// Returns the newest order at a price that has a page; [`NIL`] if there is none.
    #[inline]
    pub fn tail(&self, nodes: &Nodes, ticks: i64) -> u32 {
        let rank = self.rank(ticks);
        let page = nodes.pages.find(self.directory, rank);
        page.map_or(NIL, |page| nodes.pages.level(page, rank).queue.tail)
    }

    /// Prefetches the memory of a price.
    #[inline]
    pub fn fetch(&self, nodes: &Nodes, ticks: i64) {
        nodes.pages.fetch(self.directory, self.rank(ticks));
    }

    #[inline]
    fn level<'a>(&self, pages: &'a LevelPages, rank: i64) -> Option<&'a PriceLevel> {
        match pages.find(self.directory, rank) {
            Some(page) => Some(pages.level(page, rank)),
            None => pages.far(self.directory)?.levels.get(&rank),
        }
    }

    #[inline]
    fn level_mut<'a>(&self, pages: &'a mut LevelPages, rank: i64) -> Option<&'a mut PriceLevel> {
        match pages.find(self.directory, rank) {
            Some(page) => Some(pages.level_mut(page, rank)),
            None if self.directory == NIL => None,
            None => pages.far_mut(self.directory).levels.get_mut(&rank),
        }
    }

    /// Clears a level of a page that its last order has left.
    #[inline]
    fn vacate(&mut self, pages: &mut LevelPages, page: u32, rank: i64) {
        let (own, other) = pages.vacate(page, rank);
        // No level of the page is before the best one, so its word has only levels behind it.
        if own != 0 {
            if rank == self.best {
                self.best = first_of(rank, own);
            }
            return;
        }
        self.leave_word(pages, page, rank, other);
    }

    /// Finds the next best level if the last one of its word was vacated, and marks the page if it
    /// was the last one of that.
    #[inline(never)]
    fn leave_word(&mut self, pages: &mut LevelPages, page: u32, rank: i64, other: u64) {
        if rank == self.best {
            let next = pages.occupied_in(page, rank);
            self.best = next.or_else(|| self.occupied_behind(pages, rank)).unwrap_or(EMPTY);
        }
        if other == 0 {
            pages.leave(self.directory, rank);
        }
    }

    /// Returns the best occupied rank at or behind this one.
    #[inline]
    fn occupied_from(&self, pages: &LevelPages, rank: i64) -> Option<i64> {
        let page = pages.find(self.directory, rank);
        let here = page.and_then(|page| pages.occupied_in(page, rank));
        here.or_else(|| self.occupied_behind(pages, rank))
    }

    /// Returns the best occupied rank behind the page of this one; if that page does not exist,
    /// at or behind this rank.
    fn occupied_behind(&self, pages: &LevelPages, rank: i64) -> Option<i64> {
        let near = pages.occupied_behind(self.directory, rank);
        let far = &pages.far(self.directory)?.levels;
        if far.is_empty() {
            return near;
        }
        let far = far.range(rank..).next().map(|(&rank, _)| rank);
        near.into_iter().chain(far).min()
    }
}

/// Levels without a page.
impl Ladder {
    #[cold]
    #[inline(never)]
    fn insert_stray(&mut self, nodes: &mut Nodes, slot: u32) -> bool {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        if self.directory == NIL {
            self.directory = nodes.pages.add_directory();
        }
        if nodes.pages.attach(self.directory, rank, self.best, MOVES_PER_STRAY) {
            let node = nodes[slot];
            return self.insert(nodes, slot, node);
        }
        let far = &nodes.pages.far_mut(self.directory).levels;
        let mut level = far.get(&rank).copied().unwrap_or_default();
        let Some(sum) = level.qty.checked_add(qty.raw()).filter(|_| rank != EMPTY) else {
            nodes[slot].set_place(NodePlace::Nowhere);
            return false;
        };
        level.qty = sum;
        level.queue.push_back(nodes, slot);
        let far = nodes.pages.far_mut(self.directory);
        far.levels.insert(rank, level);
        far.strays = far.strays.saturating_add(1);
        self.best = self.best.min(rank);
        true
    }

    #[cold]
    #[inline(never)]
    fn remove_stray(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        let far = nodes.pages.far_mut(self.directory);
        far.strays = far.strays.saturating_add(1);
        let mut level = *far.levels.get(&rank).expect("an order without a page is far");
        level.qty -= qty.raw();
        level.queue.remove(nodes, slot);
        let far = &mut nodes.pages.far_mut(self.directory).levels;
        if level.queue.front().is_some() {
            far.insert(rank, level);
            return;
        }
        far.remove(&rank);
        if rank == self.best {
            self.best = self.occupied_behind(&nodes.pages, rank).unwrap_or(EMPTY);
        }
    }
}

#[cfg(test)]
mod tests;
