//! One FIX session. It lives as long as the service; its connections come and go. A session is the
//! session layer, which is the same for every session, and a role: a client connects to us
//! ([`FixSession::new`]), or we connect to a venue ([`FixSession::initiator`]). Where the comments
//! say "client", an initiator's counterparty is the venue.
//!
//! ```text
//! FixSession
//! ├── SessionLayer     layer: checks, administrative messages, logout, time limits
//! │   ├── FixStream       stream: unread bytes, encoder, unsent bytes
//! │   ├── SequenceLayer   sequence: numbers, gap, early messages, requests in flight, store
//! │   ├── Resend          resend: what is sent again, in steps
//! │   └── SessionTimers   timers: deadlines
//! └── Role
//!     ├── Acceptor        acceptor: login, requests, orders and reports of a client
//!     └── Initiator       initiator: connection, orders, reports and prices of a venue
//! ```
//!
//! A role sends through the layer that it is given, and the layer calls the role through
//! `SessionRole`. Another role is another type that implements this trait; the layer stays as it
//! is.
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
//! session.handle_instruction(now, shard, seq, instruction, special)
//! while let Some(report) = session.poll_report(now) {
//!     send it to its shard                 once it is stored: session.handle_stored(token)
//! }
//! ```
//!
//! Rules: docs/fix-rules.md#acceptor.

