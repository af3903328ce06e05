//! A whole platform on one thread: shards, lanes, desks, a feed, an outside venue, a treasury, a view. A seed picks
//! who moves next, how far, when time passes, and who is slow.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pitlane_engine::command::{Body as Told, Command, Limits, Scope, Watch};
use pitlane_engine::desk::{Closing, Desk, DeskSettings, IdBlock, Ticket};
use pitlane_engine::event::{Body, Event, What};
use pitlane_engine::feed::{Feed, FeedSettings};
use pitlane_engine::id::{IntId, Origin, PortId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{Broadcast, Depths, PortClass, PortEnd, mesh};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::{Route, Shard, route};
use pitlane_engine::time::Timestamp;
use pitlane_engine::treasury::Treasury;
use pitlane_engine::view::{Order, View, ViewSettings};
use pitlane_engine::worker::{ALL_STORED, Taken, Worker};

use crate::checks::Checker;
use crate::dice::Dice;
use crate::keep::{self, Entry};
use crate::outside::{self, Outside};
use crate::pair::fold;
use crate::workload::{Deed, Profile, Workload};
use crate::world;

/// Ports by number. Operator, clock and treasury share the first.
const CLASSES: [PortClass; 9] = [
    PortClass::Control,
    PortClass::Venue,
    PortClass::Client,
    PortClass::Client,
    PortClass::Client,
    PortClass::Feed,
    PortClass::Client,
    PortClass::Client,
    PortClass::Client,
];
const CONTROL: PortId = PortId(0);
const DESKS: [(PortId, Origin); 3] =
    [(PortId(2), Origin::Fix), (PortId(3), Origin::Rest), (PortId(4), Origin::Strategy)];
const FEED: PortId = PortId(5);
const VIEW: PortId = PortId(6);
/// Hears everything and is never slow: what the checkers see.
const MONITOR: PortId = PortId(7);
/// Asks for a snapshot at the end.
const LATECOMER: PortId = PortId(8);

/// Rounds within which everything must have come to rest.
const SETTLING_ROUNDS_MAX: usize = 20_000;
/// Commands the control port has decided on and not yet sent.
const CONTROL_SLOTS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct Setup {
    pub shards: u8,
    pub depths: Depths,
    pub settings: ShardSettings,
    pub profile: Profile,
    /// Limits of strategy 1, set before anything is traded.
    pub limits: Option<Limits>,
    pub storage: Storage,
    pub steps: usize,
}

/// How what is journaled gets stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Storage {
    /// Whether it takes time, so that events wait for it.
    pub slow: bool,
    /// Of a thousand moves, how many shut the journal of a shard or open it again.
    pub shuts_permille: u64,
    /// Of a thousand moves, how many put a shard away and take it out again.
    pub reloads_permille: u64,
}

/// What a shard was told, and how much of it is safe.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub entries: Vec<Entry>,
    stored: u64,
    shut: bool,
}

/// A client's thread.
#[derive(Debug)]
struct Client {
    desk: Desk,
    origin: Origin,
    port: PortId,
    /// Ids of the orders it sent, by number among all submitted.
    sent: BTreeMap<usize, IntId>,
    /// Steps for which it does not listen.
    asleep: u64,
    token: u32,
    heard: u64,
}

#[derive(Debug)]
pub struct Platform {
    pub now: Timestamp,
    dice: Dice,
    workload: Workload,
    ports: Vec<PortEnd>,
    workers: Vec<Worker>,
    pub journals: Vec<Journal>,
    storage: Storage,
    pub checkers: Vec<Checker>,
    clients: Vec<Client>,
    outside: Outside,
    feed: Feed,
    /// A price that did not fit.
    feed_slot: Option<(ShardId, Command)>,
    treasury: Treasury,
    limits: Option<Limits>,
    control: VecDeque<Errand>,
    view: View,
    view_asleep: u64,
    control_asleep: u64,
    reference: Arc<RefData>,
    shards: u8,
    submitted: usize,
    pub hash: u64,
    pub trace: Option<Vec<String>>,
}

/// What the control port has to send.
#[derive(Debug)]
enum Errand {
    One(ShardId, Command),
    All(Broadcast),
}

type Finding = Result<(), String>;

