//! One strategy with everything around it: its phase, its state, and the guard that contains its
//! failures.

use std::fmt;
use std::sync::Arc;

use super::context::{Context, Operation, StrategyRequest, StrategyState};
use super::lifecycle;
use super::market::MarketCache;
use super::orders::Refused;
use super::{Failure, Strategy};
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Adjustment, Booking, OrderReport, Tick};
use pitlane_engine::id::{IntId, ShardId, StrategyId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::sender::SenderId;
use pitlane_engine::time::Timestamp;

/// Creates a strategy in its initial state.
pub type StrategyFactory = Box<dyn Fn() -> Box<dyn Strategy> + Send>;

/// Calls a closure; an error carries the text of its panic. A caller with threads provides one that
/// catches panics; the pure one is [`unguarded`].
pub type PanicGuard = fn(&mut dyn FnMut()) -> Result<(), String>;

/// Guard for tests, and for callers that let a panic end the process.
pub fn unguarded(call: &mut dyn FnMut()) -> Result<(), String> {
    call();
    Ok(())
}

/// Settings of one strategy.
pub struct HostSettings {
    pub id: StrategyId,
    pub name: String,
    pub make: StrategyFactory,
    /// Whether it runs as soon as the platform does.
    pub start: bool,
    pub cancel_on_failure: bool,
}

/// What all strategies of a runner share.
pub struct HostEnvironment<'a> {
    pub now: Timestamp,
    pub operation: Operation,
    pub market: &'a MarketCache,
    pub reference: &'a RefData,
    pub numbers: &'a mut IdBlock,
    pub guard: PanicGuard,
}

/// Invariant: there is a strategy in every phase but EXIT, unless it has failed.
pub struct StrategyHost {
    settings: HostSettings,
    strategy: Option<Box<dyn Strategy>>,
    phase: StrategyPhase,
    /// Reason of its stop, if it failed.
    reason: Option<Arc<str>>,
    /// Whether it has failed and this was not reported yet.
    failed: bool,
    pub(super) book: StrategyState,
    /// Number under which its port has registered it; none before its first request.
    pub(super) sender: SenderId,
}

impl fmt::Debug for StrategyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StrategyHost { settings, phase, reason, .. } = self;
        f.debug_struct("Host")
            .field("name", &settings.name)
            .field("phase", phase)
            .field("reason", reason)
            .finish()
    }
}

impl StrategyHost {
    /// Creates a host in phase EXIT, before the start of the strategy.
    pub fn new(settings: HostSettings) -> StrategyHost {
        let book = StrategyState::new(settings.id);
        let sender = SenderId::NONE;
        StrategyHost {
            settings,
            strategy: None,
            phase: StrategyPhase::Exit,
            reason: None,
            failed: false,
            book,
            sender,
        }
    }

