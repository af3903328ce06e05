//! Passwords of one thread that wait to be verified. Each address has a share: the queue serves the
//! shares in turn, and when it is full, the largest share loses an entry.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Maximum number of waiting passwords. At 20 ms each, a longer queue would only serve clients that
/// have given up.
pub(crate) const QUESTIONS_MAX: usize = 64;

/// The owner of one share of the queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueShare {
    /// All logins of an address (or /64 network) that never succeeded from there.
    Address(IpAddr),
    /// A login that succeeded from this address before: it does not wait behind strangers at the
    /// same address.
    Known(IpAddr, Box<str>),
}

#[derive(Debug)]
pub(crate) struct PasswordQueue<T> {
    shares: BTreeMap<QueueShare, VecDeque<T>>,
    /// The shares in the order of their turns; each waiting share occurs once.
    turns: VecDeque<QueueShare>,
    len: usize,
}

impl<T> Default for PasswordQueue<T> {
    fn default() -> PasswordQueue<T> {
        PasswordQueue { shares: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T> PasswordQueue<T> {
    /// Appends a question. If the queue is full, evicts and returns the newest question of the
    /// largest share; if the own share is among the largest, returns the question itself as the
    /// error.
    pub(crate) fn push(&mut self, share: QueueShare, question: T) -> Result<Option<T>, T> {
        let mut evicted = None;
        if self.len == QUESTIONS_MAX {
            let own = self.shares.get(&share).map_or(0, VecDeque::len);
            let largest = self.shares.iter().max_by_key(|(_, waiting)| waiting.len());
            let Some(largest) =
                largest.filter(|(_, waiting)| waiting.len() > own + 1).map(|(share, _)| share.clone())
            else {
                return Err(question);
            };
            // More than one question waits there, so the share keeps its turn.
            evicted = self.shares.get_mut(&largest).and_then(VecDeque::pop_back);
            self.len -= 1;
        }
        let waiting = self.shares.entry(share.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(share);
        }
        waiting.push_back(question);
        self.len += 1;
        Ok(evicted)
    }

    /// Takes the oldest question of the share whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let share = self.turns.pop_front()?;
        let waiting = self.shares.get_mut(&share)?;
        let question = waiting.pop_front()?;
        self.len -= 1;
        if waiting.is_empty() {
            self.shares.remove(&share);
        } else {
            self.turns.push_back(share);
        }
        Some(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(n: u8) -> QueueShare {
        QueueShare::Address(IpAddr::from([10, 0, 0, n]))
    }

    #[test]
    fn shares_take_turns() {
        let mut queue = PasswordQueue::default();
        for n in 0..5 {
            queue.push(from(1), (1, n)).unwrap();
        }
        queue.push(from(2), (2, 0)).unwrap();
        queue.push(QueueShare::Known([10, 0, 0, 1].into(), "alice".into()), (3, 0)).unwrap();
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
        assert!(queue.shares.is_empty() && queue.turns.is_empty() && queue.len == 0);
    }

    #[test]
    fn the_largest_share_loses_an_entry() {
        let mut queue = PasswordQueue::default();
        for n in 0..QUESTIONS_MAX {
            assert_eq!(queue.push(from(1), (1, n)), Ok(None));
        }
        assert_eq!(queue.push(from(1), (1, 99)), Err((1, 99)));
        // Another address gets slots until both have equal shares.
        for n in 0..QUESTIONS_MAX / 2 {
            assert_eq!(queue.push(from(2), (2, n)), Ok(Some((1, QUESTIONS_MAX - 1 - n))));
        }
        assert_eq!(queue.push(from(2), (2, 99)), Err((2, 99)));
        assert_eq!(queue.push(from(3), (3, 0)).map(|evicted| evicted.is_some()), Ok(true));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), QUESTIONS_MAX);
    }

    #[test]
    fn among_equal_shares_the_new_question_is_refused() {
        let mut queue = PasswordQueue::default();
        for n in (0..=u8::MAX).take(QUESTIONS_MAX) {
            queue.push(from(n), n).unwrap();
        }
        assert_eq!(queue.push(from(200), 200), Err(200));
    }
}
