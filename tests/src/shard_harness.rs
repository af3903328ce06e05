//! One real shard for tests: they send it commands and check its events.

use std::sync::Arc;

use pitlane_engine::command::{
    BudgetAct, BudgetKind, Command, CommandKind, ExecRef, StrategyPhase, VenueReport, WatchTarget,
};
use pitlane_engine::command::{BudgetChange, Quote, Scope, Trade};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, PortId, SecurityId, ShardId, StrategyId};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, SpecialTerms, Terms, Tif};
use pitlane_engine::time::Timestamp;

use crate::checks::Checker;
use crate::test_market;

/// Most steps until any command must be done: no test has as many orders.
const STEPS_MAX: usize = 20_000;

#[derive(Debug)]
pub struct ShardHarness {
    pub shard: Shard,
    pub now: Timestamp,
    pub checker: Checker,
    out: Outbox,
    token: u32,
    ids: u64,
}

impl ShardHarness {
    /// Creates a shard that owns everything, with all strategies running and the external venue
    /// connected.
    pub fn new(settings: ShardSettings) -> ShardHarness {
        ShardHarness::with_reference(test_market::reference(), settings)
    }

    /// Does the same with other reference data.
    pub fn with_reference(reference: Arc<RefData>, settings: ShardSettings) -> ShardHarness {
        let mut harness = ShardHarness::create(reference, settings);
        for strategy in test_market::STRATEGIES {
            harness.send_command(CommandKind::Phase { strategy, phase: StrategyPhase::Running });
        }
        harness.send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: true });
        harness
    }

    /// Creates a new shard; all its events are received.
    pub fn bare(settings: ShardSettings) -> ShardHarness {
        ShardHarness::create(test_market::reference(), settings)
    }

    fn create(reference: Arc<RefData>, settings: ShardSettings) -> ShardHarness {
        let mut harness = ShardHarness {
            shard: Shard::new(ShardId(0), 1, reference.clone(), settings),
            now: test_market::start(),
            checker: Checker::new(ShardId(0), reference),
            out: Outbox::new(0),
            token: 0,
            ids: 0,
        };
        for what in
            [WatchTarget::Everything, WatchTarget::Venue(test_market::OUTSIDE_ADAPTER), WatchTarget::Budgets]
        {
            harness.send_command(CommandKind::Watch { port: PortId(0), what, on: true });
        }
        harness
    }

    /// Applies one command and returns all its events. The invariants of [`Checker`] hold
    /// throughout.
    pub fn send_command(&mut self, body: CommandKind) -> Vec<Event> {
        self.token += 1;
        if !body.is_stored() {
            self.shard.apply_unstored(&body);
            self.shard.assert_consistent();
            return Vec::new();
        }
        let command = Command::new(test_market::source(0, 1), self.token, body);
        self.shard.apply(self.now, &command, &mut self.out);
        let mut events = self.take_events();
        for steps in 0.. {
            assert!(steps < STEPS_MAX, "{body:?} has no end; the last of it: {:?}", events.last());
            if !self.shard.has_work() {
                break;
            }
            self.shard.resume(&mut self.out);
            events.extend(self.take_events());
        }
        for event in &events {
            if let Err(problem) = self.checker.read(event) {
                panic!("{problem}\nafter {body:?}\nsaid {events:#?}");
            }
        }
        self.shard.assert_consistent();
        events
    }

    /// Publishes the books that have changed, as a worker does after its commands.
    pub fn publish_books(&mut self) {
        if self.shard.has_depths() {
            self.shard.emit_depths(&mut self.out);
            self.out.clear();
            self.shard.assert_consistent();
        }
    }

    fn take_events(&mut self) -> Vec<Event> {
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
        let events = self.send_command(CommandKind::Submit { id, terms });
        let handle = reports(&events).first().map_or(OrderHandle::NONE, |report| report.order);
        (handle, events)
    }

    /// Submits an order with special terms, and returns its handle with the events.
    pub fn submit_special(&mut self, terms: Terms, special: SpecialTerms) -> (OrderHandle, Vec<Event>) {
        self.send_command(CommandKind::SpecialTerms(special));
        // The order behind it has the same token.
        self.token -= 1;
        self.submit(Terms { special: true, ..terms })
    }

    pub fn modify(&mut self, order: OrderHandle, changes: Changes) -> Vec<Event> {
        let id = self.id();
        self.send_command(CommandKind::Modify { order, id, changes })
    }

    pub fn cancel(&mut self, order: OrderHandle) -> Vec<Event> {
        let id = self.id();
        self.send_command(CommandKind::Cancel { order, id })
    }

    pub fn report(&mut self, order: OrderHandle, report: VenueReport) -> Vec<Event> {
        self.send_command(CommandKind::Report { order, report })
    }

    pub fn fill(&mut self, order: OrderHandle, exec: u128, qty: &str, price: &str) -> Vec<Event> {
        let (qty, price) = (test_market::qty(qty), test_market::price(price));
        self.report(order, VenueReport::Filled { exec: ExecRef(exec), qty, price })
    }

    pub fn quote(&mut self, security: SecurityId, bid: (&str, &str), ask: (&str, &str)) -> Vec<Event> {
        let quote = Quote {
            bid: test_market::price(bid.0),
            bid_size: test_market::qty(bid.1),
            ask: test_market::price(ask.0),
            ask_size: test_market::qty(ask.1),
            at: self.now,
        };
        self.send_command(CommandKind::Quote { security, quote })
    }

    pub fn trade(&mut self, security: SecurityId, price: &str, size: &str) -> Vec<Event> {
        let trade = Trade { price: test_market::price(price), size: test_market::qty(size), at: self.now };
        self.send_command(CommandKind::Trade { security, trade })
    }

    /// Sets the whole of a limit across securities, as a budget would give it to the only shard.
    pub fn budget(&mut self, scope: Scope, kind: BudgetKind, share: i64) {
        self.send_command(CommandKind::Budget(BudgetChange { scope, kind, act: BudgetAct::Set(share) }));
    }
}

/// Returns a limit order of strategy 1 and an account that may trade the security.
pub fn limit(security: SecurityId, side: Side, qty: &str, price: &str) -> Terms {
    let account = if test_market::ABROAD.contains(&security) {
        test_market::OUTSIDE_ACCOUNT
    } else {
        test_market::HOME_ACCOUNTS[0]
    };
    Terms {
        qty: test_market::qty(qty),
        limit: test_market::price(price),
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
    let refusal = |event: &Event| {
        let EventKind::Refused(refusal) = event.body else { return None };
        Some(refusal)
    };
    events.iter().filter_map(refusal).collect()
}

/// Returns how the command ended.
pub fn done(events: &[Event]) -> Reason {
    let done = |event: &Event| {
        let EventKind::Done { reason, .. } = event.body else { return None };
        Some(reason)
    };
    events.iter().find_map(done).unwrap_or(Reason::None)
}

/// Returns every reason among events.
pub fn reasons(events: &[Event]) -> Vec<Reason> {
    let reason_of = |event: &Event| {
        if let EventKind::Refused(RequestRefusal { reason, .. })
        | EventKind::Done { reason, .. }
        | EventKind::Alert { reason, .. } = event.body
        {
            return Some(reason);
        }
        event.report().map(|report| report.reason)
    };
    let mut reasons: Vec<Reason> =
        events.iter().filter_map(reason_of).filter(|&reason| reason != Reason::None).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}
