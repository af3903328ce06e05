//! Crashes at every point of a scripted run.

use pitlane_journal::Level;
use pitlane_journal::simulated_disk::Simulated;
use pitlane_tests::dice::Dice;

use crate::rig::{JournalRig, settings};

/// Actions of one run: some segments, a snapshot or two.
const ACTIONS: usize = 700;
/// Crash points of the short form.
const POINTS: u64 = 60;
/// Runs of the full form, each with crashes at all of its points.
const SEEDS: u64 = 4;
/// Successive runs, each ended by a crash.
const RUNS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    Power,
    Kill,
    /// Kills and losses of power at random: what a killed process left in the page cache, and the
    /// next one built on, must survive a loss of power.
    Either,
}

#[test]
fn at_level_disk_power_loss_keeps_everything_acknowledged() {
    everywhere(Level::Disk, Crash::Power);
}

#[test]
fn at_level_disk_a_kill_keeps_everything_acknowledged() {
    everywhere(Level::Disk, Crash::Kill);
}

#[test]
fn at_level_disk_kills_and_power_losses_keep_everything_acknowledged() {
    everywhere(Level::Disk, Crash::Either);
}

#[test]
fn at_level_os_kills_and_power_losses_leave_a_prefix() {
    everywhere(Level::Os, Crash::Either);
}

#[test]
fn at_level_os_a_kill_keeps_everything_acknowledged() {
    everywhere(Level::Os, Crash::Kill);
}

/// At this level acknowledged records may be lost; but the rest is a prefix of them, and the start
/// is never refused.
#[test]
fn at_level_os_power_loss_leaves_a_prefix() {
    everywhere(Level::Os, Crash::Power);
}

fn everywhere(level: Level, crash: Crash) {
    for seed in 0..if crate::is_full() { SEEDS } else { 1 } {
        everywhere_in(level, crash, seed);
    }
}

fn everywhere_in(level: Level, crash: Crash, seed: u64) {
    let changes = changes_of_a_run(level, seed);
    let points = if crate::is_full() { changes } else { POINTS };
    let mut with_snapshot = 0;
    for point in 0..points {
        let fuse = point * changes / points;
        match run_several(level, crash, seed, fuse) {
            Ok(snapshot) => with_snapshot += u64::from(snapshot),
            Err(problem) => {
                panic!("seed {seed}, {level}, {crash:?} after {fuse} of {changes} changes: {problem}")
            }
        }
    }
    assert!(with_snapshot > points / 10, "{with_snapshot} of {points} came back from a snapshot");
}

fn changes_of_a_run(level: Level, seed: u64) -> u64 {
    let mut rig = JournalRig::begin(Simulated::new(seed), settings(level), Vec::new(), 0, seed)
        .expect("an empty disk is taken");
    rig.run(ACTIONS);
    rig.disk.changes()
}

/// Runs several times in a row. The first run ends at a given change of the disk, the others at a
/// random one. Returns whether the last start began with a snapshot.
fn run_several(level: Level, crash: Crash, seed: u64, fuse: u64) -> Result<bool, String> {
    let mut dice = Dice::new(seed ^ fuse);
    let mut disk = Simulated::new(seed);
    let (mut history, mut acknowledged, mut fuse) = (Vec::new(), 0, fuse);
    for opened_shard in 0..RUNS {
        disk.light_fuse(fuse);
        let begun = JournalRig::begin(
            disk.clone(),
            settings(level),
            history.clone(),
            acknowledged,
            seed + opened_shard as u64,
        );
        if let Ok(mut rig) = begun {
            rig.run(ACTIONS);
            (history, acknowledged) = (rig.history, rig.acknowledged);
        } else if !disk.is_wrecked() {
            begun?;
        }
        let wreck = disk.wreck().unwrap_or_else(|| disk.kill());
        let power = crash == Crash::Power || crash == Crash::Either && dice.percent(50);
        disk = if power { wreck.power_loss() } else { wreck };
        if level == Level::Os && power {
            acknowledged = 0;
        }
        fuse = dice.below(2_000);
    }
    JournalRig::begin(disk, settings(level), history, acknowledged, seed).map(|rig| rig.snapshot.is_some())
}
