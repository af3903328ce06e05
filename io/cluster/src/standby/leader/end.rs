//! The end of a lead in good order: sends the rest, and lets the next server lead at once.

use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::{LeadEnd, Shipper};
use crate::standby::changes::FolderChanges;
use crate::standby::message::{ReplicationKind, ReplicationMessage};
use crate::standby::stream::ExpectedPosition;

/// Longest time that an orderly shutdown waits for the broker.
const END_MAX: Duration = Duration::from_secs(2);

impl Shipper {
    /// Releases the lead; returns whether the release is stored.
    async fn release(&self) -> bool {
        let message =
            ReplicationMessage { epoch: self.epoch, kind: ReplicationKind::Release { node: self.node } };
        let (bytes, seq) = (message.encode(), self.seq + 1);
        let id = self.stream.id(&message, &bytes, self.node, seq);
        let expected = ExpectedPosition { seq, id, after: Some(self.last_id.clone()) };
        match self.stream.send(&message, bytes, expected).await {
            Ok(pending_ack) => pending_ack.await.is_ok(),
            Err(_) => false,
        }
    }

    /// Sends the rest, and releases the lead.
    pub(super) async fn end(mut self) -> LeadEnd {
        let until = Instant::now() + END_MAX;
        if let Some(changes) = &mut self.changes {
            changes.scan.begin_whole_round();
        }
        let all = async {
            loop {
                self.changes.iter_mut().for_each(|changes| changes.tick = Instant::now());
                let worked = self.cycle().await.unwrap_or(false);
                while let Some(sent) = self.window.sent.front_mut() {
                    let stored = match sent.pending_ack.as_mut() {
                        Some(pending_ack) => {
                            let answer = pending_ack.await;
                            self.is_stored(&answer)
                        }
                        None => false,
                    };
                    if !self.settle(stored) && self.resolve().await.is_err() {
                        return;
                    }
                }
                let is_done = |changes: &FolderChanges| {
                    let has_snapshots = changes.scan.has_snapshots() && self.may_send_snapshots(changes);
                    changes.is_whole_round_done() && !has_snapshots
                };
                if !worked && self.changes.as_ref().is_none_or(is_done) {
                    break;
                }
                yield_now().await;
            }
            // After the release another server may lead at once.
            if let Err(error) = self.end_lease().await {
                return tracing::warn!(%error, "the lead cannot be released");
            }
            // A foreign message may have been stored in between.
            if !self.release().await && self.resolve().await.is_ok() {
                self.release().await;
            }
        };
        tokio::select! {
            () = all => {}
            () = sleep_until(until) => tracing::warn!("the rest could not be sent to the standby: the broker does not answer"),
        }
        LeadEnd::Ended
    }
}
