//! The engine's simulated venue with one book, called as a shard calls it: the fast path first, and
//! the full path only if the fast path declines.

use pitlane_engine::id::{AccountId, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::settings::VenueSettings;
use pitlane_engine::terms::{Side, Tif};
use pitlane_engine::venue::{BookSpec, OrderEntry, Venue, VenueOutcome};

use crate::abi::{Cancel, Modify, NewOrder, Report, ReportKind};
use crate::ids::{Ids, NONE};
use crate::{Engine, PAGES, Sink};

/// The one book.
const BOOK: u32 = 0;
/// Open orders for which there is room from the start.
const OPEN_AT_START: usize = 1 << 20;

#[derive(Debug)]
pub struct BookEngine {
    venue: Venue,
    ids: Ids,
    /// Order ids by slot.
    ids_by_slot: Vec<u64>,
    free: Vec<u32>,
}

impl Default for BookEngine {
    fn default() -> BookEngine {
        let spec = BookSpec {
            security: SecurityId(1),
            tick_size: Price::from_raw(1),
            lot: Qty::from_raw(1),
            auctions: false,
            settings: VenueSettings::default(),
        };
        BookEngine {
            venue: Venue::new(vec![spec], OPEN_AT_START, PAGES),
            ids: Ids::new(),
            ids_by_slot: PAGES.table(OPEN_AT_START),
            free: PAGES.table(OPEN_AT_START),
        }
    }
}

impl Engine for BookEngine {
    /// Enters an order. An id that is open already enters nothing and gets no report: the contract
    /// of the arena excludes it.
    #[inline]
    fn enter(&mut self, order: &NewOrder, sink: &impl Sink) {
        if self.ids.slot(order.id) != NONE {
            return;
        }
        sink.push(&Report::about(
            ReportKind::OrderAck,
            order.seq,
            order.id,
            order.side,
            order.ticks,
            order.qty,
        ));
        let slot = self.take_slot(order.id);
        let tif = if order.ioc == 0 { Tif::Gtc } else { Tif::Ioc };
        self.arrive(&entry(slot, order.side, order.ticks, order.qty, tif), order.id, order.seq, sink);
    }

    #[inline]
    fn cancel(&mut self, cancel: &Cancel, sink: &impl Sink) {
        let Cancel { id, seq } = *cancel;
        let slot = self.ids.slot(id);
        let Some(node) = self.venue.nodes().get(slot) else {
            return sink.push(&Report::about(ReportKind::CancelReject, seq, id, 0, 0, 0));
        };
        let (side, ticks) = (node.side() as u8, node.ticks);
        let withdrawn = self.venue.withdraw(slot);
        debug_assert!(withdrawn, "an order with a slot rests");
        self.give_back(slot, id);
        sink.push(&Report::about(ReportKind::CancelAck, seq, id, side, ticks, 0));
    }

    #[inline]
    fn modify(&mut self, modify: &Modify, sink: &impl Sink) {
        let Modify { id, seq, ticks, qty, .. } = *modify;
        let slot = self.ids.slot(id);
        let Some(node) = self.venue.nodes().get(slot) else {
            return sink.push(&Report::about(ReportKind::ModifyReject, seq, id, 0, 0, 0));
        };
        let side = node.side() as u8;
        sink.push(&Report::about(ReportKind::ModifyAck, seq, id, side, ticks, qty));
        // The venue keeps the place of an order that only becomes smaller; the arena does not.
        if self.venue.requeue(slot, Qty::from_raw(qty as i64), Some(ticks), Tif::Gtc) {
            if !self.venue.outcomes().is_empty() {
                self.settle(slot, side, ticks, id, seq, sink);
            }
            return;
        }
        let withdrawn = self.venue.withdraw(slot);
        debug_assert!(withdrawn, "an order with a slot rests");
        self.arrive(&entry(slot, side, ticks, qty, Tif::Gtc), id, seq, sink);
    }

    fn best(&self, side: u8) -> Option<i64> {
        let (levels, count) = self.venue.levels(BOOK, side_of(side));
        (count > 0).then(|| levels[0].price.raw())
    }

    fn depth_at(&self, side: u8, ticks: i64) -> u64 {
        self.venue.resting_qty(BOOK, side_of(side), ticks).raw().cast_unsigned()
    }
}

impl BookEngine {
    #[inline]
    fn arrive(&mut self, entry: &OrderEntry, id: u64, seq: u64, sink: &impl Sink) {
        // An IOC never rests.
        if entry.tif == Tif::Ioc || !self.venue.rest(entry) {
            self.venue.enter(entry);
            let ticks = entry.limit.unwrap_or_default();
            self.settle(entry.slot, entry.side as u8, ticks, id, seq, sink);
        }
    }

    /// Lets the venue finish, reports its trades, and frees the slots of finished orders.
    #[inline]
    fn settle(&mut self, taker: u32, side: u8, ticks: i64, id: u64, seq: u64, sink: &impl Sink) {
        loop {
            for at in 0..self.venue.outcomes().len() {
                match self.venue.outcomes()[at] {
                    (slot, VenueOutcome::Filled { qty, price }) if slot != taker => {
                        let maker = self.ids_by_slot[slot as usize];
                        sink.push(&Report::trade(seq, price.raw(), shares(qty), maker, id));
                        if self.venue.remaining(slot).is_none() {
                            self.give_back(slot, maker);
                        }
                    }
                    (_, VenueOutcome::Canceled(_)) => {
                        sink.push(&Report::about(ReportKind::CancelAck, seq, id, side, ticks, 0));
                    }
                    _ => {}
                }
            }
            self.venue.clear_outcomes();
            if !self.venue.work(BOOK) && self.venue.outcomes().is_empty() {
                break;
            }
        }
        if self.venue.remaining(taker).is_none() {
            self.give_back(taker, id);
        }
    }

    #[inline]
    fn take_slot(&mut self, id: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.ids_by_slot.push(id);
            self.ids_by_slot.len() as u32 - 1
        });
        self.ids_by_slot[slot as usize] = id;
        self.ids.set(id, slot);
        slot
    }

    #[inline]
    fn give_back(&mut self, slot: u32, id: u64) {
        self.ids.set(id, NONE);
        self.free.push(slot);
    }
}

/// Buys and sells have two accounts, so that the check for self-trades runs and never hits.
#[inline]
fn entry(slot: u32, side: u8, ticks: i64, qty: u32, tif: Tif) -> OrderEntry {
    OrderEntry {
        slot,
        book: BOOK,
        side: side_of(side),
        limit: Some(ticks),
        qty: Qty::from_raw(qty as i64),
        tif,
        account: AccountId(1 + side as u16),
    }
}

#[inline]
fn side_of(side: u8) -> Side {
    Side::BOTH[(side & 1) as usize]
}

#[inline]
fn shares(qty: Qty) -> u32 {
    qty.raw() as u32
}
