//! Handle through which a thread submits audit records and receives their sequence numbers; the
//! outcome is recorded afterwards.

use pitlane_runtime::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use pitlane_runtime::wakeup::Wakeup;

use super::{Act, Anchor};

/// Acts of one thread in transit, including their outcomes. Administrators are few, and a sync
/// takes a millisecond.
pub(super) const REQUESTS_MAX: usize = 128;

/// Anchors in transit to the thread that writes them to the journal. Newer ones replace older ones.
pub(super) const ANCHORS_MAX: usize = 16;

/// Too many requests are in transit: try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// The act could not be recorded and must not be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

pub type Noted = Result<u64, Failed>;

#[derive(Debug)]
pub(super) enum AuditRequest {
    Act { ticket: u64, act: Act },
    Outcome { of: u64, outcome: String },
}

/// One thread's end.
#[derive(Debug)]
pub struct AuditClient {
    requests: MailboxSender<AuditRequest>,
    noted: MailboxReceiver<(u64, Noted)>,
    /// Slots of the mailbox that are reserved for the outcomes of acts.
    reserved: usize,
    /// Only for the one thread that writes the anchors to the journal.
    pub(super) anchors: Option<MailboxReceiver<Anchor>>,
}

/// The end of the audit writer.
#[derive(Debug)]
pub(super) struct AuditQueue {
    pub requests: MailboxReceiver<AuditRequest>,
    /// Holds the answers to all acts in transit.
    pub noted: MailboxSender<(u64, Noted)>,
}

pub(super) fn pair(writer: Wakeup, client: Wakeup) -> (AuditClient, AuditQueue) {
    let (requests, received) = mailbox(REQUESTS_MAX, writer);
    let (answers, noted) = mailbox(REQUESTS_MAX, client);
    (
        AuditClient { requests, noted, reserved: 0, anchors: None },
        AuditQueue { requests: received, noted: answers },
    )
}

impl AuditClient {
    /// Submits an act. [`AuditClient::poll`] returns its number under the same ticket; only then
    /// may the act be executed.
    pub fn note(&mut self, ticket: u64, act: Act) -> Result<(), Busy> {
        if self.requests.room() < self.reserved + 2 {
            return Err(Busy);
        }
        self.requests.send(AuditRequest::Act { ticket, act }).map_err(|_| Busy)?;
        self.reserved += 1;
        Ok(())
    }

    /// Returns the newest anchor, if there is a new one.
    pub fn poll_anchor(&mut self) -> Option<Anchor> {
        let anchors = self.anchors.as_mut()?;
        std::iter::from_fn(|| anchors.poll()).last()
    }

    /// Returns the next act that was recorded or could not be.
    pub fn poll(&mut self) -> Option<(u64, Noted)> {
        let (ticket, noted) = self.noted.poll()?;
        if noted.is_err() {
            self.reserved -= 1;
        }
        Some((ticket, noted))
    }

    /// Records the outcome of an act. Called once per recorded act, even if the outcome is unknown.
    pub fn conclude(&mut self, of: u64, outcome: impl Into<String>) {
        self.reserved -= 1;
        self.requests
            .send(AuditRequest::Outcome { of, outcome: outcome.into() })
            .expect("a slot was reserved when the act was submitted");
    }
}
