use super::*;

const A: fn() -> OrderHandle = || handle(0, 1, 5);

#[test]
fn an_order_is_what_was_last_said_of_it() {
    let mut desk = Desk::new(1);
    desk.say_at(1_000, 0, EventKind::Order(entered(A(), "a")));
    let fill = OrderReport {
        what: ExecType::Filled,
        status: Status::PartiallyFilled,
        cum_qty: qty("40"),
        avg_price: price("10.6"),
        last_qty: qty("40"),
        last_price: price("10.6"),
        in_doubt: true,
        ..report_of(&entered(A(), "a"))
    };
    desk.say_at(2_000, 0, EventKind::Status(fill));
    let order = desk.view.order(A()).unwrap();
    assert_eq!((order.id, order.orig_id, order.first_id), (id("a"), IntId::NONE, id("a")));
    assert_eq!(order.terms, entered(A(), "a").terms);
    assert_eq!((order.status, order.in_doubt), (Status::PartiallyFilled, true));
    assert_eq!((order.cum_qty, order.leaves_qty()), (qty("40"), qty("60")));
    assert_eq!((order.last_qty, order.last_price), (qty("40"), price("10.6")));
    assert_eq!((order.submitted, order.updated), (Timestamp(1_000), Timestamp(2_000)));
    assert_eq!(order.source.session, 7);
    // A report that is not a fill keeps the last fill.
    let cancelled = OrderReport {
        what: ExecType::Canceled,
        status: Status::Canceled,
        id: id("request"),
        orig_id: id("a"),
        last_qty: Qty::ZERO,
        last_price: Price::ZERO,
        reason: Reason::Requested,
        ..fill
    };
    desk.say_at(3_000, 0, EventKind::Status(cancelled));
    let order = desk.view.order(A()).unwrap();
    assert_eq!((order.last_qty, order.leaves_qty()), (qty("40"), Qty::ZERO));
    assert_eq!((order.id, order.reason), (id("a"), Reason::Requested));
    assert_eq!(desk.view.orders_with_id(&id("request")), []);
}

#[test]
fn a_status_of_an_unknown_order_or_an_old_generation_is_not_looked_at() {
    let mut desk = Desk::new(1);
    desk.report(A(), ExecType::Accepted, Status::New);
    assert_eq!(desk.view.order(A()), None);
    desk.enter(A(), "a");
    desk.report(handle(0, 2, 5), ExecType::Accepted, Status::New);
    desk.report(handle(0, 1, 6), ExecType::Accepted, Status::New);
    assert_eq!(desk.view.order(A()).unwrap().status, Status::PendingNew);
}

#[test]
fn every_id_of_a_modified_order_finds_its_newest_version() {
    let mut desk = Desk::new(1);
    desk.enter(A(), "a");
    for (new, old) in [("b", "a"), ("c", "b")] {
        let terms = OrderTerms {
            id: id(new),
            orig_id: id(old),
            what: ExecType::Replaced,
            status: Status::PartiallyFilled,
            ..entered(A(), new)
        };
        desk.say(0, EventKind::Order(terms));
        let replaced = OrderReport { cum_qty: qty("1"), ..report_of(&terms) };
        desk.say(0, EventKind::Status(replaced));
    }
    for text in ["a", "b", "c"] {
        let found = desk.view.orders_with_id(&id(text));
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((found[0].id, found[0].orig_id, found[0].first_id), (id("c"), id("b"), id("a")));
        assert_eq!(found[0].cum_qty, qty("1"));
    }
    // A status alone brings the new id too.
    let replaced = OrderReport { what: ExecType::Replaced, id: id("d"), ..report_of(&entered(A(), "d")) };
    desk.say(0, EventKind::Status(replaced));
    assert_eq!(desk.view.order(A()).unwrap().id, id("d"));
}

#[test]
fn a_much_modified_order_keeps_its_first_and_its_newest_ids() {
    let mut desk = Desk::with(1, ViewSettings { versions_max: 3, ..ViewSettings::default() });
    desk.enter(A(), "v0");
    for version in 1..10 {
        desk.say(0, EventKind::Order(entered(A(), &format!("v{version}"))));
    }
    let known: Vec<u32> =
        (0..10).filter(|n| !desk.view.orders_with_id(&id(&format!("v{n}"))).is_empty()).collect();
    assert_eq!(known, [0, 8, 9]);
}

