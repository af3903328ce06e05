//! Servers that are down over closes, rollovers and expiries, and clocks that jump over them:
//! whatever lives for a session or a day must end at its time, however the time was spent. The
//! model computes hours by plain arithmetic in UTC.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_config::trading_hours::Calendar;
use pitlane_config::{Config, HoursBy, SettleBy};
use pitlane_engine::command::{Command, CommandKind, Movement, MovementKind, RiskLimits, Trade, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{
    AccountId, Currency, ExchangeId, IntId, Origin, PortId, SecurityId, ShardId, Source, StrategyId,
    TransactionId, Uuid,
};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::number::Money;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::{RefData, RefDataRows};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::{Shard, shard_of};
use pitlane_engine::terms::{OrderKind, Side, Status, Terms, Tif};
use pitlane_engine::time::{Day, NS_PER_S, TimeOfDay, Timestamp};
use pitlane_engine::view::{View, ViewSettings};
use pitlane_engine::worker::Worker;
use pitlane_gateway::control::{Control, ControlSettings, session_states};

use crate::dice::Dice;
use crate::replay;
use crate::test_market::{self, AUCTIONS, FUTURES, PLAIN, SHARES};

const SHARDS: u8 = 2;
const CONTROL: PortId = PortId(0);
const CLIENT: PortId = PortId(1);
const CLASSES: [PortClass; 2] = [PortClass::Control, PortClass::Client];
/// Most cycles until a server must have settled.
const ROUNDS_MAX: usize = 10_000;
const MINUTE: u64 = 60 * NS_PER_S;
const SETTLED_AT: &str = "77.25";
const LAST: &str = "88.5";

/// An order as the model knows it.
#[derive(Clone, Copy, Debug)]
struct Entered {
    security: SecurityId,
    tif: Tif,
    at: Timestamp,
}

#[derive(Debug)]
struct HoursServer {
    control: Control,
    workers: Vec<Worker>,
    client: PortEnd,
}

#[derive(Debug)]
pub struct HoursModel {
    dice: Dice,
    config: Config,
    reference: Arc<RefData>,
    now: Timestamp,
    server: Option<HoursServer>,
    /// Shards of a server that is down.
    shards: Vec<(Shard, u64)>,
    orders: BTreeMap<IntId, Entered>,
    status: BTreeMap<IntId, (Status, Reason)>,
    view: View,
    /// Quantities bought for the server itself, by security.
    bought: BTreeMap<SecurityId, i64>,
    /// Expirations received, snapshots included.
    expirations: BTreeMap<TransactionId, (SecurityId, i64)>,
    number: u64,
    pub trace: Vec<String>,
}

impl HoursModel {
    pub fn new(seed: u64) -> HoursModel {
        let mut dice = Dice::new(seed ^ 0x4042);
        let mut config = Config::default();
        let hours = &mut config.calendar.hours;
        hours.by = HoursBy::Exchange;
        hours.opening_auction_s = dice.pick(&[0, 300]);
        hours.closing_auction_s = dice.pick(&[0, 300]);
        let mut ahead = || i32::try_from(dice.between(4, 20)).expect("a small number");
        hours.holidays = (0..3).map(|_| Day(test_market::START_DAY + ahead())).collect();
        config.service.trading_day_rollover = TimeOfDay(dice.pick(&[0, 12, 15, 22]) * 3_600);
        config.risk.strategies.limits = RiskLimits::default();
        config.risk.accounts.limits = RiskLimits::default();
        config.settlement.by = SettleBy::Last;
        config.settlement.prices.insert("S6".to_string(), test_market::price(SETTLED_AT));
        let reference = Arc::new(Calendar::fit(&config, reference(&mut dice)));
        let settings = ShardSettings::default();
        let shard = |id| Shard::new(ShardId(id), SHARDS, reference.clone(), settings.clone());
        let mut hours = HoursModel {
            dice,
            config,
            now: test_market::start(),
            server: None,
            shards: (0..SHARDS).map(|id| (shard(id), 0)).collect(),
            reference,
            orders: BTreeMap::new(),
            status: BTreeMap::new(),
            view: View::new(SHARDS, ViewSettings::default()),
            bought: BTreeMap::new(),
            expirations: BTreeMap::new(),
            number: 0,
            trace: Vec::new(),
        };
        hours.start();
        hours
    }

    pub fn step(&mut self) -> Result<(), String> {
        self.settle()?;
        self.check()?;
        match self.dice.below(10) {
            0..=4 => self.submit()?,
            5 => self.buy()?,
            6 | 7 => self.pass(),
            8 => self.rest(),
            _ => self.tumble(),
        }
        Ok(())
    }

    /// Advances the clock: by minutes, or by a day and more in one jump.
    fn pass(&mut self) {
        let minutes = self.dice.pick(&[1, 7, 60, 200, 500, 2_000]);
        self.now = self.now.plus(minutes * MINUTE + self.dice.below(MINUTE));
        self.trace.push(format!("{} the clock has moved", self.now));
    }

    /// Stops the server for a while.
    fn rest(&mut self) {
        self.stop();
        let minutes = self.dice.pick(&[1, 60, 300, 900, 3_000, 14_000, 200_000]);
        self.now = self.now.plus(minutes * MINUTE + self.dice.below(MINUTE));
        self.start();
    }

    /// Starts that are interrupted, before or after some of their work.
    fn tumble(&mut self) {
        for _ in 0..=self.dice.below(3) {
            self.rest();
            for _ in 0..self.dice.below(12) {
                self.round();
            }
        }
        self.rest();
    }

    fn start(&mut self) {
        let (mut ports, ends) = mesh(&CLASSES, SHARDS, Depths { commands: 2, events: 8 });
        let client = ports.pop().expect("there are two");
        let control = ports.pop().expect("there are two");
        let mut out = Outbox::new(0);
        let mut begun = Vec::new();
        for (mut shard, seq) in self.shards.drain(..) {
            shard.begin(self.now, self.reference.clone(), ShardSettings::default(), &mut out);
            drain(&mut shard, &mut out);
            begun.push((shard, seq + 1_000));
        }
        let session_states = session_states(begun.iter().map(|(shard, _)| shard));
        let control_settings = ControlSettings::of(&self.config, &self.reference);
        let worker = |((shard, seq), end)| Worker::restored(shard, end, seq, self.now);
        let workers = begun.into_iter().zip(ends).map(worker).collect();
        let control = Control::new(control, self.now, control_settings, session_states);
        let mut server = HoursServer { control, workers, client };
        for shard in 0..SHARDS {
            let watch = CommandKind::Watch { port: CLIENT, what: WatchTarget::Everything, on: true };
            for body in [watch, CommandKind::Snapshot { port: CLIENT }] {
                let command = Command::new(source(), 0, body);
                server.client.send(ShardId(shard), command).expect("the lanes are empty");
            }
        }
        self.server = Some(server);
        // Orders that a snapshot no longer contains have finished and are forgotten.
        self.view = View::new(SHARDS, ViewSettings::default());
        self.status.values_mut().for_each(|status| *status = (Status::Expired, Reason::None));
        self.trace.push(format!("{} started", self.now));
    }

    /// Stops the server like a crash: commands that were not applied are lost, and a journal
    /// restores the rest.
    fn stop(&mut self) {
        self.receive();
        let Some(server) = self.server.take() else { return };
        let mut out = Outbox::new(0);
        for worker in server.workers {
            let seq = worker.seq();
            let (mut shard, _) = worker.into_parts();
            drain(&mut shard, &mut out);
            if self.dice.percent(50) {
                shard = replay::reloaded(&shard, SHARDS).expect("an image gives the same shard");
            }
            self.shards.push((shard, seq));
        }
        self.trace.push(format!("{} stopped", self.now));
    }

    fn round(&mut self) -> usize {
        let Some(server) = &mut self.server else { return 0 };
        let now = self.now;
        let mut work = server.control.drain_events(|_, _| {}) + server.control.poll(now, |_, _| {});
        work += server.workers.iter_mut().map(|worker| worker.poll(now)).sum::<usize>();
        work + self.receive()
    }

    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let is_complete = (0..SHARDS).all(|shard| self.view.is_complete(ShardId(shard)));
            let is_ready =
                self.server.as_ref().is_some_and(|server| server.control.is_ready()) && is_complete;
            if self.round() == 0 && is_ready {
                return Ok(());
            }
        }
        Err("it does not come to rest".to_string())
    }

    fn receive(&mut self) -> usize {
        let Some(server) = &mut self.server else { return 0 };
        let mut count = 0;
        while let Some((shard, event)) = server.client.poll_event() {
            self.view.apply(shard, &event);
            count += 1;
            note(&event, &mut self.status, &mut self.expirations);
            if event.report().is_some()
                || matches!(event.body, EventKind::Booked(_) | EventKind::Session { .. })
            {
                self.trace.push(format!("{} {:?}", event.at, event.body));
            }
        }
        count
    }

    fn send_command(&mut self, shard: ShardId, body: CommandKind) -> Result<(), String> {
        let command = Command::new(source(), 1, body);
        self.trace.push(format!("{} sent {body:?}", self.now));
        let server = self.server.as_mut().ok_or("it is down")?;
        server.client.send(shard, command).map_err(|_| "a lane is full at rest".to_string())?;
        self.settle()
    }

    fn submit(&mut self) -> Result<(), String> {
        let security = self.dice.pick(&[SHARES[0], SHARES[1], FUTURES[0], FUTURES[1], FUTURES[2]]);
        let tif = self.dice.pick(&[Tif::Day, Tif::Day, Tif::Gtc]);
        self.number += 1;
        let id = IntId::parse(format!("o{}", self.number).as_bytes()).expect("a sound id");
        let stop = self.dice.percent(30);
        let (kind, price) = if stop { (OrderKind::Stop, "1000") } else { (OrderKind::Limit, "1") };
        let terms = Terms {
            qty: test_market::qty("10"),
            kind,
            limit: if stop { Default::default() } else { test_market::price(price) },
            limit_given: !stop,
            stop: if stop { test_market::price(price) } else { Default::default() },
            stop_given: stop,
            tif,
            ..crate::shard_harness::limit(security, Side::Buy, "10", "1")
        };
        let expected = if self.is_expired(security) { Reason::ExpiredSecurity } else { Reason::None };
        self.send_command(shard_of(security, SHARDS), CommandKind::Submit { id, terms })?;
        let (status, reason) = *self.status.get(&id).ok_or("no event named an order")?;
        if (status == Status::Rejected, reason) != (expected != Reason::None, expected) {
            return Err(format!("{id} {security:?}: {status:?} {reason:?}, expected {expected:?}"));
        }
        if status != Status::Rejected {
            self.orders.insert(id, Entered { security, tif, at: self.now });
        }
        Ok(())
    }

    /// Buys a position in something that expires, and sets a last price.
    fn buy(&mut self) -> Result<(), String> {
        let security = self.dice.pick(&[FUTURES[1], FUTURES[2]]);
        if self.is_expired(security) {
            return Ok(());
        }
        self.number += 1;
        let movement = Movement {
            kind: MovementKind::Buy,
            strategy: StrategyId::SERVER,
            account: AccountId(1),
            security: Some(security),
            qty: test_market::qty("10"),
            price: test_market::price("50"),
            commission: Money::ZERO,
            currency: Currency::default(),
            uuid: Uuid(self.number as u128),
        };
        let trade = Trade { price: test_market::price(LAST), size: test_market::qty("10"), at: self.now };
        let shard = shard_of(security, SHARDS);
        self.send_command(shard, CommandKind::Trade { security, trade })?;
        self.send_command(shard, CommandKind::Transaction(movement))?;
        *self.bought.entry(security).or_default() += movement.qty.raw();
        Ok(())
    }

    /// Checks that every order is open or finished as its time requires, and that what has expired
    /// is settled once.
    fn check(&self) -> Result<(), String> {
        for (id, order) in &self.orders {
            let (status, reason) = self.status[id];
            let expected = match (self.is_expired(order.security), self.ends(order)) {
                (_, Some(end)) if end <= self.now => Reason::ExpiredDay,
                (true, _) => Reason::SecurityExpired,
                (false, _) => Reason::None,
            };
            let is_over = expected != Reason::None;
            // At the close of its last day both are true.
            let fits = reason == expected || is_over && status == Status::Expired;
            if status.is_finished() != is_over || !fits {
                return Err(format!(
                    "at {} {id} {order:?} is {status:?} {reason:?}, expected {expected:?}",
                    self.now
                ));
            }
        }
        for (&security, bought) in self.bought.iter().filter(|(security, _)| self.is_expired(**security)) {
            let left = self.view.positions().find(|held| held.id.security() == security);
            if left.is_some_and(|held| !held.state.qty.is_zero()) {
                return Err(format!("{security:?} has expired and {left:?} is left"));
            }
            // An expiration that was booked just before a crash may have been dropped from the
            // snapshot before it was received.
            let taken = self.expirations.values().filter(|(other, _)| *other == security);
            let taken: Vec<i64> = taken.map(|(_, qty)| *qty).collect();
            if !taken.is_empty() && taken != [-bought] {
                return Err(format!("{security:?}: {bought} bought, expired {taken:?}"));
            }
        }
        Ok(())
    }

    /// Returns when an order for a session or a day ends.
    fn ends(&self, order: &Entered) -> Option<Timestamp> {
        if order.tif != Tif::Day {
            return None;
        }
        let days = (order.at.day().0 - 1..).map(Day);
        let exchange = self.exchange_of(order.security);
        let mut ends = days.filter_map(|day| match self.close_of(exchange, day) {
            Some(close) => close,
            None => Some(instant(day, self.config.service.trading_day_rollover)),
        });
        ends.find(|end| *end > order.at)
    }

    fn is_expired(&self, security: SecurityId) -> bool {
        let row = self.reference.security(security).expect("a known one");
        let Some(day) = row.expiration else { return false };
        let over = match self.close_of(self.exchange_of(security), day) {
            Some(close) => close.expect("dates are trading days"),
            None => instant(Day(day.0 + 1), self.config.service.trading_day_rollover),
        };
        over <= self.now
    }

    /// Returns when an exchange closes on a day, if it does. `None`: it has no hours.
    fn close_of(&self, exchange: ExchangeId, day: Day) -> Option<Option<Timestamp>> {
        let row = self.reference.exchange(exchange).expect("a known one");
        if (row.open, row.close) == (TimeOfDay(0), TimeOfDay(86_400)) {
            return None;
        }
        let rests = is_weekend(day) || self.config.calendar.hours.holidays.contains(&day);
        Some((!rests).then(|| instant(day, row.close)))
    }

    fn exchange_of(&self, security: SecurityId) -> ExchangeId {
        self.reference.exchange_of(self.reference.security(security).expect("a known one")).id
    }
}

