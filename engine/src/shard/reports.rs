//! Reports of venues: acknowledgements, fills, ends. The simulated venue and outside ones are
//! handled alike.

use super::Shard;
use super::reconcile::Amendment;
use crate::command::{ExecRef, MovementKind, VenueFee, VenueReport};
use crate::event::{Alert, EventKind, ExecType, RequestKind};
use crate::id::{OrderHandle, SecurityId};
use crate::ledger::{FeeCharge, SecurityTransaction};
use crate::number::{Money, Notional, Price, Qty};
use crate::order::{Base, NIL, Requests, Step};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::Side;
use crate::venue::VenueOutcome;

/// A fill that is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub exec: ExecRef,
    pub qty: Qty,
    pub price: Price,
    /// Fee of the venue; `None`: the commission of the family counts.
    pub fee: Option<VenueFee>,
}

impl Shard {
    /// Handles an outside venue's report. The simulated venue does not use it.
    pub(super) fn venue_report(&mut self, handle: OrderHandle, report: &VenueReport, out: &mut Outbox) {
        let Some(slot) = self.orders.find(handle) else {
            return self.alert(Alert::UnknownReport, handle, Default::default(), Reason::UnknownOrder, out);
        };
        let order = self.orders.get(slot);
        let is_outside = order.local != NIL && !self.directory.is_simulated(order.local);
        // The shard refused the order, so its venue cannot know it.
        let was_refused = order.base == Base::Rejected && !order.at_venue();
        if !is_outside || was_refused {
            return self.alert_unexpected(slot, out);
        }
        self.report(slot, report, out);
    }

    /// Handles the new outcomes of the simulated venue.
    #[inline]
    pub(super) fn handle_outcomes(&mut self, out: &mut Outbox) {
        let mut handled = 0;
        if !self.book_orders.is_empty() {
            self.note_order_trades();
        }
        // Prefetches all orders concerned while the first of them are handled.
        self.venue.outcomes().iter().for_each(|&(slot, _)| self.orders.fetch(slot));
        while let Some(&(slot, outcome)) = self.venue.outcomes().get(handled) {
            handled += 1;
            if matches!(outcome, VenueOutcome::Filled { .. }) {
                // The market moves when the venue trades, however long the report takes.
                self.continuation.mark_moved();
            }
            if self.deadlines.is_delayed() {
                self.delay_outcome(slot, outcome, out);
            } else {
                self.handle_outcome(slot, outcome, out);
            }
        }
        self.venue.clear_outcomes();
    }

    #[inline]
    fn handle_outcome(&mut self, slot: u32, outcome: VenueOutcome, out: &mut Outbox) {
        match outcome {
            VenueOutcome::Accepted => self.accepted(slot, out),
            VenueOutcome::Rejected(reason) => self.rejected(slot, reason, out),
            VenueOutcome::Filled { qty, price } => self.filled(slot, ExecRef(0), qty, price, out),
            VenueOutcome::Canceled(reason) => self.ended(slot, Step::Cancel, reason, out),
            VenueOutcome::Expired(reason) => self.ended(slot, Step::Expire, reason, out),
            VenueOutcome::CancelRefused(reason) => self.cancel_refused(slot, reason, out),
            VenueOutcome::Replaced => self.replaced_by_venue(slot, out),
            VenueOutcome::ReplaceRefused(reason) => self.replace_refused(slot, reason, out),
        }
    }

    /// Delays an outcome of the venue if the transit takes time.
    fn delay_outcome(&mut self, slot: u32, outcome: VenueOutcome, out: &mut Outbox) {
        let local = self.orders.get(slot).local;
        let delays = self.delays(local);
        if delays.response_ns == 0 && delays.response_jitter_ns == 0 {
            return self.handle_outcome(slot, outcome, out);
        }
        let (order, report) = (self.orders.handle(slot), report_of(outcome));
        self.deadlines.send_from_venue(self.now, local, &delays, order, report);
    }

