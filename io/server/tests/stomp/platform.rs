//! What reaches clients from outside their own thread: other clients, operators, the log; and which
//! clients are accepted.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use pitlane_testkit::paths;
use pitlane_testkit::patience::PATIENCE;
use pitlane_testkit::service::{ServiceProcess, folder};
use pitlane_testkit::stomp_client::{StompClient, body, header, plain};
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

fn over_websocket(service: &ServiceProcess) -> StompClient {
    let http = address(service, "http");
    StompClient::new(Box::new(WebSocket::open(plain(http), http, "").0))
}

/// Returns status and body of a request with a body.
pub(crate) fn request(service: &ServiceProcess, request: &str, json: &str) -> (u16, String) {
    let http = address(service, "http");
    let mut socket = TcpStream::connect(http).unwrap();
    let length = json.len();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{json}"
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_string())
}

#[test]
fn events_between_strategies_cross_threads_and_transports() {
    let (service, _) = start("generic", &["topology.layout=dedicated", "topology.gateways=2"]);
    let mut clients = vec![over_websocket(&service)];
    // The thread that is awake accepts a connection; of these, both threads have some.
    clients.extend((0..6).map(|_| StompClient::new(plain(address(&service, "stomp")))));
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "generic-event.signal");
    }
    for sender in 0..clients.len() {
        let text = format!("{{\"from\":{sender}}}");
        clients[sender].send_message(&format!("SEND|destination:/topic/generic-event.signal||{text}"));
        for client in &mut clients {
            let message = client.receive_until("MESSAGE");
            assert!(body(&message).contains(&text), "{message}");
        }
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn an_operator_lists_and_disconnects_sessions() {
    let (service, _) = start("kick", &[]);
    let mut clients = [StompClient::new(plain(address(&service, "stomp"))), over_websocket(&service)];
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "log-event.*");
    }
    for (client, prefix) in clients.iter_mut().zip(["stomp-0-", "ws-http-"]) {
        let late = Instant::now() + PATIENCE;
        let list = loop {
            let (status, list) = service.ask("GET /rest/ext/session");
            assert_eq!(status, 200);
            if list.contains(prefix) {
                break list;
            }
            assert!(Instant::now() < late, "{prefix} is not in {list}");
        };
        assert!(list.contains("\"state\":\"CONNECTED\"") && list.contains("\"subscriptions\":1"), "{list}");
        let from = list.find(prefix).unwrap();
        let id: String = list[from..].chars().take_while(|c| *c != '"').collect();
        assert_eq!(service.ask(&format!("DELETE /rest/ext/session/{id}")).0, 200);
        let last = client.receive_until("ERROR");
        assert_eq!(header(&last, "message"), Some("the service ends this session"));
        assert_eq!(client.receive(), None);
    }
    assert_eq!(service.ask("DELETE /rest/ext/session/stomp-0-999").0, 404);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn how_long_the_broker_takes_is_shown_by_stage() {
    let (service, _) = start("stages", &["feed.rate=2000"]);
    let mut clients = [StompClient::new(plain(address(&service, "stomp"))), over_websocket(&service)];
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "tick.*");
    }
    let late = Instant::now() + PATIENCE;
    loop {
        // Many cycles, of which one in so many is timed.
        for client in &mut clients {
            for number in 0..40 {
                client.send_message(&format!("BEGIN|transaction:{number}|receipt:r||"));
                client.receive_until("RECEIPT");
                client.send_message(&format!("ABORT|transaction:{number}||"));
            }
        }
        let (status, list) = service.ask("GET /rest/ext/latency");
        assert_eq!(status, 200);
        let is_shown = |thread: &str, stage: &str| {
            list.contains(&format!("\"thread\":\"{thread}\",\"stage\":\"stomp-{stage}\""))
        };
        let stages = ["decode", "render", "write"];
        if stages.iter().all(|stage| is_shown("gateway-0", stage) && is_shown("http", stage)) {
            break;
        }
        assert!(Instant::now() < late, "not all stages are in {list}");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn rates_change_while_it_runs() {
    let (service, _) = start("rates", &[]);
    let rates = || service.ask("GET /rest/ext/broker/rate").1;
    assert!(rates().contains("\"maxRatePerConnection\":50,\"minRatePerConsumer\":0.1"), "{}", rates());
    let (status, _) = request(&service, "PUT /rest/ext/broker/rate", "{\"maxRatePerConnection\":2.5}");
    assert_eq!(status, 200);
    assert!(rates().contains("\"maxRatePerConnection\":2.5,\"minRatePerConsumer\":0.1"), "{}", rates());
    assert_eq!(request(&service, "PUT /rest/ext/broker/rate", "{\"maxRate\":1}").0, 400);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn the_log_is_published_over_every_transport() {
    // A self-made certificate, used like one of an operator.
    let (first, data) = start("log", &[]);
    first.signal("TERM");
    assert!(first.end().is_orderly());
    let set = |key: &str, file: &str| format!("{key}={}", data.join(file).display());
    let (cert, key) = (set("tls.cert", "self-signed.pem"), set("tls.key", "self-signed.key"));
    let (service, _) = start("log-2", &[&cert, &key]);
    let mut clients = [StompClient::new(plain(address(&service, "stomp"))), over_websocket(&service)];
    for client in &mut clients {
        client.connect();
        client.subscribe("1", "log-event.error");
    }
    // An invalid certificate cannot be reloaded, which is an error.
    fs::write(data.join("self-signed.pem"), "nonsense").unwrap();
    service.signal("HUP");
    for client in &mut clients {
        let message = client.receive_until("MESSAGE");
        assert_eq!(header(&message, "destination"), Some("/topic/log-event.error"));
        assert!(body(&message).contains("\"level\":\"ERROR\""), "{message}");
    }
    service.signal("TERM");
    service.end();
}

/// A session once continued for any time after its login was revoked.
#[test]
fn a_revoked_login_is_disconnected() {
    let data = folder("stomp-struck");
    let tokens = data.join("tokens");
    let tokens = tokens.to_str().unwrap();
    let token = |parts: &[&str]| {
        let mut command = Command::new(paths::binary());
        let made = command.arg("token").args(parts).args(["--file", tokens]).output().unwrap();
        assert!(made.status.success());
        String::from_utf8(made.stdout).unwrap().trim_end().to_string()
    };
    let (stays, goes) =
        (token(&["create", "stays", "--role", "read"]), token(&["create", "goes", "--role", "read"]));
    let file = format!("auth.tokens_file={tokens}");
    let service = ServiceProcess::start(&data, &["auth.mode=required", &file], None);
    assert!(service.is_ready(), "{}", service.ready);
    let connected = |over: bool, login: &str, passcode: &str| {
        let mut client = match over {
            true => over_websocket(&service),
            false => StompClient::new(plain(address(&service, "stomp"))),
        };
        client
            .send_message(&format!("CONNECT|accept-version:1.2|host:x|login:{login}|passcode:{passcode}||"));
        client.receive_until("CONNECTED");
        client
    };
    // A token needs no login; a library that sends an empty login means the same.
    for over in [false, true] {
        for login in ["", "login:|"] {
            let mut client = match over {
                true => over_websocket(&service),
                false => StompClient::new(plain(address(&service, "stomp"))),
            };
            client.send_message(&format!("CONNECT|accept-version:1.2|host:x|{login}passcode:{stays}||"));
            client.receive_until("CONNECTED");
        }
    }
    let mut those_who_stay = [false, true].map(|over| connected(over, "stays", &stays));
    let mut those_who_go = [false, true].map(|over| connected(over, "goes", &goes));
    token(&["revoke", "goes"]);
    service.signal("HUP");
    for client in &mut those_who_go {
        let last = client.receive_until("ERROR");
        assert_eq!(header(&last, "message"), Some("the service ends this session"), "{last}");
        assert_eq!(client.receive(), None);
    }
    for client in &mut those_who_stay {
        client.subscribe("1", "tick.*");
        client.receive_until("MESSAGE");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn where_login_is_required_only_known_logins_are_accepted() {
    let data = folder("stomp-login");
    let users = data.join("users");
    let users = users.to_str().unwrap();
    let mut command = Command::new(paths::binary());
    command.args(["user", "add", "ann", "--role", "read", "--file", users]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    assert!(child.wait().unwrap().success());
    let file = format!("auth.users_file={users}");
    let service = ServiceProcess::start(&data, &["auth.mode=required", &file], None);
    assert!(service.is_ready(), "{}", service.ready);
    let known = "CONNECT|accept-version:1.2|host:x|login:ann|passcode:correct horse battery||";
    for over in [false, true] {
        let client = || match over {
            true => over_websocket(&service),
            false => StompClient::new(plain(address(&service, "stomp"))),
        };
        for wrong in ["", "login:ann|", "login:ann|passcode:wrong|"] {
            let mut client = client();
            client.send_message(&format!("CONNECT|accept-version:1.2|host:x|{wrong}|"));
            let last = client.receive().unwrap();
            assert_eq!(header(&last, "message"), Some("login or passcode is wrong"), "{last}");
            assert_eq!(client.receive(), None);
        }
        let mut client = client();
        client.send_message(known);
        client.receive_until("CONNECTED");
        client.subscribe("1", "tick.*");
        client.receive_until("MESSAGE");
        client.send_message("SEND|destination:/topic/generic-event.x||1");
        let last = client.receive_until("ERROR");
        assert_eq!(header(&last, "message"), Some("SEND is not permitted"), "the role is too low");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
