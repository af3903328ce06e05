//! A rendered list, valid for as long as nothing has happened that could have changed it. A client
//! that polls while nothing happens costs no more than the bytes.

use std::cell::RefCell;

use bytes::Bytes;

/// The inputs of such a list: the events of the shards, the names of sessions, the reference data.
/// If one of them has changed, the list may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub events: u64,
    pub names: u64,
    pub reference: u64,
}

/// One list, whose length the caller bounds.
#[derive(Debug, Default)]
pub struct CachedList(RefCell<Option<(Version, Bytes)>>);

impl CachedList {
    pub fn get(&self, version: Version, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut kept = self.0.borrow_mut();
        match &*kept {
            Some((made, bytes)) if *made == version => bytes.clone(),
            Some(_) | None => kept.insert((version, make())).1.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_rendered_again_when_one_of_its_inputs_has_changed() {
        let kept = CachedList::default();
        let first = Version { events: 1, names: 1, reference: 1 };
        assert_eq!(kept.get(first, || "a".into()), "a");
        assert_eq!(kept.get(first, || unreachable!("nothing has happened")), "a");
        let others = [
            Version { events: 2, ..first },
            Version { names: 2, ..first },
            Version { reference: 2, ..first },
        ];
        for (other, text) in others.into_iter().zip(["b", "c", "d"]) {
            assert_eq!(kept.get(other, || text.into()), text);
        }
    }
}