#[test]
fn one_text_may_name_orders_of_several_sources() {
    let mut desk = Desk::new(2);
    desk.enter(handle(1, 0, 0), "same");
    desk.enter(A(), "same");
    let found: Vec<_> = desk.view.orders_with_id(&id("same")).iter().map(|o| o.handle).collect();
    assert_eq!(found, [handle(1, 0, 0), A()]);
}

#[test]
fn a_refused_request_is_no_longer_shown_as_pending() {
    let mut desk = Desk::new(1);
    desk.enter(A(), "a");
    desk.report(A(), ExecType::CancelPending, Status::PendingCancel);
    let refusal = Refusal {
        order: A(),
        id: id("a"),
        request_id: id("x"),
        source: Source::default(),
        request: RequestKind::Cancel,
        status: Status::New,
        reason: Reason::VenueRejected,
    };
    desk.say(0, EventKind::Refused(refusal));
    assert_eq!(desk.view.order(A()).unwrap().status, Status::New);
    // To a stranger it is unknown, and its status is none of his business.
    let stranger =
        Refusal { id: IntId::NONE, status: Status::Rejected, reason: Reason::UnknownOrder, ..refusal };
    desk.say(0, EventKind::Refused(stranger));
    desk.say(0, EventKind::Refused(Refusal { order: handle(0, 9, 9), ..refusal }));
    assert_eq!(desk.view.order(A()).unwrap().status, Status::New);
    // A venue may not know it either, and then it is the order's own status that is told.
    desk.report(A(), ExecType::CancelPending, Status::PendingCancel);
    desk.say(0, EventKind::Refused(Refusal { reason: Reason::UnknownOrder, ..refusal }));
    assert_eq!(desk.view.order(A()).unwrap().status, Status::New);
}

#[test]
fn open_orders_come_by_time_then_handle_whatever_their_shard() {
    let mut desk = Desk::new(3);
    let plan = [(10, 2, 0), (10, 0, 7), (11, 0, 3), (11, 2, 1), (12, 1, 0), (9, 1, 1)];
    for (at, shard, slot) in plan.iter().filter(|(at, ..)| *at != 9) {
        desk.say_at(*at, *shard, EventKind::Order(entered(handle(*shard, 0, *slot), "x")));
    }
    let order = |shard, slot| handle(shard, 0, slot);
    assert_eq!(desk.open(), [order(0, 7), order(2, 0), order(0, 3), order(2, 1), order(1, 0)]);
    assert_eq!(desk.view.open_orders_len(), 5);
    desk.report(order(0, 3), ExecType::Filled, Status::Filled);
    desk.report(order(1, 0), ExecType::Rejected, Status::Rejected);
    desk.report(order(0, 7), ExecType::Canceled, Status::Canceled);
    assert_eq!(desk.open(), [order(2, 0), order(2, 1)]);
    assert_eq!(desk.finished(), [order(0, 7), order(1, 0), order(0, 3)]);
    assert_eq!(desk.view.finished_orders_len(), 3);
}

#[test]
fn a_forgotten_order_stays_readable_when_its_slot_is_used_again() {
    let mut desk = Desk::new(1);
    desk.enter(A(), "old");
    desk.report(A(), ExecType::Filled, Status::Filled);
    desk.say(0, EventKind::Forgotten { order: A(), source: Source::default(), id: id("old") });
    assert_eq!(desk.view.order(A()), None);
    let next = handle(0, 2, 5);
    desk.enter(next, "new");
    desk.report(A(), ExecType::Canceled, Status::Canceled);
    let old = desk.view.orders_with_id(&id("old"));
    assert_eq!((old.len(), old[0].status), (1, Status::Filled));
    assert_eq!(desk.view.order(next).unwrap().id, id("new"));
    assert_eq!((desk.open(), desk.finished()), (vec![next], vec![A()]));
    // One that is forgotten while open is gone.
    desk.say(0, EventKind::Forgotten { order: next, source: Source::default(), id: id("new") });
    assert_eq!(desk.view.orders_with_id(&id("new")), []);
    desk.say(0, EventKind::Forgotten { order: next, source: Source::default(), id: id("new") });
}

