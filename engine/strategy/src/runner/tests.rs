use super::*;
use crate::host::unguarded;
use pitlane_engine::mesh::{Depths, PortClass, ShardEnd, mesh};
use pitlane_engine::refdata::RefDataRows;

/// Returns a runner without strategies, and the other ends of its lanes.
fn idle_runner() -> (Runner, Vec<ShardEnd>) {
    let (mut ports, ends) = mesh(&[PortClass::Client], 1, Depths::default());
    let settings = RunnerSettings {
        operation: Operation::RealTime,
        guard: unguarded,
        orders_max: 10,
        finished_max: 10,
        numbers: IdBlock { next: 1, end: 10 },
        seed: 1,
        pages: LargePages::NONE,
    };
    let reference = Arc::new(RefData::check(RefDataRows::default()).unwrap());
    (Runner::new(ports.remove(0), reference, settings, Vec::new()), ends)
}

#[test]
fn a_runner_begins_when_its_own_snapshot_is_complete() {
    let (mut runner, _ends) = idle_runner();
    let own = runner.port.id();
    for (port, is_ready) in [(PortId(own.0 + 1), false), (own, true)] {
        let body = EventKind::SnapshotEnd { port };
        runner.handle(Timestamp(1), ShardId(0), &Event { seq: 1, at: Timestamp(1), body });
        runner.begin();
        assert_eq!((runner.is_ready(), runner.begun), (is_ready, is_ready));
    }
}

#[test]
fn commands_wait_until_they_are_sent_and_then_wake_the_shard() {
    let (mut runner, _ends) = idle_runner();
    assert!(runner.is_waiting());
    assert_eq!(runner.take_wakeups(), ShardMask::default());
    assert_eq!(runner.poll(Timestamp(1)), 2, "the watch and the snapshot");
    assert!(!runner.is_waiting());
    assert_eq!(runner.take_wakeups(), ShardMask::from_iter([ShardId(0)]));
}

#[test]
fn notices_beyond_the_bound_are_dropped_and_counted() {
    let (mut runner, _ends) = idle_runner();
    let notice = |n: usize| Notice::Generic { name: n.to_string().into(), body: Arc::default() };
    let name = |notice: Option<Notice>| match notice {
        Some(Notice::Generic { name, .. }) => name.to_string(),
        other => panic!("{other:?}"),
    };
    (0..NOTICES_MAX).for_each(|n| runner.notify(notice(n)));
    assert_eq!((runner.notices.len(), runner.dropped()), (NOTICES_MAX, 0));
    runner.notify(notice(NOTICES_MAX));
    assert_eq!((runner.notices.len(), runner.dropped()), (NOTICES_MAX, 1));
    assert_eq!(name(runner.poll_notice()), "0");
    runner.notify(notice(NOTICES_MAX + 1));
    assert_eq!((name(runner.notices.pop_back()), runner.dropped()), ((NOTICES_MAX + 1).to_string(), 1));
}
