use super::*;
use crate::sender::SentBy;
use crate::terms::{OrderSpecialTerms, SpecialTerms};

const A: fn() -> OrderHandle = || handle(0, 1, 5);

#[test]
fn an_order_has_the_state_of_its_last_report() {
    let mut bench = ViewBench::new(1);
    bench.emit_at(1_000, 0, EventKind::Order(entered(A(), "a")));
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
    bench.emit_at(2_000, 0, EventKind::Status(fill));
    let order = bench.view.order(A()).unwrap();
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
    bench.emit_at(3_000, 0, EventKind::Status(cancelled));
    let order = bench.view.order(A()).unwrap();
    assert_eq!((order.last_qty, order.leaves_qty()), (qty("40"), Qty::ZERO));
    assert_eq!((order.id, order.reason), (id("a"), Reason::Requested));
    assert_eq!(bench.view.orders_with_id(&id("request")), []);
}

#[test]
fn special_terms_are_those_announced_for_the_order() {
    let mut bench = ViewBench::new(1);
    let special = |least: &str| SpecialTerms { min_qty: Some(qty(least)), ..SpecialTerms::default() };
    let announce = |bench: &mut ViewBench, order: OrderHandle, least: &str| {
        let (source, is_snapshot) = (Source::default(), false);
        let terms = OrderSpecialTerms { order, source, is_snapshot, special: special(least) };
        bench.emit(0, EventKind::SpecialTerms(terms));
    };
    let with = |order: OrderHandle, text: &str, is_special: bool| {
        let entered = entered(order, text);
        EventKind::Order(OrderTerms { terms: Terms { special: is_special, ..entered.terms }, ..entered })
    };
    let shown = |bench: &ViewBench, order| bench.view.order(order).unwrap().special;
    let other = handle(0, 1, 6);
    announce(&mut bench, A(), "2");
    bench.emit(0, with(A(), "a", true));
    // Those of another order, and an order without any.
    announce(&mut bench, A(), "3");
    bench.emit(0, with(other, "b", true));
    assert_eq!((shown(&bench, A()), shown(&bench, other)), (Some(special("2")), None));
    // A modification gives others, or none.
    announce(&mut bench, A(), "4");
    bench.emit(0, with(A(), "a2", true));
    assert_eq!(shown(&bench, A()), Some(special("4")));
    bench.emit(0, with(A(), "a3", false));
    assert_eq!(shown(&bench, A()), None);
    bench.emit(0, with(A(), "a4", true));
    assert_eq!(shown(&bench, A()), None, "they were removed");
    // The next order in the slot does not inherit them.
    announce(&mut bench, A(), "5");
    bench.emit(0, with(A(), "a5", true));
    let next = handle(0, 2, 5);
    bench.emit(0, with(next, "c", true));
    assert_eq!(shown(&bench, next), None);
}

#[test]
fn a_status_of_an_unknown_order_or_an_old_generation_is_ignored() {
    let mut bench = ViewBench::new(1);
    bench.report(A(), ExecType::Accepted, Status::New);
    assert_eq!(bench.view.order(A()), None);
    bench.enter(A(), "a");
    bench.report(handle(0, 2, 5), ExecType::Accepted, Status::New);
    bench.report(handle(0, 1, 6), ExecType::Accepted, Status::New);
    assert_eq!(bench.view.order(A()).unwrap().status, Status::PendingNew);
}

#[test]
fn every_id_of_a_modified_order_finds_its_newest_version() {
    let mut bench = ViewBench::new(1);
    bench.enter(A(), "a");
    for (new, old) in [("b", "a"), ("c", "b")] {
        let terms = OrderTerms {
            id: id(new),
            orig_id: id(old),
            what: ExecType::Replaced,
            status: Status::PartiallyFilled,
            ..entered(A(), new)
        };
        bench.emit(0, EventKind::Order(terms));
        let replaced = OrderReport { cum_qty: qty("1"), ..report_of(&terms) };
        bench.emit(0, EventKind::Status(replaced));
    }
    for text in ["a", "b", "c"] {
        let found = bench.view.orders_with_id(&id(text));
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((found[0].id, found[0].orig_id, found[0].first_id), (id("c"), id("b"), id("a")));
        assert_eq!(found[0].cum_qty, qty("1"));
    }
    // A status alone carries the new id too.
    let replaced = OrderReport { what: ExecType::Replaced, id: id("d"), ..report_of(&entered(A(), "d")) };
    bench.emit(0, EventKind::Status(replaced));
    assert_eq!(bench.view.order(A()).unwrap().id, id("d"));
}

