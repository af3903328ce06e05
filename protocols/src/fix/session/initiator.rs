//! The role of a session in which we connect to a venue: when to connect, our Logon and the venue's
//! answer, and the check that neither side misses a message of the other. [`instructions`] sends
//! orders, [`reports`] reads the venue's answers, and [`prices`] its market data.
//!
//! ```text
//! disconnected ─ ReconnectInterval, in its hours ─► connect ─► Logon ─► venue's Logon
//!   ▲                                                 │              │
//!   │◄──────────────── Logout, silence ───────────────┘              ▼
//!   │                                           gap, resend:    Test Request ◄─┐
//!   │                                           sent again ──────────┤─────────┘
//!   └◄──────────────── Logout, silence ──────── synchronized ◄── Heartbeat
//! ```
//!
//! A venue that answers a Test Request in sequence has received everything that we sent before it,
//! and we have received everything that the venue sent before the answer. Orders are sent only
//! then.
//!
//! Rules: docs/fix-rules.md#venue-logon.

mod instructions;
mod pending_changes;
mod prices;
mod reports;
mod round_trip;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use pitlane_engine::event::Instruction;
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use self::pending_changes::PendingChanges;
use self::round_trip::RoundTrip;
use super::layer::{
    HEART_BT_INT_MAX, SessionLayer, SessionNotice, SessionRole, echo, msg_seq_num_of, too_low_text,
};
use super::state::{DisconnectReason, FixSessionState};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;
use crate::fix::venue::InitiatorSettings;
use crate::fix::venue::prices::VenuePrices;
use crate::fix::venue::profile::{LogonHead, LogonSigner, signed_payload};
use crate::venue::{InboundReport, VenueCounts};

/// Whether both sides have all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SyncState {
    #[default]
    None,
    /// To be checked.
    Wanted,
    /// Being checked by the Test Request with this number.
    TestRequested(u64),
    Synchronized,
}

#[derive(Debug)]
pub(super) struct Initiator {
    settings: InitiatorSettings,
    /// Signs Logons, if the venue wants that.
    signer: Option<Box<dyn LogonSigner>>,
    reference: Arc<RefData>,
    sync: SyncState,
    /// Earliest time of the next connection attempt.
    connect_at: Timestamp,
    /// Sequence number of a Logon that has not been written yet.
    unsent_logon: Option<u64>,
    /// Text of the last Logout, for logs.
    logout_text: Option<String>,
    /// Reports for the shards, in order. They are bounded by the instructions and messages handled:
    /// the gateway takes all of them before it reads on.
    reports: VecDeque<InboundReport>,
    /// Token of the last report that a message waits for.
    token: u32,
    /// Orders whose New Order Single is stored, so that the venue has it once we are synchronized.
    known_orders: BTreeSet<OrderHandle>,
    /// Orders whose New Order Single was never stored when the previous process ended.
    never_sent: BTreeSet<OrderHandle>,
    /// Cancels and replacements without an answer.
    pending_changes: PendingChanges,
    /// Orders whose status the venue must report, because messages about them may be lost. At most
    /// as many as shards hold.
    unreconciled: BTreeSet<OrderHandle>,
    /// Order Status Requests that wait for room in the output, at most `STATUS_REQUESTS_MAX`.
    status_requests: VecDeque<Instruction>,
    /// Number of times the session became synchronized.
    synchronizations: u64,
    /// Whether messages were lost since the last call of [`Initiator::take_message_loss`].
    has_lost_messages: bool,
    counts: VenueCounts,
    /// Text of the venue's last reject, for logs.
    reject_text: Option<String>,
    round_trip: RoundTrip,
    /// Market data of the venue, if it provides any.
    prices: Option<VenuePrices>,
}

