//! Binary messages that share frames, from the running service over every transport.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_testkit::stomp_client::{StompClient, StompStream, header, plain, tls};
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

const SBE: &str = "application/x-pitlane-sbe";
/// Instruments whose newest ticks a new subscription gets at once.
const INSTRUMENTS: usize = 5;

/// Header of a tick: length of its block, template, schema, version.
const TICK_HEADER: [u8; 8] = [84, 0, 1, 0, 1, 0, 0, 0];
const TICK_BYTES: usize = 8 + 84;

/// Returns security and sequence number of each tick in a body.
fn ticks(body: &[u8]) -> Vec<(u32, u64)> {
    assert_eq!(body.len() % TICK_BYTES, 0, "a body has whole ticks");
    let tick = |tick: &[u8]| {
        assert_eq!(tick[..8], TICK_HEADER, "a tick and nothing else");
        let seq = u64::from_le_bytes(tick[8..16].try_into().unwrap());
        (u32::from_le_bytes(tick[88..].try_into().unwrap()), seq)
    };
    body.chunks(TICK_BYTES).map(tick).collect()
}

/// Returns the next MESSAGE of a subscription: its head and its ticks.
fn next_ticks(client: &mut StompClient, subscription: &str) -> (String, Vec<(u32, u64)>) {
    loop {
        let (head, body) = client.receive_binary();
        if header(&head, "subscription") == Some(subscription) {
            assert_eq!(header(&head, "content-type"), Some(SBE), "{head}");
            let ticks = ticks(&body);
            return (head, ticks);
        }
    }
}

#[test]
fn ticks_of_a_turn_share_a_frame_over_every_transport() {
    // No throttling, so that the newest ticks are sent in one turn over WebSocket too.
    let (service, data) = start("shared-frames", &["feed.rate=2000", "broker.maxRatePerConnection=0"]);
    let http = address(&service, "http");
    let wires: [Box<dyn StompStream>; 3] = [
        plain(address(&service, "stomp")),
        tls(address(&service, "stomp+tls"), &data),
        Box::new(WebSocket::open(plain(http), http, "").0),
    ];
    for wire in wires {
        let mut client = StompClient::new(wire);
        client.connect();
        client.send_message(&format!("SUBSCRIBE|id:each|destination:/topic/tick.*|accept:{SBE}||"));
        let mut seen = BTreeSet::new();
        while seen.len() < INSTRUMENTS {
            let (head, ticks) = next_ticks(&mut client, "each");
            let [(security, _)] = ticks[..] else { panic!("{} ticks in one frame", ticks.len()) };
            assert_eq!(header(&head, "destination"), Some(format!("/topic/tick.{security}").as_str()));
            seen.insert(security);
        }
        client.send_message(&format!(
            "SUBSCRIBE|id:all|destination:/topic/tick.*|accept:{SBE}|batch:true|last-value:true||"
        ));
        // The newest tick of each instrument is sent when the subscription begins.
        let (head, ticks) = next_ticks(&mut client, "all");
        assert_eq!(header(&head, "destination"), Some("/topic/tick.*"), "{head}");
        let securities: BTreeSet<u32> = ticks.iter().map(|(security, _)| *security).collect();
        assert!(securities.is_superset(&seen), "{ticks:?} has not all of {seen:?}");
        // Alone it goes on, and the ticks of each instrument keep their order.
        client.send_message("UNSUBSCRIBE|id:each||");
        let mut newest: BTreeMap<u32, u64> = BTreeMap::from_iter(ticks);
        for _ in 0..50 {
            let (_, ticks) = next_ticks(&mut client, "all");
            assert!(!ticks.is_empty());
            for (security, seq) in ticks {
                assert!(newest.insert(security, seq).is_none_or(|before| before < seq), "{security} {seq}");
            }
        }
        client.send_message("DISCONNECT|receipt:bye||");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
