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

use std::collections::BTreeMap;

use crate::ahead::fetch;
use crate::nodes::{Line, Node, Nodes};
use crate::number::Qty;
use crate::order::NIL;

/// Prices in the ring: as many as a number has bits. Both sides of a book are a page of memory, 10,000 books take 40 MB.
const WINDOW: usize = 128;
/// How far behind the start of the ring the best price is put when the ring moves: the room for better prices.
const LEAD: i64 = 48;
/// The ring does not move for less.
const DRIFT_MIN: u64 = 16;
/// Levels that may be moved for each touch of a far level: the price of moving the ring, paid in advance.
const MOVES_PER_STRAY: u32 = 4;
/// The rank of nothing: worse than every price.
const EMPTY: i64 = i64::MAX;

const _: () = assert!(WINDOW == u128::BITS as usize, "a bit for each level");
const _: () = assert!(size_of::<Level>() == 16, "four levels share a cache line");

/// The orders of one price. Without orders the quantity is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Level {
    line: Line,
    /// The sum over the line; always fits, for an order that would make it too large is refused.
    qty: i64,
}

/// Which price is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    HighestFirst,
    LowestFirst,
}

/// Invariants: `best` is the rank of the best occupied level, or `EMPTY`; the ring ends before `EMPTY`; without a ring there
/// is no order.
///
/// What every order needs is here, so that both ladders of a book share a cache line; the rest is with the levels.
#[derive(Clone, Debug)]
pub struct Ladder {
    best: i64,
    base: i64,
    /// Turns ticks into rank and back: all ones if the highest price is best.
    flip: i64,
    ring: Option<Box<Ring>>,
}

const _: () = assert!(size_of::<Ladder>() == 32, "two ladders are a cache line");

/// Invariants: a bit is set exactly if its level has an order; a far level has an order and lies outside the ring.
#[derive(Clone, Debug)]
struct Ring {
    /// The bit of a rank, like its level, is told by its lowest bits, wherever the ring lies.
    bits: u128,
    far: BTreeMap<i64, Level>,
    /// Touches of far levels since the ring last moved.
    strays: u32,
    levels: [Level; WINDOW],
}

impl Ladder {
    pub fn new(direction: Direction) -> Ladder {
        let flip = match direction {
            Direction::HighestFirst => -1,
            Direction::LowestFirst => 0,
        };
        Ladder { best: EMPTY, base: 0, flip, ring: None }
    }

    /// With its ring from the beginning: two made one after the other lie side by side in memory.
    pub fn with_ring(direction: Direction) -> Ladder {
        Ladder { ring: Some(Ring::new()), ..Ladder::new(direction) }
    }

    /// How good a price is here: the lower, the better.
    #[inline]
    pub fn rank(&self, ticks: i64) -> i64 {
        ticks ^ self.flip
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
        (self.best != EMPTY).then_some(self.best ^ self.flip)
    }

    /// The oldest order at the best price.
    #[inline]
    pub fn best_front(&self) -> Option<u32> {
        if self.best == EMPTY {
            return None;
        }
        self.level(self.best).and_then(|level| level.line.front())
    }

    /// The oldest order at a price.
    pub fn front(&self, ticks: i64) -> Option<u32> {
        self.level(self.rank(ticks)).and_then(|level| level.line.front())
    }

    /// What rests at a price.
    pub fn qty(&self, ticks: i64) -> Qty {
        Qty::from_raw(self.level(self.rank(ticks)).map_or(0, |level| level.qty))
    }

    /// The next price behind this one at which an order rests.
    pub fn worse(&self, ticks: i64) -> Option<i64> {
        let from = self.rank(ticks).checked_add(1)?;
        self.occupied_from(from).map(|rank| rank ^ self.flip)
    }

    /// Prices and what rests there, from the best outward.
    pub fn levels(&self) -> impl Iterator<Item = (i64, Qty)> {
        std::iter::successors(self.best(), |&ticks| self.worse(ticks)).map(|ticks| (ticks, self.qty(ticks)))
    }

    /// Puts an order, whose node says how much remains, behind all others at its price. False, and nothing is
    /// changed, if the price or the sum at that price is too large to be counted.
    #[must_use = "the order may be on no ladder now"]
    pub fn push_back(&mut self, nodes: &mut Nodes, slot: u32, ticks: i64) -> bool {
        let mut node = nodes[slot];
        node.ticks = ticks;
        self.insert(nodes, slot, node)
    }

