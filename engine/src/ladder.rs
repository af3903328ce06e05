//! One side of a price ladder: orders in lines, one line per price, the best price at hand.
//!
//! ```text
//!            base            best                      base + 127
//!   better ─── ┌───┬───┬───┬───┬───┬───┬───┬─ ─ ─┬───┬───┐ ─── worse
//!    far       │   │   │   │ ▪ │   │ ▪ │ ▪ │     │   │ ▪ │      far
//!              └───┴───┴───┴─│─┴───┴───┴───┴─ ─ ─┴───┴───┘
//!                            └ head ⇄ ○ ⇄ ○ ⇄ tail     (nodes, linked by slot)
//! ```
//!
//! Prices near the market live in a ring of levels with one bit each, so that the next occupied one is found by
//! a bit scan. The few that are far away live in a map. When the market has walked, the ring follows it.
//! Inside, a price is a *rank*: the lower, the better, whichever way the ladder looks.
//!
//! The nodes are the caller's: one slab serves all ladders, and an order is on at most one of them.

use crate::level_ring::{PriceLevel, Rings, WINDOW, place};
use crate::number::Qty;
use crate::order::NIL;
use crate::order_nodes::{Node, NodePlace, Nodes};

/// How far behind the start of the ring the best price is put when the ring moves: the room for better prices.
const LEAD: i64 = 48;
/// The ring does not move for less.
const DRIFT_MIN: u64 = 16;
/// Levels that may be moved for each touch of a far level: the price of moving the ring, paid in advance.
const MOVES_PER_STRAY: u32 = 4;
/// The rank of nothing: worse than every price.
const EMPTY: i64 = i64::MAX;

/// Which price is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    HighestFirst,
    LowestFirst,
}

/// Invariants: `best` is the rank of the best occupied level, or `EMPTY`; the ring ends before `EMPTY`; without a ring there
/// is no order; a far level has an order and lies outside the ring.
///
/// What every order needs is here, so that both ladders of a book share a cache line; the rest is with the levels.
#[derive(Clone, Debug)]
pub struct Ladder {
    best: i64,
    base: i64,
    /// Its number among the rings, or [`NIL`].
    ring: u32,
    /// Turns ticks into rank and back: all ones if the highest price is best.
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

    /// With its ring from the beginning: two made one after the other lie side by side in memory.
    pub fn with_ring(direction: Direction, nodes: &mut Nodes) -> Ladder {
        Ladder { ring: nodes.rings.add(), ..Ladder::new(direction) }
    }

    /// How good a price is here: the lower, the better.
    #[inline]
    pub fn rank(&self, ticks: i64) -> i64 {
        ticks ^ self.flip as i64
    }

    /// The rank of the best price; `i64::MAX` without any.
    #[inline]
    pub fn best_rank(&self) -> i64 {
        self.best
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.best == EMPTY
    }

    /// The best price, in ticks.
    #[inline]
    pub fn best(&self) -> Option<i64> {
        (self.best != EMPTY).then_some(self.rank(self.best))
    }

    /// The oldest order at the best price.
    #[inline]
    pub fn best_front(&self, nodes: &Nodes) -> Option<u32> {
        if self.best == EMPTY {
            return None;
        }
        self.level(&nodes.rings, self.best).and_then(|level| level.queue.front())
    }

    /// The oldest order at a price.
    pub fn front(&self, nodes: &Nodes, ticks: i64) -> Option<u32> {
        self.level(&nodes.rings, self.rank(ticks)).and_then(|level| level.queue.front())
    }

    /// What rests at a price.
    pub fn qty(&self, nodes: &Nodes, ticks: i64) -> Qty {
        Qty::from_raw(self.level(&nodes.rings, self.rank(ticks)).map_or(0, |level| level.qty))
    }

    /// The next price behind this one at which an order rests.
    pub fn worse(&self, nodes: &Nodes, ticks: i64) -> Option<i64> {
        let from = self.rank(ticks).checked_add(1)?;
        self.occupied_from(&nodes.rings, from).map(|rank| self.rank(rank))
    }

    /// Prices and what rests there, from the best outward.
    pub fn levels(&self, nodes: &Nodes) -> impl Iterator<Item = (i64, Qty)> {
        let all = std::iter::successors(self.best(), |&ticks| self.worse(nodes, ticks));
        all.map(|ticks| (ticks, self.qty(nodes, ticks)))
    }

    /// Puts an order, whose node says how much remains, behind all others at its price. False, and it is nowhere, if the
    /// price or the sum at that price is too large to be counted.
    #[must_use = "the order may be on no ladder now"]
    pub fn push_back(&mut self, nodes: &mut Nodes, slot: u32, ticks: i64) -> bool {
        let mut node = nodes[slot];
        node.ticks = ticks;
        self.insert(nodes, slot, node)
    }

