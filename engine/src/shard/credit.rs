//! The account's credit: what orders reserve of it, and how bookings change it.
//!
//! The credit in use is a function of the state, never a running sum of what happened: for each
//! security in the credit's currency it is [`Exposure::credit_used`], a function of the account's
//! position there and of its open orders. Every change of one of them ends in
//! [`Shard::count_credit`], which replaces the old number by the new one. [`Shard::book`] is the
//! only way to book a transaction of a security.
//!
//! [`Exposure::credit_used`]: crate::ledger::Exposure::credit_used
//!
//! Rules: docs/engine-rules.md#credit.

use super::Shard;
use super::risk_gate::{CheckContext, OrderRefs};
use crate::command::BudgetKind;
use crate::directory::LocalSecurity;
use crate::id::AccountId;
use crate::index::index_u16;
use crate::ledger::SecurityTransaction;
use crate::number::{Money, Notional, Price, Qty};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::{OrderKind, Side, Terms, Tif};

/// Credit that an order, or the change of one, needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreditRequest {
    /// Amount to reserve for the order, on top of what it has.
    pub reserve: Money,
    /// Growth of the credit in use; `None` if the order opens something and has no price.
    pub more: Option<Money>,
    /// Value of one unit; `None` for a market order, which has no price of its own, and where the
    /// security does not count.
    pub price: Option<Price>,
}

impl Shard {
    /// Books a transaction of a security. Fills, corrections, manual trades and expirations all use
    /// it, so that each counts against the credit of its account by the same rule. Returns `None`
    /// if the transaction cannot be counted; then nothing has changed.
    #[inline]
    pub(super) fn book(
        &mut self,
        local: u32,
        position: u16,
        deal: &SecurityTransaction,
        out: &mut Outbox,
    ) -> Option<()> {
        let instrument = &self.directory.locals[local as usize].instrument;
        let instrument = *instrument;
        let guard = self.directory.account_guard_mut(deal.account);
        let guard = guard.filter(|guard| guard.counts_credit_in(instrument.currency));
        let change = self.ledger.book(self.now, &instrument, position, deal, guard.is_some())?;
        if let Some(guard) = guard
            && guard.change_credit(change)
        {
            self.emit_credit_usage(deal.account, out);
        }
        Some(())
    }

    /// Closes the exposures of accounts in an expired security at its settlement price. An
    /// EXPIRATION transaction belongs to a strategy, which may have traded through several
    /// accounts, so it names none.
    pub(super) fn expire_exposures(&mut self, local: u32, price: Price) {
        let instrument = self.directory.locals[local as usize].instrument;
        for at in 0..self.ledger.exposures(local).len() {
            let at = index_u16(at);
            let account = self.ledger.exposure(local, at).account;
            match self.ledger.close_exposure(&instrument, at, price) {
                // The budget pool learns of it with the next order: an expiry may affect every
                // account at once.
                Some(()) => self.recount_credit(account, local, at),
                None => self.continuation.refuse(Reason::Overflow),
            }
        }
    }

    /// Releases at once the credit that a modification has made unnecessary: the reserve stays what
    /// the terms need at the price they were checked with. A market order keeps its reserve until
    /// its end.
    pub(super) fn trim_credit(&mut self, slot: u32, price: Option<Price>) {
        let order = self.orders.get(slot);
        let (left, reserved, local) = (order.leaves(), order.reserved, order.local);
        let security = &self.directory.locals[local as usize];
        let cost = price.and_then(|price| credit_cost(price, left, security));
        let less = cost.and_then(|cost| reserved.checked_sub(cost));
        if let Some(less) = less.filter(|less| less.is_positive()) {
            let order = self.orders.get_mut(slot);
            order.reserved = order.reserved.checked_sub(less).unwrap_or_default();
            self.ledger.reserve_credit(self.orders.get(slot), Money::from_raw(-less.raw()));
        }
    }

    /// Reserves credit for a reopened quantity as for a new order, regardless of the rest of the
    /// limit. An amount that cannot be counted is not reserved.
    pub(super) fn reserve_credit_again(&mut self, slot: u32, qty: Qty, out: &mut Outbox) {
        let order = *self.orders.get(slot);
        let (terms, local) = (order.terms, order.local);
        let price = credit_price(&terms, own_price(&terms), self.venue.last_price(local));
        let price = price.filter(|_| self.counts_credit(terms.account, local));
        let security = &self.directory.locals[local as usize];
        let cost = price.and_then(|price| credit_cost(price, qty, security)).unwrap_or_default();
        let side_reserved = self.ledger.exposure(local, order.exposure).reserved[terms.side as usize];
        if let (Some(reserved), Some(_)) = (order.reserved.checked_add(cost), side_reserved.checked_add(cost))
        {
            self.orders.get_mut(slot).reserved = reserved;
            self.ledger.reserve_credit(&order, cost);
        }
        self.count_credit(terms.account, local, order.exposure, out);
    }

