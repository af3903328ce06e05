//! The service is killed at random moments and restarted: a client that reconnects without reset
//! has lost nothing, misses nothing and receives nothing twice.
//!
//! After all processes the status of every order is requested once more (PossResend): it must be
//! what the client knows from its reports, and the reported fills must add up to the filled
//! quantity.

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::{FixClient, ReceivedFix, now};
use pitlane_testkit::known_orders::{Contradiction, KnownOrders};
use pitlane_testkit::service::folder;

use crate::{fix, start};

/// Processes in the short form, and in the full form (`make faults`).
const ROUNDS: u64 = 6;
const ROUNDS_FULL: u64 = 100;

#[test]
fn nothing_is_lost_missed_or_doubled_whenever_it_is_killed() {
    let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
    let rounds = if full { ROUNDS_FULL } else { ROUNDS };
    let data = folder("fix-kills");
    let mut dice = Rng::new(7);
    let mut client = FixClient::new("KEEP1");
    let mut orders: Vec<String> = Vec::new();
    for round in 0..rounds {
        let service = start(&data, &["topology.shards=2"]);
        client.connect(fix(&service));
        client.log_on(false);
        let count = client.received.len();
        let acts = 1 + dice.below(30);
        for _ in 0..acts {
            act(&mut client, &mut dice, &mut orders, round);
        }
        // Before anything is received, in between, or after all of it.
        client.receive(count + index_usize(dice.below(acts + 1)));
        service.signal("KILL");
        while client.next_message().is_some() {}
        client.disconnect();
        service.end();
    }
    let service = start(&data, &["topology.shards=2", "feed.on=false"]);
    client.connect(fix(&service));
    client.log_on(false);
    client.settle();
    check(&mut client, &orders);
    service.signal("TERM");
    assert!(client.is_closed());
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}

/// Sends a new order of some kind, a cancel, or a replacement.
pub(crate) fn act(client: &mut FixClient, dice: &mut Rng, orders: &mut Vec<String>, round: u64) {
    let id = format!("L{round}-{}", client.next_out);
    let (symbol, price) = [("AAPL", "200"), ("MSFT", "400"), ("NVDA", "120"), ("AMZN", "190")][dice.index(4)];
    match dice.below(10) {
        0..=3 => _ = client.order(&id, symbol, 1, 10, price),
        4..=6 => {
            let body = format!("11={id}|55={symbol}|54={}|38=10|40=1|59=0|60={}|", 1 + dice.below(2), now());
            client.send("D", &body);
        }
        7 | 8 if !orders.is_empty() => {
            let orig = &orders[orders.len() - 1 - dice.index(orders.len().min(20))];
            // The instrument of the order is not looked up: half of the requests do not match and
            // are refused.
            let body = format!("11={id}|41={orig}|55={symbol}|54=1|60={}|", now());
            client.send("F", &body);
            return;
        }
        _ if !orders.is_empty() => {
            let orig = &orders[orders.len() - 1 - dice.index(orders.len().min(20))];
            let body = format!("11={id}|41={orig}|55={symbol}|54=1|38=20|40=2|44={price}|59=1|60={}|", now());
            client.send("G", &body);
            return;
        }
        _ => _ = client.order(&id, symbol, 1, 10, price),
    }
    orders.push(id);
}

pub(crate) fn check(client: &mut FixClient, orders: &[String]) {
    let mut known = KnownOrders::default();
    client.received.iter().for_each(|message| must(known.take(message)));
    for id in orders {
        if known.last.get(id).is_some_and(|last| last.get(39) == "8") {
            continue;
        }
        let mut status = status_of(client, &mut known, id);
        if status.get(39) == "A" && !known.last.contains_key(id) {
            // Another server owns the order and has not answered yet.
            while !known.last.contains_key(id) {
                let message = client.next_message().unwrap_or_else(|| panic!("a report of {id}"));
                must(known.take(&message));
            }
            status = status_of(client, &mut known, id);
        }
        let last = known.last.get(id).unwrap_or_else(|| panic!("{id} was never reported: {}", status.text()));
        let last = last.clone();
        if status.get(150) != "I" {
            // Finished and forgotten by its shard: it counts as a new one.
            assert!(
                matches!(last.get(39), "2" | "4"),
                "an open order was lost: {}\n{}",
                last.text(),
                status.text()
            );
            known.filled.remove(id);
            known.last.insert(id.clone(), status);
            continue;
        }
        for tag in [37, 39, 14, 38] {
            assert_eq!(status.get(tag), last.get(tag), "{tag} of {id}\n{}\n{}", last.text(), status.text());
        }
    }
}

/// Sends an order again as a possible resend, and returns the response.
fn status_of(client: &mut FixClient, known: &mut KnownOrders, id: &str) -> ReceivedFix {
    let body = format!("11={id}|55=AAPL|54=1|38=10|40=1|60={}|", now());
    let number = client.next_out;
    client.next_out += 1;
    let bytes = client.frame("D", number, "97=Y|", &body);
    client.write(&bytes);
    // Responses to the last requests may still come in between.
    loop {
        let message = client.next_message().unwrap_or_else(|| panic!("an answer for {id}"));
        if message.get(11) == id && matches!(message.get(150), "I" | "A" | "8")
            || message.get(37) == id && message.get(150) == "I"
        {
            return message;
        }
        must(known.take(&message));
    }
}

pub(crate) fn must(taken: Result<(), Contradiction>) {
    match taken {
        Ok(()) => {}
        Err(Contradiction::Repeated(message)) => panic!("reported or answered twice: {message}"),
        Err(Contradiction::Missing(message)) => panic!("a fill is missing before {message}"),
    }
}
