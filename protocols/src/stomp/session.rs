//! State of one client, from CONNECT to its last frame. It knows no socket and no clock; the broker
//! knows the topics and the other subscribers.
//!
//! ```text
//!                    CONNECT                     verified
//! AwaitingConnect ────────────► VerifyingLogin ────────────► Connected
//!    │        └─────────── no login is required ────────────►  │
//!    │ 10 s, anything else            │ refused                │ DISCONNECT, error, silence, slow reader
//!    └────────────────────────────────┴──────► Closing ◄───────┘
//! ```
//!
//! The last frame of a closing session is ERROR or RECEIPT; nothing is read or sent after it. When
//! it has been taken, the connection is closed gracefully; when that takes too long, at once.

mod delivery;
mod frames;

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::index::index_u16;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::access::{Passcode, StompAccess};
use super::body_format::BodyFormat;
use super::close_reason::StompCloseReason;
use super::encode;
use super::frame::{Escaping, StompVersion};
use super::heartbeat::Heartbeat;
use super::outbox::{StompOutbox, Transmit};
use super::pattern::Pattern;
use super::settings::StompLimits;
use super::slot_queue::{RecentDeliveries, SlotQueue};
use super::slots::SLOT_BYTES_MAX;
use super::subscription::{QueuedMessage, Subscription};
use super::throttle::ConnectionPace;
use super::transaction::StompTransactions;

/// Time from DISCONNECT to the end, whether or not its receipt was taken.
pub const DISCONNECT_NS_MAX: u64 = 2 * NS_PER_S;
/// Time from an ERROR to the end, so that a slow reader still gets it.
pub const ERROR_NS_MAX: u64 = 10 * NS_PER_S;
/// Time for a stalled client to start reading after the ERROR.
pub const STALLED_ERROR_NS_MAX: u64 = NS_PER_S;

/// Transport of a connection. Market data is throttled over WebSocket only.
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

/// How a connection must be closed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StompClose {
    /// Everything was taken: close the stream, stop writing, and read and discard for at most 1 s.
    Graceful(StompCloseReason),
    /// The peer did not take the output in time.
    Immediate(StompCloseReason),
}

/// A task for the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionAction {
    Login { login: Option<String>, passcode: Option<Passcode>, host: Option<String> },
    Subscribe { place: u16, last_value: bool },
    Unsubscribe { place: u16, pattern: Pattern },
    Send { name: String, body: Vec<u8> },
}

/// Why market data is offered to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketDataOffer {
    /// A new subscription gets the newest message.
    Image,
    Event,
    /// An event of an instrument below the minimum rate.
    RareEvent,
}

/// Counters of a session, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StompCounters {
    /// Messages sent; several may share a frame.
    pub messages: u64,
    /// Market data events replaced by newer ones before they were sent.
    pub conflated: u64,
    /// Frames received.
    pub frames: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

