//! Bounds, days and restarts: what a desk forgets, and what a snapshot restores.

use super::*;

#[test]
fn the_oldest_finished_orders_are_forgotten_first() {
    let mut table = table_with(DeskSettings { finished_max: 2, ..settings() }, 16);
    for text in ["A", "B", "C"] {
        let order = table.working(text);
        table.handle_report(order, (text, ""), ExecType::Filled, Status::Filled);
    }
    assert_eq!(table.known("A"), None);
    assert!(table.known("B").is_some() && table.known("C").is_some());
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId), "its id stays used today");
    table.handle(&event(EventKind::TradingDay { day: Day(1) }));
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId), "the day of a start ends nothing");
    table.handle(&event(EventKind::TradingDay { day: Day(2) }));
    assert!(table.submit("A").is_ok(), "tomorrow it may be used again");
}

#[test]
fn a_late_report_about_a_former_owner_of_an_id_does_not_change_the_new_one() {
    let mut table = table_with(DeskSettings { finished_max: 0, ..settings() }, 16);
    let old = table.working("A");
    table.handle_report(old, ("A", ""), ExecType::Filled, Status::Filled);
    (1..3).for_each(|day| _ = table.handle(&event(EventKind::TradingDay { day: Day(day) })));
    table.submit("A").unwrap();
    table.handle_report(old, ("A", ""), ExecType::Corrected, Status::Filled);
    assert_eq!(table.known("A").unwrap().2, Status::PendingNew);
    let forgotten = EventKind::Forgotten { order: old, source: source(0), id: id("A") };
    table.handle(&event(forgotten));
    let new = table.enter("A");
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, new);
    table.handle_report(old, ("A", ""), ExecType::Corrected, Status::Filled);
    assert_eq!(table.known("A").unwrap().2, Status::PendingNew);
}

#[test]
fn a_finished_order_stays_known_if_another_one_is_forgotten() {
    let mut table = table();
    let order = table.working("A");
    table.handle_report(order, ("A", ""), ExecType::Canceled, Status::Canceled);
    let other = OrderHandle::new(ShardId(0), 7, order.slot());
    table.handle(&event(EventKind::Forgotten { order: other, source: source(0), id: id("A") }));
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, order);
}

#[test]
fn a_refusal_about_another_order_changes_none_of_this_desk() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "Y").unwrap();
    let other = OrderHandle::new(ShardId(0), 7, order.slot());
    for about in [other, OrderHandle::NONE] {
        table.refuse(about, ("A", "Y"), RequestKind::Replace, Status::Rejected);
        assert_ne!(table.known("A").unwrap().2, Status::Rejected, "{about:?}");
    }
    table.submit("B").unwrap();
    table.cancel("B", "Z").unwrap();
    table.refuse(OrderHandle::NONE, ("B", "Z"), RequestKind::Cancel, Status::Rejected);
    assert_eq!(table.known("B").unwrap().2, Status::PendingNew, "the shard has not reported it yet");
}

#[test]
fn a_full_desk_refuses_unless_a_finished_order_can_go() {
    let small = DeskSettings { orders_max: 2, ids_max: 3, ..settings() };
    let mut table = table_with(small, 16);
    let order = table.working("A");
    table.submit("B").unwrap();
    assert_eq!(table.submit("C"), Err(Reason::ShardFull));
    table.cancel("B", "X").unwrap();
    assert_eq!(reason(table.modify("A", "Y")), Reason::ShardFull);
    table.handle_report(order, ("A", ""), ExecType::Expired, Status::Expired);
    assert!(table.submit("C").is_ok());
    assert_eq!(table.known("A"), None);
    assert_eq!(reason(table.cancel("C", "Y")), Reason::ShardFull);
    // Further orders of a shard cannot be kept, and are counted.
    table.enter("D");
    assert_eq!((table.known("D"), table.desk.untracked()), (None, 1));
}

