//! How a thread has something written down: acts go one way, their numbers come back, what came of them follows.

use rtrb::{Consumer, Producer, RingBuffer};

use super::{Act, Anchor};
use crate::wakeup::Wakeup;

/// Acts of one thread on their way, with what comes of them. Administrators are few, and a sync takes a millisecond.
pub const SLIPS_MAX: usize = 128;

/// Anchors on their way to the thread that takes them to the journal. Newer ones replace older ones.
pub const ANCHORS_MAX: usize = 16;

/// Too much is on its way: later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// What becomes of an act that was to be noted: its number, or nothing, and then it must not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

pub type Noted = Result<u64, Failed>;

#[derive(Debug)]
pub enum AuditRequest {
    Act { ticket: u64, act: Act },
    Outcome { of: u64, outcome: String },
}

/// One thread's end.
#[derive(Debug)]
pub struct AuditClient {
    slips: Producer<AuditRequest>,
    noted: Consumer<(u64, Noted)>,
    scribe: Wakeup,
    /// Places kept on the lane for what will come of acts.
    reserved: usize,
    /// Of the one thread that sees to it that the journal has them.
    pub(super) anchors: Option<Consumer<Anchor>>,
}

/// The scribe's end.
#[derive(Debug)]
pub struct AuditQueue {
    pub slips: Consumer<AuditRequest>,
    /// Has room for every act that is on its way.
    pub noted: Producer<(u64, Noted)>,
    pub bell: Wakeup,
}

pub(super) fn pair(scribe: Wakeup, bell: Wakeup) -> (AuditClient, AuditQueue) {
    let (slips, given) = RingBuffer::new(SLIPS_MAX);
    let (told, noted) = RingBuffer::new(SLIPS_MAX);
    (
        AuditClient { slips, noted, scribe, reserved: 0, anchors: None },
        AuditQueue { slips: given, noted: told, bell },
    )
}

impl AuditClient {
    /// Has an act noted. Its number comes by [`AuditClient::poll`] under the same ticket; only then may it be done.
    pub fn note(&mut self, ticket: u64, act: Act) -> Result<(), Busy> {
        if self.slips.slots() < self.reserved + 2 {
            return Err(Busy);
        }
        self.slips.push(AuditRequest::Act { ticket, act }).map_err(|_| Busy)?;
        self.reserved += 1;
        self.scribe.wake();
        Ok(())
    }

    /// Where the chain has come to, if that is new: the newest that there is.
    pub fn poll_anchor(&mut self) -> Option<Anchor> {
        let anchors = self.anchors.as_mut()?;
        std::iter::from_fn(|| anchors.pop().ok()).last()
    }

    /// The next act that was noted, or could not be.
    pub fn poll(&mut self) -> Option<(u64, Noted)> {
        let (ticket, noted) = self.noted.pop().ok()?;
        if noted.is_err() {
            self.reserved -= 1;
        }
        Some((ticket, noted))
    }

    /// What came of an act that was noted. Once for each, also where nothing is known of it.
    pub fn conclude(&mut self, of: u64, outcome: impl Into<String>) {
        self.reserved -= 1;
        self.slips
            .push(AuditRequest::Outcome { of, outcome: outcome.into() })
            .expect("a place was kept when the act was noted");
        self.scribe.wake();
    }
}
