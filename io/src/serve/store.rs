//! What is there from earlier lives, and who keeps this one: the journal, opened and read back.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::{ShardId, Source};
use pitlane_engine::refdata::RefData;
use pitlane_engine::strategy::remote_protocol;
use pitlane_engine::time::Timestamp;
use rtrb::{Producer, RingBuffer};

use super::acceptor::Acceptor;
use super::venues::Venues;
use crate::config::{Config, Durability, IdleBy, Mode};
use crate::fix::caller::Caller;
use crate::http::Numbers;
use crate::journal::disk::Disk;
use crate::journal::metadata::JournalMetadata;
use crate::journal::{
    self, Fault, Health, JournalSettings, Level, Lock, Opened, Past, Progress, SegmentManager, Setup, Syncer,
    Unheard,
};
use crate::platform::gateway::fix::Unreported;
use crate::platform::{HTTP, NUMBERS, Parts, PlatformSettings, RecoveredShard};
use crate::standby::StandbyHandle;
use crate::strategies;
use crate::thread_wakeup::ThreadWakeup;
use crate::topology::worker_thread::{Duty, SyncerDuty, ThreadSpec};
use crate::wakeups::Wakeups;

/// Under this key the numbers of the demo trader's orders are noted.
const TRADER_IDS: &str = "trader-ids";
/// Under this key those of orders over REST.
const REST_IDS: &str = "rest-ids";
/// Numbers for ids of REST orders noted ahead in one go: seconds of orders at full speed, and ids stay short however often we
/// start.
const REST_NUMBERS: u64 = 1 << 16;
/// Blocks of them that lie ready: some more seconds, since they are made once a second.
const REST_BLOCKS: usize = 4;
/// Under this key the numbers of orders of strategies elsewhere; so many are taken at each start: enough for some ten thousand processes.
const OUTPOST_IDS: &str = "outpost-ids";
const OUTPOST_NUMBERS: u64 = 1 << 42;
/// How often a long recovery is told of.
const PROGRESS: Duration = Duration::from_secs(1);

/// Shards as they begin this life, and the journal they go on in.
#[derive(Debug)]
pub struct Store {
    pub born: Vec<RecoveredShard>,
    /// The configured ones, and all that vanished since the journal began.
    pub reference: Arc<RefData>,
    /// The configured ones alone.
    pub configured: Arc<RefData>,
    /// None: nothing is kept.
    pub staff: Option<Staff>,
    /// For ids of the demo trader's orders, never given before.
    pub numbers: IdBlock,
    pub acceptor: Acceptor,
    /// By shard: what it said of strategies elsewhere, and for the ids of their orders.
    pub past: Vec<Past>,
    pub outpost_numbers: IdBlock,
    pub venues: Venues,
    /// For ids of orders over REST, and who sees to it that there are more.
    pub rest_numbers: Numbers,
    pub supply: Option<Supply>,
}

/// Keeps blocks of numbers ready for whoever makes ids and must not wait for the disk.
#[derive(Debug)]
pub struct Supply {
    notes: JournalMetadata,
    blocks: Producer<IdBlock>,
}

impl Supply {
    fn begin(notes: JournalMetadata) -> Result<(Numbers, Supply), Fault> {
        let first = notes.reserve(REST_IDS, REST_NUMBERS)?;
        let (blocks, lane) = RingBuffer::new(REST_BLOCKS);
        let mut supply = Supply { notes, blocks };
        supply.fill()?;
        Ok((Numbers::new(first, lane), supply))
    }

    /// Notes as many blocks as have been taken.
    pub fn fill(&mut self) -> Result<(), Fault> {
        while self.blocks.slots() > 0 {
            let block = self.notes.reserve(REST_IDS, REST_NUMBERS)?;
            let pushed = self.blocks.push(block);
            assert!(pushed.is_ok(), "there was room and nobody else writes");
        }
        Ok(())
    }
}

/// Who works for the journal besides the shards.
#[derive(Debug)]
pub struct Staff {
    pub keeper: Syncer,
    pub steward: SegmentManager,
    pub healths: Vec<(ShardId, Arc<Health>)>,
    /// As long as it is held no other process opens the journal.
    pub lock: Lock,
}

