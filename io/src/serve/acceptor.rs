//! What the FIX acceptor brings from earlier lives, and a room for each gateway to receive its clients in.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use crate::auth::Auth;
use crate::config::{Config, Layout};
use crate::fix::clerk::Clerk;
use crate::fix::ledger::{Homes, Ledger};
use crate::fix::passage::Passage;
use crate::fix::settings::FixSettings;
use crate::fix::store::{FileStore, Place, path_of};
use crate::journal::disk::Disk;
use crate::journal::notes::Notes;
use crate::journal::{Fault, Level, Unheard};
use crate::platform::GATEWAYS;
use crate::platform::gateway::fix::{FixParts, FixRoom, Past, Unreported};
use crate::topology::bells::Bells;

/// Numbers for ids taken at each start, by gateway: for cancels that the house makes.
const NUMBERS: u64 = 1 << 32;

#[derive(Debug)]
pub struct Acceptor {
    level: Level,
    /// None: nothing is kept.
    notes: Option<Notes>,
    homes: Arc<Homes>,
    settings: Arc<FixSettings>,
    /// Events that were not reported before the end of the last life.
    pub missed: Vec<Unreported>,
    /// By shard: the last event of the last life.
    pub heard: Vec<u64>,
}

impl Acceptor {
    /// Reads who was here.
    pub fn open(config: &Config, reference: &RefData, level: Level) -> Result<Acceptor, Fault> {
        let notes = match level {
            Level::None => None,
            Level::Replicated | Level::Disk | Level::Os => {
                Some(Notes::open(&Disk::Real, &config.service.data_dir)?)
            }
        };
        let homes = Arc::new(Homes::read(notes.as_ref(), gateways(config))?);
        let settings = Arc::new(FixSettings::of(config, reference));
        Ok(Acceptor { level, notes, homes, settings, missed: Vec::new(), heard: Vec::new() })
    }

    /// Up to where each session has reported what the shards said.
    pub fn unheard(&self) -> Result<Unheard, Fault> {
        let mut unheard = BTreeMap::new();
        for (name, home) in self.homes.known() {
            let Some((family, _)) = self.settings.family_of(name) else { continue };
            let path = path_of(&family.store_folder, name);
            let place =
                Place { disk: &Disk::Real, path, name, bytes: self.settings.store_bytes, level: self.level };
            if let Some(heard) = FileStore::peek(&place)? {
                let port = PortId(GATEWAYS + home.gateway);
                unheard.insert(Source { origin: Origin::Fix, port, session: home.number }, heard);
            }
        }
        Ok(Unheard { sources: unheard, ..Unheard::default() })
    }

    /// By shard: what every session has reported at least; None if there is no session that keeps anything.
    pub fn least_heard(&self) -> Result<Option<Vec<u64>>, Fault> {
        let heard = self.unheard()?.sources.into_values();
        let least = |one: Vec<u64>, other: Vec<u64>| one.iter().zip(&other).map(|(a, b)| *a.min(b)).collect();
        Ok(heard.reduce(least))
    }

    /// A room for each gateway that has sockets, and the clerk for all of them.
    pub fn rooms(
        self,
        now: Timestamp,
        config: &Config,
        reference: &Arc<RefData>,
        bells: &Bells,
        auth: &mut Auth,
    ) -> Result<(Vec<FixRoom>, Clerk), Fault> {
        let (gateways, mut clerk) = (gateways(config), Clerk::default());
        let port = |gateway: u8| PortId(GATEWAYS + gateway);
        let bell = |gateway: u8| bells.ports[port(gateway).0 as usize].clone();
        let bells: Vec<_> = (0..gateways).map(bell).collect();
        let mut rooms = Vec::new();
        for (gateway, passage) in (0..gateways).zip(Passage::between(&bells)) {
            let numbers = match &self.notes {
                Some(notes) => notes.reserve(&format!("fix-ids-{gateway}"), NUMBERS)?,
                None => IdBlock { next: 1, end: NUMBERS },
            };
            let past = Past {
                level: self.level,
                store_bytes: self.settings.store_bytes,
                heard: self.heard.clone(),
                missed: self.missed.clone(),
            };
            let parts = FixParts {
                gateway,
                port: port(gateway),
                shards: config.topology.shards,
                settings: self.settings.clone(),
                homes: self.homes.clone(),
                ledger: Ledger::open(self.notes.clone(), gateway)?,
                reference: reference.clone(),
                past,
                passage,
                clerk: clerk.desk(),
                seat: auth.seat(bells[gateway as usize].clone()),
                numbers,
            };
            rooms.push(FixRoom::new(now, parts)?);
        }
        Ok((rooms, clerk))
    }
}

/// Gateways with sockets: in the shared layout the first has those of all.
pub(super) fn gateways(config: &Config) -> u8 {
    match config.topology.layout {
        Layout::Shared => 1,
        Layout::Dedicated => config.topology.gateways,
    }
}
