//! One side of a price ladder: orders in lines, one line per price, the best price at hand.
//!
//! ```text
//!            base            best                      base + 255
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
use std::ops::{Index, IndexMut};

use crate::id::AccountId;
use crate::number::Qty;
use crate::terms::{Side, Tif};

/// No slot.
pub const NIL: u32 = u32::MAX;

/// Prices in the ring. 256 levels are one page of memory, and hold what lives within 10 standard distances of a
/// usual market; two sides of 10,000 securities take 80 MB.
const WINDOW: usize = 256;
const WORDS: usize = WINDOW / 64;
/// How far behind the start of the ring the best price is put when the ring moves: the room for better prices.
const LEAD: i64 = 64;
/// Touches of far levels before the ring may move. Moving costs at most 2 × `WINDOW` levels, so 8 for each touch.
const STRAYS_MAX: u32 = 64;
/// The rank of nothing: worse than every price.
const EMPTY: i64 = i64::MAX;

const _: () = assert!(WINDOW.is_power_of_two() && WINDOW.is_multiple_of(64));
const _: () = assert!(size_of::<Level>() == 16, "four levels share a cache line");
const _: () = assert!(size_of::<Node>() == 32, "a node never straddles a cache line");

/// Where an order is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    #[default]
    Nowhere,
    /// On a ladder of the venue, at its limit.
    Book,
    /// In the line of market orders that wait; `ticks` is its number of arrival.
    Line,
    /// Kept aside for the closing auction.
    ParkedLimit,
    ParkedMarket,
    /// Trading right now, and not yet at its end.
    Taking,
    /// On a ladder of the shard: a stop.
    Stop,
}

/// One order as a ladder knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Node {
    pub ticks: i64,
    /// What remains.
    pub qty: Qty,
    prev: u32,
    next: u32,
    pub book: u32,
    pub account: AccountId,
    pub tif: Tif,
    /// The place in the upper bits, the side in the lowest: a byte more would cost a cache line.
    state: u8,
}

impl Node {
    pub fn new(place: Place, side: Side) -> Node {
        let mut node = Node { prev: NIL, next: NIL, ..Node::default() };
        node.state = (place as u8) << 1 | side as u8;
        node
    }

    #[inline]
    pub fn side(&self) -> Side {
        Side::BOTH[(self.state & 1) as usize]
    }

    #[inline]
    pub fn place(&self) -> Place {
        match self.state >> 1 {
            1 => Place::Book,
            2 => Place::Line,
            3 => Place::ParkedLimit,
            4 => Place::ParkedMarket,
            5 => Place::Taking,
            6 => Place::Stop,
            _ => Place::Nowhere,
        }
    }

    #[inline]
    pub fn set_place(&mut self, place: Place) {
        self.state = (place as u8) << 1 | self.state & 1;
    }

    /// The one behind it in its line.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        (self.next != NIL).then_some(self.next)
    }
}

/// The slab of nodes. The caller chooses the slots; it grows to the highest one used.
#[derive(Clone, Debug, Default)]
pub struct Nodes(Vec<Node>);

impl Nodes {
    pub fn with_capacity(orders: usize) -> Nodes {
        Nodes(Vec::with_capacity(orders))
    }

    /// The place of a slot; nowhere if it was never used.
    #[inline]
    pub fn place(&self, slot: u32) -> Place {
        self.0.get(slot as usize).map_or(Place::Nowhere, Node::place)
    }

    #[inline]
    pub fn set(&mut self, slot: u32, node: Node) {
        if slot as usize >= self.0.len() {
            self.grow(slot);
        }
        self.0[slot as usize] = node;
    }

    #[cold]
    fn grow(&mut self, slot: u32) {
        assert!(slot != NIL, "NIL is no slot");
        self.0.resize(slot as usize + 1, Node::default());
    }
}

impl Index<u32> for Nodes {
    type Output = Node;

    #[inline]
    fn index(&self, slot: u32) -> &Node {
        &self.0[slot as usize]
    }
}

impl IndexMut<u32> for Nodes {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.0[slot as usize]
    }
}

/// First come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    head: u32,
    tail: u32,
}

impl Default for Line {
    fn default() -> Line {
        Line { head: NIL, tail: NIL }
    }
}

