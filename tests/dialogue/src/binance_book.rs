//! The book of one symbol at the stand-in of Binance Spot: it changes at random, says so in events
//! of the stream `@depth@100ms`, and answers the request `depth`.

use std::collections::BTreeMap;

use pitlane_engine::rng::Rng;
use serde_json::{Value, json};

/// Prices are whole numbers around this one, so that the sides do not cross.
const MIDDLE: u64 = 100_000;

/// A book, and the id of its last change.
#[derive(Clone, Debug, Default)]
pub struct BinanceBook {
    /// Bids and asks by their distance from the middle, which is at least one.
    sides: [BTreeMap<u64, u64>; 2],
    pub update_id: u64,
}

impl BinanceBook {
    /// Creates a book with so many levels on each side.
    pub fn new(levels: u64) -> BinanceBook {
        let side: BTreeMap<u64, u64> = (1..=levels).map(|distance| (distance, 10)).collect();
        BinanceBook { sides: [side.clone(), side], update_id: 1_000 }
    }

    fn price(side: usize, distance: u64) -> u64 {
        if side == 0 { MIDDLE - distance } else { MIDDLE + distance }
    }

    /// Changes the levels up to this distance so many times, and returns the data of the event.
    pub fn change(&mut self, dice: &mut Rng, count: u64, distance_max: u64) -> String {
        let first = self.update_id + 1;
        let mut changed: [BTreeMap<u64, u64>; 2] = Default::default();
        for _ in 0..count {
            self.update_id += 1;
            let side = dice.index(2);
            let distance = 1 + dice.below(distance_max);
            let size = if dice.below(3) == 0 { 0 } else { 1 + dice.below(99) };
            self.set(side, distance, size);
            changed[side].insert(distance, size);
        }
        self.event(first, &changed)
    }

    /// Removes the best levels of both sides, so many of each, and returns the data of the event.
    pub fn remove_best(&mut self, count: usize) -> String {
        self.update_id += 1;
        let removed = [0, 1].map(|side| {
            let best: Vec<u64> = self.sides[side].keys().take(count).copied().collect();
            best.iter().for_each(|distance| self.set(side, *distance, 0));
            best.into_iter().map(|distance| (distance, 0)).collect()
        });
        self.event(self.update_id, &removed)
    }

    fn event(&self, first: u64, changed: &[BTreeMap<u64, u64>; 2]) -> String {
        let [bids, asks] = [0, 1].map(|side| rows(side, changed[side].iter()));
        json!({"e": "depthUpdate", "U": first, "u": self.update_id, "b": bids, "a": asks}).to_string()
    }

    fn set(&mut self, side: usize, distance: u64, size: u64) {
        match size {
            0 => drop(self.sides[side].remove(&distance)),
            _ => drop(self.sides[side].insert(distance, size)),
        }
    }

    /// Returns the result of `depth`.
    pub fn snapshot(&self, limit: usize) -> Value {
        let [bids, asks] = [0, 1].map(|side| rows(side, self.sides[side].iter().take(limit)));
        json!({"lastUpdateId": self.update_id, "bids": bids, "asks": asks})
    }

    /// Returns the best levels of a side, as `size@price`.
    pub fn best(&self, side: usize, count: usize) -> Vec<String> {
        let levels = self.sides[side].iter().take(count);
        levels.map(|(distance, size)| format!("{size}@{}", BinanceBook::price(side, *distance))).collect()
    }
}

fn rows<'a>(side: usize, levels: impl Iterator<Item = (&'a u64, &'a u64)>) -> Vec<Value> {
    let row = |(distance, size): (&u64, &u64)| {
        json!([format!("{}.00", BinanceBook::price(side, *distance)), format!("{size}.000")])
    };
    levels.map(row).collect()
}
