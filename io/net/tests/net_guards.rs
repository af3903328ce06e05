//! Many connections at once: bursts, limits, floods; threads that wait, and connections that move
//! between threads.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod net_world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use net_world::{EchoGateway, GatewayBehavior, NetFixture, PATIENCE, at_loopback, connect, on_each_driver};
use pitlane_engine::slot_table::HasSlot;
use pitlane_engine::time::Timestamp;
use pitlane_net::Net;
use pitlane_net::detached::Detached;
use pitlane_net::event::{CloseReason, SocketEvent};
use pitlane_net::settings::{BufferLimits, DriverKind, ListenerSettings, NetSettings};
use socket2::{Domain, Socket, Type};

#[test]
fn a_burst_of_connections_is_accepted_in_portions_and_leaves_nothing_behind() {
    on_each_driver(|driver| {
        const STORM: usize = 1_000;
        let mut fixture = NetFixture::new(driver);
        let address = fixture.address;
        let storm: Vec<_> =
            (0..4).map(|side| thread::spawn(move || connect_many(address, side, STORM / 4))).collect();
        let mut before = 0;
        fixture.until("all have come", |fixture| {
            let accepted = fixture.gateway.accepted().len();
            assert!(accepted - before <= 16, "{} in one cycle", accepted - before);
            before = accepted;
            let counts = fixture.sockets().counts();
            counts.accepted + counts.accept_failed == STORM as u64
        });
        storm.into_iter().for_each(|thread| thread.join().unwrap());
        fixture.until("all have left", |fixture| fixture.sockets().is_empty());
        let counts = *fixture.sockets().counts();
        let ends = counts.closed_by_peer + counts.closed_reset;
        assert_eq!((ends, counts.accepted), (counts.accepted, ends), "{counts:?}");
    });
}

/// Some clients leave at once, some send first and do not read.
fn connect_many(address: SocketAddr, side: usize, count: usize) {
    for number in 0..count {
        let mut client = connect(address);
        if (number + side).is_multiple_of(2) {
            client.write_all(b"hello and goodbye\n").unwrap();
        }
    }
}

#[test]
fn one_peer_cannot_take_every_connection() {
    on_each_driver(|driver| {
        let settings = NetSettings { driver, per_peer_max: 3, ..NetSettings::default() };
        let mut fixture = NetFixture::with(settings, at_loopback());
        let mut greedy: Vec<TcpStream> = (0..5).map(|_| connect_from("127.0.0.2", fixture.address)).collect();
        let mut modest = connect_from("127.0.0.3", fixture.address);
        modest.write_all(b"me too\n").unwrap();
        assert_eq!(fixture.read(&mut modest, 7), b"me too\n");
        assert_eq!((fixture.sockets().len(), fixture.sockets().counts().refused_peer), (4, 2));
        for mut refused in greedy.drain(3..) {
            assert_eq!(fixture.read_to_end(&mut refused).unwrap(), b"");
        }
        // A connection that was closed makes room for another.
        drop(greedy.pop());
        fixture.until("one has left", |fixture| fixture.sockets().len() == 3);
        let mut next = connect_from("127.0.0.2", fixture.address);
        next.write_all(b"now\n").unwrap();
        assert_eq!(fixture.read(&mut next, 4), b"now\n");
    });
}

#[test]
fn a_listener_and_the_whole_have_a_limit() {
    on_each_driver(|driver| {
        let settings = NetSettings { driver, connections_max: 3, ..NetSettings::default() };
        let listener = ListenerSettings { connections_max: 2, ..at_loopback() };
        let mut fixture = NetFixture::with(settings, listener);
        let second = pitlane_net::listener::Listener::bind(at_loopback()).unwrap();
        let second_address = second.address();
        fixture.net.listen(second);
        let first: Vec<TcpStream> = (0..3).map(|_| connect(fixture.address)).collect();
        fixture
            .until("the first listener is full", |fixture| fixture.sockets().counts().refused_listener == 1);
        let others: Vec<TcpStream> = (0..2).map(|_| connect(second_address)).collect();
        fixture.until("all is full", |fixture| fixture.sockets().counts().refused_all == 1);
        assert_eq!(fixture.sockets().len(), 3);
        drop((first, others));
        fixture.until("all have left", |fixture| fixture.sockets().is_empty());
        let mut client = connect(fixture.address);
        client.write_all(b"room again\n").unwrap();
        assert_eq!(fixture.read(&mut client, 11), b"room again\n");
    });
}

