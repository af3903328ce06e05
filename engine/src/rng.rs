//! A reproducible random number generator (xoshiro256**, seeded by SplitMix64). It is not
//! cryptographic: nothing secret may depend on it.

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem};
use crate::index::{index_u8, index_usize};

/// One stream. Equal seeds give equal numbers, on every machine and in every version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut walk = seed;
        // SplitMix64 never gives four zeros in a row, the one state in which the stream would not
        // move.
        Rng { state: std::array::from_fn(|_| split_mix(&mut walk)) }
    }

    /// Creates a separate stream for each pair of seed and name: close names give unrelated
    /// streams.
    pub fn named(seed: u64, name: u64) -> Rng {
        Rng::new(seed ^ mix(name))
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a number below `n`; zero if `n` is zero. It draws once each time, so that streams
    /// stay in step; its bias is below n / 2⁶⁴.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }

    /// Returns an index below `len`; zero if `len` is zero. It draws once each time.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        index_usize(self.below(len as u64))
    }

    /// Returns any byte.
    pub fn byte(&mut self) -> u8 {
        index_u8(self.index(256))
    }
}

impl Codec for Rng {
    fn encode(&self, out: &mut impl ByteSink) {
        self.state.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Rng, DecodeError> {
        let state = Codec::decode(from)?;
        from.check(state != [0; 4], DecodeProblem::Value)?;
        Ok(Rng { state })
    }
}

/// Scales a random number to one below `n`; zero if `n` is zero.
#[inline]
pub(crate) fn below(drawn: u64, n: u64) -> u64 {
    ((drawn as u128 * n as u128) >> 64) as u64
}

/// Returns the first number that SplitMix64 derives from a seed: close seeds give unrelated
/// numbers.
#[inline]
pub(crate) fn mix(seed: u64) -> u64 {
    split_mix(&mut { seed })
}

/// SplitMix64: derives any number of keys from one seed.
pub(crate) fn split_mix(walk: &mut u64) -> u64 {
    *walk = walk.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *walk;
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first numbers of the reference implementation from the state 1, 2, 3, 4.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..10).map(|_| rng.next_u64()).collect();
        let expected = [
            11_520,
            0,
            1_509_978_240,
            1_215_971_899_390_074_240,
            1_216_172_134_540_287_360,
            607_988_272_756_665_600,
            16_172_922_978_634_559_625,
            8_476_171_486_693_032_832,
            10_595_114_339_597_558_777,
            2_904_607_092_377_533_576,
        ];
        assert_eq!(first, expected);
    }

    #[test]
    fn the_seeding_is_the_published_one() {
        let mut walk = 1234567;
        let first: Vec<u64> = (0..3).map(|_| split_mix(&mut walk)).collect();
        assert_eq!(first, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn equal_seeds_give_equal_streams_and_others_do_not() {
        let draw = |mut rng: Rng| (0..8).map(|_| rng.next_u64()).collect::<Vec<_>>();
        assert_eq!(draw(Rng::named(1, 7)), draw(Rng::named(1, 7)));
        let seeds_and_names =
            [0, 1, 2, u64::MAX].into_iter().flat_map(|seed| [7, 8].map(|name| (seed, name)));
        let streams: std::collections::BTreeSet<_> =
            seeds_and_names.map(|(seed, name)| draw(Rng::named(seed, name))).collect();
        assert_eq!(streams.len(), 8);
    }

    #[test]
    fn a_number_below_n_is_below_n_and_every_one_comes() {
        let mut rng = Rng::new(5);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[rng.index(10)] += 1;
        }
        assert!(seen.iter().all(|&times| (800..1200).contains(&times)), "{seen:?}");
        assert_eq!((rng.below(0), rng.index(0)), (0, 0));
        let bytes: std::collections::BTreeSet<u8> = (0..10_000).map(|_| rng.byte()).collect();
        assert_eq!(bytes.len(), 256, "every byte comes");
        assert_eq!(rng.below(1), 0);
    }
}