    #[inline]
    pub(super) fn report(&mut self, slot: u32, report: &VenueReport, out: &mut Outbox) {
        match *report {
            VenueReport::Accepted => self.accepted(slot, out),
            VenueReport::Rejected(reason) => self.rejected(slot, reason, out),
            VenueReport::Filled { exec, qty, price } => self.filled(slot, exec, qty, price, out),
            VenueReport::Canceled(reason) => self.ended(slot, Step::Cancel, reason, out),
            VenueReport::Expired(reason) => self.ended(slot, Step::Expire, reason, out),
            VenueReport::CancelRefused(reason) => self.cancel_refused(slot, reason, out),
            VenueReport::Replaced => self.replaced_by_venue(slot, out),
            VenueReport::ReplaceRefused(reason) => self.replace_refused(slot, reason, out),
            VenueReport::Busted { .. } | VenueReport::Corrected { .. } | VenueReport::Amended { .. } => {
                self.amended(slot, &Amendment::of(report, !self.orders.get(slot).base.is_finished()), out)
            }
            VenueReport::Reconciled => self.reconciled(slot, out),
            VenueReport::FilledTo { exec, qty, price, cum } => {
                self.filled_to(slot, &Fill { exec, qty, price, fee: None }, cum, out)
            }
            VenueReport::FilledWithFee { exec, qty, price, cum, fee } => {
                self.filled_to(slot, &Fill { exec, qty, price, fee: Some(fee) }, cum, out)
            }
            VenueReport::Standing { cum, average, state } => {
                self.order_state_reported(slot, cum, average, state, out)
            }
            VenueReport::Unsure => self.mark_unsure(slot, out),
        }
    }

    #[inline]
    pub(super) fn accepted(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        order.set_acknowledged(true);
        match order.base {
            Base::PendingNew => {
                order.base = Base::Working;
                // A triggered stop was acknowledged when it began to wait.
                self.emit_status(slot, ExecType::Accepted, Reason::None, out);
                self.send_cancel(slot, out);
            }
            // Late, and nothing new.
            Base::Working | Base::Filled | Base::Canceled | Base::Rejected | Base::Expired => {}
        }
    }

    pub(super) fn rejected(&mut self, slot: u32, reason: Reason, out: &mut Outbox) {
        if reason == Reason::VenueUnavailable && self.orders.get(slot).is_unsent_stop() {
            // Until the adapter reports its connection, nothing more is sent there.
            let local = self.orders.get(slot).local;
            self.directory.locals[local as usize].suspect = true;
            return self.rearm_stop(slot, out);
        }
        let order = self.orders.get_mut(slot);
        if reason == Reason::VenueUnavailable && order.waits_for_trigger() && !order.base.is_finished() {
            // The adapter repeats after a restart that the stop never left. It waits again already.
            return;
        }
        let left = order.leaves();
        let Some(base) = order.base.after(Step::Reject) else {
            return self.alert_unexpected(slot, out);
        };
        order.base = base;
        if base == Base::Rejected {
            self.emit_status(slot, ExecType::Rejected, reason, out);
        } else {
            self.emit_status(slot, ExecType::Canceled, reason, out);
            if !self.directory.is_simulated(self.orders.get(slot).local) {
                self.alert_order(Alert::LateReject, slot, reason, out);
            }
        }
        self.finish(slot, left, out);
    }

    #[inline]
    fn filled(&mut self, slot: u32, exec: ExecRef, qty: Qty, price: Price, out: &mut Outbox) {
        if self.check_execution(slot, exec, qty, price, out) {
            self.count_fill(slot, &Fill { exec, qty, price, fee: None }, Reason::None, out);
        }
    }

