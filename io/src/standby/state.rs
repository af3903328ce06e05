//! How a server stands in its group, for health and metrics: written by the thread `standby`, read by whoever shows it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::metrics::Counter;
use crate::metrics::exposition::{Exposition, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It looks for the broker, or for what the stream holds.
    Joining,
    Following,
    Leading,
}

impl Stand {
    const ALL: [Stand; 3] = [Stand::Joining, Stand::Following, Stand::Leading];

    pub fn word(self) -> &'static str {
        match self {
            Stand::Joining => "JOINING",
            Stand::Following => "FOLLOWING",
            Stand::Leading => "LEADING",
        }
    }
}

#[derive(Debug, Default)]
pub struct State {
    stand: AtomicU8,
    epoch: AtomicU64,
    /// Whether what the stream holds is enough to go on with.
    complete: AtomicBool,
    /// Of whoever leads: records that the broker has not acknowledged. Of whoever follows: messages that it has not read.
    pub behind: Counter,
    /// Sent and acknowledged, or read.
    pub messages: Counter,
    pub bytes: Counter,
}

impl State {
    pub fn stand(&self) -> Stand {
        Stand::ALL[self.stand.load(Ordering::Relaxed) as usize]
    }

    pub fn set_stand(&self, stand: Stand) {
        self.stand.store(stand as u8, Ordering::Relaxed);
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    pub fn set_complete(&self, complete: bool) {
        self.complete.store(complete, Ordering::Relaxed);
    }

    /// One more message.
    pub fn count(&self, bytes: usize) {
        self.messages.add(1);
        self.bytes.add(bytes as u64);
    }

    /// What `/metrics` shows of it.
    pub fn expose(&self, out: &mut Exposition) {
        let leads = (self.stand() == Stand::Leading) as u8;
        out.single("pitlane_standby_leads", Kind::Gauge, "1 while this server leads its group.", leads);
        out.single("pitlane_standby_epoch", Kind::Gauge, "Leaders that the group has had.", self.epoch());
        let help = "Records that the broker has not acknowledged; of one that follows, messages not read.";
        out.single("pitlane_standby_behind", Kind::Gauge, help, self.behind.get());
        let help = "Messages of the group's stream acknowledged, or read.";
        out.single("pitlane_standby_messages_total", Kind::Counter, help, self.messages.get());
        let help = "Bytes of the group's stream acknowledged, or read.";
        out.single("pitlane_standby_bytes_total", Kind::Counter, help, self.bytes.get());
    }
}
