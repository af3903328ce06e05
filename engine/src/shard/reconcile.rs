//! Late reports of an outside venue: fills that are taken back or corrected, and the status of an
//! order when messages of the venue were lost. Only here can an order that had ended work again.
//!
//! ```text
//! messages lost, a refusal that contradicts our state, a fill that does not add up ──► unsure ──► status query (H)
//! its answer ──► missed fills are booked ──► the order continues, ends, or stays unknown for a person to check
//! ```
//!
//! Rules: docs/engine-rules.md#reconciliation.

use super::Shard;
use super::reports::Fill;
use crate::command::{ExecRef, VenueFee, VenueReport, VenueState};
use crate::event::{Alert, EventKind, ExecType, VenueRequest};
use crate::id::Currency;
use crate::ledger::SecurityTransaction;
use crate::number::{Money, Notional, Price, Qty};
use crate::order::{Base, Order, Step};
use crate::orders::RecordedFee;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::{Side, Tif};

/// A fill that is taken back, or given another quantity and price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amendment {
    exec_ref: ExecRef,
    /// Zero: the report has no id of its own.
    exec: ExecRef,
    qty: Qty,
    price: Price,
    is_open: bool,
    reason: Reason,
}

impl Amendment {
    /// Converts a report. `is_open` says whether the order works, where the report does not.
    pub(super) fn of(report: &VenueReport, is_open: bool) -> Amendment {
        let (exec_ref, exec, qty, price, is_open) = match *report {
            VenueReport::Amended { exec_ref, exec, qty, price, is_open } => {
                (exec_ref, exec, qty, price, is_open)
            }
            VenueReport::Corrected { exec, qty, price } => (exec, ExecRef(0), qty, price, is_open),
            VenueReport::Busted { exec } => (exec, ExecRef(0), Qty::ZERO, Price::ZERO, is_open),
            VenueReport::Accepted
            | VenueReport::Rejected(_)
            | VenueReport::Filled { .. }
            | VenueReport::Canceled(_)
            | VenueReport::Expired(_)
            | VenueReport::CancelRefused(_)
            | VenueReport::Replaced
            | VenueReport::ReplaceRefused(_)
            | VenueReport::Reconciled
            | VenueReport::FilledTo { .. }
            | VenueReport::FilledWithFee { .. }
            | VenueReport::Standing { .. }
            | VenueReport::Unsure => unreachable!("only the others amend a fill"),
        };
        let reason = if qty.is_zero() { Reason::Bust } else { Reason::Correction };
        Amendment { exec_ref, exec, qty, price, is_open, reason }
    }
}

