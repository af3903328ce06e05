//! The way between gateways: a connection whose session lives elsewhere is handed over once its Logon has told so.

use std::sync::Arc;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::net::detached::Detached;
use crate::wakeup::Wakeup;

/// Connections on their way from one gateway to another. More at once are closed: they may come again.
const PASSING_MAX: usize = 256;

/// Which session a client may log on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Of the session.
    pub name: String,
    /// By whose login, and by which generation of the books; none: by none of the books.
    pub login: Option<(Arc<str>, u64)>,
}

/// A client that may log on, with its connection.
#[derive(Debug)]
pub struct Handoff {
    pub admitted: Admitted,
    pub detached: Detached,
}

/// One gateway's ends.
#[derive(Debug, Default)]
pub struct ConnectionHandoff {
    /// By gateway; none to itself.
    out: Vec<Option<(Producer<Handoff>, Wakeup)>>,
    into: Vec<Consumer<Handoff>>,
}

impl ConnectionHandoff {
    /// The ends of all gateways, by their bells.
    pub fn between(bells: &[Wakeup]) -> Vec<ConnectionHandoff> {
        let mut ends: Vec<ConnectionHandoff> = bells.iter().map(|_| ConnectionHandoff::default()).collect();
        for from in 0..bells.len() {
            for (to, bell) in bells.iter().enumerate() {
                let way = (from != to).then(|| RingBuffer::new(PASSING_MAX)).map(|(producer, consumer)| {
                    ends[to].into.push(consumer);
                    (producer, bell.clone())
                });
                ends[from].out.push(way);
            }
        }
        ends
    }

    /// Sends a connection to its home. Answers whether there was room; if not, it is closed.
    pub fn send(&mut self, gateway: u8, passing: Handoff) -> bool {
        let Some(Some((way, bell))) = self.out.get_mut(gateway as usize) else { return false };
        let sent = way.push(passing).is_ok();
        bell.wake();
        sent
    }

    pub fn receive(&mut self) -> Option<Handoff> {
        self.into.iter_mut().find_map(|way| way.pop().ok())
    }
}