#[test]
fn a_slot_taken_over_without_a_word_belongs_to_the_newcomer() {
    let mut desk = Desk::new(1);
    desk.enter(A(), "old");
    desk.enter(handle(0, 2, 5), "new");
    assert_eq!(desk.view.order(A()), None);
    assert_eq!(desk.open(), [handle(0, 2, 5)]);
}

#[test]
fn the_first_ended_go_first_when_too_many_have_ended() {
    let mut desk = Desk::with(1, ViewSettings { finished_max: 2, ..ViewSettings::default() });
    for slot in 0..4 {
        desk.enter(handle(0, 0, slot), &format!("n{slot}"));
    }
    for slot in [2, 0, 3] {
        desk.report(handle(0, 0, slot), ExecType::Filled, Status::Filled);
    }
    assert_eq!(desk.finished(), [handle(0, 0, 3), handle(0, 0, 0)]);
    assert_eq!(desk.view.orders_with_id(&id("n2")), []);
    // Its shard still knows it; what it says of it is too late.
    desk.report(handle(0, 0, 2), ExecType::Filled, Status::Filled);
    assert_eq!(desk.open(), [handle(0, 0, 1)]);
}

#[test]
fn a_view_may_keep_no_finished_orders_at_all() {
    let mut desk = Desk::with(1, ViewSettings { finished_max: 0, ..ViewSettings::default() });
    desk.enter(A(), "a");
    desk.report(A(), ExecType::Filled, Status::Filled);
    let refused = OrderTerms { status: Status::Rejected, ..entered(A(), "b") };
    desk.say(0, EventKind::Order(refused));
    assert_eq!((desk.open(), desk.finished()), (vec![], vec![]));
    assert_eq!(desk.view.order(A()), None);
}

#[test]
fn a_corrected_fill_brings_an_order_back() {
    let mut desk = Desk::new(1);
    desk.enter(A(), "a");
    desk.report(A(), ExecType::Filled, Status::Filled);
    desk.report(A(), ExecType::Corrected, Status::New);
    assert_eq!((desk.open(), desk.finished()), (vec![A()], vec![]));
}

#[test]
fn finished_orders_end_with_the_trading_day_of_their_shard() {
    let mut desk = Desk::new(2);
    for shard in [0, 1] {
        desk.say(shard, EventKind::TradingDay { day: Day(5) });
        desk.enter(handle(shard, 0, 0), "done");
        desk.report(handle(shard, 0, 0), ExecType::Filled, Status::Filled);
        desk.enter(handle(shard, 0, 1), "open");
    }
    desk.say(0, EventKind::TradingDay { day: Day(5) });
    assert_eq!(desk.finished().len(), 2);
    desk.say(0, EventKind::TradingDay { day: Day(6) });
    assert_eq!(desk.finished(), [handle(1, 0, 0)]);
    assert_eq!(desk.open().len(), 2);
    assert_eq!(desk.view.trading_day(), Some(Day(6)));
}

#[test]
fn an_order_that_never_had_a_place_is_not_kept() {
    let mut desk = Desk::new(1);
    let refused = OrderTerms { status: Status::Rejected, ..entered(OrderHandle::NONE, "full") };
    desk.say(0, EventKind::Order(refused));
    assert_eq!(desk.view.orders_with_id(&id("full")), []);
}

#[test]
#[should_panic(expected = "a shard tells of its own orders")]
fn a_shard_does_not_tell_of_the_orders_of_another() {
    let mut desk = Desk::new(2);
    desk.say(1, EventKind::Order(entered(A(), "a")));
}

