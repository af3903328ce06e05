//! State of the sessions with venues from earlier processes, and a venue connector for each
//! gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_config::Config;
use pitlane_engine::event::EventKind;
use pitlane_engine::id::{AdapterId, PortId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::GATEWAYS;
use pitlane_gateway::binance::BinanceVenueSettings;
use pitlane_gateway::fix::message_log::FixLogWriter;
use pitlane_gateway::fix::store::FileStore;
use pitlane_gateway::fix::venue::VenueSessionSettings;
use pitlane_gateway::gateway::fix::Unreported;
use pitlane_gateway::gateway::venue::{VenueConnector, VenueParts, location_of};
use pitlane_journal::disk::Disk;
use pitlane_journal::metadata::JournalMetadata;
use pitlane_journal::{Fault, FaultKind, Level};

use super::acceptor::gateways;

/// Metadata key of the time at which the data folder first connected to a venue.
const FOLDER_ID: &str = "venue-birth";

/// The venues of the settings: those that speak FIX, and the others.
pub(super) type ConfiguredVenues = (Vec<VenueSessionSettings>, Vec<BinanceVenueSettings>);

#[derive(Debug)]
pub(super) struct VenueStores {
    level: Level,
    venues: Vec<VenueSessionSettings>,
    /// Venues without a store: what they have done is looked up.
    binance: Vec<BinanceVenueSettings>,
    /// Distinguishes the ids of this data folder from those of another.
    folder_id: u64,
    /// Instructions for which no store has a message.
    missed: Vec<Unreported>,
    /// Number of the last event of the last process, by shard.
    pub reported: Vec<u64>,
}

impl VenueStores {
    pub(super) fn open(
        config: &Config,
        (venues, binance): ConfiguredVenues,
        level: Level,
        now: Timestamp,
    ) -> Result<VenueStores, Fault> {
        let folder_id = match level {
            Level::None => now.0,
            Level::Replicated | Level::Disk | Level::Os if config.adapters.is_empty() => 0,
            Level::Replicated | Level::Disk | Level::Os => {
                folder_id(&JournalMetadata::open(&Disk::Real, &config.service.data_dir)?, now)?
            }
        };
        Ok(VenueStores { level, venues, binance, folder_id, missed: Vec::new(), reported: Vec::new() })
    }

    /// Returns the last instruction whose message each session has stored.
    pub(super) fn unreported(&self) -> Result<BTreeMap<AdapterId, Vec<u64>>, Fault> {
        let mut unreported = BTreeMap::new();
        for venue in &self.venues {
            if let Some(reported) = FileStore::peek(&location_of(&Disk::Real, venue, self.level))? {
                unreported.insert(venue.id, reported);
            }
        }
        Ok(unreported)
    }

    /// Handles an event of the last process; keeps instructions.
    pub(super) fn add_missed(&mut self, missed: &Unreported) {
        if let EventKind::ToVenue(_) = missed.event.body {
            self.missed.push(*missed);
        }
    }

    /// Creates a venue connector for each gateway that has sockets and venues: adapters are spread
    /// over the gateways in order.
    pub(super) fn connectors(
        self,
        now: Timestamp,
        config: &Config,
        reference: &Arc<RefData>,
        fix_log: &mut FixLogWriter,
    ) -> Result<Vec<Option<VenueConnector>>, Fault> {
        let gateways = gateways(config);
        let mut connectors = Vec::new();
        for gateway in 0..gateways {
            let is_here = |id: AdapterId| (id.0 - 1) % gateways == gateway;
            let venues: Vec<VenueSessionSettings> =
                self.venues.iter().filter(|venue| is_here(venue.id)).cloned().collect();
            let binance: Vec<BinanceVenueSettings> =
                self.binance.iter().filter(|venue| is_here(venue.id)).cloned().collect();
            if venues.is_empty() && binance.is_empty() {
                connectors.push(None);
                continue;
            }
            let parts = VenueParts {
                port: PortId(GATEWAYS + gateway),
                venues,
                binance,
                reference: reference.clone(),
                level: self.level,
                reported: self.reported.clone(),
                missed: self.missed.clone(),
                folder_id: self.folder_id,
                fix_log: fix_log.handle(),
            };
            connectors.push(Some(VenueConnector::new(now, parts)?));
        }
        Ok(connectors)
    }
}

fn folder_id(metadata: &JournalMetadata, now: Timestamp) -> Result<u64, Fault> {
    match metadata.get(FOLDER_ID)? {
        Some(bytes) => {
            let damaged = |_| {
                let what = FaultKind::StateDamaged("the note of the first venue is not a number".to_string());
                Fault::new(FOLDER_ID.as_ref(), 0, what)
            };
            Ok(u64::from_le_bytes(bytes.as_slice().try_into().map_err(damaged)?))
        }
        None => {
            metadata.put(FOLDER_ID, &now.0.to_le_bytes())?;
            Ok(now.0)
        }
    }
}
