//! The broker of one thread: its sessions, who wants what, and the newest market data. Bytes and events go in; commands, bytes
//! and deadlines come out. It owns no socket and reads no clock.
//!
//! ```text
//! bytes ─► Inbox ─► Session ─ Act ─► Index                 Event ─► Topic ─► Index ─► Session ─► Outbox ─► bytes
//!                      └──► Command ─► caller                 └──► body, rendered once ──┘
//! ```
//!
//! The caller feeds once and then drains: [`StompBroker::poll_command`], then every session of [`StompBroker::poll_active`] is written to
//! and perhaps closed; then it sleeps until [`StompBroker::poll_timeout`] at the latest.

mod events;
mod interest;
mod pasts;
mod publish;
mod shed;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pitlane_engine::command::Phase;
use pitlane_engine::event::{Depth, OrderTerms};
use pitlane_engine::id::{AdapterId, Currency, PortId, ShardId, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use self::events::OwnIds;
pub use self::interest::Interest;
use self::interest::Interests;
use self::pasts::OrderHistories;
use super::access::{Passcode, StompAccess};
use super::bars::Bars;
use super::close_reason::StompCloseReason;
use super::decode::{CONNECT_BYTES_MAX, StompFrameError};
use super::inbox::StompInbox;
use super::index::{Subscriber, SubscriptionIndex};
use super::market::{MarketTopics, TopicSource};
use super::outbox::Transmit;
use super::payload::EventStamp;
use super::rendered::Rendered;
use super::session::{
    BufferUsage, SessionAction, StompClose, StompCounters, StompSession, StompState, Transport,
};
use super::settings::BrokerSettings;
use super::throttle::Throttle;

/// A session, for as long as it lives: a slot is used again only under another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId {
    slot: u32,
    generation: u32,
}

impl SessionId {
    /// Small and dense: a caller may keep its connections in a table by slot. At most one living session has it.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// What the caller must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerCommand {
    /// Verify it and answer with [`StompBroker::handle_login_result`]; the session is not read meanwhile.
    Login { session: SessionId, login: Option<String>, passcode: Option<Passcode>, host: Option<String> },
    /// A client sent a generic event: give it to [`StompBroker::publish_generic_event`] of every thread.
    Generic { session: SessionId, name: String, body: Vec<u8> },
    /// Events that are wanted here from now on, or no longer.
    Watch { interest: Interest, on: bool },
}

#[derive(Debug)]
struct BrokerConnection {
    generation: u32,
    transport: Transport,
    inbox: StompInbox,
    session: StompSession,
    /// Stands in `active`.
    is_listed: bool,
    /// Its entry in `timers`; at or before the next deadline of the session.
    armed: Option<Timestamp>,
    /// Its subscriptions are still in the index.
    is_indexed: bool,
    /// Memory for what waits, as it is counted in the broker's.
    held: usize,
}

const _: () = assert!(size_of::<BrokerConnection>() <= 1_024, "an idle connection is small");

impl BrokerConnection {
    /// Whether one message more changes nothing but what is written: it stands in line for its turn already, and its deadlines
    /// are those of what was said first.
    fn is_settled(&self) -> bool {
        self.is_listed && self.session.is_steady()
    }
}

#[derive(Debug)]
pub struct StompBroker {
    settings: BrokerSettings,
    reference: Arc<RefData>,
    connections: Vec<Option<Box<BrokerConnection>>>,
    free: Vec<u32>,
    generation: u32,
    /// Sessions opened so far.
    opened: u64,
    index: SubscriptionIndex,
    interests: Interests,
    market: MarketTopics,
    bars: Bars,
    /// The last bids of a shard; their asks come next.
    bids: BTreeMap<ShardId, Depth>,
    commands: VecDeque<BrokerCommand>,
    active: VecDeque<u32>,
    timers: BTreeSet<(Timestamp, u32)>,
    /// Memory for what waits for all sessions.
    held: usize,
    /// Number of the last message that no shard has numbered.
    seq: u64,
    own_ids: OwnIds,
    pasts: OrderHistories,
    /// The last changed terms of a shard; how the order stands with them comes next.
    changed: BTreeMap<ShardId, (EventStamp, OrderTerms)>,
    /// Each shard's part of the cash of a strategy.
    cash: BTreeMap<(StrategyId, Currency), BTreeMap<ShardId, Money>>,
    /// As last told, since every shard tells it.
    phases: BTreeMap<StrategyId, Phase>,
    adapters: BTreeMap<AdapterId, BTreeMap<ShardId, bool>>,
    /// As orders show them: `FIX:CLIENT1`.
    fix_sessions: BTreeMap<(PortId, u16), Arc<str>>,
    // Used again and again, so that nothing is allocated per message.
    rendered: Rendered,
    found: Vec<Subscriber>,
    topics: Vec<u32>,
    acts: Vec<SessionAction>,
    due: Vec<u32>,
}

