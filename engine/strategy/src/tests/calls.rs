//! What a context shows and offers in a call, and the calls themselves.

use super::*;
use crate::bars::BarMaker;
use crate::dispatcher::EventClass;
use crate::host::StrategyHost;
use pitlane_engine::event::{Adjustment, PositionState};
use pitlane_engine::number::Money;

/// Returns a rig with one strategy in real time.
fn rig_of(act: ScriptAction) -> RunnerRig {
    RunnerRig::new(vec![host(FIRST, script(act))], Operation::RealTime)
}

#[test]
fn a_context_shows_phase_clock_prices_and_open_orders() {
    let act: ScriptAction = |_, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => {
                context.subscribe(STOCK)?;
                assert!(!context.is_running());
                assert_eq!(context.tick(STOCK), None);
            }
            ScriptEvent::Tick => {
                assert_eq!(context.operation(), Operation::RealTime);
                assert_eq!(context.tick(STOCK).map(|tick| tick.bid), Some(price("10.00")));
                assert_eq!(context.tick(OPTION), None);
                context.limit(STOCK, Side::Buy, qty(1), price("9.90"))?;
                assert!(context.has_open_order(STOCK) && !context.has_open_order(OPTION));
                print_line(context, context.is_running());
            }
            _ => {}
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    rig.quote(STOCK, "10.00", "10.02");
    assert_eq!(rig.output(), ["true"]);
    let make = script(|_, event, context| {
        if let ScriptEvent::Phase(phase) = event {
            print_line(context, format!("{phase:?} {:?}", context.operation()));
        }
        Ok(())
    });
    let mut simulated = RunnerRig::new(vec![host(FIRST, make)], Operation::Simulation);
    assert_eq!(simulated.output(), ["Init Simulation"]);
}

#[test]
fn a_strategy_buys_and_sells_at_the_market() {
    let act: ScriptAction = |script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick if script.ticks == 1 => script.order = Some(context.buy(STOCK, qty(3))?),
            ScriptEvent::Booking(booking) => {
                print_line(context, format!("{} at {}", booking.qty, booking.price));
                if booking.qty.is_positive() {
                    context.sell(STOCK, qty(2))?;
                }
            }
            _ => {}
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    rig.quote(STOCK, "10.00", "10.02");
    assert_eq!(rig.output(), ["3 at 10.02", "-2 at 10"]);
    let positions = &rig.runner.hosts()[0].book.positions;
    assert_eq!(positions.get(&STOCK).map(|position| position.qty), Some(qty(1)));
}

#[test]
fn the_end_of_a_subscription_ends_the_ticks_and_bars_of_its_security_alone() {
    let act: ScriptAction = |script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => {
                for security in [STOCK, OPTION] {
                    context.subscribe_bars(security, NS_PER_S)?;
                }
            }
            ScriptEvent::Tick if script.ticks == 1 => context.unsubscribe(STOCK)?,
            ScriptEvent::Tick => print_line(context, "tick"),
            _ => {}
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    rig.quote(STOCK, "10.00", "10.02");
    rig.quote(STOCK, "10.00", "10.03");
    assert_eq!(rig.output(), [""; 0]);
    rig.quote(OPTION, "1.00", "1.01");
    assert_eq!(rig.output(), ["tick"]);
    let bars = &rig.runner.hosts()[0].book.bars;
    assert_eq!(bars.iter().map(BarMaker::security).collect::<Vec<_>>(), [OPTION]);
}

#[test]
fn new_reference_data_are_those_of_the_next_call() {
    let act: ScriptAction = |_, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick => print_line(context, context.reference().strategies().len()),
            _ => {}
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    let before = reference().strategies().len();
    rig.quote(STOCK, "10.00", "10.02");
    rig.runner.set_reference(Arc::new(RefData::check(sample::sound()).unwrap()));
    rig.quote(STOCK, "10.00", "10.03");
    assert_eq!(rig.output(), [before.to_string(), (before - 1).to_string()]);
}

