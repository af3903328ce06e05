//! Credentials that were verified a moment ago, so that whoever sends them with each request is recognised at once.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::time::{NS_PER_S, Timestamp};
use sha2::{Digest, Sha256};

use super::{Credentials, Identity};

/// Credentials remembered by one thread: more clients than connections it usually has.
pub const REMEMBERED_MAX: usize = 4_096;
/// How long: a working day, so that a user who is logged in goes on while others guess at the login from the same address. A user who
/// was removed is gone at once when the books are read again; this only bounds the rest.
pub const LIFE_NS: u64 = 12 * 3_600 * NS_PER_S;

/// A keyed sum of login and secret. Who gives it came from is no part of it.
pub type Mark = [u8; 32];

pub fn mark(key: &[u8; 32], credentials: &Credentials) -> Mark {
    let mut sum = Sha256::new();
    sum.update(key);
    // With its length before it no login runs into the secret.
    let login = credentials.login.as_deref();
    sum.update(login.map_or(u64::MAX, |login| login.len() as u64).to_le_bytes());
    sum.update(login.unwrap_or_default());
    sum.update(credentials.secret.reveal());
    sum.finalize().into()
}

/// All of it is of one generation of the books.
#[derive(Debug, Default)]
pub struct Memory {
    generation: u64,
    known: BTreeMap<Mark, (Identity, Timestamp)>,
    /// In the order they were learned, which is that of their end.
    order: VecDeque<(Mark, Timestamp)>,
}

impl Memory {
    pub fn recall(&mut self, now: Timestamp, generation: u64, mark: &Mark) -> Option<&Identity> {
        self.renew(generation);
        self.known.get(mark).filter(|(_, until)| now < *until).map(|(identity, _)| identity)
    }

    /// What was verified at this time against the books of this generation.
    pub fn learn(&mut self, verified: Timestamp, generation: u64, mark: Mark, identity: Identity) {
        if generation < self.generation {
            return;
        }
        self.renew(generation);
        let until = verified.plus(LIFE_NS);
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
        // Learned again since, it has a later place too.
        if self.known.get(&mark).is_some_and(|(_, newest)| *newest == until) {
            self.known.remove(&mark);
        }
    }

    fn renew(&mut self, generation: u64) {
        if generation != self.generation {
            *self = Memory { generation, ..Memory::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Role, Strategies};
    use crate::config::Secret;

    fn identity(name: &str) -> Identity {
        Identity { name: name.into(), role: Role::Read, strategies: Strategies::All }
    }

    fn number(n: usize) -> Mark {
        let mut mark = [0; 32];
        mark[..8].copy_from_slice(&n.to_le_bytes());
        mark
    }

    #[test]
    fn a_mark_is_of_login_and_secret_and_the_key() {
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
    fn what_was_learned_is_known_for_a_while_and_until_the_books_change() {
        let mut memory = Memory::default();
        let start = Timestamp(NS_PER_S);
        memory.learn(start, 0, number(1), identity("a"));
        assert_eq!(memory.recall(start, 0, &number(1)), Some(&identity("a")));
        assert_eq!(memory.recall(start, 0, &number(2)), None);
        assert!(memory.recall(Timestamp(start.0 + LIFE_NS - 1), 0, &number(1)).is_some());
        assert!(memory.recall(Timestamp(start.0 + LIFE_NS), 0, &number(1)).is_none());
        assert!(memory.recall(start, 1, &number(1)).is_none());
        // A verdict that was under way when the books changed.
        memory.learn(start, 0, number(1), identity("a"));
        assert!(memory.recall(start, 1, &number(1)).is_none());
    }

    #[test]
    fn it_remembers_only_so_many() {
        let mut memory = Memory::default();
        for n in 0..REMEMBERED_MAX + 10 {
            memory.learn(Timestamp(n as u64), 0, number(n), identity("a"));
            // Again and again the same takes no more room.
            memory.learn(Timestamp(n as u64), 0, number(n), identity("a"));
            assert!(memory.order.len() <= REMEMBERED_MAX && memory.known.len() <= memory.order.len());
        }
        assert!(memory.recall(Timestamp(0), 0, &number(0)).is_none());
        assert!(memory.recall(Timestamp(0), 0, &number(REMEMBERED_MAX + 9)).is_some());
        memory.learn(Timestamp(2 * LIFE_NS), 0, number(1), identity("b"));
        assert_eq!((memory.order.len(), memory.known.len()), (1, 1), "what has ended goes first");
    }
}
