//! Seeded pseudo-random numbers: xoshiro256**, and the few distributions that a workload needs.

use pitlane_engine::index::{index_u8, index_u32, index_usize};

use crate::convert::whole;

#[derive(Clone, Debug)]
pub struct Xoshiro256 {
    state: [u64; 4],
}

impl Xoshiro256 {
    /// Creates a generator whose state is filled by SplitMix64, as the authors of xoshiro advise.
    pub fn seeded(mut seed: u64) -> Xoshiro256 {
        let state = std::array::from_fn(|_| {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = seed;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        });
        Xoshiro256 { state }
    }

    pub fn draw(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a number from 0 to `n` - 1, evenly distributed; the bias of 2^-64 × n does not
    /// matter here.
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.draw() as u128 * n as u128) >> 64) as u64
    }

    /// Returns an index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        index_usize(self.below(len as u64))
    }

    pub fn byte(&mut self) -> u8 {
        index_u8(self.index(256))
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns the whole part of an exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> i32 {
        i32::try_from(whole(-mean * (1.0 - self.unit()).ln())).unwrap_or(i32::MAX)
    }
}

/// Zipf(1): the n-th item is drawn with a weight of 1/n.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Cumulative weights, up to and including each item.
    sums: Vec<f64>,
}

impl Zipf {
    pub fn over(count: u32) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Zipf { sums: sums.collect() }
    }

    /// Returns a number from 0 to count - 1; 0 is the most frequent.
    pub fn draw(&self, rng: &mut Xoshiro256) -> u32 {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let point = rng.unit() * total;
        index_u32(self.sums.partition_point(|&sum| sum <= point).min(self.sums.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_gives_the_published_sequence() {
        let mut rng = Xoshiro256 { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.draw()).collect();
        assert_eq!(first, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn draws_have_the_requested_means() {
        let mut rng = Xoshiro256::seeded(1);
        let mean = (0..100_000).map(|_| rng.exponential(12.0) as f64).sum::<f64>() / 100_000.0;
        assert!((11.3..11.7).contains(&mean), "whole parts lie half a tick lower: {mean}");
        let zipf = Zipf::over(100);
        let firsts = (0..100_000).filter(|_| zipf.draw(&mut rng) == 0).count();
        assert!((18_900..19_700).contains(&firsts), "1 / H(100) is 19.3 %: {firsts}");
        assert!((0..1_000).all(|_| zipf.draw(&mut rng) < 100 && rng.below(7) < 7));
    }
}
