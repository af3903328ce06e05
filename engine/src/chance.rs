//! Chance from a seed: xoshiro256**, its state filled by SplitMix64 (Blackman and Vigna). The same seed, the same numbers,
//! on every machine. Not for secrets.

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    /// Never all zero: SplitMix64 gives four zeros for no seed.
    state: [u64; 4],
}

impl Chance {
    pub fn new(seed: u64) -> Chance {
        let mut x = seed;
        let state = std::array::from_fn(|_| split_mix(&mut x));
        Chance { state }
    }

    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `n`, which is above zero. Every number is as likely as the others but for one part in 2⁶⁴ / n.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "there is no number below zero");
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }
}

fn split_mix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference_implementation() {
        // SplitMix64 from 0, as published with the algorithm.
        let mut x = 0;
        assert_eq!(split_mix(&mut x), 0xe220_a839_7b1d_cdaf);
        assert_eq!(split_mix(&mut x), 0x6e78_9e6a_a1b9_65f4);
        // xoshiro256** from the state 1, 2, 3, 4: the vectors of the Rust `rand` project.
        let mut chance = Chance { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..5).map(|_| chance.next_u64()).collect();
        assert_eq!(first, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240, 1_216_172_134_540_287_360]);
    }

    #[test]
    fn a_seed_is_a_stream_and_every_number_below_n_comes() {
        let mut chance = Chance::new(7);
        assert_eq!(chance.clone().next_u64(), Chance::new(7).next_u64());
        assert_ne!(chance.clone().next_u64(), Chance::new(8).next_u64());
        let mut seen = [0; 6];
        (0..6_000).for_each(|_| seen[chance.below(6) as usize] += 1);
        assert!(seen.iter().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
        assert_eq!(chance.below(1), 0);
    }
}
