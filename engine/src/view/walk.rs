//! Walks over lists that change meanwhile: a long list is read in portions, and events are applied
//! between them.
//!
//! A walk holds the record it will read next, one for each list it merges. When a record leaves its
//! list, walks that hold it move on to the next one, so that no walk loses its place.

use super::slab::NONE;
use crate::time::Timestamp;

/// Walks at once. Each record that leaves a list checks all of them, so they are few.
pub const WALKS_MAX: usize = 64;

/// A running walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkHandle(usize);

#[derive(Debug, Default)]
pub(super) struct Walks {
    /// At most [`WALKS_MAX`]; `None`: free.
    running: Vec<Option<WalkState>>,
    len: usize,
}

#[derive(Debug)]
struct WalkState {
    /// The record to read next in each list.
    places: Vec<u32>,
    /// Records submitted later are not read: a walk ends, however many arrive.
    until: Timestamp,
}

impl Walks {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn begin(&mut self, places: Vec<u32>, until: Timestamp) -> Option<WalkHandle> {
        let free = self.running.iter().position(Option::is_none);
        let at = free.or_else(|| {
            (self.running.len() < WALKS_MAX).then(|| {
                self.running.push(None);
                self.running.len() - 1
            })
        })?;
        self.running[at] = Some(WalkState { places, until });
        self.len += 1;
        Some(WalkHandle(at))
    }

    pub(super) fn places(&self, walk: WalkHandle) -> Option<(&[u32], Timestamp)> {
        let state = self.running.get(walk.0)?.as_ref()?;
        Some((&state.places, state.until))
    }

    pub(super) fn step(&mut self, walk: WalkHandle, list: usize, next: u32) {
        if let Some(Some(state)) = self.running.get_mut(walk.0) {
            state.places[list] = next;
        }
    }

    pub(super) fn end(&mut self, walk: WalkHandle) {
        if self.running.get_mut(walk.0).is_some_and(|place| place.take().is_some()) {
            self.len -= 1;
        }
    }

    /// Moves walks from a record that leaves its list to `next`.
    pub(super) fn leave(&mut self, record: u32, next: u32) {
        assert!(record != NONE, "a record has its place");
        for state in self.running.iter_mut().flatten() {
            state.places.iter_mut().filter(|place| **place == record).for_each(|place| *place = next);
        }
    }
}
