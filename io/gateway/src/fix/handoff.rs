//! Mailboxes between gateways: a connection whose session belongs to another gateway is handed over
//! once its Logon identifies the session.

use std::sync::Arc;

use pitlane_net::detached::Detached;
use pitlane_runtime::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use pitlane_runtime::wakeup::Wakeup;

/// Maximum number of connections in transit from one gateway to another. Further ones are closed;
/// their clients may reconnect.
const HANDOFFS_MAX: usize = 256;

/// The session that a client may log on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedLogon {
    /// Name of the session.
    pub name: String,
    /// The login and the generation of the credentials it was verified against; `None` if the
    /// session needs no login of the credential files.
    pub login: Option<(Arc<str>, u64)>,
}

/// A client that may log on, with its connection.
#[derive(Debug)]
pub struct Handoff {
    pub admitted: AdmittedLogon,
    pub detached: Detached,
}

/// One gateway's ends of the mailboxes.
#[derive(Debug, Default)]
pub struct ConnectionHandoff {
    /// By gateway; `None` for the gateway itself.
    out: Vec<Option<MailboxSender<Handoff>>>,
    into: Vec<MailboxReceiver<Handoff>>,
}

impl ConnectionHandoff {
    /// Creates the ends of all gateways from their wake-ups.
    pub fn between(wakeups: &[Wakeup]) -> Vec<ConnectionHandoff> {
        let mut ends: Vec<ConnectionHandoff> = wakeups.iter().map(|_| ConnectionHandoff::default()).collect();
        for from in 0..wakeups.len() {
            for (to, wakeup) in wakeups.iter().enumerate() {
                let sender = (from != to).then(|| {
                    let (sender, receiver) = mailbox(HANDOFFS_MAX, wakeup.clone());
                    ends[to].into.push(receiver);
                    sender
                });
                ends[from].out.push(sender);
            }
        }
        ends
    }

    /// Sends a connection to the gateway of its session. Returns false if the mailbox is full; the
    /// connection is then closed.
    pub fn send(&mut self, gateway: u8, handoff: Handoff) -> bool {
        let Some(Some(sender)) = self.out.get_mut(gateway as usize) else { return false };
        sender.send(handoff).is_ok()
    }

    pub fn receive(&mut self) -> Option<Handoff> {
        self.into.iter_mut().find_map(MailboxReceiver::poll)
    }
}