#[test]
fn a_much_modified_order_keeps_its_first_and_its_newest_ids() {
    let mut bench = ViewBench::with(1, ViewSettings { versions_max: 3, ..ViewSettings::default() });
    bench.enter(A(), "v0");
    for version in 1..10 {
        bench.emit(0, EventKind::Order(entered(A(), &format!("v{version}"))));
    }
    let known: Vec<u32> =
        (0..10).filter(|n| !bench.view.orders_with_id(&id(&format!("v{n}"))).is_empty()).collect();
    assert_eq!(known, [0, 8, 9]);
}

#[test]
fn one_text_may_name_orders_of_several_sources() {
    let mut bench = ViewBench::new(2);
    bench.enter(handle(1, 0, 0), "same");
    bench.enter(A(), "same");
    let found: Vec<_> = bench.view.orders_with_id(&id("same")).iter().map(|o| o.handle).collect();
    assert_eq!(found, [handle(1, 0, 0), A()]);
}

#[test]
fn a_refused_request_is_no_longer_shown_as_pending() {
    let mut bench = ViewBench::new(1);
    bench.enter(A(), "a");
    bench.report(A(), ExecType::CancelPending, Status::PendingCancel);
    let refusal = RequestRefusal {
        order: A(),
        id: id("a"),
        request_id: id("x"),
        source: Source::default(),
        request: RequestKind::Cancel,
        status: Status::New,
        reason: Reason::VenueRejected,
    };
    bench.emit(0, EventKind::Refused(refusal));
    assert_eq!(bench.view.order(A()).unwrap().status, Status::New);
    // For another source the order is unknown, and its status is not exposed.
    let unknown =
        RequestRefusal { id: IntId::NONE, status: Status::Rejected, reason: Reason::UnknownOrder, ..refusal };
    bench.emit(0, EventKind::Refused(unknown));
    bench.emit(0, EventKind::Refused(RequestRefusal { order: handle(0, 9, 9), ..refusal }));
    assert_eq!(bench.view.order(A()).unwrap().status, Status::New);
    // A venue may not know it either, and then the order's own status is reported.
    bench.report(A(), ExecType::CancelPending, Status::PendingCancel);
    bench.emit(0, EventKind::Refused(RequestRefusal { reason: Reason::UnknownOrder, ..refusal }));
    assert_eq!(bench.view.order(A()).unwrap().status, Status::New);
}

#[test]
fn a_refusal_is_a_change_of_its_order_unless_the_request_did_not_reach_it() {
    for (reason, updated) in [(Reason::VenueRejected, 2_000), (Reason::StorageFailed, 1_000)] {
        let mut bench = ViewBench::new(1);
        bench.emit_at(1_000, 0, EventKind::Order(entered(A(), "a")));
        let refusal = RequestRefusal {
            order: A(),
            id: id("a"),
            request_id: id("x"),
            source: Source::default(),
            request: RequestKind::Cancel,
            status: Status::New,
            reason,
        };
        bench.emit_at(2_000, 0, EventKind::Refused(refusal));
        assert_eq!(bench.view.order(A()).unwrap().updated, Timestamp(updated), "{reason:?}");
    }
}

#[test]
fn a_snapshot_names_the_senders_of_the_requests_of_an_order() {
    let mut bench = ViewBench::new(1);
    let [submitted, modified, canceled] = [7, 8, 9].map(SenderId);
    let sent = SentBy { submitted, modified, canceled };
    bench.emit(0, EventKind::Sent { order: A(), sent });
    bench.enter(A(), "a");
    assert_eq!(bench.view.order(A()).unwrap().sent, SentBy::default(), "it was not known before");
    bench.emit(0, EventKind::Sent { order: A(), sent });
    assert_eq!(bench.view.order(A()).unwrap().sent, sent);
}

#[test]
fn open_orders_come_by_time_then_handle_whatever_their_shard() {
    let mut bench = ViewBench::new(3);
    let plan = [(10, 2, 0), (10, 0, 7), (11, 0, 3), (11, 2, 1), (12, 1, 0), (9, 1, 1)];
    for (at, shard, slot) in plan.iter().filter(|(at, ..)| *at != 9) {
        bench.emit_at(*at, *shard, EventKind::Order(entered(handle(*shard, 0, *slot), "x")));
    }
    let order = |shard, slot| handle(shard, 0, slot);
    assert_eq!(bench.open(), [order(0, 7), order(2, 0), order(0, 3), order(2, 1), order(1, 0)]);
    assert_eq!(bench.view.open_orders_len(), 5);
    bench.report(order(0, 3), ExecType::Filled, Status::Filled);
    bench.report(order(1, 0), ExecType::Rejected, Status::Rejected);
    bench.report(order(0, 7), ExecType::Canceled, Status::Canceled);
    assert_eq!(bench.open(), [order(2, 0), order(2, 1)]);
    assert_eq!(bench.finished(), [order(0, 7), order(1, 0), order(0, 3)]);
    assert_eq!(bench.view.finished_orders_len(), 3);
}

