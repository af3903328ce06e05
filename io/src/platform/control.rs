//! Operator, clock and budget as a port: what the shards must know before anybody trades, and the parts of limits
//! they have.
//!
//! ```text
//! Snapshot ─► what a shard knows already ─► only what is missing is told ─► BudgetPool::ask ─► answers ─► set_limits
//! ```
//!
//! So a start after a crash and a first start are the same: shards that remember are told little, a new one everything.

mod schedule;
mod settlement;

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::budget::BudgetPool;
use pitlane_engine::command::{CommandKind, Limits, Phase, Scope, Session, Watch};
use pitlane_engine::event::{Alert, Event, EventKind};
use pitlane_engine::id::{ExchangeId, Origin, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::number::Price;
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::{SessionState, Shard, shard_of};
use pitlane_engine::time::{Day, NS_PER_S, TimeOfDay, Timestamp};

use self::schedule::Schedule;
use self::settlement::{PendingSettlements, Resolution, SettlementPrices};
use super::EVENTS_PER_POLL_MAX;
use crate::calendar::Change;
use crate::config::{Config, Rules};
use crate::strategies;
use crate::zone::Zone;

/// How often the budget asks again for what it lent.
const REMIND_NS: u64 = NS_PER_S;
/// Kinds of budget that [`BudgetPool::ask`] asks each shard for.
const KINDS_ASKED: usize = 3;

/// What the shards are to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Briefing {
    /// Of strategies and accounts. They hold from the start, whatever was set before.
    pub limits: Vec<(Scope, Limits)>,
    /// Securities that a strategy or an account may not trade; those set before stay.
    pub restrictions: Vec<(Scope, SecurityId)>,
    /// Strategies that run from the start.
    pub running: Vec<StrategyId>,
    /// Securities that the server itself follows, so that they are quoted.
    pub followed: Vec<SecurityId>,
    /// When the trading day turns over, and whose clock says so.
    pub rollover: TimeOfDay,
    pub zone: Zone,
    pub schedule: Schedule,
    /// At which price expired securities are settled.
    pub settlement: SettlementPrices,
}

impl Briefing {
    /// The limits are the config's; every strategy that starts by itself and is run elsewhere runs, every security is followed.
    pub fn of(config: &Config, reference: &RefData) -> Briefing {
        // A strategy of this process is led by its runner.
        let here = strategies::run_here(&config.strategies, reference);
        let started =
            reference.strategies().iter().filter(|row| row.auto_activate && !here.contains(&row.id));
        let mut briefing = Briefing {
            running: started.map(|row| row.id).collect(),
            followed: reference.securities().iter().map(|row| row.id).collect(),
            rollover: config.service.trading_day_rollover,
            zone: config.service.timezone.clone(),
            schedule: Schedule::of(config, reference),
            settlement: SettlementPrices::of(config, reference),
            ..Briefing::default()
        };
        for row in reference.strategies() {
            briefing.rule(Scope::Strategy(row.id), config.risk.of_strategy(&row.name), reference);
        }
        for row in reference.accounts() {
            briefing.rule(Scope::Account(row.id), config.risk.of_account(&row.name), reference);
        }
        briefing
    }

    fn rule(&mut self, scope: Scope, rules: &Rules, reference: &RefData) {
        self.limits.push((scope, rules.limits));
        self.restrictions
            .extend(rules.restricted_ids(reference).into_iter().map(|security| (scope, security)));
    }

    fn tomorrow(&self, today: Day) -> Timestamp {
        self.zone.instant(Day(today.0 + 1), self.rollover)
    }

    fn day_at(&self, now: Timestamp) -> Day {
        let (day, time) = self.zone.local(now);
        if time < self.rollover { Day(day.0 - 1) } else { day }
    }
}

#[derive(Debug)]
pub struct Control {
    port: PortEnd,
    pending_commands: PendingCommands,
    budget: BudgetPool,
    /// In whose name the budget speaks.
    treasurer: Source,
    briefing: Briefing,
    /// By shard.
    known: Vec<Known>,
    /// Shards whose answers to the budget's questions have not all come; then the limits are set.
    unanswered: usize,
    limits_set: bool,
    day: Day,
    /// When the day is over.
    tomorrow: Timestamp,
    /// Of the shards that are here, as they were when they came to life: where exchanges stood.
    standings: BTreeMap<ShardId, Vec<SessionState>>,
    /// Of the exchanges in the calendar, as the shards were told.
    sessions: BTreeMap<ExchangeId, Change>,
    /// By exchange: the last date of which the shards were told that it is over.
    over: BTreeMap<ExchangeId, Day>,
    awaited: PendingSettlements,
    /// As the market was told.
    shown: BTreeMap<ExchangeId, Session>,
    /// When the calendar was looked at last: shards that are briefed later are brought there.
    rung: Timestamp,
    /// When the calendar is looked at again.
    bell: Timestamp,
    remind: Timestamp,
}

