//! Connections with both drivers: bytes, back-pressure, every kind of end.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod net_world;

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use net_world::{GatewayBehavior, NetFixture, at_loopback, connect, on_each_driver, take};
use pitlane_engine::slot_table::HasSlot;
use pitlane_net::Net;
use pitlane_net::event::{CloseReason, SocketEvent};
use pitlane_net::listener::{Listener, ListenerId};
use pitlane_net::settings::{BufferLimits, ConnectTarget, ListenerSettings, NetSettings};
use pitlane_net::sockets::SendError;
use socket2::{SockRef, Socket};

#[test]
fn a_line_is_echoed_wherever_it_is_cut() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut client, _) = fixture.client();
        let line = b"8=FIX.4.4|9=5|35=0|10=161\n";
        let mut received = 0;
        for first in 0..line.len() {
            for second in first..line.len() {
                for (from, to) in [(0, first), (first, second), (second, line.len())] {
                    client.write_all(&line[from..to]).unwrap();
                    received += (to - from) as u64;
                    fixture.until("the piece has come", |w| w.sockets().counts().received_bytes == received);
                }
                assert_eq!(fixture.read(&mut client, line.len()), line);
            }
        }
        let counts = *fixture.sockets().counts();
        assert_eq!((counts.sent_bytes, counts.accepted), (counts.received_bytes, 1));
    });
}

/// The gateway connects to its own listener: output before the connection is accepted is sent
/// afterwards, and is echoed.
#[test]
fn output_buffered_during_a_connect_is_sent_afterwards() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let call = ConnectTarget { address: fixture.address, tls: None, limits: BufferLimits::default() };
        let id = fixture.sockets().connect(&call).unwrap();
        fixture.sockets().send(id, b"hello\n").unwrap();
        // The line goes there and back, is echoed once more, and so on.
        fixture.until("it has gone round", |w| w.sockets().counts().received_bytes >= 4 * 6);
        assert_eq!((fixture.sockets().counts().connects, fixture.gateway.accepted().len()), (1, 1));
        fixture.sockets().close(id);
        fixture.until("the other end has noticed", |w| w.sockets().is_empty());
    });
}

/// A gateway connects to a venue at the end of a cycle, before its outputs are written.
#[test]
fn output_buffered_at_the_end_of_a_cycle_with_a_connect_is_sent_afterwards() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let call = ConnectTarget { address: fixture.address, tls: None, limits: BufferLimits::default() };
        fixture.step_with_end(|sockets| {
            let id = sockets.connect(&call).unwrap();
            sockets.send(id, b"hello\n").unwrap();
        });
        fixture.until("it has gone round", |w| w.sockets().counts().received_bytes >= 4 * 6);
    });
}

#[test]
fn a_connect_that_fails_is_reported() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        // The port is bound and released: there is no listener.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let id = fixture
            .sockets()
            .connect(&ConnectTarget { address, tls: None, limits: BufferLimits::default() })
            .unwrap();
        fixture.sockets().send(id, b"hello\n").unwrap();
        fixture.until("the gateway gets the event", |w| !w.gateway.closed().is_empty());
        assert_eq!(
            fixture.gateway.closed(),
            [(id, CloseReason::Failed(std::io::ErrorKind::ConnectionRefused))]
        );
        assert!(fixture.sockets().is_empty());
    });
}

#[test]
fn output_of_one_cycle_leaves_in_one_call() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut client, id) = fixture.client();
        let before = fixture.sockets().counts().writes;
        for number in 0..1_000u32 {
            fixture.sockets().send(id, &number.to_be_bytes()).unwrap();
        }
        let bytes = fixture.read(&mut client, 4_000);
        assert_eq!(bytes[3_996..], 999u32.to_be_bytes());
        assert_eq!(fixture.sockets().counts().writes, before + 1);
    });
}

