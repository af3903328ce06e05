//! The journal: what an append adds to an order, what a sync shared by many clients gains, and how
//! long a restart takes.

use std::fs::{self, File};
use std::hint::{self, black_box};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pitlane_config::IdleBy;
use pitlane_engine::codec::{COMMAND_BYTES_MAX, encode_command};
use pitlane_engine::command::Command;
use pitlane_engine::id::OrderHandle;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_journal::disk::Disk;
use pitlane_journal::record::kind;
use pitlane_journal::{
    Class, Fault, JournalSettings, JournalSetup, Level, NotTaken, Opened, OpenedShard, SegmentManager,
    Syncer, Writer,
};
use pitlane_runtime::clock::Clock;
use pitlane_runtime::idle::{IdleAction, IdlePolicy};
use pitlane_sys::affinity::pin_current_thread;

use crate::conditions::{Pinning, on_core_ns};
use crate::convert::duration_ns;
use crate::measure::histogram;
use crate::platform::{self, START, STEP_NS};
use crate::scenario::Scenario;
use crate::whole_shard::WholeShard;
use crate::workload::{FlowOutcome, Matcher, Workload};

/// A folder that is removed on drop.
pub struct TempFolder(PathBuf);

impl TempFolder {
    pub fn new(parent: Option<&Path>) -> TempFolder {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        TempFolder(parent.join(format!("pitlane-bench-{}", std::process::id())))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path, with nothing there.
    pub fn cleared(&self) -> &Path {
        let _ = fs::remove_dir_all(&self.0);
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Time of one pass over a workload by the whole shard, with or without a journal at level `os`.
pub struct JournalPass {
    pub ns_per_op: f64,
    pub outcome: FlowOutcome,
    /// Times of the append alone, the clock's own time included; empty without a journal.
    pub appends: Histogram<u64>,
    /// Number of times that an append found no room yet and was retried.
    pub waits: u64,
}

/// Measures the time on the core where the system reports it, else wall-clock time: other processes
/// use this machine too.
struct Stopwatch {
    on_core: Option<u64>,
    wall: Instant,
}

impl Stopwatch {
    fn new() -> Stopwatch {
        Stopwatch { on_core: on_core_ns(), wall: Instant::now() }
    }

    fn ns(&self) -> u64 {
        let on_core = on_core_ns().zip(self.on_core).map(|(after, before)| after - before);
        on_core.unwrap_or(duration_ns(self.wall.elapsed()))
    }
}

/// Measures the shard without a journal, timed in the same way.
pub fn without_journal(workload: &Workload) -> JournalPass {
    let mut matcher = prefilled(workload);
    let (mut payload, begun) = ([0; COMMAND_BYTES_MAX], Stopwatch::new());
    for (at, record) in workload.timed.iter().enumerate() {
        // The command is built twice in both variants, so that they differ only by the journal's
        // own work.
        let body = platform::body_of(black_box(record), OrderHandle::NONE, at as u64);
        payload[0] = (black_box(platform::command(body)).token & 0xff) as u8;
        matcher.apply(record);
    }
    black_box(payload);
    let ns_per_op = begun.ns() as f64 / workload.timed.len().max(1) as f64;
    JournalPass { ns_per_op, outcome: matcher.outcome(), appends: histogram(), waits: 0 }
}

/// Measures the same with every command in a journal before it is applied. With `timed`, it also
/// records the time of each append; such a pass is not for comparison.
pub fn with_journal(
    workload: &Workload,
    folder: &TempFolder,
    pinning: &Pinning,
    timed: bool,
) -> Result<JournalPass, Fault> {
    let mut matcher = prefilled(workload);
    let opened = open(folder.cleared(), settings(Level::Os, u64::MAX), workload)?;
    let (mut opened_shard, syncer, segment_manager) = parts(opened);
    let clock = quanta::Clock::new();
    let mut appends = histogram();
    let ns = with_storage_threads(syncer, segment_manager, pinning, || {
        let begun = Stopwatch::new();
        let mut payload = [0; COMMAND_BYTES_MAX];
        for (at, record) in workload.timed.iter().enumerate() {
            let body = platform::body_of(black_box(record), OrderHandle::NONE, at as u64);
            let command = black_box(platform::command(body));
            let before = if timed { clock.raw() } else { 0 };
            let length = encode_command(&command, &mut payload);
            write(&mut opened_shard.writer, Timestamp(at as u64), &payload[..length]);
            if timed {
                appends.saturating_record(clock.delta_as_nanos(before, clock.raw()));
            }
            matcher.apply(record);
        }
        begun.ns()
    });
    let ns_per_op = ns as f64 / workload.timed.len().max(1) as f64;
    let waits = opened_shard.writer.health().report().waits;
    Ok(JournalPass { ns_per_op, outcome: matcher.outcome(), appends, waits })
}

fn prefilled(workload: &Workload) -> WholeShard {
    let mut matcher = WholeShard::new(workload);
    workload.prefill.iter().for_each(|record| matcher.apply(record));
    matcher
}

/// Measures orders per second at level `disk` with this many clients, each with one order in
/// flight.
pub fn group_commit(
    clients: usize,
    span: Duration,
    folder: &TempFolder,
    pinning: &Pinning,
    workload: &Workload,
) -> Result<f64, Fault> {
    let opened = open(folder.cleared(), settings(Level::Disk, u64::MAX), workload)?;
    let (mut opened_shard, syncer, segment_manager) = parts(opened);
    let payload = sample();
    let answered = with_storage_threads(syncer, segment_manager, pinning, || {
        let mut waiting: Vec<u64> = vec![0; clients];
        let (mut answered, begun) = (0u64, Instant::now());
        while begun.elapsed() < span {
            let safe = opened_shard.writer.safe();
            for seq in &mut waiting {
                if *seq <= safe {
                    answered += u64::from(*seq > 0);
                    *seq = write(&mut opened_shard.writer, START, &payload);
                }
            }
            opened_shard.writer.maintain();
            hint::spin_loop();
        }
        answered
    });
    Ok(answered as f64 / span.as_secs_f64())
}

/// Measures orders per second with a write and a sync for each order, whichever client sent it.
pub fn sync_each(span: Duration, folder: &TempFolder) -> std::io::Result<f64> {
    let path = folder.cleared();
    fs::create_dir_all(path)?;
    let file = File::create(path.join("each"))?;
    // Zeros that are on disk already, as in the journal's segments, so that only the sharing of
    // syncs differs.
    file.write_all_at(&vec![0; 16 << 20], 0)?;
    file.sync_all()?;
    let (payload, mut at, begun) = (sample(), 0u64, Instant::now());
    while begun.elapsed() < span {
        file.write_all_at(&payload, at * 144 % (15 << 20))?;
        file.sync_data()?;
        at += 1;
    }
    Ok(at as f64 / span.as_secs_f64())
}

/// Duration of a start.
pub struct Restart {
    pub orders: u64,
    pub bytes: u64,
    pub seconds_from_journal: f64,
    pub seconds_from_snapshot: f64,
    /// Records that were replayed after the snapshot.
    pub tail: u64,
    /// Whether both starts recovered the last state.
    pub right: bool,
}

/// Measures the restart of a shard with this many open orders, from its journal alone and from a
/// snapshot with a tail of one order in twenty.
pub fn restart(orders: u32, folder: &TempFolder) -> Result<Restart, Fault> {
    let scenario = Scenario { open: orders, ops: 0, ..Scenario::named("s10k").expect("a scenario") };
    let workload = scenario.generate();
    let data = folder.cleared();
    let opened = open(data, settings(Level::Os, u64::MAX), &workload)?;
    let mut shard = JournaledShard::new(opened);
    let tail = workload.prefill.len() - workload.prefill.len() / 20;
    platform::setup(&workload).into_iter().for_each(|body| shard.apply(body));
    for (at, record) in workload.prefill[..tail].iter().enumerate() {
        shard.apply(platform::body_of(record, OrderHandle::NONE, at as u64));
    }
    let (bytes, left) = (shard.writer.health().report().bytes, shard.shard.digest());
    drop(shard);
    let mut right = is_same(data, left)?;
    let begun = Instant::now();
    drop(open(data, settings(Level::Os, u64::MAX), &workload)?);
    let seconds_from_journal = begun.elapsed().as_secs_f64();
    // The next start builds a snapshot of all complete segments, and more orders arrive.
    let mut shard = JournaledShard::new(open(data, settings(Level::Os, 1), &workload)?);
    while shard.segment_manager.poll(START) > 0 {}
    for (at, record) in workload.prefill[tail..].iter().enumerate() {
        shard.apply(platform::body_of(record, OrderHandle::NONE, (tail + at) as u64));
    }
    let left = shard.shard.digest();
    drop(shard);
    right &= is_same(data, left)?;
    let begun = Instant::now();
    let opened = open(data, settings(Level::Os, u64::MAX), &workload)?;
    let seconds_from_snapshot = begun.elapsed().as_secs_f64();
    let found = &opened.shards[0].found;
    right &= found.snapshot.is_some();
    Ok(Restart {
        orders: workload.prefill.len() as u64,
        bytes,
        seconds_from_journal,
        seconds_from_snapshot,
        tail: found.counts.commands,
        right,
    })
}

/// Returns whether a replay recovers the last state.
fn is_same(data: &Path, digest: u64) -> Result<bool, Fault> {
    let read = pitlane_journal::read_back(&Disk::Real, data)?;
    Ok(read[0].restored.as_ref().is_some_and(|restored| restored.shard.digest() == digest))
}

/// A shard with its journal, all in one thread.
struct JournaledShard {
    shard: Shard,
    writer: Writer,
    syncer: Syncer,
    segment_manager: SegmentManager,
    outbox: Outbox,
    now: Timestamp,
    _lock: pitlane_journal::Lock,
}

impl JournaledShard {
    fn new(opened: Opened) -> JournaledShard {
        let Opened { mut shards, syncer, segment_manager, lock, .. } = opened;
        let OpenedShard { shard, writer, event, now, .. } = shards.remove(0);
        JournaledShard {
            shard,
            writer,
            syncer,
            segment_manager,
            outbox: Outbox::new(event),
            now,
            _lock: lock,
        }
    }

    fn apply(&mut self, body: pitlane_engine::command::CommandKind) {
        self.now = self.now.plus(STEP_NS);
        let command: Command = platform::command(body);
        while self.writer.offer(self.now, &command, &self.shard).is_err() {
            self.syncer.poll(self.now);
            self.segment_manager.poll(self.now);
            self.writer.maintain();
        }
        self.shard.apply(self.now, &command, &mut self.outbox);
        self.outbox.clear();
        while self.shard.has_work() {
            self.shard.resume(&mut self.outbox);
            self.outbox.clear();
        }
    }
}

fn settings(level: Level, snapshot_bytes: u64) -> JournalSettings {
    JournalSettings { level, snapshot_bytes, ..JournalSettings::default() }
}

fn open(data: &Path, journal: JournalSettings, workload: &Workload) -> Result<Opened, Fault> {
    let (model, _) = platform::shard_for(workload);
    let (reference, settings): (_, ShardSettings) = ((**model.reference()).clone(), model.settings().clone());
    drop(model);
    let setup = JournalSetup {
        disk: &Disk::Real,
        data,
        journal,
        shards: 1,
        reference,
        settings,
        receivers: Default::default(),
    };
    pitlane_journal::open(setup, START, &mut |_| {})
}

fn parts(opened: Opened) -> (OpenedShard, Syncer, SegmentManager) {
    let Opened { mut shards, syncer, segment_manager, .. } = opened;
    (shards.remove(0), syncer, segment_manager)
}

/// Runs `work` in this thread, and the syncer and the segment manager in their own threads on the
/// second core.
fn with_storage_threads<T>(
    mut syncer: Syncer,
    mut segment_manager: SegmentManager,
    pinning: &Pinning,
    work: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(core) = pinning.second {
                _ = pin_current_thread(core);
            }
            cycle(&done, |now| syncer.poll(now));
        });
        scope.spawn(|| {
            if let Some(core) = pinning.second {
                _ = pin_current_thread(core);
            }
            cycle(&done, |now| segment_manager.poll(now));
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Longest sleep of a thread that is never woken here.
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// Polls like the service: spins a little, yields a little, then sleeps.
fn cycle(done: &AtomicBool, mut poll: impl FnMut(Timestamp) -> usize) {
    let mut clock = Clock::new();
    let mut idle = IdlePolicy::new(IdleBy::Adaptive);
    while !done.load(Ordering::Relaxed) {
        let now = clock.now();
        match idle.after(now, poll(now)) {
            IdleAction::None => {}
            IdleAction::Spin => hint::spin_loop(),
            IdleAction::Yield => thread::yield_now(),
            IdleAction::Sleep => thread::park_timeout(SLEEP_MAX),
        }
    }
}

fn write(writer: &mut Writer, now: Timestamp, payload: &[u8]) -> u64 {
    loop {
        match writer.append(now.0, kind::COMMAND, payload, Class::Entry, || 1) {
            Ok(seq) => return seq,
            Err(NotTaken::Wait) => {
                writer.maintain();
                hint::spin_loop();
            }
            Err(NotTaken::Refused(door)) => panic!("the journal refuses: {door}"),
        }
    }
}

/// Returns a payload as long as a new order.
fn sample() -> Vec<u8> {
    vec![7; 105]
}
