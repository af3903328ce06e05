//! Hostile FIX sessions over real sockets; a client beside them is not disturbed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pitlane_testkit::fix_client::{FixClient, now, sealed};
use pitlane_testkit::service::{ServiceProcess, folder};

use crate::{fix, start};

/// A well-behaved client: one order and its report.
fn is_undisturbed(client: &mut FixClient, n: usize) {
    let count = client.received.len();
    client.order(&format!("good{n}"), "AAPL", 1, 1, "100");
    assert!(client.receive(count + 2), "the good client is served");
}

/// Sends bytes, and returns what was received until the connection was closed.
fn send_raw(service: &ServiceProcess, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(fix(service)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket has a timeout");
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn a_peer_that_does_not_begin_as_a_client_gets_no_answer() {
    let service = start(&folder("fix-strangers"), &["fix.logon_timeout_ms=300"]);
    let mut good = FixClient::new("KEEP1");
    good.connect(fix(&service));
    good.log_on(false);
    let logon = |sender: &str, target: &str, rest: &str| {
        sealed(&format!("35=A|34=1|49={sender}|56={target}|52={}|{rest}", now()))
    };
    let mut old = logon("CLIENT1", "PITLANE", "98=0|108=30|");
    old[6] = b'2';
    let unknown_clients: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![b'x'; 1 << 20],
        b"8=FIX.4.4\x019=999999999\x0135=A\x01".to_vec(),
        b"8=FIX.4.4\x019=-1\x0135=A\x01".to_vec(),
        b"8=FIX.4.4\x019=18446744073709551620\x0135=A\x01".to_vec(),
        old,
        sealed(&format!("35=0|34=1|49=CLIENT1|56=PITLANE|52={}|", now())),
        logon("NOBODY", "PITLANE", "98=0|108=30|"),
        logon("CLIENT1", "OTHER", "98=0|108=30|"),
        logon("KEEP/../../x", "PITLANE", "98=0|108=30|"),
        logon(&format!("KEEP{}", "x".repeat(3_000)), "PITLANE", "98=0|108=30|"),
        sealed("35=A|34=1|49=CLIENT1|56=PITLANE|52=20010101-00:00:00|98=0|108=30|"),
        // Half a frame, and nothing more.
        b"8=FIX.4.4\x019=70\x0135=A\x0134=1\x01".to_vec(),
        Vec::new(),
    ];
    for (n, bytes) in unknown_clients.iter().enumerate() {
        let answer = send_raw(&service, bytes);
        assert!(answer.is_empty(), "{n}: {}", String::from_utf8_lossy(&answer));
        is_undisturbed(&mut good, n);
    }
    service.signal("TERM");
    assert!(good.is_closed());
    service.end();
}

#[test]
fn a_client_that_breaks_the_rules_is_answered_by_them() {
    let service = start(&folder("fix-rules"), &[]);
    let mut good = FixClient::new("KEEP1");
    good.connect(fix(&service));
    good.log_on(false);

    // A frame with a bad checksum is ignored and requested again.
    let mut bad = FixClient::new("CLIENT1");
    bad.connect(fix(&service));
    bad.log_on(true);
    let mut frame = bad.frame("1", 2, "", "112=x|");
    let at = frame.len() - 2;
    frame[at] = if frame[at] == b'0' { b'1' } else { b'0' };
    bad.write(&frame);
    let later = bad.frame("1", 3, "", "112=y|");
    bad.write(&later);
    let asked = bad.read().expect("a gap is asked for");
    assert_eq!((asked.get(35), asked.get(7)), ("2", "2"), "{}", asked.text());
    bad.disconnect();

    // Each of these is rejected, and the session continues.
    let rejected = [
        ("1", "112=a|112=b|", "13"),
        ("1", "112=|", "4"),
        ("1", "112=a|0=1|", "0"),
        ("2", "7=5|16=1|", "5"),
        ("4", "36=0|", "5"),
    ];
    bad.connect(fix(&service));
    bad.log_on(true);
    for (msg_type, body, reason) in rejected {
        bad.send_message(msg_type, body);
        let report = bad.read().expect("an answer");
        assert_eq!((report.get(35), report.get(373)), ("3", reason), "{body}: {}", report.text());
    }
    is_undisturbed(&mut good, 1);

    // A number that is too low, a name that is not its own, a flood of resends: the session ends.
    let ends: [fn(&mut FixClient); 5] = [
        |bad| {
            let frame = bad.frame("0", 1, "", "");
            bad.write(&frame);
        },
        |bad| {
            bad.write(&sealed(&format!("35=0|34=2|49=OTHER|56=PITLANE|52={}|", now())));
        },
        |bad| {
            for _ in 0..500 {
                bad.send_message("2", "7=1|16=0|");
            }
        },
        |bad| {
            bad.write(&sealed(&format!(
                "35=D|34=2|49=CLIENT1|56=PITLANE|52={}|11={}|",
                now(),
                "x".repeat(70_000)
            )))
        },
        |bad| bad.write(b"8=FIX.4.4\x019=99999999\x01"),
    ];
    for (n, end) in ends.iter().enumerate() {
        bad.disconnect();
        // The end of the last connection may still be in progress.
        let mut tries = 0;
        loop {
            bad.connect(fix(&service));
            (bad.next_out, bad.next_in) = (1, 1);
            bad.send_message("A", "98=0|108=30|141=Y|");
            match bad.read() {
                Ok(_) => break,
                Err(_) => tries += 1,
            }
            assert!(tries < 1_000, "it can log on again");
        }
        end(&mut bad);
        // The client is logged out, and may respond; only the end is certain.
        bad.send_message("5", "");
        assert!(bad.is_closed(), "{n}");
        is_undisturbed(&mut good, 10 + n);
    }
    service.signal("KILL");
    service.end();
}

#[test]
fn silent_connections_do_not_keep_clients_out() {
    let service = start(&folder("fix-crowd"), &[]);
    let clients: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(fix(&service)).expect("it listens")).collect();
    let mut good = FixClient::new("KEEP1");
    good.connect(fix(&service));
    good.log_on(false);
    is_undisturbed(&mut good, 1);
    drop(clients);
    // Connections that open and close at once.
    for n in 0..200 {
        let mut stream = TcpStream::connect(fix(&service)).expect("it listens");
        let _ = stream.write_all(b"8=FIX.4.4\x019=5");
        drop(stream);
        if n % 50 == 0 {
            is_undisturbed(&mut good, 100 + n);
        }
    }
    service.signal("KILL");
    service.end();
}

#[test]
fn too_many_orders_are_refused_and_cancels_still_go_through() {
    let service = start(&folder("fix-flood"), &["feed.on=false"]);
    let mut client = FixClient::new("SLOW");
    client.connect(fix(&service));
    client.log_on(true);
    for n in 0..20 {
        client.order(&format!("o{n}"), "AAPL", 1, 1, "100");
    }
    client.settle();
    let refused: Vec<_> = client.received.iter().filter(|report| report.get(35) == "j").collect();
    assert!(
        !refused.is_empty()
            && refused
                .iter()
                .all(|report| report.get(380) == "0" && report.get(58).starts_with("order-rate"))
    );
    client.send("F", &format!("11=c|41=o0|55=AAPL|54=1|60={}|", now()));
    // Reports of the orders may still arrive before it.
    while !client.received.iter().any(|report| report.get(11) == "c" && report.get(39) == "4") {
        assert!(client.next_message().is_some(), "the cancel goes through");
    }
    service.signal("KILL");
    service.end();
}
