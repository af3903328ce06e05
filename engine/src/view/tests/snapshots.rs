use super::*;

#[test]
fn an_order_that_was_modified_twice_is_found_by_each_id_and_listed_once() {
    let mut bench = ViewBench::new(1);
    let image = |orig: &str, now: &str| {
        let terms = OrderTerms {
            what: ExecType::Snapshot,
            id: id(now),
            orig_id: id(orig),
            ..entered(handle(0, 0, 2), now)
        };
        EventKind::Order(terms)
    };
    // The same snapshot again changes nothing.
    for _ in 0..2 {
        bench.begin(0);
        bench.emit(0, image("a", "b"));
        bench.emit(0, image("b", "c"));
        bench.end(0);
        for name in ["a", "b", "c"] {
            let found = bench.view.orders_with_id(&id(name));
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!((found[0].id, found[0].orig_id, found[0].first_id), (id("c"), id("b"), id("a")));
        }
    }
}

#[test]
fn a_view_is_complete_when_the_first_snapshot_has_ended() {
    let mut bench = ViewBench::new(2);
    bench.begin(1);
    assert!(!bench.view.is_complete(ShardId(1)));
    bench.end(1);
    assert!(bench.view.is_complete(ShardId(1)) && !bench.view.is_complete(ShardId(0)));
    bench.begin(1);
    assert!(bench.view.is_complete(ShardId(1)));
    assert_eq!(bench.view.seq(ShardId(1)), 9);
}

#[test]
fn snapshots_and_live_events_combine() {
    let mut bench = ViewBench::new(1);
    let (old, new, late) = (handle(0, 0, 2), handle(0, 0, 1), handle(0, 0, 3));
    bench.begin(0);
    bench.report(old, ExecType::Filled, Status::PartiallyFilled);
    bench.emit_at(900, 0, EventKind::Order(OrderTerms { what: ExecType::Snapshot, ..entered(new, "new") }));
    bench.emit_at(950, 0, EventKind::Order(entered(late, "late")));
    let image = OrderTerms {
        what: ExecType::Snapshot,
        status: Status::PendingCancel,
        orig_id: id("first"),
        ..entered(old, "old")
    };
    bench.emit_at(100, 0, EventKind::Order(image));
    let status = OrderReport { cum_qty: qty("7"), ..report_of(&image) };
    bench.emit_at(800, 0, EventKind::Status(status));
    bench.end(0);
    assert_eq!(bench.open(), [old, new, late]);
    let order = bench.view.order(old).unwrap();
    assert_eq!((order.cum_qty, order.status), (qty("7"), Status::PendingCancel));
    assert_eq!((order.submitted, order.updated), (Timestamp(100), Timestamp(800)));
    assert_eq!((order.first_id, order.orig_id), (id("first"), id("first")));
}

#[test]
fn rows_that_a_snapshot_omits_are_dropped_for_its_shard_only() {
    let mut bench = ViewBench::new(2);
    for shard in [0, 1] {
        fill_everything(&mut bench, shard);
    }
    let before = counts(&bench.view);
    assert!(before.iter().all(|(_, count)| *count == 2), "{before:?}");
    bench.begin(0);
    assert_eq!(counts(&bench.view), before);
    bench.end(0);
    let after = counts(&bench.view);
    assert!(after.iter().all(|(_, count)| *count == 1), "{after:?}");
}

#[test]
fn rows_that_a_snapshot_mentions_stay() {
    let mut bench = ViewBench::new(2);
    fill_everything(&mut bench, 0);
    fill_everything(&mut bench, 1);
    let before = counts(&bench.view);
    bench.begin(1);
    bench.begin(1);
    fill_everything(&mut bench, 1);
    bench.end(1);
    bench.end(1);
    assert_eq!(counts(&bench.view), before);
}

