//! Bytes of the whole state of a shard. A loaded shard emits the same events, byte for byte, as the
//! saved one for the same commands. Only snapshots in progress for ports, the ports that watch the
//! depth of a book, and the books of outside venues are not stored.
//!
//! Loading is quick: tables are decoded whole, and the derived data (indices, ladders, sums) are
//! rebuilt. It checks that every index is valid, every list ends and the amounts add up, so that
//! damaged bytes can neither make it panic, now or at the next order, nor make it allocate more
//! memory than there are bytes for.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Shard;
use super::adapters::Adapters;
use super::book_orders::OrderWatches;
use super::closing::PendingCloses;
use super::continuation::Continuation;
use super::deadlines::Deadlines;
use super::depth::DepthWatches;
use super::levels::LevelWatches;
use super::request_log::RequestLog;
use super::snapshot::Snapshots;
use super::stops::Stops;
use super::trades::TradeWatches;
use super::trading_days::TradingDays;
use super::venue_books::VenueBooks;
use crate::codec::{ByteReader, Codec, DecodeError, DecodeProblem, Digest};
use crate::directory::Directory;
use crate::id::{AdapterId, ShardId};
use crate::ledger::Ledger;
use crate::order::{Base, NIL, Order};
use crate::order_nodes::{Node, NodePlace};
use crate::orders::Orders;
use crate::refdata::RefData;
use crate::settings::{Delays, ShardSettings};
use crate::terms::Tif;
use crate::time::Timestamp;
use crate::used_ids::{USED_IDS_MAX, UsedIdLog};
use crate::venue::Venue;

impl Shard {
    /// Appends the encoding of this shard, which has no work left, to `out`. Some 150 bytes for
    /// each order held.
    pub fn save(&self, out: &mut Vec<u8>) {
        assert!(!self.has_work(), "a shard is saved between commands");
        self.id.encode(out);
        self.shards.encode(out);
        self.setup_sum().encode(out);
        self.applied.encode(out);
        self.now.encode(out);
        self.days.current.encode(out);
        self.killed.encode(out);
        self.directives.encode(out);
        self.adapters.encode(out);
        self.watchers.encode(out);
        self.directory.save(out);
        self.ledger.save(out);
        self.orders.save(out);
        self.venue.save(out);
        self.deadlines.save(out);
        self.requests.used_ids.save(out);
        self.closes.encode(out);
        self.days.published.encode(out);
        self.days.era.encode(out);
        self.requests.senders.encode(out);
        self.requests.audit_anchor.encode(out);
        // Written only where there is something, so that states from before they existed can be
        // read.
        if self.has_fees_or_special_terms() || !self.overdue_stops.is_empty() {
            self.orders.save_fees(out);
            self.orders.special.encode(out);
            self.requests.announced.encode(out);
        }
        if !self.overdue_stops.is_empty() {
            self.overdue_stops.iter().copied().collect::<Vec<_>>().encode(out);
        }
    }

    fn has_fees_or_special_terms(&self) -> bool {
        self.orders.has_fees() || self.has_special_terms()
    }

    fn has_special_terms(&self) -> bool {
        !self.orders.special.is_empty() || !self.requests.announced.is_empty()
    }

    /// Decodes a shard from exactly these bytes. Reference data and settings must be those it had
    /// when it was saved; with others it is not the same shard, and is refused.
    pub fn load(
        bytes: &[u8],
        id: ShardId,
        shards: u8,
        reference: Arc<RefData>,
        settings: ShardSettings,
    ) -> Result<Shard, DecodeError> {
        assert!(id.0 < shards, "a shard is one of its number");
        let mut from = ByteReader::new(bytes);
        let shard = Shard::decode(&mut from, id, shards, reference, settings)?;
        from.finish()?;
        Ok(shard)
    }