    /// Takes the share that belongs to a traded part from the reserve of an order, and returns it.
    #[inline]
    pub(super) fn take_share(&mut self, slot: u32, part: Qty, left: Qty) -> Money {
        let order = self.orders.get_mut(slot);
        if order.reserved.is_zero() || !left.is_positive() {
            return Money::ZERO;
        }
        let share = order.reserved.share(part, left).unwrap_or(order.reserved);
        order.reserved = order.reserved.checked_sub(share).unwrap_or_default();
        share
    }

    /// Takes an order that has ended with `left` open out of the counts of its strategy, its
    /// account and the dated orders, releases its reserve, and ends the doubts about it.
    #[inline]
    pub(super) fn discount(&mut self, slot: u32, left: Qty, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        let reserved = std::mem::take(&mut order.reserved);
        order.set_in_doubt(false);
        order.set_unsure(false);
        if order.terms.tif == Tif::Gtd {
            self.deadlines.remove_dated();
        }
        let Terms { strategy, account, side, reduce_only, .. } = order.terms;
        if left.is_zero() && reserved.is_zero() {
            // After its last fill everything else was counted with the booking.
            self.directory.count_open(strategy, account, -1);
            return;
        }
        let currency = self.directory.locals[order.local as usize].instrument.currency;
        let guard = self.directory.count_open(strategy, account, -1);
        let guard = guard.filter(|guard| guard.counts_credit_in(currency));
        let (position, exposure) = self.ledger.counts_mut(order);
        let taken = left.max(Qty::ZERO);
        let (less, released) = (Qty::from_raw(-taken.raw()), Money::from_raw(-reserved.raw()));
        position.open.change(side, less);
        exposure.open.change(side, less);
        exposure.reserve(side, released);
        if reduce_only {
            position.reducing = position.reducing.checked_sub(taken).expect("what reduces was added before");
        }
        if guard.is_some_and(|guard| guard.change_credit(exposure.recount_reserve(side, released))) {
            self.emit_credit_usage(account, out);
        }
    }

    /// Counts the credit of a new order. Its check has computed the growth; without a price the
    /// growth is not known, and the credit is recounted.
    #[inline]
    pub(super) fn count_new_credit(
        &mut self,
        slot: u32,
        refs: &OrderRefs,
        more: Option<Money>,
        out: &mut Outbox,
    ) {
        let Some(change) = more.map(Money::raw) else {
            return self.count_credit_of(slot, out);
        };
        let account = &mut self.directory.accounts[refs.account as usize];
        if account.guard.change_credit(change as i128) {
            let account = account.id;
            self.emit_credit_usage(account, out);
        }
    }

    /// Recounts the credit of an order's account.
    #[inline]
    pub(super) fn count_credit_of(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get(slot);
        let (account, local, exposure) = (order.terms.account, order.local, order.exposure);
        self.count_credit(account, local, exposure, out);
    }

    /// Recounts the credit that a security uses of an account. It reports to the budget pool if the
    /// credit in use has passed half of what the shard has.
    #[inline]
    pub(super) fn count_credit(&mut self, account: AccountId, local: u32, exposure: u16, out: &mut Outbox) {
        let currency = self.directory.locals[local as usize].instrument.currency;
        let guard = self.directory.account_guard_mut(account);
        let Some(guard) = guard.filter(|guard| guard.counts_credit_in(currency)) else { return };
        let change = self.ledger.exposure_mut(local, exposure).recount_credit(true);
        if guard.change_credit(change) {
            self.emit_credit_usage(account, out);
        }
    }

    /// Reports the credit in use of an account.
    #[cold]
    fn emit_credit_usage(&self, account: AccountId, out: &mut Outbox) {
        let at = self.directory.account(account);
        let usage = at.map(|at| self.directory.accounts[at as usize].guard.usage(BudgetKind::Credit));
        self.emit_budget(usage, out);
    }

    /// Returns whether a security counts against the credit of an account.
    pub(super) fn counts_credit(&self, account: AccountId, local: u32) -> bool {
        let currency = self.directory.locals[local as usize].instrument.currency;
        let account = self.directory.account(account).map(|at| &self.directory.accounts[at as usize]);
        account.is_some_and(|account| account.guard.counts_credit_in(currency))
    }