    /// Counts a checked fill. `reason` says why it is counted, if the venue did not report it as a
    /// fill.
    #[inline]
    pub(super) fn count_fill(&mut self, slot: u32, fill: &Fill, reason: Reason, out: &mut Outbox) {
        let Fill { exec, qty, price, .. } = *fill;
        if self.orders.get(slot).base == Base::PendingNew {
            self.accepted(slot, out);
        }
        if self.orders.get(slot).base.is_finished() {
            self.republish_if_past(slot, out);
        }
        let order = self.orders.get(slot);
        let (source, total) = (order.source, order.terms.qty);
        let (left, ended) = (order.leaves(), order.base.is_finished());
        let (local, position) = (order.local, order.position);
        let sums = order.cum.checked_add(qty).zip(order.notional.checked_add(Notional::of(price, qty)));
        let Some((cum, notional)) = sums else {
            return self.handle_overflow(slot, exec, out);
        };
        let taken = qty.min(left);
        let released = self.take_share(slot, taken, left);
        self.take_open(slot, taken, released);
        let booked = self.book_fill(slot, fill, out);
        if booked.is_none() {
            self.count_credit_of(slot, out);
        }
        self.check_excess(local, position);
        let complete = cum >= total;
        let order = self.orders.get_mut(slot);
        (order.cum, order.notional) = (cum, notional);
        order.set_acknowledged(true);
        let step = if complete { Step::Complete } else { Step::Fill };
        order.base = order.base.after(step).expect("a fill is a fact in every state");
        self.orders.set_last_fill(slot, qty, price);
        let reason = match (ended, cum > total) {
            _ if booked.is_none() => Reason::Overflow,
            (_, true) => Reason::Overfill,
            (true, false) => Reason::LateFill,
            (false, false) => reason,
        };
        self.emit_fill_status(slot, ExecType::Filled, reason, (qty, price), out);
        if booked.is_some() {
            out.emit_booked(self.watchers.of_order(source), self.now, self.ledger.last_booked());
        } else {
            // The order has traded all the same, and continues with its remaining quantity at its
            // venue.
            self.handle_overflow(slot, exec, out);
        }
        if reason == Reason::Overfill {
            self.alert_order(Alert::Overfill, slot, reason, out);
        } else if reason == Reason::LateFill {
            self.alert_order(Alert::LateFill, slot, reason, out);
        }
        if complete && !ended {
            self.finish(slot, left.checked_sub(taken).unwrap_or_default(), out);
        }
    }

    /// Books a fill. Returns `None` if it cannot be counted.
    #[inline]
    fn book_fill(&mut self, slot: u32, fill: &Fill, out: &mut Outbox) -> Option<()> {
        let deal = self.deal_of(slot, fill)?;
        let order = self.orders.get(slot);
        self.book(order.local, order.position, &deal, out)
    }

    /// Returns whether an execution is to be counted: it has a quantity, and was not seen before.
    #[inline]
    pub(super) fn check_execution(
        &mut self,
        slot: u32,
        exec: ExecRef,
        qty: Qty,
        price: Price,
        out: &mut Outbox,
    ) -> bool {
        if exec == ExecRef(0) && self.directory.is_simulated(self.orders.get(slot).local) {
            return true;
        }
        if !qty.is_positive() {
            self.alert_unexpected(slot, out);
            return false;
        }
        if exec == ExecRef(0) {
            return true;
        }
        if self.orders.has_execution(slot, exec) {
            self.alert_order(Alert::DuplicateExecution, slot, Reason::None, out);
            return false;
        }
        if !self.orders.remember(slot, exec, qty, price) {
            self.alert_order(Alert::ExecutionsFull, slot, Reason::None, out);
        }
        true
    }

    /// Returns the transaction of a fill; `None` if its commission cannot be counted.
    #[inline(always)]
    pub(super) fn deal_of(&self, slot: u32, fill: &Fill) -> Option<SecurityTransaction> {
        let Fill { exec, qty, price, fee } = *fill;
        let order = self.orders.get(slot);
        let security = &self.directory.locals[order.local as usize];
        let commission = match fee {
            None if security.commission.is_zero() => Money::ZERO,
            None => Money::per_unit(security.commission, qty)?,
            Some(fee) if fee.currency == security.instrument.currency => fee.amount,
            // It has a transaction of its own.
            Some(_) => Money::ZERO,
        };
        Some(SecurityTransaction {
            kind: if order.terms.side == Side::Buy { MovementKind::Buy } else { MovementKind::Sell },
            account: order.terms.account,
            qty: order.terms.side.signed(qty),
            price,
            commission,
            order: self.orders.handle(slot),
            order_id: order.id,
            exec,
            exposure: Some(order.exposure),
        })
    }