/// What a shard told of itself in its snapshot.
#[derive(Debug, Default)]
struct Known {
    /// The trading day it is in.
    day: Option<Day>,
    limits: BTreeMap<Scope, Limits>,
    restricted: BTreeSet<(Scope, SecurityId)>,
    phases: BTreeMap<StrategyId, Phase>,
    followed: BTreeSet<SecurityId>,
    /// It has told everything, and was told what it lacked.
    briefed: bool,
}

impl Control {
    /// `standings` are those of the shards that are here, see [`standings`].
    pub fn new(
        port: PortEnd,
        now: Timestamp,
        briefing: Briefing,
        standings: BTreeMap<ShardId, Vec<SessionState>>,
    ) -> Control {
        let id = port.id();
        let source = |session| Source { origin: Origin::Server, port: id, session };
        let mut pending_commands = PendingCommands::new(source(0));
        pending_commands.push_all(CommandKind::Watch { port: id, what: Watch::Budgets, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: id });
        let shards = port.shards();
        let known = (0..shards).map(|_| Known::default()).collect();
        Control {
            pending_commands,
            budget: BudgetPool::new(shards, source(1)),
            treasurer: source(1),
            day: briefing.day_at(now),
            tomorrow: briefing.tomorrow(briefing.day_at(now)),
            standings,
            sessions: sessions_at(&briefing, now),
            over: briefing.schedule.over(now, briefing.day_at(now)).collect(),
            awaited: PendingSettlements::default(),
            shown: BTreeMap::new(),
            rung: now,
            bell: now,
            unanswered: briefing.limits.len() * shards as usize * KINDS_ASKED,
            limits_set: false,
            briefing,
            known,
            port,
            remind: now.plus(REMIND_NS),
        }
    }

