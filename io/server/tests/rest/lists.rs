//! Long lists: complete, in order, and without delay for others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pitlane_testkit::http_client::HttpClient;

use crate::service::{RestService, ask, folder};

const LIMIT: &str = "/rest/execution/order/limit";
/// Several portions.
const ORDERS: usize = 3_000;
/// As in `http/streamed_list`.
const ROWS_PER_PORTION: usize = 128;

fn fill(service: &RestService) {
    let mut clients: Vec<_> = (0..32).map(|_| service.connect()).collect();
    for n in 0..ORDERS {
        let body =
            format!(r#"{{"intId":"o{n}","securityId":{},"side":"BUY","quantity":1,"limit":1}}"#, n % 10 + 1);
        let at = n % clients.len();
        if n >= clients.len() {
            assert_eq!(clients[at].receive(false).status, 200);
        }
        clients[at].send(&format!(
            "POST {LIMIT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }
    for client in &mut clients {
        assert_eq!(client.receive(false).status, 200);
    }
}

#[test]
fn a_long_list_is_complete_and_in_order() {
    let data = folder("long");
    let mut service = RestService::with(&data, &["http.orders_max=20000"]);
    fill(&service);
    let open = service.read("/rest/execution/order");
    let rows = open.as_array().unwrap();
    assert_eq!(rows.len(), ORDERS);
    let mut ids: Vec<_> = rows.iter().map(|row| row["intId"].as_str().unwrap()).collect();
    assert!(rows.is_sorted_by_key(|row| row["dateTime"].as_str().unwrap().len().min(20)), "they are times");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), ORDERS, "each once");
    let some = service.read("/rest/execution/order?limit=700");
    assert_eq!(some.as_array().unwrap()[..], rows[..700]);
    assert_eq!(service.read("/rest/execution/order?limit=1").as_array().unwrap().len(), 1);
    // A client that disconnects in the middle leaves nothing behind.
    for _ in 0..100 {
        let mut client = service.connect();
        client.send("GET /rest/execution/order HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), ORDERS);
    service.stop_trading();
    let gone = service.until("/rest/ext/order/history", |rows| rows.as_array().unwrap().len() == ORDERS);
    assert_eq!(gone[0]["status"], "CANCELED");
    assert_eq!(service.read("/rest/execution/order"), serde_json::json!([]));
    assert_eq!(service.read("/rest/ext/order/history?limit=300").as_array().unwrap().len(), 300);
}

/// Each portion is a chunk. A test beside the code that makes them shows that sockets are polled
/// between two of them.
#[test]
fn a_long_list_is_made_in_portions() {
    let data = folder("portions");
    let service = RestService::with(&data, &["http.orders_max=20000"]);
    fill(&service);
    for path in ["/rest/execution/order", "/rest/execution/order?limit=2000"] {
        let mut socket = BufReader::new(TcpStream::connect(service.address()).unwrap());
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        socket.get_mut().write_all(request.as_bytes()).unwrap();
        let chunks = chunks(&mut socket);
        let rows = |chunk: &String| chunk.matches("\"intId\"").count();
        assert!(chunks.iter().map(rows).sum::<usize>() >= 2_000, "{path}");
        let most = chunks.iter().map(rows).max().unwrap();
        assert!(most <= ROWS_PER_PORTION, "{path}: {most} orders in one go");
    }
}

/// Returns the bodies of a response's chunks.
fn chunks(socket: &mut impl BufRead) -> Vec<String> {
    let mut line = || {
        let mut line = String::new();
        assert!(socket.read_line(&mut line).unwrap() > 0, "the response is cut");
        line.trim_end().to_string()
    };
    while !line().is_empty() {}
    let mut chunks = Vec::new();
    // Our JSON has no line ends, so a chunk is a line.
    while line() != "0" {
        chunks.push(line());
    }
    assert_eq!(line(), "", "the last chunk has no trailer");
    chunks
}

/// A reader that reads nothing delays no other client; the bench measures that no other request
/// waits long.
#[test]
fn a_stalled_reader_delays_only_itself() {
    let data = folder("stuck");
    let service = RestService::with(&data, &["http.orders_max=20000"]);
    fill(&service);
    let mut stuck = Vec::new();
    for _ in 0..8 {
        let socket = TcpStream::connect(service.address()).unwrap();
        let mut client = HttpClient::new(socket.try_clone().unwrap());
        client.send("GET /rest/execution/order HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stuck.push((client, socket));
    }
    let mut other = service.connect();
    let end = Instant::now() + Duration::from_secs(30);
    for n in 0..50 {
        let body = format!(r#"{{"intId":"x{n}","securityId":1,"side":"BUY","quantity":1,"limit":1}}"#);
        assert_eq!(ask(&mut other, "POST", LIMIT, "", &body).status, 200);
        assert!(Instant::now() < end);
    }
    // What they finally receive is well formed.
    let (mut client, mut socket) = stuck.pop().unwrap();
    let rows = client.receive(false).json();
    assert!(rows.as_array().unwrap().len() >= ORDERS);
    drop(stuck);
    socket.set_nonblocking(true).unwrap();
    assert!(socket.read(&mut [0; 1]).is_err(), "nothing follows");
}

/// Lists that one client requests at once: the buffers of the system hold more than one, and no
/// more than two.
const LISTS: usize = 3;

/// Opens a client at this address that requests a list repeatedly and reads only the beginning of
/// the first response.
fn stalled(service: &RestService, address: [u8; 4], path: &str) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    // As small as the system permits, so that unread bytes stay with the service.
    socket.set_recv_buffer_size(1).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&service.address().into()).unwrap();
    let mut stream: TcpStream = socket.into();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.repeat(LISTS).as_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
    stream
}

/// 64 such clients once made the lists unavailable for half a minute.
#[test]
fn clients_that_do_not_read_lose_their_own_places_only() {
    let data = folder("unread");
    let mut service = RestService::with(&data, &["http.orders_max=20000"]);
    fill(&service);
    service.stop_trading();
    let history = "/rest/ext/order/history";
    service.until(history, |rows| rows.as_array().unwrap().len() == ORDERS);
    // One address with more than its share, and enough others to take every place.
    let clients: Vec<_> = (0..20).map(|_| stalled(&service, [127, 0, 0, 3], history)).collect();
    let spread: Vec<_> = (4..54).map(|n| stalled(&service, [127, 0, 0, n], history)).collect();
    let read = |path: &str| {
        let answer = ask(&mut service.connect(), "GET", path, "", "");
        assert_eq!(answer.status, 200, "{path}");
        answer.json().as_array().unwrap().len()
    };
    for _ in 0..3 {
        assert_eq!(read(history), ORDERS);
        assert_eq!(read("/rest/ext/order/history?limit=2000"), 2_000);
    }
    drop((clients, spread));
    assert_eq!(read(history), ORDERS);
}

#[test]
fn a_slow_reader_is_left_alone_while_a_crowd_at_another_address_has_its_share() {
    let data = folder("share");
    let service = RestService::with(&data, &["http.orders_max=20000"]);
    fill(&service);
    let open = "/rest/execution/order";
    let slow = stalled(&service, [127, 0, 0, 2], open);
    let clients: Vec<_> = (0..20).map(|_| stalled(&service, [127, 0, 0, 3], open)).collect();
    let answer = ask(&mut service.connect(), "GET", open, "", "");
    assert_eq!((answer.status, answer.json().as_array().unwrap().len()), (200, ORDERS));
    // When it continues to read, it gets everything.
    let mut slow = BufReader::new(slow);
    for _ in 0..LISTS {
        let rows: usize = chunks(&mut slow).iter().map(|chunk| chunk.matches("\"intId\"").count()).sum();
        assert_eq!(rows, ORDERS);
    }
    drop(clients);
}
