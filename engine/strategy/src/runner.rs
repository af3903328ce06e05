//! Runs strategies on one thread: events of the shards become calls, requests of strategies become
//! commands.
//!
//! ```text
//! shards ─► PortEnd ─► drain_events: Desk, MarketCache, hosts ─► calls ─► StrategyRequests ─► poll: Desk,
//!                       └► Dispatcher: other listeners            PendingCommands ─► PortEnd ─► shards
//!                                                                 └► Notices: to other threads
//! ```
//!
//! **Phases.** A strategy's phase is shard state: a phase on which all shards agree is the
//! strategy's, and the runner moves it there through every phase between. A component that may send
//! commands to the shards (REST, this runner, a remote server) controls a strategy, and no order
//! leaves before every shard would accept it. A strategy that fails is stopped here at once, and
//! the shards are informed.

mod phases;

use phases::ReportedPhase;
use std::collections::VecDeque;
use std::sync::Arc;

use super::context::{Operation, StrategyRequest};
use super::dispatcher::{DispatchedEvent, Dispatcher};
use super::host::{HostEnvironment, HostSettings, PanicGuard, StrategyHost};
use super::market::MarketCache;
use super::orders::{Refused, StrategyRequestKind};
use pitlane_engine::command::{CommandKind, StrategyPhase, WatchTarget};
use pitlane_engine::desk::{Declined, Desk, DeskSettings, IdBlock, Ticket};
use pitlane_engine::event::{Event, EventKind, OrderReport, OrderTerms, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, Origin, PortId, ShardId, Source, StrategyId};
use pitlane_engine::index::index_u16;
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::pages::LargePages;
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::sender::{Protocol, Sender, SenderId, SenderText};
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::Timestamp;

/// Notices that wait for other threads; beyond it the newest is dropped and counted.
const NOTICES_MAX: usize = 1_024;

/// Settings of a runner.
#[derive(Clone, Copy, Debug)]
pub struct RunnerSettings {
    pub operation: Operation,
    pub guard: PanicGuard,
    /// Orders known at once, including finished ones, and the most of those.
    pub orders_max: u32,
    pub finished_max: u32,
    /// Numbers for ids of orders.
    pub numbers: IdBlock,
    /// Seed of the hash over the ids.
    pub seed: u64,
    /// Page hook for the tables of orders.
    pub pages: LargePages,
}

/// A notice for other threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Generic {
        name: Arc<str>,
        body: Arc<[u8]>,
    },
    /// A strategy has failed and is stopped.
    Failed {
        strategy: StrategyId,
        name: Arc<str>,
        reason: Arc<str>,
    },
}

#[derive(Debug)]
pub struct Runner {
    port: PortEnd,
    pending_commands: PendingCommands,
    desk: Desk,
    hosts: Vec<StrategyHost>,
    /// By host, by shard.
    phases: Vec<Vec<ReportedPhase>>,
    /// By host: the phase that was requested last, until every shard has reported it.
    requested: Vec<Option<StrategyPhase>>,
    /// By host: whether it has failed and not all shards know it yet.
    stopping: Vec<bool>,
    shared: SharedState,
    dispatcher: Dispatcher,
    notices: VecDeque<Notice>,
    dropped: u64,
    /// Shards whose snapshot is not complete.
    snapshots_pending: u8,
    begun: bool,
    token: u32,
}

/// State that the hosts share.
#[derive(Debug)]
struct SharedState {
    market: MarketCache,
    reference: Arc<RefData>,
    numbers: IdBlock,
    operation: Operation,
    guard: PanicGuard,
}

impl SharedState {
    #[inline]
    fn environment(&mut self, now: Timestamp) -> HostEnvironment<'_> {
        let SharedState { market, reference, numbers, operation, guard } = self;
        HostEnvironment { now, operation: *operation, market, reference, numbers, guard: *guard }
    }
}

impl Runner {
    /// Creates a runner of strategies at a port of their own. It first receives a snapshot.
    pub fn new(
        port: PortEnd,
        reference: Arc<RefData>,
        settings: RunnerSettings,
        hosts: Vec<HostSettings>,
    ) -> Runner {
        let (id, shards) = (port.id(), port.shards());
        let mut pending_commands =
            PendingCommands::new(Source { origin: Origin::Strategy, port: id, session: 0 });
        pending_commands.push_all(CommandKind::Watch { port: id, what: WatchTarget::Orders, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: id });
        let RunnerSettings { operation, guard, orders_max, finished_max, numbers, seed, pages } = settings;
        let desk = DeskSettings {
            port: id,
            shards,
            orders_max,
            ids_max: orders_max.saturating_mul(4),
            finished_max,
            // For cancels; the context generates the ids of orders.
            prefix: b'q',
            seed,
            pages,
        };
        let hosts: Vec<StrategyHost> = hosts.into_iter().map(StrategyHost::new).collect();
        Runner {
            port,
            pending_commands,
            desk: Desk::new(desk, numbers),
            phases: vec![vec![ReportedPhase::default(); shards as usize]; hosts.len()],
            requested: vec![None; hosts.len()],
            stopping: vec![false; hosts.len()],
            hosts,
            shared: SharedState { market: MarketCache::default(), reference, numbers, operation, guard },
            dispatcher: Dispatcher::default(),
            notices: VecDeque::new(),
            dropped: 0,
            snapshots_pending: shards,
            begun: false,
            token: 0,
        }
    }

