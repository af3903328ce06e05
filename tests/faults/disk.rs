//! A disk that fails: failed syncs, and no space.

use pitlane_engine::command::{CommandKind, Scope};
use pitlane_engine::id::IntId;
use pitlane_engine::index::index_usize;
use pitlane_journal::simulated_disk::Simulated;
use pitlane_journal::{Class, Level, WriteMode};

use crate::rig::{JournalRig, settings};

const ACTIONS: usize = 150;

/// Sends this many cancels, and returns how many the journal accepted.
fn cancel(rig: &mut JournalRig, count: usize) -> usize {
    let body = |rig: &JournalRig, nth: usize| CommandKind::Cancel {
        order: rig.handle(nth),
        id: IntId::numbered(b'c', nth as u64),
    };
    (0..count).filter(|&nth| rig.offer(body(rig, nth))).count()
}

/// Sends a harmless quote, and returns whether the journal accepts entries.
fn is_entry_open(rig: &mut JournalRig) -> bool {
    let security = pitlane_tests::test_market::SECURITIES[0];
    rig.offer(CommandKind::Quote { security, quote: Default::default() })
}

#[test]
fn after_a_failed_sync_nothing_is_lost_and_only_cancels_are_accepted() {
    let points = if crate::is_full() { 120 } else { 25 };
    let mut failed = 0;
    for point in 0..points {
        let mut rig =
            JournalRig::begin(Simulated::new(point), settings(Level::Disk), Vec::new(), 0, point).unwrap();
        rig.disk.fail_sync(point % 30);
        rig.run(ACTIONS);
        rig.settle();
        match rig.write_mode() {
            // The failed sync may have been that of a segment allocated ahead: that is like a full
            // disk, and is temporary.
            WriteMode::Open => assert!(is_entry_open(&mut rig), "{point}"),
            WriteMode::Failed => {
                failed += 1;
                assert!(!is_entry_open(&mut rig), "{point}: entry stays shut until restart");
                assert_eq!(cancel(&mut rig, 20), 20, "{point}");
                rig.settle();
                assert_eq!(rig.acknowledged, rig.history.len() as u64, "{point}: all that was taken is safe");
            }
            door @ (WriteMode::Full | WriteMode::BrokerFull | WriteMode::Shut) => panic!("{point}: {door}"),
        }
        let disk = rig.disk.power_loss();
        let mut again = JournalRig::begin(disk, settings(Level::Disk), rig.history, rig.acknowledged, point)
            .unwrap_or_else(|problem| panic!("{point}: {problem}"));
        assert!(is_entry_open(&mut again), "{point}: a restart opens the door");
        again.run(ACTIONS);
        again.settle();
        let disk = again.disk.power_loss();
        JournalRig::begin(disk, settings(Level::Disk), again.history, again.acknowledged, point)
            .unwrap_or_else(|problem| panic!("{point}, another run: {problem}"));
    }
    assert!(
        failed >= index_usize(points) / 4,
        "{failed} of {points} syncs that failed were the journal's own"
    );
}

#[test]
fn when_the_second_sync_fails_too_nothing_is_accepted() {
    let mut rig = JournalRig::begin(Simulated::new(1), settings(Level::Disk), Vec::new(), 0, 1).unwrap();
    rig.run(20);
    rig.settle();
    for _ in 0..2 {
        rig.disk.fail_sync(0);
        rig.offer(CommandKind::Kill { scope: Scope::Global, on: false });
        rig.writer.maintain();
        rig.syncer.poll(rig.now);
        rig.writer.maintain();
    }
    rig.disk.fail_sync(0);
    rig.syncer.poll(rig.now);
    assert_eq!(rig.write_mode(), WriteMode::Shut, "{:?}", rig.writer.health().report());
    assert!(!rig.offer(CommandKind::Kill { scope: Scope::Global, on: false }));
    assert!(rig.writer.health().report().last_error.is_some_and(|message| message.contains("syncing")));
    let acknowledged = rig.acknowledged;
    JournalRig::begin(rig.disk.power_loss(), settings(Level::Disk), rig.history, acknowledged, 1).unwrap();
}

#[test]
fn at_level_os_a_failed_sync_stops_entry_and_loses_nothing() {
    let mut rig = JournalRig::begin(Simulated::new(1), settings(Level::Os), Vec::new(), 0, 1).unwrap();
    rig.run(20);
    rig.disk.fail_sync(0);
    rig.settle();
    assert_eq!(rig.write_mode(), WriteMode::Failed);
    assert!(!is_entry_open(&mut rig));
    assert_eq!(cancel(&mut rig, 50), 50);
    rig.settle();
    JournalRig::begin(rig.disk.kill(), settings(Level::Os), rig.history, rig.acknowledged, 1).unwrap();
}

#[test]
fn on_a_full_disk_cancels_are_accepted_and_entry_resumes_with_space() {
    for level in [Level::Os, Level::Disk] {
        let mut rig = JournalRig::begin(Simulated::new(3), settings(level), Vec::new(), 0, 3).unwrap();
        rig.settle();
        rig.disk.set_bytes_max(rig.disk.bytes_used());
        while is_entry_open(&mut rig) {
            rig.poll();
        }
        assert_eq!(rig.write_mode(), WriteMode::Full, "{level}");
        assert_eq!(rig.refused.last(), Some(&(Class::Entry, WriteMode::Full)), "{level}");
        // At least a whole segment is left for these.
        let taken = cancel(&mut rig, 100);
        assert_eq!(taken, 100, "{level}");
        rig.settle();
        assert_eq!(rig.write_mode(), WriteMode::Full, "{level}");
        assert_eq!(rig.acknowledged, rig.history.len() as u64, "{level}: what was taken is safe");
        let report = rig.writer.health().report();
        assert!(report.last_error.is_some_and(|message| message.contains("reserving")), "{level}");
        rig.disk.set_bytes_max(u64::MAX);
        rig.settle();
        assert_eq!(rig.write_mode(), WriteMode::Open, "{level}");
        assert!(is_entry_open(&mut rig), "{level}");
        rig.run(ACTIONS);
        rig.settle();
        let crashed = if level == Level::Os { rig.disk.kill() } else { rig.disk.power_loss() };
        JournalRig::begin(crashed, settings(level), rig.history, rig.acknowledged, 3).unwrap();
    }
}

#[test]
fn when_the_reserve_is_used_up_cancels_are_rejected_and_not_lost() {
    let mut rig = JournalRig::begin(Simulated::new(4), settings(Level::Disk), Vec::new(), 0, 4).unwrap();
    rig.settle();
    rig.disk.set_bytes_max(rig.disk.bytes_used());
    let mut taken = 0;
    while cancel(&mut rig, 1) == 1 {
        rig.poll();
        taken += 1;
    }
    assert!(taken > 200, "{taken} cancels in what was left and the reserve");
    assert_eq!(rig.refused.last(), Some(&(Class::Needed, WriteMode::Full)));
    rig.settle();
    assert_eq!(rig.acknowledged, rig.history.len() as u64);
    rig.disk.set_bytes_max(u64::MAX);
    rig.settle();
    assert_eq!(cancel(&mut rig, 1), 1);
    JournalRig::begin(rig.disk.power_loss(), settings(Level::Disk), rig.history, rig.acknowledged, 4)
        .unwrap();
}