/// Fills that are taken back or corrected.
impl Shard {
    /// Replaces the old fill by the new one: in the money, in the filled and remaining quantities,
    /// and in the credit. A filled order that has a remaining quantity again, and works at its
    /// venue, is reopened.
    pub(super) fn amended(&mut self, slot: u32, amendment: &Amendment, out: &mut Outbox) {
        let Amendment { exec_ref, exec, qty, reason, .. } = *amendment;
        // A quantity of zero has no price.
        let price = if qty.is_zero() { Price::ZERO } else { amendment.price };
        if exec != ExecRef(0) && self.orders.has_execution(slot, exec) {
            return self.alert_order(Alert::DuplicateExecution, slot, Reason::None, out);
        }
        let Some(&old) = self.orders.execution(slot, exec_ref).filter(|old| !old.qty.is_zero()) else {
            self.alert_order(Alert::UnexpectedReport, slot, Reason::UnknownExecution, out);
            return self.query_status(slot, out);
        };
        if qty.is_negative() {
            return self.alert_unexpected(slot, out);
        }
        if self.orders.get(slot).base.is_finished() {
            self.republish_if_past(slot, out);
        }
        // The booking uses the id of the execution, regardless of its corrections.
        let exec_ref = old.exec;
        let fee = self.orders.fee(slot, exec_ref).and_then(RecordedFee::of_fill);
        if !self.take_back(slot, &Fill { exec: exec_ref, qty: old.qty, price: old.price, fee }, out) {
            return self.halt_on_overflow(slot, out);
        }
        if qty.is_zero() {
            self.return_fee(slot, exec_ref, out);
        }
        let cum = self.orders.get(slot).cum.checked_add(qty);
        let is_short = cum.is_some_and(|cum| cum < self.orders.get(slot).terms.qty);
        let order = self.orders.get(slot);
        if order.base == Base::Filled && order.at_venue() && amendment.is_open && is_short {
            self.reopen(slot, out);
            // A waiting close has not cancelled this order, so it would wait for ever.
            self.refuse_close(slot, reason);
        }
        self.orders.correct(slot, exec_ref, qty, price);
        if exec != ExecRef(0) && !self.orders.remember_correction(slot, exec_ref, exec) {
            self.alert_order(Alert::ExecutionsFull, slot, Reason::None, out);
        }
        // A correction has no fee, so the fill keeps that which it had.
        let is_counted =
            qty.is_zero() || self.count_again(slot, &Fill { exec: exec_ref, qty, price, fee }, out);
        let order = self.orders.get(slot);
        self.check_excess(order.local, order.position);
        if !is_counted {
            return self.handle_overflow(slot, exec_ref, out);
        }
        self.orders.set_last_fill(slot, qty, price);
        let order = self.orders.get_mut(slot);
        let left = order.leaves();
        let completes = !order.base.is_finished() && !left.is_positive();
        if completes {
            order.base = Base::Filled;
        }
        let is_over = self.orders.get(slot).cum > self.orders.get(slot).terms.qty && !qty.is_zero();
        let reason = if is_over { Reason::Overfill } else { reason };
        self.emit_fill_status(slot, ExecType::Corrected, reason, (qty, price), out);
        if is_over {
            self.alert_order(Alert::Overfill, slot, reason, out);
        }
        if completes {
            self.finish(slot, Qty::ZERO, out);
        }
    }

    /// Removes a fill. Returns false, and changes nothing, if the money cannot be counted.
    fn take_back(&mut self, slot: u32, fill: &Fill, out: &mut Outbox) -> bool {
        let Fill { qty, price, .. } = *fill;
        let order = *self.orders.get(slot);
        let negative = Qty::from_raw(-qty.raw());
        let sums = order.cum.checked_sub(qty).zip(order.notional.checked_sub(Notional::of(price, qty)));
        let deal = self.deal_of(slot, &Fill { qty: negative, ..*fill }).and_then(|deal| {
            // The commission comes back as well.
            Some(SecurityTransaction { commission: deal.commission.checked_neg()?, ..deal })
        });
        let (Some((cum, notional)), Some(deal)) = (sums, deal) else { return false };
        if !order.base.is_finished() && !self.has_open_room(&order, qty) {
            return false;
        }
        if self.book(order.local, order.position, &deal, out).is_none() {
            return false;
        }
        out.emit(
            self.watchers.of_order(order.source),
            self.now,
            EventKind::Booked(*self.ledger.last_booked()),
        );
        let place = self.orders.get_mut(slot);
        (place.cum, place.notional) = (cum, notional);
        if !order.base.is_finished() {
            self.add_open(slot, qty, out);
        }
        true
    }

    /// Returns the fee of a fill that was taken back, if it had a transaction of its own. Otherwise
    /// it has come back as the commission of the fill.
    fn return_fee(&mut self, slot: u32, exec: ExecRef, out: &mut Outbox) {
        let Some(RecordedFee { fee, is_late }) = self.orders.take_fee(slot, exec) else { return };
        if !is_late && fee.currency == self.currency_of(slot) {
            return;
        }
        match fee.amount.checked_neg() {
            Some(amount) => self.book_fee(slot, exec, VenueFee { amount, ..fee }, out),
            None => self.halt_on_overflow(slot, out),
        }
    }

    /// Returns the currency of the security of an order.
    fn currency_of(&self, slot: u32) -> Currency {
        self.directory.locals[self.orders.get(slot).local as usize].instrument.currency
    }

