//! Pre-trade limits of strategies and accounts. They come from settings and are checked in a fixed
//! order; each refusal names its rule. This module knows nothing about the lifecycle of orders.
//!
//! Rules: docs/engine-rules.md#risk-limits.

mod codec;
mod recent;

pub use recent::RECENT_MAX;
use recent::RecentOrders;

use crate::codec::{Codec, Digest};
use crate::command::{BudgetAct, BudgetChange, BudgetKind, RiskLimits, Scope};
use crate::event::BudgetUse;
use crate::id::{Currency, SecurityId};
use crate::ledger::OpenQty;
use crate::number::{self, Money, Price, Qty};
use crate::reason::Reason;
use crate::terms::{OrderKind, Side, Terms};
use crate::time::{NS_PER_S, Timestamp};

/// An order, or the change of one, to be checked.
#[derive(Clone, Copy, Debug)]
pub struct RiskRequest<'a> {
    pub terms: &'a Terms,
    /// Previous terms of a modified order.
    pub before: Option<&'a Terms>,
    /// The last price, if there was one.
    pub last: Option<Price>,
    /// Value of the order; `None` if it cannot be determined.
    pub value: Option<Money>,
    /// Growth of the quantity in the market.
    pub grows: Qty,
    /// Growth of the account's credit in use; `None` if it grows and the order has no price.
    pub credit: Option<Money>,
}

/// A scope's holdings in the security of the request.
#[derive(Clone, Copy, Debug)]
pub struct HeldQty {
    pub net: Qty,
    pub open: OpenQty,
}

/// The limits of one strategy or account, and what it has used of them in this shard.
#[derive(Clone, Debug)]
pub struct RiskGuard {
    scope: Scope,
    limits: RiskLimits,
    /// Follows from the limits and the switches.
    bounds: SizeBounds,
    killed: bool,
    restricted: Vec<SecurityId>,
    open_orders: BudgetShare,
    rate: BudgetShare,
    credit: BudgetShare,
    /// Credit in use, exact; `credit` holds it clamped to its type.
    credit_sum: i128,
    /// Start of the second that `rate` counts.
    second_ns: u64,
    recent: RecentOrders,
}

/// The limits of quantity, value and position in a form that one comparison checks: the largest
/// number where there is no limit. While a switch is set or a security is restricted, no quantity
/// is within its bound.
#[derive(Clone, Copy, Debug)]
struct SizeBounds {
    qty: u64,
    value: u64,
    position: u64,
    /// The duplicate window; zero: none.
    window_ns: u64,
}

impl SizeBounds {
    fn of(limits: &RiskLimits) -> SizeBounds {
        let bound = |limit: i64| if limit == 0 { u64::MAX } else { limit as u64 };
        SizeBounds {
            qty: bound(limits.max_order_qty.raw()),
            value: bound(limits.max_order_value.raw()),
            position: bound(limits.max_position.raw()),
            window_ns: limits.duplicate_window_ns(),
        }
    }
}

/// This shard's part of a limit that spans securities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetShare {
    /// Whether there is a limit at all.
    limited: bool,
    pub granted: i64,
    pub used: i64,
    /// Half of the granted amount: use beyond it is reported. The largest number if there is no
    /// limit.
    half: i64,
    /// The granted amount; the largest number if there is no limit.
    bound: i64,
}

impl Default for BudgetShare {
    fn default() -> BudgetShare {
        BudgetShare { limited: false, granted: 0, used: 0, half: i64::MAX, bound: i64::MAX }
    }
}

impl BudgetShare {
    fn admits(&self, more: i64) -> bool {
        !self.limited || more <= 0 || self.used.checked_add(more).is_some_and(|used| used <= self.granted)
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.used < self.bound
    }

    /// Uses one more. Returns whether the use has just passed half of the granted amount.
    #[inline]
    fn take_one(&mut self) -> bool {
        self.used += 1;
        self.has_passed_half()
    }

    /// Returns whether the last one that was used passed half of the granted amount.
    #[inline]
    fn has_passed_half(&self) -> bool {
        self.used.wrapping_sub(1) == self.half
    }

    fn grant(&mut self, limited: bool, granted: i64) {
        let (half, bound) = if limited { (granted / 2, granted) } else { (i64::MAX, i64::MAX) };
        *self = BudgetShare { limited, granted, used: self.used, half, bound };
    }