impl Platform {
    pub fn new(seed: u64, setup: &Setup) -> Platform {
        let mut dice = Dice::new(seed);
        let reference = world::reference();
        let (ports, ends) = mesh(&CLASSES, setup.shards, setup.depths);
        let shard = |id: u8| Shard::new(ShardId(id), setup.shards, reference.clone(), setup.settings.clone());
        let workers: Vec<Worker> =
            ends.into_iter().enumerate().map(|(id, end)| Worker::new(shard(id as u8), end)).collect();
        let profile = Profile { reports: false, ..setup.profile.clone() };
        let mut platform = Platform {
            now: world::start(),
            workload: Workload::new(dice.fork(), profile),
            ports,
            journals: vec![Journal::default(); workers.len()],
            // Nothing goes wrong before the opening.
            storage: Storage::default(),
            workers,
            checkers: (0..setup.shards).map(|id| Checker::new(ShardId(id), reference.clone())).collect(),
            clients: DESKS.iter().map(|&(port, origin)| Client::new(port, origin, setup.shards)).collect(),
            outside: Outside::new(dice.fork()),
            feed: feed(&reference, dice.roll()),
            feed_slot: None,
            // Its own session, so that its answers are told from the operator's.
            treasury: Treasury::new(setup.shards, Source { session: 2, ..source(CONTROL, Origin::Server) }),
            limits: setup.limits,
            control: VecDeque::new(),
            view: View::new(setup.shards, ViewSettings::default()),
            view_asleep: 0,
            control_asleep: 0,
            reference,
            shards: setup.shards,
            submitted: 0,
            hash: 0,
            trace: None,
            dice,
        };
        platform.open();
        platform.storage = setup.storage;
        platform
    }

    /// Everybody says what they want to hear; strategies run; limits are set.
    fn open(&mut self) {
        let watches = [
            (MONITOR, Watch::Everything),
            (MONITOR, Watch::Venue(world::OUTSIDE_ADAPTER)),
            (VIEW, Watch::Everything),
            (outside::PORT, Watch::Venue(world::OUTSIDE_ADAPTER)),
            (CONTROL, Watch::Budgets),
        ];
        for (port, what) in watches {
            self.errand_all(Told::Watch { port, what, on: true });
        }
        self.errand_all(Told::Snapshot { port: VIEW });
        for deed in Workload::opening() {
            // The outside venue itself says when it is connected.
            if let Deed::Plain(body @ Told::Phase { .. }) = deed {
                self.errand_all(body);
            }
        }
        if let Some(limits) = self.limits {
            let scope = Scope::Strategy(StrategyId(1));
            self.errand_all(Told::Limits { scope, limits });
            let control = &mut self.control;
            self.treasury.set_limits(scope, &limits, |shard, command| {
                control.push_back(Errand::One(shard, command));
            });
        }
        for security in world::SECURITIES {
            self.feed.set_on(security, true, self.now);
        }
        // Nobody trades before the limits are in force.
        let shards = self.shards;
        while !self.control.is_empty() || !(0..shards).all(|shard| self.view.is_complete(ShardId(shard))) {
            self.round().expect("nothing goes wrong before the opening");
        }
        self.round().expect("nothing goes wrong before the opening");
        self.outside.chaos = true;
    }

    fn errand_all(&mut self, body: Told) {
        let command = Command { source: source(CONTROL, Origin::Server), token: 1, body };
        self.control.push_back(Errand::All(Broadcast::new(command)));
    }
}

// Chaos.
impl Platform {
    /// One move of somebody.
    pub fn step(&mut self) -> Finding {
        match self.dice.below(20) {
            0..=5 => self.move_worker(),
            6..=11 => self.move_client(),
            12 | 13 => {
                self.outside.poll(&mut self.ports[outside::PORT.0 as usize]);
                Ok(())
            }
            14 | 15 => {
                self.move_control();
                Ok(())
            }
            16 => {
                self.move_feed();
                Ok(())
            }
            17 | 18 => {
                self.move_view();
                Ok(())
            }
            _ => {
                let ns = self.dice.pick(&[1, 1_000, 1_000_000, 50_000_000, 400_000_000]);
                self.now = self.now.plus(ns);
                Ok(())
            }
        }
    }

    fn move_worker(&mut self) -> Finding {
        let at = self.dice.below(self.workers.len() as u64) as usize;
        self.move_journal(at)?;
        for _ in 0..=self.dice.below(3) {
            self.poll_worker(at)?;
        }
        Ok(())
    }

