//! The price levels of all ladders, in pages that never move.
//!
//! ```text
//! directory of a ladder         pages of all ladders
//! ┌───┬───┬───┬─ ─┬───┐         ┌────────────────────┐
//! │ ▪ │   │ ▪ │   │   │ ──────► │ 128 adjacent prices│   a bit for each price with an order
//! └───┴───┴───┴─ ─┴───┘         └────────────────────┘
//!   a bit for each page           free pages: no order, in no directory
//! ```
//!
//! A page has the levels of 128 adjacent ranks. The number of a page is its ranks divided by 128,
//! and the lowest bits of that number select its place in the directory of the ladder, wherever the
//! market is. So a level is found with two reads, and a market that moves attaches pages in front
//! of it and releases empty pages behind it: no level is copied.
//!
//! Memory is bounded: each ladder may have one page, and all together [`SPARE_PAGES_MAX`] more. A
//! level that gets no page, because none is left or because another page has its place in the
//! directory, is a *far level* in a map: slower, but as small as an order.

use std::collections::BTreeMap;

use crate::index::index_u32;
use crate::order_nodes::NodeQueue;
use crate::pages::LargePages;
use crate::prefetch::fetch;

/// Levels of a page. With its bits a page takes 2 KB, half a page of memory.
pub(crate) const PAGE_LEVELS: usize = 128;
/// Pages of a directory: a ladder spans 16,384 ticks before two pages want the same place.
pub(crate) const DIRECTORY_PAGES: usize = 128;
/// Pages that all ladders together may have beyond one for each: 16 MB, however far apart orders
/// are. That is enough for 128 ladders of 64 pages.
pub(crate) const SPARE_PAGES_MAX: usize = 8_192;

/// Bits of a rank that are its level in its page.
const LEVEL_BITS: u32 = PAGE_LEVELS.ilog2();
const LEVEL_MASK: i64 = PAGE_LEVELS as i64 - 1;
/// Bits of a page's number that are its place in a directory.
const PLACE_MASK: i64 = DIRECTORY_PAGES as i64 - 1;
const WORD_BITS: u32 = u64::BITS;

const _: () = assert!(PAGE_LEVELS == 2 * WORD_BITS as usize, "a bit for each level");
const _: () = assert!(DIRECTORY_PAGES == u128::BITS as usize, "a bit for each page");
const _: () = assert!(size_of::<PriceLevel>() == 16, "four levels share a cache line");
const _: () = assert!(size_of::<PageEntry>() == 8, "eight entries share a cache line");

/// The orders of one price. Without orders the quantity is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PriceLevel {
    pub queue: NodeQueue,
    /// Sum over the queue. It always fits, because an order that would make it too large is
    /// refused.
    pub qty: i64,
}

/// Levels without a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct FarLevels {
    pub levels: BTreeMap<i64, PriceLevel>,
    /// Accesses to far levels since a page was last evicted.
    pub strays: u32,
}

/// A place in a directory. The number of a free place selects another place, so no page has it.
#[derive(Clone, Copy, Debug)]
struct PageEntry {
    number: i32,
    page: u32,
}

/// Invariants: a rank of an attached page has no far level. An attached page has an order, except
/// that an empty ladder may keep one page. A free page has no order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelPages {
    levels: Vec<[PriceLevel; PAGE_LEVELS]>,
    /// By page: one bit for each level, set exactly if it has an order.
    occupied: Vec<[u64; 2]>,
    free: Vec<u32>,
    /// By directory: its entries, one bit for each that has a page, and the far levels.
    directories: Vec<[PageEntry; DIRECTORY_PAGES]>,
    attached: Vec<u128>,
    far: Vec<FarLevels>,
}

impl LevelPages {
    /// Reserves room for this many ladders in all, and for every page that they may have.
    pub(crate) fn reserve(&mut self, ladders: usize, pages: LargePages) {
        let page_count = ladders + SPARE_PAGES_MAX;
        pages.enlarge(&mut self.levels, page_count);
        self.occupied.reserve(page_count.saturating_sub(self.occupied.len()));
        self.free.reserve(page_count.saturating_sub(self.free.len()));
        pages.enlarge(&mut self.directories, ladders);
        self.attached.reserve(ladders.saturating_sub(self.attached.len()));
        self.far.reserve(ladders.saturating_sub(self.far.len()));
    }

