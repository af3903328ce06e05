//! A shard and its twin with the same input; their output is compared order by order.

mod special;

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::book_orders::BookOrders;
use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{
    DEPTH_LEVELS_MAX, Depth, DepthLevel, EVENTS_PER_COMMAND_MAX, Event, EventKind, ExecType,
    LEVELS_PER_SIDE_MAX, LevelsKind, ORDERS_PER_SIDE_MAX,
};
use pitlane_engine::id::{OrderHandle, PortId, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::level_book::{LevelBook, LevelsProgress};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use crate::checks::Checker;
use crate::dice::Dice;
use crate::replay::{self, ShardInput};
use crate::test_market;
use crate::twin::{Report, Twin, TwinBooking, TwinEvent, TwinPosition, TwinRefusal, TwinTransaction};
use crate::workload::Action;

#[derive(Debug)]
pub struct ShardAndTwin {
    pub shard: Shard,
    pub twin: Twin,
    pub checker: Checker,
    pub now: Timestamp,
    out: Outbox,
    /// Handles by place among the submitted orders.
    handles: Vec<OrderHandle>,
    token: u32,
    pub trace: Option<Vec<String>>,
    journal: Vec<ShardInput>,
    /// Hash of all events of the shard.
    pub hash: u64,
    /// Chooses orders and modifications that get special terms, if there are to be some.
    pub special: Option<Dice>,
    /// The last published depth of each book side.
    depths: BTreeMap<(SecurityId, Side), Depth>,
    /// Books rebuilt from the changes of their price levels.
    level_books: BTreeMap<SecurityId, LevelBook>,
    /// Books rebuilt from the changes of their orders.
    order_books: BTreeMap<SecurityId, BookOrders>,
}

const READER: PortId = PortId(0);
/// Commands between two comparisons of all books; otherwise only the published ones are compared.
const DEPTHS_EVERY: u32 = 16;

impl ShardAndTwin {
    pub fn new(reference: Arc<RefData>, settings: ShardSettings) -> ShardAndTwin {
        let id = ShardId(0);
        let mut pair = ShardAndTwin {
            shard: Shard::new(id, 1, reference.clone(), settings.clone()),
            twin: Twin::new(reference.clone(), settings),
            checker: Checker::new(id, reference),
            now: test_market::start(),
            out: Outbox::new(0),
            handles: Vec::new(),
            token: 0,
            trace: None,
            journal: Vec::new(),
            hash: 0,
            special: None,
            depths: BTreeMap::new(),
            level_books: BTreeMap::new(),
            order_books: BTreeMap::new(),
        };
        let watch = CommandKind::Watch { port: READER, what: WatchTarget::Everything, on: true };
        pair.apply(&Command::new(source(), 0, watch));
        pair.watch_depths().expect("the books of a new shard");
        pair
    }

    fn watch_depths(&mut self) -> Result<(), String> {
        let reference = self.shard.reference().clone();
        for row in reference.securities() {
            for what in
                [WatchTarget::Depth(row.id), WatchTarget::Levels(row.id), WatchTarget::BookOrders(row.id)]
            {
                let watch = CommandKind::Watch { port: READER, what, on: true };
                let events = self.apply(&Command::new(source(), 0, watch));
                self.see_depths(&events)?;
            }
        }
        // Snapshots of orders come in steps of their own.
        while self.shard.has_depths() {
            self.shard.emit_depths(&mut self.out);
            let events = take(&mut self.out);
            self.see_depths(&events)?;
        }
        Ok(())
    }

    /// Performs one action with both, and compares.
    pub fn step(&mut self, action: &Action) -> Result<(), String> {
        let body = match *action {
            Action::Wait(ns) => return self.wait(ns),
            Action::Plain(body) => body,
            Action::Modify { nth, id, changes } => {
                CommandKind::Modify { order: self.handle(nth), id, changes }
            }
            Action::Cancel { nth, id } => CommandKind::Cancel { order: self.handle(nth), id },
            Action::Report { nth, report } => CommandKind::Report { order: self.handle(nth), report },
        };
        let body = self.with_special(body)?;
        self.send_command(body)
    }

    fn handle(&self, nth: usize) -> OrderHandle {
        self.handles.get(nth).copied().unwrap_or(OrderHandle::NONE)
    }

    /// Advances the time, with a timer command wherever the shard needs one.
    fn wait(&mut self, ns: u64) -> Result<(), String> {
        let end = self.now.plus(ns);
        while let Some(deadline) = self.shard.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            self.send_command(CommandKind::Timer)?;
            if self.shard.deadline().is_some_and(|next| next <= deadline) {
                return Err(format!("the timer of {deadline} has not gone away"));
            }
        }
        self.now = end;
        Ok(())
    }

    fn send_command(&mut self, body: CommandKind) -> Result<(), String> {
        self.token += 1;
        let command = Command::new(source(), self.token, body);
        let orders_before = self.twin.orders.len();
        let expected = self.twin.apply(self.now, &command);
        let events = self.apply(&command);
        if let Some(trace) = &mut self.trace {
            trace.push(format!("\n{} {body:?}", self.now));
            trace.extend(expected.iter().map(|twin_event| format!("    twin  {twin_event:?}")));
            trace.extend(events.iter().map(|event| format!("    shard {:?}", event.body)));
        }
        self.bind(&body, orders_before, &events);
        for event in &events {
            self.checker.read(event)?;
            self.hash = fold(self.hash, event);
        }
        let events_of_shard: Vec<TwinEvent> =
            events.iter().filter_map(|event| self.twin_event(&event.body)).collect();
        compare(&expected, &events_of_shard)?;
        self.check_special(&events)?;
        self.check_credit()?;
        for event in &events {
            if let EventKind::Forgotten { order, .. } = event.body {
                let forgotten = self.twin.forget(order).ok_or("forgotten, but never known")?;
                if !self.twin.orders[forgotten].is_over() {
                    return Err(format!("forgotten while open: {order:?}"));
                }
            }
        }
        self.look_at_depths()
    }

    /// Checks that both count the same credit in use.
    fn check_credit(&self) -> Result<(), String> {
        for account in test_market::HOME_ACCOUNTS.into_iter().chain(test_market::OUTSIDE_ACCOUNTS) {
            let (twin, shard) = (self.twin.credit_used(account), self.shard.credit_used(account));
            if shard.is_some_and(|shard| shard != twin) {
                return Err(format!("credit of {account:?}: twin {twin}, shard {shard:?}"));
            }
        }
        Ok(())
    }

    /// Continues with the shard loaded from its snapshot.
    pub fn reload(&mut self) -> Result<(), String> {
        self.shard = replay::reloaded(&self.shard, 1)?;
        // A snapshot does not contain the subscribers of books.
        self.watch_depths()?;
        self.check_depths(|_| true)
    }

    fn see_depths(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            if let EventKind::Depth(depth) = event.body {
                self.depths.insert((depth.security, depth.side), depth);
            }
            if let EventKind::Levels(part) = &event.body
                && self.level_books.entry(part.security).or_default().apply(part) == LevelsProgress::Gap
            {
                return Err(format!("these changes do not follow: {part:?}"));
            }
            if let EventKind::BookOrders(part) = &event.body {
                let book = self.order_books.entry(part.security).or_default();
                if part.is_first && part.kind == LevelsKind::Snapshot {
                    book.clear();
                }
                if !part.changes().all(|change| book.apply(&change)) {
                    return Err(format!("these orders do not fit: {part:?}"));
                }
            }
        }
        Ok(())
    }

    /// Lets the shard publish the books that have changed, and compares them; now and then also
    /// those that should not have changed.
    fn look_at_depths(&mut self) -> Result<(), String> {
        let seq = self.out.seq();
        let mut events_of_shard = Vec::new();
        while self.shard.has_depths() {
            self.shard.emit_depths(&mut self.out);
            let events = take(&mut self.out);
            self.see_depths(&events)?;
            events_of_shard.extend(events.iter().filter_map(|event| event.body.subject().security));
        }
        if self.out.seq() != seq {
            return Err("depth has moved the numbers".to_string());
        }
        let all = self.token.is_multiple_of(DEPTHS_EVERY);
        self.check_depths(|security| all || events_of_shard.contains(&security))
    }

    fn check_depths(&self, is_meant: impl Fn(SecurityId) -> bool) -> Result<(), String> {
        let reference = self.shard.reference();
        for row in reference.securities().iter().filter(|row| is_meant(row.id)) {
            for side in Side::BOTH {
                self.check_levels(row.id, side)?;
                self.check_orders(row.id, side)?;
            }
            for side in Side::BOTH.into_iter().filter(|_| self.twin.shows_depth(row.id)) {
                let expected = self.twin.depth(row.id, side, DEPTH_LEVELS_MAX);
                let events_of_shard = self.depths.get(&(row.id, side)).map(|depth| pairs(depth.levels()));
                if events_of_shard.as_ref() != Some(&expected) {
                    return Err(format!(
                        "{side:?} of {}: twin {expected:?}, shard {events_of_shard:?}",
                        row.id
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_levels(&self, security: SecurityId, side: Side) -> Result<(), String> {
        let is_shown = self.twin.shows_depth(security);
        let count = if is_shown { LEVELS_PER_SIDE_MAX } else { 0 };
        let expected = self.twin.depth(security, side, count);
        let book = self.level_books.get(&security).filter(|book| book.is_whole());
        let rebuilt = book.map(|book| pairs(book.levels(side)));
        if rebuilt.as_ref() == Some(&expected) {
            return Ok(());
        }
        Err(format!("levels of {side:?} of {security}: twin {expected:?}, rebuilt {rebuilt:?}"))
    }

    /// Compares the orders of a book, summed up by price.
    fn check_orders(&self, security: SecurityId, side: Side) -> Result<(), String> {
        let is_shown = self.twin.shows_depth(security);
        let mut expected = self.twin.depth(security, side, if is_shown { usize::MAX } else { 0 });
        let orders = self.order_books.get(&security).map_or(&[][..], |book| book.orders(side));
        let mut sums: Vec<(i64, i64)> = Vec::new();
        for order in orders {
            match sums.last_mut().filter(|(price, _)| *price == order.price.raw()) {
                Some((_, sum)) => *sum += order.qty.raw(),
                None => sums.push((order.price.raw(), order.qty.raw())),
            }
        }
        if orders.len() == ORDERS_PER_SIDE_MAX {
            // The last level may be incomplete.
            sums.pop();
            expected.truncate(sums.len());
        }
        if sums == expected {
            return Ok(());
        }
        Err(format!("orders of {side:?} of {security}: twin {expected:?}, rebuilt {sums:?}"))
    }

    /// Replays all commands to a new shard.
    pub fn replay(&self) -> Result<(), String> {
        let (reference, settings) = (self.shard.reference().clone(), self.shard.settings().clone());
        let fresh = Shard::new(ShardId(0), 1, reference, settings);
        replay::check_replay(&self.journal, fresh, &self.shard, Some(self.out.seq()))
    }

    fn apply(&mut self, command: &Command) -> Vec<Event> {
        self.journal.push(ShardInput::Command(self.now, *command));
        self.shard.apply(self.now, command, &mut self.out);
        let mut events = take(&mut self.out);
        while self.shard.has_work() {
            self.shard.resume(&mut self.out);
            events.extend(take(&mut self.out));
        }
        self.shard.assert_consistent();
        events
    }

    /// Learns the handles of new orders: those of the command, and of a close that has waited.
    fn bind(&mut self, body: &CommandKind, order: usize, events: &[Event]) {
        let entered: Vec<OrderHandle> =
            events.iter().filter_map(|event| Some(event.body.answered_order()?.order)).collect();
        if matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            self.handles.push(entered.first().copied().unwrap_or(OrderHandle::NONE));
        }
        let handles = entered.into_iter().filter(|handle| *handle != OrderHandle::NONE);
        for (nth, handle) in handles.enumerate() {
            self.twin.bind(handle, order + nth);
        }
    }

    /// Converts an event to the twin's type; `None` for events that the twin does not model.
    fn twin_event(&self, body: &EventKind) -> Option<TwinEvent> {
        match body {
            // Sent again for readers that may have dropped the order.
            EventKind::Order(order) if matches!(order.what, ExecType::Replaced | ExecType::Snapshot) => None,
            EventKind::Order(order) if order.order == OrderHandle::NONE => {
                Some(TwinEvent::Unrecorded(order.reason))
            }
            EventKind::Order(_) | EventKind::Status(_) => {
                let event = Event { seq: 1, at: self.now, body: *body };
                let r = event.report().expect("an order event has a report");
                Some(TwinEvent::Report(Report {
                    order: self.twin.order(r.order).unwrap_or(usize::MAX),
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
                    in_doubt: r.in_doubt,
                }))
            }
            EventKind::Refused(r) => Some(TwinEvent::Refused(TwinRefusal {
                order: self.twin.order(r.order),
                request_id: r.request_id,
                request: r.request,
                status: r.status,
                reason: r.reason,
            })),
            EventKind::Booked(b) => Some(TwinEvent::Booked(TwinBooking {
                order: self.twin.order(b.order),
                transaction: TwinTransaction {
                    kind: b.kind,
                    strategy: b.strategy,
                    account: b.account,
                    security: b.security,
                    qty: b.qty,
                    price: b.price,
                    commission: b.commission,
                    currency: b.currency,
                    by_order: b.order != OrderHandle::NONE,
                },
                position: TwinPosition {
                    qty: b.position.qty,
                    cost: b.position.cost,
                    realized: b.position.realized,
                },
                cash: b.cash,
            })),
            EventKind::Alert { alert, .. } => Some(TwinEvent::Alert(*alert)),
            EventKind::Done { reason, .. } => Some(TwinEvent::Done(*reason)),
            EventKind::Forgotten { .. }
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => None,
        }
    }
}

pub fn source() -> Source {
    test_market::source(READER.0, 1)
}

fn take(out: &mut Outbox) -> Vec<Event> {
    let events: Vec<Event> = out.waiting().iter().map(|(_, event)| *event).collect();
    assert!(events.len() <= EVENTS_PER_COMMAND_MAX, "a step emits at most so many events");
    out.clear();
    events
}

/// Folds an event into a hash; every byte of its debug text counts.
pub fn fold(hash: u64, event: &Event) -> u64 {
    let mut hash = hash ^ 0xcbf2_9ce4_8422_2325;
    for byte in format!("{event:?}").bytes() {
        hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// Events that belong together: the history of an order, the bookings of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EventGroup {
    Order(usize),
    Unknown,
    Position(StrategyId, Option<SecurityId>),
    Alerts,
    Done,
}

fn threads(list: &[TwinEvent]) -> BTreeMap<EventGroup, Vec<TwinEvent>> {
    let mut threads: BTreeMap<EventGroup, Vec<TwinEvent>> = BTreeMap::new();
    for twin_event in list {
        let thread = match twin_event {
            TwinEvent::Report(report) => EventGroup::Order(report.order),
            TwinEvent::Refused(TwinRefusal { order: Some(order), .. }) => EventGroup::Order(*order),
            TwinEvent::Refused(_) | TwinEvent::Unrecorded(_) => EventGroup::Unknown,
            TwinEvent::Booked(booked) => {
                EventGroup::Position(booked.transaction.strategy, booked.transaction.security)
            }
            TwinEvent::Alert(_) => EventGroup::Alerts,
            TwinEvent::Done(_) => EventGroup::Done,
        };
        threads.entry(thread).or_default().push(*twin_event);
    }
    threads
}

/// Compares the output, thread by thread: between threads the rules do not define an order.
fn compare(expected: &[TwinEvent], events_of_shard: &[TwinEvent]) -> Result<(), String> {
    let (expected, events_of_shard) = (threads(expected), threads(events_of_shard));
    let keys: Vec<EventGroup> = expected.keys().chain(events_of_shard.keys()).copied().collect();
    for key in keys {
        // The order's own reports show how a command about the order ended.
        if key == EventGroup::Done && !expected.contains_key(&key) {
            continue;
        }
        let (want, have) = (expected.get(&key), events_of_shard.get(&key));
        if want != have {
            let list = |twin_event: Option<&Vec<TwinEvent>>| {
                twin_event.into_iter().flatten().map(|s| format!("    {s:?}\n")).collect::<String>()
            };
            return Err(format!("{key:?}\n  twin:\n{}  shard:\n{}", list(want), list(have)));
        }
    }
    Ok(())
}

/// Returns levels as prices and quantities.
fn pairs(levels: &[DepthLevel]) -> Vec<(i64, i64)> {
    levels.iter().map(|level| (level.price.raw(), level.qty.raw())).collect()
}
