//! The life cycle of an order: requests of clients, reports of venues. `tests/data/orders.txt`
//! shows each transition.

use pitlane_engine::command::{self, ExecRef};
use pitlane_engine::event::{Alert, ExecType, RequestKind};
use pitlane_engine::id::{IntId, OrderHandle, SecurityId, Source};
use pitlane_engine::number::{Money, Notional, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Status, Terms};

use super::order::{OrderBase, OrderPlace};
use super::{Report, Twin, TwinEvent, TwinRefusal};

// Requests of clients.
impl Twin {
    pub(super) fn submit(&mut self, source: Source, id: IntId, mut terms: Terms) {
        let is_incomplete = terms.special && self.special.is_none();
        if id.is_none() && is_incomplete {
            return self.events.push(TwinEvent::Unrecorded(Reason::LaneFull));
        }
        if id.is_none() {
            return self.events.push(TwinEvent::Unrecorded(Reason::BadId));
        }
        let reason = if is_incomplete { Reason::LaneFull } else { self.check(&terms, None) };
        terms.special &= !is_incomplete;
        let order = self.enter(source, id, terms);
        if reason != Reason::None {
            return self.reject(order, reason);
        }
        self.send(order);
    }

    pub(super) fn reject(&mut self, order: usize, reason: Reason) {
        self.orders[order].base = OrderBase::Rejected;
        self.report(order, ExecType::Rejected, reason);
    }

    /// Sends an order that has passed the checks.
    pub(super) fn send(&mut self, order: usize) {
        let terms = self.orders[order].terms;
        self.orders[order].reserved = self.reserve_for(&terms, None);
        self.sent.push((self.now, terms));
        self.asked.push((self.now, terms));
        self.report(order, ExecType::Entered, Reason::None);
        if terms.kind.has_stop() {
            self.accepted(order);
            self.place_stop(order);
        } else if self.is_simulated(terms.security) {
            self.accepted(order);
            self.arrive(order);
        } else {
            self.send_outside(order);
        }
        self.settle_stops(terms.security);
    }

    pub(super) fn send_outside(&mut self, order: usize) {
        self.orders[order].place = OrderPlace::Outside;
        (self.orders[order].sent, self.orders[order].asked) = (true, false);
    }

    pub(super) fn modify(&mut self, source: Source, handle: OrderHandle, id: IntId, changes: &Changes) {
        let _ = source;
        let Some(order) = self.order(handle) else {
            return self.refuse_unknown(id, RequestKind::Replace);
        };
        let terms = changes.applied_to(&self.orders[order].terms);
        if changes.special().is_none() {
            self.special = self.orders[order].special;
        }
        if terms.special && self.special.is_none() {
            return self.refuse(order, id, RequestKind::Replace, Reason::LaneFull);
        }
        let o = &self.orders[order];
        let stop_here = terms.qty.is_positive() && terms.qty.raw() <= o.cum;
        let reason = if o.is_over() {
            Reason::OrderFinished
        } else if o.cancel.is_some() || o.replace.is_some() {
            Reason::RequestPending
        } else if o.base == OrderBase::PendingNew {
            Reason::NotAcknowledged
        } else if o.terms.reduce_only {
            Reason::ReduceOnly
        } else if stop_here {
            // It cancels the rest, and a cancel is never checked.
            Reason::None
        } else {
            self.check(&terms, Some(order))
        };
        if reason != Reason::None {
            return self.refuse(order, id, RequestKind::Replace, reason);
        }
        let terms = match stop_here {
            true => Terms { qty: terms.qty, special: terms.special, ..o.terms },
            false => terms,
        };
        if !stop_here {
            self.asked.push((self.now, terms));
        }
        let price = self.trim_price(&terms).filter(|_| !stop_here);
        self.orders[order].asked_price = price;
        self.orders[order].requested_reserve =
            if stop_here { 0 } else { self.reserve_for(&terms, Some(order)) };
        self.orders[order].replace = Some((id, terms));
        self.orders[order].replace_special = self.special.filter(|_| terms.special);
        self.report_request(order, ExecType::ReplacePending, Reason::None, id);
        let local = self.orders[order].place != OrderPlace::Outside;
        if stop_here {
            self.orders[order].stop_here = true;
            self.pass_on(order);
            if local {
                self.stop_here(order);
            }
            return;
        }
        if local {
            self.replaced(order);
            self.settle_stops(terms.security);
        }
    }

