//! One session as `/rest/ext/session` shows it.

use std::net::SocketAddr;
use std::sync::Arc;

use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters, StompState};
use pitlane_protocols::venue::{VenueCounts, VenueHealth};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    Stomp,
    WebSocket,
    Fix,
    /// A venue that we are connected to.
    Venue,
}

impl SessionKind {
    pub fn name(self) -> &'static str {
        match self {
            SessionKind::Stomp => "STOMP",
            SessionKind::WebSocket => "WEBSOCKET",
            SessionKind::Fix => "FIX",
            SessionKind::Venue => "VENUE",
        }
    }

    /// Returns the prefix of the ids of its sessions.
    pub fn prefix(self) -> &'static str {
        match self {
            SessionKind::Stomp => "stomp",
            SessionKind::WebSocket => "ws",
            SessionKind::Fix => "fix",
            SessionKind::Venue => "venue",
        }
    }
}

/// A session. Its id is `<kind>-<thread>-<number>`; a thread uses a number only once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub kind: SessionKind,
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
    pub stomp: Option<StompUsage>,
    /// FIX only: the next sequence numbers.
    pub next_in: Option<u64>,
    pub next_out: Option<u64>,
    /// Venues only.
    pub venue: Option<VenueCounts>,
    /// Venues only.
    pub health: Option<Arc<VenueHealth>>,
}

/// The sessions of a gateway.
#[derive(Clone, Debug)]
pub struct SessionList {
    pub rows: Arc<[SessionInfo]>,
    /// STOMP sessions closed because the client did not read fast enough, since the start.
    pub closed_slow: u64,
}

impl Default for SessionList {
    fn default() -> SessionList {
        SessionList { rows: Arc::new([]), closed_slow: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StompUsage {
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
        kind: SessionKind,
        number: u64,
        since: Timestamp,
        snapshot: (StompState, StompCounters, BufferUsage),
    ) -> SessionInfo {
        let (state, counters, usage) = snapshot;
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
            queue_bytes: usage.out_bytes as u64,
            stomp: Some(StompUsage {
                conflated: counters.conflated,
                slots: usage.slots as u64,
                backlog: usage.backlog as u64,
                backlog_bytes: usage.backlog_bytes as u64,
                subscriptions: usage.subscriptions as u64,
            }),
            next_in: None,
            next_out: None,
            venue: None,
            health: None,
        }
    }
}
