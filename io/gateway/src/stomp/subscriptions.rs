//! The market data that a thread needs, sent to the shards as subscriptions. The table holds the
//! wanted state, not a queue of changes: however often clients change their subscriptions, a shard
//! receives at most one command per security each time the lane accepts one.

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
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
}

/// The subscriptions of one thread. All sets are bounded by the number of securities.
#[derive(Debug)]
pub(super) struct Subscriptions {
    reference: Arc<RefData>,
    /// Whether this thread receives every tick anyway.
    receives_all_ticks: bool,
    /// Whether all depths are wanted for ever, whatever clients want.
    keeps_depths: bool,
    /// Wanted for every security.
    all: BTreeSet<MarketDataKind>,
    wanted: BTreeSet<(SecurityId, MarketDataKind)>,
    /// As sent to the shards.
    sent: BTreeSet<(SecurityId, MarketDataKind)>,
    /// Where the wanted state may have changed.
    changed: BTreeSet<(SecurityId, MarketDataKind)>,
}

impl Subscriptions {
    pub(super) fn new(reference: Arc<RefData>, receives_all_ticks: bool) -> Subscriptions {
        let (all, wanted, sent, changed) = Default::default();
        Subscriptions { reference, receives_all_ticks, keeps_depths: false, all, wanted, sent, changed }
    }

    /// Takes new reference data; subscriptions to all securities include the new ones.
    pub(super) fn set_reference(&mut self, reference: &Arc<RefData>) {
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
            Interest::AllTicks => self.set_all(MarketDataKind::Ticks, on),
            Interest::AllDepths => self.set_all(MarketDataKind::Depth, on),
            // Every thread with clients always receives orders and system events: a receipt for a
            // subscription must mean that nothing is missed from there on, whatever the lanes hold.
            Interest::Rest => {}
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

    pub(super) fn is_waiting(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Sends commands while the lanes accept them, and returns their number.
    pub(super) fn poll(&mut self, port: &mut PortEnd) -> usize {
        let source = Source { origin: Origin::Server, port: port.id(), session: 0 };
        for sent in 0..SENT_PER_POLL_MAX {
            let Some(&key) = self.changed.first() else { return sent };
            let (security, kind) = key;
            let is_kept = self.keeps_depths && kind == MarketDataKind::Depth;
            let on = is_kept || self.all.contains(&kind) || self.wanted.contains(&key);
            if on != self.sent.contains(&key) {
                let what = match kind {
                    MarketDataKind::Ticks => WatchTarget::Ticks(security),
                    MarketDataKind::Depth => WatchTarget::Depth(security),
                };
                let body = CommandKind::Watch { port: port.id(), what, on };
                let command = Command::new(source, 0, body);
                if port.send(shard_of(security, port.shards()), command).is_err() {
                    return sent;
                }
                put(&mut self.sent, key, on);
            }
            self.changed.pop_first();
        }
        SENT_PER_POLL_MAX
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
