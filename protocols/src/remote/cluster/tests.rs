//! Messages between servers come back from their bytes, and a change of the bytes needs a new
//! version.

use super::*;
use crate::remote::MessageError;
use crate::test_reports;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{ExecType, OrderReport, OrderTerms, RequestKind};
use pitlane_engine::id::StrategyId;
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::sender::{Sender, SenderPart, SenderText};
use pitlane_engine::terms::{Changes, ExecInst, OrderSpecialTerms, SpecialTerms, Status, Terms};
use pitlane_engine::time::{Day, Timestamp};
use pitlane_engine::used_ids::UsedIds;

#[test]
fn each_server_sees_its_own_ports_as_they_are_and_those_of_others_beyond() {
    let (a, b, c) = (0, 1, 6);
    let port = PortId(5);
    assert_eq!(owner_of_port(port), None);
    assert_eq!(owner_of_port(remote_port(c, PortId(31))), Some((c, PortId(31))));
    // An order of a at the owner b, as sent to a, to b itself and to c.
    let at_b = remote_port(a, port);
    assert_eq!(translate_port(at_b, b, a), port);
    assert_eq!(translate_port(at_b, b, c), at_b);
    assert_eq!(translate_port(port, b, a), remote_port(b, port), "one of b's own");
    let all: std::collections::BTreeSet<u8> = (0..MEMBERS_MAX as u8)
        .flat_map(|member| (0..PORTS).map(move |port| remote_port(member, PortId(port)).0))
        .collect();
    assert_eq!(all.len(), MEMBERS_MAX * PORTS as usize);
    assert!(all.iter().all(|port| *port >= PORTS));
}

#[test]
fn messages_decode_to_themselves_and_truncated_ones_do_not() {
    let sender = MemberIdentity { member: 1, incarnation: 7, map: 9 };
    let event = Event { seq: 3, at: Timestamp(4), body: EventKind::TradingDay { day: Day(5) } };
    let item = |to| ClusterEvent { shard: ShardId(1), to, event };
    let items = vec![item(EventRecipient::All), item(EventRecipient::Joining), item(EventRecipient::Late(2))];
    let broadcasts = [
        ClusterBroadcast::Batch(ClusterBatch { sender, number: 8, items: items.clone() }),
        ClusterBroadcast::Heartbeat { sender, last: 8 },
        ClusterBroadcast::Prices { sender, events: items },
        ClusterBroadcast::Bye { sender },
    ];
    for broadcast in broadcasts {
        let bytes = broadcast.encode();
        assert_eq!((broadcast.sender(), ClusterBroadcast::decode(&bytes)), (sender, Ok(broadcast)));
        assert!((0..bytes.len()).all(|cut| ClusterBroadcast::decode(&bytes[..cut]).is_err()));
    }
    let body = CommandKind::Phase { strategy: StrategyId(2), phase: StrategyPhase::Start };
    let commands = vec![(ShardId(1), Command::new(Source::default(), 1, body))];
    let securities = vec![SecurityId(4)];
    let messages = [
        ClusterMessage::Join { sender, incarnation: 1, received: vec![(ShardId(1), 2)] },
        ClusterMessage::Fetch { sender, incarnation: 1, from: 2 },
        ClusterMessage::Commands { sender, incarnation: 1, first: 1, commands },
        ClusterMessage::Wants {
            sender,
            incarnation: 1,
            ticks: securities.clone(),
            depths: securities.clone(),
            levels: securities.clone(),
            book_orders: securities.clone(),
            trades: securities,
        },
        ClusterMessage::Gone { sender },
        ClusterMessage::Joined { sender, after: 4, complete: true },
        ClusterMessage::Taken { sender, incarnation: 1, number: 3 },
    ];
    for message in messages {
        let bytes = message.encode();
        assert_eq!((message.sender(), ClusterMessage::decode(&bytes)), (sender, Ok(message)));
        assert!((0..bytes.len()).all(|cut| ClusterMessage::decode(&bytes[..cut]).is_err()));
    }
}

/// Returns a command of each kind about an order with special terms, and the events about it.
fn with_special_terms() -> (Vec<CommandKind>, Vec<EventKind>) {
    let special = SpecialTerms {
        exec_inst: ExecInst::parse(b"G 1").expect("two codes"),
        min_qty: Some(Qty::from_raw(2)),
        max_floor: Some(Qty::from_raw(4)),
    };
    let (order, id) = (OrderHandle::NONE, IntId::numbered(b'o', 1));
    let terms = Terms { special: true, ..Terms::default() };
    let commands = vec![
        CommandKind::SpecialTerms(special),
        CommandKind::Submit { id, terms },
        CommandKind::Modify { order, id, changes: Changes::default().with_special(true) },
    ];
    let source = Source { port: PortId(3), ..Source::default() };
    let reported = OrderTerms {
        order,
        id,
        orig_id: IntId::NONE,
        source,
        what: ExecType::Entered,
        status: Status::New,
        reason: Reason::None,
        sender: SenderId::NONE,
        terms,
    };
    let announced = OrderSpecialTerms { order, source, is_snapshot: false, special };
    (commands, vec![EventKind::SpecialTerms(announced), EventKind::Order(reported)])
}

