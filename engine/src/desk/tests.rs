//! A desk, a port, and shards played by the test.

use super::*;
use crate::event::{Event, EventKind, ExecType, OrderTerms, Refusal, RequestKind};
use crate::id::Origin;
use crate::mesh::{Depths, PortClass, ShardEnd, mesh};
use crate::time::Timestamp;
use crate::used_ids::UsedIdLog;

const PORT: PortId = PortId(1);

struct Table {
    desk: Desk,
    port: PortEnd,
    shards: Vec<ShardEnd>,
    token: u32,
    slot: u32,
}

fn settings() -> DeskSettings {
    DeskSettings {
        port: PORT,
        shards: 2,
        orders_max: 100,
        ids_max: 400,
        finished_max: 50,
        prefix: b'n',
        seed: 7,
        pages: LargePages::NONE,
    }
}

fn table() -> Table {
    table_with(settings(), 16)
}

fn table_with(settings: DeskSettings, depth: usize) -> Table {
    let depths = Depths { commands: depth, events: 16 };
    let (mut ports, shards) = mesh(&[PortClass::Client; 2], settings.shards, depths);
    let desk = Desk::new(settings, IdBlock { next: 1, end: 1_000 });
    Table { desk, port: ports.remove(1), shards, token: 0, slot: 0 }
}

fn id(text: &str) -> IntId {
    if text.is_empty() { IntId::NONE } else { IntId::parse(text.as_bytes()).unwrap() }
}

fn source(session: u16) -> Source {
    Source { origin: Origin::Fix, port: PORT, session }
}

/// A report on an order as the shard would make it.
fn report(order: OrderHandle, ids: (&str, &str), what: ExecType, status: Status) -> Event {
    let report = OrderReport {
        order,
        id: id(ids.0),
        orig_id: id(ids.1),
        qty: Qty::ZERO,
        cum_qty: Qty::ZERO,
        avg_price: Default::default(),
        last_qty: Qty::ZERO,
        last_price: Default::default(),
        source: source(0),
        sender: Default::default(),
        security: SecurityId(0),
        strategy: StrategyId(0),
        account: AccountId(0),
        what,
        status,
        reason: Reason::None,
        side: Default::default(),
        kind: Default::default(),
        tif: Default::default(),
        in_doubt: false,
    };
    event(EventKind::Status(report))
}

fn event(body: EventKind) -> Event {
    Event { seq: 1, at: Timestamp(1), body }
}

impl Table {
    fn ticket(&mut self, text: &str) -> Ticket {
        self.token += 1;
        Ticket { source: source(0), token: self.token, id: id(text), ..Ticket::default() }
    }

    fn submit(&mut self, text: &str) -> Result<String, Reason> {
        let ticket = self.ticket(text);
        let sent = self.desk.submit(&mut self.port, ticket, Terms::default());
        sent.map(|id| id.to_string()).map_err(|declined| declined.reason)
    }

    fn modify(&mut self, order: &str, text: &str) -> Result<String, Declined> {
        let ticket = self.ticket(text);
        let sent = self.desk.modify(&mut self.port, ticket, &id(order), Changes::default());
        sent.map(|id| id.to_string())
    }

    fn cancel(&mut self, order: &str, text: &str) -> Result<String, Declined> {
        let ticket = self.ticket(text);
        self.desk.cancel(&mut self.port, ticket, &id(order)).map(|id| id.to_string())
    }

    fn told(&mut self) -> Vec<CommandKind> {
        let shards = self.shards.iter_mut();
        shards.flat_map(|shard| std::iter::from_fn(|| shard.poll_command())).map(|c| c.body).collect()
    }

    fn hear(&mut self, order: OrderHandle, ids: (&str, &str), what: ExecType, status: Status) {
        assert_eq!(self.desk.handle_event(&report(order, ids, what, status)), None);
    }

    /// The shard enters an order that was submitted. Gives its handle.
    fn enter(&mut self, text: &str) -> OrderHandle {
        self.slot += 1;
        let order = OrderHandle::new(ShardId(0), 0, self.slot);
        let terms = OrderTerms {
            order,
            id: id(text),
            orig_id: IntId::NONE,
            source: source(0),
            what: ExecType::Entered,
            status: Status::PendingNew,
            reason: Reason::None,
            sender: Default::default(),
            terms: Terms::default(),
        };
        assert_eq!(self.desk.handle_event(&event(EventKind::Order(terms))), None);
        order
    }

