use super::*;
use crate::host::unguarded;
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::refdata::RefDataRows;

#[test]
fn notices_beyond_the_bound_are_dropped_and_counted() {
    let (mut ports, _ends) = mesh(&[PortClass::Client], 1, Depths::default());
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
    let mut runner = Runner::new(ports.remove(0), reference, settings, Vec::new());
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
