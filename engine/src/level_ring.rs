//! The levels of all ladders in one slab, so that they are on large pages, and small data that is
//! needed often is apart from large data. A ladder refers to its ring by its index and interprets
//! the content by its own rules.

use std::collections::BTreeMap;

use crate::order_nodes::NodeQueue;
use crate::pages::LargePages;
use crate::prefetch::fetch;

/// Prices in a ring: as many as a `u128` has bits. Both sides of a book are a page of memory;
/// 10,000 books take 40 MB.
pub(crate) const WINDOW: usize = 128;

/// Bits of a rank that are its place in a ring.
const PLACE_MASK: i64 = WINDOW as i64 - 1;

const _: () = assert!(WINDOW == u128::BITS as usize, "a bit for each level");
const _: () = assert!(size_of::<PriceLevel>() == 16, "four levels share a cache line");

/// The orders of one price. Without orders the quantity is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PriceLevel {
    pub queue: NodeQueue,
    /// Sum over the queue. It always fits, because an order that would make it too large is
    /// refused.
    pub qty: i64,
}

/// Levels outside a ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct FarLevels {
    pub levels: BTreeMap<i64, PriceLevel>,
    /// Accesses to far levels since the ring last moved.
    pub strays: u32,
}

/// Invariant: each ring has its levels, its bits and its far levels under the same index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rings {
    levels: Vec<[PriceLevel; WINDOW]>,
    /// One bit for each level, set exactly if it has an order. The lowest bits of a rank select its
    /// bit and its level, wherever the ring begins.
    bits: Vec<u128>,
    far: Vec<FarLevels>,
}

impl Rings {
    /// Reserves room for this many rings in all.
    pub(crate) fn reserve(&mut self, rings: usize, pages: LargePages) {
        pages.enlarge(&mut self.levels, rings);
        self.bits.reserve(rings.saturating_sub(self.bits.len()));
        self.far.reserve(rings.saturating_sub(self.far.len()));
    }

    /// Adds a ring without orders and returns its index.
    pub(crate) fn add(&mut self) -> u32 {
        self.levels.push([PriceLevel::default(); WINDOW]);
        self.bits.push(0);
        self.far.push(FarLevels::default());
        u32::try_from(self.levels.len() - 1).expect("two ladders for each security, twice")
    }

    #[inline]
    pub(crate) fn level(&self, ring: u32, rank: i64) -> &PriceLevel {
        &self.levels[ring as usize][place(rank)]
    }

    #[inline]
    pub(crate) fn level_mut(&mut self, ring: u32, rank: i64) -> &mut PriceLevel {
        &mut self.levels[ring as usize][place(rank)]
    }

    /// Prefetches the memory of a level.
    #[inline]
    pub(crate) fn fetch(&self, ring: u32, rank: i64) {
        if let Some(levels) = self.levels.get(ring as usize) {
            fetch(&levels[place(rank)]);
        }
    }

    #[inline]
    pub(crate) fn bits(&self, ring: u32) -> u128 {
        self.bits[ring as usize]
    }

    #[inline]
    pub(crate) fn set_bit(&mut self, ring: u32, rank: i64) {
        self.bits[ring as usize] |= bit(rank);
    }

    #[inline]
    pub(crate) fn clear_bit(&mut self, ring: u32, rank: i64) {
        self.bits[ring as usize] &= !bit(rank);
    }

    #[inline]
    pub(crate) fn far(&self, ring: u32) -> &FarLevels {
        &self.far[ring as usize]
    }

    #[inline]
    pub(crate) fn far_mut(&mut self, ring: u32) -> &mut FarLevels {
        &mut self.far[ring as usize]
    }

    /// Moves the start of the ring. Levels in both the old and the new window stay in place: the
    /// place of a rank never changes.
    pub(crate) fn shift(&mut self, ring: u32, old: i64, new: i64) {
        let levels = &mut self.levels[ring as usize];
        let (bits, far) = (&mut self.bits[ring as usize], &mut self.far[ring as usize].levels);
        for rank in old..old + WINDOW as i64 {
            let stays = (rank.wrapping_sub(new) as u64) < WINDOW as u64;
            if !stays && *bits & bit(rank) != 0 {
                far.insert(rank, std::mem::take(&mut levels[place(rank)]));
                *bits &= !bit(rank);
            }
        }
        while let Some((&rank, _)) = far.range(new..new + WINDOW as i64).next() {
            levels[place(rank)] = far.remove(&rank).expect("it was just seen");
            *bits |= bit(rank);
        }
    }
}

/// Returns the place of a rank's level in its ring.
#[inline]
pub(crate) fn place(rank: i64) -> usize {
    (rank & PLACE_MASK) as usize
}

#[inline]
fn bit(rank: i64) -> u128 {
    1 << place(rank)
}
