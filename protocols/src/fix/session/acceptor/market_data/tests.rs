//! Market data of a session, from request to message.

use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::event::{Depth, DepthLevel, Tick};
use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::sample;
use pitlane_engine::terms::Side;

use super::*;
use crate::fix::frame::{SOH, check_sum};
use crate::fix::session::{FixSession, FixSessionSettings};
use crate::fix::store::MemoryStore;

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
const STOCK: SecurityId = SecurityId(1);

struct Client {
    session: FixSession,
    desk: Desk,
    next: u64,
    image: MarketImage,
}

impl Client {
    fn logged_on(change: impl FnOnce(&mut FixSessionSettings)) -> Client {
        let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
        let mut settings = FixSessionSettings::new("PITLANE", "CLIENT1", source);
        change(&mut settings);
        let reference = Arc::new(RefData::check(sample::sound()).unwrap());
        let desk = DeskSettings {
            port: PortId(0),
            shards: 1,
            orders_max: 8,
            ids_max: 8,
            finished_max: 8,
            prefix: b'f',
            seed: 1,
            pages: LargePages::NONE,
        };
        let tick = Tick {
            security: STOCK,
            bid: price(10),
            bid_size: qty(5),
            ask: price(12),
            ask_size: qty(7),
            at: NOW,
            ..Tick::default()
        };
        let mut client = Client {
            session: FixSession::new(settings, Box::new(MemoryStore::new(NOW)), reference),
            desk: Desk::new(desk, IdBlock { next: 1, end: 9 }),
            next: 1,
            image: MarketImage { seq: 1, tick, book: None, is_book_settled: false },
        };
        assert!(client.session.connect(NOW));
        assert!(client.send("35=A|98=0|108=30|141=Y|")[0].contains("|35=A|"));
        client
    }

    /// Sends a message, and returns what the session writes.
    fn send(&mut self, body: &str) -> Vec<String> {
        let (kind, rest) = body.split_once('|').unwrap();
        let head = format!("{kind}|49=CLIENT1|56=PITLANE|34={}|52=20270115-08:00:00|", self.next);
        let body = format!("{head}{rest}").replace('|', "\x01");
        let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        self.next += 1;
        assert_eq!(self.session.handle_bytes(NOW, &bytes), bytes.len());
        assert!(self.session.poll_command(NOW, &self.desk).is_none());
        self.output()
    }

    /// Returns what the session has written, and lets the client read it.
    fn output(&mut self) -> Vec<String> {
        let bytes = self.session.poll_transmit().to_vec();
        self.session.handle_transmitted(NOW, bytes.len());
        let text = String::from_utf8(bytes).unwrap().replace(SOH as char, "|");
        text.split_inclusive("8=FIX.4.4|").map(|part| part.replace("8=FIX.4.4|", "")).skip(1).collect()
    }

    fn publish(&mut self) -> Vec<String> {
        self.image.seq += 1;
        self.session.handle_market_image(NOW, &self.image);
        self.output()
    }

    fn interests(&mut self) -> Vec<MarketInterest> {
        std::iter::from_fn(|| self.session.poll_market_interest()).collect()
    }
}

fn price(whole: i64) -> Price {
    Price::parse(whole.to_string().as_bytes()).unwrap()
}

fn qty(whole: i64) -> Qty {
    Qty::whole(whole).unwrap()
}

fn book(bids: &[(i64, i64)], asks: &[(i64, i64)]) -> [Depth; 2] {
    [(Side::Buy, bids), (Side::Sell, asks)].map(|(side, given)| {
        let mut levels = [DepthLevel::default(); 10];
        for (level, (at, size)) in levels.iter_mut().zip(given) {
            *level = DepthLevel { price: price(*at), qty: qty(*size) };
        }
        Depth { levels, security: STOCK, side, count: given.len() as u8 }
    })
}

/// Returns the entries of a message, without their times.
fn entries(message: &str) -> String {
    let from = message.find("|268=").map_or(message.len(), |at| at + 1);
    let kept = message[from..].split('|').filter(|field| {
        !["272=", "273=", "10=", "55=", "48=", "22=", "167="].iter().any(|tag| field.starts_with(tag))
    });
    kept.filter(|field| !field.is_empty()).collect::<Vec<_>>().join("|")
}