    /// Ends the order as filled: the new quantity is filled already.
    fn stop_here(&mut self, order: usize) {
        let o = &mut self.orders[order];
        let (id, mut terms) = o.replace.take().expect("a modification is under way");
        (terms.qty, terms.special) = (Qty::from_raw(o.cum), o.terms.special);
        (o.orig_id, o.id, o.terms) = (o.id, id, terms);
        o.base = OrderBase::Filled;
        o.place = OrderPlace::Nowhere;
        o.in_doubt = false;
        (o.reserved, o.requested_reserve) = (0, 0);
        self.report(order, ExecType::Replaced, Reason::StopHere);
    }

    pub(super) fn cancel(&mut self, source: Source, handle: OrderHandle, id: IntId) {
        let _ = source;
        let Some(order) = self.order(handle) else {
            return self.refuse_unknown(id, RequestKind::Cancel);
        };
        let o = &self.orders[order];
        let reason = if o.is_over() {
            Reason::OrderFinished
        } else if o.cancel.is_some() {
            Reason::RequestPending
        } else {
            Reason::None
        };
        if reason != Reason::None {
            return self.refuse(order, id, RequestKind::Cancel, reason);
        }
        self.ask_cancel(order, id);
    }

    pub(super) fn ask_cancel(&mut self, order: usize, id: IntId) {
        self.orders[order].cancel = Some(id);
        self.report_request(order, ExecType::CancelPending, Reason::None, id);
        self.pass_on(order);
        if self.orders[order].place != OrderPlace::Outside {
            self.end(order, OrderBase::Canceled, ExecType::Canceled, Reason::Requested);
        }
    }

    /// Passes a cancel to the external venue once it is the next request; without a connection it
    /// is in doubt.
    pub(super) fn pass_on(&mut self, order: usize) {
        let o = &self.orders[order];
        let asked = o.cancel.is_some() && o.replace.is_none() || o.stop_here;
        let at_venue = o.place == OrderPlace::Outside && o.base == OrderBase::Working;
        if asked && at_venue && !self.is_connected(o.terms.security) {
            self.orders[order].in_doubt = true;
        }
    }

    pub(super) fn is_connected(&self, security: SecurityId) -> bool {
        self.adapters.get(&self.adapter_of(security)).copied().unwrap_or(false)
    }

    /// Returns whether an order sent now would leave the shard.
    pub(super) fn takes_orders(&self, security: SecurityId) -> bool {
        self.is_simulated(security) || self.is_connected(security) && !self.suspects.contains(&security)
    }

    /// Cancels open orders without a request of their source, so the request has no id.
    pub(super) fn cancel_where(&mut self, reason: Reason, which: impl Fn(&Twin, &Terms) -> bool) {
        for order in 0..self.orders.len() {
            let o = &self.orders[order];
            if o.is_over() || o.cancel.is_some() || !which(self, &o.terms) {
                continue;
            }
            self.orders[order].cancel = Some(IntId::NONE);
            self.report(order, ExecType::CancelPending, Reason::None);
            self.pass_on(order);
            if self.orders[order].place != OrderPlace::Outside {
                self.end(order, OrderBase::Canceled, ExecType::Canceled, reason);
            }
        }
    }
}

