//! State of a gateway's sessions from before the restart: their stores, and events that were not
//! reported.

use std::path::PathBuf;
use std::sync::Arc;

use pitlane_engine::event::{Event, RequestRefusal};
use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;
use pitlane_journal::disk::Disk;
use pitlane_journal::{Fault, Level};
use pitlane_protocols::fix::store::{MemoryStore, MessageStore};

use crate::fix::message_log;
use crate::fix::settings::SessionFamily;
use crate::fix::store::{FileStore, StoreLocation, path_of};

/// An event whose report no session has stored, or a venue's instruction whose message was not
/// stored.
#[derive(Clone, Copy, Debug)]
pub struct Unreported {
    pub shard: ShardId,
    pub event: Event,
}

/// An event after the restart that waits for the earlier ones, with the refusal that the desk
/// derived from it for its session.
#[derive(Debug)]
pub(super) struct EarlyEvent {
    pub shard: ShardId,
    pub event: Event,
    pub refusal: Option<RequestRefusal>,
    pub number: u16,
}

#[derive(Clone, Debug)]
pub struct SessionRecovery {
    pub level: Level,
    pub store_bytes: usize,
    /// Last event of each shard at the start: to a new store, all events up to it count as
    /// reported.
    pub reported: Vec<u64>,
    pub missed: Vec<Unreported>,
}

impl SessionRecovery {
    /// Opens the store of a session; in memory, where nothing is persisted.
    pub fn open_store(
        &self,
        now: Timestamp,
        name: &str,
        family: &SessionFamily,
        fix_log: &mut message_log::FixLogHandle,
    ) -> Result<Box<dyn MessageStore>, Fault> {
        if self.level == Level::None {
            return Ok(Box::new(MemoryStore::new(now)));
        }
        let disk = Disk::Real;
        let folder = &family.store_folder;
        disk.make_folder(folder).map_err(Fault::io(folder))?;
        let path: PathBuf = path_of(folder, name);
        let place = StoreLocation { disk: &disk, path, name, bytes: self.store_bytes, level: self.level };
        let store = FileStore::open(&place, now, &self.reported)?;
        if store.lost_power {
            tracing::warn!(
                session = name,
                "after a power loss sequence numbers of the FIX session were skipped"
            );
        }
        if self.level.is_synced() && !fix_log.sync(Arc::clone(store.file())) {
            tracing::error!(session = name, "the FIX store is not synced: too many at once");
        }
        Ok(Box::new(store))
    }
}
