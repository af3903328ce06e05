//! A bounded table that evicts the entry with the oldest write.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::time::Timestamp;

#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    len_max: usize,
    entries: BTreeMap<K, (Timestamp, V)>,
    /// The keys, ordered by the time of their write.
    by_time: BTreeSet<(Timestamp, K)>,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    pub(crate) fn new(len_max: usize) -> Recent<K, V> {
        Recent { len_max, entries: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// Returns the value and the time of its write.
    pub(crate) fn get(&self, key: &K) -> Option<(Timestamp, &V)> {
        self.entries.get(key).map(|(written, value)| (*written, value))
    }

    /// Returns the value without changing the time of its write.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(_, value)| value)
    }

    /// Writes a value as the newest.
    pub(crate) fn put(&mut self, now: Timestamp, key: K, value: V) {
        self.remove(&key);
        if self.entries.len() == self.len_max
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.by_time.insert((now, key.clone()));
        self.entries.insert(key, (now, value));
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<(Timestamp, V)> {
        let (written, value) = self.entries.remove(key)?;
        self.by_time.remove(&(written, key.clone()));
        Some((written, value))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.by_time.len());
        self.entries.len()
    }
}
