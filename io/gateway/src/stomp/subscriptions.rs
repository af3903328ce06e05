//! The market data that a thread needs, sent to the shards as subscriptions. The table holds the
//! wanted state, not a queue of changes: however often clients change their subscriptions, a shard
//! receives at most one command per security each time the lane accepts one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{Origin, SecurityId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_protocols::stomp::broker::Interest;

/// Maximum number of commands sent per poll, so that a subscription to all securities does not
/// delay the cycle.
const SENT_PER_POLL_MAX: usize = 256;

/// The kind of market data of a security.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MarketDataKind {
    Ticks,
    Depth,
    Levels,
    BookOrders,
    Trades,
}

/// The subscriptions of one thread. All sets are bounded by the number of securities.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    reference: Arc<RefData>,
    /// Whether this thread receives every tick anyway.
    receives_all_ticks: bool,
    /// Whether all depths are wanted for ever, whatever clients want.
    keeps_depths: bool,
    /// Wanted for every security.
    all: BTreeSet<MarketDataKind>,
    wanted: BTreeSet<(SecurityId, MarketDataKind)>,
    /// Wanted by FIX sessions of the thread, which share its port.
    wanted_by_fix: BTreeSet<(SecurityId, MarketDataKind)>,
    /// What a FIX session begins to want: it is requested again even if it was sent, because the
    /// shard answers with the current state.
    refreshed: BTreeSet<(SecurityId, MarketDataKind)>,
    /// As sent to the shards.
    sent: BTreeSet<(SecurityId, MarketDataKind)>,
    /// Where the wanted state may have changed.
    changed: BTreeSet<(SecurityId, MarketDataKind)>,
    /// Commands that the shards have not answered.
    unanswered: BTreeMap<(SecurityId, MarketDataKind), UnansweredWatches>,
}

/// Commands for the same data of a security.
#[derive(Clone, Copy, Debug, Default)]
struct UnansweredWatches {
    count: u32,
    /// Whether one of them requests what this thread receives already: the shard sends it again.
    is_repeated: bool,
}

impl Subscriptions {
    pub(crate) fn new(reference: Arc<RefData>, receives_all_ticks: bool) -> Subscriptions {
        let (all, wanted, wanted_by_fix, refreshed, sent, changed, unanswered) = Default::default();
        Subscriptions {
            reference,
            receives_all_ticks,
            keeps_depths: false,
            all,
            wanted,
            wanted_by_fix,
            refreshed,
            sent,
            changed,
            unanswered,
        }
    }

