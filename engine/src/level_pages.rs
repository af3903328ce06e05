//! The price levels of all ladders, in pages that never move.
//!
//! ```text
//! directory of a ladder         pages of all ladders
//! ┌───┬───┬───┬─ ─┬───┐         ┌────────────────────┐
//! │ ▪ │   │ ▪ │   │   │ ──────► │ 128 adjacent prices│   a bit for each price with an order
//! └───┴───┴───┴─ ─┴───┘         └────────────────────┘
//!   a bit for each page with an order
//! ```
//!
//! A page has the levels of 128 adjacent ranks. The number of a page is its ranks divided by 128,
//! and the lowest bits of that number select its place in the directory of the ladder, wherever the
//! market is. So a level is found with two reads, and no level is copied when the market moves. A
//! page without orders stays in its place, because the next order is probably near; it gets another
//! number when the market has moved on by the reach of the directory, and another ladder when no
//! new page is left.
//!
//! Memory is bounded: there is one page for each ladder, and [`SPARE_PAGES_MAX`] more for all. A
//! level that gets no page, because all have orders or because another page with orders has its
//! place in the directory, is a *far level* in a map: slower, but as small as an order.

use std::collections::BTreeMap;

use crate::index::index_u32;
use crate::order::NIL;
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

/// Pages at which one search for a page without orders looks.
const SEARCH_MAX: usize = 64;

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

/// Where a page is.
#[derive(Clone, Copy, Debug)]
struct PageOwner {
    directory: u32,
    place: u32,
}

/// Invariants: each page is in the directory of its owner. A rank of such a page has no far level.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelPages {
    levels: Vec<[PriceLevel; PAGE_LEVELS]>,
    /// By page: one bit for each level, set exactly if it has an order.
    occupied: Vec<[u64; 2]>,
    owners: Vec<PageOwner>,
    /// The page at which the search for one without orders continues.
    hand: usize,
    /// By directory: its entries, one bit for each page with an order, and the far levels.
    directories: Vec<[PageEntry; DIRECTORY_PAGES]>,
    in_use: Vec<u128>,
    far: Vec<FarLevels>,
}

impl LevelPages {
    /// Reserves room for this many ladders in all, and for every page that they may have.
    pub(crate) fn reserve(&mut self, ladders: usize, pages: LargePages) {
        if ladders == 0 {
            return;
        }
        let page_count = ladders + SPARE_PAGES_MAX;
        pages.enlarge(&mut self.levels, page_count);
        self.occupied.reserve(page_count.saturating_sub(self.occupied.len()));
        self.owners.reserve(page_count.saturating_sub(self.owners.len()));
        pages.enlarge(&mut self.directories, ladders);
        self.in_use.reserve(ladders.saturating_sub(self.in_use.len()));
        self.far.reserve(ladders.saturating_sub(self.far.len()));
    }

    /// Adds a directory without pages and returns its index.
    pub(crate) fn add_directory(&mut self) -> u32 {
        self.directories.push(std::array::from_fn(free_entry));
        self.in_use.push(0);
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
    pub(crate) fn occupy(&mut self, directory: u32, page: u32, rank: i64) {
        let words = &mut self.occupied[page as usize];
        let before = words[0] | words[1];
        words[word(rank)] |= bit(rank);
        if before == 0 {
            self.in_use[directory as usize] |= 1 << place(rank >> LEVEL_BITS);
        }
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
        let mut bits = self.in_use[directory as usize].rotate_right(index_u32(first));
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

    /// Marks the page of a rank as one without orders.
    pub(crate) fn leave(&mut self, directory: u32, rank: i64) {
        self.in_use[directory as usize] &= !(1 << place(rank >> LEVEL_BITS));
    }

    /// Gives a page to a rank that has none, and moves the far levels of the page there. Returns
    /// false if there is none to be had: then the rank needs a far level.
    ///
    /// If another page with orders has the place in the directory, the one that is nearer to `best`
    /// gets it. The other's levels become far levels, once enough accesses to far levels have paid
    /// for that: `moves_per_stray` levels for each.
    pub(crate) fn attach(&mut self, directory: u32, rank: i64, best: i64, moves_per_stray: u32) -> bool {
        let Ok(number) = i32::try_from(rank >> LEVEL_BITS) else { return false };
        let (at, ladder) = (place(number as i64), directory as usize);
        let holder = self.directories[ladder][at];
        if self.in_use[ladder] & 1 << at != 0 {
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
        let page = match holder.page {
            NIL => self.take_page(PageOwner { directory, place: index_u32(at) }),
            page => Some(page),
        };
        let Some(page) = page else { return false };
        self.directories[ladder][at] = PageEntry { number, page };
        if !self.far[ladder].levels.is_empty() {
            self.carry_in(directory, number as i64, page);
        }
        true
    }

    /// Returns a page without orders for a new owner: a new one, or one that another owner had.
    fn take_page(&mut self, owner: PageOwner) -> Option<u32> {
        if self.levels.len() < self.directories.len() + SPARE_PAGES_MAX {
            self.levels.push([PriceLevel::default(); PAGE_LEVELS]);
            self.occupied.push([0; 2]);
            self.owners.push(owner);
            return Some(index_u32(self.levels.len() - 1));
        }
        for _ in 0..SEARCH_MAX {
            let page = self.hand;
            self.hand = (page + 1) % self.levels.len();
            if self.occupied[page] == [0; 2] {
                let PageOwner { directory, place } = std::mem::replace(&mut self.owners[page], owner);
                self.directories[directory as usize][place as usize] = free_entry(place as usize);
                return Some(index_u32(page));
            }
        }
        None
    }

    /// Makes far levels of the levels of a page.
    fn evict(&mut self, directory: u32, entry: PageEntry) {
        let start = (entry.number as i64) << LEVEL_BITS;
        while let Some(rank) = self.occupied_in(entry.page, start) {
            let level = std::mem::take(self.level_mut(entry.page, rank));
            self.vacate(entry.page, rank);
            self.far[directory as usize].levels.insert(rank, level);
        }
        self.far[directory as usize].strays = 0;
        self.leave(directory, start);
    }

    /// Moves the far levels of a page there.
    fn carry_in(&mut self, directory: u32, number: i64, page: u32) {
        let (start, far) = (number << LEVEL_BITS, directory as usize);
        while let Some((&rank, &level)) = self.far[far].levels.range(start..=start + LEVEL_MASK).next() {
            self.far[far].levels.remove(&rank);
            *self.level_mut(page, rank) = level;
            self.occupy(directory, page, rank);
        }
    }

    /// Returns the number of pages.
    #[cfg(test)]
    pub(crate) fn page_count(&self) -> usize {
        self.levels.len()
    }
}

/// Returns the entry of a place without a page.
fn free_entry(at: usize) -> PageEntry {
    PageEntry { number: !(index_u32(at).cast_signed()), page: NIL }
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
