//! State of the sessions with venues from earlier processes, and a venue connector for each
//! gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::event::EventKind;
use pitlane_engine::id::{AdapterId, PortId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::acceptor::gateways;
use crate::config::Config;
use crate::fix::caller::VenueSessionSettings;
use crate::fix::message_log::FixLogWriter;
use crate::fix::store::FileStore;
use crate::journal::disk::Disk;
use crate::journal::metadata::JournalMetadata;
use crate::journal::{Fault, Level, What};
use crate::platform::GATEWAYS;
use crate::platform::gateway::fix::Unreported;
use crate::platform::gateway::venue::{VenueConnector, VenueParts, place_of};

/// Metadata key of the time at which the data folder first connected to a venue.
const BIRTH: &str = "venue-birth";

#[derive(Debug)]
pub struct VenueStores {
    level: Level,
    callers: Vec<VenueSessionSettings>,
    /// Distinguishes the ids of this data folder from those of another.
    birth: u64,
    /// Instructions for which no store has a message.
    missed: Vec<Unreported>,
    /// Number of the last event of the last process, by shard.
    pub heard: Vec<u64>,
}

impl VenueStores {
    pub fn open(
        config: &Config,
        callers: Vec<VenueSessionSettings>,
        level: Level,
        now: Timestamp,
    ) -> Result<VenueStores, Fault> {
        let birth = match level {
            Level::None => now.0,
            Level::Replicated | Level::Disk | Level::Os if callers.is_empty() => 0,
            Level::Replicated | Level::Disk | Level::Os => {
                birth(&JournalMetadata::open(&Disk::Real, &config.service.data_dir)?, now)?
            }
        };
        Ok(VenueStores { level, callers, birth, missed: Vec::new(), heard: Vec::new() })
    }

    /// Returns the last instruction whose message each session has stored.
    pub fn unheard(&self) -> Result<BTreeMap<AdapterId, Vec<u64>>, Fault> {
        let mut unheard = BTreeMap::new();
        for caller in &self.callers {
            if let Some(heard) = FileStore::peek(&place_of(&Disk::Real, caller, self.level))? {
                unheard.insert(caller.id, heard);
            }
        }
        Ok(unheard)
    }

    /// Handles an event of the last process; keeps instructions.
    pub fn miss(&mut self, missed: &Unreported) {
        if let EventKind::ToVenue(_) = missed.event.body {
            self.missed.push(*missed);
        }
    }

    /// Creates a venue connector for each gateway that has sockets and venues: adapters are spread
    /// over the gateways in order.
    pub fn rooms(
        self,
        now: Timestamp,
        config: &Config,
        reference: &Arc<RefData>,
        clerk: &mut FixLogWriter,
    ) -> Result<Vec<Option<VenueConnector>>, Fault> {
        let gateways = gateways(config);
        let mut rooms = Vec::new();
        for gateway in 0..gateways {
            let is_here = |caller: &&VenueSessionSettings| (caller.id.0 - 1) % gateways == gateway;
            let callers: Vec<VenueSessionSettings> = self.callers.iter().filter(is_here).cloned().collect();
            if callers.is_empty() {
                rooms.push(None);
                continue;
            }
            let parts = VenueParts {
                port: PortId(GATEWAYS + gateway),
                callers,
                reference: reference.clone(),
                level: self.level,
                heard: self.heard.clone(),
                missed: self.missed.clone(),
                birth: self.birth,
                clerk: clerk.desk(),
            };
            rooms.push(Some(VenueConnector::new(now, parts)?));
        }
        Ok(rooms)
    }
}

fn birth(notes: &JournalMetadata, now: Timestamp) -> Result<u64, Fault> {
    match notes.get(BIRTH)? {
        Some(bytes) => {
            let damaged = |_| {
                let what = What::StateDamaged("the note of the first venue is not a number".to_string());
                Fault::new(BIRTH.as_ref(), 0, what)
            };
            Ok(u64::from_le_bytes(bytes.as_slice().try_into().map_err(damaged)?))
        }
        None => {
            notes.put(BIRTH, &now.0.to_le_bytes())?;
            Ok(now.0)
        }
    }
}
