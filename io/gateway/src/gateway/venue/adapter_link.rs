//! One venue behind the adapter seam ([`VenueAdapter`]): its state machine and its connections.

use std::sync::Arc;

use pitlane_engine::event::Instruction;
use pitlane_engine::id::{AdapterId, ShardId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;
use pitlane_net::ConnectionId;
use pitlane_net::event::CloseReason;
use pitlane_net::settings::ConnectTarget;
use pitlane_net::sockets::Sockets;
use pitlane_net::websocket_key::{accept_of, random_key};
use pitlane_protocols::venue::{ConnectRandom, LinkIndex, VenueAdapter};
use pitlane_protocols::websocket::client::WebSocketKey;

use super::link::{REJECT_TEXT_INTERVAL_NS, log_connection};
use super::reporting::ShardReporting;
use crate::binance::TradingDayClock;
use crate::notifications::{SessionInfo, SessionKind};

/// Bytes of one connection that are handled in one cycle, so that a venue that floods does not
/// delay the others of this gateway.
const INPUT_BYTES_PER_ROUND_MAX: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct AdapterLink {
    pub id: AdapterId,
    name: String,
    /// Source of its commands to the shards.
    pub source: Source,
    adapter: Box<dyn VenueAdapter>,
    /// By connection of the adapter: addresses, which are tried in turn.
    targets: Vec<Vec<ConnectTarget>>,
    trading_day: TradingDayClock,
    connections: Vec<Option<ConnectionId>>,
    reporting: ShardReporting,
    /// Whether there may be work to do.
    pub has_work: bool,
    /// Received bytes, which the adapter may change.
    input: Vec<u8>,
    since: Timestamp,
    bytes_in: u64,
    bytes_out: u64,
    /// Whether input waits until the shards have taken the reports.
    paused: bool,
    /// Connections that have ended, by link: each moves to the next address.
    attempts: Vec<usize>,
    log_text_at: Timestamp,
}

impl AdapterLink {
    pub(super) fn new(
        id: AdapterId,
        name: String,
        source: Source,
        adapter: Box<dyn VenueAdapter>,
        targets: Vec<Vec<ConnectTarget>>,
        trading_day: TradingDayClock,
    ) -> AdapterLink {
        let adapter_links = adapter.links();
        AdapterLink {
            id,
            name,
            source,
            connections: vec![None; adapter_links],
            adapter,
            targets,
            trading_day,
            reporting: ShardReporting::new(id, source),
            has_work: true,
            input: Vec::new(),
            since: Timestamp::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            paused: false,
            attempts: vec![0; adapter_links],
            log_text_at: Timestamp::ZERO,
        }
    }

    pub(super) fn adapter_mut(&mut self) -> &mut dyn VenueAdapter {
        &mut *self.adapter
    }

    pub(super) fn owns(&self, id: ConnectionId) -> bool {
        self.link(id).is_some()
    }

    fn link(&self, id: ConnectionId) -> Option<LinkIndex> {
        self.connections.iter().position(|connection| *connection == Some(id)).map(LinkIndex)
    }

    pub(super) fn handle_instruction(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        seq: u64,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        self.has_work = true;
        self.adapter.handle_instruction(now, shard, seq, instruction, special);
    }

    pub(super) fn receive(&mut self, now: Timestamp, id: ConnectionId, sockets: &mut Sockets) {
        let Some(link) = self.link(id) else { return };
        self.has_work = true;
        if self.reporting.has_backlog() {
            self.paused = true;
            return sockets.pause(id);
        }
        let bytes = sockets.input(id);
        let count = bytes.len().min(INPUT_BYTES_PER_ROUND_MAX);
        let is_part = count < bytes.len();
        self.input.clear();
        self.input.extend_from_slice(&bytes[..count]);
        sockets.consume(id, count);
        if is_part {
            // The rest is read in the next cycle.
            self.paused = true;
            sockets.pause(id);
        }
        self.bytes_in += self.input.len() as u64;
        self.adapter.handle_bytes(link, now, &mut self.input);
    }

    /// Handles a lost connection. Orders stay as they are; the shards learn that the venue is
    /// disconnected.
    pub(super) fn handle_disconnect(&mut self, now: Timestamp, id: ConnectionId, why: Option<CloseReason>) {
        let Some(link) = self.link(id) else { return };
        self.log_text(now);
        tracing::debug!(venue = self.name, ?why, "a connection to the venue has ended");
        // Another address of the venue may work.
        self.attempts[link.0] += 1;
        self.connections[link.0] = None;
        self.adapter.handle_disconnect(link, now);
        self.has_work = true;
    }

    pub(super) fn handle_done(&mut self, now: Timestamp, shard: ShardId, token: u32, reason: Reason) {
        self.has_work = true;
        self.reporting.handle_done(now, shard, token, reason, &mut *self.adapter);
    }

    pub(super) fn poll(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        port: Option<&mut PortEnd>,
        is_open: bool,
    ) -> usize {
        if !self.has_work && now < self.deadline(is_open) {
            return 0;
        }
        self.has_work = false;
        if now >= self.adapter.poll_timeout() {
            self.adapter.handle_timeout(now);
            self.try_connect(now, sockets, is_open);
        }
        let mut work = 0;
        if let Some(port) = port {
            let round = self.reporting.poll(now, port, &mut *self.adapter);
            (work, self.has_work) = (round.work, round.has_work);
            log_connection(&self.name, round.connected);
        } else {
            // No command is sent any more. The venue keeps what it has done, and the next process
            // looks it up.
            while self.adapter.poll_report(now).is_some() || self.adapter.poll_price().is_some() {}
        }
        if self.paused && !self.reporting.has_backlog() {
            self.paused = false;
            self.connections.iter().flatten().for_each(|id| sockets.resume(*id));
        }
        for link in (0..self.connections.len()).map(LinkIndex) {
            work += self.write(now, link, sockets);
        }
        self.log_text(now);
        work
    }

    fn write(&mut self, now: Timestamp, link: LinkIndex, sockets: &mut Sockets) -> usize {
        let Some(id) = self.connections[link.0] else { return 0 };
        let bytes = self.adapter.poll_transmit(link);
        // The socket reports a connection that is gone with an event of its own.
        let taken = if bytes.is_empty() { 0 } else { sockets.write(id, bytes).unwrap_or(0) };
        let is_written = taken == bytes.len();
        self.adapter.handle_transmitted(link, taken);
        self.bytes_out += taken as u64;
        if is_written && self.adapter.wants_close(link) {
            sockets.finish(id);
            self.handle_disconnect(now, id, None);
        }
        usize::from(taken > 0)
    }

    /// Opens the connections that the adapter wants.
    fn try_connect(&mut self, now: Timestamp, sockets: &mut Sockets, is_open: bool) {
        for link in (0..self.connections.len()).map(LinkIndex) {
            let is_wanted = is_open && self.connections[link.0].is_none();
            if !is_wanted || !self.adapter.wants_connection(link, now) {
                continue;
            }
            let (key, seed) = random_key();
            let accept = accept_of(key.as_bytes());
            let random = ConnectRandom { key: WebSocketKey { key, accept }, seed };
            self.adapter.set_trading_day(self.trading_day.schedule(now));
            self.adapter.handle_connect(link, now, random);
            match sockets.connect(self.target(link)) {
                Ok(id) => (self.connections[link.0], self.since) = (Some(id), now),
                Err(error) => {
                    tracing::warn!(venue = self.name, %error, "the connection to the venue cannot be opened");
                    self.attempts[link.0] += 1;
                    self.adapter.handle_disconnect(link, now);
                }
            }
        }
    }

    /// Returns the current address of a connection.
    fn target(&self, link: LinkIndex) -> &ConnectTarget {
        let targets = &self.targets[link.0];
        &targets[self.attempts[link.0] % targets.len()]
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.reporting.is_waiting()
    }

    pub(super) fn is_disconnected(&self) -> bool {
        self.connections.iter().all(Option::is_none)
    }

    pub(super) fn deadline(&self, is_open: bool) -> Timestamp {
        // Without a connection, nothing is due before the service opens or after it closes.
        let adapter = match is_open || !self.is_disconnected() {
            true => self.adapter.poll_timeout(),
            false => Timestamp::MAX,
        };
        self.reporting.deadline().min(adapter)
    }

    /// Ends all connections at once, when the time for an orderly end is over.
    pub(super) fn close(&mut self, now: Timestamp, sockets: &mut Sockets) {
        for id in self.connections.clone().into_iter().flatten() {
            sockets.close(id);
            self.handle_disconnect(now, id, None);
        }
    }

    pub(super) fn row(&self, now: Timestamp) -> SessionInfo {
        let status = self.adapter.status(now);
        SessionInfo {
            kind: SessionKind::Venue,
            number: self.source.session as u64,
            name: Some(self.name.as_str().into()),
            peer: self.connections[0].map(|_| self.target(LinkIndex(0)).address),
            since: self.since,
            state: status.state,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            messages_in: status.messages_in,
            messages_out: status.messages_out,
            queue_bytes: 0,
            stomp: None,
            next_in: None,
            next_out: None,
            venue: Some(status.counts),
            health: Some(Arc::new(status.health)),
        }
    }

    /// Logs what the venue said, at a limited rate.
    fn log_text(&mut self, now: Timestamp) {
        if now < self.log_text_at {
            return;
        }
        if let Some(text) = self.adapter.take_log_text() {
            self.log_text_at = now.plus(REJECT_TEXT_INTERVAL_NS);
            tracing::warn!(venue = self.name, text, "the venue has refused a request or ended a connection");
        }
    }
}