    /// Books a fee as a transaction of its own: in another currency than that of the security, or
    /// of a fill that was booked before its fee was known.
    #[cold]
    pub(super) fn book_fee(&mut self, slot: u32, exec: ExecRef, fee: VenueFee, out: &mut Outbox) {
        if fee.amount.is_zero() {
            return;
        }
        let order = self.orders.get(slot);
        let (local, source) = (order.local, order.source);
        let charge = FeeCharge {
            position: order.position,
            account: order.terms.account,
            order: self.orders.handle(slot),
            order_id: order.id,
            exec,
            fee,
        };
        let instrument = self.directory.locals[local as usize].instrument;
        match self.ledger.book_fee(self.now, &instrument, &charge) {
            Some(()) => {
                out.emit_booked(self.watchers.of_order(source), self.now, self.ledger.last_booked());
            }
            None => self.halt_on_overflow(slot, out),
        }
    }

    /// Handles a fill so large that its money cannot be counted: it is reported, not booked, and
    /// the security is halted. There is nothing that a correction could take back.
    #[cold]
    pub(super) fn handle_overflow(&mut self, slot: u32, exec: ExecRef, out: &mut Outbox) {
        self.orders.correct(slot, exec, Qty::ZERO, Price::ZERO);
        self.halt_on_overflow(slot, out);
    }

    #[cold]
    pub(super) fn halt_on_overflow(&mut self, slot: u32, out: &mut Outbox) {
        let local = self.orders.get(slot).local;
        self.alert_order(Alert::BookingOverflow, slot, Reason::Overflow, out);
        if !self.directory.locals[local as usize].halted {
            self.continuation.halt_later(local);
            self.continuation.set_busy(local);
        }
    }

    /// Ends an order without a fill.
    pub(super) fn ended(&mut self, slot: u32, step: Step, reason: Reason, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let Some(base) = order.base.after(step) else {
            return self.alert_unexpected(slot, out);
        };
        let (cum, left) = (order.cum, order.leaves());
        let requests = self.orders.requests(slot);
        let is_asked = requests.is_some_and(|requests| requests.cancel.is_some());
        let stop_here =
            requests.and_then(|requests| requests.replace).is_some_and(|replace| replace.terms.qty <= cum);
        if stop_here && step == Step::Cancel && !is_asked {
            return self.stopped_here(slot, out);
        }
        self.orders.get_mut(slot).base = base;
        if is_asked && step == Step::Cancel {
            self.emit_canceled(slot, reason, out);
        } else {
            let what = if step == Step::Expire { ExecType::Expired } else { ExecType::Canceled };
            self.emit_status(slot, what, reason, out);
        }
        self.finish(slot, left, out);
    }

    /// Answers a pending cancel: the order is cancelled as requested.
    #[inline]
    fn emit_canceled(&mut self, slot: u32, reason: Reason, out: &mut Outbox) {
        if let Some(&Requests { cancel: Some(cancel), .. }) = self.orders.requests(slot) {
            let reason = if reason == Reason::Requested { cancel.reason } else { reason };
            self.emit_request_status(slot, ExecType::Canceled, reason, &cancel.id, cancel.source, out);
        }
        self.orders.requests_mut(slot).cancel = None;
        self.orders.release_answered(slot);
    }

    fn cancel_refused(&mut self, slot: u32, reason: Reason, out: &mut Outbox) {
        let requests = self.orders.requests(slot).copied().unwrap_or_default();
        match requests.cancel {
            // The venue was only asked to cancel the rest of a modification; the cancel waits
            // behind that.
            Some(cancel) if requests.replace.is_some() && !cancel.sent => {
                self.replace_refused(slot, reason, out)
            }
            Some(cancel) => {
                self.orders.requests_mut(slot).cancel = None;
                self.orders.release_answered(slot);
                self.refuse(slot, RequestKind::Cancel, &cancel.id, cancel.source, reason, out);
                self.refuse_close(slot, reason);
                self.query_after_refusal(slot, reason, out);
            }
            None => self.replace_refused(slot, reason, out),
        }
    }

    fn replaced_by_venue(&mut self, slot: u32, out: &mut Outbox) {
        if self.orders.get(slot).base.is_finished() {
            return self.alert_unexpected(slot, out);
        }
        self.replaced(slot, out);
    }

