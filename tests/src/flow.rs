//! The same flow on any number of shards: each action is completed before the next, so only the
//! ownership of securities differs. The history of each order must not differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, PositionState, RequestKind};
use pitlane_engine::id::{IntId, OrderHandle, PortId, SecurityId, ShardId, StrategyId};
use pitlane_engine::index::index_u8;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::{CommandRoute, Shard, route};
use pitlane_engine::terms::Status;
use pitlane_engine::time::Timestamp;

use crate::shard_and_twin;
use crate::test_market;
use crate::workload::Action;

/// One line of an order's history, without what depends on the number of shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryLine {
    Report {
        at: Timestamp,
        id: IntId,
        orig_id: IntId,
        what: ExecType,
        status: Status,
        reason: Reason,
        qty: Qty,
        cum_qty: Qty,
        avg_price: Price,
        last_qty: Qty,
        last_price: Price,
    },
    Refused {
        at: Timestamp,
        request_id: IntId,
        request: RequestKind,
        status: Status,
        reason: Reason,
    },
}

/// What must not depend on the number of shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histories {
    /// Histories by the order's number among the submitted ones.
    pub orders: BTreeMap<usize, Vec<HistoryLine>>,
    /// Transactions of each position, with the position after each.
    pub positions: BTreeMap<(StrategyId, SecurityId), Vec<PositionEntry>>,
}

/// One transaction of a position: time, quantity, price, and the position after it.
pub type PositionEntry = (Timestamp, Qty, Price, PositionState);

#[derive(Debug)]
pub struct OrderFlow {
    shards: Vec<Shard>,
    outs: Vec<Outbox>,
    now: Timestamp,
    handles: Vec<OrderHandle>,
    histories: Histories,
}

impl OrderFlow {
    pub fn new(shards: u8, reference: &Arc<RefData>, settings: &ShardSettings) -> OrderFlow {
        let shard = |id| Shard::new(ShardId(id), shards, reference.clone(), settings.clone());
        let mut flow = OrderFlow {
            shards: (0..shards).map(shard).collect(),
            outs: (0..shards).map(|_| Outbox::new(0)).collect(),
            now: test_market::start(),
            handles: Vec::new(),
            histories: Histories::default(),
        };
        flow.tell_all(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true });
        flow
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn histories(self) -> Histories {
        self.histories
    }

    pub fn step(&mut self, action: &Action) {
        match *action {
            Action::Wait(ns) => self.wait(ns),
            Action::Modify { nth, id, changes } => {
                let order = self.handle(nth);
                self.send_command(self.shard_of_order(order), CommandKind::Modify { order, id, changes });
            }
            Action::Cancel { nth, id } => {
                let order = self.handle(nth);
                self.send_command(self.shard_of_order(order), CommandKind::Cancel { order, id });
            }
            Action::Report { nth, report } => {
                let order = self.handle(nth);
                self.send_command(self.shard_of_order(order), CommandKind::Report { order, report });
            }
            Action::Plain(body) => match route(&body, index_u8(self.shards.len())) {
                CommandRoute::One(shard) => self.send_command(shard, body),
                CommandRoute::All => self.tell_all(body),
            },
        }
    }

    fn handle(&self, nth: usize) -> OrderHandle {
        self.handles.get(nth).copied().unwrap_or(OrderHandle::NONE)
    }

    fn shard_of_order(&self, order: OrderHandle) -> ShardId {
        if order == OrderHandle::NONE { ShardId(0) } else { order.shard() }
    }

    /// Fires the timers of all shards in the order of their times.
    fn wait(&mut self, ns: u64) {
        let end = self.now.plus(ns);
        loop {
            let next = self.shards.iter().filter_map(|shard| Some((shard.deadline()?, shard.id()))).min();
            let Some((deadline, shard)) = next.filter(|(deadline, _)| *deadline <= end) else { break };
            self.now = self.now.max(deadline);
            self.send_command(shard, CommandKind::Timer);
        }
        self.now = end;
    }

    fn tell_all(&mut self, body: CommandKind) {
        for id in 0..self.shards.len() {
            self.send_command(ShardId(index_u8(id)), body);
        }
    }

    fn send_command(&mut self, shard: ShardId, body: CommandKind) {
        let at = shard.0 as usize;
        let command = Command::new(shard_and_twin::source(), 1, body);
        self.shards[at].apply(self.now, &command, &mut self.outs[at]);
        let mut events = self.take(at);
        while self.shards[at].has_work() {
            self.shards[at].resume(&mut self.outs[at]);
            events.extend(self.take(at));
        }
        if matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            // A close first reports the orders that it cancels.
            let entered = events.iter().find_map(|event| Some(event.body.answered_order()?.order));
            self.handles.push(entered.unwrap_or(OrderHandle::NONE));
        }
        for event in &events {
            self.note(event);
        }
    }

    fn take(&mut self, at: usize) -> Vec<Event> {
        let events = self.outs[at].waiting().iter().map(|(_, event)| *event).collect();
        self.outs[at].clear();
        events
    }

    fn note(&mut self, event: &Event) {
        if let EventKind::Booked(b) = &event.body
            && let Some(security) = b.security
        {
            let position = self.histories.positions.entry((b.strategy, security)).or_default();
            return position.push((event.at, b.qty, b.price, b.position));
        }
        let (order, line) = if let EventKind::Refused(r) = &event.body {
            let (request_id, request, status, reason) = (r.request_id, r.request, r.status, r.reason);
            (r.order, HistoryLine::Refused { at: event.at, request_id, request, status, reason })
        } else {
            let Some(report) = event.report() else { return };
            (report.order, HistoryLine::of(event.at, &report))
        };
        // A handle may be reused; the newest order has it.
        let Some(nth) = self.handles.iter().rposition(|&handle| handle == order) else { return };
        self.histories.orders.entry(nth).or_default().push(line);
    }
}

impl HistoryLine {
    fn of(at: Timestamp, r: &OrderReport) -> HistoryLine {
        HistoryLine::Report {
            at,
            id: r.id,
            orig_id: r.orig_id,
            what: r.what,
            status: r.status,
            reason: r.reason,
            qty: r.qty,
            cum_qty: r.cum_qty,
            avg_price: r.avg_price,
            last_qty: r.last_qty,
            last_price: r.last_price,
        }
    }
}
