//! The shard behind a venue's adapter, for tests: one shard, and a client that sends orders to it.
//! The adapter is the caller's.

use std::collections::BTreeMap;

use pitlane_engine::command::{Command, CommandKind, StrategyPhase, Trade, WatchTarget};
use pitlane_engine::event::{
    Alert, Event, EventKind, Instruction, LevelsKind, OrderReport, RequestRefusal, Tick,
};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, SecurityId, ShardId, Source};
use pitlane_engine::level_book::{LevelBook, LevelsProgress};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::number::Qty;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, SpecialTerms, Terms, Tif};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::Worker;
use pitlane_protocols::venue::VenueReports;

use crate::test_market;

const CONTROL: PortId = PortId(0);
const VENUE: PortId = PortId(1);
const CLIENT: PortId = PortId(2);

#[derive(Debug)]
pub struct VenueShard {
    worker: Worker,
    ports: Vec<PortEnd>,
    reported_synchronizations: Option<u64>,
    /// Whether the shard is informed of the venue's connection.
    pub informs: bool,
    /// Whether reports reach the shard: if not, the process ends before its journal has them.
    pub stores: bool,
    /// Orders by their first id.
    orders: BTreeMap<String, ReportedState>,
    pub alerts: Vec<Alert>,
    pub refusals: Vec<RequestRefusal>,
    /// The last tick of each security.
    pub ticks: BTreeMap<SecurityId, Tick>,
    /// The watched book of each security, and how many snapshots of it came.
    pub books: BTreeMap<SecurityId, (LevelBook, usize)>,
}

/// What the client knows of its order.
#[derive(Clone, Copy, Debug)]
pub struct ReportedState {
    pub last: OrderReport,
    pub fills: usize,
}

fn limit_terms(side: Side, qty: &str, limit: &str, tif: Tif) -> Terms {
    Terms {
        security: SecurityId(8),
        strategy: test_market::STRATEGIES[1],
        account: test_market::OUTSIDE_ACCOUNT,
        side,
        kind: OrderKind::Limit,
        qty: test_market::qty(qty),
        limit: test_market::price(limit),
        limit_given: true,
        tif,
        ..Terms::default()
    }
}

/// Returns the source of the adapter's commands.
pub fn source() -> Source {
    Source { origin: Origin::Server, port: VENUE, session: 0xff01 }
}

impl Default for VenueShard {
    fn default() -> VenueShard {
        VenueShard::new()
    }
}

impl VenueShard {
    pub fn new() -> VenueShard {
        let classes = [PortClass::Control, PortClass::Venue, PortClass::Client];
        let (ports, mut ends) = mesh(&classes, 1, Depths::default());
        let shard = Shard::new(ShardId(0), 1, test_market::reference(), ShardSettings::default());
        let mut shard = VenueShard {
            worker: Worker::new(shard, ends.remove(0)),
            ports,
            reported_synchronizations: None,
            informs: true,
            stores: true,
            orders: BTreeMap::new(),
            alerts: Vec::new(),
            refusals: Vec::new(),
            ticks: BTreeMap::new(),
            books: BTreeMap::new(),
        };
        let (on, venue) = (true, WatchTarget::Venue(test_market::OUTSIDE_ADAPTER));
        shard.send(CONTROL, CommandKind::Watch { port: VENUE, what: venue, on });
        shard.send(CONTROL, CommandKind::Watch { port: CLIENT, what: WatchTarget::Everything, on });
        for strategy in test_market::STRATEGIES {
            shard.send(CONTROL, CommandKind::Phase { strategy, phase: StrategyPhase::Running });
        }
        shard.poll(test_market::start());
        shard
    }

    /// Watches the books of the venue's securities.
    pub fn watch_books(&mut self) {
        let (on, strategy) = (true, test_market::STRATEGIES[1]);
        for security in test_market::ABROAD {
            self.send(CONTROL, CommandKind::Subscribe { strategy, security, on });
            self.send(CONTROL, CommandKind::Watch { port: CLIENT, what: WatchTarget::Levels(security), on });
        }
    }