const TOP: &str = "264=1|265=1|267=3|269=0|269=1|269=2|146=1|55=[N/A]|48=1|";

#[test]
fn a_subscription_is_a_snapshot_and_then_the_differences() {
    let mut client = Client::logged_on(|_| {});
    assert!(client.send(&format!("35=V|262=a|263=1|{TOP}")).is_empty(), "there is no price yet");
    assert_eq!(client.interests(), [MarketInterest { security: STOCK, book: false, on: true }]);
    let first = client.publish();
    assert!(first[0].contains("|35=W|") && first[0].contains("|262=a|") && !first[0].contains("|83="));
    assert_eq!(entries(&first[0]), "268=2|269=0|270=10|271=5|290=1|269=1|270=12|271=7|290=1");
    assert!(client.publish().is_empty(), "nothing has changed");
    client.image.tick.bid = price(11);
    client.image.tick.ask_size = Qty::ZERO;
    let second = client.publish();
    assert!(second[0].contains("|35=X|"));
    assert_eq!(entries(&second[0]), "268=2|279=1|269=0|270=11|271=5|279=2|269=1|270=12|271=7");
    let tick = &mut client.image.tick;
    (tick.last, tick.last_size, tick.traded, tick.volume) = (price(11), qty(3), true, qty(3));
    assert_eq!(entries(&client.publish()[0]), "268=1|279=0|269=2|270=11|271=3");

    // The numbers of market data are skipped by a resend.
    let resent = client.send("35=2|7=2|16=0|");
    assert!(resent[0].contains("|35=4|") && resent[0].contains("|36=5|"), "{resent:?}");

    assert!(client.send("35=V|262=a|263=2|").is_empty());
    assert_eq!(client.interests(), [MarketInterest { security: STOCK, book: false, on: false }]);
    client.image.tick.bid = price(9);
    assert!(client.publish().is_empty());
}

#[test]
fn a_book_has_so_many_levels_and_its_prices_come_change_and_go() {
    let mut client = Client::logged_on(|settings| settings.market_data_rpt_seq = true);
    client.send("35=V|262=b|263=1|264=2|265=1|267=2|269=0|269=1|146=1|55=[N/A]|48=1|");
    assert_eq!(client.interests(), [MarketInterest { security: STOCK, book: true, on: true }]);
    assert!(client.publish().is_empty(), "the book is not known yet");
    client.image.book = Some(book(&[(10, 5), (9, 6), (8, 7)], &[(12, 7)]));
    let first = client.publish();
    assert!(first[0].contains("|83=3|"), "{first:?}");
    let both = "268=3|269=0|270=10|271=5|290=1|269=0|270=9|271=6|290=2|269=1|270=12|271=7|290=1";
    assert_eq!(entries(&first[0]), both);
    client.image.book = Some(book(&[(10, 4), (8, 7)], &[(12, 7), (13, 1)]));
    let second = client.publish();
    let changes = "268=4|279=2|269=0|270=9|271=6|83=4|279=1|269=0|270=10|271=4|83=4|\
                   279=0|269=0|270=8|271=7|83=4|279=0|269=1|270=13|271=1|83=4";
    assert_eq!(entries(&second[0]), changes);
    // The best prices of the tick belong to others.
    client.image.tick.bid = price(1);
    assert!(client.publish().is_empty());
}

#[test]
fn a_snapshot_request_ends_with_its_snapshot_and_a_full_refresh_repeats_it() {
    let mut client = Client::logged_on(|_| {});
    client.send("35=V|262=s|263=0|264=1|267=2|269=0|269=B|146=1|55=[N/A]|48=1|");
    assert_eq!(entries(&client.publish()[0]), "268=2|269=0|270=10|271=5|290=1|269=B|271=0");
    assert_eq!(client.interests().iter().map(|interest| interest.on).collect::<Vec<_>>(), [true, false]);
    assert!(client.publish().is_empty());
    // Its id is free again.
    client.send("35=V|262=s|263=1|264=1|265=0|267=1|269=1|146=1|55=[N/A]|48=1|");
    for at in [12, 13] {
        client.image.tick.ask = price(at);
        let full = client.publish();
        assert!(full[0].contains("|35=W|"));
        assert_eq!(entries(&full[0]), format!("268=1|269=1|270={at}|271=7|290=1"));
    }
    assert!(client.publish().is_empty());
    // Without a price the snapshot is empty.
    client.image.tick = Tick { security: STOCK, ..Tick::default() };
    client.send("35=V|262=e|263=0|264=0|267=1|269=0|146=1|55=[N/A]|48=1|");
    client.image.is_book_settled = true;
    assert!(
        client.publish().iter().any(|message| message.contains("|262=e|") && entries(message) == "268=0")
    );
}

