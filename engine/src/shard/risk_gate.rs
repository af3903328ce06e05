//! The checks before an order is sent, in the order of the engine's README. The first that fails
//! gives its reason.
//!
//! Rules: docs/engine-rules.md#order-of-checks.

use super::Shard;
use super::credit::{CreditRequest, credit_request, own_price};
use crate::command::{BudgetKind, StrategyPhase, TradingSession};
use crate::directory::LocalSecurity;
use crate::event::{BudgetUse, EventKind};
use crate::id::{AdapterId, StrategyId};
use crate::ledger::{Exposure, Position};
use crate::number::{Grid, Money, Notional, Price, Qty};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::risk::{HeldQty, RiskGuard, RiskRequest};
use crate::terms::{OrderKind, Side, Terms, Tif};
use crate::time::Timestamp;

/// Half the range of a number: the bound of what is in use, so that what is in flight always fits
/// the other half.
const HALF: u64 = i64::MAX as u64 / 2;

/// Magnitude up to which numbers need no check of their sum: three of them stay below [`HALF`].
const SMALL: u64 = 1 << 59;
const _: () = assert!(SMALL + 2 * (2 * SMALL) <= HALF, "a signed number and two amounts below twice it");

/// Result of the reference check: the indices of everything about the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderRefs {
    pub local: u32,
    pub strategy: u32,
    pub account: u32,
    pub position: u16,
    pub exposure: u16,
}

/// What an order is checked against, found once for all checks.
#[derive(Clone, Copy)]
pub(super) struct CheckContext<'a> {
    pub security: &'a LocalSecurity,
    pub strategy: &'a RiskGuard,
    pub account: &'a RiskGuard,
    pub position: &'a Position,
    pub exposure: &'a Exposure,
    /// The last price, if there was one.
    pub last: Option<Price>,
}

/// An order that passed the checks, with the credit it reserves.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdmittedOrder {
    pub refs: OrderRefs,
    pub credit: CreditRequest,
}

/// A request for which only the decision is missing.
struct CheckedOrder<'a> {
    refs: OrderRefs,
    request: RiskRequest<'a>,
    credit: CreditRequest,
    is_clear: bool,
}

impl Shard {
    /// Checks a new order and counts it if it passes. Not part of its caller: together they would
    /// have more values at hand than the processor has registers.
    #[inline(never)]
    pub(super) fn admit(&mut self, terms: &Terms, out: &mut Outbox) -> Result<AdmittedOrder, Reason> {
        let checked = self.check_new(terms)?;
        self.decide(&checked, out)?;
        self.take_order(&checked.request, &checked.refs, out);
        Ok(AdmittedOrder { refs: checked.refs, credit: checked.credit })
    }

    /// Runs the same checks, and counts nothing.
    pub(super) fn validate(&mut self, terms: &Terms, out: &mut Outbox) -> Result<(), Reason> {
        // It has no special terms of its own.
        self.requests.special = None;
        let checked = self.check_new(terms)?;
        self.decide(&checked, out)
    }