fn note(
    event: &Event,
    status: &mut BTreeMap<IntId, (Status, Reason)>,
    expirations: &mut BTreeMap<TransactionId, (SecurityId, i64)>,
) {
    if let Some(report) = event.report() {
        status.insert(report.id, (report.status, report.reason));
    }
    if let EventKind::Order(order) = &event.body {
        status.insert(order.id, (order.status, order.reason));
    }
    if let EventKind::Booked(booking) = &event.body
        && booking.kind == MovementKind::Expiration
    {
        let security = booking.security.expect("an expiration has a security");
        let expected = if security == FUTURES[1] { SETTLED_AT } else { LAST };
        assert_eq!(booking.price, test_market::price(expected), "settled at another price");
        expirations.insert(booking.id, (security, booking.qty.raw()));
    }
}

fn drain(shard: &mut Shard, out: &mut Outbox) {
    out.clear();
    while shard.has_work() {
        shard.resume(out);
        out.clear();
    }
}

fn source() -> Source {
    Source { origin: Origin::Rest, port: CLIENT, session: 1 }
}

fn instant(day: Day, time: TimeOfDay) -> Timestamp {
    day.start().plus(time.0 as u64 * NS_PER_S)
}

/// Day 0 was a Thursday.
fn is_weekend(day: Day) -> bool {
    matches!(day.0.rem_euclid(7), 2 | 3)
}

/// Returns the small market with other hours. Expiries are on trading days.
fn reference(dice: &mut Dice) -> RefData {
    let test_market = test_market::reference();
    let mut rows = RefDataRows {
        exchanges: test_market.exchanges().to_vec(),
        families: test_market.families().to_vec(),
        securities: test_market.securities().to_vec(),
        accounts: test_market.accounts().to_vec(),
        strategies: test_market.strategies().to_vec(),
    };
    let hours = [(9, 17), (0, 24), (17, 16), (18, 18), (0, 12)];
    for id in [AUCTIONS, PLAIN] {
        let row = rows.exchanges.iter_mut().find(|row| row.id == id).expect("it is there");
        let (open, close) = dice.pick(&hours);
        (row.open, row.close) = (TimeOfDay(open * 3_600), TimeOfDay(close * 3_600));
    }
    RefData::check(rows).expect("the little market is sound")
}

/// The control port is the platform's own.
const _: () = assert!(CONTROL.0 == 0);
