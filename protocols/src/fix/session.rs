//! One FIX session: the sequence numbers of both directions, gaps, heartbeats, logon and logout,
//! and the orders of its client. A session lives as long as the service; its connections come and
//! go. It has two roles: a client connects to us ([`FixSession::new`]), or we connect to a venue
//! ([`FixSession::initiator`]). Where the comments say "client", an initiator's counterparty is the
//! venue.
//!
//! The caller gives input once and then drains all output:
//!
//! ```text
//! session.connect(now)                     after the first frame has named the session
//! session.handle_bytes(now, bytes)         takes as many bytes as there is room for
//! while let Some(request) = session.poll_command(now, desk) {
//!     request.send(desk, port, sender)     on refusal: session.handle_declined
//! }
//! session.handle_event(now, shard, event, desk)
//! write(session.poll_transmit()); session.handle_transmitted(now, count)
//! if session.poll_close().is_some() { close; session.disconnect(now) }
//! sleep until session.poll_timeout(); session.handle_timeout(now)
//! ```
//!
//! An initiator differs in orders and reports:
//!
//! ```text
//! if session.wants_connection(now) { connect; session.connect(now) }
//! session.handle_instruction(now, shard, seq, instruction)
//! while let Some(report) = session.poll_report(now) {
//!     send it to its shard                 once it is stored: session.handle_stored(token)
//! }
//! ```
//!
//! Rules: docs/fix-rules.md#acceptor.

mod buffer;
mod in_flight;
mod gap;
mod inbound;
mod initiator;
mod logon;
mod order_reports;
mod orders;
mod outbound;
mod prices;
mod resend;
mod sequence;
mod settings;
mod state;
mod timers;
mod venue;
mod venue_reports;

use std::sync::Arc;

use memchr::memmem;
use pitlane_engine::desk::Desk;
use pitlane_engine::id::IntId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use self::buffer::{InputBuffer, OutputBuffer};
use self::in_flight::InFlightRequests;
use self::initiator::Initiator;
use self::resend::Resend;
use self::sequence::SequenceLayer;
use self::timers::SessionTimers;
use super::encode::Encoder;
use super::entry::ClientRequest;
use super::fields::{Fields, read};
use super::frame::{self, FixFrameError};
use super::orders::ClientOrders;
use super::rate_limit::RateLimit;
use super::schedule::SessionSchedule;
use super::store::{MessageStore, ReportedEvent, SequenceNumbers};
use crate::decoded::Decoded;

pub use self::initiator::{InboundReport, VenueCounts};
pub use self::logon::{LoginState, LogonCredentials};
pub use self::settings::FixSessionSettings;
pub use self::state::{FixSessionState, SessionInput};
pub use self::timers::{FRAME_NS_MAX, LOGON_NS_MAX, LOGOUT_NS_MAX};

/// Bytes of a message body before logon. A Logon has about two hundred.
pub const LOGON_BYTES_MAX: usize = 4_096;

/// Bytes of the next frame that are searched for its ClOrdID, which usually follows the header.
const PREFETCH_BYTES: usize = 160;

/// Bytes of unsent output above which the session reads no message and continues no resend until
/// the client has taken some output.
pub const OUTPUT_BYTES_HIGH: usize = 256 * 1_024;

/// Bytes of unsent output above which the session disconnects the client. Reports cannot be held
/// back, but they are stored and can be resent.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisconnectReason {
    /// The client logged out.
    LoggedOut,
    /// We logged out.
    EndedByUs,
    /// The first message was not a valid Logon.
    NotLogon,
    /// The CompIDs are not those of this session.
    Identity,
    BeginString,
    /// SendingTime differs too much from the current time.
    SendingTime,
    LogonTimeout,
    LogonRefused,
    NumberTooLow,
    NumberMissing,
    TooLong,
    /// A frame did not arrive completely in time.
    SlowFrame,
    HeartbeatMissed,
    /// The client does not read.
    SlowReader,
    ResendFlood,
    StoreFailed,
}

/// Counters since the start of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixSessionCounts {
    /// Runs of bytes that were not a message.
    pub garbled: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    pub rejects: u64,
}

#[derive(Debug)]
pub struct FixSession {
    settings: FixSessionSettings,
    reference: Arc<RefData>,
    store: Box<dyn MessageStore>,
    sequence: SequenceLayer,
    state: FixSessionState,
    disconnect_reason: Option<DisconnectReason>,
    /// Whether the service accepts orders now.
    ready: bool,
    login: LoginState,
    encoder: Encoder,
    input: InputBuffer,
    output: OutputBuffer,
    /// Finds the start of a ClOrdID.
    cl_ord_id: memmem::Finder<'static>,
    /// Field table, taken out while a message is read.
    fields: Option<Box<Fields>>,
    /// Whether the previous bytes were not a message, so that a run of them counts once.
    in_garbage: bool,
    /// Whether the message being read waited for a gap to close.
    is_reading_early: bool,
    timers: SessionTimers,
    resend: Resend,
    /// Request for the caller. The session reads nothing more until the caller takes it.
    pending_request: Option<ClientRequest>,
    in_flight: InFlightRequests,
    /// Event that is being reported.
    cause: Option<ReportedEvent>,
    orders: ClientOrders,
    rate_limit: RateLimit,
    token: u32,
    /// Number of the last ExecID made by this session.
    last_exec: u64,
    /// Next index of the status reports about open orders, while they are being sent.
    status_report_index: Option<usize>,
    /// Next index of the cancels after a disconnect, while they are being sent.
    cancel_index: Option<usize>,
    counts: FixSessionCounts,
    /// State of an initiator; `None` for an acceptor.
    initiator: Option<Box<Initiator>>,
}