    /// New reference data: whatever is new in them is told to the shards, which know it already. What was there before stays as
    /// it is, limits that were changed meanwhile included.
    pub fn adopt(&mut self, briefing: Briefing) {
        let shards = self.port.shards();
        let old = std::mem::replace(&mut self.briefing, briefing);
        let Briefing { limits, restrictions, running, followed, .. } = &self.briefing;
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
            for phase in [Phase::Init, Phase::Prefeed, Phase::Start, Phase::Running] {
                pending_commands.push_all(CommandKind::Phase { strategy, phase });
            }
        }
        for &security in followed.iter().filter(|id| !old.followed.contains(id)) {
            let body = CommandKind::Subscribe { strategy: StrategyId::SERVER, security, on: true };
            pending_commands.push(shard_of(security, shards), body);
        }
        // New exchanges may have hours; and what is new may have expired.
        self.bell = Timestamp::ZERO;
        self.tell_over();
    }

    /// Whether the shards know what they must.
    pub fn is_ready(&self) -> bool {
        self.limits_set && self.pending_commands.is_empty()
    }

    /// Whether something waits for room.
    pub fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty()
    }

    pub fn deadline(&self) -> Timestamp {
        self.remind.min(self.tomorrow).min(self.bell)
    }

    /// When a day or a session changes.
    pub fn next_change(&self) -> Timestamp {
        self.tomorrow.min(self.bell)
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.port.take_wakeups()
    }

    /// Hears what the shards say, up to a bound. `follow` is told whether a security has subscribers.
    pub fn hear(&mut self, mut follow: impl FnMut(SecurityId, bool)) -> usize {
        for heard in 0..EVENTS_PER_POLL_MAX {
            let Some((shard, event)) = self.port.poll_event() else { return heard };
            if let EventKind::Subscription { security, subscribers, .. } = event.body {
                follow(security, subscribers > 0);
            }
            self.learn(shard, &event);
            self.note_answer(&event);
            match &event.body {
                EventKind::Limits { scope, limits } => self.note_limits(*scope, *limits),
                EventKind::Alert { alert: Alert::Unsettled, security, .. } => self.settle(*security),
                EventKind::Tick(tick) => {
                    let settled = self.awaited.settle(tick, &self.briefing.settlement);
                    if !settled.is_empty() {
                        let what = Watch::Ticks(tick.security);
                        self.pending_commands
                            .push(shard, CommandKind::Watch { port: self.port.id(), what, on: false });
                    }
                    settled.into_iter().for_each(|(security, price)| self.expire(security, price));
                }
                _ => {}
            }
            let pending_commands = &mut self.pending_commands;
            self.budget
                .handle_event(shard, &event, |shard, command| pending_commands.push_command(shard, command));
        }
        EVENTS_PER_POLL_MAX
    }

    /// Does what is due, and sends what has room. `enter` is told which session an exchange is in.
    pub fn poll(&mut self, now: Timestamp, enter: impl FnMut(ExchangeId, Session)) -> usize {
        if now >= self.remind {
            self.remind = now.plus(REMIND_NS);
            let pending_commands = &mut self.pending_commands;
            self.budget.remind(|shard, command| pending_commands.push_command(shard, command));
        }
        if now >= self.bell {
            self.ring(now, enter);
        }
        if now >= self.tomorrow {
            self.turn_over(now);
        }
        if !self.limits_set && self.unanswered == 0 && self.known.iter().all(|known| known.briefed) {
            self.set_limits();
        }
        self.pending_commands.poll(&mut self.port)
    }

    /// Tells of exchanges that open or close now, or did so since the last look: a process may have stood still, or its clock jumped.
    fn ring(&mut self, now: Timestamp, mut enter: impl FnMut(ExchangeId, Session)) {
        (self.bell, self.rung) = (Timestamp::MAX, now);
        let Briefing { schedule, .. } = &self.briefing;
        let mut told = Vec::new();
        for (exchange, standing) in schedule.calendar.at(now) {
            self.bell = self.bell.min(standing.until);
            let changes = schedule.changes(exchange, self.sessions.get(&exchange).copied(), now);
            let mut over = self.over.get(&exchange).copied();
            told.extend(schedule.commands(exchange, &changes, &mut over));
            if let Some(over) = over {
                self.over.insert(exchange, over);
            }
            if let Some(change) = changes.last() {
                self.sessions.insert(exchange, *change);
            }
            if self.shown.insert(exchange, standing.session) != Some(standing.session) {
                enter(exchange, standing.session);
            }
        }
        // Hours that reference data have taken away.
        for (&exchange, _) in self.sessions.iter().filter(|(id, _)| !schedule.calendar.has_hours(**id)) {
            let (session, since) = (Session::Continuous, Timestamp::ZERO);
            told.push(CommandKind::Schedule { exchange, session, since, has_hours: false });
            self.shown.remove(&exchange);
            enter(exchange, session);
        }
        self.sessions.retain(|exchange, _| schedule.calendar.has_hours(*exchange));
        told.into_iter().for_each(|body| self.tell_briefed(body));
    }

    /// Tells every shard that is here and knows the rest already; the others are told all at once when they are briefed.
    fn tell_briefed(&mut self, body: CommandKind) {
        for &shard in self.standings.keys().filter(|shard| self.known[shard.0 as usize].briefed) {
            self.pending_commands.push(shard, body);
        }
    }

    /// Tells which dates are over, whether or not it was told before: positions that are still not settled are told of again.
    fn tell_over(&mut self) {
        let over: Vec<_> = self.briefing.schedule.over(self.rung, self.day).collect();
        for (exchange, day) in over {
            self.over.insert(exchange, day);
            self.tell_briefed(CommandKind::Expiry { exchange, day });
        }
    }

    /// An expired security has positions left: they are closed as soon as there is a price.
    fn settle(&mut self, security: SecurityId) {
        match self.briefing.settlement.resolve(security) {
            Resolution::Settle(price) => self.expire(security, price),
            Resolution::Await(market) => {
                let watch = self.awaited.wait(self.port.id(), security, market);
                self.pending_commands.push(shard_of(market, self.port.shards()), watch);
            }
            Resolution::Ask => tracing::warn!(
                security = security.0,
                "it has expired and has positions, and no settlement price is known: record EXPIRATION transactions"
            ),
        }
    }

    fn expire(&mut self, security: SecurityId, price: Price) {
        tracing::info!(security = security.0, %price, "it has expired: its positions are closed at this price");
        self.pending_commands
            .push(shard_of(security, self.port.shards()), CommandKind::Expire { security, price });
    }

    fn turn_over(&mut self, now: Timestamp) {
        let today = self.briefing.day_at(now);
        self.tomorrow = self.briefing.tomorrow(today);
        // A clock that was set back does not bring yesterday back.
        if today > self.day {
            self.day = today;
            self.pending_commands.push_all(CommandKind::TradingDay { day: today });
            self.rung = self.rung.max(now);
            self.tell_over();
        }
    }

    /// The end is near: nothing more is told.
    pub fn close(&mut self) {
        self.pending_commands.clear();
    }

    /// Notes what a snapshot tells, and briefs the shard at its end.
    fn learn(&mut self, shard: ShardId, event: &Event) {
        let known = &mut self.known[shard.0 as usize];
        if known.briefed {
            return;
        }
        match event.body {
            EventKind::TradingDay { day } => known.day = Some(day),
            EventKind::Limits { scope, limits } => _ = known.limits.insert(scope, limits),
            EventKind::Restrict { scope, security, on: true } => {
                _ = known.restricted.insert((scope, security))
            }
            EventKind::Phase { strategy, phase } => _ = known.phases.insert(strategy, phase),
            EventKind::Subscription { strategy: StrategyId::SERVER, security, on: true, .. } => {
                known.followed.insert(security);
            }
            EventKind::SnapshotEnd { .. } => self.brief(shard),
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
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::Adapter { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. } => {}
        }
    }

    /// Tells a shard what it does not know yet, and asks it for its parts of the limits.
    fn brief(&mut self, shard: ShardId) {
        let shards = self.port.shards();
        let Briefing { limits, restrictions, running, followed, .. } = &self.briefing;
        let known = std::mem::take(&mut self.known[shard.0 as usize]);
        let pending_commands = &mut self.pending_commands;
        let standings = self.standings.get(&shard).map_or(&[][..], Vec::as_slice);
        let schedule = &self.briefing.schedule;
        standings
            .iter()
            .filter_map(|standing| schedule.regime(standing))
            .for_each(|body| pending_commands.push(shard, body));
        // A clock that was set back does not bring yesterday back, of this shard or of another.
        if let Some(day) = known.day.filter(|day| *day > self.day) {
            (self.day, self.tomorrow) = (day, self.briefing.tomorrow(day));
        }
        if known.day.is_none_or(|day| day < self.day) {
            pending_commands.push(shard, CommandKind::TradingDay { day: self.day });
        }
        for standing in standings {
            let (exchange, mut over) = (standing.exchange, None);
            let since = (standing.since > Timestamp::ZERO).then_some(standing.since);
            let known = since.map(|at| Change { at, session: standing.session });
            let changes = schedule.changes(exchange, known, self.rung);
            schedule
                .commands(exchange, &changes, &mut over)
                .into_iter()
                .for_each(|body| pending_commands.push(shard, body));
        }
        let own = !standings.is_empty();
        for (exchange, day) in schedule.over(self.rung, self.day).filter(|_| own) {
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
        for &strategy in running.iter().filter(|id| known.phases.get(id) != Some(&Phase::Running)) {
            for phase in [Phase::Init, Phase::Prefeed, Phase::Start, Phase::Running] {
                pending_commands.push(shard, CommandKind::Phase { strategy, phase });
            }
        }
        let own = followed.iter().filter(|security| shard_of(**security, shards) == shard);
        for &security in own.filter(|security| !known.followed.contains(security)) {
            pending_commands
                .push(shard, CommandKind::Subscribe { strategy: StrategyId::SERVER, security, on: true });
        }
        self.known[shard.0 as usize] = Known { briefed: true, ..Known::default() };
        if self.known.iter().all(|known| known.briefed) {
            // Every limit is on its way ahead of these: a shard takes its part of a new one before it answers.
            for (scope, _) in limits {
                self.budget.ask(*scope, |shard, command| pending_commands.push_command(shard, command));
            }
        }
    }

    /// Counts the answers to what the budget asked at the start.
    fn note_answer(&mut self, event: &Event) {
        if let EventKind::Done { source, .. } = event.body
            && source == self.treasurer
            && !self.limits_set
        {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
    }

    /// Somebody has changed limits: the first shard that says so is heard, the others say the same.
    fn note_limits(&mut self, scope: Scope, limits: Limits) {
        let known = self.briefing.limits.iter_mut().find(|(other, _)| *other == scope);
        let Some((_, known)) = known.filter(|(_, known)| self.limits_set && *known != limits) else { return };
        *known = limits;
        let pending_commands = &mut self.pending_commands;
        self.budget
            .set_limits(scope, &limits, |shard, command| pending_commands.push_command(shard, command));
    }

    /// Gives each shard its part; what it has from an earlier life it keeps.
    fn set_limits(&mut self) {
        self.limits_set = true;
        let pending_commands = &mut self.pending_commands;
        for (scope, limits) in &self.briefing.limits {
            self.budget
                .set_limits(*scope, limits, |shard, command| pending_commands.push_command(shard, command));
        }
    }
}

/// Where exchanges stand, as each of these shards was told.
pub fn standings<'a>(shards: impl Iterator<Item = &'a Shard>) -> BTreeMap<ShardId, Vec<SessionState>> {
    shards.map(|shard| (shard.id(), shard.session_states())).collect()
}

/// Where the calendar has its exchanges at this instant.
fn sessions_at(briefing: &Briefing, now: Timestamp) -> BTreeMap<ExchangeId, Change> {
    let standings = briefing.schedule.calendar.at(now);
    standings.map(|(id, standing)| (id, Change { at: standing.since, session: standing.session })).collect()
}
