//! The valid tokens by their hashes. Every thread looks them up itself, so that a token never waits
//! behind passwords.

use std::collections::BTreeMap;

use super::Identity;
use super::credentials::{CredentialStore, Proof};
use super::token::Sum;

#[derive(Debug, Default)]
pub(crate) struct Tokens(BTreeMap<Sum, Identity>);

impl Tokens {
    pub(crate) fn of(store: &CredentialStore) -> Tokens {
        let sum = |proof: &Proof| match proof {
            Proof::Token(sum) => Some(sum.clone()),
            Proof::Password(_) => None,
        };
        let tokens =
            store.entries.iter().filter_map(|entry| Some((sum(&entry.proof)?, entry.identity.clone())));
        Tokens(tokens.collect())
    }

    /// Returns the owner of this token. With a login, the token must be the one of that name.
    pub(crate) fn find(&self, login: Option<&str>, secret: &str) -> Option<&Identity> {
        // The time of the search reveals something about the hashes only, from which no token can
        // be derived.
        let identity = self.0.get(&Sum::of(secret))?;
        login.is_none_or(|name| *name == *identity.name).then_some(identity)
    }
}
