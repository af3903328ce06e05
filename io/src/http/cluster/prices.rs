//! Market data on their way to other servers: the newest of each security. What somebody there watches goes out at once, the rest, which
//! is only read now and then, with the next beat.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::cluster::{ClusterEvent, EventRecipient};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::terms::Side;

/// In one message: some 20 KB.
const ITEMS_MAX: usize = 256;

/// Ticks come before books, a book's bids before its asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tick,
    Bids,
    Asks,
}

#[derive(Debug, Default)]
pub struct Prices {
    wanted: BTreeSet<SecurityId>,
    urgent: BTreeMap<(SecurityId, Kind), ClusterEvent>,
    /// Until the next beat.
    resting: BTreeMap<(SecurityId, Kind), ClusterEvent>,
    pub conflated: u64,
}

impl Prices {
    /// Securities whose ticks somebody watches.
    pub fn set_wanted(&mut self, wanted: BTreeSet<SecurityId>) {
        self.wanted = wanted;
    }

    /// Takes a tick or one side of a book. Whether it is to go out now.
    pub fn hear(&mut self, shard: ShardId, event: &Event) -> bool {
        let (security, kind) = match &event.body {
            EventKind::Tick(tick) => (tick.security, Kind::Tick),
            EventKind::Depth(depth) if depth.side == Side::Buy => (depth.security, Kind::Bids),
            EventKind::Depth(depth) => (depth.security, Kind::Asks),
            _ => return false,
        };
        let item = ClusterEvent { shard, to: EventRecipient::All, event: *event };
        let is_urgent = kind != Kind::Tick || self.wanted.contains(&security);
        let rows = if is_urgent { &mut self.urgent } else { &mut self.resting };
        self.conflated += u64::from(rows.insert((security, kind), item).is_some());
        is_urgent
    }

    /// What has waited goes out too.
    pub fn beat(&mut self) {
        self.urgent.append(&mut self.resting);
    }

    /// The next ones to go out.
    pub fn take(&mut self) -> Vec<ClusterEvent> {
        let mut items = Vec::new();
        while items.len() < ITEMS_MAX {
            let Some((_, item)) = self.urgent.pop_first() else { break };
            items.push(item);
        }
        items
    }

    /// Nobody hears them now: they stay, until there are newer ones.
    pub fn rest(&mut self) {
        let mut newer = std::mem::take(&mut self.urgent);
        self.resting.append(&mut newer);
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
    fn the_newest_goes_out_at_once_where_it_is_watched_and_with_the_beat_elsewhere() {
        let mut prices = Prices::default();
        prices.set_wanted([SecurityId(1)].into());
        assert!(prices.hear(ShardId(1), &tick(1, 1)) && prices.hear(ShardId(1), &tick(1, 2)));
        assert!(!prices.hear(ShardId(0), &tick(2, 3)));
        let seqs = |items: Vec<ClusterEvent>| items.iter().map(|item| item.event.seq).collect::<Vec<_>>();
        assert_eq!(seqs(prices.take()), [2]);
        assert_eq!((seqs(prices.take()), prices.conflated), (vec![], 1));
        prices.beat();
        assert_eq!(seqs(prices.take()), [3]);
    }
}
