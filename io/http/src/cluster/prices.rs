//! Market data to be sent to other servers: the newest of each security. What is subscribed to
//! there is sent at once. The rest, which is only read now and then, is sent with the next
//! heartbeat.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::terms::Side;
use pitlane_protocols::remote::cluster::{ClusterEvent, EventRecipient};

/// Maximum number of items in one message: some 20 KB.
const ITEMS_MAX: usize = 256;

/// Order in a message: ticks come before books, a book's bids before its asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PriceKind {
    Tick,
    Bids,
    Asks,
}

#[derive(Debug, Default)]
pub(super) struct Prices {
    wanted: BTreeSet<SecurityId>,
    urgent: BTreeMap<(SecurityId, PriceKind), ClusterEvent>,
    /// Ticks kept until the next heartbeat.
    deferred: BTreeMap<(SecurityId, PriceKind), ClusterEvent>,
    pub conflated: u64,
}

impl Prices {
    /// Sets the securities whose ticks other servers subscribe to.
    pub(super) fn set_wanted(&mut self, wanted: BTreeSet<SecurityId>) {
        self.wanted = wanted;
    }

    /// Takes a tick or one side of a book. Returns whether it is to be sent at once.
    pub(super) fn apply(&mut self, shard: ShardId, event: &Event) -> bool {
        let (security, kind) = if let EventKind::Depth(depth) = &event.body {
            (depth.security, if depth.side == Side::Buy { PriceKind::Bids } else { PriceKind::Asks })
        } else if let EventKind::Tick(tick) = &event.body {
            (tick.security, PriceKind::Tick)
        } else {
            return false;
        };
        let item = ClusterEvent { shard, to: EventRecipient::All, event: *event };
        let is_urgent = kind != PriceKind::Tick || self.wanted.contains(&security);
        let rows = if is_urgent { &mut self.urgent } else { &mut self.deferred };
        self.conflated += u64::from(rows.insert((security, kind), item).is_some());
        is_urgent
    }

    /// Makes all waiting prices due.
    pub(super) fn release_deferred(&mut self) {
        self.urgent.append(&mut self.deferred);
    }

    /// Returns the next prices to send.
    pub(super) fn take(&mut self) -> Vec<ClusterEvent> {
        let mut items = Vec::new();
        while items.len() < ITEMS_MAX {
            let Some((_, item)) = self.urgent.pop_first() else { break };
            items.push(item);
        }
        items
    }

    /// Keeps all prices until there are newer ones, while the broker is away.
    pub(super) fn defer_all(&mut self) {
        let mut newer = std::mem::take(&mut self.urgent);
        self.deferred.append(&mut newer);
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::Tick;
    use pitlane_engine::time::Timestamp;

    use super::*;

    fn tick(security: u32, seq: u64) -> Event {
        let tick = Tick { security: SecurityId(security), ..Tick::default() };
        Event { seq, at: Timestamp(seq), body: EventKind::Tick(tick) }
    }

    #[test]
    fn subscribed_prices_are_sent_at_once_and_others_with_the_heartbeat() {
        let mut prices = Prices::default();
        prices.set_wanted([SecurityId(1)].into());
        assert!(prices.apply(ShardId(1), &tick(1, 1)) && prices.apply(ShardId(1), &tick(1, 2)));
        assert!(!prices.apply(ShardId(0), &tick(2, 3)));
        let seqs = |items: Vec<ClusterEvent>| items.iter().map(|item| item.event.seq).collect::<Vec<_>>();
        assert_eq!(seqs(prices.take()), [2]);
        assert_eq!((seqs(prices.take()), prices.conflated), (vec![], 1));
        prices.release_deferred();
        assert_eq!(seqs(prices.take()), [3]);
    }
}
