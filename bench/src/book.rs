//! The engine's simulated venue alone: its books, without orders, risk, positions or events around
//! them.
//!
//! What the shard does for the venue is done here as barely as in the floor: a slot comes from a
//! free list, and a plain table maps order id to slot. The venue is called as the shard calls it:
//! the fast path first (rest, withdraw, requeue), and the full path only if the fast path declines.

use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::{index_u32, index_usize};
use pitlane_engine::settings::VenueSettings;
use pitlane_engine::terms::Tif;
use pitlane_engine::venue::{BookSpec, OrderEntry, Venue, VenueOutcome};

use crate::convert::workload_u32;
use crate::units::{self, LOT, TICK};
use crate::workload::{FlowOutcome, Matcher, RecordKind, TradeTally, Workload, WorkloadRecord};

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub struct VenueMatcher {
    venue: Venue,
    /// Order ids by slot.
    order_ids: Vec<u32>,
    /// Slots by order id.
    slots: Vec<u32>,
    free: Vec<u32>,
    tally: TradeTally,
}

impl VenueMatcher {
    pub fn new(workload: &Workload) -> VenueMatcher {
        let spec = |security| BookSpec {
            security: SecurityId(security),
            tick_size: TICK,
            lot: LOT,
            auctions: false,
            settings: VenueSettings::default(),
        };
        let slots = workload.prefill.len() * 2;
        VenueMatcher {
            venue: Venue::new((0..workload.securities).map(spec).collect(), slots, LARGE_PAGES),
            order_ids: Vec::with_capacity(slots),
            slots: vec![NONE; index_usize(workload.order_id_max) + 1],
            free: Vec::with_capacity(slots),
            tally: TradeTally::default(),
        }
    }

    fn enter(&mut self, record: &WorkloadRecord, limit: Option<i64>, tif: Tif) {
        let slot = self.take_slot(workload_u32(record.order));
        self.slots[index_usize(record.order)] = slot;
        let entry = OrderEntry {
            slot,
            book: record.security,
            side: units::side(record.side),
            limit,
            qty: units::qty(record.qty),
            tif,
            account: units::account(record.side),
        };
        if !self.venue.rest(&entry) {
            self.venue.enter(&entry);
            self.settle(slot, record.order, record.security);
        }
    }

    fn cancel(&mut self, order: u64) {
        let slot = self.slots[index_usize(order)];
        if slot == NONE {
            return self.tally.unknown();
        }
        if !self.venue.withdraw(slot) {
            self.venue.cancel(slot);
            self.venue.clear_outcomes();
        }
        self.give_back(slot, order);
    }

    fn replace(&mut self, order: u64, price: i32) {
        let slot = self.slots[index_usize(order)];
        if slot == NONE {
            return self.tally.unknown();
        }
        let left = self.venue.remaining(slot).expect("an open order is at the venue");
        let book = self.venue.book_of(slot).expect("an open order is at the venue");
        if !self.venue.requeue(slot, left, Some(price as i64), Tif::Gtc) {
            self.venue.replace(slot, left, Some(price as i64), Tif::Gtc);
        }
        if !self.venue.outcomes().is_empty() {
            self.settle(slot, order, book);
        }
    }

    /// Lets the venue finish, counts the trades, and frees the slots of finished orders.
    fn settle(&mut self, taker: u32, order: u64, book: u32) {
        loop {
            self.drain(taker, order);
            if !self.venue.has_work(book) {
                break;
            }
            self.venue.work(book);
        }
        if self.venue.remaining(taker).is_none() {
            self.give_back(taker, order);
        }
    }

    #[inline]
    fn drain(&mut self, taker: u32, order: u64) {
        for at in 0..self.venue.outcomes().len() {
            let (slot, outcome) = self.venue.outcomes()[at];
            let VenueOutcome::Filled { qty, price } = outcome else { continue };
            if slot == taker {
                continue;
            }
            let maker = self.order_ids[slot as usize] as u64;
            self.tally.trade(maker, order, units::ticks(price), units::shares(qty));
            if self.venue.remaining(slot).is_none() {
                self.give_back(slot, maker);
            }
        }
        self.venue.clear_outcomes();
    }

    #[inline]
    fn take_slot(&mut self, order_id: u32) -> u32 {
        let Some(slot) = self.free.pop() else {
            self.order_ids.push(order_id);
            return index_u32(self.order_ids.len() - 1);
        };
        self.order_ids[slot as usize] = order_id;
        slot
    }

    #[inline]
    fn give_back(&mut self, slot: u32, order: u64) {
        self.slots[index_usize(order)] = NONE;
        self.free.push(slot);
    }
}

impl Matcher for VenueMatcher {
    #[inline]
    fn apply(&mut self, record: &WorkloadRecord) {
        match record.kind {
            RecordKind::New => self.enter(record, Some(record.price as i64), Tif::Gtc),
            RecordKind::Ioc => self.enter(record, Some(record.price as i64), Tif::Ioc),
            RecordKind::Market => self.enter(record, None, Tif::Ioc),
            RecordKind::Cancel => self.cancel(record.order),
            RecordKind::Replace => self.replace(record.order, record.price),
        }
    }

    fn outcome(&self) -> FlowOutcome {
        let open = self.slots.iter().filter(|&&slot| slot != NONE);
        let (count, qty) = open.fold((0, 0), |(count, qty), &slot| {
            (count + 1, qty + self.venue.remaining(slot).map_or(0, units::shares))
        });
        self.tally.outcome(count, qty)
    }
}
