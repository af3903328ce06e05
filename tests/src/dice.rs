//! Seeded pseudo-random numbers: one stream per purpose, so that the seed defines a run.

use pitlane_engine::index::index_usize;

/// Returns the first number of SplitMix64 from a seed.
pub fn split_mix(seed: u64) -> u64 {
    Dice(seed).roll()
}

/// SplitMix64: ten lines, and good enough to choose the next action.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// Returns a number below `bound`, which is above zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        self.roll() % bound
    }

    /// Returns an index of a list of this length, which is above zero.
    pub fn index(&mut self, len: usize) -> usize {
        index_usize(self.below(len as u64))
    }

    pub fn byte(&mut self) -> u8 {
        (self.roll() & 0xff) as u8
    }

    /// Returns a number between two, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    /// Returns true in `chance` of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Returns an item of a list that is not empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.index(list.len())]
    }

    /// Returns a further stream, independent of what this one does next.
    pub fn fork(&mut self) -> Dice {
        Dice::new(self.roll())
    }
}
