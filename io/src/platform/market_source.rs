//! The simulated market as a port: prices to the shards of their securities, made by the feed or read from files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, Session};
use pitlane_engine::feed::{Feed, FeedSettings};
use pitlane_engine::id::{AdapterId, ExchangeId, Origin, SecurityId, ShardId, Source};
use pitlane_engine::lane::LaneFull;
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::EVENTS_PER_POLL_MAX;
use crate::ticks::pace::Pace;
use crate::ticks::replay::Replay;

/// Prices sent in one poll: a shard handles as many in some tens of microseconds.
const PRICES_PER_POLL_MAX: usize = 256;

/// The feed, and the price that found no room.
#[derive(Debug)]
pub struct Market {
    feed: Feed,
    port: PortEnd,
    exchanges: BTreeMap<SecurityId, ExchangeId>,
    /// Securities that somebody is subscribed to.
    wanted: BTreeSet<SecurityId>,
    closed: BTreeSet<ExchangeId>,
    /// Venues that tell the prices of their securities themselves.
    quoted: Vec<AdapterId>,
    slot: Option<(ShardId, Command)>,
    /// Instead of the feed.
    replay: Option<Box<Replay>>,
    /// Who takes it in elsewhere is waited for.
    pace: Option<Arc<Pace>>,
}

impl Market {
    /// `interval_ns` is the mean time between two events of one security; zero: none ever. `quoted`: whose securities are left alone.
    pub fn new(
        port: PortEnd,
        reference: &RefData,
        seed: u64,
        interval_ns: u64,
        quoted: Vec<AdapterId>,
    ) -> Market {
        let feed = FeedSettings {
            seed,
            interval_ns,
            // After a sleep of the machine the market goes on from here rather than make up for it.
            lag_ns_max: NS_PER_S,
            source: Source { origin: Origin::Server, port: port.id(), session: 0 },
            ..FeedSettings::default()
        };
        let exchanges = exchanges(reference, &quoted);
        let (wanted, closed) = (BTreeSet::new(), BTreeSet::new());
        let feed = Feed::new(reference, feed);
        Market { feed, port, exchanges, wanted, closed, quoted, slot: None, replay: None, pace: None }
    }

    /// From now on prices come out of files.
    pub fn set_replay(&mut self, replay: Option<Replay>) {
        self.replay = replay.map(Box::new);
    }

    /// From now on each row waits until the one before was taken in.
    pub fn set_pace(&mut self, pace: Arc<Pace>) {
        self.pace = Some(pace);
    }

    pub fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// New reference data: new securities can be switched on.
    pub fn adopt(&mut self, reference: &RefData) {
        self.exchanges = exchanges(reference, &self.quoted);
        self.feed.adopt(reference);
    }

    /// A security is quoted while somebody is subscribed to it and its exchange is not closed.
    pub fn set_on(&mut self, security: SecurityId, on: bool, now: Timestamp) {
        if on {
            self.wanted.insert(security);
        } else {
            self.wanted.remove(&security);
        }
        let is_open = self.exchanges.get(&security).is_some_and(|exchange| !self.closed.contains(exchange));
        self.feed.set_on(security, on && is_open, now);
    }

    pub fn enter(&mut self, exchange: ExchangeId, session: Session, now: Timestamp) {
        let is_closed = session == Session::Closed;
        if is_closed {
            self.closed.insert(exchange);
        } else {
            self.closed.remove(&exchange);
        }
        for security in self.wanted.iter().filter(|security| self.exchanges.get(security) == Some(&exchange))
        {
            self.feed.set_on(*security, !is_closed, now);
        }
    }

    /// What a shard answers to a price interests nobody, but may not fill the lane.
    pub fn hear(&mut self) -> usize {
        let mut heard = 0;
        while heard < EVENTS_PER_POLL_MAX && self.port.poll_event().is_some() {
            heard += 1;
        }
        heard
    }

    /// Sends the events that are due, up to a bound.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        let most = if self.replay.is_some() { 1 } else { PRICES_PER_POLL_MAX };
        for sent in 0..most {
            let Some((shard, command)) = self.slot.take().or_else(|| self.next(now)) else { return sent };
            if let Err(LaneFull) = self.port.send(shard, command) {
                self.slot = Some((shard, command));
                return sent;
            }
        }
        most
    }

    pub fn is_waiting(&self) -> bool {
        self.slot.is_some()
    }

    pub fn deadline(&self) -> Timestamp {
        match (&self.replay, &self.pace) {
            (None, _) => self.feed.next_at(),
            // Whoever takes it in rings.
            (Some(_), Some(pace)) if !pace.is_free() => Timestamp::MAX,
            (Some(replay), _) => replay.next_at(),
        }
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.port.take_wakeups()
    }

    /// The next row of the files; one that cannot be read is the last.
    fn next_row(&mut self, now: Timestamp) -> Option<Command> {
        let replay = self.replay.as_mut()?;
        let now = match &self.pace {
            Some(pace) if !pace.is_free() || replay.next_at() == Timestamp::MAX => return None,
            Some(pace) => pace.tell(now),
            None => now,
        };
        let row = replay.poll(now).unwrap_or_else(|error| {
            tracing::error!(%error, "the replay has ended");
            self.replay = None;
            None
        })?;
        let source = Source { origin: Origin::Server, port: self.port.id(), session: 0 };
        Some(Command::new(source, 0, row.body))
    }

    fn next(&mut self, now: Timestamp) -> Option<(ShardId, Command)> {
        let command = if self.replay.is_some() { self.next_row(now)? } else { self.feed.poll(now)? };
        let (CommandKind::Quote { security, .. }
        | CommandKind::Trade { security, .. }
        | CommandKind::Tick { security, .. }) = command.body
        else {
            unreachable!("a feed tells prices");
        };
        Some((shard_of(security, self.port.shards()), command))
    }
}

/// The exchange of each security that has simulated prices.
fn exchanges(reference: &RefData, quoted: &[AdapterId]) -> BTreeMap<SecurityId, ExchangeId> {
    let rows = reference.securities().iter().map(|row| (row.id, reference.exchange_of(row)));
    rows.filter(|(_, exchange)| !quoted.contains(&exchange.adapter))
        .map(|(security, exchange)| (security, exchange.id))
        .collect()
}
