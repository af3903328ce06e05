//! Connections that are not read, and output at the end of a connection, with both drivers.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod net_world;

use std::io::Write;

use net_world::{GatewayBehavior, NetFixture, on_each_driver};
use pitlane_net::event::SocketEvent;

/// Together the clients send more than a driver can have received.
#[test]
fn paused_connections_do_not_delay_the_others() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        fixture.gateway.manners = GatewayBehavior::Ignore;
        let mut paused: Vec<_> = (0..100).map(|_| fixture.client()).collect();
        paused.iter().for_each(|(_, id)| fixture.sockets().pause(*id));
        let bytes = [b'x'; 100_000];
        for (client, _) in &mut paused {
            client.set_nonblocking(true).unwrap();
            let mut sent = 0;
            fixture.until("the system has taken it", |_| {
                sent += client.write(&bytes[sent..]).unwrap_or(0);
                sent == bytes.len()
            });
        }
        fixture.gateway.manners = GatewayBehavior::Lines;
        let (mut client, _) = fixture.client();
        for _ in 0..100 {
            client.write_all(b"hello\n").unwrap();
            assert_eq!(fixture.read(&mut client, 6), b"hello\n");
        }
        for (client, id) in &mut paused {
            fixture.sockets().resume(*id);
            client.set_nonblocking(false).unwrap();
            client.write_all(b"\n").unwrap();
            assert_eq!(fixture.read(client, 100_001).len(), 100_001);
        }
    });
}

#[test]
fn output_written_before_the_end_arrives_before_it() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        for _ in 0..10 {
            let (mut client, id) = fixture.client();
            let now = fixture.now;
            let mut written = 0;
            fixture.net.run_cycle(now, |sockets, event| {
                if event == SocketEvent::EndOfCycle {
                    written = sockets.write(id, &[b'w'; 50_000]).unwrap();
                    sockets.send(id, b"last").unwrap();
                    sockets.finish(id);
                }
            });
            let received = fixture.read_to_end(&mut client).unwrap();
            assert_eq!((received.len(), &received[written..]), (written + 4, &b"last"[..]));
        }
    });
}
