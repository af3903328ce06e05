//! One venue: its session, its connection if there is one, and the commands that wait for the
//! shards.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::{ShardId, Source};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::reason::Reason;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_net::ConnectionId;
use pitlane_net::event::CloseReason;
use pitlane_net::settings::ConnectTarget;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::session::{FixSession, FixSessionState, InboundReport};

use super::stored::ReportConfirmations;
use crate::fix::message_log::{self, MessageDirection};
use crate::fix::venue::VenueSessionSettings;
use crate::gateway::transmit::transmit;
use crate::notifications::{SessionInfo, SessionKind};

/// Maximum number of reports of one venue per cycle, so that others are served too.
const REPORTS_PER_ROUND_MAX: usize = 256;

/// Minimum interval between log lines with the venue's reject texts.
const REJECT_TEXT_INTERVAL_NS: u64 = NS_PER_S;

#[derive(Debug)]
pub(super) struct VenueLink {
    pub settings: VenueSessionSettings,
    /// Source of its commands to the shards.
    pub source: Source,
    pub session: FixSession,
    pub connection: Option<ConnectionId>,
    /// Whether there may be work to do.
    pub has_work: bool,
    /// Commands for the shards, in order: reports, and whether the venue is connected. Nothing more
    /// is read before they are sent.
    pending_commands: PendingCommands,
    /// By shard.
    stored: Vec<ReportConfirmations>,
    /// The value of [`FixSession::synchronizations`] last sent to the shards; `None` if they take
    /// the venue to be disconnected.
    sent_synchronizations: Option<u64>,
    since: Timestamp,
    bytes_in: u64,
    bytes_out: u64,
    paused: bool,
    logged: bool,
    reject_text_at: Timestamp,
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
            settings,
            source,
            session,
            connection: None,
            has_work: true,
            pending_commands: PendingCommands::new(source),
            stored: Vec::new(),
            sent_synchronizations: None,
            since: Timestamp::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            paused: false,
            logged,
            reject_text_at: Timestamp::ZERO,
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
        let Some(stored) = self.stored.get_mut(shard.0 as usize) else { return };
        for token in stored.handle_done(now, token, reason) {
            self.session.handle_stored(token);
        }
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
        !self.pending_commands.is_empty()
    }

    pub(super) fn deadline(&self, is_open: bool) -> Timestamp {
        let stored =
            self.stored.iter().map(ReportConfirmations::deadline).fold(Timestamp::MAX, Timestamp::min);
        // Without a connection, nothing is due before the service opens or after it closes.
        let connects = self.connection.is_some() || is_open;
        let session = self.session.poll_timeout().filter(|_| connects);
        stored.min(session.unwrap_or(Timestamp::MAX))
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

    /// Sends the shards what was received: first the reports, then whether the venue is connected.
    fn send_to_shards(&mut self, now: Timestamp, port: &mut PortEnd) -> usize {
        if self.stored.is_empty() {
            self.stored.resize_with(port.shards() as usize, ReportConfirmations::default);
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.session.reject_never_sent();
        }
        let mut work = self.pending_commands.poll(port);
        while work < REPORTS_PER_ROUND_MAX && self.pending_commands.is_empty() {
            // In the order in which the venue sent them.
            match self.session.poll_report(now) {
                Some(report) => self.send_report(report, port),
                None => match self.session.poll_price() {
                    Some(price) => self.send_price(price, port),
                    None => break,
                },
            }
            work += 1;
        }
        self.has_work |= !self.pending_commands.is_empty() || work >= REPORTS_PER_ROUND_MAX;
        if self.session.take_message_loss() {
            let venue = self.settings.name();
            tracing::info!(
                venue,
                "the numbers of the session were reset: open orders are unknown until the venue reports them"
            );
        }
        let synchronizations = self.session.synchronizations();
        if self.pending_commands.is_empty()
            && work < REPORTS_PER_ROUND_MAX
            && synchronizations != self.sent_synchronizations
        {
            let was_connected =
                std::mem::replace(&mut self.sent_synchronizations, synchronizations).is_some();
            let connected = synchronizations.is_some();
            let venue = self.settings.name();
            if was_connected && connected {
                // The connection was interrupted: instructions sent meanwhile were refused, and the
                // shards must ask again.
                self.pending_commands
                    .push_all(CommandKind::Adapter { adapter: self.settings.id, connected: false });
            }
            match connected {
                true => tracing::info!(venue, "connected to the venue"),
                false => tracing::warn!(venue, "the venue is disconnected: orders for it are refused"),
            }
            self.had_failed &= !connected;
            self.pending_commands.push_all(CommandKind::Adapter { adapter: self.settings.id, connected });
            work += self.pending_commands.poll(port);
            self.has_work = true;
        }
        // A question must not overtake the reports it is about.
        let asks = self.pending_commands.is_empty();
        for (shard, stored) in self.stored.iter_mut().enumerate().filter(|_| asks) {
            let shard = ShardId(index_u8(shard));
            work += usize::from(stored.poll(now, shard, self.source, self.settings.id, port));
        }
        work
    }

    /// Sends a report to the shard of its order, at once if the lane accepts it.
    fn send_report(&mut self, report: InboundReport, port: &mut PortEnd) {
        let InboundReport { order, report, token } = report;
        let shard = order.shard();
        // An id without a shard is not ours: the report is skipped.
        let Some(stored) = self.stored.get_mut(shard.0 as usize) else {
            return self.session.handle_stored(token);
        };
        if token != 0 {
            stored.record(token);
        }
        self.send(shard, CommandKind::Report { order, report }, port);
    }

    /// Sends a price to the shard of its security. It must not be lost either: a stop order may
    /// wait for it.
    fn send_price(&mut self, price: CommandKind, port: &mut PortEnd) {
        let (CommandKind::Quote { security, .. } | CommandKind::Trade { security, .. }) = price else {
            return;
        };
        self.send(shard_of(security, port.shards()), price, port);
    }

    fn send(&mut self, shard: ShardId, body: CommandKind, port: &mut PortEnd) {
        let command = Command::new(self.source, 0, body);
        if port.send(shard, command).is_err() {
            self.pending_commands.push_command(shard, command);
        }
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

    /// Logs why the venue refused something, at a limited rate.
    fn log_reject_text(&mut self, now: Timestamp) {
        if now < self.reject_text_at {
            return;
        }
        if let Some(text) = self.session.take_reject_text() {
            self.reject_text_at = now.plus(REJECT_TEXT_INTERVAL_NS);
            tracing::warn!(venue = self.settings.name(), text, "the venue has refused an order or a request");
        }
    }
}
