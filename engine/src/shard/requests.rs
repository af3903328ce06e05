//! Requests to modify or cancel orders. Every request gets exactly one final answer.
//!
//! Rules: docs/engine-rules.md#modifications.

use super::Shard;
use super::credit::CreditRequest;
use super::order_entry::limit_ticks;
use crate::event::{EventKind, ExecType, RequestKind, RequestRefusal, VenueRequest};
use crate::id::{IntId, OrderHandle, Origin, PortMask, Source};
use crate::number::{Money, Qty};
use crate::order::{Base, CancelRequest, NIL, Order, Replace, Step};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::{Changes, Status, Terms, Tif};

impl Shard {
    pub(super) fn modify(
        &mut self,
        source: Source,
        handle: OrderHandle,
        id: &IntId,
        changes: &Changes,
        out: &mut Outbox,
    ) {
        let Some(slot) = self.orders.find(handle) else {
            return self.refuse_unknown(source, handle, id, RequestKind::Replace, out);
        };
        let terms = changes.applied_to(&self.orders.get(slot).terms);
        if terms.special && !self.find_special(slot, changes) {
            return self.refuse(slot, RequestKind::Replace, id, source, Reason::LaneFull, out);
        }
        match self.check_modify(slot, id, &terms, out) {
            Ok((credit, grown)) => {
                let order = self.orders.get(slot);
                let terms = match terms.qty <= order.cum {
                    // The order ends; its other terms were not checked, and stay as they are.
                    true => Terms { qty: terms.qty, special: terms.special, ..order.terms },
                    false => terms,
                };
                if terms.special {
                    self.orders.special.request(slot, self.requests.special);
                }
                if !self.replace_at_once(slot, id, source, &terms, &credit, out) {
                    let (reserved, credit_price) = (credit.reserve, credit.price);
                    let replace = Replace { id: *id, source, terms, reserved, credit_price, grown };
                    self.begin_replace(slot, &replace, out)
                }
            }
            Err(reason) => self.refuse(slot, RequestKind::Replace, id, source, reason, out),
        }
    }

    /// Finds the special terms of an order after a modification: those of the order, or those that
    /// arrived before the modification. Returns false if these are missing.
    #[cold]
    fn find_special(&mut self, slot: u32, changes: &Changes) -> bool {
        if changes.special().is_none() {
            self.requests.special = self.orders.special.current(slot);
        }
        self.requests.special.is_some()
    }

    /// Checks whether an order may have these terms. Returns the credit they need, and the growth
    /// of the quantity.
    #[inline]
    fn check_modify(
        &mut self,
        slot: u32,
        id: &IntId,
        terms: &Terms,
        out: &mut Outbox,
    ) -> Result<(CreditRequest, Qty), Reason> {
        let order = self.orders.get(slot);
        if order.base.is_finished() {
            return Err(Reason::OrderFinished);
        }
        if self.orders.requests(slot).is_some() {
            return Err(Reason::RequestPending);
        }
        if order.base == Base::PendingNew {
            return Err(Reason::NotAcknowledged);
        }
        if order.terms.reduce_only {
            return Err(Reason::ReduceOnly);
        }
        if id.is_none() {
            return Err(Reason::BadId);
        }
        let qty = order.terms.qty;
        if terms.qty.is_positive() && terms.qty <= order.cum {
            // Stop here: the market is asked for nothing more, so there is nothing to check.
            return Ok((CreditRequest::default(), Qty::ZERO));
        }
        let credit = self.admit_change(slot, terms, out)?;
        let grows = terms.qty.checked_sub(qty).unwrap_or_default();
        Ok((credit, grows.max(Qty::ZERO)))
    }

