//! State from earlier processes, and the threads that store this one: the journal, opened and
//! recovered.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pitlane_cluster::standby::StandbyHandle;
use pitlane_config::{Config, Durability, IdleBy, ServiceMode};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{ShardId, Source};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::gateway::fix::Unreported;
use pitlane_gateway::strategies;
use pitlane_gateway::{HTTP, NUMBERS, PlatformParts, PlatformSettings, RecoveredShard};
use pitlane_http::Numbers;
use pitlane_journal::disk::Disk;
use pitlane_journal::metadata::JournalMetadata;
use pitlane_journal::{
    EventReceivers, Fault, Health, JournalSettings, JournalSetup, Level, Lock, Opened, PastEvents,
    RecoveryProgress, SegmentManager, Syncer,
};
use pitlane_protocols::remote;
use pitlane_runtime::service_manager::ServiceManager;
use pitlane_runtime::thread_class::ThreadClass;
use pitlane_runtime::thread_wakeup::ThreadWakeup;
use pitlane_runtime::wakeups::Wakeups;
use rtrb::{Producer, RingBuffer};

use super::acceptor::Acceptor;
use super::venues::{ConfiguredVenues, VenueStores};
use crate::topology::worker_thread::{Duty, SyncerDuty, ThreadSpec};

/// Metadata key of the numbers of the demo trader's orders.
const TRADER_IDS: &str = "trader-ids";
/// Metadata key of the numbers of REST orders.
const REST_IDS: &str = "rest-ids";
/// Numbers for ids of REST orders reserved at once: seconds of orders at full speed, and ids stay
/// short however often the service starts.
const REST_NUMBERS: u64 = 1 << 16;
/// Blocks of numbers in reserve: some more seconds, since they are refilled once a second.
const REST_BLOCKS: usize = 4;
/// Metadata key of the numbers of orders of remote strategies. Each start reserves
/// `REMOTE_NUMBERS` of them: enough for some ten thousand processes.
const REMOTE_IDS: &str = "outpost-ids";
const REMOTE_NUMBERS: u64 = 1 << 42;
/// Interval of progress messages of a long recovery.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Shards as this process starts them, and the journal they continue.
#[derive(Debug)]
pub(super) struct RecoveredState {
    pub recovered: Vec<RecoveredShard>,
    /// The configured reference data, and all rows that vanished since the journal began.
    pub reference: Arc<RefData>,
    /// Only the configured reference data.
    pub configured: Arc<RefData>,
    /// None: nothing is stored.
    pub journal_parts: Option<JournalParts>,
    /// Unused numbers for ids of orders of the demo trader and of strategies in this process.
    pub numbers: IdBlock,
    pub acceptor: Acceptor,
    /// Events about remote strategies, by shard, and numbers for the ids of their orders.
    pub past: Vec<PastEvents>,
    pub remote_numbers: IdBlock,
    pub venues: VenueStores,
    /// Numbers for ids of REST orders, and their refill.
    pub rest_numbers: Numbers,
    pub id_supply: Option<IdSupply>,
}

/// Keeps blocks of numbers in reserve for threads that make ids and must not wait for the disk.
#[derive(Debug)]
pub(super) struct IdSupply {
    metadata: JournalMetadata,
    blocks: Producer<IdBlock>,
}

impl IdSupply {
    fn begin(metadata: JournalMetadata) -> Result<(Numbers, IdSupply), Fault> {
        let first = metadata.reserve(REST_IDS, REST_NUMBERS)?;
        let (blocks, lane) = RingBuffer::new(REST_BLOCKS);
        let mut id_supply = IdSupply { metadata, blocks };
        id_supply.fill()?;
        Ok((Numbers::new(first, lane), id_supply))
    }

    /// Reserves as many blocks as were taken.
    pub(super) fn fill(&mut self) -> Result<(), Fault> {
        while self.blocks.slots() > 0 {
            let block = self.metadata.reserve(REST_IDS, REST_NUMBERS)?;
            let pushed = self.blocks.push(block);
            assert!(pushed.is_ok(), "there was room and no other thread writes");
        }
        Ok(())
    }
}

/// The parts of the journal besides the shards.
#[derive(Debug)]
pub(super) struct JournalParts {
    pub syncer: Syncer,
    pub segment_manager: SegmentManager,
    pub healths: Vec<(ShardId, Arc<Health>)>,
    /// Lock on the journal: while it is held, no other process opens the journal.
    pub lock: Lock,
}

