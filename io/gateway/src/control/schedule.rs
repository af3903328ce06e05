//! The commands that the calendar causes: session changes, and dates that have ended.
//!
//! ```text
//! session state of a shard ─► hours added or removed ─► trading day ─► every session up to now, in order ─► dates that have ended
//! ```
//!
//! After an interruption the shards receive the same commands as without it, only later: the
//! closing auction, the close with the end of orders that live for a session, the next open. Each
//! command carries its time in the calendar, so that an interrupted start continues where it was.
//! The events of the commands carry the time of the start.

use std::collections::BTreeSet;

use pitlane_config::Config;
use pitlane_config::trading_hours::{Calendar, SessionChange};
use pitlane_engine::command::{CommandKind, TradingSession};
use pitlane_engine::id::ExchangeId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::SessionState;
use pitlane_engine::time::{Day, Timestamp};

/// Trading hours of exchanges, and the exchanges with securities that expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSchedule {
    pub calendar: Calendar,
    expiring: BTreeSet<ExchangeId>,
}

impl ExchangeSchedule {
    pub fn of(config: &Config, reference: &RefData) -> ExchangeSchedule {
        let expiring = reference.securities().iter().filter(|row| row.expiration.is_some());
        ExchangeSchedule {
            calendar: Calendar::of(config, reference),
            expiring: expiring.map(|row| reference.exchange_of(row).id).collect(),
        }
    }

    /// Returns the command that a shard needs before its trading day changes, so that it knows
    /// which orders end with the day.
    pub fn regime(&self, current: &SessionState) -> Option<CommandKind> {
        let SessionState { exchange, session, since, has_hours } = *current;
        match self.calendar.has_hours(exchange) {
            // Without hours an exchange is open, whatever its state was.
            false => {
                let is_plain =
                    session == TradingSession::Continuous && since == Timestamp::ZERO && !has_hours;
                let (session, since) = (TradingSession::Continuous, Timestamp::ZERO);
                (!is_plain).then_some(CommandKind::Schedule { exchange, session, since, has_hours: false })
            }
            // A version that did not store hours has sent sessions.
            true => {
                let is_late = !has_hours && since > Timestamp::ZERO;
                is_late.then_some(CommandKind::Schedule { exchange, session, since, has_hours: true })
            }
        }
    }

    /// Returns the changes that an exchange with hours goes through from its known state to `now`.
    /// An exchange that had no hours has no known state: it only enters its current session.
    pub fn changes(
        &self,
        exchange: ExchangeId,
        known: Option<SessionChange>,
        now: Timestamp,
    ) -> Vec<SessionChange> {
        let Some((_, current)) = self.calendar.at(now).find(|(id, _)| *id == exchange) else {
            return Vec::new();
        };
        let mut changes = known.map_or_else(Vec::new, |known| self.calendar.walk(exchange, known.at, now));
        // A calendar that was changed may contradict its own past.
        let last = changes.last().copied().or(known).map(|change| change.session);
        if last != Some(current.session) {
            changes.push(SessionChange { at: current.since, session: current.session });
        }
        changes
    }

    /// Returns the changes as commands, with the dates that have ended in between: after a close,
    /// and before any open. `last_ended` is the last date sent so far.
    pub fn commands(
        &self,
        exchange: ExchangeId,
        changes: &[SessionChange],
        last_ended: &mut Option<Day>,
    ) -> Vec<CommandKind> {
        let mut commands = Vec::new();
        for &SessionChange { at, session } in changes {
            let expiry =
                self.calendar.ended_date(exchange, at).and_then(|day| self.expiry(exchange, day, last_ended));
            let schedule = CommandKind::Schedule { exchange, session, since: at, has_hours: true };
            match session {
                TradingSession::Closed => commands.extend([Some(schedule), expiry].into_iter().flatten()),
                TradingSession::OpeningAuction
                | TradingSession::Continuous
                | TradingSession::ClosingAuction => {
                    commands.extend([expiry, Some(schedule)].into_iter().flatten());
                }
            }
        }
        commands
    }

    /// Returns the command for the end of a date, if the exchange has securities that expire and it
    /// was not sent yet.
    fn expiry(&self, exchange: ExchangeId, day: Day, last_ended: &mut Option<Day>) -> Option<CommandKind> {
        if !self.expiring.contains(&exchange) || last_ended.is_some_and(|last| last >= day) {
            return None;
        }
        *last_ended = Some(day);
        Some(CommandKind::Expiry { exchange, day })
    }

    /// Returns the dates that have ended, by exchange, where securities expire. Without hours a
    /// date ends with the trading day.
    pub fn ended_dates(&self, now: Timestamp, today: Day) -> impl Iterator<Item = (ExchangeId, Day)> {
        let yesterday = Day(today.0 - 1);
        self.expiring.iter().map(move |&id| (id, self.calendar.ended_date(id, now).unwrap_or(yesterday)))
    }
}
