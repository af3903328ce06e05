//! Kill switches, limits, phases, sessions and the clock.

use pitlane_engine::command::{
    BudgetAct, BudgetChange, BudgetKind, CancelFilter, RiskLimits, Scope, StrategyPhase, TradingSession,
};
use pitlane_engine::directive::{Directive, DirectiveVersion};
use pitlane_engine::event::{Alert, ExecType};
use pitlane_engine::id::{AdapterId, ExchangeId, IntId, SecurityId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Tif;
use pitlane_engine::time::Day;

use super::order::{OrderBase, OrderPlace};
use super::{Twin, TwinEvent, TwinOrder};

impl Twin {
    pub(super) fn subscribe(&mut self, strategy: StrategyId, security: SecurityId, on: bool) {
        if self.reference.strategy(strategy).is_none() {
            return self.done(Reason::UnknownStrategy);
        }
        if self.reference.security(security).is_none() {
            return self.done(Reason::UnknownSecurity);
        }
        self.subscriptions.retain(|&entry| entry != (strategy, security));
        if on {
            self.subscriptions.push((strategy, security));
        }
        self.done(Reason::None);
    }

    pub(super) fn adapter(&mut self, adapter: AdapterId, connected: bool) {
        let was = self.adapters.insert(adapter, connected).unwrap_or(false);
        let suspects = std::mem::take(&mut self.suspects);
        let was_suspect = suspects.iter().any(|&security| self.adapter_of(security) == adapter);
        self.suspects =
            suspects.into_iter().filter(|&security| self.adapter_of(security) != adapter).collect();
        if was && !connected {
            for order in 0..self.orders.len() {
                let o = &self.orders[order];
                let waiting = o.base == OrderBase::PendingNew || o.cancel.is_some() || o.replace.is_some();
                let outside = o.place == OrderPlace::Outside && !o.in_doubt;
                if outside && waiting && self.adapter_of(o.terms.security) == adapter {
                    self.doubt(order);
                }
            }
        }
        if connected && !was {
            for order in 0..self.orders.len() {
                if self.orders[order].sent && self.adapter_of(self.orders[order].terms.security) == adapter {
                    self.orders[order].asked = true;
                }
            }
        }
        if connected && (!was || was_suspect) {
            // The market may have reached waiting stops meanwhile.
            for security in self.known_securities() {
                if self.adapter_of(security) == adapter {
                    self.settle_stops(security);
                }
            }
        }
        self.done(Reason::None);
    }

    /// Applies a directive. Of the directives with one key the newest counts, in whatever order
    /// they come.
    pub(super) fn direct(&mut self, version: DirectiveVersion, directive: Directive) {
        let key = directive.key();
        if self.directives.get(&key).is_some_and(|known| *known >= version) {
            return self.done(Reason::None);
        }
        match directive {
            Directive::Kill { scope, on } => self.kill(scope, on),
            Directive::Limits { scope, limits } => self.set_limits(scope, limits),
            Directive::Restrict { scope, security, on } => self.restrict(scope, security, on),
        }
        if self.events.contains(&TwinEvent::Done(Reason::None)) {
            self.directives.insert(key, version);
        }
    }

    pub(super) fn set_limits(&mut self, scope: Scope, limits: RiskLimits) {
        if !self.has_limits(scope) {
            return self.done(Reason::UnknownScope);
        }
        self.limits.insert(scope, limits);
        // The only shard takes the whole of a new limit at once, and of a higher one no more than
        // it had: the budget assigns the rest.
        let wholes = [
            (BudgetKind::OpenOrders, limits.max_open_orders as i64),
            (BudgetKind::OrdersPerSecond, limits.max_orders_per_s as i64),
            (BudgetKind::Credit, limits.credit.raw()),
        ];
        for (kind, whole) in wholes {
            match whole {
                0 => {
                    self.budgets.remove(&(scope, kind));
                }
                _ => {
                    let had = self.budgets.get(&(scope, kind)).copied().unwrap_or(whole);
                    self.budgets.insert((scope, kind), had.min(whole));
                }
            }
        }
        self.done(Reason::None);
    }

    /// Returns whether a scope can have limits: strategies and accounts can.
    fn has_limits(&self, scope: Scope) -> bool {
        match scope {
            Scope::Strategy(strategy) => self.reference.strategy(strategy).is_some(),
            Scope::Account(account) => self.reference.account(account).is_some(),
            Scope::Global | Scope::Security(_) | Scope::Adapter(_) => false,
        }
    }

    pub(super) fn restrict(&mut self, scope: Scope, security: SecurityId, on: bool) {
        if !self.has_limits(scope) {
            return self.done(Reason::UnknownScope);
        }
        if self.reference.security(security).is_none() {
            return self.done(Reason::UnknownSecurity);
        }
        self.restricted.retain(|&entry| entry != (scope, security));
        if on {
            self.restricted.push((scope, security));
        }
        self.done(Reason::None);
    }

    pub(super) fn kill(&mut self, scope: Scope, on: bool) {
        let known = match scope {
            Scope::Global => true,
            Scope::Strategy(strategy) => self.reference.strategy(strategy).is_some(),
            Scope::Account(account) => self.reference.account(account).is_some(),
            Scope::Security(security) => self.reference.security(security).is_some(),
            Scope::Adapter(adapter) => self.reference.exchanges().iter().any(|row| row.adapter == adapter),
        };
        if !known {
            return self.done(Reason::UnknownScope);
        }
        self.killed.retain(|&entry| entry != scope);
        if on {
            self.killed.push(scope);
            self.cancel_where(Reason::KillSwitch, |twin, terms| match scope {
                Scope::Global => true,
                Scope::Strategy(strategy) => terms.strategy == strategy,
                Scope::Account(account) => terms.account == account,
                Scope::Security(security) => terms.security == security,
                Scope::Adapter(adapter) => twin.adapter_of(terms.security) == adapter,
            });
        }
        self.done(Reason::None);
    }

    pub(super) fn cancel_orders(&mut self, id: IntId, filter: &CancelFilter) {
        let is_strange = |strategy| self.reference.strategy(strategy).is_none();
        let reason = if id.is_none() {
            Reason::BadId
        } else if filter.strategy.is_some_and(is_strange) {
            Reason::UnknownStrategy
        } else if filter.security.is_some_and(|security| !self.markets.contains_key(&security)) {
            Reason::UnknownSecurity
        } else {
            Reason::None
        };
        if reason == Reason::None {
            for order in 0..self.orders.len() {
                let o = &self.orders[order];
                let is_selected = filter.strategy.unwrap_or(o.terms.strategy) == o.terms.strategy
                    && filter.security.unwrap_or(o.terms.security) == o.terms.security
                    && filter.side.unwrap_or(o.terms.side) == o.terms.side
                    && filter.origin.unwrap_or(o.source.origin) == o.source.origin
                    && filter.source.unwrap_or(o.source) == o.source;
                if is_selected && !o.is_over() && o.cancel.is_none() {
                    self.ask_cancel(order, id);
                }
            }
        }
        self.done(reason);
    }

    pub(super) fn phase(&mut self, strategy: StrategyId, phase: StrategyPhase) {
        if self.reference.strategy(strategy).is_none() {
            return self.done(Reason::UnknownStrategy);
        }
        self.phases.insert(strategy, phase);
        self.done(Reason::None);
    }

    pub(super) fn budget(&mut self, budget: &BudgetChange) {
        if !self.has_limits(budget.scope) {
            return self.done(Reason::UnknownScope);
        }
        let key = (budget.scope, budget.kind);
        match budget.act {
            BudgetAct::Lift => {
                self.budgets.remove(&key);
            }
            BudgetAct::Set(share) => {
                self.budgets.insert(key, share);
            }
            BudgetAct::Grant(more) => *self.budgets.entry(key).or_default() += more,
            // The shard decides what it returns; compared runs have no budget.
            BudgetAct::Recall(_) => {}
        }
        self.done(Reason::None);
    }

    pub(super) fn halt(&mut self, security: SecurityId, on: bool) {
        let Some(market) = self.markets.get_mut(&security) else {
            return self.done(Reason::UnknownSecurity);
        };
        let was = std::mem::replace(&mut market.halted, on);
        if was && !on && self.session_of(security) == TradingSession::Continuous {
            self.uncross(security);
            self.expire_where(security, Reason::ExpiredAuction, |tif, _| tif == Tif::Ato);
            self.serve_line(security);
            self.settle_stops(security);
        }
        self.done(Reason::None);
    }

    pub(super) fn session(&mut self, exchange: ExchangeId, session: TradingSession) {
        if self.reference.exchange(exchange).is_none() {
            return self.done(Reason::UnknownExchange);
        }
        let before = self.sessions.insert(exchange, session).unwrap_or_default();
        if before != session {
            for security in self.known_securities() {
                if self.exchange_of(security) == exchange {
                    self.change_session(security, before, session);
                }
            }
        }
        self.done(Reason::None);
    }

    /// Sets a session by the calendar, and whether the exchange has hours.
    pub(super) fn schedule(&mut self, exchange: ExchangeId, session: TradingSession, has_hours: bool) {
        self.with_hours.retain(|&id| id != exchange);
        if has_hours {
            self.with_hours.push(exchange);
        }
        self.session(exchange, session);
    }

    /// Ends a date: whatever expires on it or before is no longer traded, and its positions wait
    /// for a price.
    pub(super) fn expiry(&mut self, exchange: ExchangeId, day: Day) {
        if self.reference.exchange(exchange).is_none() {
            return self.done(Reason::UnknownExchange);
        }
        for security in self.known_securities() {
            let row = self.reference.security(security).expect("a known security");
            let here = self.reference.exchange_of(row).id == exchange;
            let market = self.markets.get_mut(&security).expect("a known security");
            market.expired |= here && row.expiration.is_some_and(|date| date <= day);
            if here && market.expired {
                self.expire_where(security, Reason::SecurityExpired, |_, _| true);
                let strategies: Vec<StrategyId> =
                    self.reference.strategies().iter().map(|row| row.id).collect();
                let is_held = |strategy| !self.position(strategy, security).qty.is_zero();
                if strategies.into_iter().any(is_held) || self.is_held_by_an_account(security) {
                    self.alert(Alert::Unsettled);
                }
            }
        }
        self.done(Reason::None);
    }

    /// Accounts may hold opposite positions of a strategy that holds nothing.
    fn is_held_by_an_account(&self, security: SecurityId) -> bool {
        self.reference.accounts().iter().any(|row| self.account_qty(row.id, security) != 0)
    }

    /// Moves one security from one session to the next.
    fn change_session(&mut self, security: SecurityId, before: TradingSession, session: TradingSession) {
        let halted = self.markets[&security].halted;
        let closed = before == TradingSession::ClosingAuction;
        if closed && !halted && session != TradingSession::Continuous {
            self.uncross(security);
        }
        if session == TradingSession::Continuous && !halted {
            self.uncross(security);
            self.expire_where(security, Reason::ExpiredAuction, |tif, _| tif == Tif::Ato);
        }
        if closed {
            self.expire_where(security, Reason::ExpiredAuction, |tif, place| {
                tif == Tif::Atc && place != OrderPlace::Parked
            });
        }
        if session == TradingSession::Continuous && !halted {
            self.serve_line(security);
            self.settle_stops(security);
        }
        if session == TradingSession::ClosingAuction {
            self.unpark(security);
        }
        if session == TradingSession::Closed {
            self.expire_where(security, Reason::ExpiredDay, |tif, place| {
                tif == Tif::Day && place != OrderPlace::Stop && place != OrderPlace::Outside
            });
            self.expire_where(security, Reason::ExpiredDay, |tif, place| {
                tif == Tif::Day && place == OrderPlace::Stop
            });
            self.expire_where(security, Reason::ExpiredAuction, |_, place| place == OrderPlace::Parked);
            self.note_day_over(security);
        }
    }

    /// External venues end their orders themselves, those that they have.
    fn note_day_over(&mut self, security: SecurityId) {
        let here = |o: &&mut TwinOrder| o.terms.security == security && o.place == OrderPlace::Outside;
        for order in self.orders.iter_mut().filter(here) {
            order.day_over |= !order.is_over() && order.terms.tif == Tif::Day;
        }
    }

    /// Expires day orders at the end of the day where no calendar closes the exchange.
    pub(super) fn trading_day(&mut self) {
        for security in self.known_securities() {
            let has_hours = self.with_hours.contains(&self.exchange_of(security));
            if !has_hours && self.session_of(security) != TradingSession::Closed {
                self.expire_where(security, Reason::ExpiredDay, |tif, _| tif == Tif::Day);
                self.note_day_over(security);
            }
        }
        self.done(Reason::None);
    }

    pub(super) fn timer(&mut self) {
        let due: Vec<usize> = (0..self.orders.len())
            .filter(|&at| {
                let o = &self.orders[at];
                let ours = o.place != OrderPlace::Outside;
                !o.is_over() && ours && o.terms.tif == Tif::Gtd && o.terms.tif_date <= self.now
            })
            .collect();
        for order in due {
            self.end(order, OrderBase::Expired, ExecType::Expired, Reason::ExpiredGtd);
        }
    }

    pub(super) fn expire_where(
        &mut self,
        security: SecurityId,
        reason: Reason,
        which: impl Fn(Tif, OrderPlace) -> bool,
    ) {
        for order in 0..self.orders.len() {
            let o = &self.orders[order];
            let ours = o.terms.security == security && !o.is_over() && o.place != OrderPlace::Outside;
            if ours && which(o.terms.tif, o.place) {
                self.end(order, OrderBase::Expired, ExecType::Expired, reason);
            }
        }
    }
}