    /// Takes the fast path of most modifications, like that of most cancels: the order rests at the
    /// simulated venue, so the request is reported and done at once and need not be stored. Its
    /// trades are reported as usual.
    #[inline]
    fn replace_at_once(
        &mut self,
        slot: u32,
        id: &IntId,
        source: Source,
        terms: &Terms,
        credit: &CreditRequest,
        out: &mut Outbox,
    ) -> bool {
        let order = self.orders.get(slot);
        let left = terms.qty.checked_sub(order.cum).unwrap_or_default();
        if self.deadlines.is_delayed() || order.outside() || !left.is_positive() {
            return false;
        }
        let (local, counted) = (order.local, order.leaves());
        let limit = limit_ticks(terms, &self.directory.locals[local as usize].ticks);
        if !self.venue.requeue(slot, left, limit, terms.tif) {
            return false;
        }
        let pending = Status::PendingReplace;
        self.emit_request_status_as(slot, ExecType::ReplacePending, pending, Reason::None, id, source, out);
        let grown = left.checked_sub(counted).expect("headroom was checked");
        self.ledger.add_open(self.orders.get(slot), grown, credit.reserve);
        let old = self.orders.get(slot).terms;
        self.redate(slot, &old, terms);
        self.orders.rename(slot, id);
        if old.special || terms.special {
            self.orders.special.apply_requested(slot);
        }
        let order = self.orders.get_mut(slot);
        order.terms = *terms;
        order.reserved = order.reserved.checked_add(credit.reserve).unwrap_or_default();
        self.trim_credit(slot, credit.price);
        self.count_credit_of(slot, out);
        self.emit_terms(slot, ExecType::Replaced, Reason::None, out);
        self.emit_status(slot, ExecType::Replaced, Reason::None, out);
        if !self.venue.outcomes().is_empty() {
            self.continuation.set_busy(local);
        }
        true
    }

    fn begin_replace(&mut self, slot: u32, replace: &Replace, out: &mut Outbox) {
        let waits = self.venue.nodes().is_stop(slot);
        let order = *self.orders.get(slot);
        self.ledger.add_open(&order, replace.grown, replace.reserved);
        self.count_credit_of(slot, out);
        self.orders.requests_mut(slot).replace = Some(*replace);
        self.emit_request_status(
            slot,
            ExecType::ReplacePending,
            Reason::None,
            &replace.id,
            replace.source,
            out,
        );
        let stop_here = replace.terms.qty <= order.cum;
        // A triggered stop is in transit to the venue, and the request follows it there.
        if waits {
            if stop_here {
                self.stopped_here(slot, out)
            } else {
                self.replace_waiting(slot, out)
            }
            return;
        }
        let request = if stop_here && !self.directory.is_simulated(order.local) {
            VenueRequest::Cancel
        } else {
            VenueRequest::Replace
        };
        self.send_request(slot, request, out);
    }

    pub(super) fn cancel(&mut self, source: Source, handle: OrderHandle, id: &IntId, out: &mut Outbox) {
        let Some(slot) = self.orders.find(handle) else {
            return self.refuse_unknown(source, handle, id, RequestKind::Cancel, out);
        };
        let pending = self.orders.requests(slot).is_some_and(|requests| requests.cancel.is_some());
        if self.orders.get(slot).base.is_finished() {
            self.refuse(slot, RequestKind::Cancel, id, source, Reason::OrderFinished, out);
        } else if pending {
            self.refuse(slot, RequestKind::Cancel, id, source, Reason::RequestPending, out);
        } else {
            self.begin_cancel(slot, id, source, Reason::Requested, out);
        }
    }

    /// Requests the end of an order that is open and not being cancelled already.
    pub(super) fn begin_cancel(
        &mut self,
        slot: u32,
        id: &IntId,
        source: Source,
        reason: Reason,
        out: &mut Outbox,
    ) {
        if self.cancel_at_once(slot, id, source, reason, out) {
            return;
        }
        let waits = self.venue.nodes().is_stop(slot);
        self.orders.requests_mut(slot).cancel = Some(CancelRequest { id: *id, source, reason, sent: false });
        self.emit_request_status(slot, ExecType::CancelPending, Reason::None, id, source, out);
        if waits {
            self.ended(slot, Step::Cancel, Reason::Requested, out)
        } else {
            self.send_cancel(slot, out)
        }
    }

