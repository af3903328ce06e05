//! The floor: what handlers see of the platform, and the one way they speak to it. It belongs to the http thread.
//!
//! ```text
//! handler ── send ──► lane ──► shard ──► lane ──► poll: View first, then whoever waits
//!    └────── view, reference: read at once              └──► handler goes on
//! ```
//!
//! The view takes in an event before the answer it belongs to is given. So whoever was answered reads what he wrote.
//!
//! The desk of REST orders stands between view and waiting: it hears each event after the view. What handlers do with orders
//! is in `entry`.

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
use crate::report::Report;
use crate::stages::Stage;
use crate::wakeup::Wakeup;

/// Events taken in before requests have their turn again: some 100 µs of work.
pub const EVENTS_PER_TURN_MAX: usize = 1_024;

/// So many events ahead the view is shown what comes, so that its memory is near by then: a new order has two events as a rule.
const LOOK_AHEAD: usize = 2;

/// First letter of the ids made here, where no other server makes any.
pub const PREFIX: u8 = b'r';

/// How much the floor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardClientSettings {
    pub view: ViewSettings,
    /// Orders over REST that are known at once.
    pub orders_max: u32,
    /// First letter of the ids made here.
    pub prefix: u8,
}

/// Nothing was sent: a lane is full, or too many answers are awaited. Try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

#[derive(Debug)]
pub struct ShardClient {
    port: RefCell<PortEnd>,
    view: RefCell<View>,
    reference: RefCell<Arc<RefData>>,
    /// Of the orders that come over REST.
    desk: RefCell<Desk>,
    numbers: RefCell<Numbers>,
    receipts: RefCell<Receipts>,
    elsewhere: RefCell<ElsewhereIds>,
    /// By shard: wakes its thread.
    bells: Vec<Wakeup>,
    waiting: Rc<RefCell<Waiting>>,
    /// What every shard is told first, as far as there was no room yet.
    opening: RefCell<VecDeque<Broadcast>>,
    heard: Cell<Heard>,
    /// Events heard that told more than a price.
    changes: Cell<u64>,
    report: RefCell<Option<Report>>,
    /// Where WebSocket clients listen; none in tests.
    hall: Option<Rc<WebSocketBroker>>,
    /// Strategies in processes of their own; none: there are none.
    outposts: Option<Rc<RemoteStrategies>>,
}

impl ShardClient {
    /// A floor that asks every shard for all it has and says. It comes to life by being polled.
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

    /// Who tells strategies elsewhere.
    pub fn set_outposts(&mut self, outposts: Rc<RemoteStrategies>) {
        self.outposts = Some(outposts);
    }

    /// Who hears each event after the view.
    pub fn set_hall(&mut self, hall: Rc<WebSocketBroker>) {
        self.hall = Some(hall);
    }

    /// Who prints what is heard.
    pub fn set_report(&mut self, report: Option<Report>) {
        self.report = RefCell::new(report);
    }

    /// The copy of what the shards know. Not to be held over an await.
    pub fn view(&self) -> Ref<'_, View> {
        self.view.borrow()
    }

    /// The same, to walk over.
    pub fn view_mut(&self) -> RefMut<'_, View> {
        self.view.borrow_mut()
    }

    pub fn reference(&self) -> Arc<RefData> {
        self.reference.borrow().clone()
    }

    /// New reference data, in force in all shards.
    pub fn adopt(&self, reference: Arc<RefData>) {
        *self.reference.borrow_mut() = reference;
    }

    /// By which the shards know us.
    pub fn port(&self) -> PortId {
        self.port.borrow().id()
    }

    pub fn heard(&self) -> Heard {
        self.heard.get()
    }

    /// Rises with whatever may change more than prices in the view.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    pub fn shards(&self) -> u8 {
        self.bells.len() as u8
    }

    /// Whether the view lacks nothing of any shard.
    pub fn is_complete(&self) -> bool {
        let view = self.view();
        (0..self.shards()).all(|shard| view.is_complete(ShardId(shard)))
    }

    /// Answers awaited now.
    pub fn waiting_len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Sends a command to its shard, or to all if it is for all, and gives what will be the answer. The whole command is
    /// sent or nothing.
    pub fn send(&self, session: u16, body: CommandKind) -> Result<Pending, Busy> {
        let mut port = self.port.borrow_mut();
        let source = Source { origin: Origin::Rest, port: port.id(), session };
        let shards = self.shards();
        let shards = match route(&body, shards) {
            Route::One(shard) => shard.0..shard.0 + 1,
            Route::All => 0..shards,
        };
        // Nobody else writes to these lanes, so room once seen stays.
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

    /// Takes in what the shards have said, up to a bound, and says how much that was.
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
                // With the view and all who wait here, as the events of a gateway are told with those of its other rooms.
                if std::mem::take(&mut is_first) && hall.has_guests() {
                    taken = hall.sample();
                }
                hall.hear(now, shard, &event);
            }
            heard.count(&event);
            changes += u64::from(!matches!(event.body, EventKind::Tick(_)));
            if let Some(report) = report.as_mut() {
                report.hear(&view, &reference, &event);
            }
            if let EventKind::Adjusted { strategy, what } = &event.body {
                warn_of_adjustment(*strategy, what);
            }
            work += 1;
            if let Some(outposts) = &self.outposts {
                outposts.hear(shard, &event);
                // Their orders share our port, and are not the desk's.
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
            hall.count(Stage::StompRender, taken);
            hall.settle();
            work += hall.poll_watches(&mut port);
        }
        port.take_wakeups().shards().for_each(|shard| self.bells[shard.0 as usize].wake());
        if let Some(report) = report.as_mut() {
            report.flush();
        }
        work
    }

    /// Hears what is left on the lanes, and has the last line printed. Nobody speaks any more.
    pub fn end(&self) {
        while self.poll() > 0 {}
        if let Some(report) = self.report.take() {
            report.end(&self.view(), &self.reference(), self.heard());
        }
    }

    /// Tells the shards what they are told first. Each answers when it is done, so that we come back here.
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

/// A reset found something else than was kept. Images of a snapshot have nothing to tell: before and after are the same.
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

/// How the answer to a request about an order is known. All else is answered by its token.
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
