//! A STOMP endpoint with real sockets, cycle by cycle.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pitlane_engine::refdata::Rows;

use super::*;
use crate::auth::Role;
use crate::net::Net;
use crate::net::listener::Listener;
use crate::net::settings::{ListenerSettings, NetSettings};

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
/// Maximum time for bytes to pass from one socket to another.
const PATIENCE: Duration = Duration::from_secs(30);

struct EndpointUnderTest {
    net: Net,
    room: StompEndpoint,
}

impl EndpointUnderTest {
    fn turn(&mut self) {
        let room = &mut self.room;
        self.net.turn(NOW, |sockets, happening| match happening {
            SocketEvent::EndOfCycle => _ = room.poll(NOW, sockets, None, |_| {}),
            other => room.handle(NOW, sockets, other),
        });
    }

    fn waiting(&self) -> usize {
        self.room.company.broker.active_len()
    }
}

/// Orders of other clients are read between two cycles, so many subscribers must not make a cycle
/// long.
#[test]
fn a_cycle_writes_to_a_bounded_number_of_clients_and_the_next_to_the_others() {
    let reference = Arc::new(RefData::check(Rows::default()).expect("nothing is wrong with nothing"));
    let room = StompEndpoint::new(BrokerSettings::default(), reference, Logins::new(None, Role::Trade));
    let mut scene =
        EndpointUnderTest { net: Net::open(NetSettings::default()).expect("a driver opens"), room };
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(ListenerSettings::at(any)).expect("loopback has a port");
    let address = listener.address();
    scene.net.listen(listener);

    let crowd = 2 * SESSIONS_PER_TURN_MAX + 3;
    let mut clients: Vec<TcpStream> = (0..crowd)
        .map(|_| {
            let mut client = TcpStream::connect(address).expect("it listens");
            let words = "CONNECT\naccept-version:1.2\nhost:x\n\n\0\
                         SUBSCRIBE\nid:1\ndestination:/topic/generic-event.*\nreceipt:r\n\n\0";
            client.write_all(words.as_bytes()).expect("there is room");
            client.set_nonblocking(true).expect("it may");
            client
        })
        .collect();
    let mut heard = vec![String::new(); crowd];
    let mut until = |scene: &mut EndpointUnderTest, word: &str| {
        let late = Instant::now() + PATIENCE;
        while !heard.iter().all(|text| text.contains(word)) {
            assert!(Instant::now() < late, "everybody hears {word}: {heard:?}");
            scene.turn();
            for (client, text) in clients.iter_mut().zip(&mut heard) {
                let mut bytes = [0; 4_096];
                if let Ok(count) = client.read(&mut bytes) {
                    text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                }
            }
        }
    };
    until(&mut scene, "receipt-id:r");
    assert_eq!(scene.waiting(), 0);

    scene.room.handle_note(NOW, &Notification::Generic { name: "bell".into(), body: (*b"\"rings\"").into() });
    for left in [crowd, crowd - SESSIONS_PER_TURN_MAX, crowd - 2 * SESSIONS_PER_TURN_MAX, 0] {
        assert_eq!(scene.waiting(), left);
        scene.turn();
    }
    until(&mut scene, "rings");
}