    /// Returns a checksum over what changes: commands, orders, money, prices, limits in use, random
    /// streams. Equal states have equal digests; different ones almost never do. Its cost grows
    /// with securities, strategies and accounts, not with orders.
    pub fn digest(&self) -> u64 {
        let mut sum = Digest::new();
        self.applied.encode(&mut sum);
        self.now.encode(&mut sum);
        self.days.current.encode(&mut sum);
        self.killed.encode(&mut sum);
        // Included only where there are some, so that the digests of older journals stay the same.
        if self.directives.get(0).is_some() {
            self.directives.encode(&mut sum);
        }
        if !self.closes.is_empty() {
            self.closes.len().encode(&mut sum);
        }
        if !self.requests.senders.is_empty() {
            self.requests.senders.len().encode(&mut sum);
        }
        if self.has_special_terms() {
            self.orders.special.len().encode(&mut sum);
        }
        if !self.overdue_stops.is_empty() {
            self.overdue_stops.len().encode(&mut sum);
        }
        self.deadlines.encode_counts(&mut sum);
        self.orders.fold(&mut sum);
        self.ledger.fold(&mut sum);
        self.venue.fold(&mut sum);
        self.directory.fold(&mut sum);
        self.deadlines.encode_lines(&mut sum);
        sum.sum()
    }

    fn decode(
        from: &mut ByteReader<'_>,
        id: ShardId,
        shards: u8,
        reference: Arc<RefData>,
        settings: ShardSettings,
    ) -> Result<Shard, DecodeError> {
        let own = ShardId::decode(from)? == id && u8::decode(from)? == shards;
        from.check(own, DecodeProblem::Contradiction)?;
        let setup_sum = u64::decode(from)?;
        let applied = from.counter()?;
        let now = Codec::decode(from)?;
        let current = Codec::decode(from)?;
        let killed = Codec::decode(from)?;
        let directives = Codec::decode(from)?;
        let adapters = Adapters::decode(from)?;
        from.check(adapters.is_connected(AdapterId::SIM), DecodeProblem::Contradiction)?;
        let watchers = Codec::decode(from)?;
        let directory = Directory::load(from, id, shards, reference)?;
        let pages = settings.pages;
        let ledger = Ledger::load(from, directory.locals.len(), settings.transactions_max, pages)?;
        let orders = Orders::load(from, id, settings.orders_max, settings.executions_max, pages)?;
        let specs = (0..directory.locals.len()).map(|at| super::book_spec(&directory, &settings, at));
        let (venue, stops) = Venue::load(from, specs.collect(), settings.orders_max as usize, pages)?;
        let deadlines = Deadlines::load(from, directory.locals.len())?;
        let used_ids = UsedIdLog::load(from, USED_IDS_MAX, pages)?;
        let closes = PendingCloses::decode(from)?;
        from.check(closes.are_valid(directory.locals.len()), DecodeProblem::Contradiction)?;
        let published = Codec::decode(from)?;
        let era = Codec::decode(from)?;
        let senders = Codec::decode(from)?;
        let audit_anchor = Codec::decode(from)?;
        let mut shard = Shard {
            id,
            shards,
            settings,
            applied,
            now,
            days: TradingDays { current, published, era },
            directory,
            orders,
            ledger,
            venue,
            stops: Stops::default(),
            overdue_stops: BTreeSet::new(),
            deadlines,
            adapters,
            killed,
            directives,
            watchers,
            continuation: Continuation::default(),
            closes,
            snapshots: Snapshots::default(),
            depths: DepthWatches::default(),
            levels: LevelWatches::default(),
            venue_books: VenueBooks::default(),
            book_orders: OrderWatches::default(),
            trade_watches: TradeWatches::default(),
            requests: RequestLog::restored(senders, used_ids, audit_anchor),
        };
        if from.left() > 0 {
            shard.orders.load_fees(from)?;
            shard.orders.special = Codec::decode(from)?;
            shard.requests.announced = Codec::decode(from)?;
            let is_last = from.left() == 0;
            if !is_last {
                shard.overdue_stops = Vec::decode(from)?.into_iter().collect();
            }
            let is_needed = shard.has_fees_or_special_terms() || !is_last;
            from.check(is_needed && is_last == shard.overdue_stops.is_empty(), DecodeProblem::Value)?;
        }
        let sound = shard.setup_sum() == setup_sum && shard.orders_are_sound() && shard.restore_stops(&stops);
        from.check(sound, DecodeProblem::Contradiction)?;
        shard.recount_derived();
        from.check(shard.verify().is_ok(), DecodeProblem::Contradiction)?;
        Ok(shard)
    }