    /// Something becomes safe; at times a disk is full, or a shard goes on from its image.
    fn move_journal(&mut self, at: usize) -> Finding {
        let journal = &mut self.journals[at];
        if self.dice.percent(50) {
            let waiting = journal.entries.len() as u64 - journal.stored;
            journal.stored += self.dice.below(waiting + 1);
        }
        if self.dice.below(1_000) < self.storage.shuts_permille {
            journal.shut = !journal.shut;
        }
        if self.dice.below(1_000) < self.storage.reloads_permille && !self.workers[at].has_work() {
            self.reload(at)?;
        }
        Ok(())
    }

    fn reload(&mut self, at: usize) -> Finding {
        let worker = self.workers.remove(at);
        let seq = worker.seq();
        let (shard, end) = worker.into_parts();
        let loaded = keep::reloaded(&shard, self.shards)?;
        self.workers.insert(at, Worker::restored(loaded, end, seq, self.now));
        Ok(())
    }

    fn poll_worker(&mut self, at: usize) -> Result<(), String> {
        let journal = &mut self.journals[at];
        let stored = if self.storage.slow { journal.stored } else { ALL_STORED };
        self.workers[at].poll_with(self.now, stored, |number, now, command, _| {
            // Cancels and switches have a reserve.
            let spares = matches!(command.body, Told::Cancel { .. } | Told::Kill { .. });
            if journal.shut && !spares {
                return Taken::No;
            }
            journal.entries.push(Entry::Told(now, *command));
            assert_eq!(number, journal.entries.len() as u64, "every command has its number");
            Taken::Yes
        });
        self.monitor()?;
        if !self.workers[at].has_work() {
            self.workers[at].shard().audit();
        }
        Ok(())
    }

    /// What the monitor hears goes to the checkers at once.
    fn monitor(&mut self) -> Finding {
        while let Some((shard, event)) = self.ports[MONITOR.0 as usize].poll_event() {
            self.hash = fold(self.hash.rotate_left(1) ^ shard.0 as u64, &event);
            if let Some(trace) = &mut self.trace {
                trace.push(format!("{} shard {} {:?}", event.at, shard.0, event.body));
            }
            self.check_budget(&event)?;
            self.checkers[shard.0 as usize].read(&event)?;
        }
        Ok(())
    }

    /// A limit that spans shards is never exceeded, whoever holds its parts.
    fn check_budget(&self, event: &Event) -> Finding {
        let (Some(limits), Body::Order(order)) = (&self.limits, &event.body) else { return Ok(()) };
        let strategy = order.terms.strategy;
        if strategy != StrategyId(1) || order.what != What::Entered || limits.max_open_orders == 0 {
            return Ok(());
        }
        let open: usize = self.checkers.iter().map(|checker| checker.open_orders(strategy)).sum();
        if open as u64 >= limits.max_open_orders as u64 {
            return Err(format!("{} open orders and one more, at most {}", open, limits.max_open_orders));
        }
        Ok(())
    }

    fn move_client(&mut self) -> Finding {
        let at = self.dice.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[at];
        if client.asleep > 0 {
            client.asleep -= 1;
            return Ok(());
        }
        if self.dice.percent(2) {
            client.asleep = self.dice.below(200);
        }
        client.listen(&mut self.ports, self.dice.pick(&[1, 4, usize::MAX]))?;
        let deed = self.workload.next(self.now);
        self.perform(at, &deed)
    }