impl RecoveredState {
    pub(super) fn open(
        config: &Config,
        venues: ConfiguredVenues,
        reference: &Arc<RefData>,
        now: Timestamp,
        manager: &mut ServiceManager,
    ) -> Result<RecoveredState, Fault> {
        let settings = PlatformSettings::of(config, reference);
        let level = match config.durability() {
            Durability::Replicated => Level::Replicated,
            Durability::Disk => Level::Disk,
            Durability::Os => Level::Os,
            Durability::None => {
                let recovered = PlatformParts::fresh_shards(reference, &settings);
                let numbers = IdBlock { next: 1, end: NUMBERS };
                let acceptor = Acceptor::open(config, reference, Level::None)?;
                let venues = VenueStores::open(config, venues, Level::None, now)?;
                let rest_numbers = Numbers::only(numbers);
                let reference = reference.clone();
                return Ok(RecoveredState {
                    recovered,
                    configured: reference.clone(),
                    reference,
                    journal_parts: None,
                    numbers,
                    rest_numbers,
                    id_supply: None,
                    acceptor,
                    past: Vec::new(),
                    remote_numbers: IdBlock { next: 1, end: REMOTE_NUMBERS },
                    venues,
                });
            }
        };
        let (disk, data) = (Disk::Real, config.service.data_dir.as_path());
        let acceptor = Acceptor::open(config, reference, level)?;
        let venues = VenueStores::open(config, venues, level, now)?;
        let setup = JournalSetup {
            disk: &disk,
            data,
            journal: journal_settings(config, level),
            shards: settings.shards,
            reference: RefData::clone(reference),
            settings: settings.shard,
            receivers: EventReceivers {
                venues: venues.unreported()?,
                elsewhere: remote_sources(config, reference),
                abroad: config.cluster.is_on(),
                elsewhere_max: config.remote_strategies.events_kept.max(config.cluster.events_kept),
                ..acceptor.unreported()?
            },
        };
        let mut recovery_log = RecoveryLog { logged_at: Instant::now() };
        let opened = pitlane_journal::open(setup, now, &mut |progress| {
            recovery_log.log_progress(progress);
            manager.ping();
        })?;
        let metadata = JournalMetadata::open(&disk, data)?;
        let numbers = metadata.reserve(TRADER_IDS, NUMBERS)?;
        let remote_numbers = metadata.reserve(REMOTE_IDS, REMOTE_NUMBERS)?;
        let (rest_numbers, id_supply) = IdSupply::begin(metadata)?;
        let id_supply = Some(id_supply);
        Ok(RecoveredState {
            configured: reference.clone(),
            rest_numbers,
            id_supply,
            remote_numbers,
            ..RecoveredState::of(opened, settings.shards, numbers, acceptor, venues)
        })
    }

    /// Returns the time of the last command that any shard has applied.
    pub(super) fn last(&self) -> Timestamp {
        self.recovered.iter().map(|recovered| recovered.at).max().unwrap_or(Timestamp::ZERO)
    }

    fn of(
        opened: Opened,
        shards_all: u8,
        numbers: IdBlock,
        mut acceptor: Acceptor,
        mut venues: VenueStores,
    ) -> RecoveredState {
        let Opened { shards, syncer, segment_manager, lock, reference, reference_changes } = opened;
        if let Some(changes) = reference_changes {
            tracing::warn!(
                changes,
                "refdata.dir: the reference data differ from those of this journal; rows that are gone stay, and cannot be traded"
            );
        }
        // This server has no state of shards that other members own.
        for reported in [&mut acceptor.reported, &mut venues.reported] {
            reported.resize(shards_all as usize, 0);
        }
        let mut past: Vec<PastEvents> = Vec::new();
        past.resize_with(shards_all as usize, PastEvents::default);
        let (mut recovered, mut healths) = (Vec::new(), Vec::new());
        for shard in shards {
            let (found, id) = (shard.found, shard.shard.id());
            let at = id.0 as usize;
            for warning in &found.warnings {
                tracing::warn!(shard = at, "{warning}");
            }
            if found.seq > 0 {
                tracing::info!(
                    shard = at,
                    records = found.seq,
                    snapshot = found.snapshot,
                    "journal read back"
                );
            }
            healths.push((id, shard.writer.health().clone()));
            let missed = shard.missed.into_iter().map(|event| Unreported { shard: id, event });
            acceptor.missed.extend(missed.inspect(|missed| venues.add_missed(missed)));
            past[at] = shard.past;
            (acceptor.reported[at], venues.reported[at]) = (shard.event, shard.event);
            recovered.push(RecoveredShard {
                shard: shard.shard,
                seq: shard.event,
                at: shard.now,
                writer: Some(shard.writer),
            });
        }
        let journal_parts = Some(JournalParts { syncer, segment_manager, healths, lock });
        let (rest_numbers, remote_numbers) = (Numbers::default(), IdBlock::default());
        let id_supply = None;
        RecoveredState {
            recovered,
            configured: reference.clone(),
            reference,
            journal_parts,
            numbers,
            rest_numbers,
            id_supply,
            acceptor,
            venues,
            past,
            remote_numbers,
        }
    }
}

