//! The broker of one thread: its sessions, the subscription index and the newest market data. Bytes
//! and events go in; commands, bytes and deadlines come out. It owns no socket and reads no clock.
//!
//! ```text
//! bytes ─► StompInbox ─► StompSession ─ SessionAction ─► SubscriptionIndex
//!                             └──► BrokerCommand ─► caller
//!
//! Event ─► Topic ─► SubscriptionIndex ─► StompSession ─► StompOutbox ─► bytes
//!            └──► body, rendered once ────────┘
//! ```
//!
//! The caller gives input once and then drains: [`StompBroker::poll_command`], then it writes to
//! every session of [`StompBroker::poll_active`] and perhaps closes it; then it sleeps until
//! [`StompBroker::poll_timeout`] at the latest.
//!
//! Rules: docs/stomp.md#topics.

mod depth_requests;
mod events;
mod interest;
mod order_histories;
mod publish;
mod security_status;
mod memory_limit;
mod subscribing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{Depth, OrderTerms};
use pitlane_engine::id::{AdapterId, Currency, PortId, ShardId, StrategyId};
use pitlane_engine::index::index_u32;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::slot_map::{SlotKey, SlotMap};
use pitlane_engine::slot_table::HasSlot;
use pitlane_engine::terms::{ReportedTerms, SpecialTerms};
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use self::events::OwnIds;
pub use self::interest::Interest;
use self::interest::Interests;
use self::order_histories::OrderHistories;
use self::security_status::SecurityStatuses;
use super::access::{Passcode, StompAccess};
use super::bars::Bars;
use super::close_reason::StompCloseReason;
use super::decode::{CONNECT_BYTES_MAX, StompFrameError};
use super::inbox::StompInbox;
use super::index::{Subscriber, SubscriptionIndex};
use super::market::MarketTopics;
use super::outbox::Transmit;
use super::payload::EventStamp;
use super::rendered::Rendered;
use super::session::{
    BufferUsage, SessionAction, StompClose, StompCounters, StompSession, StompState, Transport,
};
use super::settings::BrokerSettings;
use super::throttle::Throttle;

/// Id of a session. A slot is reused only under another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(SlotKey);

/// A caller may keep its connections in a table by the slot of their session.
impl HasSlot for SessionId {
    fn slot(self) -> usize {
        self.0.slot()
    }
}

/// A task for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerCommand {
    /// Verify a login and answer with [`StompBroker::handle_login_result`]. The session is not read
    /// meanwhile.
    Login { session: SessionId, login: Option<String>, passcode: Option<Passcode>, host: Option<String> },
    /// A client sent a generic event: give it to [`StompBroker::publish_generic_event`] of every
    /// thread.
    Generic { session: SessionId, name: String, body: Vec<u8> },
    /// Start or stop to send events of this interest to this broker.
    Watch { interest: Interest, on: bool },
}

#[derive(Debug)]
struct BrokerConnection {
    transport: Transport,
    inbox: StompInbox,
    session: StompSession,
    /// Whether the connection is in `active`.
    is_listed: bool,
    /// Deadline in `timers`, at or before the session's next deadline.
    armed: Option<Timestamp>,
    /// Whether the subscriptions are in the index.
    is_indexed: bool,
    /// Memory for waiting output, as counted in the broker's total.
    held: usize,
}

const _: () = assert!(size_of::<BrokerConnection>() <= 1_024, "an idle connection is small");

impl BrokerConnection {
    /// Returns whether one more message changes only the output: the session is already in
    /// `active`, and its deadlines depend on the first unsent octet.
    fn is_settled(&self) -> bool {
        self.is_listed && self.session.is_unthrottled()
    }
}

