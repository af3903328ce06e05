//! Walks over lists that change meanwhile: a long list is read in portions, and events are applied between them.
//!
//! A walk stands at the record it will read next, one for each list it merges. A record that leaves its list passes those who
//! stand at it on to the one behind, so that no walk is ever led astray.

use super::slab::NONE;
use crate::time::Timestamp;

/// Walks at once. Each record that leaves a list looks at all of them, so they are few.
pub const WALKS_MAX: usize = 64;

/// A walk that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk(usize);

#[derive(Debug, Default)]
pub(super) struct Walks {
    /// At most [`WALKS_MAX`]; None: free.
    under_way: Vec<Option<Standing>>,
    len: usize,
}

#[derive(Debug)]
struct Standing {
    /// The record to be read next of each list.
    places: Vec<u32>,
    /// Records submitted later are not read: a walk has an end, however many come.
    until: Timestamp,
}

impl Walks {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn begin(&mut self, places: Vec<u32>, until: Timestamp) -> Option<Walk> {
        let free = self.under_way.iter().position(Option::is_none);
        let at = free.or_else(|| {
            (self.under_way.len() < WALKS_MAX).then(|| {
                self.under_way.push(None);
                self.under_way.len() - 1
            })
        })?;
        self.under_way[at] = Some(Standing { places, until });
        self.len += 1;
        Some(Walk(at))
    }

    pub(super) fn places(&self, walk: Walk) -> Option<(&[u32], Timestamp)> {
        let standing = self.under_way.get(walk.0)?.as_ref()?;
        Some((&standing.places, standing.until))
    }

    pub(super) fn step(&mut self, walk: Walk, list: usize, next: u32) {
        if let Some(Some(standing)) = self.under_way.get_mut(walk.0) {
            standing.places[list] = next;
        }
    }

    pub(super) fn end(&mut self, walk: Walk) {
        if self.under_way.get_mut(walk.0).is_some_and(|place| place.take().is_some()) {
            self.len -= 1;
        }
    }

    /// A record leaves its list; behind it is `next`.
    pub(super) fn leave(&mut self, record: u32, next: u32) {
        assert!(record != NONE, "a record has its place");
        for standing in self.under_way.iter_mut().flatten() {
            standing.places.iter_mut().filter(|place| **place == record).for_each(|place| *place = next);
        }
    }
}
