//! The checks before an order is sent, in the order of the engine's README.

use pitlane_engine::command::{BudgetKind, RiskLimits, Scope, StrategyPhase, TradingSession};
use pitlane_engine::id::{AdapterId, StrategyId};
use pitlane_engine::number::{Money, Notional, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::OrderLimits;
use pitlane_engine::terms::{OrderKind, Terms, Tif};
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};

use super::Twin;

impl Twin {
    /// Returns the first rule that the terms break. `old` is the order that they modify.
    pub(super) fn check(&self, terms: &Terms, old: Option<usize>) -> Reason {
        let stages = [
            self.check_reference(terms),
            if old.is_none() && self.is_closing(terms) { Reason::CloseInProgress } else { Reason::None },
            if self.reference.security(terms.security).is_some() {
                self.check_form(terms)
            } else {
                Reason::None
            },
        ];
        if let Some(reason) = stages.into_iter().find(|&reason| reason != Reason::None) {
            return reason;
        }
        self.check_risk(terms, old)
    }

    pub(super) fn check_reference(&self, terms: &Terms) -> Reason {
        let Some(security) = self.reference.security(terms.security) else { return Reason::UnknownSecurity };
        let expired = self.markets[&security.id].expired;
        if expired {
            return Reason::ExpiredSecurity;
        }
        if !security.tradeable || !self.reference.family_of(security).tradeable {
            return Reason::NotTradeable;
        }
        let exchange = self.reference.exchange_of(security);
        let Some(account) = self.reference.account(terms.account) else { return Reason::UnknownAccount };
        if !account.active {
            return Reason::AccountInactive;
        }
        if !self.reference.admits(account, exchange) {
            return Reason::AccountElsewhere;
        }
        if self.reference.strategy(terms.strategy).is_none() {
            return Reason::UnknownStrategy;
        }
        if !account.strategies.is_empty() && !account.strategies.contains(&terms.strategy) {
            return Reason::StrategyNotPermitted;
        }
        let phase = self.phases.get(&terms.strategy).copied().unwrap_or_default();
        if terms.strategy != StrategyId::SERVER && phase != StrategyPhase::Running {
            return Reason::StrategyNotRunning;
        }
        let connected = self.adapters.get(&exchange.adapter).copied().unwrap_or(false);
        if exchange.adapter != AdapterId::SIM && !connected {
            return Reason::VenueUnavailable;
        }
        Reason::None
    }

    fn check_form(&self, terms: &Terms) -> Reason {
        let security = self.reference.security(terms.security).expect("the reference was checked");
        let family = self.reference.family_of(security);
        let kind = terms.kind;
        let off_grid = |price: i64| price % family.tick_size.raw() != 0;
        if !terms.qty.is_positive() {
            return Reason::QuantityNotPositive;
        }
        if terms.qty.raw() % family.lot_size.raw() != 0 {
            return Reason::BadLot;
        }
        match (kind.has_limit(), terms.limit_given) {
            (true, false) => return Reason::LimitMissing,
            (false, true) => return Reason::LimitSuperfluous,
            (true, true) if off_grid(terms.limit.raw()) => return Reason::BadTick,
            (true, true) | (false, false) => {}
        }
        match (kind.has_stop(), terms.stop_given) {
            (true, false) => return Reason::StopMissing,
            (false, true) => return Reason::StopSuperfluous,
            (true, true) if off_grid(terms.stop.raw()) => return Reason::BadTick,
            (true, true) | (false, false) => {}
        }
        let special = self.check_special(terms);
        if special != Reason::None {
            return special;
        }
        match (terms.tif == Tif::Gtd, terms.tif_date != Timestamp::ZERO) {
            (true, false) => return Reason::TifDateMissing,
            (false, true) => return Reason::TifDateSuperfluous,
            (true, true) if terms.tif_date <= self.now => return Reason::TifDatePast,
            (true, true) | (false, false) => {}
        }
        if terms.tif.is_auction() && kind.has_stop() {
            return Reason::TifNotAllowed;
        }
        if terms.tif.is_auction() && !self.auction_ahead(terms) {
            return Reason::NoAuctionAhead;
        }
        if self.value(terms).is_some_and(|value| value.is_none()) {
            return Reason::Overflow;
        }
        let limited = self.check_limits_of_venue(terms, &family.limits);
        if limited != Reason::None {
            return limited;
        }
        if Money::per_unit(family.commission, terms.qty).is_none() || self.cannot_count(terms) {
            return Reason::Overflow;
        }
        Reason::None
    }

