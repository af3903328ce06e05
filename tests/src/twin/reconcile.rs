//! Later reports of an external venue: busted or corrected fills, and the status of an order after
//! messages were lost.

use pitlane_engine::command::{ExecRef, VenueFee, VenueReport, VenueState};
use pitlane_engine::event::{Alert, ExecType};
use pitlane_engine::number::{Money, Notional, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Side, Tif};

use super::order::{OrderBase, OrderPlace};
use super::{Twin, TwinEvent, TwinExecution};

impl Twin {
    /// Counts a reported fill if it is one and comes for the first time. Returns whether it was
    /// counted.
    pub(super) fn execution(&mut self, order: usize, exec: ExecRef, qty: Qty, price: Price) -> bool {
        self.execution_for(order, exec, qty, price, false)
    }

    fn execution_for(&mut self, order: usize, exec: ExecRef, qty: Qty, price: Price, presumed: bool) -> bool {
        if !qty.is_positive() {
            self.alert(Alert::UnexpectedReport);
            return false;
        }
        if exec != ExecRef(0) && self.has_received(order, exec) {
            self.alert(Alert::DuplicateExecution);
            return false;
        }
        let (ids, raw) = (vec![exec], qty.raw());
        let fee = self.fill_fee.map(|fee| (fee, false));
        self.executions.push(TwinExecution { order, ids, qty: raw, price: price.raw(), presumed, fee });
        let reason = if presumed { Reason::MissedFill } else { Reason::None };
        self.fill_for(order, qty.raw(), price.raw(), reason);
        true
    }

    fn has_received(&self, order: usize, exec: ExecRef) -> bool {
        self.executions.iter().any(|known| known.order == order && known.ids.contains(&exec))
    }

    /// Counts a fill with CumQty: a part of what was presumed, or a fill that must add up.
    pub(super) fn filled_to(
        &mut self,
        order: usize,
        exec: ExecRef,
        (qty, price): (Qty, Price),
        cum: Qty,
        fee: Option<VenueFee>,
    ) {
        let covered = cum.raw() <= self.orders[order].cum && exec != ExecRef(0) && qty.is_positive();
        if covered && !self.has_received(order, exec) {
            let presumed =
                |known: &&mut TwinExecution| known.order == order && known.presumed && known.qty > 0;
            if let Some(known) = self.executions.iter_mut().rev().find(presumed) {
                let part = qty.raw().min(known.qty);
                known.qty -= part;
                let price = known.price;
                let ids = vec![exec];
                let late = fee.map(|fee| (fee, true));
                self.executions.push(TwinExecution {
                    order,
                    ids,
                    qty: part,
                    price,
                    presumed: false,
                    fee: late,
                });
                fee.into_iter().for_each(|fee| self.book_fee(order, fee));
                return self.alert(Alert::DuplicateExecution);
            }
        }
        self.fill_fee = fee;
        let is_counted = self.execution(order, exec, qty, price);
        self.fill_fee = None;
        if !is_counted {
            return;
        }
        let currency = self.currency_of(order);
        fee.into_iter().filter(|fee| fee.currency != currency).for_each(|fee| self.book_fee(order, fee));
        if self.orders[order].cum != cum.raw() {
            self.ask_status(order);
        }
    }

    /// Busts a fill, or changes its quantity and price. Filled and remaining quantities are
    /// computed from the valid fills.
    pub(super) fn amend(
        &mut self,
        order: usize,
        exec_ref: ExecRef,
        exec: ExecRef,
        qty: Qty,
        price: Price,
        is_open: bool,
    ) {
        if exec != ExecRef(0) && self.has_received(order, exec) {
            return self.alert(Alert::DuplicateExecution);
        }
        let is_meant = |known: &TwinExecution| {
            known.order == order && exec_ref != ExecRef(0) && known.ids.contains(&exec_ref) && known.qty != 0
        };
        let Some(at) = self.executions.iter().position(is_meant) else {
            self.alert(Alert::UnexpectedReport);
            return self.ask_status(order);
        };
        if qty.is_negative() {
            return self.alert(Alert::UnexpectedReport);
        }
        let (old_qty, old_price) = (self.executions[at].qty, self.executions[at].price);
        let charged = self.executions[at].fee;
        self.fill_fee = charged.filter(|(_, late)| !late).map(|(fee, _)| fee);
        self.book_reversal(order, old_qty, old_price);
        let currency = self.currency_of(order);
        if let Some((fee, late)) = charged.filter(|_| qty.is_zero())
            && (late || fee.currency != currency)
        {
            self.book_fee(order, VenueFee { amount: Money::from_raw(-fee.amount.raw()), ..fee });
        }
        self.orders[order].cum -= old_qty;
        self.orders[order].notional -= old_qty as i128 * old_price as i128;
        let terms = self.orders[order].terms;
        let short = self.orders[order].cum + qty.raw() < terms.qty.raw();
        if !self.orders[order].is_over() {
            self.orders[order].reserved += self.credit_again(&terms, old_qty);
        } else if self.orders[order].base == OrderBase::Filled && self.orders[order].sent && is_open && short
        {
            self.orders[order].base = OrderBase::Working;
            self.orders[order].place = OrderPlace::Outside;
            self.orders[order].reserved = self.credit_again(&terms, self.orders[order].leaves());
            self.refuse_closing(&terms, if qty.is_zero() { Reason::Bust } else { Reason::Correction });
        }
        (self.executions[at].qty, self.executions[at].price) = (qty.raw(), price.raw());
        if exec != ExecRef(0) {
            self.executions[at].ids.push(exec);
        }
        self.count_again(order, qty.raw(), price.raw());
        self.fill_fee = None;
        self.check_excess(terms.strategy, terms.security);
        let reason = if qty.is_zero() { Reason::Bust } else { Reason::Correction };
        let completes = !self.orders[order].is_over() && self.orders[order].leaves() <= 0;
        if completes {
            self.orders[order].base = OrderBase::Filled;
            self.orders[order].place = OrderPlace::Nowhere;
        }
        let over = self.orders[order].cum > self.orders[order].terms.qty.raw() && !qty.is_zero();
        if over {
            self.alert(Alert::Overfill);
        }
        let mut line = self.image(order, ExecType::Corrected, if over { Reason::Overfill } else { reason });
        (line.last_qty, line.last_price) = (qty, if qty.is_zero() { Price::ZERO } else { price });
        self.events.push(TwinEvent::Report(line));
        if completes {
            (self.orders[order].reserved, self.orders[order].requested_reserve) = (0, 0);
            self.too_late(order);
        }
    }