    pub fn id(&self) -> StrategyId {
        self.settings.id
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    pub fn starts(&self) -> bool {
        self.settings.start
    }

    pub fn phase(&self) -> StrategyPhase {
        self.phase
    }

    /// Returns the reason of its stop, if it failed.
    pub fn reason(&self) -> Option<&Arc<str>> {
        self.reason.as_ref()
    }

    /// Returns whether it has failed and this was not reported yet.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns the reason once after each failure.
    pub(super) fn take_failure(&mut self) -> Option<Arc<str>> {
        std::mem::take(&mut self.failed).then(|| self.reason.clone()).flatten()
    }

    /// Moves the strategy through the phases to one of them. Returns false if there is no path.
    pub(super) fn transition_to(&mut self, environment: &mut HostEnvironment<'_>, to: StrategyPhase) -> bool {
        let Ok(way) = lifecycle::path(self.phase, to) else { return false };
        for phase in way {
            if !self.enter(environment, phase) {
                break;
            }
        }
        true
    }

    /// Enters one phase. Returns false if the strategy failed in it.
    fn enter(&mut self, environment: &mut HostEnvironment<'_>, phase: StrategyPhase) -> bool {
        self.phase = phase;
        if phase == StrategyPhase::Init {
            self.strategy = Some((self.settings.make)());
            self.reason = None;
            self.book.timers.clear();
            self.book.bars.clear();
        }
        let succeeded = self.call(environment, |strategy, context| strategy.on_phase(phase, context));
        if phase == StrategyPhase::Exit {
            self.strategy = None;
            self.book.timers.clear();
        }
        succeeded
    }

    #[inline]
    pub(super) fn handle_tick(&mut self, environment: &mut HostEnvironment<'_>, tick: &Tick) {
        if !matches!(self.phase, StrategyPhase::Prefeed | StrategyPhase::Running) {
            return;
        }
        for at in 0..self.book.bars.len() {
            let maker = &mut self.book.bars[at];
            if maker.security() == tick.security
                && let Some(bar) = maker.handle(tick)
                && !self.call(environment, |strategy, context| strategy.on_bar(&bar, context))
            {
                return;
            }
        }
        self.call(environment, |strategy, context| strategy.on_tick(tick, context));
    }

    pub(super) fn handle_status(
        &mut self,
        environment: &mut HostEnvironment<'_>,
        id: &IntId,
        report: &OrderReport,
    ) {
        self.book.orders.handle_status(id, report);
        self.call(environment, |strategy, context| strategy.on_order_status(id, report, context));
    }

    pub(super) fn handle_refused(&mut self, environment: &mut HostEnvironment<'_>, refused: &Refused) {
        self.call(environment, |strategy, context| strategy.on_refused(refused, context));
    }

    pub(super) fn handle_booking(
        &mut self,
        environment: &mut HostEnvironment<'_>,
        shard: ShardId,
        booking: &Booking,
    ) {
        if let Some(security) = booking.security {
            self.book.positions.insert(security, booking.position);
        }
        self.book.cash.insert((booking.currency, shard), booking.cash);
        self.call(environment, |strategy, context| strategy.on_transaction(booking, context));
    }

    /// Handles a snapshot, or a reset that corrected a value.
    pub(super) fn handle_adjustment(&mut self, shard: ShardId, what: &Adjustment) {
        match *what {
            Adjustment::Position { security, after, .. } => _ = self.book.positions.insert(security, after),
            Adjustment::Cash { currency, after, .. } => _ = self.book.cash.insert((currency, shard), after),
        }
    }

    pub(super) fn handle_generic(&mut self, environment: &mut HostEnvironment<'_>, name: &str, body: &[u8]) {
        if self.phase == StrategyPhase::Running {
            self.call(environment, |strategy, context| strategy.on_generic(name, body, context));
        }
    }

    /// Calls every due timer, the earliest first, and returns their number.
    pub(super) fn fire_timers(&mut self, environment: &mut HostEnvironment<'_>) -> usize {
        let mut fired = 0;
        // Each timer once per round, however often it sets itself for now.
        for _ in 0..self.book.timers.len() {
            let Some(&(at, timer)) = self.book.timers.iter().min() else { break };
            if at > environment.now {
                break;
            }
            self.book.timers.retain(|(_, other)| *other != timer);
            fired += 1;
            self.call(environment, |strategy, context| strategy.on_timer(timer, context));
        }
        fired
    }

    /// Calls the strategy under its guard. Returns false if there is none or it has failed.
    #[inline]
    fn call(
        &mut self,
        environment: &mut HostEnvironment<'_>,
        call: impl FnOnce(&mut dyn Strategy, &mut Context<'_>) -> Result<(), Failure>,
    ) -> bool {
        let Some(strategy) = self.strategy.as_deref_mut() else { return false };
        let HostEnvironment { now, operation, market, reference, ref mut numbers, guard } = *environment;
        let (phase, book) = (self.phase, &mut self.book);
        let mut context = Context { now, phase, operation, book, market, reference, numbers };
        let mut call = Some(call);
        let mut answer = Ok(());
        let guarded = guard(&mut || {
            if let Some(call) = call.take() {
                answer = call(strategy, &mut context);
            }
        });
        match guarded.map_err(Failure::new).and(answer) {
            Ok(()) => true,
            Err(failure) => {
                self.fail(&failure);
                false
            }
        }
    }

    /// Stops the strategy after a failure: it is not called any more, and its unsent orders are
    /// dropped.
    #[cold]
    fn fail(&mut self, failure: &Failure) {
        let was_over = matches!(self.phase, StrategyPhase::Stop | StrategyPhase::Exit);
        self.phase = if was_over { self.phase } else { StrategyPhase::Stop };
        self.strategy = None;
        self.reason = Some(failure.text().into());
        self.failed = true;
        self.book.timers.clear();
        for request in std::mem::take(&mut self.book.requests) {
            match request {
                StrategyRequest::Submit { id, .. } => self.book.orders.withdraw(&id),
                StrategyRequest::Modify { .. } | StrategyRequest::Cancel { .. } => {}
                StrategyRequest::Subscribe { .. } | StrategyRequest::Generic { .. } => {
                    self.book.requests.push_back(request)
                }
            }
        }
        if self.settings.cancel_on_failure {
            self.book.cancel_all();
        }
    }
}