#[test]
fn held_cancels_have_a_maximum() {
    let many = DeskSettings { orders_max: 3_000, ids_max: 6_000, ..settings() };
    let mut table = table_with(many, 3_000);
    for n in 0..HELD_MAX {
        table.submit(&format!("o{n}")).unwrap();
        table.cancel(&format!("o{n}"), "").unwrap_or_else(|_| panic!("{n}"));
        if table.desk.numbers_left() < 10 {
            table.desk.numbers = IdBlock { next: 10_000, end: 20_000 };
        }
    }
    table.submit("last").unwrap();
    assert_eq!(reason(table.cancel("last", "")), Reason::LaneFull);
    table.enter("o0");
    assert_eq!(reason(table.cancel("last", "")), Reason::LaneFull, "it still waits for the lane");
    assert_eq!(table.desk.poll(&mut table.port), 1);
    assert!(table.cancel("last", "").is_ok());
}

#[test]
fn a_new_day_forgets_finished_orders_a_few_at_a_time() {
    let many = DeskSettings { orders_max: 300, ids_max: 600, finished_max: 200, ..settings() };
    let mut table = table_with(many, 16);
    let day = |day| event(EventKind::TradingDay { day: Day(day) });
    table.handle(&day(1));
    table.working("open");
    for n in 0..100 {
        let text = format!("o{n}");
        let order = table.working(&text);
        table.handle_report(order, (&text, ""), ExecType::Filled, Status::Filled);
    }
    table.handle(&day(1));
    assert_eq!(table.desk.poll(&mut table.port), 0, "the same day again");
    table.handle(&day(2));
    let late = table.working("late");
    table.handle_report(late, ("late", ""), ExecType::Filled, Status::Filled);
    table.handle(&day(2));
    assert_eq!(table.desk.poll(&mut table.port), FORGET_PER_POLL_MAX as usize);
    assert_eq!(table.desk.poll(&mut table.port), 100 - FORGET_PER_POLL_MAX as usize);
    assert_eq!(table.desk.poll(&mut table.port), 0);
    assert_eq!(table.desk.len(), 2);
    assert!(table.known("open").is_some() && table.known("late").is_some());
}

#[test]
fn orders_that_a_shard_forgot_stay_used_and_finished() {
    let mut table = table();
    let order = table.working("A");
    let forgotten = |port| {
        let source = Source { port, ..source(0) };
        event(EventKind::Forgotten { order, source, id: id("A") })
    };
    table.handle_report(order, ("A", ""), ExecType::Canceled, Status::Canceled);
    table.handle(&forgotten(PortId(0)));
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, order);
    table.handle(&forgotten(PORT));
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, OrderHandle::NONE);
    assert_eq!(reason(table.cancel("A", "C")), Reason::OrderFinished);
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId));
}

#[test]
fn a_corrected_order_can_work_again() {
    let mut table = table();
    let order = table.working("A");
    table.handle_report(order, ("A", ""), ExecType::Filled, Status::Filled);
    table.handle_report(order, ("A", ""), ExecType::Corrected, Status::PartiallyFilled);
    assert!(!table.known("A").unwrap().3);
    assert!(table.cancel("A", "C").is_ok());
}

#[test]
fn a_snapshot_restores_the_orders() {
    let mut table = table();
    let handle = |slot| OrderHandle::new(ShardId(1), 3, slot);
    table.handle_report(handle(1), ("A", ""), ExecType::Snapshot, Status::PartiallyFilled);
    table.handle_report(handle(2), ("B.1", "B"), ExecType::Snapshot, Status::New);
    table.handle_report(handle(3), ("C", ""), ExecType::Snapshot, Status::Filled);
    // Reported twice, kept once.
    table.handle_report(handle(2), ("B.1", "B"), ExecType::Snapshot, Status::New);
    table.handle_report(handle(9), ("D", ""), ExecType::Filled, Status::Filled);
    assert_eq!(table.desk.len(), 3);
    assert_eq!(table.known("B").unwrap(), ("B".into(), "B.1".into(), Status::New, false));
    assert!(table.known("C").unwrap().3);
    assert_eq!(table.submit("B.1"), Err(Reason::DuplicateId));
    assert_eq!(table.modify("B.1", "").as_deref(), Ok("B.2"));
    assert_eq!(
        table.sent_commands(),
        [CommandKind::Modify { order: handle(2), id: id("B.2"), changes: Changes::default() }]
    );
    // An order under an id that another has: it cannot be found, and is counted.
    table.handle_report(handle(4), ("A", ""), ExecType::Snapshot, Status::New);
    table.handle_report(handle(2), ("A", "B.1"), ExecType::Replaced, Status::New);
    assert_eq!(table.desk.untracked(), 2);
}

