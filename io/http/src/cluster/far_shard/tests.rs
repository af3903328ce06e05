use pitlane_engine::event::{ExecType, OrderReport};
use pitlane_engine::id::{AccountId, IntId, OrderHandle, SecurityId, Source, StrategyId};
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::sender::{SenderId, SenderPart, SenderText};
use pitlane_engine::terms::{OrderKind, Side, Status, Tif};
use pitlane_protocols::remote::cluster::remote_port;

use super::*;

#[test]
fn an_owner_that_restarts_is_sent_the_newest_senders() {
    let (_ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
    let mut shard = FarShard::new(ends.remove(0), 10);
    let command = |number: usize| {
        let part = SenderPart::Session(SenderText::EMPTY);
        Command::new(Source::default(), 0, CommandKind::Sender { id: SenderId(number as u32), part })
    };
    (0..SENDERS_MAX + 3).for_each(|number| shard.store_sender(command(number)));
    for _ in 0..2 {
        let sent: Vec<Command> = std::iter::from_fn(|| shard.next_sender()).collect();
        assert_eq!((sent.len(), sent[0]), (SENDERS_MAX, command(3)));
        assert_eq!(shard.next_sender(), None);
        shard.handle_restart();
    }
}

const OWNER: MemberId = 1;
const OWN: MemberId = 0;
const PORT: PortId = PortId(0);

fn item(to: EventRecipient, seq: u64, at: u64, body: EventKind) -> ClusterEvent {
    ClusterEvent { shard: ShardId(0), to, event: Event { seq, at: Timestamp(at), body } }
}

/// Creates the status of an order of our FIX client, as the owner sends it.
fn status(id: &str, status: Status) -> EventKind {
    let id = IntId::parse(id.as_bytes()).unwrap();
    EventKind::Status(OrderReport {
        order: OrderHandle::new(ShardId(0), 0, 1),
        id,
        orig_id: id,
        qty: Qty::ZERO,
        cum_qty: Qty::ZERO,
        avg_price: Price::ZERO,
        last_qty: Qty::ZERO,
        last_price: Price::ZERO,
        source: Source { origin: Origin::Fix, port: remote_port(OWN, PORT), session: 0 },
        sender: SenderId::NONE,
        security: SecurityId(1),
        strategy: StrategyId(1),
        account: AccountId(1),
        what: ExecType::Snapshot,
        status,
        reason: Reason::None,
        side: Side::Buy,
        kind: OrderKind::Limit,
        tif: Tif::Day,
        in_doubt: false,
    })
}

/// The kept events are newer than the lost ones and are delivered first. Their times once hid
/// all orders that had finished in the lost part.
#[test]
fn a_fix_client_gets_the_status_of_orders_that_finished_in_the_lost_part() {
    let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
    let mut shard = FarShard::new(ends.remove(0), 10);
    let joining = |seq, at, body| item(EventRecipient::Joining, seq, at, body);
    let (begin, end) = (EventKind::SnapshotBegin { port: PORT }, EventKind::SnapshotEnd { port: PORT });
    for item in [
        joining(1, 1, begin),
        joining(1, 1, end),
        item(EventRecipient::All, 2, 3, status("seen", Status::Canceled)),
    ] {
        shard.deliver(OWNER, OWN, &item);
    }
    for seq in [8, 9] {
        shard.request_order_statuses();
        shard.begin_resync();
        let late = item(EventRecipient::Late(OWN), seq, seq, status("late", Status::Canceled));
        assert!(shard.deliver(OWNER, OWN, &late).is_some());
    }
    for item in [
        joining(9, 9, begin),
        joining(9, 1, status("stays", Status::New)),
        joining(9, 2, status("earlier", Status::Canceled)),
        joining(9, 3, status("same-time", Status::Canceled)),
        joining(9, 5, status("ends", Status::Canceled)),
        joining(9, 9, end),
    ] {
        shard.deliver(OWNER, OWN, &item);
    }
    assert!(shard.flush(&mut PortMask::default()));
    let mut received = Vec::new();
    while let Some((_, event)) = ports[0].poll_event() {
        let EventKind::Status(report) = event.body else { panic!("no port asked for a snapshot") };
        received.push((report.id.to_string(), event.seq & Event::SNAPSHOT != 0));
    }
    let expected = [
        ("seen", false),
        ("late", false),
        ("late", false),
        ("stays", true),
        ("same-time", true),
        ("ends", true),
    ];
    assert_eq!(received, expected.map(|(id, is_status)| (id.to_string(), is_status)));
}
