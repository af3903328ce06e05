//! What a leader keeps beside the stream: how much was acknowledged, and some room at the broker for cancels.

use std::io;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::publish::PublishAck;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{AGAIN, NOT_HEARD, Shipper, TICKS_PER_SWEEP};
use crate::journal::disk::Disk;
use crate::standby::message::What;
use crate::standby::position::Acked;
use crate::standby::window::Sent;

/// Messages that keep room for cancels: two megabytes, some thousands of them.
const RESERVE_MAX: u8 = 16;
/// Ticks until a broker that was full is tried again.
const TICKS_PER_TRY: u64 = 40;

impl Shipper {
    /// Keeps how much was acknowledged, for the day when the broker has lost it. Once all of the folder is with the broker: until then what
    /// was acknowledged before counts.
    pub(super) fn keep_acked(&mut self, ticks: u64) -> io::Result<()> {
        if self.shipped.is_some() {
            return Ok(());
        }
        if ticks.is_multiple_of(TICKS_PER_SWEEP) && self.acked_synced != self.acked.seq {
            (self.acked_written, self.acked_synced) = (self.acked.seq, self.acked.seq);
            let (path, text) = (Acked::path(&self.data), self.acked.encode());
            // A sync takes milliseconds, in which records would not be sent.
            spawn_blocking(move || Disk::Real.put(&path, text.as_bytes()));
            return Ok(());
        }
        if self.acked_written == self.acked.seq {
            return Ok(());
        }
        self.acked_written = self.acked.seq;
        self.acked.write(&self.data)
    }

    /// Whether the broker has stored the first of the window. What it says if it has not is told, once.
    pub(super) fn is_stored(&mut self, answer: &Result<PublishAck, PublishError>) -> bool {
        match answer {
            Ok(ack) => {
                self.refused = None;
                // Under an id that the broker knew already it stores nothing, and tells where the other message is.
                self.window.sent.front().is_some_and(|sent| sent.seq == ack.sequence)
            }
            // It has answered, and not because something stands where this should: there is no room, or no disk.
            Err(error) if error.kind() == PublishErrorKind::Other => {
                if self.refused.is_none() && !self.is_full {
                    tracing::error!(%error, "the broker cannot store the journal for the standby: cancels only, until it can");
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
        if let Some(cargo) = &self.cargo {
            cargo.healths.iter().for_each(|health| health.set_broker_full(is_full));
        }
    }

    /// Keeps some room for cancels, one message at a time. When the broker has been full and all of it is stored again, so is everything else.
    pub(super) async fn keep_reserve(&mut self, ticks: u64) {
        if self.shipped.is_some()
            || !self.window.sent.is_empty()
            || self.is_full && !ticks.is_multiple_of(TICKS_PER_TRY) && self.reserved == 0
        {
            return;
        }
        if !std::mem::replace(&mut self.has_cleared, true) {
            // What the server that led before has kept.
            self.stream.release_reserve().await;
        }
        if self.reserved < RESERVE_MAX {
            self.send(What::Reserve { number: self.reserved }, None).await;
        } else if self.is_full {
            self.set_full(false);
            tracing::warn!("the broker has room again: orders are taken");
        }
    }

    /// Gives the reserve back, if the broker has no room. What should have become part of it is not sent again.
    pub(super) async fn release_reserve(&mut self) {
        if self.refused.is_none() {
            return;
        }
        self.stream.release_reserve().await;
        self.reserved = 0;
        if self.window.sent.front().is_some_and(Sent::is_reserve) && self.window.sent.len() == 1 {
            self.window.pop();
            self.seq -= 1;
        }
        sleep(AGAIN).await;
    }

    /// Why it must not lead any longer, when nothing was stored for a lease.
    pub(super) fn silence(&self) -> String {
        match &self.refused {
            Some(error) => format!("the broker has stored nothing for a lease: {error}"),
            None => NOT_HEARD.to_string(),
        }
    }
}