impl Line {
    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    #[inline]
    pub fn push_back(&mut self, nodes: &mut Nodes, slot: u32) {
        if self.head == NIL {
            self.head = slot;
        } else {
            nodes[self.tail].next = slot;
            nodes[slot].prev = self.tail;
        }
        nodes[slot].next = NIL;
        self.tail = slot;
    }

    /// Links of the ends are not looked at: who stands there is known from the line itself, and one cache line
    /// less is touched when the head leaves.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { prev, next, .. } = nodes[slot];
        match (self.head == slot, self.tail == slot) {
            (true, true) => *self = Line::default(),
            (true, false) => self.head = next,
            (false, true) => {
                self.tail = prev;
                nodes[prev].next = NIL;
            }
            (false, false) => {
                nodes[prev].next = next;
                nodes[next].prev = prev;
            }
        }
    }
}

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

/// Invariants: `best` is the rank of the best occupied level, or `EMPTY`; `base` is a multiple of 64 and the ring ends before
/// `EMPTY`; a bit is set exactly if its level has an order; a far level has an order and lies outside the ring.
#[derive(Clone, Debug)]
pub struct Ladder {
    best: i64,
    base: i64,
    /// The ring's bit of a rank is its lowest bits, wherever the ring lies.
    bits: [u64; WORDS],
    /// None before the first order.
    window: Option<Box<[Level; WINDOW]>>,
    far: Option<Box<Far>>,
    /// Turns ticks into rank and back: all ones if the highest price is best.
    flip: i64,
}

#[derive(Clone, Debug, Default)]
struct Far {
    levels: BTreeMap<i64, Level>,
    strays: u32,
}