    fn replace_refused(&mut self, slot: u32, reason: Reason, out: &mut Outbox) {
        match self.drop_replace(slot, out) {
            Some(replace) => {
                self.refuse(slot, RequestKind::Replace, &replace.id, replace.source, reason, out);
                self.query_after_refusal(slot, reason, out);
                self.send_cancel(slot, out);
            }
            // Answered already: the order ended first.
            None if self.orders.get(slot).base.is_finished() => {}
            None => self.alert_unexpected(slot, out),
        }
    }

    /// Clears up after an order that has just ended with `left` open: counts, credit, date, pending
    /// requests.
    pub(super) fn finish(&mut self, slot: u32, left: Qty, out: &mut Outbox) {
        let order = self.orders.get(slot);
        assert!(order.base.is_finished(), "only an ended order is cleared up");
        if order.waits_for_trigger() {
            self.drop_stop(slot);
        }
        if self.orders.get(slot).requests == NIL {
            self.discount(slot, left, out);
        } else {
            self.finish_requests(slot, left, out);
        }
        if !self.closes.is_empty() {
            self.continuation.recheck_closes();
        }
        self.add_finished(slot, out);
    }

    /// Discounts an order that has just ended with `left` open, and refuses its pending requests.
    #[inline(never)]
    fn finish_requests(&mut self, slot: u32, left: Qty, out: &mut Outbox) {
        let replace = self.drop_replace(slot, out);
        self.discount(slot, left, out);
        if let Some(replace) = replace {
            self.refuse(slot, RequestKind::Replace, &replace.id, replace.source, Reason::OrderFinished, out);
        }
        if let Some(cancel) = self.orders.requests(slot).and_then(|requests| requests.cancel) {
            self.orders.requests_mut(slot).cancel = None;
            self.orders.release_answered(slot);
            self.refuse(slot, RequestKind::Cancel, &cancel.id, cancel.source, Reason::OrderFinished, out);
        }
    }

    /// Takes from the open quantity of an order, and releases credit that was reserved for it.
    #[inline(always)]
    pub(super) fn take_open(&mut self, slot: u32, qty: Qty, released: Money) {
        if !qty.is_positive() && released.is_zero() {
            return;
        }
        let (order, qty) = (self.orders.get(slot), qty.max(Qty::ZERO));
        self.ledger.add_open(order, Qty::from_raw(-qty.raw()), Money::from_raw(-released.raw()));
        if order.terms.reduce_only {
            let (position, _) = self.ledger.counts_mut(order);
            position.reducing = position.reducing.checked_sub(qty).expect("what reduces was added before");
        }
    }

    #[cold]
    pub(super) fn alert_unexpected(&mut self, slot: u32, out: &mut Outbox) {
        self.alert_order(Alert::UnexpectedReport, slot, Reason::None, out);
    }

    #[cold]
    pub(super) fn alert_order(&mut self, alert: Alert, slot: u32, reason: Reason, out: &mut Outbox) {
        let security = self.orders.get(slot).terms.security;
        self.alert(alert, self.orders.handle(slot), security, reason, out);
    }

    fn alert(
        &mut self,
        alert: Alert,
        order: OrderHandle,
        security: SecurityId,
        reason: Reason,
        out: &mut Outbox,
    ) {
        self.emit(EventKind::Alert { alert, order, security, reason }, out);
    }
}

fn report_of(outcome: VenueOutcome) -> VenueReport {
    match outcome {
        VenueOutcome::Accepted => VenueReport::Accepted,
        VenueOutcome::Rejected(reason) => VenueReport::Rejected(reason),
        VenueOutcome::Filled { qty, price } => VenueReport::Filled { exec: ExecRef(0), qty, price },
        VenueOutcome::Canceled(reason) => VenueReport::Canceled(reason),
        VenueOutcome::Expired(reason) => VenueReport::Expired(reason),
        VenueOutcome::CancelRefused(reason) => VenueReport::CancelRefused(reason),
        VenueOutcome::Replaced => VenueReport::Replaced,
        VenueOutcome::ReplaceRefused(reason) => VenueReport::ReplaceRefused(reason),
    }
}
