//! One FIX session: the numbers of both directions, gaps, heartbeats, logon and logout, and the orders of its client. It lives as long
//! as the service; connections come and go. It has two roles: a client comes to us ([`FixSession::new`]), or we go to a venue
//! ([`FixSession::initiator`]); what is said of a client here is then the venue.
//!
//! The caller feeds once and then drains everything:
//!
//! ```text
//! session.connect(now)                         once the first frame has told whose connection it is
//! session.handle_bytes(now, bytes)             as many as it takes
//! while let Some(request) = session.poll_command(now, desk) { request.send(desk, port, sender) … handle_declined }
//! session.handle_event(now, shard, event, desk)
//! write(session.poll_transmit()); session.handle_transmitted(now, count)
//! if session.poll_close().is_some() { close; session.disconnect(now) }
//! sleep until session.poll_timeout(); session.handle_timeout(now)
//! ```
//!
//! With a venue the same, but for orders and reports:
//!
//! ```text
//! if session.wants_connection(now) { connect; session.connect(now) }
//! session.handle_instruction(now, shard, seq, instruction)
//! while let Some(report) = session.poll_report(now) { send it to the shard; once stored: session.handle_stored(token) }
//! ```

mod buffer;
mod flight;
mod gap;
mod inbound;
mod initiator;
mod logon;
mod orders;
mod outbound;
mod prices;
mod resend;
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
use self::flight::InFlightRequests;
use self::gap::{EarlyMessages, SequenceGap};
use self::initiator::Initiator;
use self::resend::Resend;
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

pub use self::initiator::{VenueCounts, VenueReport};
pub use self::logon::{LoginState, LogonCredentials};
pub use self::settings::FixSessionSettings;
pub use self::state::{FixSessionState, SessionInput};
pub use self::timers::{FRAME_NS_MAX, LOGON_NS_MAX, LOGOUT_NS_MAX};

/// Bytes of a body before anybody has logged on: a Logon has some two hundred.
pub const LOGON_BYTES_MAX: usize = 4_096;

/// How far ahead the id of the next order is looked for: behind the header, as a rule.
const FORESEEN_BYTES: usize = 160;

/// Output beyond which nothing more is read and no resend goes on, until the client has taken some of it.
pub const OUTPUT_BYTES_ENOUGH: usize = 256 * 1_024;