#[test]
fn an_event_of_a_client_reaches_running_strategies() {
    let act: ScriptAction = |_, event, context| {
        if let ScriptEvent::Generic(name, body) = event {
            print_line(context, format!("{name} {}", String::from_utf8_lossy(body)));
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    rig.runner.handle_generic(rig.now, "spread", b"7");
    assert!(rig.runner.is_waiting(), "the answer waits");
    assert_eq!(rig.runner.poll(rig.now), 1);
    assert!(!rig.runner.is_waiting());
    assert_eq!(rig.output(), ["spread 7"]);
}

#[test]
fn a_timer_is_work_also_if_the_strategy_requests_nothing() {
    let act: ScriptAction = |_, event, context| {
        if let ScriptEvent::Phase(StrategyPhase::Running) = event {
            context.set_timer(1, context.now().plus(10))?;
            context.set_timer(2, context.now().plus(10))?;
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    rig.now = rig.now.plus(10);
    assert_eq!(rig.runner.poll(rig.now), 2);
    assert_eq!(rig.runner.poll(rig.now), 0);
}

#[test]
fn a_strategy_that_is_not_to_start_waits_in_its_first_phase() {
    let make = script(|_, _, _| Ok(()));
    let waiting = HostSettings { start: false, ..host(FIRST, make) };
    let mut rig = RunnerRig::new(vec![waiting], Operation::RealTime);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Init);
    // It begins once.
    rig.runner.begin();
    assert!(!rig.runner.is_waiting());
    rig.transition_to(FIRST, StrategyPhase::Running);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Running);
    rig.runner.stop_all(rig.now);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Exit, "at once, before the shards know it");
}

#[test]
fn a_failure_names_its_strategy() {
    let act: ScriptAction = |_, event, context| match event {
        ScriptEvent::Phase(StrategyPhase::Init) => Ok(context.subscribe(STOCK)?),
        ScriptEvent::Tick => Err(Failure::new("no idea")),
        _ => Ok(()),
    };
    let mut rig = rig_of(act);
    rig.quote(STOCK, "10.00", "10.02");
    let (name, reason) = ("momentum".into(), "no idea".into());
    assert_eq!(rig.runner.poll_notice(), Some(Notice::Failed { strategy: FIRST, name, reason }));
    assert_eq!(Failure::new("no idea").to_string(), "no idea");
}

#[test]
fn a_snapshot_and_a_reset_give_a_strategy_its_position_and_cash() {
    let mut host = StrategyHost::new(host(FIRST, script(|_, _, _| Ok(()))));
    let after = PositionState { qty: qty(7), ..PositionState::default() };
    let position = Adjustment::Position { security: STOCK, before: PositionState::default(), after };
    let (usd, amount) = (sample::usd(), Money::from_raw(9));
    let cash = Adjustment::Cash { currency: usd, before: Money::ZERO, after: amount };
    for what in [position, cash] {
        host.handle_adjustment(ShardId(1), &what);
    }
    assert_eq!(host.book.positions.get(&STOCK), Some(&after));
    assert_eq!(host.book.cash.get(&(usd, ShardId(1))), Some(&amount));
}

#[test]
fn listeners_receive_each_part_of_a_booking() {
    let act: ScriptAction = |script, event, context| {
        match event {
            ScriptEvent::Phase(StrategyPhase::Init) => context.subscribe(STOCK)?,
            ScriptEvent::Tick if script.ticks == 1 => script.order = Some(context.buy(STOCK, qty(3))?),
            _ => {}
        }
        Ok(())
    };
    let mut rig = rig_of(act);
    let (mut publish, mut received) = RingBuffer::new(100);
    let listener = Box::new(move |_: Timestamp, message: &dispatcher::DispatchedEvent<'_>| {
        publish.push(message.class()).unwrap();
    });
    let classes = [EventClass::Transaction, EventClass::Position, EventClass::Cash];
    rig.runner.dispatcher_mut().register(&classes, listener).unwrap();
    rig.quote(STOCK, "10.00", "10.02");
    let received: Vec<EventClass> = std::iter::from_fn(|| received.pop().ok()).collect();
    assert_eq!(received, classes);
}
