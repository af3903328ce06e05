//! A STOMP endpoint with real sockets, cycle by cycle.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pitlane_auth::Role;
use pitlane_engine::refdata::RefDataRows;
use pitlane_net::Net;
use pitlane_net::listener::Listener;
use pitlane_net::settings::{ListenerSettings, NetSettings};

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
/// Maximum time for bytes to pass from one socket to another.
const TIMEOUT: Duration = Duration::from_secs(30);

struct EndpointUnderTest {
    net: Net,
    endpoint: StompEndpoint,
}

impl EndpointUnderTest {
    fn run_cycle(&mut self) {
        let endpoint = &mut self.endpoint;
        self.net.run_cycle(NOW, |sockets, socket_event| {
            if let SocketEvent::EndOfCycle = socket_event {
                endpoint.poll(NOW, sockets, None, |_| {});
            } else {
                endpoint.handle(NOW, sockets, socket_event);
            }
        });
    }

    fn waiting(&self) -> usize {
        self.endpoint.broker_host.broker.active_len()
    }
}

/// Orders of other clients are read between two cycles, so many subscribers must not make a cycle
/// long.
#[test]
fn a_cycle_writes_to_a_bounded_number_of_clients_and_the_next_to_the_others() {
    let reference = Arc::new(RefData::check(RefDataRows::default()).expect("nothing is wrong with nothing"));
    let endpoint = StompEndpoint::new(BrokerSettings::default(), reference, Logins::new(None, Role::Trade));
    let mut test =
        EndpointUnderTest { net: Net::open(NetSettings::default()).expect("a driver opens"), endpoint };
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(ListenerSettings::at(any)).expect("loopback has a port");
    let address = listener.address();
    test.net.listen(listener);

    let clients_count = 2 * SESSIONS_PER_CYCLE_MAX + 3;
    let mut clients: Vec<TcpStream> = (0..clients_count)
        .map(|_| {
            let mut client = TcpStream::connect(address).expect("it listens");
            let frames = "CONNECT\naccept-version:1.2\nhost:x\n\n\0\
                         SUBSCRIBE\nid:1\ndestination:/topic/generic-event.*\nreceipt:r\n\n\0";
            client.write_all(frames.as_bytes()).expect("there is room");
            client.set_nonblocking(true).expect("it may");
            client
        })
        .collect();
    let mut received = vec![String::new(); clients_count];
    let mut until = |test: &mut EndpointUnderTest, expected: &str| {
        let deadline = Instant::now() + TIMEOUT;
        while !received.iter().all(|text| text.contains(expected)) {
            assert!(Instant::now() < deadline, "every client receives {expected}: {received:?}");
            test.run_cycle();
            for (client, text) in clients.iter_mut().zip(&mut received) {
                let mut bytes = [0; 4_096];
                if let Ok(count) = client.read(&mut bytes) {
                    text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                }
            }
        }
    };
    until(&mut test, "receipt-id:r");
    assert_eq!(test.waiting(), 0);

    test.endpoint.handle_notification(
        NOW,
        &Notification::Generic { name: "bell".into(), body: (*b"\"rings\"").into() },
    );
    for left in
        [clients_count, clients_count - SESSIONS_PER_CYCLE_MAX, clients_count - 2 * SESSIONS_PER_CYCLE_MAX, 0]
    {
        assert_eq!(test.waiting(), left);
        test.run_cycle();
    }
    until(&mut test, "rings");
}