#[test]
fn a_forgotten_order_stays_readable_when_its_slot_is_used_again() {
    let mut bench = ViewBench::new(1);
    bench.enter(A(), "old");
    bench.report(A(), ExecType::Filled, Status::Filled);
    bench.emit(0, EventKind::Forgotten { order: A(), source: Source::default(), id: id("old") });
    assert_eq!(bench.view.order(A()), None);
    let next = handle(0, 2, 5);
    bench.enter(next, "new");
    bench.report(A(), ExecType::Canceled, Status::Canceled);
    let old = bench.view.orders_with_id(&id("old"));
    assert_eq!((old.len(), old[0].status), (1, Status::Filled));
    assert_eq!(bench.view.order(next).unwrap().id, id("new"));
    assert_eq!((bench.open(), bench.finished()), (vec![next], vec![A()]));
    // An order that is forgotten while open is gone.
    bench.emit(0, EventKind::Forgotten { order: next, source: Source::default(), id: id("new") });
    assert_eq!(bench.view.orders_with_id(&id("new")), []);
    bench.emit(0, EventKind::Forgotten { order: next, source: Source::default(), id: id("new") });
}

#[test]
fn a_silently_reused_slot_belongs_to_the_new_order() {
    let mut bench = ViewBench::new(1);
    bench.enter(A(), "old");
    bench.enter(handle(0, 2, 5), "new");
    assert_eq!(bench.view.order(A()), None);
    assert_eq!(bench.open(), [handle(0, 2, 5)]);
}

#[test]
fn the_first_ended_go_first_when_too_many_have_ended() {
    let mut bench = ViewBench::with(1, ViewSettings { finished_max: 2, ..ViewSettings::default() });
    for slot in 0..4 {
        bench.enter(handle(0, 0, slot), &format!("n{slot}"));
    }
    for slot in [2, 0, 3] {
        bench.report(handle(0, 0, slot), ExecType::Filled, Status::Filled);
    }
    assert_eq!(bench.finished(), [handle(0, 0, 3), handle(0, 0, 0)]);
    assert_eq!(bench.view.orders_with_id(&id("n2")), []);
    // Its shard still knows it, but its report is too late.
    bench.report(handle(0, 0, 2), ExecType::Filled, Status::Filled);
    assert_eq!(bench.open(), [handle(0, 0, 1)]);
}

#[test]
fn a_view_may_keep_no_finished_orders_at_all() {
    let mut bench = ViewBench::with(1, ViewSettings { finished_max: 0, ..ViewSettings::default() });
    bench.enter(A(), "a");
    bench.report(A(), ExecType::Filled, Status::Filled);
    let refused = OrderTerms { status: Status::Rejected, ..entered(A(), "b") };
    bench.emit(0, EventKind::Order(refused));
    assert_eq!((bench.open(), bench.finished()), (vec![], vec![]));
    assert_eq!(bench.view.order(A()), None);
}

#[test]
fn a_corrected_fill_reopens_an_order() {
    let mut bench = ViewBench::new(1);
    bench.enter(A(), "a");
    bench.report(A(), ExecType::Filled, Status::Filled);
    bench.report(A(), ExecType::Corrected, Status::New);
    assert_eq!((bench.open(), bench.finished()), (vec![A()], vec![]));
}

#[test]
fn finished_orders_end_with_the_trading_day_of_their_shard() {
    let mut bench = ViewBench::new(2);
    for shard in [0, 1] {
        bench.emit(shard, EventKind::TradingDay { day: Day(5) });
        bench.enter(handle(shard, 0, 0), "done");
        bench.report(handle(shard, 0, 0), ExecType::Filled, Status::Filled);
        bench.enter(handle(shard, 0, 1), "open");
    }
    bench.emit(0, EventKind::TradingDay { day: Day(5) });
    assert_eq!(bench.finished().len(), 2);
    bench.emit(0, EventKind::TradingDay { day: Day(6) });
    assert_eq!(bench.finished(), [handle(1, 0, 0)]);
    assert_eq!(bench.open().len(), 2);
    assert_eq!(bench.view.trading_day(), Some(Day(6)));
}

#[test]
fn an_order_without_a_slot_is_not_kept() {
    let mut bench = ViewBench::new(1);
    let refused = OrderTerms { status: Status::Rejected, ..entered(OrderHandle::NONE, "full") };
    bench.emit(0, EventKind::Order(refused));
    assert_eq!(bench.view.orders_with_id(&id("full")), []);
}

#[test]
#[should_panic(expected = "a shard reports only its own orders")]
fn a_shard_cannot_report_orders_of_another() {
    let mut bench = ViewBench::new(2);
    bench.emit(1, EventKind::Order(entered(A(), "a")));
}