fn connect_from(host: &str, address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from: SocketAddr = format!("{host}:0").parse().unwrap();
    socket.bind(&from.into()).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.into()
}

#[test]
fn a_flooding_connection_is_read_once_per_cycle() {
    on_each_driver(|driver| {
        let settings = NetSettings { driver, read_bytes: 4_096, ..NetSettings::default() };
        let mut fixture = NetFixture::with(settings, at_loopback());
        let stop = Arc::new(AtomicBool::new(false));
        let flood: Vec<_> = (0..3)
            .map(|_| {
                let (mut flooder, id) = fixture.client();
                fixture.sockets().set_deadline(id, None);
                let stop = Arc::clone(&stop);
                flooder.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        _ = flooder.write(&[b'\n'; 65_536]);
                    }
                })
            })
            .collect();
        let (mut modest, _) = fixture.client();
        // Responses to the flooding clients are refused when their outputs are full, which is
        // expected.
        let mut received = fixture.sockets().counts().received_bytes;
        let mut steps = 0;
        for _ in 0..50 {
            modest.write_all(b"ping\n").unwrap();
            let mut answer = Vec::new();
            modest.set_nonblocking(true).unwrap();
            let begin = Instant::now();
            while answer != b"ping\n" {
                assert!(begin.elapsed() < PATIENCE, "starved");
                fixture.gateway.events.clear();
                fixture.step();
                steps += 1;
                assert_each_once(&fixture.gateway.events);
                let now = fixture.sockets().counts().received_bytes;
                assert!(now - received <= 3 * 4_096 + 5, "each is read once, and a little");
                received = now;
                let mut part = [0; 16];
                if let Ok(count) = modest.read(&mut part) {
                    answer.extend_from_slice(&part[..count]);
                }
            }
        }
        println!("{steps} cycles for 50 pings, {received} bytes from the flooders meanwhile");
        stop.store(true, Ordering::Relaxed);
        drop(fixture);
        flood.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn assert_each_once(events: &[SocketEvent]) {
    let mut ids: Vec<_> = events
        .iter()
        .filter_map(|event| if let SocketEvent::Received { id } = event { Some(*id) } else { None })
        .collect();
    ids.sort();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "no connection is read twice in a cycle");
}

