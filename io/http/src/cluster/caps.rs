//! Tests of the bounds of what is buffered for other servers.

use pitlane_cluster::nats::subjects::Subjects;
use pitlane_config::Config;
use pitlane_engine::command::Command;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{Origin, PortId, SecurityId, Source};
use pitlane_engine::mesh::{Depths, PortClass, ShardEnd, link, mesh};
use pitlane_engine::time::Day;
use pitlane_gateway::RemoteShards;
use pitlane_protocols::remote::cluster::{ClusterEvent, EventRecipient};

use super::owner::RESEND_MAX;
use super::*;

const OTHER: MemberIdentity = MemberIdentity { member: 1, incarnation: 9, map: 1 };
const INCARNATION: u64 = 5;
const DEPTHS: Depths = Depths { commands: 8, events: 8 };

/// Creates the first of two servers, and its shard's end of the lanes.
fn cluster() -> (ClusterNode, ShardEnd) {
    let member = |name: &str, shard| MemberConfig { name: name.to_string(), shards: vec![shard] };
    let config = Config::default();
    let (_, mut ends) = mesh(&[PortClass::Client; 2], 2, DEPTHS);
    let far = RemoteShards { link: link(&mut ends, DEPTHS), shards: vec![ends.remove(1)] };
    let parts = ClusterParts {
        nats: config.nats.clone(),
        subjects: Subjects::of(&config.nats, &config.service),
        settings: ClusterConfig { name: "c".to_string(), member: "a".to_string(), ..config.cluster.clone() },
        members: vec![member("a", 0), member("b", 1)],
        far,
        wakeups: Arc::new(Wakeups::silent(2, 2)),
        incarnation: INCARNATION,
        map: OTHER.map,
        orders_max: 1_000,
        past: Vec::new(),
        reported: None,
    };
    let cluster = ClusterNode::new(parts, Timestamp(1));
    cluster.set_up(true);
    (cluster, ends.remove(0))
}

/// Adds this number of batches to the window.
fn add_batches(cluster: &ClusterNode, count: u64) {
    let window = &mut cluster.inner.borrow_mut().owner.window;
    for seq in 1..=count {
        let event = Event { seq, at: Timestamp(1), body: EventKind::TradingDay { day: Day(1) } };
        window.add(ClusterEvent { shard: ShardId(0), to: EventRecipient::All, event });
        window.close();
    }
    window.skip_unsent();
}

fn fetch(cluster: &ClusterNode, from: u64) {
    let message = ClusterMessage::Fetch { sender: OTHER, incarnation: INCARNATION, from }.encode();
    cluster.handle_message(Timestamp(1), Some(OTHER.member), &message, &|_, _| true);
}

/// Returns the numbers of the batches that are sent again.
fn resent_batches(cluster: &ClusterNode) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some((subject, bytes)) = cluster.take(Timestamp(1)) {
        if subject.contains(".again.") {
            let Ok(ClusterBroadcast::Batch(batch)) = ClusterBroadcast::decode(&bytes) else {
                panic!("only batches are sent again")
            };
            numbers.push(batch.number);
        }
    }
    numbers
}

#[test]
fn a_fetch_resends_a_bounded_number_of_batches_and_the_next_fetch_gets_the_rest() {
    let (cluster, _shard) = cluster();
    add_batches(&cluster, RESEND_MAX + 10);
    fetch(&cluster, 1);
    assert!(resent_batches(&cluster).into_iter().eq(1..=RESEND_MAX));
    fetch(&cluster, RESEND_MAX + 1);
    assert!(resent_batches(&cluster).into_iter().eq(RESEND_MAX + 1..=RESEND_MAX + 10));
}

#[test]
fn the_output_queue_is_bounded_and_a_dropped_fetch_can_be_repeated() {
    let (cluster, _shard) = cluster();
    add_batches(&cluster, RESEND_MAX);
    for _ in 0..OUT_MAX as u64 / RESEND_MAX {
        fetch(&cluster, 1);
    }
    assert_eq!(cluster.inner.borrow().out.len(), OUT_MAX);
    fetch(&cluster, 1);
    assert_eq!(cluster.inner.borrow().out.len(), OUT_MAX);
    assert_eq!(resent_batches(&cluster).len(), OUT_MAX);
    fetch(&cluster, 1);
    assert!(resent_batches(&cluster).into_iter().eq(1..=RESEND_MAX), "it was requested again");
}

#[test]
fn the_inbox_of_a_member_is_bounded_and_commands_beyond_it_are_not_acknowledged() {
    /// As in `owner.rs`.
    const INBOX: u64 = 4_096;
    let (cluster, mut shard) = cluster();
    let source = Source { origin: Origin::Rest, port: PortId(1), session: 0 };
    let body = CommandKind::Halt { security: SecurityId(2), on: true };
    let send = |first: u64, count: u64| {
        let command = |number| (ShardId(0), Command::new(source, number as u32, body));
        let commands = (first..first + count).map(command).collect();
        let message = ClusterMessage::Commands { sender: OTHER, incarnation: INCARNATION, first, commands };
        let answer =
            cluster.inner.borrow_mut().owner.handle(Timestamp(1), message, &mut |_| {}, &|_, _| true);
        let Some(ClusterMessage::Taken { number, .. }) = answer else { panic!("{answer:?}") };
        number
    };
    for first in (1..INBOX).step_by(64) {
        assert_eq!(send(first, 64), first + 63);
    }
    assert_eq!(send(INBOX + 1, 64), INBOX, "they are sent again");
    // As the shard takes commands there is room for more, and each command is taken once.
    let (mut taken, mut tokens) = (INBOX, Vec::new());
    while tokens.len() < INBOX as usize + 64 {
        cluster.inner.borrow_mut().owner.poll();
        while let Some(command) = shard.poll_command() {
            if matches!(command.body, CommandKind::Halt { .. }) {
                tokens.push(command.token);
            }
        }
        taken = send(INBOX + 1, 64);
    }
    assert_eq!(taken, INBOX + 64);
    assert!(tokens.into_iter().eq(1..=INBOX as u32 + 64));
}
