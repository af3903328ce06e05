//! Market data of a venue in its session.

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::AdapterId;
use pitlane_engine::refdata::{RefData, sample};

use super::venue::Venue;
use super::*;
use crate::fix::session::stream::OUTPUT_BYTES_HIGH;
use crate::venue::VenueReports;

impl Venue {
    /// Returns a session that has requested its three securities at this depth.
    fn with_prices(market_depth: u16) -> Venue {
        let mut venue = Venue::synchronized(|wanted| {
            (wanted.venue.market_data_adapter, wanted.venue.market_depth) =
                (Some(AdapterId::SIM), market_depth);
        });
        venue.peer.session.poll_report(NOW);
        venue
    }

    /// Sends a message with market data. Returns how many prices and parts of books follow, and
    /// what the session writes then.
    fn prices(&mut self, kind: &str, rest: &str) -> (usize, Vec<String>) {
        self.give(kind, rest);
        let mut prices: Vec<CommandKind> = Vec::new();
        assert_eq!(self.reports(), []);
        while let Some(price) = VenueReports::poll_price(&mut self.peer.session) {
            prices.push(price);
            if prices.len() == 1 {
                let unread = self.peer.session.counts().messages_in;
                assert_eq!(self.reports(), [], "prices come first");
                assert_eq!(self.peer.session.counts().messages_in, unread);
            }
        }
        assert_eq!(self.reports(), []);
        (prices.len(), self.peer.output())
    }
}

const NOTHING: [&str; 0] = [];
/// A snapshot, and a refresh that lacks a size.
const SNAPSHOT: &str = "262=1-3|268=1|269=0|270=9|271=1|";
const FAULTY: &str = "262=1-3|268=1|279=0|269=0|270=9|";

fn request(number: u64, id: &str, on: bool, symbol: &str) -> String {
    let on = if on { 1 } else { 2 };
    format!(
        "35=V|34={number}|262={id}|263={on}|264=0|265=1|267=3|269=0|269=1|269=2|146=1|55={symbol}|207=XTST"
    )
}

#[test]
fn prices_are_requested_once_both_sides_have_all_messages() {
    let mut venue = Venue::with_prices(0);
    let requests = [
        request(3, "1-3", true, "ACME"),
        request(4, "2-3", true, "ACME C10"),
        request(5, "3-3", true, "EURUSD"),
    ];
    // `synchronize` has read them; the next connection repeats them.
    venue.disconnect();
    venue.connect();
    assert_eq!(venue.answer("A", "98=0|108=30|"), ["35=1|34=7|112=7"]);
    let again = venue.answer("0", "112=7|");
    let expected: Vec<String> = requests
        .iter()
        .enumerate()
        .map(|(at, text)| {
            text.replace("-3|", "-8|").replace(&format!("34={}", at + 3), &format!("34={}", at + 8))
        })
        .collect();
    assert_eq!(again, expected);
    // A new security follows.
    let mut rows = sample::sound();
    let mut more = rows.securities[0].clone();
    (more.id, more.symbol) = (pitlane_engine::id::SecurityId(7), "MORE".to_string());
    rows.securities.push(more);
    venue.peer.session.set_reference(Arc::new(RefData::check(rows).unwrap()));
    assert_eq!(venue.reports(), []);
    assert_eq!(venue.peer.output(), [request(11, "7-8", true, "MORE")]);
}

#[test]
fn prices_are_counted_and_old_ones_are_ignored() {
    let mut venue = Venue::with_prices(1);
    assert_eq!(venue.prices("W", SNAPSHOT), (1, vec![]));
    assert_eq!(venue.prices("X", "262=1-3|268=2|279=0|269=2|270=9|279=0|269=2|270=8|").0, 2);
    assert_eq!(venue.peer.session.venue_counts().prices, 3);
    let old = "43=Y|122=20270115-08:00:00|";
    assert_eq!(venue.prices("W", &format!("{old}{SNAPSHOT}")).0, 0, "it was sent before");
    for _ in 0..2 {
        assert_eq!(venue.prices("X", "268=2|279=0|269=0|55=NOPE|270=9|271=1|279=0|269=0|55=ACME|").0, 0);
    }
    let counts = venue.peer.session.venue_counts();
    assert_eq!((counts.prices, counts.unknown_values, counts.incomplete), (3, 2, 2));
    // Another venue was not asked for prices.
    let mut other = Venue::synchronized(|_| {});
    for _ in 0..2 {
        assert_eq!(other.prices("W", SNAPSHOT), (0, vec![]));
    }
    assert_eq!(other.peer.session.venue_counts().unknown_values, 2);
    assert_eq!(other.peer.session.take_price_fault(), None);
}