    /// Recounts the credit without a report to the budget pool.
    fn recount_credit(&mut self, account: AccountId, local: u32, exposure: u16) {
        let counts = self.counts_credit(account, local);
        if let Some(at) = self.directory.account(account) {
            let change = self.ledger.exposure_mut(local, exposure).recount_credit(counts);
            self.directory.accounts[at as usize].guard.change_credit(change);
        }
    }

    /// Recounts the credit of an account whose currency has changed: other securities count now.
    pub(super) fn recount_credit_of_all(&mut self, account: AccountId) {
        for local in 0..self.directory.local_count() {
            let held = self.ledger.exposures(local).iter().position(|held| held.account == account);
            if let Some(at) = held {
                self.recount_credit(account, local, index_u16(at));
            }
        }
    }

    /// Returns the credit that an account uses in this shard; for tests and audits.
    pub fn credit_used(&self, account: AccountId) -> Option<i128> {
        let at = self.directory.account(account)?;
        Some(self.directory.accounts[at as usize].guard.credit_sum())
    }
}

/// Returns the credit that `left` of an order with these terms needs, where `grows` of it is new
/// and `reserved` is already reserved. `own` is the price that the terms name, `value` that of the
/// whole order.
#[inline(always)]
pub(super) fn credit_request(
    terms: &Terms,
    own: Option<Price>,
    value: Option<Money>,
    left: Qty,
    grows: Qty,
    reserved: Money,
    context: &CheckContext<'_>,
) -> Result<CreditRequest, Reason> {
    let CheckContext { security, exposure, .. } = *context;
    if !context.account.counts_credit_in(security.instrument.currency) {
        return Ok(CreditRequest { more: Some(Money::ZERO), ..CreditRequest::default() });
    }
    let grows = grows.max(Qty::ZERO);
    let Some(price) = credit_price(terms, own, context.last) else {
        // Without a price an order passes if it only reduces the position.
        let opens = exposure.opening_qty(terms.side, grows) > exposure.opening_qty(terms.side, Qty::ZERO);
        return Ok(CreditRequest { more: (!opens).then_some(Money::ZERO), ..CreditRequest::default() });
    };
    let is_valued = left == terms.qty && price == own.unwrap_or(price);
    let cost = match value.filter(|_| is_valued) {
        Some(value) => with_commission(value, left, security),
        None => credit_cost(price, left, security),
    };
    let cost = cost.ok_or(Reason::Overflow)?;
    let reserve = cost.checked_sub(reserved).ok_or(Reason::Overflow)?.max(Money::ZERO);
    let more = exposure.credit_growth(terms.side, grows, reserve).ok_or(Reason::Overflow)?;
    let price = (terms.kind != OrderKind::Market).then_some(price);
    Ok(CreditRequest { reserve, more: Some(more), price })
}

/// Returns the cost of a quantity, including commission; `None` if it cannot be counted.
fn credit_cost(price: Price, qty: Qty, security: &LocalSecurity) -> Option<Money> {
    with_commission(Notional::value(price, qty, security.instrument.size)?, qty, security)
}

#[inline(always)]
fn with_commission(value: Money, qty: Qty, security: &LocalSecurity) -> Option<Money> {
    if security.commission.is_zero() { Some(value) } else { add_commission(value, qty, security) }
}

#[inline(never)]
fn add_commission(value: Money, qty: Qty, security: &LocalSecurity) -> Option<Money> {
    // A commission may be a rebate, and a reserve is never below zero.
    value.checked_add(Money::per_unit(security.commission, qty)?).map(|cost| cost.max(Money::ZERO))
}

/// Returns the price for the credit. A buy is priced like its value. The limit of a sale is the
/// least it may bring, so a sale is priced at the last price if that is higher, and a stop limit at
/// its stop price.
#[inline(always)]
fn credit_price(terms: &Terms, own: Option<Price>, last: Option<Price>) -> Option<Price> {
    let price = own.or(last)?;
    if terms.side == Side::Buy || !terms.kind.has_limit() {
        return Some(price);
    }
    let other = if terms.kind == OrderKind::Limit { last } else { Some(terms.stop) };
    Some(other.filter(|other| other.abs() > price.abs()).unwrap_or(price))
}

/// Returns the price that an order's terms name; `None` for a market order.
#[inline]
pub(super) fn own_price(terms: &Terms) -> Option<Price> {
    if terms.kind.has_limit() { Some(terms.limit) } else { stop_price(terms) }
}

/// Not part of its caller, as the compiler would make one jump through a table of both.
#[inline(never)]
fn stop_price(terms: &Terms) -> Option<Price> {
    terms.kind.has_stop().then_some(terms.stop)
}