    fn perform(&mut self, at: usize, deed: &Deed) -> Finding {
        let nth =
            |nth: usize, clients: &[Client]| clients[at].sent.range(..=nth).next_back().map(|(_, &id)| id);
        let declined = match *deed {
            Deed::Plain(Told::Submit { id, terms }) => {
                let number = self.submitted;
                self.submitted += 1;
                // At times an id that was used before.
                let id = if self.dice.percent(3) { nth(number, &self.clients).unwrap_or(id) } else { id };
                let client = &mut self.clients[at];
                let ticket = client.ticket(id);
                let port = &mut self.ports[client.port.0 as usize];
                client.desk.submit(port, ticket, terms).map(|id| {
                    client.sent.insert(number, id);
                })
            }
            Deed::Plain(Told::Close { id, strategy, account, security, qty }) => {
                let number = self.submitted;
                self.submitted += 1;
                let client = &mut self.clients[at];
                let ticket = client.ticket(id);
                let port = &mut self.ports[client.port.0 as usize];
                let closing = Closing { strategy, account, security, qty };
                client.desk.close(port, ticket, closing).map(|id| {
                    client.sent.insert(number, id);
                })
            }
            Deed::Modify { nth: n, id, changes } => {
                let Some(order) = nth(n, &self.clients) else { return Ok(()) };
                let own = self.dice.percent(50);
                let client = &mut self.clients[at];
                let ticket = client.ticket(if own { id } else { IntId::NONE });
                let port = &mut self.ports[client.port.0 as usize];
                client.desk.modify(port, ticket, &order, changes).map(|_| ())
            }
            Deed::Cancel { nth: n, id } => {
                let Some(order) = nth(n, &self.clients) else { return Ok(()) };
                let client = &mut self.clients[at];
                let ticket = client.ticket(id);
                let port = &mut self.ports[client.port.0 as usize];
                client.desk.cancel(port, ticket, &order).map(|_| ())
            }
            Deed::Plain(body) => {
                if self.control.len() < CONTROL_SLOTS_MAX {
                    self.route(body);
                }
                Ok(())
            }
            Deed::Wait(_) | Deed::Report { .. } => Ok(()),
        };
        match declined.map_err(|declined| declined.reason) {
            Ok(())
            | Err(
                Reason::LaneFull
                | Reason::DuplicateId
                | Reason::OrderFinished
                | Reason::NotAcknowledged
                | Reason::RequestPending
                | Reason::UnknownOrder
                | Reason::ShardFull,
            ) => Ok(()),
            Err(reason) => Err(format!("a desk should not decline for {reason:?}")),
        }
    }

    /// What an operator or a feed says goes to the shard of its security, or to all.
    fn route(&mut self, body: Told) {
        match body {
            // The treasury is the one who gives budgets, and the outside venue knows its own connection.
            Told::Budget(_) | Told::Adapter { .. } => return,
            Told::Limits { .. } if self.limits.is_some() => return,
            _ => {}
        }
        let Route::One(shard) = route(&body, self.shards) else { return self.errand_all(body) };
        let command = Command { source: source(CONTROL, Origin::Server), token: 1, body };
        self.control.push_back(Errand::One(shard, command));
    }

    fn move_control(&mut self) {
        if self.control_asleep > 0 {
            self.control_asleep -= 1;
            return;
        }
        if self.dice.percent(2) {
            self.control_asleep = self.dice.below(50);
        }
        self.poll_control();
    }

    /// Listens for the treasury and sends what is due, in its order.
    fn poll_control(&mut self) -> usize {
        let port = &mut self.ports[CONTROL.0 as usize];
        let mut work = 0;
        let control = &mut self.control;
        while let Some((shard, event)) = port.poll_event() {
            work += 1;
            self.treasury.handle_event(shard, &event, |shard, command| {
                control.push_back(Errand::One(shard, command));
            });
        }
        while let Some(errand) = self.control.front_mut() {
            let sent = match errand {
                Errand::One(shard, command) => port.send(*shard, *command).is_ok(),
                Errand::All(broadcast) => port.send_all(broadcast),
            };
            if !sent {
                break;
            }
            self.control.pop_front();
            work += 1;
        }
        work
    }

    fn move_feed(&mut self) {
        let port = &mut self.ports[FEED.0 as usize];
        while port.poll_event().is_some() {}
        for _ in 0..4 {
            let next = self.feed_slot.take().or_else(|| {
                let command = self.feed.poll(self.now)?;
                match route(&command.body, self.shards) {
                    Route::One(shard) => Some((shard, command)),
                    Route::All => None,
                }
            });
            let Some((shard, command)) = next else { return };
            if port.send(shard, command).is_err() {
                self.feed_slot = Some((shard, command));
                return;
            }
        }
    }

    fn move_view(&mut self) {
        if self.view_asleep > 0 {
            self.view_asleep -= 1;
            return;
        }
        if self.dice.percent(3) {
            self.view_asleep = self.dice.below(100);
        }
        let most = self.dice.pick(&[1, 8, usize::MAX]);
        self.poll_view(most);
    }

    fn poll_view(&mut self, most: usize) -> usize {
        let port = &mut self.ports[VIEW.0 as usize];
        let mut count = 0;
        while count < most {
            let Some((shard, event)) = port.poll_event() else { break };
            self.view.apply(shard, &event);
            count += 1;
        }
        count
    }
}

