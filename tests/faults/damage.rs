//! Flips every byte of a small journal, and cuts its files to every length: recovery gives a clean
//! prefix or an error, never a wrong state.

use std::path::{Path, PathBuf};

use pitlane_engine::id::ShardId;
use pitlane_engine::index::index_usize;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::shard::Shard;
use pitlane_journal::Level;
use pitlane_journal::simulated_disk::Simulated;
use pitlane_tests::dice::Dice;
use pitlane_tests::replay::ShardInput;
use pitlane_tests::replay::image;

use crate::rig::{DATA, JournalRig, read_back, settings};

/// Actions: two segments and a part of a third.
const ACTIONS: usize = 600;
/// Stride of the short form, in bytes.
const STRIDE: usize = 41;
/// Most records after the last sync.
const BEHIND_SYNC_MAX: u64 = 63;

/// A small journal, and the encoded state after each of its records.
struct JournalSample {
    disk: Simulated,
    states: Vec<Vec<u8>>,
    files: Vec<PathBuf>,
}

fn sample(level: Level, snapshot_bytes: u64) -> JournalSample {
    let journal = pitlane_journal::JournalSettings { snapshot_bytes, ..settings(level) };
    let mut rig =
        JournalRig::begin(Simulated::new(5), journal, Vec::new(), 0, 5).expect("an empty disk is taken");
    rig.run(ACTIONS);
    rig.settle();
    let disk = rig.disk.kill();
    let folder = Path::new(DATA).join("journal/shard-00");
    let names = disk.list(&folder);
    let files = names.iter().map(|name| folder.join(name)).collect();
    JournalSample { states: states(&rig.history), disk, files }
}

fn states(history: &[ShardInput]) -> Vec<Vec<u8>> {
    let Some(ShardInput::Began(_, reference, settings)) = history.first() else {
        panic!("a start comes first")
    };
    let mut shard = Shard::new(ShardId(0), 1, reference.clone(), settings.clone());
    let mut outbox = Outbox::new(0);
    let mut states = vec![Vec::new()];
    for entry in history {
        entry.apply(&mut shard, &mut outbox);
        states.push(image(&shard));
    }
    states
}

impl JournalSample {
    fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// Returns the last record that a recovery of this disk restores, or `None` if it fails with an
    /// error.
    fn outcome(&self, disk: &Simulated, what: &str) -> Option<u64> {
        let mut found = match read_back(disk) {
            Ok(found) => found,
            Err(fault) => {
                assert!(fault.to_string().contains("  "), "a refusal comes with advice: {fault}");
                return None;
            }
        };
        let found = found.remove(0);
        let seq = found.position.seq;
        assert!(seq <= self.last(), "{what}: {seq} records, and only {} were written", self.last());
        if let Some(restored) = found.restored {
            assert_eq!(restored.seq, seq, "{what}");
            assert!(
                image(&restored.shard) == self.states[index_usize(seq)],
                "{what}: a wrong state after {seq}"
            );
        }
        Some(seq)
    }

    fn flips(&self, reboot: bool, allowed: impl Fn(u64) -> bool) -> [u64; 3] {
        let stride = if crate::is_full() { 1 } else { STRIDE };
        let mut counts = [0; 3];
        for path in &self.files {
            let length = self.disk.read(path).expect("the file is there").len();
            for at in (0..length).step_by(stride) {
                let disk = if reboot { self.disk.power_loss() } else { self.disk.kill() };
                disk.meddle(path, |bytes| bytes[at] ^= 1 << (at % 8));
                let what = format!("{} flipped at {at}", path.display());
                match self.outcome(&disk, &what) {
                    None => counts[0] += 1,
                    Some(seq) if seq == self.last() => counts[1] += 1,
                    Some(seq) => {
                        assert!(allowed(seq), "{what}: shortened to {seq} of {}", self.last());
                        counts[2] += 1;
                    }
                }
            }
        }
        counts
    }
}

/// While the machine runs, only the very last record can be torn: everything else is damage, and is
/// rejected.
#[test]
fn a_flipped_byte_is_detected_and_only_the_last_record_is_dropped() {
    let sample = sample(Level::Os, u64::MAX);
    let last = sample.last();
    let [refused, unharmed, shortened] = sample.flips(false, |seq| seq + 1 == last);
    assert!(refused > 100 && unharmed > 0, "{refused} refused, {unharmed} unharmed, {shortened} shortened");
}

