//! Many idle connections beside clients that need service.

use std::net::SocketAddr;

use pitlane_testkit::http_client::HttpClient;
use pitlane_testkit::secured_service::{SecuredService, bearer};

const LIMITS: [&str; 3] =
    ["http.connections_max=256", "http.per_peer_max=64", "stomp.connect_timeout_ms=600000"];
const CROWD: [[u8; 4]; 4] = [[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4], [127, 0, 0, 5]];

fn from(secured: &SecuredService, address: [u8; 4]) -> HttpClient {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&secured.service.address().into()).unwrap();
    HttpClient::new(socket.into())
}

fn get(client: &mut HttpClient, path: &str, headers: &str) -> (u16, String) {
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"));
    let answer = client.receive(false);
    let code = if answer.status < 400 { String::new() } else { answer.code() };
    (answer.status, code)
}

#[test]
fn idle_connections_from_four_addresses_do_not_block_other_clients() {
    let secured = SecuredService::start("idle-crowd", &LIMITS);
    let token = bearer(&secured.token[1]);
    let mut known = secured.connect();
    assert_eq!(get(&mut known, "/rest/account", &token).0, 200);
    let mut idle = Vec::new();
    for address in CROWD {
        for _ in 0..64 {
            let mut client = from(&secured, address);
            assert_eq!(get(&mut client, "/health/live", "").0, 200);
            idle.push(client);
        }
    }
    for _ in 0..20 {
        let mut client = secured.connect();
        assert_eq!(get(&mut client, "/health/live", "").0, 200);
        assert_eq!(get(&mut client, "/rest/account", &token).0, 200);
        assert_eq!(get(&mut client, "/rest/account", "").0, 401);
    }
    assert_eq!(get(&mut known, "/rest/account", &token).0, 200, "a known connection was there all the time");
    // The idle connections are served too, one by one.
    let mut late = from(&secured, CROWD[0]);
    assert_eq!(get(&mut late, "/health/live", "").0, 200);
    drop(idle);
    drop((known, late));
    secured.end();
}

#[test]
fn the_reserve_is_for_logins_and_health_checks() {
    let secured = SecuredService::start("busy-crowd", &LIMITS);
    let token = bearer(&secured.token[1]);
    // WebSockets that never log in are not idle, so none can be closed for others. A tenth of 256
    // is reserved.
    let mut busy = Vec::new();
    for (at, address) in (0..64).flat_map(|_| CROWD).enumerate() {
        let mut client = from(&secured, address);
        client.send(
            "GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        let answer = client.receive(true);
        if at < 231 {
            assert_eq!(answer.status, 101, "{at}");
            busy.push(client);
        } else {
            assert_eq!(answer.status, 503, "{at}");
        }
    }
    let mut unknown = secured.connect();
    assert_eq!(get(&mut unknown, "/rest/account", ""), (503, "no-room".to_string()));
    assert!(unknown.is_closed());
    assert_eq!(get(&mut secured.connect(), "/rest/account", &bearer("pit_wrong")).0, 503);
    assert_eq!(get(&mut secured.connect(), "/health/ready", "").0, 200);
    let mut known = secured.connect();
    for _ in 0..3 {
        assert_eq!(get(&mut known, "/rest/account", &token).0, 200);
    }
    // Unknown clients connect and disconnect in the rest of the reserve, and evict no client with a
    // login.
    for _ in 0..100 {
        let mut unknown = from(&secured, CROWD[3]);
        unknown.send("GET /version HTTP/1.1\r\n");
    }
    assert_eq!(get(&mut known, "/rest/account", &token).0, 200);
    drop((busy, known));
    secured.end();
}
