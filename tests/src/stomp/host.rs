//! The other side of a dialogue: a broker alone, or one behind the sockets of the service. The
//! events are the same for all; each host delivers them in its own way.

use std::collections::VecDeque;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::payload::system::{ExternalSessionState, LogLevel};
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters, Transport};
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_protocols::stomp::throttle::Throttle;

/// What a dialogue requires before any client connects.
#[derive(Clone, Debug)]
pub struct HostPlan {
    pub settings: BrokerSettings,
    pub transport: Transport,
    /// All users that log in, and the verdict on each.
    pub users: Vec<DialogueUser>,
    /// Whether a client stops reading.
    pub stalls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialogueUser {
    pub login: String,
    pub passcode: String,
    pub verdict: LoginVerdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginVerdict {
    Refused,
    Reads,
    Sends,
    /// Reads, and sees the orders of this strategy only.
    Only(String),
}

/// Something that clients are informed about.
#[derive(Clone, Debug)]
pub enum Publication {
    Event(ShardId, Event),
    Log {
        level: LogLevel,
        message: String,
        fields: &'static [(&'static str, &'static str)],
    },
    Link {
        name: String,
        link: ExternalSessionState,
    },
    Rates(Throttle),
    /// An administrator ends the session of this client.
    Ended(usize),
}

/// How a connection ended, as far as the client can see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    pub at_once: Option<bool>,
    pub code: Option<u16>,
}

/// What a client has received and the dialogue has not checked yet.
#[derive(Debug, Default)]
pub struct ReceivedFrames {
    pub frames: VecDeque<String>,
    pub end: Option<ConnectionEnd>,
}

/// A host of clients, which are numbered in the order in which they connect. When a call returns,
/// everything that can happen at that time has happened.
pub trait StompHost {
    fn connect(&mut self, now: Timestamp) -> Result<(), String>;

    fn send(&mut self, now: Timestamp, client: usize, bytes: &[u8]);

    fn publish(&mut self, now: Timestamp, publications: &[Publication]);

    /// Advances the time, and does what is due.
    fn wait(&mut self, from: Timestamp, to: Timestamp);

    /// Lets the client stop reading: from now on its messages stay in its session.
    fn stall(&mut self, now: Timestamp, client: usize) -> Result<(), String>;

    /// Lets the client read this many bytes, or everything from now on.
    fn read(&mut self, now: Timestamp, client: usize, bytes_max: Option<usize>);

    fn hang_up(&mut self, now: Timestamp, client: usize);

    fn received(&mut self, client: usize) -> &mut ReceivedFrames;

    /// Returns the end of a client that may have stopped reading.
    fn end(&mut self, now: Timestamp, client: usize) -> Option<ConnectionEnd>;

    /// Returns a login that is not decided yet: user, passcode, host. `None` where it cannot be
    /// seen.
    fn login(&mut self) -> Option<String>;

    /// Decides the login.
    fn decide(&mut self, now: Timestamp, verdict: &LoginVerdict) -> Result<(), String>;

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)>;
}