#[test]
fn a_forgotten_order_is_history_that_no_snapshot_removes() {
    let mut bench = ViewBench::new(1);
    let (forgotten, finished) = (handle(0, 0, 0), handle(0, 0, 1));
    for order in [forgotten, finished] {
        bench.enter(order, "x");
        bench.report(order, ExecType::Filled, Status::Filled);
    }
    bench.emit(0, EventKind::Forgotten { order: forgotten, source: Source::default(), id: id("x") });
    bench.emit(0, booked(1, 5, "1"));
    bench.begin(0);
    bench.end(0);
    assert_eq!(bench.finished(), [forgotten]);
    assert_eq!(bench.view.transactions(None).count(), 1);
}

#[test]
fn finished_orders_of_a_snapshot_come_by_their_end_whatever_its_order() {
    let mut bench = ViewBench::new(1);
    bench.begin(0);
    for (slot, ended) in [(0, 300), (1, 100), (2, 200)] {
        let (what, status) = (ExecType::Snapshot, Status::Filled);
        let image = OrderTerms { what, status, ..entered(handle(0, 0, slot), "x") };
        bench.emit_at(50, 0, EventKind::Order(image));
        bench.emit_at(ended, 0, EventKind::Status(report_of(&image)));
    }
    bench.end(0);
    assert_eq!(bench.finished(), [0, 2, 1].map(|slot| handle(0, 0, slot)));
}

#[test]
#[should_panic(expected = "the events of a shard come in their order")]
fn event_numbers_of_a_shard_never_fall() {
    let mut bench = ViewBench::new(1);
    bench.begin(0);
    bench.begin(0);
    bench.seq -= 4;
    bench.end(0);
}

#[test]
#[should_panic(expected = "a snapshot begins before it ends")]
fn a_snapshot_cannot_end_before_it_begins() {
    ViewBench::new(1).end(0);
}

/// Emits one of every event that a shard can emit, about its own rows where rows have one owner.
fn fill_everything(bench: &mut ViewBench, shard: u8) {
    let security = SecurityId(shard as u32);
    let strategy = StrategyId(shard as u16);
    let scope = Scope::Strategy(strategy);
    bench.enter(handle(shard, 0, 0), "mine");
    bench.emit(shard, booked(shard as u32, 5, "10"));
    bench.emit(shard, EventKind::Tick(Tick { security, ..Tick::default() }));
    bench.emit(shard, EventKind::Subscription { strategy, security, on: true, subscribers: 1 });
    bench.emit(shard, EventKind::Halt { security, on: true });
    bench.emit(
        shard,
        EventKind::Session { exchange: ExchangeId(shard as u16), session: TradingSession::Closed },
    );
    bench.emit(shard, EventKind::Phase { strategy, phase: StrategyPhase::Running });
    bench.emit(shard, EventKind::Adapter { adapter: AdapterId(shard), connected: true });
    bench.emit(shard, EventKind::Limits { scope, limits: RiskLimits::default() });
    bench.emit(shard, EventKind::Restrict { scope, security, on: true });
    bench.emit(shard, EventKind::Kill { scope, on: true });
}

fn counts(view: &View) -> Vec<(&'static str, usize)> {
    let strategies = || [StrategyId(0), StrategyId(1)].into_iter();
    let securities = || [SecurityId(0), SecurityId(1)].into_iter();
    vec![
        ("orders", view.orders_with_id(&id("mine")).len()),
        ("positions", view.positions().count()),
        ("cash", view.cash_balances().count()),
        ("ticks", view.ticks().count()),
        ("tick", securities().filter(|s| view.tick(*s).is_some()).count()),
        ("subscriptions", view.subscriptions().count()),
        ("subscribers", securities().filter(|s| view.subscribers(*s) > 0).count()),
        ("halts", view.halts().count()),
        ("sessions", [0, 1].into_iter().filter(|e| view.session(ExchangeId(*e)).is_some()).count()),
        ("phases", strategies().filter(|s| view.phase(*s).is_some()).count()),
        ("adapters", view.adapters().count()),
        ("limits", view.all_limits().count()),
        ("restrictions", view.restrictions().count()),
        ("kills", view.kills().count()),
    ]
}
