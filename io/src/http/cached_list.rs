//! A list as it was last made, for as long as nothing has happened that could have changed it. Who asks again and again while nothing
//! happens costs no more than its bytes.

use std::cell::RefCell;

use bytes::Bytes;

/// What such a list is made of: the events of the shards, the names of sessions, the reference data. Where one of them has changed, the
/// list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub events: u64,
    pub names: u64,
    pub reference: u64,
}

/// One list, of a length that its maker bounds.
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
    fn a_list_is_made_again_when_anything_it_is_made_of_has_changed() {
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
