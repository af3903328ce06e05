//! The whole shard: risk, order states, the venue, positions and cash, and all its events, read
//! from the outbox.
//!
//! It does what a client would do: it learns the handle of an order from its first event, and
//! counts trades from reports.

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, OrderTerms};
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::index::index_usize;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{OrderKind, Terms};
use pitlane_engine::time::Timestamp;
use pitlane_sys::prefetch;

use crate::convert::workload_u32;
use crate::platform::{self, SOURCE, START, STEP_NS};
use crate::units;
use crate::workload::{FlowOutcome, Matcher, RecordKind, TradeTally, Workload, WorkloadRecord};

#[derive(Debug)]
pub struct WholeShard {
    shard: Shard,
    outbox: Outbox,
    now: Timestamp,
    requests: u64,
    client: BenchOrders,
}

/// What a client knows: its orders by number, and the numbers by the shard's slots.
#[derive(Debug)]
struct BenchOrders {
    handles: Vec<OrderHandle>,
    numbers: Vec<u32>,
    open: u64,
    tally: TradeTally,
    open_qty: u64,
    events: u64,
    rejected: u64,
}

impl WholeShard {
    pub fn new(workload: &Workload) -> WholeShard {
        let (shard, outbox) = platform::shard_for(workload);
        let client = BenchOrders {
            handles: vec![OrderHandle::NONE; index_usize(workload.order_id_max) + 1],
            numbers: Vec::with_capacity(workload.prefill.len() * 2),
            open: 0,
            open_qty: 0,
            tally: TradeTally::default(),
            events: 0,
            rejected: 0,
        };
        WholeShard { shard, outbox, now: START, requests: 0, client }
    }

    /// Subscribes to all events, including the market snapshot after each trade.
    pub fn watch_everything(&mut self) {
        let body = CommandKind::Watch { port: SOURCE.port, what: WatchTarget::Everything, on: true };
        self.shard.apply(self.now, &platform::command(body), &mut self.outbox);
        self.outbox.clear();
    }

    /// Applies a record; `observer` receives every event.
    #[inline]
    pub fn apply_observed(&mut self, record: &WorkloadRecord, mut observer: impl FnMut(&Event)) {
        self.now = Timestamp(self.now.0 + STEP_NS);
        self.requests += 1;
        let order = self.client.handles[index_usize(record.order)];
        self.shard.apply(self.now, &platform::command_of(record, order, self.requests), &mut self.outbox);
        loop {
            self.client.handle_events(record.order, &self.outbox);
            self.outbox.waiting().iter().for_each(|(_, event)| observer(event));
            self.outbox.clear();
            if !self.shard.has_work() {
                return;
            }
            self.shard.resume(&mut self.outbox);
        }
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.client.events
    }

    /// Returns the number of orders that the shard rejected: none for a valid workload.
    pub fn rejected(&self) -> u64 {
        self.client.rejected
    }
}

impl BenchOrders {
    /// Returns a command with only the kind, the order and the book position of a record.
    #[inline]
    fn outline(&self, record: &WorkloadRecord) -> Command {
        platform::command(match record.kind {
            RecordKind::New | RecordKind::Ioc | RecordKind::Market => {
                let kind =
                    if record.kind == RecordKind::Market { OrderKind::Market } else { OrderKind::Limit };
                let terms = Terms {
                    security: platform::security_id(record.security),
                    side: units::side(record.side),
                    kind,
                    limit: units::price(record.price),
                    ..Terms::default()
                };
                CommandKind::Submit { id: IntId::NONE, terms }
            }
            RecordKind::Cancel | RecordKind::Replace => {
                CommandKind::Cancel { order: self.handles[index_usize(record.order)], id: IntId::NONE }
            }
        })
    }

    #[inline]
    fn handle_events(&mut self, taker: u64, outbox: &Outbox) {
        for (_, event) in outbox.waiting() {
            self.events += 1;
            // A client processes the other events in its own way; here they are only read.
            if let EventKind::Status(report) = &event.body {
                self.report(taker, report);
            } else if let EventKind::Order(order) = &event.body {
                self.order(taker, order);
            } else if let EventKind::Refused(_) = &event.body {
                self.tally.unknown();
            }
        }
    }

    #[inline]
    fn order(&mut self, taker: u64, order: &OrderTerms) {
        if order.what == ExecType::Rejected {
            self.rejected += 1;
        }
        if order.what != ExecType::Entered {
            return;
        }
        let slot = order.order.slot() as usize;
        if slot >= self.numbers.len() {
            self.numbers.resize(slot + 1, 0);
        }
        self.numbers[slot] = workload_u32(taker);
        self.handles[index_usize(taker)] = order.order;
        self.open += 1;
        self.open_qty += units::shares(order.terms.qty);
    }

    #[inline]
    fn report(&mut self, taker: u64, report: &OrderReport) {
        if report.what == ExecType::Filled {
            let qty = units::shares(report.last_qty);
            self.open_qty -= qty;
            let number = self.numbers[report.order.slot() as usize] as u64;
            if number != taker {
                self.tally.trade(number, taker, units::ticks(report.last_price), qty);
            }
        }
        if report.status.is_finished() {
            self.open -= 1;
            self.open_qty -= units::shares(report.qty) - units::shares(report.cum_qty);
        }
    }
}

impl Matcher for WholeShard {
    #[inline]
    fn apply(&mut self, record: &WorkloadRecord) {
        self.apply_observed(record, |_| {});
    }

    /// A worker looks at the commands behind the one that it applies. A client looks up the orders
    /// of these commands before it sends them, so that lookup comes first here too.
    #[inline]
    fn prefetch(&mut self, coming: &[WorkloadRecord]) {
        if let Some(next) = coming.first() {
            self.shard.prefetch_near(&self.client.outline(next));
        }
        if let Some(second) = coming.get(1) {
            self.shard.prefetch_far(&self.client.outline(second));
        }
        if let Some(third) = coming.get(2) {
            self.client.handles.get(index_usize(third.order)).into_iter().for_each(prefetch);
        }
    }

    fn outcome(&self) -> FlowOutcome {
        self.client.tally.outcome(self.client.open, self.client.open_qty)
    }
}