impl Initiator {
    /// Creates the role. `never_sent` lists orders of which the journal has an instruction and the
    /// store has no message.
    pub(super) fn new(
        layer: &SessionLayer,
        settings: InitiatorSettings,
        reference: Arc<RefData>,
        never_sent: BTreeSet<OrderHandle>,
    ) -> Initiator {
        let mut initiator = Initiator {
            prices: settings
                .market_data_adapter
                .map(|adapter| VenuePrices::new(adapter, settings.market_depth)),
            settings,
            signer: None,
            reference,
            sync: SyncState::None,
            connect_at: Timestamp::ZERO,
            unsent_logon: None,
            logout_text: None,
            reports: VecDeque::new(),
            token: 0,
            known_orders: BTreeSet::new(),
            never_sent,
            pending_changes: PendingChanges::default(),
            unreconciled: BTreeSet::new(),
            status_requests: VecDeque::new(),
            synchronizations: 0,
            has_lost_messages: false,
            counts: VenueCounts::default(),
            reject_text: None,
            round_trip: RoundTrip::default(),
        };
        initiator.load_requests(layer);
        initiator
    }

    pub(super) fn counts(&self) -> VenueCounts {
        self.counts
    }

    /// Returns the newest round trip to the venue.
    pub(super) fn round_trip_ns(&self) -> Option<u64> {
        self.round_trip.newest_ns()
    }

    /// Returns the text of the venue's last Logout, once.
    pub(super) fn take_logout_text(&mut self) -> Option<String> {
        self.logout_text.take()
    }

    /// Returns the text of the venue's last reject of an order or request, once.
    pub(super) fn take_reject_text(&mut self) -> Option<String> {
        self.reject_text.take()
    }

    /// Returns whether messages of the venue were lost, once.
    pub(super) fn take_message_loss(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_messages)
    }

    /// Returns whether orders may be sent: we are logged on, and neither side misses a message of
    /// the other.
    pub(super) fn is_synchronized(&self, layer: &SessionLayer) -> bool {
        layer.is_logged_on() && self.sync == SyncState::Synchronized
    }

    /// Returns how often the session became synchronized, if it is synchronized now.
    pub(super) fn synchronizations(&self, layer: &SessionLayer) -> Option<u64> {
        self.is_synchronized(layer).then_some(self.synchronizations)
    }

    pub(super) fn set_reference(&mut self, layer: &SessionLayer, reference: Arc<RefData>) {
        self.reference = reference;
        self.refresh_market_data(layer);
    }

    /// Handles received messages up to the next report or price, and returns the report.
    pub(super) fn poll_report(&mut self, layer: &mut SessionLayer, now: Timestamp) -> Option<InboundReport> {
        loop {
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            if self.has_market_data() {
                return None;
            }
            layer.continue_resend(now);
            layer.request_gap(now);
            self.continue_synchronization(layer, now);
            self.send_status_requests(layer, now);
            self.send_market_data_requests(layer, now);
            if !layer.may_read() || !layer.read_one(now, self) {
                layer.save_sequence_numbers();
                return None;
            }
        }
    }
}

/// The connection.
impl Initiator {
    /// Returns whether the caller must connect now.
    pub(super) fn wants_connection(&self, layer: &SessionLayer, now: Timestamp) -> bool {
        layer.state() == FixSessionState::Disconnected
            && now >= self.connect_at
            && layer.settings.schedule.is_open(now)
    }

    /// Returns the earliest time of the next connection attempt, or of a request that waits.
    pub(super) fn poll_timeout(&self, state: FixSessionState) -> Option<Timestamp> {
        match state {
            FixSessionState::Disconnected => Some(self.connect_at),
            FixSessionState::LoggedOn => self.next_price_request(),
            FixSessionState::AwaitingLogon | FixSessionState::LoggingOut | FixSessionState::Closing => None,
        }
    }

    /// Delays the next attempt after a failed connection.
    pub(super) fn handle_connect_failed(&mut self, now: Timestamp) {
        self.connect_at = self.settings.next_attempt(now);
    }

