//! `orderbook-rs` 0.15: lock-free levels for many threads, here driven by one. It has every kind.
//! Trades of an amendment are reported to a listener only, so all trades are counted there, behind
//! a mutex without contention.
//!
//! Its outcome differs, first in the hash alone: the same quantities at the same value, but not the
//! same trades. The cause is not known.

use std::sync::{Arc, Mutex, PoisonError};

use ::orderbook_rs::prelude::{Id, OrderBook, Side as TheirSide, TimeInForce, TradeResult};
use ::pricelevel::{OrderUpdate, Price};

use crate::workload::{Kind, Matcher, Outcome, Record, Side, Tally, Workload};

const NONE: u32 = u32::MAX;

pub struct OrderbookRs {
    books: Vec<OrderBook<()>>,
    /// Books by order id.
    places: Vec<u32>,
    tally: Arc<Mutex<Tally>>,
}

impl OrderbookRs {
    pub fn new(workload: &Workload) -> OrderbookRs {
        let tally = Arc::new(Mutex::new(Tally::default()));
        let book = || {
            let tally = Arc::clone(&tally);
            let listener = Arc::new(move |result: &TradeResult| count(&tally, result));
            OrderBook::with_trade_listener("B", listener)
        };
        OrderbookRs {
            books: (0..workload.securities).map(|_| book()).collect(),
            places: vec![NONE; workload.order_id_max as usize + 1],
            tally,
        }
    }

    fn unknown(&self) {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).unknown();
    }
}

fn count(tally: &Mutex<Tally>, result: &TradeResult) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    for trade in result.match_result.trades().as_vec() {
        tally.trade(
            number(trade.maker_order_id()),
            number(trade.taker_order_id()),
            trade.price().as_u128() as u64,
            trade.quantity().as_u64(),
        );
    }
}

fn number(id: Id) -> u64 {
    match id {
        Id::Sequential(number) => number,
        Id::Uuid(_) | Id::Ulid(_) => 0,
    }
}

fn theirs(side: Side) -> TheirSide {
    match side {
        Side::Buy => TheirSide::Buy,
        Side::Sell => TheirSide::Sell,
    }
}

impl Matcher for OrderbookRs {
    fn apply(&mut self, record: &Record) {
        let &Record { kind, side, security, order, price, qty } = record;
        let (id, side, price, qty) = (Id::Sequential(order), theirs(side), price as u128, qty as u64);
        // The crate returns an error for what could not be filled at once; it does not matter here.
        match kind {
            Kind::New => {
                self.places[order as usize] = security;
                let book = &self.books[security as usize];
                let _ = book.add_limit_order(id, price, qty, side, TimeInForce::Gtc, None);
            }
            Kind::Ioc => {
                let book = &self.books[security as usize];
                let _ = book.add_limit_order(id, price, qty, side, TimeInForce::Ioc, None);
            }
            Kind::Market => {
                let _ = self.books[security as usize].submit_market_order(id, qty, side);
            }
            Kind::Cancel | Kind::Replace => {
                let Some(book) = self.books.get(self.places[order as usize] as usize) else {
                    return self.unknown();
                };
                let answer = if kind == Kind::Cancel {
                    book.cancel_order(id)
                } else {
                    let new_price = Price::new(price);
                    book.update_order(OrderUpdate::UpdatePrice { order_id: id, new_price })
                };
                if matches!(answer, Ok(None)) {
                    self.unknown();
                }
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let orders = self.books.iter().flat_map(|book| book.get_all_orders());
        let (count, qty) =
            orders.fold((0, 0), |(count, qty), order| (count + 1, qty + order.visible_quantity().as_u64()));
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).outcome(count, qty)
    }
}
