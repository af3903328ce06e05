//! One strategy with everything around it: where it is in its life, what is kept for it, and the fence that holds its failures.

use std::fmt;
use std::sync::Arc;

use super::context::{Context, Operation, StrategyRequest, StrategyState};
use super::lifecycle;
use super::market::MarketCache;
use super::orders::Refused;
use super::{Failure, Strategy};
use crate::command::Phase;
use crate::desk::IdBlock;
use crate::event::{Adjustment, Booking, OrderReport, Tick};
use crate::id::{IntId, ShardId, StrategyId};
use crate::refdata::RefData;
use crate::sender::SenderId;
use crate::time::Timestamp;

/// Makes a strategy as it is at the beginning of its life.
pub type StrategyFactory = Box<dyn Fn() -> Box<dyn Strategy> + Send>;

/// Calls what it is given; an error says with what words it panicked. Whoever has threads gives one that catches panics; the
/// pure one is [`unguarded`].
pub type PanicGuard = fn(&mut dyn FnMut()) -> Result<(), String>;

/// For tests and for whoever lets a panic end the process.
pub fn unguarded(call: &mut dyn FnMut()) -> Result<(), String> {
    call();
    Ok(())
}

/// How a strategy is run.
pub struct HostSettings {
    pub id: StrategyId,
    pub name: String,
    pub make: StrategyFactory,
    /// Whether it runs as soon as the platform does.
    pub start: bool,
    pub cancel_on_failure: bool,
}

/// What all strategies of a runner see.
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
    phase: Phase,
    /// Why it was stopped, if it failed.
    reason: Option<Arc<str>>,
    /// It has failed and nobody was told yet.
    failed: bool,
    pub(super) book: StrategyState,
    /// By which its port has named it; none: it has sent nothing yet.
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
    /// It has not begun to live: that is EXIT.
    pub fn new(settings: HostSettings) -> StrategyHost {
        let book = StrategyState::new(settings.id);
        let sender = SenderId::NONE;
        StrategyHost {
            settings,
            strategy: None,
            phase: Phase::Exit,
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

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Why it was stopped, if it failed.
    pub fn reason(&self) -> Option<&Arc<str>> {
        self.reason.as_ref()
    }

    /// It has failed, and nobody was told yet.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Once after each failure.
    pub(super) fn take_failure(&mut self) -> Option<Arc<str>> {
        std::mem::take(&mut self.failed).then(|| self.reason.clone()).flatten()
    }

    /// Leads it through the phases to one of them; false if there is no way.
    pub(super) fn transition_to(&mut self, environment: &mut HostEnvironment<'_>, to: Phase) -> bool {
        let Ok(way) = lifecycle::path(self.phase, to) else { return false };
        for phase in way {
            if !self.enter(environment, phase) {
                break;
            }
        }
        true
    }

    /// One phase; false if the strategy failed in it.
    fn enter(&mut self, environment: &mut HostEnvironment<'_>, phase: Phase) -> bool {
        self.phase = phase;
        if phase == Phase::Init {
            self.strategy = Some((self.settings.make)());
            self.reason = None;
            self.book.timers.clear();
            self.book.bars.clear();
        }
        let succeeded = self.call(environment, |strategy, context| strategy.on_phase(phase, context));
        if phase == Phase::Exit {
            self.strategy = None;
            self.book.timers.clear();
        }
        succeeded
    }

    #[inline]
    pub(super) fn handle_tick(&mut self, environment: &mut HostEnvironment<'_>, tick: &Tick) {
        if !matches!(self.phase, Phase::Prefeed | Phase::Running) {
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

    /// A snapshot, or a reset that put something right.
    pub(super) fn handle_adjustment(&mut self, shard: ShardId, what: &Adjustment) {
        match *what {
            Adjustment::Position { security, after, .. } => _ = self.book.positions.insert(security, after),
            Adjustment::Cash { currency, after, .. } => _ = self.book.cash.insert((currency, shard), after),
        }
    }

    pub(super) fn handle_generic(&mut self, environment: &mut HostEnvironment<'_>, name: &str, body: &[u8]) {
        if self.phase == Phase::Running {
            self.call(environment, |strategy, context| strategy.on_generic(name, body, context));
        }
    }

    /// Calls for every timer that is due, the earliest first; says how many.
    pub(super) fn fire_timers(&mut self, environment: &mut HostEnvironment<'_>) -> usize {
        let mut fired = 0;
        // Each timer once in a round, however often it sets itself for now.
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

    /// Calls the strategy within its fence; false if it has failed, now or before.
    #[inline]
    fn call(
        &mut self,
        environment: &mut HostEnvironment<'_>,
        call: impl FnOnce(&mut dyn Strategy, &mut Context<'_>) -> Result<(), Failure>,
    ) -> bool {
        let Some(strategy) = self.strategy.as_deref_mut() else { return self.phase == Phase::Exit };
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

    /// It is not called any more; orders it asked for and that were not sent are forgotten.
    #[cold]
    fn fail(&mut self, failure: &Failure) {
        let was_over = matches!(self.phase, Phase::Stop | Phase::Exit);
        self.phase = if was_over { self.phase } else { Phase::Stop };
        self.strategy = None;
        self.reason = Some(failure.text().into());
        self.failed = true;
        self.book.timers.clear();
        for ask in std::mem::take(&mut self.book.requests) {
            match ask {
                StrategyRequest::Submit { id, .. } => self.book.orders.withdraw(&id),
                StrategyRequest::Modify { .. } | StrategyRequest::Cancel { .. } => {}
                StrategyRequest::Subscribe { .. } | StrategyRequest::Generic { .. } => {
                    self.book.requests.push_back(ask)
                }
            }
        }
        if self.settings.cancel_on_failure {
            self.book.cancel_all();
        }
    }
}
