use std::collections::BTreeSet;

use super::*;

#[test]
fn equal_numbers_of_two_shards_or_servers_give_different_exec_ids() {
    let body = EventKind::TradingDay { day: Day(1) };
    let event = Event { seq: 7, at: Timestamp(1), body };
    let ids: BTreeSet<Uuid> = [1, 2, u64::MAX]
        .into_iter()
        .flat_map(|instance| [0, 1, 2].map(|shard| event.exec_id(instance, ShardId(shard))))
        .collect();
    assert_eq!(ids.len(), 9);
}

fn rejection(id: &str, at: u64, reason: Reason) -> Event {
    let id = IntId::parse(id.as_bytes()).unwrap();
    let order = OrderTerms {
        order: OrderHandle::NONE,
        id,
        orig_id: IntId::default(),
        source: Source::default(),
        what: ExecType::Rejected,
        status: Status::Rejected,
        reason,
        sender: SenderId::NONE,
        terms: Terms::default(),
    };
    Event { seq: 7, at: Timestamp(at), body: EventKind::Order(order) }
}

#[test]
fn a_rejection_on_behalf_of_a_shard_has_its_exec_id_from_its_order_and_time() {
    let exec_id = |event: &Event| event.exec_id(1, ShardId(0));
    let substitutes: Vec<Event> = [0, 5, u64::MAX]
        .into_iter()
        .flat_map(|at| {
            ["a", "b", "a-long-order-1", "a-long-order-2"].map(|id| rejection(id, at, Reason::OwnerAway))
        })
        .collect();
    assert!(substitutes.iter().all(Event::is_substitute));
    let ids: BTreeSet<Uuid> = substitutes.iter().map(exec_id).collect();
    assert_eq!(ids.len(), substitutes.len());
    assert!(substitutes.iter().all(|event| exec_id(&Event { seq: 8, ..*event }) == exec_id(event)));
    let own = rejection("a", 5, Reason::MaxOrderQty);
    assert!(!own.is_substitute());
    assert_ne!(exec_id(&Event { seq: 8, ..own }), exec_id(&own), "the number of an event is its own");
    assert_eq!(exec_id(&own), exec_id(&rejection("b", 5, Reason::MaxOrderQty)));
}

#[test]
fn an_order_has_a_number_of_its_own_in_the_book() {
    let of_client =
        |generation, slot| OrderNumber::of_client(OrderHandle::new(ShardId(3), generation, slot)).0;
    assert_eq!(of_client(5, 7), 5 << 32 | 7, "the shard is not in it");
    let of_feed = |side, ticks| OrderNumber::of_feed(side, ticks).0;
    assert_eq!(of_feed(Side::Buy, 9), 1 << 62 | 9);
    assert_eq!(of_feed(Side::Sell, 9), 1 << 62 | 1 << 61 | 9);
    assert_eq!(of_feed(Side::Buy, -1), (1 << 62) + (1 << 61) - 1, "prices may be negative");
}

#[test]
fn changes_of_levels_are_empty_until_there_is_one() {
    let mut changes = LevelChanges::new(SecurityId(1), LevelsKind::Update, 1, 2);
    assert!(changes.is_empty());
    changes.push(LevelChange { side: Side::Sell, price: Price::ZERO, qty: Qty::ZERO });
    assert!(!changes.is_empty());
}

fn status(what: ExecType) -> EventKind {
    let EventKind::Order(order) = rejection("a", 1, Reason::None).body else { panic!("it is an order") };
    EventKind::Status(OrderReport { what, ..OrderReport::of_order(&order) })
}

#[test]
fn an_event_names_what_it_is_about() {
    let source = Source { session: 9, ..Source::default() };
    let (security, id) = (SecurityId(4), IntId::numbered(b'r', 1));
    let order = OrderHandle::new(ShardId(0), 1, 2);
    let EventKind::Order(rejected) = rejection("a", 1, Reason::None).body else { panic!("it is an order") };
    let entered = |what| {
        let terms = Terms { security, ..Terms::default() };
        EventKind::Order(OrderTerms { order, source, what, terms, ..rejected })
    };
    let report = |what| match status(what) {
        EventKind::Status(report) => EventKind::Status(OrderReport { order, source, security, ..report }),
        other => other,
    };
    let refusal = EventKind::Refused(RequestRefusal {
        order,
        id: rejected.id,
        request_id: id,
        source,
        request: RequestKind::Cancel,
        status: Status::New,
        reason: Reason::VenueRejected,
    });
    let full = EventSubject { order: Some(order), security: Some(security), source: Some(source) };
    let tick = EventKind::Tick(Tick { security, ..Tick::default() });
    let done = EventKind::Done { source, token: 1, reason: Reason::None };
    let halt = EventKind::Halt { security, on: true };
    let booked = EventKind::Booked(Booking {
        id: TransactionId::of_cash(StrategyId(1), 1),
        order,
        order_id: id,
        exec: ExecRef(0),
        kind: MovementKind::Buy,
        strategy: StrategyId(1),
        account: AccountId(1),
        security: Some(security),
        qty: Qty::ZERO,
        price: Price::ZERO,
        commission: Money::ZERO,
        currency: Currency::default(),
        position: PositionState::default(),
        cash: Money::ZERO,
    });
    for (event, subject) in [
        (entered(ExecType::Entered), full),
        (report(ExecType::Filled), full),
        (refusal, EventSubject { security: None, ..full }),
        (tick, EventSubject { security: Some(security), ..EventSubject::default() }),
        (halt, EventSubject { security: Some(security), ..EventSubject::default() }),
        (booked, EventSubject { security: Some(security), ..EventSubject::default() }),
        (done, EventSubject { source: Some(source), ..EventSubject::default() }),
        (EventKind::TradingDay { day: Day(1) }, EventSubject::default()),
    ] {
        assert_eq!(event.subject(), subject, "{event:?}");
        let reports = matches!(event, EventKind::Order(_) | EventKind::Status(_) | EventKind::Refused(_));
        assert_eq!(event.report_source(), reports.then_some(source), "{event:?}");
    }
    assert_eq!(refusal.answered_request(), Some((order, id)));
    assert_eq!(report(ExecType::Canceled).answered_request(), Some((order, rejected.id)));
    assert_eq!(report(ExecType::Filled).answered_request(), None);
    assert_eq!(entered(ExecType::Entered).answered_request(), None);
    for (event, is_answer) in [
        (entered(ExecType::Entered), true),
        (entered(ExecType::Rejected), true),
        (entered(ExecType::Replaced), false),
        (refusal, false),
    ] {
        let answered = event.answered_order().map(|order| order.id);
        assert_eq!(answered, is_answer.then_some(rejected.id), "{event:?}");
    }
}

#[test]
fn a_report_answers_a_request_or_says_that_it_is_pending() {
    use ExecType::{Accepted, CancelPending, Canceled, Entered, Filled, ReplacePending, Replaced, Snapshot};
    for (what, answers, pending) in [
        (CancelPending, true, Some(RequestKind::Cancel)),
        (ReplacePending, true, Some(RequestKind::Replace)),
        (Canceled, true, None),
        (Replaced, true, None),
        (Accepted, false, None),
        (Entered, false, None),
        (Filled, false, None),
        (Snapshot, false, None),
    ] {
        assert_eq!((what.answers_request(), what.pending_request()), (answers, pending), "{what:?}");
    }
}
