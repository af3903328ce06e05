//! The strategy link: logins, events between strategies, and clients that break its rules. The
//! server answers each of them, and goes on.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use pitlane_protocols::remote::link::{
    FRAME_BYTES_MAX, LINK_VERSION, LOGIN_BYTES_MAX, ServerFrame, StrategyFrame,
};
use pitlane_protocols::remote::strategy::{RemoteReply, RemoteRequest};
use pitlane_testkit::loopback::connect_from;
use pitlane_testkit::nats_server::{StrategyProcess, serve_over};
use pitlane_testkit::secured_service::create_token;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::stomp_client::{body, header};
use pitlane_testkit::strategy_link::{LinkClient, TestLink, listener, refusal};

use super::data::{MAKER, MOMENTUM};
use super::distributed::is_present;
use super::embedded::{get, open_orders, strategy, subscriber, until};

/// Connections without a login, as in `io/http/src/strategy_processes/direct.rs`.
const LOGINS_MAX: usize = 32;
/// Connections of one strategy, as in `io/http/src/remote_strategies/connections.rs`.
const PER_STRATEGY_MAX: usize = 4;

const REFUSED: &str = "pitlane_strategy_link_refused_total";

fn both() -> String {
    format!("{MOMENTUM}{MAKER}")
}

fn start(name: &str, settings: &[&str]) -> (TestFolder, ServiceProcess) {
    let place = folder(name);
    let service = serve_over(&place, &TestLink::tcp(&place), &both(), settings);
    (place, service)
}

fn logged_in(service: &ServiceProcess, strategy: &str) -> LinkClient {
    let mut client = LinkClient::tcp(listener(service));
    let answer = client.log_in(strategy, "");
    assert!(matches!(answer, Some(ServerFrame::LoggedIn { version: LINK_VERSION, .. })), "{answer:?}");
    client
}

/// Says Hello, and returns the client when it is welcome.
fn welcome(mut client: LinkClient, incarnation: u64) -> LinkClient {
    let hello = RemoteRequest::Hello { incarnation, host: "test".into(), received: Vec::new() };
    loop {
        let reply = client.ask(&hello);
        if matches!(reply, RemoteReply::Welcome(_)) {
            return client;
        }
        assert!(matches!(reply, RemoteReply::Wait { .. }), "{reply:?}");
    }
}

fn login_of(version: u8, strategy: &str) -> StrategyFrame {
    StrategyFrame::Login { version, strategy: strategy.to_string(), token: String::new() }
}

