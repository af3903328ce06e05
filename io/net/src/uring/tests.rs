//! Tests of the driver with a ring that is too small for everything.

use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use socket2::SockRef;

use super::*;

/// Sizes at which queues and buffers are always too few.
const TINY: RingSettings = RingSettings { submissions: 2, completions: 4, buffers: 4, buffer_bytes: 64 };
/// Time limit: nothing here takes long.
const PATIENCE: Duration = Duration::from_secs(30);

struct Fixture {
    driver: Uring,
    listener: TcpListener,
    /// Tokens that were ready, with their directions.
    seen: Vec<ReadyToken>,
}

impl Fixture {
    /// Opens a driver, or says why there is none.
    fn new() -> Option<Fixture> {
        let opened = Uring::with_sizes(TINY, None).inspect_err(|error| println!("skipped: {error}"));
        let (driver, _) = opened.ok()?;
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        Some(Fixture { driver, listener, seen: Vec::new() })
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("it is bound")
    }

    fn pair(&mut self, token: usize) -> (UringStream, TcpStream) {
        let peer = TcpStream::connect(self.address()).expect("it listens");
        let (stream, _) = self.listener.accept().expect("the peer has connected");
        stream.set_nonblocking(true).expect("a socket takes options");
        (self.driver.registrar().attach(token, stream), peer)
    }

    fn step(&mut self) {
        let seen = &mut self.seen;
        self.driver.run_cycle(|ready| seen.extend_from_slice(ready));
    }

    fn until(&mut self, what: &str, mut come: impl FnMut(&mut Fixture) -> bool) {
        let begin = Instant::now();
        while !come(self) {
            assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
            self.driver.wait(Duration::from_millis(1));
            self.step();
        }
    }

    /// Reads so many bytes.
    fn read(&mut self, stream: &mut UringStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let mut got = 0;
        self.until("it has come", |_| {
            match stream.read(&mut bytes[got..]) {
                Ok(0) => panic!("the stream has ended after {got} bytes"),
                Ok(count) => got += count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            got == count
        });
        bytes
    }

    fn operations(&self) -> usize {
        self.driver.sockets.borrow_mut().ring().operations()
    }
}

fn write(stream: &mut UringStream, bytes: &[u8]) -> io::Result<usize> {
    stream.write_vectored(&[IoSlice::new(bytes)])
}

fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from(at % 251).expect("small")).collect()
}

#[test]
fn sockets_that_are_not_read_take_no_buffer_from_the_others() {
    let Some(mut fixture) = Fixture::new() else { return };
    let mut unread: Vec<_> = (1..10).map(|token| fixture.pair(token)).collect();
    let bytes = pattern(1_000);
    unread.iter_mut().for_each(|(_, peer)| peer.write_all(&bytes).expect("there is room"));
    let (mut stream, mut peer) = fixture.pair(20);
    for number in 0..50_u8 {
        peer.write_all(&[number; 300]).expect("there is room");
        assert_eq!(fixture.read(&mut stream, 300), [number; 300]);
    }
    for (stream, _) in &mut unread {
        assert_eq!(fixture.read(stream, 1_000), bytes);
    }
}

#[test]
fn a_socket_that_is_not_read_slows_its_peer_and_loses_nothing() {
    let Some(mut fixture) = Fixture::new() else { return };
    let (mut stream, mut peer) = fixture.pair(1);
    peer.set_nonblocking(true).expect("a socket takes options");
    let bytes = pattern(16 << 20);
    let (mut sent, mut stuck) = (0, 0);
    // The peer blocks when the buffers of both systems and of the driver are full.
    fixture.until("the peer is stuck", |_| {
        match peer.write(&bytes[sent..]) {
            Ok(count) => (sent, stuck) = (sent + count, 0),
            Err(_) => stuck += 1,
        }
        stuck > 20
    });
    assert!(sent < bytes.len(), "memory is bounded");
    assert!(fixture.read(&mut stream, sent) == bytes[..sent]);
    // And it receives again.
    peer.write_all(b"more").expect("there is room again");
    assert_eq!(fixture.read(&mut stream, 4), b"more");
}