#[test]
fn ids_from_before_a_restart_stay_used() {
    let mut log = UsedIdLog::new(100, crate::pages::LargePages::NONE);
    log.push(source(0), &id("A"));
    log.push(Source { port: PortId(0), ..source(0) }, &id("B"));
    log.push(source(1), &id("C"));
    let mut table = table();
    for port in [PORT, PortId(0)] {
        table.handle(&event(EventKind::UsedIds(log.batch(0, port).0)));
    }
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId));
    assert_eq!(table.known("A"), None);
    assert!(table.submit("B").is_ok() && table.submit("C").is_ok(), "those are of another port and session");
    let order = table.enter("B");
    assert_eq!(reason(table.modify("B", "A")), Reason::DuplicateId);
    assert_eq!(reason(table.cancel("B", "A")), Reason::DuplicateId);
    // An order whose id is among them is still found by it.
    table.handle_report(order, ("B", ""), ExecType::Accepted, Status::New);
    table.handle_report(OrderHandle::new(ShardId(1), 1, 77), ("A", ""), ExecType::Snapshot, Status::New);
    assert!(table.known("A").is_some() && table.cancel("A", "").is_ok());
}

/// Returns a REST source of another server, of this session.
fn remote_source(session: u16) -> Source {
    Source { origin: Origin::Rest, port: PortId(32 + PORT.0), session }
}

#[test]
fn an_id_that_a_rest_client_of_another_server_used_is_used_here_too() {
    let mut log = UsedIdLog::new(100, crate::pages::LargePages::NONE);
    log.push(remote_source(0), &id("A"));
    // The same as another server sees it: its own ids with ours, under the number of its port here.
    let (mut ours, _) = log.batch(0, PortId::LINK);
    ours.source.port = remote_source(0).port;
    for used in [log.batch(0, PortId::HTTP).0, ours] {
        let mut table = table();
        table.handle(&event(EventKind::UsedIds(used)));
        assert_eq!(table.submit("A"), Err(Reason::DuplicateId));
    }
    let mut fix = table_with(DeskSettings { port: PortId(2), ..settings() }, 16);
    fix.handle(&event(EventKind::UsedIds(ours)));
    assert!(!fix.desk.is_used(0, &id("A")), "sessions of FIX are their own at each server");
}

#[test]
fn ids_of_other_servers_are_learnt_from_their_reports_until_the_day_ends() {
    let mut table = table();
    let order = OrderHandle::new(ShardId(1), 3, 1);
    let remote = |text: &str, what: ExecType, source: Source| {
        let EventKind::Status(status) = report(order, (text, ""), what, Status::New).body else { panic!() };
        event(EventKind::Status(OrderReport { source, ..status }))
    };
    table.handle(&event(EventKind::TradingDay { day: Day(1) }));
    let refused = RequestRefusal {
        order,
        id: id("A"),
        request_id: id("D"),
        source: remote_source(0),
        request: RequestKind::Replace,
        status: Status::New,
        reason: Reason::VenueRejected,
    };
    for (text, what) in [("A", ExecType::Entered), ("B", ExecType::Replaced), ("C", ExecType::Rejected)] {
        table.handle(&remote(text, what, remote_source(0)));
    }
    table.handle(&event(EventKind::Refused(refused)));
    for text in ["A", "B", "C", "D"] {
        assert_eq!(table.submit(text), Err(Reason::DuplicateId), "{text}");
    }
    let fix = Source { origin: Origin::Fix, port: PortId(32 + 5), session: 0 };
    let strategy = Source { origin: Origin::Strategy, ..remote_source(0) };
    for (text, what, source) in [
        ("E", ExecType::Entered, remote_source(1)),
        ("F", ExecType::Entered, fix),
        ("G", ExecType::Entered, strategy),
        // An order of an earlier day that is reported again.
        ("H", ExecType::Snapshot, remote_source(0)),
    ] {
        table.handle(&remote(text, what, source));
        assert!(table.submit(text).is_ok(), "{text}");
    }
    table.handle(&event(EventKind::TradingDay { day: Day(2) }));
    assert!(table.submit("A").is_ok(), "tomorrow it may be used again");
}