    /// The same, with a node that is not in its slot yet.
    #[inline(always)]
    #[must_use = "the order may be on no ladder now"]
    pub fn insert(&mut self, nodes: &mut Nodes, slot: u32, node: Node) -> bool {
        // In its place at once, before it is known whether it may stay: carried about it would be copied.
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

    /// Takes an order, which is on this ladder, away.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, prev, next, .. } = nodes[slot];
        let rank = self.rank(ticks);
        if !self.is_near(rank) {
            return self.remove_stray(nodes, slot);
        }
        // All is decided by its own links, not by the line: those come from memory first, and a branch that is guessed
        // wrong is found out sooner.
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

    /// Takes a part of an order's quantity away; it keeps its place in line.
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

    /// The newest order at a price of the ring; [`NIL`] if there is none.
    #[inline]
    pub fn tail(&self, nodes: &Nodes, ticks: i64) -> u32 {
        let rank = self.rank(ticks);
        if self.is_near(rank) { nodes.rings.level(self.ring, rank).queue.tail } else { NIL }
    }

    /// Has the memory of a price brought near.
    #[inline]
    pub fn fetch(&self, nodes: &Nodes, ticks: i64) {
        nodes.rings.fetch(self.ring, self.rank(ticks));
    }

    /// Whether a rank is in the ring, if there is one.
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

    /// The last order has left a level of the ring.
    #[inline(never)]
    fn vacate(&mut self, rings: &mut Rings, rank: i64) {
        rings.clear_bit(self.ring, rank);
        if rank == self.best {
            self.best = self.occupied_from(rings, rank).unwrap_or(EMPTY);
        }
    }

    /// The best occupied rank at or behind this one.
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
        // Seen from here, what lies before it comes last in the ring.
        let before = from - self.base;
        let bits = bits.rotate_right(place(from) as u32) & (u128::MAX >> before);
        (bits != 0).then(|| from + bits.trailing_zeros() as i64)
    }
}

/// What is far, and how the ring follows the market.
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
            // Nothing has to move, so the ring comes at once.
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

    /// Counts a touch of a far level, and moves the ring if the market is elsewhere and the move is paid for.
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