    /// Counts the corrected fill, in place of the old one.
    fn count_again(&mut self, order: usize, qty: i64, price: i64) {
        if qty == 0 {
            return;
        }
        let left = self.orders[order].leaves();
        let o = &mut self.orders[order];
        if left > 0 {
            let part = Qty::from_raw(qty.min(left));
            let share = Money::from_raw(o.reserved).share(part, Qty::from_raw(left));
            o.reserved -= share.expect("a part fits").raw();
        }
        o.cum += qty;
        o.notional += qty as i128 * price as i128;
        self.book_fill(order, qty, price);
    }

    /// Processes the status of an order at its venue.
    pub(super) fn standing(&mut self, order: usize, cum: Qty, average: Price, state: VenueState) {
        if cum.raw() > self.orders[order].cum {
            if average.is_zero() {
                return self.stay_unsure(order);
            }
            let (qty, price) = self.missed(order, cum, average);
            // The venue does not know its id, so any unique one will do.
            let exec = ExecRef(u128::MAX - self.executions.len() as u128);
            self.execution_for(order, exec, qty, price, true);
        }
        self.correct_missed(order, cum, average, state);
        let agrees = cum.raw() == self.orders[order].cum;
        if !agrees {
            self.alert(Alert::UnexpectedReport);
        }
        if self.orders[order].is_over() {
            return;
        }
        match state {
            VenueState::Canceled(reason) => self.handle_report(order, VenueReport::Canceled(reason)),
            VenueState::Expired(reason) => self.handle_report(order, VenueReport::Expired(reason)),
            VenueState::Rejected(Reason::UnknownOrder) if self.waits_for_price(order) => (),
            // An answer to a query from before it was sent says nothing about it.
            VenueState::Rejected(Reason::UnknownOrder)
                if self.never_left(order) && !self.orders[order].asked =>
            {
                self.ask_status(order)
            }
            VenueState::Rejected(Reason::UnknownOrder) if self.never_left(order) => self.wait_again(order),
            VenueState::Rejected(Reason::UnknownOrder)
                if self.orders[order].base == OrderBase::PendingNew =>
            {
                self.venue_rejects(order, Reason::VenueUnavailable);
            }
            VenueState::Rejected(reason) => {
                self.handle_report(order, VenueReport::Rejected(reason));
            }
            VenueState::Open if agrees => {
                self.handle_report(order, VenueReport::Accepted);
                self.orders[order].unsure = false;
                self.reconciled(order);
            }
            VenueState::Filled if agrees && self.stops_here(order) => self.replaced(order),
            VenueState::Open | VenueState::Filled => self.stay_unsure(order),
        }
    }

    /// Returns the missed quantity, and the price that makes the average right unless that is
    /// absurd.
    fn missed(&self, order: usize, cum: Qty, average: Price) -> (Qty, Price) {
        let o = &self.orders[order];
        let qty = Qty::from_raw(cum.raw() - o.cum);
        let value = average.raw() as i128 * cum.raw() as i128 - o.notional;
        (qty, self.fitting(order, value, qty, average))
    }

    fn fitting(&self, order: usize, value: i128, qty: Qty, average: Price) -> Price {
        let o = &self.orders[order];
        let price = Notional::from_raw(value).average(qty);
        let worse = o.limit().is_some_and(|limit| match o.terms.side {
            Side::Buy => price.raw() > limit,
            Side::Sell => price.raw() < limit,
        });
        let far = (price.raw() as i128 - average.raw() as i128).abs() * 2 > (average.raw() as i128).abs();
        if worse || far { average } else { price }
    }

