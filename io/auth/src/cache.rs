//! Cache of verified credentials, so that a client that sends them with each request is recognised
//! at once.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::time::{NS_PER_S, Timestamp};
use sha2::{Digest, Sha256};

use super::{Credentials, Identity};

/// Maximum number of cached credentials per thread: more than it usually has connections.
pub(crate) const REMEMBERED_MAX: usize = 4_096;
/// Lifetime of an entry: a working day, so that a logged-in user keeps working while others guess
/// at the login from the same address. A removed user is gone at once when the files are read
/// again; this only bounds the rest.
pub(crate) const LIFETIME_NS: u64 = 12 * 3_600 * NS_PER_S;

/// A keyed hash of login and secret. The client's address is not part of it.
pub(crate) type CredentialHash = [u8; 32];

pub(crate) fn mark(key: &[u8; 32], credentials: &Credentials) -> CredentialHash {
    let mut sum = Sha256::new();
    sum.update(key);
    // The length comes first, so that the login and the secret cannot run into each other.
    let login = credentials.login.as_deref();
    sum.update(login.map_or(u64::MAX, |login| login.len() as u64).to_le_bytes());
    sum.update(login.unwrap_or_default());
    sum.update(credentials.secret.reveal());
    sum.finalize().into()
}

/// The cache. All entries belong to one generation of the credentials.
#[derive(Debug, Default)]
pub(crate) struct CredentialCache {
    generation: u64,
    known: BTreeMap<CredentialHash, (Identity, Timestamp)>,
    /// Entries in the order of insertion, which is the order of expiry.
    order: VecDeque<(CredentialHash, Timestamp)>,
}

impl CredentialCache {
    pub(crate) fn recall(
        &mut self,
        now: Timestamp,
        generation: u64,
        mark: &CredentialHash,
    ) -> Option<&Identity> {
        self.renew(generation);
        self.known.get(mark).filter(|(_, until)| now < *until).map(|(identity, _)| identity)
    }

    /// Stores credentials that were verified at this time against this generation.
    pub(crate) fn learn(
        &mut self,
        verified: Timestamp,
        generation: u64,
        mark: CredentialHash,
        identity: Identity,
    ) {
        if generation < self.generation {
            return;
        }
        self.renew(generation);
        let until = verified.plus(LIFETIME_NS);
        while self.order.len() >= REMEMBERED_MAX
            || self.order.front().is_some_and(|(_, until)| *until <= verified)
        {
            self.forget_oldest();
        }
        self.known.insert(mark, (identity, until));
        self.order.push_back((mark, until));
    }

    fn forget_oldest(&mut self) {
        let Some((mark, until)) = self.order.pop_front() else { return };
        // An entry that was stored again occurs later in the order too.
        if self.known.get(&mark).is_some_and(|(_, newest)| *newest == until) {
            self.known.remove(&mark);
        }
    }

    fn renew(&mut self, generation: u64) {
        if generation != self.generation {
            *self = CredentialCache { generation, ..CredentialCache::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use pitlane_config::Secret;

    use super::*;
    use crate::{Role, Strategies};

    fn identity(name: &str) -> Identity {
        Identity { name: name.into(), role: Role::Read, strategies: Strategies::All }
    }

    fn number(n: usize) -> CredentialHash {
        let mut mark = [0; 32];
        mark[..8].copy_from_slice(&n.to_le_bytes());
        mark
    }

    #[test]
    fn a_mark_depends_on_login_secret_and_key() {
        let of = |key: u8, login: Option<&str>, secret: &str| {
            let peer = [127, 0, 0, 1].into();
            mark(
                &[key; 32],
                &Credentials { login: login.map(str::to_string), secret: Secret::new(secret), peer },
            )
        };
        let one = of(1, Some("ab"), "c");
        assert_eq!(one, of(1, Some("ab"), "c"));
        for other in
            [of(2, Some("ab"), "c"), of(1, Some("a"), "bc"), of(1, None, "abc"), of(1, Some(""), "abc")]
        {
            assert_ne!(one, other);
        }
        assert_ne!(of(1, None, "abc"), of(1, Some(""), "abc"));
    }

    #[test]
    fn an_entry_is_valid_until_it_expires_or_the_credentials_change() {
        let mut cache = CredentialCache::default();
        let start = Timestamp(NS_PER_S);
        cache.learn(start, 0, number(1), identity("a"));
        assert_eq!(cache.recall(start, 0, &number(1)), Some(&identity("a")));
        assert_eq!(cache.recall(start, 0, &number(2)), None);
        assert!(cache.recall(Timestamp(start.0 + LIFETIME_NS - 1), 0, &number(1)).is_some());
        assert!(cache.recall(Timestamp(start.0 + LIFETIME_NS), 0, &number(1)).is_none());
        assert!(cache.recall(start, 1, &number(1)).is_none());
        // A verdict that was in transit when the credentials changed.
        cache.learn(start, 0, number(1), identity("a"));
        assert!(cache.recall(start, 1, &number(1)).is_none());
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut cache = CredentialCache::default();
        for n in 0..REMEMBERED_MAX + 10 {
            cache.learn(Timestamp(n as u64), 0, number(n), identity("a"));
            // Storing the same credentials repeatedly takes no more space.
            cache.learn(Timestamp(n as u64), 0, number(n), identity("a"));
            assert!(cache.order.len() <= REMEMBERED_MAX && cache.known.len() <= cache.order.len());
        }
        assert!(cache.recall(Timestamp(0), 0, &number(0)).is_none());
        assert!(cache.recall(Timestamp(0), 0, &number(REMEMBERED_MAX + 9)).is_some());
        cache.learn(Timestamp(2 * LIFETIME_NS), 0, number(1), identity("b"));
        assert_eq!((cache.order.len(), cache.known.len()), (1, 1), "what has ended goes first");
    }
}
