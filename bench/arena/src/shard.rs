//! The whole shard: checks, risk, order states, the venue, positions and cash, and all its events,
//! read from the outbox as a client would. Every limit is set, and so wide that nothing is
//! rejected.

use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, RiskLimits, Scope, StrategyPhase, Trade, WatchTarget};
use pitlane_engine::event::{EventKind, ExecType};
use pitlane_engine::id::{
    AccountId, IntId, OrderHandle, Origin, PortId, SecurityId, ShardId, Source, StrategyId,
};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::{TimeOfDay, Timestamp};

use crate::abi::{Cancel, Modify, NewOrder, Report, ReportKind};
use crate::ids::{Ids, NONE};
use crate::{Engine, PAGES, Sink};

const SOURCE: Source = Source { origin: Origin::Rest, port: PortId(0), session: 1 };
const STRATEGY: StrategyId = StrategyId(1);
const ACCOUNTS: [AccountId; 2] = [AccountId(1), AccountId(2)];
const SECURITY: SecurityId = SecurityId(1);
/// A hundredth of a cent and one share, so that the money of a run stays far from the end of its
/// range.
const TICK: Price = Price::from_raw(10_000);
const LOT: Qty = Qty::from_raw(100_000_000);
/// Price of the last trade before the run, in ticks.
const FIRST_TICKS: i64 = 33_504;
const ORDERS_MAX: u32 = 1 << 20;
/// A day in 2026, and the time between two commands: longer than the window for duplicates, so that
/// this check runs and never hits.
const START: Timestamp = Timestamp(1_790_000_000_000_000_000);
const STEP_NS: u64 = 2_000_000;
const DUPLICATE_WINDOW_MS: u32 = 1;

#[derive(Debug)]
pub struct ShardEngine {
    shard: Shard,
    outbox: Outbox,
    now: Timestamp,
    requests: u64,
    client: Client,
}

/// What the client knows about its orders.
#[derive(Debug)]
struct Client {
    /// Slots of the shard by order id: of open orders and of those that have ended.
    ids: Ids,
    orders: Vec<ClientOrder>,
}

/// What the client knows about an order in a slot of the shard.
#[derive(Clone, Copy, Debug)]
struct ClientOrder {
    handle: OrderHandle,
    id: u64,
    ticks: i64,
    qty: u32,
    filled: u32,
    side: u8,
    is_open: bool,
}

const UNKNOWN: ClientOrder =
    ClientOrder { handle: OrderHandle::NONE, id: 0, ticks: 0, qty: 0, filled: 0, side: 0, is_open: false };

impl Default for ShardEngine {
    fn default() -> ShardEngine {
        let settings = ShardSettings { orders_max: ORDERS_MAX, pages: PAGES, ..ShardSettings::default() };
        let mut engine = ShardEngine {
            shard: Shard::new(ShardId(0), 1, Arc::new(reference()), settings),
            outbox: Outbox::new(0),
            now: START,
            requests: 0,
            client: Client { ids: Ids::new(), orders: PAGES.table(ORDERS_MAX as usize) },
        };
        let price = Price::from_raw(FIRST_TICKS * TICK.raw());
        let credit = Money::from_raw(i64::MAX / 4);
        for body in [
            CommandKind::Watch { port: SOURCE.port, what: WatchTarget::Orders, on: true },
            CommandKind::Phase { strategy: STRATEGY, phase: StrategyPhase::Running },
            CommandKind::Limits { scope: Scope::Strategy(STRATEGY), limits: wide(Money::ZERO) },
            CommandKind::Limits { scope: Scope::Account(ACCOUNTS[0]), limits: wide(credit) },
            CommandKind::Limits { scope: Scope::Account(ACCOUNTS[1]), limits: wide(credit) },
            CommandKind::Trade { security: SECURITY, trade: Trade { price, size: LOT, at: START } },
        ] {
            engine.shard.apply(START, &Command::new(SOURCE, 0, body), &mut engine.outbox);
            while engine.shard.has_work() {
                engine.outbox.clear();
                engine.shard.resume(&mut engine.outbox);
            }
            engine.outbox.clear();
        }
        engine
    }
}

