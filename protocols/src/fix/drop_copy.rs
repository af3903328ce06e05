//! Copies of Execution Reports for sessions that watch the orders of others: which reports a
//! session receives, and what a copy must contain beside its event.
//!
//! ```text
//! Event ─► CopiedOrders ─ CopiedReport ─► CopyFilter ─► FixSession::copy_report ─► 8 with 797=Y
//! ```
//!
//! Rules: docs/fix-rules.md#drop-copy.

use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, OrderTerms};
use pitlane_engine::id::{AccountId, IntId, Source, StrategyId, Uuid};
use pitlane_engine::sender::{SenderId, SenderTable, SenderText};
use pitlane_engine::terms::{SpecialTerms, Terms};
use pitlane_engine::time::Timestamp;

use super::report::ExecutionReport;
use crate::codes::WireName;
use crate::handle_table::HandleTable;

/// The orders whose reports a session receives. An empty list permits all; an order must be in
/// every list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyFilter {
    pub accounts: Vec<AccountId>,
    pub strategies: Vec<StrategyId>,
    /// FIX sessions that sent the orders. `None`: orders of every session and every other
    /// interface.
    pub sessions: Option<Vec<Source>>,
}

impl CopyFilter {
    /// Returns whether an event is about an order of this filter, and is more than its image.
    pub fn wants(&self, event: &Event) -> bool {
        let (source, strategy, account) = if let EventKind::Order(order) = &event.body {
            (order.source, order.terms.strategy, order.terms.account)
        } else if let EventKind::Status(report) = &event.body {
            (report.source, report.strategy, report.account)
        } else {
            return false;
        };
        !event.body.is_order_snapshot()
            && (self.accounts.is_empty() || self.accounts.contains(&account))
            && (self.strategies.is_empty() || self.strategies.contains(&strategy))
            && self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&source))
    }
}

/// What the reports of an order contain beside what an event carries.
#[derive(Clone, Copy, Debug, Default)]
struct CopiedOrder {
    /// OrderID (37): the first id of the order.
    root: IntId,
    /// The order's own id; a report of a request carries the request's.
    id: IntId,
    sender: SenderId,
    terms: Terms,
}

impl CopiedOrder {
    fn of_terms(order: &OrderTerms) -> CopiedOrder {
        let root = if order.orig_id.is_none() { order.id } else { order.orig_id };
        CopiedOrder { root, id: order.id, sender: order.sender, terms: order.terms }
    }

    /// Returns what a report alone says about its order, but for the quantity. The prices stay
    /// unknown.
    fn of_report(report: &OrderReport) -> CopiedOrder {
        let is_request = report.what.answers_request() && !report.orig_id.is_none();
        let own = if is_request { report.orig_id } else { report.id };
        let terms = Terms {
            security: report.security,
            strategy: report.strategy,
            account: report.account,
            side: report.side,
            kind: report.kind,
            tif: report.tif,
            ..Terms::default()
        };
        CopiedOrder { root: own, id: own, sender: SenderId::NONE, terms }
    }
}

/// An Execution Report to be copied.
#[derive(Clone, Copy, Debug)]
pub struct CopiedReport {
    /// OrderID (37).
    pub root: IntId,
    pub terms: Terms,
    pub special: Option<SpecialTerms>,
    /// Sender of the order: the client of a FIX session, or the name of another interface; and its
    /// login, if there is one.
    pub sender: SenderText,
    pub login: SenderText,
    cl_ord_id: IntId,
    orig_cl_ord_id: IntId,
    report: OrderReport,
}

impl CopiedReport {
    /// Returns the fields of the report beside the terms of its order.
    pub fn fields(&self, at: Timestamp, exec_id: Uuid) -> ExecutionReport {
        let ids = (self.cl_ord_id, self.orig_cl_ord_id);
        ExecutionReport::with_ids(&self.report, at, exec_id, ids)
    }
}

/// The orders of all shards, as their reports are copied.
#[derive(Debug, Default)]
pub struct CopiedOrders {
    orders: HandleTable<CopiedOrder>,
    senders: SenderTable,
    /// ExecInst, MinQty and MaxFloor of the orders that have them.
    special: HandleTable<SpecialTerms>,
}