impl Store {
    pub fn open(
        config: &Config,
        callers: Vec<Caller>,
        reference: &Arc<RefData>,
        now: Timestamp,
    ) -> Result<Store, Fault> {
        let settings = PlatformSettings::of(config, reference);
        let level = match config.durability() {
            Durability::Replicated => Level::Replicated,
            Durability::Disk => Level::Disk,
            Durability::Os => Level::Os,
            Durability::None => {
                let born = Parts::fresh_shards(reference, &settings);
                let numbers = IdBlock { next: 1, end: NUMBERS };
                let acceptor = Acceptor::open(config, reference, Level::None)?;
                let venues = Venues::open(config, callers, Level::None, now)?;
                let rest_numbers = Numbers::only(numbers);
                let reference = reference.clone();
                return Ok(Store {
                    born,
                    configured: reference.clone(),
                    reference,
                    staff: None,
                    numbers,
                    rest_numbers,
                    supply: None,
                    acceptor,
                    past: Vec::new(),
                    outpost_numbers: IdBlock { next: 1, end: OUTPOST_NUMBERS },
                    venues,
                });
            }
        };
        let (disk, data) = (Disk::Real, config.service.data_dir.as_path());
        let acceptor = Acceptor::open(config, reference, level)?;
        let venues = Venues::open(config, callers, level, now)?;
        let setup = Setup {
            disk: &disk,
            data,
            journal: journal_settings(config, level),
            shards: settings.shards,
            reference: RefData::clone(reference),
            settings: settings.shard,
            unheard: Unheard {
                venues: venues.unheard()?,
                elsewhere: elsewhere(config, reference),
                abroad: config.cluster.is_on(),
                elsewhere_max: config.remote_strategies.events_kept.max(config.cluster.events_kept),
                ..acceptor.unheard()
            },
        };
        let mut telling = Telling { told: Instant::now() };
        let opened = journal::open(setup, now, &mut |progress| telling.hear(progress))?;
        let notes = JournalMetadata::open(&disk, data)?;
        let numbers = notes.reserve(TRADER_IDS, NUMBERS)?;
        let outpost_numbers = notes.reserve(OUTPOST_IDS, OUTPOST_NUMBERS)?;
        let (rest_numbers, supply) = Supply::begin(notes)?;
        let supply = Some(supply);
        Ok(Store {
            configured: reference.clone(),
            rest_numbers,
            supply,
            outpost_numbers,
            ..Store::of(opened, settings.shards, numbers, acceptor, venues)
        })
    }

    /// The time of the last command that any shard has applied.
    pub fn last(&self) -> Timestamp {
        self.born.iter().map(|born| born.at).max().unwrap_or(Timestamp::ZERO)
    }

    fn of(
        opened: Opened,
        shards_all: u8,
        numbers: IdBlock,
        mut acceptor: Acceptor,
        mut venues: Venues,
    ) -> Store {
        let Opened { shards, keeper, steward, lock, reference } = opened;
        // Of shards that others own nothing is known here.
        for heard in [&mut acceptor.heard, &mut venues.heard] {
            heard.resize(shards_all as usize, 0);
        }
        let mut past: Vec<Past> = Vec::new();
        past.resize_with(shards_all as usize, Past::default);
        let (mut born, mut healths) = (Vec::new(), Vec::new());
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
            acceptor.missed.extend(missed.inspect(|missed| venues.miss(missed)));
            past[at] = shard.past;
            (acceptor.heard[at], venues.heard[at]) = (shard.event, shard.event);
            born.push(RecoveredShard {
                shard: shard.shard,
                seq: shard.event,
                at: shard.now,
                writer: Some(shard.writer),
            });
        }
        let staff = Some(Staff { keeper, steward, healths, lock });
        let (rest_numbers, outpost_numbers) = (Numbers::default(), IdBlock::default());
        let supply = None;
        Store {
            born,
            configured: reference.clone(),
            reference,
            staff,
            numbers,
            rest_numbers,
            supply,
            acceptor,
            venues,
            past,
            outpost_numbers,
        }
    }
}

impl Staff {
    /// The threads of keeper and steward, with everybody's bells where they belong.
    pub fn members(
        mut keeper: Syncer,
        steward: SegmentManager,
        born: &mut [RecoveredShard],
        bells: &Wakeups,
        core: Option<u32>,
        standby: Option<&StandbyHandle>,
    ) -> [ThreadSpec; 2] {
        let member = |name: &str, duty, wakeup: ThreadWakeup, bell| ThreadSpec {
            name: name.to_string(),
            duties: vec![duty],
            idle: IdleBy::Park,
            core,
            wakeup,
            bell,
            net: None,
        };
        let (keeping, stewarding) = (ThreadWakeup::default(), ThreadWakeup::default());
        let (keeper_bell, steward_bell) = (keeping.bell(), stewarding.bell());
        for writer in born.iter_mut().filter_map(|born| born.writer.as_mut()) {
            writer.set_bell(keeper_bell.clone());
        }
        for (at, born) in born.iter().enumerate() {
            keeper.set_bell(at, bells.shards[born.shard.id().0 as usize].clone());
        }
        if let Some(standby) = standby {
            keeper.set_shipper(standby.bell());
        }
        let keeper = SyncerDuty { keeper, steward: steward_bell.clone(), finished: false };
        [
            member("journal", Duty::Syncer(Box::new(keeper)), keeping, keeper_bell),
            member("steward", Duty::SegmentManager(Box::new(steward)), stewarding, steward_bell),
        ]
    }
}

/// Whose past the journal is asked for.
fn elsewhere(config: &Config, reference: &RefData) -> Vec<Source> {
    if config.service.mode != Mode::Distributed {
        return Vec::new();
    }
    let here = strategies::run_here(&config.strategies, reference);
    here.into_iter().map(|strategy| remote_protocol::source(HTTP, strategy)).collect()
}

/// Makes the data folder, if it is not there. What everybody traded is nobody else's business; who has made it himself has
/// decided who may look.
pub fn make_folder(config: &Config) -> std::io::Result<&Path> {
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

/// Tells how far a recovery has come, if it takes long.
struct Telling {
    told: Instant,
}

impl Telling {
    fn hear(&mut self, progress: Progress) {
        if self.told.elapsed() < PROGRESS {
            return;
        }
        self.told = Instant::now();
        let Progress { shard, bytes_done, bytes_total } = progress;
        let percent = (bytes_done * 100).checked_div(bytes_total).unwrap_or(100);
        tracing::info!(shard, percent, bytes_done, bytes_total, "reading the journal back");
    }
}
