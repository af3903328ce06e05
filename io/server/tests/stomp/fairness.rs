//! Who gets the market data rate of a WebSocket connection, on the running service. Messages and
//! events of the market are counted, not seconds: how late a busy machine wakes a thread says
//! nothing about their order.

use std::collections::BTreeMap;

use pitlane_testkit::stomp_client::{StompClient, body, header, plain};
use pitlane_testkit::web_socket::WebSocket;

use super::scenarios::instruments;
use super::sessions::{address, start};

const INSTRUMENTS: u32 = 2_000;
const ROWS: u32 = 30;
/// Market data events of a connection in one second.
const RATE: usize = 50;
/// Events of the market in one second.
const FEED_RATE: u64 = 5_000;
/// Messages that are counted: those of five seconds at least, and of a minute at most.
const MESSAGES_MIN: usize = 5 * RATE;
const MESSAGES_MAX: usize = 60 * RATE;
/// Deliveries of each row that are counted.
const DELIVERIES_MIN: usize = 5;
/// Deliveries to other rows between two of a row, at most. A row waits for one turn of each other
/// row once it has moved; before it moves, an interval of the feed later, another one can move
/// three times.
const TURNS_BETWEEN_MAX: usize = ROWS as usize * 4;

fn seq(frame: &str) -> u64 {
    body(frame).split_once("\"seq\":").unwrap().1.split(',').next().unwrap().parse().unwrap()
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

fn row(number: u32) -> u32 {
    number * 61 + 5
}

#[test]
fn thirty_watched_rows_move_every_second_beside_a_wildcard_over_2000_instruments() {
    let rows = instruments(INSTRUMENTS);
    let market = format!("refdata.dir={}", rows.display());
    let feed = format!("feed.rate={FEED_RATE}");
    let (service, _) = start("fairness", &["topology.shards=1", &feed, &market]);
    let http = address(&service, "http");
    let mut client = StompClient::new(Box::new(WebSocket::open(plain(http), http, "").0));
    client.connect();
    client.subscribe("all", "tick.*");
    for number in 0..ROWS {
        client.subscribe(&number.to_string(), &format!("tick.{}", row(number)));
    }
    // Until each row has moved once; the clock of its turns begins there.
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    while last.len() < ROWS as usize {
        let frame = client.receive_until("MESSAGE");
        let id = header(&frame, "subscription").unwrap();
        if id != "all" {
            last.insert(id.to_string(), 0);
        }
    }
    let mut named = 0;
    // Messages at which each row was delivered: their numbers, and the events that they show.
    let mut places: BTreeMap<String, Vec<(usize, u64)>> = BTreeMap::new();
    let mut newest: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut number = 0;
    let is_enough = |places: &BTreeMap<String, Vec<(usize, u64)>>| {
        places.len() == ROWS as usize && places.values().all(|row| row.len() >= DELIVERIES_MIN)
    };
    while number < MESSAGES_MIN || !is_enough(&places) {
        assert!(number < MESSAGES_MAX, "not every row has moved: {places:?}");
        number += 1;
        let frame = client.receive_until("MESSAGE");
        let id = header(&frame, "subscription").unwrap().to_string();
        let topic = header(&frame, "destination").unwrap().to_string();
        let seq = seq(&frame);
        let before = newest.insert((id.clone(), topic.clone()), seq);
        assert!(before.is_none_or(|before| before < seq), "{topic} went back or came twice");
        if id == "all" {
            continue;
        }
        named += 1;
        let turns = named - last.insert(id.clone(), named).unwrap();
        assert!(turns <= TURNS_BETWEEN_MAX, "{topic} waited for {turns} other rows");
        places.entry(id).or_default().push((number, seq));
    }
    assert!(named < number, "the wildcard is not silent");
    for (id, places) in places {
        // A second is so many messages of the connection or events of the market, whichever thread
        // the machine delays.
        let messages = median(places.windows(2).map(|pair| pair[1].0 - pair[0].0).collect());
        let events = median(places.windows(2).map(|pair| pair[1].1 - pair[0].1).collect());
        let is_seen = messages <= RATE || events <= FEED_RATE;
        assert!(is_seen, "row {id} moves every {messages} messages, {events} events: {places:?}");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_client_gets_merged_updates_at_the_rate_that_it_requests() {
    let (service, _) = start("conflate", &["feed.rate=20000"]);
    let mut client = StompClient::new(plain(address(&service, "stomp")));
    client.connect();
    client.subscribe("each", "tick.1");
    client.send_message("SUBSCRIBE|id:merged|destination:/topic/tick.1|conflate:200||");
    let (mut each, mut merged, mut newest) = (0, 0, 0);
    while merged < 5 {
        let frame = client.receive_until("MESSAGE");
        let seq = seq(&frame);
        match header(&frame, "subscription").unwrap() {
            "each" => (each, newest) = (each + 1, seq),
            _ => {
                merged += 1;
                assert!(seq >= newest, "a merged message is the newest: {seq}, {newest}");
            }
        }
    }
    // Hundreds a second against five.
    assert!(each > 2 * merged, "{merged} merged messages of {each}");
    client.send_message("SUBSCRIBE|id:2|destination:/topic/tick.2|conflate:fast||");
    let error = client.receive_until("ERROR");
    assert_eq!(header(&error, "message"), Some("conflate is 10 to 60000 milliseconds, for market data"));
    assert_eq!(client.receive(), None);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
