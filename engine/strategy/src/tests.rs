//! Strategies with real shards, on one thread and a clock of the test.

mod calls;
mod senders;
mod examples;
mod phases;

use std::collections::BTreeMap;
use std::sync::Arc;

use rtrb::{Consumer, RingBuffer};

use super::host::{HostSettings, StrategyFactory, unguarded};
use super::parameters::Parameters;
use super::registry::Registry;
use super::runner::{Notice, Runner, RunnerSettings};
use super::*;
use pitlane_engine::command::{Command, CommandKind, Quote, Trade};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::ExecType;
use pitlane_engine::id::{SecurityId, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::rng::Rng;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::{Shard, shard_of};
use pitlane_engine::terms::{Changes, Side, Status};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::worker::Worker;

const STOCK: SecurityId = SecurityId(1);
const OPTION: SecurityId = SecurityId(2);
const FIRST: StrategyId = StrategyId(1);
const SECOND: StrategyId = StrategyId(2);

fn price(text: &str) -> Price {
    sample::price(text)
}

fn qty(whole: i64) -> Qty {
    Qty::whole(whole).unwrap()
}

fn reference() -> Arc<RefData> {
    let mut rows = sample::sound();
    let mut second = rows.strategies[1].clone();
    (second.id, second.name) = (SECOND, "second".into());
    rows.strategies.push(second);
    Arc::new(RefData::check(rows).unwrap())
}

/// Two shards, a feed, and a runner.
struct RunnerRig {
    workers: Vec<Worker>,
    feed: PortEnd,
    runner: Runner,
    now: Timestamp,
    /// Order events of the shards, in the order in which the runner handles them.
    order_events: Consumer<String>,
}

impl RunnerRig {
    fn new(hosts: Vec<HostSettings>, operation: Operation) -> RunnerRig {
        let reference = reference();
        let depths = Depths { commands: 64, events: 256 };
        let (mut ports, ends) = mesh(&[PortClass::Client, PortClass::Feed], 2, depths);
        let settings = ShardSettings { orders_max: 1_000, ..ShardSettings::default() };
        let shard = |at: u8| Shard::new(ShardId(at), 2, reference.clone(), settings.clone());
        let workers =
            ends.into_iter().enumerate().map(|(at, end)| Worker::new(shard(at as u8), end)).collect();
        let feed = ports.remove(1);
        let settings = RunnerSettings {
            operation,
            guard: unguarded,
            orders_max: 1_000,
            finished_max: 100,
            numbers: IdBlock { next: 1, end: 1_000 },
            seed: 1,
            pages: LargePages::NONE,
        };
        let mut runner = Runner::new(ports.remove(0), reference, settings, hosts);
        let (mut publish, order_events) = RingBuffer::new(100_000);
        let listener = Box::new(move |_: Timestamp, message: &dispatcher::DispatchedEvent<'_>| {
            if let dispatcher::DispatchedEvent::OrderStatus(report) = message {
                let _ = publish.push(format!("{} {:?} {:?}", report.id, report.what, report.status));
            }
        });
        runner.dispatcher_mut().register(&[dispatcher::EventClass::OrderStatus], listener).unwrap();
        let mut rig = RunnerRig { workers, feed, runner, now: Timestamp(NS_PER_S), order_events };
        rig.pump();
        rig.runner.begin();
        rig.pump();
        rig
    }

    fn pump(&mut self) {
        loop {
            let mut work: usize = self.workers.iter_mut().map(|worker| worker.poll(self.now)).sum();
            work += self.runner.drain_events(self.now, 1_000) + self.runner.poll(self.now);
            while self.feed.poll_event().is_some() {}
            if work == 0 {
                return;
            }
        }
    }

    fn send(&mut self, security: SecurityId, body: CommandKind) {
        let command = Command::new(Source { port: self.feed.id(), ..Source::default() }, 0, body);
        self.feed.send(shard_of(security, 2), command).unwrap();
        self.pump();
    }

    fn quote(&mut self, security: SecurityId, bid: &str, ask: &str) {
        self.now = self.now.plus(NS_PER_S);
        let (size, at) = (qty(100), self.now);
        let quote = Quote { bid: price(bid), bid_size: size, ask: price(ask), ask_size: size, at };
        self.send(security, CommandKind::Quote { security, quote });
    }

    fn trade(&mut self, security: SecurityId, at_price: Price) {
        self.now = self.now.plus(NS_PER_S);
        let trade = Trade { price: at_price, size: qty(5), at: self.now };
        let (tick, size) = (price("0.01"), qty(100));
        let around = |ticks: i64| Price::from_raw(at_price.raw() + ticks * tick.raw());
        let quote = Quote { bid: around(-1), bid_size: size, ask: around(1), ask_size: size, at: self.now };
        self.send(security, CommandKind::Tick { security, quote, trade });
    }

    fn transition_to(&mut self, strategy: StrategyId, phase: StrategyPhase) {
        self.runner.request_phase(strategy, phase).unwrap();
        self.pump();
    }

    fn phase(&self, strategy: StrategyId) -> StrategyPhase {
        self.runner.hosts().iter().find(|host| host.id() == strategy).unwrap().phase()
    }

    fn order_events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.order_events.pop().ok()).collect()
    }

    /// Returns the lines of scripted strategies since the last call.
    fn output(&mut self) -> Vec<String> {
        let text = |notice| match notice {
            Notice::Generic { body, .. } => String::from_utf8_lossy(&body).into_owned(),
            Notice::Failed { reason, .. } => format!("failed: {reason}"),
        };
        std::iter::from_fn(|| self.runner.poll_notice()).map(text).collect()
    }
}

