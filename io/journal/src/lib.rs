//! The journal stores every command that a shard applies, before the outcome becomes visible. The
//! state of a shard is the replay of its journal.
//!
//! ```text
//! DATA/journal/identity            owner: a random number, the instance, the number of shards
//!              boot                boot id of the machine when the journal was last written
//!              lock                locked while a process has the journal open
//!              refdata/HASH        reference data, kept while a file below needs it
//!              shard-00/000000000001.seg     a header, then records, one after the other
//!                       000000000002.seg     the next segment, preallocated, all zeroes
//!                       00000000000000120000.snap   the state after record 120,000
//!              shard-01/…
//!              marks/shard-00      last record known to be on disk, see `mark`
//! DATA/notes/KEY.note              other values kept between starts, see `metadata`
//! ```
//!
//! Three owners, each with its own thread, are connected only by lanes and atomic counters:
//!
//! ```text
//!                  ┌───────── spares ─────────┐
//!                  ▼                          │
//! shard thread: Writer ── moves ──► Syncer ── closed ──► SegmentManager
//!                  ▲                  │  ▲                 │
//!                  └───── synced ─────┘  └───── files ─────┘
//! ```
//!
//! - The [`Writer`] copies a record into a mapped segment whose disk space is already reserved,
//!   without a system call. At the end of a segment it takes the next one from a lane. If the lane
//!   is empty the append fails, and the caller waits or refuses the command. The thread of a shard
//!   never waits for the disk.
//! - The [`Syncer`] syncs written records; one sync covers everything written since the previous
//!   one. At level `disk` a command is answered after that sync. At level `replicated` it is
//!   answered when the broker has the record too (`standby`). At level `os` it is answered at once,
//!   and the sync follows within seconds.
//! - The [`SegmentManager`] allocates segments in advance, truncates complete ones, builds
//!   snapshots from them by replay, and removes what neither the two newest snapshots nor the
//!   configured days need.
//!
//! Reactions to disk problems:
//!
//! | problem | reaction |
//! |---|---|
//! | no space for another segment | entry and prices are refused; the rest of the segment and one reserve segment remain for cancels, reports and control. Entry reopens when there is space |
//! | a sync fails | the sync is never repeated on that file: the unsynced records are written again into a fresh segment and synced there. Entry is shut until restart |
//! | that sync fails too | every record is refused |
//! | the end is torn | it is dropped and reported; `scan` explains how a torn end differs from damage |
//! | the newest segment is missing or holds other data, or a whole folder is missing | refused: the mark reveals it |
//! | written by an earlier version, see [`header::RULES`] | accepted if the digests are the same, otherwise refused with instructions |
//! | damage inside, a missing or foreign segment, a state that differs from the recorded digest | refused, with file, offset and advice. No file is changed |
//! | the newest snapshot is damaged | skipped with a warning: recovery uses the previous snapshot and replays more |
//!
//! Rules: docs/operations.md#journal.

pub mod anchors;
mod archive;
mod build;
pub mod disk;
mod fault;
pub mod header;
mod health;
mod identity;
mod syncer;
pub mod mark;
pub mod metadata;
mod offer;
pub mod record;
mod recovery;
mod reference;
mod replay;
pub mod simulated_disk;
pub mod sent;
pub mod snapshot;
mod segments;
pub mod scan;
pub mod cli;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::ShardMask;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::{KnownStrategies, RefData};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use rtrb::RingBuffer;

pub use fault::{Fault, FaultKind, io_advice};
pub use health::{Health, JournalReport, Level, WriteMode};
pub use identity::{JournalIdentity, read_identity};
pub use offer::class_of;
pub use recovery::{Recovered, RecoveryProgress};
pub use reference::name_of;
pub use replay::{CopyReceiver, EventReceivers, PastEvents, ReceivedSeqs, ReplayCounts, Restored};
pub use scan::Torn;
pub use segments::SegmentManager;
pub use syncer::Syncer;
pub use writer::{Class, NotTaken, Writer};

use disk::{Disk, PAGE_BYTES};
use header::Owner;
use identity::identify;
use mark::Marker;
use record::kind;
use recovery::recover;
use writer::MOVES_MAX;

