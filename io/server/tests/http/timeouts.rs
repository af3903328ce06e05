//! Slow clients and many clients. No test waits for a time: each waits for the server to act.

use std::net::SocketAddr;
use std::time::Duration;

use pitlane_http::HttpSettings;

use crate::server::{HttpClient, HttpTestServer, ServerPlan};

/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_millis(60);

fn server(change: impl FnOnce(&mut HttpSettings)) -> HttpTestServer {
    let mut settings = HttpSettings {
        head_timeout: NEVER,
        idle_timeout: NEVER,
        stall_timeout: NEVER,
        body_timeout: NEVER,
        ..ServerPlan::default().settings
    };
    change(&mut settings);
    HttpTestServer::with(ServerPlan { settings, ..ServerPlan::default() })
}

const GET: &str = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn timed_out(server: &HttpTestServer) -> String {
    let metrics = server.get("/metrics").body;
    let line =
        metrics.lines().find(|line| line.starts_with("pitlane_http_timed_out_connections_total ")).unwrap();
    line.split(' ').next_back().unwrap().to_string()
}

#[test]
fn a_head_that_does_not_come_closes_the_connection() {
    let server = server(|settings| settings.head_timeout = SOON);
    for start in ["", "GET", "GET / HTTP/1.1\r\nHost: localhost\r\n", &format!("{GET}GET")] {
        let mut client = server.connect();
        client.send(start);
        if start.starts_with(GET) {
            assert_eq!(client.receive(false).status, 200);
        }
        assert!(client.is_closed(), "{start:?}");
    }
    assert_eq!(timed_out(&server), "4");
}

#[test]
fn a_head_that_drips_does_not_last_longer() {
    let server = server(|settings| settings.head_timeout = SOON);
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n");
    // Each byte would extend the deadline, if bytes did; the server closes in the middle of this.
    // Between two bytes comes a whole request of another client, so that the head stays far below
    // its largest size.
    while client.send_bytes(b"x").is_ok() {
        assert_eq!(server.get("/health/live").status, 200);
    }
    assert_eq!(timed_out(&server), "1");
}

#[test]
fn a_connection_without_requests_is_closed() {
    let server = server(|settings| settings.idle_timeout = SOON);
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(GET);
        assert_eq!(client.receive(false).status, 200);
    }
    assert!(client.is_closed());
}

const HALF: &str = "POST /rest/ext/kill-switch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Content-Length: 100\r\n\r\n{";

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let server = server(|settings| settings.body_timeout = SOON);
    let mut client = server.connect();
    client.send(HALF);
    let response = client.receive(false);
    assert_eq!((response.status, response.code().as_str()), (408, "body-too-slow"));
    assert!(client.is_closed());
}

#[test]
fn a_connection_on_which_nothing_moves_is_cut_off() {
    let server = server(|settings| settings.stall_timeout = SOON);
    let mut client = server.connect();
    client.send(HALF);
    assert!(client.is_closed());
    assert_eq!(timed_out(&server), "1");
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let server = server(|settings| {
        (settings.head_timeout, settings.stall_timeout, settings.idle_timeout) = (SOON, SOON, SOON);
    });
    let mut client = server.connect();
    // Responses that the client does not read fill every buffer between; then the server neither
    // reads nor writes.
    while client.send_bytes(GET.repeat(100).as_bytes()).is_ok() {}
    assert_eq!(timed_out(&server), "1");
}

/// Opens a connection from this address, with a request that has been answered or is being
/// answered.
fn from(server: &HttpTestServer, address: [u8; 4], request: &str) -> HttpClient {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&server.http.into()).unwrap();
    let mut client = HttpClient::new(socket.into());
    client.send(request);
    if request == GET {
        assert_eq!(client.receive(false).status, 200);
    }
    client
}

fn metric(server: &HttpTestServer, name: &str) -> u64 {
    let metrics = server.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.parse().unwrap()
}

#[test]
fn an_address_at_its_limit_loses_its_oldest_idle_connection() {
    let server = server(|settings| settings.connections_per_peer_max = 3);
    let mut own: Vec<_> = (0..3).map(|_| from(&server, [127, 0, 0, 2], GET)).collect();
    let mut other = from(&server, [127, 0, 0, 3], GET);
    own.push(from(&server, [127, 0, 0, 2], GET));
    assert!(own.remove(0).is_closed(), "the oldest made room");
    for client in own.iter_mut().chain([&mut other]) {
        client.send(GET);
        assert_eq!(client.receive(false).status, 200);
    }
    assert_eq!(metric(&server, "pitlane_http_evicted_connections_total"), 1);
}

#[test]
fn an_address_whose_connections_are_all_busy_is_refused_another() {
    let server = server(|settings| settings.connections_per_peer_max = 3);
    let mut busy = Vec::new();
    for _ in 0..3 {
        let request = HALF.replace("Content-Type", "Expect: 100-continue\r\nContent-Type");
        let mut client = from(&server, [127, 0, 0, 2], &request);
        assert_eq!(client.receive(true).status, 100, "the request is being answered");
        busy.push(client);
    }
    let refused = from(&server, [127, 0, 0, 2], "").receive(false);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(server.get("/health/live").status, 200, "another address is none of that");
    drop(busy);
}

#[test]
fn many_clients_are_served() {
    let server = server(|_| {});
    let mut clients: Vec<_> = (0..500).map(|_| server.connect()).collect();
    for _ in 0..3 {
        clients.iter_mut().for_each(|client| client.send(GET));
        for client in &mut clients {
            assert_eq!(client.receive(false).status, 200);
        }
    }
}

/// Three hundred clients that send half a request, split in every possible way, and one that needs
/// service.
#[test]
fn slow_clients_do_not_delay_the_others() {
    let server = server(|_| {});
    let halves = ["", "G", "GET / HTTP/1.1\r\nHost: loc", HALF];
    let mut slow: Vec<_> = (0..300).map(|_| server.connect()).collect();
    for (client, half) in slow.iter_mut().zip(halves.iter().cycle()) {
        client.send(half);
    }
    let mut probe = server.connect();
    let served = (0..1_000)
        .filter(|_| {
            probe.send(GET);
            probe.receive(false).status == 200
        })
        .count();
    assert_eq!(served, 1_000);
    assert_eq!(timed_out(&server), "0", "they are still there");
    // When they continue, they are served too.
    for (client, half) in
        slow.iter_mut().zip(halves.iter().cycle()).filter(|(_, half)| half.starts_with("GET /"))
    {
        client.send("alhost\r\n\r\n");
        assert_eq!(client.receive(false).status, 200, "{half:?}");
    }
}

#[test]
fn each_address_has_its_share() {
    let server = server(|settings| settings.rate_per_peer = 3);
    let mut client = server.connect();
    let mut ask = || {
        client.send(GET);
        client.receive(false)
    };
    // Some tokens may be refilled meanwhile, but not as fast as requests come.
    let refused =
        (0..1_000).map(|_| ask()).find(|response| response.status != 200).expect("there is a limit");
    assert_eq!((refused.status, refused.code().as_str()), (429, "too-many-requests"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    // The connection stays open, and after a while requests succeed again.
    while ask().status != 200 {}
}

#[test]
fn requests_that_come_together_are_answered_in_their_order() {
    let server = server(|_| {});
    let mut client = server.connect();
    let all: String = (0..50)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {n}\r\n\r\n"))
        .collect();
    // However the requests are split.
    for piece in all.as_bytes().chunks(7) {
        client.send_bytes(piece).unwrap();
    }
    for n in 0..50 {
        assert_eq!(client.receive(false).header("x-request-id"), Some(n.to_string().as_str()));
    }
}
