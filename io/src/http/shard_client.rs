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

use pitlane_engine::command::{Command, CommandKind, Watch};
use pitlane_engine::desk::{Desk, DeskSettings};
use pitlane_engine::event::{Adjustment, EventKind};
use pitlane_engine::id::{Origin, PortId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{Broadcast, PortEnd};
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::{Route, route};
use pitlane_engine::strategy::remote_protocol::is_of_strategy;
use pitlane_engine::view::{View, ViewSettings};

use self::elsewhere::ElsewhereIds;
pub use self::entry::is_of_rest;
pub use self::numbers::Numbers;
use self::receipts::Receipts;
pub use self::receipts::{Asked, Receipt};
use self::waiting::{Awaited, Waiting};
pub use self::waiting::{Outcome, Pending};
use super::remote_strategies::RemoteStrategies;
use super::websocket_broker::WebSocketBroker;
use crate::event_counts::Heard;
use crate::pages::LARGE_PAGES;
use crate::report::OrderReportPrinter;
use crate::stages::LatencyStage;
use crate::wakeup::Wakeup;

/// Events taken from the lanes per cycle, before requests are served again: some 100 µs of work.
pub const EVENTS_PER_TURN_MAX: usize = 1_024;

/// Number of events ahead of which the view prefetches, so that its memory is in cache by then. A
/// new order usually has two events.
const LOOK_AHEAD: usize = 2;

/// First character of the ids made here, where no other server makes any.
pub const PREFIX: u8 = b'r';

/// Sizes of a `ShardClient`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardClientSettings {
    pub view: ViewSettings,
    /// Maximum number of REST orders known at once.
    pub orders_max: u32,
    /// First character of the ids made here.
    pub prefix: u8,
}

/// Nothing was sent: a lane is full, or too many responses are pending. The caller may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

#[derive(Debug)]
pub struct ShardClient {
    port: RefCell<PortEnd>,
    view: RefCell<View>,
    reference: RefCell<Arc<RefData>>,
    /// The desk of the orders that come over REST.
    desk: RefCell<Desk>,
    numbers: RefCell<Numbers>,
    receipts: RefCell<Receipts>,
    elsewhere: RefCell<ElsewhereIds>,
    /// Wakes the thread of each shard; indexed by shard.
    bells: Vec<Wakeup>,
    waiting: Rc<RefCell<Waiting>>,
    /// The first commands to every shard that are not sent yet for lack of room.
    opening: RefCell<VecDeque<Broadcast>>,
    heard: Cell<Heard>,
    /// Number of events received other than ticks.
    changes: Cell<u64>,
    report: RefCell<Option<OrderReportPrinter>>,
    /// Broker of the WebSocket clients; `None` in tests.
    hall: Option<Rc<WebSocketBroker>>,
    /// Strategies in processes of their own; `None` if there are none.
    outposts: Option<Rc<RemoteStrategies>>,
}

