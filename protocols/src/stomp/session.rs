//! The state of one client: from its greeting to its last frame. Knows no socket and no clock; which topics exist and who else
//! wants them is the broker's business.
//!
//! ```text
//!             CONNECT                  verified
//! Greeting ────────────► Asking ──────────────────► Connected
//!    │    └──── no login is asked for ───────────────►  │
//!    │ 10 s, anything else   │ refused                   │ DISCONNECT, a mistake, silence, slowness
//!    └───────────────────────┴──────────► Ending ◄───────┘
//! ```
//!
//! The last frame of an ending session is ERROR or RECEIPT; nothing is read or said after it. When it has been taken, the
//! connection is closed gently; when that takes too long, at once.

mod delivery;
mod frames;

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::access::{Passcode, StompAccess};
use super::close_reason::StompCloseReason;
use super::encode;
use super::frame::{Escaping, StompVersion};
use super::heartbeat::Heartbeat;
use super::outbox::{StompOutbox, Transmit};
use super::pattern::Pattern;
use super::settings::StompLimits;
use super::slots::SLOT_BYTES_MAX;
use super::subscription::{QueuedMessage, Subscription};
use super::throttle::ConnectionPace;
use super::transaction::StompTransactions;

/// From DISCONNECT to the end, whether or not its receipt was taken.
pub const GOODBYE_NS_MAX: u64 = 2 * NS_PER_S;
/// From an ERROR to the end: a client that reads slowly still gets it.
pub const ERROR_NS_MAX: u64 = 10 * NS_PER_S;
/// A stuck client does not read; it has this long to begin.
pub const STUCK_GOODBYE_NS_MAX: u64 = NS_PER_S;

/// What lies beneath; market data is throttled over WebSocket only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    WebSocket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StompState {
    AwaitingConnect,
    VerifyingLogin,
    Connected,
    Closing(StompCloseReason),
}

/// How a connection is to be closed, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StompClose {
    /// Everything was taken: say goodbye, stop writing, read and discard for at most 1 s.
    Graceful(StompCloseReason),
    /// The peer did not take it in time.
    Immediate(StompCloseReason),
}

/// What the broker must do for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionAction {
    Login { login: Option<String>, passcode: Option<Passcode>, host: Option<String> },
    Subscribe { place: u16, last_value: bool },
    Unsubscribe { place: u16, pattern: Pattern },
    Send { name: String, body: Vec<u8> },
}

/// What a session has done, for those who look after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StompCounters {
    /// MESSAGE frames said.
    pub messages: u64,
    /// Market data events replaced by newer ones before they went out.
    pub conflated: u64,
    /// Frames heard.
    pub frames: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

/// How full a session's buffers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferUsage {
    pub out_bytes: usize,
    pub slots: usize,
    pub backlog: usize,
    pub backlog_bytes: usize,
    pub subscriptions: usize,
}

#[derive(Debug)]
pub struct StompSession {
    number: u64,
    limits: StompLimits,
    state: StompState,
    version: Option<StompVersion>,
    access: StompAccess,
    /// When this state ends by itself.
    until: Timestamp,
    outbox: StompOutbox,
    heartbeat: Heartbeat,
    heard: Timestamp,
    /// When the connection last took something.
    said: Timestamp,
    /// When what waits began to wait, or something of it was taken.
    moved: Timestamp,
    /// Asked for by the frame in hand; by CONNECT, until it is answered.
    owed: Option<String>,
    /// The frame in hand is a DISCONNECT.
    is_leaving: bool,
    /// By place; a place is used again after UNSUBSCRIBE.
    subscriptions: Vec<Option<Box<Subscription>>>,
    free: Vec<u16>,
    by_id: BTreeMap<String, u16>,
    transactions: StompTransactions,
    /// Number of the last message.
    messages: u64,
    /// Turns given out in the lines below.
    turns: u64,
    /// Subscriptions with messages that wait and could go, by the turn of the first.
    backlog_line: BTreeSet<(u64, u16)>,
    /// The same for market data.
    slots_line: BTreeSet<(u64, u16)>,
    backlog: usize,
    backlog_bytes: usize,
    slots: usize,
    /// Time between two market data events; None: no throttling.
    interval: Option<u64>,
    pace: ConnectionPace,
    counters: StompCounters,
    /// Ended to free its memory: nothing more is said, not even why.
    is_shed: bool,
}

