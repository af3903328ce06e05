use super::*;

#[test]
fn the_newest_tick_replaces_the_older() {
    let mut bench = ViewBench::new(1);
    for (security, last) in [(500, "1"), (3, "2"), (500, "3")] {
        let tick = Tick { security: SecurityId(security), last: price(last), ..Tick::default() };
        bench.emit(0, EventKind::Tick(tick));
    }
    let ticks: Vec<_> = bench.view.ticks().map(|tick| (tick.security.0, tick.last)).collect();
    assert_eq!(ticks, [(3, price("2")), (500, price("3"))]);
    assert_eq!((bench.view.tick(SecurityId(4)), bench.view.tick(SecurityId(501))), (None, None));
}

#[test]
fn subscriptions_and_halts_are_set_and_removed() {
    let mut bench = ViewBench::new(1);
    let (one, two, security) = (StrategyId(1), StrategyId(2), SecurityId(7));
    bench.emit(0, EventKind::Subscription { strategy: one, security, on: true, subscribers: 1 });
    bench.emit(0, EventKind::Subscription { strategy: two, security, on: true, subscribers: 2 });
    bench.emit(0, EventKind::Subscription { strategy: one, security, on: false, subscribers: 1 });
    assert_eq!(bench.view.subscriptions().collect::<Vec<_>>(), [(security, two)]);
    assert_eq!(bench.view.subscribers(security), 1);
    bench.emit(0, EventKind::Subscription { strategy: two, security, on: false, subscribers: 0 });
    assert_eq!(bench.view.subscribers(security), 0);
    bench.emit(0, EventKind::Halt { security, on: true });
    assert_eq!(bench.view.halts().collect::<Vec<_>>(), [security]);
    bench.emit(0, EventKind::Halt { security, on: false });
    assert_eq!(bench.view.halts().count(), 0);
}

#[test]
fn a_new_day_of_a_shard_begins_without_volume_in_its_securities() {
    let mut bench = ViewBench::new(2);
    for shard in [0, 1] {
        let tick = Tick { security: SecurityId(shard as u32), volume: qty("5"), ..Tick::default() };
        bench.emit(shard, EventKind::Tick(tick));
    }
    let volumes = |bench: &ViewBench| [0, 1].map(|at| bench.view.tick(SecurityId(at)).unwrap().volume);
    bench.emit(0, EventKind::TradingDay { day: Day(1) });
    assert_eq!(volumes(&bench), [Qty::ZERO, qty("5")]);
}
