//! The test kit: a strategy at a real shard with its simulated venue, on one thread and with a
//! clock that the test moves. A test feeds prices, and sees the requests of the strategy and its
//! fills.
//!
//! The market has one stock, [`STOCK`] with the symbol `ACME`: one cent is a tick, one share is a
//! lot, and there are no fees. Every call returns when the strategy and the venue have nothing left
//! to do.
//!
//! ```
//! use pitlane_strategy::prelude::*;
//! use pitlane_strategy::testing::{STOCK, TestMarket};
//!
//! /// Buys ten shares at the first price, and holds them.
//! struct BuyAndHold;
//!
//! impl Strategy for BuyAndHold {
//!     fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
//!         if phase == StrategyPhase::Init {
//!             context.subscribe("ACME")?;
//!         }
//!         Ok(())
//!     }
//!
//!     fn on_tick(&mut self, tick: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
//!         let is_idle = context.is_running() && !context.has_open_order(tick.security);
//!         if is_idle && context.position(tick.security).qty.is_zero() {
//!             context.buy(tick.security, Qty::whole(10).ok_or("too many")?)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut market = TestMarket::new(|| BuyAndHold);
//! market.quote("9.99", "10.01");
//! let orders = market.take_orders();
//! assert_eq!((orders.len(), orders[0].side, orders[0].security), (1, Side::Buy, STOCK));
//! assert_eq!(market.position().qty, Qty::whole(10).unwrap());
//! assert_eq!(market.take_fills()[0].price.to_string(), "10.01");
//! market.quote("9.89", "9.91");
//! assert!(market.take_orders().is_empty());
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Strategy;
use super::context::{Operation, StrategyRequest};
use super::host::{HostSettings, StrategyFactory, StrategyHost, unguarded};
use super::orders::OpenOrder;
use super::parameters::{BadParameter, FromParameters, Parameters};
use super::registry::Registry;
use super::runner::{Runner, RunnerSettings};
use pitlane_engine::command::{Command, CommandKind, Quote, StrategyPhase, Trade, WatchTarget};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Booking, EventKind, PositionState};
use pitlane_engine::id::{SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::Terms;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::worker::Worker;

/// The stock of the market; its symbol is `ACME`.
pub const STOCK: SecurityId = SecurityId(1);
/// Time at which a market begins: 2026-01-02T09:30:00Z.
pub const START: Timestamp = Timestamp(1_767_346_200 * NS_PER_S);
/// The strategy of the sample reference data.
const STRATEGY: StrategyId = StrategyId(1);
const SHARD: ShardId = ShardId(0);
/// Orders that a test may send.
const ORDERS_MAX: u32 = 100_000;
/// Shares on each side of a quote, and in a trade.
const SIZE: i64 = 1_000;
/// Events that a part handles in one round. More than a strategy may send at once.
const EVENTS_PER_ROUND: usize = 4_096;
/// Rounds after which a strategy that answers itself for ever fails the test.
const ROUNDS_MAX: usize = 100_000;

/// A market with one strategy. See the module for an example.
///
/// # Panics
///
/// The methods panic on texts that are no numbers, and when the strategy panics: that fails the
/// test.
#[derive(Debug)]
pub struct TestMarket {
    worker: Worker,
    feed: PortEnd,
    reader: PortEnd,
    runner: Runner,
    now: Timestamp,
    requests: Vec<StrategyRequest>,
    fills: Vec<Booking>,
}

impl TestMarket {
    /// Starts a strategy; it is RUNNING when this returns, unless it failed.
    pub fn new<S: Strategy + 'static>(make: impl Fn() -> S + Send + 'static) -> TestMarket {
        TestMarket::from_factory(Box::new(move || Box::new(make())))
    }

    /// Starts a strategy with parameters, as a section of the settings with the securities `ACME`.
    pub fn with<S: FromParameters>(parameters: &[(&str, &str)]) -> Result<TestMarket, BadParameter> {
        let texts: BTreeMap<String, String> =
            parameters.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let registry = Registry::new().with::<S>();
        let kind = registry.find(S::KIND).expect("the name of a kind is well-formed");
        kind.make(&[STOCK], &Parameters::new(texts)).map(TestMarket::from_factory)
    }

    /// Starts a strategy that a factory creates.
    pub fn from_factory(make: StrategyFactory) -> TestMarket {
        let reference = Arc::new(RefData::check(sample::sound()).expect("the sample is valid"));
        let depths = Depths { commands: EVENTS_PER_ROUND, events: EVENTS_PER_ROUND };
        let (ports, mut ends) = mesh(&[PortClass::Client, PortClass::Client, PortClass::Feed], 1, depths);
        let [runner, reader, feed] = <[PortEnd; 3]>::try_from(ports).expect("the mesh has these ports");
        let settings = ShardSettings { orders_max: ORDERS_MAX, ..ShardSettings::default() };
        let worker = Worker::new(Shard::new(SHARD, 1, reference.clone(), settings), ends.remove(0));
        let settings = RunnerSettings {
            operation: Operation::RealTime,
            guard: unguarded,
            orders_max: ORDERS_MAX,
            finished_max: ORDERS_MAX,
            numbers: IdBlock { next: 1, end: u64::MAX },
            seed: 1,
            pages: LargePages::NONE,
        };
        let name = "momentum".to_string();
        let host = HostSettings { id: STRATEGY, name, make, start: true, cancel_on_failure: true };
        let runner = Runner::new(runner, reference, settings, vec![host]);
        let (requests, fills) = (Vec::new(), Vec::new());
        let mut market = TestMarket { worker, feed, reader, runner, now: START, requests, fills };
        let port = market.reader.id();
        let watch = CommandKind::Watch { port, what: WatchTarget::Orders, on: true };
        let source = Source { port, ..Source::default() };
        market.reader.send(SHARD, Command::new(source, 0, watch)).expect("the lane is empty");
        market.run();
        market.runner.begin();
        market.run();
        market
    }

    /// Quotes a bid and an ask for 1,000 shares each, one second after the last price.
    pub fn quote(&mut self, bid: &str, ask: &str) {
        let size = Qty::whole(SIZE).expect("it is small");
        self.advance(NS_PER_S);
        let quote = Quote { bid: price(bid), bid_size: size, ask: price(ask), ask_size: size, at: self.now };
        self.feed(CommandKind::Quote { security: STOCK, quote });
    }

    /// Reports a trade of 1,000 shares between others, one second after the last price. The quote
    /// is one cent to each side of it.
    pub fn trade(&mut self, at_price: &str) {
        self.advance(NS_PER_S);
        let (last, size, at) = (price(at_price), Qty::whole(SIZE).expect("it is small"), self.now);
        let around = |cents| last.checked_add(Price::from_raw(cents * price("0.01").raw()));
        let [bid, ask] = [around(-1), around(1)].map(|price| price.expect("the price is not at its bound"));
        let quote = Quote { bid, bid_size: size, ask, ask_size: size, at };
        self.feed(CommandKind::Tick { security: STOCK, quote, trade: Trade { price: last, size, at } });
    }

    /// Moves the clock; timers that become due fire in order, each at its own time.
    pub fn advance(&mut self, ns: u64) {
        let end = self.now.plus(ns);
        while self.due() < end {
            self.now = self.due().max(self.now);
            self.run();
            // What is due again at the same instant is done at the end.
            if self.due() <= self.now {
                break;
            }
        }
        self.now = end;
        self.run();
    }

    /// Requests a phase, as an operator does.
    ///
    /// # Panics
    ///
    /// The strategy cannot enter it from its phase.
    pub fn set_phase(&mut self, phase: StrategyPhase) {
        self.runner.request_phase(STRATEGY, phase).expect("the phase can be reached");
        self.run();
    }

    /// Sends an event of another strategy.
    pub fn send_generic(&mut self, name: &str, body: &[u8]) {
        self.runner.handle_generic(self.now, name, body);
        self.run();
    }

    /// Returns the time of the market.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the phase of the strategy.
    pub fn phase(&self) -> StrategyPhase {
        self.host().phase()
    }

    /// Returns why the strategy failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.host().reason().map(|reason| &**reason)
    }

    /// Returns the strategy's position in the stock.
    pub fn position(&self) -> PositionState {
        self.host().book.positions.get(&STOCK).copied().unwrap_or_default()
    }

    /// Returns the strategy's orders that have not ended.
    pub fn open_orders(&self) -> &[OpenOrder] {
        self.host().book.orders.open()
    }

    /// Returns all requests of the strategy since the last call, in order.
    pub fn take_requests(&mut self) -> Vec<StrategyRequest> {
        std::mem::take(&mut self.requests)
    }

    /// Returns the orders among the requests since the last call; the other requests are dropped.
    pub fn take_orders(&mut self) -> Vec<Terms> {
        let order = |request| match request {
            StrategyRequest::Submit { terms, .. } => Some(terms),
            StrategyRequest::Modify { .. }
            | StrategyRequest::Cancel { .. }
            | StrategyRequest::Subscribe { .. }
            | StrategyRequest::Generic { .. } => None,
        };
        self.take_requests().into_iter().filter_map(order).collect()
    }

    /// Returns the fills since the last call.
    pub fn take_fills(&mut self) -> Vec<Booking> {
        std::mem::take(&mut self.fills)
    }

    /// Returns when a timer fires or the venue acts.
    fn due(&self) -> Timestamp {
        self.runner.deadline().min(self.worker.deadline().unwrap_or(Timestamp::MAX))
    }

    fn host(&self) -> &StrategyHost {
        &self.runner.hosts()[0]
    }

    fn feed(&mut self, body: CommandKind) {
        let source = Source { port: self.feed.id(), ..Source::default() };
        self.feed.send(SHARD, Command::new(source, 0, body)).expect("the lane was emptied");
        self.run();
    }

    /// Runs the shard and the strategy in turn until neither has work left.
    fn run(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut work = self.worker.poll(self.now);
            work += self.runner.drain_events(self.now, EVENTS_PER_ROUND);
            work += self.runner.fire_timers(self.now, 0);
            self.requests.extend(self.runner.requests().cloned());
            work += self.runner.poll(self.now);
            while self.feed.poll_event().is_some() {}
            while let Some((_, event)) = self.reader.poll_event() {
                if let EventKind::Booked(booking) = &event.body {
                    self.fills.push(*booking);
                }
            }
            if work == 0 {
                return;
            }
        }
        panic!("the strategy answers its own events for ever");
    }
}

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).unwrap_or_else(|_| panic!("{text:?} is no price"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::MarketMaker;
    use crate::prelude::*;

    /// Sets a timer every ten seconds, reports each, and fails at the third.
    #[derive(Default)]
    struct Ticking {
        fired: u32,
    }

    impl Strategy for Ticking {
        fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
            if phase == StrategyPhase::Running {
                context.set_timer_after(7, 10 * NS_PER_S)?;
            }
            Ok(())
        }

        fn on_timer(&mut self, timer: u32, context: &mut Context<'_>) -> Result<(), Failure> {
            self.fired += 1;
            if self.fired == 3 {
                return Err("three are enough".into());
            }
            let text = format!("{timer} {}", (context.now().0 - START.0) / NS_PER_S);
            context.send_generic("fired", text.as_bytes())?;
            context.set_timer_after(7, 10 * NS_PER_S)?;
            Ok(())
        }
    }

    #[test]
    fn timers_fire_at_their_own_time_and_a_failure_is_seen() {
        let mut market = TestMarket::new(Ticking::default);
        market.advance(9 * NS_PER_S);
        assert!(market.take_requests().is_empty());
        market.advance(16 * NS_PER_S);
        let body = |request: StrategyRequest| match request {
            StrategyRequest::Generic { body, .. } => String::from_utf8_lossy(&body).into_owned(),
            other => format!("{other:?}"),
        };
        let sent: Vec<String> = market.take_requests().into_iter().map(body).collect();
        assert_eq!(sent, ["7 10", "7 20"]);
        assert_eq!((market.phase(), market.failure()), (StrategyPhase::Running, None));
        market.advance(5 * NS_PER_S);
        assert_eq!((market.phase(), market.failure()), (StrategyPhase::Stop, Some("three are enough")));
        market.advance(100 * NS_PER_S);
        assert!(market.take_requests().is_empty(), "a failed strategy is not called");
    }

    #[test]
    fn requests_orders_and_fills_are_seen_once() {
        let parameters = [("qty", "10"), ("half_spread_ticks", "2"), ("position_max", "30")];
        let mut market = TestMarket::with::<MarketMaker>(&parameters).unwrap();
        let requests = market.take_requests();
        assert_eq!(requests, [StrategyRequest::Subscribe { security: STOCK, on: true }]);
        market.quote("9.90", "10.10");
        let orders = market.take_orders();
        let sides: Vec<Side> = orders.iter().map(|terms| terms.side).collect();
        assert_eq!(sides, [Side::Buy, Side::Sell]);
        assert_eq!((market.open_orders().len(), market.take_orders().len()), (2, 0));
        // The market falls through the bid of 9.90.
        market.trade("9.80");
        let fills = market.take_fills();
        assert!(!fills.is_empty() && fills.iter().all(|fill| fill.qty.is_positive()), "{fills:?}");
        assert_eq!(market.position().qty, fills.last().unwrap().position.qty);
        assert!(market.take_fills().is_empty());
        market.set_phase(StrategyPhase::Stop);
        assert!(market.open_orders().is_empty(), "a stop cancels the quotes");
    }

    /// Bids for single shares at 9.90, and answers events of others with the same.
    struct ManyBids;

    impl Strategy for ManyBids {
        fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
            if phase == StrategyPhase::Running {
                context.subscribe(STOCK)?;
                for _ in 0..100 {
                    context.limit(STOCK, Side::Buy, Qty::whole(1).unwrap(), price("9.90"))?;
                }
            }
            Ok(())
        }

        fn on_generic(&mut self, name: &str, body: &[u8], context: &mut Context<'_>) -> Result<(), Failure> {
            Ok(context.send_generic(name, body)?)
        }
    }

    #[test]
    fn a_call_returns_when_the_venue_has_filled_everything() {
        let mut market = TestMarket::new(|| ManyBids);
        assert_eq!(market.take_orders().len(), 100);
        market.trade("9.80");
        assert_eq!((market.take_fills().len(), market.open_orders().len()), (100, 0));
    }

    #[test]
    fn a_trade_is_one_second_after_the_last_price_between_quotes_of_one_cent() {
        let mut market = TestMarket::new(|| ManyBids);
        assert_eq!(market.now(), START);
        market.trade("9.95");
        market.trade("9.97");
        assert_eq!(market.now(), START.plus(2 * NS_PER_S));
        let tick = market.runner.market().tick(STOCK).unwrap();
        assert_eq!([tick.bid, tick.last, tick.ask].map(|price| price.to_string()), ["9.96", "9.97", "9.98"]);
    }

    #[test]
    fn an_event_of_another_strategy_is_handled() {
        let mut market = TestMarket::new(|| ManyBids);
        market.take_requests();
        market.send_generic("spread", b"7");
        let (name, body) = ("spread".into(), Box::from(*b"7"));
        assert_eq!(market.take_requests(), [StrategyRequest::Generic { name, body }]);
    }

    #[test]
    fn wrong_parameters_are_reported() {
        let bad = TestMarket::with::<MarketMaker>(&[("qtty", "10")]).err();
        assert_eq!(bad.map(|bad| bad.name).as_deref(), Some("qtty"));
    }
}