// Reports of a venue.
impl Twin {
    pub(super) fn venue_report(&mut self, handle: OrderHandle, report: command::VenueReport) {
        let Some(order) = self.order(handle) else {
            return self.alert(Alert::UnknownReport);
        };
        let security = self.orders[order].terms.security;
        let never_sent = self.orders[order].base == OrderBase::Rejected && !self.orders[order].sent;
        if self.reference.security(security).is_none() || self.is_simulated(security) || never_sent {
            return self.alert(Alert::UnexpectedReport);
        }
        self.handle_report(order, report);
    }

    pub(super) fn handle_report(&mut self, order: usize, report: command::VenueReport) {
        let over = self.orders[order].is_over();
        match report {
            command::VenueReport::Accepted => {
                self.orders[order].acknowledged = true;
                self.accepted(order);
            }
            command::VenueReport::Rejected(Reason::VenueUnavailable) if self.never_left(order) => {
                self.suspects.push(self.orders[order].terms.security);
                self.wait_again(order);
            }
            // It waits again already.
            command::VenueReport::Rejected(Reason::VenueUnavailable) if self.waits_for_price(order) => {}
            command::VenueReport::Rejected(reason) => self.venue_rejects(order, reason),
            command::VenueReport::Filled { exec, qty, price } => {
                self.execution(order, exec, qty, price);
            }
            command::VenueReport::Canceled(_) if over => self.alert(Alert::UnexpectedReport),
            command::VenueReport::Canceled(_)
                if self.stops_here(order) && self.orders[order].cancel.is_none() =>
            {
                self.stop_here(order);
                self.too_late(order);
            }
            command::VenueReport::Canceled(reason) => {
                self.end(order, OrderBase::Canceled, ExecType::Canceled, reason)
            }
            command::VenueReport::Expired(_) if over => self.alert(Alert::UnexpectedReport),
            command::VenueReport::Expired(reason) => {
                self.end(order, OrderBase::Expired, ExecType::Expired, reason)
            }
            // The venue's answer to a request that the end of the order has answered.
            command::VenueReport::CancelRefused(_) | command::VenueReport::ReplaceRefused(_) if over => {}
            // A cancel waits behind a modification, so the modification was refused.
            command::VenueReport::CancelRefused(reason) if self.orders[order].replace.is_some() => {
                self.handle_report(order, command::VenueReport::ReplaceRefused(reason));
            }
            command::VenueReport::CancelRefused(reason) => {
                let Some(id) = self.orders[order].cancel.take() else {
                    return self.alert(Alert::UnexpectedReport);
                };
                self.refuse(order, id, RequestKind::Cancel, reason);
                let terms = self.orders[order].terms;
                self.refuse_closing(&terms, reason);
                self.ask_after_refusal(order, reason);
            }
            command::VenueReport::Replaced if over => self.alert(Alert::UnexpectedReport),
            command::VenueReport::Replaced => {
                if self.orders[order].replace.is_none() {
                    return self.alert(Alert::UnexpectedReport);
                }
                self.replaced(order);
            }
            command::VenueReport::ReplaceRefused(reason) => {
                let Some((id, _)) = self.orders[order].replace.take() else {
                    return self.alert(Alert::UnexpectedReport);
                };
                self.orders[order].stop_here = false;
                self.orders[order].requested_reserve = 0;
                self.refuse(order, id, RequestKind::Replace, reason);
                self.ask_after_refusal(order, reason);
                self.pass_on(order);
            }
            command::VenueReport::Reconciled => self.reconciled(order),
            command::VenueReport::Busted { exec } => {
                self.amend(order, exec, ExecRef(0), Qty::ZERO, Price::ZERO, !over);
            }
            command::VenueReport::Corrected { exec, qty, price } => {
                self.amend(order, exec, ExecRef(0), qty, price, !over);
            }
            command::VenueReport::Amended { exec_ref, exec, qty, price, is_open } => {
                self.amend(order, exec_ref, exec, qty, price, is_open);
            }
            command::VenueReport::FilledTo { exec, qty, price, cum } => {
                self.filled_to(order, exec, (qty, price), cum, None);
            }
            command::VenueReport::FilledWithFee { exec, qty, price, cum, fee } => {
                self.filled_to(order, exec, (qty, price), cum, Some(fee));
            }
            command::VenueReport::Standing { cum, average, state } => {
                self.standing(order, cum, average, state)
            }
            command::VenueReport::Unsure => self.unsure(order),
        }
    }

