//! Orders as events show them.

use super::Orders;
use crate::event::{EventKind, ExecType, OrderReport, OrderTerms};
use crate::id::{IntId, OrderHandle};
use crate::number::{Price, Qty};
use crate::order::Order;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::Status;

impl Orders {
    /// Returns the current terms of an order.
    #[inline(always)]
    pub fn terms_event(&self, slot: u32, what: ExecType, reason: Reason) -> OrderTerms {
        let order = self.get(slot);
        OrderTerms {
            order: self.handle(slot),
            id: order.id,
            orig_id: *self.orig_id(slot),
            source: order.source,
            what,
            status: self.status(slot),
            reason,
            sender: SenderId::NONE,
            terms: order.terms,
        }
    }

    /// Returns the state of an order under these ids, with the last fill and the sender of a
    /// request.
    #[inline(always)]
    pub fn status_event(
        &self,
        slot: u32,
        state: (ExecType, Status, Reason),
        (id, orig_id): (&IntId, &IntId),
        last: (Qty, Price),
        sender: SenderId,
    ) -> OrderReport {
        report_of(self.get(slot), self.handle(slot), state, id, orig_id, last, sender)
    }

    /// Writes the same into an event.
    #[inline(always)]
    pub(crate) fn write_status(
        &self,
        place: &mut EventKind,
        slot: u32,
        state: (ExecType, Status, Reason),
        (id, orig_id): (&IntId, &IntId),
        last: (Qty, Price),
        sender: SenderId,
    ) {
        write_report(place, self.get(slot), self.handle(slot), state, id, orig_id, last, sender);
    }
}

/// Writes a report into an event: the ids last and directly, as otherwise the compiler copies them
/// twice.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are what a report is about")]
fn write_report(
    place: &mut EventKind,
    order: &Order,
    handle: OrderHandle,
    state: (ExecType, Status, Reason),
    id: &IntId,
    orig_id: &IntId,
    last: (Qty, Price),
    sender: SenderId,
) {
    let none = &IntId::NONE;
    *place = EventKind::Status(report_of(order, handle, state, none, none, last, sender));
    if let EventKind::Status(report) = place {
        (report.id, report.orig_id) = (*id, *orig_id);
    }
}

#[inline(always)]
fn report_of(
    order: &Order,
    handle: OrderHandle,
    (what, status, reason): (ExecType, Status, Reason),
    id: &IntId,
    orig_id: &IntId,
    (last_qty, last_price): (Qty, Price),
    sender: SenderId,
) -> OrderReport {
    OrderReport {
        order: handle,
        id: *id,
        orig_id: *orig_id,
        qty: order.terms.qty,
        cum_qty: order.cum,
        // The first fill is its own average.
        avg_price: match what == ExecType::Filled && order.cum == last_qty {
            true => last_price,
            false => order.avg_price(),
        },
        last_qty,
        last_price,
        source: order.source,
        sender,
        security: order.terms.security,
        strategy: order.terms.strategy,
        account: order.terms.account,
        what,
        status,
        reason,
        side: order.terms.side,
        kind: order.terms.kind,
        tif: order.terms.tif,
        // There is no doubt about how an order ended: the venue, or the shard, has decided it.
        in_doubt: order.in_doubt() && !order.base.is_finished(),
    }
}
