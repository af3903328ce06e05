//! Commands of the operator, the clock and the threads: everything that concerns no single order.
//! Each such command is answered with [`EventKind::Done`] when all of it is done.

use super::Shard;
use super::order_filter::{CancelOrigin, OrderFilter};
use crate::command::{
    BudgetAct, BudgetChange, CancelFilter, Command, CommandKind, RiskLimits, Scope, StrategyPhase,
    TradingSession, WatchTarget,
};
use crate::directive::{Directive, DirectiveVersion};
use crate::directory::ExchangeEntry;
use crate::event::EventKind;
use crate::id::{AdapterId, ExchangeId, IntId, PortId, PortMask, SecurityId, Source, StrategyId};
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::time::{Day, Timestamp};

/// The session of an exchange, from which a restart continues its calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    pub exchange: ExchangeId,
    pub session: TradingSession,
    /// Start of the session by the calendar; zero: unknown.
    pub since: Timestamp,
    pub has_hours: bool,
}

impl Shard {
    pub(super) fn administer(&mut self, command: &Command, out: &mut Outbox) {
        self.continuation.report_done_to(command.source, command.token);
        let done = match &command.body {
            CommandKind::Subscribe { strategy, security, on } => {
                self.subscribe(*strategy, *security, *on, out)
            }
            CommandKind::Adapter { adapter, connected } => self.adapter(*adapter, *connected, out),
            CommandKind::Transaction(movement) => self.movement(command.source, movement, out),
            CommandKind::Expire { security, price } => self.expire_security(*security, *price),
            CommandKind::ResetPositions => self.reset_positions(),
            CommandKind::ResetCash => self.reset_cash(),
            CommandKind::Limits { scope, limits } => self.limits(*scope, limits, out),
            CommandKind::Restrict { scope, security, on } => self.restrict(*scope, *security, *on, out),
            CommandKind::Kill { scope, on } => self.kill(*scope, *on, out),
            CommandKind::Direct { version, directive } => self.direct(*version, directive, out),
            CommandKind::Phase { strategy, phase } => self.phase(*strategy, *phase, out),
            CommandKind::Halt { security, on } => self.halt(*security, *on, out),
            CommandKind::Budget(budget) => self.budget(budget, out),
            CommandKind::Session { exchange, session } => self.session(*exchange, *session, out),
            CommandKind::TradingDay { day } => self.trading_day(*day),
            CommandKind::Watch { port, what, on } => self.watch(*port, *what, *on, out),
            CommandKind::Snapshot { port } => self.snapshots.request(*port),
            CommandKind::Reference { name } => self.change_reference(*name),
            CommandKind::Validate { terms } => self.validate(terms, out),
            CommandKind::Schedule { exchange, session, since, has_hours } => {
                self.schedule(*exchange, *session, *since, *has_hours, out)
            }
            CommandKind::Expiry { exchange, day } => self.expiry(*exchange, *day),
            CommandKind::CancelOrders { id, filter } => self.cancel_orders(command.source, id, filter),
            CommandKind::AuditAnchor(anchor) => {
                self.requests.audit_anchor = Some(*anchor);
                Ok(())
            }
            CommandKind::Submit { .. }
            | CommandKind::Modify { .. }
            | CommandKind::Cancel { .. }
            | CommandKind::Close { .. }
            | CommandKind::Quote { .. }
            | CommandKind::Trade { .. }
            | CommandKind::Tick { .. }
            | CommandKind::Level { .. }
            | CommandKind::VenueLevels(_)
            | CommandKind::VenueBook { .. }
            | CommandKind::Report { .. }
            | CommandKind::Sender { .. }
            | CommandKind::SpecialTerms(_)
            | CommandKind::Timer => unreachable!("these are dispatched in `apply`"),
        };
        if let Err(reason) = done {
            self.continuation.refuse(reason);
        }
    }

    /// Puts the staged reference data into force; refuses the command if others are staged.
    fn change_reference(&mut self, name: u64) -> Result<(), Reason> {
        let reference = self.directory.take_staged(name).ok_or(Reason::UnknownScope)?;
        self.set_reference(reference);
        Ok(())
    }

    fn subscribe(
        &mut self,
        strategy: StrategyId,
        security: SecurityId,
        on: bool,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Some((local, subscribers)) = self.directory.subscribe(strategy, security, on)? else {
            return Ok(());
        };
        // Depth is published from the first subscriber on and until the last one leaves.
        self.venue.touch(local);
        let to = self.watchers.of_shard_and_budgets();
        out.emit(to, self.now, EventKind::Subscription { strategy, security, on, subscribers });
        Ok(())
    }

