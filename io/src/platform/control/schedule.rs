//! What the calendar has the shards told: sessions that begin, dates that are over.
//!
//! ```text
//! a shard's standing ─► hours gained or lost ─► trading day ─► every session up to now, in order ─► dates that are over
//! ```
//!
//! After a pause the same is told as would have been told in time, only later: the closing auction, the close with the end of what
//! lives for a session, the next open. Each command has the time of the calendar with it, so that a start that is cut short goes
//! on where it was. What the commands cause has the time of the start.

use std::collections::BTreeSet;

use pitlane_engine::command::{CommandKind, Session};
use pitlane_engine::id::ExchangeId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::SessionState;
use pitlane_engine::time::{Day, Timestamp};

use crate::calendar::{Calendar, Change};
use crate::config::Config;

/// Hours of exchanges, and which of them have securities that expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub calendar: Calendar,
    expiring: BTreeSet<ExchangeId>,
}

impl Schedule {
    pub fn of(config: &Config, reference: &RefData) -> Schedule {
        let expiring = reference.securities().iter().filter(|row| row.expiration.is_some());
        Schedule {
            calendar: Calendar::of(config, reference),
            expiring: expiring.map(|row| reference.exchange_of(row).id).collect(),
        }
    }

    /// What a shard must know before its trading day turns, so that it knows which orders end with the day.
    pub fn regime(&self, standing: &SessionState) -> Option<CommandKind> {
        let SessionState { exchange, session, since, has_hours } = *standing;
        match self.calendar.has_hours(exchange) {
            // Without hours it is open, whatever was before.
            false => {
                let is_plain = session == Session::Continuous && since == Timestamp::ZERO && !has_hours;
                let (session, since) = (Session::Continuous, Timestamp::ZERO);
                (!is_plain).then_some(CommandKind::Schedule { exchange, session, since, has_hours: false })
            }
            // A version that did not tell hours has told its sessions.
            true => {
                let is_late = !has_hours && since > Timestamp::ZERO;
                is_late.then_some(CommandKind::Schedule { exchange, session, since, has_hours: true })
            }
        }
    }

    /// What an exchange with hours goes through from where it stands to `now`. One that had no hours stands nowhere: it only enters the
    /// session of the hour.
    pub fn changes(&self, exchange: ExchangeId, known: Option<Change>, now: Timestamp) -> Vec<Change> {
        let Some((_, standing)) = self.calendar.at(now).find(|(id, _)| *id == exchange) else {
            return Vec::new();
        };
        let mut changes = known.map_or_else(Vec::new, |known| self.calendar.walk(exchange, known.at, now));
        // A calendar that was changed may say otherwise than its own past.
        let last = changes.last().copied().or(known).map(|change| change.session);
        if last != Some(standing.session) {
            changes.push(Change { at: standing.since, session: standing.session });
        }
        changes
    }

    /// The same as commands, with the dates that are over in between: after a close, and before anything opens. `over` is the last
    /// date told so far.
    pub fn commands(
        &self,
        exchange: ExchangeId,
        changes: &[Change],
        over: &mut Option<Day>,
    ) -> Vec<CommandKind> {
        let mut commands = Vec::new();
        for &Change { at, session } in changes {
            let expiry = self.calendar.over(exchange, at).and_then(|day| self.expiry(exchange, day, over));
            let schedule = CommandKind::Schedule { exchange, session, since: at, has_hours: true };
            match session {
                Session::Closed => commands.extend([Some(schedule), expiry].into_iter().flatten()),
                Session::OpeningAuction | Session::Continuous | Session::ClosingAuction => {
                    commands.extend([expiry, Some(schedule)].into_iter().flatten());
                }
            }
        }
        commands
    }

    /// That a date is over, if something expires there and it was not told yet.
    fn expiry(&self, exchange: ExchangeId, day: Day, over: &mut Option<Day>) -> Option<CommandKind> {
        if !self.expiring.contains(&exchange) || over.is_some_and(|over| over >= day) {
            return None;
        }
        *over = Some(day);
        Some(CommandKind::Expiry { exchange, day })
    }

    /// The dates that are over now, by exchange, where something expires. Without hours a date ends with the trading day.
    pub fn over(&self, now: Timestamp, today: Day) -> impl Iterator<Item = (ExchangeId, Day)> {
        let yesterday = Day(today.0 - 1);
        self.expiring.iter().map(move |&id| (id, self.calendar.over(id, now).unwrap_or(yesterday)))
    }
}
