//! What handlers see of the platform, and the only path by which they send commands to it. A
//! `ShardClient` belongs to the http thread.
//!
//! ```text
//! handler ── send ──► lane ──► shard ──► lane ──► poll: View first, then pending responses
//!    └────── view, reference: read directly                    └──► handler continues
//! ```
//!
//! The view applies an event before the response that depends on it is given. A client that has
//! received a response therefore reads its own writes.
//!
//! The desk of REST orders handles each event after the view and before the pending responses. What
//! handlers do with orders is in `entry`.

mod elsewhere;
mod entry;
mod numbers;
mod receipts;
mod waiting;

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::desk::{Desk, DeskSettings};
use pitlane_engine::event::{Adjustment, Alert, EventKind};
use pitlane_engine::id::{Origin, PortId, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::{Broadcast, PortEnd};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{View, ViewSettings};
use pitlane_gateway::event_counts::EventCounts;
use pitlane_gateway::report::OrderReportPrinter;
use pitlane_history::HistoryRecorder;
use pitlane_protocols::codes::WireName;
use pitlane_protocols::remote::strategy::is_of_strategy;
use pitlane_runtime::log::LineLimit;
use pitlane_runtime::stages::LatencyStage;
use pitlane_runtime::wakeup::Wakeup;

use self::elsewhere::ElsewhereIds;
pub(crate) use self::entry::is_rest_order;
pub use self::numbers::Numbers;
use self::receipts::Receipts;
pub(crate) use self::receipts::{Receipt, RestRequest};
use self::waiting::{Awaited, Waiting};
pub(crate) use self::waiting::{CommandOutcome, PendingResponse};
use super::remote_strategies::RemoteStrategies;
use super::websocket_broker::WebSocketBroker;

/// Events taken from the lanes per cycle, before requests are served again: some 100 µs of work.
pub(crate) const EVENTS_PER_CYCLE_MAX: usize = 1_024;

/// Events after which the thread gives way to others on its core, some 20 µs of work: an order that
/// arrives there meanwhile waits no longer. While a lane is more than half full, the thread
/// continues.
const EVENTS_PER_TURN: usize = 64;

/// Number of events ahead of which the view prefetches, so that its memory is in cache by then:
/// the next event is handled at once, and a new order usually has two events.
const LOOK_AHEAD: usize = 3;

/// First character of the ids made here, where no other server makes any.
pub(crate) const PREFIX: u8 = b'r';

/// Sizes of a `ShardClient`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardClientSettings {
    pub view: ViewSettings,
    /// Maximum number of REST orders known at once.
    pub orders_max: u32,
    /// First character of the ids made here.
    pub prefix: u8,
}

/// Nothing was sent: a lane is full, or too many responses are pending. The caller may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardsBusy;

#[derive(Debug)]
pub(crate) struct ShardClient {
    port: RefCell<PortEnd>,
    view: RefCell<View>,
    reference: RefCell<Arc<RefData>>,
    /// The desk of the orders that come over REST.
    desk: RefCell<Desk>,
    numbers: RefCell<Numbers>,
    receipts: RefCell<Receipts>,
    elsewhere: RefCell<ElsewhereIds>,
    /// Wakes the thread of each shard; indexed by shard.
    wakeups: Vec<Wakeup>,
    waiting: Rc<RefCell<Waiting>>,
    /// The first commands to every shard that are not sent yet for lack of room.
    startup_commands: RefCell<VecDeque<Broadcast>>,
    event_counts: Cell<EventCounts>,
    /// Number of events received other than ticks.
    changes: Cell<u64>,
    report: RefCell<Option<OrderReportPrinter>>,
    /// Records ticks for the history; `None` if none is kept.
    history: RefCell<Option<HistoryRecorder>>,
    /// A venue that resets its numbers puts every open order in doubt at once.
    alert_lines: RefCell<LineLimit>,
    /// Broker of the WebSocket clients; `None` in tests.
    ws_broker: Option<Rc<WebSocketBroker>>,
    /// Strategies in processes of their own; `None` if there are none.
    remote_strategies: Option<Rc<RemoteStrategies>>,
}