/// The message that the events are about.
#[derive(Clone, Copy)]
struct Request {
    seq: u64,
    id: u64,
    side: u8,
    ticks: i64,
    qty: u32,
    /// Kinds of its acknowledgement and of its rejection.
    ack: ReportKind,
    reject: ReportKind,
}

impl Engine for ShardEngine {
    fn enter(&mut self, order: &NewOrder, sink: &impl Sink) {
        let NewOrder { id, seq, ticks, qty, side, ioc, .. } = *order;
        let tif = if ioc == 0 { Tif::Gtc } else { Tif::Ioc };
        let (ack, reject) = (ReportKind::OrderAck, ReportKind::CancelReject);
        self.submit(&Request { seq, id, side, ticks, qty, ack, reject }, tif, sink);
    }

    fn cancel(&mut self, cancel: &Cancel, sink: &impl Sink) {
        let Cancel { id, seq } = *cancel;
        let ClientOrder { handle, side, ticks, .. } = self.client.order(id);
        let (ack, reject) = (ReportKind::CancelAck, ReportKind::CancelReject);
        let body = CommandKind::Cancel { order: handle, id: self.request_id() };
        self.apply(body, &Request { seq, id, side, ticks, qty: 0, ack, reject }, sink);
    }

    fn modify(&mut self, modify: &Modify, sink: &impl Sink) {
        let Modify { id, seq, ticks, qty, .. } = *modify;
        let order = self.client.order(id);
        let (ack, reject) = (ReportKind::ModifyAck, ReportKind::ModifyReject);
        let request = Request { seq, id, side: order.side, ticks, qty, ack, reject };
        // The venue keeps the place of an order that only becomes smaller; the arena does not.
        if order.is_open && ticks == order.ticks && qty < order.qty - order.filled {
            let body = CommandKind::Cancel { order: order.handle, id: self.request_id() };
            self.apply(body, &request, &());
            return self.submit(&request, Tif::Gtc, sink);
        }
        let changes = Changes::default().with_limit(price(ticks)).with_qty(shares(order.filled + qty));
        let body = CommandKind::Modify { order: order.handle, id: self.request_id(), changes };
        self.apply(body, &request, sink);
    }

    /// Counts over all open orders: a client keeps no book.
    fn best(&self, side: u8) -> Option<i64> {
        let open = self.client.orders.iter().filter(|order| order.is_open && order.side == side);
        let ticks = open.map(|order| order.ticks);
        if side == 0 { ticks.max() } else { ticks.min() }
    }

    fn depth_at(&self, side: u8, ticks: i64) -> u64 {
        let open = self.client.orders.iter().filter(|order| order.is_open && order.side == side);
        open.filter(|order| order.ticks == ticks).map(|order| (order.qty - order.filled) as u64).sum()
    }
}

impl ShardEngine {
    #[inline(always)]
    fn request_id(&mut self) -> IntId {
        self.requests += 1;
        IntId::numbered(b'r', self.requests)
    }

    #[inline(always)]
    fn submit(&mut self, request: &Request, tif: Tif, sink: &impl Sink) {
        let terms = Terms {
            qty: shares(request.qty),
            limit: price(request.ticks),
            security: SECURITY,
            strategy: STRATEGY,
            account: ACCOUNTS[(request.side & 1) as usize],
            side: Side::BOTH[(request.side & 1) as usize],
            kind: OrderKind::Limit,
            tif,
            limit_given: true,
            ..Terms::default()
        };
        let body = CommandKind::Submit { id: self.request_id(), terms };
        self.apply(body, request, sink);
    }