    fn act(&mut self, act: BudgetAct) -> i64 {
        match act {
            BudgetAct::Lift => self.grant(false, 0),
            BudgetAct::Set(granted) => self.grant(true, granted.max(0)),
            BudgetAct::Grant(more) => self.grant(true, self.granted.saturating_add(more.max(0))),
            BudgetAct::Recall(wanted) => {
                let unused = self.granted.saturating_sub(self.used.max(0)).max(0);
                let returned = wanted.clamp(0, unused);
                self.grant(self.limited, self.granted - returned);
                return returned;
            }
        }
        0
    }

    /// Sets a new limit for all shards together: this shard gets an even part of it, or keeps less
    /// if it had less. The budget pool moves shares afterwards.
    fn limit(&mut self, limit: i64, shard: u8, shards: u8) {
        if limit == 0 {
            return self.grant(false, 0);
        }
        let even = limit / shards as i64 + ((shard as i64) < limit % shards as i64) as i64;
        self.grant(true, if self.limited { self.granted.min(even) } else { even });
    }
}

impl RiskGuard {
    pub fn new(scope: Scope) -> RiskGuard {
        RiskGuard {
            scope,
            limits: RiskLimits::default(),
            bounds: SizeBounds::of(&RiskLimits::default()),
            killed: false,
            restricted: Vec::new(),
            open_orders: BudgetShare::default(),
            rate: BudgetShare::default(),
            credit: BudgetShare::default(),
            credit_sum: 0,
            second_ns: 0,
            recent: RecentOrders::new(),
        }
    }

