//! Runs strategies on one thread: what the shards say becomes calls, what strategies ask for becomes commands.
//!
//! ```text
//! shards ─► PortEnd ─► hear: Desk, Market, Hosts ─► calls ─► Asks ─► poll: Desk, PendingCommands ─► PortEnd ─► shards
//!                       └► Dispatcher: whoever else listens          └► Notices: to other threads
//! ```
//!
//! **Phases.** The shards have the word: a phase that all of them agree on is the strategy's, and it is led there through
//! every phase between. So whoever may tell the shards (REST, this runner, a server elsewhere) leads a strategy, and no order
//! leaves before every shard would take it. A strategy that fails is stopped here at once, and the shards are told.

use std::collections::VecDeque;
use std::sync::Arc;

use super::context::{Operation, StrategyRequest};
use super::dispatcher::{DispatchedEvent, Dispatcher};
use super::host::{HostEnvironment, HostSettings, PanicGuard, StrategyHost};
use super::lifecycle;
use super::market::MarketCache;
use super::orders::{Refused, StrategyRequestKind};
use crate::command::{CommandKind, Phase, Watch};
use crate::desk::{Declined, Desk, DeskSettings, IdBlock, Ticket};
use crate::event::{Event, EventKind, OrderReport, OrderTerms, Refusal, RequestKind};
use crate::id::{IntId, Origin, PortId, ShardId, Source, StrategyId};
use crate::mesh::{PortEnd, ShardMask};
use crate::pages::LargePages;
use crate::pending_commands::PendingCommands;
use crate::reason::Reason;
use crate::refdata::RefData;
use crate::sender::{Protocol, Sender, SenderId, SenderText};
use crate::shard::shard_of;
use crate::time::Timestamp;

/// What other threads are to be told, until they are; beyond it the newest is dropped and counted.
const NOTICES_MAX: usize = 1_024;

/// How a runner is set up.
#[derive(Clone, Copy, Debug)]
pub struct RunnerSettings {
    pub operation: Operation,
    pub guard: PanicGuard,
    /// Orders known at once, finished ones included, and the most of those.
    pub orders_max: u32,
    pub finished_max: u32,
    /// For ids of orders.
    pub numbers: IdBlock,
    /// Of the hash over the ids.
    pub seed: u64,
    /// Where the tables of orders lie.
    pub pages: LargePages,
}

/// What other threads are to be told.
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
    /// By host, by shard: what a shard said last of its phase.
    phases: Vec<Vec<Option<Phase>>>,
    /// By host: it has failed, and the shards do not all know yet.
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