    /// Adds a directory without pages and returns its index.
    pub(crate) fn add_directory(&mut self) -> u32 {
        self.directories.push(std::array::from_fn(free_entry));
        self.attached.push(0);
        self.far.push(FarLevels::default());
        u32::try_from(self.directories.len() - 1).expect("two ladders for each security, twice")
    }

    /// Returns the page of a rank, if it has one.
    #[inline]
    pub(crate) fn find(&self, directory: u32, rank: i64) -> Option<u32> {
        let number = rank >> LEVEL_BITS;
        let entry = self.directories.get(directory as usize)?[place(number)];
        (entry.number as i64 == number).then_some(entry.page)
    }

    #[inline]
    pub(crate) fn level(&self, page: u32, rank: i64) -> &PriceLevel {
        &self.levels[page as usize][(rank & LEVEL_MASK) as usize]
    }

    #[inline]
    pub(crate) fn level_mut(&mut self, page: u32, rank: i64) -> &mut PriceLevel {
        &mut self.levels[page as usize][(rank & LEVEL_MASK) as usize]
    }

    /// Prefetches the memory of a level.
    #[inline]
    pub(crate) fn fetch(&self, directory: u32, rank: i64) {
        if let Some(page) = self.find(directory, rank) {
            fetch(self.level(page, rank));
        }
    }

    /// Marks a level as occupied.
    #[inline]
    pub(crate) fn occupy(&mut self, page: u32, rank: i64) {
        self.occupied[page as usize][word(rank)] |= bit(rank);
    }

    /// Marks a level as free. Returns the bits of its page: of its own word, from the register in
    /// which they were cleared, and of the other word.
    #[inline]
    pub(crate) fn vacate(&mut self, page: u32, rank: i64) -> (u64, u64) {
        let words = &mut self.occupied[page as usize];
        let own = words[word(rank)] & !bit(rank);
        words[word(rank)] = own;
        (own, words[1 - word(rank)])
    }

    /// Returns the first occupied rank of a page at or behind a rank of it.
    #[inline]
    pub(crate) fn occupied_in(&self, page: u32, rank: i64) -> Option<i64> {
        let words = self.occupied[page as usize];
        let own = words[word(rank)] & u64::MAX << (rank & (WORD_BITS as i64 - 1));
        if own != 0 {
            return Some(first_of(rank, own));
        }
        let behind = words[1];
        (word(rank) == 0 && behind != 0).then(|| first_of(rank + WORD_BITS as i64, behind))
    }

    /// Returns the first occupied rank of the pages behind the one of this rank.
    pub(crate) fn occupied_behind(&self, directory: u32, rank: i64) -> Option<i64> {
        let number = (rank >> LEVEL_BITS).max(i32::MIN as i64 - 1);
        let entries = self.directories.get(directory as usize)?;
        // Rotated so that the next page is first: pages within the reach of the directory come in
        // their order, and before all others.
        let first = place(number + 1);
        let mut bits = self.attached[directory as usize].rotate_right(index_u32(first));
        let mut beyond: Option<PageEntry> = None;
        while bits != 0 {
            let distance = bits.trailing_zeros();
            bits &= bits - 1;
            let entry = entries[(first + distance as usize) % DIRECTORY_PAGES];
            if entry.number as i64 == number + 1 + distance as i64 {
                return self.first_in(entry);
            }
            let is_next = beyond.is_none_or(|next| entry.number < next.number);
            if entry.number as i64 > number && is_next {
                beyond = Some(entry);
            }
        }
        self.first_in(beyond?)
    }

    /// Returns the first occupied rank of a page.
    fn first_in(&self, entry: PageEntry) -> Option<i64> {
        self.occupied_in(entry.page, (entry.number as i64) << LEVEL_BITS)
    }

    #[inline]
    pub(crate) fn far(&self, directory: u32) -> Option<&FarLevels> {
        self.far.get(directory as usize)
    }

    #[inline]
    pub(crate) fn far_mut(&mut self, directory: u32) -> &mut FarLevels {
        &mut self.far[directory as usize]
    }

    /// Returns a page to the free ones if none of its levels is occupied.
    #[inline(never)]
    pub(crate) fn release(&mut self, directory: u32, rank: i64) {
        let at = place(rank >> LEVEL_BITS);
        let entry = &mut self.directories[directory as usize][at];
        let page = std::mem::replace(entry, free_entry(at)).page;
        self.attached[directory as usize] &= !(1 << at);
        debug_assert!(self.occupied[page as usize] == [0; 2], "a free page has no order");
        self.free.push(page);
    }