#[test]
fn megabytes_are_echoed_unchanged() {
    on_each_driver(|driver| {
        let listener = ListenerSettings {
            limits: BufferLimits { input_bytes_max: 1 << 16, output_bytes_max: 1 << 24 },
            ..at_loopback()
        };
        let mut fixture = NetFixture::with(NetSettings { driver, ..NetSettings::default() }, listener);
        fixture.gateway.manners = GatewayBehavior::Bytes;
        let (client, _) = fixture.client();
        let bytes: Vec<u8> =
            (0..8 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut writer = client.try_clone().unwrap();
        let sent = bytes.clone();
        let writing = std::thread::spawn(move || {
            let mut rest = &sent[..];
            while !rest.is_empty() {
                match writer.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    // The reader has made the socket non-blocking.
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let mut reader = client;
        assert!(fixture.read(&mut reader, bytes.len()) == bytes);
        writing.join().unwrap();
        assert_eq!(fixture.gateway.sends_refused, 0);
    });
}

#[test]
fn a_slow_reader_hits_its_cap_and_the_others_go_on() {
    on_each_driver(|driver| {
        let cap = 100_000;
        let listener = ListenerSettings {
            limits: BufferLimits { output_bytes_max: cap, ..BufferLimits::default() },
            ..at_loopback()
        };
        let mut fixture = NetFixture::with(NetSettings { driver, ..NetSettings::default() }, listener);
        let (mut slow, slow_id) = fixture.client();
        let (mut quick, quick_id) = fixture.client();
        let mut sent = 0;
        fixture.until("the slow one is full", |fixture| {
            match fixture.sockets().send(slow_id, &[b's'; 10_000]) {
                Ok(()) => {
                    sent += 10_000;
                    false
                }
                Err(error) => {
                    assert_eq!(error, SendError::Full);
                    true
                }
            }
        });
        assert!(fixture.sockets().unsent(slow_id) <= cap);
        let refused = fixture.sockets().counts().sends_refused;
        let too_much = fixture.sockets().send(slow_id, &[b'x'; 100_001]);
        assert_eq!((too_much, fixture.sockets().counts().sends_refused), (Err(SendError::Full), refused + 1));
        for _ in 0..100 {
            fixture.sockets().send(quick_id, b"news").unwrap();
            assert_eq!(fixture.read(&mut quick, 4), b"news");
        }
        // The reader catches up, nothing is missing, and the drained output is reported.
        fixture.sockets().notify_drained(slow_id);
        assert!(fixture.read(&mut slow, sent).iter().all(|&byte| byte == b's'));
        fixture.until("the gateway gets the event", |fixture| {
            fixture.gateway.events.contains(&SocketEvent::Drained { id: slow_id })
        });
        assert!(fixture.gateway.closed().is_empty());
    });
}

#[test]
fn a_paused_connection_slows_its_client_and_loses_nothing() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        fixture.gateway.manners = GatewayBehavior::Ignore;
        let (client, id) = fixture.client();
        (&client).write_all(b"first\n").unwrap();
        fixture.until("the input arrives", |fixture| fixture.sockets().input(id).len() == 6);
        fixture.sockets().pause(id);
        client.set_nonblocking(true).unwrap();
        let (mut sent, mut stuck) = (6, 0);
        // The client blocks when the buffers of both systems are full.
        fixture.until("the client is stuck", |_| match (&client).write(&[b'x'; 65_536]) {
            Ok(count) => {
                (sent, stuck) = (sent + count, 0);
                false
            }
            Err(_) => {
                stuck += 1;
                stuck > 20
            }
        });
        assert_eq!(fixture.sockets().input(id), b"first\n");
        fixture.gateway.manners = GatewayBehavior::Swallow;
        let before = fixture.gateway.events.len();
        fixture.sockets().resume(id);
        fixture.until("all has come", |fixture| fixture.sockets().counts().received_bytes == sent as u64);
        fixture.until("all is consumed", |fixture| fixture.sockets().input(id).is_empty());
        assert_eq!(fixture.gateway.events[before], SocketEvent::Received { id });
        assert!(fixture.gateway.closed().is_empty());
    });
}

#[test]
fn a_paused_connection_is_closed_at_once_when_its_peer_resets_it() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        fixture.gateway.manners = GatewayBehavior::Ignore;
        let (client, id) = fixture.client();
        (&client).write_all(b"first\n").unwrap();
        fixture.until("the input arrives", |fixture| fixture.sockets().input(id).len() == 6);
        // A peer that has not read everything resets the connection when it goes.
        fixture.sockets().send(id, b"unread").unwrap();
        fixture.until("the output leaves", |fixture| fixture.sockets().unsent(id) == 0);
        let mut first = [0];
        client.peek(&mut first).unwrap();
        fixture.sockets().pause(id);
        drop(client);
        fixture.until("it is closed", |fixture| !fixture.gateway.closed().is_empty());
        assert_eq!(fixture.gateway.closed(), [(id, CloseReason::Reset)]);
    });
}

#[test]
fn more_than_may_wait_unconsumed_ends_the_connection() {
    on_each_driver(|driver| {
        let listener = ListenerSettings {
            limits: BufferLimits { input_bytes_max: 1_000, ..BufferLimits::default() },
            ..at_loopback()
        };
        let mut fixture = NetFixture::with(NetSettings { driver, ..NetSettings::default() }, listener);
        let (mut client, id) = fixture.client();
        client.write_all(&[b'x'; 999]).unwrap();
        fixture.until("it has come", |fixture| fixture.sockets().input(id).len() == 999);
        client.write_all(b"\n").unwrap();
        assert_eq!(fixture.read(&mut client, 1_000).len(), 1_000);
        client.write_all(&[b'x'; 1_001]).unwrap();
        fixture.until("it is closed", |fixture| !fixture.gateway.closed().is_empty());
        assert_eq!(fixture.gateway.closed(), [(id, CloseReason::InputFull)]);
        assert_eq!(fixture.sockets().counts().closed_input_full, 1);
    });
}