impl ShardClient {
    /// Creates a client that subscribes to everything of every shard and requests a snapshot. It
    /// does nothing until it is polled.
    pub fn new(
        port: PortEnd,
        bells: Vec<Wakeup>,
        reference: Arc<RefData>,
        settings: ShardClientSettings,
        mut numbers: Numbers,
    ) -> ShardClient {
        let ShardClientSettings { view, orders_max, prefix } = settings;
        assert_eq!(bells.len(), port.shards() as usize, "every shard has its bell");
        let id = port.id();
        let source = Source { origin: Origin::Server, port: id, session: 0 };
        let opening = [
            CommandKind::Watch { port: id, what: Watch::Everything, on: true },
            CommandKind::Snapshot { port: id },
        ];
        let opening = opening.map(|body| Broadcast::new(Command::new(source, waiting::NOBODY, body)));
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
            bells,
            waiting: Rc::new(RefCell::new(Waiting::default())),
            opening: RefCell::new(opening.into()),
            heard: Cell::new(Heard::default()),
            changes: Cell::new(0),
            report: RefCell::new(None),
            hall: None,
            outposts: None,
        }
    }

    /// Sets the receiver that forwards events to strategies in other processes.
    pub fn set_outposts(&mut self, outposts: Rc<RemoteStrategies>) {
        self.outposts = Some(outposts);
    }

    /// Sets the broker that handles each event after the view.
    pub fn set_hall(&mut self, hall: Rc<WebSocketBroker>) {
        self.hall = Some(hall);
    }

    /// Sets the report that prints events.
    pub fn set_report(&mut self, report: Option<OrderReportPrinter>) {
        self.report = RefCell::new(report);
    }

    /// Returns the copy of the shards' state. It must not be held across an await.
    pub fn view(&self) -> Ref<'_, View> {
        self.view.borrow()
    }

    /// Returns the same copy, for walks over it.
    pub fn view_mut(&self) -> RefMut<'_, View> {
        self.view.borrow_mut()
    }

    pub fn reference(&self) -> Arc<RefData> {
        self.reference.borrow().clone()
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub fn adopt(&self, reference: Arc<RefData>) {
        *self.reference.borrow_mut() = reference;
    }

    /// Returns the id by which the shards know this port.
    pub fn port(&self) -> PortId {
        self.port.borrow().id()
    }

    pub fn heard(&self) -> Heard {
        self.heard.get()
    }

    /// Returns a counter that grows with every event that may change more than prices in the view.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    pub fn shards(&self) -> u8 {
        self.bells.len() as u8
    }

    /// Returns whether the view has the complete state of every shard.
    pub fn is_complete(&self) -> bool {
        let view = self.view();
        (0..self.shards()).all(|shard| view.is_complete(ShardId(shard)))
    }

    /// Returns the number of responses that are pending.
    pub fn waiting_len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Sends a command to its shard, or to all shards if it is for all, and returns the pending
    /// response. Either the whole command is sent or nothing.
    pub fn send(&self, session: u16, body: CommandKind) -> Result<Pending, Busy> {
        let mut port = self.port.borrow_mut();
        let source = Source { origin: Origin::Rest, port: port.id(), session };
        let shards = self.shards();
        let shards = match route(&body, shards) {
            Route::One(shard) => shard.0..shard.0 + 1,
            Route::All => 0..shards,
        };
        // This thread is the only writer of these lanes, so room once seen stays.
        if !shards.clone().all(|shard| port.has_room(ShardId(shard))) {
            return Err(Busy);
        }
        let awaited = match awaited_order(session, &body) {
            Some(awaited) => awaited,
            None => Awaited::Done { left: shards.len() as u8 },
        };
        let pending = Waiting::admit(&self.waiting).ok_or(Busy)?;
        pending.expect(awaited);
        let command = Command::new(source, pending.token(), body);
        for shard in shards {
            port.send(ShardId(shard), command).expect("there was room and nobody else writes");
            self.bells[shard as usize].wake();
        }
        Ok(pending)
    }

    /// Handles events of the shards, at most `EVENTS_PER_TURN_MAX`, and returns the amount of work
    /// done.
    pub fn poll(&self) -> usize {
        let mut work = self.open();
        let mut view = self.view.borrow_mut();
        let mut port = self.port.borrow_mut();
        let mut waiting = self.waiting.borrow_mut();
        let (mut heard, mut changes) = (self.heard.get(), self.changes.get());
        let mut report = self.report.borrow_mut();
        let hall = self.hall.as_ref().map(|hall| (hall, hall.now()));
        let (mut taken, mut is_first) = (None, true);
        let mut desk = self.desk.borrow_mut();
        let reference = self.reference.borrow();
        work += desk.poll(&mut port);
        if let Some(block) = self.numbers.borrow_mut().refill(desk.numbers_left()) {
            desk.give_numbers(block);
        }
        for _ in 0..EVENTS_PER_TURN_MAX {
            let Some((shard, event)) = port.poll_event() else { break };
            port.look_ahead(shard, LOOK_AHEAD, |distance, event| {
                if distance + 1 == LOOK_AHEAD {
                    view.prefetch(event);
                }
            });
            view.apply(shard, &event);
            if let Some((hall, now)) = hall {
                // Includes the view and the pending responses, as a gateway renders events together
                // with its other endpoints.
                if std::mem::take(&mut is_first) && hall.has_guests() {
                    taken = hall.sample();
                }
                hall.hear(now, shard, &event);
            }
            heard.count(&event);
            changes += u64::from(!matches!(event.body, EventKind::Tick(_)));
            if let Some(report) = report.as_mut() {
                report.handle_event(&view, &reference, &event);
            }
            if let EventKind::Adjusted { strategy, what } = &event.body {
                warn_of_adjustment(*strategy, what);
            }
            work += 1;
            if let Some(outposts) = &self.outposts {
                outposts.hear(shard, &event);
                // Their orders share our port and are not the desk's.
                if is_of_strategy(&event) {
                    continue;
                }
            }
            let refusal = desk.handle_event(&event);
            waiting.handle_event(port.id(), &event);
            if let Some(refusal) = refusal {
                waiting.handle_refusal(&refusal);
            }
        }
        self.heard.set(heard);
        self.changes.set(changes);
        if let Some((hall, _)) = hall {
            hall.count(LatencyStage::StompRender, taken);
            hall.settle();
            work += hall.poll_watches(&mut port);
        }
        port.take_wakeups().shards().for_each(|shard| self.bells[shard.0 as usize].wake());
        if let Some(report) = report.as_mut() {
            report.flush();
        }
        work
    }

    /// Handles the events left on the lanes and prints the last line of the report. The shards send
    /// no more events by then.
    pub fn end(&self) {
        while self.poll() > 0 {}
        if let Some(report) = self.report.take() {
            report.end(&self.view(), &self.reference(), self.heard());
        }
    }

    /// Sends the first commands to the shards. Each shard answers when it is done, which leads back
    /// here.
    fn open(&self) -> usize {
        let mut opening = self.opening.borrow_mut();
        let before = opening.len();
        while let Some(broadcast) = opening.front_mut() {
            let through = self.port.borrow_mut().send_all(broadcast);
            self.bells.iter().for_each(Wakeup::wake);
            if !through {
                break;
            }
            opening.pop_front();
        }
        before - opening.len()
    }
}

/// Warns that a reset computed other values than the stored ones. Snapshot items give no warning:
/// their values before and after are the same.
fn warn_of_adjustment(strategy: StrategyId, what: &Adjustment) {
    let strategy = strategy.0;
    match what {
        Adjustment::Position { security, before, after } if before != after => {
            let (security, before, after) = (security.0, before.qty, after.qty);
            tracing::warn!(strategy, security, %before, %after, "a position was put right from its transactions");
        }
        Adjustment::Cash { currency, before, after } if before != after => {
            tracing::warn!(strategy, %currency, %before, %after, "a cash balance was put right from the transactions");
        }
        Adjustment::Position { .. } | Adjustment::Cash { .. } => {}
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
            Some(Awaited::Request { order: *order, id: *id, to_its_end: false })
        }
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
        | CommandKind::Report { .. }
        | CommandKind::Timer
        | CommandKind::Sender { .. } => {
            unreachable!(
                "prices, reports, the clock and senders are never answered, and no handler sends them"
            )
        }
    }
}

#[cfg(test)]
mod tests;
