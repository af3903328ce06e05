//! `lobster` 0.7: B-trees of queues. It has no IOC and no replace: the adapter sends a limit order
//! followed by a cancel for the one, and a cancel followed by a limit order for the other. It
//! reports neither the remaining quantity of an order nor that an order is unknown, so the adapter
//! tracks both.

use ::lobster::{FillMetadata, OrderBook, OrderEvent, OrderType, Side};
use pitlane_engine::index::index_usize;

use crate::convert::workload_u32;
use crate::workload::{FlowOutcome, Matcher, RecordKind, TradeTally, Workload, WorkloadRecord, WorkloadSide};

/// Initial capacity of a book and of a level, in orders; both grow.
const BOOK_CAPACITY: usize = 16;
const LEVEL_CAPACITY: usize = 10;

pub struct Lobster {
    books: Vec<OrderBook>,
    /// Open orders by order id.
    open: Vec<LobsterOrder>,
    tally: TradeTally,
}

#[derive(Clone, Copy)]
struct LobsterOrder {
    book: u32,
    /// Remaining quantity; zero: not open.
    qty: u32,
    side: WorkloadSide,
}

/// Returns the id of an order in the workload.
#[inline]
fn order_id(id: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "we gave it an id of 64 bits")]
    let id = id as u64;
    id
}

impl Lobster {
    pub fn new(workload: &Workload) -> Lobster {
        let closed = LobsterOrder { book: 0, qty: 0, side: WorkloadSide::Buy };
        Lobster {
            books: (0..workload.securities)
                .map(|_| OrderBook::new(BOOK_CAPACITY, LEVEL_CAPACITY, false))
                .collect(),
            open: vec![closed; index_usize(workload.order_id_max) + 1],
            tally: TradeTally::default(),
        }
    }

    /// Executes an order, counts its trades, and returns the quantity that it traded.
    fn execute(&mut self, book: u32, order: OrderType) -> u32 {
        match self.books[book as usize].execute(order) {
            OrderEvent::Filled { fills, filled_qty, .. }
            | OrderEvent::PartiallyFilled { fills, filled_qty, .. } => {
                fills.iter().for_each(|fill| self.count(fill));
                workload_u32(filled_qty)
            }
            OrderEvent::Unfilled { .. } | OrderEvent::Placed { .. } | OrderEvent::Canceled { .. } => 0,
        }
    }

    fn count(&mut self, fill: &FillMetadata) {
        let (maker_id, taker_id) = (order_id(fill.order_2), order_id(fill.order_1));
        let maker = &mut self.open[index_usize(maker_id)];
        maker.qty = maker.qty.saturating_sub(workload_u32(fill.qty));
        self.tally.trade(maker_id, taker_id, fill.price, fill.qty);
    }

    fn limit(&mut self, book: u32, order: u64, side: WorkloadSide, price: i32, qty: u32) -> u32 {
        let order = OrderType::Limit {
            id: order as u128,
            side: peer_side(side),
            qty: qty as u64,
            price: price as u64,
        };
        qty.saturating_sub(self.execute(book, order))
    }

    fn cancel(&mut self, book: u32, order: u64) {
        self.execute(book, OrderType::Cancel { id: order as u128 });
    }
}

fn peer_side(side: WorkloadSide) -> Side {
    match side {
        WorkloadSide::Buy => Side::Bid,
        WorkloadSide::Sell => Side::Ask,
    }
}

impl Matcher for Lobster {
    fn apply(&mut self, record: &WorkloadRecord) {
        let &WorkloadRecord { kind, side, security, order, price, qty } = record;
        match kind {
            RecordKind::New => {
                let left = self.limit(security, order, side, price, qty);
                self.open[index_usize(order)] = LobsterOrder { book: security, qty: left, side };
            }
            RecordKind::Ioc => {
                if self.limit(security, order, side, price, qty) > 0 {
                    self.cancel(security, order);
                }
            }
            RecordKind::Market => {
                let order = OrderType::Market { id: order as u128, side: peer_side(side), qty: qty as u64 };
                self.execute(security, order);
            }
            RecordKind::Cancel | RecordKind::Replace => {
                let LobsterOrder { book, qty, side } = self.open[index_usize(order)];
                if qty == 0 {
                    return self.tally.unknown();
                }
                self.cancel(book, order);
                let left =
                    if kind == RecordKind::Replace { self.limit(book, order, side, price, qty) } else { 0 };
                self.open[index_usize(order)].qty = left;
            }
        }
    }

    fn outcome(&self) -> FlowOutcome {
        let depths = self.books.iter().map(|book| book.depth(0));
        let qty =
            depths.flat_map(|depth| depth.asks.into_iter().chain(depth.bids)).map(|level| level.qty).sum();
        self.tally.outcome(self.open.iter().filter(|open| open.qty > 0).count() as u64, qty)
    }
}