    /// Sends the Logon on a new connection.
    pub(super) fn handle_connect(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        self.sync = SyncState::None;
        self.logout_text = None;
        // A session that has sent and received nothing starts with a reset, because the venue may
        // remember an earlier session.
        let is_new = layer.sequence.next_target() == 1 && layer.sequence.next_sender() == 1;
        let resets = layer.settings.reset_on_logon || layer.is_outdated(now) || is_new;
        if resets {
            layer.reset_sequence_numbers(now);
            self.forget_requests();
        }
        self.unsent_logon = Some(layer.sequence.next_sender());
        let signature = self.logon_signature(layer, now);
        let settings = &self.settings;
        layer.send_admin(now, msg_type::LOGON, |draft| {
            draft.text(prefix::ENCRYPT_METHOD, b"0");
            draft.number(prefix::HEART_BT_INT, settings.heart_bt_int_s);
            if let Some(signature) = &signature {
                draft.number(prefix::RAW_DATA_LENGTH, signature.len() as u64);
                draft.text(prefix::RAW_DATA, signature);
            }
            if resets {
                draft.code(prefix::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if let Some(login) = &settings.login {
                draft.text(prefix::USERNAME, login.username.as_bytes());
                if let Some(password) = &login.password {
                    draft.text(prefix::PASSWORD, password.as_bytes());
                }
            }
            let more = settings.profile.logon_fields();
            if !more.is_empty() {
                draft.text(b"", more);
            }
        });
    }

    pub(super) fn set_signer(&mut self, signer: Box<dyn LogonSigner>) {
        self.signer = Some(signer);
    }

    /// Returns the signature of the next Logon, if the venue wants one.
    fn logon_signature(&self, layer: &SessionLayer, now: Timestamp) -> Option<Vec<u8>> {
        let signer = self.signer.as_ref().filter(|_| self.settings.profile.is_signed())?;
        let head = LogonHead {
            sender_comp_id: &layer.settings.sender_comp_id,
            target_comp_id: &layer.settings.target_comp_id,
            number: layer.sequence.next_sender(),
            now,
        };
        let mut signature = Vec::new();
        signer.sign(&signed_payload(&self.settings, &head), &mut signature);
        Some(signature)
    }

    /// Records that the venue may have received something on this connection.
    pub(super) fn handle_transmitted(&mut self) {
        self.unsent_logon = None;
    }

    /// Ends the connection and delays the next attempt by the interval.
    pub(super) fn handle_disconnect(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        self.handle_connect_failed(now);
        self.sync = SyncState::None;
        self.round_trip.handle_disconnect();
        self.pending_changes.handle_disconnect();
        self.prices.iter_mut().for_each(VenuePrices::end);
        // The shards ask for these orders again once we are synchronized.
        self.unreconciled.clear();
        self.status_requests.clear();
        // A venue that could not be reached has seen no number, so the number is used again.
        if let Some(number) = self.unsent_logon.take() {
            layer.sequence.set_next_sender(number);
        }
    }
}

/// The logon and the check of both sides' messages.
impl Initiator {
    fn handle_logon_answer(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage) {
        if message.frame.begin_string != layer.settings.version.begin_string().as_bytes() {
            return layer.close(DisconnectReason::BeginString);
        }
        if !layer.is_from_client(message) {
            return layer.close(DisconnectReason::Identity);
        }
        let Some(number) = msg_seq_num_of(message) else {
            return layer.close(DisconnectReason::NumberMissing);
        };
        if message.type_code() == msg_type::LOGOUT {
            return self.handle_refused_logon(layer, message, number);
        }
        if message.type_code() != msg_type::LOGON || message.fault.is_some() {
            return layer.close(DisconnectReason::NotLogon);
        }
        let sent = message.header.sending_time.and_then(parse_timestamp);
        if !sent.is_some_and(|sent| layer.is_sending_time_accurate(now, sent)) {
            return layer.close(DisconnectReason::SendingTime);
        }
        self.accept_logon_answer(layer, now, message, number);
    }

    fn accept_logon_answer(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let resets = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && number == 1;
        if resets && layer.sequence.next_sender() != 2 {
            // The venue restarts its numbers, and our Logon was number one.
            layer.reset_sequence_numbers(now);
            layer.sequence.set_next_sender(2);
            self.forget_requests();
        }
        if number < layer.sequence.next_target() && !message.header.poss_dup {
            let (text, len) = too_low_text(layer.sequence.next_target(), number);
            return layer.log_out_and_close(now, &text[..len], DisconnectReason::NumberTooLow);
        }
        let received = message.get(tag::HEART_BT_INT).and_then(|text| parse_u64(text).ok());
        let interval_s = received.filter(|&received| received > 0 && received <= HEART_BT_INT_MAX);
        self.sync = SyncState::Wanted;
        layer.accept_logon(now, interval_s.unwrap_or(self.settings.heart_bt_int_s));
        layer.sequence.consume_logon(number);
    }

    /// Handles a refused logon. The venue's number counts, so that it is not taken for missing
    /// later.
    fn handle_refused_logon(&mut self, layer: &mut SessionLayer, message: &FixMessage, number: u64) {
        layer.sequence.consume_refused_logon(number);
        self.record_logout_text(message.get(tag::TEXT));
        layer.close(DisconnectReason::LogonRefused);
    }

    /// Records the text of a Logout for logs.
    fn record_logout_text(&mut self, text: Option<&[u8]>) {
        if let Some(text) = text {
            self.logout_text = Some(printable(text));
        }
    }

    /// Sends a Test Request to check that both sides have all messages, if no gap or resend is
    /// open.
    fn continue_synchronization(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        let quiet = !layer.sequence.has_gap() && !layer.is_resending() && layer.is_logged_on();
        if self.sync != SyncState::Wanted || !quiet {
            return;
        }
        let number = layer.sequence.next_sender();
        self.sync = SyncState::TestRequested(number);
        self.round_trip.handle_test_request(now);
        layer.send_admin(now, msg_type::TEST_REQUEST, |draft| draft.number(prefix::TEST_REQ_ID, number));
    }

    /// Repeats the check after a gap or a resend.
    fn restart_synchronization(&mut self) {
        if matches!(self.sync, SyncState::TestRequested(_)) {
            self.sync = SyncState::Wanted;
        }
    }

    fn handle_heartbeat(&mut self, layer: &SessionLayer, now: Timestamp, message: &FixMessage) {
        let received = message.get(tag::TEST_REQ_ID).and_then(|id| parse_u64(id).ok());
        if received.is_some_and(|received| self.sync == SyncState::TestRequested(received)) {
            self.sync = SyncState::Synchronized;
            self.round_trip.handle_heartbeat(now);
            self.synchronizations += 1;
            self.start_market_data(layer);
        }
    }

    /// Forgets what was sent, as both sides do after a reset: only the venue knows what arrived.
    pub(super) fn forget_requests(&mut self) {
        self.mark_messages_lost();
        self.pending_changes.clear();
    }

    /// Records that messages of the venue are lost, so that the state of no order is certain. A
    /// synchronized session must synchronize again, so that the shards ask for every order.
    fn mark_messages_lost(&mut self) {
        self.known_orders.clear();
        self.pending_changes.lose_answers();
        self.has_lost_messages = true;
        if self.sync != SyncState::None {
            self.sync = SyncState::Wanted;
        }
    }
}

impl SessionRole for Initiator {
    fn handle_first_message(&mut self, layer: &mut SessionLayer, now: Timestamp, message: &FixMessage) {
        self.handle_logon_answer(layer, now, message);
    }

    /// Handles the message with the expected number. The number is saved when the shards have
    /// stored the reports of the message.
    fn handle_expected(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        layer.sequence.in_flight.begin(number);
        layer.sequence.consume_if_expected(number);
        let before = self.reports.len();
        // The dictionary has the messages of clients. A venue's report is not refused for a group
        // that the venue has extended.
        match message.fault {
            Some(fault) => {
                layer.reject(now, message, number, fault);
                self.handle_unreadable_prices(message);
            }
            None => self.dispatch(layer, now, message, number),
        }
        let waits = self.assign_token(before);
        layer.sequence.in_flight.assign(waits.map(report_id));
    }

    fn handle_notice(&mut self, notice: SessionNotice<'_>) {
        match notice {
            SessionNotice::RecoveryStarted => {
                self.restart_synchronization();
                self.handle_price_gap();
            }
            SessionNotice::MessagesLost => {
                self.mark_messages_lost();
                self.handle_price_gap();
            }
            SessionNotice::NumbersReset => self.forget_requests(),
            SessionNotice::LogoutReceived { text } => self.record_logout_text(text),
        }
    }
}

/// Returns the id under which a message waits for its report to be stored.
pub(super) fn report_id(token: u32) -> IntId {
    IntId::numbered(b'r', token as u64)
}

/// Returns a venue's text as printable ASCII for a log line.
fn printable(text: &[u8]) -> String {
    echo(text).iter().map(|&byte| if (32..127).contains(&byte) { byte as char } else { '?' }).collect()
}
