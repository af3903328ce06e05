//! State of the FIX acceptor from earlier processes, and a FIX endpoint for each gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_auth::Auth;
use pitlane_config::{Config, Layout};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::GATEWAYS;
use pitlane_gateway::fix::handoff::ConnectionHandoff;
use pitlane_gateway::fix::message_log::FixLogWriter;
use pitlane_gateway::fix::session_registry::{SessionAssignment, SessionAssignments, SessionRegistry};
use pitlane_gateway::fix::settings::FixSettings;
use pitlane_gateway::fix::store::{FileStore, StoreLocation, path_of};
use pitlane_gateway::gateway::fix::{FixEndpoint, FixParts, SessionRecovery, Unreported};
use pitlane_journal::disk::Disk;
use pitlane_journal::metadata::JournalMetadata;
use pitlane_journal::{CopyReceiver, EventReceivers, Fault, Level, ReceivedSeqs};
use pitlane_runtime::wakeups::Wakeups;

/// Numbers for ids reserved at each start, for each gateway: for cancels that the platform makes.
const NUMBERS: u64 = 1 << 32;

#[derive(Debug)]
pub(super) struct Acceptor {
    level: Level,
    /// None: nothing is stored.
    metadata: Option<JournalMetadata>,
    assignments: Arc<SessionAssignments>,
    settings: FixSettings,
    /// Events of the last process that were not reported.
    pub missed: Vec<Unreported>,
    /// Number of the last event of the last process, by shard.
    pub reported: Vec<u64>,
}

impl Acceptor {
    /// Reads the registry of sessions.
    pub(super) fn open(config: &Config, reference: &RefData, level: Level) -> Result<Acceptor, Fault> {
        let metadata = match level {
            Level::None => None,
            Level::Replicated | Level::Disk | Level::Os => {
                Some(JournalMetadata::open(&Disk::Real, &config.service.data_dir)?)
            }
        };
        let assignments = Arc::new(SessionAssignments::read(metadata.as_ref(), gateways(config))?);
        let mut settings = FixSettings::of(config, reference);
        // A session that is not known yet has no past events.
        settings.assign_copied_sessions(|name| {
            let mut known = assignments.known();
            Ok::<_, Fault>(known.find(|(other, _)| *other == name).map(|(_, assigned)| source_of(assigned)))
        })?;
        Ok(Acceptor { level, metadata, assignments, settings, missed: Vec::new(), reported: Vec::new() })
    }

    /// Returns the last shard event that each session has reported. The store of a session is read
    /// only if the journal has an event for it.
    pub(super) fn unreported(&self) -> Result<EventReceivers, Fault> {
        let names: BTreeMap<Source, String> = self
            .assignments
            .known()
            .map(|(name, assignment)| (source_of(assignment), name.to_string()))
            .collect();
        if names.is_empty() {
            return Ok(EventReceivers::default());
        }
        let (settings, level) = (self.settings.clone(), self.level);
        let read_reported = move |source: Source| {
            let name = names.get(&source)?;
            let reported = FileStore::peek(&location_of(&settings, level, name)?);
            // The session cannot be opened either; the fault is reported again when its client logs
            // on.
            reported
                .inspect_err(|fault| tracing::error!(session = name, %fault, "a FIX store cannot be read"))
                .ok()?
        };
        let sources = ReceivedSeqs::by(read_reported);
        Ok(EventReceivers { sources, copies: self.copy_receivers()?, ..EventReceivers::default() })
    }

    /// Returns the drop-copy sessions that have a store, with the last shard event of which each
    /// has a copy.
    fn copy_receivers(&self) -> Result<Vec<CopyReceiver>, Fault> {
        let mut receivers = Vec::new();
        for (name, filter) in self.settings.drop_copies() {
            let Some(location) = location_of(&self.settings, self.level, &name) else { continue };
            if let Some(received) = FileStore::peek(&location)? {
                receivers.push(CopyReceiver { received, filter: filter.clone() });
            }
        }
        Ok(receivers)
    }

    /// Returns by shard the last event that every session has reported; None if no session stores
    /// anything.
    pub(super) fn least_reported(&self) -> Result<Option<Vec<u64>>, Fault> {
        let mut least: Option<Vec<u64>> = None;
        for (name, _) in self.assignments.known() {
            let Some(location) = location_of(&self.settings, self.level, name) else { continue };
            let Some(reported) = FileStore::peek_head(&location)? else { continue };
            least = Some(match least {
                Some(least) => least.iter().zip(&reported).map(|(one, other)| *one.min(other)).collect(),
                None => reported,
            });
        }
        Ok(least)
    }

    /// Creates an endpoint for each gateway with sockets, and the log writer for all of them.
    pub(super) fn endpoints(
        mut self,
        now: Timestamp,
        config: &Config,
        reference: &Arc<RefData>,
        wakeups: &Wakeups,
        auth: &mut Auth,
    ) -> Result<(Vec<FixEndpoint>, FixLogWriter), Fault> {
        let (gateways, mut fix_log) = (gateways(config), FixLogWriter::default());
        let port = |gateway: u8| PortId(GATEWAYS + gateway);
        let wakeup = |gateway: u8| wakeups.ports[port(gateway).0 as usize].clone();
        let wakeups: Vec<_> = (0..gateways).map(wakeup).collect();
        let open = |gateway| SessionRegistry::open(self.metadata.clone(), gateway);
        let mut registries = (0..gateways).map(open).collect::<Result<Vec<_>, Fault>>()?;
        // Sessions whose reports are copied get their numbers now, so that filters know them before
        // their first order.
        self.settings.assign_copied_sessions(|name| {
            let gateway = self.assignments.gateway(name);
            let number = registries[gateway as usize].number(name)?;
            Ok::<_, Fault>(number.map(|number| source_of(SessionAssignment { gateway, number })))
        })?;
        let settings = Arc::new(self.settings);
        let mut endpoints = Vec::new();
        let handoffs = ConnectionHandoff::between(&wakeups);
        for ((gateway, handoff), registry) in (0..gateways).zip(handoffs).zip(registries) {
            let numbers = match &self.metadata {
                Some(metadata) => metadata.reserve(&format!("fix-ids-{gateway}"), NUMBERS)?,
                None => IdBlock { next: 1, end: NUMBERS },
            };
            let recovery = SessionRecovery {
                level: self.level,
                store_bytes: settings.store_bytes,
                reported: self.reported.clone(),
                missed: self.missed.clone(),
            };
            let parts = FixParts {
                gateway,
                port: port(gateway),
                shards: config.topology.shards,
                settings: settings.clone(),
                assignments: self.assignments.clone(),
                registry,
                reference: reference.clone(),
                recovery,
                handoff,
                fix_log: fix_log.handle(),
                auth: auth.client(wakeups[gateway as usize].clone()),
                numbers,
            };
            endpoints.push(FixEndpoint::new(now, parts)?);
        }
        Ok((endpoints, fix_log))
    }
}

fn source_of(assignment: SessionAssignment) -> Source {
    let SessionAssignment { gateway, number } = assignment;
    Source { origin: Origin::Fix, port: PortId(GATEWAYS + gateway), session: number }
}

/// Returns the location of a session's store; None if the settings no longer have such a session.
fn location_of<'a>(settings: &FixSettings, level: Level, name: &'a str) -> Option<StoreLocation<'a>> {
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
