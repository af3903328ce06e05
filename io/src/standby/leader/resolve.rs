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

use super::{AGAIN, Shipper};
use crate::standby::message::{ReplicationMessage, What};
use crate::standby::origin::{self, Foreign, Found, mark};
use crate::standby::stream::{End, Place};
use crate::standby::window::Sent;

const LOST: &str = "the broker has lost what it had acknowledged: it is sent again from this server's folder";

/// The reason why it is unknown what was stored.
enum Unresolved {
    /// The broker does not answer.
    Broker,
    /// This server must not lead any longer.
    Over(String),
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
                Err(Unresolved::Broker) => sleep(AGAIN).await,
                Err(Unresolved::Over(why)) => return Err(why),
            }
        }
        Err(self.silence())
    }

    async fn settle_stored(&mut self) -> Result<Reached, Unresolved> {
        let end = self.stream.end().await.map_err(|_| Unresolved::Broker)?;
        if end.is_empty || end.seq < self.acked.seq {
            return Err(Unresolved::Over(LOST.to_string()));
        }
        // Each message is stored directly behind its predecessor or not at all, so the last one
        // covers all.
        if end.last.as_ref().is_some_and(|last| last.is_from(self.node, self.epoch)) {
            self.settle_up_to(end.seq)?;
            return Ok(Reached { seq: end.seq, is_ours: true });
        }
        if !self.has_acknowledged().await? {
            return Err(Unresolved::Over(LOST.to_string()));
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
    async fn look_behind_acknowledged(&mut self, end: &End) -> Result<Reached, Unresolved> {
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
    fn look_at(&mut self, found: &Found) -> Result<bool, Unresolved> {
        let leader = Some((self.epoch, self.node));
        let judged = found.message.as_ref().map_err(|why| *why);
        let why = match judged.and_then(|sound| origin::from_leader(sound, leader, 0).map(|()| sound)) {
            Ok(sound) if found.is_from(self.node, self.epoch) => {
                let is_expected =
                    |sent: &Sent| sent.seq == found.seq && mark(&sent.id, &sent.bytes) == found.mark;
                if !self.window.sent.iter().any(is_expected) {
                    // The broker stored an earlier transmission of a message that has another
                    // position by now.
                    return Err(Unresolved::Over(format!(
                        "the broker has stored something of epoch {} at another place than meant: the stream is compared again",
                        sound.parcel.epoch
                    )));
                }
                self.settle_up_to(found.seq)?;
                return Ok(true);
            }
            Ok(sound) => return Err(Unresolved::Over(taken(sound.parcel.epoch))),
            Err(Foreign::OtherVersion { epoch }) if epoch > self.epoch => {
                return Err(Unresolved::Over(taken(epoch)));
            }
            // The sender knows of a later leader.
            Err(_) if judged.is_ok_and(|sound| sound.parcel.epoch > self.epoch) => {
                return Err(Unresolved::Over(taken(judged.map_or(0, |sound| sound.parcel.epoch))));
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
                return Err(Unresolved::Over(self.silence()));
            }
        }
        Ok(())
    }

    /// Sends unstored messages again, behind the end of the stream.
    async fn send_rest(&mut self, reached: Reached) {
        if !reached.is_ours && self.window.sent.is_empty() {
            // The messages that follow name the id of their predecessor, which a foreign one may
            // lack, so the next one must be ours.
            let parcel = ReplicationMessage { epoch: self.epoch, what: What::Beat };
            let bytes = parcel.encode();
            let (seq, at) = (reached.seq, Instant::now());
            self.window.push(Sent { parcel, bytes, seq, id: String::new(), at, mark: None, kept: None });
        }
        let (mut seq, mut after) = (reached.seq, None);
        for sent in &mut self.window.sent {
            seq += 1;
            let id = self.stream.id(&sent.parcel, &sent.bytes, self.node, seq);
            (sent.seq, sent.id) = (seq, id.clone());
            let place = Place { seq, id: id.clone(), after: after.replace(id) };
            sent.kept = self.stream.send(&sent.parcel, sent.bytes.clone(), place).await.ok();
        }
        self.seq = seq;
        self.last_id = after.unwrap_or_else(|| self.acked_id.clone());
    }
}

fn taken(epoch: u64) -> String {
    format!("another server has taken the lead in epoch {epoch}")
}