    pub fn hosts(&self) -> &[StrategyHost] {
        &self.hosts
    }

    pub fn market(&self) -> &MarketCache {
        &self.shared.market
    }

    /// Returns the dispatcher, where listeners register.
    pub fn dispatcher_mut(&mut self) -> &mut Dispatcher {
        &mut self.dispatcher
    }

    /// Puts new reference data into force.
    pub fn set_reference(&mut self, reference: Arc<RefData>) {
        self.shared.reference = reference;
    }

    /// Returns whether all snapshots are complete, so that it may begin.
    pub fn is_ready(&self) -> bool {
        self.snapshots_pending == 0
    }

    /// Returns whether something waits for room.
    pub fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty()
            || self.desk.has_requests()
            || self.hosts.iter().any(|host| !host.book.requests.is_empty())
    }

    /// Returns the time of the next timer.
    pub fn deadline(&self) -> Timestamp {
        self.hosts.iter().map(|host| host.book.deadline()).min().unwrap_or(Timestamp::MAX)
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.port.take_wakeups()
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Returns the number of notices that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Events in.
impl Runner {
    /// Handles events of the shards, up to a bound.
    pub fn drain_events(&mut self, now: Timestamp, most: usize) -> usize {
        for handled in 0..most {
            let Some((shard, event)) = self.port.poll_event() else { return handled };
            self.handle(now, shard, &event);
        }
        most
    }

    #[inline]
    fn handle(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        if let EventKind::Tick(tick) = &event.body {
            let Some(place) = self.shared.market.put(tick) else { return };
            let mut at = 0;
            while let Some(follower) = self.shared.market.follower(place, at) {
                self.hosts[follower as usize].handle_tick(&mut self.shared.environment(now), tick);
                at += 1;
            }
            return self.dispatcher.dispatch_event(shard, event);
        }
        self.handle_fact(now, shard, event);
        self.dispatcher.dispatch_event(shard, event);
    }

    fn handle_fact(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        if let Some(refusal) = self.desk.handle_event(shard, event) {
            self.handle_refusal(now, &refusal);
        }
        match &event.body {
            EventKind::Order(terms_event) if self.is_ours(terms_event.source) => {
                self.handle_terms(now, terms_event, event)
            }
            EventKind::Status(report) if self.is_ours(report.source) => {
                let root = self.root_of(report);
                self.handle_order_status(now, &root, report);
            }
            EventKind::Refused(refusal) if self.is_ours(refusal.source) => self.handle_refusal(now, refusal),
            EventKind::Booked(booking) => {
                if let Some(at) = self.place(booking.strategy) {
                    self.hosts[at].handle_booking(&mut self.shared.environment(now), shard, booking);
                }
            }
            EventKind::Adjusted { strategy, what } => {
                if let Some(at) = self.place(*strategy) {
                    self.hosts[at].handle_adjustment(shard, what);
                }
            }
            EventKind::Phase { strategy, phase } => self.handle_phase(now, shard, *strategy, *phase),
            EventKind::SnapshotEnd { port } if *port == self.port.id() => {
                self.snapshots_pending = self.snapshots_pending.saturating_sub(1);
            }
            EventKind::Order(_)
            | EventKind::Status(_)
            | EventKind::Refused(_)
            | EventKind::Forgotten { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    fn handle_terms(&mut self, now: Timestamp, terms_event: &OrderTerms, event: &Event) {
        let session = terms_event.source.session;
        let known = self
            .desk
            .order(session, &terms_event.id)
            .or_else(|| self.desk.order(session, &terms_event.orig_id));
        let root = known.map_or(terms_event.id, |known| known.root);
        if let Some(at) = self.place(StrategyId(session)) {
            self.hosts[at].book.orders.handle_terms(root, terms_event);
        }
        if let Some(report) = event.report() {
            self.handle_order_status(now, &root, &report);
        }
    }

    fn handle_order_status(&mut self, now: Timestamp, root: &IntId, report: &OrderReport) {
        if let Some(at) = self.place(StrategyId(report.source.session)) {
            self.hosts[at].handle_status(&mut self.shared.environment(now), root, report);
        }
    }

    fn handle_refusal(&mut self, now: Timestamp, refusal: &RequestRefusal) {
        let session = refusal.source.session;
        let known = self.desk.order(session, &refusal.id);
        let request = match refusal.request {
            RequestKind::Cancel => StrategyRequestKind::Cancel,
            RequestKind::Replace => StrategyRequestKind::Modify,
        };
        let id = known.map_or(refusal.id, |known| known.root);
        self.emit_refused(now, StrategyId(session), &Refused { id, request, reason: refusal.reason });
    }

    fn emit_refused(&mut self, now: Timestamp, strategy: StrategyId, refused: &Refused) {
        if let Some(at) = self.place(strategy) {
            self.hosts[at].handle_refused(&mut self.shared.environment(now), refused);
        }
    }

    /// Handles an event of a client or of a remote strategy.
    pub fn handle_generic(&mut self, now: Timestamp, name: &str, body: &[u8]) {
        self.dispatch_generic(now, usize::MAX, name, body);
    }

    /// Sends a generic event to all strategies except its sender.
    fn dispatch_generic(&mut self, now: Timestamp, from: usize, name: &str, body: &[u8]) {
        for (at, host) in self.hosts.iter_mut().enumerate() {
            if at != from {
                host.handle_generic(&mut self.shared.environment(now), name, body);
            }
        }
        self.dispatcher.dispatch(now, &DispatchedEvent::Generic { name, body });
    }

    fn is_ours(&self, source: Source) -> bool {
        source.port == self.port.id() && source.origin == Origin::Strategy
    }

    fn root_of(&self, report: &OrderReport) -> IntId {
        self.desk.order_of(report).map_or(report.id, |known| known.root)
    }

    fn place(&self, strategy: StrategyId) -> Option<usize> {
        self.hosts.iter().position(|host| host.id() == strategy)
    }
}

/// Steps of [`Runner::poll`] for the test kit, which records the requests between them.
impl Runner {
    pub(crate) fn fire_timers(&mut self, now: Timestamp, at: usize) -> usize {
        match self.hosts[at].book.deadline() <= now {
            true => self.hosts[at].fire_timers(&mut self.shared.environment(now)),
            false => 0,
        }
    }

    /// Returns the requests that the next poll sends.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &StrategyRequest> {
        self.hosts.iter().flat_map(|host| &host.book.requests)
    }
}

/// Requests out.
impl Runner {
    /// Fires timers and sends requests, as far as there is room. Returns the amount of work done.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        let mut work = self.pending_commands.poll(&mut self.port) + self.desk.poll(&mut self.port);
        for at in 0..self.hosts.len() {
            work += self.fire_timers(now, at) + self.send(now, at);
        }
        self.report_failures(now);
        work + self.pending_commands.poll(&mut self.port)
    }

    /// Executes a strategy's requests in order; a request without room waits.
    fn send(&mut self, now: Timestamp, at: usize) -> usize {
        let mut sent = 0;
        // Requests made while a refusal is handled are for the next round.
        for _ in 0..self.hosts[at].book.requests.len() {
            let Some(request) = self.hosts[at].book.requests.pop_front() else { break };
            if let Err(request) = self.execute(now, at, request) {
                self.hosts[at].book.requests.push_front(request);
                break;
            }
            sent += 1;
        }
        sent
    }

    /// Returns the sender of a strategy in this process: the strategy itself.
    fn sender_of(&mut self, at: usize) -> SenderId {
        let host = &mut self.hosts[at];
        if host.sender == SenderId::NONE {
            let login = SenderText::new(host.name());
            host.sender = self.port.register_sender(Sender {
                protocol: Protocol::Strategy,
                login,
                ..Sender::default()
            });
        }
        host.sender
    }

    fn execute(
        &mut self,
        now: Timestamp,
        at: usize,
        request: StrategyRequest,
    ) -> Result<(), StrategyRequest> {
        let strategy = self.hosts[at].id();
        self.token = self.token.wrapping_add(1);
        let source = Source { origin: Origin::Strategy, port: self.port.id(), session: strategy.0 };
        let sender = self.sender_of(at);
        let ticket = Ticket { source, token: self.token, id: IntId::NONE, sender };
        let (id, kind, sent) = match &request {
            StrategyRequest::Submit { id, terms } => {
                let sent = self.desk.submit(&mut self.port, Ticket { id: *id, ..ticket }, *terms);
                (*id, StrategyRequestKind::Submit, sent)
            }
            StrategyRequest::Modify { id, changes } => {
                (*id, StrategyRequestKind::Modify, self.desk.modify(&mut self.port, ticket, id, *changes))
            }
            StrategyRequest::Cancel { id } => {
                (*id, StrategyRequestKind::Cancel, self.desk.cancel(&mut self.port, ticket, id))
            }
            StrategyRequest::Subscribe { security, on } => {
                let (security, on) = (*security, *on);
                let shard = shard_of(security, self.port.shards());
                self.pending_commands.push(shard, CommandKind::Subscribe { strategy, security, on });
                if self.shared.market.follow(security, index_u16(at), on) {
                    let port: PortId = self.port.id();
                    self.pending_commands
                        .push(shard, CommandKind::Watch { port, what: WatchTarget::Ticks(security), on });
                }
                return Ok(());
            }
            StrategyRequest::Generic { name, body } => {
                self.dispatch_generic(now, at, name, body);
                self.notify(Notice::Generic { name: Arc::from(&**name), body: Arc::from(&**body) });
                return Ok(());
            }
        };
        match sent {
            Ok(_) => Ok(()),
            Err(Declined { reason: Reason::LaneFull, .. }) => Err(request),
            Err(Declined { reason, .. }) => {
                if kind == StrategyRequestKind::Submit {
                    self.hosts[at].book.orders.withdraw(&id);
                }
                self.emit_refused(now, strategy, &Refused { id, request: kind, reason });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