    /// Takes the fast path of most cancels: the simulated venue has no delay and the order rests
    /// there, so the request is reported and answered at once and need not be stored.
    #[inline]
    fn cancel_at_once(
        &mut self,
        slot: u32,
        id: &IntId,
        source: Source,
        reason: Reason,
        out: &mut Outbox,
    ) -> bool {
        let order = self.orders.get(slot);
        let is_plain = order.base == Base::Working && order.requests == NIL && !order.outside();
        if self.deadlines.is_delayed() || !is_plain || !self.venue.withdraw(slot) {
            return false;
        }
        let left = order.leaves();
        self.emit_canceled_at_once(slot, reason, id, source, out);
        self.finish(slot, left, out);
        true
    }

    /// Sends a pending cancel when the venue can take it: the simulated venue always; others after
    /// they have acknowledged the order and answered earlier requests.
    pub(super) fn send_cancel(&mut self, slot: u32, out: &mut Outbox) {
        if self.orders.get(slot).requests == NIL {
            return;
        }
        let order = self.orders.get(slot);
        let waits = order.outside() && order.base == Base::PendingNew;
        let outside = order.outside();
        let requests = self.orders.requests_mut(slot);
        let behind = outside && requests.replace.is_some();
        let Some(cancel) = &mut requests.cancel else {
            return;
        };
        if !waits && !behind && !std::mem::replace(&mut cancel.sent, true) {
            self.send_request(slot, VenueRequest::Cancel, out);
        }
    }

    /// Sends a request; without a connection it waits for the reconciliation, in doubt.
    pub(super) fn send_request(&mut self, slot: u32, request: VenueRequest, out: &mut Outbox) {
        let local = self.orders.get(slot).local;
        if self.adapters.is_connected(self.directory.locals[local as usize].adapter) {
            return self.send_to_venue(slot, request, out);
        }
        self.orders.get_mut(slot).set_in_doubt(true);
    }

    /// Applies new terms to a stop that the shard holds: there is no venue to ask.
    fn replace_waiting(&mut self, slot: u32, out: &mut Outbox) {
        self.drop_stop(slot);
        self.replaced(slot, out);
        if !self.orders.get(slot).base.is_finished() {
            self.watch_stop(slot, out);
        }
    }

    /// Applies the terms of a pending replace.
    pub(super) fn replaced(&mut self, slot: u32, out: &mut Outbox) {
        let order = *self.orders.get(slot);
        let Some(replace) = self.orders.pending_replace(slot) else {
            return self.alert_unexpected(slot, out);
        };
        self.orders.requests_mut(slot).replace = None;
        self.orders.release_answered(slot);
        self.orders.rename(slot, &replace.id);
        let left =
            replace.terms.qty.checked_sub(order.cum).filter(|left| left.is_positive()).unwrap_or_default();
        self.recount_open(&order, replace.grown, left);
        self.redate(slot, &order.terms, &replace.terms);
        if order.terms.special || replace.terms.special {
            self.orders.special.apply_requested(slot);
        }
        let order = self.orders.get_mut(slot);
        order.terms = replace.terms;
        order.reserved = order.reserved.checked_add(replace.reserved).unwrap_or_default();
        if left.is_zero() {
            order.base = Base::Filled;
            order.terms.qty = order.cum;
        }
        self.trim_credit(slot, replace.credit_price);
        self.count_credit_of(slot, out);
        self.emit_terms(slot, ExecType::Replaced, Reason::None, out);
        self.emit_status(slot, ExecType::Replaced, Reason::None, out);
        if left.is_zero() {
            return self.finish(slot, Qty::ZERO, out);
        }
        self.send_cancel(slot, out);
    }

    /// Ends an order that was modified to its filled quantity.
    pub(super) fn stopped_here(&mut self, slot: u32, out: &mut Outbox) {
        // Fills may have overtaken a modification that reserves more credit.
        if let Some(replace) = self.drop_replace(slot, out) {
            self.orders.rename(slot, &replace.id);
        }
        let order = self.orders.get_mut(slot);
        let left = order.leaves();
        order.base = Base::Filled;
        order.terms.qty = order.cum;
        self.emit_terms(slot, ExecType::Replaced, Reason::StopHere, out);
        self.emit_status(slot, ExecType::Replaced, Reason::StopHere, out);
        self.finish(slot, left, out);
    }

