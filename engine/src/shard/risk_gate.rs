//! The checks before an order is sent, in the order of the engine's README. The first that fails
//! gives its reason.
//!
//! Rules: docs/engine-rules.md#order-of-checks.

use super::Shard;
use super::credit::{CreditRequest, own_price};
use crate::command::{BudgetKind, StrategyPhase, TradingSession};
use crate::event::{BudgetUse, EventKind};
use crate::id::StrategyId;
use crate::number::{Grid, Money, Notional, Price, Qty};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::risk::{HeldQty, RiskRequest};
use crate::terms::{OrderKind, Side, Terms, Tif};
use crate::time::Timestamp;

/// Half the range of a number: the bound of what is in use, so that what is in flight always fits
/// the other half.
const HALF: u64 = i64::MAX as u64 / 2;

/// Result of the reference check: the indices of everything about the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderRefs {
    pub local: u32,
    pub strategy: u32,
    pub account: u32,
    pub position: u16,
    pub exposure: u16,
}

/// An order that passed the checks, with the credit it reserves.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdmittedOrder {
    pub refs: OrderRefs,
    pub credit: CreditRequest,
}

impl Shard {
    /// Checks a new order and counts it if it passes.
    #[inline(always)]
    pub(super) fn admit(&mut self, terms: &Terms, out: &mut Outbox) -> Result<AdmittedOrder, Reason> {
        let (refs, request, credit) = self.prepare_check(terms)?;
        self.check_risk(&request, &refs, out)?;
        Ok(AdmittedOrder { refs, credit })
    }

    /// Runs the same checks, and counts nothing.
    pub(super) fn validate(&mut self, terms: &Terms, out: &mut Outbox) -> Result<(), Reason> {
        // It has no special terms of its own.
        self.requests.special = None;
        let (refs, request, _) = self.prepare_check(terms)?;
        if self.is_clear(&request, &refs) { Ok(()) } else { self.check_rules(&request, &refs, out) }
    }