    /// Takes new reference data; subscriptions to all securities include the new ones.
    pub(crate) fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.reference = reference.clone();
        for kind in self.all.clone() {
            self.all_changed(kind);
        }
        if self.keeps_depths {
            self.all_changed(MarketDataKind::Depth);
        }
    }

    /// Wants the depth of all securities from now on.
    pub(super) fn keep_depths(&mut self) {
        self.keeps_depths = true;
        self.all_changed(MarketDataKind::Depth);
    }

    pub(super) fn set(&mut self, interest: Interest, on: bool) {
        match interest {
            Interest::Ticks(_) | Interest::AllTicks if self.receives_all_ticks => {}
            Interest::Ticks(security) => self.set_one(security, MarketDataKind::Ticks, on),
            Interest::Depth(security) => self.set_one(security, MarketDataKind::Depth, on),
            Interest::Levels(security) => self.set_book(security, MarketDataKind::Levels, on),
            Interest::AllLevels => self.set_all_books(MarketDataKind::Levels, on),
            Interest::BookOrders(security) => self.set_book(security, MarketDataKind::BookOrders, on),
            Interest::AllBookOrders => self.set_all_books(MarketDataKind::BookOrders, on),
            Interest::Trades(security) => self.set_one(security, MarketDataKind::Trades, on),
            Interest::AllTrades => self.set_all(MarketDataKind::Trades, on),
            Interest::AllTicks => self.set_all(MarketDataKind::Ticks, on),
            Interest::AllDepths => self.set_all(MarketDataKind::Depth, on),
            // Every thread with clients always receives orders and system events: a receipt for a
            // subscription must mean that nothing is missed from there on, whatever the lanes hold.
            Interest::Rest => {}
        }
    }

    /// Sets what the FIX sessions of the thread want. The command that begins it is answered with
    /// [`EventKind::Done`] and [`watch_token`].
    pub(crate) fn set_by_fix(&mut self, watch: MarketWatch, on: bool) {
        let key = watch.key();
        put(&mut self.wanted_by_fix, key, on);
        put(&mut self.refreshed, key, on);
        self.changed.insert(key);
    }

    fn set_book(&mut self, security: SecurityId, kind: MarketDataKind, on: bool) {
        self.request_snapshot(kind, on, |row| row == security);
        self.set_one(security, kind, on);
    }

    fn set_all_books(&mut self, kind: MarketDataKind, on: bool) {
        self.request_snapshot(kind, on, |_| true);
        self.set_all(kind, on);
    }

    /// Makes the first subscription request a snapshot, even if the shard has not yet learned that
    /// the previous one ended.
    fn request_snapshot(&mut self, kind: MarketDataKind, on: bool, is_meant: impl Fn(SecurityId) -> bool) {
        if on {
            self.sent.retain(|(security, sent)| *sent != kind || !is_meant(*security));
        }
    }

    fn set_one(&mut self, security: SecurityId, kind: MarketDataKind, on: bool) {
        if self.reference.security(security).is_some() {
            put(&mut self.wanted, (security, kind), on);
            self.changed.insert((security, kind));
        }
    }

    fn set_all(&mut self, kind: MarketDataKind, on: bool) {
        put(&mut self.all, kind, on);
        self.all_changed(kind);
    }

    fn all_changed(&mut self, kind: MarketDataKind) {
        self.changed.extend(self.reference.securities().iter().map(|row| (row.id, kind)));
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Sends commands while the lanes accept them, and returns their number.
    pub(crate) fn poll(&mut self, port: &mut PortEnd) -> usize {
        let source = Source { origin: Origin::Server, port: port.id(), session: 0 };
        for sent in 0..SENT_PER_POLL_MAX {
            let Some(&key) = self.changed.first() else { return sent };
            let (security, kind) = key;
            let is_kept = self.keeps_depths && kind == MarketDataKind::Depth;
            let is_wanted = self.wanted.contains(&key) || self.wanted_by_fix.contains(&key);
            let on = is_kept || is_wanted || self.all.contains(&kind);
            if on != self.sent.contains(&key) || self.refreshed.contains(&key) {
                let what = match kind {
                    MarketDataKind::Ticks => WatchTarget::Ticks(security),
                    MarketDataKind::Depth => WatchTarget::Depth(security),
                    MarketDataKind::Levels => WatchTarget::Levels(security),
                    MarketDataKind::BookOrders => WatchTarget::BookOrders(security),
                    MarketDataKind::Trades => WatchTarget::Trades(security),
                };
                let body = CommandKind::Watch { port: port.id(), what, on };
                let command = Command::new(source, watch_token(security, kind), body);
                if port.send(shard_of(security, port.shards()), command).is_err() {
                    return sent;
                }
                self.record_command(key, on);
                put(&mut self.sent, key, on);
                self.refreshed.remove(&key);
            }
            self.changed.pop_first();
        }
        SENT_PER_POLL_MAX
    }

    fn record_command(&mut self, key: (SecurityId, MarketDataKind), on: bool) {
        let (security, kind) = key;
        if watch_token(security, kind) != 0 {
            let receives_all = self.receives_all_ticks && kind == MarketDataKind::Ticks;
            let unanswered = self.unanswered.entry(key).or_default();
            unanswered.count += 1;
            unanswered.is_repeated |= on && (receives_all || self.sent.contains(&key));
        }
    }

    /// Returns whether an event may be what a FIX session of the thread has requested once more.
    #[inline]
    pub(super) fn may_repeat(&mut self, event: &Event) -> bool {
        !self.unanswered.is_empty() && self.match_answer(event)
    }

    #[cold]
    fn match_answer(&mut self, event: &Event) -> bool {
        if let EventKind::Done { source, token, .. } = event.body {
            let watch = MarketWatch::of_token(token).filter(|_| source.origin == Origin::Server);
            if let Some(key) = watch.map(MarketWatch::key)
                && let Some(unanswered) = self.unanswered.get_mut(&key)
            {
                unanswered.count -= 1;
                if unanswered.count == 0 {
                    self.unanswered.remove(&key);
                }
            }
            return false;
        }
        let key = if let EventKind::Tick(tick) = &event.body {
            (tick.security, MarketDataKind::Ticks)
        } else if let EventKind::Depth(depth) = &event.body {
            (depth.security, MarketDataKind::Depth)
        } else {
            return false;
        };
        self.unanswered.get(&key).is_some_and(|unanswered| unanswered.is_repeated)
    }
}