/// Sessions.
impl StompBroker {
    pub fn new(settings: BrokerSettings, reference: Arc<RefData>) -> StompBroker {
        StompBroker {
            settings,
            reference,
            connections: Vec::new(),
            free: Vec::new(),
            generation: 0,
            opened: 0,
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
            pasts: OrderHistories::default(),
            changed: BTreeMap::new(),
            cash: BTreeMap::new(),
            phases: BTreeMap::new(),
            adapters: BTreeMap::new(),
            fix_sessions: BTreeMap::new(),
            rendered: Rendered::default(),
            found: Vec::new(),
            topics: Vec::new(),
            acts: Vec::new(),
            due: Vec::new(),
        }
    }

    /// A connection was accepted. None if there are as many as may be.
    pub fn open(&mut self, now: Timestamp, transport: Transport) -> Option<SessionId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.connections.len() == self.settings.sessions_max as usize => return None,
            None => {
                self.connections.push(None);
                self.connections.len() as u32 - 1
            }
        };
        self.generation = self.generation.wrapping_add(1);
        self.opened += 1;
        let interval = self.interval(transport);
        self.connections[slot as usize] = Some(Box::new(BrokerConnection {
            generation: self.generation,
            transport,
            inbox: StompInbox::new(self.settings.limits.frame),
            session: StompSession::new(now, self.opened, self.settings.limits, interval),
            is_listed: false,
            armed: None,
            is_indexed: true,
            held: 0,
        }));
        self.settle(now, slot);
        Some(SessionId { slot, generation: self.generation })
    }

    /// The connection is gone, whoever closed it. The session is forgotten.
    pub fn close(&mut self, session: SessionId) {
        let Some(slot) = self.slot(session) else { return };
        self.unindex(slot);
        let connection = self.connections[slot as usize].take();
        self.held -= connection.as_ref().map_or(0, |connection| connection.held);
        if let Some(armed) = connection.and_then(|connection| connection.armed) {
            self.timers.remove(&(armed, slot));
        }
        self.free.push(slot);
    }

    pub fn handle_bytes(&mut self, now: Timestamp, session: SessionId, bytes: &[u8]) {
        let Some(slot) = self.slot(session) else { return };
        let connection = self.connection(slot);
        connection.session.handle_life(now, bytes.len());
        self.read(now, slot, bytes);
        self.settle(now, slot);
        self.shed_if_full(now);
    }

    /// The answer to [`BrokerCommand::Login`]; None: refused.
    pub fn handle_login_result(&mut self, now: Timestamp, session: SessionId, access: Option<StompAccess>) {
        let Some(slot) = self.slot(session) else { return };
        let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
        connection.session.handle_login_result(now, &self.settings.server, access);
        // What came while it was looked at.
        self.read(now, slot, &[]);
        self.settle(now, slot);
    }

    /// The connection has taken so many octets of [`StompBroker::transmit`].
    pub fn handle_transmitted(&mut self, now: Timestamp, session: SessionId, count: usize) {
        let Some(slot) = self.slot(session) else { return };
        self.connection(slot).session.handle_transmitted(now, count);
        self.settle(now, slot);
    }

    /// Ends a session with an ERROR: by an administrator, or because the service stops.
    pub fn end(&mut self, now: Timestamp, session: SessionId) {
        let Some(slot) = self.slot(session) else { return };
        self.connection(slot).session.fail(now, StompCloseReason::Ended, None);
        self.settle(now, slot);
    }

    /// Time has passed: everything whose deadline is reached.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.tell_bars(now);
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

    /// The earliest deadline, or a little before it.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.bars.poll_timeout()].into_iter().flatten().min()
    }

    pub fn poll_command(&mut self) -> Option<BrokerCommand> {
        self.commands.pop_front()
    }

    /// A session that has something to write or is to be closed. Each is told once for all that happened since; one that
    /// could not be written to is asked again when its connection can take more.
    pub fn poll_active(&mut self) -> Option<SessionId> {
        while let Some(slot) = self.active.pop_front() {
            let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { continue };
            if std::mem::take(&mut connection.is_listed) {
                return Some(SessionId { slot, generation: connection.generation });
            }
        }
        None
    }

    /// What may be written to a connection in this turn.
    pub fn transmit(&self, session: SessionId) -> Option<Transmit<'_>> {
        self.alive(session).map(|connection| connection.session.transmit())
    }

    pub fn poll_close(&self, now: Timestamp, session: SessionId) -> Option<StompClose> {
        self.alive(session)?.session.poll_close(now)
    }

    /// Sessions that [`StompBroker::poll_active`] would give now. A fair turn writes to so many and leaves the rest to the next.
    pub fn active_len(&self) -> usize {
        self.active.len()
    }

    /// Whether the connection should be read: not while a login is looked at or its answers pile up, so that TCP slows the
    /// client instead of us.
    pub fn wants_bytes(&self, session: SessionId) -> bool {
        self.alive(session).is_some_and(|connection| connection.session.wants_bytes())
    }

    /// How a session stands, for those who look after it.
    pub fn session_status(&self, session: SessionId) -> Option<(StompState, StompCounters, BufferUsage)> {
        let session = &self.alive(session)?.session;
        Some((session.state(), session.counters(), session.fill()))
    }

    pub fn throttle(&self) -> Throttle {
        self.settings.throttle
    }

    /// New rates; every connection goes by them from now on.
    pub fn set_throttle(&mut self, now: Timestamp, throttle: Throttle) {
        self.settings.throttle = throttle;
        for slot in 0..self.connections.len() as u32 {
            let Some(Some(connection)) = self.connections.get(slot as usize) else { continue };
            let interval = self.interval(connection.transport);
            self.connection(slot).session.set_interval(interval);
            self.settle(now, slot);
        }
    }

    /// New reference data; ids keep their meaning.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.reference = reference;
    }

    /// The name of a FIX session, by which its orders are known.
    pub fn set_fix_session_name(&mut self, port: PortId, session: u16, name: &str) {
        self.fix_sessions.insert((port, session), ["FIX:", name].concat().into());
    }

    fn read(&mut self, now: Timestamp, slot: u32, mut fresh: &[u8]) {
        loop {
            let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
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
                inbox.speak(version);
            }
            match inbox.next(&mut fresh) {
                Ok(Some(frame)) => session.handle_frame(now, &frame, &self.settings, &mut self.acts),
                Ok(None) => return,
                Err(broken) => session.fail(now, StompCloseReason::Frame(broken.error), broken.receipt),
            }
            self.act(now, slot);
            self.connection(slot).session.conclude(now);
        }
    }

    /// Does what a frame asked for, before the next one is read.
    fn act(&mut self, now: Timestamp, slot: u32) {
        let mut acts = std::mem::take(&mut self.acts);
        for act in acts.drain(..) {
            let session = SessionId { slot, generation: self.connection(slot).generation };
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
                    self.index.remove(&pattern, Subscriber { session: slot, subscription: place });
                    self.interests.remove(&pattern, &self.settings.naming, &mut self.commands);
                }
            }
        }
        self.acts = acts;
    }

    fn subscribe(&mut self, now: Timestamp, slot: u32, place: u16, last_value: bool) {
        let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
        let Some(pattern) = connection.session.pattern(place) else { return };
        self.index.insert(pattern, Subscriber { session: slot, subscription: place });
        self.market.matching(pattern, &mut self.topics);
        // What was not watched so far is old, and is shown by its shard as soon as it is.
        self.topics.retain(|topic| match self.market.origin(*topic) {
            TopicSource::Tick(security) => {
                self.settings.receives_all_ticks || self.interests.has_ticks(security)
            }
            TopicSource::Book(security) if self.interests.has_depth(security) => true,
            TopicSource::Book(_) => {
                self.market.forget(*topic);
                false
            }
            TopicSource::Bar => true,
        });
        self.interests.insert(pattern, &self.settings.naming, &mut self.commands);
        if last_value {
            for &topic in &self.topics {
                connection.session.offer(now, place, topic, false, &mut self.market);
            }
        }
    }

    /// After anything that happened to a session: sends what may go, notes that there is something to do, and when to look again.
    fn settle(&mut self, now: Timestamp, slot: u32) {
        let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
        connection.session.pump(now, &mut self.market);
        let is_ending = matches!(connection.session.state(), StompState::Closing(_));
        let has_output = connection.session.has_output();
        if (has_output || is_ending) && !connection.is_listed {
            connection.is_listed = true;
            self.active.push_back(slot);
        }
        if let Some(next) = connection.session.poll_timeout() {
            // Choice: a deadline that moved later is left to fire early and is armed anew then.
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
        let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
        connection.is_indexed = false;
        for (place, pattern) in connection.session.take_patterns() {
            self.index.remove(&pattern, Subscriber { session: slot, subscription: place });
            self.interests.remove(&pattern, &self.settings.naming, &mut self.commands);
        }
    }

    fn interval(&self, transport: Transport) -> Option<u64> {
        match transport {
            Transport::Tcp => None,
            Transport::WebSocket => self.settings.throttle.max_rate_per_connection.interval(),
        }
    }

    fn slot(&self, session: SessionId) -> Option<u32> {
        self.alive(session).map(|_| session.slot)
    }

    fn alive(&self, session: SessionId) -> Option<&BrokerConnection> {
        let connection = self.connections.get(session.slot as usize)?.as_deref()?;
        (connection.generation == session.generation).then_some(connection)
    }

    fn connection(&mut self, slot: u32) -> &mut BrokerConnection {
        self.connections[slot as usize].as_deref_mut().expect("the caller has looked")
    }
}
