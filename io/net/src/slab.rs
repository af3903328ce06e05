//! Connections in numbered slots. A slot is reused under a new generation, so that an old id finds
//! nothing.

use pitlane_engine::index::index_usize;

/// Identifies one connection of one thread while it exists, and nothing afterwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(u64);

impl ConnectionId {
    fn new(slot: usize, generation: u32) -> ConnectionId {
        ConnectionId(u64::from(generation) << 32 | slot as u64)
    }

    /// Returns the slot, a small and dense number: a gateway may keep its sessions in a table by
    /// slot. At most one existing connection has it.
    pub fn slot(self) -> usize {
        index_usize(self.0 & 0xffff_ffff)
    }

    /// Returns the id of the first connection in a slot, for tests of tables by slot.
    pub fn of_slot(slot: usize) -> ConnectionId {
        ConnectionId::new(slot, 1)
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[derive(Debug)]
pub(super) struct ConnectionSlab<T> {
    slots: Vec<SlabSlot<T>>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct SlabSlot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> ConnectionSlab<T> {
    pub(super) fn new() -> ConnectionSlab<T> {
        ConnectionSlab { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SlabSlot { generation: 0, value: None });
            self.slots.len() - 1
        });
        let place = &mut self.slots[slot];
        assert!(place.value.is_none(), "a free slot is empty");
        place.value = Some(value);
        ConnectionId::new(slot, place.generation)
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&T> {
        self.slots.get(id.slot()).filter(|slot| slot.generation == id.generation())?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        self.slots.get_mut(id.slot()).filter(|slot| slot.generation == id.generation())?.value.as_mut()
    }

    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<T> {
        let slot = self.slots.get_mut(id.slot()).filter(|slot| slot.generation == id.generation())?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot());
        Some(value)
    }

    /// Returns the id of the connection in a slot.
    pub(super) fn id_at(&self, slot: usize) -> Option<ConnectionId> {
        let place = self.slots.get(slot)?;
        place.value.as_ref().map(|_| ConnectionId::new(slot, place.generation))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_does_not_find_a_new_connection() {
        let mut slab = ConnectionSlab::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(first.slot(), second.slot());
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&"second")));
        assert_eq!(slab.remove(first), None);
        assert_eq!((slab.len(), slab.id_at(second.slot())), (1, Some(second)));
    }
}
