//! Tests of the ring with real sockets and small sizes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::*;

const TINY: RingSettings = RingSettings { submissions: 2, completions: 4, buffers: 4, buffer_bytes: 64 };
/// Time limit of a wait; nothing here takes long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a ring, or says why there is none.
fn open(settings: RingSettings) -> Option<Ring> {
    Ring::open(settings).inspect_err(|error| println!("skipped: {error}")).ok()
}

/// Returns both ends of a connection: a descriptor for the ring, and the peer.
fn pair() -> (Rc<OwnedFd>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let address = listener.local_addr().expect("it is bound");
    let peer = TcpStream::connect(address).expect("it listens");
    let (stream, _) = listener.accept().expect("the peer has connected");
    (Rc::new(OwnedFd::from(stream)), peer)
}

fn next(ring: &mut Ring) -> Completion {
    loop {
        if let Some(completion) = ring.next_completion() {
            return completion;
        }
        ring.wait(PATIENCE);
    }
}

fn text(ring: &mut Ring, completion: Completion) -> String {
    let Outcome::Received(Ok(Some(buffer))) = completion.outcome else { panic!("{completion:?}") };
    let mut bytes = vec![0; buffer.len()];
    assert_eq!(ring.copy(&buffer, 0, &mut bytes), bytes.len());
    ring.give_back(buffer);
    String::from_utf8(bytes).expect("text was sent")
}

fn errno(completion: &Completion) -> Option<i32> {
    match &completion.outcome {
        Outcome::Received(Err(error)) | Outcome::Ready(Err(error)) => error.raw_os_error(),
        Outcome::Sent { result: Err(error), .. } => error.raw_os_error(),
        Outcome::Received(_) | Outcome::Ready(_) | Outcome::Sent { .. } => None,
    }
}

#[test]
fn one_operation_receives_until_the_end_of_the_stream() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    ring.receive(&socket, 7);
    ring.submit();
    for number in 0..20 {
        let line = format!("line {number}");
        peer.write_all(line.as_bytes()).expect("there is room");
        let completion = next(&mut ring);
        assert_eq!((completion.tag, completion.is_last), (7, false));
        assert_eq!(text(&mut ring, completion), line);
    }
    peer.shutdown(Shutdown::Write).expect("it is open");
    let end = next(&mut ring);
    assert!(end.is_last && matches!(end.outcome, Outcome::Received(Ok(None))), "{end:?}");
    assert_eq!((ring.operations(), ring.free_buffers()), (0, 4));
}

#[test]
fn without_a_free_buffer_a_receive_ends_and_loses_nothing() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    peer.write_all(&[b'x'; 64 * 4 + 10]).expect("there is room");
    ring.receive(&socket, 1);
    let mut held = Vec::new();
    let last = loop {
        let completion = next(&mut ring);
        if completion.is_last {
            break completion;
        }
        let Outcome::Received(Ok(Some(buffer))) = completion.outcome else { panic!("{completion:?}") };
        held.push(buffer);
    };
    assert_eq!((errno(&last), held.len(), ring.free_buffers()), (Some(libc::ENOBUFS), 4, 0));
    held.into_iter().for_each(|buffer| ring.give_back(buffer));
    ring.receive(&socket, 2);
    let rest = next(&mut ring);
    assert_eq!(text(&mut ring, rest), "x".repeat(10));
}

#[test]
fn more_operations_and_completions_than_fit_are_all_completed() {
    let Some(mut ring) = open(TINY) else { return };
    let mut pairs: Vec<_> = (0..50).map(|_| pair()).collect();
    for (tag, (socket, _)) in (0..).zip(&pairs) {
        ring.receive(socket, tag);
        ring.send(socket, 100 + tag, b"hello".to_vec(), 0);
    }
    ring.submit();
    pairs.iter_mut().for_each(|(_, peer)| peer.write_all(b"there").expect("there is room"));
    let (mut received, mut sent) = (vec![0; 50], 0);
    while received.iter().any(|&count| count < 5) || sent < 50 {
        let completion = next(&mut ring);
        let tag = completion.tag;
        let at = usize::try_from(tag % 100).expect("small");
        let ended = completion.is_last;
        match completion.outcome {
            Outcome::Sent { result, .. } => {
                assert_eq!(result.expect("it is connected"), 5);
                sent += 1;
                continue;
            }
            Outcome::Received(Ok(Some(buffer))) => {
                received[at] += buffer.len();
                ring.give_back(buffer);
            }
            Outcome::Received(Err(_)) => {}
            Outcome::Received(Ok(None)) | Outcome::Ready(_) => panic!("none has ended"),
        }
        // A queue without room ends a receive, as the lack of buffers does.
        if ended && received[at] < 5 {
            ring.receive(&pairs[at].0, tag);
        }
    }
    for (_, peer) in &mut pairs {
        let mut hello = [0; 5];
        peer.read_exact(&mut hello).expect("it was sent");
        assert_eq!(&hello, b"hello");
    }
}