fn host(id: StrategyId, make: StrategyFactory) -> HostSettings {
    let name = if id == FIRST { "momentum" } else { "second" };
    HostSettings { id, name: name.into(), make, start: true, cancel_on_failure: true }
}

/// Action of a scripted strategy.
type ScriptAction = fn(&mut Script, ScriptEvent<'_>, &mut Context<'_>) -> Result<(), Failure>;

enum ScriptEvent<'a> {
    Phase(StrategyPhase),
    Tick,
    Bar(&'a Bar),
    Status(&'a IntId, &'a OrderReport),
    Refused(&'a Refused),
    Booking(&'a Booking),
    Generic(&'a str, &'a [u8]),
    Timer(u32),
}

struct Script {
    act: ScriptAction,
    order: Option<IntId>,
    ticks: u32,
}

/// A scripted strategy reports by generic events.
fn print_line(context: &mut Context<'_>, text: impl ToString) {
    context.send_generic("said", text.to_string().as_bytes()).unwrap();
}

impl Strategy for Script {
    fn on_phase(&mut self, phase: StrategyPhase, context: &mut Context<'_>) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Phase(phase), context)
    }
    fn on_tick(&mut self, _: &Tick, context: &mut Context<'_>) -> Result<(), Failure> {
        self.ticks += 1;
        (self.act)(self, ScriptEvent::Tick, context)
    }
    fn on_bar(&mut self, bar: &Bar, context: &mut Context<'_>) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Bar(bar), context)
    }
    fn on_order_status(
        &mut self,
        id: &IntId,
        report: &OrderReport,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Status(id, report), context)
    }
    fn on_refused(&mut self, refused: &Refused, context: &mut Context<'_>) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Refused(refused), context)
    }
    fn on_transaction(&mut self, booking: &Booking, context: &mut Context<'_>) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Booking(booking), context)
    }
    fn on_generic(&mut self, name: &str, body: &[u8], context: &mut Context<'_>) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Generic(name, body), context)
    }
    fn on_timer(&mut self, timer: u32, context: &mut Context<'_>) -> Result<(), Failure> {
        (self.act)(self, ScriptEvent::Timer(timer), context)
    }
}

fn script(act: ScriptAction) -> StrategyFactory {
    Box::new(move || Box::new(Script { act, order: None, ticks: 0 }))
}

#[test]
fn a_strategy_goes_through_its_phases_and_starts_again() {
    let make = script(|_, event, context| {
        if let ScriptEvent::Phase(phase) = event {
            print_line(context, format!("{phase:?}"));
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    assert_eq!(rig.output().join(" "), "Init Prefeed Start Running");
    rig.transition_to(FIRST, StrategyPhase::Stop);
    rig.transition_to(FIRST, StrategyPhase::Running);
    assert_eq!(rig.output().join(" "), "Stop Init Prefeed Start Running");
    assert!(rig.runner.request_phase(FIRST, StrategyPhase::Init).is_err());
    rig.runner.stop_all(rig.now);
    rig.pump();
    assert_eq!((rig.output().join(" ").as_str(), rig.phase(FIRST)), ("Stop Exit", StrategyPhase::Exit));
}

#[test]
fn an_order_keeps_its_id_and_the_position_is_known() {
    let make = script(|script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick if script.ticks == 1 => {
                script.order = Some(context.limit(STOCK, Side::Buy, qty(10), price("9.90"))?);
            }
            ScriptEvent::Tick if script.ticks == 2 => {
                let order = context.order(&script.order.unwrap()).unwrap();
                assert_eq!((order.status, order.limit), (Status::New, price("9.90")));
                context.modify(&order.id.clone(), Changes::default().with_limit(price("10.10")))?;
            }
            ScriptEvent::Status(id, report) => {
                assert_eq!(Some(*id), script.order);
                print_line(context, format!("{:?} {:?}", report.what, report.status));
            }
            ScriptEvent::Booking(booking) => {
                print_line(
                    context,
                    format!("{} at {}, now {}", booking.qty, booking.price, context.position(STOCK).qty),
                );
                assert_eq!(context.cash(sample::usd()), Some(booking.cash));
            }
            _ => {}
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    rig.quote(STOCK, "10.00", "10.02");
    rig.quote(STOCK, "10.00", "10.03");
    let text = rig.output();
    let expected = [
        "Entered PendingNew",
        "Accepted New",
        "ReplacePending PendingReplace",
        "Replaced New",
        "Filled Filled",
        "10 at 10.03, now 10",
    ];
    assert_eq!(text, expected);
    assert!(rig.runner.hosts()[0].book.orders.open().is_empty());
    rig.quote(OPTION, "1.00", "1.01");
    assert_eq!(rig.runner.market().tick(OPTION), None, "no strategy requested for it");
}

#[test]
fn refused_requests_are_reported_to_the_strategy() {
    let make = script(|script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => {
                context.subscribe(STOCK)?;
                assert_eq!(context.subscribe(SecurityId(99)), Err(Reason::UnknownSecurity));
                let early = context.market(STOCK, Side::Buy, qty(1));
                assert_eq!(early, Err(Reason::StrategyNotRunning));
            }
            ScriptEvent::Tick if script.ticks == 1 => {
                let id = context.market(STOCK, Side::Buy, qty(1))?;
                // It is filled before the cancel arrives.
                context.cancel(&id)?;
                assert_eq!(context.cancel(&IntId::parse(b"nobody's").unwrap()), Err(Reason::UnknownOrder));
                context.limit(STOCK, Side::Buy, qty(1), price("9.999"))?;
            }
            ScriptEvent::Status(_, report) if report.status == Status::Rejected => {
                print_line(context, report.reason.code())
            }
            ScriptEvent::Refused(refused) => {
                print_line(context, format!("{:?} {}", refused.request, refused.reason.code()))
            }
            _ => {}
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    rig.quote(STOCK, "10.00", "10.02");
    let mut text = rig.output();
    text.sort();
    assert_eq!(text, ["Cancel order-finished", "bad-tick"]);
}

#[test]
fn a_failing_strategy_stops_alone_and_its_orders_are_cancelled() {
    let make = script(|script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick if script.ticks == 1 => {
                script.order = Some(context.limit(STOCK, Side::Buy, qty(10), price("9.90"))?);
            }
            ScriptEvent::Tick if script.ticks == 2 => {
                context.market(STOCK, Side::Buy, qty(1))?;
                return Err(Failure::new("no idea what to do"));
            }
            ScriptEvent::Tick => unreachable!("it is not called any more"),
            _ => {}
        }
        Ok(())
    });
    let other = script(|script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick => print_line(context, script.ticks),
            _ => {}
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make), host(SECOND, other)], Operation::RealTime);
    for ask in ["10.02", "10.03", "10.04"] {
        rig.quote(STOCK, "10.00", ask);
    }
    assert_eq!((rig.phase(FIRST), rig.phase(SECOND)), (StrategyPhase::Stop, StrategyPhase::Running));
    assert_eq!(rig.output(), ["1", "2", "failed: no idea what to do", "3"]);
    assert_eq!(rig.runner.hosts()[0].reason().map(|reason| &**reason), Some("no idea what to do"));
    let order_events = rig.order_events();
    let expected = ["s1 Entered PendingNew", "s1 Accepted New"];
    assert_eq!(order_events[..2], expected);
    assert!(order_events.iter().any(|line| line.ends_with("Canceled Canceled")), "{order_events:?}");
    assert!(
        !order_events.iter().any(|line| line.starts_with("s2")),
        "what was requested in the failed call is not sent"
    );
    // It is created again, without the reason of its failure.
    rig.transition_to(FIRST, StrategyPhase::Running);
    assert_eq!((rig.phase(FIRST), rig.runner.hosts()[0].reason()), (StrategyPhase::Running, None));
}

#[test]
fn a_strategy_that_fails_with_many_open_orders_leaves_none_open() {
    let make = script(|script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick if script.ticks <= 2 => {
                for _ in 0..300 {
                    context.limit(STOCK, Side::Buy, qty(1), price("9.90"))?;
                }
            }
            ScriptEvent::Tick => return Err(Failure::new("no")),
            _ => {}
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    for (ask, open) in [("10.02", 300), ("10.03", 600), ("10.04", 0)] {
        rig.quote(STOCK, "10.00", ask);
        assert_eq!(rig.runner.hosts()[0].book.orders.open().len(), open);
    }
}

#[test]
fn a_strategy_that_fails_at_its_start_does_not_start() {
    let make = script(|_, event, context| match event {
        ScriptEvent::Phase(StrategyPhase::Start) => Err(Failure::new("no")),
        ScriptEvent::Phase(phase) => {
            print_line(context, format!("{phase:?}"));
            Ok(())
        }
        _ => Ok(()),
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    assert_eq!(rig.output(), ["Init", "Prefeed", "failed: no"]);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Stop);
}

#[test]
fn prefeed_replays_the_past_and_accepts_no_orders() {
    let make = script(|_, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe_bars(STOCK, 2 * NS_PER_S)?,
            ScriptEvent::Tick => {
                let requested =
                    context.market(STOCK, Side::Buy, qty(1)).map(|_| "sent").unwrap_or_else(Reason::code);
                print_line(context, format!("{:?} {requested}", context.phase()));
            }
            ScriptEvent::Bar(bar) => print_line(context, format!("bar of {}", bar.ticks)),
            _ => {}
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::Simulation);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Init);
    rig.quote(STOCK, "10.00", "10.02");
    rig.transition_to(FIRST, StrategyPhase::Prefeed);
    let shown = rig.output();
    assert!(shown.is_empty(), "in INIT there are no events: {shown:?}");
    rig.quote(STOCK, "10.00", "10.02");
    rig.quote(STOCK, "10.00", "10.03");
    rig.transition_to(FIRST, StrategyPhase::Running);
    rig.quote(STOCK, "10.00", "10.02");
    let text = rig.output();
    let expected =
        ["Prefeed strategy-not-running", "bar of 1", "Prefeed strategy-not-running", "Running sent"];
    assert!(text.iter().take(3).eq(expected[..3].iter()), "{text:?}");
    assert!(text.contains(&expected[3].to_string()), "{text:?}");
}

#[test]
fn timers_fire_in_order_and_once() {
    let make = script(|_, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Running) => {
                let now = context.now();
                context.set_timer(1, now.plus(30))?;
                context.set_timer(2, now.plus(20))?;
                context.set_timer(3, now.plus(10))?;
                context.clear_timer(3);
                context.set_timer(1, now.plus(10))?;
            }
            ScriptEvent::Timer(timer) => print_line(context, timer),
            _ => {}
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    assert_eq!(rig.runner.deadline(), rig.now.plus(10));
    rig.now = rig.now.plus(25);
    rig.pump();
    rig.now = rig.now.plus(100);
    rig.pump();
    assert_eq!(rig.output(), ["1", "2"]);
    assert_eq!(rig.runner.deadline(), Timestamp::MAX);
}

#[test]
fn an_event_between_strategies_reaches_the_others() {
    let make = script(|_, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick => context.send_generic("spread", b"{\"wide\":true}")?,
            ScriptEvent::Generic(name, _) => assert_ne!(name, "spread", "it does not receive its own event"),
            _ => {}
        }
        Ok(())
    });
    let other = script(|_, event, context| {
        if let ScriptEvent::Generic(name, body) = event {
            print_line(context, format!("{name} {}", String::from_utf8_lossy(body)));
        }
        Ok(())
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make), host(SECOND, other)], Operation::RealTime);
    rig.quote(STOCK, "10.00", "10.02");
    assert_eq!(rig.output(), [r#"{"wide":true}"#, r#"spread {"wide":true}"#]);
}