#[test]
fn ids_of_a_shard_that_is_still_in_the_day_before_may_be_used_again() {
    let mut log = UsedIdLog::new(100, crate::pages::LargePages::NONE);
    log.push(source(0), &id("A"));
    let used = event(EventKind::UsedIds(log.batch(0, PORT).0));
    let day = |day| event(EventKind::TradingDay { day: Day(day) });
    let mut table = table();
    let [first, slow] = [0, 1].map(ShardId);
    // After a restart one shard begins the day while the other still sends what it had.
    table.desk.handle_event(first, &day(1));
    table.desk.handle_event(slow, &day(1));
    table.desk.handle_event(first, &day(2));
    table.desk.handle_event(slow, &used);
    assert!(table.submit("A").is_ok(), "it is of the day before");
    table.desk.handle_event(slow, &day(2));
    let mut table = super::table();
    table.desk.handle_event(first, &used);
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId), "no day has begun yet");
    let mut table = super::table();
    table.desk.handle_event(slow, &day(1));
    table.desk.handle_event(first, &day(2));
    table.desk.handle_event(first, &used);
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId), "it is of this day");
}

#[test]
fn a_snapshot_contains_the_first_id_of_an_order_that_was_modified_twice() {
    let mut table = table();
    let order = OrderHandle::new(ShardId(1), 3, 1);
    table.handle_report(order, ("B", "A"), ExecType::Snapshot, Status::New);
    table.handle_report(order, ("C", "B"), ExecType::Snapshot, Status::New);
    for text in ["A", "B", "C"] {
        assert_eq!(table.known(text).unwrap(), ("A".into(), "C".into(), Status::New, false));
        assert_eq!(table.submit(text), Err(Reason::DuplicateId));
    }
}

#[test]
fn a_report_identifies_its_order() {
    let mut table = table();
    let order = table.working("A");
    table.cancel("A", "C").unwrap();
    let EventKind::Status(pending) =
        report(order, ("C", "A"), ExecType::CancelPending, Status::PendingCancel).body
    else {
        panic!()
    };
    assert_eq!(table.desk.order_of(&pending).unwrap().root, id("A"));
    let unknown = OrderReport { id: id("Z"), orig_id: IntId::NONE, ..pending };
    assert_eq!(table.desk.order_of(&unknown), None);
}

#[test]
fn events_of_others_are_not_ours() {
    let mut table = table();
    let order = table.working("A");
    let EventKind::Status(ours) = report(order, ("A", ""), ExecType::Filled, Status::Filled).body else {
        panic!()
    };
    let theirs = OrderReport { source: Source { port: PortId(0), ..ours.source }, ..ours };
    table.handle(&event(EventKind::Status(theirs)));
    let refusal = RequestRefusal {
        order,
        id: id("A"),
        request_id: id("A"),
        source: theirs.source,
        request: RequestKind::Cancel,
        status: Status::Filled,
        reason: Reason::None,
    };
    table.handle(&event(EventKind::Refused(refusal)));
    let halt = EventKind::Halt { security: SecurityId(1), on: true };
    table.handle(&event(halt));
    assert_eq!(table.known("A").unwrap().2, Status::New);
    assert!(!table.desk.is_empty());
}