// Settling.
impl Platform {
    /// Nobody sleeps, nobody misbehaves, nothing new is asked for; everything must come to rest, and then agree.
    pub fn settle(&mut self) -> Finding {
        self.outside.chaos = false;
        self.storage = Storage::default();
        self.journals.iter_mut().for_each(|journal| journal.shut = false);
        let mut idle = 0;
        for _ in 0..SETTLING_ROUNDS_MAX {
            idle = if self.round()? == 0 { idle + 1 } else { 0 };
            let deadline = self.workers.iter().filter_map(Worker::deadline).min();
            match deadline {
                // What is still on its way, or dated, has its time.
                Some(deadline) if idle >= 3 => self.now = self.now.max(deadline),
                None if idle >= 3 => return self.agree(),
                Some(_) | None => self.now = self.now.plus(1_000),
            }
        }
        let workers: Vec<_> = self.workers.iter().map(|w| (w.has_work(), w.deadline(), w.counts())).collect();
        Err(format!(
            "it does not come to rest at {}: {workers:?}, outside {}, control {:?}",
            self.now,
            self.outside.is_idle(),
            self.control,
        ))
    }

    /// Everybody moves once. Says how much was done.
    fn round(&mut self) -> Result<usize, String> {
        let mut work = 0;
        for at in 0..self.workers.len() {
            let (before, told) = (self.workers[at].counts(), self.journals[at].entries.len());
            self.poll_worker(at)?;
            work += (self.workers[at].counts() != before && self.workers[at].has_work()) as usize;
            work += self.journals[at].entries.len() - told;
        }
        for client in &mut self.clients {
            work += client.listen(&mut self.ports, usize::MAX)?;
        }
        work += self.outside.poll(&mut self.ports[outside::PORT.0 as usize]);
        work += self.poll_control();
        while self.ports[FEED.0 as usize].poll_event().is_some() {}
        work += self.poll_view(usize::MAX);
        Ok(work + !self.outside.is_idle() as usize)
    }

    fn agree(&mut self) -> Finding {
        for checker in &self.checkers {
            checker.settled()?;
        }
        for client in &self.clients {
            client.agrees(&self.checkers)?;
        }
        self.view_agrees()?;
        self.journals_agree()
    }

    /// Every journal, played to a new shard, gives the shard there is.
    fn journals_agree(&self) -> Finding {
        for (worker, journal) in self.workers.iter().zip(&self.journals) {
            let shard = worker.shard();
            let fresh = Shard::new(shard.id(), self.shards, self.reference.clone(), shard.settings().clone());
            keep::check_replay(&journal.entries, fresh, shard, Some(worker.seq()))?;
        }
        Ok(())
    }

    /// A view that starts now from a snapshot sees what the one kept by events sees.
    fn view_agrees(&mut self) -> Finding {
        let mut fresh = View::new(self.shards, ViewSettings::default());
        let command = Command {
            source: source(LATECOMER, Origin::Server),
            token: 9,
            body: Told::Snapshot { port: LATECOMER },
        };
        let mut broadcast = Broadcast::new(command);
        for _ in 0..SETTLING_ROUNDS_MAX {
            self.ports[LATECOMER.0 as usize].send_all(&mut broadcast);
            self.round()?;
            while let Some((shard, event)) = self.ports[LATECOMER.0 as usize].poll_event() {
                fresh.apply(shard, &event);
            }
            if (0..self.shards).all(|shard| fresh.is_complete(ShardId(shard))) {
                return self.same(&fresh);
            }
        }
        Err("the snapshot does not end".to_string())
    }

