//! One side of a price ladder: orders in queues, one queue per price, with fast access to the best
//! price.
//!
//! ```text
//!            base            best                      base + 127
//!   better ─── ┌───┬───┬───┬───┬───┬───┬───┬─ ─ ─┬───┬───┐ ─── worse
//!    far       │   │   │   │ ▪ │   │ ▪ │ ▪ │     │   │ ▪ │      far
//!              └───┴───┴───┴─│─┴───┴───┴───┴─ ─ ─┴───┴───┘
//!                            └ head ⇄ ○ ⇄ ○ ⇄ tail     (nodes, linked by slot)
//! ```
//!
//! Prices near the market are in a ring of levels with one bit each, so that a bit scan finds the
//! next occupied one. The few prices that are far away are in a map. When the market has moved, the
//! ring follows it. Inside, a price is a *rank*: the lower, the better, in both directions.
//!
//! The nodes belong to the caller: one slab serves all ladders, and an order is on at most one of
//! them.

use crate::index::index_u32;
use crate::level_ring::{PriceLevel, Rings, WINDOW, place};
use crate::number::Qty;
use crate::order::NIL;
use crate::order_nodes::{Node, NodePlace, Nodes};

/// Distance of the best price from the start of the ring after the ring moves: the room for better
/// prices.
const LEAD: i64 = 48;
/// Smallest distance by which the ring moves.
const DRIFT_MIN: u64 = 16;
/// Levels that may be moved for each access to a far level: the cost of moving the ring, paid in
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

/// Invariants: `best` is the rank of the best occupied level, or `EMPTY`; the ring ends before
/// `EMPTY`; without a ring there is no order; a far level has an order and lies outside the ring.
///
/// The fields that every order needs are here, so that both ladders of a book share a cache line;
/// the rest is with the levels.
#[derive(Clone, Debug)]
pub struct Ladder {
    best: i64,
    base: i64,
    /// Index of its ring, or [`NIL`].
    ring: u32,
    /// Converts ticks into a rank and back: all ones if the highest price is best.
    flip: i32,
}

const _: () = assert!(size_of::<Ladder>() == 24, "two ladders leave room for more in a cache line");

impl Ladder {
    pub fn new(direction: Direction) -> Ladder {
        let flip = match direction {
            Direction::HighestFirst => -1,
            Direction::LowestFirst => 0,
        };
        Ladder { best: EMPTY, base: 0, ring: NIL, flip }
    }

    /// Creates a ladder with its ring: two created one after the other are adjacent in memory.
    pub fn with_ring(direction: Direction, nodes: &mut Nodes) -> Ladder {
        Ladder { ring: nodes.rings.add(), ..Ladder::new(direction) }
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
        self.level(&nodes.rings, self.best).and_then(|level| level.queue.front())
    }

    /// Returns the oldest order at a price.
    pub fn front(&self, nodes: &Nodes, ticks: i64) -> Option<u32> {
        self.level(&nodes.rings, self.rank(ticks)).and_then(|level| level.queue.front())
    }

    /// Returns the quantity that rests at a price.
    pub fn qty(&self, nodes: &Nodes, ticks: i64) -> Qty {
        Qty::from_raw(self.level(&nodes.rings, self.rank(ticks)).map_or(0, |level| level.qty))
    }

    /// Returns the next worse price at which an order rests.
    pub fn worse(&self, nodes: &Nodes, ticks: i64) -> Option<i64> {
        let from = self.rank(ticks).checked_add(1)?;
        self.occupied_from(&nodes.rings, from).map(|rank| self.rank(rank))
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
        if !self.is_near(rank) {
            return self.insert_stray(nodes, slot);
        }
        let level = nodes.rings.level_mut(self.ring, rank);
        let Some(sum) = level.qty.checked_add(qty) else {
            nodes[slot].set_place(NodePlace::Nowhere);
            return false;
        };
        level.qty = sum;
        let tail = std::mem::replace(&mut level.queue.tail, slot);
        if tail == NIL {
            level.queue.head = slot;
            nodes.rings.set_bit(self.ring, rank);
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
        if !self.is_near(rank) {
            return self.remove_stray(nodes, slot);
        }
        // Every decision uses the node's own links, not the queue: they arrive from memory first,
        // so a mispredicted branch is detected sooner.
        let level = nodes.rings.level_mut(self.ring, rank);
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
            self.vacate(&mut nodes.rings, rank);
        }
    }

    /// Reduces an order's quantity; it keeps its place in the queue.
    #[inline]
    pub fn reduce(&mut self, nodes: &mut Nodes, slot: u32, by: Qty) {
        let node = &mut nodes[slot];
        assert!(by < node.qty, "an order with nothing left is removed");
        node.qty = Qty::from_raw(node.qty.raw() - by.raw());
        let rank = self.rank(node.ticks);
        if let Some(level) = self.level_mut(&mut nodes.rings, rank) {
            level.qty -= by.raw();
        }
    }

    /// Returns the newest order at a price of the ring; [`NIL`] if there is none.
    #[inline]
    pub fn tail(&self, nodes: &Nodes, ticks: i64) -> u32 {
        let rank = self.rank(ticks);
        if self.is_near(rank) { nodes.rings.level(self.ring, rank).queue.tail } else { NIL }
    }