#[test]
fn a_client_that_does_not_read_gets_the_newest_state_when_it_does() {
    let mut client = Client::logged_on(|_| {});
    client.send(&format!("35=V|262=a|263=1|{TOP}"));
    client.publish();
    for at in 0..2_000 {
        client.image.tick.bid = price(100 + at % 50);
        client.image.seq += 1;
        client.session.handle_market_image(NOW, &client.image);
    }
    assert!(client.session.unsent_bytes() < MARKET_DATA_BYTES_HIGH + 1_024, "the rest waits in one image");
    assert_eq!(client.session.poll_close(), None);
    let before = client.output();
    assert!(before.iter().all(|message| message.contains("|35=X|")) && before.len() < 1_000);
    assert!(client.session.poll_command(NOW, &client.desk).is_none());
    let after = client.output();
    assert!(after.len() == 1 && after[0].contains("|35=W|"), "{after:?}");
    assert!(entries(&after[0]).contains("269=0|270=149|"), "the newest price");
    client.image.tick.bid = price(7);
    assert!(client.publish()[0].contains("|35=X|"), "from there the differences again");
}

#[test]
fn each_request_that_cannot_be_served_has_its_reason() {
    let mut client = Client::logged_on(|settings| settings.market_data_max = 2);
    client.send(&format!("35=V|262=a|263=1|{TOP}"));
    let symbols = "267=1|269=0|146=1|55=[N/A]|48=1|";
    for (body, reason) in [
        ("262=x|263=1|264=1|265=1|267=1|269=0|146=1|55=NOPE|".to_string(), '0'),
        (format!("262=a|263=1|{TOP}"), '1'),
        ("262=x|263=2|".to_string(), '1'),
        ("262=x|263=1|264=1|265=1|267=1|269=0|146=2|55=[N/A]|48=1|55=[N/A]|48=2|".to_string(), '2'),
        (format!("262=x|263=3|264=1|265=1|{symbols}"), '4'),
        (format!("262=x|263=1|264=11|265=1|{symbols}"), '5'),
        (format!("262=x|263=1|264=1|265=2|{symbols}"), '6'),
        (format!("262=x|263=1|264=1|265=1|266=N|{symbols}"), '7'),
        ("262=x|263=1|264=1|265=1|267=1|269=4|146=1|55=[N/A]|48=1|".to_string(), '8'),
    ] {
        let answer = client.send(&format!("35=V|{body}"));
        assert!(answer[0].contains("|35=Y|") && answer[0].contains(&format!("|281={reason}|")), "{answer:?}");
    }
    for (body, wrong) in [
        (format!("263=1|{TOP}"), "35=j|"),
        ("262=x|263=1|264=1|267=1|269=0|146=1|55=X|".to_string(), "35=j|"),
        (format!("262=x|263=1|264=x|265=1|{symbols}"), "373=6|"),
        (format!("262={}|263=1|264=1|265=1|{symbols}", "x".repeat(65)), "373=5|"),
        ("262=x|263=1|264=1|265=1|267=2|269=0|146=1|55=[N/A]|48=1|".to_string(), "373=16|"),
        ("262=x|263=1|264=1|265=1|267=1|269=0|146=2|55=[N/A]|48=1|".to_string(), "373=16|"),
    ] {
        let answer = client.send(&format!("35=V|{body}"));
        assert!(answer[0].contains(&format!("|{wrong}")), "{body}: {answer:?}");
    }
    let mut without = Client::logged_on(|settings| settings.market_data_max = 0);
    assert!(without.send(&format!("35=V|262=a|263=1|{TOP}"))[0].contains("|281=3|"));
    assert!(client.send("35=1|112=t|")[0].contains("|35=0|"), "the session goes on");
    client.interests();
    client.session.disconnect(NOW);
    assert_eq!(client.interests(), [MarketInterest { security: STOCK, book: false, on: false }]);
}
