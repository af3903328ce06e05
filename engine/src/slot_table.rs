//! What one part knows about values that another part keeps in a [`super::slot_map::SlotMap`]: a
//! table by slot, in which an outdated key finds nothing.

/// A key with a slot: a small and dense number that at most one existing value has.
pub trait HasSlot: Copy + Eq {
    fn slot(self) -> usize;
}

/// Entries by the keys of another part. The bound on its size is the number of slots there.
#[derive(Debug)]
pub struct SlotTable<K, T> {
    entries: Vec<Option<(K, T)>>,
    len: usize,
}

impl<K, T> Default for SlotTable<K, T> {
    fn default() -> SlotTable<K, T> {
        SlotTable { entries: Vec::new(), len: 0 }
    }
}

impl<K: HasSlot, T> SlotTable<K, T> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the entry of a key, and removes that of an earlier key with the same slot.
    pub fn insert(&mut self, key: K, value: T) {
        if self.entries.len() <= key.slot() {
            self.entries.resize_with(key.slot() + 1, || None);
        }
        let entry = &mut self.entries[key.slot()];
        self.len += usize::from(entry.is_none());
        *entry = Some((key, value));
    }

    #[inline]
    pub fn get(&self, key: K) -> Option<&T> {
        match self.entries.get(key.slot()) {
            Some(Some((found, value))) if *found == key => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        match self.entries.get_mut(key.slot()) {
            Some(Some((found, value))) if *found == key => Some(value),
            _ => None,
        }
    }

    pub fn remove(&mut self, key: K) -> Option<T> {
        let entry = self.entries.get_mut(key.slot())?;
        let (_, value) = entry.take_if(|(found, _)| *found == key)?;
        self.len -= 1;
        Some(value)
    }

    /// Returns all entries, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.entries.iter().flatten().map(|(key, value)| (*key, value))
    }

    /// Returns all keys, by slot. The list is a copy, so that the caller may remove entries.
    pub fn keys(&self) -> Vec<K> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot_map::{SlotKey, SlotMap};

    impl HasSlot for SlotKey {
        fn slot(self) -> usize {
            SlotKey::slot(self)
        }
    }

    #[test]
    fn an_entry_is_found_under_its_own_key_only() {
        let (mut map, mut table) = (SlotMap::new(8, u32::MAX), SlotTable::default());
        let old = map.insert(()).unwrap();
        map.remove(old);
        let (new, other) = (map.insert(()).unwrap(), map.insert(()).unwrap());
        table.insert(new, "new");
        assert_eq!((table.get(new), table.get(old), table.get(other)), (Some(&"new"), None, None));
        assert!(table.get_mut(old).is_none() && table.remove(old).is_none());
        assert_eq!((table.len(), table.is_empty()), (1, false));
        table.insert(other, "other");
        assert_eq!((table.len(), table.get_mut(other)), (2, Some(&mut "other")));
        assert_eq!(table.keys(), [new, other]);
        assert_eq!((table.remove(new), table.remove(new), table.get(new)), (Some("new"), None, None));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(other, &"other")]);
    }

    #[test]
    fn a_later_key_of_a_slot_replaces_the_earlier_one() {
        let mut table = SlotTable::default();
        table.insert(SlotKey::new(5, 1), 'a');
        table.insert(SlotKey::new(5, 2), 'b');
        assert_eq!((table.len(), table.get(SlotKey::new(5, 1))), (1, None));
        assert_eq!(table.remove(SlotKey::new(5, 2)), Some('b'));
        assert!(table.is_empty() && table.keys().is_empty());
    }
}
