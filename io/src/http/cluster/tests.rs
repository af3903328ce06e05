//! Tests of an owner and a member with a network between them that loses, duplicates and delays
//! messages.

use std::collections::VecDeque;

use pitlane_engine::cluster::{ClusterBroadcast, ClusterMessage, MemberIdentity, remote_port};
use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, PortMask, SecurityId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, ShardEnd, link, mesh};
use pitlane_engine::reason::Reason;
use pitlane_engine::rng::Rng;
use pitlane_engine::terms::Status;
use pitlane_engine::time::{Day, NS_PER_MS, Timestamp};

use super::owner::Owner;
use super::peer::{Peer, Phase};

const SHARD: ShardId = ShardId(1);
const DEPTHS: Depths = Depths { commands: 8, events: 8 };
const ASKER: Source = Source { origin: Origin::Rest, port: PortId(1), session: 0 };

/// A minimal shard: it records commands and emits events.
struct Shard {
    end: ShardEnd,
    seq: u64,
    applied: Vec<u32>,
    waiting: VecDeque<(PortMask, Event)>,
}

impl Shard {
    fn say(&mut self, to: PortMask, body: EventKind) {
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
                self.say(link, EventKind::TradingDay { day: Day(token as i32) });
                self.say(PortMask::one(source.port), EventKind::Done { source, token, reason: Reason::None });
            }
        }
    }
}

/// Creates a member, and one of its ports that reads everything.
fn member(card: MemberIdentity) -> (Peer, PortEnd) {
    let (mut ports, mut ends) = mesh(&[PortClass::Client; 2], 2, DEPTHS);
    let peer = Peer::new("b".to_string(), 1, card, vec![ends.remove(1)], (1_000, 1_500 * NS_PER_MS));
    let mut asker = ports.remove(1);
    let port = asker.id();
    for body in
        [CommandKind::Watch { port, what: WatchTarget::Everything, on: true }, CommandKind::Snapshot { port }]
    {
        asker.send(SHARD, Command::new(ASKER, u32::MAX, body)).expect("there is room");
    }
    (peer, asker)
}

struct World {
    dice: Rng,
    now: Timestamp,
    /// Percentage of messages that are lost; the same percentage is duplicated.
    loss: u64,
    shard: Shard,
    owner: Owner,
    peer: Peer,
    asker: PortEnd,
    calls: VecDeque<ClusterBroadcast>,
    letters: VecDeque<ClusterMessage>,
    back: VecDeque<ClusterMessage>,
    /// Sequence numbers of the events that the asker has received.
    heard: Vec<u64>,
    /// Tokens of the finished commands of the asker.
    done: Vec<u32>,
    snapshots: u32,
    /// Sequence numbers of events that a FIX session of the asker has reported: it keeps them
    /// across a crash of its server.
    reported: Vec<u64>,
    lives: u64,
}

impl World {
    fn new(seed: u64, window: usize) -> World {
        let (_, mut ends) = mesh(&[PortClass::Client], 2, DEPTHS);
        let far = link(&mut ends, DEPTHS);
        let shard = Shard { end: ends.remove(1), seq: 0, applied: Vec::new(), waiting: VecDeque::new() };
        let card = |member| MemberIdentity { member, life: 5 + u64::from(member), map: 1 };
        let owner = Owner::new(card(1), far, [SHARD].into_iter().collect(), 2, (window, 1_024));
        let (peer, asker) = member(card(0));
        World {
            dice: Rng::new(seed),
            now: Timestamp(1),
            loss: 0,
            shard,
            owner,
            peer,
            asker,
            calls: VecDeque::new(),
            letters: VecDeque::new(),
            back: VecDeque::new(),
            heard: Vec::new(),
            done: Vec::new(),
            snapshots: 0,
            reported: Vec::new(),
            lives: 1,
        }
    }

    /// Restarts the member after a crash, with what its sessions have kept. Messages in flight to
    /// it are lost, messages in flight from it are not.
    fn restart(&mut self) {
        self.lives += 1;
        (self.peer, self.asker) = member(MemberIdentity { member: 0, life: 5 + self.lives, map: 1 });
        self.peer.heard_before = Some(vec![(SHARD, self.reported.last().copied().unwrap_or(0))]);
        self.heard.clear();
        self.calls.clear();
        self.back.clear();
    }

    /// Emits an event of an order of the member's FIX session.
    fn report(&mut self) {
        let source = Source { origin: Origin::Fix, port: remote_port(0, ASKER.port), session: 1 };
        let (order, id) = (OrderHandle::NONE, IntId::NONE);
        let (request, status, reason) = (RequestKind::Cancel, Status::Rejected, Reason::None);
        let refusal = RequestRefusal { order, id, request_id: id, source, request, status, reason };
        self.shard.say(PortMask::one(PortId::LINK), EventKind::Refused(refusal));
    }

    /// Returns how often a message arrives.
    fn copies(&mut self) -> usize {
        match self.dice.below(100) {
            roll if roll < self.loss => 0,
            roll if roll < 2 * self.loss => 2,
            _ => 1,
        }
    }