#[derive(Debug)]
pub struct StompBroker {
    settings: BrokerSettings,
    reference: Arc<RefData>,
    connections: SlotMap<Box<BrokerConnection>>,
    /// Number of sessions opened so far.
    opened: u64,
    /// Number of sessions closed because the client did not read fast enough.
    closed_slow: u64,
    index: SubscriptionIndex,
    interests: Interests,
    market: MarketTopics,
    bars: Bars,
    /// Last bids of each shard; their asks come next.
    bids: BTreeMap<ShardId, Depth>,
    commands: VecDeque<BrokerCommand>,
    active: VecDeque<u32>,
    timers: BTreeSet<(Timestamp, u32)>,
    /// Memory for the waiting output of all sessions, in bytes.
    held: usize,
    /// Number of the last message that no shard has numbered.
    seq: u64,
    own_ids: OwnIds,
    order_histories: OrderHistories,
    /// Last changed terms of each shard; the order's status comes next.
    changed: BTreeMap<ShardId, (EventStamp, OrderTerms, Option<SpecialTerms>)>,
    reported: ReportedTerms,
    /// Each shard's part of a strategy's cash.
    cash: BTreeMap<(StrategyId, Currency), BTreeMap<ShardId, Money>>,
    /// Last published phases, because every shard reports them.
    phases: BTreeMap<StrategyId, StrategyPhase>,
    statuses: SecurityStatuses,
    adapters: BTreeMap<AdapterId, BTreeMap<ShardId, bool>>,
    /// Names of FIX sessions as orders show them: `FIX:CLIENT1`.
    fix_sessions: BTreeMap<(PortId, u16), Arc<str>>,
    // Reused buffers, so that no message allocates.
    rendered: Rendered,
    found: Vec<Subscriber>,
    topics: Vec<u32>,
    actions: Vec<SessionAction>,
    due: Vec<u32>,
}

/// Sessions.
impl StompBroker {
    pub fn new(settings: BrokerSettings, reference: Arc<RefData>) -> StompBroker {
        StompBroker {
            connections: SlotMap::new(settings.sessions_max, u32::MAX),
            settings,
            reference,
            opened: 0,
            closed_slow: 0,
            index: SubscriptionIndex::default(),
            interests: Interests::default(),
            market: MarketTopics::default(),
            bars: Bars::default(),
            bids: BTreeMap::new(),
            commands: VecDeque::new(),
            active: VecDeque::new(),
            timers: BTreeSet::new(),
            held: 0,
            seq: 0,
            own_ids: OwnIds::default(),
            order_histories: OrderHistories::default(),
            changed: BTreeMap::new(),
            reported: ReportedTerms::default(),
            cash: BTreeMap::new(),
            phases: BTreeMap::new(),
            statuses: SecurityStatuses::default(),
            adapters: BTreeMap::new(),
            fix_sessions: BTreeMap::new(),
            rendered: Rendered::default(),
            found: Vec::new(),
            topics: Vec::new(),
            actions: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Opens a session for an accepted connection. Returns `None` at the maximum.
    pub fn open(&mut self, now: Timestamp, transport: Transport) -> Option<SessionId> {
        if self.connections.is_full() {
            return None;
        }
        let interval = self.interval(transport);
        let connection = BrokerConnection {
            transport,
            inbox: StompInbox::new(self.settings.limits.frame),
            session: StompSession::new(now, self.opened + 1, self.settings.limits, interval),
            is_listed: false,
            armed: None,
            is_indexed: true,
            held: 0,
        };
        let key = self.connections.insert(Box::new(connection))?;
        self.opened += 1;
        self.settle(now, index_u32(key.slot()));
        Some(SessionId(key))
    }

    /// Removes the session of a closed connection.
    pub fn close(&mut self, session: SessionId) {
        let Some(slot) = self.slot(session) else { return };
        self.unindex(slot);
        let connection = self.connections.remove(session.0);
        let state = connection.as_ref().map(|connection| connection.session.state());
        if let Some(StompState::Closing(StompCloseReason::SlowConsumer | StompCloseReason::Stalled)) = state {
            self.closed_slow += 1;
        }
        self.held -= connection.as_ref().map_or(0, |connection| connection.held);
        if let Some(armed) = connection.and_then(|connection| connection.armed) {
            self.timers.remove(&(armed, slot));
        }
    }

    /// Returns the number of sessions closed because the client did not read fast enough.
    pub fn closed_slow(&self) -> u64 {
        self.closed_slow
    }

    pub fn handle_bytes(&mut self, now: Timestamp, session: SessionId, bytes: &[u8]) {
        let Some(slot) = self.slot(session) else { return };
        let connection = self.connection(slot);
        connection.session.handle_received(now, bytes.len());
        self.read(now, slot, bytes);
        self.settle(now, slot);
        self.enforce_memory_limit(now);
    }

    /// Handles the result of [`BrokerCommand::Login`]; `None` means refused.
    pub fn handle_login_result(&mut self, now: Timestamp, session: SessionId, access: Option<StompAccess>) {
        let Some(slot) = self.slot(session) else { return };
        let Some(connection) = self.connections.at_mut(slot as usize) else { return };
        connection.session.handle_login_result(now, &self.settings.server, access);
        // Octets may have arrived during the check.
        self.read(now, slot, &[]);
        self.settle(now, slot);
    }

    /// Records how many octets of [`StompBroker::transmit`] the connection has taken.
    pub fn handle_transmitted(&mut self, now: Timestamp, session: SessionId, count: usize) {
        let Some(slot) = self.slot(session) else { return };
        self.connection(slot).session.handle_transmitted(now, count);
        self.settle(now, slot);
    }

    /// Ends a session with an ERROR, for an administrator or because the service stops.
    pub fn end(&mut self, now: Timestamp, session: SessionId) {
        let Some(slot) = self.slot(session) else { return };
        self.connection(slot).session.fail(now, StompCloseReason::Ended, None);
        self.settle(now, slot);
    }

    /// Handles everything whose deadline is reached.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.publish_bars_update(now);
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.timers.iter().take_while(|(at, _)| *at <= now).map(|(_, slot)| *slot));
        for slot in due.drain(..) {
            let connection = self.connection(slot);
            let armed = connection.armed.take();
            connection.session.handle_timeout(now);
            if let Some(armed) = armed {
                self.timers.remove(&(armed, slot));
            }
            self.settle(now, slot);
        }
        self.due = due;
    }

