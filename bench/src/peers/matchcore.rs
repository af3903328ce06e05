//! `matchcore` 0.4: a B-tree of levels, hashed orders. It has every kind. Its books name orders by
//! their own sequence numbers, so a table maps our ids to theirs, and one table per book maps back.
//!
//! Its outcome differs: an amended order that crosses trades on through its own limit. By its
//! source, an amendment to the price that an order already has also keeps its priority, while our
//! flow defines that it loses it.

use ::matchcore::{
    AmendCmd, AmendPatch, CancelCmd, Command, CommandKind, CommandMeta, CommandOutcome, CommandReport,
    LimitOrder, LimitOrderPatch, MarketOrder, NewOrder, OrderBook, OrderFlags, OrderId, OrderKind, Price,
    Quantity, QuantityPolicy, SequenceNumber, Side, SubmitCmd, TimeInForce, Timestamp,
};
use pitlane_engine::index::{index_u32, index_usize};

use crate::convert::workload_u32;
use crate::workload::{FlowOutcome, Matcher, RecordKind, TradeTally, Workload, WorkloadRecord, WorkloadSide};

const NONE: u32 = u32::MAX;

pub struct Matchcore {
    books: Vec<MatchcoreBook>,
    /// Book and sequence number by order id.
    locations: Vec<(u32, u32)>,
    tally: TradeTally,
}

struct MatchcoreBook {
    book: OrderBook,
    /// Order ids by sequence number.
    ids: Vec<u32>,
}

impl Matchcore {
    pub fn new(workload: &Workload) -> Matchcore {
        let book = || MatchcoreBook { book: OrderBook::new("B"), ids: Vec::new() };
        Matchcore {
            books: (0..workload.securities).map(|_| book()).collect(),
            locations: vec![(NONE, NONE); index_usize(workload.order_id_max) + 1],
            tally: TradeTally::default(),
        }
    }

    fn execute(&mut self, book: u32, id: u64, kind: CommandKind) {
        let MatchcoreBook { book, ids } = &mut self.books[book as usize];
        let sequence = ids.len() as u64;
        ids.push(workload_u32(id));
        let meta = CommandMeta { sequence_number: SequenceNumber(sequence), timestamp: Timestamp(sequence) };
        match book.execute(&Command { meta, kind }) {
            CommandOutcome::Applied(CommandReport::Submit(effects) | CommandReport::Amend(effects)) => {
                for trade in effects.target_order().match_result().map_or(&[][..], |result| result.trades()) {
                    let maker = ids[index_usize(trade.maker_order_id().0)];
                    self.tally.trade(maker as u64, id, trade.price().0, trade.quantity().0);
                }
            }
            CommandOutcome::Applied(CommandReport::Cancel) => {}
            CommandOutcome::Rejected(_) => self.tally.unknown(),
        }
    }

    fn limit(&mut self, record: &WorkloadRecord, time_in_force: TimeInForce) {
        let flags = OrderFlags::new(side(record.side), false, time_in_force);
        let policy = QuantityPolicy::Standard { quantity: Quantity(record.qty as u64) };
        let order = NewOrder::Limit(LimitOrder::new(Price(record.price as u64), policy, flags));
        let sequence = self.books[record.security as usize].ids.len();
        self.locations[index_usize(record.order)] = (record.security, index_u32(sequence));
        self.execute(record.security, record.order, CommandKind::Submit(SubmitCmd { order }));
    }
}

fn side(side: WorkloadSide) -> Side {
    match side {
        WorkloadSide::Buy => Side::Buy,
        WorkloadSide::Sell => Side::Sell,
    }
}

impl Matcher for Matchcore {
    fn apply(&mut self, record: &WorkloadRecord) {
        match record.kind {
            RecordKind::New => self.limit(record, TimeInForce::Gtc),
            RecordKind::Ioc => self.limit(record, TimeInForce::Ioc),
            RecordKind::Market => {
                let order = MarketOrder::new(Quantity(record.qty as u64), side(record.side), false);
                let submit = SubmitCmd { order: NewOrder::Market(order) };
                self.execute(record.security, record.order, CommandKind::Submit(submit));
            }
            RecordKind::Cancel | RecordKind::Replace => {
                let (book, sequence) = self.locations[index_usize(record.order)];
                if book == NONE {
                    return self.tally.unknown();
                }
                let order_id = OrderId(sequence as u64);
                let kind = if record.kind == RecordKind::Cancel {
                    CommandKind::Cancel(CancelCmd { order_id, order_kind: OrderKind::Limit })
                } else {
                    let patch = LimitOrderPatch::new().with_price(Price(record.price as u64));
                    CommandKind::Amend(AmendCmd { order_id, patch: AmendPatch::Limit(patch) })
                };
                self.execute(book, record.order, kind);
            }
        }
    }

    fn outcome(&self) -> FlowOutcome {
        let resting = self.books.iter().flat_map(|book| book.book.limit().orders().values());
        let (count, qty) =
            resting.fold((0, 0), |(count, qty), order| (count + 1, qty + order.total_quantity().0));
        self.tally.outcome(count, qty)
    }
}
