//! What a leader maintains beside the stream: the acknowledged position, and reserved space at the
//! broker for cancels.

use std::io;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::publish::PublishAck;
use pitlane_journal::disk::Disk;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{NO_ANSWER, RETRY_PAUSE, Shipper, TICKS_PER_SWEEP};
use crate::standby::changes::FolderChanges;
use crate::standby::message::ReplicationKind;
use crate::standby::position::{Acked, time_since_boot};
use crate::standby::window::SentMessage;

/// Number of messages that reserve space for cancels: two megabytes, enough for some thousands of
/// cancels.
pub(super) const RESERVE_MAX: u8 = 16;
/// Ticks between two attempts while the broker is full.
const TICKS_PER_TRY: u64 = 40;

impl Shipper {
    /// Stores the acknowledged position, for the case that the broker loses data. This starts when
    /// the whole folder is with the broker: until then the previously acknowledged position
    /// applies.
    pub(super) fn keep_acked(&mut self, ticks: u64) -> io::Result<()> {
        if self.shipped.is_some() {
            return Ok(());
        }
        if ticks.is_multiple_of(TICKS_PER_SWEEP) && self.acked_synced != self.acked.seq {
            (self.acked_written, self.acked_synced) = (self.acked.seq, self.acked.seq);
            self.note_acked_time();
            let (path, text) = (Acked::path(&self.data), self.acked.encode());
            // A sync takes milliseconds, during which no records would be sent.
            self.acked_sync = Some(spawn_blocking(move || Disk::Real.put(&path, text.as_bytes())));
            return Ok(());
        }
        if self.acked_written == self.acked.seq {
            return Ok(());
        }
        self.write_acked()
    }

    /// Writes the acknowledged position, without a sync.
    pub(super) fn write_acked(&mut self) -> io::Result<()> {
        self.acked_written = self.acked.seq;
        self.note_acked_time();
        self.acked.write(&self.data)
    }

    fn note_acked_time(&mut self) {
        let age = self.acked_sent.elapsed();
        self.acked.sent_at = time_since_boot().and_then(|now| now.checked_sub(age));
    }

    /// Records that another server need not wait for this server's lease.
    pub(super) async fn end_lease(&mut self) -> io::Result<()> {
        if let Some(sync) = self.acked_sync.take() {
            // It would replace what is written here.
            let _ = sync.await;
        }
        let Some(mut acked) = Acked::read(&self.data) else { return Ok(()) };
        acked.sent_at = None;
        acked.write(&self.data)
    }

    /// Returns whether the broker has stored the oldest message of the window. Logs the broker's
    /// error, once.
    pub(super) fn is_stored(&mut self, answer: &Result<PublishAck, PublishError>) -> bool {
        match answer {
            Ok(ack) => {
                self.refused = None;
                // If the broker already knows the id it stores nothing, and returns the position of
                // the other message.
                self.window.sent.front().is_some_and(|sent| sent.seq == ack.sequence)
            }
            // The broker answered, and the error is not about the position: it has no space, or no
            // disk.
            Err(error) if error.kind() == PublishErrorKind::Other => {
                if self.refused.is_none() && !self.is_full {
                    tracing::error!(%error, "the broker cannot store the journal for the standby: only cancels are accepted until it can");
                }
                self.refused = Some(error.to_string());
                self.set_full(true);
                false
            }
            Err(_) => false,
        }
    }

    pub(super) fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
        if let Some(changes) = &self.changes {
            changes.healths.iter().for_each(|health| health.set_broker_full(is_full));
        }
    }

    /// Decides at a tick whether the reserved space for cancels needs one more message. If so,
    /// nothing else is sent until the broker has answered the messages that are under way and this
    /// one: under load there is otherwise always a message under way, and the reserve would never
    /// be stored.
    pub(super) fn plan_reserve(&mut self, ticks: u64) {
        let may_try = !self.is_full || self.reserved > 0 || ticks.is_multiple_of(TICKS_PER_TRY);
        let is_missing = self.is_full || self.reserved < RESERVE_MAX;
        self.is_reserve_due |= self.shipped.is_none() && may_try && is_missing;
    }

    /// Returns whether a reserve message is sent now.
    pub(super) fn can_send_reserve(&self) -> bool {
        self.is_reserve_due && self.window.sent.is_empty()
    }

    /// Maintains the reserved space, one message at a time. When the broker was full and the whole
    /// reserve is stored again, orders are accepted again.
    pub(super) async fn keep_reserve(&mut self) {
        if !self.can_send_reserve() {
            return;
        }
        self.is_reserve_due = false;
        if !std::mem::replace(&mut self.has_cleared, true) {
            // The reserve of the previous leader.
            self.stream.release_reserve().await;
        }
        if self.reserved < RESERVE_MAX {
            self.send(ReplicationKind::Reserve { number: self.reserved }, None).await;
        } else if self.is_full {
            self.set_full(false);
            tracing::warn!("the broker has space again: orders are accepted");
        }
    }

    /// Returns whether snapshots may be sent now. When this server serves, they must not take the
    /// space for cancels, so they wait until the reserve is complete. Before that, only those are
    /// sent without which the stream is no usable copy.
    pub(super) fn may_send_snapshots(&self, changes: &FolderChanges) -> bool {
        match self.shipped {
            Some(_) => changes.needs_snapshots,
            None => !self.is_full && self.reserved >= RESERVE_MAX,
        }
    }

    /// Releases the reserve, if the broker has no space. A reserve message that was refused is not
    /// sent again.
    pub(super) async fn release_reserve(&mut self) {
        if self.refused.is_none() {
            return;
        }
        self.stream.release_reserve().await;
        self.reserved = 0;
        if self.window.sent.front().is_some_and(SentMessage::is_reserve) && self.window.sent.len() == 1 {
            self.window.pop();
            self.seq -= 1;
        }
        sleep(RETRY_PAUSE).await;
    }

    /// Returns why this server must not lead any longer, when nothing was stored for a lease.
    pub(super) fn silence_reason(&self) -> String {
        match &self.refused {
            Some(error) => format!("the broker has stored nothing for a lease: {error}"),
            None => NO_ANSWER.to_string(),
        }
    }
}