impl FixSession {
    pub fn new(
        settings: FixSessionSettings,
        store: Box<dyn MessageStore>,
        reference: Arc<RefData>,
    ) -> FixSession {
        let seed = settings.instance ^ (settings.source.session as u64) << 32;
        let mut session = FixSession {
            encoder: Encoder::new(&settings.sender_comp_id, &settings.target_comp_id),
            sequence: SequenceLayer::new(store.sequence_numbers()),
            orders: ClientOrders::new(settings.orders_max, settings.finished_max, seed),
            rate_limit: RateLimit::new(&settings.rate_limit),
            settings,
            reference,
            store,
            state: FixSessionState::Disconnected,
            disconnect_reason: None,
            ready: true,
            login: LoginState::NotAsked,
            input: InputBuffer::default(),
            output: OutputBuffer::default(),
            cl_ord_id: memmem::Finder::new(b"\x0111="),
            fields: Some(Box::default()),
            in_garbage: false,
            is_reading_early: false,
            timers: SessionTimers::default(),
            resend: Resend::default(),
            pending_request: None,
            in_flight: InFlightRequests::default(),
            cause: None,
            token: 0,
            last_exec: 0,
            status_report_index: None,
            cancel_index: None,
            counts: FixSessionCounts::default(),
            initiator: None,
        };
        session.load_answered_ids();
        session
    }

    /// Starts a connection of this session's client. Returns false while another connection exists.
    #[must_use]
    pub fn connect(&mut self, now: Timestamp) -> bool {
        let Some(state) = self.state.after(SessionInput::Connect) else { return false };
        self.state = state;
        self.disconnect_reason = None;
        self.login = LoginState::NotAsked;
        self.in_garbage = false;
        self.timers.connect(now);
        self.start_as_initiator(now);
        true
    }

    /// Ends the connection. Sequence numbers and orders stay.
    pub fn disconnect(&mut self, now: Timestamp) {
        let Some(state) = self.state.after(SessionInput::Disconnect) else { return };
        self.state = state;
        self.input = InputBuffer::default();
        self.output.clear();
        self.sequence.forget_gap();
        self.resend = Resend::default();
        self.status_report_index = None;
        let grace = self.settings.cancel_on_disconnect_ns;
        self.timers.disconnect(grace.map(|grace| now.plus(grace)));
        self.stop_as_initiator(now);
    }

    /// Takes bytes from the client and returns how many there was room for. The caller offers the
    /// rest again.
    #[must_use]
    pub fn handle_bytes(&mut self, now: Timestamp, bytes: &[u8]) -> usize {
        if matches!(self.state, FixSessionState::Disconnected | FixSessionState::Closing) {
            return bytes.len();
        }
        let taken = self.input.take(bytes, self.settings.message_bytes_max);
        if taken > 0 {
            self.timers.received(now);
        }
        taken
    }

    /// Handles received messages up to the next request, and returns that request.
    pub fn poll_command(&mut self, now: Timestamp, desk: &Desk) -> Option<ClientRequest> {
        loop {
            self.queue_next_cancel(desk);
            if let Some(request) = self.pending_request.take() {
                return Some(request);
            }
            self.run_tasks(now);
            if !self.may_read() || !self.read_one(now, desk) {
                self.save_sequence_numbers();
                return None;
            }
        }
    }

    /// Returns whether there is room for more than a few bytes.
    pub fn wants_bytes(&self) -> bool {
        self.input.pending().len() <= self.settings.message_bytes_max
    }

    /// Returns the bytes to write to the connection.
    pub fn poll_transmit(&mut self) -> &[u8] {
        self.save_sequence_numbers();
        self.output.pending()
    }

    /// Records that `count` bytes were written.
    pub fn handle_transmitted(&mut self, now: Timestamp, count: usize) {
        self.output.consume(count);
        if let Some(initiator) = &mut self.initiator
            && count > 0
        {
            initiator.unsent_logon = None;
        }
        self.timers.transmitted(now, !self.output.is_empty());
    }

    /// Returns the number of bytes to write.
    pub fn unsent_bytes(&self) -> usize {
        self.output.len()
    }

    /// Returns why the connection must be closed, once everything is written.
    pub fn poll_close(&self) -> Option<DisconnectReason> {
        let closing = self.state == FixSessionState::Closing && self.output.is_empty();
        self.disconnect_reason.filter(|_| closing)
    }