/// What the hosts share.
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
    /// Strategies at a port of their own. It first learns what was before.
    pub fn new(
        port: PortEnd,
        reference: Arc<RefData>,
        settings: RunnerSettings,
        hosts: Vec<HostSettings>,
    ) -> Runner {
        let (id, shards) = (port.id(), port.shards());
        let mut pending_commands =
            PendingCommands::new(Source { origin: Origin::Strategy, port: id, session: 0 });
        pending_commands.push_all(CommandKind::Watch { port: id, what: Watch::Orders, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: id });
        let RunnerSettings { operation, guard, orders_max, finished_max, numbers, seed, pages } = settings;
        let desk = DeskSettings {
            port: id,
            shards,
            orders_max,
            ids_max: orders_max.saturating_mul(4),
            finished_max,
            // Of cancels; orders have ids of the context's making.
            prefix: b'q',
            seed,
            pages,
        };
        let hosts: Vec<StrategyHost> = hosts.into_iter().map(StrategyHost::new).collect();
        Runner {
            port,
            pending_commands,
            desk: Desk::new(desk, numbers),
            phases: vec![vec![None; shards as usize]; hosts.len()],
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

    /// Where listeners register.
    pub fn dispatcher_mut(&mut self) -> &mut Dispatcher {
        &mut self.dispatcher
    }

    /// New reference data hold from now on.
    pub fn adopt(&mut self, reference: Arc<RefData>) {
        self.shared.reference = reference;
    }

    /// Whether it knows what was before it came, so that it may begin.
    pub fn is_ready(&self) -> bool {
        self.snapshots_pending == 0
    }

    /// Whether something waits for room.
    pub fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty()
            || self.desk.has_requests()
            || self.hosts.iter().any(|host| !host.book.requests.is_empty())
    }

    /// When a timer is due.
    pub fn deadline(&self) -> Timestamp {
        self.hosts.iter().map(|host| host.book.deadline()).min().unwrap_or(Timestamp::MAX)
    }

    pub fn take_wakeups(&mut self) -> ShardMask {
        self.port.take_wakeups()
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Notices that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// What it hears.
impl Runner {
    /// Hears what the shards say, up to a bound.
    pub fn drain_events(&mut self, now: Timestamp, most: usize) -> usize {
        for heard in 0..most {
            let Some((shard, event)) = self.port.poll_event() else { return heard };
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
        if let Some(refusal) = self.desk.handle_event(event) {
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
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
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

    fn handle_refusal(&mut self, now: Timestamp, refusal: &Refusal) {
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

    /// An event of a client or of a strategy elsewhere.
    pub fn handle_generic(&mut self, now: Timestamp, name: &str, body: &[u8]) {
        self.dispatch_generic(now, usize::MAX, name, body);
    }

    /// Everybody but whoever said it.
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

/// Phases.
impl Runner {
    /// Every strategy begins its life, once all is known; in real time those that should run are led there. Nothing the second time.
    pub fn begin(&mut self) {
        if !self.is_ready() || self.begun {
            return;
        }
        self.begun = true;
        for at in 0..self.hosts.len() {
            let runs = self.hosts[at].starts() && self.shared.operation == Operation::RealTime;
            self.push_path(at, Phase::Exit, if runs { Phase::Running } else { Phase::Init });
        }
    }

    /// Has a strategy led to a phase; by way of the shards, so it takes a while.
    pub fn request_phase(&mut self, strategy: StrategyId, to: Phase) -> Result<(), lifecycle::WrongPhase> {
        let Some(at) = self.place(strategy) else { return Ok(()) };
        let from = self.hosts[at].phase();
        lifecycle::path(from, to)?;
        self.push_path(at, from, to);
        Ok(())
    }

    fn push_path(&mut self, at: usize, from: Phase, to: Phase) {
        let strategy = self.hosts[at].id();
        for phase in lifecycle::path(from, to).unwrap_or_default() {
            self.pending_commands.push_all(CommandKind::Phase { strategy, phase });
        }
    }

    fn handle_phase(&mut self, now: Timestamp, shard: ShardId, strategy: StrategyId, phase: Phase) {
        let Some(at) = self.place(strategy).filter(|_| self.begun) else { return };
        self.phases[at][shard.0 as usize] = Some(phase);
        if self.phases[at].iter().any(|said| *said != Some(phase)) {
            return;
        }
        let is_over = matches!(phase, Phase::Stop | Phase::Exit);
        // What was said before a failure is not heard any more.
        if (self.stopping[at] || self.hosts[at].has_failed()) && !is_over {
            return;
        }
        self.stopping[at] = false;
        self.hosts[at].transition_to(&mut self.shared.environment(now), phase);
    }

    /// The end is near: every strategy stops and exits at once, and the shards are told.
    pub fn stop_all(&mut self, now: Timestamp) {
        for at in 0..self.hosts.len() {
            let from = self.hosts[at].phase();
            self.hosts[at].transition_to(&mut self.shared.environment(now), Phase::Exit);
            self.stopping[at] = true;
            self.push_path(at, from, Phase::Exit);
        }
    }

    /// Tells of strategies that have failed.
    fn report_failures(&mut self, now: Timestamp) {
        for at in 0..self.hosts.len() {
            let Some(reason) = self.hosts[at].take_failure() else { continue };
            self.stopping[at] = true;
            let (strategy, name) = (self.hosts[at].id(), Arc::from(self.hosts[at].name()));
            self.pending_commands.push_all(CommandKind::Phase { strategy, phase: Phase::Stop });
            let terms_event =
                DispatchedEvent::LifeCycle { strategy, phase: Phase::Stop, reason: Some(&reason) };
            self.dispatcher.dispatch(now, &terms_event);
            self.notify(Notice::Failed { strategy, name, reason });
        }
    }

    fn notify(&mut self, notice: Notice) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push_back(notice);
        } else {
            self.dropped += 1;
        }
    }
}

/// What it says.
impl Runner {
    /// Rings timers and sends what was asked for, as far as there is room; says how much it did.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        let mut work = self.pending_commands.poll(&mut self.port) + self.desk.poll(&mut self.port);
        for at in 0..self.hosts.len() {
            if self.hosts[at].book.deadline() <= now {
                work += self.hosts[at].fire_timers(&mut self.shared.environment(now));
            }
            work += self.send(now, at);
        }
        self.report_failures(now);
        work + self.pending_commands.poll(&mut self.port)
    }

    /// Carries out what a strategy asked for, in its order; what finds no room waits.
    fn send(&mut self, now: Timestamp, at: usize) -> usize {
        let mut sent = 0;
        // What it asks for while it is told of a refusal is for the next round.
        for _ in 0..self.hosts[at].book.requests.len() {
            let Some(ask) = self.hosts[at].book.requests.pop_front() else { break };
            if let Err(ask) = self.execute(now, at, ask) {
                self.hosts[at].book.requests.push_front(ask);
                break;
            }
            sent += 1;
        }
        sent
    }

    /// A strategy in this process sends in its own name.
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

    fn execute(&mut self, now: Timestamp, at: usize, ask: StrategyRequest) -> Result<(), StrategyRequest> {
        let strategy = self.hosts[at].id();
        self.token = self.token.wrapping_add(1);
        let source = Source { origin: Origin::Strategy, port: self.port.id(), session: strategy.0 };
        let sender = self.sender_of(at);
        let ticket = Ticket { source, token: self.token, id: IntId::NONE, sender };
        let (id, request, asked) = match &ask {
            StrategyRequest::Submit { id, terms } => {
                let asked = self.desk.submit(&mut self.port, Ticket { id: *id, ..ticket }, *terms);
                (*id, StrategyRequestKind::Submit, asked)
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
                if self.shared.market.follow(security, at as u16, on) {
                    let port: PortId = self.port.id();
                    self.pending_commands
                        .push(shard, CommandKind::Watch { port, what: Watch::Ticks(security), on });
                }
                return Ok(());
            }
            StrategyRequest::Generic { name, body } => {
                self.dispatch_generic(now, at, name, body);
                self.notify(Notice::Generic { name: Arc::from(&**name), body: Arc::from(&**body) });
                return Ok(());
            }
        };
        match asked {
            Ok(_) => Ok(()),
            Err(Declined { reason: Reason::LaneFull, .. }) => Err(ask),
            Err(Declined { reason, .. }) => {
                if request == StrategyRequestKind::Submit {
                    self.hosts[at].book.orders.withdraw(&id);
                }
                self.emit_refused(now, strategy, &Refused { id, request, reason });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Depths, PortClass, mesh};
    use crate::refdata::Rows;
    use crate::strategy::host::unguarded;

    #[test]
    fn so_many_notices_wait_and_the_newest_beyond_are_counted() {
        let (mut ports, _ends) = mesh(&[PortClass::Client], 1, Depths::default());
        let settings = RunnerSettings {
            operation: Operation::RealTime,
            guard: unguarded,
            orders_max: 10,
            finished_max: 10,
            numbers: IdBlock { next: 1, end: 10 },
            seed: 1,
            pages: LargePages::NONE,
        };
        let reference = Arc::new(RefData::check(Rows::default()).unwrap());
        let mut runner = Runner::new(ports.remove(0), reference, settings, Vec::new());
        let notice = |n: usize| Notice::Generic { name: n.to_string().into(), body: Arc::default() };
        let name = |notice: Option<Notice>| match notice {
            Some(Notice::Generic { name, .. }) => name.to_string(),
            other => panic!("{other:?}"),
        };
        (0..NOTICES_MAX).for_each(|n| runner.notify(notice(n)));
        assert_eq!((runner.notices.len(), runner.dropped()), (NOTICES_MAX, 0));
        runner.notify(notice(NOTICES_MAX));
        assert_eq!((runner.notices.len(), runner.dropped()), (NOTICES_MAX, 1));
        assert_eq!(name(runner.poll_notice()), "0");
        runner.notify(notice(NOTICES_MAX + 1));
        assert_eq!((name(runner.notices.pop_back()), runner.dropped()), ((NOTICES_MAX + 1).to_string(), 1));
    }
}