    /// The same, with a node that is not in its slot yet.
    #[inline(always)]
    #[must_use = "the order may be on no ladder now"]
    pub fn insert(&mut self, nodes: &mut Nodes, slot: u32, mut node: Node) -> bool {
        let rank = self.rank(node.ticks);
        let near = self.is_near(rank);
        let Some(ring) = self.ring.as_mut().filter(|_| near) else {
            return self.insert_stray(nodes, slot, node);
        };
        let level = &mut ring.levels[place(rank)];
        let Some(sum) = level.qty.checked_add(node.qty.raw()) else {
            return false;
        };
        level.qty = sum;
        let tail = std::mem::replace(&mut level.line.tail, slot);
        (node.prev, node.next) = (tail, NIL);
        nodes.set(slot, node);
        if tail != NIL {
            nodes[tail].next = slot;
            return true;
        }
        level.line.head = slot;
        ring.bits |= bit(rank);
        self.best = self.best.min(rank);
        true
    }

    /// Takes an order, which is on this ladder, away.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, prev, next, .. } = nodes[slot];
        let rank = self.rank(ticks);
        let near = self.is_near(rank);
        let Some(ring) = self.ring.as_mut().filter(|_| near) else {
            return self.remove_stray(nodes, slot);
        };
        let level = &mut ring.levels[place(rank)];
        level.qty -= qty.raw();
        level.line.unlink(nodes, prev, next);
        if prev == NIL && next == NIL {
            self.vacate(rank);
        }
    }

    /// Takes a part of an order's quantity away; it keeps its place in line.
    #[inline]
    pub fn reduce(&mut self, nodes: &mut Nodes, slot: u32, by: Qty) {
        let node = &mut nodes[slot];
        assert!(by < node.qty, "an order with nothing left is removed");
        node.qty = Qty::from_raw(node.qty.raw() - by.raw());
        let rank = self.rank(node.ticks);
        if let Some(level) = self.level_mut(rank) {
            level.qty -= by.raw();
        }
    }

    /// The newest order at a price of the ring; [`NIL`] if there is none.
    #[inline]
    pub fn tail(&self, ticks: i64) -> u32 {
        let rank = self.rank(ticks);
        match &self.ring {
            Some(ring) if self.is_near(rank) => ring.levels[place(rank)].line.tail,
            _ => NIL,
        }
    }

    /// Has the memory of a price brought near.
    #[inline]
    pub fn fetch(&self, ticks: i64) {
        if let Some(ring) = &self.ring {
            fetch(&ring.levels[place(self.rank(ticks))]);
        }
    }

    #[inline]
    fn is_near(&self, rank: i64) -> bool {
        (rank.wrapping_sub(self.base) as u64) < WINDOW as u64
    }

    #[inline]
    fn level(&self, rank: i64) -> Option<&Level> {
        let ring = self.ring.as_ref()?;
        match self.is_near(rank) {
            true => Some(&ring.levels[place(rank)]),
            false => ring.far.get(&rank),
        }
    }

    #[inline]
    fn level_mut(&mut self, rank: i64) -> Option<&mut Level> {
        let near = self.is_near(rank);
        let ring = self.ring.as_mut()?;
        match near {
            true => Some(&mut ring.levels[place(rank)]),
            false => ring.far.get_mut(&rank),
        }
    }

    /// The last order has left a level of the ring.
    #[inline(never)]
    fn vacate(&mut self, rank: i64) {
        if let Some(ring) = &mut self.ring {
            ring.bits &= !bit(rank);
        }
        if rank == self.best {
            self.best = self.occupied_from(rank).unwrap_or(EMPTY);
        }
    }

    /// The best occupied rank at or behind this one.
    #[inline]
    fn occupied_from(&self, rank: i64) -> Option<i64> {
        let ring = self.ring.as_ref()?;
        let near = self.near_from(ring.bits, rank);
        if ring.far.is_empty() {
            return near;
        }
        let far = ring.far.range(rank..).next().map(|(&rank, _)| rank);
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

/// Where the level of a rank is in the ring.
#[inline]
fn place(rank: i64) -> usize {
    rank as usize & (WINDOW - 1)
}

#[inline]
fn bit(rank: i64) -> u128 {
    1 << place(rank)
}

/// What is far, and how the ring follows the market.
impl Ladder {
    #[cold]
    #[inline(never)]
    fn insert_stray(&mut self, nodes: &mut Nodes, slot: u32, node: Node) -> bool {
        let rank = self.rank(node.ticks);
        if rank == EMPTY {
            return false;
        }
        if self.is_empty() {
            // Nothing has to move, so the ring comes at once.
            self.ring.get_or_insert_with(Ring::new);
            self.base = base_for(rank);
            if self.is_near(rank) {
                return self.insert(nodes, slot, node);
            }
        }
        let ring = self.ring.get_or_insert_with(Ring::new);
        let level = ring.far.entry(rank).or_default();
        let Some(sum) = level.qty.checked_add(node.qty.raw()) else {
            return false;
        };
        level.qty = sum;
        nodes.set(slot, node);
        level.line.push_back(nodes, slot);
        self.best = self.best.min(rank);
        self.stray();
        true
    }

    #[cold]
    #[inline(never)]
    fn remove_stray(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        let ring = self.ring.as_mut().expect("an order has its ring");
        let level = ring.far.get_mut(&rank).expect("an order outside the ring is far");
        level.qty -= qty.raw();
        level.line.remove(nodes, slot);
        if level.line.head == NIL {
            ring.far.remove(&rank);
            if rank == self.best {
                self.best = self.occupied_from(rank).unwrap_or(EMPTY);
            }
        }
        self.stray();
    }

    /// Counts a touch of a far level, and moves the ring if the market is elsewhere and the move is paid for.
    fn stray(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        ring.strays = ring.strays.saturating_add(1);
        let base = base_for(self.best);
        let drifted = self.best != EMPTY && base.abs_diff(self.base) >= DRIFT_MIN;
        if drifted && ring.strays.saturating_mul(MOVES_PER_STRAY) >= ring.bits.count_ones() {
            ring.strays = 0;
            ring.shift(self.base, base);
            self.base = base;
        }
    }
}

impl Ring {
    fn new() -> Box<Ring> {
        Box::new(Ring { bits: 0, far: BTreeMap::new(), strays: 0, levels: [Level::default(); WINDOW] })
    }

    /// Levels that are in the old window and in the new stay where they are: the place of a rank never changes.
    fn shift(&mut self, old: i64, new: i64) {
        for rank in old..old + WINDOW as i64 {
            let stays = (rank.wrapping_sub(new) as u64) < WINDOW as u64;
            if !stays && self.bits & bit(rank) != 0 {
                self.far.insert(rank, std::mem::take(&mut self.levels[place(rank)]));
                self.bits &= !bit(rank);
            }
        }
        while let Some((&rank, _)) = self.far.range(new..new + WINDOW as i64).next() {
            self.levels[place(rank)] = self.far.remove(&rank).expect("it was just seen");
            self.bits |= bit(rank);
        }
    }
}

/// Where the ring begins when the market is here. It never reaches the last rank, so that `EMPTY` is never near.
fn base_for(best: i64) -> i64 {
    best.saturating_sub(LEAD).min(i64::MAX - WINDOW as i64)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::chance::Chance;
    use crate::nodes::Place;
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
        for (ticks, qty) in ladder.levels() {
            let line = std::iter::successors(ladder.front(ticks), |&slot| nodes[slot].next());
            let line: Vec<_> = line.map(|slot| (slot, nodes[slot].qty.raw())).collect();
            assert_eq!(line.iter().map(|(_, qty)| qty).sum::<i64>(), qty.raw());
            all.push((ticks, line));
        }
        all
    }

    fn put(ladder: &mut Ladder, nodes: &mut Nodes, slot: u32, ticks: i64, qty: i64) -> bool {
        let mut node = Node::new(Place::Book, Side::Buy);
        node.qty = Qty::from_raw(qty);
        nodes.set(slot, node);
        ladder.push_back(nodes, slot, ticks)
    }

    /// A market that stands, walks or jumps: `walk` ticks at most with each order, and orders up to `spread` around.
    fn check(direction: Direction, seed: u64, walk: u64, spread: u64) {
        let (mut ladder, mut nodes) = (Ladder::new(direction), Nodes::with_capacity(16));
        let (mut naive, mut chance) = (Naive::default(), Chance::new(seed));
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
                    let slot = ladder.best_front().unwrap();
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
        let far = &ladder.ring.as_ref().unwrap().far;
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
                    assert_eq!(ladder.qty(ticks).is_zero(), !held);
                }
            }
            assert_eq!(ladder.levels().count(), 4);
            while let Some(slot) = ladder.best_front() {
                ladder.remove(&mut nodes, slot);
            }
            assert!(ladder.is_empty() && ladder.best().is_none() && ladder.worse(i64::MAX).is_none());
        }
    }

    #[test]
    fn a_sum_too_large_to_be_counted_is_refused() {
        let (mut ladder, mut nodes) = (Ladder::new(Direction::LowestFirst), Nodes::default());
        for (slot, ticks) in [(0, 7), (1, 100_000)] {
            assert!(put(&mut ladder, &mut nodes, slot, ticks, i64::MAX));
            assert!(!put(&mut ladder, &mut nodes, 2, ticks, 1));
            assert_eq!(ladder.qty(ticks), Qty::MAX);
        }
    }

    #[test]
    fn a_node_keeps_its_place_and_side() {
        use Place::*;
        for place in [Nowhere, Book, Line, ParkedLimit, ParkedMarket, Taking, Stop] {
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