impl CopiedOrders {
    /// Applies an event. Returns a report if the event is one.
    pub fn handle_event(&mut self, event: &Event) -> Option<CopiedReport> {
        if let EventKind::Order(order) = &event.body {
            self.set_terms(order);
        } else if let EventKind::Sender { id, sender } = &event.body {
            self.senders.insert(*id, *sender);
        } else if let EventKind::Sent { order, sent } = &event.body
            && let Some(known) = self.orders.get_mut(*order)
        {
            known.sender = sent.submitted;
        } else if let EventKind::SpecialTerms(terms) = &event.body {
            self.special.set(terms.order, terms.special);
        }
        let report = event.report().filter(|report| report.what != ExecType::Snapshot)?;
        let known = self.orders.get(report.order).copied();
        // An order without a handle was rejected and is in no table.
        let unknown = || match event.body.answered_order() {
            Some(terms) => CopiedOrder::of_terms(terms),
            None => CopiedOrder::of_report(&report),
        };
        let mut order = known.unwrap_or_else(unknown);
        order.terms.qty = report.qty;
        let (cl_ord_id, orig_cl_ord_id) = ids(&report, &order);
        let known = self.senders.get(order.sender).copied().unwrap_or_default();
        let interface = || SenderText::new(report.source.origin.wire_name());
        let sender = if known.session.is_empty() { interface() } else { known.session };
        let (root, terms, login) = (order.root, order.terms, known.login);
        let special = if terms.special { self.special.get(report.order).copied() } else { None };
        Some(CopiedReport { root, terms, special, sender, login, cl_ord_id, orig_cl_ord_id, report })
    }

    /// Records terms: of a new order, of a modified one, or an image.
    fn set_terms(&mut self, order: &OrderTerms) {
        let is_new = matches!(order.what, ExecType::Entered | ExecType::Rejected);
        match self.orders.get_mut(order.order).filter(|_| !is_new) {
            Some(known) => (known.id, known.terms) = (order.id, order.terms),
            None => self.orders.set(order.order, CopiedOrder::of_terms(order)),
        }
    }
}

