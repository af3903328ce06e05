//! Values in numbered slots. A slot is reused under another generation, so that an outdated key
//! finds nothing.
//!
//! ```text
//! insert ─► key = slot and generation ─► get, remove          remove: the slot is free for the next generation
//! ```
//!
//! Tables that other parts keep about the same keys are in [`super::slot_table`]. Two tables of
//! this crate have slots of their own, for good reasons: `orders` stores its slots and generations
//! in the journal and finds them on the hot path, and `view` grows by pages and needs no
//! generations, because its numbers never leave it.

use crate::index::index_u32;

/// Identifies one value of one map while the value exists, and nothing afterwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotKey {
    generation: u32,
    slot: u32,
}

impl SlotKey {
    /// Returns the key of a slot in a generation, for callers that transport keys in fewer bits.
    pub fn new(slot: u32, generation: u32) -> SlotKey {
        SlotKey { generation, slot }
    }

    /// Returns the slot, a small and dense number. At most one existing value has it.
    #[inline]
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// Returns the generation, at least 1.
    #[inline]
    pub fn generation(self) -> u32 {
        self.generation
    }
}

/// Values by their keys.
///
/// Invariant: `free` has exactly the slots without a value, each once.
#[derive(Debug)]
pub struct SlotMap<T> {
    slots: Vec<MapSlot<T>>,
    free: Vec<u32>,
    slots_max: u32,
    generation_max: u32,
}

#[derive(Debug)]
struct MapSlot<T> {
    /// Generation of the value, or of the next value if the slot is free.
    generation: u32,
    value: Option<T>,
}

impl<T> SlotMap<T> {
    /// Creates a map for at most `slots_max` values. Generations count from 1 to `generation_max`
    /// and begin again.
    pub fn new(slots_max: u32, generation_max: u32) -> SlotMap<T> {
        assert!(generation_max > 0, "a slot has a generation");
        SlotMap { slots: Vec::new(), free: Vec::new(), slots_max, generation_max }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_full(&self) -> bool {
        self.len() == self.slots_max as usize
    }

    /// Returns the number of slots with and without a value. All slots are below it.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Adds a value. Returns `None` if the map is full.
    pub fn insert(&mut self, value: T) -> Option<SlotKey> {
        if self.is_full() {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(MapSlot { generation: 1, value: None });
            index_u32(self.slots.len() - 1)
        });
        let place = &mut self.slots[slot as usize];
        assert!(place.value.is_none(), "a free slot is empty");
        place.value = Some(value);
        Some(SlotKey { generation: place.generation, slot })
    }

    #[inline]
    pub fn get(&self, key: SlotKey) -> Option<&T> {
        self.slots.get(key.slot()).filter(|slot| slot.generation == key.generation)?.value.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, key: SlotKey) -> Option<&mut T> {
        self.slots.get_mut(key.slot()).filter(|slot| slot.generation == key.generation)?.value.as_mut()
    }

    pub fn remove(&mut self, key: SlotKey) -> Option<T> {
        let slot = self.slots.get_mut(key.slot()).filter(|slot| slot.generation == key.generation)?;
        let value = slot.value.take()?;
        slot.generation = if slot.generation == self.generation_max { 1 } else { slot.generation + 1 };
        self.free.push(key.slot);
        Some(value)
    }

    /// Returns the key of the value in a slot.
    #[inline]
    pub fn key_at(&self, slot: usize) -> Option<SlotKey> {
        let place = self.slots.get(slot).filter(|place| place.value.is_some())?;
        Some(SlotKey { generation: place.generation, slot: index_u32(slot) })
    }

    /// Returns the value in a slot, whatever its generation: for the owner of the map, whose own
    /// lists have no outdated slots.
    #[inline]
    pub fn at(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot)?.value.as_ref()
    }

    /// Returns the value in a slot as [`SlotMap::at`] does.
    #[inline]
    pub fn at_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.slots.get_mut(slot)?.value.as_mut()
    }

    /// Returns all values, by slot.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outdated_key_does_not_find_a_new_value() {
        let mut map = SlotMap::new(8, u32::MAX);
        let first = map.insert("first").unwrap();
        assert_eq!(map.remove(first), Some("first"));
        let second = map.insert("second").unwrap();
        assert_eq!(first.slot(), second.slot());
        assert_eq!((map.get(first), map.get(second)), (None, Some(&"second")));
        assert!(map.get_mut(first).is_none() && map.remove(first).is_none());
        assert_eq!((map.len(), map.is_empty(), map.key_at(second.slot())), (1, false, Some(second)));
        assert_eq!((map.at(second.slot()), map.at(7)), (Some(&"second"), None));
    }

    #[test]
    fn a_full_map_takes_a_value_only_after_another_was_removed() {
        let mut map = SlotMap::new(3, u32::MAX);
        let keys: Vec<SlotKey> = (0..3).map(|number| map.insert(number).unwrap()).collect();
        assert_eq!((map.is_full(), map.insert(3)), (true, None));
        assert_eq!(map.remove(keys[1]), Some(1));
        let next = map.insert(4).unwrap();
        assert_eq!((next.slot(), map.slot_count()), (1, 3));
        assert_eq!(map.values_mut().map(|value| *value).collect::<Vec<_>>(), [0, 4, 2]);
        assert!(SlotMap::<u8>::new(0, 1).insert(1).is_none());
    }

    #[test]
    fn generations_begin_again_at_one() {
        let mut map = SlotMap::new(1, 3);
        let mut seen = Vec::new();
        for _ in 0..5 {
            let key = map.insert(()).unwrap();
            assert_eq!(SlotKey::new(0, key.generation()), key);
            seen.push(key.generation());
            map.remove(key);
            assert_eq!((map.key_at(0), map.at(0), map.is_empty()), (None, None, true));
        }
        assert_eq!(seen, [1, 2, 3, 1, 2]);
    }
}
