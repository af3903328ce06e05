//! Slots by order id. The arena numbers its orders from 1, so a plain table serves them; other ids
//! are in a map.

use std::collections::HashMap;

use crate::PAGES;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// Ids of the table from the start: those of a run of the arena, with as much again.
const DENSE_AT_START: usize = 1 << 21;
/// Ids that may be in the table: 256 MB at most.
const DENSE_MAX: u64 = 1 << 26;

#[derive(Debug)]
pub(crate) struct Ids {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
}

impl Ids {
    pub(crate) fn new() -> Ids {
        let mut dense = PAGES.table(DENSE_AT_START);
        dense.resize(DENSE_AT_START, NONE);
        Ids { dense, sparse: HashMap::new() }
    }

    #[inline]
    pub(crate) fn slot(&self, id: u64) -> u32 {
        match self.dense.get(id as usize) {
            Some(&slot) => slot,
            None => self.sparse.get(&id).copied().unwrap_or(NONE),
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, id: u64, slot: u32) {
        match self.dense.get_mut(id as usize) {
            Some(place) => *place = slot,
            None => self.set_new(id, slot),
        }
    }

    #[cold]
    fn set_new(&mut self, id: u64, slot: u32) {
        if id < DENSE_MAX {
            self.dense.resize((id as usize + 1).next_power_of_two(), NONE);
            self.dense[id as usize] = slot;
        } else if slot == NONE {
            self.sparse.remove(&id);
        } else {
            self.sparse.insert(id, slot);
        }
    }
}