/// Maximum number of spare segments. More of them would only reserve disk space.
const SPARES_MAX: usize = 16;
/// Minimum segment size. A start record with its settings fits, with room for commands after it.
pub const SEGMENT_BYTES_MIN: usize = 4 * PAGE_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSettings {
    pub level: Level,
    /// Size of each segment, in whole pages.
    pub segment_bytes: usize,
    /// Number of segments allocated in advance, at least two: one to continue in, and one for
    /// cancels when the disk is full.
    pub spares: usize,
    /// At level `os`: longest time that a record waits for its sync; no client waits for that sync.
    /// Writing to a page again after it was written back costs the shard about 2 µs, so this should
    /// be longer than a segment lasts under load.
    pub sync_interval_ns: u64,
    /// Bytes of journal after which the next snapshot is built.
    pub snapshot_bytes: u64,
    /// Days for which complete segments are kept even if no snapshot needs them.
    pub keep_days: u32,
    /// Shards that other servers own. This server keeps no journal of them.
    pub far: ShardMask,
}

impl Default for JournalSettings {
    fn default() -> JournalSettings {
        JournalSettings {
            level: Level::Os,
            segment_bytes: 16 << 20,
            spares: 3,
            sync_interval_ns: 5 * NS_PER_S,
            snapshot_bytes: 128 << 20,
            keep_days: 0,
            far: ShardMask::default(),
        }
    }
}

/// The paths of the journal inside the data folder.
#[derive(Clone, Debug)]
pub struct Folders {
    data: PathBuf,
}

impl Folders {
    pub fn new(data: &Path) -> Folders {
        Folders { data: data.to_path_buf() }
    }

    pub fn journal(&self) -> PathBuf {
        self.data.join("journal")
    }

    pub fn shard(&self, shard: u16) -> PathBuf {
        self.journal().join(format!("shard-{shard:02}"))
    }

    pub fn references(&self) -> PathBuf {
        self.journal().join("refdata")
    }

    pub fn marks(&self) -> PathBuf {
        self.journal().join("marks")
    }

    /// Returns the path of a shard's high-water mark.
    pub fn mark(&self, shard: u16) -> PathBuf {
        self.marks().join(format!("shard-{shard:02}"))
    }

    fn notes(&self) -> PathBuf {
        self.data.join("notes")
    }

    fn boot(&self) -> PathBuf {
        self.journal().join("boot")
    }

    fn identity(&self) -> PathBuf {
        self.journal().join("identity")
    }
}

/// The inputs that a process passes to [`open`].
#[derive(Clone, Debug)]
pub struct JournalSetup<'a> {
    pub disk: &'a Disk,
    pub data: &'a Path,
    pub journal: JournalSettings,
    pub shards: u8,
    pub reference: RefData,
    /// Settings of the shards, including the instance. A journal of another instance is refused.
    pub settings: ShardSettings,
    /// Receivers that may have missed events.
    pub receivers: EventReceivers,
}

/// A journal that has been recovered and is ready to append.
#[derive(Debug)]
pub struct Opened {
    pub shards: Vec<OpenedShard>,
    pub syncer: Syncer,
    pub segment_manager: SegmentManager,
    /// Lock on the journal: no other process can open it while this value lives.
    pub lock: Lock,
    /// Reference data of the process, plus inactive entries for everything removed since the
    /// journal began.
    pub reference: Arc<RefData>,
    /// How the configured reference data differ from those of the previous start, if they do.
    pub reference_changes: Option<String>,
}

#[derive(Debug)]
pub struct OpenedShard {
    pub shard: Shard,
    pub writer: Writer,
    /// Sequence number of the last event.
    pub event: u64,
    /// Time of the last record, which is the record of this start.
    pub now: Timestamp,
    pub found: RecoverySummary,
    /// Events from before the end of the previous process that a receiver asked for.
    pub missed: Vec<Event>,
    /// Events about strategies that run in other processes.
    pub past: PastEvents,
}

/// The result of recovering one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverySummary {
    /// Last record of the previous process.
    pub seq: u64,
    pub snapshot: Option<u64>,
    pub counts: ReplayCounts,
    pub torn: Option<Torn>,
    pub warnings: Vec<String>,
}

/// An exclusive lock on a journal.
#[derive(Debug)]
pub struct Lock {
    _file: Option<fs::File>,
}