#[test]
fn every_broken_rule_gets_its_code_and_the_server_goes_on() {
    let (_place, service) = start("link-rules", &["feed.on=false"]);
    let first = |bytes: &[u8]| {
        let mut client = LinkClient::tcp(listener(&service));
        client.send_bytes(bytes).unwrap();
        let refused = refusal(client.receive());
        assert_eq!(client.receive(), None, "the connection is closed");
        refused
    };
    let no = |code: &str| (code.to_string(), false);
    assert_eq!(first(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), no("bad-frame"));
    assert_eq!(first(&[0; 4]), no("bad-frame"));
    assert_eq!(first(&[1, 0, 0, 0, 99]), no("bad-frame"));
    assert_eq!(first(&[3, 0, 0, 0, 1, 1, 255]), no("bad-frame"));
    let long = u32::try_from(LOGIN_BYTES_MAX + 1).unwrap().to_le_bytes();
    assert_eq!(first(&long), no("bad-frame"));
    assert_eq!(first(&login_of(LINK_VERSION + 1, "MOMENTUM").encode()), no("bad-version"));
    assert_eq!(first(&StrategyFrame::Acknowledge { number: 1 }.encode()), no("login-required"));
    let request = RemoteRequest::Bye { incarnation: 1 }.encode();
    assert_eq!(first(&StrategyFrame::Request { number: 1, request }.encode()), no("login-required"));
    assert_eq!(first(&login_of(LINK_VERSION, "NOBODY").encode()), no("unknown-strategy"));

    let later = |bytes: &[u8]| {
        let mut client = logged_in(&service, "MOMENTUM");
        client.send_bytes(bytes).unwrap();
        refusal(client.receive())
    };
    assert_eq!(later(&login_of(LINK_VERSION, "MOMENTUM").encode()), no("bad-frame"));
    assert_eq!(later(&[1, 0, 0, 0, 99]), no("bad-frame"));
    let long = u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_le_bytes();
    assert_eq!(later(&long), no("bad-frame"));
    for (publisher, name, body) in [(1, "a", "{"), (1, "", "1"), (1, "a\nb", "1"), (0, "a", "1")] {
        let (name, body) = (name.to_string(), body.as_bytes().to_vec());
        let publish = StrategyFrame::Publish { publisher, number: 1, name, body };
        assert_eq!(later(&publish.encode()), no("bad-frame"), "{publish:?}");
    }
    assert_eq!(service.metric(REFUSED), 16);
    let reply =
        logged_in(&service, "MOMENTUM").ask(&RemoteRequest::Fetch { incarnation: 1, received: vec![] });
    assert_eq!(reply, RemoteReply::UnknownSession);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn silent_connections_end() {
    let (_place, service) = start("link-silent", &["feed.on=false", "remote_strategies.lease_ms=100"]);
    let mut without_login = LinkClient::tcp(listener(&service));
    without_login.send_bytes(&[40, 0, 0]).unwrap();
    let mut idle = logged_in(&service, "MOMENTUM");
    assert_eq!(refusal(idle.receive()), ("idle".to_string(), true));
    // A part of a frame is not enough.
    let mut slow = logged_in(&service, "MOMENTUM");
    slow.send_bytes(&[40, 0, 0]).unwrap();
    assert_eq!(refusal(slow.receive()), ("idle".to_string(), true));
    assert_eq!(refusal(without_login.receive()), ("login-timeout".to_string(), true));
}

#[test]
fn connections_are_bounded() {
    let (_place, service) = start("link-crowd", &["feed.on=false", "remote_strategies.lease_ms=60000"]);
    // Each sends a part of a login and then nothing.
    let crowd: Vec<TcpStream> = (0..LOGINS_MAX + 8)
        .map(|_| {
            let mut socket = TcpStream::connect(listener(&service)).unwrap();
            socket.write_all(&[40, 0, 0]).unwrap();
            socket
        })
        .collect();
    until(|| service.metric(REFUSED) >= 8);
    let own: Vec<LinkClient> = (0..PER_STRATEGY_MAX).map(|_| logged_in(&service, "MOMENTUM")).collect();
    let mut more = LinkClient::tcp(listener(&service));
    assert_eq!(refusal(more.log_in("MOMENTUM", "")), ("too-many-connections".to_string(), true));
    drop(logged_in(&service, "MARKET_MAKER"));
    drop(own);
    until(|| service.metric("pitlane_strategy_link_connections") == 0);
    drop(logged_in(&service, "MOMENTUM"));
    drop(crowd);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// A slow login of one address stays while another address opens many connections.
#[test]
fn an_address_with_many_connections_evicts_its_own() {
    let (_place, service) = start("link-fair", &["feed.on=false"]);
    let mut slow = LinkClient::tcp(listener(&service));
    let crowd: Vec<TcpStream> = (0..LOGINS_MAX + 8).map(|_| connect_from(2, listener(&service))).collect();
    until(|| service.metric(REFUSED) >= 8);
    assert!(matches!(slow.log_in("MOMENTUM", ""), Some(ServerFrame::LoggedIn { .. })));
    drop(crowd);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// A process that sends requests and reads no answer must not take the memory of the server.
#[test]
fn a_process_that_does_not_read_is_read_no_further() {
    let (_place, service) = start("link-deaf", &["feed.on=false", "remote_strategies.lease_ms=1000"]);
    let mut client = welcome(logged_in(&service, "MOMENTUM"), 5);
    let piece = RemoteRequest::Piece {
        incarnation: 5,
        of: pitlane_protocols::remote::strategy::Blob::Reference,
        at: 0,
    };
    let frame = StrategyFrame::Request { number: 1, request: piece.encode() }.encode();
    // Answers of some 10 KB each: a terabyte, if the server read them all.
    let many = frame.repeat(1_000);
    let sent = (0..100_000).take_while(|_| client.send_bytes(&many).is_ok()).count();
    assert!(sent < 100_000, "in the end the server closes the connection");
    drop(logged_in(&service, "MOMENTUM"));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_token_runs_its_own_strategies_only_and_until_it_is_revoked() {
    let place = folder("link-tokens");
    let tokens = place.join("tokens");
    let [own, other, reader, admin] = [
        create_token(&tokens, "own", "strategy", "MOMENTUM"),
        create_token(&tokens, "other", "strategy", "MARKET_MAKER"),
        create_token(&tokens, "reader", "trade", "*"),
        create_token(&tokens, "admin", "admin", "*"),
    ];
    let file = format!("auth.tokens_file={}", tokens.display());
    let settings = ["feed.on=false", "auth.mode=required", &file];
    let service = serve_over(&place, &TestLink::tcp(&place), &both(), &settings);
    let log_in = |strategy: &str, token: &str| {
        let mut client = LinkClient::tcp(listener(&service));
        let answer = client.log_in(strategy, token);
        (client, answer)
    };
    let refused = |strategy: &str, token: &str| refusal(log_in(strategy, token).1).0;
    assert_eq!(refused("MOMENTUM", ""), "bad-token");
    assert_eq!(refused("MOMENTUM", "pit_guessed"), "bad-token");
    assert_eq!(refused("NOBODY", "pit_guessed"), "bad-token", "names are not revealed");
    assert_eq!(refused("MOMENTUM", &other), "forbidden");
    assert_eq!(refused("MOMENTUM", &reader), "forbidden");
    let (_admin, answer) = log_in("MOMENTUM", &admin);
    assert!(matches!(answer, Some(ServerFrame::LoggedIn { .. })), "{answer:?}");
    let (mut client, answer) = log_in("MOMENTUM", &own);
    assert!(matches!(answer, Some(ServerFrame::LoggedIn { .. })), "{answer:?}");
    // The same token opens nothing else.
    let request = format!("GET /rest/account HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {own}");
    let mut http =
        pitlane_testkit::http_client::HttpClient::new(TcpStream::connect(service.address()).unwrap());
    http.send(&format!("{request}\r\n\r\n"));
    assert_eq!(http.receive(false).status, 403);

    let text = fs::read_to_string(&tokens).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("own ")).collect();
    fs::write(&tokens, kept.join("\n") + "\n").unwrap();
    service.signal("HUP");
    let heartbeat = RemoteRequest::Fetch { incarnation: 1, received: Vec::new() }.encode();
    let revoked = loop {
        // It goes on meanwhile.
        let request = StrategyFrame::Request { number: 0, request: heartbeat.clone() };
        if client.send_bytes(&request.encode()).is_err() {
            break client.receive();
        }
        if let Some(frame @ ServerFrame::Refused { .. }) = try_receive(&mut client) {
            break Some(frame);
        }
    };
    assert_eq!(refusal(revoked), ("revoked".to_string(), true));
    assert_eq!(refused("MOMENTUM", &own), "bad-token");
}

/// Returns the answer to a further request, or the end of the connection.
fn try_receive(client: &mut LinkClient) -> Option<ServerFrame> {
    let request = RemoteRequest::Fetch { incarnation: 1, received: Vec::new() }.encode();
    client.send_bytes(&StrategyFrame::Request { number: 1, request }.encode()).ok()?;
    client.receive()
}

/// With TLS and a token, as between machines; and a process without either is refused in words.
#[test]
fn a_strategy_runs_over_tls_with_a_token() {
    let place = folder("link-tls");
    let tokens = place.join("tokens");
    let token = format!("strategies.token={}", create_token(&tokens, "maker", "strategy", "MARKET_MAKER"));
    let admin = create_token(&tokens, "admin", "admin", "*");
    let file = format!("auth.tokens_file={}", tokens.display());
    let settings = ["feed.rate=2000", "auth.mode=required", &file, "strategies.tls=true"];
    let link = TestLink::Unix(place.join("strategies.sock"));
    let settings: Vec<&str> = settings.into_iter().chain(["strategies.listen=127.0.0.1:0"]).collect();
    let service = serve_over(&place, &link, MAKER, &settings);
    let port = service.ready.split_whitespace().find_map(|part| part.strip_prefix("strategies+tls="));
    let port = port.unwrap().rsplit(':').next().unwrap().to_string();
    let url = format!("pitlanes://localhost:{port}");
    let ca = format!("strategies.ca={}", place.join("self-signed.pem").display());
    let bare = StrategyProcess::connect(&place, &link.url(), "MARKET_MAKER", &[]);
    assert_eq!(bare.wait(), Some(1));
    let log = fs::read_to_string(place.join("MARKET_MAKER.log")).unwrap();
    assert!(log.contains("the token is missing or unknown (bad-token)"), "{log}");
    let process = StrategyProcess::connect(&place, &url, "MARKET_MAKER", &[&token, &ca]);
    let mut http =
        pitlane_testkit::http_client::HttpClient::new(TcpStream::connect(service.address()).unwrap());
    until(|| {
        http.send(&format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {admin}\r\n\r\n"
        ));
        http.receive(false).body.contains("pitlane_remote_strategy_up{strategy=\"MARKET_MAKER\"} 1")
    });
    assert_eq!(process.end(), Some(0));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

fn publish(client: &mut LinkClient, publisher: u64, number: u64, body: &str) {
    let (name, body) = ("signal".to_string(), body.as_bytes().to_vec());
    client.send(&StrategyFrame::Publish { publisher, number, name, body });
    client.wait_for(|frame| *frame == ServerFrame::Published { number });
}

fn next_generic(client: &mut LinkClient) -> (u64, String, String) {
    let frame = client.wait_for(|frame| matches!(frame, ServerFrame::Generic { .. }));
    let ServerFrame::Generic { number, from, body, .. } = frame else { panic!("{frame:?}") };
    (number, from, String::from_utf8(body).unwrap())
}

#[test]
fn events_between_strategies_outlive_the_absence_of_the_receiver_and_the_server() {
    let place = folder("link-generic");
    let link = TestLink::tcp(&place);
    let settings = ["feed.on=false", "remote_strategies.lease_ms=500"];
    let service = serve_over(&place, &link, &both(), &settings);
    let mut stomp = subscriber(&service, "generic-event.signal");
    let mut sender = welcome(logged_in(&service, "MOMENTUM"), 1);
    publish(&mut sender, 9, 1, "1");
    publish(&mut sender, 9, 1, "1");
    publish(&mut sender, 9, 2, "2");
    let message = stomp.receive_until("MESSAGE");
    assert_eq!(header(&message, "destination"), Some("/topic/generic-event.signal"));
    assert!(body(&message).contains('1'), "{message}");

    service.signal("KILL");
    service.end();
    let service = serve_over(&place, &link, &both(), &settings);
    let mut sender = welcome(logged_in(&service, "MOMENTUM"), 2);
    publish(&mut sender, 9, 2, "2");
    let mut receiver = welcome(logged_in(&service, "MARKET_MAKER"), 3);
    let (first, from, text) = next_generic(&mut receiver);
    assert_eq!((from.as_str(), text.as_str()), ("MOMENTUM", "1"));
    receiver.send(&StrategyFrame::Acknowledge { number: first });
    let (second, _, text) = next_generic(&mut receiver);
    assert_eq!(text, "2", "a repeated event is stored once");
    assert!(second > first);
    // An answer to a later request: the acknowledgement has arrived.
    receiver.ask(&RemoteRequest::Fetch { incarnation: 3, received: Vec::new() });

    service.signal("KILL");
    service.end();
    let service = serve_over(&place, &link, &both(), &settings);
    let mut receiver = welcome(logged_in(&service, "MARKET_MAKER"), 4);
    assert_eq!(next_generic(&mut receiver).2, "2", "what was acknowledged does not come again");
    let mut stomp = subscriber(&service, "generic-event.other");
    stomp.send_message("SEND|destination:/topic/generic-event.signal||{\"go\":1}");
    let (_, from, text) = next_generic(&mut receiver);
    assert_eq!((from.as_str(), text.as_str()), ("SERVER", "{\"go\":1}"));
}

/// The two ways to the same server at the same time, and what an operator sees.
#[test]
fn strategies_connect_over_tcp_and_over_the_socket_at_once() {
    let place = folder("link-both");
    let link = TestLink::tcp(&place);
    let settings = ["feed.rate=2000", "strategies.unix_socket=true"];
    let service = serve_over(&place, &link, &both(), &settings);
    let _maker = StrategyProcess::over(&place, &link, "MARKET_MAKER");
    let socket = format!("unix:{}", place.join("strategies.sock").display());
    let momentum = StrategyProcess::connect(&place, &socket, "MOMENTUM", &[]);
    until(|| is_present(&service, "MARKET_MAKER") && is_present(&service, "MOMENTUM"));
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    assert_eq!(get(&service, "/health/ready")["broker"]["transport"], "direct");
    assert_eq!(service.metric("pitlane_strategy_link_connections"), 2);
    // A second process of the same strategy waits until the first has left.
    let _second = StrategyProcess::connect(&place, &socket, "MOMENTUM", &[]);
    until(|| service.metric("pitlane_strategy_link_connections") == 3);
    assert_eq!(momentum.end(), Some(0));
    until(|| strategy(&service, "MOMENTUM")["phase"] == "RUNNING" && is_present(&service, "MOMENTUM"));
    service.signal("TERM");
    assert!(service.end().is_orderly());
    assert!(!place.join("strategies.sock").exists(), "the socket is removed");
}
