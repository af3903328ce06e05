//! Each rule of the README's section on the venue, as a test; and a naive twin for the plain case.

mod matching;
mod portions;
mod feed;
mod feed_levels;
mod level_ends;
mod sessions;
mod uncross;
mod plain;
mod requests;
mod settings;
mod steps;
mod stored;

use super::*;
use crate::codec::{ByteReader, DecodeError};
use crate::number::Grid;
use crate::order::NIL;
use crate::settings::{FillModel, QuoteSizes, SelfTrade};
use crate::time::Timestamp;

use Side::{Buy, Sell};
use VenueOutcome::*;

/// One book with a tick of 1 and whole quantities, and all its outcomes.
struct VenueBench {
    venue: Venue,
    accounts: u16,
}

fn qty(qty: i64) -> Qty {
    Qty::whole(qty).unwrap()
}

fn price(price: i64) -> Price {
    Price::whole(price).unwrap()
}

fn filled(slot: u32, quantity: i64, at: i64) -> (u32, VenueOutcome) {
    (slot, Filled { qty: qty(quantity), price: price(at) })
}

fn spec(settings: VenueSettings) -> BookSpec {
    BookSpec { security: SecurityId(7), tick_size: price(1), lot: qty(1), auctions: true, settings }
}

fn bench() -> VenueBench {
    desk_with(VenueSettings::default())
}

fn desk_with(settings: VenueSettings) -> VenueBench {
    VenueBench { venue: Venue::new(vec![spec(settings)], 16, LargePages::NONE), accounts: 0 }
}

fn model(fill_model: FillModel) -> VenueBench {
    desk_with(VenueSettings { fill_model, ..VenueSettings::default() })
}

impl VenueBench {
    /// Enters an order of an account of its own; the slot counts up from 1 in the test.
    fn order(&mut self, slot: u32, side: Side, quantity: i64, limit: Option<i64>, tif: Tif) {
        self.accounts += 1;
        self.order_of(self.accounts + 1000, slot, side, quantity, limit, tif);
    }

    fn order_of(&mut self, account: u16, slot: u32, side: Side, quantity: i64, limit: Option<i64>, tif: Tif) {
        let account = AccountId(account);
        self.venue.enter(&OrderEntry { slot, book: 0, side, limit, qty: qty(quantity), tif, account });
    }

    fn limit(&mut self, slot: u32, side: Side, quantity: i64, limit: i64) {
        self.order(slot, side, quantity, Some(limit), Tif::Day);
        assert_eq!(self.outcomes(), [], "it was meant to rest");
    }

    fn market(&mut self, slot: u32, side: Side, quantity: i64) {
        self.order(slot, side, quantity, None, Tif::Day);
    }

    fn quote(&mut self, bid: i64, bid_size: i64, ask: i64, ask_size: i64) {
        let quote = Quote {
            bid: price(bid),
            bid_size: qty(bid_size),
            ask: price(ask),
            ask_size: qty(ask_size),
            at: Timestamp(1),
        };
        self.venue.quote(0, &quote);
    }

    fn trade(&mut self, at: i64, size: i64) {
        self.venue.trade(0, &Trade { price: price(at), size: qty(size), at: Timestamp(2) });
    }

    /// Returns all outcomes except acceptances, after all work is done.
    fn outcomes(&mut self) -> Vec<(u32, VenueOutcome)> {
        self.all_outcomes().into_iter().filter(|(_, outcome)| *outcome != Accepted).collect()
    }

    fn all_outcomes(&mut self) -> Vec<(u32, VenueOutcome)> {
        while self.venue.work(0) {}
        let outcomes = self.venue.outcomes().to_vec();
        self.venue.clear_outcomes();
        outcomes
    }

    /// Returns the same bench with a venue that was stored and loaded.
    fn stored(&self) -> Result<VenueBench, DecodeError> {
        let mut bytes = Vec::new();
        self.venue.save(&mut bytes);
        let specs = self.venue.details.iter().map(|detail| detail.spec.clone()).collect();
        let (venue, _) = Venue::load(&mut ByteReader::new(&bytes), specs, 16, LargePages::NONE)?;
        Ok(VenueBench { venue, accounts: self.accounts })
    }

    fn depth(&self, side: Side) -> Vec<(i64, i64)> {
        let whole = |raw: i64| raw / Qty::whole(1).unwrap().raw();
        self.venue.depth(0, side, 10).map(|(p, q)| (whole(p.raw()), whole(q.raw()))).collect()
    }
}