    /// Returns a checksum of the settings and reference data.
    fn setup_sum(&self) -> u64 {
        let mut sum = Digest::new();
        self.settings.encode(&mut sum);
        self.directory.reference.fold(&mut sum);
        sum.sum()
    }

    /// Returns whether every order refers to valid rows, and whatever is in a book or waits for a
    /// trigger is an open order.
    fn orders_are_sound(&self) -> bool {
        let held = |slot: u32| slot < self.orders.len() && self.orders.in_use(slot);
        let belongs = |order: &Order| {
            // A refused order has only its id and terms.
            let refused = order.base == Base::Rejected && !order.at_venue();
            match order.local {
                NIL => refused,
                local if local as usize >= self.directory.locals.len() => false,
                local => {
                    let places = (order.position as usize, order.exposure as usize);
                    let (positions, exposures) = (self.ledger.positions(local), self.ledger.exposures(local));
                    let security = self.directory.locals[local as usize].instrument.security;
                    refused
                        || positions.get(places.0).is_some_and(|held| held.strategy == order.terms.strategy)
                            && exposures.get(places.1).is_some_and(|held| held.account == order.terms.account)
                            && order.terms.security == security
                }
            }
        };
        let stands = |(slot, node): (u32, &Node)| {
            let order = self.orders.get(slot);
            !order.base.is_finished()
                && order.terms.side == node.side()
                && (order.local == node.book || node.is_at(NodePlace::Stop))
        };
        (0..self.orders.len()).filter(|&slot| held(slot)).all(|slot| belongs(self.orders.get(slot)))
            && self.venue.nodes().placed().all(|placed| held(placed.0) && stands(placed))
    }

    /// Restores every queue of stops, given by its head, on its ladder. Returns false if that is
    /// impossible.
    fn restore_stops(&mut self, heads: &[u32]) -> bool {
        (0..self.directory.locals.len()).for_each(|_| self.stops.add_security());
        for &head in heads {
            let slots: Vec<u32> = self.venue.nodes().line_from(head).collect();
            let (side, ticks) = (self.venue.nodes()[head].side(), self.venue.nodes()[head].ticks);
            let local = self.orders.get(head).local;
            let one = slots.iter().all(|&slot| self.orders.get(slot).local == local);
            if !one || self.stops.is_occupied(self.venue.nodes(), local, side, ticks) {
                return false;
            }
            let nodes = self.venue.nodes_mut();
            if !slots.into_iter().all(|slot| self.stops.push(nodes, local, slot, side, ticks)) {
                return false;
            }
        }
        true
    }

    /// Recounts the values that follow from the orders and the settings.
    pub(super) fn recount_derived(&mut self) {
        let dated = |slot: &u32| {
            let order = self.orders.get(*slot);
            self.orders.in_use(*slot) && !order.base.is_finished() && order.terms.tif == Tif::Gtd
        };
        let dated = (0..self.orders.len()).filter(dated).count();
        let delays = |at: u16| self.settings.venue_of(self.directory.exchanges[at as usize].id).delays;
        let is_delayed =
            self.directory.locals.iter().any(|local| delays(local.exchange) != Delays::default());
        self.deadlines.set_derived(dated, is_delayed);
    }

    /// Returns the time of the last command.
    pub fn now(&self) -> Timestamp {
        self.now
    }
}