/// A naive copy beside the real one, with random order histories.
#[test]
fn the_view_agrees_with_a_naive_twin() {
    let settings = ViewSettings { finished_max: 40, ..ViewSettings::default() };
    let mut bench = ViewBench::with(3, settings);
    let mut rng = Rng::new(11);
    let mut generations: BTreeMap<(u8, u32), u32> = BTreeMap::new();
    let mut open: Vec<(u64, OrderHandle)> = Vec::new();
    let mut finished: Vec<OrderHandle> = Vec::new();
    for step in 0..20_000u64 {
        let (shard, slot) = (rng.below(3) as u8, rng.below(60) as u32);
        let generation = generations.entry((shard, slot)).or_insert(0);
        let order = handle(shard, *generation, slot);
        let known = open.iter().any(|(_, other)| *other == order);
        let ended = known || finished.contains(&order);
        match rng.below(4) {
            0 if !ended => {
                bench.emit_at(step, shard, EventKind::Order(entered(order, &format!("o{}", step % 97))));
                open.push((step, order));
            }
            1 if known => {
                bench.report(order, ExecType::Filled, Status::Filled);
                open.retain(|(_, other)| *other != order);
                finished.push(order);
                if finished.len() > 40 {
                    finished.remove(0);
                }
            }
            2 if known => bench.report(order, ExecType::Accepted, Status::New),
            3 if !known => {
                let body = EventKind::Forgotten { order, source: Source::default(), id: id("x") };
                bench.emit(shard, body);
                *generation += 1;
            }
            _ => {}
        }
    }
    open.sort_unstable();
    finished.reverse();
    assert!(!open.is_empty());
    assert_eq!(bench.open(), open.iter().map(|(_, order)| *order).collect::<Vec<_>>());
    assert_eq!(bench.finished(), finished);
    let texts: usize = (0..97).map(|n| bench.view.orders_with_id(&id(&format!("o{n}"))).len()).sum();
    assert_eq!(texts, open.len() + finished.len());
}

#[test]
fn a_walk_reads_each_remaining_order_once_while_others_come_and_go() {
    let mut bench = ViewBench::new(2);
    let all: Vec<_> = (0..40).map(|n| handle(n % 2, 1, n as u32)).collect();
    for (at, order) in all.iter().enumerate() {
        bench.emit_at(
            1_000 + at as u64,
            order.shard().0,
            EventKind::Order(entered(*order, &format!("o{at}"))),
        );
    }
    let walk = bench.view.walk_open(Timestamp(1_039)).unwrap();
    let mut seen = Vec::new();
    for step in 0..40usize {
        let Some(order) = bench.view.walk_next(walk) else { break };
        seen.push(order.handle);
        // The next one ends, and the one that was just read; another arrives.
        if step % 4 == 0 {
            for gone in [order.handle, all[(step + 1).min(39)]] {
                bench.report(gone, ExecType::Canceled, Status::Canceled);
            }
            bench.emit_at(
                2_000,
                0,
                EventKind::Order(entered(handle(0, 1, 100 + step as u32), &format!("n{step}"))),
            );
        }
    }
    bench.view.walk_end(walk);
    let mut once = seen.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), seen.len(), "each is seen once");
    assert!(seen.iter().all(|order| all.contains(order)), "those that came later are not");
    let stayed: Vec<_> = bench.open().into_iter().filter(|order| all.contains(order)).collect();
    assert!(stayed.len() > 10 && stayed.iter().all(|order| seen.contains(order)));
    let times: Vec<_> = seen.iter().map(|order| all.iter().position(|other| other == order)).collect();
    assert!(times.is_sorted(), "by the time they were submitted");
}

#[test]
fn finished_orders_are_walked_from_the_last_and_walks_have_their_bound() {
    let mut bench = ViewBench::with(1, ViewSettings { finished_max: 3, ..ViewSettings::default() });
    for n in 0..5 {
        bench.enter(handle(0, 1, n), &format!("o{n}"));
    }
    for n in 0..3 {
        bench.report(handle(0, 1, n), ExecType::Canceled, Status::Canceled);
    }
    let walk = bench.view.walk_finished().unwrap();
    assert_eq!(bench.view.walk_next(walk).unwrap().handle, handle(0, 1, 2));
    // Two more end, so that the oldest two are dropped: the current record of the walk is among
    // them.
    for n in 3..5 {
        bench.report(handle(0, 1, n), ExecType::Canceled, Status::Canceled);
    }
    assert_eq!(bench.view.walk_next(walk), None);
    let more: Vec<_> = (1..WALKS_MAX).map(|_| bench.view.walk_finished().unwrap()).collect();
    assert_eq!(bench.view.walk_finished(), None);
    more.into_iter().chain([walk]).for_each(|walk| bench.view.walk_end(walk));
    assert!(bench.view.walk_open(Timestamp::MAX).is_some());
}
