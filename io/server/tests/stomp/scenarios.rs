//! Bad consumers on the running service: readers that stop, that read one byte at a time, that
//! connect and disconnect; and the rate of market data over WebSocket. The tests assert that
//! nothing is missing and the cost, never the duration.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::stomp_client::{StompClient, body, header, plain};
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

/// Messages that a healthy consumer receives beside bad ones.
const MESSAGES: usize = 3_000;

/// Opens a connection that has subscribed and then reads nothing, or very little.
pub(crate) fn silent(service: &ServiceProcess, topic: &str) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    // As small as the system permits, so that unread bytes stay with the service.
    socket.set_recv_buffer_size(1).unwrap();
    socket.connect(&address(service, "stomp").into()).unwrap();
    let mut stream: TcpStream = socket.into();
    let frames =
        format!("CONNECT\naccept-version:1.2\nhost:x\n\n\0SUBSCRIBE\nid:1\ndestination:/topic/{topic}\n\n\0");
    stream.write_all(frames.as_bytes()).unwrap();
    stream
}

/// Returns the shipped market with so many stocks.
pub(crate) fn instruments(count: u32) -> TestFolder {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/refdata");
    let market = folder(&format!("stomp-market-{count}"));
    for file in ["accounts.csv", "exchanges.csv", "families.csv", "strategies.csv"] {
        fs::copy(shipped.join(file), market.join(file)).unwrap();
    }
    let securities = fs::read_to_string(shipped.join("securities.csv")).unwrap();
    let mut rows = securities.lines().next().unwrap().to_string();
    for id in 1..=count {
        rows += &format!("\n{id},S{id},Stock {id},STOCK,1,,,,,,,{}.50,true", 10 + id);
    }
    fs::write(market.join("securities.csv"), rows + "\n").unwrap();
    market
}

/// Returns the number of an event between strategies; such events are never conflated.
fn number(frame: &str) -> u64 {
    let data = body(frame).split_once("\"data\":").unwrap().1;
    data.trim_end_matches('}').parse().unwrap()
}

#[test]
fn bad_consumers_do_not_slow_a_healthy_one() {
    let (service, _) = start("neighbours", &["feed.rate=20000"]);
    let stopped = silent(&service, ">");
    let mut slow = silent(&service, ">");
    let mut healthy = StompClient::new(plain(address(&service, "stomp")));
    healthy.connect();
    healthy.subscribe("1", "generic-event.count");
    healthy.subscribe("2", "tick.*");
    let mut sender = StompClient::new(plain(address(&service, "stomp")));
    sender.connect();
    let (over, churned) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (over, churned, service) = (&over, &churned, &service);
        // A hundred that connect, subscribe to everything, and disconnect in the middle of it.
        for _ in 0..4 {
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) || churned.load(Ordering::Relaxed) < 100 {
                    let mut stream = silent(service, ">");
                    let _ = stream.read(&mut [0; 64]);
                    churned.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(move || while !over.load(Ordering::Relaxed) && slow.read(&mut [0; 1]).is_ok() {});
        scope.spawn(move || {
            for number in 0..MESSAGES {
                sender.send_message(&format!("SEND|destination:/topic/generic-event.count||{number}"));
            }
            sender
        });
        let (mut next, mut ticks) = (0, 0u64);
        while next < MESSAGES as u64 {
            let frame = healthy.receive_until("MESSAGE");
            if header(&frame, "subscription") == Some("2") {
                ticks += 1;
                continue;
            }
            assert_eq!(number(&frame), next, "nothing is missing and nothing comes twice");
            next += 1;
        }
        assert!(ticks > 0, "market data goes on beside it");
        over.store(true, Ordering::Relaxed);
    });
    assert!(churned.load(Ordering::Relaxed) >= 100);
    drop(stopped);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_hundred_stalled_consumers_of_a_thousand_instruments_cost_less_than_64_mib() {
    let rows = instruments(1_000);
    let market = format!("refdata.dir={}", rows.display());
    let settings = ["feed.rate=20000", "stomp.stuck_timeout_ms=600000", &market];
    let (service, _) = start("stalled", &settings);
    let mut healthy = StompClient::new(plain(address(&service, "stomp")));
    healthy.connect();
    healthy.subscribe("1", "tick.*");
    for _ in 0..1_000 {
        healthy.receive_until("MESSAGE");
    }
    let before = service.metric("process_resident_memory_bytes");
    let stalled: Vec<TcpStream> = (0..100).map(|_| silent(&service, "tick.*")).collect();
    // Until each of them has more than its buffers hold: then all the memory that it can cost is in
    // use.
    let late = Instant::now() + Duration::from_secs(60);
    loop {
        healthy.receive_until("MESSAGE");
        let (_, list) = service.ask("GET /rest/ext/session");
        if list.matches("\"conflated\":").count() - list.matches("\"conflated\":0,").count() >= 100 {
            break;
        }
        assert!(Instant::now() < late, "they are not held up: {list}");
    }
    let more = service.metric("process_resident_memory_bytes").saturating_sub(before);
    assert!(more < 64 << 20, "{} KiB more", more >> 10);
    drop(stalled);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// In every window of a second, by the event times of the service, there are no more events than
/// the rate; `tests/stomp.rs` shows the same with a virtual clock.
#[test]
fn a_websocket_gets_fifty_events_a_second_and_every_instrument_its_turn() {
    let (service, _) = start("throttled", &["feed.rate=20000"]);
    let http = address(&service, "http");
    let mut client = StompClient::new(Box::new(WebSocket::open(plain(http), http, "").0));
    client.connect();
    let begin = Instant::now();
    client.subscribe("1", "tick.*");
    let mut instruments = std::collections::BTreeSet::new();
    let mut messages = 0u32;
    while messages < 150 {
        let frame = client.receive_until("MESSAGE");
        instruments.insert(header(&frame, "destination").unwrap().to_string());
        messages += 1;
    }
    // The first comes at once, each other one a fiftieth of a second after the previous one.
    let seconds = begin.elapsed().as_secs_f64();
    assert!(f64::from(messages - 1) <= 50.0 * seconds, "{messages} in {seconds} s");
    assert!(instruments.len() > 20, "only {} had their turn", instruments.len());
    // Only market data wait: a receipt often comes before the next twenty milliseconds are over.
    for number in 0..50 {
        client.send_message(&format!("BEGIN|transaction:{number}|receipt:{number}||"));
        client.receive_until(&format!("RECEIPT|receipt-id:{number}|"));
        client.send_message(&format!("ABORT|transaction:{number}||"));
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