    /// Corrects a presumed fill that is larger than the venue's: the venue busted what it never
    /// reported.
    fn correct_missed(&mut self, order: usize, cum: Qty, average: Price, state: VenueState) {
        let o = &self.orders[order];
        let presumed = |known: &&TwinExecution| known.order == order && known.presumed && known.qty > 0;
        let Some(known) = self.executions.iter().rev().find(presumed) else { return };
        let less = o.cum - cum.raw();
        if less <= 0 || less > known.qty {
            return;
        }
        let (qty, exec_ref) = (Qty::from_raw(known.qty - less), known.ids[0]);
        let rest = o.notional - known.qty as i128 * known.price as i128;
        let price = match qty.is_zero() || average.is_zero() {
            true => Price::from_raw(known.price),
            false => {
                let value = average.raw() as i128 * cum.raw() as i128 - rest;
                self.fitting(order, value, qty, average)
            }
        };
        self.amend(order, exec_ref, ExecRef(0), qty, price, state == VenueState::Open);
    }

    fn stay_unsure(&mut self, order: usize) {
        self.alert(Alert::UnexpectedReport);
        self.unsure(order);
    }

    pub(super) fn reconciled(&mut self, order: usize) {
        if self.orders[order].unsure {
            return;
        }
        let was = std::mem::take(&mut self.orders[order].in_doubt);
        if !was || self.orders[order].is_over() {
            return;
        }
        self.report(order, ExecType::Snapshot, Reason::None);
        // Pending requests are sent again, which fails without a connection.
        let o = &self.orders[order];
        let asks = o.replace.is_some() || o.cancel.is_some() && o.base == OrderBase::Working;
        if asks && !self.is_connected(self.orders[order].terms.security) {
            self.orders[order].in_doubt = true;
        }
    }

    fn waits_for_trigger(&self, order: usize) -> bool {
        self.orders[order].terms.kind.has_stop() && !self.orders[order].triggered
    }

    pub(super) fn unsure(&mut self, order: usize) {
        if self.orders[order].is_over() || self.waits_for_trigger(order) {
            return;
        }
        self.orders[order].unsure = true;
        if !self.orders[order].in_doubt {
            self.doubt(order);
        }
    }

    pub(super) fn doubt(&mut self, order: usize) {
        self.orders[order].in_doubt = true;
        self.report(order, ExecType::Snapshot, Reason::InDoubt);
        self.alert(Alert::InDoubt);
    }

    /// Queries the status of the order, because the venue contradicts us.
    fn ask_status(&mut self, order: usize) {
        self.unsure(order);
        self.orders[order].asked |=
            self.orders[order].sent && self.is_connected(self.orders[order].terms.security);
    }

    pub(super) fn ask_after_refusal(&mut self, order: usize, reason: Reason) {
        if matches!(reason, Reason::UnknownOrder | Reason::OrderFinished) {
            self.ask_status(order);
        }
    }

    /// Returns whether it is a triggered stop that has never reached its venue.
    pub(super) fn never_left(&self, order: usize) -> bool {
        let o = &self.orders[order];
        let is_stop = o.terms.kind.has_stop() && o.triggered;
        is_stop
            && o.place == OrderPlace::Outside
            && !o.acknowledged
            && o.cum == 0
            && o.base == OrderBase::Working
    }

    /// Returns whether it is a stop that we hold until its price is reached.
    pub(super) fn waits_for_price(&self, order: usize) -> bool {
        let o = &self.orders[order];
        !o.is_over() && o.terms.kind.has_stop() && !o.triggered
    }

    /// Lets a stop wait again; pending requests are performed at once.
    pub(super) fn wait_again(&mut self, order: usize) {
        let o = &mut self.orders[order];
        (o.triggered, o.in_doubt, o.unsure, o.sent) = (false, false, false, false);
        let day_over = std::mem::take(&mut o.day_over);
        self.place_stop(order);
        if self.orders[order].cancel.is_some() {
            return self.end(order, OrderBase::Canceled, ExecType::Canceled, Reason::Requested);
        }
        self.report(order, ExecType::Snapshot, Reason::VenueUnavailable);
        if self.orders[order].replace.is_some() {
            self.replaced(order);
        }
        match self.overdue(order, day_over) {
            Some(reason) => self.end(order, OrderBase::Expired, ExecType::Expired, reason),
            None => self.settle_stops(self.orders[order].terms.security),
        }
    }

    /// Returns why an order that is ours again should have ended before.
    fn overdue(&self, order: usize, day_over: bool) -> Option<Reason> {
        let terms = &self.orders[order].terms;
        let ends = [
            (Reason::SecurityExpired, self.markets[&terms.security].expired),
            (Reason::ExpiredGtd, terms.tif == Tif::Gtd && terms.tif_date <= self.now),
            (Reason::ExpiredDay, terms.tif == Tif::Day && day_over),
        ];
        ends.into_iter().find(|(_, is_over)| *is_over).map(|(reason, _)| reason)
    }
}
