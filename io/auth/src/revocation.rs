//! Lets threads with open sessions check whether an identity that was authenticated earlier is
//! still valid. Sessions last for days, and a session whose login was removed or changed in any way
//! must not continue with its old rights.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::AuthShared;
use super::credentials::{CredentialEntry, CredentialStore};

/// The valid names, and the generation since which role, strategies and secret of each are
/// unchanged.
pub(crate) type ValidNames = BTreeMap<Arc<str>, u64>;

/// A thread's view of the valid names.
#[derive(Debug)]
pub struct RevocationWatch {
    shared: Arc<AuthShared>,
    /// Whether no login is required. Then no name is in the files, and no session is revoked.
    is_open: bool,
    seen: u64,
}

impl RevocationWatch {
    pub(super) fn new(shared: Arc<AuthShared>, is_open: bool) -> RevocationWatch {
        let seen = shared.generation.load(Ordering::Acquire);
        RevocationWatch { shared, is_open, seen }
    }

    /// Returns the current generation of the credentials. A caller reads it before it asks for a
    /// verdict.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Returns whether the credentials have changed since the last call.
    pub fn has_changed(&mut self) -> bool {
        let generation = self.generation();
        std::mem::replace(&mut self.seen, generation) != generation
    }

    /// Returns whether an identity that was authenticated in a generation has been removed or
    /// changed since.
    pub fn is_revoked(&self, name: &str, generation: u64) -> bool {
        let names = self.shared.names.read().unwrap_or_else(PoisonError::into_inner).clone();
        !self.is_open && names.get(name).is_none_or(|since| *since > generation)
    }
}

/// Returns the names of the new credentials. An unchanged name keeps its generation.
pub(crate) fn names(
    old: [&CredentialStore; 2],
    known: &ValidNames,
    new: [&CredentialStore; 2],
    generation: u64,
) -> ValidNames {
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
    let all = new.iter().flat_map(|store| store.values());
    all.map(|entry| (entry.identity.name.clone(), since(&entry.identity.name))).collect()
}

fn by_name(store: &CredentialStore) -> BTreeMap<&str, &CredentialEntry> {
    store.entries.iter().map(|entry| (&*entry.identity.name, entry)).collect()
}
