//! A shard and its twin with the same input; their output is compared order by order.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Depth, EVENTS_PER_COMMAND_MAX, Event, EventKind, ExecType};
use pitlane_engine::id::{OrderHandle, PortId, SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use crate::checks::Checker;
use crate::keep::{self, Entry};
use crate::twin::{Booked, Position, Refused, Report, Said, Transaction, Twin};
use crate::workload::Deed;
use crate::world;

#[derive(Debug)]
pub struct Pair {
    pub shard: Shard,
    pub twin: Twin,
    pub checker: Checker,
    pub now: Timestamp,
    out: Outbox,
    /// Handles by place among the submitted orders.
    handles: Vec<OrderHandle>,
    token: u32,
    pub trace: Option<Vec<String>>,
    journal: Vec<Entry>,
    /// Hash of all events of the shard.
    pub hash: u64,
    /// The last published depth of each book side.
    depths: BTreeMap<(SecurityId, Side), Depth>,
}

const READER: PortId = PortId(0);
/// Commands between two comparisons of all books; otherwise only the published ones are compared.
const DEPTHS_EVERY: u32 = 16;

impl Pair {
    pub fn new(reference: Arc<RefData>, settings: ShardSettings) -> Pair {
        let id = ShardId(0);
        let mut pair = Pair {
            shard: Shard::new(id, 1, reference.clone(), settings.clone()),
            twin: Twin::new(reference.clone(), settings),
            checker: Checker::new(id, reference),
            now: world::start(),
            out: Outbox::new(0),
            handles: Vec::new(),
            token: 0,
            trace: None,
            journal: Vec::new(),
            hash: 0,
            depths: BTreeMap::new(),
        };
        let watch = CommandKind::Watch { port: READER, what: WatchTarget::Everything, on: true };
        pair.play(&Command::new(source(), 0, watch));
        pair.watch_depths();
        pair
    }

    fn watch_depths(&mut self) {
        let reference = self.shard.reference().clone();
        for row in reference.securities() {
            let watch = CommandKind::Watch { port: READER, what: WatchTarget::Depth(row.id), on: true };
            let events = self.play(&Command::new(source(), 0, watch));
            self.see_depths(&events);
        }
    }

    /// Performs one action with both, and compares.
    pub fn step(&mut self, deed: &Deed) -> Result<(), String> {
        let body = match *deed {
            Deed::Wait(ns) => return self.wait(ns),
            Deed::Plain(body) => body,
            Deed::Modify { nth, id, changes } => CommandKind::Modify { order: self.handle(nth), id, changes },
            Deed::Cancel { nth, id } => CommandKind::Cancel { order: self.handle(nth), id },
            Deed::Report { nth, report } => CommandKind::Report { order: self.handle(nth), report },
        };
        self.tell(body)
    }

    fn handle(&self, nth: usize) -> OrderHandle {
        self.handles.get(nth).copied().unwrap_or(OrderHandle::NONE)
    }

    /// Advances the time, with a timer command wherever the shard needs one.
    fn wait(&mut self, ns: u64) -> Result<(), String> {
        let end = self.now.plus(ns);
        while let Some(deadline) = self.shard.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            self.tell(CommandKind::Timer)?;
            if self.shard.deadline().is_some_and(|next| next <= deadline) {
                return Err(format!("the timer of {deadline} has not gone away"));
            }
        }
        self.now = end;
        Ok(())
    }

    fn tell(&mut self, body: CommandKind) -> Result<(), String> {
        self.token += 1;
        let command = Command::new(source(), self.token, body);
        let orders_before = self.twin.orders.len();
        let expected = self.twin.apply(self.now, &command);
        let events = self.play(&command);
        if let Some(trace) = &mut self.trace {
            trace.push(format!("\n{} {body:?}", self.now));
            trace.extend(expected.iter().map(|said| format!("    twin  {said:?}")));
            trace.extend(events.iter().map(|event| format!("    shard {:?}", event.body)));
        }
        self.bind(&body, orders_before, &events);
        for event in &events {
            self.checker.read(event)?;
            self.hash = fold(self.hash, event);
        }
        let told: Vec<Said> = events.iter().filter_map(|event| self.said(&event.body)).collect();
        compare(&expected, &told)?;
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
        for account in world::HOME_ACCOUNTS.into_iter().chain(world::OUTSIDE_ACCOUNTS) {
            let (twin, shard) = (self.twin.credit_used(account), self.shard.credit_used(account));
            if shard.is_some_and(|shard| shard != twin) {
                return Err(format!("credit of {account:?}: twin {twin}, shard {shard:?}"));
            }
        }
        Ok(())
    }

    /// Continues with the shard loaded from its snapshot.
    pub fn reload(&mut self) -> Result<(), String> {
        self.shard = keep::reloaded(&self.shard, 1)?;
        // A snapshot does not contain the subscribers of books.
        self.watch_depths();
        self.check_depths(|_| true)
    }

    fn see_depths(&mut self, events: &[Event]) {
        for event in events {
            if let EventKind::Depth(depth) = event.body {
                self.depths.insert((depth.security, depth.side), depth);
            }
        }
    }

    /// Lets the shard publish the books that have changed, and compares them; now and then also
    /// those that should not have changed.
    fn look_at_depths(&mut self) -> Result<(), String> {
        let seq = self.out.seq();
        let mut told = Vec::new();
        while self.shard.has_depths() {
            self.shard.emit_depths(&mut self.out);
            let events = take(&mut self.out);
            self.see_depths(&events);
            told.extend(events.iter().filter_map(|event| match &event.body {
                EventKind::Depth(depth) => Some(depth.security),
                _ => None,
            }));
        }
        if self.out.seq() != seq {
            return Err("depth has moved the numbers".to_string());
        }
        let all = self.token.is_multiple_of(DEPTHS_EVERY);
        self.check_depths(|security| all || told.contains(&security))
    }

    fn check_depths(&self, is_meant: impl Fn(SecurityId) -> bool) -> Result<(), String> {
        let reference = self.shard.reference();
        for row in reference.securities().iter().filter(|row| is_meant(row.id)) {
            for side in Side::BOTH.into_iter().filter(|_| self.twin.shows_depth(row.id)) {
                let expected = self.twin.depth(row.id, side);
                let told: Option<Vec<_>> = self.depths.get(&(row.id, side)).map(|depth| {
                    depth.levels().iter().map(|level| (level.price.raw(), level.qty.raw())).collect()
                });
                if told.as_ref() != Some(&expected) {
                    return Err(format!("{side:?} of {}: twin {expected:?}, told {told:?}", row.id));
                }
            }
        }
        Ok(())
    }

    /// Replays all commands to a new shard.
    pub fn replay(&self) -> Result<(), String> {
        let (reference, settings) = (self.shard.reference().clone(), self.shard.settings().clone());
        let fresh = Shard::new(ShardId(0), 1, reference, settings);
        keep::check_replay(&self.journal, fresh, &self.shard, Some(self.out.seq()))
    }

    fn play(&mut self, command: &Command) -> Vec<Event> {
        self.journal.push(Entry::Told(self.now, *command));
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
        let entered: Vec<OrderHandle> = events
            .iter()
            .filter_map(|event| match &event.body {
                EventKind::Order(o) if matches!(o.what, ExecType::Entered | ExecType::Rejected) => {
                    Some(o.order)
                }
                _ => None,
            })
            .collect();
        if matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            self.handles.push(entered.first().copied().unwrap_or(OrderHandle::NONE));
        }
        let handles = entered.into_iter().filter(|handle| *handle != OrderHandle::NONE);
        for (nth, handle) in handles.enumerate() {
            self.twin.bind(handle, order + nth);
        }
    }

    /// Converts an event to the twin's type; `None` for events that the twin does not model.
    fn said(&self, body: &EventKind) -> Option<Said> {
        match body {
            // Sent again for readers that may have dropped the order.
            EventKind::Order(order) if matches!(order.what, ExecType::Replaced | ExecType::Snapshot) => None,
            EventKind::Order(order) if order.order == OrderHandle::NONE => {
                Some(Said::Unrecorded(order.reason))
            }
            EventKind::Order(_) | EventKind::Status(_) => {
                let event = Event { seq: 1, at: self.now, body: *body };
                let r = event.report().expect("an order event has a report");
                Some(Said::Report(Report {
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
            EventKind::Refused(r) => Some(Said::Refused(Refused {
                order: self.twin.order(r.order),
                request_id: r.request_id,
                request: r.request,
                status: r.status,
                reason: r.reason,
            })),
            EventKind::Booked(b) => Some(Said::Booked(Booked {
                order: self.twin.order(b.order),
                transaction: Transaction {
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
                position: Position {
                    qty: b.position.qty,
                    cost: b.position.cost,
                    realized: b.position.realized,
                },
                cash: b.cash,
            })),
            EventKind::Alert { alert, .. } => Some(Said::Alert(*alert)),
            EventKind::Done { reason, .. } => Some(Said::Done(*reason)),
            EventKind::Forgotten { .. }
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
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
            | EventKind::Sent { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => None,
        }
    }
}

pub fn source() -> Source {
    world::source(READER.0, 1)
}

fn take(out: &mut Outbox) -> Vec<Event> {
    let events: Vec<Event> = out.waiting().iter().map(|(_, event)| *event).collect();
    assert!(events.len() <= EVENTS_PER_COMMAND_MAX, "a step says at most so many events");
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
enum Thread {
    Order(usize),
    Unknown,
    Position(StrategyId, Option<SecurityId>),
    Alerts,
    Done,
}

fn threads(list: &[Said]) -> BTreeMap<Thread, Vec<Said>> {
    let mut threads: BTreeMap<Thread, Vec<Said>> = BTreeMap::new();
    for said in list {
        let thread = match said {
            Said::Report(report) => Thread::Order(report.order),
            Said::Refused(Refused { order: Some(order), .. }) => Thread::Order(*order),
            Said::Refused(_) | Said::Unrecorded(_) => Thread::Unknown,
            Said::Booked(booked) => {
                Thread::Position(booked.transaction.strategy, booked.transaction.security)
            }
            Said::Alert(_) => Thread::Alerts,
            Said::Done(_) => Thread::Done,
        };
        threads.entry(thread).or_default().push(*said);
    }
    threads
}

/// Compares the output, thread by thread: between threads the rules do not define an order.
fn compare(expected: &[Said], told: &[Said]) -> Result<(), String> {
    let (expected, told) = (threads(expected), threads(told));
    let keys: Vec<Thread> = expected.keys().chain(told.keys()).copied().collect();
    for key in keys {
        // The order's own reports show how a command about the order ended.
        if key == Thread::Done && !expected.contains_key(&key) {
            continue;
        }
        let (want, have) = (expected.get(&key), told.get(&key));
        if want != have {
            let list = |said: Option<&Vec<Said>>| {
                said.into_iter().flatten().map(|s| format!("    {s:?}\n")).collect::<String>()
            };
            return Err(format!("{key:?}\n  twin:\n{}  shard:\n{}", list(want), list(have)));
        }
    }
    Ok(())
}
