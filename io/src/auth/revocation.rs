//! Who is in the books, for whoever keeps a session open: would somebody who was let in a while ago still be? Sessions last for days, and
//! one whose login was struck off, or changed in any way, must not go on by what it once was.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::Shared;
use super::credentials::{CredentialStore, Entry};

/// Names in the books, and since which generation each means what it does: role, strategies, secret.
pub type Names = BTreeMap<Arc<str>, u64>;

/// A thread's view of the books.
#[derive(Debug)]
pub struct RevocationWatch {
    shared: Arc<Shared>,
    /// Where nobody must log in, nobody is in the books, and nobody is struck off.
    is_open: bool,
    seen: u64,
}

impl RevocationWatch {
    pub(super) fn new(shared: Arc<Shared>, is_open: bool) -> RevocationWatch {
        let seen = shared.generation.load(Ordering::Acquire);
        RevocationWatch { shared, is_open, seen }
    }

    /// Of the books in force. To be asked before the question whether somebody may come in.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Whether the books are others than at the last look.
    pub fn has_changed(&mut self) -> bool {
        let generation = self.generation();
        std::mem::replace(&mut self.seen, generation) != generation
    }

    /// Whether somebody who was let in by the books of a generation is not in those of today, or is another.
    pub fn is_revoked(&self, name: &str, generation: u64) -> bool {
        let names = self.shared.names.read().unwrap_or_else(PoisonError::into_inner).clone();
        !self.is_open && names.get(name).is_none_or(|since| *since > generation)
    }
}

/// The names of new books. Who is in them as before keeps his generation.
pub fn names(
    old: [&CredentialStore; 2],
    known: &Names,
    new: [&CredentialStore; 2],
    generation: u64,
) -> Names {
    let (old, new) = (old.map(by_name), new.map(by_name));
    let is_same = |name: &str| {
        let same = |at: usize| match (old[at].get(name), new[at].get(name)) {
            (Some(old), Some(new)) => old.identity == new.identity && old.proof == new.proof,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same(0) && same(1)
    };
    let since = |name: &str| known.get(name).copied().filter(|_| is_same(name)).unwrap_or(generation);
    let all = new.iter().flat_map(|book| book.values());
    all.map(|entry| (entry.identity.name.clone(), since(&entry.identity.name))).collect()
}

fn by_name(book: &CredentialStore) -> BTreeMap<&str, &Entry> {
    book.entries.iter().map(|entry| (&*entry.identity.name, entry)).collect()
}