    /// An order that is in the market.
    fn working(&mut self, text: &str) -> OrderHandle {
        self.submit(text).unwrap();
        let order = self.enter(text);
        self.hear(order, (text, ""), ExecType::Accepted, Status::New);
        self.told();
        order
    }

    fn refuse(&mut self, order: OrderHandle, ids: (&str, &str), request: RequestKind, status: Status) {
        let refusal = Refusal {
            order,
            id: id(ids.0),
            request_id: id(ids.1),
            source: source(0),
            request,
            status,
            reason: Reason::VenueRejected,
        };
        assert_eq!(self.desk.handle_event(&event(EventKind::Refused(refusal))), None);
    }

    fn known(&self, text: &str) -> Option<(String, String, Status, bool)> {
        let known = self.desk.order(0, &id(text))?;
        Some((known.root.to_string(), known.id.to_string(), known.status, known.finished))
    }
}

fn reason<T: std::fmt::Debug>(answer: Result<T, Declined>) -> Reason {
    answer.unwrap_err().reason
}

#[test]
fn an_order_goes_to_the_shard_of_its_security_under_the_id_given() {
    let mut table = table();
    let ticket = Ticket { source: source(3), token: 9, id: id("A"), ..Ticket::default() };
    let terms = Terms { security: SecurityId(5), ..Terms::default() };
    assert_eq!(table.desk.submit(&mut table.port, ticket, terms), Ok(id("A")));
    let command = table.shards[1].poll_command().unwrap();
    assert_eq!((command.source, command.token), (source(3), 9));
    assert_eq!(command.body, CommandKind::Submit { id: id("A"), terms });
    let known = table.desk.order(3, &id("A")).unwrap();
    assert_eq!((known.order, known.status, known.finished), (OrderHandle::NONE, Status::PendingNew, false));
    assert_eq!(table.desk.order(0, &id("A")), None, "another session, another id");
    assert_eq!(table.desk.len(), 1);
}

#[test]
fn a_closing_order_is_an_order() {
    let mut table = table();
    let ticket = table.ticket("");
    let closing = CloseRequest { security: SecurityId(2), qty: Qty::from_raw(5), ..CloseRequest::default() };
    let sent = table.desk.close(&mut table.port, ticket, closing).unwrap();
    let [CommandKind::Close { id, security, qty, .. }] = table.told()[..] else { panic!() };
    assert_eq!((id, security, qty), (sent, closing.security, closing.qty));
    assert!(table.known("n1").is_some());
}

#[test]
fn an_id_is_used_once_in_its_session() {
    let mut table = table();
    table.working("A");
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId));
    let declined = table.modify("A", "A").unwrap_err();
    assert_eq!((declined.reason, declined.order.unwrap().status), (Reason::DuplicateId, Status::New));
    assert_eq!(reason(table.cancel("A", "A")), Reason::DuplicateId);
    table.cancel("A", "C").unwrap();
    assert_eq!(table.submit("C"), Err(Reason::DuplicateId), "of a request too");
    let other = Ticket { source: source(1), token: 0, id: id("A"), ..Ticket::default() };
    assert!(table.desk.submit(&mut table.port, other, Terms::default()).is_ok());
}

#[test]
fn a_declined_request_leaves_no_trace() {
    let mut table = table_with(settings(), 1);
    let order = table.working("A");
    table.submit("B").unwrap();
    assert_eq!(table.submit("X"), Err(Reason::LaneFull));
    assert_eq!(reason(table.modify("A", "X")), Reason::LaneFull);
    assert_eq!(reason(table.cancel("A", "X")), Reason::LaneFull);
    assert_eq!((table.known("X"), table.desk.len()), (None, 2));
    assert_eq!(table.told().len(), 1);
    assert_eq!(table.modify("A", "X").as_deref(), Ok("X"));
    assert_eq!(table.told(), [CommandKind::Modify { order, id: id("X"), changes: Changes::default() }]);
}

