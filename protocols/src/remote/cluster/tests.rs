//! Messages between servers come back from their bytes, and a change of the bytes needs a new
//! version.

use super::*;
use crate::remote::MessageError;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{ExecType, OrderTerms};
use pitlane_engine::id::StrategyId;
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, ExecInst, OrderSpecialTerms, SpecialTerms, Status, Terms};
use pitlane_engine::time::{Day, Timestamp};

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