impl ShardClient {
    /// Creates a client that subscribes to everything of every shard and requests a snapshot. It
    /// does nothing until it is polled.
    pub(crate) fn new(
        port: PortEnd,
        wakeups: Vec<Wakeup>,
        reference: Arc<RefData>,
        settings: ShardClientSettings,
        mut numbers: Numbers,
    ) -> ShardClient {
        let ShardClientSettings { view, orders_max, prefix } = settings;
        assert_eq!(wakeups.len(), port.shards() as usize, "every shard has a wake-up");
        let id = port.id();
        let source = Source { origin: Origin::Server, port: id, session: 0 };
        let startup_commands = [
            CommandKind::Watch { port: id, what: WatchTarget::Everything, on: true },
            CommandKind::Snapshot { port: id },
        ];
        let startup_commands =
            startup_commands.map(|body| Broadcast::new(Command::new(source, waiting::NO_TOKEN, body)));
        let desk = DeskSettings {
            port: id,
            shards: port.shards(),
            orders_max,
            // An order, and a request about it.
            ids_max: orders_max.saturating_mul(2),
            finished_max: orders_max / 2,
            prefix,
            seed: view.seed,
            pages: LARGE_PAGES,
        };
        ShardClient {
            view: RefCell::new(View::new(port.shards(), view)),
            port: RefCell::new(port),
            reference: RefCell::new(reference),
            desk: RefCell::new(Desk::new(desk, numbers.take().unwrap_or_default())),
            numbers: RefCell::new(numbers),
            receipts: RefCell::new(Receipts::new(orders_max, view.seed)),
            elsewhere: RefCell::default(),
            wakeups,
            waiting: Rc::new(RefCell::new(Waiting::default())),
            startup_commands: RefCell::new(startup_commands.into()),
            event_counts: Cell::new(EventCounts::default()),
            changes: Cell::new(0),
            report: RefCell::new(None),
            history: RefCell::new(None),
            alert_lines: RefCell::default(),
            ws_broker: None,
            remote_strategies: None,
        }
    }

    /// Sets the receiver that forwards events to strategies in other processes.
    pub(crate) fn set_remote_strategies(&mut self, remote_strategies: Rc<RemoteStrategies>) {
        self.remote_strategies = Some(remote_strategies);
    }

    /// Sets the broker that handles each event after the view.
    pub(crate) fn set_ws_broker(&mut self, ws_broker: Rc<WebSocketBroker>) {
        self.ws_broker = Some(ws_broker);
    }

    /// Sets the report that prints events.
    pub(crate) fn set_report(&mut self, report: Option<OrderReportPrinter>) {
        self.report = RefCell::new(report);
    }

    /// Sets the recorder of the history of the market.
    pub(crate) fn set_history(&mut self, history: Option<HistoryRecorder>) {
        self.history = RefCell::new(history);
    }