#[test]
fn a_request_about_nobody_or_a_finished_order_is_declined() {
    let mut table = table();
    assert_eq!(reason(table.cancel("A", "C")), Reason::UnknownOrder);
    assert_eq!(reason(table.modify("A", "C")), Reason::UnknownOrder);
    let order = table.working("A");
    table.hear(order, ("A", ""), ExecType::Filled, Status::Filled);
    for declined in [table.cancel("A", "C").unwrap_err(), table.modify("A", "C").unwrap_err()] {
        assert_eq!(declined.reason, Reason::OrderFinished);
        assert_eq!(declined.order.unwrap().status, Status::Filled);
    }
    assert_eq!(table.told(), []);
}

#[test]
fn every_id_of_the_chain_finds_the_order_and_the_newest_is_told() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "B").unwrap();
    assert!(table.known("B").is_some(), "a client may build on a request that is on its way");
    table.hear(order, ("B", "A"), ExecType::ReplacePending, Status::PendingReplace);
    assert_eq!(table.known("A").unwrap(), ("A".into(), "A".into(), Status::PendingReplace, false));
    table.hear(order, ("B", "A"), ExecType::Replaced, Status::New);
    table.modify("B", "C").unwrap();
    table.hear(order, ("C", "B"), ExecType::Replaced, Status::PartiallyFilled);
    for text in ["A", "B", "C"] {
        assert_eq!(table.known(text).unwrap(), ("A".into(), "C".into(), Status::PartiallyFilled, false));
    }
    table.told();
    assert_eq!(table.cancel("A", "D").as_deref(), Ok("D"));
    assert_eq!(table.told(), [CommandKind::Cancel { order, id: id("D") }]);
    table.hear(order, ("D", "C"), ExecType::CancelPending, Status::PendingCancel);
    assert_eq!(table.known("D"), None, "a cancel gives the order no name");
    table.hear(order, ("D", "C"), ExecType::Canceled, Status::Canceled);
    assert_eq!(table.known("A").unwrap(), ("A".into(), "C".into(), Status::Canceled, true));
}

#[test]
fn the_id_of_a_refused_modification_is_spent() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "B").unwrap();
    table.refuse(order, ("A", "B"), RequestKind::Replace, Status::PartiallyFilled);
    assert_eq!(table.known("B"), None);
    assert_eq!(table.submit("B"), Err(Reason::DuplicateId));
    assert_eq!(table.known("A").unwrap(), ("A".into(), "A".into(), Status::PartiallyFilled, false));
    // A refusal of another order, or of one nobody knows, changes nothing.
    table.refuse(OrderHandle::NONE, ("A", "B"), RequestKind::Cancel, Status::Rejected);
    table.refuse(order, ("A", "Z"), RequestKind::Cancel, Status::Rejected);
    table.refuse(order, ("", "B"), RequestKind::Cancel, Status::Rejected);
    assert_eq!(table.known("A").unwrap().2, Status::PartiallyFilled);
}

#[test]
fn an_order_in_flight_holds_one_cancel_and_no_modification() {
    let mut table = table();
    table.submit("A").unwrap();
    table.told();
    assert_eq!(reason(table.modify("A", "B")), Reason::NotAcknowledged);
    assert_eq!(table.cancel("A", "C").as_deref(), Ok("C"));
    assert_eq!(reason(table.cancel("A", "D")), Reason::RequestPending);
    assert_eq!((table.desk.poll(&mut table.port), table.told()), (0, vec![]));
    let order = table.enter("A");
    assert_eq!(table.desk.poll(&mut table.port), 1);
    assert_eq!(table.told(), [CommandKind::Cancel { order, id: id("C") }]);
    assert_eq!(table.desk.poll(&mut table.port), 0);
}

#[test]
fn a_held_cancel_waits_for_room_too() {
    let mut table = table_with(settings(), 1);
    table.submit("A").unwrap();
    table.told();
    table.cancel("A", "C").unwrap();
    table.submit("B").unwrap();
    table.enter("A");
    assert_eq!(table.desk.poll(&mut table.port), 0);
    assert_eq!(table.told().len(), 1);
    assert_eq!(table.desk.poll(&mut table.port), 1);
}

