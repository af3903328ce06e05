//! Metrics of the clients' sessions and of the market data that they receive.

use std::collections::BTreeMap;

use pitlane_engine::id::ExchangeId;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::notifications::{SessionInfo, SessionKind};
use pitlane_runtime::metrics::exposition::{Exposition, MetricKind, Seconds};

use crate::app_state::AppState;
use MetricKind::{Counter as C, Gauge as G};

/// States of a FIX session, as its rows name them.
const FIX_STATES: [&str; 4] = ["DISCONNECTED", "LOGGING_ON", "LOGGED_ON", "ENDING"];

/// Sums over the STOMP sessions of one transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StompTotals {
    sessions: u64,
    /// Sessions for which messages wait.
    slow: u64,
    waiting_bytes: u64,
    /// Sessions closed because they did not read, since the start.
    closed_slow: u64,
}

impl StompTotals {
    fn add(&mut self, row: &SessionInfo) {
        let backlog = row.stomp.map_or(0, |usage| usage.backlog);
        self.sessions += 1;
        self.slow += u64::from(backlog > 0);
        self.waiting_bytes += row.queue_bytes + row.stomp.map_or(0, |usage| usage.backlog_bytes);
    }
}

/// Adds the metrics of STOMP and FIX sessions, as of the last second.
pub(super) fn sessions(app: &AppState, out: &mut Exposition) {
    let (mut tcp, mut web_socket) = (StompTotals::default(), StompTotals::default());
    let mut fix = BTreeMap::<&str, u64>::new();
    let mut count = |row: &SessionInfo| match row.kind {
        SessionKind::Stomp => tcp.add(row),
        SessionKind::WebSocket => web_socket.add(row),
        SessionKind::Fix => *fix.entry(row.state).or_default() += 1,
        SessionKind::Venue => {}
    };
    let (hub, ws_broker) = (&app.notifications.hub, &app.notifications.ws_broker);
    hub.for_each_session(|_, row| count(row));
    ws_broker.for_each_session(|row| count(&row));
    tcp.closed_slow = hub.closed_slow();
    web_socket.closed_slow = ws_broker.closed_slow();
    stomp(&[("tcp", tcp), ("websocket", web_socket)], out);
    out.family("pitlane_fix_sessions", G, "FIX sessions of clients, by their state.");
    for state in FIX_STATES {
        let sessions = fix.get(state).copied().unwrap_or(0);
        out.sample(&[("state", &state.to_ascii_lowercase())], sessions);
    }
}

type StompColumn = (&'static str, MetricKind, &'static str, fn(&StompTotals) -> u64);

const STOMP: [StompColumn; 4] = [
    ("pitlane_stomp_sessions", G, "STOMP sessions, by their transport.", |totals| totals.sessions),
    (
        "pitlane_stomp_slow_consumers",
        G,
        "STOMP sessions for which messages wait because the client does not read fast enough.",
        |totals| totals.slow,
    ),
    ("pitlane_stomp_waiting_bytes", G, "Bytes that wait for STOMP clients.", |totals| totals.waiting_bytes),
    (
        "pitlane_stomp_slow_consumers_closed_total",
        C,
        "STOMP sessions closed because the client did not read fast enough.",
        |totals| totals.closed_slow,
    ),
];

fn stomp(transports: &[(&str, StompTotals)], out: &mut Exposition) {
    for (name, kind, help, value) in STOMP {
        out.family(name, kind, help);
        for (transport, totals) in transports {
            out.sample(&[("transport", transport)], value(totals));
        }
    }
}

/// Adds the age of the newest tick of each exchange that has any.
pub(super) fn market_data(app: &AppState, out: &mut Exposition) {
    let shard_client = &app.trading.shard_client;
    let (view, reference) = (shard_client.view(), shard_client.reference());
    let mut newest = BTreeMap::<ExchangeId, Timestamp>::new();
    for tick in view.ticks() {
        let Some(row) = reference.security(tick.security) else { continue };
        let at = newest.entry(reference.exchange_of(row).id).or_insert(Timestamp::ZERO);
        *at = tick.at.max(*at);
    }
    let help = "Time since the newest tick of any security of the exchange.";
    out.family("pitlane_market_data_age_seconds", G, help);
    let now = app.now();
    for row in reference.exchanges() {
        if let Some(at) = newest.get(&row.id) {
            out.sample(&[("exchange", &row.mic)], Seconds(now.since(*at)));
        }
    }
}
