//! What a client gets in parts, as it takes the output.

use pitlane_engine::command::TradingSession;
use pitlane_engine::desk::Ticket;
use pitlane_engine::event::Tick;
use pitlane_engine::id::{ExchangeId, SecurityId, StrategyId};
use pitlane_engine::number::Qty;
use pitlane_engine::refdata::{RefData, Security, sample};

use super::client::{Client, NOTHING, order};
use super::*;
use crate::fix::market_data::MarketImage;
use crate::fix::positions::PositionRow;

/// What fills the output up to this many bytes leaves room for one more message.
const ALMOST_FULL: usize = OUTPUT_BYTES_HIGH - 1;

impl Client {
    /// Lets the session write Heartbeats of this many bytes, which the client does not take.
    fn fill(&mut self, bytes: usize) {
        let mut around = 0;
        while self.peer.session.unsent_bytes() < bytes {
            let left = bytes - self.peer.session.unsent_bytes();
            // The size of all these messages has the same number of digits.
            let len = if left < 1_000 { left - around } else { 500 };
            self.peer.give("1", self.next, &format!("112={}|", "x".repeat(len)));
            self.next += 1;
            let before = self.peer.session.unsent_bytes();
            assert!(self.peer.session.poll_command(self.peer.now, &self.desk).is_none());
            around = self.peer.session.unsent_bytes() - before - len;
        }
        assert_eq!(self.peer.session.unsent_bytes(), bytes);
    }

    /// Sends a request whose answer has several messages while there is room for one, and a Test
    /// Request. Returns the answer up to where the output is full, and the rest.
    fn parts(&mut self, kind: &str, rest: &str) -> (Vec<String>, Vec<String>) {
        self.fill(ALMOST_FULL);
        self.peer.give(kind, self.next, rest);
        self.peer.give("1", self.next + 1, "112=end|");
        self.next += 2;
        (without_heartbeats(self.poll()), self.poll())
    }
}

fn without_heartbeats(messages: Vec<String>) -> Vec<String> {
    messages.into_iter().filter(|message| !message.starts_with("35=0|")).collect()
}

/// Asserts that the messages have these fields, each in its turn.
fn assert_fields(messages: &[String], fields: &[&str]) {
    assert_eq!(messages.len(), fields.len(), "{messages:?}");
    for (message, field) in messages.iter().zip(fields) {
        assert!(format!("{message}|").contains(&format!("|{field}|")), "{field} {message}");
    }
}

#[test]
fn a_list_of_securities_comes_in_parts_as_the_client_takes_them() {
    let mut client = Client::logged_on(|_| {});
    let mut rows = sample::sound();
    let stock = rows.securities[0].clone();
    for number in 4..=60 {
        let symbol = format!("S{number}");
        rows.securities.push(Security { id: SecurityId(number), symbol, ..stock.clone() });
    }
    client.peer.session.set_reference(Arc::new(RefData::check(rows).unwrap()));
    let (first, rest) = client.parts("x", "320=l|559=4|");
    assert_fields(&first, &["322=l-1"]);
    assert!(first[0].contains("|560=0|393=60|893=N|146=25|55=ACME|"), "{first:?}");
    assert_fields(&rest, &["322=l-2", "322=l-3", "112=end"]);
    assert!(rest[0].contains("|893=N|146=25|55=S26|"), "{rest:?}");
    assert!(rest[1].contains("|893=Y|146=10|55=S51|"), "{rest:?}");
}

#[test]
fn the_status_of_all_orders_is_reported_as_the_client_takes_it() {
    let mut client = Client::logged_on(|_| {});
    for (place, id) in (0..).zip(["a", "b", "c"]) {
        client.peer.give("D", client.next, &order(id, "ACME"));
        client.next += 1;
        let request = client.peer.session.poll_command(NOW, &client.desk).unwrap();
        let Ticket { source, token, id: named, .. } = *request.ticket();
        // Its events find an order by its place, which is the token of its ticket.
        assert_eq!((source.session, token, named.as_str()), (1, place, id));
    }
    let (first, rest) = client.parts("AF", "584=m|585=7|");
    assert_fields(&first, &["11=a"]);
    assert!(first[0].ends_with("|584=m|911=3|912=N"), "{first:?}");
    assert_fields(&rest, &["11=b", "11=c", "112=end"]);
    assert!(rest[0].ends_with("|912=N") && rest[1].ends_with("|912=Y"), "{rest:?}");
}