    /// Returns the copy of the shards' state. It must not be held across an await.
    pub(crate) fn view(&self) -> Ref<'_, View> {
        self.view.borrow()
    }

    /// Returns the same copy, for walks over it.
    pub(crate) fn view_mut(&self) -> RefMut<'_, View> {
        self.view.borrow_mut()
    }

    pub(crate) fn reference(&self) -> Arc<RefData> {
        self.reference.borrow().clone()
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub(crate) fn set_reference(&self, reference: Arc<RefData>) {
        *self.reference.borrow_mut() = reference;
    }

    /// Returns the id by which the shards know this port.
    pub(crate) fn port(&self) -> PortId {
        self.port.borrow().id()
    }

    pub(crate) fn event_counts(&self) -> EventCounts {
        self.event_counts.get()
    }

    /// Returns a counter that grows with every event that may change more than prices in the view.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.get()
    }

    pub(crate) fn shards(&self) -> u8 {
        index_u8(self.wakeups.len())
    }

    /// Returns whether the view has the complete state of every shard.
    pub(crate) fn is_complete(&self) -> bool {
        let view = self.view();
        (0..self.shards()).all(|shard| view.is_complete(ShardId(shard)))
    }

    /// Returns the number of responses that are pending.
    pub(crate) fn waiting_len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Sends a command to its shard, or to all shards if it is for all, and returns the pending
    /// response. Either the whole command is sent or nothing.
    pub(crate) fn send(&self, session: u16, body: CommandKind) -> Result<PendingResponse, ShardsBusy> {
        let source = Source { origin: Origin::Rest, port: self.port.borrow().id(), session };
        let pending = Waiting::admit(&self.waiting).ok_or(ShardsBusy)?;
        let left = self.forward(Command::new(source, pending.token(), body))?;
        pending.expect(awaited_order(session, &body).unwrap_or(Awaited::Done { left }));
        Ok(pending)
    }

    /// Handles events of the shards, at most `EVENTS_PER_CYCLE_MAX`, and returns the amount of work
    /// done.
    pub(crate) fn poll(&self) -> usize {
        let mut work = self.send_startup_commands();
        let mut view = self.view.borrow_mut();
        let mut port = self.port.borrow_mut();
        let mut waiting = self.waiting.borrow_mut();
        let (mut counts, mut changes) = (self.event_counts.get(), self.changes.get());
        let mut report = self.report.borrow_mut();
        let mut history = self.history.borrow_mut();
        let ws_broker = self.ws_broker.as_ref().map(|ws_broker| (ws_broker, ws_broker.now()));
        let (mut render_begin, mut is_first) = (None, true);
        let mut desk = self.desk.borrow_mut();
        let mut elsewhere = self.elsewhere.borrow_mut();
        let reference = self.reference.borrow();
        work += desk.poll(&mut port);
        if let Some(block) = self.numbers.borrow_mut().refill(desk.numbers_left()) {
            desk.give_numbers(block);
        }
        let id = port.id();
        for _ in 0..EVENTS_PER_CYCLE_MAX {
            let handled = port.poll_event_with(|shard, event| {
                view.apply(shard, event);
                if let Some((ws_broker, now)) = ws_broker {
                    // Includes the view and the pending responses, as a gateway renders events
                    // together with its other endpoints.
                    if std::mem::take(&mut is_first) && ws_broker.has_clients() {
                        render_begin = ws_broker.sample();
                    }
                    ws_broker.handle_event(now, shard, event);
                }
                counts.count(event);
                changes += u64::from(!matches!(event.body, EventKind::Tick(_)));
                if let Some(history) = history.as_mut() {
                    history.handle_event(shard, event);
                }
                if let Some(report) = report.as_mut() {
                    report.handle_event(&view, &reference, event);
                }
                if let EventKind::Adjusted { strategy, what } = &event.body {
                    warn_of_adjustment(*strategy, what);
                }
                if let EventKind::Alert { alert, security, reason, .. } = &event.body {
                    warn_of_alert(&mut self.alert_lines.borrow_mut(), event.at, *alert, *security, *reason);
                }
                if let Some(remote_strategies) = &self.remote_strategies {
                    remote_strategies.handle_event(shard, event);
                    // Their orders share our port and are not the desk's. A request about one of
                    // them over REST is answered by the status of the order.
                    if is_of_strategy(event) {
                        if let EventKind::Status(_) = &event.body {
                            waiting.handle_event(id, event);
                        }
                        return shard;
                    }
                }
                if let EventKind::Order(order) = &event.body
                    && order.source.port.is_remote()
                {
                    elsewhere.remove(order.terms.strategy, &order.id);
                }
                let refusal = desk.handle_event(shard, event);
                waiting.handle_event(id, event);
                if let Some(refusal) = refusal {
                    waiting.handle_refusal(&refusal);
                }
                shard
            });
            let Some(shard) = handled else { break };
            work += 1;
            port.look_ahead(shard, LOOK_AHEAD, |distance, event| {
                if distance + 1 == LOOK_AHEAD {
                    view.prefetch(event);
                }
            });
            if work.is_multiple_of(EVENTS_PER_TURN) && !port.is_over_half_full() {
                thread::yield_now();
            }
        }
        self.event_counts.set(counts);
        self.changes.set(changes);
        if let Some((ws_broker, _)) = ws_broker {
            ws_broker.count(LatencyStage::StompRender, render_begin);
            ws_broker.flush();
            work += ws_broker.poll_watches(&mut port);
        }
        port.take_wakeups().shards().for_each(|shard| self.wakeups[shard.0 as usize].wake());
        if let Some(report) = report.as_mut() {
            report.flush();
        }
        work
    }

    /// Handles the events left on the lanes and prints the last line of the report. The shards send
    /// no more events by then.
    pub(crate) fn end(&self) {
        while self.poll() > 0 {}
        if let Some(report) = self.report.take() {
            report.end(&self.view(), &self.reference(), self.event_counts());
        }
    }

    /// Sends the first commands to the shards. Each shard answers when it is done, which leads back
    /// here.
    fn send_startup_commands(&self) -> usize {
        let mut startup_commands = self.startup_commands.borrow_mut();
        let before = startup_commands.len();
        while let Some(broadcast) = startup_commands.front_mut() {
            let is_sent = self.port.borrow_mut().send_all(broadcast);
            self.wakeups.iter().for_each(Wakeup::wake);
            if !is_sent {
                break;
            }
            startup_commands.pop_front();
        }
        before - startup_commands.len()
    }
}