    fn check_limits_of_venue(&self, terms: &Terms, limits: &OrderLimits) -> Reason {
        if limits.kinds.iter().all(|kind| kind != terms.kind) {
            return Reason::VenueUnsupported;
        }
        let Some(Some(value)) = self.value(terms) else { return Reason::None };
        let is_market = matches!(terms.kind, OrderKind::Market | OrderKind::Stop);
        match (limits.min_notional, limits.max_notional) {
            (Some(min), _) if value < min.amount.raw() && (min.to_market || !is_market) => {
                Reason::MinNotional
            }
            (_, Some(max)) if value > max.amount.raw() && (max.to_market || !is_market) => {
                Reason::MaxNotional
            }
            _ => Reason::None,
        }
    }

    /// Returns whether position, cash or cost would leave half the range of their types.
    fn cannot_count(&self, terms: &Terms) -> bool {
        const HALF: i128 = (i64::MAX / 2) as i128;
        let open = |mine: &dyn Fn(&Terms) -> bool| {
            let same = self.orders.iter().filter(|o| {
                mine(&o.terms) && (o.terms.security, o.terms.side) == (terms.security, terms.side)
            });
            same.map(|o| o.leaves() as i128).sum::<i128>()
        };
        let sign = terms.side.signed(Qty::from_raw(1)).raw() as i128;
        let position = self.position(terms.strategy, terms.security);
        let by_strategy = open(&|o| o.strategy == terms.strategy) + sign * position.qty.raw() as i128;
        let held = self.account_qty(terms.account, terms.security) as i128;
        let by_account = open(&|o| o.account == terms.account) + sign * held;
        let value = self.value(terms).flatten().unwrap_or(0) as i128;
        let security = self.reference.security(terms.security).expect("the reference was checked");
        let cash = self.cash(terms.strategy, self.reference.family_of(security).currency).raw().abs() as i128;
        let qty = terms.qty.raw() as i128;
        (by_strategy + qty).abs().max((by_account + qty).abs()) > HALF
            || value + cash > HALF
            || value + position.cost.raw().abs() as i128 > HALF
    }

    fn auction_ahead(&self, terms: &Terms) -> bool {
        let security = self.reference.security(terms.security).expect("the reference was checked");
        if !self.reference.exchange_of(security).auctions {
            return false;
        }
        match (terms.tif, self.session_of(terms.security)) {
            (Tif::Ato, TradingSession::Closed | TradingSession::OpeningAuction) => true,
            (Tif::Ato, TradingSession::Continuous | TradingSession::ClosingAuction) => false,
            _ => true,
        }
    }

    /// Returns the price at which an order is valued; `None`: there is none yet.
    pub(super) fn reference_price(&self, terms: &Terms) -> Option<i64> {
        match terms.kind {
            OrderKind::Limit | OrderKind::StopLimit => Some(terms.limit.raw()),
            OrderKind::Stop => Some(terms.stop.raw()),
            OrderKind::Market => self.markets[&terms.security].last,
        }
    }

    /// Returns the value of the order: `None` without a price, `Some(None)` if it overflows.
    fn value(&self, terms: &Terms) -> Option<Option<i64>> {
        let price = self.reference_price(terms)?;
        let security = self.reference.security(terms.security).expect("the reference was checked");
        let size = self.reference.family_of(security).contract_size;
        let notional = Notional::of(Price::from_raw(price), terms.qty);
        Some(notional.money(size).map(|money| money.abs().raw()))
    }

    fn check_risk(&self, terms: &Terms, old: Option<usize>) -> Reason {
        let adapter = self.adapter_of(terms.security);
        let scopes = [Scope::Strategy(terms.strategy), Scope::Account(terms.account)];
        let switches =
            [Scope::Global, scopes[0], scopes[1], Scope::Security(terms.security), Scope::Adapter(adapter)];
        if switches.iter().any(|scope| self.killed.contains(scope)) {
            return Reason::KillSwitch;
        }
        if scopes.iter().any(|scope| self.limits.get(scope).is_some_and(|limits| !limits.trading_enabled)) {
            return Reason::TradingDisabled;
        }
        let restricted = |scope: &Scope| self.restricted.contains(&(*scope, terms.security));
        if scopes.iter().any(restricted) {
            return Reason::Restricted;
        }
        let limited =
            scopes.iter().map(|scope| (*scope, self.limits.get(scope).copied().unwrap_or_default()));
        let mut reasons = limited.map(|(scope, limits)| self.check_limits(terms, old, scope, &limits));
        if let Some(reason) = reasons.find(|&reason| reason != Reason::None) {
            return reason;
        }
        self.check_credit(terms, old)
    }

