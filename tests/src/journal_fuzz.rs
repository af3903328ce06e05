//! A modified journal: changed bytes in any of its files, and whole records and states with correct
//! checksums. It is read, or rejected with file and position; no panic.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pitlane_engine::command::Command;
use pitlane_engine::index::index_u32;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_journal::disk::Disk;
use pitlane_journal::header::{HEADER_BYTES, Header};
use pitlane_journal::record::{DecodedRecord, JournalRecord, bytes_of, kind};
use pitlane_journal::simulated_disk::Simulated;
use pitlane_journal::snapshot::Snapshot;
use pitlane_journal::{JournalSettings, JournalSetup, Level, NotTaken};

use crate::dice::Dice;
use crate::shard_and_twin::source;
use crate::test_market;
use crate::workload::{Action, ActionGenerator, Profile};

const DATA: &str = "data";
/// Actions of the run whose journal is changed.
const DEEDS: usize = 900;
/// Cycles after them, in which the snapshot is finished.
const ROUNDS: usize = 200;
/// Most changes of one input.
const CHANGES_MAX: usize = 16;

/// Applies changes one after the other: a byte selects the file, one the kind of change, two the
/// position, one a length, followed by as many bytes.
pub fn read(bytes: &[u8]) {
    let (disk, paths) = kept();
    let disk = disk.kill();
    let mut rest = bytes;
    for _ in 0..CHANGES_MAX {
        let [file, action, low, high, length, behind @ ..] = rest else { break };
        let place = u16::from_le_bytes([*low, *high]) as usize;
        let (payload, behind) = behind.split_at((*length as usize).min(behind.len()));
        rest = behind;
        let path = &paths[*file as usize % paths.len()];
        match action % 4 {
            0 => disk.meddle(path, |bytes| overwrite(bytes, place, payload)),
            1 => disk.meddle(path, |bytes| bytes.truncate(place)),
            2 => disk.meddle(path, |bytes| append(bytes, *action, place as u64, payload)),
            _ => disk.meddle(path, |bytes| reseal(path, bytes, place, payload)),
        }
    }
    if let Err(fault) = pitlane_journal::read_back(&Disk::Simulated(disk), Path::new(DATA)) {
        assert!(!fault.to_string().is_empty(), "a fault has a text");
    }
}

fn overwrite(bytes: &mut [u8], place: usize, payload: &[u8]) {
    let Some(from) = place.checked_rem(bytes.len()) else { return };
    let end = bytes.len().min(from + payload.len());
    bytes[from..end].copy_from_slice(&payload[..end - from]);
}

/// Appends one more record to a segment, as our writer would.
fn append(bytes: &mut [u8], action: u8, time: u64, payload: &[u8]) {
    let Ok((_, salt)) = Header::decode(bytes) else { return };
    let (mut at, mut last) = (HEADER_BYTES, (0, 0));
    while let Some(DecodedRecord::Record { record, bytes, .. }) =
        bytes.get(at..).map(|rest| JournalRecord::decode(salt, rest))
    {
        (at, last) = (at + bytes, (record.seq, record.time));
    }
    let kind = if action & 4 == 0 { kind::COMMAND } else { kind::START };
    let record = JournalRecord { seq: last.0 + 1, time: last.1 + time, lag: 0, kind, payload };
    let end = at + bytes_of(payload.len());
    if let Some(room) = bytes.get_mut(at..end) {
        record.encode(salt, room);
    }
}

/// Changes some bytes of a snapshot's state, and corrects the checksums.
fn reseal(path: &Path, bytes: &mut Vec<u8>, place: usize, payload: &[u8]) {
    let Ok(mut snapshot) = Snapshot::decode(bytes) else { return };
    assert!(path.extension().is_some_and(|ending| ending == "snap"), "nothing else is one");
    overwrite(&mut snapshot.state, place, payload);
    *bytes = snapshot.encode();
}

/// Returns a journal with segments, a snapshot and reference data, and the paths of its files.
fn kept() -> &'static (Simulated, Vec<PathBuf>) {
    static KEPT: OnceLock<(Simulated, Vec<PathBuf>)> = OnceLock::new();
    KEPT.get_or_init(|| {
        let disk = Simulated::new(1);
        live(&disk);
        let disk = disk.kill();
        let paths = disk.paths();
        assert!(
            paths.iter().any(|path| path.extension().is_some_and(|ending| ending == "snap")),
            "{paths:?}"
        );
        (disk, paths)
    })
}

fn live(disk: &Simulated) {
    let handle = Disk::Simulated(disk.clone());
    let journal = JournalSettings {
        level: Level::Os,
        segment_bytes: pitlane_journal::SEGMENT_BYTES_MIN,
        spares: 2,
        sync_interval_ns: NS_PER_S / 100,
        snapshot_bytes: pitlane_journal::SEGMENT_BYTES_MIN as u64,
        keep_days: 0,
        ..JournalSettings::default()
    };
    let settings = ShardSettings {
        orders_max: 200,
        transactions_max: 64,
        executions_max: 200,
        ..ShardSettings::default()
    };
    let setup = JournalSetup {
        disk: &handle,
        data: Path::new(DATA),
        journal,
        shards: 1,
        reference: (*test_market::reference()).clone(),
        settings,
        receivers: Default::default(),
    };
    let mut now = test_market::start();
    let mut opened = pitlane_journal::open(setup, now, &mut |_| {}).expect("a new journal");
    let mut opened_shard = opened.shards.remove(0);
    let mut out = Outbox::new(opened_shard.event);
    let mut dice = Dice::new(5);
    let profile = Profile::random(&mut dice);
    let mut workload = ActionGenerator::new(dice, profile);
    let mut opening = ActionGenerator::opening();
    opening.reverse();
    for token in 0..DEEDS {
        now = now.plus(NS_PER_S / 10);
        let Action::Plain(body) = opening.pop().unwrap_or_else(|| workload.next(now)) else { continue };
        let command = Command::new(source(), index_u32(token), body);
        while let Err(refused) = opened_shard.writer.offer(now, &command, &opened_shard.shard) {
            assert_eq!(refused, NotTaken::Wait, "the disk is a good one");
            tend(&mut opened_shard.writer, &mut opened.syncer, &mut opened.segment_manager, now);
        }
        opened_shard.shard.apply(now, &command, &mut out);
        out.clear();
        while opened_shard.shard.has_work() {
            opened_shard.shard.resume(&mut out);
            out.clear();
        }
        tend(&mut opened_shard.writer, &mut opened.syncer, &mut opened.segment_manager, now);
    }
    opened.segment_manager.ask_for_snapshots();
    for _ in 0..ROUNDS {
        now = now.plus(NS_PER_S);
        tend(&mut opened_shard.writer, &mut opened.syncer, &mut opened.segment_manager, now);
    }
    let is_there = disk.paths().iter().any(|path| path.extension().is_some_and(|ending| ending == "snap"));
    assert!(is_there, "there is a snapshot: {:?}", opened_shard.writer.health().report());
}

fn tend(
    writer: &mut pitlane_journal::Writer,
    syncer: &mut pitlane_journal::Syncer,
    segment_manager: &mut pitlane_journal::SegmentManager,
    now: Timestamp,
) {
    writer.maintain();
    syncer.poll(now);
    writer.maintain();
    segment_manager.poll(now);
}