#[test]
fn a_held_cancel_is_answered_even_if_there_never_is_an_order() {
    // Rejected without a place in the shard.
    let mut table = table();
    table.submit("A").unwrap();
    table.cancel("A", "C").unwrap();
    let rejected = report(OrderHandle::NONE, ("A", ""), ExecType::Rejected, Status::Rejected);
    let refusal = table.desk.handle_event(&rejected).unwrap();
    assert_eq!((refusal.id, refusal.request_id), (id("A"), id("C")));
    assert_eq!((refusal.reason, refusal.status), (Reason::OrderFinished, Status::Rejected));
    assert!(table.known("A").unwrap().3);
    // Refused before there was one: as if it had never been.
    table.submit("B").unwrap();
    table.submit("D").unwrap();
    let token = table.token;
    table.cancel("D", "E").unwrap();
    let done = |token, reason| event(EventKind::Done { source: source(0), token, reason });
    assert_eq!(table.desk.handle_event(&done(token, Reason::None)), None);
    let refusal = table.desk.handle_event(&done(token, Reason::PositionFlat)).unwrap();
    assert_eq!((refusal.id, refusal.request_id), (id("D"), id("E")));
    assert_eq!(table.known("D"), None);
    assert_eq!(table.desk.handle_event(&done(token, Reason::PositionFlat)), None);
    assert!(table.submit("D").is_ok() && table.submit("E").is_ok());
}

#[test]
fn ids_made_here_are_numbered_and_modifications_versioned() {
    let mut table = table();
    table.submit("n2").unwrap();
    assert_eq!(table.submit("").as_deref(), Ok("n1"));
    assert_eq!(table.submit("").as_deref(), Ok("n3"), "n2 was taken by the client");
    let order = table.enter("n1");
    assert_eq!(table.modify("n1", "").as_deref(), Ok("n1.1"));
    table.refuse(order, ("n1", "n1.1"), RequestKind::Replace, Status::New);
    assert_eq!(table.modify("n1", "").as_deref(), Ok("n1.2"));
    table.hear(order, ("n1.2", "n1"), ExecType::Replaced, Status::New);
    assert_eq!(table.modify("n1", "").as_deref(), Ok("n1.3"));
    assert_eq!(table.cancel("n1", "").as_deref(), Ok("n4"));
    let long = "x".repeat(47);
    table.working(&long);
    assert_eq!(table.modify(&long, "").as_deref(), Ok("n5"), "no room for a version");
}

#[test]
fn numbers_come_in_blocks() {
    let mut table = table();
    assert_eq!(table.desk.numbers_left(), 999);
    table.desk.numbers = IdBlock { next: 5, end: 6 };
    table.desk.give_numbers(IdBlock { next: 70, end: 71 });
    assert_eq!(table.desk.numbers_left(), 2);
    assert_eq!(table.submit("").as_deref(), Ok("n5"));
    assert_eq!(table.submit("").as_deref(), Ok("n70"));
    assert_eq!(table.submit(""), Err(Reason::LaneFull));
    table.desk.give_numbers(IdBlock { next: 80, end: 90 });
    assert_eq!(table.submit("").as_deref(), Ok("n80"));
}

#[test]
fn one_order_keeps_its_first_its_present_and_its_latest_ids() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "B").unwrap();
    table.hear(order, ("B", "A"), ExecType::Replaced, Status::New);
    for n in 0..200 {
        let request = format!("m{n}");
        assert_eq!(table.modify("A", &request).as_deref(), Ok(&*request));
        table.refuse(order, ("B", &request), RequestKind::Replace, Status::New);
        table.told();
    }
    assert_eq!(table.known("A"), table.known("B"));
    assert_eq!(table.submit("m199"), Err(Reason::DuplicateId));
    assert_eq!(table.submit("m100"), Err(Reason::DuplicateId), "it finds no order and stays used");
    assert_eq!(table.known("m100"), None);
    // The shard confirms one whose name has been dropped.
    table.hear(order, ("m0", "B"), ExecType::Replaced, Status::New);
    assert_eq!(table.known("A").unwrap().1, "m0");
}

#[test]
fn the_oldest_finished_orders_are_forgotten_first() {
    let mut table = table_with(DeskSettings { finished_max: 2, ..settings() }, 16);
    for text in ["A", "B", "C"] {
        let order = table.working(text);
        table.hear(order, (text, ""), ExecType::Filled, Status::Filled);
    }
    assert_eq!(table.known("A"), None);
    assert!(table.known("B").is_some() && table.known("C").is_some());
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId), "its id stays used today");
    table.desk.handle_event(&event(EventKind::TradingDay { day: Day(1) }));
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId), "the day of a start ends nothing");
    table.desk.handle_event(&event(EventKind::TradingDay { day: Day(2) }));
    assert!(table.submit("A").is_ok(), "tomorrow it may be used again");
}