/// After a loss of power, missing records that were synced are detected; those after the last sync
/// are dropped.
#[test]
fn a_flipped_byte_in_synced_records_is_detected_after_power_loss() {
    let sample = sample(Level::Disk, u64::MAX);
    let last = sample.last();
    let behind = |seq: u64| last - seq <= BEHIND_SYNC_MAX;
    let [refused, ..] = sample.flips(true, behind);
    assert!(refused > 100, "{refused} refused");
}

#[test]
fn a_flipped_byte_in_a_snapshot_causes_a_longer_replay() {
    let sample = sample(Level::Os, 1);
    let snapshots = sample.files.iter().filter(|path| path.extension().is_some_and(|end| end == "snap"));
    assert!(snapshots.count() >= 1, "{:?}", sample.files);
    let last = sample.last();
    sample.flips(false, |seq| seq + 1 == last);
}

#[test]
fn a_cut_file_gives_a_clean_prefix_or_an_error() {
    for (level, reboot) in [(Level::Os, false), (Level::Disk, true)] {
        let sample = sample(level, u64::MAX);
        let stride = if crate::is_full() { 1 } else { STRIDE };
        for (place, path) in sample.files.iter().enumerate() {
            let length = sample.disk.read(path).unwrap().len();
            for keep in (0..length).step_by(stride) {
                let disk = if reboot { sample.disk.power_loss() } else { sample.disk.kill() };
                disk.meddle(path, |bytes| bytes.truncate(keep));
                let outcome = sample.outcome(&disk, &format!("{} cut to {keep}", path.display()));
                // A segment with a successor was complete; only the few bytes after its last
                // record, too few for another one, may be missing.
                let used = place + 1 < sample.used_segments();
                let behind = if reboot { BEHIND_SYNC_MAX } else { 0 };
                let lost = outcome.filter(|seq| sample.last() - seq > behind);
                assert!(!used || lost.is_none(), "{} cut to {keep} was taken", path.display());
            }
        }
    }
}

#[test]
fn a_missing_or_swapped_or_old_segment_is_detected() {
    let sample = sample(Level::Os, u64::MAX);
    let used = sample.used_segments();
    assert!(used >= 3, "{used} segments");
    for at in 0..used {
        for other in 0..used {
            let disk = sample.disk.kill();
            let bytes = disk.read(&sample.files[other]).unwrap();
            disk.meddle(&sample.files[at], |old| *old = bytes);
            let outcome = sample.outcome(&disk, &format!("segment {other} in the place of {at}"));
            assert!(outcome.is_none() || at == other, "segment {other} in the place of {at} was taken");
        }
        // The oldest may be missing only if a snapshot replaces it; the marker shows that the
        // newest is missing.
        let disk = sample.disk.kill();
        disk.meddle(&sample.files[at], |old| old.clear());
        let outcome = sample.outcome(&disk, &format!("segment {at} emptied"));
        assert!(outcome.is_none(), "segment {at} was not missed");
    }
}

/// Loses or overwrites each file of the data folder in turn, and each shard's folder as a whole:
/// the start fails with an error, or nothing acknowledged is missing.
#[test]
fn a_lost_or_overwritten_file_gives_an_error_or_the_whole_state() {
    for (level, reboot, snapshot_bytes) in [
        (Level::Os, false, u64::MAX),
        (Level::Os, false, 1),
        (Level::Disk, true, u64::MAX),
        (Level::Disk, true, 1),
        (Level::Disk, false, 1),
    ] {
        let sample = sample(level, snapshot_bytes);
        let again = || if reboot { sample.disk.power_loss() } else { sample.disk.kill() };
        let mut refused = 0;
        let mut check = |disk: Simulated, what: String| {
            let outcome = sample.outcome(&disk, &what);
            assert!(outcome.is_none_or(|seq| seq == sample.last()), "{what}: {outcome:?}");
            refused += usize::from(outcome.is_none());
        };
        for path in sample.disk.paths() {
            let disk = again();
            disk.lose(&path);
            check(disk, format!("{level}: {} lost", path.display()));
            for seed in 0..2 {
                let disk = again();
                let mut dice = Dice::new(seed);
                disk.meddle(&path, |bytes| bytes.iter_mut().for_each(|byte| *byte = dice.byte()));
                check(disk, format!("{level}: {} overwritten", path.display()));
            }
        }
        let disk = again();
        sample.files.iter().for_each(|path| disk.lose(path));
        check(disk, format!("{level}: the whole folder lost"));
        assert!(refused > 5, "{refused} refused");
    }
}

impl JournalSample {
    /// Returns the number of segments with records; the others were allocated ahead.
    fn used_segments(&self) -> usize {
        let used = |path: &&PathBuf| self.disk.read(path).expect("the file is there")[..8] != [0; 8];
        self.files.iter().filter(used).count()
    }
}
