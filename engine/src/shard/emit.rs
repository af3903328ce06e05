//! Emits the events of orders: terms, status reports and reports about requests, each to its
//! recipient ports.

use super::Shard;
use crate::event::{EventKind, ExecType, OrderReport, OrderTerms, RequestKind};
use crate::id::{IntId, PortMask, Source};
use crate::number::{Price, Qty};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::Status;

impl Shard {
    /// Emits an event that belongs to no order to all its watchers.
    pub(super) fn emit(&self, body: EventKind, out: &mut Outbox) {
        out.emit(self.watching.everything.with(self.watching.orders), self.now, body);
    }

    /// Returns the ports that receive the events of an order of this source.
    #[inline]
    pub(super) fn recipients(&self, source: Source) -> PortMask {
        self.watching.everything.with(self.watching.orders).with(PortMask::one(source.port))
    }

    /// Emits the current terms of an order.
    #[inline(never)]
    pub(super) fn emit_terms(&mut self, slot: u32, what: ExecType, reason: Reason, out: &mut Outbox) {
        self.orders.set_updated(slot, self.now, reason);
        let source = self.orders.get(slot).source;
        out.emit(self.recipients(source), self.now, EventKind::Order(self.order_terms(slot, what, reason)));
    }

    /// Republishes a finished order before a late event about it: readers archive it with its day.
    #[cold]
    pub(super) fn republish_if_past(&mut self, slot: u32, out: &mut Outbox) {
        let era = std::mem::replace(&mut self.orders.get_mut(slot).era, self.era);
        if era != self.era {
            self.emit_terms_snapshot(slot, out);
        }
    }

    /// Emits the terms of an order to readers that may have archived it, at the time it was
    /// submitted.
    pub(super) fn emit_terms_snapshot(&mut self, slot: u32, out: &mut Outbox) {
        let (source, submitted) = (self.orders.get(slot).source, self.orders.get(slot).submitted);
        let image = self.order_terms(slot, ExecType::Snapshot, Reason::None);
        out.emit(self.recipients(source), submitted, EventKind::Order(image));
        let sent = self.orders.sent(slot);
        if !sent.is_empty() {
            out.emit(
                self.recipients(source),
                submitted,
                EventKind::Sent { order: self.orders.handle(slot), sent },
            );
        }
    }

    #[inline(always)]
    pub(super) fn order_terms(&self, slot: u32, what: ExecType, reason: Reason) -> OrderTerms {
        let order = self.orders.get(slot);
        OrderTerms {
            order: self.orders.handle(slot),
            id: order.id,
            orig_id: *self.orders.orig_id(slot),
            source: order.source,
            what,
            status: self.orders.status(slot),
            reason,
            sender: SenderId::NONE,
            terms: order.terms,
        }
    }

    /// Emits a status report about an order, under its own ids.
    #[inline]
    pub(super) fn emit_status(&mut self, slot: u32, what: ExecType, reason: Reason, out: &mut Outbox) {
        self.emit_fill_status(slot, what, reason, (Qty::ZERO, Price::ZERO), out);
    }

    /// Emits a status report with the quantity and price of a fill.
    #[inline(never)]
    pub(super) fn emit_fill_status(
        &mut self,
        slot: u32,
        what: ExecType,
        reason: Reason,
        last: (Qty, Price),
        out: &mut Outbox,
    ) {
        self.orders.set_updated(slot, self.now, reason);
        let order = self.orders.get(slot);
        let state = (what, self.orders.status(slot), reason);
        let names = (&order.id, self.orders.orig_id(slot));
        let report = self.order_report(slot, state, names, last, SenderId::NONE);
        out.emit(self.recipients(order.source), self.now, EventKind::Status(report));
    }

    /// Emits a status report about a request: under the request's id if it has one, with the
    /// order's own id as the previous one.
    pub(super) fn emit_request_status(
        &mut self,
        slot: u32,
        what: ExecType,
        reason: Reason,
        id: &IntId,
        asker: Source,
        out: &mut Outbox,
    ) {
        self.emit_request_status_as(slot, what, self.orders.status(slot), reason, id, asker, out);
    }

    /// Emits a status report about a request, with the given status.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "they are what a report is about")]
    pub(super) fn emit_request_status_as(
        &mut self,
        slot: u32,
        what: ExecType,
        status: Status,
        reason: Reason,
        id: &IntId,
        asker: Source,
        out: &mut Outbox,
    ) {
        self.orders.set_updated(slot, self.now, reason);
        let order = self.orders.get(slot);
        let none = (Qty::ZERO, Price::ZERO);
        let names = match id.is_none() {
            true => (&order.id, self.orders.orig_id(slot)),
            false => (id, &order.id),
        };
        let report = self.order_report(slot, (what, status, reason), names, none, self.sender);
        let to = self.recipients(order.source).with(PortMask::one(asker.port));
        out.emit(to, self.now, EventKind::Status(report));
        match what.pending_request() {
            Some(RequestKind::Cancel) => self.orders.get_mut(slot).canceled_by = self.sender,
            Some(RequestKind::Replace) => self.orders.set_modified_by(slot, self.sender),
            None => {}
        }
    }

    #[inline(always)]
    pub(super) fn order_report(
        &self,
        slot: u32,
        (what, status, reason): (ExecType, Status, Reason),
        (id, orig_id): (&IntId, &IntId),
        (last_qty, last_price): (Qty, Price),
        sender: SenderId,
    ) -> OrderReport {
        let order = self.orders.get(slot);
        OrderReport {
            order: self.orders.handle(slot),
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
}
