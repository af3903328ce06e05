//! The shard: a function with memory.

use std::sync::Arc;

use crate::command::Command;
use crate::event::Body as Said;
use crate::id::{PortMask, SecurityId, ShardId};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::refdata::RefData;
use crate::settings::ShardSettings;
use crate::time::Timestamp;

/// The shard that owns a security. Unknown securities have an owner too: somebody must refuse them.
pub fn shard_of(security: SecurityId, shards: u8) -> ShardId {
    ShardId((security.0 % shards as u32) as u8)
}

#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    reference: Arc<RefData>,
}

impl Shard {
    pub fn new(id: ShardId, shards: u8, reference: Arc<RefData>, _settings: ShardSettings) -> Shard {
        assert!(id.0 < shards, "a shard is one of its number");
        Shard { id, reference }
    }

    pub fn id(&self) -> ShardId {
        self.id
    }

    pub fn reference(&self) -> &Arc<RefData> {
        &self.reference
    }

    /// Applies one command at one instant, and says every consequence that fits a step; see [`Shard::resume`].
    pub fn apply(&mut self, now: Timestamp, command: &Command, out: &mut Outbox) {
        assert!(!self.has_work(), "a shard with work left takes no command");
        let done = Said::Done { source: command.source, token: command.token, reason: Reason::None };
        out.say(PortMask::one(command.source.port), now, done);
    }

    /// Whether the last command left something to do.
    pub fn has_work(&self) -> bool {
        false
    }

    /// Goes on with what the last command left to do.
    pub fn resume(&mut self, _out: &mut Outbox) {}

    /// When a [`crate::command::Body::Timer`] is due.
    pub fn deadline(&self) -> Option<Timestamp> {
        None
    }
}
