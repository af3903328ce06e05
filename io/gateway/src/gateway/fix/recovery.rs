//! State of a gateway's sessions from before the restart: their stores, and events that were not
//! reported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pitlane_engine::event::{Event, EventKind, RequestRefusal};
use pitlane_engine::id::{OrderHandle, ShardId};
use pitlane_engine::time::Timestamp;
use pitlane_journal::disk::Disk;
use pitlane_journal::{Fault, Level};
use pitlane_protocols::fix::store::{MemoryStore, MessageStore};

use crate::fix::message_log;
use crate::fix::settings::SessionFamily;
use crate::fix::store::{FileStore, StoreLocation, path_of};

/// An event whose report no session has stored, or a venue's instruction whose message was not
/// stored.
#[derive(Clone, Copy, Debug)]
pub struct Unreported {
    pub shard: ShardId,
    pub event: Event,
}

/// An event after the restart that waits for the earlier ones, with the refusal that the desk
/// derived from it for its session.
#[derive(Debug)]
pub(super) struct EarlyEvent {
    pub shard: ShardId,
    pub event: Event,
    pub refusal: Option<RequestRefusal>,
    pub number: u16,
}

/// Events that wait one by one for the snapshots of all shards. At the start few orders change:
/// this is what a venue can report in several seconds, in about 20 MiB. Of further events only the
/// newest of each order waits, so that there are at most three more for each order of the gateway.
const EARLY_REPORTS_MAX: usize = 1 << 16;

/// Events that arrive before the snapshots of all shards are complete.
#[derive(Debug, Default)]
pub(super) struct EarlyEvents {
    /// At most [`EARLY_REPORTS_MAX`], and the refusals of requests that were in flight.
    each: Vec<EarlyEvent>,
    /// The newest events of each order beyond these: special terms, terms, status.
    newest: BTreeMap<(OrderHandle, u8), EarlyEvent>,
}

impl EarlyEvents {
    /// Holds an event. Returns whether it is the first one that others may replace.
    pub(super) fn hold(&mut self, early: EarlyEvent) -> bool {
        let is_special = matches!(early.event.body, EventKind::SpecialTerms(_));
        let is_terms = matches!(early.event.body, EventKind::Order(_));
        let kind = if is_special { 0 } else { 2 - is_terms as u8 };
        // A request is answered once, so its refusal stays.
        let is_refusal = matches!(early.event.body, EventKind::Refused(_)) || early.refusal.is_some();
        let order = early.event.body.subject().order.filter(|_| !is_refusal);
        let Some(order) = order.filter(|_| self.each.len() >= EARLY_REPORTS_MAX) else {
            self.each.push(early);
            return false;
        };
        let is_first = self.newest.is_empty();
        self.newest.insert((order, kind), early);
        is_first
    }

    /// Returns the events in the order in which they are reported.
    pub(super) fn into_events(self) -> impl Iterator<Item = EarlyEvent> {
        self.each.into_iter().chain(self.newest.into_values())
    }
}

#[derive(Clone, Debug)]
pub struct SessionRecovery {
    pub level: Level,
    pub store_bytes: usize,
    /// Last event of each shard at the start: to a new store, all events up to it count as
    /// reported.
    pub reported: Vec<u64>,
    pub missed: Vec<Unreported>,
}

impl SessionRecovery {
    /// Opens the store of a session; in memory, where nothing is persisted.
    pub fn open_store(
        &self,
        now: Timestamp,
        name: &str,
        family: &SessionFamily,
        fix_log: &mut message_log::FixLogHandle,
    ) -> Result<Box<dyn MessageStore>, Fault> {
        if self.level == Level::None {
            return Ok(Box::new(MemoryStore::new(now)));
        }
        let disk = Disk::Real;
        let folder = &family.store_folder;
        disk.make_folder(folder).map_err(Fault::io(folder))?;
        let path: PathBuf = path_of(folder, name);
        let place = StoreLocation { disk: &disk, path, name, bytes: self.store_bytes, level: self.level };
        let store = FileStore::open(&place, now, &self.reported)?;
        if store.lost_power {
            tracing::warn!(
                session = name,
                "after a power loss sequence numbers of the FIX session were skipped"
            );
        }
        if self.level.is_synced() && !fix_log.sync(Arc::clone(store.file())) {
            tracing::error!(session = name, "the FIX store is not synced: too many at once");
        }
        Ok(Box::new(store))
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{ExecType, OrderTerms};
    use pitlane_engine::id::{IntId, Source};
    use pitlane_engine::reason::Reason;
    use pitlane_engine::sender::SenderId;
    use pitlane_engine::terms::{OrderSpecialTerms, SpecialTerms, Status, Terms};

    use super::*;

    fn early(seq: u64, body: EventKind) -> EarlyEvent {
        let event = Event { seq, at: Timestamp(1), body };
        EarlyEvent { shard: ShardId(0), event, refusal: None, number: 1 }
    }

    fn terms(order: OrderHandle) -> EventKind {
        EventKind::Order(OrderTerms {
            order,
            id: IntId::parse(b"a").expect("an id"),
            orig_id: IntId::NONE,
            source: Source::default(),
            what: ExecType::Entered,
            status: Status::PendingNew,
            reason: Reason::None,
            sender: SenderId::NONE,
            terms: Terms::default(),
        })
    }

    #[test]
    fn above_the_bound_the_newest_event_of_each_order_waits() {
        let [first, second] = [1, 2].map(|slot| OrderHandle::new(ShardId(0), 0, slot));
        let mut held = EarlyEvents::default();
        let most = EARLY_REPORTS_MAX as u64;
        assert!((1..=most).all(|seq| !held.hold(early(seq, terms(first)))));
        assert!(held.hold(early(most + 1, terms(second))), "the first one that is replaced");
        for seq in most + 2..2 * most {
            assert!(!held.hold(early(seq, terms(first))));
        }
        let special = SpecialTerms::default();
        let special =
            OrderSpecialTerms { order: first, source: Source::default(), is_snapshot: false, special };
        held.hold(early(2 * most, EventKind::SpecialTerms(special)));
        let seqs: Vec<u64> = held.into_events().map(|early| early.event.seq).collect();
        assert_eq!(seqs[..EARLY_REPORTS_MAX], (1..=most).collect::<Vec<_>>());
        assert_eq!(seqs[EARLY_REPORTS_MAX..], [2 * most, 2 * most - 1, most + 1]);
    }
}