    /// Returns a watched book as text, best first: bids, `|`, asks.
    pub fn book_text(&self, security: SecurityId) -> String {
        let Some((book, _)) = self.books.get(&security) else { return "none".to_string() };
        assert!(book.is_whole(), "a message is applied as a whole");
        let side = |side| {
            let levels = book.levels(side).iter();
            levels.map(|level| format!("{}@{}", level.qty, level.price)).collect::<Vec<_>>().join(" ")
        };
        format!("{} | {}", side(Side::Buy), side(Side::Sell)).trim().to_string()
    }

    /// Acts as after a restart of the process: the shard was recovered, and takes the venue to be
    /// disconnected.
    pub fn restart(&mut self) {
        (self.stores, self.reported_synchronizations) = (true, None);
        let (adapter, connected) = (test_market::OUTSIDE_ADAPTER, false);
        self.send(VENUE, CommandKind::Adapter { adapter, connected });
    }

    /// Runs the shard, and records what the client receives.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        let mut work = self.worker.poll(now);
        while let Some((_, event)) = self.ports[CLIENT.0 as usize].poll_event() {
            work += 1;
            self.note(&event);
        }
        while self.ports[CONTROL.0 as usize].poll_event().is_some() {
            work += 1;
        }
        work
    }

    /// Returns the next instruction for the adapter with its special terms, and the number of its
    /// event.
    pub fn poll_instruction(&mut self) -> Option<(u64, Instruction, Option<SpecialTerms>)> {
        let mut special = None;
        while let Some((_, event)) = self.ports[VENUE.0 as usize].poll_event() {
            if let EventKind::SpecialTerms(terms) = event.body {
                special = Some(terms.special);
            } else if let EventKind::ToVenue(instruction) = event.body {
                return Some((event.seq, instruction, special));
            }
        }
        None
    }

    /// Submits a limit order with special terms.
    pub fn submit_special(&mut self, id: &str, qty: &str, limit: &str, special: SpecialTerms) {
        self.send(CLIENT, CommandKind::SpecialTerms(special));
        let terms = Terms { special: true, ..limit_terms(Side::Buy, qty, limit, Tif::Gtc) };
        self.send(CLIENT, CommandKind::Submit { id: int_id(id), terms });
    }

    pub fn submit(&mut self, id: &str, side: Side, qty: &str, limit: &str) {
        self.submit_with(id, side, qty, limit, Tif::Gtc);
    }

    /// Submits a limit order with this time in force.
    pub fn submit_with(&mut self, id: &str, side: Side, qty: &str, limit: &str, tif: Tif) {
        let terms = limit_terms(side, qty, limit, tif);
        self.send(CLIENT, CommandKind::Submit { id: int_id(id), terms });
    }

    /// Submits a stop order, good until this time or until it is cancelled.
    pub fn submit_stop(&mut self, id: &str, side: Side, qty: &str, stop: &str, until: Option<Timestamp>) {
        let terms = Terms {
            security: SecurityId(8),
            strategy: test_market::STRATEGIES[1],
            account: test_market::OUTSIDE_ACCOUNT,
            side,
            kind: OrderKind::Stop,
            qty: test_market::qty(qty),
            stop: test_market::price(stop),
            stop_given: true,
            tif: if until.is_some() { Tif::Gtd } else { Tif::Gtc },
            tif_date: until.unwrap_or(Timestamp::ZERO),
            ..Terms::default()
        };
        self.send(CLIENT, CommandKind::Submit { id: int_id(id), terms });
    }

    /// Lets the market of the security trade at this price.
    pub fn trade(&mut self, price: &str, at: Timestamp) {
        let trade = Trade { price: test_market::price(price), size: test_market::qty("1"), at };
        self.send(CONTROL, CommandKind::Trade { security: SecurityId(8), trade });
    }

    pub fn cancel(&mut self, id: &str, order: &str) {
        let order = self.handle(order);
        self.send(CLIENT, CommandKind::Cancel { order, id: int_id(id) });
    }

    /// Closes the whole position that the orders of this test make.
    pub fn close(&mut self, id: &str) {
        self.send(
            CLIENT,
            CommandKind::Close {
                id: int_id(id),
                strategy: test_market::STRATEGIES[1],
                account: test_market::OUTSIDE_ACCOUNT,
                security: SecurityId(8),
                qty: Qty::ZERO,
            },
        );
    }

    /// Modifies an order, which has these special terms afterwards.
    pub fn replace_special(&mut self, id: &str, order: &str, changes: Changes, special: SpecialTerms) {
        self.send(CLIENT, CommandKind::SpecialTerms(special));
        self.replace(id, order, changes.with_special(true));
    }

    pub fn replace(&mut self, id: &str, order: &str, changes: Changes) {
        let order = self.handle(order);
        self.send(CLIENT, CommandKind::Modify { order, id: int_id(id), changes });
    }

    /// Returns what the client knows of the order with this first id.
    pub fn order(&self, id: &str) -> Option<&ReportedState> {
        self.orders.get(id)
    }

    fn handle(&self, id: &str) -> OrderHandle {
        self.orders.get(id).map_or(OrderHandle::NONE, |known| known.last.order)
    }

    fn send(&mut self, port: PortId, body: CommandKind) {
        let origin = if port == CLIENT { Origin::Fix } else { Origin::Server };
        let command = Command::new(Source { origin, port, session: 1 }, 1, body);
        self.ports[port.0 as usize].send(ShardId(0), command).expect("the lane is empty");
    }

    fn note(&mut self, event: &Event) {
        if let EventKind::Alert { alert, .. } = &event.body {
            self.alerts.push(*alert);
        } else if let EventKind::Tick(tick) = &event.body {
            self.ticks.insert(tick.security, *tick);
        } else if let EventKind::Levels(part) = &event.body {
            let (book, snapshots) = self.books.entry(part.security).or_default();
            assert_ne!(book.apply(part), LevelsProgress::Gap, "{part:?}");
            *snapshots += usize::from(part.is_last && part.kind == LevelsKind::Snapshot);
        } else if let EventKind::Refused(refusal) = &event.body {
            self.refusals.push(*refusal);
            let known = self.orders.values_mut().find(|known| known.last.order == refusal.order);
            known.into_iter().for_each(|known| known.last.status = refusal.status);
        }
        let Some(report) = event.report() else { return };
        let fill = usize::from(report.last_qty.is_positive());
        let known = self.orders.values_mut().find(|known| known.last.order == report.order);
        match known {
            Some(known) => (known.last, known.fills) = (report, known.fills + fill),
            None => {
                _ = self.orders.insert(report.id.to_string(), ReportedState { last: report, fills: fill })
            }
        }
    }

    /// Works like an endpoint of the gateway: reports first, then whether the venue can be reached.
    pub fn report(&mut self, now: Timestamp, session: &mut dyn VenueReports) -> usize {
        let mut work = 0;
        loop {
            let report = session.poll_report(now);
            if let Some(body) = if report.is_none() { session.poll_price() } else { None } {
                work += 1;
                let command = Command::new(source(), 0, body);
                self.ports[VENUE.0 as usize].send(ShardId(0), command).expect("the lane has room");
                self.worker.poll(now);
                continue;
            }
            let Some(report) = report else { break };
            work += 1;
            if !self.stores {
                continue;
            }
            let body = CommandKind::Report { order: report.order, report: report.report };
            let sent = self.ports[VENUE.0 as usize].send(ShardId(0), Command::new(source(), 0, body));
            sent.expect("the lane has room");
            self.worker.poll(now);
            session.handle_stored(report.token);
        }
        let touches = session.synchronizations();
        if touches != self.reported_synchronizations && self.informs {
            let was_connected = std::mem::replace(&mut self.reported_synchronizations, touches).is_some();
            let states =
                if was_connected && touches.is_some() { &[false, true][..] } else { &[touches.is_some()] };
            for &connected in states {
                let body = CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected };
                let command = Command::new(source(), 0, body);
                self.ports[VENUE.0 as usize].send(ShardId(0), command).expect("the lane has room");
                work += 1;
            }
        }
        work
    }
}

pub fn int_id(text: &str) -> IntId {
    IntId::parse(text.as_bytes()).expect("an id")
}