#[test]
fn responses_to_input_before_a_close_are_still_sent() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut client, id) = fixture.client();
        client.write_all(b"last words\n").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(fixture.read_to_end(&mut client).unwrap(), b"last words\n");
        fixture.until("it is gone", |fixture| fixture.sockets().is_empty());
        assert_eq!(fixture.gateway.closed(), [(id, CloseReason::ByPeer)]);
        assert_eq!(fixture.sockets().send(id, b"too late"), Err(SendError::Gone));
    });
}

#[test]
fn finish_sends_buffered_output_first_and_close_does_not() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut client, id) = fixture.client();
        fixture.sockets().send(id, &[b'x'; 900_000]).unwrap();
        fixture.sockets().finish(id);
        assert_eq!(fixture.sockets().send(id, b"more"), Err(SendError::Gone));
        assert_eq!(fixture.read_to_end(&mut client).unwrap().len(), 900_000);
        assert_eq!(fixture.sockets().len(), 1, "the peer has not closed yet");
        drop(client);
        fixture.until("it is gone", |fixture| fixture.sockets().is_empty());

        let (mut client, id) = fixture.client();
        fixture.sockets().send(id, b"never sent").unwrap();
        fixture.sockets().close(id);
        assert_eq!(fixture.read_to_end(&mut client).unwrap(), b"");
        assert!(fixture.gateway.closed().is_empty(), "the gateway gets no event for what it closed");
        assert_eq!(fixture.sockets().counts().closed_by_us, 2);
    });
}

#[test]
fn a_peer_that_never_closes_does_not_block() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (_client, id) = fixture.client();
        fixture.sockets().finish(id);
        fixture.step();
        assert_eq!(fixture.sockets().len(), 1);
        fixture.now = fixture.now.plus(3_000_000_000);
        fixture.until("it is gone", |fixture| fixture.sockets().is_empty());
    });
}

#[test]
fn resets_during_a_write_end_only_that_connection() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut other, _) = fixture.client();
        for round in 0..20 {
            let (client, id) = fixture.client();
            let mut refused = false;
            fixture.until("its buffers are full", |fixture| {
                refused |= fixture.sockets().send(id, &[b'x'; 100_000]).is_err();
                refused
            });
            if round % 2 == 0 {
                (&client).write_all(b"unread by the server").unwrap();
            }
            reset(client);
            fixture.until("it is over", |fixture| fixture.gateway.closed().len() == round + 1);
            assert_eq!(fixture.gateway.closed()[round], (id, CloseReason::Reset));
        }
        other.write_all(b"still here\n").unwrap();
        assert_eq!(fixture.read(&mut other, 11), b"still here\n");
        assert_eq!((fixture.sockets().len(), fixture.sockets().counts().closed_reset), (1, 20));
    });
}

/// Closing with unread bytes and without lingering sends a reset.
fn reset(client: TcpStream) {
    let socket = Socket::from(client);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_peer_that_stops_reading_is_closed() {
    // The system's view of a peer that vanished: it acknowledges nothing new within the user
    // timeout.
    on_each_driver(|driver| {
        let settings =
            NetSettings { driver, user_timeout: Duration::from_millis(100), ..NetSettings::default() };
        let mut fixture = NetFixture::with(settings, at_loopback());
        let (_client, id) = fixture.client();
        fixture.until("it is given up", |fixture| {
            _ = fixture.sockets().send(id, &[b'x'; 100_000]);
            !fixture.gateway.closed().is_empty()
        });
        assert_eq!(fixture.gateway.closed(), [(id, CloseReason::Lost)]);
        assert_eq!(fixture.sockets().counts().closed_lost, 1);
    });
}

#[test]
fn connections_have_the_options_they_need() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (_client, id) = fixture.client();
        let detached = fixture.sockets().release(id).unwrap();
        let socket = SockRef::from(detached.stream());
        let defaults = NetSettings::default();
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), defaults.keep_alive.idle);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), defaults.keep_alive.interval);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), defaults.keep_alive.probes);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(defaults.user_timeout));
    });
}