    /// Sets whether the service accepts orders.
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// Sets the session hours again, because UTC offsets change with daylight saving time.
    pub fn set_schedule(&mut self, schedule: SessionSchedule) {
        self.settings.schedule = schedule;
    }

    /// Sets new reference data, which all sessions share.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.reference = reference;
        self.refresh_market_data();
    }

    pub fn state(&self) -> FixSessionState {
        self.state
    }

    pub fn sequence_numbers(&self) -> SequenceNumbers {
        self.sequence.numbers()
    }

    pub fn counts(&self) -> FixSessionCounts {
        self.counts
    }

    pub fn settings(&self) -> &FixSessionSettings {
        &self.settings
    }

    /// Sets both sequence numbers to one for the operator. A client that is logged on is logged
    /// out, since its numbers differ.
    pub fn reset(&mut self, now: Timestamp) {
        if self.state == FixSessionState::LoggedOn {
            self.log_out_and_close(now, b"Sequence numbers are reset", DisconnectReason::EndedByUs);
        }
        self.reset_sequence_numbers(now);
        self.forget_requests();
    }

    /// Runs one bounded step of each task in progress: a resend, status reports, requests to a
    /// venue.
    fn run_tasks(&mut self, now: Timestamp) {
        self.continue_resend(now);
        self.continue_status_reports(now);
        self.request_gap(now);
        self.continue_synchronization(now);
        self.send_status_requests(now);
        self.send_market_data_requests(now);
    }

    /// Returns whether the next message may be read.
    fn may_read(&self) -> bool {
        matches!(
            self.state,
            FixSessionState::AwaitingLogon | FixSessionState::LoggedOn | FixSessionState::LoggingOut
        ) && self.login != LoginState::Asked
            && !self.resend.is_active()
            && self.status_report_index.is_none()
            && self.output.len() < OUTPUT_BYTES_HIGH
            && !self.in_flight.is_full()
    }

    /// Reads the next message and returns whether there was one.
    fn read_one(&mut self, now: Timestamp, desk: &Desk) -> bool {
        if let Some(bytes) = self.sequence.take_early() {
            self.read_early(now, &bytes, desk);
            self.sequence.give_back(bytes);
            return true;
        }
        let greeting = self.state == FixSessionState::AwaitingLogon;
        let body_bytes_max = if greeting { LOGON_BYTES_MAX } else { self.settings.message_bytes_max };
        let mut input = std::mem::take(&mut self.input);
        let mut consumed = 0;
        match frame::decode(input.pending(), body_bytes_max) {
            Ok(Decoded::Incomplete) => {
                if greeting && input.pending().len() > LOGON_BYTES_MAX {
                    self.close(DisconnectReason::NotLogon);
                }
                self.timers.wait_for_frame(!input.pending().is_empty());
            }
            Ok(Decoded::Message { .. }) if greeting && self.is_waiting_for_login() => {}
            Ok(Decoded::Message { message: frame, consumed: count }) => {
                consumed = count;
                self.in_garbage = false;
                self.timers.wait_for_frame(false);
                self.prefetch(&input.pending()[count..], desk);
                let mut fields = self.fields.take().expect("one message is read at a time");
                self.handle_message(now, &read(frame, &mut fields), desk);
                self.fields = Some(fields);
            }
            Err(FixFrameError::Garbled { skip }) => {
                consumed = skip;
                self.counts.garbled += !self.in_garbage as u64;
                self.in_garbage = true;
                if greeting {
                    self.close(DisconnectReason::NotLogon);
                }
            }
            Err(FixFrameError::TooLong) => self.close(DisconnectReason::TooLong),
        }
        input.consume(consumed);
        self.input = input;
        consumed > 0
    }

    /// Prefetches memory for the order that comes next while the current message is handled. The
    /// next frame may turn out not to be an order.
    fn prefetch(&self, coming: &[u8], desk: &Desk) {
        let coming = &coming[..coming.len().min(PREFETCH_BYTES)];
        let Some(at) = self.cl_ord_id.find(coming) else { return };
        let value = &coming[at + self.cl_ord_id.needle().len()..];
        let value = memchr::memchr(frame::SOH, value).and_then(|end| IntId::parse(&value[..end]).ok());
        if let Some(id) = value {
            desk.prefetch(self.settings.source.session, &id);
        }
    }

    /// Reads a message that arrived before its turn.
    fn read_early(&mut self, now: Timestamp, bytes: &[u8], desk: &Desk) {
        let Ok(Decoded::Message { message, .. }) = frame::decode(bytes, self.settings.message_bytes_max)
        else {
            return;
        };
        let mut fields = self.fields.take().expect("one message is read at a time");
        self.is_reading_early = true;
        self.handle_message(now, &read(message, &mut fields), desk);
        self.is_reading_early = false;
        self.fields = Some(fields);
    }

    /// Closes the connection as soon as everything is written.
    fn close(&mut self, ending: DisconnectReason) {
        let Some(state) = self.state.after(SessionInput::Abort) else { return };
        self.state = state;
        self.disconnect_reason.get_or_insert(ending);
    }
}
