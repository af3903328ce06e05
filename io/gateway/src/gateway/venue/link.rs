//! One venue: its session, its connection if there is one, and the commands that wait for the
//! shards.

use std::sync::Arc;

use pitlane_engine::id::{ShardId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_net::ConnectionId;
use pitlane_net::event::CloseReason;
use pitlane_net::settings::ConnectTarget;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::session::{FixSession, FixSessionState};
use pitlane_protocols::venue::VenueHealth;

use super::reporting::ShardReporting;
use crate::fix::message_log::{self, MessageDirection};
use crate::fix::venue::VenueSessionSettings;
use crate::gateway::transmit::transmit;
use crate::notifications::{SessionInfo, SessionKind};

/// Minimum interval between log lines with the venue's reject texts.
pub(super) const REJECT_TEXT_INTERVAL_NS: u64 = NS_PER_S;

#[derive(Debug)]
pub(super) struct VenueLink {
    pub settings: VenueSessionSettings,
    /// Source of its commands to the shards.
    pub source: Source,
    pub session: FixSession,
    pub connection: Option<ConnectionId>,
    /// Whether there may be work to do.
    pub has_work: bool,
    reporting: ShardReporting,
    since: Timestamp,
    bytes_in: u64,
    bytes_out: u64,
    paused: bool,
    logged: bool,
    reject_text_at: Timestamp,
    /// Last refusal of the venue, or how the last connection ended.
    last_error: Option<Arc<str>>,
    /// Whether the orders that were never sent have been rejected.
    has_begun: bool,
    /// Whether the last attempt failed too: then the failure is not logged again.
    had_failed: bool,
    /// Number of failed attempts: each moves to the next address.
    attempt: usize,
}

impl VenueLink {
    pub(super) fn new(
        settings: VenueSessionSettings,
        source: Source,
        session: FixSession,
        logged: bool,
    ) -> VenueLink {
        VenueLink {
            reporting: ShardReporting::new(settings.id, source),
            settings,
            source,
            session,
            connection: None,
            has_work: true,
            since: Timestamp::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            paused: false,
            logged,
            reject_text_at: Timestamp::ZERO,
            last_error: None,
            has_begun: false,
            had_failed: false,
            attempt: 0,
        }
    }

    pub(super) fn receive(
        &mut self,
        now: Timestamp,
        id: ConnectionId,
        sockets: &mut Sockets,
        fix_log: &mut message_log::FixLogHandle,
    ) {
        let bytes = sockets.input(id);
        let taken = self.session.handle_bytes(now, bytes);
        if self.logged {
            fix_log.log(self.source.session, MessageDirection::In, now, &bytes[..taken]);
        }
        if taken < bytes.len() {
            sockets.pause(id);
            self.paused = true;
        }
        self.bytes_in += taken as u64;
        sockets.consume(id, taken);
    }

    /// Handles a lost connection. Orders stay as they are; the shards learn that the venue is
    /// disconnected.
    pub(super) fn handle_disconnect(&mut self, now: Timestamp, why: Option<CloseReason>) {
        let state = self.session.state();
        let refusal = self.session.take_logout_text();
        let venue = self.settings.name();
        let is_news = !self.had_failed || state == FixSessionState::LoggedOn;
        self.last_error = match (&refusal, why) {
            (Some(text), _) => Some(text.as_str().into()),
            (None, Some(why)) => Some(format!("the connection has ended: {why:?}").into()),
            (None, None) => self.last_error.take(),
        };
        match refusal {
            Some(text) if is_news => tracing::warn!(venue, text, "the venue has ended the session"),
            None if is_news => tracing::warn!(venue, ?why, ?state, "the connection to the venue is lost"),
            Some(_) | None => {}
        }
        // Another address of the venue may work.
        self.attempt += usize::from(state == FixSessionState::AwaitingLogon);
        self.had_failed = true;
        self.session.disconnect(now);
        (self.connection, self.paused, self.has_work) = (None, false, true);
    }

    /// Handles the answer of a shard to a question that followed some reports.
    pub(super) fn handle_done(&mut self, now: Timestamp, shard: ShardId, token: u32, reason: Reason) {
        self.reporting.handle_done(now, shard, token, reason, &mut self.session);
    }

    pub(super) fn poll(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        port: Option<&mut PortEnd>,
        fix_log: &mut message_log::FixLogHandle,
        is_open: bool,
    ) -> usize {
        let is_due = now >= self.deadline(is_open);
        if !self.has_work && !is_due {
            return 0;
        }
        self.has_work = false;
        if self.session.poll_timeout().is_some_and(|at| at <= now) {
            self.session.handle_timeout(now);
            self.try_connect(now, sockets, is_open);
        }
        let mut work = match port {
            Some(port) => self.send_to_shards(now, port),
            // No command is sent any more. Input is still read, and the venue will send it again:
            // none of it is stored.
            None => {
                while self.session.poll_report(now).is_some() || self.session.poll_price().is_some() {}
                0
            }
        };
        self.log_reject_text(now);
        let Some(id) = self.connection else { return work };
        let written = self.write(now, id, sockets, fix_log);
        work += written;
        // Written bytes free buffer space for output that was held back.
        self.has_work |= written > 0;
        if self.paused && self.session.wants_bytes() {
            self.paused = false;
            sockets.resume(id);
        }
        if let Some(ending) = self.session.poll_close() {
            tracing::info!(venue = self.settings.name(), ?ending, "session with the venue ended");
            sockets.finish(id);
            self.handle_disconnect(now, None);
        }
        work
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.reporting.is_waiting()
    }

    pub(super) fn deadline(&self, is_open: bool) -> Timestamp {
        // Without a connection, nothing is due before the service opens or after it closes.
        let connects = self.connection.is_some() || is_open;
        let session = self.session.poll_timeout().filter(|_| connects);
        self.reporting.deadline().min(session.unwrap_or(Timestamp::MAX))
    }

    pub(super) fn row(&self) -> SessionInfo {
        let (numbers, counts) = (self.session.sequence_numbers(), self.session.counts());
        SessionInfo {
            kind: SessionKind::Venue,
            number: self.source.session as u64,
            name: Some(self.settings.name().into()),
            peer: self.connection.map(|_| self.target().address),
            since: self.since,
            state: match self.session.state() {
                FixSessionState::Disconnected => "DISCONNECTED",
                FixSessionState::AwaitingLogon => "LOGGING_ON",
                FixSessionState::LoggedOn if !self.session.is_synchronized() => "RECOVERING",
                FixSessionState::LoggedOn => "LOGGED_ON",
                FixSessionState::LoggingOut | FixSessionState::Closing => "ENDING",
            },
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            messages_in: counts.messages_in,
            messages_out: counts.messages_out,
            queue_bytes: self.session.unsent_bytes() as u64,
            stomp: None,
            next_in: Some(numbers.next_target_msg_seq_num),
            next_out: Some(numbers.next_sender_msg_seq_num),
            venue: Some(self.session.venue_counts()),
            health: Some(Arc::new(VenueHealth {
                round_trip_us: self.session.round_trip_ns().map(|ns| ns / 1_000),
                last_error: self.last_error.clone(),
                ..VenueHealth::default()
            })),
        }
    }

    /// Returns the current address.
    fn target(&self) -> &ConnectTarget {
        &self.settings.targets[self.attempt % self.settings.targets.len()]
    }

    /// Connects to the venue if it is time.
    fn try_connect(&mut self, now: Timestamp, sockets: &mut Sockets, is_open: bool) {
        if self.connection.is_some() || self.session.state() != FixSessionState::Disconnected || !is_open {
            return;
        }
        self.session.set_schedule(self.settings.schedule(now));
        if !self.session.wants_connection(now) {
            return self.session.handle_connect_failed(now);
        }
        match sockets.connect(self.target()) {
            Ok(id) => {
                let connected = self.session.connect(now);
                assert!(connected, "a disconnected client can connect");
                (self.connection, self.since) = (Some(id), now);
            }
            Err(error) => {
                tracing::warn!(venue = self.settings.name(), %error, "the connection to the venue cannot be opened");
                self.attempt += 1;
                self.session.handle_connect_failed(now);
            }
        }
    }

    /// Sends the shards what was received.
    fn send_to_shards(&mut self, now: Timestamp, port: &mut PortEnd) -> usize {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.session.reject_never_sent();
        }
        let round = self.reporting.poll(now, port, &mut self.session);
        self.has_work |= round.has_work;
        let venue = self.settings.name();
        if self.session.take_message_loss() {
            tracing::info!(
                venue,
                "the numbers of the session were reset: open orders are unknown until the venue reports them"
            );
        }
        log_connection(venue, round.connected);
        self.had_failed &= round.connected != Some(true);
        round.work
    }

    fn write(
        &mut self,
        now: Timestamp,
        id: ConnectionId,
        sockets: &mut Sockets,
        fix_log: &mut message_log::FixLogHandle,
    ) -> usize {
        let log = self.logged.then_some(self.source.session);
        let taken = transmit(now, &mut self.session, id, sockets, fix_log, log);
        self.bytes_out += taken as u64;
        usize::from(taken > 0)
    }

    /// Logs why the venue refused something, or why its market data is unusable, at a limited rate.
    fn log_reject_text(&mut self, now: Timestamp) {
        if now < self.reject_text_at {
            return;
        }
        if let Some(text) = self.session.take_reject_text() {
            self.reject_text_at = now.plus(REJECT_TEXT_INTERVAL_NS);
            self.last_error = Some(text.as_str().into());
            tracing::warn!(venue = self.settings.name(), text, "the venue has refused an order or a request");
        }
        if let Some(text) = self.session.take_price_fault() {
            self.reject_text_at = now.plus(REJECT_TEXT_INTERVAL_NS);
            self.last_error = Some(text.as_str().into());
            tracing::warn!(venue = self.settings.name(), text, "market data of the venue cannot be used");
        }
    }
}

/// Logs a change of the connection to a venue.
pub(super) fn log_connection(venue: &str, connected: Option<bool>) {
    match connected {
        Some(true) => tracing::info!(venue, "connected to the venue"),
        Some(false) => tracing::warn!(venue, "the venue is disconnected: orders for it are refused"),
        None => {}
    }
}