/// Where the ring begins when the market is here. It never reaches the last rank, so that `EMPTY` is never near.
fn base_for(best: i64) -> i64 {
    best.saturating_sub(LEAD).min(i64::MAX - WINDOW as i64)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;
    use crate::pages::LargePages;
    use crate::rng::Rng;
    use crate::terms::Side;

    /// What a ladder is, without thinking of speed.
    #[derive(Default)]
    struct Naive(BTreeMap<i64, VecDeque<(u32, i64)>>);

    impl Naive {
        fn levels(&self, direction: Direction) -> Vec<(i64, Vec<(u32, i64)>)> {
            let mut all: Vec<_> =
                self.0.iter().map(|(&ticks, line)| (ticks, line.iter().copied().collect())).collect();
            if direction == Direction::HighestFirst {
                all.reverse();
            }
            all
        }

        fn remove(&mut self, ticks: i64, slot: u32) {
            let line = self.0.get_mut(&ticks).unwrap();
            line.retain(|&(other, _)| other != slot);
            if line.is_empty() {
                self.0.remove(&ticks);
            }
        }
    }

    fn seen(ladder: &Ladder, nodes: &Nodes) -> Vec<(i64, Vec<(u32, i64)>)> {
        let mut all = Vec::new();
        for (ticks, qty) in ladder.levels(nodes) {
            let line = std::iter::successors(ladder.front(nodes, ticks), |&slot| nodes[slot].next());
            let line: Vec<_> = line.map(|slot| (slot, nodes[slot].qty.raw())).collect();
            assert_eq!(line.iter().map(|(_, qty)| qty).sum::<i64>(), qty.raw());
            all.push((ticks, line));
        }
        all
    }

    fn put(ladder: &mut Ladder, nodes: &mut Nodes, slot: u32, ticks: i64, qty: i64) -> bool {
        let mut node = Node::new(NodePlace::Book, Side::Buy);
        node.qty = Qty::from_raw(qty);
        nodes.set(slot, node);
        ladder.push_back(nodes, slot, ticks)
    }

    /// A market that stands, walks or jumps: `walk` ticks at most with each order, and orders up to `spread` around.
    fn check(direction: Direction, seed: u64, walk: u64, spread: u64) {
        let (mut ladder, mut nodes) = (Ladder::new(direction), Nodes::with_capacity(16, LargePages::NONE));
        let (mut naive, mut chance) = (Naive::default(), Rng::new(seed));
        let (mut open, mut mid): (Vec<(u32, i64)>, i64) = (Vec::new(), 0);
        for step in 0..20_000 {
            mid += chance.below(2 * walk + 1) as i64 - walk as i64;
            let busy = open.len() as u64 > 20 + step / 100;
            match chance.below(if busy { 8 } else { 4 }) {
                0..3 => {
                    let slot = (0..).find(|slot| open.iter().all(|(other, _)| other != slot)).unwrap();
                    let ticks = mid + chance.below(2 * spread + 1) as i64 - spread as i64;
                    let qty = chance.below(100) as i64 + 1;
                    assert!(put(&mut ladder, &mut nodes, slot, ticks, qty));
                    naive.0.entry(ticks).or_default().push_back((slot, qty));
                    open.push((slot, ticks));
                }
                3 if !open.is_empty() => {
                    let (slot, ticks) = open[chance.below(open.len() as u64) as usize];
                    if nodes[slot].qty > Qty::from_raw(1) {
                        ladder.reduce(&mut nodes, slot, Qty::from_raw(1));
                        let line = naive.0.get_mut(&ticks).unwrap();
                        line.iter_mut().find(|(other, _)| *other == slot).unwrap().1 -= 1;
                    }
                }
                4..6 => {
                    let slot = ladder.best_front(&nodes).unwrap();
                    let at = open.iter().position(|&(other, _)| other == slot).unwrap();
                    let (slot, ticks) = open.swap_remove(at);
                    ladder.remove(&mut nodes, slot);
                    naive.remove(ticks, slot);
                }
                _ if !open.is_empty() => {
                    let (slot, ticks) = open.swap_remove(chance.below(open.len() as u64) as usize);
                    ladder.remove(&mut nodes, slot);
                    naive.remove(ticks, slot);
                }
                _ => {}
            }
            let best = naive.levels(direction).first().map(|(ticks, _)| *ticks);
            assert_eq!(ladder.best(), best, "seed {seed}, step {step}");
            if step % 64 == 0 {
                assert_eq!(seen(&ladder, &nodes), naive.levels(direction), "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn a_ladder_does_what_a_naive_one_does() {
        for (seed, walk, spread) in [(1, 0, 20), (2, 2, 100), (3, 10, 400), (4, 300, 10), (5, 5_000, 5_000)] {
            check(Direction::LowestFirst, seed, walk, spread);
            check(Direction::HighestFirst, seed + 10, walk, spread);
        }
    }

    #[test]
    fn the_ring_follows_the_market() {
        let (mut ladder, mut nodes) = (Ladder::new(Direction::LowestFirst), Nodes::default());
        assert!(put(&mut ladder, &mut nodes, 0, 0, 1));
        for slot in 1..=9 {
            assert!(put(&mut ladder, &mut nodes, slot, -10_000 - slot as i64, 1));
        }
        let far = &nodes.rings.far(ladder.ring).levels;
        assert_eq!(far.keys().copied().collect::<Vec<_>>(), [0]);
        assert!(ladder.is_near(ladder.best_rank()));
    }

    #[test]
    fn the_ends_of_the_numbers_are_no_special_place() {
        for direction in [Direction::LowestFirst, Direction::HighestFirst] {
            let (mut ladder, mut nodes) = (Ladder::new(direction), Nodes::default());
            let ends = [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX, 0];
            for round in 0..100u32 {
                for (at, &ticks) in ends.iter().enumerate() {
                    let slot = round * 5 + at as u32;
                    let held = put(&mut ladder, &mut nodes, slot, ticks, 1);
                    assert_eq!(held, ladder.rank(ticks) != i64::MAX);
                    assert_eq!(ladder.qty(&nodes, ticks).is_zero(), !held);
                }
            }
            assert_eq!(ladder.levels(&nodes).count(), 4);
            while let Some(slot) = ladder.best_front(&nodes) {
                ladder.remove(&mut nodes, slot);
            }
            assert!(ladder.is_empty() && ladder.best().is_none() && ladder.worse(&nodes, i64::MAX).is_none());
        }
    }

    #[test]
    fn a_sum_too_large_to_be_counted_is_refused() {
        let (mut ladder, mut nodes) = (Ladder::new(Direction::LowestFirst), Nodes::default());
        for (slot, ticks) in [(0, 7), (1, 100_000)] {
            assert!(put(&mut ladder, &mut nodes, slot, ticks, i64::MAX));
            assert!(!put(&mut ladder, &mut nodes, 2, ticks, 1));
            assert_eq!(ladder.qty(&nodes, ticks), Qty::MAX);
        }
    }

    #[test]
    fn a_node_keeps_its_place_and_side() {
        use NodePlace::*;
        for place in [Nowhere, Book, MarketQueue, ParkedLimit, ParkedMarket, Taking, Stop] {
            for side in Side::BOTH {
                let mut node = Node::new(place, side);
                assert_eq!((node.place(), node.side()), (place, side));
                node.set_place(Nowhere);
                assert_eq!((node.place(), node.side()), (Nowhere, side));
            }
        }
        assert_eq!(Nodes::default().place(9), Nowhere);
    }
}
