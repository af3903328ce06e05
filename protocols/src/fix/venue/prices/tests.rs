//! Prices of a venue, from request to command.

use pitlane_engine::refdata::sample;
use pitlane_engine::time::NS_PER_S;

use super::*;
use crate::fix::encode::Encoder;
use crate::fix::fields::tests::check;
use crate::fix::version::FixVersion;

/// The start of 15 January 2027, 08:00.
const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
/// Time between two requests for a book.
const RETRY: u64 = 5 * NS_PER_S;

struct Feed {
    prices: VenuePrices,
    reference: RefData,
    /// Messages received, each a second after the one before.
    received: u64,
}

impl Feed {
    /// Returns the feed of a venue that has the securities 1 and 2. The pair 3 is of another venue,
    /// and 4 is not tradeable.
    fn new(market_depth: u16) -> Feed {
        let mut rows = sample::sound();
        rows.exchanges[1].adapter = AdapterId(9);
        let idle = Security {
            id: SecurityId(4),
            symbol: "IDLE".into(),
            tradeable: false,
            ..rows.securities[0].clone()
        };
        rows.securities.push(idle);
        let reference = RefData::check(rows).unwrap();
        Feed { prices: VenuePrices::new(AdapterId::SIM, market_depth), reference, received: 0 }
    }

    /// Returns a feed whose securities are requested.
    fn requested(market_depth: u16) -> Feed {
        let mut feed = Feed::new(market_depth);
        feed.prices.begin(&feed.reference, 3);
        assert_eq!(feed.requests(NOW), [(1, 1), (2, 1)]);
        feed
    }

    /// Returns the requests of this time: security and number.
    fn requests(&mut self, now: Timestamp) -> Vec<(u32, u64)> {
        let next = || self.prices.next_request(now).map(|request| (request.security.0, request.number));
        std::iter::from_fn(next).collect()
    }

    /// Reads a message. Returns what follows from it, and the counts of ignored entries.
    fn receive(&mut self, body: &str) -> String {
        self.received += 1;
        let (kind, rest) = body.split_once('|').unwrap();
        let mut passed = IgnoredEntries::default();
        check(&format!("{kind}|52=20270115-08:00:{:02}|{rest}|", self.received), |message| {
            passed = self.prices.read(message, &self.reference, Timestamp(1));
        });
        let mut text = self.output();
        for (name, count) in [("unknown", passed.unknown), ("incomplete", passed.incomplete)] {
            if count > 0 {
                text.push(format!("{name}={count}"));
            }
        }
        text.join("; ")
    }

    /// Takes everything for the shards.
    fn output(&mut self) -> Vec<String> {
        let at = NOW.plus(self.received * NS_PER_S);
        let mut text = Vec::new();
        while self.prices.is_waiting() {
            text.push(text_of(&self.prices.poll().unwrap(), at));
        }
        assert_eq!(self.prices.poll(), None);
        text
    }
}

/// Returns a command as text, and checks its time.
fn text_of(command: &CommandKind, at: Timestamp) -> String {
    if let CommandKind::Quote { security, quote } = command {
        assert_eq!(quote.at, at, "the time of the message");
        return format!("{}={}@{}/{}@{}", security.0, quote.bid_size, quote.bid, quote.ask_size, quote.ask);
    }
    if let CommandKind::Trade { security, trade } = command {
        assert_eq!(trade.at, at, "the time of the message");
        return format!("{} traded {}@{}", security.0, trade.size, trade.price);
    }
    if let CommandKind::VenueLevels(part) = command {
        let start = if part.replaces { "whole" } else { "change" };
        let levels = part.levels().map(|(side, price, qty)| format!(" {side:?} {qty}@{price}"));
        return format!("{start} {}{}", part.security.0, levels.collect::<String>());
    }
    let CommandKind::VenueBook { security, is_known } = command else { panic!("{command:?}") };
    format!("{} {}", security.0, if *is_known { "known" } else { "lost" })
}

#[test]
fn a_venue_is_asked_once_for_each_of_its_securities_that_can_be_traded() {
    let mut feed = Feed::requested(1);
    let reference = feed.reference.clone();
    feed.prices.refresh(&reference);
    assert_eq!(feed.requests(NOW), [], "they are requested");
    let mut rows = sample::sound();
    rows.securities[2].family = rows.securities[0].family;
    rows.securities[2].kind = rows.securities[0].kind;
    rows.securities[2].base_currency = None;
    let changed = RefData::check(rows).unwrap();
    feed.prices.refresh(&changed);
    assert_eq!(feed.requests(NOW), [(3, 1)], "a new one follows");
    // The venue forgets its subscriptions with the connection.
    feed.prices.refresh(&reference);
    feed.prices.end();
    assert_eq!(feed.requests(NOW), []);
    assert_eq!(feed.receive("35=W|55=ACME|268=0"), "", "what is not requested is no price");
    assert_eq!(feed.receive("35=W|55=ACME|268=1|269=0|270=9|271=1"), "unknown=1");
    feed.prices.begin(&reference, 4);
    assert_eq!(feed.requests(NOW), [(1, 1), (2, 1)]);
}

