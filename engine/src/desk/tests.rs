//! A desk, a port, and shards simulated by the test.

mod bounds;

use super::*;
use crate::event::{Event, EventKind, ExecType, OrderReport, OrderTerms, RequestKind, RequestRefusal};
use crate::id::Origin;
use crate::mesh::{Depths, PortClass, ShardEnd, mesh};
use crate::time::Timestamp;
use crate::used_ids::UsedIdLog;

const PORT: PortId = PortId(1);

struct DeskBench {
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

fn table() -> DeskBench {
    table_with(settings(), 16)
}

fn table_with(settings: DeskSettings, depth: usize) -> DeskBench {
    let depths = Depths { commands: depth, events: 16 };
    let (mut ports, shards) = mesh(&[PortClass::Client; 2], settings.shards, depths);
    let desk = Desk::new(settings, IdBlock { next: 1, end: 1_000 });
    DeskBench { desk, port: ports.remove(1), shards, token: 0, slot: 0 }
}

fn id(text: &str) -> IntId {
    if text.is_empty() { IntId::NONE } else { IntId::parse(text.as_bytes()).unwrap() }
}

fn source(session: u16) -> Source {
    Source { origin: Origin::Fix, port: PORT, session }
}

/// Returns a report about an order as a shard would send it.
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

impl DeskBench {
    /// Handles an event of the first shard.
    fn handle(&mut self, event: &Event) -> Option<RequestRefusal> {
        self.desk.handle_event(ShardId(0), event)
    }

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

    fn sent_commands(&mut self) -> Vec<CommandKind> {
        let shards = self.shards.iter_mut();
        shards.flat_map(|shard| std::iter::from_fn(|| shard.poll_command())).map(|c| c.body).collect()
    }

    fn handle_report(&mut self, order: OrderHandle, ids: (&str, &str), what: ExecType, status: Status) {
        assert_eq!(self.handle(&report(order, ids, what, status)), None);
    }

    /// Enters a submitted order in the shard and returns its handle.
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
        assert_eq!(self.handle(&event(EventKind::Order(terms))), None);
        order
    }

    /// Returns an order that works in the market.
    fn working(&mut self, text: &str) -> OrderHandle {
        self.submit(text).unwrap();
        let order = self.enter(text);
        self.handle_report(order, (text, ""), ExecType::Accepted, Status::New);
        self.sent_commands();
        order
    }

