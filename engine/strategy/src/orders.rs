//! The open orders of one strategy, and its refused requests.

use pitlane_engine::event::{ExecType, OrderReport, OrderTerms};
use pitlane_engine::id::{IntId, OrderHandle, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Side, Status, Terms};

/// Orders that one strategy may have open here: they are searched linearly, and a person could not
/// supervise more. The next is declined.
pub const OPEN_MAX: usize = 1_024;

/// An order that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// Id under which it was submitted.
    pub id: IntId,
    /// None until the shard has reported it.
    pub order: OrderHandle,
    /// The security of the order.
    pub security: SecurityId,
    /// Whether it buys or sells.
    pub side: Side,
    /// Whole quantity.
    pub qty: Qty,
    /// Filled quantity.
    pub cum_qty: Qty,
    /// Limit price; zero without one.
    pub limit: Price,
    /// Stop price; zero without one.
    pub stop: Price,
    /// Status as last reported.
    pub status: Status,
}

impl OpenOrder {
    /// Returns the quantity that is still to be filled.
    pub fn leaves_qty(&self) -> Qty {
        self.qty.checked_sub(self.cum_qty).unwrap_or_default()
    }
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyRequestKind {
    /// A new order.
    Submit,
    /// A modification.
    Modify,
    /// A cancel.
    Cancel,
}

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Id of the order, as submitted.
    pub id: IntId,
    /// What was refused.
    pub request: StrategyRequestKind,
    /// Why it was refused.
    pub reason: Reason,
}

/// In order of submission.
#[derive(Debug, Default)]
pub struct OpenOrders {
    open: Vec<OpenOrder>,
}

impl OpenOrders {
    pub fn open(&self) -> &[OpenOrder] {
        &self.open
    }

    pub fn find(&self, id: &IntId) -> Option<&OpenOrder> {
        // The newest are looked up most.
        self.open.iter().rev().find(|order| order.id == *id)
    }

    pub fn has_room(&self) -> bool {
        self.open.len() < OPEN_MAX
    }

    /// Adds an order that is being sent.
    pub fn submit(&mut self, id: IntId, terms: &Terms) {
        let status = Status::PendingNew;
        self.put(OpenOrder { cum_qty: Qty::ZERO, status, ..of_terms(id, OrderHandle::NONE, terms) });
    }

    /// Removes an order that was never sent.
    pub fn withdraw(&mut self, id: &IntId) {
        self.open.retain(|order| order.id != *id);
    }

    /// Applies the terms of an order, new ones or those of a snapshot. A snapshot may contain
    /// orders of an earlier process.
    pub fn handle_terms(&mut self, id: IntId, terms_event: &OrderTerms) {
        let new = of_terms(id, terms_event.order, &terms_event.terms);
        match self.open.iter_mut().find(|order| order.id == id) {
            Some(known) => {
                *known = OpenOrder { cum_qty: known.cum_qty, status: terms_event.status, ..new };
            }
            None if matches!(terms_event.what, ExecType::Snapshot | ExecType::Entered) => {
                self.put(OpenOrder { status: terms_event.status, ..new });
            }
            None => {}
        }
        self.settle(&id, terms_event.status);
    }

    pub fn handle_status(&mut self, id: &IntId, report: &OrderReport) {
        if let Some(known) = self.open.iter_mut().rev().find(|order| order.id == *id) {
            (known.qty, known.cum_qty, known.status) = (report.qty, report.cum_qty, report.status);
        }
        self.settle(id, report.status);
    }

    fn settle(&mut self, id: &IntId, status: Status) {
        if status.is_finished() {
            self.withdraw(id);
        }
    }

    fn put(&mut self, order: OpenOrder) {
        if self.open.capacity() == 0 {
            self.open.reserve_exact(OPEN_MAX);
        }
        if self.has_room() {
            self.open.push(order);
        }
    }
}

fn of_terms(id: IntId, order: OrderHandle, terms: &Terms) -> OpenOrder {
    let Terms { security, side, qty, limit, stop, .. } = *terms;
    OpenOrder { id, order, security, side, qty, cum_qty: Qty::ZERO, limit, stop, status: Status::PendingNew }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitlane_engine::id::{ShardId, Source};
    use pitlane_engine::sender::SenderId;

    const NAMED: fn() -> IntId = || IntId::numbered(b's', 1);

    fn terms_event(what: ExecType, status: Status, qty: i64) -> OrderTerms {
        OrderTerms {
            order: OrderHandle::new(ShardId(0), 1, 5),
            id: NAMED(),
            orig_id: IntId::NONE,
            source: Source::default(),
            what,
            status,
            reason: Reason::None,
            sender: SenderId::NONE,
            terms: Terms { qty: Qty::from_raw(qty), security: SecurityId(7), ..Terms::default() },
        }
    }

    #[test]
    fn terms_of_an_unknown_order_add_it_if_they_are_its_first() {
        let cases = [(ExecType::Entered, 1), (ExecType::Snapshot, 1), (ExecType::Replaced, 0)];
        for (what, count) in cases {
            let mut orders = OpenOrders::default();
            let event = terms_event(what, Status::New, 10);
            orders.handle_terms(NAMED(), &event);
            assert_eq!(orders.open().len(), count, "{what:?}");
            let expected = OpenOrder { status: Status::New, ..of_terms(NAMED(), event.order, &event.terms) };
            assert!(orders.open().iter().all(|order| *order == expected), "{what:?}");
        }
    }

    #[test]
    fn new_terms_keep_what_is_filled_and_an_end_removes_the_order() {
        let mut orders = OpenOrders::default();
        orders.submit(NAMED(), &terms_event(ExecType::Entered, Status::PendingNew, 10).terms);
        orders.open[0].cum_qty = Qty::from_raw(4);
        orders.handle_terms(NAMED(), &terms_event(ExecType::Replaced, Status::PartiallyFilled, 20));
        let order = orders.find(&NAMED()).unwrap();
        assert_eq!((order.qty.raw(), order.cum_qty.raw(), order.leaves_qty().raw()), (20, 4, 16));
        assert_eq!(order.status, Status::PartiallyFilled);
        orders.handle_terms(NAMED(), &terms_event(ExecType::Rejected, Status::Rejected, 20));
        assert_eq!(orders.open(), []);
    }
}
