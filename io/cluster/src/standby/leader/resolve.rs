//! Finds out what the broker has stored, when an answer is missing or reports another message at
//! the expected position.
//!
//! ```text
//!                     ┌ ours ──────────────────► it is settled
//!  behind the last ───┼ a lead, higher epoch ──► this server no longer leads
//!  acknowledged       └ foreign ───────────────► logged and passed; unstored messages follow it
//! ```
//!
//! Acknowledged messages must still be there. If they are not, the broker has lost data, and this
//! server restarts to restore the stream.

use tokio::time::{Instant, sleep};

use super::{RETRY_PAUSE, Shipper};
use crate::standby::message::{ReplicationKind, ReplicationMessage};
use crate::standby::origin::{self, ForeignReason, StreamMessage, content_hash};
use crate::standby::stream::{ExpectedPosition, StreamEnd};
use crate::standby::window::SentMessage;

const LOST: &str = "the broker has lost what it had acknowledged: it is sent again from this server's folder";

/// The reason why it is unknown what was stored.
enum Unresolved {
    /// The broker does not answer.
    Broker,
    /// This server must not lead any longer.
    Deposed(String),
}

/// The end of the stream, as far as it is known.
struct Reached {
    seq: u64,
    /// Whether the last message is ours.
    is_ours: bool,
}

impl Shipper {
    /// Finds out what was stored, and sends the rest again. An error is the reason why this server
    /// must not lead any longer.
    pub(super) async fn resolve(&mut self) -> Result<(), String> {
        while Instant::now() < self.lease_until {
            match self.settle_stored().await {
                Ok(reached) => {
                    self.release_reserve().await;
                    self.send_rest(reached).await;
                    return Ok(());
                }
                Err(Unresolved::Broker) => sleep(RETRY_PAUSE).await,
                Err(Unresolved::Deposed(why)) => return Err(why),
            }
        }
        Err(self.silence_reason())
    }

    async fn settle_stored(&mut self) -> Result<Reached, Unresolved> {
        let end = self.stream.end().await.map_err(|_| Unresolved::Broker)?;
        if end.is_empty || end.seq < self.acked.seq {
            return Err(Unresolved::Deposed(LOST.to_string()));
        }
        // Each message is stored directly behind its predecessor or not at all, so the last one
        // covers all.
        if end.last.as_ref().is_some_and(|last| last.is_from(self.node, self.epoch)) {
            self.settle_up_to(end.seq)?;
            return Ok(Reached { seq: end.seq, is_ours: true });
        }
        if !self.has_acknowledged().await? {
            return Err(Unresolved::Deposed(LOST.to_string()));
        }
        self.look_behind_acknowledged(&end).await
    }

    /// Returns whether the last acknowledged message is still at its position. If it was removed
    /// since, the lead message must be there.
    async fn has_acknowledged(&self) -> Result<bool, Unresolved> {
        let broker = |_| Unresolved::Broker;
        let acked = match self.stream.at(self.acked.seq).await.map_err(broker)? {
            Some(acked) => Some(acked),
            None => self.stream.at(self.acked.lead).await.map_err(broker)?,
        };
        Ok(acked.is_some_and(|found| found.is_from(self.node, self.epoch)))
    }

    /// Examines each message behind the acknowledged ones.
    async fn look_behind_acknowledged(&mut self, end: &StreamEnd) -> Result<Reached, Unresolved> {
        let mut reached = Reached { seq: self.acked.seq.max(self.passed), is_ours: false };
        // The loop never asks for a message behind the end: nats-server 2.9.10 was seen to crash on
        // that.
        while reached.seq < end.seq {
            let Some(found) = self.stream.next(reached.seq).await.map_err(|_| Unresolved::Broker)? else {
                break;
            };
            reached = Reached { seq: found.seq, is_ours: self.look_at(&found)? };
        }
        // The last messages may have been removed.
        let is_ours = reached.is_ours && reached.seq >= end.seq;
        Ok(Reached { seq: reached.seq.max(end.seq), is_ours })
    }

    /// Examines a message behind the acknowledged ones; returns whether it is ours.
    fn look_at(&mut self, found: &StreamMessage) -> Result<bool, Unresolved> {
        let leader = Some((self.epoch, self.node));
        let checked = found.content.as_ref().map_err(|why| *why);
        let why = match checked
            .and_then(|verified| origin::from_leader(verified, leader, 0).map(|()| verified))
        {
            Ok(verified) if found.is_from(self.node, self.epoch) => {
                let is_expected = |sent: &SentMessage| {
                    sent.seq == found.seq && content_hash(&sent.id, &sent.bytes) == found.hash
                };
                if !self.window.sent.iter().any(is_expected) {
                    // The broker stored an earlier transmission of a message that has another
                    // position by now.
                    return Err(Unresolved::Deposed(format!(
                        "the broker has stored a message of epoch {} at another position than expected: the stream is compared again",
                        verified.message.epoch
                    )));
                }
                self.settle_up_to(found.seq)?;
                return Ok(true);
            }
            Ok(verified) => return Err(Unresolved::Deposed(taken(verified.message.epoch))),
            Err(ForeignReason::OtherVersion { epoch }) if epoch > self.epoch => {
                return Err(Unresolved::Deposed(taken(epoch)));
            }
            // The sender knows of a later leader.
            Err(_) if checked.is_ok_and(|verified| verified.message.epoch > self.epoch) => {
                return Err(Unresolved::Deposed(taken(checked.map_or(0, |verified| verified.message.epoch))));
            }
            Err(why) => why,
        };
        self.passed = found.seq;
        self.state.note_foreign(found, why);
        Ok(false)
    }

    fn settle_up_to(&mut self, seq: u64) -> Result<(), Unresolved> {
        while self.window.sent.front().is_some_and(|sent| sent.seq <= seq) {
            if !self.settle(true) {
                return Err(Unresolved::Deposed(self.silence_reason()));
            }
        }
        Ok(())
    }

    /// Sends unstored messages again, behind the end of the stream.
    async fn send_rest(&mut self, reached: Reached) {
        if !reached.is_ours && self.window.sent.is_empty() {
            // The messages that follow name the id of their predecessor, which a foreign one may
            // lack, so the next one must be ours.
            let message = ReplicationMessage { epoch: self.epoch, kind: ReplicationKind::Beat };
            let bytes = message.encode();
            let (seq, at) = (reached.seq, Instant::now());
            self.window.push(SentMessage {
                message,
                bytes,
                seq,
                id: String::new(),
                at,
                last_record: None,
                pending_ack: None,
            });
        }
        let (mut seq, mut after) = (reached.seq, None);
        for sent in &mut self.window.sent {
            seq += 1;
            let id = self.stream.id(&sent.message, &sent.bytes, self.node, seq);
            (sent.seq, sent.id) = (seq, id.clone());
            let expected = ExpectedPosition { seq, id: id.clone(), after: after.replace(id) };
            sent.pending_ack = self.stream.send(&sent.message, sent.bytes.clone(), expected).await.ok();
        }
        self.seq = seq;
        self.last_id = after.unwrap_or_else(|| self.acked_id.clone());
    }
}

fn taken(epoch: u64) -> String {
    format!("another server has taken the lead in epoch {epoch}")
}
