//! Numbered places for values. A value never moves: the slab grows by pages, so no insertion pays
//! for all the others.

use std::ops::{Index, IndexMut};

use crate::index::index_u32;

/// No place.
pub(super) const NONE: u32 = u32::MAX;

/// Values in a page: a page is large compared with its allocation and small compared with the
/// whole.
const PAGE: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 10;

#[derive(Debug)]
pub(super) struct PagedSlab<T> {
    /// All are full except the last.
    pages: Vec<Vec<T>>,
    /// Places to be reused.
    free: Vec<u32>,
}

impl<T> PagedSlab<T> {
    pub(super) fn new() -> PagedSlab<T> {
        PagedSlab { pages: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self[place] = value;
            return place;
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        let before = (self.pages.len() - 1) * PAGE;
        let page = self.pages.last_mut().expect("a page with room was just seen to");
        let place = before + page.len();
        assert!(place < NONE as usize, "places are counted in 32 bits");
        page.push(value);
        index_u32(place)
    }

    /// Frees a place; its content is no longer used.
    pub(super) fn remove(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        let places = self.pages.last().map_or(0, |page| (self.pages.len() - 1) * PAGE + page.len());
        places - self.free.len()
    }
}

impl<T> Index<u32> for PagedSlab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.pages[(place >> PAGE_BITS) as usize][place as usize % PAGE]
    }
}

impl<T> IndexMut<u32> for PagedSlab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.pages[(place >> PAGE_BITS) as usize][place as usize % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_nothing_else_is_touched() {
        let mut slab = PagedSlab::new();
        let places: Vec<u32> = (0..3 * PAGE as u32).map(|n| slab.insert(n)).collect();
        assert!(places.iter().all(|&place| slab[place] == place));
        slab.remove(7);
        slab.remove(2_000);
        assert_eq!(slab.len(), 3 * PAGE - 2);
        assert_eq!((slab.insert(1), slab.insert(2)), (2_000, 7));
        assert_eq!(slab.insert(3), 3 * PAGE as u32);
        slab[8] += 1;
        assert_eq!((slab[7], slab[8], slab[2_000], slab.len()), (2, 9, 1, 3 * PAGE + 1));
        assert_eq!(PagedSlab::<u8>::new().len(), 0);
    }
}
