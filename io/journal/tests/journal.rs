//! The journal on the real disk, with its parts in separate threads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::EventKind;
use pitlane_engine::id::{PortId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::refdata::{KnownStrategies, RefData, RefDataRows};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_journal::cli::{self, RecordRange};
use pitlane_journal::disk::Disk;
use pitlane_journal::header::{Header, RULES};
use pitlane_journal::{
    Fault, FaultKind, JournalSettings, JournalSetup, Level, Opened, SEGMENT_BYTES_MIN, Writer,
};
use pitlane_runtime::clock::Clock;
use pitlane_testkit::temp_folder::TestFolder;

/// Returns an empty folder for one test.
fn folder(name: &str) -> TestFolder {
    TestFolder::new("journal", name)
}

fn settings(level: Level) -> JournalSettings {
    JournalSettings {
        level,
        segment_bytes: SEGMENT_BYTES_MIN,
        snapshot_bytes: 8 * SEGMENT_BYTES_MIN as u64,
        ..JournalSettings::default()
    }
}

fn shard_settings() -> ShardSettings {
    ShardSettings { orders_max: 1_000, instance: 7, ..ShardSettings::default() }
}

fn open_with(data: &Path, journal: JournalSettings, shards: u8, instance: u64) -> Result<Opened, Fault> {
    let setup = JournalSetup {
        disk: &Disk::Real,
        data,
        journal,
        shards,
        reference: RefData::check(RefDataRows::default()).expect("no rows are sound"),
        settings: ShardSettings { instance, ..shard_settings() },
        receivers: Default::default(),
    };
    pitlane_journal::open(setup, Clock::new().now(), &mut |_| {})
}

fn open(data: &Path, level: Level) -> Opened {
    open_with(data, settings(level), 2, 7).expect("the journal is sound")
}

fn command(token: u32) -> Command {
    let port = PortId(0);
    let source = Source { port, ..Source::default() };
    Command::new(
        source,
        token,
        CommandKind::Watch { port, what: WatchTarget::Budgets, on: token.is_multiple_of(2) },
    )
}

/// Runs one cycle of a shard with its journal.
fn poll_once(writer: &mut Writer, worker: &mut Worker, now: Timestamp) -> usize {
    let stored = writer.stored();
    let take = |number, now, command: &Command, shard: &Shard| writer.take(number, now, command, shard);
    worker.poll_with(now, stored, take) + writer.maintain()
}

/// Runs a journal with all its threads until so many commands of each shard are answered; returns
/// the shards at the end.
fn live(opened: Opened, commands: u32) -> Vec<Shard> {
    let (mut ports, ends) = mesh(&[PortClass::Client], 2, Depths::default());
    let stop = AtomicBool::new(false);
    let Opened { shards, mut syncer, mut segment_manager, lock, .. } = opened;
    let ended = thread::scope(|scope| {
        let running: Vec<_> = shards
            .into_iter()
            .zip(ends)
            .map(|(opened, end)| {
                let mut worker = Worker::restored(opened.shard, end, opened.event, opened.now);
                let (mut writer, stop) = (opened.writer, &stop);
                scope.spawn(move || {
                    let mut clock = Clock::new();
                    cycle(stop, || poll_once(&mut writer, &mut worker, clock.now()));
                    worker.into_parts().0
                })
            })
            .collect();
        scope.spawn(|| {
            let mut clock = Clock::new();
            cycle(&stop, || syncer.poll(clock.now()));
            syncer.finish(clock.now());
        });
        scope.spawn(|| {
            let mut clock = Clock::new();
            cycle(&stop, || segment_manager.poll(clock.now()));
        });
        talk(&mut ports[0], commands);
        stop.store(true, Ordering::Relaxed);
        running.into_iter().map(|thread| thread.join().expect("a shard does not panic")).collect()
    });
    // Does the work that was left when the shards ended.
    let now = Clock::new().now();
    while syncer.poll(now) + segment_manager.poll(now) > 0 {}
    drop(lock);
    ended
}

fn cycle(stop: &AtomicBool, mut poll: impl FnMut() -> usize) {
    while !stop.load(Ordering::Relaxed) {
        if poll() == 0 {
            thread::yield_now();
        }
    }
}

/// Sends commands to both shards and waits for every response.
fn talk(port: &mut PortEnd, commands: u32) {
    let (mut sent, mut answered) = ([0; 2], 0);
    while answered < 2 * commands {
        let mut work = 0;
        for (shard, sent) in (0..).map(ShardId).zip(&mut sent) {
            if *sent < commands && port.send(shard, command(*sent)).is_ok() {
                *sent += 1;
                work += 1;
            }
        }
        while let Some((_, event)) = port.poll_event() {
            answered += u32::from(matches!(event.body, EventKind::Done { .. }));
            work += 1;
        }
        if work == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn a_restart_continues_where_the_last_process_ended() {
    for level in [Level::Disk, Level::Os] {
        let data = folder(&format!("journal-rounds-{level}"));
        let mut digests: Option<Vec<u64>> = None;
        let mut records = 0;
        for round in 0..3 {
            let opened = open(&data, level);
            for shard in &opened.shards {
                assert_eq!(shard.found.seq, records, "{level}, round {round}");
                assert_eq!(shard.found.torn, None);
            }
            if let Some(before) = &digests {
                let read = pitlane_journal::read_back(&Disk::Real, &data).unwrap();
                // The record of this start is already in the journal.
                assert!(read.iter().all(|shard| shard.position.seq == records + 1));
                assert_eq!(before.len(), read.len());
            }
            let ended = live(opened, 2_000);
            digests = Some(ended.iter().map(Shard::digest).collect());
            records += 2_001;
            let read = pitlane_journal::read_back(&Disk::Real, &data).unwrap();
            let found: Vec<u64> = read.iter().map(|r| r.restored.as_ref().unwrap().shard.digest()).collect();
            assert_eq!(digests.as_ref(), Some(&found), "{level}, round {round}");
        }
        check_verbs(&data, records);
    }
}

fn check_verbs(data: &Path, records: u64) {
    let mut out = Vec::new();
    let verified = cli::verify(&Disk::Real, data, &RecordRange::default(), &mut out).expect("it can be read");
    let text = String::from_utf8_lossy(&out).into_owned();
    assert_eq!(verified.faults, 0, "{text}");
    assert!(verified.snapshots >= 2 && verified.digests > 10, "{text}");
    assert!(text.contains("sound: "), "{text}");
    let mut out = Vec::new();
    let part = RecordRange { shard: Some(1), from: records - 4, to: records - 1, limit: 3 };
    assert_eq!(cli::dump(&Disk::Real, data, &part, &mut out).expect("it can be read"), 3);
    let text = String::from_utf8_lossy(&out).into_owned();
    assert!(text.lines().all(|line| line.starts_with("1/") && line.contains("command Watch")), "{text}");
    let mut out = Vec::new();
    cli::replay(&Disk::Real, data, &RecordRange::default(), &mut out).expect("it can be read");
    let text = String::from_utf8_lossy(&out).into_owned();
    assert!(text.contains("digest") && text.contains("from the snapshot of"), "{text}");
    let nowhere = RecordRange { shard: Some(2), ..RecordRange::default() };
    assert!(cli::replay(&Disk::Real, data, &nowhere, &mut out).is_err());
    assert!(cli::verify(&Disk::Real, &folder("nothing"), &RecordRange::default(), &mut out).is_err());
}

#[test]
fn old_segments_and_snapshots_are_deleted() {
    let data = folder("retention");
    live(open(&data, Level::Os), 20_000);
    let names = Disk::Real.list(&data.join("journal/shard-00")).unwrap();
    let snapshots = names.iter().filter(|name| name.ends_with(".snap")).count();
    let segments = names.iter().filter(|name| name.ends_with(".seg")).count();
    assert_eq!(snapshots, 2, "{names:?}");
    // The records since the older of two snapshots, and the spare segments.
    let written =
        names.iter().rev().find_map(|name| name.strip_suffix(".seg")?.parse::<usize>().ok()).unwrap();
    assert!(written > 50 && segments < written, "{segments} segments: {names:?}");
}

#[test]
fn one_process_at_a_time() {
    let data = folder("lock");
    let opened = open(&data, Level::Os);
    let second = open_with(&data, settings(Level::Os), 2, 7).unwrap_err();
    assert!(matches!(second.what, FaultKind::Locked), "{second}");
    drop(opened);
    open(&data, Level::Os);
}

#[test]
fn another_number_of_shards_or_another_instance_is_refused_with_a_message() {
    let data = folder("others");
    drop(open(&data, Level::Os));
    let message = open_with(&data, settings(Level::Os), 3, 7).unwrap_err().to_string();
    assert!(message.contains("written with 2 shards, and 3 are configured"), "{message}");
    let message = open_with(&data, settings(Level::Os), 2, 8).unwrap_err().to_string();
    assert!(message.contains("instance 7, and 8 is configured"), "{message}");
    drop(open(&data, Level::Os));
}

#[test]
fn a_damaged_record_is_refused_with_file_offset_and_advice() {
    let data = folder("damage");
    live(open(&data, Level::Os), 100);
    let path = data.join("journal/shard-00/000000000001.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let message = open_with(&data, settings(Level::Os), 2, 7).unwrap_err().to_string();
    assert!(message.contains("000000000001.seg at "), "{message}");
    assert!(message.contains("pitlane journal verify"), "{message}");
    let mut out = Vec::new();
    let verified = cli::verify(&Disk::Real, &data, &RecordRange::default(), &mut out).unwrap();
    assert_eq!(verified.faults, 1);
    assert!(String::from_utf8_lossy(&out).contains("NOT SOUND"));
}

/// Changes the header of the newest segment of the first shard.
fn change_newest_header(data: &Path, change: impl Fn(Header) -> Header) {
    let folder = data.join("journal/shard-00");
    let names = Disk::Real.list(&folder).expect("the folder is there");
    let segments = names.iter().rev().filter(|name| name.ends_with(".seg"));
    let (path, mut bytes, header) = segments
        .map(|name| folder.join(name))
        .find_map(|path| {
            let bytes = std::fs::read(&path).expect("the file is there");
            let (header, _) = Header::decode(&bytes).ok()?;
            Some((path, bytes, header))
        })
        .expect("a segment was written");
    let (changed, _) = change(header).encode();
    bytes[..changed.len()].copy_from_slice(&changed);
    std::fs::write(&path, bytes).expect("the disk has room");
}

#[test]
fn a_journal_of_earlier_rules_starts_if_its_digests_come_out_the_same() {
    let is_sound = |change: fn(Header) -> Header| {
        let data = folder("rules");
        live(open(&data, Level::Os), 2_000);
        change_newest_header(&data, change);
        open_with(&data, settings(Level::Os), 2, 7).map(|opened| {
            let warnings = &opened.shards[0].found.warnings;
            assert!(warnings.iter().any(|text| text.contains("of an earlier version")), "{warnings:?}");
        })
    };
    assert!(is_sound(|header| Header { rules: RULES - 1, ..header }).is_ok());
    let refused = is_sound(|header| Header { rules: RULES - 1, digest: header.digest ^ 1, ..header });
    assert!(matches!(refused.unwrap_err().what, FaultKind::OldRules { .. }));
    let refused = is_sound(|header| Header { digest: header.digest ^ 1, ..header });
    assert!(matches!(refused.unwrap_err().what, FaultKind::Digest { .. }));
}

#[test]
fn progress_is_reported() {
    let data = folder("progress");
    live(open(&data, Level::Os), 3_000);
    let mut reports = Vec::new();
    let setup = JournalSetup {
        disk: &Disk::Real,
        data: &data,
        journal: settings(Level::Os),
        shards: 2,
        reference: RefData::check(RefDataRows::default()).unwrap(),
        settings: shard_settings(),
        receivers: Default::default(),
    };
    pitlane_journal::open(setup, Timestamp(u64::MAX / 2), &mut |progress| reports.push(progress)).unwrap();
    assert!(reports.len() > 4);
    assert!(reports.iter().all(|progress| progress.bytes_done <= progress.bytes_total));
}

#[test]
fn stored_reference_data_give_the_ids_of_earlier_strategies() {
    let place = folder("known-strategies");
    let empty = RefData::check(RefDataRows::default()).unwrap();
    let known = || pitlane_journal::known_strategies(&Disk::Real, &place);
    assert_eq!(known(), KnownStrategies::default(), "there is no folder yet");
    let first = empty.clone().with_strategies(["DIP"], &known()).unwrap();
    let name = pitlane_journal::keep_reference(&Disk::Real, &place, &first).unwrap();
    let second = empty.clone().with_strategies(["ALPHA"], &known()).unwrap();
    pitlane_journal::keep_reference(&Disk::Real, &place, &second).unwrap();
    let both = empty.with_strategies(["ALPHA", "DIP"], &known()).unwrap();
    let ids: Vec<_> = both.strategies().iter().map(|row| (row.id.0, row.name.as_str())).collect();
    assert_eq!(ids, [(0, "SERVER"), (1, "DIP"), (2, "ALPHA")]);
    // A set that cannot be read is left to the start of the journal, which reports it if a shard
    // needs it.
    std::fs::write(place.join(format!("journal/refdata/{name:016x}")), b"damage").unwrap();
    let mut expected = KnownStrategies::default();
    expected.learn(&second);
    assert_eq!(known(), expected);
}
