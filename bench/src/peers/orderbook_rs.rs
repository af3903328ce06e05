//! `orderbook-rs` 0.15: lock-free levels for many threads, here driven by one. It has every kind.
//! Trades of an amendment are reported to a listener only, so all trades are counted there, behind
//! a mutex without contention.
//!
//! Its outcome differs, first in the hash alone: the same quantities at the same value, but not the
//! same trades. The cause is not known.

use std::sync::{Arc, Mutex, PoisonError};

use ::orderbook_rs::prelude::{Id, OrderBook, Side, TimeInForce, TradeResult};
use ::pricelevel::{OrderUpdate, Price};
use pitlane_engine::index::index_usize;

use crate::workload::{FlowOutcome, Matcher, RecordKind, TradeTally, Workload, WorkloadRecord, WorkloadSide};

const NONE: u32 = u32::MAX;

pub struct OrderbookRs {
    books: Vec<OrderBook<()>>,
    /// Books by order id.
    books_by_id: Vec<u32>,
    tally: Arc<Mutex<TradeTally>>,
}

impl OrderbookRs {
    pub fn new(workload: &Workload) -> OrderbookRs {
        let tally = Arc::new(Mutex::new(TradeTally::default()));
        let book = || {
            let tally = Arc::clone(&tally);
            let listener = Arc::new(move |result: &TradeResult| count(&tally, result));
            OrderBook::with_trade_listener("B", listener)
        };
        OrderbookRs {
            books: (0..workload.securities).map(|_| book()).collect(),
            books_by_id: vec![NONE; index_usize(workload.order_id_max) + 1],
            tally,
        }
    }

    fn unknown(&self) {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).unknown();
    }
}

fn count(tally: &Mutex<TradeTally>, result: &TradeResult) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    for trade in result.match_result.trades().as_vec() {
        tally.trade(
            number(trade.maker_order_id()),
            number(trade.taker_order_id()),
            u64::try_from(trade.price().as_u128()).unwrap_or(u64::MAX),
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

fn peer_side(side: WorkloadSide) -> Side {
    match side {
        WorkloadSide::Buy => Side::Buy,
        WorkloadSide::Sell => Side::Sell,
    }
}

impl Matcher for OrderbookRs {
    fn apply(&mut self, record: &WorkloadRecord) {
        let &WorkloadRecord { kind, side, security, order, price, qty } = record;
        let (id, side, price, qty) = (Id::Sequential(order), peer_side(side), price as u128, qty as u64);
        // The crate returns an error for what could not be filled at once; it does not matter here.
        match kind {
            RecordKind::New => {
                self.books_by_id[index_usize(order)] = security;
                let book = &self.books[security as usize];
                let _ = book.add_limit_order(id, price, qty, side, TimeInForce::Gtc, None);
            }
            RecordKind::Ioc => {
                let book = &self.books[security as usize];
                let _ = book.add_limit_order(id, price, qty, side, TimeInForce::Ioc, None);
            }
            RecordKind::Market => {
                let _ = self.books[security as usize].submit_market_order(id, qty, side);
            }
            RecordKind::Cancel | RecordKind::Replace => {
                let Some(book) = self.books.get(self.books_by_id[index_usize(order)] as usize) else {
                    return self.unknown();
                };
                let result = if kind == RecordKind::Cancel {
                    book.cancel_order(id)
                } else {
                    let new_price = Price::new(price);
                    book.update_order(OrderUpdate::UpdatePrice { order_id: id, new_price })
                };
                if matches!(result, Ok(None)) {
                    self.unknown();
                }
            }
        }
    }

    fn outcome(&self) -> FlowOutcome {
        let orders = self.books.iter().flat_map(|book| book.get_all_orders());
        let (count, qty) =
            orders.fold((0, 0), |(count, qty), order| (count + 1, qty + order.visible_quantity().as_u64()));
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).outcome(count, qty)
    }
}
