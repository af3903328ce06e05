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

use net_world::{Gateway, Manners, PATIENCE, World, at_loopback, connect, on_each_driver};
use pitlane::net::Net;
use pitlane::net::detached::Detached;
use pitlane::net::event::{CloseReason, SocketEvent};
use pitlane::net::settings::{BufferLimits, DriverKind, ListenerSettings, NetSettings};
use pitlane_engine::time::Timestamp;
use socket2::{Domain, Socket, Type};

#[test]
fn a_burst_of_connections_is_accepted_in_portions_and_leaves_nothing_behind() {
    on_each_driver(|driver| {
        const STORM: usize = 1_000;
        let mut world = World::new(driver);
        let address = world.address;
        let storm: Vec<_> =
            (0..4).map(|side| thread::spawn(move || rush(address, side, STORM / 4))).collect();
        let mut before = 0;
        world.until("all have come", |world| {
            let accepted = world.gateway.accepted().len();
            assert!(accepted - before <= 16, "{} in one cycle", accepted - before);
            before = accepted;
            let counts = world.sockets().counts();
            counts.accepted + counts.accept_failed == STORM as u64
        });
        storm.into_iter().for_each(|thread| thread.join().unwrap());
        world.until("all have left", |world| world.sockets().is_empty());
        let counts = *world.sockets().counts();
        let ends = counts.closed_by_peer + counts.closed_reset;
        assert_eq!((ends, counts.accepted), (counts.accepted, ends), "{counts:?}");
    });
}

/// Some clients leave at once, some send first and do not read.
fn rush(address: SocketAddr, side: usize, count: usize) {
    for number in 0..count {
        let mut client = connect(address);
        if (number + side).is_multiple_of(2) {
            client.write_all(b"hello and goodbye\n").unwrap();
        }
    }
}

#[test]
fn one_peer_may_not_take_every_place() {
    on_each_driver(|driver| {
        let settings = NetSettings { driver, per_peer_max: 3, ..NetSettings::default() };
        let mut world = World::with(settings, at_loopback());
        let mut greedy: Vec<TcpStream> = (0..5).map(|_| connect_from("127.0.0.2", world.address)).collect();
        let mut modest = connect_from("127.0.0.3", world.address);
        modest.write_all(b"me too\n").unwrap();
        assert_eq!(world.read(&mut modest, 7), b"me too\n");
        assert_eq!((world.sockets().len(), world.sockets().counts().refused_peer), (4, 2));
        for mut refused in greedy.drain(3..) {
            assert_eq!(world.read_to_end(&mut refused).unwrap(), b"");
        }
        // A connection that was closed makes room for another.
        drop(greedy.pop());
        world.until("one has left", |world| world.sockets().len() == 3);
        let mut next = connect_from("127.0.0.2", world.address);
        next.write_all(b"now\n").unwrap();
        assert_eq!(world.read(&mut next, 4), b"now\n");
    });
}