#[test]
fn a_reset_is_noticed_although_the_socket_is_full() {
    let Some(mut fixture) = Fixture::new() else { return };
    let (stream, mut peer) = fixture.pair(7);
    peer.set_nonblocking(true).expect("a socket takes options");
    let mut stuck = 0;
    fixture.until("the peer is stuck", |_| {
        stuck = if peer.write(&[1; 65_536]).is_ok() { 0 } else { stuck + 1 };
        stuck > 20
    });
    fixture.seen.clear();
    SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("a socket takes options");
    drop(peer);
    fixture.until("it is reported", |fixture| fixture.seen.iter().any(|ready| ready.token == 7));
    assert!(!stream.is_connected());
}

#[test]
fn a_slow_reader_bounds_what_is_written_and_gets_all_of_it() {
    let Some(mut fixture) = Fixture::new() else { return };
    let (mut stream, mut peer) = fixture.pair(3);
    let bytes = pattern(16 << 20);
    let (mut written, mut stuck) = (0, 0);
    fixture.until("no more is taken", |_| {
        match write(&mut stream, &bytes[written..]) {
            Ok(count) => (written, stuck) = (written + count, 0),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                stuck += 1;
            }
        }
        stuck > 20
    });
    assert!(written < bytes.len(), "memory is bounded");
    assert!(stream.is_sending().expect("the peer is there"));
    fixture.seen.clear();
    peer.set_nonblocking(true).expect("a socket takes options");
    let mut received = Vec::new();
    fixture.until("the reader has caught up", |_| {
        let mut part = vec![0; 1 << 20];
        received.extend_from_slice(peer.read(&mut part).map_or(&[], |count| &part[..count]));
        received.len() == written
    });
    assert!(received == bytes[..written]);
    fixture.until("it is reported", |fixture| {
        fixture.seen.iter().any(|ready| ready.token == 3 && ready.writable)
    });
    assert!(!stream.is_sending().expect("the peer is there"));
    assert_eq!(write(&mut stream, b"more").expect("there is room"), 4);
}

#[test]
fn many_sockets_with_few_queue_entries_all_send_and_receive() {
    let Some(mut fixture) = Fixture::new() else { return };
    let mut pairs: Vec<_> = (1..200).map(|token| fixture.pair(token)).collect();
    for (number, (stream, peer)) in (0..).zip(&mut pairs) {
        peer.write_all(&[number; 100]).expect("there is room");
        assert_eq!(write(stream, &[number; 300]).expect("there is room"), 300);
    }
    for (number, (stream, _)) in (0..).zip(&mut pairs) {
        assert_eq!(fixture.read(stream, 100), [number; 100]);
    }
    for (number, (_, peer)) in (0..).zip(&mut pairs) {
        let mut bytes = [0; 300];
        peer.read_exact(&mut bytes).expect("it was sent");
        assert_eq!(bytes, [number; 300]);
    }
}

#[test]
fn writes_of_one_cycle_leave_in_order_and_before_the_end_of_the_stream() {
    let Some(mut fixture) = Fixture::new() else { return };
    let (mut stream, mut peer) = fixture.pair(1);
    for word in ["one ", "two ", "three"] {
        assert_eq!(write(&mut stream, word.as_bytes()).expect("there is room"), word.len());
    }
    stream.shutdown_write();
    fixture.step();
    let mut text = String::new();
    fixture.step();
    peer.read_to_string(&mut text).expect("the stream ends in order");
    assert_eq!(text, "one two three");
    // The other direction is open.
    peer.write_all(b"answer").expect("there is room");
    assert_eq!(fixture.read(&mut stream, 6), b"answer");
    peer.shutdown(Shutdown::Write).expect("it is open");
    let mut end = None;
    fixture.until("the stream ends", |_| {
        end = stream.read(&mut [0; 8]).ok();
        end.is_some()
    });
    assert_eq!(end, Some(0));
    assert!(fixture.seen.iter().any(|ready| ready.token == 1 && ready.ended));
}