#[test]
fn a_cancel_of_many_orders_goes_to_the_shards_that_have_them_under_a_made_id() {
    let mut bench = table();
    let all = CancelFilter::default();
    let one = CancelFilter { security: Some(SecurityId(1)), ..all };
    assert_eq!([all, one].map(|filter| bench.desk.shards_asked(filter)), [2, 1]);
    for (filter, name) in [(all, "a"), (one, "b"), (all, ""), (all, "")] {
        let ticket = bench.ticket(name);
        let id = bench.desk.cancel_orders(&mut bench.port, ticket, filter).unwrap();
        let command = CommandKind::CancelOrders { id, filter };
        let shards = bench.desk.shards_asked(filter) as usize;
        assert_eq!(bench.sent_commands(), vec![command; shards]);
        assert_eq!(bench.submit(&id.to_string()), Err(Reason::DuplicateId), "the made id is used up");
    }
    assert_eq!(bench.submit("a"), Err(Reason::DuplicateId), "so is that of the ticket");
    let ticket = bench.ticket("a");
    let again = bench.desk.cancel_orders(&mut bench.port, ticket, all);
    assert_eq!(again.unwrap_err().reason, Reason::DuplicateId);
    assert_eq!(bench.sent_commands(), []);
}

#[test]
fn a_cancel_of_many_orders_that_finds_no_room_leaves_no_trace() {
    let mut bench = table_with(settings(), 1);
    bench.port.send(ShardId(1), Command::new(source(0), 0, CommandKind::Timer)).unwrap();
    let ticket = bench.ticket("a");
    let declined = bench.desk.cancel_orders(&mut bench.port, ticket, CancelFilter::default());
    assert_eq!(declined.unwrap_err().reason, Reason::LaneFull);
    assert_eq!(bench.sent_commands(), [CommandKind::Timer]);
    assert_eq!(bench.submit("a").as_deref(), Ok("a"));
}

#[test]
fn a_desk_knows_root_and_token_of_the_order_of_a_report() {
    let mut bench = table();
    assert!(bench.desk.is_empty());
    let first = bench.working("A");
    let second = bench.working("B");
    assert!(!bench.desk.is_empty());
    bench.modify("B", "B2").unwrap();
    bench.handle_report(second, ("B2", "B"), ExecType::Replaced, Status::New);
    let root_of = |order, ids| {
        let EventKind::Status(report) = report(order, ids, ExecType::Filled, Status::New).body else {
            panic!("it is a report")
        };
        bench.desk.root_of(&report).map(|(root, token)| (root.to_string(), token))
    };
    assert_eq!(root_of(first, ("A", "")), Some(("A".into(), 1)));
    assert_eq!(root_of(second, ("B2", "B")), Some(("B".into(), 2)));
    assert_eq!(root_of(OrderHandle::new(ShardId(0), 0, 99), ("C", "")), None);
}

#[test]
fn a_desk_has_requests_while_a_cancel_is_held_or_waits_for_room() {
    let mut bench = table_with(settings(), 1);
    bench.submit("A").unwrap();
    assert!(!bench.desk.has_requests());
    bench.cancel("A", "c").unwrap();
    assert!(bench.desk.has_requests(), "its order has no handle yet");
    bench.enter("A");
    assert!(bench.desk.has_requests(), "it was not sent yet");
    bench.sent_commands();
    assert_eq!((bench.desk.poll(&mut bench.port), bench.desk.has_requests()), (1, false));
}

#[test]
fn an_id_that_bypassed_the_desk_is_used_up() {
    let mut bench = table();
    assert_eq!(bench.desk.ids_dropped(), 0);
    bench.desk.note_used(0, &id("X"));
    assert_eq!(bench.submit("X"), Err(Reason::DuplicateId));
    for number in 0..3 * used_ids_max(&settings()) as u64 {
        bench.desk.note_used(0, &IntId::numbered(b'y', number));
    }
    assert!(bench.desk.ids_dropped() > 1, "there is no room for all of them");
}
