//! Whom a dialogue is played with: a broker alone, or one behind the sockets of the service. What happens is the same for all;
//! how it gets there is each one's own.

use std::collections::VecDeque;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::payload::system::{ExternalSessionState, LogLevel};
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters, Transport};
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_protocols::stomp::throttle::Throttle;

/// What a dialogue asks for before anybody connects.
#[derive(Clone, Debug)]
pub struct Plan {
    pub settings: BrokerSettings,
    pub transport: Transport,
    /// Everybody who logs in, and what becomes of it.
    pub people: Vec<Person>,
    /// Whether a client stops reading.
    pub stalls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub login: String,
    pub passcode: String,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Refused,
    Reads,
    Sends,
    /// Reads, and sees the orders of this strategy only.
    Only(String),
}

/// Something happens that clients are told of.
#[derive(Clone, Debug)]
pub enum News {
    Said(ShardId, Event),
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
pub struct End {
    pub at_once: Option<bool>,
    pub code: Option<u16>,
}

/// What has come to a client and was not looked at yet.
#[derive(Debug, Default)]
pub struct Heard {
    pub frames: VecDeque<String>,
    pub end: Option<End>,
}

/// Clients are numbered in the order in which they connect. When a call returns, everything that can happen at that time has
/// happened.
pub trait Host {
    fn connect(&mut self, now: Timestamp) -> Result<(), String>;

    fn say(&mut self, now: Timestamp, client: usize, bytes: &[u8]);

    fn happen(&mut self, now: Timestamp, news: &[News]);

    /// Time passes, and what is due is done.
    fn wait(&mut self, from: Timestamp, to: Timestamp);

    /// The client reads no more: from now on what is said to it stays in its session.
    fn stall(&mut self, now: Timestamp, client: usize) -> Result<(), String>;

    /// The client reads so many octets, or everything and goes on reading.
    fn read(&mut self, now: Timestamp, client: usize, bytes_max: Option<usize>);

    fn hang_up(&mut self, now: Timestamp, client: usize);

    fn heard(&mut self, client: usize) -> &mut Heard;

    /// The end of a client that may have stopped reading.
    fn end(&mut self, now: Timestamp, client: usize) -> Option<End>;

    /// A login that nobody has looked at: who, with which passcode, at which host. None where it cannot be seen.
    fn login(&mut self) -> Option<String>;

    /// The login is looked at now.
    fn decide(&mut self, now: Timestamp, verdict: &Verdict) -> Result<(), String>;

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)>;
}
