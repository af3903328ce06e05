//! A venue that hangs, floods or dies beside a healthy one in the same process and on the same
//! gateway: orders of the healthy venue go on.
//!
//! In the short form every order must be acknowledged. `make venue-isolation` runs the long form,
//! which measures: orders at planned times, from the planned time to the venue's acknowledgement at
//! the client, with a quiet part before and after each disturbance.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pitlane_testkit::fix_client::{FixClient, plain};
use pitlane_testkit::service::{ServiceProcess, folder};

use crate::hostile_venue::{Conduct, HostileVenue};
use crate::market::{VenueAddress, await_connected, fix, free_port, is_connected, start};
use crate::venue;

/// Longest wait for acknowledgements. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Interval of the client's Heartbeats while it waits.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Amount of load.
struct OrderLoad {
    /// Orders per second to each venue.
    rate: u64,
    part: Duration,
    rounds: usize,
}

const SHORT: OrderLoad = OrderLoad { rate: 200, part: Duration::from_millis(300), rounds: 1 };
/// All orders stay open: 81,000 of them, where a session may have 100,000.
const FULL: OrderLoad = OrderLoad { rate: 500, part: Duration::from_secs(3), rounds: 3 };

/// A client whose acknowledgements are noted when they arrive.
struct LoadClient {
    client: FixClient,
    acknowledged: Receiver<(String, Instant)>,
    sent: u64,
}

impl LoadClient {
    fn log_on(service: &ServiceProcess) -> LoadClient {
        let stream = plain(fix(service));
        let reader = stream.try_clone().expect("a socket");
        let mut client = FixClient::new("KEEP1");
        client.take(Box::new(stream));
        client.log_on(false);
        let (sender, acknowledged) = channel();
        thread::spawn(move || {
            let (mut reader, mut buffer, mut input) = (reader, vec![0; 65_536], Vec::new());
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => input.extend_from_slice(&buffer[..count]),
                    // Nothing was sent for a while.
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                    Err(_) => return,
                }
                let now = Instant::now();
                let end = input.iter().rposition(|byte| *byte == 1).map_or(0, |at| at + 1);
                let text: Vec<u8> = input.drain(..end).collect();
                for message in String::from_utf8_lossy(&text).split("\u{1}10=") {
                    // The first report says that the service has the order, the second that the
                    // venue has it.
                    let id = message.split('\u{1}').find_map(|field| field.strip_prefix("11="));
                    if let Some(id) = id.filter(|_| message.contains("\u{1}150=0\u{1}"))
                        && sender.send((id.to_string(), now)).is_err()
                    {
                        return;
                    }
                }
            }
        });
        LoadClient { client, acknowledged, sent: 0 }
    }

    /// Waits until the venue is connected, and stays logged on meanwhile. Only a failing test waits
    /// for long.
    fn await_connected(&mut self, service: &ServiceProcess, name: &str) {
        let mut heartbeat_at = Instant::now();
        while !is_connected(service, name) {
            if Instant::now() >= heartbeat_at {
                self.client.send_message("0", "");
                heartbeat_at = Instant::now() + HEARTBEAT;
            }
            thread::yield_now();
        }
    }

    /// Sends orders to both venues at planned times, and returns how long those to the healthy one
    /// took from then to their acknowledgement.
    fn trade(&mut self, load: &OrderLoad) -> Histogram<u64> {
        let gap = Duration::from_nanos(1_000_000_000 / load.rate);
        let count = u32::try_from(load.part.as_nanos() / gap.as_nanos()).expect("it is small");
        let begin = Instant::now() + gap;
        let mut planned = BTreeMap::new();
        for nth in 0..count {
            let at = begin + gap * nth;
            thread::sleep(at.saturating_duration_since(Instant::now()));
            self.sent += 1;
            // The disturbed venue comes first, so that its work is in the way.
            self.client.order(&format!("b{}", self.sent), "BETA", 1, 1, "150");
            self.client.order(&format!("a{}", self.sent), "ALPHA", 1, 1, "150");
            planned.insert(format!("a{}", self.sent), at);
        }
        let mut took = Histogram::new_with_bounds(1, 120_000_000_000, 3).expect("bounds in order");
        while !planned.is_empty() {
            let (id, at) = self.acknowledged.recv_timeout(PATIENCE).expect("every order is acknowledged");
            if let Some(planned) = planned.remove(&id) {
                let ns = at.saturating_duration_since(planned).as_nanos();
                took.saturating_record(u64::try_from(ns).unwrap_or(u64::MAX));
            }
        }
        took
    }
}

#[test]
fn a_venue_that_hangs_floods_or_dies_does_not_stop_another() {
    let full = std::env::var("PITLANE_ISOLATION").is_ok_and(|part| part == "full");
    let load = if full { FULL } else { SHORT };
    let data = folder("venue-isolation");
    let port = free_port();
    let _alpha = venue::start(port, "ALPHA", &data.join("venue-store"));
    let beta = HostileVenue::start("BETA");
    let venues = [
        VenueAddress { name: "ALPHA", port, more: "" },
        VenueAddress { name: "BETA", port: beta.port, more: "ResetOnLogon = \"Y\"\nstatus_request = false" },
    ];
    let service = start(&data, &venues, &["topology.gateways=1"]);
    await_connected(&service, "ALPHA", true);
    let mut client = LoadClient::log_on(&service);
    for conduct in [Conduct::Hang, Conduct::Flood, Conduct::Die] {
        let (mut quiet, mut disturbed) = (Vec::new(), Vec::new());
        for _ in 0..load.rounds {
            client.await_connected(&service, "BETA");
            quiet.push(client.trade(&load));
            let acts = beta.begin(conduct);
            disturbed.push(client.trade(&load));
            beta.await_acts(acts);
            beta.begin(Conduct::Answer);
            client.await_connected(&service, "BETA");
            quiet.push(client.trade(&load));
        }
        if full {
            show(&format!("quiet, before and after: {conduct:?}"), &quiet);
            show(&format!("the other venue: {conduct:?}"), &disturbed);
        }
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// Prints the percentiles of several parts together.
fn show(name: &str, parts: &[Histogram<u64>]) {
    let mut all = parts[0].clone();
    parts[1..].iter().for_each(|part| all.add(part).expect("the same bounds"));
    let us = |quantile: f64| all.value_at_quantile(quantile) / 1_000;
    println!(
        "{name:40} {:6} orders, µs: p50 {:6} p90 {:6} p99 {:6} p99.9 {:6} max {:6}",
        all.len(),
        us(0.5),
        us(0.9),
        us(0.99),
        us(0.999),
        all.max() / 1_000
    );
}