    fn adapter(&mut self, adapter: AdapterId, connected: bool, out: &mut Outbox) -> Result<(), Reason> {
        if adapter == AdapterId::SIM {
            return Err(Reason::UnknownScope);
        }
        let was_suspect = self.directory.clear_suspect(adapter);
        if self.adapters.set_connected(adapter, connected) {
            self.emit(EventKind::Adapter { adapter, connected }, out);
            self.continuation.begin_adapter(adapter, connected);
            self.continuation.recheck_closes();
        } else if connected && was_suspect {
            self.continuation.recheck_stops(adapter);
        }
        Ok(())
    }

    /// Applies a directive unless a newer one is known. In both cases the command succeeds: the
    /// directive, or the one that overrules it, is in force.
    fn direct(
        &mut self,
        version: DirectiveVersion,
        directive: &Directive,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        if !self.directives.is_newer(directive, version)? {
            return Ok(());
        }
        match directive {
            Directive::Kill { scope, on } => self.kill(*scope, *on, out)?,
            Directive::Limits { scope, limits } => self.limits(*scope, limits, out)?,
            Directive::Restrict { scope, security, on } => self.restrict(*scope, *security, *on, out)?,
        }
        self.directives.note(*directive, version);
        self.emit(EventKind::Directed { version, directive: *directive }, out);
        Ok(())
    }

    fn limits(&mut self, scope: Scope, limits: &RiskLimits, out: &mut Outbox) -> Result<(), Reason> {
        let (shard, shards) = (self.id.0, self.shards);
        let guard = self.directory.guard_mut(scope).ok_or(Reason::UnknownScope)?;
        let counts_others = guard.limits().credit_currency != limits.credit_currency;
        guard.set_limits(*limits, shard, shards);
        if let Scope::Account(account) = scope
            && counts_others
        {
            self.recount_credit_of_all(account);
        }
        // The budget pool distributes the limit in parts.
        let to = self.watchers.of_shard_and_budgets();
        out.emit(to, self.now, EventKind::Limits { scope, limits: *limits });
        Ok(())
    }

    fn restrict(
        &mut self,
        scope: Scope,
        security: SecurityId,
        on: bool,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        self.directory.reference.security(security).ok_or(Reason::UnknownSecurity)?;
        let guard = self.directory.guard_mut(scope).ok_or(Reason::UnknownScope)?;
        guard.restrict(security, on);
        self.emit(EventKind::Restrict { scope, security, on }, out);
        Ok(())
    }

    fn kill(&mut self, scope: Scope, on: bool, out: &mut Outbox) -> Result<(), Reason> {
        let filter = match scope {
            Scope::Global => {
                self.killed = on;
                Some(OrderFilter::All)
            }
            Scope::Strategy(id) => {
                self.directory.guard_mut(scope).ok_or(Reason::UnknownScope)?.set_killed(on);
                Some(OrderFilter::Strategy(id))
            }
            Scope::Account(id) => {
                self.directory.guard_mut(scope).ok_or(Reason::UnknownScope)?.set_killed(on);
                Some(OrderFilter::Account(id))
            }
            Scope::Security(id) => {
                self.directory.reference.security(id).ok_or(Reason::UnknownScope)?;
                // Every shard gets the command; one of them owns the security.
                self.directory.local(id).map(|local| {
                    self.directory.locals[local as usize].killed = on;
                    OrderFilter::Security(local)
                })
            }
            Scope::Adapter(id) => {
                self.adapters.get_mut(id).is_killed = on;
                Some(OrderFilter::Adapter(id))
            }
        };
        self.emit(EventKind::Kill { scope, on }, out);
        if on && let Some(filter) = filter {
            self.continuation.begin_cancel(filter, Reason::KillSwitch);
        }
        Ok(())
    }

    /// Cancels the selected orders, with the id of the command as the id of each request.
    fn cancel_orders(&mut self, source: Source, id: &IntId, filter: &CancelFilter) -> Result<(), Reason> {
        if id.is_none() {
            return Err(Reason::BadId);
        }
        if let Some(strategy) = filter.strategy {
            self.directory.strategy(strategy).ok_or(Reason::UnknownStrategy)?;
        }
        if let Some(security) = filter.security {
            self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        }
        let request = CancelOrigin { id: *id, source };
        self.continuation.begin_requested_cancel(OrderFilter::Selected(*filter), request);
        Ok(())
    }