    #[inline(always)]
    fn apply(&mut self, body: CommandKind, request: &Request, sink: &impl Sink) {
        self.now = Timestamp(self.now.0 + STEP_NS);
        self.shard.apply(self.now, &Command::new(SOURCE, 0, body), &mut self.outbox);
        self.client.read(&self.outbox, request, sink);
        self.outbox.clear();
        while self.shard.has_work() {
            self.shard.resume(&mut self.outbox);
            self.client.read(&self.outbox, request, sink);
            self.outbox.clear();
        }
    }
}

impl Client {
    fn order(&self, id: u64) -> ClientOrder {
        match self.ids.slot(id) {
            NONE => UNKNOWN,
            slot => Some(self.orders[slot as usize]).filter(|order| order.id == id).unwrap_or(UNKNOWN),
        }
    }

    fn read(&mut self, outbox: &Outbox, request: &Request, sink: &impl Sink) {
        for (_, event) in outbox.waiting() {
            self.handle_event(&event.body, request, sink);
        }
    }

    #[inline(always)]
    fn handle_event(&mut self, event: &EventKind, request: &Request, sink: &impl Sink) {
        let Request { seq, id, side, ticks, qty, ack, reject } = *request;
        match event {
            EventKind::Order(order) if order.what == ExecType::Entered => {
                let slot = order.order.slot();
                if slot as usize >= self.orders.len() {
                    self.orders.resize(slot as usize + 1, UNKNOWN);
                }
                let handle = order.order;
                self.orders[slot as usize] =
                    ClientOrder { handle, id, ticks, qty, filled: 0, side, is_open: true };
                self.ids.set(id, slot);
                sink.push(&Report::about(ack, seq, id, side, ticks, qty));
            }
            EventKind::Order(order) if order.what == ExecType::Replaced => {
                let known = &mut self.orders[order.order.slot() as usize];
                (known.ticks, known.qty) = (ticks, known.filled + qty);
                sink.push(&Report::about(ack, seq, id, side, ticks, qty));
            }
            EventKind::Refused(_) => sink.push(&Report::about(reject, seq, id, 0, 0, 0)),
            EventKind::Status(report) => {
                let known = &mut self.orders[report.order.slot() as usize];
                if report.what == ExecType::Filled {
                    let traded = (report.last_qty.raw() / LOT.raw()) as u32;
                    known.filled += traded;
                    if known.id != id {
                        let at = report.last_price.raw() / TICK.raw();
                        sink.push(&Report::trade(seq, at, traded, known.id, id));
                    }
                }
                if report.status.is_finished() {
                    known.is_open = false;
                    if report.what == ExecType::Canceled {
                        sink.push(&Report::about(ReportKind::CancelAck, seq, id, side, ticks, 0));
                    }
                }
            }
            _ => {}
        }
    }
}

#[inline]
fn price(ticks: i64) -> Price {
    Price::from_raw(ticks.wrapping_mul(TICK.raw()))
}

#[inline]
fn shares(qty: u32) -> Qty {
    Qty::from_raw(qty as i64 * LOT.raw())
}

fn wide(credit: Money) -> RiskLimits {
    RiskLimits {
        max_order_qty: Qty::from_raw(i64::MAX / 4),
        max_order_value: Money::from_raw(i64::MAX / 4),
        price_collar_bp: u32::MAX,
        max_open_orders: u32::MAX,
        max_position: Qty::from_raw(i64::MAX / 4),
        max_orders_per_s: u32::MAX,
        duplicate_window_ms: DUPLICATE_WINDOW_MS,
        credit,
        credit_currency: sample::usd(),
        trading_enabled: true,
    }
}

/// Returns the sample with a finer tick, an exchange without hours and two active accounts.
fn reference() -> RefData {
    let mut rows = sample::sound();
    for exchange in &mut rows.exchanges {
        (exchange.open, exchange.close) = (TimeOfDay::default(), TimeOfDay::default());
    }
    rows.families[0].tick_size = TICK;
    rows.families[0].lot_size = LOT;
    rows.accounts[1].active = true;
    RefData::check(rows).expect("rows that belong together")
}