#[test]
fn a_wakeup_ends_the_wait_every_time() {
    on_each_driver(|driver| {
        const RINGS: u64 = 5_000;
        let (asked, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (their_asked, their_answered) = (Arc::clone(&asked), Arc::clone(&answered));
        let (wakeup_sender, wakeup) = mpsc::channel();
        let sleeper = thread::spawn(move || {
            let mut net = Net::open(NetSettings { driver, ..NetSettings::default() }).unwrap();
            let wakeup = net.wakeup();
            wakeup_sender.send(net.wakeup()).unwrap();
            while their_answered.load(Ordering::Relaxed) < RINGS {
                net.run_cycle(Timestamp(1), |_, _| {});
                wakeup.prepare_sleep();
                let seen = their_asked.load(Ordering::Relaxed);
                if seen == their_answered.load(Ordering::Relaxed) {
                    // A lost wake-up would block here for longer than the test waits.
                    net.wait(Timestamp(1), 10 * PATIENCE);
                }
                wakeup.finish_sleep();
                their_answered.store(their_asked.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        let wakeup = wakeup.recv().unwrap();
        for ring in 1..=RINGS {
            asked.store(ring, Ordering::Relaxed);
            wakeup.wake();
            let begin = Instant::now();
            while answered.load(Ordering::Relaxed) != ring {
                assert!(begin.elapsed() < PATIENCE, "wake-up {ring} was lost");
                thread::yield_now();
            }
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn readiness_found_by_a_wait_is_not_lost() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (mut client, _) = fixture.client();
        while fixture.step() > 0 {}
        client.write_all(b"hello\n").unwrap();
        // The system reports it once; the gateway reads only after the second wait.
        fixture.net.wait(fixture.now, PATIENCE);
        fixture.net.wait(fixture.now, PATIENCE);
        assert_eq!(fixture.read(&mut client, 6), b"hello\n");
    });
}

#[test]
fn a_wait_ends_with_a_deadline() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let (_client, id) = fixture.client();
        while fixture.step() > 0 {}
        let due = fixture.now.plus(5_000_000);
        fixture.sockets().set_deadline(id, Some(due));
        let begin = Instant::now();
        fixture.net.wait(fixture.now, 10 * PATIENCE);
        assert!(begin.elapsed() < PATIENCE, "it slept through");
        fixture.now = due;
        fixture.step();
        assert!(fixture.gateway.events.contains(&SocketEvent::Timeout { id }));
    });
}

#[test]
fn a_connection_moves_between_threads_with_its_state() {
    on_each_driver(|first| {
        on_each_driver(|second| {
            move_connections(first, second);
        });
    });
}

/// Two threads hand a connection to each other after every line. Each time there is half a line
/// unread and some output unsent.
fn move_connections(first: DriverKind, second: DriverKind) {
    const LINES: usize = 100;
    let (to_second, from_first) = mpsc::channel::<Detached>();
    let (to_first, from_second) = mpsc::channel::<Detached>();
    let (wakeup_sender, wakeups) = mpsc::channel();
    let (send_address, address) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let home = |driver, inbox: mpsc::Receiver<Detached>, outbox: mpsc::Sender<Detached>| {
        let (wakeup_sender, send_address, stop) =
            (wakeup_sender.clone(), send_address.clone(), Arc::clone(&stop));
        let (give_other, other) = mpsc::channel::<pitlane_runtime::wakeup::Wakeup>();
        thread::spawn(move || {
            let mut fixture = NetFixture::new(driver);
            let wakeup = fixture.net.wakeup();
            wakeup_sender.send((fixture.net.wakeup(), give_other)).unwrap();
            send_address.send(fixture.address).unwrap();
            let other = other.recv().unwrap();
            while !stop.load(Ordering::Relaxed) {
                wakeup.prepare_sleep();
                let arrived: Vec<Detached> = inbox.try_iter().collect();
                if arrived.is_empty() && !stop.load(Ordering::Relaxed) {
                    fixture.net.wait(fixture.now, Duration::from_millis(100));
                }
                wakeup.finish_sleep();
                arrived.into_iter().for_each(|detached| _ = fixture.sockets().adopt(detached));
                let NetFixture { net, now, .. } = &mut fixture;
                net.run_cycle(*now, |sockets, event| {
                    let SocketEvent::Received { id } = event else { return };
                    let Some(end) = sockets.input(id).iter().position(|&byte| byte == b'\n') else { return };
                    let line = sockets.input(id)[..=end].to_vec();
                    sockets.consume(id, line.len());
                    sockets.send(id, &line).unwrap();
                    outbox.send(sockets.release(id).unwrap()).unwrap();
                    other.wake();
                });
            }
            assert!(fixture.sockets().is_empty() || fixture.sockets().len() == 1);
            (fixture.sockets().counts().adopted, fixture.sockets().counts().released)
        })
    };
    let threads = [home(first, from_second, to_second), home(second, from_first, to_first)];
    let (a, b) = (wakeups.recv().unwrap(), wakeups.recv().unwrap());
    a.1.send(b.0.clone()).unwrap();
    b.1.send(a.0.clone()).unwrap();
    let mut client = connect(address.recv().unwrap());
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Each line is sent with half of the next one.
    client.write_all(b"line ").unwrap();
    for number in 0..LINES {
        client.write_all(format!("{number:03}\nline ").as_bytes()).unwrap();
        let mut answer = [0; 9];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..], *format!("line {number:03}\n").as_bytes());
    }
    stop.store(true, Ordering::Relaxed);
    a.0.wake();
    b.0.wake();
    let counts = threads.map(|thread| thread.join().unwrap());
    assert_eq!(counts[0].1 + counts[1].1, LINES as u64, "released after every line");
}

#[test]
fn unsent_output_moves_along_and_limits_apply_there_too() {
    on_each_driver(|driver| {
        let limits = BufferLimits { input_bytes_max: 500, output_bytes_max: 64 << 20 };
        let settings = NetSettings { driver, ..NetSettings::default() };
        let mut first = NetFixture::with(settings, ListenerSettings { limits, ..at_loopback() });
        let mut second = NetFixture::new(driver);
        let (mut client, id) = first.client();
        client.write_all(b"half").unwrap();
        first.until("it has come", |fixture| fixture.sockets().input(id).len() == 4);
        // Until the system accepts no more.
        let mut sent = 0;
        while first.sockets().unsent(id) == 0 {
            first.sockets().send(id, &[b'x'; 1 << 20]).unwrap();
            sent += 1 << 20;
            first.step();
        }
        let detached = first.sockets().release(id).unwrap();
        assert_eq!(detached.input(), b"half");
        assert!(first.sockets().is_empty());
        let id = second.sockets().adopt(detached);
        assert!(second.read(&mut client, sent).iter().all(|&byte| byte == b'x'));
        client.write_all(b" and whole\n").unwrap();
        assert_eq!(second.read(&mut client, 15), b"half and whole\n");
        client.write_all(&[b'x'; 501]).unwrap();
        second.until("it is closed", |fixture| !fixture.gateway.closed().is_empty());
        assert_eq!(second.gateway.closed(), [(id, CloseReason::InputFull)]);
    });
}

#[test]
fn a_connection_released_before_it_was_attached_is_complete() {
    on_each_driver(|driver| {
        let (mut first, mut second) = (NetFixture::new(driver), NetFixture::new(driver));
        let (mut client, id) = first.client();
        let detached = first.sockets().release(id).unwrap();
        let passing = second.sockets().adopt(detached);
        let detached = second.sockets().release(passing).unwrap();
        first.sockets().adopt(detached);
        client.write_all(b"home again\n").unwrap();
        assert_eq!(first.read(&mut client, 11), b"home again\n");
        assert!(second.sockets().is_empty());
    });
}

#[test]
fn a_gateway_may_call_any_function_inside_a_callback() {
    // Closes, finishes and releases the connection whose event is being handled, and its neighbours
    // in the queue.
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        let mut clients: Vec<_> = (0..6).map(|_| fixture.client()).collect();
        let ids: Vec<_> = clients.iter().map(|(_, id)| *id).collect();
        for (client, _) in &mut clients {
            client.write_all(b"all at once\n").unwrap();
        }
        let mut gateway = EchoGateway { manners: GatewayBehavior::Bytes, ..EchoGateway::default() };
        let begin = Instant::now();
        while fixture.sockets().counts().closed_by_us + fixture.sockets().counts().released < 6 {
            assert!(begin.elapsed() < PATIENCE);
            let (net, now) = (&mut fixture.net, fixture.now);
            net.run_cycle(now, |sockets, event| {
                gateway.handle(sockets, event);
                let SocketEvent::Received { id } = event else { return };
                sockets.close(id);
                ids.iter().filter(|other| other.slot() % 3 == 1).for_each(|other| sockets.finish(*other));
                ids.iter()
                    .filter(|other| other.slot() % 3 == 2)
                    .for_each(|other| drop(sockets.release(*other)));
            });
        }
        for (client, _) in &mut clients {
            _ = fixture.read_to_end(client);
        }
        drop(clients);
        fixture.until("all have left", |fixture| fixture.sockets().is_empty());
    });
}
