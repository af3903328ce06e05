use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::level_pages::{DIRECTORY_PAGES, PAGE_LEVELS, SPARE_PAGES_MAX};
use crate::pages::LargePages;
use crate::rng::Rng;
use crate::terms::Side;

/// A reference implementation of a ladder, without regard to speed.
#[derive(Default)]
struct NaiveLadder(BTreeMap<i64, VecDeque<(u32, i64)>>);

impl NaiveLadder {
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

/// A market that stands, walks or jumps: `walk` ticks at most with each order, and orders up to
/// `spread` around.
fn check(direction: Direction, seed: u64, walk: u64, spread: u64) {
    let (mut ladder, mut nodes) = (Ladder::new(direction), Nodes::with_capacity(16, LargePages::NONE));
    let (mut naive, mut rng) = (NaiveLadder::default(), Rng::new(seed));
    let (mut open, mut mid): (Vec<(u32, i64)>, i64) = (Vec::new(), 0);
    for step in 0..20_000 {
        mid += rng.below(2 * walk + 1) as i64 - walk as i64;
        let busy = open.len() as u64 > 20 + step / 100;
        match rng.below(if busy { 8 } else { 4 }) {
            0..3 => {
                let slot = (0..).find(|slot| open.iter().all(|(other, _)| other != slot)).unwrap();
                let ticks = mid + rng.below(2 * spread + 1) as i64 - spread as i64;
                let qty = rng.below(100) as i64 + 1;
                assert!(put(&mut ladder, &mut nodes, slot, ticks, qty));
                naive.0.entry(ticks).or_default().push_back((slot, qty));
                open.push((slot, ticks));
            }
            3 if !open.is_empty() => {
                let (slot, ticks) = open[rng.below(open.len() as u64) as usize];
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
                let (slot, ticks) = open.swap_remove(rng.below(open.len() as u64) as usize);
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
    let markets = [
        (1, 0, 20),
        (2, 2, 100),
        (3, 10, 400),
        (4, 300, 10),
        (5, 5_000, 5_000),
        (6, 3, 40_000),
        (7, 1 << 40, 9),
    ];
    for (seed, walk, spread) in markets {
        check(Direction::LowestFirst, seed, walk, spread);
        check(Direction::HighestFirst, seed + 10, walk, spread);
    }
}

/// Ticks of a directory: pages this far apart have the same place.
const REACH: i64 = (DIRECTORY_PAGES * PAGE_LEVELS) as i64;

#[test]
fn a_market_that_moves_takes_its_pages_with_it() {
    for direction in [Direction::LowestFirst, Direction::HighestFirst] {
        let (mut ladder, mut nodes) = (Ladder::new(direction), Nodes::default());
        for slot in 0..100_000u32 {
            assert!(put(&mut ladder, &mut nodes, slot % 64, slot as i64 * 3, 1));
            if slot >= 63 {
                ladder.remove(&mut nodes, (slot + 1) % 64);
            }
        }
        assert_eq!(nodes.pages.page_count(), DIRECTORY_PAGES, "pages get other numbers");
        assert!(nodes.pages.far(0).is_some_and(|far| far.levels.is_empty() && far.strays == 0));
    }
}

#[test]
fn an_empty_ladder_has_no_level() {
    let (mut ladder, mut nodes) = (Ladder::new(Direction::LowestFirst), Nodes::default());
    for ticks in [7, 9, 1_000_000, 8, -5] {
        assert!(put(&mut ladder, &mut nodes, 0, ticks, 1));
        assert_eq!(ladder.best(), Some(ticks));
        ladder.remove(&mut nodes, 0);
        assert!(ladder.is_empty() && ladder.worse(&nodes, -100).is_none());
    }
    assert_eq!(nodes.pages.page_count(), 3);
}

#[test]
fn a_page_near_the_market_displaces_one_that_is_far_once_that_is_paid() {
    let (mut ladder, mut nodes) = (Ladder::new(Direction::LowestFirst), Nodes::default());
    let levels = PAGE_LEVELS as i64;
    for at in 0..levels {
        assert!(put(&mut ladder, &mut nodes, at as u32, REACH + at, 1));
    }
    // The better page has the same place: 43 accesses at 4 moves each pay for 128 + 43 levels.
    let is_far = |ladder: &Ladder, nodes: &Nodes, ticks: i64| {
        nodes.pages.far(ladder.directory).is_some_and(|far| far.levels.contains_key(&ticks))
    };
    for at in 0..43 {
        assert!(put(&mut ladder, &mut nodes, (levels + at) as u32, at, 1));
        assert!(is_far(&ladder, &nodes, at) && !is_far(&ladder, &nodes, REACH));
    }
    assert!(put(&mut ladder, &mut nodes, 500, 43, 1));
    let far = nodes.pages.far(ladder.directory).unwrap();
    assert_eq!(far.levels.keys().copied().collect::<Vec<_>>(), (REACH..REACH + levels).collect::<Vec<_>>());
    let all: Vec<i64> = ladder.levels(&nodes).map(|(ticks, _)| ticks).collect();
    assert_eq!(all, (0..44).chain(REACH..REACH + levels).collect::<Vec<_>>());
}

/// Orders each alone on a page cost at most the pages of the bound, and are in order all the same.
#[test]
fn hostile_prices_take_no_more_pages_than_the_bound() {
    const LADDERS: usize = 200;
    const ORDERS: usize = 24_000;
    let mut nodes = Nodes::with_capacity(ORDERS, LargePages::NONE);
    let mut ladders: Vec<Ladder> = (0..LADDERS)
        .map(|at| [Direction::LowestFirst, Direction::HighestFirst][at % 2])
        .map(|direction| Ladder::with_directory(direction, &mut nodes))
        .collect();
    let mut naive: Vec<NaiveLadder> = (0..LADDERS).map(|_| NaiveLadder::default()).collect();
    let mut rng = Rng::new(27);
    let mut open = Vec::new();
    for slot in 0..ORDERS as u32 {
        let at = slot as usize % LADDERS;
        // Near, in reach of the directory, or anywhere.
        let ticks = match rng.below(4) {
            0 => rng.below(i64::MAX as u64) as i64 - (i64::MAX >> 1),
            1 => rng.below(40) as i64 * REACH,
            _ => (slot as usize / LADDERS * PAGE_LEVELS) as i64,
        };
        assert!(put(&mut ladders[at], &mut nodes, slot, ticks, 1 + slot as i64));
        naive[at].0.entry(ticks).or_default().push_back((slot, 1 + slot as i64));
        open.push((slot, ticks));
    }
    let page_max = LADDERS + SPARE_PAGES_MAX;
    assert_eq!(nodes.pages.page_count(), page_max, "the flow reaches the bound");
    for round in 0..2 {
        for (at, ladder) in ladders.iter().enumerate() {
            let direction = [Direction::LowestFirst, Direction::HighestFirst][at % 2];
            assert_eq!(seen(ladder, &nodes), naive[at].levels(direction), "ladder {at}, round {round}");
        }
        // Two of three leave, in any order.
        for _ in 0..open.len() * 2 / 3 {
            let (slot, ticks) = open.swap_remove(rng.below(open.len() as u64) as usize);
            ladders[slot as usize % LADDERS].remove(&mut nodes, slot);
            naive[slot as usize % LADDERS].remove(ticks, slot);
        }
    }
    for (slot, _) in open {
        ladders[slot as usize % LADDERS].remove(&mut nodes, slot);
    }
    assert!(ladders.iter().all(Ladder::is_empty));
    // A ladder that comes later gets pages that the others do not use.
    let mut late = Ladder::new(Direction::LowestFirst);
    for slot in 0..DIRECTORY_PAGES as u32 {
        assert!(put(&mut late, &mut nodes, slot, slot as i64 * PAGE_LEVELS as i64, 1));
    }
    assert_eq!(late.levels(&nodes).count(), DIRECTORY_PAGES);
    assert!(nodes.pages.far(late.directory).is_some_and(|far| far.levels.is_empty()));
    assert!(nodes.pages.page_count() <= LADDERS + 1 + SPARE_PAGES_MAX);
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