/// Market data of a security for FIX sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MarketWatch {
    pub security: SecurityId,
    /// The book; otherwise ticks.
    pub book: bool,
}

impl MarketWatch {
    fn key(self) -> (SecurityId, MarketDataKind) {
        (self.security, if self.book { MarketDataKind::Depth } else { MarketDataKind::Ticks })
    }

    /// Returns the watch whose command had this token; `None` for other commands.
    pub(crate) fn of_token(token: u32) -> Option<MarketWatch> {
        let number = token.checked_sub(1)?;
        Some(MarketWatch { security: SecurityId(number / 2), book: number % 2 == 1 })
    }
}

/// Returns the token of a command for a [`MarketWatch`]. Other commands of the thread have the
/// token zero.
fn watch_token(security: SecurityId, kind: MarketDataKind) -> u32 {
    match kind {
        MarketDataKind::Ticks => 2 * security.0 + 1,
        MarketDataKind::Depth => 2 * security.0 + 2,
        MarketDataKind::Levels | MarketDataKind::BookOrders | MarketDataKind::Trades => 0,
    }
}

fn put<T: Ord>(set: &mut BTreeSet<T>, value: T, on: bool) {
    if on {
        set.insert(value)
    } else {
        set.remove(&value)
    };
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::ShardId;
    use pitlane_engine::mesh::{Depths, PortClass, mesh};

    use super::*;

    #[test]
    fn a_subscription_is_sent_once_however_often_it_changed() {
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let security = reference.securities()[0].id;
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths { commands: 1, events: 1 });
        let mut watches = Subscriptions::new(reference.clone(), false);
        for _ in 0..1_000 {
            watches.set(Interest::Ticks(security), true);
            watches.set(Interest::AllTicks, true);
            watches.set(Interest::AllTicks, false);
            watches.set(Interest::Depth(security), true);
            watches.set(Interest::Depth(security), false);
        }
        let mut sent = Vec::new();
        while watches.is_waiting() {
            watches.poll(&mut ports[0]);
            sent.extend(shards[0].poll_command().map(|command| command.body));
        }
        let (port, what) = (ports[0].id(), WatchTarget::Ticks(security));
        assert_eq!(sent, [CommandKind::Watch { port, what, on: true }]);
        watches.set(Interest::Ticks(security), false);
        watches.poll(&mut ports[0]);
        assert_eq!(shards[0].id(), ShardId(0));
        assert_eq!(
            shards[0].poll_command().map(|command| command.body),
            Some(CommandKind::Watch { port, what, on: false })
        );
        assert!(!watches.is_waiting());
    }

    #[test]
    fn depths_that_are_kept_do_not_end_with_the_last_client() {
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let security = reference.securities()[0].id;
        let count = reference.securities().len();
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths { commands: 64, events: 1 });
        let mut watches = Subscriptions::new(reference, false);
        watches.keep_depths();
        watches.poll(&mut ports[0]);
        watches.set(Interest::Depth(security), true);
        watches.set(Interest::Depth(security), false);
        watches.set(Interest::AllDepths, false);
        watches.poll(&mut ports[0]);
        let sent: Vec<CommandKind> =
            std::iter::from_fn(|| shards[0].poll_command()).map(|command| command.body).collect();
        let is_on = |body: &CommandKind| matches!(body, CommandKind::Watch { on: true, .. });
        assert!(sent.len() == count && sent.iter().all(is_on), "{sent:?}");
    }
}