impl StompSession {
    pub fn new(now: Timestamp, number: u64, limits: StompLimits, interval: Option<u64>) -> StompSession {
        StompSession {
            number,
            limits,
            state: StompState::AwaitingConnect,
            version: None,
            access: StompAccess::default(),
            until: now.plus(limits.connect_ns_max),
            outbox: StompOutbox::default(),
            heartbeat: Heartbeat::default(),
            heard: now,
            said: now,
            moved: now,
            owed: None,
            is_leaving: false,
            subscriptions: Vec::new(),
            free: Vec::new(),
            by_id: BTreeMap::new(),
            transactions: StompTransactions::default(),
            messages: 0,
            turns: 0,
            backlog_line: BTreeSet::new(),
            slots_line: BTreeSet::new(),
            backlog: 0,
            backlog_bytes: 0,
            slots: 0,
            interval,
            pace: ConnectionPace::default(),
            counters: StompCounters::default(),
            is_shed: false,
        }
    }

    pub fn state(&self) -> StompState {
        self.state
    }

    /// Connected, and nothing of it waits for a time that a message could bring nearer.
    pub fn is_steady(&self) -> bool {
        self.state == StompState::Connected && self.interval.is_none()
    }

    /// Known once connected.
    pub fn version(&self) -> Option<StompVersion> {
        self.version.filter(|_| self.state == StompState::Connected)
    }

    pub fn counters(&self) -> StompCounters {
        self.counters
    }

    pub fn fill(&self) -> BufferUsage {
        BufferUsage {
            out_bytes: self.outbox.pending(),
            slots: self.slots,
            backlog: self.backlog,
            backlog_bytes: self.backlog_bytes,
            subscriptions: self.subscriptions.len() - self.free.len(),
        }
    }

    /// Memory for what waits.
    pub fn held_bytes(&self) -> usize {
        self.outbox.capacity() + self.queued_bytes()
    }

