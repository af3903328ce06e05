//! The adapter as its gateway and its shards see it.

use std::sync::Arc;

use pitlane_engine::command::CommandKind;
use pitlane_engine::event::{Instruction, VenueRequest};
use pitlane_engine::id::ShardId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use super::BinanceSettings;
use super::market_stream::MarketStream;
use super::session::{ANSWER_NS_MAX, BinanceSession, CONNECTION_NS_MAX, Phase};
use crate::fix::schedule::SessionSchedule;
use crate::venue::{
    AdapterStatus, ConnectRandom, InboundReport, LinkIndex, VenueAdapter, VenueHealth, VenueReports, is_price,
};

impl VenueReports for BinanceSession {
    fn handle_instruction(
        &mut self,
        now: Timestamp,
        _: ShardId,
        _: u64,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        match instruction.request {
            VenueRequest::New => self.send_order(now, instruction, special),
            VenueRequest::Cancel => self.send_cancel(now, instruction),
            VenueRequest::Replace => self.send_replacement(now, instruction, special),
            VenueRequest::Query | VenueRequest::Status => self.look_up(instruction),
        }
    }

    fn poll_report(&mut self, now: Timestamp) -> Option<InboundReport> {
        self.send_lookups(now);
        self.send_snapshot_requests(now);
        self.reports.pop_front()
    }

    fn poll_price(&mut self) -> Option<CommandKind> {
        let price = self.market_stream.as_mut()?.poll_price()?;
        self.counts.prices += u64::from(is_price(&price));
        Some(price)
    }

    fn handle_stored(&mut self, token: u32) {
        if let Some((order, mark)) = self.unstored_trades.remove(&token)
            && let Some(held) = self.held.get_mut(order)
            && mark.next > held.stored.next
        {
            held.stored = mark;
        }
    }

    fn synchronizations(&self) -> Option<u64> {
        self.is_ready().then_some(self.synchronizations)
    }
}

/// The connection for orders and account events, and that for market data.
const ORDERS: LinkIndex = LinkIndex(0);

impl BinanceSession {
    /// Returns the market data if the connection is theirs.
    fn stream_of(&mut self, link: LinkIndex) -> Option<&mut MarketStream> {
        self.market_stream.as_mut().filter(|_| link != ORDERS)
    }

    /// Passes an error of the market data on.
    fn take_stream_error(&mut self) {
        if let Some(error) = self.market_stream.as_mut().and_then(MarketStream::take_error) {
            self.record_error(error);
        }
    }
}

impl VenueAdapter for BinanceSession {
    fn links(&self) -> usize {
        1 + usize::from(self.market_stream.is_some())
    }

    fn wants_connection(&self, link: LinkIndex, now: Timestamp) -> bool {
        match &self.market_stream {
            Some(stream) if link != ORDERS => stream.wants_connection(now),
            Some(_) | None => self.phase == Phase::Disconnected && now >= self.connect_at,
        }
    }

    fn handle_connect(&mut self, link: LinkIndex, now: Timestamp, random: ConnectRandom) {
        if let Some(stream) = self.stream_of(link) {
            return stream.handle_connect(now, random);
        }
        let BinanceSettings { host, path, .. } = &self.settings;
        self.socket.connect(host, path, random);
        (self.phase, self.connected_at) = (Phase::Connecting, now);
        // The handshake has a deadline of its own: without an answer there is no time to ask for.
        self.time_at = now.plus(ANSWER_NS_MAX);
    }

    fn handle_disconnect(&mut self, link: LinkIndex, now: Timestamp) {
        if let Some(stream) = self.stream_of(link) {
            return stream.handle_disconnect(now);
        }
        self.delay_connection(now);
        (self.phase, self.time_at) = (Phase::Disconnected, Timestamp::MAX);
        self.socket.disconnect();
        self.requests.clear();
        self.limits.handle_disconnect();
        self.lookups.clear();
        self.held.handle_disconnect();
        if let Some(stream) = &mut self.market_stream {
            stream.handle_snapshots_lost(now);
        }
    }