#[test]
fn parts_of_books_are_no_prices() {
    let mut venue = Venue::with_prices(0);
    assert_eq!(venue.prices("W", SNAPSHOT).0, 3, "levels, the book, and its quote");
    assert_eq!(venue.peer.session.venue_counts().prices, 1);
}

#[test]
fn a_lost_book_is_requested_again_in_the_place_of_the_old_request() {
    let mut venue = Venue::with_prices(0);
    venue.prices("W", SNAPSHOT);
    assert_eq!(venue.prices("X", FAULTY), (1, vec![]));
    let fault = "the book of security 1 is requested again: an entry lacks a field";
    assert_eq!(venue.peer.session.take_price_fault().as_deref(), Some(fault));
    assert_eq!(venue.peer.session.take_price_fault(), None);
    let due = NOW.plus(5 * NS_PER_S);
    assert_eq!(venue.peer.session.poll_timeout(), Some(due));
    assert_eq!(venue.peer.session.poll_report(Timestamp(due.0 - 1)), None);
    assert_eq!(venue.peer.output(), NOTHING);
    // The venue does not read: the request waits, and is not due all the time.
    venue.peer.session.layer.stream.append(&vec![b' '; OUTPUT_BYTES_HIGH]);
    assert_eq!(venue.peer.session.poll_report(due), None);
    assert_eq!(venue.peer.session.poll_timeout(), Some(due.plus(5 * NS_PER_S)));
    assert_eq!(venue.peer.output(), NOTHING);
    venue.peer.wait(10);
    assert_eq!(venue.reports(), []);
    let again = [request(6, "1-3", false, "ACME"), request(7, "1-3-2", true, "ACME")];
    assert_eq!(venue.peer.output(), again);
}

#[test]
fn a_book_is_unknown_after_a_gap_or_a_message_that_cannot_be_read() {
    for (kind, rest, written) in [("X", "262=1-3|58=|268=0|", "35=3|"), ("4", "123=N|36=40|", "35=1|")] {
        let mut venue = Venue::with_prices(0);
        venue.prices("W", SNAPSHOT);
        let (lost, sent) = venue.prices(kind, rest);
        assert_eq!(lost, 1, "{kind}");
        assert!(sent[0].starts_with(written), "{sent:?}");
    }
    let mut venue = Venue::with_prices(0);
    venue.prices("W", SNAPSHOT);
    venue.next += 1;
    let (lost, sent) = venue.prices("0", "");
    assert_eq!(lost, 1);
    assert!(sent[0].starts_with("35=2|"), "{sent:?}");
    assert_eq!(
        venue.peer.session.take_price_fault().unwrap().split(": ").nth(1),
        Some("messages are missing")
    );
}

#[test]
fn a_rejected_request_for_prices_is_kept_for_the_log() {
    let mut venue = Venue::with_prices(1);
    for (kind, rest) in [("Y", ""), ("3", "45=3|372=V|"), ("j", "45=3|372=V|380=3|")] {
        assert_eq!(venue.answer(kind, &format!("{rest}58=no prices|")), NOTHING);
        assert_eq!(venue.peer.session.take_reject_text().as_deref(), Some("no prices"), "{kind}");
        assert_eq!(venue.peer.session.take_reject_text(), None, "once");
    }
    assert_eq!(venue.peer.session.venue_counts().unknown_orders, 0);
    assert!(venue.answer("B", "148=news|")[0].starts_with("35=j|"), "another type is refused");
}
