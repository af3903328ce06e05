//! Books of outside venues in the running service: a QuickFIX venue and the stand-in of Binance
//! Spot, read over STOMP, REST and FIX.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};

use pitlane_engine::event::LEVELS_PER_SIDE_MAX;
use pitlane_engine::rng::Rng;
use pitlane_testkit::binance_book::BinanceBook;
use pitlane_testkit::http_client::HttpClient;
use pitlane_testkit::service::{ServiceProcess, folder};
use pitlane_testkit::stomp_client::{StompClient, body, plain};
use serde_json::{Value, json};

use crate::binance_standin::BinanceStandIn;
use crate::market::{VenueAddress, await_connected, client, free_port, get, start};
use crate::orders::report;
use crate::venue;

/// Bids and asks: sizes by price, both as text.
type Sides = [BTreeMap<String, String>; 2];

/// A consumer of `depth.1` that applies the rules of `docs/stomp.md`.
struct BookReader {
    client: StompClient,
    sides: Sides,
    seq: u64,
}

impl BookReader {
    /// Subscribes the strategy SERVER to the first security, and reads its book.
    fn start(service: &ServiceProcess) -> BookReader {
        let subscription = r#"{"strategyName":"SERVER","securityId":1}"#;
        let mut http = HttpClient::new(TcpStream::connect(service.address()).expect("it listens"));
        http.send(&format!(
            "PUT /rest/subscription/marketdata/subscribe HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{subscription}",
            subscription.len()
        ));
        assert_eq!(http.receive(false).status, 200);
        let stomp = service.ready.split_whitespace().find_map(|part| part.strip_prefix("stomp="));
        let address: SocketAddr = stomp.expect("it listens").parse().expect("an address");
        let mut client = StompClient::new(plain(address));
        client.connect();
        client.subscribe("1", "depth.1");
        BookReader { client, sides: Sides::default(), seq: 0 }
    }

    /// Applies the next message and returns its type.
    fn read(&mut self) -> String {
        let message: Value =
            serde_json::from_str(body(&self.client.receive_until("MESSAGE"))).expect("a message is JSON");
        let rows = |name: &str| message[name].as_array().cloned().unwrap_or_default();
        let kind = message["type"].as_str().expect("a type").to_string();
        if kind == "SNAPSHOT" {
            self.sides = Sides::default();
            for (side, name) in self.sides.iter_mut().zip(["bids", "asks"]) {
                side.extend(rows(name).iter().map(|row| (row[0].to_string(), row[1].to_string())));
            }
        } else {
            assert_eq!(message["prevSeq"].as_u64(), Some(self.seq), "{message}");
            for row in rows("changes") {
                let side = &mut self.sides[usize::from(row[0] == "A")];
                match row[2].to_string().as_str() {
                    "0" => drop(side.remove(&row[1].to_string())),
                    size => drop(side.insert(row[1].to_string(), size.to_string())),
                }
            }
        }
        self.seq = message["seq"].as_u64().expect("a number");
        kind
    }

    /// Reads until the book is this one, and returns the type of the last message.
    fn until(&mut self, is_reached: impl Fn(&Sides) -> bool) -> String {
        loop {
            let kind = self.read();
            if is_reached(&self.sides) {
                return kind;
            }
        }
    }
}

/// Returns sides with these prices and sizes.
fn sides(bids: &[(&str, &str)], asks: &[(&str, &str)]) -> Sides {
    [bids, asks].map(|side| side.iter().map(|(price, size)| (price.to_string(), size.to_string())).collect())
}