    /// Returns the earliest deadline, or a time shortly before it.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.bars.poll_timeout()].into_iter().flatten().min()
    }

    pub fn poll_command(&mut self) -> Option<BrokerCommand> {
        self.commands.pop_front()
    }

    /// Returns a session that has output or must be closed, once for everything since the last
    /// call. A session that could not be written to is polled again when its connection can take
    /// more.
    pub fn poll_active(&mut self) -> Option<SessionId> {
        while let Some(slot) = self.active.pop_front() {
            let Some(connection) = self.connections.at_mut(slot as usize) else { continue };
            if std::mem::take(&mut connection.is_listed) {
                return self.connections.key_at(slot as usize).map(SessionId);
            }
        }
        None
    }

    /// Returns the output for a connection in this turn. Messages that follow begin a frame of
    /// their own.
    pub fn transmit(&mut self, session: SessionId) -> Option<Transmit<'_>> {
        self.connections.get_mut(session.0).map(|connection| connection.session.transmit())
    }

    pub fn poll_close(&self, now: Timestamp, session: SessionId) -> Option<StompClose> {
        self.alive(session)?.session.poll_close(now)
    }

    /// Returns how many sessions [`StompBroker::poll_active`] would return now. A fair turn writes
    /// to that many and leaves the rest to the next turn.
    pub fn active_len(&self) -> usize {
        self.active.len()
    }

    /// Returns whether the connection should be read. It should not while a login is verified or
    /// answers accumulate, so that TCP slows the client down.
    pub fn wants_bytes(&self, session: SessionId) -> bool {
        self.alive(session).is_some_and(|connection| connection.session.wants_bytes())
    }

    /// Returns state, counters and buffer usage of a session, for monitoring.
    pub fn session_status(&self, session: SessionId) -> Option<(StompState, StompCounters, BufferUsage)> {
        let session = &self.alive(session)?.session;
        Some((session.state(), session.counters(), session.fill()))
    }

    pub fn throttle(&self) -> Throttle {
        self.settings.throttle
    }

    /// Sets new rates for all connections.
    pub fn set_throttle(&mut self, now: Timestamp, throttle: Throttle) {
        self.settings.throttle = throttle;
        for slot in 0..index_u32(self.connections.slot_count()) {
            let Some(connection) = self.connections.at(slot as usize) else { continue };
            let interval = self.interval(connection.transport);
            self.connection(slot).session.set_interval(interval);
            self.settle(now, slot);
        }
    }

    /// Sets new reference data; ids keep their meaning.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.reference = reference;
    }

    /// Sets the name of a FIX session, which its orders show.
    pub fn set_fix_session_name(&mut self, port: PortId, session: u16, name: &str) {
        self.fix_sessions.insert((port, session), ["FIX:", name].concat().into());
    }

    fn read(&mut self, now: Timestamp, slot: u32, mut fresh: &[u8]) {
        loop {
            let Some(connection) = self.connections.at_mut(slot as usize) else { return };
            let BrokerConnection { inbox, session, .. } = &mut **connection;
            match session.state() {
                StompState::Closing(_) => return inbox.close(),
                StompState::VerifyingLogin => {
                    if inbox.keep(&mut fresh) > CONNECT_BYTES_MAX {
                        session.fail(now, StompCloseReason::Frame(StompFrameError::ConnectTooLong), None);
                    }
                    return;
                }
                StompState::AwaitingConnect | StompState::Connected => {}
            }
            if let Some(version) = session.version() {
                inbox.set_version(version);
            }
            match inbox.next(&mut fresh) {
                Ok(Some(frame)) => session.handle_frame(now, &frame, &self.settings, &mut self.actions),
                Ok(None) => return,
                Err(broken) => session.fail(now, StompCloseReason::Frame(broken.error), broken.receipt),
            }
            self.apply_actions(now, slot);
            self.connection(slot).session.finish_frame(now);
        }
    }

    /// Applies the actions of a frame before the next frame is read.
    fn apply_actions(&mut self, now: Timestamp, slot: u32) {
        let mut actions = std::mem::take(&mut self.actions);
        for act in actions.drain(..) {
            let Some(session) = self.connections.key_at(slot as usize).map(SessionId) else { continue };
            match act {
                SessionAction::Login { login, passcode, host } => {
                    self.commands.push_back(BrokerCommand::Login { session, login, passcode, host })
                }
                SessionAction::Send { name, body } => {
                    self.commands.push_back(BrokerCommand::Generic { session, name, body })
                }
                SessionAction::Subscribe { place, last_value } => {
                    self.subscribe(now, slot, place, last_value)
                }
                SessionAction::Unsubscribe { place, pattern } => {
                    self.end_subscription(&pattern, Subscriber { session: slot, subscription: place });
                }
            }
        }
        self.actions = actions;
    }

    /// Updates a session after any change: sends waiting messages, lists it as active, and sets its
    /// timer.
    fn settle(&mut self, now: Timestamp, slot: u32) {
        let Some(connection) = self.connections.at_mut(slot as usize) else { return };
        connection.session.send_waiting(now, &mut self.market);
        let is_ending = matches!(connection.session.state(), StompState::Closing(_));
        let has_output = connection.session.has_output();
        if (has_output || is_ending) && !connection.is_listed {
            connection.is_listed = true;
            self.active.push_back(slot);
        }
        if let Some(next) = connection.session.poll_timeout() {
            // Choice: a deadline that moved later fires early and is set again then.
            let next = if next > now { next } else { now.plus(NS_PER_MS) };
            if connection.armed.is_none_or(|armed| next < armed) {
                if let Some(old) = connection.armed.replace(next) {
                    self.timers.remove(&(old, slot));
                }
                self.timers.insert((next, slot));
            }
        }
        if is_ending && connection.is_indexed {
            self.unindex(slot);
        }
        self.account(slot);
    }

    fn unindex(&mut self, slot: u32) {
        let Some(connection) = self.connections.at_mut(slot as usize) else { return };
        connection.is_indexed = false;
        let patterns: Vec<_> = connection.session.take_patterns().collect();
        for (place, pattern) in patterns {
            self.end_subscription(&pattern, Subscriber { session: slot, subscription: place });
        }
    }

    fn interval(&self, transport: Transport) -> Option<u64> {
        match transport {
            Transport::Tcp => None,
            Transport::WebSocket => self.settings.throttle.max_rate_per_connection.interval(),
        }
    }

    fn slot(&self, session: SessionId) -> Option<u32> {
        self.alive(session).map(|_| index_u32(session.slot()))
    }

    fn alive(&self, session: SessionId) -> Option<&BrokerConnection> {
        self.connections.get(session.0).map(Box::as_ref)
    }

    fn connection(&mut self, slot: u32) -> &mut BrokerConnection {
        self.connections.at_mut(slot as usize).expect("the caller has looked")
    }
}