/// Recovers all shards and starts a new run. When this returns, each journal contains a record of
/// this start, stored at the configured level.
pub fn open(
    setup: JournalSetup<'_>,
    now: Timestamp,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Opened, Fault> {
    let settings = &setup.journal;
    assert!(settings.level != Level::None, "without a journal there is nothing to open");
    assert!(settings.segment_bytes >= SEGMENT_BYTES_MIN, "a segment holds a start and some commands");
    assert!(settings.segment_bytes.is_multiple_of(PAGE_BYTES), "a segment is some whole pages");
    assert!((2..=SPARES_MAX).contains(&settings.spares), "spare segments have their bounds");
    let folders = Folders::new(setup.data);
    let lock = take_lock(setup.disk, &folders)?;
    let identity = identify(&setup, &folders)?;
    let boot = setup.disk.boot();
    let owner = |shard: u16| Owner { identity, shard, shards: setup.shards.into() };
    let mut recovered = Vec::new();
    let own = (0..setup.shards).filter(|shard| !settings.far.contains(ShardId(*shard))).map(u16::from);
    for shard in own.clone() {
        let read = recover(setup.disk, &folders, &owner(shard), boot, setup.receivers.clone(), progress)?;
        read.settle(setup.disk, &folders.shard(shard), boot)?;
        recovered.push(read);
    }
    // The previous process may have created these names without syncing them, and the next steps
    // depend on them.
    setup.disk.sync_folder(&folders.journal()).map_err(Fault::io(&folders.journal()))?;
    let known =
        recovered.iter().filter_map(|recovered| Some(&**recovered.restored.as_ref()?.shard.reference()));
    let (reference, reference_changes) = reference::succeed(&setup.reference, known, &folders.references())?;
    let reference = Arc::new(reference);
    let name = reference::keep(setup.disk, &folders.references(), &reference)?;
    let mut parts = JournalParts::default();
    for (shard, recovered) in own.zip(recovered) {
        let owner = owner(shard);
        let start = ShardStart { setup: &setup, folders: &folders, owner, boot, name, reference: &reference };
        parts.add(&start, recovered);
    }
    let mut opened = Opened {
        shards: parts.shards,
        syncer: Syncer::new(parts.synced_shards),
        segment_manager: SegmentManager::new(parts.managed_shards),
        lock,
        reference,
        reference_changes,
    };
    opened.begin(&setup, &folders, name, now)?;
    Ok(opened)
}

/// Returns the ids of all strategies in the stored sets of reference data. Sets that cannot be read
/// are omitted; if a shard needs one of them, [`open`] reports it.
pub fn known_strategies(disk: &Disk, data: &Path) -> KnownStrategies {
    let folder = Folders::new(data).references();
    let mut known = KnownStrategies::default();
    for name in reference::names(disk, &folder) {
        if let Ok(reference) = reference::read(disk, &folder, name) {
            known.learn(&reference);
        }
    }
    known
}

/// Stores reference data that a shard will be commanded to use, and returns its name.
pub fn keep_reference(disk: &Disk, data: &Path, reference: &RefData) -> Result<u64, Fault> {
    reference::keep(disk, &Folders::new(data).references(), reference)
}

/// Recovers all shards without changing any file: returns the states that [`open`] would start
/// with.
pub fn read_back(disk: &Disk, data: &Path) -> Result<Vec<Recovered>, Fault> {
    let folders = Folders::new(data);
    let Some(found) = read_identity(disk, &folders)? else { return Ok(Vec::new()) };
    let owner = |shard: u16| Owner { identity: found.identity, shard, shards: found.shards };
    (0..found.shards)
        .map(|shard| {
            recover(disk, &folders, &owner(shard), disk.boot(), EventReceivers::default(), &mut |_| {})
        })
        .collect()
}

fn take_lock(disk: &Disk, folders: &Folders) -> Result<Lock, Fault> {
    let folder = folders.journal();
    disk.make_folder(&folder).map_err(Fault::io(&folder))?;
    let path = folder.join("lock");
    match disk {
        Disk::Real => {
            let file = fs::File::create(&path).map_err(Fault::io(&path))?;
            match file.try_lock() {
                Ok(()) => Ok(Lock { _file: Some(file) }),
                Err(fs::TryLockError::WouldBlock) => Err(Fault::new(&path, 0, FaultKind::Locked)),
                Err(fs::TryLockError::Error(error)) => Err(Fault::new(&path, 0, FaultKind::Io(error))),
            }
        }
        Disk::Simulated(_) => Ok(Lock { _file: None }),
    }
}

/// The inputs with which the journal of one shard starts its new run.
struct ShardStart<'a> {
    setup: &'a JournalSetup<'a>,
    folders: &'a Folders,
    owner: Owner,
    boot: u128,
    /// Name of the reference data.
    name: u64,
    reference: &'a Arc<RefData>,
}

impl ShardStart<'_> {
    /// Returns the same shard as a replay of the first start creates.
    fn new_shard(&self) -> Shard {
        let id = self.owner.shard_id();
        Shard::new(id, self.setup.shards, self.reference.clone(), self.setup.settings.clone())
    }
}

