use super::*;
use crate::command::CommandKind;
use crate::event::EventKind;
use crate::id::{AdapterId, IntId, OrderHandle, SecurityId, Source};
use crate::sender::{SENDERS_PER_PORT_MAX, SenderText};
use crate::time::{Day, Timestamp};

fn command(port: u8, token: u32) -> Command {
    let source = Source { port: PortId(port), ..Source::default() };
    Command::new(source, token, CommandKind::Timer)
}

fn event(seq: u64) -> Event {
    Event { seq, at: Timestamp(1), body: EventKind::TradingDay { day: Day(1) } }
}

fn depths(depth: usize) -> Depths {
    Depths { commands: depth, events: depth }
}

#[test]
fn every_pair_has_its_own_lanes() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client; 3], 4, Depths::default());
    for port in &mut ports {
        for shard in 0..4 {
            port.send(ShardId(shard), command(port.id().0, shard as u32)).unwrap();
        }
    }
    for (n, shard) in shards.iter_mut().enumerate() {
        assert_eq!(shard.id(), ShardId(n as u8));
        for port in 0..3 {
            assert_eq!(shard.poll_command(), Some(command(port, n as u32)));
            shard.send(PortId(port), event(n as u64 * 10 + port as u64)).unwrap();
        }
        assert_eq!(shard.poll_command(), None);
    }
    for (n, port) in ports.iter_mut().enumerate() {
        assert_eq!(port.shards(), 4);
        for shard in 0..4 {
            assert_eq!(port.poll_event(), Some((ShardId(shard), event(shard as u64 * 10 + n as u64))));
        }
        assert_eq!(port.poll_event(), None);
    }
}

#[test]
fn a_port_remembers_the_shards_to_wake() {
    let (mut ports, _shards) = mesh(&[PortClass::Client], 128, depths(1));
    let port = &mut ports[0];
    assert!(port.take_wakeups().is_empty());
    for shard in [127, 3] {
        port.send(ShardId(shard), command(0, 1)).unwrap();
        assert_eq!(port.send(ShardId(shard), command(0, 2)), Err(LaneFull));
    }
    assert_eq!(port.take_wakeups().shards().collect::<Vec<_>>(), [ShardId(3), ShardId(127)]);
    assert!(port.take_wakeups().is_empty());
    port.send_all(&mut Broadcast::new(command(0, 3)));
    assert_eq!(port.take_wakeups().shards().count(), 126);
}

#[test]
fn a_full_lane_leaves_the_others_free() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client; 2], 2, depths(1));
    let port = &mut ports[0];
    assert!(port.has_room(ShardId(0)));
    port.send(ShardId(0), command(0, 1)).unwrap();
    assert!(!port.has_room(ShardId(0)));
    assert_eq!(port.send(ShardId(0), command(0, 2)), Err(LaneFull));
    assert_eq!(port.send(ShardId(1), command(0, 3)), Ok(()));
    let shard = &mut shards[0];
    shard.send(PortId(0), event(1)).unwrap();
    assert_eq!(shard.send(PortId(0), event(2)), Err(LaneFull));
    assert_eq!(shard.send(PortId(1), event(2)), Ok(()));
}

#[test]
fn the_shards_are_polled_in_turn() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 3, depths(4));
    for shard in [0, 2] {
        for seq in 0..3 {
            shards[shard].send(PortId(0), event(seq)).unwrap();
        }
    }
    let handled: Vec<_> = std::iter::from_fn(|| ports[0].poll_event()).map(|(s, e)| (s.0, e.seq)).collect();
    assert_eq!(handled, [(0, 0), (2, 0), (0, 1), (2, 1), (0, 2), (2, 2)]);
}

#[test]
fn a_broadcast_reaches_every_shard_once_whatever_was_full() {
    let (mut ports, mut shards) = mesh(&[PortClass::Control], 3, depths(1));
    ports[0].send(ShardId(1), command(0, 1)).unwrap();
    let mut broadcast = Broadcast::new(command(0, 2));
    assert_eq!(broadcast.command().token, 2);
    assert!(!ports[0].send_all(&mut broadcast));
    assert!(!ports[0].send_all(&mut broadcast));
    assert_eq!(shards[1].poll_command(), Some(command(0, 1)));
    assert!(ports[0].send_all(&mut broadcast));
    assert!(ports[0].send_all(&mut broadcast));
    for shard in &mut shards {
        assert_eq!(shard.poll_command(), Some(command(0, 2)));
        assert_eq!(shard.poll_command(), None);
    }
}

#[test]
fn classes_go_in_order_and_ports_of_a_class_in_turn() {
    let classes =
        [PortClass::Feed, PortClass::Client, PortClass::Venue, PortClass::Client, PortClass::Control];
    let (mut ports, mut shards) = mesh(&classes, 1, depths(8));
    for port in &mut ports {
        for token in 0..2 {
            port.send(ShardId(0), command(port.id().0, token)).unwrap();
        }
    }
    let taken: Vec<_> = std::iter::from_fn(|| shards[0].poll_command()).map(|c| c.source.port.0).collect();
    assert_eq!(taken, [4, 4, 2, 2, 1, 3, 1, 3, 0, 0]);
}

#[test]
fn a_flood_of_one_class_leaves_the_next_its_share() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client, PortClass::Feed], 1, depths(200));
    for token in 0..100 {
        ports[0].send(ShardId(0), command(0, token)).unwrap();
        ports[1].send(ShardId(0), command(1, token)).unwrap();
    }
    let taken: Vec<_> = (0..96).map(|_| shards[0].poll_command().unwrap().source.port.0).collect();
    assert!(taken[..32].iter().all(|port| *port == 0));
    assert!(taken[32..48].iter().all(|port| *port == 1));
    assert_eq!(taken[..48], taken[48..]);
    let rest = std::iter::from_fn(|| shards[0].poll_command()).count();
    assert_eq!(rest, 200 - 96);
}