#[test]
fn a_listener_and_the_whole_have_a_limit() {
    on_each_driver(|driver| {
        let settings = NetSettings { driver, connections_max: 3, ..NetSettings::default() };
        let listener = ListenerSettings { connections_max: 2, ..at_loopback() };
        let mut world = World::with(settings, listener);
        let second = pitlane::net::listener::Listener::bind(at_loopback()).unwrap();
        let second_address = second.address();
        world.net.listen(second);
        let first: Vec<TcpStream> = (0..3).map(|_| connect(world.address)).collect();
        world.until("the first listener is full", |world| world.sockets().counts().refused_listener == 1);
        let others: Vec<TcpStream> = (0..2).map(|_| connect(second_address)).collect();
        world.until("all is full", |world| world.sockets().counts().refused_all == 1);
        assert_eq!(world.sockets().len(), 3);
        drop((first, others));
        world.until("all have left", |world| world.sockets().is_empty());
        let mut client = connect(world.address);
        client.write_all(b"room again\n").unwrap();
        assert_eq!(world.read(&mut client, 11), b"room again\n");
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
        let mut world = World::with(settings, at_loopback());
        let stop = Arc::new(AtomicBool::new(false));
        let flood: Vec<_> = (0..3)
            .map(|_| {
                let (mut flooder, id) = world.client();
                world.sockets().set_deadline(id, None);
                let stop = Arc::clone(&stop);
                flooder.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        _ = flooder.write(&[b'\n'; 65_536]);
                    }
                })
            })
            .collect();
        let (mut modest, _) = world.client();
        // Responses to the flooding clients are refused when their outputs are full, which is
        // expected.
        let mut received = world.sockets().counts().received_bytes;
        let mut steps = 0;
        for _ in 0..50 {
            modest.write_all(b"ping\n").unwrap();
            let mut answer = Vec::new();
            modest.set_nonblocking(true).unwrap();
            let begin = Instant::now();
            while answer != b"ping\n" {
                assert!(begin.elapsed() < PATIENCE, "starved");
                world.gateway.told.clear();
                world.step();
                steps += 1;
                assert_each_once(&world.gateway.told);
                let now = world.sockets().counts().received_bytes;
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
        drop(world);
        flood.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn assert_each_once(told: &[SocketEvent]) {
    let mut ids: Vec<_> = told
        .iter()
        .filter_map(|happening| match happening {
            SocketEvent::Received { id } => Some(*id),
            _ => None,
        })
        .collect();
    ids.sort();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "nobody is read twice in a cycle");
}

#[test]
fn a_wakeup_ends_the_wait_every_time() {
    on_each_driver(|driver| {
        const RINGS: u64 = 5_000;
        let (asked, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (their_asked, their_answered) = (Arc::clone(&asked), Arc::clone(&answered));
        let (send_bell, bell) = mpsc::channel();
        let sleeper = thread::spawn(move || {
            let mut net = Net::open(NetSettings { driver, ..NetSettings::default() }).unwrap();
            let bell = net.wakeup();
            send_bell.send(net.wakeup()).unwrap();
            while their_answered.load(Ordering::Relaxed) < RINGS {
                net.run_cycle(Timestamp(1), |_, _| {});
                bell.prepare_sleep();
                let seen = their_asked.load(Ordering::Relaxed);
                if seen == their_answered.load(Ordering::Relaxed) {
                    // A lost wake-up would block here for longer than the test waits.
                    net.wait(Timestamp(1), 10 * PATIENCE);
                }
                bell.finish_sleep();
                their_answered.store(their_asked.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        let bell = bell.recv().unwrap();
        for ring in 1..=RINGS {
            asked.store(ring, Ordering::Relaxed);
            bell.wake();
            let begin = Instant::now();
            while answered.load(Ordering::Relaxed) != ring {
                assert!(begin.elapsed() < PATIENCE, "ring {ring} was not heard");
                thread::yield_now();
            }
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn readiness_found_by_a_wait_is_not_lost() {
    on_each_driver(|driver| {
        let mut world = World::new(driver);
        let (mut client, _) = world.client();
        while world.step() > 0 {}
        client.write_all(b"heard\n").unwrap();
        // The system reports it once; the gateway reads only after the second wait.
        world.net.wait(world.now, PATIENCE);
        world.net.wait(world.now, PATIENCE);
        assert_eq!(world.read(&mut client, 6), b"heard\n");
    });
}

#[test]
fn a_wait_ends_with_a_deadline() {
    on_each_driver(|driver| {
        let mut world = World::new(driver);
        let (_client, id) = world.client();
        while world.step() > 0 {}
        let due = world.now.plus(5_000_000);
        world.sockets().set_deadline(id, Some(due));
        let begin = Instant::now();
        world.net.wait(world.now, 10 * PATIENCE);
        assert!(begin.elapsed() < PATIENCE, "it slept through");
        world.now = due;
        world.step();
        assert!(world.gateway.told.contains(&SocketEvent::Timeout { id }));
    });
}

#[test]
fn a_connection_moves_between_threads_with_its_state() {
    on_each_driver(|first| {
        on_each_driver(|second| {
            wander(first, second);
        });
    });
}

/// Two threads hand a connection to each other after every line. Each time there is half a line
/// unread and some output unsent.
fn wander(first: DriverKind, second: DriverKind) {
    const LINES: usize = 100;
    let (to_second, from_first) = mpsc::channel::<Detached>();
    let (to_first, from_second) = mpsc::channel::<Detached>();
    let (send_bells, bells) = mpsc::channel();
    let (send_address, address) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let home = |driver, inbox: mpsc::Receiver<Detached>, outbox: mpsc::Sender<Detached>| {
        let (send_bells, send_address, stop) = (send_bells.clone(), send_address.clone(), Arc::clone(&stop));
        let (give_other, other) = mpsc::channel::<pitlane::wakeup::Wakeup>();
        thread::spawn(move || {
            let mut world = World::new(driver);
            let bell = world.net.wakeup();
            send_bells.send((world.net.wakeup(), give_other)).unwrap();
            send_address.send(world.address).unwrap();
            let other = other.recv().unwrap();
            while !stop.load(Ordering::Relaxed) {
                bell.prepare_sleep();
                let arrived: Vec<Detached> = inbox.try_iter().collect();
                if arrived.is_empty() && !stop.load(Ordering::Relaxed) {
                    world.net.wait(world.now, Duration::from_millis(100));
                }
                bell.finish_sleep();
                arrived.into_iter().for_each(|detached| _ = world.sockets().adopt(detached));
                let World { net, now, .. } = &mut world;
                net.run_cycle(*now, |sockets, happening| {
                    let SocketEvent::Received { id } = happening else { return };
                    let Some(end) = sockets.input(id).iter().position(|&byte| byte == b'\n') else { return };
                    let line = sockets.input(id)[..=end].to_vec();
                    sockets.consume(id, line.len());
                    sockets.send(id, &line).unwrap();
                    outbox.send(sockets.release(id).unwrap()).unwrap();
                    other.wake();
                });
            }
            assert!(world.sockets().is_empty() || world.sockets().len() == 1);
            (world.sockets().counts().adopted, world.sockets().counts().released)
        })
    };
    let threads = [home(first, from_second, to_second), home(second, from_first, to_first)];
    let (a, b) = (bells.recv().unwrap(), bells.recv().unwrap());
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
        let mut first = World::with(settings, ListenerSettings { limits, ..at_loopback() });
        let mut second = World::new(driver);
        let (mut client, id) = first.client();
        client.write_all(b"half").unwrap();
        first.until("it has come", |world| world.sockets().input(id).len() == 4);
        // Until the system accepts no more.
        let mut said = 0;
        while first.sockets().unsent(id) == 0 {
            first.sockets().send(id, &[b'x'; 1 << 20]).unwrap();
            said += 1 << 20;
            first.step();
        }
        let detached = first.sockets().release(id).unwrap();
        assert_eq!(detached.input(), b"half");
        assert!(first.sockets().is_empty());
        let id = second.sockets().adopt(detached);
        assert!(second.read(&mut client, said).iter().all(|&byte| byte == b'x'));
        client.write_all(b" and whole\n").unwrap();
        assert_eq!(second.read(&mut client, 15), b"half and whole\n");
        client.write_all(&[b'x'; 501]).unwrap();
        second.until("it is closed", |world| !world.gateway.closed().is_empty());
        assert_eq!(second.gateway.closed(), [(id, CloseReason::InputFull)]);
    });
}

#[test]
fn a_connection_released_before_it_was_attached_is_complete() {
    on_each_driver(|driver| {
        let (mut first, mut second) = (World::new(driver), World::new(driver));
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
        let mut world = World::new(driver);
        let mut clients: Vec<_> = (0..6).map(|_| world.client()).collect();
        let ids: Vec<_> = clients.iter().map(|(_, id)| *id).collect();
        for (client, _) in &mut clients {
            client.write_all(b"all at once\n").unwrap();
        }
        let mut gateway = Gateway { manners: Manners::Bytes, ..Gateway::default() };
        let begin = Instant::now();
        while world.sockets().counts().closed_by_us + world.sockets().counts().released < 6 {
            assert!(begin.elapsed() < PATIENCE);
            let (net, now) = (&mut world.net, world.now);
            net.run_cycle(now, |sockets, happening| {
                gateway.handle(sockets, happening);
                let SocketEvent::Received { id } = happening else { return };
                sockets.close(id);
                ids.iter().filter(|other| other.slot() % 3 == 1).for_each(|other| sockets.finish(*other));
                ids.iter()
                    .filter(|other| other.slot() % 3 == 2)
                    .for_each(|other| drop(sockets.release(*other)));
            });
        }
        for (client, _) in &mut clients {
            _ = world.read_to_end(client);
        }
        drop(clients);
        world.until("all have left", |world| world.sockets().is_empty());
    });
}