    /// Releases the page that an empty ladder has kept.
    pub(crate) fn release_kept(&mut self, directory: u32) {
        let attached = self.attached[directory as usize];
        if attached != 0 {
            let entry = self.directories[directory as usize][attached.trailing_zeros() as usize];
            self.release(directory, (entry.number as i64) << LEVEL_BITS);
        }
    }

    /// Attaches a page for a rank that has none, and moves the far levels of the page there.
    /// Returns false if there is none to be had: then the rank needs a far level.
    ///
    /// If another page has the place in the directory, the one that is nearer to `best` gets it.
    /// The other's levels become far levels, once enough accesses to far levels have paid for that:
    /// `moves_per_stray` levels for each.
    pub(crate) fn attach(&mut self, directory: u32, rank: i64, best: i64, moves_per_stray: u32) -> bool {
        let Ok(number) = i32::try_from(rank >> LEVEL_BITS) else { return false };
        let (at, ladder) = (place(number as i64), directory as usize);
        if self.attached[ladder] & 1 << at != 0 {
            let holder = self.directories[ladder][at];
            let market = best >> LEVEL_BITS;
            let is_nearer = market.abs_diff(number as i64) < market.abs_diff(holder.number as i64);
            let far = &self.far[ladder];
            let held: u32 = self.occupied[holder.page as usize].iter().map(|word| word.count_ones()).sum();
            let moved = held + index_u32(far.levels.len().min(PAGE_LEVELS));
            if !is_nearer || far.strays.saturating_mul(moves_per_stray) < moved {
                return false;
            }
            self.evict(directory, holder);
        }
        let Some(page) = self.take_page() else { return false };
        self.directories[ladder][at] = PageEntry { number, page };
        self.attached[ladder] |= 1 << at;
        self.carry_in(directory, number as i64, page);
        true
    }

    fn take_page(&mut self) -> Option<u32> {
        if let Some(page) = self.free.pop() {
            return Some(page);
        }
        if self.levels.len() >= self.directories.len() + SPARE_PAGES_MAX {
            return None;
        }
        self.levels.push([PriceLevel::default(); PAGE_LEVELS]);
        self.occupied.push([0; 2]);
        Some(index_u32(self.levels.len() - 1))
    }

    /// Makes far levels of the levels of a page, and releases it.
    fn evict(&mut self, directory: u32, entry: PageEntry) {
        let start = (entry.number as i64) << LEVEL_BITS;
        while let Some(rank) = self.occupied_in(entry.page, start) {
            let level = std::mem::take(self.level_mut(entry.page, rank));
            self.vacate(entry.page, rank);
            self.far[directory as usize].levels.insert(rank, level);
        }
        self.far[directory as usize].strays = 0;
        self.release(directory, start);
    }

    /// Moves the far levels of a page there.
    fn carry_in(&mut self, directory: u32, number: i64, page: u32) {
        let (start, far) = (number << LEVEL_BITS, directory as usize);
        while let Some((&rank, &level)) = self.far[far].levels.range(start..=start + LEVEL_MASK).next() {
            self.far[far].levels.remove(&rank);
            *self.level_mut(page, rank) = level;
            self.occupy(page, rank);
        }
    }

    /// Returns the number of pages that were ever in use, for tests of the bound.
    #[cfg(test)]
    pub(crate) fn page_count(&self) -> usize {
        self.levels.len()
    }

    /// Returns the number of free pages.
    #[cfg(test)]
    pub(crate) fn free_count(&self) -> usize {
        self.free.len()
    }
}

/// Returns the entry of a place without a page.
fn free_entry(at: usize) -> PageEntry {
    PageEntry { number: !(index_u32(at).cast_signed()), page: u32::MAX }
}

/// Returns the place of a page in its directory.
#[inline]
fn place(number: i64) -> usize {
    (number & PLACE_MASK) as usize
}

/// Returns which word of its page has the bit of a rank.
#[inline]
fn word(rank: i64) -> usize {
    (rank >> WORD_BITS.ilog2() & 1) as usize
}

#[inline]
fn bit(rank: i64) -> u64 {
    1 << (rank & (WORD_BITS as i64 - 1))
}

/// Returns the rank of the first bit of the word that has the bit of this rank.
#[inline]
pub(crate) fn first_of(rank: i64, word: u64) -> i64 {
    (rank & -(WORD_BITS as i64)) | word.trailing_zeros() as i64
}
