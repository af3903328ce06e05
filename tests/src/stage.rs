//! One real shard for tests: they send it commands and check its events.

use pitlane_engine::command::{
    BudgetAct, BudgetKind, Command, CommandKind, ExecRef, StrategyPhase, VenueReport, WatchTarget,
};
use pitlane_engine::command::{BudgetChange, Quote, Scope, Trade};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, PortId, SecurityId, ShardId, StrategyId};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::Timestamp;

use crate::checks::Checker;
use crate::world;

/// Most steps until any command must be done: no test has as many orders.
const STEPS_MAX: usize = 20_000;

#[derive(Debug)]
pub struct Stage {
    pub shard: Shard,
    pub now: Timestamp,
    pub checker: Checker,
    out: Outbox,
    token: u32,
    ids: u64,
}

impl Stage {
    /// Creates a shard that owns everything, with all strategies running and the external venue
    /// connected.
    pub fn new(settings: ShardSettings) -> Stage {
        let mut stage = Stage::bare(settings);
        for strategy in world::STRATEGIES {
            stage.tell(CommandKind::Phase { strategy, phase: StrategyPhase::Running });
        }
        stage.tell(CommandKind::Adapter { adapter: world::OUTSIDE_ADAPTER, connected: true });
        stage
    }

    /// Creates a new shard; all its events are received.
    pub fn bare(settings: ShardSettings) -> Stage {
        let reference = world::reference();
        let mut stage = Stage {
            shard: Shard::new(ShardId(0), 1, reference.clone(), settings),
            now: world::start(),
            checker: Checker::new(ShardId(0), reference),
            out: Outbox::new(0),
            token: 0,
            ids: 0,
        };
        for what in
            [WatchTarget::Everything, WatchTarget::Venue(world::OUTSIDE_ADAPTER), WatchTarget::Budgets]
        {
            stage.tell(CommandKind::Watch { port: PortId(0), what, on: true });
        }
        stage
    }

    /// Applies one command and returns all its events. The invariants of [`Checker`] hold
    /// throughout.
    pub fn tell(&mut self, body: CommandKind) -> Vec<Event> {
        self.token += 1;
        let command = Command::new(world::source(0, 1), self.token, body);
        self.shard.apply(self.now, &command, &mut self.out);
        let mut events = self.heard();
        for steps in 0.. {
            assert!(steps < STEPS_MAX, "{body:?} has no end; the last of it: {:?}", events.last());
            if !self.shard.has_work() {
                break;
            }
            self.shard.resume(&mut self.out);
            events.extend(self.heard());
        }
        for event in &events {
            if let Err(problem) = self.checker.read(event) {
                panic!("{problem}\nafter {body:?}\nsaid {events:#?}");
            }
        }
        self.shard.assert_consistent();
        events
    }

    fn heard(&mut self) -> Vec<Event> {
        let ours = self.out.waiting().iter().filter(|(to, _)| to.contains(PortId(0)));
        let events = ours.map(|(_, event)| *event).collect();
        self.out.clear();
        events
    }

    pub fn id(&mut self) -> IntId {
        self.ids += 1;
        IntId::numbered(b'o', self.ids)
    }

    /// Submits an order, and returns its handle with the events.
    pub fn submit(&mut self, terms: Terms) -> (OrderHandle, Vec<Event>) {
        let id = self.id();
        let events = self.tell(CommandKind::Submit { id, terms });
        let handle = reports(&events).first().map_or(OrderHandle::NONE, |report| report.order);
        (handle, events)
    }

    pub fn modify(&mut self, order: OrderHandle, changes: Changes) -> Vec<Event> {
        let id = self.id();
        self.tell(CommandKind::Modify { order, id, changes })
    }

    pub fn cancel(&mut self, order: OrderHandle) -> Vec<Event> {
        let id = self.id();
        self.tell(CommandKind::Cancel { order, id })
    }

    pub fn report(&mut self, order: OrderHandle, report: VenueReport) -> Vec<Event> {
        self.tell(CommandKind::Report { order, report })
    }

    pub fn fill(&mut self, order: OrderHandle, exec: u128, qty: &str, price: &str) -> Vec<Event> {
        let (qty, price) = (world::qty(qty), world::price(price));
        self.report(order, VenueReport::Filled { exec: ExecRef(exec), qty, price })
    }

    pub fn quote(&mut self, security: SecurityId, bid: (&str, &str), ask: (&str, &str)) -> Vec<Event> {
        let quote = Quote {
            bid: world::price(bid.0),
            bid_size: world::qty(bid.1),
            ask: world::price(ask.0),
            ask_size: world::qty(ask.1),
            at: self.now,
        };
        self.tell(CommandKind::Quote { security, quote })
    }

    pub fn trade(&mut self, security: SecurityId, price: &str, size: &str) -> Vec<Event> {
        let trade = Trade { price: world::price(price), size: world::qty(size), at: self.now };
        self.tell(CommandKind::Trade { security, trade })
    }

    /// Sets the whole of a limit across securities, as a budget would give it to the only shard.
    pub fn budget(&mut self, scope: Scope, kind: BudgetKind, share: i64) {
        self.tell(CommandKind::Budget(BudgetChange { scope, kind, act: BudgetAct::Set(share) }));
    }
}

/// Returns a limit order of strategy 1 and an account that may trade the security.
pub fn limit(security: SecurityId, side: Side, qty: &str, price: &str) -> Terms {
    let account =
        if world::ABROAD.contains(&security) { world::OUTSIDE_ACCOUNT } else { world::HOME_ACCOUNTS[0] };
    Terms {
        qty: world::qty(qty),
        limit: world::price(price),
        limit_given: true,
        security,
        strategy: StrategyId(1),
        account,
        side,
        kind: OrderKind::Limit,
        tif: Tif::Day,
        ..Terms::default()
    }
}

/// Returns the reports among events, without events of changed terms, which have no quantities of
/// their own.
pub fn reports(events: &[Event]) -> Vec<OrderReport> {
    let whole =
        |event: &&Event| !matches!(&event.body, EventKind::Order(order) if order.what == ExecType::Replaced);
    events.iter().filter(whole).filter_map(Event::report).collect()
}

pub fn refusals(events: &[Event]) -> Vec<RequestRefusal> {
    let refusal = |event: &Event| match event.body {
        EventKind::Refused(refusal) => Some(refusal),
        _ => None,
    };
    events.iter().filter_map(refusal).collect()
}

/// Returns how the command ended.
pub fn done(events: &[Event]) -> Reason {
    let done = |event: &Event| match event.body {
        EventKind::Done { reason, .. } => Some(reason),
        _ => None,
    };
    events.iter().find_map(done).unwrap_or(Reason::None)
}

/// Returns every reason among events.
pub fn reasons(events: &[Event]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventKind::Refused(refusal) => Some(refusal.reason),
            EventKind::Done { reason, .. } | EventKind::Alert { reason, .. } => Some(*reason),
            _ => event.report().map(|report| report.reason),
        })
        .filter(|&reason| reason != Reason::None)
        .collect();
    reasons.sort();
    reasons.dedup();
    reasons
}
