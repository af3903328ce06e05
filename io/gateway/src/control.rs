//! Operator, clock and budgets as a port: sends the shards the settings they need before trading
//! starts, and their shares of the limits.
//!
//! ```text
//! Snapshot ─► state of the shard ─► commands for what is missing ─► BudgetPool::ask ─► answers ─► set_limits
//! ```
//!
//! So a first start and a start after a crash are the same: a recovered shard receives few
//! commands, a new one all of them.

mod schedule;
mod settings;
mod settlement;

use std::collections::{BTreeMap, BTreeSet};

use pitlane_config::trading_hours::SessionChange;
use pitlane_engine::budget::BudgetPool;
use pitlane_engine::command::{CommandKind, RiskLimits, Scope, StrategyPhase, TradingSession, WatchTarget};
use pitlane_engine::directive::Directive;
use pitlane_engine::event::{Alert, Event, EventKind};
use pitlane_engine::id::{ExchangeId, Origin, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::number::Price;
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::shard::{SessionState, Shard, shard_of};
use pitlane_engine::time::{Day, NS_PER_S, Timestamp};

pub use self::settings::ControlSettings;
use self::settlement::{PendingSettlements, Resolution};
use super::EVENTS_PER_POLL_MAX;

/// Interval after which the budget asks again for what it lent.
const REMIND_NS: u64 = NS_PER_S;
/// Kinds of budget that [`BudgetPool::ask`] asks each shard for.
const KINDS_ASKED: usize = 3;

#[derive(Debug)]
pub struct Control {
    port: PortEnd,
    pending_commands: PendingCommands,
    budget: BudgetPool,
    /// Source of the budget's commands.
    budget_source: Source,
    control_settings: ControlSettings,
    /// By shard.
    known: Vec<KnownShardState>,
    /// Answers to the budget's questions that are still missing; the limits are set when it is
    /// zero.
    unanswered: usize,
    limits_set: bool,
    day: Day,
    /// Time at which the trading day ends.
    tomorrow: Timestamp,
    /// Session states of the exchanges in the shards of this server, as of the start.
    session_states: BTreeMap<ShardId, Vec<SessionState>>,
    /// Sessions of the exchanges in the calendar, as sent to the shards.
    sessions: BTreeMap<ExchangeId, SessionChange>,
    /// By exchange: the last date whose end was sent to the shards.
    ended_dates: BTreeMap<ExchangeId, Day>,
    awaited: PendingSettlements,
    /// Sessions of the exchanges, as passed to the market source.
    market_sessions: BTreeMap<ExchangeId, TradingSession>,
    /// Time of the last evaluation of the calendar: shards that are briefed later start from there.
    calendar_at: Timestamp,
    /// Time of the next evaluation of the calendar.
    next_calendar_at: Timestamp,
    remind_at: Timestamp,
}

/// The state of a shard according to its snapshot.
#[derive(Debug, Default)]
struct KnownShardState {
    /// The shard's current trading day.
    day: Option<Day>,
    limits: BTreeMap<Scope, RiskLimits>,
    /// Limits that an operator of the cluster has changed.
    directed_limits: BTreeMap<Scope, RiskLimits>,
    restricted: BTreeSet<(Scope, SecurityId)>,
    phases: BTreeMap<StrategyId, StrategyPhase>,
    followed: BTreeSet<SecurityId>,
    /// Whether the snapshot is complete, and the missing settings have been sent.
    is_configured: bool,
}

impl Control {
    /// Creates the port. `session_states` holds the session states of the shards of this server,
    /// see [`session_states`].
    pub fn new(
        port: PortEnd,
        now: Timestamp,
        control_settings: ControlSettings,
        session_states: BTreeMap<ShardId, Vec<SessionState>>,
    ) -> Control {
        let id = port.id();
        let source = |session| Source { origin: Origin::Server, port: id, session };
        let mut pending_commands = PendingCommands::new(source(0));
        pending_commands.push_all(CommandKind::Watch { port: id, what: WatchTarget::Budgets, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: id });
        let shards = port.shards();
        let known = (0..shards).map(|_| KnownShardState::default()).collect();
        Control {
            pending_commands,
            budget: BudgetPool::new(shards, source(1)),
            budget_source: source(1),
            day: control_settings.day_at(now),
            tomorrow: control_settings.tomorrow(control_settings.day_at(now)),
            session_states,
            sessions: sessions_at(&control_settings, now),
            ended_dates: control_settings.schedule.ended_dates(now, control_settings.day_at(now)).collect(),
            awaited: PendingSettlements::default(),
            market_sessions: BTreeMap::new(),
            calendar_at: now,
            next_calendar_at: now,
            unanswered: control_settings.limits.len() * shards as usize * KINDS_ASKED,
            limits_set: false,
            control_settings,
            known,
            port,
            remind_at: now.plus(REMIND_NS),
        }
    }

    /// Takes new reference data, which the shards have already, and sends the shards the settings
    /// of whatever is new in them. The rest stays as it is, including limits that were changed
    /// meanwhile.
    pub fn apply_settings(&mut self, control_settings: ControlSettings) {
        let shards = self.port.shards();
        let old = std::mem::replace(&mut self.control_settings, control_settings);
        let ControlSettings { limits, restrictions, running, followed, .. } = &self.control_settings;
        let pending_commands = &mut self.pending_commands;
        let had = |scope: &Scope| old.limits.iter().any(|(other, _)| other == scope);
        for (scope, limits) in limits.iter().filter(|(scope, _)| !had(scope)) {
            pending_commands.push_all(CommandKind::Limits { scope: *scope, limits: *limits });
            self.budget
                .set_limits(*scope, limits, |shard, command| pending_commands.push_command(shard, command));
        }
        for (scope, security) in restrictions.iter().filter(|row| !old.restrictions.contains(row)) {
            pending_commands.push_all(CommandKind::Restrict { scope: *scope, security: *security, on: true });
        }
        for &strategy in running.iter().filter(|id| !old.running.contains(id)) {
            for phase in
                [StrategyPhase::Init, StrategyPhase::Prefeed, StrategyPhase::Start, StrategyPhase::Running]
            {
                pending_commands.push_all(CommandKind::Phase { strategy, phase });
            }
        }
        for &security in followed.iter().filter(|id| !old.followed.contains(id)) {
            let body = CommandKind::Subscribe { strategy: StrategyId::SERVER, security, on: true };
            pending_commands.push(shard_of(security, shards), body);
        }
        // New exchanges may have trading hours; and new securities may have expired.
        self.next_calendar_at = Timestamp::ZERO;
        self.send_ended_dates();
    }

    /// Returns whether the shards have all settings they need.
    pub fn is_ready(&self) -> bool {
        self.limits_set && self.pending_commands.is_empty()
    }

    /// Returns whether commands wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty()
    }

    pub fn deadline(&self) -> Timestamp {
        self.remind_at.min(self.tomorrow).min(self.next_calendar_at)
    }

    /// Returns when the trading day or a session changes next.
    pub fn next_change(&self) -> Timestamp {
        self.tomorrow.min(self.next_calendar_at)
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.port.take_wakeups()
    }

    /// Drains the events of the shards, up to a bound. Calls `follow` with whether a security has
    /// subscribers.
    pub fn drain_events(&mut self, mut follow: impl FnMut(SecurityId, bool)) -> usize {
        for drained in 0..EVENTS_PER_POLL_MAX {
            let Some((shard, event)) = self.port.poll_event() else { return drained };
            if let EventKind::Subscription { security, subscribers, .. } = event.body {
                follow(security, subscribers > 0);
            }
            self.apply_snapshot_event(shard, &event);
            self.count_answer(&event);
            if let EventKind::Limits { scope, limits } = &event.body {
                self.handle_limits(shard, *scope, *limits);
            } else if let EventKind::Alert { alert: Alert::Unsettled, security, .. } = &event.body {
                self.settle(*security);
            } else if let EventKind::Tick(tick) = &event.body {
                let settled = self.awaited.settle(tick, &self.control_settings.settlement);
                if !settled.is_empty() {
                    let what = WatchTarget::Ticks(tick.security);
                    self.pending_commands
                        .push(shard, CommandKind::Watch { port: self.port.id(), what, on: false });
                }
                settled.into_iter().for_each(|(security, price)| self.expire(security, price));
            }
            let pending_commands = &mut self.pending_commands;
            self.budget
                .handle_event(shard, &event, |shard, command| pending_commands.push_command(shard, command));
        }
        EVENTS_PER_POLL_MAX
    }

    /// Does what is due, and sends commands while the lanes accept them. Calls `enter` with the
    /// current session of an exchange when it changes.
    pub fn poll(&mut self, now: Timestamp, enter: impl FnMut(ExchangeId, TradingSession)) -> usize {
        if now >= self.remind_at {
            self.remind_at = now.plus(REMIND_NS);
            let pending_commands = &mut self.pending_commands;
            self.budget.remind(|shard, command| pending_commands.push_command(shard, command));
        }
        if now >= self.next_calendar_at {
            self.apply_calendar(now, enter);
        }
        if now >= self.tomorrow {
            self.roll_trading_day(now);
        }
        if !self.limits_set && self.unanswered == 0 && self.known.iter().all(|known| known.is_configured) {
            self.set_limits();
        }
        self.pending_commands.poll(&mut self.port)
    }

    /// Sends the session changes that are due, including those missed since the last evaluation:
    /// the process may have been suspended, or its clock may have jumped.
    fn apply_calendar(&mut self, now: Timestamp, mut enter: impl FnMut(ExchangeId, TradingSession)) {
        (self.next_calendar_at, self.calendar_at) = (Timestamp::MAX, now);
        let ControlSettings { schedule, .. } = &self.control_settings;
        let mut commands = Vec::new();
        for (exchange, current) in schedule.calendar.at(now) {
            self.next_calendar_at = self.next_calendar_at.min(current.until);
            let changes = schedule.changes(exchange, self.sessions.get(&exchange).copied(), now);
            let mut last_ended = self.ended_dates.get(&exchange).copied();
            commands.extend(schedule.commands(exchange, &changes, &mut last_ended));
            if let Some(day) = last_ended {
                self.ended_dates.insert(exchange, day);
            }
            if let Some(change) = changes.last() {
                self.sessions.insert(exchange, *change);
            }
            if self.market_sessions.insert(exchange, current.session) != Some(current.session) {
                enter(exchange, current.session);
            }
        }
        // Exchanges whose trading hours the reference data have removed.
        for (&exchange, _) in self.sessions.iter().filter(|(id, _)| !schedule.calendar.has_hours(**id)) {
            let (session, since) = (TradingSession::Continuous, Timestamp::ZERO);
            commands.push(CommandKind::Schedule { exchange, session, since, has_hours: false });
            self.market_sessions.remove(&exchange);
            enter(exchange, session);
        }
        self.sessions.retain(|exchange, _| schedule.calendar.has_hours(*exchange));
        commands.into_iter().for_each(|body| self.send_to_configured(body));
    }

    /// Sends a command to every briefed shard of this server; the others receive everything when
    /// they are briefed.
    fn send_to_configured(&mut self, body: CommandKind) {
        for &shard in self.session_states.keys().filter(|shard| self.known[shard.0 as usize].is_configured) {
            self.pending_commands.push(shard, body);
        }
    }

    /// Sends the dates that have ended, even if they were sent before: shards then repeat the
    /// alerts for positions that are still not settled.
    fn send_ended_dates(&mut self) {
        let ended_dates: Vec<_> =
            self.control_settings.schedule.ended_dates(self.calendar_at, self.day).collect();
        for (exchange, day) in ended_dates {
            self.ended_dates.insert(exchange, day);
            self.send_to_configured(CommandKind::Expiry { exchange, day });
        }
    }

    /// Closes the positions of an expired security as soon as there is a price.
    fn settle(&mut self, security: SecurityId) {
        match self.control_settings.settlement.resolve(security) {
            Resolution::Settle(price) => self.expire(security, price),
            Resolution::Await(market) => {
                let watch = self.awaited.wait(self.port.id(), security, market);
                self.pending_commands.push(shard_of(market, self.port.shards()), watch);
            }
            Resolution::Ask => tracing::warn!(
                security = security.0,
                "the security has expired and has positions, and no settlement price is known: record EXPIRATION transactions"
            ),
        }
    }

    fn expire(&mut self, security: SecurityId, price: Price) {
        tracing::info!(security = security.0, %price, "the security has expired: its positions are closed at this price");
        self.pending_commands
            .push(shard_of(security, self.port.shards()), CommandKind::Expire { security, price });
    }

    fn roll_trading_day(&mut self, now: Timestamp) {
        let today = self.control_settings.day_at(now);
        self.tomorrow = self.control_settings.tomorrow(today);
        // A clock that was set back does not restore the previous day.
        if today > self.day {
            self.day = today;
            self.pending_commands.push_all(CommandKind::TradingDay { day: today });
            self.calendar_at = self.calendar_at.max(now);
            self.send_ended_dates();
        }
    }

    /// Discards pending commands; called when the service stops.
    pub fn close(&mut self) {
        self.pending_commands.clear();
    }

    /// Records the content of a snapshot, and briefs the shard at its end.
    fn apply_snapshot_event(&mut self, shard: ShardId, event: &Event) {
        let known = &mut self.known[shard.0 as usize];
        if known.is_configured {
            return;
        }
        match event.body {
            EventKind::TradingDay { day } => known.day = Some(day),
            EventKind::Limits { scope, limits } => _ = known.limits.insert(scope, limits),
            EventKind::Directed { directive: Directive::Limits { scope, limits }, .. } => {
                _ = known.directed_limits.insert(scope, limits);
            }
            EventKind::Restrict { scope, security, on: true } => {
                _ = known.restricted.insert((scope, security))
            }
            EventKind::Phase { strategy, phase } => _ = known.phases.insert(strategy, phase),
            EventKind::Subscription { strategy: StrategyId::SERVER, security, on: true, .. } => {
                known.followed.insert(security);
            }
            EventKind::SnapshotEnd { .. } => self.configure_shard(shard),
            EventKind::Restrict { on: false, .. }
            | EventKind::Subscription { .. }
            | EventKind::Order(_)
            | EventKind::Status(_)
            | EventKind::Refused(_)
            | EventKind::Forgotten { .. }
            | EventKind::UsedIds(_)
            | EventKind::Booked(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::Adapter { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. } => {}
        }
    }

    /// Sends a shard the settings it lacks, and asks for its shares of the limits.
    fn configure_shard(&mut self, shard: ShardId) {
        let shards = self.port.shards();
        let known = std::mem::take(&mut self.known[shard.0 as usize]);
        self.keep_directed_limits(shard, &known);
        let ControlSettings { limits, restrictions, running, followed, .. } = &self.control_settings;
        let pending_commands = &mut self.pending_commands;
        let session_states = self.session_states.get(&shard).map_or(&[][..], Vec::as_slice);
        let schedule = &self.control_settings.schedule;
        session_states
            .iter()
            .filter_map(|current| schedule.regime(current))
            .for_each(|body| pending_commands.push(shard, body));
        // A clock that was set back does not restore the previous day, of this shard or of another.
        if let Some(day) = known.day.filter(|day| *day > self.day) {
            (self.day, self.tomorrow) = (day, self.control_settings.tomorrow(day));
        }
        if known.day.is_none_or(|day| day < self.day) {
            pending_commands.push(shard, CommandKind::TradingDay { day: self.day });
        }
        for current in session_states {
            let (exchange, mut last_ended) = (current.exchange, None);
            let since = (current.since > Timestamp::ZERO).then_some(current.since);
            let known = since.map(|at| SessionChange { at, session: current.session });
            let changes = schedule.changes(exchange, known, self.calendar_at);
            schedule
                .commands(exchange, &changes, &mut last_ended)
                .into_iter()
                .for_each(|body| pending_commands.push(shard, body));
        }
        let own = !session_states.is_empty();
        for (exchange, day) in schedule.ended_dates(self.calendar_at, self.day).filter(|_| own) {
            pending_commands.push(shard, CommandKind::Expiry { exchange, day });
        }
        for (scope, limits) in limits.iter().filter(|(scope, limits)| known.limits.get(scope) != Some(limits))
        {
            pending_commands.push(shard, CommandKind::Limits { scope: *scope, limits: *limits });
        }
        for (scope, security) in restrictions.iter().filter(|row| !known.restricted.contains(row)) {
            pending_commands
                .push(shard, CommandKind::Restrict { scope: *scope, security: *security, on: true });
        }
        for &strategy in running.iter().filter(|id| known.phases.get(id) != Some(&StrategyPhase::Running)) {
            for phase in
                [StrategyPhase::Init, StrategyPhase::Prefeed, StrategyPhase::Start, StrategyPhase::Running]
            {
                pending_commands.push(shard, CommandKind::Phase { strategy, phase });
            }
        }
        let own = followed.iter().filter(|security| shard_of(**security, shards) == shard);
        for &security in own.filter(|security| !known.followed.contains(security)) {
            pending_commands
                .push(shard, CommandKind::Subscribe { strategy: StrategyId::SERVER, security, on: true });
        }
        self.known[shard.0 as usize] = KnownShardState { is_configured: true, ..KnownShardState::default() };
        if self.known.iter().all(|known| known.is_configured) {
            // Every limit is already queued before these: a shard takes its share of a new limit
            // before it answers.
            for (scope, _) in limits {
                self.budget.ask(*scope, |shard, command| pending_commands.push_command(shard, command));
            }
        }
    }

    /// Keeps the limits that an operator of the cluster has changed and that are in force in a
    /// shard of this server: the other servers have them too, and do not send them again.
    fn keep_directed_limits(&mut self, shard: ShardId, known: &KnownShardState) {
        if !self.session_states.contains_key(&shard) {
            return;
        }
        for (scope, limits) in &mut self.control_settings.limits {
            if let Some(directed) = known.directed_limits.get(scope)
                && known.limits.get(scope) == Some(directed)
            {
                *limits = *directed;
            }
        }
    }

    /// Counts the answers to the budget's questions at the start.
    fn count_answer(&mut self, event: &Event) {
        if let EventKind::Done { source, .. } = event.body
            && source == self.budget_source
            && !self.limits_set
        {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
    }

    /// Handles changed limits: the first shard of this server that reports them counts, the others
    /// report the same. Another server gives its shards their shares itself.
    fn handle_limits(&mut self, shard: ShardId, scope: Scope, limits: RiskLimits) {
        let is_handled = self.limits_set && self.session_states.contains_key(&shard);
        let known = self.control_settings.limits.iter_mut().find(|(other, _)| *other == scope);
        let Some((_, known)) = known.filter(|(_, known)| is_handled && *known != limits) else { return };
        *known = limits;
        let pending_commands = &mut self.pending_commands;
        self.budget
            .set_limits(scope, &limits, |shard, command| pending_commands.push_command(shard, command));
    }

    /// Gives each shard its share; a share from before a restart is kept.
    fn set_limits(&mut self) {
        self.limits_set = true;
        let pending_commands = &mut self.pending_commands;
        for (scope, limits) in &self.control_settings.limits {
            self.budget
                .set_limits(*scope, limits, |shard, command| pending_commands.push_command(shard, command));
        }
    }
}

/// Returns the session states of the exchanges according to each of these shards.
pub fn session_states<'a>(shards: impl Iterator<Item = &'a Shard>) -> BTreeMap<ShardId, Vec<SessionState>> {
    shards.map(|shard| (shard.id(), shard.session_states())).collect()
}

/// Returns the session states of the exchanges according to the calendar at this time.
fn sessions_at(control_settings: &ControlSettings, now: Timestamp) -> BTreeMap<ExchangeId, SessionChange> {
    let session_states = control_settings.schedule.calendar.at(now);
    session_states
        .map(|(id, current)| (id, SessionChange { at: current.since, session: current.session }))
        .collect()
}