    /// Counts the corrected fill in place of the old one. Returns false if it cannot be counted.
    fn count_again(&mut self, slot: u32, fill: &Fill, out: &mut Outbox) -> bool {
        let Fill { qty, price, .. } = *fill;
        let order = *self.orders.get(slot);
        let left = order.leaves();
        let sums = order.cum.checked_add(qty).zip(order.notional.checked_add(Notional::of(price, qty)));
        let (Some((cum, notional)), Some(deal)) = (sums, self.deal_of(slot, fill)) else {
            return false;
        };
        if self.book(order.local, order.position, &deal, out).is_none() {
            return false;
        }
        out.emit(
            self.watchers.of_order(order.source),
            self.now,
            EventKind::Booked(*self.ledger.last_booked()),
        );
        let taken = qty.min(left);
        let released = self.take_share(slot, taken, left);
        self.take_open(slot, taken, released);
        self.count_credit_of(slot, out);
        let place = self.orders.get_mut(slot);
        (place.cum, place.notional) = (cum, notional);
        true
    }

    /// Reopens a filled order that works again at its venue: its remaining quantity counts as open.
    fn reopen(&mut self, slot: u32, out: &mut Outbox) {
        let order = *self.orders.get(slot);
        let left = order.terms.qty.checked_sub(order.cum).unwrap_or_default();
        if !self.has_open_room(&order, left) {
            return self.halt_on_overflow(slot, out);
        }
        self.orders.unfinish(slot);
        let place = self.orders.get_mut(slot);
        place.base = Base::Working;
        self.directory.count_open(order.terms.strategy, order.terms.account, 1);
        self.add_open(slot, left, out);
        if order.terms.tif == Tif::Gtd {
            self.deadlines.add_dated();
            self.note_date(slot);
        }
        self.emit_terms_snapshot(slot, out);
        // The venue may have reported it while it was finished here, when differences were not
        // queried.
        if self.adapters.is_connected(self.directory.locals[order.local as usize].adapter) {
            self.instruct(slot, VenueRequest::Status, out);
        }
    }

    /// Adds to the open quantity of an order, and reserves credit for it. There is room.
    fn add_open(&mut self, slot: u32, qty: Qty, out: &mut Outbox) {
        let order = *self.orders.get(slot);
        self.ledger.add_open(&order, qty, Money::ZERO);
        if order.terms.reduce_only {
            let position = self.ledger.position_mut(order.local, order.position);
            position.reducing = position.reducing.checked_add(qty).expect("the caller has checked for room");
        }
        self.reserve_credit_again(slot, qty, out);
    }

    /// Returns whether this much more of an order can be counted as open.
    fn has_open_room(&self, order: &Order, qty: Qty) -> bool {
        let position = self.ledger.position(order.local, order.position);
        let exposure = self.ledger.exposure(order.local, order.exposure);
        let fits = |held: Qty| held.checked_add(qty).is_some();
        fits(position.open.of(order.terms.side))
            && fits(exposure.open.of(order.terms.side))
            && fits(position.reducing)
    }
}

/// Lost messages.
impl Shard {
    /// Marks the state of an open order as unknown until its venue reports it.
    pub(super) fn mark_unsure(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        if order.base.is_finished() || order.waits_for_trigger() {
            return;
        }
        order.set_unsure(true);
        self.mark_in_doubt(slot, out);
    }

    pub(super) fn mark_in_doubt(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        if !order.in_doubt() {
            order.set_in_doubt(true);
            self.emit_status(slot, ExecType::Snapshot, Reason::InDoubt, out);
            self.alert_order(Alert::InDoubt, slot, Reason::InDoubt, out);
        }
    }

    /// Queries the status of an open order whose venue contradicts the shard's state. If the venue
    /// is disconnected, it is queried after the reconnect.
    pub(super) fn query_status(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get(slot);
        // An ended order needs no query, unless its fills were presumed.
        let is_settled = order.base.is_finished() && self.orders.presumed(slot).is_none();
        if is_settled || !order.outside() || order.waits_for_trigger() {
            return;
        }
        let local = order.local;
        if order.base.is_finished() {
            self.orders.get_mut(slot).set_unsure(true);
        } else {
            self.mark_unsure(slot, out);
        }
        if self.adapters.is_connected(self.directory.locals[local as usize].adapter) {
            self.instruct(slot, VenueRequest::Status, out);
        }
    }

    /// Queries the status after a refusal in which the venue does not know the order, or says that
    /// it is over: the venue knows more than the shard.
    pub(super) fn query_after_refusal(&mut self, slot: u32, reason: Reason, out: &mut Outbox) {
        if matches!(reason, Reason::UnknownOrder | Reason::OrderFinished) {
            self.query_status(slot, out);
        }
    }