#[derive(Default)]
struct JournalParts {
    shards: Vec<OpenedShard>,
    synced_shards: Vec<syncer::SyncedShard>,
    managed_shards: Vec<segments::ManagedShard>,
}

impl JournalParts {
    fn add(&mut self, start: &ShardStart<'_>, recovered: Recovered) {
        let settings = start.setup.journal;
        let health = Arc::new(Health::default());
        let (spares_in, spares_out) = RingBuffer::new(SPARES_MAX);
        let (files_in, files_out) = RingBuffer::new(SPARES_MAX);
        let (moves_in, moves_out) = RingBuffer::new(MOVES_MAX);
        let (closed_in, closed_out) = RingBuffer::new(MOVES_MAX);
        let writer = Writer::new(
            settings.level,
            start.owner,
            start.boot,
            start.name,
            recovered.position,
            (spares_out, moves_in),
            health.clone(),
        );
        let lanes = syncer::SyncerLanes { files: files_out, moves: moves_out, closed: closed_in };
        self.synced_shards.push(syncer::SyncedShard::new(
            settings.level,
            settings.sync_interval_ns,
            Marker::new(start.setup.disk, start.folders, &start.owner),
            lanes,
            health.clone(),
        ));
        self.managed_shards.push(segments::ManagedShard {
            disk: start.setup.disk.clone(),
            folders: start.folders.clone(),
            owner: start.owner,
            settings,
            folder: start.folders.shard(start.owner.shard),
            number: recovered.scanned.number + 1,
            blank: recovered.scanned.blank,
            orphans: recovered.scanned.orphans.into_iter().map(|piece| piece.path).collect(),
            archive: recovered.archive.into(),
            snapshots: recovered.snapshots.into(),
            reference: start.name,
            build: None,
            retry_at: Timestamp::ZERO,
            lanes: segments::ManagerLanes { spares: spares_in, files: files_in, closed: closed_out },
            health,
        });
        let found = RecoverySummary {
            seq: recovered.position.seq,
            snapshot: recovered.snapshot,
            counts: recovered.counts,
            torn: recovered.torn,
            warnings: recovered.warnings,
        };
        let (shard, event, now, missed, past) = match recovered.restored {
            Some(restored) => (restored.shard, restored.event, restored.time, restored.missed, restored.past),
            None => (start.new_shard(), 0, Timestamp::ZERO, Vec::new(), PastEvents::default()),
        };
        self.shards.push(OpenedShard { shard, writer, event, now, found, missed, past });
    }
}

impl Opened {
    /// Allocates the first segments and writes the start record of this process.
    fn begin(
        &mut self,
        setup: &JournalSetup<'_>,
        folders: &Folders,
        name: u64,
        now: Timestamp,
    ) -> Result<(), Fault> {
        self.segment_manager.prepare(now)?;
        setup.disk.make_folder(&folders.marks()).map_err(Fault::io(&folders.marks()))?;
        // The boot id is written only after the segments torn by an earlier boot are removed.
        let (path, boot) = (folders.boot(), setup.disk.boot());
        if recovery::last_boot(setup.disk, folders) != Some(boot) {
            setup.disk.put(&path, &boot.to_le_bytes()).map_err(Fault::io(&path))?;
        }
        let payload = replay::encode_start(name, &setup.settings);
        for opened in &mut self.shards {
            let time = now.max(opened.now);
            // A new shard has no previous state, so it has no digest.
            let digest = if opened.found.seq == 0 { 0 } else { opened.shard.digest() };
            let appended = opened.writer.append(time.0, kind::START, &payload, Class::Needed, || digest);
            if appended.is_err() {
                let what = FaultKind::StateDamaged("a start could not be written".into());
                let folder = folders.shard(opened.shard.id().0.into());
                return Err(Fault::new(&folder, 0, what));
            }
            let mut outbox = Outbox::new(opened.event);
            let reference = self.reference.clone();
            let past = (&setup.receivers, &mut opened.past);
            replay::begin(&mut opened.shard, time, reference, setup.settings.clone(), &mut outbox, past);
            (opened.event, opened.now) = (outbox.seq(), time);
        }
        // The start is synced at every level, so that the mark can name the segment.
        self.syncer.finish(now);
        for opened in &self.shards {
            let health = opened.writer.health();
            if let Some(error) = health.last_error() {
                let path = folders.shard(opened.shard.id().0.into());
                return Err(Fault::io(&path)(error));
            }
        }
        Ok(())
    }
}
