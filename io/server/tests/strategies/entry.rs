//! Order entry over each link, message by message: a client of the broker that is written out here,
//! to show the bytes on the wire, and a client of the strategy link.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pitlane_engine::command::{Command, CommandKind, StrategyPhase};
use pitlane_engine::id::{IntId, PortId, SecurityId, Source, StrategyId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Terms};
use pitlane_protocols::remote;
use pitlane_protocols::remote::link::ServerFrame;
use pitlane_protocols::remote::strategy::{RemoteReply, RemoteRequest};
use pitlane_testkit::nats_server::{NatsBroker, serve, serve_over};
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::stomp_client::{body, header};
use pitlane_testkit::strategy_link::{LinkClient, TestLink};

use super::data::MOMENTUM;
use super::embedded::{get, strategy, subscriber, until};

/// Subjects of responses, one for each request: below the inbox of the strategy, the only place
/// where the server sends them.
const ANSWERS: &str = "pitlane.pitlane.inbox.MOMENTUM.answers";
/// A request without a response is sent again after this time, as strategies do.
const RESEND_AFTER: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(30);

struct NatsMessage {
    subject: String,
    headers: String,
    payload: Vec<u8>,
}

struct NatsWire {
    to: TcpStream,
    from: BufReader<TcpStream>,
    requests: usize,
}

impl NatsWire {
    fn open(broker: &NatsBroker) -> NatsWire {
        let to = TcpStream::connect(("127.0.0.1", broker.port)).unwrap();
        to.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut wire = NatsWire { from: BufReader::new(to.try_clone().unwrap()), to, requests: 0 };
        wire.send_message(
            "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}",
        );
        wire
    }

    fn send_message(&mut self, line: &str) {
        self.to.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    fn subscribe(&mut self, subject: &str) {
        self.send_message(&format!("SUB {subject} 1\r\nPING"));
        while !self.line().starts_with("PONG") {}
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "the broker goes on");
        line.trim_end().to_string()
    }

    fn receive(&mut self) -> NatsMessage {
        loop {
            if let Some(message) = self.read_operation() {
                return message;
            }
        }
    }

    /// Reads one operation of the broker, and returns it if it is a message for this test.
    fn read_operation(&mut self) -> Option<NatsMessage> {
        let line = self.line();
        let parts: Vec<&str> = line.split(' ').collect();
        let sizes: Vec<usize> = match parts[0] {
            "PING" => {
                self.send_message("PONG");
                return None;
            }
            "MSG" => vec![0, parts[parts.len() - 1].parse().unwrap()],
            "HMSG" => parts[parts.len() - 2..].iter().map(|part| part.parse().unwrap()).collect(),
            _ => return None,
        };
        let mut bytes = vec![0; sizes[1] + 2];
        self.from.read_exact(&mut bytes).unwrap();
        bytes.truncate(sizes[1]);
        let payload = bytes.split_off(sizes[0]);
        let headers = String::from_utf8(bytes).unwrap();
        // The service tests its rights with empty messages, which every participant ignores.
        let probe = headers.contains("Pitlane-Probe");
        (!probe).then(|| NatsMessage { subject: parts[1].to_string(), headers, payload })
    }

    /// Whether bytes arrive in this time.
    fn readable(&self, within: Duration) -> bool {
        if !self.from.buffer().is_empty() {
            return true;
        }
        self.to.set_read_timeout(Some(within)).unwrap();
        let readable = self.to.peek(&mut [0]).is_ok();
        self.to.set_read_timeout(Some(DEADLINE)).unwrap();
        readable
    }

    /// Sends a request in the name of a strategy, until there is a response. The broker delivers a
    /// request to a server that has just been killed as long as it has not seen its end, so one
    /// request may be lost.
    fn ask(&mut self, request: &RemoteRequest) -> RemoteReply {
        let started = Instant::now();
        while started.elapsed() < DEADLINE {
            if let Some(reply) = self.attempt(&request.encode(), RESEND_AFTER) {
                return reply;
            }
        }
        panic!("no response within {DEADLINE:?} to {request:?}");
    }