    /// What waits, without memory that is only kept ready.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.pending() + self.queued_bytes()
    }

    fn queued_bytes(&self) -> usize {
        self.backlog_bytes + self.backlog * size_of::<QueuedMessage>() + self.slots * SLOT_BYTES_MAX
    }

    /// Since when the connection has taken nothing, if something waits for it.
    pub fn moved(&self) -> Timestamp {
        self.moved
    }

    /// Gives back memory that is only kept ready.
    pub fn shrink(&mut self) {
        self.outbox.shrink();
    }

    /// Ends the session at once and frees what it holds. Its reader does not read, so there is no last word.
    pub fn shed(&mut self, now: Timestamp) {
        self.end(now, StompCloseReason::SlowConsumer);
        self.outbox = StompOutbox::default();
        self.is_shed = true;
    }

    /// Octets have come: a sign of life, whatever they are.
    pub fn handle_life(&mut self, now: Timestamp, bytes: usize) {
        self.heard = now;
        self.counters.bytes_in += bytes as u64;
    }

    /// Whether the next frame may be read. Market data never fills the outbox so far, only receipts nobody takes do.
    pub fn wants_bytes(&self) -> bool {
        self.state != StompState::VerifyingLogin
            && self.outbox.pending() < self.limits.mark_bytes.saturating_mul(2)
    }

    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What can be written now.
    pub fn transmit(&self) -> Transmit<'_> {
        self.outbox.transmit(self.limits.turn_bytes_max, self.limits.turn_frames_max)
    }

    /// The connection has taken so many octets.
    pub fn handle_transmitted(&mut self, now: Timestamp, count: usize) {
        if count == 0 || self.is_shed {
            return;
        }
        let was_deaf = !self.wants_bytes();
        self.outbox.take(count);
        if was_deaf {
            // Its silence was ours.
            self.heard = now;
        }
        (self.said, self.moved) = (now, now);
        self.counters.bytes_out += count as u64;
    }

    /// Whether and how the connection must be closed now.
    pub fn poll_close(&self, now: Timestamp) -> Option<StompClose> {
        let StompState::Closing(cause) = self.state else { return None };
        if self.is_shed {
            return Some(StompClose::Immediate(cause));
        }
        if self.outbox.is_empty() {
            return Some(StompClose::Graceful(cause));
        }
        (now >= self.until).then_some(StompClose::Immediate(cause))
    }

    /// The next instant at which time alone changes something.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let stuck = (!self.outbox.is_empty()).then(|| self.moved.plus(self.limits.stuck_ns_max));
        match self.state {
            StompState::AwaitingConnect => Some(self.until),
            StompState::VerifyingLogin => stuck,
            StompState::Closing(_) => Some(self.until),
            StompState::Connected => {
                let beat = self.heartbeat.send_by(self.said).filter(|_| self.outbox.is_empty());
                let silence = self.heartbeat.hear_by(self.heard).filter(|_| self.wants_bytes());
                [stuck, beat, silence, self.pump_at()].into_iter().flatten().min()
            }
        }
    }

    /// Time has passed. Market data whose turn has come is the broker's to pump.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        match self.state {
            StompState::AwaitingConnect if now >= self.until => {
                self.fail(now, StompCloseReason::ConnectTimeout, None)
            }
            StompState::Connected => {
                if self.wants_bytes() && self.heartbeat.hear_by(self.heard).is_some_and(|by| now >= by) {
                    return self.fail(now, StompCloseReason::Silence, None);
                }
                if !self.outbox.is_empty() && now >= self.moved.plus(self.limits.stuck_ns_max) {
                    return self.fail(now, StompCloseReason::Stuck, None);
                }
                if self.outbox.is_empty() && self.heartbeat.send_by(self.said).is_some_and(|by| now >= by) {
                    self.say(now, |out| out.push(b'\n'));
                }
            }
            StompState::AwaitingConnect | StompState::VerifyingLogin | StompState::Closing(_) => {}
        }
    }

    /// The caller has looked at the login.
    pub fn handle_login_result(&mut self, now: Timestamp, server: &str, access: Option<StompAccess>) {
        if self.state != StompState::VerifyingLogin {
            return;
        }
        match access {
            Some(access) => {
                self.welcome(now, server, access);
                self.conclude(now);
            }
            None => {
                let receipt = self.owed.take();
                self.fail(now, StompCloseReason::LoginRefused, receipt);
            }
        }
    }

    fn welcome(&mut self, now: Timestamp, server: &str, access: StompAccess) {
        let version = self.version.expect("it was agreed on before anybody was asked");
        (self.state, self.access) = (StompState::Connected, access);
        // The beats of both sides count from here.
        (self.heard, self.said) = (now, now);
        let number = self.number;
        self.say(now, |out| encode::connected(out, version, server, number));
    }

    /// Ends the session with an ERROR, which is its last frame.
    pub fn fail(&mut self, now: Timestamp, cause: StompCloseReason, receipt: Option<String>) {
        if matches!(self.state, StompState::Closing(_)) {
            return;
        }
        let escaping = self.escaping();
        let versions = cause == StompCloseReason::NoCommonVersion;
        self.say(now, |out| encode::error(out, cause.text(), receipt.as_deref(), versions, escaping));
        let grace = if cause == StompCloseReason::Stuck { STUCK_GOODBYE_NS_MAX } else { ERROR_NS_MAX };
        self.end(now.plus(grace), cause);
    }

    fn end(&mut self, until: Timestamp, cause: StompCloseReason) {
        (self.state, self.until) = (StompState::Closing(cause), until);
        // Nothing of this will be said any more. The broker forgets the patterns, which it asks for by `patterns`.
        self.transactions = StompTransactions::default();
        self.backlog_line.clear();
        self.slots_line.clear();
        (self.backlog, self.backlog_bytes, self.slots) = (0, 0, 0);
        for subscription in self.subscriptions.iter_mut().flatten() {
            subscription.backlog = Default::default();
            subscription.slots = Default::default();
        }
    }

    /// What a subscription asked for.
    pub fn pattern(&self, place: u16) -> Option<&Pattern> {
        Some(&self.subscriptions.get(place as usize)?.as_deref()?.wanted.pattern)
    }

    /// Takes all subscriptions out, for a session that has ended.
    pub fn take_patterns(&mut self) -> impl Iterator<Item = (u16, Pattern)> {
        self.by_id.clear();
        self.free.clear();
        let all = std::mem::take(&mut self.subscriptions).into_iter().enumerate();
        all.filter_map(|(place, subscription)| Some((place as u16, subscription?.wanted.pattern)))
    }

    fn receipt(&mut self, now: Timestamp, id: &str) {
        let escaping = self.escaping();
        self.say(now, |out| encode::receipt(out, id, escaping));
    }

    fn say(&mut self, now: Timestamp, write: impl FnOnce(&mut Vec<u8>)) {
        self.begins_to_wait(now);
        self.outbox.frame(write);
    }

    fn begins_to_wait(&mut self, now: Timestamp) {
        if self.outbox.is_empty() {
            self.moved = now;
        }
    }

    fn escaping(&self) -> Escaping {
        Escaping::of(self.version)
    }

    fn subscription(&mut self, place: u16) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(place as usize)?.as_deref_mut()
    }
}
