//! The session as initiator: when to connect, our Logon and the venue's answer, and the check that
//! neither side misses a message of the other.
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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pitlane_engine::command::VenueReport;
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::event::{Instruction, VenueRequest};
use pitlane_engine::id::{IntId, OrderHandle, PortId};
use pitlane_engine::pages::LargePages;
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::inbound::{msg_seq_num_of, too_low_text};
use super::logon::HEART_BT_INT_MAX;
use super::outbound::echo;
use super::{DisconnectReason, FixSession, FixSessionSettings, FixSessionState, SessionInput};
use crate::fix::fields::FixMessage;
use crate::fix::frame::BEGIN_STRING;
use crate::fix::msg_type;
use crate::fix::store::MessageStore;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;
use crate::fix::venue::InitiatorSettings;
use crate::fix::venue::prices::VenuePrices;

/// Whether both sides have all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SyncState {
    #[default]
    None,
    /// To be checked.
    Wanted,
    /// Being checked by the Test Request with this number.
    TestRequested(u64),
    Synchronized,
}

/// Counters of the venue's answers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueCounts {
    /// Answers with a value that we do not know; they are ignored.
    pub unknown_values: u64,
    /// Answers about no order of ours.
    pub unknown_orders: u64,
    /// Answers without a required field; they are ignored.
    pub incomplete: u64,
    pub orders_out: u64,
    pub executions: u64,
    /// Requests refused by us because the venue did not take them.
    pub refused: u64,
    /// Quotes and trades taken from the venue's market data.
    pub prices: u64,
}

/// Report of the venue about an order, for the order's shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboundReport {
    pub order: OrderHandle,
    pub report: VenueReport,
    /// Token to give back once the shard has stored the report ([`FixSession::handle_stored`]);
    /// zero means that nothing waits for it.
    pub token: u32,
}

/// State that only an initiator has.
#[derive(Debug)]
pub(super) struct Initiator {
    pub settings: InitiatorSettings,
    pub sync: SyncState,
    /// Earliest time of the next connection attempt.
    pub connect_at: Timestamp,
    /// Sequence number of a Logon that has not been written yet.
    pub unsent_logon: Option<u64>,
    /// Text of the last Logout, for logs.
    pub logout_text: Option<String>,
    /// Reports for the shards, in order. They are bounded by the instructions and messages handled:
    /// the gateway takes all of them before it reads on.
    pub reports: VecDeque<InboundReport>,
    pub token: u32,
    /// Orders whose New Order Single is stored, so that the venue has it once we are synchronized.
    pub known_orders: BTreeSet<OrderHandle>,
    /// Orders whose New Order Single was never stored when the previous process ended.
    pub never_sent: BTreeSet<OrderHandle>,
    /// Cancels and replacements without an answer, by order and ClOrdID.
    pub pending_changes: BTreeMap<(OrderHandle, IntId), VenueRequest>,
    /// Orders whose status the venue must report, because messages about them may be lost. At most
    /// as many as shards hold.
    pub unreconciled: BTreeSet<OrderHandle>,
    /// Order Status Requests that wait for room in the output, at most `STATUS_REQUESTS_MAX`.
    pub status_requests: VecDeque<Instruction>,
    /// Number of times the session became synchronized.
    pub synchronizations: u64,
    /// Whether messages were lost since the last call of [`FixSession::take_message_loss`].
    pub has_lost_messages: bool,
    pub counts: VenueCounts,
    /// Text of the venue's last reject, for logs.
    pub reject_text: Option<String>,
    /// Market data of the venue, if it provides any.
    pub prices: Option<VenuePrices>,
    /// Desk without orders, because a venue sends none.
    desk: Option<Box<Desk>>,
}