    /// Sends a request once, and waits for the response while bytes arrive within a time; there is
    /// none while no server is ready for the request.
    fn attempt(&mut self, request: &[u8], within: Duration) -> Option<RemoteReply> {
        self.requests += 1;
        let subject = format!("{ANSWERS}.{}", self.requests);
        self.send_message(&format!("PUB pitlane.pitlane.ask.MOMENTUM {subject} {}", request.len()));
        self.to.write_all(request).unwrap();
        self.send_message("");
        while self.readable(within) {
            let Some(message) = self.read_operation() else { continue };
            if message.subject != subject {
                continue;
            }
            if message.headers.contains("503") {
                return None;
            }
            let reply = RemoteReply::decode(&message.payload).unwrap();
            return (!matches!(reply, RemoteReply::Wait { .. })).then_some(reply);
        }
        None
    }
}

fn command(body: CommandKind) -> Command {
    Command::new(Source::default(), 0, body)
}

fn order(number: u64, qty: i64, strategy: StrategyId) -> Command {
    let terms = Terms {
        security: SecurityId(1),
        qty: Qty::from_raw(qty * 100_000_000),
        kind: OrderKind::Limit,
        limit: Price::from_raw(100_000_000),
        limit_given: true,
        account: pitlane_engine::id::AccountId(1),
        strategy,
        ..Terms::default()
    };
    command(CommandKind::Submit { id: IntId::numbered(b's', number), terms })
}

fn orders(service: &ServiceProcess) -> usize {
    let rows = get(service, "/rest/execution/order");
    rows.as_array().unwrap().iter().filter(|row| row["strategyName"] == "MOMENTUM").count()
}

/// A client that sends requests in the name of MOMENTUM over some link.
enum EntryWire {
    Nats(NatsWire),
    Direct(PathBuf, LinkClient),
}

impl EntryWire {
    fn open(link: &TestLink) -> EntryWire {
        match link {
            TestLink::Nats(broker) => {
                let mut wire = NatsWire::open(broker);
                wire.subscribe(&format!("{ANSWERS}.*"));
                EntryWire::Nats(wire)
            }
            TestLink::Unix(path) => EntryWire::Direct(path.clone(), log_in(path)),
            TestLink::Tcp(_) => panic!("this test uses the others"),
        }
    }

    /// Connects to a server that has restarted; a broker has gone on.
    fn reconnect(&mut self) {
        if let EntryWire::Direct(path, client) = self {
            *client = log_in(path);
        }
    }

    fn ask(&mut self, request: &RemoteRequest) -> RemoteReply {
        match self {
            EntryWire::Nats(wire) => wire.ask(request),
            EntryWire::Direct(_, client) => loop {
                let reply = client.ask(request);
                if !matches!(reply, RemoteReply::Wait { .. }) {
                    return reply;
                }
            },
        }
    }

    /// Sends bytes that are no request, and returns the answer.
    fn ask_nonsense(&mut self) -> RemoteReply {
        match self {
            EntryWire::Nats(wire) => wire.attempt(b"\x01zz", DEADLINE).unwrap(),
            EntryWire::Direct(_, client) => client.ask_bytes(b"\x01zz".to_vec()),
        }
    }
}

fn log_in(path: &Path) -> LinkClient {
    let mut client = LinkClient::unix(path);
    let answer = client.log_in("MOMENTUM", "");
    assert!(matches!(answer, Some(ServerFrame::LoggedIn { .. })), "{answer:?}");
    client
}

#[test]
fn the_same_order_again_gets_the_same_answer_over_nats() {
    let place = folder("distributed-entry-nats");
    let link = TestLink::nats(&place);
    repeat_orders(&place, &link);
}

#[test]
fn the_same_order_again_gets_the_same_answer_without_a_broker() {
    let place = folder("distributed-entry-direct");
    let link = TestLink::unix(&place);
    repeat_orders(&place, &link);
}

