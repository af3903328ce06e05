//! The ids that a desk has generated or received, each with the order it belongs to.

use crate::id::IntId;
use crate::index::index_u32;
use crate::keyed_index::IdIndex;
use crate::pages::LargePages;

/// No entry.
pub(super) const NIL: u32 = u32::MAX;

/// One id within its session. It fills one cache line, like the slot that leads to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub id: IntId,
    pub session: u16,
    /// Used, so that it cannot be used again, but not a name of the order: the id of a cancel or of
    /// a refused modification.
    pub spent: bool,
    /// Number of the order's entry.
    pub order: u32,
    /// Next newer name of the order. In a free place: the next free place.
    pub next: u32,
}

const _: () = assert!(size_of::<Name>() <= 64, "a name has one cache line");

/// A slab of names and the index into it. All memory is reserved at the start.
#[derive(Debug)]
pub(super) struct NameTable {
    index: IdIndex,
    slab: Vec<Name>,
    max: u32,
    free: u32,
}

impl NameTable {
    pub(super) fn new(max: u32, seed: u64, pages: LargePages) -> NameTable {
        let index = IdIndex::new(max, seed, pages);
        NameTable { index, slab: pages.table(max as usize), max, free: NIL }
    }

    pub(super) fn find(&self, session: u16, id: &IntId) -> Option<u32> {
        self.index.get(session, id, |number| {
            let name = &self.slab[number as usize];
            name.session == session && name.id == *id
        })
    }

    pub(super) fn prefetch(&self, session: u16, id: &IntId) {
        self.index.prefetch(session, id);
    }

    pub(super) fn has_room(&self) -> bool {
        !self.index.is_full()
    }

    /// Adds a new name. The caller has checked that it is new and that there is room.
    pub(super) fn add(&mut self, name: Name) -> u32 {
        let number = if self.free == NIL {
            assert!(index_u32(self.slab.len()) < self.max, "the caller checks for room first");
            self.slab.push(name);
            index_u32(self.slab.len() - 1)
        } else {
            let number = self.free;
            self.free = std::mem::replace(&mut self.slab[number as usize], name).next;
            number
        };
        self.index.insert(name.session, &name.id, number);
        number
    }

    /// Removes a name and returns the next name of its order.
    pub(super) fn remove(&mut self, number: u32) -> u32 {
        let name = self.slab[number as usize];
        assert!(self.index.remove(name.session, &name.id, number), "a name in use is in the index");
        self.slab[number as usize].next = self.free;
        self.free = number;
        name.next
    }

    pub(super) fn at(&self, number: u32) -> &Name {
        &self.slab[number as usize]
    }

    pub(super) fn at_mut(&mut self, number: u32) -> &mut Name {
        &mut self.slab[number as usize]
    }
}