    /// Runs the checks of a new order, except the rules that a request which is not clear needs.
    #[inline(always)]
    fn check_new<'a>(&mut self, terms: &'a Terms) -> Result<CheckedOrder<'a>, Reason> {
        let (refs, context) = match self.check_reference(terms)? {
            Some(found) => found,
            None => {
                self.open_counts(terms);
                self.check_reference(terms)?.ok_or(Reason::UnknownSecurity)?
            }
        };
        if self.closes.contains(terms.strategy, refs.local) {
            return Err(Reason::CloseInProgress);
        }
        check_reduction(terms, &context)?;
        self.check_form(terms, &context)?;
        let own = own_price(terms);
        let value = value_of(terms, own, &context)?;
        check_venue_limits(terms.kind, value, &context)?;
        self.check_headroom(terms.side, terms.qty, value.unwrap_or_default(), &context)?;
        let credit = credit_request(terms, own, value, terms.qty, terms.qty, Money::ZERO, &context)?;
        let request = RiskRequest {
            terms,
            before: None,
            last: context.last,
            value,
            grows: terms.qty,
            credit: credit.more,
        };
        let is_clear = self.is_clear(&request, &context);
        Ok(CheckedOrder { refs, request, credit, is_clear })
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
        let (refs, context) = match self.check_reference(new)? {
            Some(found) => found,
            None => {
                self.open_counts(new);
                self.check_reference(new)?.ok_or(Reason::UnknownSecurity)?
            }
        };
        self.check_form(new, &context)?;
        let own = own_price(new);
        let value = value_of(new, own, &context)?;
        check_venue_limits(new.kind, value, &context)?;
        let left = new.qty.checked_sub(cum).ok_or(Reason::Overflow)?;
        let grows = left.checked_sub(open).ok_or(Reason::Overflow)?;
        if grows.is_positive() {
            self.check_headroom(new.side, grows, value.unwrap_or_default(), &context)?;
        }
        let credit = credit_request(new, own, value, left, grows, reserved, &context)?;
        let request = RiskRequest {
            terms: new,
            before: Some(&before),
            last: context.last,
            value,
            grows,
            credit: credit.more,
        };
        let is_clear = self.is_clear(&request, &context);
        let checked = CheckedOrder { refs, request, credit, is_clear };
        self.decide(&checked, out)?;
        self.take_order(&checked.request, &refs, out);
        Ok(credit)
    }

    /// Decides about a checked request. Most orders are clear of every limit, which a few
    /// comparisons have shown; for the others the rules of risk and credit decide, one by one.
    #[inline(always)]
    fn decide(&mut self, checked: &CheckedOrder<'_>, out: &mut Outbox) -> Result<(), Reason> {
        if checked.is_clear {
            return Ok(());
        }
        // Copies, so that the originals stay in registers where the rules are not needed.
        let (request, refs) = (checked.request, checked.refs);
        self.check_rules(&request, &refs, out)
    }

    fn context_of(&self, refs: &OrderRefs) -> CheckContext<'_> {
        CheckContext {
            security: &self.directory.locals[refs.local as usize],
            strategy: &self.directory.strategies[refs.strategy as usize].guard,
            account: &self.directory.accounts[refs.account as usize].guard,
            position: self.ledger.position(refs.local, refs.position),
            exposure: self.ledger.exposure(refs.local, refs.exposure),
            last: self.venue.last_price(refs.local),
        }
    }

    /// Check 1: reference data. Returns what the other checks need, each found once; `None` within
    /// if the strategy or the account has nothing in the security yet, see [`Shard::open_counts`].
    #[inline(always)]
    fn check_reference(&self, terms: &Terms) -> Result<Option<(OrderRefs, CheckContext<'_>)>, Reason> {
        let security = self.directory.security(terms.security).ok_or(Reason::UnknownSecurity)?;
        let local = security.instrument.local;
        if !security.tradeable || security.expired {
            return Err(if security.expired { Reason::ExpiredSecurity } else { Reason::NotTradeable });
        }
        let (account, entry) = self.directory.account_entry(terms.account).ok_or(Reason::UnknownAccount)?;
        if !entry.active {
            return Err(Reason::AccountInactive);
        }
        if !entry.admits[security.exchange as usize] {
            return Err(Reason::AccountElsewhere);
        }
        let found = self.directory.strategy_entry(terms.strategy);
        let (strategy, strategy_entry) = found.ok_or(Reason::UnknownStrategy)?;
        if !entry.strategies.is_empty() && !entry.strategies.contains(&terms.strategy) {
            return Err(Reason::StrategyNotPermitted);
        }
        let runs = strategy_entry.phase == StrategyPhase::Running;
        if !runs && terms.strategy != StrategyId::SERVER {
            return Err(Reason::StrategyNotRunning);
        }
        if !self.adapters.is_connected(security.adapter) {
            return Err(Reason::VenueUnavailable);
        }
        let held = self.ledger.find_position(terms.strategy, local);
        let Some(((position, of_strategy), (exposure, of_account))) =
            held.zip(self.ledger.find_exposure(terms.account, local))
        else {
            return Ok(None);
        };
        let context = CheckContext {
            security,
            strategy: &strategy_entry.guard,
            account: &entry.guard,
            position: of_strategy,
            exposure: of_account,
            last: self.venue.last_price(local),
        };
        Ok(Some((OrderRefs { local, strategy, account, position, exposure }, context)))
    }

    /// Opens the position of a strategy and the exposure of an account in a security.
    #[cold]
    fn open_counts(&mut self, terms: &Terms) {
        if let Some(security) = self.directory.security(terms.security) {
            self.ledger.position_index(terms.strategy, &security.instrument);
            self.ledger.exposure_index(terms.account, security.instrument.local);
        }
    }

    /// Check 2: form.
    #[inline(always)]
    fn check_form(&self, terms: &Terms, context: &CheckContext<'_>) -> Result<(), Reason> {
        let security = context.security;
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
            self.check_special(terms, security)?;
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
    fn check_special(&self, terms: &Terms, security: &LocalSecurity) -> Result<(), Reason> {
        // Without them there is nothing to check: only a request without its special terms comes
        // here, and no port sends one.
        let special = self.requests.special.ok_or(Reason::LaneFull)?;
        let is_whole = |qty: Qty| !qty.is_negative() && security.lots.steps(qty.raw()).is_some();
        let is_quantity = |qty: Option<Qty>| qty.is_none_or(is_whole);
        if !is_quantity(special.min_qty) || !is_quantity(special.max_floor) {
            return Err(Reason::BadLot);
        }
        if special.min_qty.is_some_and(|least| least > terms.qty) {
            return Err(Reason::MinQtyNotTaken);
        }
        if security.adapter == AdapterId::SIM { special.check_plain(terms.qty) } else { Ok(()) }
    }

    /// Checks that all possible results can be counted.
    #[inline(always)]
    fn check_headroom(
        &self,
        side: Side,
        qty: Qty,
        value: Money,
        context: &CheckContext<'_>,
    ) -> Result<(), Reason> {
        let (position, exposure) = (context.position, context.exposure);
        let cash = self.ledger.cash_of(position).raw();
        let signed = [position.state.qty.raw(), exposure.net.raw(), cash, position.state.cost.raw()];
        let money = [exposure.gain.raw(), exposure.cost.raw()];
        // Neither of these is below zero.
        let amounts = [qty.raw(), value.raw(), position.open.of(side).raw(), exposure.open.of(side).raw()];
        let shifted = signed.into_iter().chain(money).map(|number| (number as u64).wrapping_add(SMALL));
        let all = shifted.chain(amounts.map(|number| number as u64)).fold(0, |all, number| all | number);
        if all < 2 * SMALL {
            return Ok(());
        }
        let fits = |held: i64, open: i64, more: i64| {
            held.unsigned_abs().saturating_add(open.unsigned_abs()).saturating_add(more as u64) <= HALF
        };
        let all = fits(position.state.qty.raw(), position.open.of(side).raw(), qty.raw())
            & fits(exposure.net.raw(), exposure.open.of(side).raw(), qty.raw())
            & fits(cash, position.state.cost.raw(), value.raw())
            & fits(exposure.gain.raw(), exposure.cost.raw(), value.raw());
        if all { Ok(()) } else { Err(Reason::Overflow) }
    }

    /// Returns whether a request is clear of every switch and limit.
    #[inline(always)]
    fn is_clear(&self, request: &RiskRequest<'_>, context: &CheckContext<'_>) -> bool {
        let CheckContext { security, strategy, account, .. } = *context;
        let (mine, ours) = context.held();
        !(self.killed | security.killed | self.adapters.get(security.adapter).is_killed)
            && strategy.clears(self.now, request, &mine)
            && account.clears(self.now, request, &ours)
            && request.is_near(strategy.collar_bp().min(account.collar_bp()))
            && (!account.has_credit_in(security.instrument.currency) || account.check_credit(request).is_ok())
    }

    /// Checks 3 and 4: risk and credit, rule by rule.
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
        if self.killed || strategy.is_killed() || account.is_killed() || security.killed || adapter.is_killed
        {
            return Err(Reason::KillSwitch);
        }
        // Rule by rule, so that a disabled scope is reported before a restriction.
        if !strategy.limits().trading_enabled || !account.limits().trading_enabled {
            return Err(Reason::TradingDisabled);
        }
        strategy.check_switches(request.terms.security)?;
        account.check_switches(request.terms.security)?;

        let (mine, ours) = self.context_of(refs).held();
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

    /// Counts a request that has passed.
    #[inline(always)]
    fn take_order(&mut self, request: &RiskRequest<'_>, refs: &OrderRefs, out: &mut Outbox) {
        let now = self.now;
        let strategy = &mut self.directory.strategies[refs.strategy as usize].guard;
        let of_strategy = strategy.take_order(now, request);
        let account = &mut self.directory.accounts[refs.account as usize].guard;
        if of_strategy | account.take_order(now, request) {
            self.report_use(refs.strategy, refs.account, request.before.is_none(), out);
        }
    }

    /// Reports the budgets of which half is in use: the rate and the open orders of the strategy,
    /// then those of the account.
    #[cold]
    fn report_use(&self, strategy: u32, account: u32, is_new: bool, out: &mut Outbox) {
        let strategy = &self.directory.strategies[strategy as usize].guard;
        let account = &self.directory.accounts[account as usize].guard;
        for usage in strategy.budgets_at_half(is_new).chain(account.budgets_at_half(is_new)) {
            self.emit_budget(Some(usage), out);
        }
    }

    pub(super) fn emit_budget(&self, usage: Option<BudgetUse>, out: &mut Outbox) {
        if let Some(usage) = usage {
            out.emit(self.watchers.budgets, self.now, EventKind::Budget(usage));
        }
    }
}