/// Sends orders again, also after a restart of the server.
fn repeat_orders(place: &TestFolder, link: &TestLink) {
    let settings = ["feed.on=false", "remote_strategies.lease_ms=60000"];
    let service = serve_over(place, link, MOMENTUM, &settings);
    let mut wire = EntryWire::open(link);
    let incarnation = 7;
    let RemoteReply::Welcome(welcome) =
        wire.ask(&RemoteRequest::Hello { incarnation, host: "test".into(), received: Vec::new() })
    else {
        panic!("it is welcome");
    };
    assert_eq!(welcome.section.kind, "moving-average-cross");
    let mut ask = |command| wire.ask(&RemoteRequest::Command { incarnation, command });
    let first = order(1, 5, welcome.strategy);
    // It may not trade yet; the refusal is among the events, and the id is used.
    assert_eq!(ask(first), RemoteReply::Accepted);
    assert_eq!(orders(&service), 0);
    for phase in [StrategyPhase::Init, StrategyPhase::Prefeed, StrategyPhase::Start, StrategyPhase::Running] {
        assert_eq!(
            ask(command(CommandKind::Phase { strategy: welcome.strategy, phase })),
            RemoteReply::Accepted
        );
    }
    assert_eq!(strategy(&service, "MOMENTUM")["phase"], "RUNNING");
    assert_eq!((ask(first), orders(&service)), (RemoteReply::Accepted, 0), "what was refused stays refused");
    let second = order(2, 5, welcome.strategy);
    for _ in 0..3 {
        assert_eq!((ask(second), orders(&service)), (RemoteReply::Accepted, 1));
    }
    let declined = |reason| RemoteReply::Declined { reason };
    assert_eq!(ask(order(2, 6, welcome.strategy)), declined(Reason::DuplicateId));
    assert_eq!(ask(order(3, 5, StrategyId(2))), declined(Reason::UnknownStrategy));
    assert_eq!(ask(command(CommandKind::ResetPositions)), declined(Reason::UnknownScope));
    let strange = pitlane_engine::id::OrderHandle::new(pitlane_engine::id::ShardId(99), 0, 3);
    let cancel = |order| command(CommandKind::Cancel { order, id: IntId::numbered(b'q', 1) });
    assert_eq!(ask(cancel(strange)), declined(Reason::UnknownOrder));

    service.signal("KILL");
    service.end();
    let service = serve_over(place, link, MOMENTUM, &settings);
    wire.reconnect();
    let mut ask = |request: &RemoteRequest| wire.ask(request);
    assert_eq!(ask(&RemoteRequest::Command { incarnation, command: second }), RemoteReply::UnknownSession);
    let received: Vec<u64> = welcome.heads.iter().map(|head| head.seen).collect();
    assert!(matches!(
        ask(&RemoteRequest::Resume { incarnation, received: received.clone() }),
        RemoteReply::Welcome(_)
    ));
    for command in [first, second] {
        assert_eq!(
            (ask(&RemoteRequest::Command { incarnation, command }), orders(&service)),
            (RemoteReply::Accepted, 1)
        );
    }
    let other = order(2, 6, welcome.strategy);
    assert_eq!(ask(&RemoteRequest::Command { incarnation, command: other }), declined(Reason::DuplicateId));
    // Events before the restart are still delivered, each once.
    let RemoteReply::Missed { events, more: false } = ask(&RemoteRequest::Fetch { incarnation, received })
    else {
        panic!("it is kept")
    };
    let own = remote::strategy::source(PortId(1), welcome.strategy);
    assert!(events.iter().all(|text| remote::strategy::concerns(own, &text.event)));
    let answered: Vec<IntId> =
        events.iter().filter_map(|text| remote::strategy::answers(&text.event)).collect();
    assert_eq!(answered, [IntId::numbered(b's', 1), IntId::numbered(b's', 2)]);
    // An invalid message gets a response, and has no effect.
    assert!(matches!(wire.ask_nonsense(), RemoteReply::Refused { .. }));
    assert_eq!(service.metric("pitlane_remote_strategy_decode_errors_total"), 1);
}

#[test]
fn events_between_strategies_travel_both_ways() {
    let place = folder("distributed-generic");
    let broker = NatsBroker::start(&place);
    let service = serve(&place, &broker, MOMENTUM, &["feed.on=false"]);
    until(|| get(&service, "/health/ready")["broker"]["connected"] == true);
    let mut wire = NatsWire::open(&broker);
    wire.subscribe("pitlane.pitlane.generic");
    let mut client = subscriber(&service, "generic-event.spread");
    client.send_message("SEND|destination:/topic/generic-event.signal||{\"go\":1}");
    let received = wire.receive();
    assert!(received.headers.contains("Pitlane-Event: signal"), "{}", received.headers);
    assert_eq!(received.payload, b"{\"go\":1}");
    let (head, output) = ("NATS/1.0\r\nPitlane-Event: spread\r\nPitlane-From: PAIRS\r\n\r\n", "{\"by\":2}");
    let sizes = format!("{} {}", head.len(), head.len() + output.len());
    wire.send_message(&format!("HPUB pitlane.pitlane.generic {sizes}\r\n{head}{output}"));
    let message = client.receive_until("MESSAGE");
    assert_eq!(header(&message, "destination"), Some("/topic/generic-event.spread"));
    assert!(body(&message).contains("{\"by\":2}"), "{message}");
}
