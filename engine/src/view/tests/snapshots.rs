use super::*;

#[test]
fn an_order_that_was_modified_twice_is_found_by_each_id_and_listed_once() {
    let mut desk = Desk::new(1);
    let image = |orig: &str, now: &str| {
        let told = OrderTerms {
            what: ExecType::Snapshot,
            id: id(now),
            orig_id: id(orig),
            ..entered(handle(0, 0, 2), now)
        };
        EventKind::Order(told)
    };
    // The same snapshot again changes nothing.
    for _ in 0..2 {
        desk.begin(0);
        desk.say(0, image("a", "b"));
        desk.say(0, image("b", "c"));
        desk.end(0);
        for name in ["a", "b", "c"] {
            let found = desk.view.orders_with_id(&id(name));
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!((found[0].id, found[0].orig_id, found[0].first_id), (id("c"), id("b"), id("a")));
        }
    }
}

#[test]
fn a_view_is_complete_when_the_first_snapshot_has_ended() {
    let mut desk = Desk::new(2);
    desk.begin(1);
    assert!(!desk.view.is_complete(ShardId(1)));
    desk.end(1);
    assert!(desk.view.is_complete(ShardId(1)) && !desk.view.is_complete(ShardId(0)));
    desk.begin(1);
    assert!(desk.view.is_complete(ShardId(1)));
    assert_eq!(desk.view.seq(ShardId(1)), 9);
}

#[test]
fn snapshots_and_live_events_combine() {
    let mut desk = Desk::new(1);
    let (old, new, late) = (handle(0, 0, 2), handle(0, 0, 1), handle(0, 0, 3));
    desk.begin(0);
    desk.report(old, ExecType::Filled, Status::PartiallyFilled);
    desk.say_at(900, 0, EventKind::Order(OrderTerms { what: ExecType::Snapshot, ..entered(new, "new") }));
    desk.say_at(950, 0, EventKind::Order(entered(late, "late")));
    let image = OrderTerms {
        what: ExecType::Snapshot,
        status: Status::PendingCancel,
        orig_id: id("first"),
        ..entered(old, "old")
    };
    desk.say_at(100, 0, EventKind::Order(image));
    let status = OrderReport { cum_qty: qty("7"), ..report_of(&image) };
    desk.say_at(800, 0, EventKind::Status(status));
    desk.end(0);
    assert_eq!(desk.open(), [old, new, late]);
    let order = desk.view.order(old).unwrap();
    assert_eq!((order.cum_qty, order.status), (qty("7"), Status::PendingCancel));
    assert_eq!((order.submitted, order.updated), (Timestamp(100), Timestamp(800)));
    assert_eq!((order.first_id, order.orig_id), (id("first"), id("first")));
}

#[test]
fn rows_that_a_snapshot_omits_are_dropped_for_its_shard_only() {
    let mut desk = Desk::new(2);
    for shard in [0, 1] {
        fill_everything(&mut desk, shard);
    }
    let before = picture(&desk.view);
    assert!(before.iter().all(|(_, count)| *count == 2), "{before:?}");
    desk.begin(0);
    assert_eq!(picture(&desk.view), before);
    desk.end(0);
    let after = picture(&desk.view);
    assert!(after.iter().all(|(_, count)| *count == 1), "{after:?}");
}

#[test]
fn rows_that_a_snapshot_mentions_stay() {
    let mut desk = Desk::new(2);
    fill_everything(&mut desk, 0);
    fill_everything(&mut desk, 1);
    let before = picture(&desk.view);
    desk.begin(1);
    desk.begin(1);
    fill_everything(&mut desk, 1);
    desk.end(1);
    desk.end(1);
    assert_eq!(picture(&desk.view), before);
}

#[test]
fn a_forgotten_order_is_history_that_no_snapshot_removes() {
    let mut desk = Desk::new(1);
    let (forgotten, finished) = (handle(0, 0, 0), handle(0, 0, 1));
    for order in [forgotten, finished] {
        desk.enter(order, "x");
        desk.report(order, ExecType::Filled, Status::Filled);
    }
    desk.say(0, EventKind::Forgotten { order: forgotten, source: Source::default(), id: id("x") });
    desk.say(0, booked(1, 5, "1"));
    desk.begin(0);
    desk.end(0);
    assert_eq!(desk.finished(), [forgotten]);
    assert_eq!(desk.view.transactions(None).count(), 1);
}

#[test]
#[should_panic(expected = "the events of a shard come in their order")]
fn event_numbers_of_a_shard_never_fall() {
    let mut desk = Desk::new(1);
    desk.begin(0);
    desk.begin(0);
    desk.seq -= 4;
    desk.end(0);
}

#[test]
#[should_panic(expected = "a snapshot begins before it ends")]
fn a_snapshot_cannot_end_before_it_begins() {
    Desk::new(1).end(0);
}

/// Emits one of every event that a shard can emit, about its own rows where rows have one owner.
fn fill_everything(desk: &mut Desk, shard: u8) {
    let security = SecurityId(shard as u32);
    let strategy = StrategyId(shard as u16);
    let scope = Scope::Strategy(strategy);
    desk.enter(handle(shard, 0, 0), "mine");
    desk.say(shard, booked(shard as u32, 5, "10"));
    desk.say(shard, EventKind::Tick(Tick { security, ..Tick::default() }));
    desk.say(shard, EventKind::Subscription { strategy, security, on: true, subscribers: 1 });
    desk.say(shard, EventKind::Halt { security, on: true });
    desk.say(shard, EventKind::Session { exchange: ExchangeId(shard as u16), session: Session::Closed });
    desk.say(shard, EventKind::Phase { strategy, phase: Phase::Running });
    desk.say(shard, EventKind::Adapter { adapter: AdapterId(shard), connected: true });
    desk.say(shard, EventKind::Limits { scope, limits: Limits::default() });
    desk.say(shard, EventKind::Restrict { scope, security, on: true });
    desk.say(shard, EventKind::Kill { scope, on: true });
}

fn picture(view: &View) -> Vec<(&'static str, usize)> {
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
