use std::collections::{BTreeMap, VecDeque};

use super::*;
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
