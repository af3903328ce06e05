//! Tests of an owner and a member with a network between them that loses, duplicates and delays
//! messages.

use std::collections::VecDeque;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, PortMask, SecurityId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, ShardEnd, link, mesh};
use pitlane_engine::reason::Reason;
use pitlane_engine::rng::Rng;
use pitlane_engine::terms::Status;
use pitlane_engine::time::{Day, NS_PER_MS, Timestamp};
use pitlane_protocols::remote::cluster::{ClusterBroadcast, ClusterMessage, MemberIdentity, remote_port};

use super::owner::LocalOwner;
use super::peer::{ClusterPeer, PeerPhase};

const SHARD: ShardId = ShardId(1);
const DEPTHS: Depths = Depths { commands: 8, events: 8 };
const CLIENT: Source = Source { origin: Origin::Rest, port: PortId(1), session: 0 };

/// A minimal shard: it records commands and emits events.
struct TestShard {
    end: ShardEnd,
    seq: u64,
    applied: Vec<u32>,
    waiting: VecDeque<(PortMask, Event)>,
}

impl TestShard {
    fn send(&mut self, to: PortMask, body: EventKind) {
        self.seq += 1;
        self.waiting.push_back((to, Event { seq: self.seq, at: Timestamp(self.seq), body }));
    }

    fn show(&mut self, body: EventKind) {
        let seq = self.seq | Event::SNAPSHOT;
        self.waiting.push_back((PortMask::one(PortId::LINK), Event { seq, at: Timestamp(1), body }));
    }

    fn poll(&mut self) {
        while let Some((to, event)) = self.waiting.front() {
            if to.ports().any(|port| self.end.send(port, *event).is_err()) {
                return;
            }
            self.waiting.pop_front();
        }
        let Some(Command { source, token, body, .. }) = self.end.poll_command() else { return };
        match body {
            CommandKind::Snapshot { port } => {
                self.show(EventKind::SnapshotBegin { port });
                self.show(EventKind::TradingDay { day: Day(self.seq as i32) });
                self.show(EventKind::SnapshotEnd { port });
            }
            CommandKind::Watch { .. } => {}
            _ => {
                self.applied.push(token);
                let link = PortMask::one(PortId::LINK);
                self.send(link, EventKind::TradingDay { day: Day(token as i32) });
                self.send(
                    PortMask::one(source.port),
                    EventKind::Done { source, token, reason: Reason::None },
                );
            }
        }
    }
}

/// Creates a member, and one of its ports that reads everything.
fn member(identity: MemberIdentity) -> (ClusterPeer, PortEnd) {
    let (mut ports, mut ends) = mesh(&[PortClass::Client; 2], 2, DEPTHS);
    let peer =
        ClusterPeer::new("b".to_string(), 1, identity, vec![ends.remove(1)], (1_000, 1_500 * NS_PER_MS));
    let mut client = ports.remove(1);
    let port = client.id();
    for body in
        [CommandKind::Watch { port, what: WatchTarget::Everything, on: true }, CommandKind::Snapshot { port }]
    {
        client.send(SHARD, Command::new(CLIENT, u32::MAX, body)).expect("there is room");
    }
    (peer, client)
}

struct ClusterSimulation {
    rng: Rng,
    now: Timestamp,
    /// Percentage of messages that are lost; the same percentage is duplicated.
    loss: u64,
    shard: TestShard,
    owner: LocalOwner,
    peer: ClusterPeer,
    client: PortEnd,
    broadcasts: VecDeque<ClusterBroadcast>,
    messages: VecDeque<ClusterMessage>,
    replies: VecDeque<ClusterMessage>,
    /// Sequence numbers of the events that the client has received.
    received: Vec<u64>,
    /// Tokens of the finished commands of the client.
    done: Vec<u32>,
    snapshots: u32,
    /// Sequence numbers of events that a FIX session of the client has reported: it keeps them
    /// across a crash of its server.
    reported: Vec<u64>,
    incarnations: u64,
}

