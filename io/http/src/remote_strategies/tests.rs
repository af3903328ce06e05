//! Tests of the bounds of the output queues.

use pitlane_config::Config;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::RefDataRows;

use super::state::REPLIES_MAX;
use super::*;

fn remote_strategies() -> RemoteStrategies {
    let reference = RefData::check(RefDataRows::default()).unwrap();
    let strategy = StrategyConfig {
        name: reference.strategies()[0].name.clone(),
        kind: String::new(),
        securities: Vec::new(),
        start: true,
        cancel_on_failure: true,
        parameters: BTreeMap::new(),
    };
    let mut parts =
        RemoteStrategiesParts::of(&Config::default(), Vec::new(), Vec::new(), IdBlock { next: 1, end: 9 });
    parts.strategies = vec![strategy];
    let remote_strategies = RemoteStrategies::new(parts, PortId(1), 1, Timestamp(1), &reference);
    remote_strategies.up.set(true);
    remote_strategies
}

#[test]
fn waiting_replies_are_bounded_and_dropped_ones_are_counted() {
    let remote_strategies = remote_strategies();
    let reply = |n: usize| {
        remote_strategies.reply(Some(ReplyAddress::Subject(n.to_string().into())), &RemoteReply::Accepted)
    };
    (0..REPLIES_MAX).for_each(reply);
    assert_eq!(remote_strategies.dropped(), 0);
    reply(REPLIES_MAX);
    // Responses of shards have the same bound.
    remote_strategies.inner.borrow_mut().answer(ReplyAddress::Subject("late".into()), &RemoteReply::Accepted);
    assert_eq!(remote_strategies.dropped(), 2);
    let taken: Vec<String> =
        std::iter::from_fn(|| remote_strategies.take()).map(|(to, _)| to.to_string()).collect();
    assert!(
        taken.into_iter().eq((0..REPLIES_MAX).map(|n| n.to_string())),
        "those that wait go out in their order"
    );
    reply(0);
    assert!(remote_strategies.take().is_some() && remote_strategies.dropped() == 2, "there is room again");
}

#[test]
fn waiting_events_and_phases_are_bounded_and_dropped_ones_are_counted() {
    let remote_strategies = remote_strategies();
    let queue = |n: usize| remote_strategies.queue_generic("a", n.to_string().as_bytes());
    (0..=GENERICS_MAX).for_each(queue);
    assert_eq!(remote_strategies.dropped(), 1);
    assert_eq!(remote_strategies.inner.borrow().generics.len(), GENERICS_MAX);
    assert_eq!(
        remote_strategies.next_generic().map(|generic| generic.body),
        Some("0".into()),
        "the newest was dropped"
    );
    remote_strategies.pop_generic();
    queue(GENERICS_MAX);
    assert_eq!(remote_strategies.dropped(), 1, "there is room again");
    for n in 0..=GENERICS_MAX {
        let phase = if n == 0 { StrategyPhase::Stop } else { StrategyPhase::Running };
        remote_strategies.inner.borrow_mut().queue_phase(StrategyId::SERVER, phase);
    }
    assert_eq!(remote_strategies.dropped(), 2);
    let phases: Vec<Bytes> =
        std::iter::from_fn(|| remote_strategies.take()).map(|(_, bytes)| bytes).collect();
    assert_eq!(phases.len(), GENERICS_MAX);
    assert!(!phases.iter().any(|bytes| *bytes != phases[0]), "the oldest was dropped");
}