    fn refuse(&mut self, order: OrderHandle, ids: (&str, &str), request: RequestKind, status: Status) {
        let refusal = RequestRefusal {
            order,
            id: id(ids.0),
            request_id: id(ids.1),
            source: source(0),
            request,
            status,
            reason: Reason::VenueRejected,
        };
        assert_eq!(self.handle(&event(EventKind::Refused(refusal))), None);
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
    let [CommandKind::Close { id, security, qty, .. }] = table.sent_commands()[..] else { panic!() };
    assert_eq!((id, security, qty), (sent, closing.security, closing.qty));
    assert!(table.known("n1").is_some());
}

#[test]
fn special_terms_go_directly_before_their_request_or_neither_is_sent() {
    let mut table = table_with(settings(), 3);
    let special = SpecialTerms { min_qty: Some(Qty::from_raw(5)), ..SpecialTerms::default() };
    let (ticket, terms) = (table.ticket("A"), Terms { special: true, ..Terms::default() });
    assert_eq!(table.desk.submit_special(&mut table.port, ticket, terms, special), Ok(id("A")));
    let [first, second] = [0, 0].map(|shard: usize| table.shards[shard].poll_command().unwrap());
    assert_eq!(first.body, CommandKind::SpecialTerms(special));
    assert_eq!(second.body, CommandKind::Submit { id: id("A"), terms });
    assert_eq!((first.source, first.token), (second.source, second.token));
    let order = table.enter("A");
    table.handle_report(order, ("A", ""), ExecType::Accepted, Status::New);
    let (ticket, changes) = (table.ticket("B"), Changes::default().with_special(true));
    let sent = table.desk.modify_special(&mut table.port, ticket, &id("A"), changes, special);
    assert_eq!(sent, Ok(id("B")));
    // There is room for one of two.
    let ticket = table.ticket("C");
    let declined = table.desk.submit_special(&mut table.port, ticket, terms, special);
    assert_eq!(reason(declined), Reason::LaneFull);
    let sent = table.sent_commands();
    assert_eq!(
        sent,
        [CommandKind::SpecialTerms(special), CommandKind::Modify { order, id: id("B"), changes }]
    );
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
    assert_eq!(table.sent_commands().len(), 1);
    assert_eq!(table.modify("A", "X").as_deref(), Ok("X"));
    assert_eq!(
        table.sent_commands(),
        [CommandKind::Modify { order, id: id("X"), changes: Changes::default() }]
    );
}

#[test]
fn a_request_about_an_unknown_or_finished_order_is_declined() {
    let mut table = table();
    assert_eq!(reason(table.cancel("A", "C")), Reason::UnknownOrder);
    assert_eq!(reason(table.modify("A", "C")), Reason::UnknownOrder);
    let order = table.working("A");
    table.handle_report(order, ("A", ""), ExecType::Filled, Status::Filled);
    for declined in [table.cancel("A", "C").unwrap_err(), table.modify("A", "C").unwrap_err()] {
        assert_eq!(declined.reason, Reason::OrderFinished);
        assert_eq!(declined.order.unwrap().status, Status::Filled);
    }
    assert_eq!(table.sent_commands(), []);
}

#[test]
fn every_id_of_the_chain_finds_the_order_and_the_newest_is_shown() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "B").unwrap();
    assert!(table.known("B").is_some(), "a client may build on a request that is on its way");
    table.handle_report(order, ("B", "A"), ExecType::ReplacePending, Status::PendingReplace);
    assert_eq!(table.known("A").unwrap(), ("A".into(), "A".into(), Status::PendingReplace, false));
    table.handle_report(order, ("B", "A"), ExecType::Replaced, Status::New);
    table.modify("B", "C").unwrap();
    table.handle_report(order, ("C", "B"), ExecType::Replaced, Status::PartiallyFilled);
    for text in ["A", "B", "C"] {
        assert_eq!(table.known(text).unwrap(), ("A".into(), "C".into(), Status::PartiallyFilled, false));
    }
    table.sent_commands();
    assert_eq!(table.cancel("A", "D").as_deref(), Ok("D"));
    assert_eq!(table.sent_commands(), [CommandKind::Cancel { order, id: id("D") }]);
    table.handle_report(order, ("D", "C"), ExecType::CancelPending, Status::PendingCancel);
    assert_eq!(table.known("D"), None, "a cancel gives the order no name");
    table.handle_report(order, ("D", "C"), ExecType::Canceled, Status::Canceled);
    assert_eq!(table.known("A").unwrap(), ("A".into(), "C".into(), Status::Canceled, true));
}

#[test]
fn the_id_of_a_refused_modification_stays_used() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "B").unwrap();
    table.refuse(order, ("A", "B"), RequestKind::Replace, Status::PartiallyFilled);
    assert_eq!(table.known("B"), None);
    assert_eq!(table.submit("B"), Err(Reason::DuplicateId));
    assert_eq!(table.known("A").unwrap(), ("A".into(), "A".into(), Status::PartiallyFilled, false));
    // A refusal of another order, or of an unknown one, changes nothing.
    table.refuse(OrderHandle::NONE, ("A", "B"), RequestKind::Cancel, Status::Rejected);
    table.refuse(order, ("A", "Z"), RequestKind::Cancel, Status::Rejected);
    table.refuse(order, ("", "B"), RequestKind::Cancel, Status::Rejected);
    assert_eq!(table.known("A").unwrap().2, Status::PartiallyFilled);
}

