//! What the sessions with venues bring from earlier lives, and a room for each gateway to call them from.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::event::EventKind;
use pitlane_engine::id::{AdapterId, PortId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::acceptor::gateways;
use crate::config::Config;
use crate::fix::caller::Caller;
use crate::fix::message_log::FixLogWriter;
use crate::fix::store::FileStore;
use crate::journal::disk::Disk;
use crate::journal::metadata::JournalMetadata;
use crate::journal::{Fault, Level, What};
use crate::platform::GATEWAYS;
use crate::platform::gateway::fix::Unreported;
use crate::platform::gateway::venue::{VenueConnector, VenueParts, place_of};

/// Under this key it is noted when the data folder first spoke with a venue.
const BIRTH: &str = "venue-birth";

#[derive(Debug)]
pub struct Venues {
    level: Level,
    callers: Vec<Caller>,
    /// Tells the ids of this data folder from those of another.
    birth: u64,
    /// Instructions that no store has a message of.
    missed: Vec<Unreported>,
    /// By shard: the last event of the last life.
    pub heard: Vec<u64>,
}

impl Venues {
    pub fn open(
        config: &Config,
        callers: Vec<Caller>,
        level: Level,
        now: Timestamp,
    ) -> Result<Venues, Fault> {
        let birth = match level {
            Level::None => now.0,
            Level::Replicated | Level::Disk | Level::Os if callers.is_empty() => 0,
            Level::Replicated | Level::Disk | Level::Os => {
                birth(&JournalMetadata::open(&Disk::Real, &config.service.data_dir)?, now)?
            }
        };
        Ok(Venues { level, callers, birth, missed: Vec::new(), heard: Vec::new() })
    }

    /// Up to which instruction each session has kept what it sent.
    pub fn unheard(&self) -> Result<BTreeMap<AdapterId, Vec<u64>>, Fault> {
        let mut unheard = BTreeMap::new();
        for caller in &self.callers {
            if let Some(heard) = FileStore::peek(&place_of(&Disk::Real, caller, self.level))? {
                unheard.insert(caller.id, heard);
            }
        }
        Ok(unheard)
    }

    /// An event of the last life; instructions are kept in mind.
    pub fn miss(&mut self, missed: &Unreported) {
        if let EventKind::ToVenue(_) = missed.event.body {
            self.missed.push(*missed);
        }
    }

    /// A room for each gateway with sockets that has venues: adapters are spread over them by their order.
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
            let is_here = |caller: &&Caller| (caller.id.0 - 1) % gateways == gateway;
            let callers: Vec<Caller> = self.callers.iter().filter(is_here).cloned().collect();
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