    /// Adds the switch and the use to the digest.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        self.killed.encode(sum);
        [self.open_orders, self.rate, self.credit].encode(sum);
    }

    pub(crate) fn is_of(&self, scope: Scope) -> bool {
        self.scope == scope
    }

    pub fn set_limits(&mut self, limits: RiskLimits, shard: u8, shards: u8) {
        self.open_orders.limit(limits.max_open_orders as i64, shard, shards);
        self.rate.limit(limits.max_orders_per_s as i64, shard, shards);
        self.credit.limit(limits.credit.raw(), shard, shards);
        self.keep_limits(limits);
    }

    fn keep_limits(&mut self, limits: RiskLimits) {
        if limits.duplicate_window_ms > 0 {
            self.recent.reserve();
        }
        self.limits = limits;
        self.update_bounds();
    }

    fn update_bounds(&mut self) {
        self.bounds = SizeBounds::of(&self.limits);
        if !self.limits.trading_enabled || self.killed || !self.restricted.is_empty() {
            self.bounds.qty = 0;
        }
    }

    pub fn is_killed(&self) -> bool {
        self.killed
    }

    pub fn set_killed(&mut self, on: bool) {
        self.killed = on;
        self.update_bounds();
    }

    pub fn limits(&self) -> &RiskLimits {
        &self.limits
    }

    pub fn restrict(&mut self, security: SecurityId, on: bool) {
        match self.restricted.binary_search(&security) {
            Err(at) if on => self.restricted.insert(at, security),
            Ok(at) if !on => {
                self.restricted.remove(at);
            }
            _ => {}
        }
        self.update_bounds();
    }

    pub fn restricted(&self) -> &[SecurityId] {
        &self.restricted
    }

    /// Checks the switches: trading at all, and this security.
    pub fn check_switches(&self, security: SecurityId) -> Result<(), Reason> {
        if !self.limits.trading_enabled {
            return Err(Reason::TradingDisabled);
        }
        if !self.restricted.is_empty() && self.restricted.binary_search(&security).is_ok() {
            return Err(Reason::Restricted);
        }
        Ok(())
    }

    /// Returns whether a new order or a change is clear of every switch and limit of this scope, by
    /// a few comparisons. One that is not clear may still pass: then [`RiskGuard::check_switches`]
    /// and [`RiskGuard::check_limits`] check rule by rule.
    #[inline(always)]
    pub fn clears(&self, now: Timestamp, request: &RiskRequest<'_>, held: &HeldQty) -> bool {
        let bounds = &self.bounds;
        // What is open is not negative, so the first sum has 64 bits.
        let open = held.open.of(request.terms.side).raw() as u64;
        let grows = request.grows.raw().max(0) as u64;
        let reach = (held.net.raw().unsigned_abs() + open).saturating_add(grows);
        // One branch each, hardly ever taken: collected in a register, the results would need many.
        request.terms.qty.raw() as u64 <= bounds.qty
            && request.value.map_or(u64::MAX, |value| value.raw() as u64) <= bounds.value
            && reach <= bounds.position
            && now.0.wrapping_sub(self.second_ns) < NS_PER_S
            && self.rate.has_room()
            && self.open_orders.has_room()
            && (request.before.is_some() || self.recent.clears(now, bounds.window_ns, request.terms))
    }

    /// Checks the limits, in the order of the engine's README. It uses nothing up yet: see
    /// [`RiskGuard::take_order`].
    pub fn check_limits(
        &mut self,
        now: Timestamp,
        request: &RiskRequest<'_>,
        held: &HeldQty,
    ) -> Result<(), Reason> {
        self.check_size(request)?;
        self.check_collar(request)?;
        self.check_duplicate(now, request)?;
        self.turn_second(now);
        if !self.rate.admits(1) {
            return Err(Reason::OrderRate);
        }
        if request.before.is_none() && !self.open_orders.admits(1) {
            return Err(Reason::MaxOpenOrders);
        }
        self.check_position(request, held)
    }

    /// Checks whether the account's credit covers the request.
    pub fn check_credit(&self, request: &RiskRequest<'_>) -> Result<(), Reason> {
        if !self.credit.limited {
            return Ok(());
        }
        match request.credit {
            None => Err(Reason::NoReferencePrice),
            Some(more) if self.credit.admits(more.raw()) => Ok(()),
            Some(_) => Err(Reason::InsufficientFunds),
        }
    }

    /// Returns whether the account has a credit in this currency.
    #[inline]
    pub fn has_credit_in(&self, currency: Currency) -> bool {
        self.credit.limited && self.limits.credit_currency == currency
    }

    /// Counts an order or modification that passed the checks. Returns whether the use of a budget
    /// has just passed half, see [`RiskGuard::budgets_at_half`].
    #[inline(always)]
    pub fn take_order(&mut self, now: Timestamp, request: &RiskRequest<'_>) -> bool {
        let rate = self.rate.take_one();
        if request.before.is_some() {
            return rate;
        }
        if self.bounds.window_ns > 0 {
            self.recent.remember(now, request.terms);
        }
        rate | self.open_orders.take_one()
    }

    /// Returns the budgets whose use has just passed half with a new order, or with a modification.
    pub fn budgets_at_half(&self, is_new: bool) -> impl Iterator<Item = BudgetUse> {
        let rate = self.rate.has_passed_half().then(|| self.usage(BudgetKind::OrdersPerSecond));
        let open = is_new && self.open_orders.has_passed_half();
        rate.into_iter().chain(open.then(|| self.usage(BudgetKind::OpenOrders)))
    }

    /// Counts an open order of this scope that was reopened or has ended.
    pub fn count_open(&mut self, by: i64) {
        self.open_orders.used += by;
    }

    /// Returns whether securities in this currency count against the account's credit, limited or
    /// not.
    #[inline]
    pub fn counts_credit_in(&self, currency: Currency) -> bool {
        self.limits.credit_currency == currency
    }

    /// Changes the credit in use. Returns whether it has just passed half of the granted amount.
    pub fn change_credit(&mut self, by: i128) -> bool {
        let was_below = self.credit.used <= self.credit.half;
        self.credit_sum += by;
        self.credit.used = number::saturated(self.credit_sum);
        was_below & (self.credit.used > self.credit.half)
    }

    /// Returns the credit in use, exact.
    pub fn credit_sum(&self) -> i128 {
        self.credit_sum
    }

    pub fn budget(&mut self, budget: &BudgetChange) -> BudgetUse {
        let share = self.share_mut(budget.kind);
        let returned = share.act(budget.act);
        BudgetUse { returned, ..self.usage(budget.kind) }
    }

    pub fn usage(&self, kind: BudgetKind) -> BudgetUse {
        let share = self.share(kind);
        BudgetUse {
            scope: self.scope,
            kind,
            granted: share.granted,
            used: share.used,
            returned: 0,
            wanting: 0,
        }
    }

    pub fn share(&self, kind: BudgetKind) -> &BudgetShare {
        match kind {
            BudgetKind::OpenOrders => &self.open_orders,
            BudgetKind::OrdersPerSecond => &self.rate,
            BudgetKind::Credit => &self.credit,
        }
    }

    fn share_mut(&mut self, kind: BudgetKind) -> &mut BudgetShare {
        match kind {
            BudgetKind::OpenOrders => &mut self.open_orders,
            BudgetKind::OrdersPerSecond => &mut self.rate,
            BudgetKind::Credit => &mut self.credit,
        }
    }

    fn check_size(&self, request: &RiskRequest<'_>) -> Result<(), Reason> {
        let limits = &self.limits;
        let more_qty = request.before.is_none_or(|before| request.terms.qty > before.qty);
        if more_qty && !limits.max_order_qty.is_zero() && request.terms.qty > limits.max_order_qty {
            return Err(Reason::MaxOrderQty);
        }
        // A modification is checked on the increase: it may make a large order smaller, even one
        // without a value.
        let no_more_value = request.before.is_some() && !request.grows_in_value();
        if limits.max_order_value.is_zero() || no_more_value {
            return Ok(());
        }
        match request.value {
            None => Err(Reason::NoReferencePrice),
            Some(value) if value <= limits.max_order_value => Ok(()),
            Some(_) => Err(Reason::MaxOrderValue),
        }
    }

    /// Returns a little less than the largest distance from the reference price, in hundredths of a
    /// percent; without a limit the largest number.
    #[inline]
    pub fn collar_bp(&self) -> u32 {
        self.limits.price_collar_bp.wrapping_sub(1)
    }

    fn check_collar(&self, request: &RiskRequest<'_>) -> Result<(), Reason> {
        let bp = self.limits.price_collar_bp;
        let terms = request.terms;
        // A modification that keeps its limit, and the stop price that a stop limit is compared
        // with, is not checked; one without a limit has none to change.
        let kept = request.before.is_some_and(|before| {
            before.limit == terms.limit && (terms.kind != OrderKind::StopLimit || before.stop == terms.stop)
        });
        if bp == 0 || terms.reduce_only || kept {
            return Ok(());
        }
        let reference = match terms.kind {
            OrderKind::StopLimit => Some(terms.stop),
            OrderKind::Market | OrderKind::Limit | OrderKind::Stop => request.last,
        };
        let Some(reference) = reference else {
            return Err(Reason::NoReferencePrice);
        };
        if !terms.kind.has_limit() {
            return Ok(());
        }
        if terms.limit.is_within(bp, reference) { Ok(()) } else { Err(Reason::PriceCollar) }
    }

    fn check_duplicate(&self, now: Timestamp, request: &RiskRequest<'_>) -> Result<(), Reason> {
        let window = self.limits.duplicate_window_ns();
        let is_new = window == 0 || request.before.is_some();
        match is_new || !self.recent.contains(now, window, request.terms) {
            true => Ok(()),
            false => Err(Reason::DuplicateOrder),
        }
    }

    fn check_position(&self, request: &RiskRequest<'_>, held: &HeldQty) -> Result<(), Reason> {
        let max = self.limits.max_position;
        if max.is_zero() || !request.grows.is_positive() {
            return Ok(());
        }
        let side = request.terms.side;
        let open = held.open.of(side).checked_add(request.grows);
        let worst = open.and_then(|open| held.net.checked_add(side.signed(open)));
        match worst {
            // An order that can only bring the position nearer to zero is never too large for it.
            Some(worst) if worst.abs() <= max => Ok(()),
            Some(worst) if side == Side::Buy && !worst.is_positive() => Ok(()),
            Some(worst) if side == Side::Sell && !worst.is_negative() => Ok(()),
            _ => Err(Reason::MaxPosition),
        }
    }

    fn turn_second(&mut self, now: Timestamp) {
        let second_ns = now.0 - now.0 % NS_PER_S;
        if second_ns != self.second_ns {
            self.second_ns = second_ns;
            self.rate.used = 0;
        }
    }
}

impl RiskRequest<'_> {
    /// Returns whether its limit is surely within a collar, see [`RiskGuard::collar_bp`].
    #[inline(always)]
    pub fn is_near(&self, collar_bp: u32) -> bool {
        let terms = self.terms;
        if collar_bp == u32::MAX {
            true
        } else if terms.kind == OrderKind::StopLimit {
            terms.limit.is_within(collar_bp, terms.stop)
        } else {
            let is_within = |last| !terms.kind.has_limit() || terms.limit.is_within(collar_bp, last);
            self.last.is_some_and(is_within)
        }
    }

    /// Returns whether a modification raises quantity or price, and so its possible cost.
    fn grows_in_value(&self) -> bool {
        self.before.is_none_or(|before| {
            self.terms.qty > before.qty
                || self.terms.limit.abs() > before.limit.abs()
                || self.terms.stop.abs() > before.stop.abs()
        })
    }
}

#[cfg(test)]
mod tests;