#[test]
fn a_send_takes_what_fits_and_then_would_block_until_there_is_room() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    let mut sent = 0;
    loop {
        ring.send(&socket, 3, vec![b'y'; 1 << 20], 100);
        let completion = next(&mut ring);
        assert!(completion.is_last);
        if errno(&completion) == Some(libc::EAGAIN) {
            break;
        }
        let Outcome::Sent { bytes, from, result } = completion.outcome else { panic!("{completion:?}") };
        assert_eq!((bytes.len(), from), (1 << 20, 100));
        sent += result.expect("the peer is there");
    }
    ring.poll(&socket, 4, PollFor::Writable);
    ring.submit();
    assert!(!ring.has_completion(), "the peer has read nothing");
    let mut got = vec![0; sent];
    peer.read_exact(&mut got).expect("it was sent");
    let ready = next(&mut ring);
    assert!(ready.tag == 4 && matches!(ready.outcome, Outcome::Ready(Ok(()))), "{ready:?}");
}

#[test]
fn a_cancelled_operation_ends_and_its_key_is_worth_nothing_afterwards() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    let key = ring.receive(&socket, 5);
    ring.submit();
    ring.cancel(key);
    let end = next(&mut ring);
    assert_eq!((end.is_last, errno(&end)), (true, Some(libc::ECANCELED)));
    ring.cancel(key);
    // The next operation, in the same slot, is not what the old key cancels.
    ring.receive(&socket, 6);
    ring.cancel(key);
    peer.write_all(b"still").expect("there is room");
    let completion = next(&mut ring);
    assert_eq!(completion.tag, 6);
    assert_eq!(text(&mut ring, completion), "still");
}

#[test]
fn a_descriptor_is_open_until_its_last_operation_has_ended() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    let key = ring.receive(&socket, 5);
    ring.send(&socket, 5, b"bye".to_vec(), 0);
    drop(socket);
    ring.cancel(key);
    while ring.operations() > 0 {
        next(&mut ring);
    }
    let mut received = Vec::new();
    peer.read_to_end(&mut received).expect("the descriptor is closed in order");
    assert_eq!(received, b"bye");
}

#[test]
fn a_repeated_poll_reports_each_arrival() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    ring.poll(&socket, 9, PollFor::EachArrival);
    ring.submit();
    for _ in 0..20 {
        peer.write_all(b".").expect("there is room");
        let arrival = next(&mut ring);
        assert!(!arrival.is_last && matches!(arrival.outcome, Outcome::Ready(Ok(()))), "{arrival:?}");
    }
}

#[test]
fn a_reset_is_reported_to_a_socket_that_does_not_receive() {
    let Some(mut ring) = open(TINY) else { return };
    let (socket, mut peer) = pair();
    ring.poll(&socket, 8, PollFor::Failure);
    ring.send(&socket, 9, b"unread".to_vec(), 0);
    assert_eq!(next(&mut ring).tag, 9);
    peer.write_all(b"arrives").expect("there is room");
    peer.peek(&mut [0]).expect("it was sent");
    ring.submit();
    assert!(!ring.has_completion(), "bytes are no failure");
    // A peer that has not read everything resets the connection when it goes.
    drop(peer);
    let failed = next(&mut ring);
    assert!(failed.tag == 8 && failed.is_last, "{failed:?}");
}

#[test]
fn a_wait_ends_with_its_time_and_a_check_without_news_needs_no_call() {
    let Some(mut ring) = open(TINY) else { return };
    ring.wait(Duration::from_millis(1));
    assert!(!ring.needs_submit() && !ring.has_completion());
    let (socket, mut peer) = pair();
    ring.receive(&socket, 1);
    assert!(ring.needs_submit());
    ring.submit();
    assert!(!ring.needs_submit());
    peer.write_all(b"news").expect("there is room");
    while !ring.needs_submit() {
        std::thread::yield_now();
    }
    ring.submit();
    let completion = ring.next_completion().expect("the kernel has announced it");
    assert_eq!(text(&mut ring, completion), "news");
}

#[test]
fn a_dropped_ring_ends_its_operations_and_closes_their_descriptors() {
    let Some(mut ring) = open(TINY) else { return };
    let mut peers = Vec::new();
    for tag in 0..20 {
        let (socket, peer) = pair();
        ring.receive(&socket, tag);
        peers.push(peer);
    }
    ring.submit();
    drop(ring);
    for mut peer in peers {
        assert_eq!(peer.read(&mut [0]).expect("it is closed in order"), 0);
    }
}

#[test]
fn busy_polling_is_set_where_the_kernel_has_it() {
    let Some(ring) = open(TINY) else { return };
    if let Err(error) = ring.set_busy_poll(50, true) {
        println!("busy polling is not to be had here: {error}");
    }
}

#[test]
fn impossible_sizes_are_an_error() {
    if open(TINY).is_some() {
        assert!(Ring::open(RingSettings { buffers: 3, ..TINY }).is_err());
        assert!(Ring::open(RingSettings { submissions: 0, ..TINY }).is_err());
    }
}