impl FixSession {
    /// Creates a session with a venue. `never_sent` lists orders of which the journal has an
    /// instruction and the store has no message.
    pub fn initiator(
        settings: FixSessionSettings,
        venue: InitiatorSettings,
        store: Box<dyn MessageStore>,
        reference: Arc<RefData>,
        never_sent: BTreeSet<OrderHandle>,
    ) -> FixSession {
        let port = settings.source.port;
        let settings = FixSessionSettings { orders_max: 1, finished_max: 1, login: false, ..settings };
        let mut session = FixSession::new(settings, store, reference);
        // Stored answers exist only for clients.
        session.in_flight.clear_answered();
        session.initiator = Some(Box::new(Initiator {
            prices: venue.market_data_adapter.map(VenuePrices::new),
            settings: venue,
            sync: SyncState::None,
            connect_at: Timestamp::ZERO,
            unsent_logon: None,
            logout_text: None,
            reports: VecDeque::new(),
            token: 0,
            known_orders: BTreeSet::new(),
            never_sent,
            pending_changes: BTreeMap::new(),
            unreconciled: BTreeSet::new(),
            status_requests: VecDeque::new(),
            synchronizations: 0,
            has_lost_messages: false,
            counts: VenueCounts::default(),
            reject_text: None,
            desk: Some(Box::new(idle_desk(port))),
        }));
        session.load_requests();
        session
    }

    /// Returns whether the caller must connect now and then call [`FixSession::connect`].
    pub fn wants_connection(&self, now: Timestamp) -> bool {
        let Some(initiator) = &self.initiator else { return false };
        self.state == FixSessionState::Disconnected
            && now >= initiator.connect_at
            && self.settings.schedule.is_open(now)
    }

    /// Delays the next attempt after a failed connection.
    pub fn handle_connect_failed(&mut self, now: Timestamp) {
        if let Some(initiator) = &mut self.initiator {
            initiator.connect_at = initiator.settings.next_attempt(now);
        }
    }

    /// Returns whether orders may be sent: we are logged on, and neither side misses a message of
    /// the other.
    pub fn is_synchronized(&self) -> bool {
        let sync = self.initiator.as_ref().map(|initiator| initiator.sync);
        self.state == FixSessionState::LoggedOn && sync == Some(SyncState::Synchronized)
    }

    /// Returns the text of the venue's last Logout, once.
    pub fn take_logout_text(&mut self) -> Option<String> {
        self.initiator.as_mut()?.logout_text.take()
    }

    /// Returns the text of the venue's last reject of an order or request, once.
    pub fn take_reject_text(&mut self) -> Option<String> {
        self.initiator.as_mut()?.reject_text.take()
    }

    pub fn venue_counts(&self) -> VenueCounts {
        self.initiator.as_ref().map(|initiator| initiator.counts).unwrap_or_default()
    }

    /// Handles received messages up to the next report or price, and returns the report. The caller
    /// takes prices first ([`FixSession::poll_price`]).
    pub fn poll_report(&mut self, now: Timestamp) -> Option<InboundReport> {
        let desk = self.initiator.as_mut()?.desk.take()?;
        let report = loop {
            if let Some(report) = self.initiator.as_mut().and_then(|initiator| initiator.reports.pop_front())
            {
                break Some(report);
            }
            if self.has_market_data() {
                break None;
            }
            self.run_tasks(now);
            if !self.may_read() || !self.read_one(now, &desk) {
                self.save_sequence_numbers();
                break None;
            }
        };
        if let Some(initiator) = &mut self.initiator {
            initiator.desk = Some(desk);
        }
        report
    }

    /// Records that a shard has stored the report of this token, so that its message need not
    /// arrive again.
    pub fn handle_stored(&mut self, token: u32) {
        self.in_flight.complete(&report_id(token));
    }