#[test]
fn a_late_word_about_a_former_owner_of_the_id_is_not_taken_for_the_new_one() {
    let mut table = table_with(DeskSettings { finished_max: 0, ..settings() }, 16);
    let old = table.working("A");
    table.hear(old, ("A", ""), ExecType::Filled, Status::Filled);
    (1..3).for_each(|day| _ = table.desk.handle_event(&event(EventKind::TradingDay { day: Day(day) })));
    table.submit("A").unwrap();
    table.hear(old, ("A", ""), ExecType::Corrected, Status::Filled);
    assert_eq!(table.known("A").unwrap().2, Status::PendingNew);
    let forgotten = EventKind::Forgotten { order: old, source: source(0), id: id("A") };
    table.desk.handle_event(&event(forgotten));
    let new = table.enter("A");
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, new);
    table.hear(old, ("A", ""), ExecType::Corrected, Status::Filled);
    assert_eq!(table.known("A").unwrap().2, Status::PendingNew);
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
    table.hear(order, ("A", ""), ExecType::Expired, Status::Expired);
    assert!(table.submit("C").is_ok());
    assert_eq!(table.known("A"), None);
    assert_eq!(reason(table.cancel("C", "Y")), Reason::ShardFull);
    // What a shard tells beyond that cannot be kept, and is counted.
    table.enter("D");
    assert_eq!((table.known("D"), table.desk.untracked()), (None, 1));
}

#[test]
fn cancels_held_have_a_maximum() {
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
    table.desk.handle_event(&day(1));
    table.working("open");
    for n in 0..100 {
        let text = format!("o{n}");
        let order = table.working(&text);
        table.hear(order, (&text, ""), ExecType::Filled, Status::Filled);
    }
    table.desk.handle_event(&day(1));
    assert_eq!(table.desk.poll(&mut table.port), 0, "the same day again");
    table.desk.handle_event(&day(2));
    let late = table.working("late");
    table.hear(late, ("late", ""), ExecType::Filled, Status::Filled);
    table.desk.handle_event(&day(2));
    assert_eq!(table.desk.poll(&mut table.port), FORGET_PER_POLL_MAX as usize);
    assert_eq!(table.desk.poll(&mut table.port), 100 - FORGET_PER_POLL_MAX as usize);
    assert_eq!(table.desk.poll(&mut table.port), 0);
    assert_eq!(table.desk.len(), 2);
    assert!(table.known("open").is_some() && table.known("late").is_some());
}

#[test]
fn what_a_shard_forgot_stays_used_and_finished() {
    let mut table = table();
    let order = table.working("A");
    let forgotten = |port| {
        let source = Source { port, ..source(0) };
        event(EventKind::Forgotten { order, source, id: id("A") })
    };
    table.hear(order, ("A", ""), ExecType::Canceled, Status::Canceled);
    table.desk.handle_event(&forgotten(PortId(0)));
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, order);
    table.desk.handle_event(&forgotten(PORT));
    assert_eq!(table.desk.order(0, &id("A")).unwrap().order, OrderHandle::NONE);
    assert_eq!(reason(table.cancel("A", "C")), Reason::OrderFinished);
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId));
}

#[test]
fn a_corrected_order_can_live_again() {
    let mut table = table();
    let order = table.working("A");
    table.hear(order, ("A", ""), ExecType::Filled, Status::Filled);
    table.hear(order, ("A", ""), ExecType::Corrected, Status::PartiallyFilled);
    assert!(!table.known("A").unwrap().3);
    assert!(table.cancel("A", "C").is_ok());
}