#[test]
fn a_closed_socket_sends_what_was_written_and_leaves_no_operation() {
    let Some(mut fixture) = Fixture::new() else { return };
    let before = fixture.operations();
    for round in 0..100 {
        let (mut stream, mut peer) = fixture.pair(1);
        if round % 2 == 0 {
            // The close comes while operations are in flight.
            fixture.step();
        }
        peer.write_all(b"never read").expect("there is room");
        write(&mut stream, b"bye").expect("there is room");
        drop(stream);
        fixture.until("the operations have ended", |fixture| fixture.operations() == before);
        let mut text = [0; 3];
        peer.read_exact(&mut text).expect("it was sent");
        assert_eq!(&text, b"bye");
        // The descriptor is closed: the peer sees the end, or a reset for what was not read.
        assert!(!matches!(peer.read(&mut [0]), Ok(1..)));
    }
}

#[test]
fn a_released_socket_takes_all_bytes_along() {
    let Some(mut fixture) = Fixture::new() else { return };
    let before = fixture.operations();
    let (mut stream, mut peer) = fixture.pair(1);
    let (mut written, bytes) = (0, pattern(16 << 20));
    peer.write_all(b"in the driver").expect("there is room");
    fixture.until("the bytes are there", |fixture| fixture.seen.iter().any(|ready| ready.readable));
    let mut stuck = 0;
    fixture.until("no more is taken", |_| {
        match write(&mut stream, &bytes[written..]) {
            Ok(count) => (written, stuck) = (written + count, 0),
            Err(_) => stuck += 1,
        }
        stuck > 20
    });
    let mut released = stream.release().expect("the peer is there");
    assert_eq!(fixture.operations(), before);
    assert_eq!(released.received, b"in the driver");
    assert!(!released.unsent.is_empty() && released.unsent.len() < written);
    released.stream.set_nonblocking(false).expect("a socket takes options");
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; written];
        peer.write_all(b", and later").expect("there is room");
        peer.read_exact(&mut received).map(|()| received)
    });
    released.stream.write_all(&released.unsent).expect("the peer reads");
    let received = reader.join().expect("no panic").expect("all was sent");
    assert!(received == bytes[..written]);
    let mut later = [0; 11];
    released.stream.read_exact(&mut later).expect("nothing is lost");
    assert_eq!(&later, b", and later");
}

#[test]
fn an_idle_driver_waits_and_reports_nothing() {
    let Some(mut fixture) = Fixture::new() else { return };
    let (_stream, _peer) = fixture.pair(1);
    fixture.step();
    let new = fixture.seen.pop().expect("a new socket is reported once");
    assert!((new.token, new.readable, new.writable) == (1, false, true));
    fixture.driver.wait(Duration::from_millis(1));
    for _ in 0..100 {
        fixture.step();
    }
    assert!(fixture.seen.is_empty());
    fixture.driver.wakeup().call();
    fixture.driver.wait(PATIENCE);
    fixture.step();
    assert_eq!(fixture.seen.len(), 1);
    fixture.step();
    assert_eq!(fixture.seen.len(), 1, "each call is reported once");
}

#[test]
fn a_listener_is_reported_once_for_each_request() {
    let Some(mut fixture) = Fixture::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let address = listener.local_addr().expect("it is bound");
    let registrar = fixture.driver.registrar();
    let mut watch = registrar.watch(5, &listener, None).expect("it is a descriptor");
    for round in 1..10 {
        let _client = TcpStream::connect(address).expect("it listens");
        fixture.until("it is reported", |fixture| fixture.seen.len() == round);
        listener.accept().expect("there is one");
        fixture.step();
        assert_eq!(fixture.seen.len(), round);
        watch = registrar.watch(5, &listener, Some(watch)).expect("it is a descriptor");
    }
    fixture.step();
    drop((watch, listener));
    fixture.step();
    fixture.step();
    assert!(TcpStream::connect(address).is_err(), "nothing holds the listener");
}