    fn same(&self, fresh: &View) -> Finding {
        for shard in 0..self.shards {
            if !self.view.is_complete(ShardId(shard)) {
                return Err(format!("the view has no snapshot of shard {shard}"));
            }
        }
        // Of the ids before the last modification a shard knows one only.
        let told = |order: Order| Order { first_id: order.id, ..order };
        let open = |view: &View| {
            let mut list: Vec<_> = view.open_orders().map(told).collect();
            list.sort_by_key(|order| order.handle);
            list
        };
        differ("open orders", &open(&self.view), &open(fresh))?;
        for order in fresh.finished_orders() {
            let kept = self.view.order(order.handle).map(told);
            differ("a finished order", &kept, &Some(told(order)))?;
        }
        let held: usize =
            self.checkers.iter().map(|c| c.orders.values().filter(|o| !o.status.is_finished()).count()).sum();
        differ("number of open orders", &self.view.open_orders_len(), &held)?;
        let positions = |view: &View| view.positions().map(|p| (p.id, p.state)).collect::<Vec<_>>();
        differ("positions", &positions(&self.view), &positions(fresh))?;
        let cash = |view: &View| {
            view.cash_balances().map(|c| (c.strategy, c.currency, c.amount)).collect::<Vec<_>>()
        };
        differ("cash", &cash(&self.view), &cash(fresh))?;
        let ticks = |view: &View| view.ticks().copied().collect::<Vec<_>>();
        differ("ticks", &ticks(&self.view), &ticks(fresh))?;
        for strategy in self.reference.strategies() {
            differ("phase", &self.view.phase(strategy.id), &fresh.phase(strategy.id))?;
        }
        for exchange in self.reference.exchanges() {
            differ("session", &self.view.session(exchange.id), &fresh.session(exchange.id))?;
        }
        let kills = |view: &View| view.kills().collect::<Vec<_>>();
        differ("switches", &kills(&self.view), &kills(fresh))?;
        let restrictions = |view: &View| view.restrictions().collect::<Vec<_>>();
        differ("restrictions", &restrictions(&self.view), &restrictions(fresh))?;
        let halts = |view: &View| view.halts().collect::<Vec<_>>();
        differ("halts", &halts(&self.view), &halts(fresh))
    }

    /// The last commands of each shard, for the trace.
    pub fn journal(&self) -> String {
        let mut text = String::new();
        for (shard, journal) in self.journals.iter().enumerate() {
            for entry in &journal.entries {
                if let Entry::Told(at, command) = entry {
                    text += &format!("{at} to shard {shard} {:?}\n", command.body);
                }
            }
        }
        text
    }

    /// Events heard by each desk: a run in which nobody hears anything proves nothing.
    pub fn heard(&self) -> u64 {
        self.clients.iter().map(|client| client.heard).sum()
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, kept: &T, fresh: &T) -> Finding {
    if kept == fresh {
        return Ok(());
    }
    Err(format!("{what}:\n  kept by events {kept:?}\n  from a snapshot {fresh:?}"))
}

impl Client {
    fn new(port: PortId, origin: Origin, shards: u8) -> Client {
        let settings = DeskSettings {
            port,
            shards,
            orders_max: 4_096,
            ids_max: 16_384,
            finished_max: 4_096,
            prefix: b'd',
            seed: 1,
        };
        let numbers = IdBlock { next: 1, end: 1_000_000 };
        let desk = Desk::new(settings, numbers);
        Client { desk, origin, port, sent: BTreeMap::new(), asleep: 0, token: 0, heard: 0 }
    }

    fn ticket(&mut self, id: IntId) -> Ticket {
        self.token += 1;
        Ticket { source: source(self.port, self.origin), token: self.token, id }
    }

    fn listen(&mut self, ports: &mut [PortEnd], most: usize) -> Result<usize, String> {
        let port = &mut ports[self.port.0 as usize];
        let mut work = 0;
        while work < most {
            let Some((_, event)) = port.poll_event() else { break };
            self.heard += 1;
            work += 1;
            self.desk.handle_event(&event);
        }
        Ok(work + self.desk.poll(port))
    }

    /// Every order sent has an end or a place, and desk and shard say the same of it.
    fn agrees(&self, checkers: &[Checker]) -> Finding {
        for id in self.sent.values() {
            // Finished orders may be forgotten by now.
            let Some(known) = self.desk.order(1, id) else { continue };
            let shard = known.order.shard().0 as usize;
            let Some(seen) = checkers.get(shard).and_then(|checker| checker.orders.get(&known.order)) else {
                if known.finished {
                    continue;
                }
                return Err(format!("a desk knows {id} as {:?}, and no shard does", known.status));
            };
            if (seen.status, seen.id) != (known.status, known.id) {
                return Err(format!(
                    "{id}: desk {:?} {}, shard {:?} {}",
                    known.status, known.id, seen.status, seen.id
                ));
            }
        }
        Ok(())
    }
}

fn source(port: PortId, origin: Origin) -> Source {
    Source { origin, port, session: 1 }
}

fn feed(reference: &RefData, seed: u64) -> Feed {
    let settings = FeedSettings { seed, source: source(FEED, Origin::Server), ..FeedSettings::default() };
    Feed::new(reference, settings)
}