#[test]
fn positions_are_reported_as_the_client_takes_them() {
    let mut client = Client::logged_on(|_| {});
    assert_eq!(client.send("AN", "710=p|"), NOTHING);
    let query = client.peer.session.poll_position_query().unwrap();
    assert!(client.peer.session.poll_position_query().is_none());
    let row = |whole| PositionRow {
        strategy: StrategyId::SERVER,
        security: SecurityId(1),
        qty: Qty::whole(whole).unwrap(),
        avg_price: None,
        market_price: None,
        unrealized: None,
    };
    client.fill(ALMOST_FULL);
    client.peer.session.handle_positions(query.token + 1, [row(9)].into());
    client.peer.session.handle_positions(query.token, [row(1), row(-2), row(3)].into());
    client.peer.give("1", client.next, "112=end|");
    client.next += 1;
    let first = without_heartbeats(client.poll());
    assert_fields(&first, &["721=p-1"]);
    assert!(first[0].contains("|727=3|") && first[0].contains("|704=1|705=0"), "{first:?}");
    let rest = client.poll();
    assert_fields(&rest, &["721=p-2", "721=p-3", "112=end"]);
    assert!(rest[0].contains("|704=0|705=2"), "{rest:?}");
    // The request is over, so another one is admitted.
    assert_eq!(client.send("AN", "710=p|"), NOTHING);
    assert_eq!(client.peer.session.poll_position_query().unwrap().token, query.token + 1);
}

#[test]
fn of_trading_sessions_that_waited_the_last_is_told() {
    let mut client = Client::logged_on(|_| {});
    client.send("g", "335=a|263=1|336=Home|");
    client.fill(OUTPUT_BYTES_HIGH);
    for state in [TradingSession::Continuous, TradingSession::Closed] {
        client.peer.session.handle_trading_session(ExchangeId(1), state);
        assert!(client.peer.session.poll_command(NOW, &client.desk).is_none());
        assert_eq!(client.peer.session.unsent_bytes(), OUTPUT_BYTES_HIGH);
    }
    assert_eq!(without_heartbeats(client.peer.output()), NOTHING);
    assert_fields(&client.poll(), &["340=3"]);
}

#[test]
fn market_data_waits_for_a_resend_and_for_the_client_to_take_most_of_the_output() {
    /// Unsent bytes at which market data waits.
    const WAITS_AT: usize = 64 * 1_024;
    let tick = Tick {
        security: SecurityId(1),
        bid: sample::price("10"),
        bid_size: Qty::whole(1).unwrap(),
        ..Tick::default()
    };
    let image = |seq, bid| MarketImage {
        seq,
        tick: Tick { bid: sample::price(bid), ..tick },
        book: None,
        is_book_settled: false,
    };
    let mut client = Client::logged_on(|_| {});
    assert_fields(&client.send("ZZ", ""), &["380=3"]);
    client.send("V", "262=a|263=1|264=1|265=1|267=1|269=0|146=1|55=ACME|");
    client.fill(WAITS_AT - 1);
    client.peer.session.handle_market_image(NOW, &image(1, "10"));
    assert_fields(&without_heartbeats(client.peer.output()), &["270=10"]);
    client.fill(WAITS_AT);
    client.peer.session.handle_market_image(NOW, &image(2, "11"));
    assert_eq!(without_heartbeats(client.peer.output()), NOTHING);
    assert_fields(&client.poll(), &["270=11"]);

    client.fill(ALMOST_FULL);
    client.peer.give("2", client.next, "7=1|16=0|");
    client.next += 1;
    let first = without_heartbeats(client.poll());
    assert_fields(&first, &["36=2"]);
    client.peer.session.handle_market_image(NOW, &image(3, "12"));
    assert_eq!(client.peer.output(), NOTHING, "the rest of the resend comes first");
    let rest = client.poll();
    assert!(rest.len() == 3 && rest[0].starts_with("35=j|34=2|43=Y|"), "{rest:?}");
    assert!(rest[1].starts_with("35=4|34=3|43=Y|") && rest[2].contains("|270=12|"), "{rest:?}");
}

#[test]
fn subscriptions_have_as_many_securities_as_the_settings_permit() {
    let mut client = Client::logged_on(|settings| settings.market_data_max = 2);
    let both = "264=1|265=1|267=1|269=0|146=2|55=ACME|55=EURUSD|";
    for _ in 0..3 {
        assert_eq!(client.send("V", &format!("262=a|263=1|{both}")), NOTHING);
        let one_more = client.send("V", "262=b|263=1|264=1|265=1|267=1|269=0|146=1|55=ACME C10|");
        assert_fields(&one_more, &["281=2"]);
        assert_eq!(client.send("V", "262=a|263=2|"), NOTHING);
    }
}
