//! A rendered list, valid for as long as nothing has happened that could have changed it. A client
//! that polls while nothing happens costs no more than the bytes.

use std::cell::RefCell;

use bytes::Bytes;

/// The inputs of such a list: the events of the shards, the names of sessions, the reference data.
/// If one of them has changed, the list may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListVersion {
    pub events: u64,
    pub names: u64,
    pub reference: u64,
}

/// One list, whose length the caller bounds.
#[derive(Debug, Default)]
pub(crate) struct CachedList(RefCell<Option<(ListVersion, Bytes)>>);

impl CachedList {
    pub(crate) fn get(&self, version: ListVersion, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut cached = self.0.borrow_mut();
        match &*cached {
            Some((version_cached, bytes)) if *version_cached == version => bytes.clone(),
            Some(_) | None => cached.insert((version, make())).1.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_rendered_again_when_one_of_its_inputs_has_changed() {
        let cached = CachedList::default();
        let first = ListVersion { events: 1, names: 1, reference: 1 };
        assert_eq!(cached.get(first, || "a".into()), "a");
        assert_eq!(cached.get(first, || unreachable!("nothing has happened")), "a");
        let others = [
            ListVersion { events: 2, ..first },
            ListVersion { names: 2, ..first },
            ListVersion { reference: 2, ..first },
        ];
        for (other, text) in others.into_iter().zip(["b", "c", "d"]) {
            assert_eq!(cached.get(other, || text.into()), text);
        }
    }
}