#[test]
fn a_request_names_security_connection_and_repetition() {
    for (market_depth, depth) in [(1, "264=1"), (0, "264=0"), (5, "264=5")] {
        let feed = Feed::requested(market_depth);
        for (number, on, id) in [(1, true, "1-3|263=1"), (1, false, "1-3|263=2"), (2, true, "1-3-2|263=1")] {
            let mut encoder = Encoder::new(FixVersion::Fix44, "PITLANE", "VENUE");
            let mut out = Vec::new();
            let mut draft = encoder.begin(&mut out, msg_type::MARKET_DATA_REQUEST, 7, NOW);
            feed.prices.request(
                &mut draft,
                &feed.reference,
                PriceRequest { security: SecurityId(1), number },
                on,
            );
            draft.finish();
            let text = String::from_utf8(out).unwrap().replace('\x01', "|");
            let wanted =
                format!("|262={id}|{depth}|265=1|267=3|269=0|269=1|269=2|146=1|55=ACME|207=XTST|10=");
            assert!(text.contains(&wanted), "{wanted} {text}");
        }
    }
}

#[test]
fn best_prices_follow_snapshots_and_refreshes() {
    let mut feed = Feed::requested(1);
    for (body, expected) in [
        ("35=W|262=1-3|268=2|269=0|270=9.9|271=10|269=1|270=10.1|271=20", "1=10@9.9/20@10.1"),
        ("35=X|262=1-3|268=1|279=2|269=0", "1=0@0/20@10.1"),
        ("35=X|262=1-3|268=2|279=1|269=0|270=9.8|271=5|279=1|269=1|270=10|271=6", "1=5@9.8/6@10"),
        // A trade changes no quote, and may have no size.
        ("35=X|262=1-3|268=2|279=0|269=2|270=10|271=3|279=0|269=2|270=11", "1 traded 3@10; 1 traded 0@11"),
        // Only the best of a side counts.
        ("35=X|262=1-3|268=2|279=0|269=0|270=9|271=1|290=2|279=0|269=0|270=9|271=1|1023=2", ""),
        ("35=X|262=1-3|268=1|279=0|269=0|270=9.7|271=1|290=1", "1=1@9.7/6@10"),
        ("35=X|262=1-3|268=1|279=0|269=1|270=9.9|271=2|1023=1", "1=1@9.7/2@9.9"),
        // An entry of another type is no price.
        ("35=X|262=1-3|268=1|279=0|269=B|271=100", ""),
        // Without the id of a request the symbol decides.
        ("35=X|268=1|279=0|269=0|55=ACME C10|270=1|271=2", "2=2@1/0@0"),
        ("35=X|262=other|268=1|279=0|269=1|55=ACME C10|270=2|271=3", "2=2@1/3@2"),
        // The quotes have the order of the entries, and one security in a row has one.
        (
            "35=X|268=4|279=0|269=0|55=ACME|270=9|271=1|279=0|269=1|55=ACME|270=10|271=1\
             |279=0|269=0|55=ACME C10|270=2|271=2|279=0|269=0|55=ACME|270=8|271=1",
            "1=1@9/1@10; 2=2@2/3@2; 1=1@8/1@10",
        ),
        // The count is not needed here. A snapshot replaces both sides.
        ("35=W|262=1-3|268=7|269=0|270=7|271=1", "1=1@7/0@0"),
        ("35=W|55=ACME|268=0", "1=0@0/0@0"),
    ] {
        assert_eq!(feed.receive(body), expected, "{body}");
    }
    // Another connection knows nothing of the prices before.
    let reference = feed.reference.clone();
    feed.prices.begin(&reference, 9);
    feed.requests(NOW);
    assert_eq!(feed.receive("35=X|262=2-9|268=1|279=0|269=1|270=5|271=1"), "2=0@0/1@5");
}