/// Returns messages with special terms, as bytes.
fn special_messages() -> [Vec<u8>; 2] {
    let sender = MemberIdentity { member: 1, incarnation: 7, map: 9 };
    let (commands, events) = with_special_terms();
    let command = |body| (ShardId(1), Command::new(Source::default(), 1, body));
    let commands = commands.into_iter().map(command).collect();
    let event = |body| ClusterEvent {
        shard: ShardId(1),
        to: EventRecipient::All,
        event: Event { seq: 3, at: Timestamp(4), body },
    };
    let items = events.into_iter().map(event).collect();
    let message = ClusterMessage::Commands { sender, incarnation: 1, first: 1, commands };
    let batch = ClusterBroadcast::Batch(ClusterBatch { sender, number: 8, items });
    assert_eq!(ClusterMessage::decode(&message.encode()), Ok(message.clone()));
    assert_eq!(ClusterBroadcast::decode(&batch.encode()), Ok(batch.clone()));
    [message.encode(), batch.encode()]
}

#[test]
fn a_change_of_the_bytes_needs_a_new_version() {
    let sums = special_messages().map(|bytes| {
        let sum = bytes.iter().fold(0u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
        (bytes[0], bytes.len(), sum)
    });
    let expected = [(3, 152, 4_062_919_657), (3, 169, 2_909_679_448)];
    assert_eq!(sums, expected, "raise CLUSTER_VERSION, then write the new values here");
}

#[test]
fn messages_of_another_version_are_refused_as_such() {
    for mut bytes in special_messages() {
        bytes[0] = CLUSTER_VERSION - 1;
        let error = MessageError::Version { theirs: CLUSTER_VERSION - 1, ours: CLUSTER_VERSION };
        assert_eq!(ClusterMessage::decode(&bytes), Err(error));
        assert_eq!(ClusterBroadcast::decode(&bytes), Err(error));
    }
}

/// Source of a client of this server, and of one of another server.
fn sources() -> [Source; 2] {
    [PortId(5), remote_port(2, PortId(5))].map(|port| Source { port, ..Source::default() })
}

#[test]
fn the_port_of_an_answer_is_translated_wherever_the_event_names_it() {
    let [own, _] = sources();
    let special = SpecialTerms::default();
    let (order, id) = (test_reports::handle(1), test_reports::id(1));
    for body in [
        EventKind::Order(test_reports::entered(own)),
        EventKind::Status(test_reports::report(own, ExecType::Accepted)),
        EventKind::Refused(test_reports::refused(own, RequestKind::Cancel)),
        EventKind::Forgotten { order, source: own, id },
        EventKind::Done { source: own, token: 1, reason: Reason::None },
        EventKind::UsedIds(UsedIds { hashes: [0; UsedIds::COUNT_MAX], source: own, count: 0 }),
        EventKind::SpecialTerms(OrderSpecialTerms { order, source: own, is_snapshot: false, special }),
    ] {
        let mut event = test_reports::event(1, body);
        let source = source_of(&mut event).expect("it answers a source");
        assert_eq!(*source, own);
        source.port = remote_port(1, source.port);
        assert_eq!(event.body.subject().source.map(|source| source.port), Some(remote_port(1, PortId(5))));
    }
    let mut day = test_reports::event(1, EventKind::TradingDay { day: Day(5) });
    assert_eq!(source_of(&mut day), None);
}

#[test]
fn the_senders_that_an_event_names_are_translated() {
    let sender = SenderId(5 << 24 | 77);
    let here = |port: PortId| remote_port(2, port);
    let translated = sender.with_port(here(PortId(5)));
    assert_ne!(translated, sender);
    let translate = |body| {
        let mut event = test_reports::event(1, body);
        translate_senders(&mut event, here);
        event.body
    };
    let order = OrderTerms { sender, ..test_reports::entered(Source::default()) };
    assert_eq!(
        translate(EventKind::Order(order)),
        EventKind::Order(OrderTerms { sender: translated, ..order })
    );
    let report = OrderReport { sender, ..test_reports::report(Source::default(), ExecType::Canceled) };
    assert_eq!(
        translate(EventKind::Status(report)),
        EventKind::Status(OrderReport { sender: translated, ..report })
    );
    let known = |id| EventKind::Sender { id, sender: Sender::default() };
    assert_eq!(translate(known(sender)), known(translated));
    let sent = |id| EventKind::Sent {
        order: test_reports::handle(1),
        sent: SentBy { submitted: id, modified: id, canceled: id },
    };
    assert_eq!(translate(sent(sender)), sent(translated));
    assert_eq!(translate(sent(SenderId::INTERNAL)), sent(SenderId::INTERNAL), "the same on all servers");
}

#[test]
fn a_command_for_another_server_has_the_ports_that_it_knows() {
    let sender = SenderId(5 << 24 | 77);
    let there = remote_port(1, PortId(5));
    let part = SenderPart::Session(SenderText::new("x"));
    let [own, _] = sources();
    let mut command = Command { sender, ..Command::new(own, 1, CommandKind::Sender { id: sender, part }) };
    translate_command(&mut command, 1);
    assert_eq!((command.source.port, command.sender), (there, sender.with_port(there)));
    assert_eq!(command.body, CommandKind::Sender { id: sender.with_port(there), part });
}

#[test]
fn events_about_orders_of_other_servers_are_told_from_snapshots_and_own_orders() {
    let concerns = |body| concerns_remote_client(&test_reports::event(1, body));
    let [own, remote] = sources();
    let status = |source, what| EventKind::Status(test_reports::report(source, what));
    assert!(concerns(status(remote, ExecType::Accepted)));
    assert!(!concerns(status(remote, ExecType::Snapshot)));
    assert!(!concerns(status(own, ExecType::Accepted)) && !concerns(status(own, ExecType::Snapshot)));
    let done = EventKind::Done { source: remote, token: 1, reason: Reason::None };
    assert!(!concerns(done), "about no order");
    assert!(!concerns(EventKind::TradingDay { day: Day(5) }));
}

#[test]
fn an_event_with_numbers_that_its_shard_cannot_have_is_not_sound() {
    const ORDERS_MAX: u32 = 10;
    let is_sound = |body| is_sound(ShardId(3), ORDERS_MAX, &test_reports::event(1, body));
    let of_order = |shard, slot, security| {
        let order = OrderHandle::new(ShardId(shard), 1, slot);
        let report = test_reports::report(Source::default(), ExecType::Accepted);
        EventKind::Status(OrderReport { order, security: SecurityId(security), ..report })
    };
    for (shard, slot, security, expected) in [
        (3, 0, 1, true),
        (3, ORDERS_MAX - 1, SecurityId::MAX, true),
        (3, ORDERS_MAX, 1, false),
        (3, ORDERS_MAX + 1, 1, false),
        (2, 0, 1, false),
        (3, 0, SecurityId::MAX + 1, false),
        (2, 0, SecurityId::MAX + 1, false),
    ] {
        assert_eq!(is_sound(of_order(shard, slot, security)), expected, "{shard} {slot} {security}");
    }
    let none = test_reports::report(Source::default(), ExecType::Accepted);
    assert!(is_sound(EventKind::Status(OrderReport { order: OrderHandle::NONE, ..none })));
    let halt = |security| EventKind::Halt { security: SecurityId(security), on: true };
    assert!(is_sound(halt(SecurityId::MAX)) && !is_sound(halt(SecurityId::MAX + 1)));
    assert!(is_sound(EventKind::TradingDay { day: Day(5) }));
}

#[test]
fn an_answer_has_the_key_of_its_command() {
    let [own, _] = sources();
    let (order, first, second) = (test_reports::handle(1), test_reports::id(1), test_reports::id(2));
    let key_of = |body| AnswerKey::of_event(&test_reports::event(1, body));
    let command = |body| Some(AnswerKey::of_command(&Command::new(own, 7, body)));
    let submit = CommandKind::Submit { id: first, terms: Terms::default() };
    assert_eq!(key_of(EventKind::Order(test_reports::entered(own))), command(submit));
    let modify = CommandKind::Modify { order, id: second, changes: Changes::default() };
    let replaced = OrderReport { id: second, ..test_reports::report(own, ExecType::ReplacePending) };
    let refusal = test_reports::refused(own, RequestKind::Replace);
    assert_eq!(key_of(EventKind::Status(replaced)), command(modify));
    assert_eq!(key_of(EventKind::Refused(refusal)), command(modify));
    let phase = CommandKind::Phase { strategy: StrategyId(2), phase: StrategyPhase::Start };
    let done = EventKind::Done { source: own, token: 7, reason: Reason::None };
    assert_eq!(key_of(done), command(phase));
    assert_eq!(key_of(EventKind::Status(test_reports::report(own, ExecType::Accepted))), None);
}
