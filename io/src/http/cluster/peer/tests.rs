use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::time::Day;

use super::*;

const SHARD: ShardId = ShardId(1);
const OWN: MemberIdentity = MemberIdentity { member: 0, life: 5, map: 1 };
const THEIRS: MemberIdentity = MemberIdentity { member: 1, life: 6, map: 1 };
const NOW: Timestamp = Timestamp(1);

/// Creates a member that has answered our join, and a port that receives all its events.
fn joined() -> (Peer, PortEnd) {
    let (mut ports, mut ends) = mesh(&[PortClass::Client; 2], 2, Depths { commands: 8, events: 8 });
    let mut peer = Peer::new("b".to_string(), 1, OWN, vec![ends.remove(1)], (1_000, NS_PER_MS));
    peer.shards[0].audience.watch(PortId(1), WatchTarget::Everything, true);
    peer.handle_call(NOW, ClusterBroadcast::Heartbeat { card: THEIRS, last: 0 });
    peer.handle_letter(&ClusterMessage::Joined { card: THEIRS, after: 0, complete: true });
    peer.phase = Phase::Here;
    (peer, ports.remove(1))
}

/// Returns the post of this number, with `count` events for all.
fn post(number: u64, count: u64) -> ClusterBroadcast {
    let item = |at| {
        let body = EventKind::TradingDay { day: Day(number as i32) };
        let event = Event { seq: (number - 1) * count + at, at: NOW, body };
        ClusterEvent { shard: SHARD, to: EventRecipient::All, event }
    };
    ClusterBroadcast::Batch(ClusterBatch { card: THEIRS, number, items: (1..=count).map(item).collect() })
}

fn command(token: u32) -> Command {
    let source = Source { origin: Origin::Rest, port: PortId(1), session: 0 };
    Command::new(source, token, CommandKind::Halt { security: SecurityId(1), on: true })
}

/// Delivers and receives all that is possible, and returns the sequence numbers.
fn listen(peer: &mut Peer, port: &mut PortEnd) -> Vec<u64> {
    let mut heard = Vec::new();
    loop {
        peer.poll(&mut PortMask::default());
        let before = heard.len();
        heard.extend(std::iter::from_fn(|| port.poll_event()).map(|(_, event)| event.seq));
        if heard.len() == before {
            return heard;
        }
    }
}

#[test]
fn a_bounded_number_of_posts_waits_for_a_missing_one_and_the_rest_is_requested_again() {
    let (mut peer, mut port) = joined();
    let last = STASH_MAX as u64 + 2;
    (2..=last).for_each(|number| peer.handle_call(NOW, post(number, 1)));
    assert_eq!(peer.stash.len(), STASH_MAX);
    peer.handle_call(NOW, post(1, 1));
    assert!(listen(&mut peer, &mut port).into_iter().eq(1..last), "what was kept is told in its order");
    let fetch = std::iter::from_fn(|| peer.next_letter(NOW.plus(AGAIN_NS)))
        .find(|letter| matches!(letter, ClusterMessage::Fetch { .. }));
    assert_eq!(fetch, Some(ClusterMessage::Fetch { card: OWN, life: THEIRS.life, from: last }));
    peer.handle_call(NOW, post(last, 1));
    assert_eq!(listen(&mut peer, &mut port), [last]);
}

#[test]
fn a_bounded_number_of_items_waits_for_a_full_lane_and_no_further_post_is_opened() {
    let (mut peer, mut port) = joined();
    let (each, posts) = (100, ITEMS_MAX as u64 / 100 + 20);
    for number in 1..=posts {
        peer.handle_call(NOW, post(number, each));
        peer.poll(&mut PortMask::default());
    }
    assert!((ITEMS_MAX..ITEMS_MAX + each as usize).contains(&peer.items.len()), "{}", peer.items.len());
    assert!(peer.stash.len() > 10);
    // Prices are dropped; newer ones exist by the time there is room.
    let before = peer.items.len();
    let ClusterBroadcast::Batch(ClusterBatch { items: events, .. }) = post(1, each) else { unreachable!() };
    peer.handle_call(NOW, ClusterBroadcast::Prices { card: THEIRS, events });
    assert_eq!(peer.items.len(), before);
    assert!(listen(&mut peer, &mut port).into_iter().eq(1..=posts * each), "nothing is lost");
}

#[test]
fn commands_in_flight_and_pending_responses_are_bounded() {
    let (mut peer, _port) = joined();
    for token in 0..UNTAKEN_MAX as u32 {
        assert!(peer.has_room() && peer.ask(SHARD, command(token)));
    }
    assert!(!peer.has_room(), "the rest stays in our lanes");
    let taken = |number| ClusterMessage::Taken { card: THEIRS, life: OWN.life, number };
    peer.handle_letter(&taken(1));
    assert!(peer.has_room());
    for token in UNTAKEN_MAX as u32..ASKED_MAX as u32 {
        assert!(peer.ask(SHARD, command(token)));
        peer.handle_letter(&taken(token as u64 + 1));
    }
    assert_eq!(peer.untaken.len(), 0);
    assert!(!peer.ask(SHARD, command(ASKED_MAX as u32)), "it is refused");
    assert_eq!((peer.asked.len(), peer.untaken.len()), (ASKED_MAX, 0));
    // A response makes room.
    let (source, reason) = (command(0).source, pitlane_engine::reason::Reason::None);
    let source = Source { port: pitlane_engine::cluster::remote_port(OWN.member, source.port), ..source };
    let event = Event { seq: 1, at: NOW, body: EventKind::Done { source, token: 0, reason } };
    let items = vec![ClusterEvent { shard: SHARD, to: EventRecipient::All, event }];
    peer.handle_call(NOW, ClusterBroadcast::Batch(ClusterBatch { card: THEIRS, number: 1, items }));
    peer.poll(&mut PortMask::default());
    assert!(peer.ask(SHARD, command(ASKED_MAX as u32)));
}
