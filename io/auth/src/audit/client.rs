//! Handle through which a thread submits audit records and receives their sequence numbers; the
//! outcome is recorded afterwards.

use pitlane_runtime::wakeup::Wakeup;
use rtrb::{Consumer, Producer, RingBuffer};

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
    requests: Producer<AuditRequest>,
    noted: Consumer<(u64, Noted)>,
    writer: Wakeup,
    /// Slots of the lane that are reserved for the outcomes of acts.
    reserved: usize,
    /// Only for the one thread that writes the anchors to the journal.
    pub(super) anchors: Option<Consumer<Anchor>>,
}

/// The end of the audit writer.
#[derive(Debug)]
pub(super) struct AuditQueue {
    pub requests: Consumer<AuditRequest>,
    /// Holds the answers to all acts in transit.
    pub noted: Producer<(u64, Noted)>,
    pub wakeup: Wakeup,
}

pub(super) fn pair(writer: Wakeup, client: Wakeup) -> (AuditClient, AuditQueue) {
    let (requests, received) = RingBuffer::new(REQUESTS_MAX);
    let (answers, noted) = RingBuffer::new(REQUESTS_MAX);
    (
        AuditClient { requests, noted, writer, reserved: 0, anchors: None },
        AuditQueue { requests: received, noted: answers, wakeup: client },
    )
}

impl AuditClient {
    /// Submits an act. [`AuditClient::poll`] returns its number under the same ticket; only then
    /// may the act be executed.
    pub fn note(&mut self, ticket: u64, act: Act) -> Result<(), Busy> {
        if self.requests.slots() < self.reserved + 2 {
            return Err(Busy);
        }
        self.requests.push(AuditRequest::Act { ticket, act }).map_err(|_| Busy)?;
        self.reserved += 1;
        self.writer.wake();
        Ok(())
    }

    /// Returns the newest anchor, if there is a new one.
    pub fn poll_anchor(&mut self) -> Option<Anchor> {
        let anchors = self.anchors.as_mut()?;
        std::iter::from_fn(|| anchors.pop().ok()).last()
    }

    /// Returns the next act that was recorded or could not be.
    pub fn poll(&mut self) -> Option<(u64, Noted)> {
        let (ticket, noted) = self.noted.pop().ok()?;
        if noted.is_err() {
            self.reserved -= 1;
        }
        Some((ticket, noted))
    }

    /// Records the outcome of an act. Called once per recorded act, even if the outcome is unknown.
    pub fn conclude(&mut self, of: u64, outcome: impl Into<String>) {
        self.reserved -= 1;
        self.requests
            .push(AuditRequest::Outcome { of, outcome: outcome.into() })
            .expect("a slot was reserved when the act was submitted");
        self.writer.wake();
    }
}