/// Warns that a reset computed other values than the stored ones. Snapshot items give no warning:
/// their values before and after are the same.
fn warn_of_adjustment(strategy: StrategyId, what: &Adjustment) {
    let strategy = strategy.0;
    match what {
        Adjustment::Position { security, before, after } if before != after => {
            let (security, before, after) = (security.0, before.qty, after.qty);
            tracing::warn!(strategy, security, %before, %after, "a position was corrected from its transactions");
        }
        Adjustment::Cash { currency, before, after } if before != after => {
            tracing::warn!(strategy, %currency, %before, %after, "a cash balance was corrected from the transactions");
        }
        Adjustment::Position { .. } | Adjustment::Cash { .. } => {}
    }
}

/// Warns of a condition that an operator should look at. Of many at once, the list has all.
fn warn_of_alert(lines: &mut LineLimit, at: Timestamp, alert: Alert, security: SecurityId, reason: Reason) {
    if let Some(omitted) = lines.take(at) {
        let (alert, security, reason) = (alert.wire_name(), security.0, reason.code());
        tracing::warn!(alert, security, reason, omitted, "alert; GET /rest/ext/alert has its order");
    }
}

/// Returns how the response to a request about an order is recognised. All other commands are
/// answered by token.
fn awaited_order(session: u16, body: &CommandKind) -> Option<Awaited> {
    match body {
        CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } => {
            Some(Awaited::Order { session, id: *id })
        }
        CommandKind::Modify { id, order, .. } | CommandKind::Cancel { id, order } => {
            Some(Awaited::Request { order: *order, id: *id, until_executed: false })
        }
        CommandKind::CancelOrders { .. } => unreachable!("`cancel_orders` sends it"),
        CommandKind::Subscribe { .. }
        | CommandKind::Adapter { .. }
        | CommandKind::Transaction(_)
        | CommandKind::Expire { .. }
        | CommandKind::ResetPositions
        | CommandKind::ResetCash
        | CommandKind::Limits { .. }
        | CommandKind::Restrict { .. }
        | CommandKind::Kill { .. }
        | CommandKind::Direct { .. }
        | CommandKind::Phase { .. }
        | CommandKind::Halt { .. }
        | CommandKind::Budget(_)
        | CommandKind::Session { .. }
        | CommandKind::TradingDay { .. }
        | CommandKind::Watch { .. }
        | CommandKind::Snapshot { .. }
        | CommandKind::Reference { .. }
        | CommandKind::AuditAnchor(_)
        | CommandKind::Schedule { .. }
        | CommandKind::Expiry { .. }
        | CommandKind::Validate { .. } => None,
        CommandKind::Quote { .. }
        | CommandKind::Trade { .. }
        | CommandKind::Tick { .. }
        | CommandKind::Level { .. }
        | CommandKind::VenueLevels(_)
        | CommandKind::VenueBook { .. }
        | CommandKind::Report { .. }
        | CommandKind::Timer
        | CommandKind::SpecialTerms(_)
        | CommandKind::Sender { .. } => {
            unreachable!(
                "prices, reports, the clock and senders are never answered, and no handler sends them"
            )
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
