//! Reports for a client: copies of others' reports, and reports of events from before a restart.

use pitlane_engine::event::{Event, EventKind, ExecType};
use pitlane_engine::sender::{Protocol, Sender, SenderId, SenderText};

use super::client::{Client, LOGON};
use super::*;
use crate::fix::drop_copy::CopiedOrders;
use crate::test_reports::{entered, event, report};

const SHARD: ShardId = ShardId(0);
const CLIENT: Source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };

#[test]
fn a_copy_names_the_sender_of_its_order_and_is_sent_once() {
    for (login, start) in [("", "115=CLIENT2|37=o1|11=o1|"), ("me", "115=CLIENT2|116=me|37=o1|11=o1|")] {
        let store = SharedStore::new(NOW);
        let mut client = Client::connected(&store, |_| {});
        client.send("A", LOGON);
        let (id, session) = (SenderId(77), SenderText::new("CLIENT2"));
        let sender =
            Sender { protocol: Protocol::Fix, login: SenderText::new(login), session, ..Sender::default() };
        let mut orders = CopiedOrders::default();
        assert!(orders.handle_event(&event(1, EventKind::Sender { id, sender })).is_none());
        let mut order = entered(Source { session: 2, ..CLIENT });
        order.sender = id;
        let first = event(7, EventKind::Order(order));
        let copied = orders.handle_event(&first).unwrap();
        for (seq, missed, expected) in
            [(7, false, 1), (7, true, 0), (6, true, 0), (8, true, 1), (8, true, 0), (8, false, 1)]
        {
            let event = Event { seq, ..first };
            client.peer.session.copy_report(NOW, SHARD, &event, &copied, missed);
            let output = client.peer.output();
            assert_eq!(output.len(), expected, "{seq} {missed}");
            for message in output {
                let (_, body) = message.split_once("|34=").unwrap();
                let (_, body) = body.split_once('|').unwrap();
                assert!(body.starts_with(start) && body.ends_with("|797=Y"), "{message}");
            }
            assert_eq!(store.last_reported_event(SHARD), seq.max(7));
        }
    }
}

#[test]
fn an_event_from_before_a_restart_is_reported_unless_it_was() {
    let store = SharedStore::new(NOW);
    let mut client = Client::connected(&store, |_| {});
    client.send("A", LOGON);
    let mut image = entered(CLIENT);
    image.what = ExecType::Snapshot;
    let image = event(3, EventKind::Order(image));
    assert!(client.desk.handle_event(SHARD, &image).is_none());
    client.peer.session.handle_event(NOW, SHARD, &image, &client.desk);
    assert!(client.peer.output().is_empty(), "an image is no report");
    for (seq, expected) in [(5, 1), (5, 0), (4, 0), (6, 1)] {
        let event = event(seq, EventKind::Status(report(CLIENT, ExecType::Accepted)));
        client.peer.session.handle_missed_event(NOW, SHARD, &event, &client.desk);
        let output = client.peer.output();
        assert_eq!(output.len(), expected, "{seq} {output:?}");
        assert!(output.iter().all(|report| report.contains("|37=o1|11=o1|")), "{output:?}");
    }
    for (source, expected) in [(CLIENT, 1), (Source { session: 2, ..CLIENT }, 0)] {
        let lost = report(source, ExecType::Accepted);
        client.peer.session.report_order_status(NOW, &lost, &client.desk);
        let output = client.peer.output();
        assert_eq!(output.len(), expected, "{output:?}");
        assert!(output.iter().all(|report| report.contains("|150=I|")), "{output:?}");
    }
}