    /// Returns whether the pending modification requests no more than is filled.
    pub(super) fn stops_here(&self, order: usize) -> bool {
        let o = &self.orders[order];
        o.replace.is_some_and(|(_, terms)| terms.qty.raw() <= o.cum)
    }

    pub(super) fn accepted(&mut self, order: usize) {
        if self.orders[order].base == OrderBase::PendingNew {
            self.orders[order].base = OrderBase::Working;
            self.report(order, ExecType::Accepted, Reason::None);
            self.pass_on(order);
        }
    }

    pub(super) fn venue_rejects(&mut self, order: usize, reason: Reason) {
        match self.orders[order].base {
            OrderBase::PendingNew => self.end(order, OrderBase::Rejected, ExecType::Rejected, reason),
            OrderBase::Working => {
                self.alert(Alert::LateReject);
                // The venue did not answer the cancel: it fails like any other request.
                let cancel = self.orders[order].cancel.take();
                self.end(order, OrderBase::Canceled, ExecType::Canceled, reason);
                if let Some(id) = cancel {
                    self.refuse(order, id, RequestKind::Cancel, Reason::OrderFinished);
                }
            }
            OrderBase::Filled | OrderBase::Canceled | OrderBase::Rejected | OrderBase::Expired => {
                self.alert(Alert::UnexpectedReport);
            }
        }
    }

    /// A fill is a fact: whatever the state, it is counted and booked.
    pub(super) fn fill(&mut self, order: usize, qty: i64, price: i64) {
        self.fill_for(order, qty, price, Reason::None);
    }

    pub(super) fn fill_for(&mut self, order: usize, qty: i64, price: i64, reason: Reason) {
        self.accepted(order);
        self.orders[order].acknowledged = true;
        let late = self.orders[order].is_over();
        let left = self.orders[order].leaves();
        let o = &mut self.orders[order];
        if left > 0 {
            let part = Qty::from_raw(qty.min(left));
            let share = Money::from_raw(o.reserved).share(part, Qty::from_raw(left));
            o.reserved -= share.expect("a part fits").raw();
        }
        o.cum += qty;
        o.notional += qty as i128 * price as i128;
        let over = o.cum > o.terms.qty.raw();
        let reason = match (over, late) {
            (true, _) => Reason::Overfill,
            (false, true) => Reason::LateFill,
            (false, false) => reason,
        };
        if o.cum >= o.terms.qty.raw() {
            o.base = OrderBase::Filled;
            o.place = OrderPlace::Nowhere;
            (o.reserved, o.requested_reserve) = (0, 0);
        }
        if over {
            self.alert(Alert::Overfill);
        } else if late {
            self.alert(Alert::LateFill);
        }
        self.report_fill(order, reason, qty, price);
        self.book_fill(order, qty, price);
        let Terms { strategy, security, .. } = self.orders[order].terms;
        self.check_excess(strategy, security);
        if self.orders[order].is_over() {
            self.too_late(order);
        }
    }

    /// Refuses pending requests of an order that has ended.
    pub(super) fn too_late(&mut self, order: usize) {
        self.orders[order].stop_here = false;
        self.orders[order].unsure = false;
        self.orders[order].in_doubt = false;
        if let Some((id, _)) = self.orders[order].replace.take() {
            self.refuse(order, id, RequestKind::Replace, Reason::OrderFinished);
        }
        if let Some(id) = self.orders[order].cancel.take() {
            self.refuse(order, id, RequestKind::Cancel, Reason::OrderFinished);
        }
    }