/// Returns ClOrdID and OrigClOrdID of a copy: a report of a request has the request's id, and the
/// order's own id before it.
fn ids(report: &OrderReport, order: &CopiedOrder) -> (IntId, IntId) {
    match report.what {
        ExecType::CancelPending | ExecType::Canceled | ExecType::ReplacePending if report.id != order.id => {
            (report.id, order.id)
        }
        ExecType::Replaced => (report.id, report.orig_id),
        ExecType::Entered
        | ExecType::Rejected
        | ExecType::Accepted
        | ExecType::Filled
        | ExecType::CancelPending
        | ExecType::Canceled
        | ExecType::Expired
        | ExecType::ReplacePending
        | ExecType::Triggered
        | ExecType::Corrected
        | ExecType::Snapshot => (order.id, IntId::NONE),
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{OrderHandle, Origin, PortId, SecurityId, ShardId};
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::reason::Reason;
    use pitlane_engine::sender::{Protocol, Sender, SentBy};
    use pitlane_engine::terms::{OrderKind, Side, Status, Tif};

    use super::*;

    const FIRST: Source = Source { origin: Origin::Fix, port: PortId(7), session: 1 };
    const SECOND: Source = Source { session: 2, ..FIRST };

    fn id(text: &str) -> IntId {
        IntId::parse(text.as_bytes()).unwrap()
    }

    fn event(body: EventKind) -> Event {
        Event { seq: 9, at: Timestamp(1), body }
    }

    fn terms(what: ExecType, own: &str, orig: &str, limit: i64) -> OrderTerms {
        OrderTerms {
            order: OrderHandle::new(ShardId(0), 1, 5),
            id: id(own),
            orig_id: if orig.is_empty() { IntId::NONE } else { id(orig) },
            source: FIRST,
            what,
            status: Status::New,
            reason: Reason::None,
            sender: SenderId(77),
            terms: Terms {
                qty: Qty::from_raw(10),
                limit: Price::from_raw(limit),
                limit_given: true,
                kind: OrderKind::Limit,
                account: AccountId(4),
                strategy: StrategyId(3),
                ..Terms::default()
            },
        }
    }

    /// Returns a report of the order of `terms`.
    fn status(what: ExecType, id: IntId, orig_id: IntId) -> Event {
        let entered = event(EventKind::Order(terms(ExecType::Entered, "a", "", 5)));
        let report = entered.report().unwrap();
        event(EventKind::Status(OrderReport { what, id, orig_id, qty: Qty::from_raw(12), ..report }))
    }

    fn ids_of(copied: &CopiedReport) -> [&str; 3] {
        [copied.root.as_str(), copied.cl_ord_id.as_str(), copied.orig_cl_ord_id.as_str()]
    }

    #[test]
    fn an_order_must_be_in_every_list_that_is_not_empty() {
        let report = status(ExecType::Filled, id("a"), IntId::NONE);
        let all = CopyFilter::default();
        assert!(
            all.wants(&report) && all.wants(&event(EventKind::Order(terms(ExecType::Entered, "a", "", 5))))
        );
        assert!(!all.wants(&status(ExecType::Snapshot, id("a"), IntId::NONE)), "an image is no report");
        assert!(!all.wants(&event(EventKind::Forgotten {
            order: OrderHandle::NONE,
            source: FIRST,
            id: id("a")
        })));
        let wants = |accounts: &[u16], strategies: &[u16], sessions: Option<&[Source]>| {
            let accounts = accounts.iter().copied().map(AccountId).collect();
            let strategies = strategies.iter().copied().map(StrategyId).collect();
            CopyFilter { accounts, strategies, sessions: sessions.map(<[Source]>::to_vec) }.wants(&report)
        };
        assert!(wants(&[9, 4], &[3], Some(&[FIRST])));
        assert!(!wants(&[9], &[], None) && !wants(&[4], &[1], None));
        assert!(!wants(&[], &[], Some(&[SECOND])) && !wants(&[], &[], Some(&[])));
    }

    #[test]
    fn a_copy_has_the_ids_and_terms_of_its_order_at_that_time() {
        let mut orders = CopiedOrders::default();
        let session = SenderText::new("CLIENT1");
        let sender = Sender { protocol: Protocol::Fix, session, ..Sender::default() };
        assert!(orders.handle_event(&event(EventKind::Sender { id: SenderId(77), sender })).is_none());
        let entered = orders.handle_event(&event(EventKind::Order(terms(ExecType::Entered, "a", "", 5))));
        let entered = entered.unwrap();
        assert_eq!(ids_of(&entered), ["a", "a", ""]);
        assert_eq!((entered.sender.as_str(), entered.terms.limit.raw()), ("CLIENT1", 5));
        let pending = orders.handle_event(&status(ExecType::ReplacePending, id("b"), id("a"))).unwrap();
        assert_eq!((ids_of(&pending), pending.terms.limit.raw()), (["a", "b", "a"], 5));
        assert!(
            orders.handle_event(&event(EventKind::Order(terms(ExecType::Replaced, "b", "a", 6)))).is_none()
        );
        let replaced = orders.handle_event(&status(ExecType::Replaced, id("b"), id("a"))).unwrap();
        assert_eq!((ids_of(&replaced), replaced.terms.limit.raw()), (["a", "b", "a"], 6));
        let filled = orders.handle_event(&status(ExecType::Filled, id("b"), id("a"))).unwrap();
        assert_eq!((ids_of(&filled), filled.terms.qty.raw()), (["a", "b", ""], 12));
        let canceled = orders.handle_event(&status(ExecType::Canceled, id("c"), id("b"))).unwrap();
        assert_eq!(ids_of(&canceled), ["a", "c", "b"]);
        let by_venue = orders.handle_event(&status(ExecType::Canceled, id("b"), id("a"))).unwrap();
        assert_eq!(ids_of(&by_venue), ["a", "b", ""], "no request asked for it");
    }

    /// After a restart orders are known by their images. A modified order is first shown under its
    /// earlier ids.
    #[test]
    fn an_order_is_known_by_its_image_and_one_without_by_its_report() {
        let mut orders = CopiedOrders::default();
        for (own, orig) in [("b", "a"), ("c", "b")] {
            let image = terms(ExecType::Snapshot, own, orig, 5);
            assert!(orders.handle_event(&event(EventKind::Order(image))).is_none());
        }
        assert!(orders.handle_event(&status(ExecType::Snapshot, id("c"), id("b"))).is_none());
        let sent = SentBy { submitted: SenderId(78), ..SentBy::default() };
        let order = OrderHandle::new(ShardId(0), 1, 5);
        assert!(orders.handle_event(&event(EventKind::Sent { order, sent })).is_none());
        let filled = orders.handle_event(&status(ExecType::Filled, id("c"), id("b"))).unwrap();
        assert_eq!((ids_of(&filled), filled.sender.as_str()), (["a", "c", ""], "FIX"));

        let mut orders = CopiedOrders::default();
        let canceled = orders.handle_event(&status(ExecType::Canceled, id("c"), id("b"))).unwrap();
        assert_eq!(ids_of(&canceled), ["b", "c", "b"]);
        assert!(!canceled.terms.limit_given, "its price is unknown");
        let filled = orders.handle_event(&status(ExecType::Filled, id("b"), id("a"))).unwrap();
        assert_eq!(ids_of(&filled), ["b", "b", ""], "a fill answers no request");
        let expired = orders.handle_event(&status(ExecType::Canceled, id("b"), IntId::NONE)).unwrap();
        assert_eq!(ids_of(&expired), ["b", "b", ""]);
    }

    #[test]
    fn a_report_alone_says_most_of_the_terms() {
        let entered = event(EventKind::Order(terms(ExecType::Entered, "a", "", 5)));
        let expected = Terms {
            qty: Qty::from_raw(12),
            security: SecurityId(8),
            strategy: StrategyId(3),
            account: AccountId(4),
            side: Side::Sell,
            kind: OrderKind::StopLimit,
            tif: Tif::Gtc,
            ..Terms::default()
        };
        let report = OrderReport {
            what: ExecType::Accepted,
            qty: expected.qty,
            security: expected.security,
            side: expected.side,
            kind: expected.kind,
            tif: expected.tif,
            ..entered.report().unwrap()
        };
        let copied = CopiedOrders::default().handle_event(&event(EventKind::Status(report))).unwrap();
        assert_eq!(copied.terms, expected);
    }
}