    /// Runs the checks of a new order that need no limits. Returns the request for the risk checks
    /// and the credit to reserve.
    #[inline(always)]
    fn prepare_check<'a>(
        &mut self,
        terms: &'a Terms,
    ) -> Result<(OrderRefs, RiskRequest<'a>, CreditRequest), Reason> {
        let refs = self.check_reference(terms)?;
        if self.closes.contains(terms.strategy, refs.local) {
            return Err(Reason::CloseInProgress);
        }
        self.check_reduction(terms, &refs)?;
        self.check_form(terms, &refs)?;
        let value = self.value_of(terms, terms.qty, refs.local)?;
        self.check_venue_limits(terms.kind, value, &refs)?;
        self.check_headroom(terms.side, terms.qty, value.unwrap_or_default(), &refs)?;
        let credit = self.credit_request(terms, value, terms.qty, terms.qty, Money::ZERO, &refs)?;
        let last = self.venue.last_price(refs.local);
        let request = RiskRequest { terms, before: None, last, value, grows: terms.qty, credit: credit.more };
        Ok((refs, request, credit))
    }

    /// Checks new terms of an order and counts the change if it passes. Returns the credit it
    /// needs.
    pub(super) fn admit_change(
        &mut self,
        slot: u32,
        new: &Terms,
        out: &mut Outbox,
    ) -> Result<CreditRequest, Reason> {
        let order = self.orders.get(slot);
        let (cum, open, reserved, before) = (order.cum, order.leaves(), order.reserved, order.terms);
        let refs = self.check_reference(new)?;
        self.check_form(new, &refs)?;
        let value = self.value_of(new, new.qty, refs.local)?;
        self.check_venue_limits(new.kind, value, &refs)?;
        let left = new.qty.checked_sub(cum).ok_or(Reason::Overflow)?;
        let grows = left.checked_sub(open).ok_or(Reason::Overflow)?;
        if grows.is_positive() {
            self.check_headroom(new.side, grows, value.unwrap_or_default(), &refs)?;
        }
        let credit = self.credit_request(new, value, left, grows, reserved, &refs)?;
        let last = self.venue.last_price(refs.local);
        let request =
            RiskRequest { terms: new, before: Some(&before), last, value, grows, credit: credit.more };
        self.check_risk(&request, &refs, out)?;
        Ok(credit)
    }

    /// Check 1: reference data.
    #[inline(always)]
    fn check_reference(&mut self, terms: &Terms) -> Result<OrderRefs, Reason> {
        let local = self.directory.local(terms.security).ok_or(Reason::UnknownSecurity)?;
        let security = &self.directory.locals[local as usize];
        if !security.tradeable || security.expired {
            return Err(if security.expired { Reason::ExpiredSecurity } else { Reason::NotTradeable });
        }
        let account = self.directory.account(terms.account).ok_or(Reason::UnknownAccount)?;
        let entry = &self.directory.accounts[account as usize];
        if !entry.active {
            return Err(Reason::AccountInactive);
        }
        if !entry.admits[security.exchange as usize] {
            return Err(Reason::AccountElsewhere);
        }
        let strategy = self.directory.strategy(terms.strategy).ok_or(Reason::UnknownStrategy)?;
        if !entry.strategies.is_empty() && !entry.strategies.contains(&terms.strategy) {
            return Err(Reason::StrategyNotPermitted);
        }
        let runs = self.directory.strategies[strategy as usize].phase == StrategyPhase::Running;
        if !runs && terms.strategy != StrategyId::SERVER {
            return Err(Reason::StrategyNotRunning);
        }
        if !self.adapters.is_connected(security.adapter) {
            return Err(Reason::VenueUnavailable);
        }
        let position = self.ledger.position_index(terms.strategy, &security.instrument);
        let exposure = self.ledger.exposure_index(terms.account, local);
        Ok(OrderRefs { local, strategy, account, position, exposure })
    }

    /// Checks that a reduce-only order has something to reduce.
    fn check_reduction(&self, terms: &Terms, refs: &OrderRefs) -> Result<(), Reason> {
        if !terms.reduce_only {
            return Ok(());
        }
        let position = self.ledger.position(refs.local, refs.position);
        let net = position.state.qty;
        let opposite = if net.is_positive() { Side::Sell } else { Side::Buy };
        if net.is_zero() || terms.side != opposite {
            return Err(Reason::PositionFlat);
        }
        let left = net.abs().checked_sub(position.reducing).unwrap_or_default();
        if terms.qty <= left { Ok(()) } else { Err(Reason::PositionTooSmall) }
    }

    /// Check 2: form.
    #[inline]
    fn check_form(&self, terms: &Terms, refs: &OrderRefs) -> Result<(), Reason> {
        let security = &self.directory.locals[refs.local as usize];
        if !terms.qty.is_positive() {
            return Err(Reason::QuantityNotPositive);
        }
        if security.lots.steps(terms.qty.raw()).is_none() {
            return Err(Reason::BadLot);
        }
        check_price(
            terms.kind.has_limit(),
            terms.limit_given,
            terms.limit,
            &security.ticks,
            [Reason::LimitMissing, Reason::LimitSuperfluous],
        )?;
        check_price(
            terms.kind.has_stop(),
            terms.stop_given,
            terms.stop,
            &security.ticks,
            [Reason::StopMissing, Reason::StopSuperfluous],
        )?;
        if terms.special {
            self.check_special(terms, refs)?;
        }
        match (terms.tif == Tif::Gtd, terms.tif_date) {
            (true, Timestamp::ZERO) => return Err(Reason::TifDateMissing),
            (true, date) if date <= self.now => return Err(Reason::TifDatePast),
            (false, date) if date != Timestamp::ZERO => return Err(Reason::TifDateSuperfluous),
            _ => {}
        }
        if !terms.tif.is_auction() {
            return Ok(());
        }
        if terms.kind.has_stop() {
            return Err(Reason::TifNotAllowed);
        }
        let place = &self.directory.exchanges[security.exchange as usize];
        let ahead = terms.tif != Tif::Ato
            || matches!(place.session, TradingSession::Closed | TradingSession::OpeningAuction);
        if place.auctions && ahead { Ok(()) } else { Err(Reason::NoAuctionAhead) }
    }

    /// Checks special terms: their quantities, and whether a simulated venue can keep them. Only an
    /// outside venue knows what it takes; its adapter refuses the others.
    #[cold]
    fn check_special(&self, terms: &Terms, refs: &OrderRefs) -> Result<(), Reason> {
        // Without them there is nothing to check: only a request without its special terms comes
        // here, and no port sends one.
        let special = self.requests.special.ok_or(Reason::LaneFull)?;
        let lots = &self.directory.locals[refs.local as usize].lots;
        let is_quantity =
            |qty: Option<Qty>| qty.is_none_or(|qty| !qty.is_negative() && lots.steps(qty.raw()).is_some());
        if !is_quantity(special.min_qty) || !is_quantity(special.max_floor) {
            return Err(Reason::BadLot);
        }
        if special.min_qty.is_some_and(|least| least > terms.qty) {
            return Err(Reason::MinQtyNotTaken);
        }
        if self.directory.is_simulated(refs.local) { special.check_plain(terms.qty) } else { Ok(()) }
    }

    /// Returns the value of a quantity under these terms, as a magnitude; `None` within if it
    /// cannot be determined.
    fn value_of(&self, terms: &Terms, qty: Qty, local: u32) -> Result<Option<Money>, Reason> {
        let Some(price) = own_price(terms).or_else(|| self.venue.last_price(local)) else {
            return Ok(None);
        };
        let size = self.directory.locals[local as usize].instrument.size;
        Notional::of(price, qty).money(size).map(|money| Some(money.abs())).ok_or(Reason::Overflow)
    }

    /// Checks what the venue limits per order, so that the order is not sent in vain.
    #[inline]
    fn check_venue_limits(
        &self,
        kind: OrderKind,
        value: Option<Money>,
        refs: &OrderRefs,
    ) -> Result<(), Reason> {
        match &self.directory.locals[refs.local as usize].limits {
            None => Ok(()),
            Some(limits) => limits.check(kind, value),
        }
    }

    /// Checks that all possible results can be counted.
    #[inline]
    fn check_headroom(&self, side: Side, qty: Qty, value: Money, refs: &OrderRefs) -> Result<(), Reason> {
        let position = self.ledger.position(refs.local, refs.position);
        let exposure = self.ledger.exposure(refs.local, refs.exposure);
        let fits = |held: i64, open: i64, more: i64| {
            held.unsigned_abs().saturating_add(open as u64).saturating_add(more as u64) <= HALF
        };
        let cash = self.ledger.cash_of(position).raw();
        let cost = position.state.cost.abs().raw();
        let (gain, spent) = (exposure.gain.raw(), exposure.cost.abs().raw());
        let all = fits(position.state.qty.raw(), position.open.of(side).raw(), qty.raw())
            & fits(exposure.net.raw(), exposure.open.of(side).raw(), qty.raw())
            & fits(cash, cost, value.raw())
            & fits(gain, spent, value.raw());
        if all { Ok(()) } else { Err(Reason::Overflow) }
    }

    /// Checks 3 and 4: risk and credit.
    ///
    /// Most orders are clear of every limit, which a few comparisons show; for the others the rules
    /// decide, one by one.
    #[inline]
    fn check_risk(
        &mut self,
        request: &RiskRequest<'_>,
        refs: &OrderRefs,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if !self.is_clear(request, refs) {
            self.check_rules(request, refs, out)?;
        }
        self.take_order(request, refs, out);
        Ok(())
    }

    #[inline]
    fn is_clear(&self, request: &RiskRequest<'_>, refs: &OrderRefs) -> bool {
        let security = &self.directory.locals[refs.local as usize];
        let strategy = &self.directory.strategies[refs.strategy as usize].guard;
        let account = &self.directory.accounts[refs.account as usize].guard;
        let adapter = self.adapters.get(security.adapter);
        let (mine, ours) = self.held(refs);
        !(self.killed | security.killed | adapter.is_killed)
            && strategy.clears(self.now, request, &mine)
            && account.clears(self.now, request, &ours)
            && request.is_near(strategy.collar_bp().min(account.collar_bp()))
            && (!account.has_credit_in(security.instrument.currency) || account.check_credit(request).is_ok())
    }

    /// Returns the holdings of the strategy and the account.
    #[inline]
    fn held(&self, refs: &OrderRefs) -> (HeldQty, HeldQty) {
        let position = self.ledger.position(refs.local, refs.position);
        let exposure = self.ledger.exposure(refs.local, refs.exposure);
        let mine = HeldQty { net: position.state.qty, open: position.open };
        (mine, HeldQty { net: exposure.net, open: exposure.open })
    }

    #[cold]
    #[inline(never)]
    fn check_rules(
        &mut self,
        request: &RiskRequest<'_>,
        refs: &OrderRefs,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let security = &self.directory.locals[refs.local as usize];
        let strategy = &self.directory.strategies[refs.strategy as usize].guard;
        let account = &self.directory.accounts[refs.account as usize].guard;
        let adapter = self.adapters.get(security.adapter);
        if self.killed || strategy.killed || account.killed || security.killed || adapter.is_killed {
            return Err(Reason::KillSwitch);
        }
        // Rule by rule, so that a disabled scope is reported before a restriction.
        if !strategy.limits.trading_enabled || !account.limits.trading_enabled {
            return Err(Reason::TradingDisabled);
        }
        strategy.check_switches(request.terms.security)?;
        account.check_switches(request.terms.security)?;

        let (mine, ours) = self.held(refs);
        let now = self.now;
        let strategy = &mut self.directory.strategies[refs.strategy as usize].guard;
        if let Err(reason) = strategy.check_limits(now, request, &mine) {
            let usage = wanting(reason).map(|kind| BudgetUse { wanting: 1, ..strategy.usage(kind) });
            self.emit_budget(usage, out);
            return Err(reason);
        }
        let account = &mut self.directory.accounts[refs.account as usize].guard;
        let credited = account.has_credit_in(security.instrument.currency);
        let checked = account.check_limits(now, request, &ours);
        let checked = checked.and_then(|()| if credited { account.check_credit(request) } else { Ok(()) });
        if let Err(reason) = checked {
            let amount = if reason == Reason::InsufficientFunds {
                request.credit.unwrap_or_default().raw()
            } else {
                1
            };
            let usage = wanting(reason).map(|kind| BudgetUse { wanting: amount, ..account.usage(kind) });
            self.emit_budget(usage, out);
            return Err(reason);
        }
        Ok(())
    }

    #[inline]
    fn take_order(&mut self, request: &RiskRequest<'_>, refs: &OrderRefs, out: &mut Outbox) {
        let now = self.now;
        let strategy = &mut self.directory.strategies[refs.strategy as usize].guard;
        let [rate, open] = strategy.take_order(now, request);
        let account = &mut self.directory.accounts[refs.account as usize].guard;
        let [account_rate, account_open] = account.take_order(now, request);
        if !(rate || open || account_rate || account_open) {
            return;
        }
        let strategy = &self.directory.strategies[refs.strategy as usize].guard;
        let account = &self.directory.accounts[refs.account as usize].guard;
        for usage in [
            rate.then(|| strategy.usage(BudgetKind::OrdersPerSecond)),
            open.then(|| strategy.usage(BudgetKind::OpenOrders)),
            account_rate.then(|| account.usage(BudgetKind::OrdersPerSecond)),
            account_open.then(|| account.usage(BudgetKind::OpenOrders)),
        ] {
            self.emit_budget(usage, out);
        }
    }

    pub(super) fn emit_budget(&self, usage: Option<BudgetUse>, out: &mut Outbox) {
        if let Some(usage) = usage {
            out.emit(self.watchers.budgets, self.now, EventKind::Budget(usage));
        }
    }
}

fn check_price(
    wanted: bool,
    given: bool,
    price: Price,
    ticks: &Grid,
    reasons: [Reason; 2],
) -> Result<(), Reason> {
    let [missing, superfluous] = reasons;
    match (wanted, given) {
        (true, false) => Err(missing),
        (false, true) => Err(superfluous),
        (true, true) if ticks.steps(price.raw()).is_none() => Err(Reason::BadTick),
        _ => Ok(()),
    }
}

/// Returns the budget that a refusal wants more of.
fn wanting(reason: Reason) -> Option<BudgetKind> {
    BudgetKind::ALL.into_iter().find(|kind| refusal(*kind) == reason)
}

/// Returns the reason of a refusal for want of a budget.
fn refusal(kind: BudgetKind) -> Reason {
    match kind {
        BudgetKind::OpenOrders => Reason::MaxOpenOrders,
        BudgetKind::OrdersPerSecond => Reason::OrderRate,
        BudgetKind::Credit => Reason::InsufficientFunds,
    }
}
