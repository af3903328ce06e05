//! The process's side of the link: answers, events of others, and its own events.

use pitlane_protocols::remote::link::FrameBuffer;
use tokio::runtime::Builder;

use super::*;

struct LinkRig {
    link: DirectLink,
    sent: mpsc::Receiver<Vec<u8>>,
    inputs: mpsc::Sender<ConnectionInput>,
}

impl LinkRig {
    fn new() -> LinkRig {
        let (outgoing, sent) = mpsc::channel(OUTGOING_MAX);
        let (inputs, incoming) = mpsc::channel(INCOMING_MAX);
        LinkRig { link: DirectLink::new(outgoing, incoming, 7), sent, inputs }
    }

    fn report(&self, input: ConnectionInput) {
        self.inputs.try_send(input).unwrap();
    }

    /// Returns the frames that were sent since the last call.
    fn sent(&mut self) -> Vec<StrategyFrame> {
        let bytes = std::iter::from_fn(|| self.sent.try_recv().ok());
        bytes
            .map(|bytes| {
                let mut buffer = FrameBuffer::new(1 << 20);
                buffer.extend(&bytes);
                StrategyFrame::decode(buffer.next_frame().unwrap().unwrap()).unwrap()
            })
            .collect()
    }
}

fn run(test: impl Future<Output = ()>) {
    Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
}

fn generic(n: u64) -> Generic {
    Generic::new("a", n.to_string().into(), "A").unwrap()
}

fn published(frames: &[StrategyFrame]) -> Vec<u64> {
    let number = |frame: &StrategyFrame| {
        let StrategyFrame::Publish { publisher: 7, number, .. } = frame else { return None };
        Some(*number)
    };
    frames.iter().filter_map(number).collect()
}

#[test]
fn a_question_gets_its_own_answer_and_what_arrives_meanwhile_is_kept() {
    run(async {
        let mut rig = LinkRig::new();
        rig.report(ConnectionInput::Up);
        let late = RemoteReply::Busy.encode();
        rig.report(ConnectionInput::Frame(ServerFrame::Reply { number: HANDSHAKE | 99, reply: late }));
        let other = RemoteReply::Accepted.encode();
        rig.report(ConnectionInput::Frame(ServerFrame::Reply { number: 1, reply: other }));
        let reply = RemoteReply::Gone.encode();
        rig.report(ConnectionInput::Frame(ServerFrame::Reply { number: HANDSHAKE | 1, reply }));
        let request = RemoteRequest::Bye { incarnation: 1 };
        assert_eq!(rig.link.ask(&request).await, Some(RemoteReply::Gone));
        assert_eq!(rig.sent(), [StrategyFrame::Request { number: HANDSHAKE | 1, request: request.encode() }]);
        let LinkInput::Reply { number: 1, reply } = rig.link.next().await else { panic!("it was kept") };
        assert_eq!(reply, RemoteReply::Accepted);
    });
}

#[test]
fn a_question_has_no_answer_if_the_connection_is_lost() {
    run(async {
        let mut rig = LinkRig::new();
        let request = RemoteRequest::Bye { incarnation: 1 };
        rig.report(ConnectionInput::Down);
        assert_eq!(rig.link.ask(&request).await, None, "there is no connection");
        assert!(rig.sent().is_empty());
        rig.report(ConnectionInput::Up);
        rig.report(ConnectionInput::Down);
        assert_eq!(rig.link.ask(&request).await, None);
        assert!(!rig.link.is_up());
        rig.report(ConnectionInput::Refused("no such strategy".to_string()));
        let refused = rig.link.ask(&request).await;
        assert_eq!(refused, Some(RemoteReply::Refused { text: "no such strategy".to_string() }));
    });
}

#[test]
fn inputs_during_a_handshake_are_bounded() {
    run(async {
        let mut rig = LinkRig::new();
        for _ in 0..BUFFERED_MAX + 1 {
            rig.report(ConnectionInput::Up);
            let number = 1;
            let reply = RemoteReply::Accepted.encode();
            rig.report(ConnectionInput::Frame(ServerFrame::Reply { number, reply }));
            let reply = RemoteReply::Gone.encode();
            let asked = HANDSHAKE | (rig.link.asked + 1);
            rig.report(ConnectionInput::Frame(ServerFrame::Reply { number: asked, reply }));
            assert!(rig.link.ask(&RemoteRequest::Bye { incarnation: 1 }).await.is_some());
        }
        assert_eq!(rig.link.buffered.len(), BUFFERED_MAX);
    });
}

#[test]
fn an_event_is_sent_until_it_is_stored_and_then_the_next() {
    run(async {
        let mut rig = LinkRig::new();
        for n in 1..=GENERICS_MAX as u64 {
            assert!(rig.link.publish(generic(n)));
        }
        assert!(!rig.link.publish(generic(0)), "the newest is dropped");
        assert!(rig.sent().is_empty(), "there is no connection");
        rig.report(ConnectionInput::Up);
        assert!(matches!(rig.link.next().await, LinkInput::Health(true)));
        assert_eq!(published(&rig.sent()), [1]);
        rig.report(ConnectionInput::Down);
        rig.report(ConnectionInput::Up);
        assert!(matches!(rig.link.next().await, LinkInput::Health(false)));
        assert!(matches!(rig.link.next().await, LinkInput::Health(true)));
        assert_eq!(published(&rig.sent()), [1], "on the new connection it is sent again");
        rig.report(ConnectionInput::Frame(ServerFrame::Published { number: 1 }));
        rig.report(ConnectionInput::Frame(ServerFrame::Published { number: 1 }));
        rig.report(ConnectionInput::Down);
        assert!(matches!(rig.link.next().await, LinkInput::Health(false)));
        assert_eq!(published(&rig.sent()), [2], "a repeated answer skips nothing");
    });
}

#[test]
fn an_event_without_an_answer_is_sent_again_after_a_while() {
    let (mut publishing, now) = (Publishing::new(7), Instant::now());
    assert!(publishing.poll(now).is_none() && publishing.due().is_none());
    assert!(publishing.push(generic(1)));
    assert!(publishing.poll(now).is_some() && publishing.poll(now).is_none());
    assert_eq!(publishing.due(), Some(now + ANSWER_MAX));
    assert!(publishing.poll(now + ANSWER_MAX).is_some());
    publishing.handle_stored(2);
    assert!(publishing.due().is_some(), "another number is no answer");
    publishing.handle_stored(1);
    assert!(publishing.due().is_none());
}

#[test]
fn an_event_of_another_strategy_is_handled_once() {
    run(async {
        let mut rig = LinkRig::new();
        let event = |number| {
            let (from, name, body) = ("B".to_string(), "a".to_string(), b"1".to_vec());
            ConnectionInput::Frame(ServerFrame::Generic { number, from, name, body })
        };
        rig.report(event(5));
        let LinkInput::Generic(first) = rig.link.next().await else { panic!("it is new") };
        let GenericReceipt::Number(number) = first.receipt else { panic!("it has a number") };
        rig.link.acknowledge(number);
        rig.report(event(5));
        rig.report(event(6));
        let LinkInput::Generic(second) = rig.link.next().await else { panic!("it is new") };
        assert!(matches!(second.receipt, GenericReceipt::Number(6)));
        let acknowledged = StrategyFrame::Acknowledge { number: 5 };
        assert_eq!(rig.sent(), [acknowledged.clone(), acknowledged]);
    });
}