/// Output beyond which the client is cut off: reports cannot be held back, but they are kept and will be sent again.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisconnectReason {
    /// The client logged out.
    LoggedOut,
    /// We did.
    EndedByUs,
    /// The first message was no Logon, or a broken one.
    NotLogon,
    /// CompIDs that are not this session's.
    Identity,
    BeginString,
    /// SendingTime was too far from now.
    SendingTime,
    LogonTimeout,
    LogonRefused,
    NumberTooLow,
    NumberMissing,
    TooLong,
    /// A frame that did not come to its end.
    SlowFrame,
    HeartbeatMissed,
    /// The client does not read.
    SlowReader,
    ResendFlood,
    StoreFailed,
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixSessionCounts {
    /// Stretches of bytes that were no message.
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
    numbers: SequenceNumbers,
    /// As the store has them.
    kept: SequenceNumbers,
    state: FixSessionState,
    ending: Option<DisconnectReason>,
    /// Whether the service takes orders now.
    ready: bool,
    login: LoginState,
    encoder: Encoder,
    input: InputBuffer,
    output: OutputBuffer,
    /// Finds where a ClOrdID begins.
    cl_ord_id: memmem::Finder<'static>,
    /// Taken out while a message is read.
    fields: Option<Box<Fields>>,
    /// Whether the bytes before were no message, so that a stretch of them is counted once.
    in_rubbish: bool,
    /// Whether the message that is read waited for a gap.
    reading_early: bool,
    timers: SessionTimers,
    gap: Option<SequenceGap>,
    early: EarlyMessages,
    resend: Resend,
    /// What the client asks; nothing more is read before it is taken.
    request: Option<ClientRequest>,
    flight: InFlightRequests,
    /// The event that is being reported.
    cause: Option<ReportedEvent>,
    book: ClientOrders,
    flood: RateLimit,
    token: u32,
    /// Number of the last ExecID made here.
    exec: u64,
    /// Where the round of reports about open orders has come to.
    status_round: Option<usize>,
    /// Where the round of cancels after a disconnect has come to.
    cancel_round: Option<usize>,
    counts: FixSessionCounts,
    /// None: a client comes to us.
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
            numbers: store.sequence_numbers(),
            kept: store.sequence_numbers(),
            book: ClientOrders::new(settings.orders_max, settings.finished_max, seed),
            flood: RateLimit::new(&settings.rate_limit),
            settings,
            reference,
            store,
            state: FixSessionState::Disconnected,
            ending: None,
            ready: true,
            login: LoginState::NotAsked,
            input: InputBuffer::default(),
            output: OutputBuffer::default(),
            cl_ord_id: memmem::Finder::new(b"\x0111="),
            fields: Some(Box::default()),
            in_rubbish: false,
            reading_early: false,
            timers: SessionTimers::default(),
            gap: None,
            early: EarlyMessages::default(),
            resend: Resend::default(),
            request: None,
            flight: InFlightRequests::default(),
            cause: None,
            token: 0,
            exec: 0,
            status_round: None,
            cancel_round: None,
            counts: FixSessionCounts::default(),
            initiator: None,
        };
        session.recall_answers();
        session
    }

    /// A connection of this session's client. Answers whether it may be: not while there is another.
    #[must_use]
    pub fn connect(&mut self, now: Timestamp) -> bool {
        let Some(state) = self.state.after(SessionInput::Connect) else { return false };
        self.state = state;
        self.ending = None;
        self.login = LoginState::NotAsked;
        self.in_rubbish = false;
        self.timers.connect(now);
        self.begin_as_initiator(now);
        true
    }

    /// The connection is gone. Numbers and orders stay.
    pub fn disconnect(&mut self, now: Timestamp) {
        let Some(state) = self.state.after(SessionInput::Disconnect) else { return };
        self.state = state;
        self.input = InputBuffer::default();
        self.output.clear();
        self.gap = None;
        self.early.clear();
        self.resend = Resend::default();
        self.status_round = None;
        let grace = self.settings.cancel_on_disconnect_ns;
        self.timers.disconnect(grace.map(|grace| now.plus(grace)));
        self.end_as_initiator(now);
    }

    /// Takes bytes from the client, as many as there is room for, and says how many. Those that are not taken are to be offered again.
    #[must_use]
    pub fn handle_bytes(&mut self, now: Timestamp, bytes: &[u8]) -> usize {
        if matches!(self.state, FixSessionState::Disconnected | FixSessionState::Closing) {
            return bytes.len();
        }
        let taken = self.input.take(bytes, self.settings.message_bytes_max);
        if taken > 0 {
            self.timers.heard(now);
        }
        taken
    }

    /// Works through what has come up to the next request, and gives it.
    pub fn poll_command(&mut self, now: Timestamp, desk: &Desk) -> Option<ClientRequest> {
        loop {
            self.next_cancel(desk);
            if let Some(request) = self.request.take() {
                return Some(request);
            }
            self.go_on(now);
            if !self.may_read() || !self.read_one(now, desk) {
                self.keep_numbers();
                return None;
            }
        }
    }

    /// Whether there is room for more bytes than a few.
    pub fn wants_bytes(&self) -> bool {
        self.input.pending().len() <= self.settings.message_bytes_max
    }

    /// What is to be written to the connection.
    pub fn poll_transmit(&mut self) -> &[u8] {
        self.keep_numbers();
        self.output.pending()
    }

    /// So many bytes were written.
    pub fn handle_transmitted(&mut self, now: Timestamp, count: usize) {
        self.output.consume(count);
        if let Some(initiator) = &mut self.initiator
            && count > 0
        {
            initiator.unheard = None;
        }
        self.timers.transmitted(now, !self.output.is_empty());
    }

    /// Bytes that are to be written.
    pub fn unsent_bytes(&self) -> usize {
        self.output.len()
    }

    /// Whether the connection is to be closed, and why: when everything is written.
    pub fn poll_close(&self) -> Option<DisconnectReason> {
        let closing = self.state == FixSessionState::Closing && self.output.is_empty();
        self.ending.filter(|_| closing)
    }

    /// The service begins or ceases to take orders.
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// Other hours, as clocks are put forward and back.
    pub fn set_schedule(&mut self, schedule: SessionSchedule) {
        self.settings.schedule = schedule;
    }

    /// Other reference data, the same for everybody.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.reference = reference;
        self.want_prices();
    }

    pub fn state(&self) -> FixSessionState {
        self.state
    }

    pub fn sequence_numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    pub fn counts(&self) -> FixSessionCounts {
        self.counts
    }

    pub fn settings(&self) -> &FixSessionSettings {
        &self.settings
    }

    /// The operator sets both numbers to one. Whoever is logged on is logged out, since their numbers are others.
    pub fn reset(&mut self, now: Timestamp) {
        if self.state == FixSessionState::LoggedOn {
            self.log_out_and_close(now, b"Sequence numbers are reset", DisconnectReason::EndedByUs);
        }
        self.reset_numbers(now);
        self.forget_sent();
    }

    /// What goes on by itself, in one bounded step: a resend, the round of reports.
    fn go_on(&mut self, now: Timestamp) {
        self.go_on_resending(now);
        self.go_on_reporting(now);
        self.ask_for_gap(now);
        self.go_on_touching(now);
        self.go_on_querying(now);
        self.go_on_asking_prices(now);
    }

    /// Whether the next message may be looked at.
    fn may_read(&self) -> bool {
        matches!(
            self.state,
            FixSessionState::AwaitingLogon | FixSessionState::LoggedOn | FixSessionState::LoggingOut
        ) && self.login != LoginState::Asked
            && !self.resend.is_active()
            && self.status_round.is_none()
            && self.output.len() < OUTPUT_BYTES_ENOUGH
            && !self.flight.is_full()
    }

    /// Looks at the next message. Answers whether there was one.
    fn read_one(&mut self, now: Timestamp, desk: &Desk) -> bool {
        if let Some(bytes) = self.early.take(self.numbers.next_target_msg_seq_num) {
            self.read_early(now, &bytes, desk);
            self.early.give_back(bytes);
            return true;
        }
        let greeting = self.state == FixSessionState::AwaitingLogon;
        let body_bytes_max = if greeting { LOGON_BYTES_MAX } else { self.settings.message_bytes_max };
        let mut input = std::mem::take(&mut self.input);
        let mut consumed = 0;
        match frame::decode(input.pending(), body_bytes_max) {
            Ok(Decoded::Incomplete) => {
                if greeting && input.pending().len() > LOGON_BYTES_MAX {
                    self.end(DisconnectReason::NotLogon);
                }
                self.timers.wait_for_frame(!input.pending().is_empty());
            }
            Ok(Decoded::Message { .. }) if greeting && self.asks_for_login() => {}
            Ok(Decoded::Message { message: frame, consumed: count }) => {
                consumed = count;
                self.in_rubbish = false;
                self.timers.wait_for_frame(false);
                self.prefetch(&input.pending()[count..], desk);
                let mut fields = self.fields.take().expect("one message is read at a time");
                self.handle_message(now, &read(frame, &mut fields), desk);
                self.fields = Some(fields);
            }
            Err(FixFrameError::Garbled { skip }) => {
                consumed = skip;
                self.counts.garbled += !self.in_rubbish as u64;
                self.in_rubbish = true;
                if greeting {
                    self.end(DisconnectReason::NotLogon);
                }
            }
            Err(FixFrameError::TooLong) => self.end(DisconnectReason::TooLong),
        }
        input.consume(consumed);
        self.input = input;
        consumed > 0
    }

    /// Has memory brought near for the order that comes next, while this one is looked at. Whether it is one will be seen.
    fn prefetch(&self, coming: &[u8], desk: &Desk) {
        let coming = &coming[..coming.len().min(FORESEEN_BYTES)];
        let Some(at) = self.cl_ord_id.find(coming) else { return };
        let value = &coming[at + self.cl_ord_id.needle().len()..];
        let value = memchr::memchr(frame::SOH, value).and_then(|end| IntId::parse(&value[..end]).ok());
        if let Some(id) = value {
            desk.prefetch(self.settings.source.session, &id);
        }
    }

    /// Looks at a message that came too early.
    fn read_early(&mut self, now: Timestamp, bytes: &[u8], desk: &Desk) {
        let Ok(Decoded::Message { message, .. }) = frame::decode(bytes, self.settings.message_bytes_max)
        else {
            return;
        };
        let mut fields = self.fields.take().expect("one message is read at a time");
        self.reading_early = true;
        self.handle_message(now, &read(message, &mut fields), desk);
        self.reading_early = false;
        self.fields = Some(fields);
    }

    /// The connection ends as soon as everything is written.
    fn end(&mut self, ending: DisconnectReason) {
        let Some(state) = self.state.after(SessionInput::Cut) else { return };
        self.state = state;
        self.ending.get_or_insert(ending);
    }
}
