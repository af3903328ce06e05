//! Batches of this server to the others, as they were sent: numbered, and kept for members that
//! missed some.

use std::collections::VecDeque;

use bytes::Bytes;
use pitlane_engine::index::index_usize;
use pitlane_protocols::remote::cluster::{ClusterBatch, ClusterBroadcast, ClusterEvent, MemberIdentity};

/// Items in one batch: some 15 KB.
pub(super) const ITEMS_PER_BATCH_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct BatchWindow {
    identity: MemberIdentity,
    bytes_max: usize,
    /// Consecutive batches; the last has the number `last`.
    batches: VecDeque<Bytes>,
    bytes: usize,
    last: u64,
    /// Number of the last batch that was given to the broker, or skipped.
    out: u64,
    /// Items of the next batch.
    items: Vec<ClusterEvent>,
}

impl BatchWindow {
    pub(super) fn new(identity: MemberIdentity, bytes_max: usize) -> BatchWindow {
        BatchWindow {
            identity,
            bytes_max,
            batches: VecDeque::new(),
            bytes: 0,
            last: 0,
            out: 0,
            items: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, item: ClusterEvent) {
        self.items.push(item);
        if self.items.len() == ITEMS_PER_BATCH_MAX {
            self.close();
        }
    }

    /// Makes a batch of the added items. If there is no room, the oldest batches are dropped.
    pub(super) fn close(&mut self) {
        if self.items.is_empty() {
            return;
        }
        self.last += 1;
        let items = std::mem::take(&mut self.items);
        let batch = Bytes::from(
            ClusterBroadcast::Batch(ClusterBatch { sender: self.identity, number: self.last, items })
                .encode(),
        );
        self.bytes += batch.len();
        self.batches.push_back(batch);
        while self.bytes > self.bytes_max && self.batches.len() > 1 {
            self.bytes -= self.batches.pop_front().map_or(0, |batch| batch.len());
        }
    }

    /// Returns the number of the last batch.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the next batch to send.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        if self.out == self.last {
            return None;
        }
        // Batches that were dropped are requested in vain: then the member that lacks them joins
        // again.
        self.out = self.out.max(self.last - self.batches.len() as u64) + 1;
        self.get(self.out)
    }

    /// Skips all batches while the broker is away; members that lack them request them later.
    pub(super) fn skip_unsent(&mut self) {
        self.out = self.last;
    }

    /// Returns an earlier batch; `None` if it is no longer kept, or does not exist yet.
    pub(super) fn get(&self, number: u64) -> Option<Bytes> {
        let behind = index_usize(self.last.checked_sub(number)?);
        let at = self.batches.len().checked_sub(behind + 1)?;
        self.batches.get(at).cloned()
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{Event, EventKind};
    use pitlane_engine::id::ShardId;
    use pitlane_engine::time::{Day, Timestamp};
    use pitlane_protocols::remote::cluster::EventRecipient;

    use super::*;

    fn item(seq: u64) -> ClusterEvent {
        let event = Event { seq, at: Timestamp(1), body: EventKind::TradingDay { day: Day(1) } };
        ClusterEvent { shard: ShardId(0), to: EventRecipient::All, event }
    }

    fn numbers(bytes: Option<Bytes>) -> Option<(u64, usize)> {
        match ClusterBroadcast::decode(&bytes?) {
            Ok(ClusterBroadcast::Batch(batch)) => Some((batch.number, batch.items.len())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn batches_are_sent_once_and_kept_as_far_as_there_is_room() {
        let mut window = BatchWindow::new(MemberIdentity::default(), 2_000);
        (0..ITEMS_PER_BATCH_MAX as u64 + 1).for_each(|seq| window.add(item(seq)));
        assert_eq!(numbers(window.take()), Some((1, ITEMS_PER_BATCH_MAX)));
        assert_eq!((window.take(), window.last()), (None, 1), "the second is not closed yet");
        window.close();
        assert_eq!(numbers(window.take()), Some((2, 1)));
        assert_eq!(numbers(window.get(1)), Some((1, ITEMS_PER_BATCH_MAX)));
        for seq in 100..200 {
            window.add(item(seq));
            window.close();
        }
        assert!(window.get(1).is_none() && window.get(103).is_none());
        assert_eq!(numbers(window.get(102)), Some((102, 1)));
        let (first, _) = numbers(window.take()).unwrap();
        assert!(first > 3, "dropped batches are skipped");
        window.skip_unsent();
        assert!(window.take().is_none());
    }
}