impl ClusterSimulation {
    fn new(seed: u64, window: usize) -> ClusterSimulation {
        let (_, mut ends) = mesh(&[PortClass::Client], 2, DEPTHS);
        let far = link(&mut ends, DEPTHS);
        let shard = TestShard { end: ends.remove(1), seq: 0, applied: Vec::new(), waiting: VecDeque::new() };
        let identity = |member| MemberIdentity { member, incarnation: 5 + u64::from(member), map: 1 };
        let owner = LocalOwner::new(identity(1), far, [SHARD].into_iter().collect(), 2, (window, 1_024));
        let (peer, client) = member(identity(0));
        ClusterSimulation {
            rng: Rng::new(seed),
            now: Timestamp(1),
            loss: 0,
            shard,
            owner,
            peer,
            client,
            broadcasts: VecDeque::new(),
            messages: VecDeque::new(),
            replies: VecDeque::new(),
            received: Vec::new(),
            done: Vec::new(),
            snapshots: 0,
            reported: Vec::new(),
            incarnations: 1,
        }
    }

    /// Restarts the member after a crash, with what its sessions have kept. Messages in flight to
    /// it are lost, messages in flight from it are not.
    fn restart(&mut self) {
        self.incarnations += 1;
        (self.peer, self.client) =
            member(MemberIdentity { member: 0, incarnation: 5 + self.incarnations, map: 1 });
        self.peer.received_before_start = Some(vec![(SHARD, self.reported.last().copied().unwrap_or(0))]);
        self.received.clear();
        self.broadcasts.clear();
        self.replies.clear();
    }

    /// Emits an event of an order of the member's FIX session.
    fn report(&mut self) {
        let source = Source { origin: Origin::Fix, port: remote_port(0, CLIENT.port), session: 1 };
        let (order, id) = (OrderHandle::NONE, IntId::NONE);
        let (request, status, reason) = (RequestKind::Cancel, Status::Rejected, Reason::None);
        let refusal = RequestRefusal { order, id, request_id: id, source, request, status, reason };
        self.shard.send(PortMask::one(PortId::LINK), EventKind::Refused(refusal));
    }

    /// Returns how often a message arrives.
    fn copies(&mut self) -> usize {
        match self.rng.below(100) {
            roll if roll < self.loss => 0,
            roll if roll < 2 * self.loss => 2,
            _ => 1,
        }
    }

    fn step(&mut self) {
        self.now = self.now.plus(self.rng.below(50) * NS_PER_MS);
        self.shard.poll();
        self.owner.poll();
        while let Some(batch) = self.owner.window.take() {
            for _ in 0..self.copies() {
                self.broadcasts.push_back(ClusterBroadcast::decode(&batch).expect("our own encoding"));
            }
        }
        if self.rng.below(4) == 0 {
            let sender = MemberIdentity { member: 1, incarnation: 6, map: 1 };
            self.broadcasts.push_back(ClusterBroadcast::Heartbeat { sender, last: self.owner.window.last() });
        }
        while let Some(message) = self.peer.next_message(self.now) {
            for _ in 0..self.copies() {
                self.messages.push_back(message.clone());
            }
        }
        for _ in 0..self.rng.below(4) {
            if let Some(broadcast) = self.broadcasts.pop_front() {
                self.peer.handle_broadcast(self.now, broadcast);
            }
            if let Some(message) = self.replies.pop_front() {
                self.peer.handle_message(&message);
            }
            let Some(message) = self.messages.pop_front() else { continue };
            let mut resent = Vec::new();
            let answer = self.owner.handle(self.now, message, &mut |batch| resent.push(batch), &|_, _| true);
            self.broadcasts.extend(
                resent.iter().map(|batch| ClusterBroadcast::decode(batch).expect("our own encoding")),
            );
            for _ in 0..self.copies() {
                self.replies.extend(answer.clone());
            }
        }
        self.take_commands();
        self.peer.poll(&mut PortMask::default());
        if self.peer.is_caught_up() {
            (self.peer.phase, self.peer.received_before_start) = (PeerPhase::Up, None);
        } else if self.rng.below(8) == 0 {
            self.peer.shards[0].send_empty_snapshot(self.now);
        }
        self.receive();
    }

