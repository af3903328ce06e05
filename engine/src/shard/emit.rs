//! Emits the events of orders: terms, status reports and reports about requests, each to its
//! recipient ports.

use super::Shard;
use crate::event::{EventKind, ExecType, RequestKind};
use crate::id::{IntId, PortMask, Source};
use crate::number::{Price, Qty};
use crate::order::Base;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::{OrderSpecialTerms, Status};
use crate::time::Timestamp;

impl Shard {
    /// Emits an event that belongs to no order to all its watchers.
    pub(super) fn emit(&self, body: EventKind, out: &mut Outbox) {
        out.emit(self.watchers.of_shard(), self.now, body);
    }

    /// Emits the special terms of an order, if it has some, in front of an event with its terms.
    #[inline]
    fn emit_special(&self, slot: u32, at: Timestamp, is_snapshot: bool, out: &mut Outbox) {
        let order = self.orders.get(slot);
        if order.terms.special
            && let Some(special) = self.orders.special.current(slot)
        {
            let (order, source) = (self.orders.handle(slot), order.source);
            let special = OrderSpecialTerms { order, source, is_snapshot, special };
            out.emit(self.watchers.of_order(source), at, EventKind::SpecialTerms(special));
        }
    }

    /// Emits the current terms of an order.
    #[inline(never)]
    pub(super) fn emit_terms(&mut self, slot: u32, what: ExecType, reason: Reason, out: &mut Outbox) {
        self.orders.set_updated(slot, self.now, reason);
        self.emit_special(slot, self.now, false, out);
        let source = self.orders.get(slot).source;
        out.emit(
            self.watchers.of_order(source),
            self.now,
            EventKind::Order(self.orders.terms_event(slot, what, reason)),
        );
    }

    /// Republishes a finished order before a late event about it: readers archive it with its day.
    #[cold]
    pub(super) fn republish_if_past(&mut self, slot: u32, out: &mut Outbox) {
        let era = std::mem::replace(&mut self.orders.get_mut(slot).era, self.days.era);
        if era != self.days.era {
            self.emit_terms_snapshot(slot, out);
        }
    }

    /// Emits the terms of an order to readers that may have archived it, at the time it was
    /// submitted.
    pub(super) fn emit_terms_snapshot(&mut self, slot: u32, out: &mut Outbox) {
        let (source, submitted) = (self.orders.get(slot).source, self.orders.get(slot).submitted);
        self.emit_special(slot, submitted, true, out);
        let image = self.orders.terms_event(slot, ExecType::Snapshot, Reason::None);
        out.emit(self.watchers.of_order(source), submitted, EventKind::Order(image));
        let sent = self.orders.sent(slot);
        if !sent.is_empty() {
            out.emit(
                self.watchers.of_order(source),
                submitted,
                EventKind::Sent { order: self.orders.handle(slot), sent },
            );
        }
    }

    /// Emits a status report about an order, under its own ids.
    #[inline]
    pub(super) fn emit_status(&mut self, slot: u32, what: ExecType, reason: Reason, out: &mut Outbox) {
        self.emit_fill_status(slot, what, reason, (Qty::ZERO, Price::ZERO), out);
    }

    /// Emits that a new order rests at its venue. Its slot has been written for it already.
    #[inline(always)]
    pub(super) fn emit_accepted(&self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let (state, none) = ((ExecType::Accepted, Status::New, Reason::None), (Qty::ZERO, Price::ZERO));
        if let Some(place) = out.next_place(self.watchers.of_order(order.source), self.now) {
            let names = (&order.id, None);
            self.orders.write_status(place, slot, state, names, none, SenderId::NONE);
        }
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
        if let Some(place) = out.next_place(self.watchers.of_order(order.source), self.now) {
            self.orders.write_status(place, slot, state, names, last, SenderId::NONE);
        }
    }

    /// Emits both reports of a cancel that is done at once: requested, and done for a reason.
    #[inline(never)]
    pub(super) fn emit_canceled_at_once(
        &mut self,
        slot: u32,
        reason: Reason,
        id: &IntId,
        asker: Source,
        out: &mut Outbox,
    ) {
        let (sender, none) = (self.requests.sender(), (Qty::ZERO, Price::ZERO));
        let to = self.watchers.of_order(self.orders.get(slot).source).with(PortMask::one(asker.port));
        if let Some(place) = out.next_place(to, self.now) {
            let pending = (ExecType::CancelPending, Status::PendingCancel, Reason::None);
            self.orders.write_status(place, slot, pending, self.request_names(slot, id), none, sender);
        }
        let order = self.orders.get_mut(slot);
        (order.base, order.canceled_by) = (Base::Canceled, sender);
        (order.updated, order.reason) = (self.now, reason);
        if let Some(place) = out.next_place(to, self.now) {
            let done = (ExecType::Canceled, Status::Canceled, reason);
            self.orders.write_status(place, slot, done, self.request_names(slot, id), none, sender);
        }
    }

    /// Returns the ids in a report about a request: the request's id, if it has one, comes first.
    #[inline]
    fn request_names<'a>(&'a self, slot: u32, id: &'a IntId) -> (&'a IntId, Option<&'a IntId>) {
        let order = self.orders.get(slot);
        if id.is_none() { (&order.id, self.orders.orig_id(slot)) } else { (id, Some(&order.id)) }
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
        let (none, sender) = ((Qty::ZERO, Price::ZERO), self.requests.sender());
        let to = self.watchers.of_order(order.source).with(PortMask::one(asker.port));
        if let Some(place) = out.next_place(to, self.now) {
            let names = self.request_names(slot, id);
            self.orders.write_status(place, slot, (what, status, reason), names, none, sender);
        }
        match what.pending_request() {
            Some(RequestKind::Cancel) => self.orders.get_mut(slot).canceled_by = self.requests.sender(),
            Some(RequestKind::Replace) => self.orders.set_modified_by(slot, self.requests.sender()),
            None => {}
        }
    }
}