#[test]
fn an_order_in_flight_holds_one_cancel_and_no_modification() {
    let mut table = table();
    table.submit("A").unwrap();
    table.sent_commands();
    assert_eq!(reason(table.modify("A", "B")), Reason::NotAcknowledged);
    assert_eq!(table.cancel("A", "C").as_deref(), Ok("C"));
    assert_eq!(reason(table.cancel("A", "D")), Reason::RequestPending);
    assert_eq!((table.desk.poll(&mut table.port), table.sent_commands()), (0, vec![]));
    let order = table.enter("A");
    assert_eq!(table.desk.poll(&mut table.port), 1);
    assert_eq!(table.sent_commands(), [CommandKind::Cancel { order, id: id("C") }]);
    assert_eq!(table.desk.poll(&mut table.port), 0);
}

#[test]
fn a_held_cancel_waits_for_room_too() {
    let mut table = table_with(settings(), 1);
    table.submit("A").unwrap();
    table.sent_commands();
    table.cancel("A", "C").unwrap();
    table.submit("B").unwrap();
    table.enter("A");
    assert_eq!(table.desk.poll(&mut table.port), 0);
    assert_eq!(table.sent_commands().len(), 1);
    assert_eq!(table.desk.poll(&mut table.port), 1);
}

#[test]
fn a_held_cancel_is_answered_even_if_its_order_never_exists() {
    // Rejected without a slot in the shard.
    let mut table = table();
    table.submit("A").unwrap();
    table.cancel("A", "C").unwrap();
    let rejected = report(OrderHandle::NONE, ("A", ""), ExecType::Rejected, Status::Rejected);
    let refusal = table.handle(&rejected).unwrap();
    assert_eq!((refusal.id, refusal.request_id), (id("A"), id("C")));
    assert_eq!((refusal.reason, refusal.status), (Reason::OrderFinished, Status::Rejected));
    assert!(table.known("A").unwrap().3);
    // Refused before there was an order: no trace is left.
    table.submit("B").unwrap();
    table.submit("D").unwrap();
    let token = table.token;
    table.cancel("D", "E").unwrap();
    let done = |token, reason| event(EventKind::Done { source: source(0), token, reason });
    assert_eq!(table.handle(&done(token, Reason::None)), None);
    let refusal = table.handle(&done(token, Reason::PositionFlat)).unwrap();
    assert_eq!((refusal.id, refusal.request_id), (id("D"), id("E")));
    assert_eq!(table.known("D"), None);
    assert_eq!(table.handle(&done(token, Reason::PositionFlat)), None);
    assert!(table.submit("D").is_ok() && table.submit("E").is_ok());
}

#[test]
fn generated_ids_are_numbered_and_modifications_are_versioned() {
    let mut table = table();
    table.submit("n2").unwrap();
    assert_eq!(table.submit("").as_deref(), Ok("n1"));
    assert_eq!(table.submit("").as_deref(), Ok("n3"), "n2 was taken by the client");
    let order = table.enter("n1");
    assert_eq!(table.modify("n1", "").as_deref(), Ok("n1.1"));
    table.refuse(order, ("n1", "n1.1"), RequestKind::Replace, Status::New);
    assert_eq!(table.modify("n1", "").as_deref(), Ok("n1.2"));
    table.handle_report(order, ("n1.2", "n1"), ExecType::Replaced, Status::New);
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
fn one_order_keeps_its_first_current_and_latest_ids() {
    let mut table = table();
    let order = table.working("A");
    table.modify("A", "B").unwrap();
    table.handle_report(order, ("B", "A"), ExecType::Replaced, Status::New);
    for n in 0..200 {
        let request = format!("m{n}");
        assert_eq!(table.modify("A", &request).as_deref(), Ok(&*request));
        table.refuse(order, ("B", &request), RequestKind::Replace, Status::New);
        table.sent_commands();
    }
    assert_eq!(table.known("A"), table.known("B"));
    assert_eq!(table.submit("m199"), Err(Reason::DuplicateId));
    assert_eq!(table.submit("m100"), Err(Reason::DuplicateId), "it finds no order and stays used");
    assert_eq!(table.known("m100"), None);
    // The shard confirms one whose name has been dropped.
    table.handle_report(order, ("m0", "B"), ExecType::Replaced, Status::New);
    assert_eq!(table.known("A").unwrap().1, "m0");
}
