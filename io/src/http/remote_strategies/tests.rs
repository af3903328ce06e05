//! Tests of the bounds of the output queues.

use pitlane_engine::refdata::Rows;

use super::*;

fn outposts() -> RemoteStrategies {
    let reference = RefData::check(Rows::default()).unwrap();
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
    let outposts = RemoteStrategies::new(parts, PortId(1), 1, Timestamp(1), &reference);
    outposts.up.set(true);
    outposts
}

#[test]
fn waiting_replies_are_bounded_and_dropped_ones_are_counted() {
    let outposts = outposts();
    let reply = |n: usize| outposts.reply(Some(n.to_string().into()), &RemoteReply::Accepted);
    (0..REPLIES_MAX).for_each(reply);
    assert_eq!(outposts.dropped(), 0);
    reply(REPLIES_MAX);
    // Responses of shards have the same bound.
    outposts.inner.borrow_mut().answer("late".into(), &RemoteReply::Accepted);
    assert_eq!(outposts.dropped(), 2);
    let taken: Vec<String> = std::iter::from_fn(|| outposts.take()).map(|(to, _)| to.to_string()).collect();
    assert!(
        taken.into_iter().eq((0..REPLIES_MAX).map(|n| n.to_string())),
        "those that wait go out in their order"
    );
    reply(0);
    assert!(outposts.take().is_some() && outposts.dropped() == 2, "there is room again");
}

#[test]
fn waiting_events_and_phases_are_bounded_and_dropped_ones_are_counted() {
    let outposts = outposts();
    let say = |n: usize| outposts.hear_generic("a", n.to_string().as_bytes());
    (0..=GENERICS_MAX).for_each(say);
    assert_eq!(outposts.dropped(), 1);
    assert_eq!(outposts.inner.borrow().generics.len(), GENERICS_MAX);
    assert_eq!(outposts.next_generic().map(|said| said.body), Some("0".into()), "the newest was dropped");
    outposts.generic_is_out();
    say(GENERICS_MAX);
    assert_eq!(outposts.dropped(), 1, "there is room again");
    for n in 0..=GENERICS_MAX {
        let phase = if n == 0 { Phase::Stop } else { Phase::Running };
        outposts.inner.borrow_mut().tell_phase(StrategyId::SERVER, phase);
    }
    assert_eq!(outposts.dropped(), 2);
    let phases: Vec<Bytes> = std::iter::from_fn(|| outposts.take()).map(|(_, bytes)| bytes).collect();
    assert_eq!(phases.len(), GENERICS_MAX);
    assert!(!phases.iter().any(|bytes| *bytes != phases[0]), "the oldest was dropped");
}