mod acceptor;
mod initiator;
mod layer;
mod resend;
mod sequence;
mod settings;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod timers;
mod venue_reports;

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::command::{CommandKind, TradingSession};
use pitlane_engine::desk::{Declined, Desk};
use pitlane_engine::event::{Event, Instruction, OrderReport, RequestRefusal};
use pitlane_engine::id::{ExchangeId, IntId, OrderHandle, ShardId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use self::acceptor::Acceptor;
use self::initiator::{Initiator, report_id};
use self::layer::SessionLayer;
use super::drop_copy::CopiedReport;
use super::entry::ClientRequest;
use super::market_data::MarketImage;
use super::positions::{PositionQuery, PositionRow};
use super::schedule::SessionSchedule;
use super::store::{MessageStore, SequenceNumbers};
use super::venue::InitiatorSettings;

pub use self::acceptor::{DontKnowTrade, LoginState, LogonCredentials, MarketInterest};
pub use self::layer::LOGON_BYTES_MAX;
pub use self::settings::FixSessionSettings;
pub use self::state::{DisconnectReason, FixSessionCounts, FixSessionState, SessionInput};
pub use self::stream::{OUTPUT_BYTES_HIGH, OUTPUT_BYTES_MAX};
pub use self::timers::{FRAME_NS_MAX, LOGON_NS_MAX, LOGOUT_NS_MAX};
pub use crate::venue::{InboundReport, VenueCounts};

#[derive(Debug)]
pub struct FixSession {
    layer: SessionLayer,
    role: Role,
}

/// What the session is for. Methods of another role do nothing.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most sessions are of clients, whose path has no detour")]
enum Role {
    Acceptor(Acceptor),
    Initiator(Box<Initiator>),
}

impl Role {
    fn acceptor(&mut self) -> Option<&mut Acceptor> {
        match self {
            Role::Acceptor(acceptor) => Some(acceptor),
            Role::Initiator(_) => None,
        }
    }

    fn initiator(&self) -> Option<&Initiator> {
        match self {
            Role::Acceptor(_) => None,
            Role::Initiator(initiator) => Some(initiator),
        }
    }

    fn initiator_mut(&mut self) -> Option<&mut Initiator> {
        match self {
            Role::Acceptor(_) => None,
            Role::Initiator(initiator) => Some(initiator),
        }
    }
}

/// Every session.
impl FixSession {
    /// Creates the session of a client.
    pub fn new(
        settings: FixSessionSettings,
        store: Box<dyn MessageStore>,
        reference: Arc<RefData>,
    ) -> FixSession {
        let mut layer = SessionLayer::new(settings, store);
        let role = Role::Acceptor(Acceptor::new(&mut layer, reference));
        FixSession { layer, role }
    }

    /// Creates a session with a venue. `never_sent` lists orders of which the journal has an
    /// instruction and the store has no message.
    pub fn initiator(
        settings: FixSessionSettings,
        venue: InitiatorSettings,
        store: Box<dyn MessageStore>,
        reference: Arc<RefData>,
        never_sent: BTreeSet<OrderHandle>,
    ) -> FixSession {
        let layer = SessionLayer::new(settings, store);
        let role = Role::Initiator(Box::new(Initiator::new(&layer, venue, reference, never_sent)));
        FixSession { layer, role }
    }

    /// Starts a connection of this session. Returns false while another connection exists.
    #[must_use]
    pub fn connect(&mut self, now: Timestamp) -> bool {
        let is_new = self.layer.connect(now);
        if is_new {
            match &mut self.role {
                Role::Acceptor(acceptor) => acceptor.handle_connect(),
                Role::Initiator(initiator) => initiator.handle_connect(&mut self.layer, now),
            }
        }
        is_new
    }

    /// Ends the connection. Sequence numbers and orders stay.
    pub fn disconnect(&mut self, now: Timestamp) {
        let Some(was_logged_on) = self.layer.disconnect() else { return };
        match &mut self.role {
            Role::Acceptor(acceptor) => acceptor.handle_disconnect(&self.layer.settings, now, was_logged_on),
            Role::Initiator(initiator) => initiator.handle_disconnect(&mut self.layer, now),
        }
    }

    /// Takes bytes from the client and returns how many there was room for. The caller offers the
    /// rest again.
    #[must_use]
    pub fn handle_bytes(&mut self, now: Timestamp, bytes: &[u8]) -> usize {
        self.layer.handle_bytes(now, bytes)
    }

    /// Returns whether there is room for more than a few bytes.
    pub fn wants_bytes(&self) -> bool {
        self.layer.stream.unread().len() <= self.layer.settings.message_bytes_max
    }

    /// Returns the bytes to write to the connection.
    pub fn poll_transmit(&mut self) -> &[u8] {
        self.layer.save_sequence_numbers();
        self.layer.stream.unsent()
    }

    /// Records that `count` bytes were written.
    pub fn handle_transmitted(&mut self, now: Timestamp, count: usize) {
        self.layer.handle_transmitted(now, count);
        if let Role::Initiator(initiator) = &mut self.role
            && count > 0
        {
            initiator.handle_transmitted();
        }
    }

    /// Returns the number of bytes to write.
    pub fn unsent_bytes(&self) -> usize {
        self.layer.stream.unsent_bytes()
    }

    /// Returns why the connection must be closed, once everything is written.
    pub fn poll_close(&self) -> Option<DisconnectReason> {
        self.layer.poll_close()
    }

    /// Sends Logout and waits for the client's Logout.
    pub fn log_out(&mut self, now: Timestamp, text: &[u8], ending: DisconnectReason) {
        self.layer.log_out(now, text, ending);
    }

    /// Sends a Test Request now, because another connection asks for the session.
    pub fn probe(&mut self, now: Timestamp) {
        self.layer.probe(now);
    }

    /// Sets both sequence numbers to one for the operator. A client that is logged on is logged
    /// out, since its numbers differ.
    pub fn reset(&mut self, now: Timestamp) {
        if self.layer.is_logged_on() {
            let text = b"Sequence numbers are reset";
            self.layer.log_out_and_close(now, text, DisconnectReason::EndedByUs);
        }
        self.layer.reset_sequence_numbers(now);
        if let Some(initiator) = self.role.initiator_mut() {
            initiator.forget_requests();
        }
    }

    /// Returns the latest time for the next call of [`FixSession::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let state = self.layer.state();
        let of_role = match &self.role {
            Role::Acceptor(acceptor) => acceptor.poll_timeout(state),
            Role::Initiator(initiator) => initiator.poll_timeout(state),
        };
        [of_role, self.layer.poll_timeout()].into_iter().flatten().min()
    }

    /// Does everything that is due now.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if let Role::Acceptor(acceptor) = &mut self.role {
            acceptor.handle_timeout(self.layer.state(), now);
        }
        self.layer.handle_timeout(now);
    }

    /// Sets the session hours again, because UTC offsets change with daylight saving time.
    pub fn set_schedule(&mut self, schedule: SessionSchedule) {
        self.layer.set_schedule(schedule);
    }

    /// Sets new reference data, which all sessions share.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        match &mut self.role {
            Role::Acceptor(acceptor) => acceptor.set_reference(reference),
            Role::Initiator(initiator) => initiator.set_reference(&self.layer, reference),
        }
    }

    pub fn state(&self) -> FixSessionState {
        self.layer.state()
    }

    pub fn sequence_numbers(&self) -> SequenceNumbers {
        self.layer.sequence.numbers()
    }

    pub fn counts(&self) -> FixSessionCounts {
        self.layer.counts()
    }

    pub fn settings(&self) -> &FixSessionSettings {
        &self.layer.settings
    }
}

