use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::time::Day;

use super::*;

const SHARD: ShardId = ShardId(1);
const OWN: MemberIdentity = MemberIdentity { member: 0, incarnation: 5, map: 1 };
const THEIRS: MemberIdentity = MemberIdentity { member: 1, incarnation: 6, map: 1 };
const NOW: Timestamp = Timestamp(1);

/// Creates a member that has answered our join, and a port that receives all its events.
fn joined() -> (ClusterPeer, PortEnd) {
    let (mut ports, mut ends) = mesh(&[PortClass::Client; 2], 2, Depths { commands: 8, events: 8 });
    let mut peer = ClusterPeer::new("b".to_string(), 1, OWN, vec![ends.remove(1)], (1_000, NS_PER_MS));
    peer.shards[0].subscriptions.watch(PortId(1), WatchTarget::Everything, true);
    peer.handle_broadcast(NOW, ClusterBroadcast::Heartbeat { sender: THEIRS, last: 0 });
    peer.handle_message(&ClusterMessage::Joined { sender: THEIRS, after: 0, complete: true });
    peer.phase = PeerPhase::Up;
    (peer, ports.remove(1))
}

/// Returns the batch of this number, with `count` events for all.
fn batch(number: u64, count: u64) -> ClusterBroadcast {
    let item = |at| {
        let body = EventKind::TradingDay { day: Day(number as i32) };
        let event = Event { seq: (number - 1) * count + at, at: NOW, body };
        ClusterEvent { shard: SHARD, to: EventRecipient::All, event }
    };
    ClusterBroadcast::Batch(ClusterBatch { sender: THEIRS, number, items: (1..=count).map(item).collect() })
}

fn command(token: u32) -> Command {
    let source = Source { origin: Origin::Rest, port: PortId(1), session: 0 };
    Command::new(source, token, CommandKind::Halt { security: SecurityId(1), on: true })
}

/// Delivers and receives all that is possible, and returns the sequence numbers.
fn receive_all(peer: &mut ClusterPeer, port: &mut PortEnd) -> Vec<u64> {
    let mut received = Vec::new();
    loop {
        peer.poll(&mut PortMask::default());
        let before = received.len();
        received.extend(std::iter::from_fn(|| port.poll_event()).map(|(_, event)| event.seq));
        if received.len() == before {
            return received;
        }
    }
}

#[test]
fn a_bounded_number_of_batches_waits_for_a_missing_one_and_the_rest_is_requested_again() {
    let (mut peer, mut port) = joined();
    let last = STASH_MAX as u64 + 2;
    (2..=last).for_each(|number| peer.handle_broadcast(NOW, batch(number, 1)));
    assert_eq!(peer.stash.len(), STASH_MAX);
    peer.handle_broadcast(NOW, batch(1, 1));
    assert!(receive_all(&mut peer, &mut port).into_iter().eq(1..last), "kept events are delivered in order");
    let fetch = std::iter::from_fn(|| peer.next_message(NOW.plus(RETRY_NS)))
        .find(|message| matches!(message, ClusterMessage::Fetch { .. }));
    assert_eq!(
        fetch,
        Some(ClusterMessage::Fetch { sender: OWN, incarnation: THEIRS.incarnation, from: last })
    );
    peer.handle_broadcast(NOW, batch(last, 1));
    assert_eq!(receive_all(&mut peer, &mut port), [last]);
}

#[test]
fn a_bounded_number_of_items_waits_for_a_full_lane_and_no_further_batch_is_opened() {
    let (mut peer, mut port) = joined();
    let (each, batches) = (100, ITEMS_MAX as u64 / 100 + 20);
    for number in 1..=batches {
        peer.handle_broadcast(NOW, batch(number, each));
        peer.poll(&mut PortMask::default());
    }
    assert!((ITEMS_MAX..ITEMS_MAX + each as usize).contains(&peer.items.len()), "{}", peer.items.len());
    assert!(peer.stash.len() > 10);
    // Prices are dropped; newer ones exist by the time there is room.
    let before = peer.items.len();
    let ClusterBroadcast::Batch(ClusterBatch { items: events, .. }) = batch(1, each) else { unreachable!() };
    peer.handle_broadcast(NOW, ClusterBroadcast::Prices { sender: THEIRS, events });
    assert_eq!(peer.items.len(), before);
    assert!(receive_all(&mut peer, &mut port).into_iter().eq(1..=batches * each), "nothing is lost");
}

#[test]
fn commands_in_flight_and_pending_responses_are_bounded() {
    let (mut peer, _port) = joined();
    for token in 0..UNACKNOWLEDGED_MAX as u32 {
        assert!(peer.has_room() && peer.route(SHARD, command(token)));
    }
    assert!(!peer.has_room(), "the rest stays in our lanes");
    let taken = |number| ClusterMessage::Taken { sender: THEIRS, incarnation: OWN.incarnation, number };
    peer.handle_message(&taken(1));
    assert!(peer.has_room());
    for token in UNACKNOWLEDGED_MAX as u32..PENDING_MAX as u32 {
        assert!(peer.route(SHARD, command(token)));
        peer.handle_message(&taken(token as u64 + 1));
    }
    assert_eq!(peer.unacknowledged.len(), 0);
    assert!(!peer.route(SHARD, command(PENDING_MAX as u32)), "it is refused");
    assert_eq!((peer.pending.len(), peer.unacknowledged.len()), (PENDING_MAX, 0));
    // A response makes room.
    let (source, reason) = (command(0).source, pitlane_engine::reason::Reason::None);
    let source =
        Source { port: pitlane_protocols::remote::cluster::remote_port(OWN.member, source.port), ..source };
    let event = Event { seq: 1, at: NOW, body: EventKind::Done { source, token: 0, reason } };
    let items = vec![ClusterEvent { shard: SHARD, to: EventRecipient::All, event }];
    peer.handle_broadcast(NOW, ClusterBroadcast::Batch(ClusterBatch { sender: THEIRS, number: 1, items }));
    peer.poll(&mut PortMask::default());
    assert!(peer.route(SHARD, command(PENDING_MAX as u32)));
}