#[test]
fn silent_connections_are_closed_and_deadlines_are_reported() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut silent, silent_id) = fixture.client();
        let (mut talker, talker_id) = fixture.client();
        talker.write_all(b"hello\n").unwrap();
        assert_eq!(fixture.read(&mut talker, 6), b"hello\n");
        let begin = fixture.now;
        // The deadline is moved back, then forward again: the latest applies.
        fixture.sockets().set_deadline(talker_id, Some(begin.plus(1_000)));
        fixture.sockets().set_deadline(talker_id, Some(begin.plus(60_000_000_000)));
        fixture.sockets().set_deadline(talker_id, Some(begin.plus(40_000_000_000)));
        fixture.now = begin.plus(29_000_000_000);
        while fixture.step() > 0 {}
        assert!(fixture.gateway.closed().is_empty());
        assert!(!fixture.gateway.events.contains(&SocketEvent::Timeout { id: talker_id }));
        fixture.now = begin.plus(30_000_000_000);
        assert_eq!(fixture.read_to_end(&mut silent).unwrap(), b"");
        assert_eq!(fixture.gateway.closed(), [(silent_id, CloseReason::Silent)]);
        fixture.now = begin.plus(40_000_000_000);
        fixture.until("it is due", |w| w.gateway.events.contains(&SocketEvent::Timeout { id: talker_id }));
        let events = fixture.gateway.events.len();
        fixture.now = begin.plus(400_000_000_000);
        while fixture.step() > 0 {}
        assert_eq!(fixture.gateway.events.len(), events, "once");
        assert_eq!(fixture.sockets().len(), 1);
    });
}

#[test]
fn an_old_id_does_not_reach_the_next_connection() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (client, first) = fixture.client();
        drop(client);
        fixture.until("it is gone", |fixture| fixture.sockets().is_empty());
        let (_client, second) = fixture.client();
        assert_eq!(first.slot(), second.slot());
        assert_ne!(first, second);
        let sockets = fixture.sockets();
        assert_eq!(sockets.send(first, b"x"), Err(SendError::Gone));
        sockets.close(first);
        sockets.finish(first);
        sockets.consume(first, 0);
        assert!(sockets.release(first).is_none());
        assert_eq!((sockets.len(), sockets.peer(first)), (1, None));
        assert!(sockets.peer(second).is_some());
    });
}

#[test]
fn ipv4_and_ipv6_are_accepted() {
    on_each_driver(|driver| {
        let six = ListenerSettings::at("[::]:0".parse().unwrap());
        let Ok(listener) = Listener::bind(six) else {
            println!("skipped: this host has no IPv6");
            return;
        };
        let port = listener.address().port();
        let mut fixture = NetFixture::new(driver);
        fixture.net.listen(listener);
        for host in ["127.0.0.1", "::1"] {
            let mut client = match TcpStream::connect((host, port)) {
                Ok(client) => client,
                Err(error) => {
                    println!("skipped {host}: {error}");
                    continue;
                }
            };
            client.write_all(b"hello\n").unwrap();
            assert_eq!(fixture.read(&mut client, 6), b"hello\n");
        }
    });
}

#[test]
fn a_port_in_use_is_reported_at_once() {
    let first = Listener::bind(at_loopback()).unwrap();
    let again = ListenerSettings::at(first.address());
    assert_eq!(Listener::bind(again).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn a_thread_has_so_many_listeners_and_one_more_is_a_bug() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        // One listener is already open.
        let mut last = None;
        for number in 1..63 {
            let listener = Listener::bind(at_loopback()).unwrap();
            last = Some(listener.address());
            assert_eq!(fixture.net.listen(listener), ListenerId(number));
        }
        // It is distinguished from the first connection, whose token directly follows.
        let (mut first, mut client) = (connect(fixture.address), connect(last.unwrap()));
        for who in [&mut first, &mut client] {
            who.write_all(b"hello\n").unwrap();
            assert_eq!(fixture.read(who, 6), b"hello\n");
        }
        let one_more = Listener::bind(at_loopback()).unwrap();
        let events = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fixture.net.listen(one_more)));
        assert!(events.is_err(), "it is not taken for a connection");
    });
}

#[test]
fn two_threads_may_accept_from_one_listener() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let listener = Listener::bind(at_loopback()).unwrap();
        let address = listener.address();
        let mut other = Net::open(NetSettings { driver, ..NetSettings::default() }).unwrap();
        other.listen(listener.try_clone().unwrap());
        fixture.net.listen(listener);
        let mut clients: Vec<TcpStream> = (0..50).map(|_| connect(address)).collect();
        let now = fixture.now;
        let mut seen = 0;
        fixture.until("all are accepted", |fixture| {
            other.run_cycle(now, |_, event| {
                seen += usize::from(matches!(event, SocketEvent::Accepted { .. }))
            });
            seen + fixture.gateway.accepted().len() == 50
        });
        assert!(clients.iter_mut().all(|client| {
            client.set_nonblocking(true).unwrap();
            take(client, &mut [0; 1]) == Some(0)
        }));
    });
}