#[test]
fn entries_that_cannot_be_applied_are_counted_and_the_others_count() {
    let mut feed = Feed::requested(1);
    for (entry, expected) in [
        ("279=0|270=9|271=1", "incomplete=1"),
        ("279=0|269=0|271=1", "incomplete=1"),
        ("279=0|269=0|270=9", "incomplete=1"),
        ("279=0|269=0|270=0|271=1", "incomplete=1"),
        ("279=0|269=1|270=9|271=-1", "incomplete=1"),
        ("279=0|269=2|271=1", "incomplete=1"),
        ("279=0|269=0|55=EURUSD|270=9|271=1", "unknown=1"),
        ("279=0|269=0|55=IDLE|270=9|271=1", "unknown=1"),
        ("279=0|269=0|55=NOPE|270=9|271=1", "unknown=1"),
    ] {
        let twice = format!("35=X|262=1-3|268=3|{entry}|279=0|269=0|270=5|271=1|{entry}");
        let expected = format!("1=1@5/0@0; {}", expected.replace("=1", "=2"));
        assert_eq!(feed.receive(&twice), expected, "{entry}");
    }
    // Neither the number of a security that is not requested nor a text is an id of ours.
    for id in ["3-3", "x-3", "-1-3", "4294967297-3"] {
        assert_eq!(feed.receive(&format!("35=W|262={id}|268=1|269=0|270=9|271=1")), "unknown=1", "{id}");
    }
}

#[test]
fn a_book_is_its_snapshot_and_the_changes_after_it() {
    let mut feed = Feed::requested(0);
    for (body, expected) in [
        // Before the snapshot there is nothing to change; a trade does not depend on it.
        ("35=X|262=1-3|268=2|279=0|269=0|270=9|279=0|269=2|270=10|271=2", "1 traded 2@10"),
        (
            "35=W|262=1-3|268=4|269=0|270=9.9|271=5|269=0|270=9.8|271=3|269=1|270=10.1|271=7|269=1|270=10.2|271=2",
            "whole 1 Buy 5@9.9 Buy 3@9.8 Sell 7@10.1 Sell 2@10.2; 1 known; 1=5@9.9/7@10.1",
        ),
        ("35=X|262=1-3|268=1|279=1|269=0|270=9.8|271=3", ""),
        ("35=X|262=1-3|268=1|279=1|269=0|270=9.8|271=4", "change 1 Buy 4@9.8; 1 known"),
        ("35=X|262=1-3|268=1|279=1|269=0|270=9.9|271=0", "change 1 Buy 0@9.9; 1 known; 1=4@9.8/7@10.1"),
        ("35=X|262=1-3|268=1|279=2|269=1|290=2", "change 1 Sell 0@10.2; 1 known"),
        ("35=X|262=1-3|268=1|279=2|269=1|290=1", "change 1 Sell 0@10.1; 1 known; 1=4@9.8/0@0"),
        ("35=X|262=1-3|268=1|279=0|269=B|271=9", ""),
        ("35=W|262=1-3|268=0", "change 1 Buy 0@9.8; 1 known; 1=0@0/0@0"),
    ] {
        assert_eq!(feed.receive(body), expected, "{body}");
        assert_eq!(feed.prices.take_fault(), None, "{body}");
    }
}

#[test]
fn entries_with_ids_are_added_up_at_their_price() {
    let mut feed = Feed::requested(0);
    for (body, expected) in [
        (
            "35=W|262=1-3|268=3|269=0|278=a|270=9|271=5|269=0|278=b|270=9|271=2|269=0|278=c|270=8|271=1",
            "whole 1 Buy 7@9 Buy 1@8; 1 known; 1=7@9/0@0",
        ),
        ("35=X|262=1-3|268=1|279=2|278=a", "change 1 Buy 2@9; 1 known; 1=2@9/0@0"),
        ("35=X|262=1-3|268=1|279=1|278=b|271=4", "change 1 Buy 4@9; 1 known; 1=4@9/0@0"),
        ("35=X|262=1-3|268=1|279=0|269=0|278=d|270=8|271=2", "change 1 Buy 3@8; 1 known"),
        ("35=X|262=1-3|268=1|279=2|278=b", "change 1 Buy 0@9; 1 known; 1=3@8/0@0"),
    ] {
        assert_eq!(feed.receive(body), expected, "{body}");
    }
}