    /// Drops a replace that was not done, and reverses what was counted for it.
    pub(super) fn drop_replace(&mut self, slot: u32, out: &mut Outbox) -> Option<Replace> {
        let replace = self.orders.requests(slot)?.replace?;
        let order = *self.orders.get(slot);
        self.orders.requests_mut(slot).replace = None;
        self.orders.release_answered(slot);
        self.drop_special(slot, &replace);
        let (grown, reserved) = (-replace.grown.raw(), -replace.reserved.raw());
        self.ledger.add_open(&order, Qty::from_raw(grown), Money::from_raw(reserved));
        self.count_credit_of(slot, out);
        Some(replace)
    }

    /// Forgets the special terms of a modification that was not done.
    fn drop_special(&mut self, slot: u32, replace: &Replace) {
        if replace.terms.special {
            self.orders.special.request(slot, None);
        }
    }

    /// Changes the open quantity of an order to `left`; counted so far are its leaves and the
    /// growth of the replace.
    fn recount_open(&mut self, order: &Order, grown: Qty, left: Qty) {
        let counted = order.leaves().checked_add(grown).expect("headroom was checked");
        let more = left.checked_sub(counted).expect("headroom was checked");
        self.ledger.add_open(order, more, Money::ZERO);
    }

    fn redate(&mut self, slot: u32, old: &Terms, new: &Terms) {
        match (old.tif == Tif::Gtd, new.tif == Tif::Gtd) {
            (true, false) => self.deadlines.remove_dated(),
            (false, true) => self.deadlines.add_dated(),
            _ => {}
        }
        if new.tif == Tif::Gtd && new.tif_date != old.tif_date {
            self.orders.get_mut(slot).terms.tif_date = new.tif_date;
            self.note_date(slot);
        }
    }

    pub(super) fn refuse(
        &mut self,
        slot: u32,
        request: RequestKind,
        request_id: &IntId,
        source: Source,
        reason: Reason,
        out: &mut Outbox,
    ) {
        if request_id.is_none() && source.origin == Origin::Server {
            // No client waits for this answer; but an order that continues must be reported in its
            // current state.
            if !self.orders.get(slot).base.is_finished() {
                self.emit_status(slot, ExecType::Snapshot, reason, out);
            }
            return;
        }
        self.orders.get_mut(slot).updated = self.now;
        let refusal = RequestRefusal {
            order: self.orders.handle(slot),
            id: self.orders.get(slot).id,
            request_id: *request_id,
            source,
            request,
            status: self.orders.status(slot),
            reason,
        };
        let to = self.watchers.of_order(source).with(PortMask::one(self.orders.get(slot).source.port));
        out.emit(to, self.now, EventKind::Refused(refusal));
    }

    /// Returns how a request would be refused now, for a component that refuses it on behalf of the
    /// shard.
    pub fn refusal(
        &self,
        order: OrderHandle,
        request: RequestKind,
        request_id: IntId,
        source: Source,
        reason: Reason,
    ) -> RequestRefusal {
        let found = self.orders.find(order);
        let (id, status) = found.map_or((IntId::NONE, Status::Rejected), |slot| {
            (self.orders.get(slot).id, self.orders.status(slot))
        });
        RequestRefusal { order, id, request_id, source, request, status, reason }
    }

    fn refuse_unknown(
        &self,
        source: Source,
        order: OrderHandle,
        request_id: &IntId,
        request: RequestKind,
        out: &mut Outbox,
    ) {
        let refusal = RequestRefusal {
            order,
            id: IntId::NONE,
            request_id: *request_id,
            source,
            request,
            status: Status::Rejected,
            reason: Reason::UnknownOrder,
        };
        out.emit(self.watchers.of_order(source), self.now, EventKind::Refused(refusal));
    }
}
