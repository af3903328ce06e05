//! Phases that are requested before earlier requests are carried out.

use super::*;

/// Returns a rig with a strategy that reports its phases, and fails at its first tick.
fn failing_at_a_tick() -> RunnerRig {
    let make = script(|_, event, context| match event {
        ScriptEvent::Phase(phase) => {
            print_line(context, format!("{phase:?}"));
            if phase == StrategyPhase::Init { Ok(context.subscribe(STOCK)?) } else { Ok(()) }
        }
        ScriptEvent::Tick => Err(Failure::new("no")),
        _ => Ok(()),
    });
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    assert_eq!(rig.output().join(" "), "Init Prefeed Start Running");
    rig
}

#[test]
fn the_phase_that_is_requested_last_is_reached() {
    use StrategyPhase::{Exit, Running, Stop};
    let requests = [
        (vec![Stop, Running], Running, "Stop Init Prefeed Start Running"),
        (vec![Stop, Running, Stop], Stop, "Stop"),
        (vec![Running, Stop, Exit], Exit, "Exit"),
        (vec![Running, Stop, Running], Running, "Init Prefeed Start Running"),
    ];
    let mut rig = failing_at_a_tick();
    for (wanted, last, shown) in requests {
        wanted.iter().for_each(|phase| rig.runner.request_phase(FIRST, *phase).unwrap());
        rig.pump();
        assert_eq!(rig.phase(FIRST), last, "{wanted:?}");
        assert!(rig.output().join(" ").ends_with(shown), "{wanted:?}");
    }
    // A path is refused that the phase on the way has not.
    rig.runner.request_phase(FIRST, Stop).unwrap();
    rig.runner.request_phase(FIRST, Exit).unwrap();
    assert!(rig.runner.request_phase(FIRST, Stop).is_err());
    rig.runner.stop_all(rig.now);
    rig.pump();
    assert_eq!(rig.phase(FIRST), Exit);
}

#[test]
fn a_strategy_is_started_again_although_its_failure_was_not_reported_yet() {
    let mut rig = failing_at_a_tick();
    let quote = Quote { bid: price("10.00"), bid_size: qty(1), at: rig.now, ..Quote::default() };
    let source = Source { port: rig.feed.id(), ..Source::default() };
    let body = CommandKind::Quote { security: STOCK, quote };
    rig.feed.send(shard_of(STOCK, 2), Command::new(source, 0, body)).unwrap();
    rig.workers.iter_mut().for_each(|worker| _ = worker.poll(rig.now));
    rig.runner.drain_events(rig.now, 1_000);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Stop);
    rig.transition_to(FIRST, StrategyPhase::Running);
    assert_eq!(rig.phase(FIRST), StrategyPhase::Running);
    assert_eq!(rig.output().join(" "), "failed: no Init Prefeed Start Running");
}