impl JournalParts {
    /// Returns the threads of the syncer and the segment manager, with the wake-ups connected.
    pub(super) fn thread_specs(
        mut syncer: Syncer,
        segment_manager: SegmentManager,
        recovered: &mut [RecoveredShard],
        wakeups: &Wakeups,
        (core, level): (Option<u32>, Durability),
        standby: Option<&StandbyHandle>,
    ) -> [ThreadSpec; 2] {
        let spec = |name: &str, duty, wakeup_slot: ThreadWakeup, wakeup, class| ThreadSpec {
            name: name.to_string(),
            duties: vec![duty],
            idle: IdleBy::Park,
            core,
            wakeup_slot,
            wakeup,
            net: None,
            class,
        };
        let (syncer_slot, manager_slot) = (ThreadWakeup::default(), ThreadWakeup::default());
        let (syncer_wakeup, manager_wakeup) = (syncer_slot.wakeup(), manager_slot.wakeup());
        for writer in recovered.iter_mut().filter_map(|recovered| recovered.writer.as_mut()) {
            writer.set_wakeup(syncer_wakeup.clone());
        }
        for (at, recovered) in recovered.iter().enumerate() {
            syncer.set_wakeup(at, wakeups.shards[recovered.shard.id().0 as usize].clone());
        }
        if let Some(standby) = standby {
            syncer.set_shipper(standby.wakeup());
        }
        let syncer = SyncerDuty { syncer, segment_manager: manager_wakeup.clone(), finished: false };
        let (syncer, manager) =
            (Duty::Syncer(Box::new(syncer)), Duty::SegmentManager(Box::new(segment_manager)));
        // Where an acknowledgement waits for the disk, orders wait for the syncer.
        let class = if level.is_synced() { ThreadClass::Orders } else { ThreadClass::Housekeeping };
        [
            spec("journal", syncer, syncer_slot, syncer_wakeup, class),
            spec("segments", manager, manager_slot, manager_wakeup, ThreadClass::Housekeeping),
        ]
    }
}

/// Returns the sources whose earlier events are read from the journal.
fn remote_sources(config: &Config, reference: &RefData) -> Vec<Source> {
    if config.service.mode != ServiceMode::Distributed {
        return Vec::new();
    }
    let here = strategies::run_here(&config.strategies, reference);
    here.into_iter().map(|strategy| remote::strategy::source(HTTP, strategy)).collect()
}

/// Creates the data folder if it does not exist, readable by its owner only, since it holds the
/// trades of all clients. The permissions of an existing folder are left as they are.
pub(super) fn make_folder(config: &Config) -> std::io::Result<&Path> {
    let folder = config.service.data_dir.as_path();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Ok(folder)
}

fn journal_settings(config: &Config, level: Level) -> JournalSettings {
    let journal = config.journal;
    JournalSettings {
        level,
        segment_bytes: journal.segment_bytes,
        spares: journal.reserve_segments,
        sync_interval_ns: journal.sync_interval_ms as u64 * pitlane_engine::time::NS_PER_MS,
        snapshot_bytes: journal.snapshot_every_bytes,
        keep_days: journal.retention_days,
        far: config.far_shards(),
    }
}

/// Reports the progress of a recovery that takes long.
struct RecoveryLog {
    logged_at: Instant,
}

impl RecoveryLog {
    fn log_progress(&mut self, progress: RecoveryProgress) {
        if self.logged_at.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.logged_at = Instant::now();
        let RecoveryProgress { shard, bytes_done, bytes_total } = progress;
        let percent = (bytes_done * 100).checked_div(bytes_total).unwrap_or(100);
        tracing::info!(shard, percent, bytes_done, bytes_total, "reading the journal back");
    }
}