    fn phase(&mut self, strategy: StrategyId, phase: StrategyPhase, out: &mut Outbox) -> Result<(), Reason> {
        let at = self.directory.strategy(strategy).ok_or(Reason::UnknownStrategy)?;
        self.directory.strategies[at as usize].phase = phase;
        self.emit(EventKind::Phase { strategy, phase }, out);
        Ok(())
    }

    fn halt(&mut self, security: SecurityId, on: bool, out: &mut Outbox) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        if self.directory.locals[local as usize].halted != on {
            self.continuation.mark_moved();
            self.halt_local(local, on, out);
        }
        Ok(())
    }

    fn budget(&mut self, budget: &BudgetChange, out: &mut Outbox) -> Result<(), Reason> {
        let guard = self.directory.guard_mut(budget.scope).ok_or(Reason::UnknownScope)?;
        let usage = guard.budget(budget);
        // The read model also learns the use from such an answer; all other reports of it are for
        // the budget pool alone, because they may come with every order.
        if matches!(budget.act, BudgetAct::Recall(_)) {
            let to = self.watchers.everything.with(self.watchers.budgets);
            out.emit(to, self.now, EventKind::Budget(usage));
        }
        Ok(())
    }

    fn session(
        &mut self,
        exchange: ExchangeId,
        session: TradingSession,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let at = self.directory.exchange_index(exchange).ok_or(Reason::UnknownExchange)?;
        let place = &mut self.directory.exchanges[at as usize];
        // The command has no time of its own, so the session begins now: as precise as in older
        // versions.
        place.since = self.now;
        if place.session != session {
            place.session = session;
            self.emit(EventKind::Session { exchange, session }, out);
            self.continuation.begin_session(at, session);
        }
        Ok(())
    }

    /// Returns the session of each exchange, as known to this shard.
    pub fn session_states(&self) -> Vec<SessionState> {
        let state_of = |place: &ExchangeEntry| SessionState {
            exchange: place.id,
            session: place.session,
            since: place.since,
            has_hours: place.has_hours,
        };
        self.directory.exchanges.iter().map(state_of).collect()
    }

    /// Sets whether an exchange has a calendar, and the session by that calendar.
    fn schedule(
        &mut self,
        exchange: ExchangeId,
        session: TradingSession,
        since: Timestamp,
        has_hours: bool,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        self.session(exchange, session, out)?;
        let at = self.directory.exchange_index(exchange).ok_or(Reason::UnknownExchange)?;
        let place = &mut self.directory.exchanges[at as usize];
        (place.since, place.has_hours) = (since, has_hours);
        Ok(())
    }

    fn trading_day(&mut self, day: Day) -> Result<(), Reason> {
        if self.days.begin(day) {
            self.requests.used_ids.clear();
        }
        self.ledger.fold_all();
        for local in 0..self.directory.local_count() {
            self.venue.market_mut(local).volume = Default::default();
        }
        self.continuation.begin_day(day);
        Ok(())
    }

    /// Starts or stops watching. A port that starts to watch a market gets its current tick.
    fn watch(&mut self, port: PortId, what: WatchTarget, on: bool, out: &mut Outbox) -> Result<(), Reason> {
        let one = PortMask::one(port);
        let mask = match what {
            WatchTarget::Ticks(security) => {
                let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
                let tick = self.current_tick(local);
                let is_followed = !self.directory.locals[local as usize].subscribers.is_empty();
                if on && is_followed && tick.at > Timestamp::ZERO {
                    out.emit_unnumbered(one, self.now, EventKind::Tick(tick));
                }
                &mut self.directory.locals[local as usize].watchers
            }
            WatchTarget::Depth(security) => return self.watch_depth(port, security, on, out),
            WatchTarget::Levels(security) => return self.watch_levels(port, security, on, out),
            WatchTarget::BookOrders(security) => return self.watch_book_orders(port, security, on),
            WatchTarget::Trades(security) => return self.watch_trades(port, security, on),
            WatchTarget::Orders => &mut self.watchers.orders,
            WatchTarget::Everything => &mut self.watchers.everything,
            WatchTarget::Venue(adapter) => &mut self.adapters.get_mut(adapter).ports,
            WatchTarget::Budgets => &mut self.watchers.budgets,
        };
        *mask = if on { mask.with(one) } else { mask.without(one) };
        Ok(())
    }
}
