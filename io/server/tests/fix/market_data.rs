//! Market data and reference data over FIX: with QuickFIX, which checks every message against a
//! dictionary, with simplefix, and beside STOMP.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use pitlane_testkit::fix_client::{FixClient, ReceivedFix};
use pitlane_testkit::python::{self, succeeds};
use pitlane_testkit::quickfix::{QuickFixProcess, dictionary};
use pitlane_testkit::service::{ServiceProcess, folder};
use pitlane_testkit::stomp_client::{self, StompClient};
use serde_json::Value;

use crate::cluster::fix_client;
use crate::quickfix::BINARY;
use crate::{CONFIG, address, fix, start, start_priced, start_with};

/// Sessions for one purpose each.
const PURPOSES: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "ORDERS"
purpose = "orders"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "PRICES"
purpose = "market-data"
market_data_max = 2
"#;

static DICTIONARY: LazyLock<PathBuf> = LazyLock::new(|| dictionary("market-data"));

/// Starts QuickFIX with a dictionary of what it asks for, and logs on.
pub(crate) fn quickfix(service: &ServiceProcess, store: &Path) -> QuickFixProcess {
    let mut command = Command::new(&*BINARY);
    command.args([&fix(service).port().to_string(), "CLIENT1", "PITLANE"]).arg(store);
    let mut client = QuickFixProcess::start(command.args(["Y", "30"]).arg(&*DICTIONARY));
    client.wait(&["logon"]);
    client
}

#[test]
fn quickfix_subscribes_prices_books_and_trades() {
    let data = folder("quickfix-prices");
    let service = start_priced(&data);
    let mut client = quickfix(&service, &data.join("client"));
    client.send_message(
        "send 35=V|262=top|263=1|264=1|265=1|267=4|269=0|269=1|269=2|269=B|146=2|55=AAPL|55=MSFT",
    );
    // They belong to two shards, so either may be first.
    for _ in 0..2 {
        client.wait(&["app", "35=W", "|262=top|", "|269=0|", "|269=1|", "|269=B|"]);
    }
    client.wait(&["app", "35=X", "|262=top|", "|279=1|", "|55=AAPL|"]);
    client.wait(&["app", "35=X", "|262=top|", "|269=2|", "|279=0|"]);
    client.send_message("send 35=V|262=book|263=1|264=5|265=1|267=2|269=0|269=1|146=1|55=NVDA");
    client.wait(&["app", "35=W", "|262=book|", "|55=NVDA|", "|290=5|"]);
    client.wait(&["app", "35=X", "|262=book|", "|279=2|"]);
    client.send_message("send 35=V|262=full|263=1|264=0|265=0|267=1|269=1|146=1|55=AMZN");
    for _ in 0..3 {
        client.wait(&["app", "35=W", "|262=full|", "|55=AMZN|", "|290=10|"]);
    }
    client.send_message("send 35=V|262=once|263=0|264=1|267=1|269=0|146=1|55=[N/A]|48=1");
    client.wait(&["app", "35=W", "|262=once|", "|55=AAPL|"]);
    for id in ["top", "book", "full"] {
        client.send_message(&format!("send 35=V|262={id}|263=2|264=1|267=1|269=0|146=1|55=AAPL"));
    }
    client.send_message("send 35=V|262=none|263=1|264=1|265=1|267=1|269=0|146=1|55=NOPE");
    client.wait(&["app", "35=Y", "|262=none|", "|281=0|"]);
    // The answers come in order: after this one no price is on its way.
    let quiet = client.received.len();
    client.send_message("send 35=V|262=none|263=2|264=1|267=1|269=0|146=1|55=AAPL");
    client.wait(&["app", "35=Y", "|262=none|", "|281=1|"]);
    assert!(client.received[quiet..].iter().all(|line| !line.contains("35=X") && !line.contains("35=W")));
    client.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn quickfix_reads_the_list_of_securities_and_a_definition() {
    let data = folder("quickfix-securities");
    let service = start(&data, &["feed.on=false"]);
    let mut client = quickfix(&service, &data.join("client"));
    client.send_message("send 35=x|320=all|559=4");
    client.wait(&["app", "35=y", "|322=all-1|", "|893=N|", "|146=25|"]);
    let last = client.wait(&["app", "35=y", "|320=all|", "|893=Y|", "|560=0|"]);
    let total: usize = part(&last, "|393=").parse().expect("a number");
    let lists = client.received.iter().filter(|line| line.starts_with("app") && line.contains("|320=all|"));
    assert_eq!(lists.map(|line| line.matches("|55=").count()).sum::<usize>(), total);
    client.send_message("send 35=x|320=options|559=1|167=OPT");
    client.wait(&["app", "35=y", "|320=options|", "|167=OPT|", "|541=", "|202=", "|893=Y|"]);
    for (request, result) in [("559=0|55=NOPE", "|560=2|"), ("559=2", "|560=1|")] {
        client.send_message(&format!("send 35=x|320=none|{request}"));
        client.wait(&["app", "35=y", "|320=none|", result]);
    }
    client.send_message("send 35=c|320=d1|321=0|55=AAPL");
    client.wait(&["app", "35=d", "|320=d1|", "|323=1|", "|48=1|", "|207=", "|15=USD|", "|561=1|"]);
    client.send_message("send 35=c|320=d2|321=0|55=NOPE");
    client.wait(&["app", "35=d", "|320=d2|", "|323=6|"]);
    client.send_message("send 35=c|320=d3|321=3|55=AAPL");
    client.wait(&["app", "35=d", "|320=d3|", "|323=5|"]);
    client.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

fn part<'a>(line: &'a str, tag: &str) -> &'a str {
    let at = line.find(tag).map_or(line.len(), |at| at + tag.len());
    line[at..].split('|').next().unwrap_or_default()
}