    fn handle_bytes(&mut self, link: LinkIndex, now: Timestamp, bytes: &mut [u8]) {
        if link != ORDERS
            && let Some(stream) = &mut self.market_stream
        {
            stream.handle_bytes(now, bytes, &self.reference, &mut self.counts);
            return self.take_stream_error();
        }
        let (inbox, outcome) = self.socket.receive(bytes);
        if self.phase == Phase::Connecting && self.socket.is_open() {
            self.phase = Phase::Synchronizing;
            self.ask_time(now);
        }
        for message in inbox.messages() {
            self.handle_message(now, message);
        }
        self.socket.reuse(inbox);
        if let Err(fault) = outcome {
            self.handle_fault(now, &fault);
        }
    }

    fn poll_transmit(&mut self, link: LinkIndex) -> &[u8] {
        match &self.market_stream {
            Some(stream) if link != ORDERS => stream.poll_transmit(),
            Some(_) | None => self.socket.unsent(),
        }
    }

    fn handle_transmitted(&mut self, link: LinkIndex, count: usize) {
        match self.stream_of(link) {
            Some(stream) => stream.handle_transmitted(count),
            None => self.socket.handle_transmitted(count),
        }
    }

    fn wants_close(&self, link: LinkIndex) -> bool {
        match &self.market_stream {
            Some(stream) if link != ORDERS => stream.wants_close(),
            Some(_) | None => self.phase == Phase::Closing,
        }
    }

    fn poll_timeout(&self) -> Timestamp {
        let stream = self.market_stream.as_ref().map_or(Timestamp::MAX, MarketStream::poll_timeout);
        if self.phase == Phase::Disconnected {
            return stream.min(self.connect_at);
        }
        let lookup = match self.is_ready() {
            true => self.lookup_deadline().min(self.snapshot_deadline()),
            false => Timestamp::MAX,
        };
        let renewal = self.connected_at.plus(CONNECTION_NS_MAX);
        let work = lookup.min(self.day_deadline());
        self.time_at.min(self.answer_deadline()).min(renewal).min(work).min(stream)
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        if let Some(stream) = &mut self.market_stream {
            stream.handle_timeout(now);
            self.take_stream_error();
        }
        if !self.is_connected() {
            return;
        }
        if now >= self.answer_deadline() || self.phase == Phase::Connecting && now >= self.time_at {
            return self.close("the venue does not answer");
        }
        if now >= self.connected_at.plus(CONNECTION_NS_MAX) {
            return self.close("the connection is renewed");
        }
        if now >= self.time_at {
            self.ask_time(now);
        }
        self.end_day(now);
        self.send_lookups(now);
        self.send_snapshot_requests(now);
    }

    fn log_out(&mut self, _: Timestamp, text: &str) {
        if let Some(stream) = &mut self.market_stream {
            stream.close(text);
        }
        self.close(text);
    }

    fn set_reference(&mut self, reference: Arc<RefData>) {
        if let Some(stream) = &mut self.market_stream {
            stream.refresh(&reference);
        }
        self.reference = reference;
    }

    fn set_trading_day(&mut self, trading_day: SessionSchedule) {
        self.trading_day = trading_day;
    }

    fn status(&self, now: Timestamp) -> AdapterStatus {
        AdapterStatus {
            state: self.phase.name(),
            messages_in: self.messages_in,
            messages_out: self.messages_out,
            counts: self.counts,
            health: VenueHealth {
                round_trip_us: self.round_trip_ns.map(|ns| ns / 1_000),
                clock_offset_us: self.round_trip_ns.map(|_| self.offset_ns / 1_000),
                last_error: self.last_error.clone(),
                limits: self.limits.uses(self.venue_time(now)),
            },
        }
    }

    fn take_log_text(&mut self) -> Option<String> {
        self.log_text.take()
    }
}