/// A naive copy beside the real one, fed with random lives of orders.
#[test]
fn the_view_agrees_with_a_naive_twin() {
    let settings = ViewSettings { finished_max: 40, ..ViewSettings::default() };
    let mut desk = Desk::with(3, settings);
    let mut chance = Rng::new(11);
    let mut generations: BTreeMap<(u8, u32), u32> = BTreeMap::new();
    let mut open: Vec<(u64, OrderHandle)> = Vec::new();
    let mut finished: Vec<OrderHandle> = Vec::new();
    for step in 0..20_000u64 {
        let (shard, slot) = (chance.below(3) as u8, chance.below(60) as u32);
        let generation = generations.entry((shard, slot)).or_insert(0);
        let order = handle(shard, *generation, slot);
        let known = open.iter().any(|(_, other)| *other == order);
        let ended = known || finished.contains(&order);
        match chance.below(4) {
            0 if !ended => {
                desk.say_at(step, shard, EventKind::Order(entered(order, &format!("o{}", step % 97))));
                open.push((step, order));
            }
            1 if known => {
                desk.report(order, ExecType::Filled, Status::Filled);
                open.retain(|(_, other)| *other != order);
                finished.push(order);
                if finished.len() > 40 {
                    finished.remove(0);
                }
            }
            2 if known => desk.report(order, ExecType::Accepted, Status::New),
            3 if !known => {
                let body = EventKind::Forgotten { order, source: Source::default(), id: id("x") };
                desk.say(shard, body);
                *generation += 1;
            }
            _ => {}
        }
    }
    open.sort_unstable();
    finished.reverse();
    assert!(!open.is_empty());
    assert_eq!(desk.open(), open.iter().map(|(_, order)| *order).collect::<Vec<_>>());
    assert_eq!(desk.finished(), finished);
    let texts: usize = (0..97).map(|n| desk.view.orders_with_id(&id(&format!("o{n}"))).len()).sum();
    assert_eq!(texts, open.len() + finished.len());
}

#[test]
fn a_walk_sees_each_order_that_stays_once_whatever_else_comes_and_goes() {
    let mut desk = Desk::new(2);
    let all: Vec<_> = (0..40).map(|n| handle(n % 2, 1, n as u32)).collect();
    for (at, order) in all.iter().enumerate() {
        desk.say_at(1_000 + at as u64, order.shard().0, EventKind::Order(entered(*order, &format!("o{at}"))));
    }
    let walk = desk.view.walk_open(Timestamp(1_039)).unwrap();
    let mut seen = Vec::new();
    for step in 0..40usize {
        let Some(order) = desk.view.walk_next(walk) else { break };
        seen.push(order.handle);
        // The next one ends, and the one that was just seen; another comes.
        if step % 4 == 0 {
            for gone in [order.handle, all[(step + 1).min(39)]] {
                desk.report(gone, ExecType::Canceled, Status::Canceled);
            }
            desk.say_at(
                2_000,
                0,
                EventKind::Order(entered(handle(0, 1, 100 + step as u32), &format!("n{step}"))),
            );
        }
    }
    desk.view.walk_end(walk);
    let mut once = seen.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), seen.len(), "each is seen once");
    assert!(seen.iter().all(|order| all.contains(order)), "those that came later are not");
    let stayed: Vec<_> = desk.open().into_iter().filter(|order| all.contains(order)).collect();
    assert!(stayed.len() > 10 && stayed.iter().all(|order| seen.contains(order)));
    let times: Vec<_> = seen.iter().map(|order| all.iter().position(|other| other == order)).collect();
    assert!(times.is_sorted(), "by the time they were submitted");
}

#[test]
fn finished_orders_are_walked_from_the_last_and_walks_have_their_bound() {
    let mut desk = Desk::with(1, ViewSettings { finished_max: 3, ..ViewSettings::default() });
    for n in 0..5 {
        desk.enter(handle(0, 1, n), &format!("o{n}"));
    }
    for n in 0..3 {
        desk.report(handle(0, 1, n), ExecType::Canceled, Status::Canceled);
    }
    let walk = desk.view.walk_finished().unwrap();
    assert_eq!(desk.view.walk_next(walk).unwrap().handle, handle(0, 1, 2));
    // Two more end, so that the oldest two are dropped: the one it stands at is among them.
    for n in 3..5 {
        desk.report(handle(0, 1, n), ExecType::Canceled, Status::Canceled);
    }
    assert_eq!(desk.view.walk_next(walk), None);
    let more: Vec<_> = (1..WALKS_MAX).map(|_| desk.view.walk_finished().unwrap()).collect();
    assert_eq!(desk.view.walk_finished(), None);
    more.into_iter().chain([walk]).for_each(|walk| desk.view.walk_end(walk));
    assert!(desk.view.walk_open(Timestamp::MAX).is_some());
}