    fn check_limits(&self, terms: &Terms, old: Option<usize>, scope: Scope, limits: &RiskLimits) -> Reason {
        let before = old.map(|order| self.orders[order].terms);
        let more = before.is_none_or(|before| terms.qty > before.qty);
        let dearer = before.is_none_or(|before| {
            more || terms.limit.abs() > before.limit.abs() || terms.stop.abs() > before.stop.abs()
        });
        if limits.max_order_qty.is_positive() && more && terms.qty > limits.max_order_qty {
            return Reason::MaxOrderQty;
        }
        if limits.max_order_value.is_positive() && dearer {
            let Some(Some(value)) = self.value(terms) else { return Reason::NoReferencePrice };
            if value > limits.max_order_value.raw() {
                return Reason::MaxOrderValue;
            }
        }
        let repriced = before.is_none_or(|before| {
            terms.limit != before.limit || terms.kind == OrderKind::StopLimit && terms.stop != before.stop
        });
        if limits.price_collar_bp > 0 && !terms.reduce_only && repriced {
            let reason = self.check_collar(terms, limits.price_collar_bp);
            if reason != Reason::None {
                return reason;
            }
        }
        if old.is_none() && self.is_repeated(terms, scope, limits) {
            return Reason::DuplicateOrder;
        }
        if self.is_too_fast(scope) {
            return Reason::OrderRate;
        }
        if old.is_none() && self.has_too_many(scope) {
            return Reason::MaxOpenOrders;
        }
        if limits.max_position.is_positive() && self.is_too_much(terms, old, scope, limits.max_position) {
            return Reason::MaxPosition;
        }
        Reason::None
    }

    fn check_collar(&self, terms: &Terms, collar_bp: u32) -> Reason {
        let last = self.markets[&terms.security].last;
        let (price, from) = match terms.kind {
            OrderKind::StopLimit => (terms.limit.raw(), Some(terms.stop.raw())),
            OrderKind::Limit => (terms.limit.raw(), last),
            OrderKind::Market | OrderKind::Stop => (last.unwrap_or(0), last),
        };
        let Some(from) = from else { return Reason::NoReferencePrice };
        let far = (price as i128 - from as i128).abs() * 10_000;
        let near_enough = far <= (from as i128).abs() * collar_bp as i128;
        if near_enough { Reason::None } else { Reason::PriceCollar }
    }

    fn in_scope(&self, terms: &Terms, scope: Scope) -> bool {
        match scope {
            Scope::Strategy(strategy) => terms.strategy == strategy,
            Scope::Account(account) => terms.account == account,
            Scope::Global | Scope::Security(_) | Scope::Adapter(_) => false,
        }
    }

    /// Returns whether the same terms in every field are among the last 64 of the strategy or
    /// account.
    fn is_repeated(&self, terms: &Terms, scope: Scope, limits: &RiskLimits) -> bool {
        let window = limits.duplicate_window_ms as u64 * NS_PER_MS;
        let mine = self.sent.iter().rev().filter(|(_, sent)| self.in_scope(sent, scope));
        mine.take(64).any(|(at, sent)| sent == terms && self.now.since(*at) < window)
    }

    fn is_too_fast(&self, scope: Scope) -> bool {
        let Some(&budget) = self.budgets.get(&(scope, BudgetKind::OrdersPerSecond)) else { return false };
        let second = self.now.0 / NS_PER_S;
        let asked = self.asked.iter().filter(|(_, terms)| self.in_scope(terms, scope));
        asked.filter(|(at, _)| at.0 / NS_PER_S == second).count() as i64 >= budget
    }

    fn has_too_many(&self, scope: Scope) -> bool {
        let Some(&budget) = self.budgets.get(&(scope, BudgetKind::OpenOrders)) else { return false };
        self.open_orders(scope) >= budget
    }

    pub fn open_orders(&self, scope: Scope) -> i64 {
        self.orders.iter().filter(|o| !o.is_over() && self.in_scope(&o.terms, scope)).count() as i64
    }

    /// Returns whether position and open orders of one side could exceed the limit.
    fn is_too_much(&self, terms: &Terms, old: Option<usize>, scope: Scope, max: Qty) -> bool {
        let held = match scope {
            Scope::Strategy(strategy) => self.position(strategy, terms.security).qty.raw(),
            Scope::Account(account) => self.account_qty(account, terms.security),
            Scope::Global | Scope::Security(_) | Scope::Adapter(_) => 0,
        };
        let same = |o: &&super::TwinOrder| {
            self.in_scope(&o.terms, scope) && (o.terms.security, o.terms.side) == (terms.security, terms.side)
        };
        let open: i64 = self.orders.iter().filter(same).map(|o| o.open()).sum();
        let growth = terms.qty.raw() - old.map_or(0, |order| self.orders[order].terms.qty.raw());
        if growth <= 0 {
            return false;
        }
        // From here on buys and sells look alike: positive is the direction of the order.
        let held = terms.side.signed(Qty::from_raw(held)).raw();
        let after = held + open + growth;
        let only_nearer = held < 0 && after <= 0;
        after.abs() > max.raw() && !only_nearer
    }
}