#[test]
fn a_snapshot_brings_the_orders_back() {
    let mut table = table();
    let handle = |slot| OrderHandle::new(ShardId(1), 3, slot);
    table.hear(handle(1), ("A", ""), ExecType::Snapshot, Status::PartiallyFilled);
    table.hear(handle(2), ("B.1", "B"), ExecType::Snapshot, Status::New);
    table.hear(handle(3), ("C", ""), ExecType::Snapshot, Status::Filled);
    // Told twice, kept once.
    table.hear(handle(2), ("B.1", "B"), ExecType::Snapshot, Status::New);
    table.hear(handle(9), ("D", ""), ExecType::Filled, Status::Filled);
    assert_eq!(table.desk.len(), 3);
    assert_eq!(table.known("B").unwrap(), ("B".into(), "B.1".into(), Status::New, false));
    assert!(table.known("C").unwrap().3);
    assert_eq!(table.submit("B.1"), Err(Reason::DuplicateId));
    assert_eq!(table.modify("B.1", "").as_deref(), Ok("B.2"));
    assert_eq!(
        table.told(),
        [CommandKind::Modify { order: handle(2), id: id("B.2"), changes: Changes::default() }]
    );
    // An order under an id that another has: it cannot be found, and is counted.
    table.hear(handle(4), ("A", ""), ExecType::Snapshot, Status::New);
    table.hear(handle(2), ("A", "B.1"), ExecType::Replaced, Status::New);
    assert_eq!(table.desk.untracked(), 2);
}

#[test]
fn ids_of_before_a_restart_stay_used_whatever_became_of_their_orders() {
    let mut log = UsedIdLog::new(100);
    log.push(source(0), &id("A"));
    log.push(Source { port: PortId(0), ..source(0) }, &id("B"));
    log.push(source(1), &id("C"));
    let mut table = table();
    for port in [PORT, PortId(0)] {
        table.desk.handle_event(&event(EventKind::UsedIds(log.batch(0, port).0)));
    }
    assert_eq!(table.submit("A"), Err(Reason::DuplicateId));
    assert_eq!(table.known("A"), None);
    assert!(table.submit("B").is_ok() && table.submit("C").is_ok(), "those are of another port and session");
    let order = table.enter("B");
    assert_eq!(reason(table.modify("B", "A")), Reason::DuplicateId);
    assert_eq!(reason(table.cancel("B", "A")), Reason::DuplicateId);
    // An order whose id is among them is found by it all the same.
    table.hear(order, ("B", ""), ExecType::Accepted, Status::New);
    table.hear(OrderHandle::new(ShardId(1), 1, 77), ("A", ""), ExecType::Snapshot, Status::New);
    assert!(table.known("A").is_some() && table.cancel("A", "").is_ok());
}

#[test]
fn a_snapshot_brings_the_first_id_of_an_order_that_was_modified_twice() {
    let mut table = table();
    let order = OrderHandle::new(ShardId(1), 3, 1);
    table.hear(order, ("B", "A"), ExecType::Snapshot, Status::New);
    table.hear(order, ("C", "B"), ExecType::Snapshot, Status::New);
    for text in ["A", "B", "C"] {
        assert_eq!(table.known(text).unwrap(), ("A".into(), "C".into(), Status::New, false));
        assert_eq!(table.submit(text), Err(Reason::DuplicateId));
    }
}

#[test]
fn a_report_tells_which_order_it_is_about() {
    let mut table = table();
    let order = table.working("A");
    table.cancel("A", "C").unwrap();
    let EventKind::Status(pending) =
        report(order, ("C", "A"), ExecType::CancelPending, Status::PendingCancel).body
    else {
        panic!()
    };
    assert_eq!(table.desk.order_of(&pending).unwrap().root, id("A"));
    let stranger = OrderReport { id: id("Z"), orig_id: IntId::NONE, ..pending };
    assert_eq!(table.desk.order_of(&stranger), None);
}

#[test]
fn events_of_others_are_not_ours() {
    let mut table = table();
    let order = table.working("A");
    let EventKind::Status(ours) = report(order, ("A", ""), ExecType::Filled, Status::Filled).body else {
        panic!()
    };
    let theirs = OrderReport { source: Source { port: PortId(0), ..ours.source }, ..ours };
    table.desk.handle_event(&event(EventKind::Status(theirs)));
    let refusal = Refusal {
        order,
        id: id("A"),
        request_id: id("A"),
        source: theirs.source,
        request: RequestKind::Cancel,
        status: Status::Filled,
        reason: Reason::None,
    };
    table.desk.handle_event(&event(EventKind::Refused(refusal)));
    let halt = EventKind::Halt { security: SecurityId(1), on: true };
    table.desk.handle_event(&event(halt));
    assert_eq!(table.known("A").unwrap().2, Status::New);
    assert!(!table.desk.is_empty());
}