    fn step(&mut self) {
        self.now = self.now.plus(self.dice.below(50) * NS_PER_MS);
        self.shard.poll();
        self.owner.poll();
        while let Some(post) = self.owner.window.take() {
            for _ in 0..self.copies() {
                self.calls.push_back(ClusterBroadcast::decode(&post).expect("our own words"));
            }
        }
        if self.dice.below(4) == 0 {
            let card = MemberIdentity { member: 1, life: 6, map: 1 };
            self.calls.push_back(ClusterBroadcast::Heartbeat { card, last: self.owner.window.last() });
        }
        while let Some(letter) = self.peer.next_letter(self.now) {
            for _ in 0..self.copies() {
                self.letters.push_back(letter.clone());
            }
        }
        for _ in 0..self.dice.below(4) {
            if let Some(call) = self.calls.pop_front() {
                self.peer.handle_call(self.now, call);
            }
            if let Some(letter) = self.back.pop_front() {
                self.peer.handle_letter(&letter);
            }
            let Some(letter) = self.letters.pop_front() else { continue };
            let mut again = Vec::new();
            let answer = self.owner.handle(self.now, letter, &mut |post| again.push(post), &|_, _| true);
            self.calls
                .extend(again.iter().map(|post| ClusterBroadcast::decode(post).expect("our own words")));
            for _ in 0..self.copies() {
                self.back.extend(answer.clone());
            }
        }
        self.take_commands();
        self.peer.poll(&mut PortMask::default());
        if self.peer.is_caught_up() {
            (self.peer.phase, self.peer.heard_before) = (Phase::Here, None);
        } else if self.dice.below(8) == 0 {
            self.peer.shards[0].excuse(self.now);
        }
        self.listen();
    }

    fn take_commands(&mut self) {
        let (peer, now) = (&mut self.peer, self.now);
        while let Some(command) = peer.shards[0].poll_command() {
            if let (Some(command), _) = peer.shards[0].handle_here(now, command) {
                assert!(peer.ask(SHARD, command));
            }
        }
    }

    fn listen(&mut self) {
        while let Some((_, Event { seq, body, .. })) = self.asker.poll_event() {
            if let EventKind::Refused(_) = body {
                let (is_missed, seq) = (seq & Event::SNAPSHOT != 0, seq & !Event::SNAPSHOT);
                // As a session does: an event missed before a restart is reported unless a later
                // one was.
                if !is_missed || self.reported.last().is_none_or(|last| seq > *last) {
                    self.reported.push(seq);
                }
                continue;
            }
            assert!(self.heard.last().is_none_or(|last| seq >= *last), "numbers never go back");
            match body {
                EventKind::Done { token: u32::MAX, .. } => {}
                EventKind::Done { token, .. } => self.done.push(token),
                EventKind::SnapshotEnd { .. } => self.snapshots += 1,
                _ => {}
            }
            self.heard.push(seq);
        }
    }

    fn ask(&mut self, token: u32) {
        let body = CommandKind::Halt { security: SecurityId(1), on: true };
        if self.peer.is_here() && self.asker.has_room(SHARD) {
            self.asker.send(SHARD, Command::new(ASKER, token, body)).expect("there is room");
        }
    }
}

#[test]
fn on_any_network_each_command_is_taken_once_and_each_response_received_once() {
    for seed in 0..40 {
        let mut world = World::new(seed, 1 << 20);
        world.loss = seed % 40;
        let mut sent = 0;
        while sent < 200 {
            let room = world.asker.has_room(SHARD) && world.peer.is_here();
            world.ask(sent);
            sent += u32::from(room);
            world.step();
        }
        world.loss = 0;
        for _ in 0..4_000 {
            world.step();
        }
        let all: Vec<u32> = (0..sent).collect();
        assert_eq!(world.shard.applied, all, "in their order, each once; seed {seed}");
        assert_eq!(world.done, all, "seed {seed}");
        assert!(world.peer.asked.is_empty() && world.snapshots >= 1);
        assert_eq!(world.peer.shards[0].seq(), world.shard.seq, "and nothing is missing; seed {seed}");
    }
}

#[test]
fn a_fix_client_receives_each_report_once_and_in_order_however_often_its_server_restarts() {
    for seed in 0..200 {
        let mut world = World::new(seed, if seed % 3 == 0 { 2_000 } else { 1 << 20 });
        world.loss = seed % 30;
        let mut said = Vec::new();
        for _ in 0..400 {
            if world.dice.below(3) == 0 {
                world.report();
                said.push(world.shard.seq);
            }
            if world.dice.below(40) == 0 {
                world.restart();
            }
            world.step();
        }
        world.loss = 0;
        for _ in 0..4_000 {
            world.step();
        }
        assert_eq!(world.reported, said, "seed {seed}, {} lives", world.lives);
    }
}

#[test]
fn a_snapshot_replaces_posts_that_are_no_longer_kept() {
    let mut world = World::new(3, 200);
    while !world.peer.is_here() {
        world.step();
    }
    // No message arrives for a while.
    world.loss = 100;
    for seq in 0..50 {
        world.shard.say(PortMask::one(PortId::LINK), EventKind::TradingDay { day: Day(seq) });
        world.step();
        world.calls.clear();
    }
    let before = world.snapshots;
    world.loss = 0;
    for _ in 0..2_000 {
        world.step();
    }
    assert!(world.snapshots > before);
    assert_eq!(world.peer.shards[0].seq(), world.shard.seq);
    assert!(world.peer.is_here());
}
