//! State of the FIX acceptor from earlier processes, and a FIX endpoint for each gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use crate::auth::Auth;
use crate::config::{Config, Layout};
use crate::fix::handoff::ConnectionHandoff;
use crate::fix::message_log::FixLogWriter;
use crate::fix::session_registry::{SessionAssignment, SessionAssignments, SessionRegistry};
use crate::fix::settings::FixSettings;
use crate::fix::store::{FileStore, StoreLocation, path_of};
use crate::journal::disk::Disk;
use crate::journal::metadata::JournalMetadata;
use crate::journal::{Fault, Heard, Level, Unheard};
use crate::platform::GATEWAYS;
use crate::platform::gateway::fix::{FixEndpoint, FixParts, SessionRecovery, Unreported};
use crate::wakeups::Wakeups;

/// Numbers for ids reserved at each start, for each gateway: for cancels that the platform makes.
const NUMBERS: u64 = 1 << 32;

#[derive(Debug)]
pub struct Acceptor {
    level: Level,
    /// None: nothing is stored.
    notes: Option<JournalMetadata>,
    homes: Arc<SessionAssignments>,
    settings: Arc<FixSettings>,
    /// Events of the last process that were not reported.
    pub missed: Vec<Unreported>,
    /// Number of the last event of the last process, by shard.
    pub heard: Vec<u64>,
}

impl Acceptor {
    /// Reads the registry of sessions.
    pub fn open(config: &Config, reference: &RefData, level: Level) -> Result<Acceptor, Fault> {
        let notes = match level {
            Level::None => None,
            Level::Replicated | Level::Disk | Level::Os => {
                Some(JournalMetadata::open(&Disk::Real, &config.service.data_dir)?)
            }
        };
        let homes = Arc::new(SessionAssignments::read(notes.as_ref(), gateways(config))?);
        let settings = Arc::new(FixSettings::of(config, reference));
        Ok(Acceptor { level, notes, homes, settings, missed: Vec::new(), heard: Vec::new() })
    }

    /// Returns the last shard event that each session has reported. The store of a session is read
    /// only if the journal has an event for it.
    pub fn unheard(&self) -> Unheard {
        let source = |home: SessionAssignment| Source {
            origin: Origin::Fix,
            port: PortId(GATEWAYS + home.gateway),
            session: home.number,
        };
        let names: BTreeMap<Source, String> =
            self.homes.known().map(|(name, home)| (source(home), name.to_string())).collect();
        if names.is_empty() {
            return Unheard::default();
        }
        let (settings, level) = (self.settings.clone(), self.level);
        let look = move |source: Source| {
            let name = names.get(&source)?;
            let heard = FileStore::peek(&place_of(&settings, level, name)?);
            // The session cannot be opened either; the fault is reported again when its client logs
            // on.
            heard
                .inspect_err(|fault| tracing::error!(session = name, %fault, "a FIX store cannot be read"))
                .ok()?
        };
        Unheard { sources: Heard::by(look), ..Unheard::default() }
    }

    /// Returns by shard the last event that every session has reported; None if no session stores
    /// anything.
    pub fn least_heard(&self) -> Result<Option<Vec<u64>>, Fault> {
        let mut least: Option<Vec<u64>> = None;
        for (name, _) in self.homes.known() {
            let Some(place) = place_of(&self.settings, self.level, name) else { continue };
            let Some(heard) = FileStore::peek_head(&place)? else { continue };
            least = Some(match least {
                Some(least) => least.iter().zip(&heard).map(|(one, other)| *one.min(other)).collect(),
                None => heard,
            });
        }
        Ok(least)
    }

    /// Creates an endpoint for each gateway with sockets, and the log writer for all of them.
    pub fn rooms(
        self,
        now: Timestamp,
        config: &Config,
        reference: &Arc<RefData>,
        bells: &Wakeups,
        auth: &mut Auth,
    ) -> Result<(Vec<FixEndpoint>, FixLogWriter), Fault> {
        let (gateways, mut clerk) = (gateways(config), FixLogWriter::default());
        let port = |gateway: u8| PortId(GATEWAYS + gateway);
        let bell = |gateway: u8| bells.ports[port(gateway).0 as usize].clone();
        let bells: Vec<_> = (0..gateways).map(bell).collect();
        let mut rooms = Vec::new();
        for (gateway, passage) in (0..gateways).zip(ConnectionHandoff::between(&bells)) {
            let numbers = match &self.notes {
                Some(notes) => notes.reserve(&format!("fix-ids-{gateway}"), NUMBERS)?,
                None => IdBlock { next: 1, end: NUMBERS },
            };
            let past = SessionRecovery {
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
                ledger: SessionRegistry::open(self.notes.clone(), gateway)?,
                reference: reference.clone(),
                past,
                passage,
                clerk: clerk.desk(),
                seat: auth.seat(bells[gateway as usize].clone()),
                numbers,
            };
            rooms.push(FixEndpoint::new(now, parts)?);
        }
        Ok((rooms, clerk))
    }
}

/// Returns the location of a session's store; None if the settings no longer have such a session.
fn place_of<'a>(settings: &FixSettings, level: Level, name: &'a str) -> Option<StoreLocation<'a>> {
    let (family, _) = settings.family_of(name)?;
    let path = path_of(&family.store_folder, name);
    Some(StoreLocation { disk: &Disk::Real, path, name, bytes: settings.store_bytes, level })
}

/// Returns the number of gateways with sockets: in the shared layout the first has those of all.
pub(super) fn gateways(config: &Config) -> u8 {
    match config.topology.layout {
        Layout::Shared => 1,
        Layout::Dedicated => config.topology.gateways,
    }
}