    /// Handles a fill with the total filled quantity of the order as its venue counts it.
    pub(super) fn filled_to(&mut self, slot: u32, fill: &Fill, cum: Qty, out: &mut Outbox) {
        let Fill { exec, qty, price, fee } = *fill;
        let is_covered = cum <= self.orders.get(slot).cum && exec != ExecRef(0) && qty.is_positive();
        if is_covered
            && !self.orders.has_execution(slot, exec)
            && self.orders.absorb(slot, exec, qty).is_some()
        {
            // It was counted when the venue reported the status of the order, without its fee.
            if let Some(fee) = fee {
                self.orders.remember_fee(slot, exec, RecordedFee { fee, is_late: true });
                self.book_fee(slot, exec, fee, out);
            }
            return self.alert_order(Alert::DuplicateExecution, slot, Reason::MissedFill, out);
        }
        if !self.check_execution(slot, exec, qty, price, out) {
            return;
        }
        if let Some(fee) = fee {
            self.orders.remember_fee(slot, exec, RecordedFee { fee, is_late: false });
        }
        self.count_fill(slot, fill, Reason::None, out);
        if let Some(fee) = fee.filter(|fee| fee.currency != self.currency_of(slot)) {
            self.book_fee(slot, exec, fee, out);
        }
        if self.orders.get(slot).cum != cum {
            self.query_status(slot, out);
        }
    }

    /// Handles the status of an order at its venue. It books what the venue has filled beyond the
    /// known fills; then the order ends as it did there, or continues. Where the venue contradicts
    /// itself or the shard, the order stays unknown.
    pub(super) fn order_state_reported(
        &mut self,
        slot: u32,
        cum: Qty,
        average: Price,
        state: VenueState,
        out: &mut Outbox,
    ) {
        if cum > self.orders.get(slot).cum && !self.count_missed(slot, cum, average, out) {
            return self.alert_and_mark_unsure(slot, out);
        }
        self.correct_missed(slot, cum, average, state, out);
        let agrees = cum == self.orders.get(slot).cum;
        if !agrees {
            // The venue has taken back something that it did not report. Money is never taken back
            // on a guess.
            self.alert_order(Alert::UnexpectedReport, slot, Reason::UnknownExecution, out);
        }
        if self.orders.get(slot).base.is_finished() {
            self.orders.get_mut(slot).set_unsure(false);
            return;
        }
        match state {
            VenueState::Canceled(reason) => self.ended(slot, Step::Cancel, reason, out),
            VenueState::Expired(reason) => self.ended(slot, Step::Expire, reason, out),
            VenueState::Rejected(Reason::UnknownOrder) => self.unknown_at_venue(slot, out),
            VenueState::Rejected(reason) => self.rejected(slot, reason, out),
            VenueState::Open if agrees => {
                self.accepted(slot, out);
                self.orders.get_mut(slot).set_unsure(false);
                self.reconciled(slot, out);
            }
            // A replacement whose report was lost ended the rest of it.
            VenueState::Filled if agrees && self.is_replaced_by_less(slot) => self.replaced(slot, out),
            VenueState::Open | VenueState::Filled => self.alert_and_mark_unsure(slot, out),
        }
    }

    /// Handles an order that its venue does not know: it never arrived, or it is over and was
    /// archived. A stop that never arrived is sent again. A second such answer may belong to a
    /// query from before that, and would send the stop twice, so the venue is queried again.
    fn unknown_at_venue(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get(slot);
        if order.waits_for_trigger() {
            // The shard holds it again since an earlier answer.
            return;
        }
        match (order.is_unsent_stop(), order.status_queried(), order.base == Base::PendingNew) {
            (true, false, _) => self.query_status(slot, out),
            (true, true, _) => self.rearm_stop(slot, out),
            (false, _, true) => self.rejected(slot, Reason::VenueUnavailable, out),
            (false, _, false) => self.rejected(slot, Reason::UnknownOrder, out),
        }
    }

    fn is_replaced_by_less(&self, slot: u32) -> bool {
        let replace = self.orders.pending_replace(slot);
        replace.is_some_and(|replace| replace.terms.qty <= self.orders.get(slot).cum)
    }