    /// Ends the order by something other than a fill.
    pub(super) fn end(&mut self, order: usize, base: OrderBase, what: ExecType, reason: Reason) {
        let o = &mut self.orders[order];
        assert!(!o.is_over(), "an order ends once");
        o.base = base;
        o.place = OrderPlace::Nowhere;
        o.in_doubt = false;
        (o.reserved, o.requested_reserve) = (0, 0);
        let asked =
            if base == OrderBase::Canceled && what == ExecType::Canceled { o.cancel.take() } else { None };
        match asked {
            Some(id) if !id.is_none() => self.report_request(order, what, reason, id),
            Some(_) | None => self.report(order, what, reason),
        }
        self.too_late(order);
    }

    /// Applies the modification.
    pub(super) fn replaced(&mut self, order: usize) {
        let o = &mut self.orders[order];
        let (id, terms) = o.replace.take().expect("a modification is under way");
        let before = o.terms;
        (o.orig_id, o.id, o.terms) = (o.id, id, terms);
        o.special = o.replace_special.take();
        o.reserved += std::mem::take(&mut o.requested_reserve);
        if o.cum >= terms.qty.raw() {
            // Overtaken by fills: the requested quantity is filled already.
            o.terms.qty = Qty::from_raw(o.cum);
            o.base = OrderBase::Filled;
            o.place = OrderPlace::Nowhere;
            o.reserved = 0;
        }
        self.trim_credit(order);
        self.report(order, ExecType::Replaced, Reason::None);
        if self.orders[order].is_over() {
            return self.too_late(order);
        }
        self.pass_on(order);
        self.moved(order, &before);
    }
}

// Output.
impl Twin {
    pub(super) fn image(&self, order: usize, what: ExecType, reason: Reason) -> Report {
        let o = &self.orders[order];
        Report {
            order,
            id: o.id,
            orig_id: o.orig_id,
            what,
            status: o.status(),
            reason,
            qty: o.terms.qty,
            cum_qty: Qty::from_raw(o.cum),
            avg_price: Notional::from_raw(o.notional).average(Qty::from_raw(o.cum)),
            last_qty: Qty::ZERO,
            last_price: Price::ZERO,
            in_doubt: o.in_doubt && !o.is_over(),
        }
    }

    pub(super) fn report(&mut self, order: usize, what: ExecType, reason: Reason) {
        let line = self.image(order, what, reason);
        self.events.push(TwinEvent::Report(line));
    }

    fn report_fill(&mut self, order: usize, reason: Reason, qty: i64, price: i64) {
        let line = Report {
            last_qty: Qty::from_raw(qty),
            last_price: Price::from_raw(price),
            ..self.image(order, ExecType::Filled, reason)
        };
        self.events.push(TwinEvent::Report(line));
    }

    /// Reports a request: under its id, with the order's own id as the original.
    fn report_request(&mut self, order: usize, what: ExecType, reason: Reason, id: IntId) {
        let orig_id = self.orders[order].id;
        let line = Report { id, orig_id, ..self.image(order, what, reason) };
        self.events.push(TwinEvent::Report(line));
    }

    fn refuse(&mut self, order: usize, request_id: IntId, request: RequestKind, reason: Reason) {
        if request_id.is_none() && request == RequestKind::Cancel {
            // The cancel has no request id, so it gets no answer; an order that continues reports
            // its status.
            if !self.orders[order].is_over() {
                self.report(order, ExecType::Snapshot, reason);
            }
            return;
        }
        let status = self.orders[order].status();
        self.events.push(TwinEvent::Refused(TwinRefusal {
            order: Some(order),
            request_id,
            request,
            status,
            reason,
        }));
    }

    fn refuse_unknown(&mut self, request_id: IntId, request: RequestKind) {
        self.events.push(TwinEvent::Refused(TwinRefusal {
            order: None,
            request_id,
            request,
            status: Status::Rejected,
            reason: Reason::UnknownOrder,
        }));
    }
}
