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
            orig_id: self.orig_id(slot).copied().unwrap_or_default(),
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
        (id, orig_id): (&IntId, Option<&IntId>),
        last: (Qty, Price),
        sender: SenderId,
    ) -> OrderReport {
        let report = report_of(self.get(slot), self.handle(slot), state, last, sender);
        OrderReport { id: *id, orig_id: orig_id.copied().unwrap_or_default(), ..report }
    }

    /// Writes the same into an event.
    #[inline(always)]
    pub(crate) fn write_status(
        &self,
        place: &mut EventKind,
        slot: u32,
        state: (ExecType, Status, Reason),
        (id, orig_id): (&IntId, Option<&IntId>),
        last: (Qty, Price),
        sender: SenderId,
    ) {
        *place = EventKind::Status(report_of(self.get(slot), self.handle(slot), state, last, sender));
        // The ids last and directly, as otherwise the compiler copies them twice.
        if let EventKind::Status(report) = place {
            report.id = *id;
            if let Some(orig_id) = orig_id {
                report.orig_id = *orig_id;
            }
        }
    }
}

/// Returns the state of an order without ids.
#[inline(always)]
fn report_of(
    order: &Order,
    handle: OrderHandle,
    (what, status, reason): (ExecType, Status, Reason),
    (last_qty, last_price): (Qty, Price),
    sender: SenderId,
) -> OrderReport {
    OrderReport {
        order: handle,
        id: IntId::NONE,
        orig_id: IntId::NONE,
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