    /// Sends the Logon on a new connection.
    pub(super) fn start_as_initiator(&mut self, now: Timestamp) {
        let Some(initiator) = &mut self.initiator else { return };
        initiator.sync = SyncState::None;
        initiator.logout_text = None;
        let (interval, login) = (initiator.settings.heart_bt_int_s, initiator.settings.login.clone());
        let outdated = self.sequence.numbers().since < self.settings.schedule.began(now);
        // A session that has sent and received nothing starts with a reset, because the venue may
        // remember an earlier session.
        let is_new = self.sequence.next_target() == 1 && self.sequence.next_sender() == 1;
        let resets = self.settings.reset_on_logon || outdated || is_new;
        if resets {
            self.reset_sequence_numbers(now);
            self.forget_requests();
        }
        if let Some(initiator) = &mut self.initiator {
            initiator.unsent_logon = Some(self.sequence.next_sender());
        }
        self.send_admin(now, msg_type::LOGON, |draft| {
            draft.text(prefix::ENCRYPT_METHOD, b"0");
            draft.number(prefix::HEART_BT_INT, interval);
            if resets {
                draft.code(prefix::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if let Some(login) = &login {
                draft.text(prefix::USERNAME, login.username.as_bytes());
                draft.text(prefix::PASSWORD, login.password.as_bytes());
            }
        });
    }

    /// Ends the connection and delays the next attempt by the interval.
    pub(super) fn stop_as_initiator(&mut self, now: Timestamp) {
        self.handle_connect_failed(now);
        if let Some(initiator) = &mut self.initiator {
            initiator.sync = SyncState::None;
            initiator.prices.iter_mut().for_each(VenuePrices::end);
            // The shards ask for these orders again once we are synchronized.
            initiator.unreconciled.clear();
            initiator.status_requests.clear();
            // A venue that could not be reached has seen no number, so the number is used again.
            if let Some(number) = initiator.unsent_logon.take() {
                self.sequence.set_next_sender(number);
            }
        }
    }

    /// Forgets what was sent, as both sides do after a reset: only the venue knows what arrived.
    pub(super) fn forget_requests(&mut self) {
        self.mark_messages_lost();
        if let Some(initiator) = &mut self.initiator {
            initiator.pending_changes.clear();
        }
    }

    /// Records that messages of the venue are lost, so that the state of no order is certain. A
    /// synchronized session must synchronize again, so that the shards ask for every order.
    pub(super) fn mark_messages_lost(&mut self) {
        let Some(initiator) = &mut self.initiator else { return };
        initiator.known_orders.clear();
        initiator.has_lost_messages = true;
        if initiator.sync != SyncState::None {
            initiator.sync = SyncState::Wanted;
        }
    }

    /// Returns whether messages of the venue were lost, once.
    pub fn take_message_loss(&mut self) -> bool {
        self.initiator.as_mut().is_some_and(|initiator| std::mem::take(&mut initiator.has_lost_messages))
    }

    /// Returns how often the session became synchronized with its venue, if it is synchronized now.
    /// If two values differ, the session was not synchronized at some time between them.
    pub fn synchronizations(&self) -> Option<u64> {
        self.initiator.as_ref().filter(|_| self.is_synchronized()).map(|initiator| initiator.synchronizations)
    }

    /// Handles the venue's first message.
    pub(super) fn handle_logon_answer(&mut self, now: Timestamp, message: &FixMessage) {
        if message.frame.begin_string != BEGIN_STRING {
            return self.close(DisconnectReason::BeginString);
        }
        if !self.is_from_client(message) {
            return self.close(DisconnectReason::Identity);
        }
        let Some(number) = msg_seq_num_of(message) else {
            return self.close(DisconnectReason::NumberMissing);
        };
        if message.type_code() == msg_type::LOGOUT {
            return self.handle_refused_logon(message, number);
        }
        if message.type_code() != msg_type::LOGON || message.fault.is_some() {
            return self.close(DisconnectReason::NotLogon);
        }
        let sent = message.header.sending_time.and_then(parse_timestamp);
        if !sent.is_some_and(|sent| self.is_sending_time_accurate(now, sent)) {
            return self.close(DisconnectReason::SendingTime);
        }
        self.accept_logon_answer(now, message, number);
    }

    fn accept_logon_answer(&mut self, now: Timestamp, message: &FixMessage, number: u64) {
        let resets = message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && number == 1;
        if resets && self.sequence.next_sender() != 2 {
            // The venue restarts its numbers, and our Logon was number one.
            self.reset_sequence_numbers(now);
            self.sequence.set_next_sender(2);
            self.forget_requests();
        }
        if number < self.sequence.next_target() && !message.header.poss_dup {
            let (text, len) = too_low_text(self.sequence.next_target(), number);
            return self.log_out_and_close(now, &text[..len], DisconnectReason::NumberTooLow);
        }
        let received = message.get(tag::HEART_BT_INT).and_then(|text| parse_u64(text).ok());
        let Some(initiator) = &mut self.initiator else { return };
        let interval = received.filter(|&received| received > 0 && received <= HEART_BT_INT_MAX);
        let interval = interval.unwrap_or(initiator.settings.heart_bt_int_s);
        initiator.sync = SyncState::Wanted;
        self.timers.log_on(interval * NS_PER_S, self.settings.schedule.ends(now));
        self.advance(SessionInput::LogonAccepted);
        self.consume_logon_msg_seq_num(number);
    }

    /// Handles a refused logon. The venue's number counts, so that it is not taken for missing
    /// later.
    fn handle_refused_logon(&mut self, message: &FixMessage, number: u64) {
        self.sequence.consume_refused_logon(number);
        self.record_logout_text(message);
        self.close(DisconnectReason::LogonRefused);
    }

    /// Records the text of a Logout for logs.
    pub(super) fn record_logout_text(&mut self, message: &FixMessage) {
        if let (Some(initiator), Some(text)) = (&mut self.initiator, message.get(tag::TEXT)) {
            initiator.logout_text = Some(printable(text));
        }
    }

    /// Sends a Test Request to check that both sides have all messages, if no gap or resend is
    /// open.
    pub(super) fn continue_synchronization(&mut self, now: Timestamp) {
        let Some(initiator) = &mut self.initiator else { return };
        let quiet =
            !self.sequence.has_gap() && !self.resend.is_active() && self.state == FixSessionState::LoggedOn;
        if initiator.sync != SyncState::Wanted || !quiet {
            return;
        }
        let number = self.sequence.next_sender();
        initiator.sync = SyncState::TestRequested(number);
        self.send_admin(now, msg_type::TEST_REQUEST, |draft| draft.number(prefix::TEST_REQ_ID, number));
    }

    /// Repeats the check after a gap or a resend.
    pub(super) fn restart_synchronization(&mut self) {
        if let Some(initiator) = &mut self.initiator
            && matches!(initiator.sync, SyncState::TestRequested(_))
        {
            initiator.sync = SyncState::Wanted;
        }
    }

    pub(super) fn handle_venue_heartbeat(&mut self, message: &FixMessage) {
        let received = message.get(tag::TEST_REQ_ID).and_then(|id| parse_u64(id).ok());
        if let (Some(initiator), Some(received)) = (&mut self.initiator, received)
            && initiator.sync == SyncState::TestRequested(received)
        {
            initiator.sync = SyncState::Synchronized;
            initiator.synchronizations += 1;
            self.start_market_data();
        }
    }
}

/// Returns the id under which a message waits for its report to be stored.
pub(super) fn report_id(token: u32) -> IntId {
    IntId::numbered(b'r', token as u64)
}

/// Returns a venue's text as printable ASCII for a log line.
pub(super) fn printable(text: &[u8]) -> String {
    echo(text).iter().map(|&byte| if (32..127).contains(&byte) { byte as char } else { '?' }).collect()
}

fn idle_desk(port: PortId) -> Desk {
    let settings = DeskSettings {
        port,
        shards: 1,
        orders_max: 1,
        ids_max: 1,
        finished_max: 1,
        prefix: b'v',
        seed: 0,
        pages: LargePages::NONE,
    };
    Desk::new(settings, IdBlock { next: 1, end: 2 })
}