    fn alert_and_mark_unsure(&mut self, slot: u32, out: &mut Outbox) {
        self.alert_unexpected(slot, out);
        self.mark_unsure(slot, out);
    }

    /// Counts what an order has filled beyond the known fills, as one fill at the price that makes
    /// the average right. Returns false if that cannot be determined.
    fn count_missed(&mut self, slot: u32, cum: Qty, average: Price, out: &mut Outbox) -> bool {
        let Some((qty, price)) = missed_fill(self.orders.get(slot), cum, average) else { return false };
        let mut exec = missed_exec(self.orders.handle(slot).raw(), cum);
        while self.orders.has_execution(slot, exec) {
            exec.0 += 1;
        }
        if self.check_execution(slot, exec, qty, price, out) {
            self.orders.presume(slot, exec);
            self.count_fill(slot, &Fill { exec, qty, price, fee: None }, Reason::MissedFill, out);
        }
        true
    }

    /// Corrects a presumed fill that was too large, because the venue has taken some of it back
    /// without a report, as far as the presumption goes.
    fn correct_missed(&mut self, slot: u32, cum: Qty, average: Price, state: VenueState, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let Some(presumed) = self.orders.presumed(slot).copied() else { return };
        let less = order.cum.checked_sub(cum).filter(|less| less.is_positive() && *less <= presumed.qty);
        let Some(qty) = less.and_then(|less| presumed.qty.checked_sub(less)) else { return };
        let known = order.notional.checked_sub(Notional::of(presumed.price, presumed.qty));
        let price = match known.and_then(|known| Notional::of(average, cum).checked_sub(known)) {
            Some(value) if qty.is_positive() && !average.is_zero() => fitting(order, value, qty, average),
            _ => presumed.price,
        };
        let reason = if qty.is_zero() { Reason::Bust } else { Reason::Correction };
        let (exec, is_open) = (ExecRef(0), state == VenueState::Open);
        self.amended(slot, &Amendment { exec_ref: presumed.exec, exec, qty, price, is_open, reason }, out);
    }

    /// Handles the end of the venue's reports: sends what is still pending again.
    pub(super) fn reconciled(&mut self, slot: u32, out: &mut Outbox) {
        if self.orders.get(slot).unsure() {
            return;
        }
        let was_in_doubt = self.orders.get(slot).in_doubt();
        self.orders.get_mut(slot).set_in_doubt(false);
        let order = *self.orders.get(slot);
        if !was_in_doubt || order.base.is_finished() {
            return;
        }
        self.emit_status(slot, ExecType::Snapshot, Reason::None, out);
        let requests = self.orders.requests(slot).copied().unwrap_or_default();
        if let Some(replace) = requests.replace {
            let request =
                if replace.terms.qty <= order.cum { VenueRequest::Cancel } else { VenueRequest::Replace };
            self.send_request(slot, request, out);
        } else if requests.cancel.is_some() && order.base == Base::Working {
            self.send_request(slot, VenueRequest::Cancel, out);
        }
    }
}

/// Returns quantity and price of the missed fills.
fn missed_fill(order: &Order, cum: Qty, average: Price) -> Option<(Qty, Price)> {
    if average.is_zero() {
        return None;
    }
    let qty = cum.checked_sub(order.cum)?;
    let value = Notional::of(average, cum).checked_sub(order.notional)?;
    Some((qty, fitting(order, value, qty, average)))
}

/// Returns the price of a quantity that makes the venue's average right, rounded to 10⁻⁸. An
/// average that the venue has rounded can make it absurd where little was missed of much; then the
/// average itself is used.
fn fitting(order: &Order, value: Notional, qty: Qty, average: Price) -> Price {
    let price = value.average(qty);
    let is_within_limit = match order.terms.side {
        _ if !order.terms.kind.has_limit() => true,
        Side::Buy => price <= order.terms.limit,
        Side::Sell => price >= order.terms.limit,
    };
    if is_within_limit && price.is_within(5_000, average) { price } else { average }
}

/// Returns the id of a missed fill: always the same for the same order and quantity.
fn missed_exec(order: u64, cum: Qty) -> ExecRef {
    ExecRef(u128::from(order) << 64 | u128::from(cum.raw() as u64) | 1 << 127)
}