    /// Prefetches the memory of a price.
    #[inline]
    pub fn fetch(&self, nodes: &Nodes, ticks: i64) {
        nodes.rings.fetch(self.ring, self.rank(ticks));
    }

    /// Returns whether a rank is in the ring, if there is one.
    #[inline]
    fn is_near(&self, rank: i64) -> bool {
        ((rank.wrapping_sub(self.base) as u64) < WINDOW as u64) & (self.ring != NIL)
    }

    #[inline]
    fn level<'a>(&self, rings: &'a Rings, rank: i64) -> Option<&'a PriceLevel> {
        match self.is_near(rank) {
            true => Some(rings.level(self.ring, rank)),
            false if self.ring == NIL => None,
            false => rings.far(self.ring).levels.get(&rank),
        }
    }

    #[inline]
    fn level_mut<'a>(&self, rings: &'a mut Rings, rank: i64) -> Option<&'a mut PriceLevel> {
        match self.is_near(rank) {
            true => Some(rings.level_mut(self.ring, rank)),
            false if self.ring == NIL => None,
            false => rings.far_mut(self.ring).levels.get_mut(&rank),
        }
    }

    /// Clears a level of the ring that its last order has left.
    #[inline(never)]
    fn vacate(&mut self, rings: &mut Rings, rank: i64) {
        rings.clear_bit(self.ring, rank);
        if rank == self.best {
            self.best = self.occupied_from(rings, rank).unwrap_or(EMPTY);
        }
    }

    /// Returns the best occupied rank at or behind this one.
    #[inline]
    fn occupied_from(&self, rings: &Rings, rank: i64) -> Option<i64> {
        if self.ring == NIL {
            return None;
        }
        let near = self.near_from(rings.bits(self.ring), rank);
        let far = &rings.far(self.ring).levels;
        if far.is_empty() {
            return near;
        }
        let far = far.range(rank..).next().map(|(&rank, _)| rank);
        match (near, far) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    #[inline]
    fn near_from(&self, bits: u128, rank: i64) -> Option<i64> {
        let from = rank.max(self.base);
        if !self.is_near(from) {
            return None;
        }
        // Rotated so that this rank is first; the ranks before it come last in the ring.
        let before = from - self.base;
        let bits = bits.rotate_right(index_u32(place(from))) & (u128::MAX >> before);
        (bits != 0).then(|| from + bits.trailing_zeros() as i64)
    }
}

/// Far levels, and how the ring follows the market.
impl Ladder {
    #[cold]
    #[inline(never)]
    fn insert_stray(&mut self, nodes: &mut Nodes, slot: u32) -> bool {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        if self.ring == NIL {
            self.ring = nodes.rings.add();
        }
        if self.is_empty() && rank != EMPTY {
            // No level has to move, so the ring moves at once.
            self.base = base_for(rank);
            if self.is_near(rank) {
                let node = nodes[slot];
                return self.insert(nodes, slot, node);
            }
        }
        let sum = self.level(&nodes.rings, rank).map_or(0, |level| level.qty).checked_add(qty.raw());
        let Some(sum) = sum.filter(|_| rank != EMPTY) else {
            nodes[slot].set_place(NodePlace::Nowhere);
            return false;
        };
        let mut level = nodes.rings.far(self.ring).levels.get(&rank).copied().unwrap_or_default();
        level.qty = sum;
        level.queue.push_back(nodes, slot);
        nodes.rings.far_mut(self.ring).levels.insert(rank, level);
        self.best = self.best.min(rank);
        self.count_stray(&mut nodes.rings);
        true
    }

    #[cold]
    #[inline(never)]
    fn remove_stray(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        let far = nodes.rings.far_mut(self.ring);
        let mut level = far.levels.remove(&rank).expect("an order outside the ring is far");
        level.qty -= qty.raw();
        level.queue.remove(nodes, slot);
        if level.queue.front().is_some() {
            nodes.rings.far_mut(self.ring).levels.insert(rank, level);
        } else if rank == self.best {
            self.best = self.occupied_from(&nodes.rings, rank).unwrap_or(EMPTY);
        }
        self.count_stray(&mut nodes.rings);
    }

    /// Counts an access to a far level, and moves the ring if the market is elsewhere and the move
    /// is paid for.
    fn count_stray(&mut self, rings: &mut Rings) {
        let far = rings.far_mut(self.ring);
        far.strays = far.strays.saturating_add(1);
        let base = base_for(self.best);
        let drifted = self.best != EMPTY && base.abs_diff(self.base) >= DRIFT_MIN;
        let paid = far.strays.saturating_mul(MOVES_PER_STRAY);
        if drifted && paid >= rings.bits(self.ring).count_ones() {
            rings.far_mut(self.ring).strays = 0;
            rings.shift(self.ring, self.base, base);
            self.base = base;
        }
    }
}

/// Returns the start of the ring for a market at this rank. It never reaches the last rank, so that
/// `EMPTY` is never near.
fn base_for(best: i64) -> i64 {
    best.saturating_sub(LEAD).min(i64::MAX - WINDOW as i64)
}

#[cfg(test)]
mod tests;
