//! Passwords of one thread that wait to be verified. Each address has its share: the queue is served in turns by address, and when
//! it is full, the address that fills it gives way.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Passwords that wait. At 20 ms each a longer queue would only keep clients waiting that have given up.
pub const QUESTIONS_MAX: usize = 64;

/// Who shares one turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// All of an address (or /64 network) that never logged in from there.
    Address(IpAddr),
    /// A login that succeeded from this address before: it does not wait behind strangers at the same address.
    Known(IpAddr, Box<str>),
}

#[derive(Debug)]
pub struct Queue<T> {
    shares: BTreeMap<Share, VecDeque<T>>,
    /// Whose turn is next; each share that waits stands here once.
    turns: VecDeque<Share>,
    len: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { shares: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T> Queue<T> {
    /// Appends a question. If the queue is full, the newest question of the largest share gives way and is returned; an error: the
    /// share itself is among the largest, and the question is returned.
    pub fn push(&mut self, share: Share, question: T) -> Result<Option<T>, T> {
        let mut evicted = None;
        if self.len == QUESTIONS_MAX {
            let own = self.shares.get(&share).map_or(0, VecDeque::len);
            let largest = self.shares.iter().max_by_key(|(_, waiting)| waiting.len());
            let Some(largest) =
                largest.filter(|(_, waiting)| waiting.len() > own + 1).map(|(share, _)| share.clone())
            else {
                return Err(question);
            };
            // More than one waits there, so the share keeps its turn.
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
    pub fn pop(&mut self) -> Option<T> {
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

    fn from(n: u8) -> Share {
        Share::Address(IpAddr::from([10, 0, 0, n]))
    }

    #[test]
    fn shares_take_turns() {
        let mut queue = Queue::default();
        for n in 0..5 {
            queue.push(from(1), (1, n)).unwrap();
        }
        queue.push(from(2), (2, 0)).unwrap();
        queue.push(Share::Known([10, 0, 0, 1].into(), "alice".into()), (3, 0)).unwrap();
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
        assert!(queue.shares.is_empty() && queue.turns.is_empty() && queue.len == 0);
    }

    #[test]
    fn whoever_fills_the_queue_gives_way() {
        let mut queue = Queue::default();
        for n in 0..QUESTIONS_MAX {
            assert_eq!(queue.push(from(1), (1, n)), Ok(None));
        }
        assert_eq!(queue.push(from(1), (1, 99)), Err((1, 99)));
        // Another address finds room until both have the same share.
        for n in 0..QUESTIONS_MAX / 2 {
            assert_eq!(queue.push(from(2), (2, n)), Ok(Some((1, QUESTIONS_MAX - 1 - n))));
        }
        assert_eq!(queue.push(from(2), (2, 99)), Err((2, 99)));
        assert_eq!(queue.push(from(3), (3, 0)).map(|evicted| evicted.is_some()), Ok(true));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), QUESTIONS_MAX);
    }

    #[test]
    fn among_equals_the_last_one_is_refused() {
        let mut queue = Queue::default();
        for n in 0..QUESTIONS_MAX as u8 {
            queue.push(from(n), n).unwrap();
        }
        assert_eq!(queue.push(from(200), 200), Err(200));
    }
}