#[test]
fn simplefix_reads_every_byte() {
    let Some(python) = python::with_package("simplefix==1.0.17") else { return };
    let data = folder("simplefix");
    let service = start_priced(&data);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fix/simplefix_client.py");
    let mut command = Command::new(python);
    command.arg(script).arg(fix(&service).port().to_string());
    assert!(succeeds(&mut command), "simplefix was not content");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// Best prices as numbers, so that `231.5` and `231.50` are the same.
type BestPrices = [Option<f64>; 4];

fn of_fix(message: &ReceivedFix) -> BestPrices {
    let mut best = [None; 4];
    let mut side = 0;
    for (tag, value) in &message.0 {
        match (tag, value.as_str()) {
            (269, kind) => side = usize::from(kind == "1") * 2,
            (270, price) => best[side] = price.parse().ok(),
            (271, size) => best[side + 1] = size.parse().ok(),
            _ => {}
        }
    }
    best
}

fn of_stomp(frame: &str) -> BestPrices {
    let tick: Value = serde_json::from_str(stomp_client::body(frame)).expect("a tick");
    ["bid", "bidSize", "ask", "askSize"].map(|name| tick[name].as_f64())
}

#[test]
fn fix_and_stomp_show_the_same_prices_in_the_same_order() {
    let data = folder("fix-and-stomp");
    let service = start(&data, &["feed.rate=2000"]);
    let mut stomp = StompClient::new(stomp_client::plain(address(&service, "stomp")));
    stomp.connect();
    stomp.subscribe("1", "tick.1");
    let mut client = fix_client(&service, "KEEP1");
    client.send("V", "262=a|263=1|264=1|265=0|267=2|269=0|269=1|146=1|55=AAPL|");
    assert!(client.receive(20));
    let by_fix: Vec<BestPrices> = client.received.iter().map(of_fix).collect();
    let mut by_stomp: Vec<BestPrices> = Vec::new();
    // The first price by FIX is the state at its time, and the others follow by STOMP too.
    while !by_stomp.windows(19).any(|window| window == &by_fix[1..]) {
        let best = of_stomp(&stomp.receive_until("MESSAGE"));
        if by_stomp.last() != Some(&best) {
            by_stomp.push(best);
        }
        assert!(by_stomp.len() < 10_000, "STOMP shows other prices: {by_fix:?}");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_slow_reader_skips_prices_and_keeps_its_session_and_others_are_not_delayed() {
    let data = folder("fix-slow-reader");
    let service = start(&data, &["feed.rate=5000", "fix.message_bytes_max=65536"]);
    let mut fast = fix_client(&service, "KEEP1");
    let mut slow = fix_client(&service, "KEEP2");
    let every = "264=10|265=1|267=2|269=0|269=1|146=4|55=AAPL|55=MSFT|55=NVDA|55=AMZN|";
    slow.send("V", &format!("262=s|263=1|{every}"));
    fast.send("V", &format!("262=f|263=1|{every}"));
    // More than the buffers of a connection hold.
    let mut bytes = 0;
    while bytes < 16 << 20 {
        let message = fast.next_message().expect("market data");
        bytes += message.text().len();
        fast.received.clear();
    }
    // The slow one reads what was on its way, then a picture of everything, then differences.
    let mut refreshed = 0;
    while refreshed < 4 + 4 {
        let message = slow.next_message().expect("market data");
        refreshed += usize::from(message.get(35) == "W");
    }
    slow.order("o1", "AAPL", 1, 10, "1.5");
    while slow.next_message().expect("a report").get(35) != "8" {}
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn bad_requests_for_reference_data_are_answered() {
    let data = folder("fix-bad-requests");
    let service = start(&data, &["feed.on=false"]);
    let mut client = fix_client(&service, "KEEP1");
    for (kind, more) in [("x", "559=4|"), ("c", "321=0|55=AAPL|")] {
        client.send(kind, more);
        let refused = client.next_message().expect("an answer");
        assert_eq!((refused.get(35), refused.get(380)), ("j", "5"), "320 is missing");
        client.send(kind, &format!("320={}|{more}", "x".repeat(65)));
        let refused = client.read().expect("an answer");
        assert_eq!((refused.get(35), refused.get(371), refused.get(373)), ("3", "320", "5"));
        client.next_in += 1;
        client.send(kind, "320=a|55=AAPL|");
        let refused = client.next_message().expect("an answer");
        assert_eq!((refused.get(35), refused.get(380)), ("j", "5"), "{kind} has no type");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_session_serves_its_purpose_and_no_other() {
    let data = folder("fix-purposes");
    let service = start_with(&data, &format!("{CONFIG}{PURPOSES}"), &["feed.on=false"]);
    let prices = |symbols: &str| format!("262=a|263=1|264=1|265=1|267=1|269=0|{symbols}");
    let answer = |client: &mut FixClient| client.next_message().expect("an answer");
    let mut orders = fix_client(&service, "ORDERS");
    orders.send("V", &prices("146=1|55=AAPL|"));
    let refused = answer(&mut orders);
    assert_eq!((refused.get(35), refused.get(281)), ("Y", "3"));
    orders.order("o1", "AAPL", 1, 10, "1.5");
    assert_eq!(answer(&mut orders).get(150), "A");

    let mut reader = fix_client(&service, "PRICES");
    reader.order("o1", "AAPL", 1, 10, "1.5");
    let refused = answer(&mut reader);
    assert_eq!((refused.get(35), refused.get(380)), ("j", "6"));
    reader.send("V", &prices("146=3|55=AAPL|55=MSFT|55=NVDA|"));
    let refused = answer(&mut reader);
    assert_eq!((refused.get(35), refused.get(281)), ("Y", "2"));
    reader.send("V", &prices("146=2|55=AAPL|55=MSFT|"));
    // Without a price the picture is empty, and comes all the same.
    let first = answer(&mut reader);
    assert_eq!((first.get(35), first.get(262)), ("W", "a"));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