/// Sessions of clients.
impl FixSession {
    /// Handles received messages up to the next request, and returns that request.
    pub fn poll_command(&mut self, now: Timestamp, desk: &Desk) -> Option<ClientRequest> {
        self.role.acceptor()?.poll_command(&mut self.layer, now, desk)
    }

    /// Returns username and password for the caller to check. The caller answers with
    /// [`FixSession::handle_login`]; the session reads nothing before that.
    pub fn poll_login(&mut self) -> Option<LogonCredentials<'_>> {
        self.role.acceptor()?.poll_login(&mut self.layer)
    }

    pub fn handle_login(&mut self, admitted: bool) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_login(admitted);
        }
    }

    /// Sets whether the service accepts orders.
    pub fn set_ready(&mut self, is_ready: bool) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.set_ready(is_ready);
        }
    }

    /// Handles an event of a shard. The desk must have handled it before.
    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_event(&mut self.layer, now, shard, event, desk);
        }
    }

    /// Handles an event from before a restart that was never reported: the journal has it, and the
    /// store has no report of it. The desk must have the current state.
    pub fn handle_missed_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_missed_event(&mut self.layer, now, shard, event, desk);
        }
    }

    /// Handles a request refused by a shard or by the desk on its behalf.
    pub fn handle_refusal(&mut self, now: Timestamp, refusal: &RequestRefusal, desk: &Desk) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_refusal(&mut self.layer, now, refusal, desk);
        }
    }

    /// Handles a request that the desk refused. While its lane is full
    /// ([`pitlane_engine::reason::Reason::LaneFull`]) the caller keeps the request instead.
    pub fn handle_declined(&mut self, now: Timestamp, request: &ClientRequest, declined: &Declined) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_declined(&mut self.layer, now, request, declined);
        }
    }

    /// Sends a copy of a report about an order of another source. A copy of a `missed` event, from
    /// before a restart, is sent if the store has none.
    pub fn copy_report(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        copied: &CopiedReport,
        missed: bool,
    ) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.copy_report(&mut self.layer, now, shard, event, copied, missed);
        }
    }

    /// Takes the next change of the market data that the session needs. The caller gives the newest
    /// data of a needed security, and all later ones, to [`FixSession::handle_market_image`].
    pub fn poll_market_interest(&mut self) -> Option<MarketInterest> {
        self.role.acceptor()?.poll_market_interest()
    }

    /// Handles new market data of a security.
    pub fn handle_market_image(&mut self, now: Timestamp, image: &MarketImage) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_market_image(&mut self.layer, now, image);
        }
    }

    /// Takes the trading session of an exchange, at the start of the session and at every change.
    pub fn handle_trading_session(&mut self, exchange: ExchangeId, state: TradingSession) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_trading_session(exchange, state);
        }
    }

    /// Returns the positions that the client asks for. The caller answers with
    /// [`FixSession::handle_positions`].
    pub fn poll_position_query(&mut self) -> Option<PositionQuery> {
        self.role.acceptor()?.poll_position_query()
    }

    /// Takes the positions of the query with this token.
    pub fn handle_positions(&mut self, token: u32, rows: Arc<[PositionRow]>) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_positions(token, rows);
        }
    }

    /// Takes the id under which the desk has sent [`ClientRequest::CancelOrders`].
    pub fn handle_mass_cancel_sent(&mut self, command: IntId) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.handle_mass_cancel_sent(command);
        }
    }

    /// Returns a trade that the client does not recognise, once.
    pub fn take_dont_know_trade(&mut self) -> Option<Box<DontKnowTrade>> {
        self.role.acceptor().and_then(Acceptor::take_dont_know_trade)
    }

    /// Reports an order's status unasked, because the events before it are lost. The desk must have
    /// handled the report before.
    pub fn report_order_status(&mut self, now: Timestamp, reported: &OrderReport, desk: &Desk) {
        if let Some(acceptor) = self.role.acceptor() {
            acceptor.report_order_status(&mut self.layer, now, reported, desk);
        }
    }
}