#[test]
fn a_book_has_no_more_levels_than_were_requested() {
    let mut feed = Feed::requested(2);
    for (body, expected) in [
        (
            "35=W|262=1-3|268=3|269=0|270=9|271=1|269=0|270=8|271=1|269=0|270=7|271=1",
            "whole 1 Buy 1@9 Buy 1@8; 1 known; 1=1@9/0@0",
        ),
        ("35=X|262=1-3|268=1|279=2|269=0|270=9", "change 1 Buy 0@9; 1 known; 1=1@8/0@0"),
        ("35=X|262=1-3|268=1|279=0|269=0|1023=2|270=6|271=2", "change 1 Buy 2@6; 1 known"),
        ("35=X|262=1-3|268=1|279=0|269=0|1023=3|270=5|271=2", "1 lost; incomplete=1"),
    ] {
        assert_eq!(feed.receive(body), expected, "{body}");
    }
    let fault =
        "the book of security 1 is requested again: an entry names a level that does not fit the book";
    assert_eq!(feed.prices.take_fault().as_deref(), Some(fault));
}

const BOTH: [&str; 2] = ["35=W|262=1-3|268=1|269=0|270=9|271=5", "35=W|262=2-3|268=1|269=0|270=1|271=5"];

#[test]
fn a_message_with_a_fault_loses_the_books_that_it_may_be_about() {
    for (body, lost, reason) in [
        ("35=X|262=1-3|268=1|279=0|269=0|270=8", "1 lost; incomplete=1", "an entry lacks a field"),
        ("35=X|262=1-3|268=1|279=5|269=0|270=8|271=1", "1 lost; incomplete=1", "an entry lacks a field"),
        ("35=X|262=1-3|268=1|279=2|269=0", "1 lost; incomplete=1", "an entry lacks a field"),
        ("35=X|262=1-3|268=2|279=2|269=0|270=9", "1 lost; incomplete=1", "a message cannot be read"),
        ("35=W|55=ACME|268=0|269=0|270=9|271=1", "1 lost; incomplete=1", "a message cannot be read"),
        ("35=X|268=2", "1 lost; 2 lost; incomplete=1", "a message cannot be read"),
    ] {
        let mut feed = Feed::requested(0);
        for snapshot in BOTH {
            feed.receive(snapshot);
        }
        assert_eq!(feed.receive(body), lost, "{body}");
        let last = if lost.contains('2') { 2 } else { 1 };
        let fault = format!("the book of security {last} is requested again: {reason}");
        assert_eq!(feed.prices.take_fault(), Some(fault), "{body}");
        assert_eq!(feed.prices.take_fault(), None, "once");
        assert_eq!(feed.receive("35=X|262=1-3|268=1|279=0|269=0|270=7|271=1"), "", "it is unknown");
    }
    let mut feed = Feed::requested(0);
    assert_eq!(feed.prices.next_retry(), None);
    for snapshot in BOTH {
        feed.receive(snapshot);
    }
    feed.prices.handle_gap();
    assert_eq!(feed.output(), ["1 lost", "2 lost"]);
    let fault = "the book of security 2 is requested again: messages are missing";
    assert_eq!(feed.prices.take_fault().as_deref(), Some(fault));
    for snapshot in BOTH {
        feed.receive(snapshot);
    }
    feed.prices.end();
    assert_eq!(feed.output(), ["1 lost", "2 lost"], "with the connection");
    assert_eq!((feed.prices.next_retry(), feed.prices.take_fault()), (None, None));
}

#[test]
fn a_lost_book_is_requested_again_after_a_while() {
    let mut feed = Feed::requested(0);
    feed.receive(BOTH[0]);
    let wrong = "35=X|262=1-3|268=1|279=0|269=0|270=8";
    assert_eq!(feed.receive(wrong), "1 lost; incomplete=1");
    let due = NOW.plus(RETRY);
    assert_eq!(feed.prices.next_retry(), Some(due));
    assert_eq!(feed.requests(Timestamp(due.0 - 1)), []);
    feed.prices.delay_retries(Timestamp(due.0 - 1));
    assert_eq!(feed.prices.next_retry(), Some(due), "it is not due");
    assert_eq!(feed.requests(due), [(1, 2)]);
    assert_eq!(feed.prices.next_retry(), None);
    // It is lost again, and cannot be requested when it is due.
    feed.receive(BOTH[0]);
    assert_eq!(feed.receive(wrong), "1 lost; incomplete=1");
    let due = due.plus(RETRY);
    assert_eq!(feed.prices.next_retry(), Some(due));
    feed.prices.delay_retries(due);
    assert_eq!(feed.prices.next_retry(), Some(due.plus(RETRY)));
    assert_eq!(feed.requests(due.plus(RETRY)), [(1, 3)]);
    // A snapshot that comes by itself will do.
    feed.receive(BOTH[0]);
    assert_eq!(feed.receive(wrong), "1 lost; incomplete=1");
    feed.receive(BOTH[0]);
    assert_eq!(feed.prices.next_retry(), None);
}
