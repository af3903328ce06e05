//! Numbered places for values. A value never moves: its table grows by pages, so no insertion pays
//! for all the others.
//!
//! [`Places`] gives the numbers, and each [`PagedTable`] has a value at every one of them. Values
//! that come and go together share their numbers.

use std::ops::{Index, IndexMut};

use crate::pages::LargePages;

/// No place.
pub(super) const NONE: u32 = u32::MAX;

/// Values in a page. It has some megabytes, so that large pages of the system fit into it; what was
/// never written takes no memory.
const PAGE: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 17;

/// Values at the beginning of a table that are on small pages: a table that stays small takes
/// little memory.
pub(super) const SMALL: usize = 1 << 14;

/// The numbers in use.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Below it all are in use or free.
    end: u32,
    free: Vec<u32>,
}

impl Places {
    /// Takes a free number, or the one after the highest.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            return place;
        }
        assert!(self.end < NONE, "places are counted in 32 bits");
        self.end += 1;
        self.end - 1
    }

    /// Frees a number; the values there are no longer used.
    pub(super) fn give(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Returns how many numbers are in use.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end as usize - self.free.len()
    }
}

#[derive(Debug)]
pub(super) struct PagedTable<T> {
    /// All are full except the last.
    pages: Vec<Vec<T>>,
    large: LargePages,
}

impl<T> PagedTable<T> {
    pub(super) fn new(large: LargePages) -> PagedTable<T> {
        PagedTable { pages: Vec::new(), large }
    }

    /// Sets the value at a number: one that was set before, or the next.
    #[inline]
    pub(super) fn put(&mut self, place: u32, value: T) {
        let page = match self.pages.get_mut((place >> PAGE_BITS) as usize) {
            Some(page) => page,
            None => self.add_page(),
        };
        match page.get_mut(place as usize % PAGE) {
            Some(old) => *old = value,
            None => page.push(value),
        }
    }

    #[cold]
    fn add_page(&mut self) -> &mut Vec<T> {
        let small = if self.pages.is_empty() { SMALL } else { 0 };
        self.pages.push_mut(self.large.table_with_small(PAGE, small))
    }
}

impl<T> Index<u32> for PagedTable<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.pages[(place >> PAGE_BITS) as usize][place as usize % PAGE]
    }
}

impl<T> IndexMut<u32> for PagedTable<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.pages[(place >> PAGE_BITS) as usize][place as usize % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::index_u32;

    #[test]
    fn places_are_used_again_and_nothing_else_is_touched() {
        let (mut places, mut table) = (Places::default(), PagedTable::new(LargePages::NONE));
        let mut insert = |places: &mut Places, value: u32| {
            let place = places.take();
            table.put(place, value);
            place
        };
        let count = index_u32(2 * PAGE + 5);
        let taken: Vec<u32> = (0..count).map(|value| insert(&mut places, value)).collect();
        assert!(taken.iter().copied().eq(0..count));
        places.give(7);
        places.give(2_000);
        assert_eq!(places.len(), 2 * PAGE + 3);
        assert_eq!((insert(&mut places, 1), insert(&mut places, 2)), (2_000, 7));
        assert_eq!(insert(&mut places, 3), count);
        table[8] += 1;
        assert_eq!([7, 8, 9, 2_000, count - 1, count].map(|place| table[place]), [2, 9, 9, 1, count - 1, 3]);
        assert_eq!((places.len(), Places::default().len()), (2 * PAGE + 6, 0));
    }
}