impl CheckContext<'_> {
    /// Returns the holdings of the strategy and the account.
    #[inline(always)]
    fn held(&self) -> (HeldQty, HeldQty) {
        let CheckContext { position, exposure, .. } = self;
        let mine = HeldQty { net: position.state.qty, open: position.open };
        (mine, HeldQty { net: exposure.net, open: exposure.open })
    }
}

/// Checks that a reduce-only order has something to reduce.
fn check_reduction(terms: &Terms, context: &CheckContext<'_>) -> Result<(), Reason> {
    if !terms.reduce_only {
        return Ok(());
    }
    let net = context.position.state.qty;
    let opposite = if net.is_positive() { Side::Sell } else { Side::Buy };
    if net.is_zero() || terms.side != opposite {
        return Err(Reason::PositionFlat);
    }
    let left = net.abs().checked_sub(context.position.reducing).unwrap_or_default();
    if terms.qty <= left { Ok(()) } else { Err(Reason::PositionTooSmall) }
}

/// Returns the value of an order, as a magnitude; `None` within if it cannot be determined.
#[inline(always)]
fn value_of(terms: &Terms, own: Option<Price>, context: &CheckContext<'_>) -> Result<Option<Money>, Reason> {
    let Some(price) = own.or(context.last) else {
        return Ok(None);
    };
    Notional::value(price, terms.qty, context.security.instrument.size).map(Some).ok_or(Reason::Overflow)
}

/// Checks what the venue limits per order, so that the order is not sent in vain.
#[inline(always)]
fn check_venue_limits(
    kind: OrderKind,
    value: Option<Money>,
    context: &CheckContext<'_>,
) -> Result<(), Reason> {
    match &context.security.limits {
        None => Ok(()),
        Some(limits) => limits.check(kind, value),
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
