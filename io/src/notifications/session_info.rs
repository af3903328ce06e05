//! One session as `/rest/ext/session` shows it.

use std::net::SocketAddr;
use std::sync::Arc;

use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::session::VenueCounts;
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters, StompState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Stomp,
    WebSocket,
    Fix,
    /// A venue that we are connected to.
    Venue,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Stomp => "STOMP",
            Kind::WebSocket => "WEBSOCKET",
            Kind::Fix => "FIX",
            Kind::Venue => "VENUE",
        }
    }

    /// Returns the prefix of the ids of its sessions.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::Stomp => "stomp",
            Kind::WebSocket => "ws",
            Kind::Fix => "fix",
            Kind::Venue => "venue",
        }
    }
}

/// A session. Its id is `<kind>-<thread>-<number>`; a thread uses a number only once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub kind: Kind,
    pub number: u64,
    /// The login, or the names of a FIX session.
    pub name: Option<Arc<str>>,
    pub peer: Option<SocketAddr>,
    pub since: Timestamp,
    pub state: &'static str,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Frames or messages received, and sent.
    pub messages_in: u64,
    pub messages_out: u64,
    /// Bytes that wait to be written to the socket.
    pub queue_bytes: u64,
    /// STOMP only.
    pub stomp: Option<StompRow>,
    /// FIX only: the next sequence numbers.
    pub next_in: Option<u64>,
    pub next_out: Option<u64>,
    /// Venues only.
    pub venue: Option<VenueCounts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StompRow {
    /// Market data events replaced by newer ones before they were sent.
    pub conflated: u64,
    /// Market data topics that wait.
    pub slots: u64,
    /// Other messages that wait, and their size in bytes.
    pub backlog: u64,
    pub backlog_bytes: u64,
    pub subscriptions: u64,
}

impl SessionInfo {
    /// Creates the row of a broker's session. Its thread adds name and address.
    pub fn of_stomp(
        kind: Kind,
        number: u64,
        since: Timestamp,
        look: (StompState, StompCounters, BufferUsage),
    ) -> SessionInfo {
        let (state, counters, fill) = look;
        SessionInfo {
            kind,
            number,
            name: None,
            peer: None,
            since,
            state: match state {
                StompState::AwaitingConnect => "GREETING",
                StompState::VerifyingLogin => "LOGGING_ON",
                StompState::Connected => "CONNECTED",
                StompState::Closing(_) => "ENDING",
            },
            bytes_in: counters.bytes_in,
            bytes_out: counters.bytes_out,
            messages_in: counters.frames,
            messages_out: counters.messages,
            queue_bytes: fill.out_bytes as u64,
            stomp: Some(StompRow {
                conflated: counters.conflated,
                slots: fill.slots as u64,
                backlog: fill.backlog as u64,
                backlog_bytes: fill.backlog_bytes as u64,
                subscriptions: fill.subscriptions as u64,
            }),
            next_in: None,
            next_out: None,
            venue: None,
        }
    }
}
