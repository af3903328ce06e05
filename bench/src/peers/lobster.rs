//! `lobster` 0.7: B-trees of queues. It has no IOC and no replace: the adapter sends a limit order
//! followed by a cancel for the one, and a cancel followed by a limit order for the other. It
//! reports neither the remaining quantity of an order nor that an order is unknown, so the adapter
//! tracks both.

use ::lobster::{FillMetadata, OrderBook, OrderEvent, OrderType, Side as TheirSide};

use crate::workload::{Kind, Matcher, Outcome, Record, Side, Tally, Workload};

/// Initial capacity of a book and of a level, in orders; both grow.
const BOOK_CAPACITY: usize = 16;
const LEVEL_CAPACITY: usize = 10;

pub struct Lobster {
    books: Vec<OrderBook>,
    /// Open orders by order id.
    open: Vec<Open>,
    tally: Tally,
}

#[derive(Clone, Copy)]
struct Open {
    book: u32,
    /// Remaining quantity; zero: not open.
    qty: u32,
    side: Side,
}

impl Lobster {
    pub fn new(workload: &Workload) -> Lobster {
        let closed = Open { book: 0, qty: 0, side: Side::Buy };
        Lobster {
            books: (0..workload.securities)
                .map(|_| OrderBook::new(BOOK_CAPACITY, LEVEL_CAPACITY, false))
                .collect(),
            open: vec![closed; workload.order_id_max as usize + 1],
            tally: Tally::default(),
        }
    }

    /// Executes an order, counts its trades, and returns the quantity that it traded.
    fn execute(&mut self, book: u32, order: OrderType) -> u32 {
        match self.books[book as usize].execute(order) {
            OrderEvent::Filled { fills, filled_qty, .. }
            | OrderEvent::PartiallyFilled { fills, filled_qty, .. } => {
                fills.iter().for_each(|fill| self.count(fill));
                filled_qty as u32
            }
            OrderEvent::Unfilled { .. } | OrderEvent::Placed { .. } | OrderEvent::Canceled { .. } => 0,
        }
    }

    fn count(&mut self, fill: &FillMetadata) {
        let maker = &mut self.open[fill.order_2 as usize];
        maker.qty = maker.qty.saturating_sub(fill.qty as u32);
        self.tally.trade(fill.order_2 as u64, fill.order_1 as u64, fill.price, fill.qty);
    }

    fn limit(&mut self, book: u32, order: u64, side: Side, price: i32, qty: u32) -> u32 {
        let order =
            OrderType::Limit { id: order as u128, side: theirs(side), qty: qty as u64, price: price as u64 };
        qty.saturating_sub(self.execute(book, order))
    }

    fn cancel(&mut self, book: u32, order: u64) {
        self.execute(book, OrderType::Cancel { id: order as u128 });
    }
}

fn theirs(side: Side) -> TheirSide {
    match side {
        Side::Buy => TheirSide::Bid,
        Side::Sell => TheirSide::Ask,
    }
}

impl Matcher for Lobster {
    fn apply(&mut self, record: &Record) {
        let &Record { kind, side, security, order, price, qty } = record;
        match kind {
            Kind::New => {
                let left = self.limit(security, order, side, price, qty);
                self.open[order as usize] = Open { book: security, qty: left, side };
            }
            Kind::Ioc => {
                if self.limit(security, order, side, price, qty) > 0 {
                    self.cancel(security, order);
                }
            }
            Kind::Market => {
                let order = OrderType::Market { id: order as u128, side: theirs(side), qty: qty as u64 };
                self.execute(security, order);
            }
            Kind::Cancel | Kind::Replace => {
                let Open { book, qty, side } = self.open[order as usize];
                if qty == 0 {
                    return self.tally.unknown();
                }
                self.cancel(book, order);
                let left = if kind == Kind::Replace { self.limit(book, order, side, price, qty) } else { 0 };
                self.open[order as usize].qty = left;
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let depths = self.books.iter().map(|book| book.depth(0));
        let qty =
            depths.flat_map(|depth| depth.asks.into_iter().chain(depth.bids)).map(|level| level.qty).sum();
        self.tally.outcome(self.open.iter().filter(|open| open.qty > 0).count() as u64, qty)
    }
}
