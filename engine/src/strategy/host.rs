//! One strategy with everything around it: where it is in its life, what is kept for it, and the fence that holds its failures.

use std::fmt;
use std::sync::Arc;

use super::context::{Ask, Book, Context, Operation};
use super::life;
use super::market::Market;
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
pub type Make = Box<dyn Fn() -> Box<dyn Strategy> + Send>;

/// Calls what it is given; an error says with what words it panicked. Whoever has threads gives one that catches panics; the
/// pure one is [`unguarded`].
pub type Guard = fn(&mut dyn FnMut()) -> Result<(), String>;

/// For tests and for whoever lets a panic end the process.
pub fn unguarded(call: &mut dyn FnMut()) -> Result<(), String> {
    call();
    Ok(())
}

/// How a strategy is run.
pub struct HostSettings {
    pub id: StrategyId,
    pub name: String,
    pub make: Make,
    /// Whether it runs as soon as the platform does.
    pub start: bool,
    pub cancel_on_failure: bool,
}

/// What all strategies of a runner see.
pub struct World<'a> {
    pub now: Timestamp,
    pub operation: Operation,
    pub market: &'a Market,
    pub reference: &'a RefData,
    pub numbers: &'a mut IdBlock,
    pub guard: Guard,
}

/// Invariant: there is a strategy in every phase but EXIT, unless it has failed.
pub struct Host {
    settings: HostSettings,
    strategy: Option<Box<dyn Strategy>>,
    phase: Phase,
    /// Why it was stopped, if it failed.
    reason: Option<Arc<str>>,
    /// It has failed and nobody was told yet.
    failed: bool,
    pub(super) book: Book,
    /// By which its port has named it; none: it has sent nothing yet.
    pub(super) sender: SenderId,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Host { settings, phase, reason, .. } = self;
        f.debug_struct("Host")
            .field("name", &settings.name)
            .field("phase", phase)
            .field("reason", reason)
            .finish()
    }
}

impl Host {
    /// It has not begun to live: that is EXIT.
    pub fn new(settings: HostSettings) -> Host {
        let book = Book::new(settings.id);
        let sender = SenderId::NONE;
        Host { settings, strategy: None, phase: Phase::Exit, reason: None, failed: false, book, sender }
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
    pub(super) fn lead(&mut self, world: &mut World<'_>, to: Phase) -> bool {
        let Ok(way) = life::way(self.phase, to) else { return false };
        for phase in way {
            if !self.enter(world, phase) {
                break;
            }
        }
        true
    }

    /// One phase; false if the strategy failed in it.
    fn enter(&mut self, world: &mut World<'_>, phase: Phase) -> bool {
        self.phase = phase;
        if phase == Phase::Init {
            self.strategy = Some((self.settings.make)());
            self.reason = None;
            self.book.timers.clear();
            self.book.bars.clear();
        }
        let went_well = self.call(world, |strategy, context| strategy.on_phase(phase, context));
        if phase == Phase::Exit {
            self.strategy = None;
            self.book.timers.clear();
        }
        went_well
    }

    #[inline]
    pub(super) fn handle_tick(&mut self, world: &mut World<'_>, tick: &Tick) {
        if !matches!(self.phase, Phase::Prefeed | Phase::Running) {
            return;
        }
        for at in 0..self.book.bars.len() {
            let maker = &mut self.book.bars[at];
            if maker.security() == tick.security
                && let Some(bar) = maker.handle(tick)
                && !self.call(world, |strategy, context| strategy.on_bar(&bar, context))
            {
                return;
            }
        }
        self.call(world, |strategy, context| strategy.on_tick(tick, context));
    }

    pub(super) fn handle_status(&mut self, world: &mut World<'_>, id: &IntId, report: &OrderReport) {
        self.book.orders.handle_status(id, report);
        self.call(world, |strategy, context| strategy.on_order_status(id, report, context));
    }

    pub(super) fn handle_refused(&mut self, world: &mut World<'_>, refused: &Refused) {
        self.call(world, |strategy, context| strategy.on_refused(refused, context));
    }

    pub(super) fn handle_booking(&mut self, world: &mut World<'_>, shard: ShardId, booking: &Booking) {
        if let Some(security) = booking.security {
            self.book.positions.insert(security, booking.position);
        }
        self.book.cash.insert((booking.currency, shard), booking.cash);
        self.call(world, |strategy, context| strategy.on_transaction(booking, context));
    }

    /// A snapshot, or a reset that put something right.
    pub(super) fn handle_adjustment(&mut self, shard: ShardId, what: &Adjustment) {
        match *what {
            Adjustment::Position { security, after, .. } => _ = self.book.positions.insert(security, after),
            Adjustment::Cash { currency, after, .. } => _ = self.book.cash.insert((currency, shard), after),
        }
    }

    pub(super) fn handle_generic(&mut self, world: &mut World<'_>, name: &str, body: &[u8]) {
        if self.phase == Phase::Running {
            self.call(world, |strategy, context| strategy.on_generic(name, body, context));
        }
    }

    /// Calls for every timer that is due, the earliest first; says how many.
    pub(super) fn ring(&mut self, world: &mut World<'_>) -> usize {
        let mut rung = 0;
        // Each timer once in a round, however often it sets itself for now.
        for _ in 0..self.book.timers.len() {
            let Some(&(at, timer)) = self.book.timers.iter().min() else { break };
            if at > world.now {
                break;
            }
            self.book.timers.retain(|(_, other)| *other != timer);
            rung += 1;
            self.call(world, |strategy, context| strategy.on_timer(timer, context));
        }
        rung
    }

    /// Calls the strategy within its fence; false if it has failed, now or before.
    #[inline]
    fn call(
        &mut self,
        world: &mut World<'_>,
        call: impl FnOnce(&mut dyn Strategy, &mut Context<'_>) -> Result<(), Failure>,
    ) -> bool {
        let Some(strategy) = self.strategy.as_deref_mut() else { return self.phase == Phase::Exit };
        let World { now, operation, market, reference, ref mut numbers, guard } = *world;
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
        self.reason = Some(failure.words().into());
        self.failed = true;
        self.book.timers.clear();
        for ask in std::mem::take(&mut self.book.asks) {
            match ask {
                Ask::Submit { id, .. } => self.book.orders.withdraw(&id),
                Ask::Modify { .. } | Ask::Cancel { .. } => {}
                Ask::Subscribe { .. } | Ask::Generic { .. } => self.book.asks.push_back(ask),
            }
        }
        if self.settings.cancel_on_failure {
            self.book.cancel_all();
        }
    }
}