/// Sessions with venues.
impl FixSession {
    /// Returns whether the caller must connect now and then call [`FixSession::connect`].
    pub fn wants_connection(&self, now: Timestamp) -> bool {
        self.role.initiator().is_some_and(|initiator| initiator.wants_connection(&self.layer, now))
    }

    /// Delays the next attempt after a failed connection.
    pub fn handle_connect_failed(&mut self, now: Timestamp) {
        if let Some(initiator) = self.role.initiator_mut() {
            initiator.handle_connect_failed(now);
        }
    }

    /// Returns whether orders may be sent: we are logged on, and neither side misses a message of
    /// the other.
    pub fn is_synchronized(&self) -> bool {
        self.role.initiator().is_some_and(|initiator| initiator.is_synchronized(&self.layer))
    }

    /// Returns how often the session became synchronized with its venue, if it is synchronized now.
    /// If two values differ, the session was not synchronized at some time between them.
    pub fn synchronizations(&self) -> Option<u64> {
        self.role.initiator()?.synchronizations(&self.layer)
    }

    /// Handles an instruction of a shard; `seq` is the number of its event. An instruction that
    /// cannot be sent is answered at once.
    pub fn handle_instruction(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        seq: u64,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        if let Some(initiator) = self.role.initiator_mut() {
            initiator.handle_instruction(&mut self.layer, now, (shard, seq), instruction, special);
        }
    }

    /// Rejects orders that never left before the process ended. The caller calls this before
    /// anything is sent.
    pub fn reject_never_sent(&mut self) {
        if let Some(initiator) = self.role.initiator_mut() {
            initiator.reject_never_sent();
        }
    }

    /// Handles received messages up to the next report or price, and returns the report. The caller
    /// takes prices first ([`FixSession::poll_price`]).
    pub fn poll_report(&mut self, now: Timestamp) -> Option<InboundReport> {
        self.role.initiator_mut()?.poll_report(&mut self.layer, now)
    }

    /// Records that a shard has stored the report of this token, so that its message need not
    /// arrive again.
    pub fn handle_stored(&mut self, token: u32) {
        self.layer.sequence.in_flight.complete(&report_id(token));
    }

    /// Returns the next price for the shard of its security: a quote, a trade or a part of a book.
    pub fn poll_price(&mut self) -> Option<CommandKind> {
        self.role.initiator_mut()?.poll_price()
    }

    /// Returns whether messages of the venue were lost, once.
    pub fn take_message_loss(&mut self) -> bool {
        self.role.initiator_mut().is_some_and(Initiator::take_message_loss)
    }

    /// Returns the text of the venue's last Logout, once.
    pub fn take_logout_text(&mut self) -> Option<String> {
        self.role.initiator_mut()?.take_logout_text()
    }

    /// Returns the text of the venue's last reject of an order or request, once.
    pub fn take_reject_text(&mut self) -> Option<String> {
        self.role.initiator_mut()?.take_reject_text()
    }

    /// Returns the newest round trip to the venue.
    pub fn round_trip_ns(&self) -> Option<u64> {
        self.role.initiator().and_then(Initiator::round_trip_ns)
    }

    pub fn venue_counts(&self) -> VenueCounts {
        self.role.initiator().map(Initiator::counts).unwrap_or_default()
    }
}