/// Usage of a session's buffers.
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
    /// End of this state by timeout.
    until: Timestamp,
    outbox: StompOutbox,
    heartbeat: Heartbeat,
    received_at: Timestamp,
    /// Time at which the connection last took octets.
    sent_at: Timestamp,
    /// Time at which the output began to wait or octets of it were taken.
    progress_at: Timestamp,
    /// Receipt requested by the current frame; by CONNECT until it is answered.
    receipt_owed: Option<String>,
    /// Whether the current frame is a DISCONNECT.
    is_disconnecting: bool,
    /// Subscriptions by place; a place is reused after UNSUBSCRIBE.
    subscriptions: Vec<Option<Box<Subscription>>>,
    free: Vec<u16>,
    by_id: BTreeMap<String, u16>,
    transactions: StompTransactions,
    /// Number of the last message.
    messages: u64,
    /// Number of turns given in the queues below.
    turns: u64,
    /// Subscriptions with messages that could be sent, by the turn of the first.
    backlog_queue: BTreeSet<(u64, u16)>,
    /// The same for market data.
    slots_queue: SlotQueue,
    /// Last deliveries of a throttled session, which decide about the next ones.
    deliveries: RecentDeliveries,
    /// Subscriptions that hold topics until the end of their window.
    windows: BTreeSet<(Timestamp, u16)>,
    backlog: usize,
    backlog_bytes: usize,
    slots: usize,
    /// Nanoseconds between two market data events; `None` means no throttling.
    interval: Option<u64>,
    pace: ConnectionPace,
    counters: StompCounters,
    /// Whether the session was ended to free its memory, without an ERROR.
    is_dropped: bool,
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
            received_at: now,
            sent_at: now,
            progress_at: now,
            receipt_owed: None,
            is_disconnecting: false,
            subscriptions: Vec::new(),
            free: Vec::new(),
            by_id: BTreeMap::new(),
            transactions: StompTransactions::default(),
            messages: 0,
            turns: 0,
            backlog_queue: BTreeSet::new(),
            slots_queue: SlotQueue::default(),
            deliveries: RecentDeliveries::default(),
            windows: BTreeSet::new(),
            backlog: 0,
            backlog_bytes: 0,
            slots: 0,
            interval,
            pace: ConnectionPace::default(),
            counters: StompCounters::default(),
            is_dropped: false,
        }
    }

    pub fn state(&self) -> StompState {
        self.state
    }

    /// Returns whether the session is connected and no deadline depends on further messages.
    pub fn is_unthrottled(&self) -> bool {
        self.state == StompState::Connected && self.interval.is_none() && self.windows.is_empty()
    }

    /// Returns the version of a connected session.
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

    /// Returns the memory for waiting output.
    pub fn held_bytes(&self) -> usize {
        self.outbox.capacity() + self.queued_bytes() + self.deliveries.held_bytes()
    }

    /// Returns the octets that wait, without spare memory.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.pending() + self.queued_bytes()
    }

    fn queued_bytes(&self) -> usize {
        self.backlog_bytes + self.backlog * size_of::<QueuedMessage>() + self.slots * SLOT_BYTES_MAX
    }

    /// Returns since when the connection has taken nothing, if output waits.
    pub fn progress_at(&self) -> Timestamp {
        self.progress_at
    }

    /// Frees spare memory.
    pub fn shrink(&mut self) {
        self.outbox.shrink();
        self.deliveries.clear();
    }

    /// Ends the session at once and frees its output. Its client does not read, so no ERROR is
    /// sent.
    pub fn drop_output(&mut self, now: Timestamp) {
        self.end(now, StompCloseReason::SlowConsumer);
        self.outbox = StompOutbox::default();
        self.is_dropped = true;
    }

    /// Records received octets, which count as a heart-beat.
    pub fn handle_received(&mut self, now: Timestamp, bytes: usize) {
        self.received_at = now;
        self.counters.bytes_in += bytes as u64;
    }

    /// Returns whether the next frame may be read. Market data never fills the outbox this far;
    /// only unread receipts do.
    pub fn wants_bytes(&self) -> bool {
        self.state != StompState::VerifyingLogin
            && self.outbox.pending() < self.limits.mark_bytes.saturating_mul(2)
    }

    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Returns the output that can be written now.
    pub fn transmit(&mut self) -> Transmit<'_> {
        self.outbox.transmit(self.limits.turn_bytes_max, self.limits.turn_frames_max)
    }

    /// Records how many octets the connection has taken.
    pub fn handle_transmitted(&mut self, now: Timestamp, count: usize) {
        if count == 0 || self.is_dropped {
            return;
        }
        let was_deaf = !self.wants_bytes();
        self.outbox.take(count);
        if was_deaf {
            // The client was silent because we did not read.
            self.received_at = now;
        }
        (self.sent_at, self.progress_at) = (now, now);
        self.counters.bytes_out += count as u64;
    }

    /// Returns whether and how the connection must be closed now.
    pub fn poll_close(&self, now: Timestamp) -> Option<StompClose> {
        let StompState::Closing(cause) = self.state else { return None };
        if self.is_dropped {
            return Some(StompClose::Immediate(cause));
        }
        if self.outbox.is_empty() {
            return Some(StompClose::Graceful(cause));
        }
        (now >= self.until).then_some(StompClose::Immediate(cause))
    }

    /// Returns the next deadline.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let stuck = (!self.outbox.is_empty()).then(|| self.progress_at.plus(self.limits.stuck_ns_max));
        match self.state {
            StompState::AwaitingConnect => Some(self.until),
            StompState::VerifyingLogin => stuck,
            StompState::Closing(_) => Some(self.until),
            StompState::Connected => {
                let beat = self.heartbeat.send_by(self.sent_at).filter(|_| self.outbox.is_empty());
                let silence = self.heartbeat.receive_by(self.received_at).filter(|_| self.wants_bytes());
                [stuck, beat, silence, self.next_send_at()].into_iter().flatten().min()
            }
        }
    }

    /// Handles deadlines. The broker sends market data whose turn has come.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        match self.state {
            StompState::AwaitingConnect if now >= self.until => {
                self.fail(now, StompCloseReason::ConnectTimeout, None)
            }
            StompState::Connected => {
                if self.wants_bytes()
                    && self.heartbeat.receive_by(self.received_at).is_some_and(|by| now >= by)
                {
                    return self.fail(now, StompCloseReason::Silence, None);
                }
                if !self.outbox.is_empty() && now >= self.progress_at.plus(self.limits.stuck_ns_max) {
                    return self.fail(now, StompCloseReason::Stalled, None);
                }
                if self.outbox.is_empty() && self.heartbeat.send_by(self.sent_at).is_some_and(|by| now >= by)
                {
                    self.send_frame(now, |out| out.push(b'\n'));
                }
            }
            StompState::AwaitingConnect | StompState::VerifyingLogin | StompState::Closing(_) => {}
        }
    }

    /// Handles the result of the login check.
    pub fn handle_login_result(&mut self, now: Timestamp, server: &str, access: Option<StompAccess>) {
        if self.state != StompState::VerifyingLogin {
            return;
        }
        match access {
            Some(access) => {
                self.receipt_owed = None;
                self.send_connected(now, server, access);
            }
            None => {
                let receipt = self.receipt_owed.take();
                self.fail(now, StompCloseReason::LoginRefused, receipt);
            }
        }
    }

    fn send_connected(&mut self, now: Timestamp, server: &str, access: StompAccess) {
        let version = self.version.expect("it was agreed on before the login was requested");
        (self.state, self.access) = (StompState::Connected, access);
        // The heart-beats of both sides count from here.
        (self.received_at, self.sent_at) = (now, now);
        let number = self.number;
        self.send_frame(now, |out| encode::connected(out, version, server, number));
    }

    /// Ends the session with an ERROR, which is its last frame.
    pub fn fail(&mut self, now: Timestamp, cause: StompCloseReason, receipt: Option<String>) {
        if matches!(self.state, StompState::Closing(_)) {
            return;
        }
        let escaping = self.escaping();
        let versions = cause == StompCloseReason::NoCommonVersion;
        self.send_frame(now, |out| encode::error(out, cause.text(), receipt.as_deref(), versions, escaping));
        let grace = if cause == StompCloseReason::Stalled { STALLED_ERROR_NS_MAX } else { ERROR_NS_MAX };
        self.end(now.plus(grace), cause);
    }

    fn end(&mut self, until: Timestamp, cause: StompCloseReason) {
        (self.state, self.until) = (StompState::Closing(cause), until);
        // None of this will be sent. The broker takes the patterns with `take_patterns`.
        self.transactions = StompTransactions::default();
        self.backlog_queue.clear();
        self.slots_queue.clear();
        self.deliveries.clear();
        self.windows.clear();
        (self.backlog, self.backlog_bytes, self.slots) = (0, 0, 0);
        for subscription in self.subscriptions.iter_mut().flatten() {
            subscription.backlog = Default::default();
            subscription.slots = Default::default();
            subscription.conflation = None;
        }
    }

    /// Returns the pattern of a subscription.
    pub fn pattern(&self, place: u16) -> Option<&Pattern> {
        Some(&self.subscriptions.get(place as usize)?.as_deref()?.request.pattern)
    }

    /// Returns the encoding of a subscription's bodies.
    pub fn body_format(&self, place: u16) -> BodyFormat {
        let subscription = self.subscriptions.get(place as usize).and_then(Option::as_deref);
        subscription.map_or(BodyFormat::Json, |subscription| subscription.request.format)
    }

    /// Takes the patterns of all subscriptions of a session that has ended.
    pub fn take_patterns(&mut self) -> impl Iterator<Item = (u16, Pattern)> {
        self.by_id.clear();
        self.free.clear();
        let all = std::mem::take(&mut self.subscriptions).into_iter().enumerate();
        all.filter_map(|(place, subscription)| Some((index_u16(place), subscription?.request.pattern)))
    }

    fn receipt(&mut self, now: Timestamp, id: &str) {
        let escaping = self.escaping();
        self.send_frame(now, |out| encode::receipt(out, id, escaping));
    }

    fn send_frame(&mut self, now: Timestamp, write: impl FnOnce(&mut Vec<u8>)) {
        self.note_output_start(now);
        self.outbox.frame(write);
    }

    fn note_output_start(&mut self, now: Timestamp) {
        if self.outbox.is_empty() {
            self.progress_at = now;
        }
    }

    fn escaping(&self) -> Escaping {
        Escaping::of(self.version)
    }

    fn subscription(&mut self, place: u16) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(place as usize)?.as_deref_mut()
    }
}

#[cfg(test)]
mod tests;
