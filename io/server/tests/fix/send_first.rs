//! The order in which a gateway sends reports and market data of one trade (`net.send_first`), by
//! the times at which the kernel received them. Loopback delivers in the order of the sends.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pitlane_sys::receive_stamp::{receive_stamped, request_receive_stamps};
use pitlane_testkit::fix_client::{self, FixClient};
use pitlane_testkit::service::folder;
use pitlane_testkit::stomp_client::StompClient;

use crate::{address, fix, start};

const TRADES: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 65_536;

/// Reads until this text has arrived, and returns when the kernel received the part that completed
/// it.
fn arrival(stream: &TcpStream, text: &str) -> Duration {
    let late = Instant::now() + PATIENCE;
    let (mut received, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    loop {
        assert!(Instant::now() < late, "{text:?} does not come: {}", String::from_utf8_lossy(&received));
        match receive_stamped(stream, &mut buffer) {
            Ok((count, at)) => {
                assert!(count > 0, "the service closed the connection");
                received.extend_from_slice(&buffer[..count]);
                if String::from_utf8_lossy(&received).contains(text) {
                    return at.expect("the kernel gives a time");
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns a connection on which the kernel gives times. It begins to take times a while after the
/// first socket has asked for them, and goes on as long as there is such a socket.
fn receive_times() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut sender = TcpStream::connect(listener.local_addr().expect("a bound socket")).expect("it listens");
    let (receiver, _) = listener.accept().expect("a connection");
    request_receive_stamps(&receiver).expect("a socket has this option");
    let late = Instant::now() + PATIENCE;
    let mut buffer = [0; 1];
    loop {
        assert!(Instant::now() < late, "the kernel gives no time");
        sender.write_all(b"?").expect("the connection is open");
        if matches!(receive_stamped(&receiver, &mut buffer), Ok((_, Some(_)))) {
            return (sender, receiver);
        }
        std::thread::yield_now();
    }
}

/// Returns for each trade whether its tick arrived before the report of its fill.
fn ticks_before_reports(first: &str) -> Vec<bool> {
    let data = folder(&format!("send-first-{first}"));
    let order = format!("net.send_first={first}");
    let service =
        start(&data, &["feed.on=false", "venue.self_trade=allow", "topology.layout=shared", &order]);
    let ticks = TcpStream::connect(address(&service, "stomp")).expect("it listens");
    let mut consumer = StompClient::new(Box::new(ticks.try_clone().expect("a second descriptor")));
    consumer.connect();
    consumer.subscribe("1", "tick.1");
    let reports = fix_client::plain(fix(&service));
    let mut client = FixClient::new("CLIENT1");
    client.take(Box::new(reports.try_clone().expect("a second descriptor")));
    client.log_on(true);
    let _kept = receive_times();
    for stream in [&ticks, &reports] {
        request_receive_stamps(stream).expect("a socket has this option");
    }
    let mut outcome = Vec::new();
    for trade in 1..=TRADES {
        client.order(&format!("s{trade}"), "AAPL", 2, 1, "100");
        arrival(&reports, "\x0139=0\x01");
        client.order(&format!("b{trade}"), "AAPL", 1, 1, "100");
        let volume = format!("\"volume\":{trade},");
        let tick = arrival(&ticks, &volume);
        outcome.push(tick < arrival(&reports, "\x0139=2\x01"));
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
    outcome
}

#[test]
fn the_protocol_of_the_setting_is_sent_first() {
    assert_eq!(ticks_before_reports("stomp"), [true; TRADES as usize]);
    assert_eq!(ticks_before_reports("fix"), [false; TRADES as usize]);
}