#[test]
fn the_book_of_a_quickfix_venue_is_published_as_our_own() {
    let data = folder("venue-books");
    let port = free_port();
    let mut venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    let more = "market_data = true\nmarket_depth = 0";
    // All levels of a side come in one message.
    let settings = ["fix.message_bytes_max=262144"];
    let service = start(&data, &[VenueAddress { name: "ALPHA", port, more }], &settings);
    await_connected(&service, "ALPHA", true);
    let requested = venue.wait(&["app", "|35=V|", "|55=ALPHA|"]);
    assert!(requested.contains("|264=0|") && requested.contains("|263=1|"), "{requested}");
    let mut reader = BookReader::start(&service);
    let first = sides(&[("199", "10")], &[("201", "10")]);
    reader.until(|book| *book == first);
    // New, Change and Delete.
    venue.send_message("level ALPHA 0 198.5 5");
    venue.send_message("level ALPHA 1 201 7");
    venue.send_message("level ALPHA 0 199 0");
    let second = sides(&[("198.5", "5")], &[("201", "7")]);
    assert_eq!(reader.until(|book| *book == second), "UPDATE");
    let book = get(&service, "/rest/ext/depth/1");
    assert_eq!((&book["bids"], &book["asks"]), (&json!([[198.5, 5]]), &json!([[201, 7]])), "{book}");
    let mut client = client(&service, "KEEP1");
    client.send("V", "262=m|263=0|264=0|267=2|269=0|269=1|146=1|55=ALPHA|");
    let snapshot = report(&mut client, &[(35, "W"), (262, "m")]);
    assert!(snapshot.contains("|268=2|269=0|270=198.5|271=5|"), "{snapshot}");
    assert!(snapshot.contains("|269=1|270=201|271=7|"), "{snapshot}");
    // The venue sends hundreds of levels, of which the best are published.
    venue.send_message("deep ALPHA 300");
    let is_full = |book: &Sides| book.iter().all(|side| side.len() == LEVELS_PER_SIDE_MAX);
    reader.until(is_full);
    assert!(reader.sides[0].contains_key("199") && reader.sides[1].contains_key("201"));
    // A message with a fault: the book is unknown, and is requested again. It may be back before a
    // reader has seen that it was gone.
    venue.send_message("fault ALPHA");
    venue.wait(&["app", "|35=V|", "|263=2|", "|55=ALPHA|"]);
    venue.wait(&["app", "|35=V|", "|263=1|", "|55=ALPHA|"]);
    assert_eq!(reader.until(|book| *book == first), "SNAPSHOT");
    // The venue goes away and comes back.
    drop(venue.kill());
    assert_eq!(reader.until(|book| *book == Sides::default()), "SNAPSHOT");
    let venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    assert_eq!((reader.read(), &reader.sides), ("SNAPSHOT".to_string(), &first));
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly());
    assert!(ended.log_text.contains("is requested again"), "{}", ended.log_text);
    drop(venue);
}

/// Changes the book of the stand-in, and publishes the change unless it gets lost. So many levels
/// change that the book differs afterwards.
fn change(standin: &BinanceStandIn, dice: &mut Rng, is_lost: bool) {
    let event = standin.exchange().books.get_mut("BINA").expect("a book").change(dice, 20, 30);
    if !is_lost {
        standin.publish("bina@depth@100ms", &event);
    }
}

/// Reads until the book is that of the stand-in, and returns the type of the last message.
fn reach(standin: &BinanceStandIn, reader: &mut BookReader) -> String {
    let venue = standin.exchange().books["BINA"].clone();
    let expected = [0, 1].map(|side| {
        let levels = venue.best(side, LEVELS_PER_SIDE_MAX).into_iter();
        let level = |text: String| text.split_once('@').map(|(size, at)| (at.to_string(), size.to_string()));
        levels.filter_map(level).collect::<BTreeMap<String, String>>()
    });
    assert_ne!(reader.sides, expected, "the change is not there yet");
    reader.until(|book| *book == expected)
}

#[test]
fn the_book_of_binance_is_that_of_the_venue_over_gaps_and_disconnects() {
    let data = folder("binance-books");
    let standin = BinanceStandIn::start(0);
    standin.exchange().books.insert("BINA".to_string(), BinanceBook::new(20));
    let table = standin.table(5_000) + &standin.market_data() + "\nmarket_depth = 0";
    let service = start(&data, &[VenueAddress { name: "BINA", port: 0, more: &table }], &[]);
    await_connected(&service, "BINA", true);
    let mut reader = BookReader::start(&service);
    let mut dice = Rng::new(11);
    change(&standin, &mut dice, false);
    assert_eq!(reach(&standin, &mut reader), "SNAPSHOT");
    for _ in 0..20 {
        change(&standin, &mut dice, false);
        assert_eq!(reach(&standin, &mut reader), "UPDATE");
    }
    // An event is lost: the next one starts the book again.
    change(&standin, &mut dice, true);
    change(&standin, &mut dice, false);
    assert_eq!(reach(&standin, &mut reader), "SNAPSHOT");
    // The venue ends all connections.
    standin.disconnect();
    change(&standin, &mut dice, false);
    assert_eq!(reach(&standin, &mut reader), "SNAPSHOT");
    change(&standin, &mut dice, false);
    assert_eq!(reach(&standin, &mut reader), "UPDATE");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