impl Ladder {
    pub fn new(direction: Direction) -> Ladder {
        let flip = match direction {
            Direction::HighestFirst => -1,
            Direction::LowestFirst => 0,
        };
        Ladder { best: EMPTY, base: 0, bits: [0; WORDS], window: None, far: None, flip }
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
    #[inline]
    #[must_use = "the order may be on no ladder now"]
    pub fn push_back(&mut self, nodes: &mut Nodes, slot: u32, ticks: i64) -> bool {
        let rank = self.rank(ticks);
        if self.is_near(rank)
            && let Some(window) = &mut self.window
        {
            let level = &mut window[ring(rank)];
            let Some(sum) = level.qty.checked_add(nodes[slot].qty.raw()) else {
                return false;
            };
            level.qty = sum;
            nodes[slot].ticks = ticks;
            level.line.push_back(nodes, slot);
            self.bits[word(rank)] |= bit(rank);
            self.best = self.best.min(rank);
            return true;
        }
        self.push_stray(nodes, slot, ticks)
    }

    /// Takes an order, which is on this ladder, away.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        if self.is_near(rank)
            && let Some(window) = &mut self.window
        {
            let level = &mut window[ring(rank)];
            level.qty -= qty.raw();
            level.line.remove(nodes, slot);
            if level.line.head == NIL {
                self.bits[word(rank)] &= !bit(rank);
                self.vacated(rank);
            }
            return;
        }
        self.remove_stray(nodes, slot);
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

    #[inline]
    fn is_near(&self, rank: i64) -> bool {
        (rank.wrapping_sub(self.base) as u64) < WINDOW as u64
    }

    #[inline]
    fn level(&self, rank: i64) -> Option<&Level> {
        match &self.window {
            Some(window) if self.is_near(rank) => Some(&window[ring(rank)]),
            _ => self.far.as_ref()?.levels.get(&rank),
        }
    }

    #[inline]
    fn level_mut(&mut self, rank: i64) -> Option<&mut Level> {
        match &mut self.window {
            Some(window) if (rank.wrapping_sub(self.base) as u64) < WINDOW as u64 => {
                Some(&mut window[ring(rank)])
            }
            _ => self.far.as_mut()?.levels.get_mut(&rank),
        }
    }

    #[inline]
    fn vacated(&mut self, rank: i64) {
        if rank == self.best {
            self.best = self.occupied_from(rank).unwrap_or(EMPTY);
        }
    }

    /// The best occupied rank at or behind this one.
    #[inline]
    fn occupied_from(&self, rank: i64) -> Option<i64> {
        let near = self.near_from(rank);
        let far = match &self.far {
            Some(far) => far.levels.range(rank..).next().map(|(&rank, _)| rank),
            None => None,
        };
        match (near, far) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    #[inline]
    fn near_from(&self, rank: i64) -> Option<i64> {
        let from = rank.max(self.base);
        if !self.is_near(from) {
            return None;
        }
        let mut at = from;
        let mut bits = self.bits[word(at)] & (!0 << (at & 63));
        loop {
            if bits != 0 {
                return Some((at & !63) + bits.trailing_zeros() as i64);
            }
            at = (at & !63).checked_add(64)?;
            if !self.is_near(at) {
                return None;
            }
            bits = self.bits[word(at)];
        }
    }
}

#[inline]
fn ring(rank: i64) -> usize {
    rank as usize & (WINDOW - 1)
}

#[inline]
fn word(rank: i64) -> usize {
    ring(rank) / 64
}

#[inline]
fn bit(rank: i64) -> u64 {
    1 << (rank & 63)
}

/// What is far, and how the ring follows the market.
impl Ladder {
    #[cold]
    fn push_stray(&mut self, nodes: &mut Nodes, slot: u32, ticks: i64) -> bool {
        let rank = self.rank(ticks);
        if rank == EMPTY {
            return false;
        }
        if self.is_empty() {
            // Nothing has to move, so the ring comes at once.
            self.window.get_or_insert_with(|| Box::new([Level::default(); WINDOW]));
            self.base = base_for(rank);
            if self.is_near(rank) {
                return self.push_back(nodes, slot, ticks);
            }
        }
        let far = self.far.get_or_insert_default();
        let level = far.levels.entry(rank).or_default();
        let Some(sum) = level.qty.checked_add(nodes[slot].qty.raw()) else {
            return false;
        };
        level.qty = sum;
        nodes[slot].ticks = ticks;
        level.line.push_back(nodes, slot);
        self.best = self.best.min(rank);
        self.stray();
        true
    }

    #[cold]
    fn remove_stray(&mut self, nodes: &mut Nodes, slot: u32) {
        let Node { ticks, qty, .. } = nodes[slot];
        let rank = self.rank(ticks);
        let far = self.far.as_mut().expect("an order outside the ring is far");
        let level = far.levels.get_mut(&rank).expect("an order's level is there");
        level.qty -= qty.raw();
        level.line.remove(nodes, slot);
        if level.line.head == NIL {
            far.levels.remove(&rank);
            self.vacated(rank);
        }
        self.stray();
    }

    /// Counts a touch of a far level, and moves the ring if they have become many and the market is elsewhere.
    fn stray(&mut self) {
        let Some(far) = &mut self.far else { return };
        far.strays += 1;
        if far.strays < STRAYS_MAX {
            return;
        }
        far.strays = 0;
        let base = base_for(self.best);
        if self.best != EMPTY && base != self.base {
            self.recentre(base);
        }
    }

    /// Levels that are in the old ring and in the new stay where they are: the ring's index of a rank never changes.
    fn recentre(&mut self, base: i64) {
        let Some(far) = &mut self.far else { return };
        let window = self.window.get_or_insert_with(|| Box::new([Level::default(); WINDOW]));
        for offset in 0..WINDOW as i64 {
            let rank = self.base + offset;
            let stays = (rank.wrapping_sub(base) as u64) < WINDOW as u64;
            if !stays && self.bits[word(rank)] & bit(rank) != 0 {
                far.levels.insert(rank, std::mem::take(&mut window[ring(rank)]));
                self.bits[word(rank)] &= !bit(rank);
            }
        }
        self.base = base;
        let last = base + (WINDOW as i64 - 1);
        while let Some((&rank, _)) = far.levels.range(base..=last).next() {
            window[ring(rank)] = far.levels.remove(&rank).expect("it was just seen");
            self.bits[word(rank)] |= bit(rank);
        }
    }
}

/// Where the ring begins when the market is here. It never reaches the last ranks, so that `EMPTY` is never near.
fn base_for(best: i64) -> i64 {
    (best.saturating_sub(LEAD) & !63).min(i64::MAX - (WINDOW as i64 + 63))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::chance::Chance;

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
        for slot in 1..=STRAYS_MAX {
            assert!(put(&mut ladder, &mut nodes, slot, -10_000 - slot as i64, 1));
        }
        let far = ladder.far.as_ref().unwrap();
        assert_eq!(far.levels.keys().copied().collect::<Vec<_>>(), [0]);
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
