//! Tests that need the whole process: thousands of descriptors, and none left.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod net_world;

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use net_world::{NetFixture, connect, on_each_driver};
use pitlane_net::Net;
use pitlane_net::settings::{DriverKind, NetSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

/// This is one test, since its parts change limits of the whole process.
#[test]
fn descriptors_many_and_none() {
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        five_thousand_idle_connections_do_not_delay_one_that_pings(&mut fixture);
    });
    on_each_driver(|driver| {
        let mut fixture = NetFixture::new(driver);
        without_descriptors_new_connections_are_refused_and_open_ones_continue(&mut fixture);
    });
    without_memory_for_a_ring_epoll_runs_and_logs_why();
}

fn five_thousand_idle_connections_do_not_delay_one_that_pings(fixture: &mut NetFixture) {
    const IDLE: usize = 5_000;
    // Both ends are in this process.
    let needed = 2 * IDLE as u64 + 200;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        println!("skipped: {needed} descriptors are needed, and the hard limit is {:?}", limit.maximum);
        return;
    }
    if limit.current.is_some_and(|current| current < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).unwrap();
    }
    let mut idle: Vec<TcpStream> = Vec::new();
    while idle.len() < IDLE {
        // At most as many at once as the backlog holds.
        idle.extend((0..100).map(|_| connect(fixture.address)));
        fixture.until("they are accepted", |fixture| fixture.sockets().len() == idle.len());
    }
    let (mut client, _) = fixture.client();
    for number in 0..200 {
        let line = format!("ping {number:03}\n");
        client.write_all(line.as_bytes()).unwrap();
        assert_eq!(fixture.read(&mut client, line.len()), line.as_bytes());
    }
    // Any of the connections may become active.
    for at in [0, IDLE / 2, IDLE - 1] {
        idle[at].write_all(b"me\n").unwrap();
        assert_eq!(fixture.read(&mut idle[at], 3), b"me\n");
    }
    drop((idle, client));
    fixture.until("all have left", |fixture| fixture.sockets().is_empty());
    assert_eq!(fixture.sockets().counts().closed_by_peer, IDLE as u64 + 1);
    setrlimit(Resource::Nofile, limit).unwrap();
}

fn without_descriptors_new_connections_are_refused_and_open_ones_continue(fixture: &mut NetFixture) {
    let (mut old, _) = fixture.client();
    fixture.step();
    let sockets: Vec<Socket> =
        (0..5).map(|_| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()).collect();
    let limit = getrlimit(Resource::Nofile);
    // The lowest free number: all below it are in use.
    let lowest = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(lowest), ..limit }).unwrap();
    assert!(File::open("/dev/null").is_err());
    sockets.iter().for_each(|socket| socket.connect(&fixture.address.into()).unwrap());
    fixture.until("all are turned away", |fixture| fixture.sockets().counts().refused_no_descriptor == 5);
    for socket in sockets {
        assert_eq!(
            fixture.read_to_end(&mut TcpStream::from(socket)).unwrap(),
            b"",
            "it gets the end of the connection"
        );
    }
    old.write_all(b"still here\n").unwrap();
    assert_eq!(fixture.read(&mut old, 11), b"still here\n");
    // The thread does not spin meanwhile.
    while fixture.step() > 0 {}
    assert_eq!(fixture.step(), 0);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut new = connect(fixture.address);
    new.write_all(b"welcome\n").unwrap();
    // After a pause without accepts, if there was one.
    fixture.now = fixture.now.plus(1_000_000_000);
    assert_eq!(fixture.read(&mut new, 8), b"welcome\n");
}

/// The buffers of a ring are memory of pages of their own.
fn without_memory_for_a_ring_epoll_runs_and_logs_why() {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let used = pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4_096;
    let limit = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(used + (1 << 20)), ..limit }).unwrap();
    let net = Net::open(NetSettings { driver: DriverKind::Uring, ..NetSettings::default() }).unwrap();
    setrlimit(Resource::As, limit).unwrap();
    assert_eq!(net.driver(), DriverKind::Epoll);
    let reason = net.fallback().unwrap();
    assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
}