#[test]
fn the_link_receives_events_for_ports_of_other_servers() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 2, depths(4));
    let mut far = link(&mut shards, depths(4));
    far.send(ShardId(1), command(33, 1)).unwrap();
    ports[0].send(ShardId(1), command(0, 2)).unwrap();
    let mut taken: Vec<_> =
        std::iter::from_fn(|| shards[1].poll_command()).map(|command| command.token).collect();
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
    for port in PortMask::one(PortId(33)).with(PortMask::one(PortId(0))).and(shards[1].ports()).ports() {
        shards[1].send(port, event(5)).unwrap();
    }
    assert_eq!(far.poll_event(), Some((ShardId(1), event(5))));
    assert_eq!(ports[0].poll_event(), Some((ShardId(1), event(5))));
}

#[test]
#[should_panic(expected = "a shard sends to ports of its mesh only")]
fn a_port_outside_the_mesh_is_refused() {
    let (_ports, mut shards) = mesh(&[PortClass::Client], 1, depths(1));
    let _ = shards[0].send(PortId(1), event(1));
}

fn bodies(shard: &mut ShardEnd) -> Vec<CommandKind> {
    std::iter::from_fn(|| shard.poll_command()).map(|command| command.body).collect()
}

/// Returns a sender whose description has two parts.
fn sender() -> Sender {
    Sender { login: SenderText::new("a"), session: SenderText::new("S"), ..Sender::default() }
}

#[test]
fn a_port_describes_a_sender_to_each_shard_before_the_first_command_there() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 2, depths(3));
    let port = &mut ports[0];
    port.begin_senders(2);
    let id = port.register_sender(sender());
    assert_eq!(id, SenderId(16 + 2 * SENDERS_PER_PORT_MAX), "beyond those of two starts");
    port.send(ShardId(1), command(0, 7)).unwrap();
    assert_eq!(port.take_wakeups().shards().collect::<Vec<_>>(), [ShardId(1)]);
    let sender = sender();
    let parts = sender.parts().map(|part| CommandKind::Sender { id, part });
    let expected: Vec<CommandKind> = parts.chain([CommandKind::Timer]).collect();
    assert_eq!(bodies(&mut shards[1]), expected);
    port.send(ShardId(1), command(0, 8)).unwrap();
    assert_eq!(bodies(&mut shards[1]), [CommandKind::Timer], "it is described once");
    assert!(port.has_room(ShardId(0)) && !port.has_room_for(ShardId(0), 2), "two places are taken");
    port.send(ShardId(0), command(0, 9)).unwrap();
    assert_eq!(bodies(&mut shards[0]), expected);
}

#[test]
fn a_command_waits_until_its_sender_is_described() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 2, depths(1));
    let port = &mut ports[0];
    port.register_sender(sender());
    for part in 0..2 {
        assert!(!port.has_room(ShardId(1)), "part {part} takes the only place");
        assert_eq!(port.take_wakeups().shards().collect::<Vec<_>>(), [ShardId(1)]);
        assert_eq!(port.send(ShardId(1), command(0, 1)), Err(LaneFull));
        assert!(matches!(bodies(&mut shards[1])[..], [CommandKind::Sender { .. }]));
    }
    assert!(port.has_room(ShardId(1)));
    assert_eq!(port.send(ShardId(1), command(0, 1)), Ok(()));
    assert_eq!(bodies(&mut shards[1]), [CommandKind::Timer]);
}

#[test]
fn a_routed_command_reaches_every_shard_of_its_route_or_none() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 3, depths(1));
    let port = &mut ports[0];
    let with = |body| Command { body, ..command(0, 1) };
    let adapter = with(CommandKind::Adapter { adapter: AdapterId(1), connected: true });
    assert_eq!(port.send_routed(adapter), Ok(3));
    assert!(shards.iter_mut().all(|shard| bodies(shard) == [adapter.body]));
    let halt = with(CommandKind::Halt { security: SecurityId(2), on: true });
    assert_eq!(port.send_routed(halt), Ok(1));
    assert_eq!(port.send_routed(adapter), Err(LaneFull), "the last shard has no room");
    let received: Vec<_> = shards.iter_mut().map(bodies).collect();
    assert_eq!(received, [vec![], vec![], vec![halt.body]]);
    for shard in [3, 100] {
        let order = OrderHandle::new(ShardId(shard), 1, 1);
        let cancel = with(CommandKind::Cancel { order, id: IntId::NONE });
        assert_eq!(port.send_routed(cancel), Err(LaneFull), "there is no shard {shard}");
    }
}

#[test]
fn a_port_knows_when_one_of_its_lanes_is_over_half_full() {
    let (ports, mut shards) = mesh(&[PortClass::Client], 2, depths(4));
    for sent in 1..=4 {
        shards[1].send(PortId(0), event(sent)).unwrap();
        assert_eq!(ports[0].is_over_half_full(), sent > 2);
    }
}

#[test]
fn a_shard_sees_the_commands_behind_the_one_it_took() {
    let (mut ports, mut shards) = mesh(&[PortClass::Client; 2], 1, depths(4));
    (0..4).for_each(|token| ports[1].send(ShardId(0), command(1, token)).unwrap());
    assert_eq!(shards[0].poll_command(), Some(command(1, 0)));
    let mut seen = Vec::new();
    shards[0].look_ahead(2, |distance, command| seen.push((distance, command.token)));
    assert_eq!(seen, [(0, 1), (1, 2)]);
}
