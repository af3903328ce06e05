//! A new start of the process: what changes for a shard. It is recorded in the journal like a
//! command, and repeated by a replay.
//!
//! Rules: docs/engine-rules.md#recovery.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Shard;
use super::adapters::Adapters;
use super::watchers::EventWatchers;
use crate::event::EventKind;
use crate::id::PortMask;
use crate::index::index_u32;
use crate::order::Base;
use crate::outbox::Outbox;
use crate::refdata::RefData;
use crate::sender::{SenderId, SentBy};
use crate::settings::ShardSettings;
use crate::time::Timestamp;

impl Shard {
    /// Starts the shard again, with these reference data (fit to follow the old, see
    /// [`RefData::succeed`]) and settings. [`Shard::resume`] continues while there is work, as
    /// after a command. The events have their numbers, but their recipient ports do not exist yet:
    /// the caller may drop them, and each port begins with a snapshot.
    ///
    /// - Ports are forgotten: what they watched, and snapshots in progress. Subscriptions of
    ///   strategies stay.
    /// - Outside adapters are not connected; what is in flight there is in doubt until they connect
    ///   and report. The books of their venues are unknown.
    /// - Reference data are applied as by [`Shard::set_reference`].
    /// - Bounds take effect at once: beyond a smaller one nothing is dropped, but nothing new is
    ///   accepted; transactions are folded down to their bound. A list of finished orders that is
    ///   too long does not grow, and ends with the day.
    /// - Venues continue under their new settings with their orders. Seeds are for new securities
    ///   only: random streams continue. If delays differ, everything in transit to or from a
    ///   simulated venue arrives now.
    pub fn begin(
        &mut self,
        now: Timestamp,
        reference: Arc<RefData>,
        settings: ShardSettings,
        out: &mut Outbox,
    ) {
        assert!(!self.has_work(), "a shard with work left cannot restart");
        let before = out.waiting().len();
        self.applied += 1;
        self.now = self.now.max(now);
        self.requests.begin_internal();
        self.forget_ports();
        self.forget_senders();
        self.set_up(settings);
        self.set_reference(reference);
        self.disconnect_all(out);
        self.continuation.begin_start();
        self.continuation.recheck_closes();
        self.end_step(before, out);
    }

    fn forget_ports(&mut self) {
        self.watchers = EventWatchers::default();
        self.snapshots = Default::default();
        self.adapters.forget_ports();
        self.directory.locals.iter_mut().for_each(|local| local.watchers = PortMask::NONE);
        self.forget_depths();
        self.forget_levels();
        self.forget_venue_books();
        self.forget_book_orders();
        self.forget_trades();
    }

    /// Forgets the senders that no kept order refers to, and numbers without a known sender:
    /// numbers repeat after many starts, and must not mean another sender then.
    fn forget_senders(&mut self) {
        if self.requests.senders.is_empty() {
            return;
        }
        let mut used = BTreeSet::new();
        for slot in (0..self.orders.len()).filter(|slot| self.orders.in_use(*slot)) {
            let SentBy { submitted, modified, canceled } = self.orders.sent(slot);
            used.extend([submitted, modified, canceled]);
        }
        used.extend(self.closes.senders());
        self.requests.senders.retain(|id| used.contains(&id));
        let senders = &self.requests.senders;
        let is_known = |id: SenderId| !id.is_named() || senders.get(id).is_some();
        self.orders.forget_senders(is_known);
        self.closes.forget_senders(is_known);
    }

    fn set_up(&mut self, settings: ShardSettings) {
        let differ = |id| settings.venue_of(id).delays != self.settings.venue_of(id).delays;
        if self.directory.exchanges.iter().any(|place| differ(place.id)) {
            self.deadlines.deliver_all(self.now);
        }
        self.orders.set_bounds(settings.orders_max, settings.executions_max, settings.pages);
        self.venue.nodes_mut().reserve(settings.orders_max as usize, settings.pages);
        self.ledger.set_bound(settings.transactions_max);
        for (book, local) in self.directory.locals.iter().enumerate() {
            let place = &self.directory.exchanges[local.exchange as usize];
            self.venue.set_up(index_u32(book), settings.venue_of(place.id).clone());
        }
        self.settings = settings;
        self.recount_derived();
    }

    /// There are no recipients yet, so this cannot exceed the bound of a step: the events are
    /// counted, not stored.
    fn disconnect_all(&mut self, out: &mut Outbox) {
        for adapter in Adapters::outside() {
            self.directory.clear_suspect(adapter);
            if self.adapters.set_connected(adapter, false) {
                self.emit(EventKind::Adapter { adapter, connected: false }, out);
            }
        }
    }

    /// Marks an order as in doubt if its venue disconnected while a request was pending there: the
    /// outcome is unknown.
    pub(super) fn mark_in_doubt_if_pending(&mut self, slot: u32, out: &mut Outbox) {
        let waiting = self.orders.get(slot).base == Base::PendingNew || self.orders.requests(slot).is_some();
        if waiting {
            self.mark_in_doubt(slot, out);
        }
    }
}