    fn take_commands(&mut self) {
        let (peer, now) = (&mut self.peer, self.now);
        while let Some(command) = peer.shards[0].poll_command() {
            if let (Some(command), _) = peer.shards[0].handle_locally(now, command) {
                assert!(peer.route(SHARD, command));
            }
        }
    }

    fn receive(&mut self) {
        while let Some((_, Event { seq, body, .. })) = self.client.poll_event() {
            if let EventKind::Refused(_) = body {
                let (is_missed, seq) = (seq & Event::SNAPSHOT != 0, seq & !Event::SNAPSHOT);
                // As a session does: an event missed before a restart is reported unless a later
                // one was.
                if !is_missed || self.reported.last().is_none_or(|last| seq > *last) {
                    self.reported.push(seq);
                }
                continue;
            }
            assert!(self.received.last().is_none_or(|last| seq >= *last), "numbers never go back");
            match body {
                EventKind::Done { token: u32::MAX, .. } => {}
                EventKind::Done { token, .. } => self.done.push(token),
                EventKind::SnapshotEnd { .. } => self.snapshots += 1,
                _ => {}
            }
            self.received.push(seq);
        }
    }

    fn send_command(&mut self, token: u32) {
        let body = CommandKind::Halt { security: SecurityId(1), on: true };
        if self.peer.is_up() && self.client.has_room(SHARD) {
            self.client.send(SHARD, Command::new(CLIENT, token, body)).expect("there is room");
        }
    }
}

#[test]
fn on_any_network_each_command_is_taken_once_and_each_response_received_once() {
    for seed in 0..40 {
        let mut world = ClusterSimulation::new(seed, 1 << 20);
        world.loss = seed % 40;
        let mut sent = 0;
        while sent < 200 {
            let has_room = world.client.has_room(SHARD) && world.peer.is_up();
            world.send_command(sent);
            sent += u32::from(has_room);
            world.step();
        }
        world.loss = 0;
        for _ in 0..4_000 {
            world.step();
        }
        let all: Vec<u32> = (0..sent).collect();
        assert_eq!(world.shard.applied, all, "in their order, each once; seed {seed}");
        assert_eq!(world.done, all, "seed {seed}");
        assert!(world.peer.pending.is_empty() && world.snapshots >= 1);
        assert_eq!(world.peer.shards[0].seq(), world.shard.seq, "and nothing is missing; seed {seed}");
    }
}

#[test]
fn a_fix_client_receives_each_report_once_and_in_order_however_often_its_server_restarts() {
    for seed in 0..200 {
        let mut world = ClusterSimulation::new(seed, if seed % 3 == 0 { 2_000 } else { 1 << 20 });
        world.loss = seed % 30;
        let mut sent = Vec::new();
        for _ in 0..400 {
            if world.rng.below(3) == 0 {
                world.report();
                sent.push(world.shard.seq);
            }
            if world.rng.below(40) == 0 {
                world.restart();
            }
            world.step();
        }
        world.loss = 0;
        for _ in 0..4_000 {
            world.step();
        }
        assert_eq!(world.reported, sent, "seed {seed}, {} starts", world.incarnations);
    }
}

#[test]
fn a_snapshot_replaces_batches_that_are_no_longer_kept() {
    let mut world = ClusterSimulation::new(3, 200);
    while !world.peer.is_up() {
        world.step();
    }
    // No message arrives for a while.
    world.loss = 100;
    for seq in 0..50 {
        world.shard.send(PortMask::one(PortId::LINK), EventKind::TradingDay { day: Day(seq) });
        world.step();
        world.broadcasts.clear();
    }
    let before = world.snapshots;
    world.loss = 0;
    for _ in 0..2_000 {
        world.step();
    }
    assert!(world.snapshots > before);
    assert_eq!(world.peer.shards[0].seq(), world.shard.seq);
    assert!(world.peer.is_up());
}
