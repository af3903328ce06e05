//! What a strategy sees and may do during a call.
//!
//! Each request is queued as a [`StrategyRequest`] and leaves when the call is over. A strategy
//! thus depends on messages only, and its runner sends them to a shard in this process or to a
//! server elsewhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::bars::BarMaker;
use super::market::MarketCache;
use super::orders::{OpenOrder, OpenOrders};
use super::security_key::SecurityKey;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{PositionState, Tick};
use pitlane_engine::id::{AccountId, Currency, IntId, SecurityId, ShardId, StrategyId};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::{RefData, Security};
use pitlane_engine::terms::{Changes, OrderKind, Side, Status, Terms};
use pitlane_engine::time::Timestamp;

/// Requests that may wait to be sent: more than a well-behaved strategy makes in one call, plus
/// those that waited for room. Only the cancels of all open orders may be more: one for each of
/// them, so at most `OPEN_MAX`.
pub const REQUESTS_MAX: usize = 512;
/// Timers and bar series of one strategy: they are searched linearly.
pub const TIMERS_MAX: usize = 64;
/// See [`TIMERS_MAX`].
pub const BARS_MAX: usize = 64;
/// Longest name and body of an event between strategies; the broker's own bounds are not lower.
pub const GENERIC_NAME_BYTES_MAX: usize = 128;
/// See [`GENERIC_NAME_BYTES_MAX`].
pub const GENERIC_BODY_BYTES_MAX: usize = 65_536;
/// First letter of the ids of strategies' orders.
pub const PREFIX: u8 = b's';

/// Clock that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// The clock of the machine, over the live market.
    #[default]
    RealTime,
    /// The times of the data.
    Simulation,
}

/// A request of a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyRequest {
    /// A new order.
    Submit {
        /// Id that the context gave it.
        id: IntId,
        /// Security, side, quantity, prices.
        terms: Terms,
    },
    /// A modification of an order.
    Modify {
        /// Id under which the order was submitted.
        id: IntId,
        /// The terms that change.
        changes: Changes,
    },
    /// The cancel of an order.
    Cancel {
        /// Id under which the order was submitted.
        id: IntId,
    },
    /// The start or the end of a subscription.
    Subscribe {
        /// The security.
        security: SecurityId,
        /// Whether it starts.
        on: bool,
    },
    /// An event for other strategies and for clients.
    Generic {
        /// Name of the event.
        name: Box<str>,
        /// JSON.
        body: Box<[u8]>,
    },
}

/// State of one strategy between calls.
#[derive(Debug, Default)]
pub struct StrategyState {
    pub(super) strategy: StrategyId,
    pub(super) orders: OpenOrders,
    pub(super) positions: BTreeMap<SecurityId, PositionState>,
    /// Each shard's part.
    pub(super) cash: BTreeMap<(Currency, ShardId), Money>,
    pub(super) followed: BTreeSet<SecurityId>,
    pub(super) bars: Vec<BarMaker>,
    pub(super) timers: Vec<(Timestamp, u32)>,
    pub(super) requests: VecDeque<StrategyRequest>,
}

impl StrategyState {
    /// Creates the state of a strategy without orders, positions and cash.
    pub fn new(strategy: StrategyId) -> StrategyState {
        StrategyState {
            strategy,
            requests: VecDeque::with_capacity(REQUESTS_MAX),
            ..StrategyState::default()
        }
    }

    /// Returns the time of the next timer.
    pub fn deadline(&self) -> Timestamp {
        self.timers.iter().map(|(at, _)| *at).min().unwrap_or(Timestamp::MAX)
    }

    fn push_request(&mut self, request: StrategyRequest) -> Result<(), Reason> {
        if self.requests.len() >= REQUESTS_MAX {
            return Err(Reason::LaneFull);
        }
        self.requests.push_back(request);
        Ok(())
    }
}

/// See the module's comment.
#[derive(Debug)]
pub struct Context<'a> {
    pub(super) now: Timestamp,
    pub(super) phase: StrategyPhase,
    pub(super) operation: Operation,
    pub(super) book: &'a mut StrategyState,
    pub(super) market: &'a MarketCache,
    pub(super) reference: &'a RefData,
    pub(super) numbers: &'a mut IdBlock,
}

/// What the strategy sees.
impl Context<'_> {
    /// Returns the time: of the clock, or in simulation of the data.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the phase of the strategy.
    pub fn phase(&self) -> StrategyPhase {
        self.phase
    }

    /// Returns whether the strategy may send orders: its phase is RUNNING.
    pub fn is_running(&self) -> bool {
        self.phase == StrategyPhase::Running
    }

    /// Returns which clock applies.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the id of the strategy.
    pub fn strategy(&self) -> StrategyId {
        self.book.strategy
    }

    /// Returns the reference data: exchanges, securities, accounts.
    pub fn reference(&self) -> &RefData {
        self.reference
    }

    /// Returns the row of a security: its symbol, its kind, its family.
    pub fn security(&self, security: impl SecurityKey) -> Result<&Security, Reason> {
        self.reference.security(security.id_in(self.reference)?).ok_or(Reason::UnknownSecurity)
    }

    /// Returns the newest tick of a security that any strategy of the runner follows; `None` before
    /// the first.
    pub fn tick(&self, security: impl SecurityKey) -> Option<&Tick> {
        self.market.tick(security.id_in(self.reference).ok()?)
    }

    /// Returns the position; flat if there never was one.
    pub fn position(&self, security: impl SecurityKey) -> PositionState {
        let position = security.id_in(self.reference).ok().and_then(|id| self.book.positions.get(&id));
        position.copied().unwrap_or_default()
    }

    /// Returns the cash; `None` if the parts add up to more than can be counted.
    pub fn cash(&self, currency: Currency) -> Option<Money> {
        let parts = self.book.cash.iter().filter(|((of, _), _)| *of == currency);
        parts.map(|(_, part)| *part).try_fold(Money::ZERO, Money::checked_add)
    }

    /// Returns its orders that have not ended, in order of submission.
    pub fn open_orders(&self) -> &[OpenOrder] {
        self.book.orders.open()
    }

    /// Returns whether it has an order in a security that has not ended.
    pub fn has_open_order(&self, security: impl SecurityKey) -> bool {
        let is_in = |id| self.book.orders.open().iter().any(|order| order.security == id);
        security.id_in(self.reference).is_ok_and(is_in)
    }

    /// Returns an order; `None` once it has ended.
    pub fn order(&self, id: &IntId) -> Option<&OpenOrder> {
        self.book.orders.find(id)
    }
}

/// What the strategy may do. A request is declined here at once, or reported later.
impl Context<'_> {
    /// Subscribes to the ticks of a security, which the server then quotes.
    pub fn subscribe(&mut self, security: impl SecurityKey) -> Result<(), Reason> {
        self.follow(security.id_in(self.reference)?, true)
    }

    /// Ends the subscription to ticks and bars of a security.
    pub fn unsubscribe(&mut self, security: impl SecurityKey) -> Result<(), Reason> {
        self.follow(security.id_in(self.reference)?, false)
    }

    /// Subscribes to bars of a security, and to the ticks from which they are built.
    pub fn subscribe_bars(&mut self, security: impl SecurityKey, interval_ns: u64) -> Result<(), Reason> {
        if interval_ns == 0 || self.book.bars.len() >= BARS_MAX {
            return Err(Reason::Overflow);
        }
        let security = security.id_in(self.reference)?;
        self.follow(security, true)?;
        let is_known = |maker: &BarMaker| (maker.security(), maker.interval_ns()) == (security, interval_ns);
        if !self.book.bars.iter().any(is_known) {
            self.book.bars.push(BarMaker::new(security, interval_ns));
        }
        Ok(())
    }

    /// Buys at the market and returns the id of the order.
    pub fn buy(&mut self, security: impl SecurityKey, qty: Qty) -> Result<IntId, Reason> {
        self.market(security, Side::Buy, qty)
    }

    /// Sells at the market and returns the id of the order.
    pub fn sell(&mut self, security: impl SecurityKey, qty: Qty) -> Result<IntId, Reason> {
        self.market(security, Side::Sell, qty)
    }

    /// Sends a market order and returns its id.
    pub fn market(&mut self, security: impl SecurityKey, side: Side, qty: Qty) -> Result<IntId, Reason> {
        let security = security.id_in(self.reference)?;
        self.submit(Terms { security, side, qty, kind: OrderKind::Market, ..Terms::default() })
    }

    /// Sends a limit order for the day and returns its id.
    pub fn limit(
        &mut self,
        security: impl SecurityKey,
        side: Side,
        qty: Qty,
        limit: Price,
    ) -> Result<IntId, Reason> {
        let (security, kind) = (security.id_in(self.reference)?, OrderKind::Limit);
        self.submit(Terms { security, side, qty, kind, limit, limit_given: true, ..Terms::default() })
    }

    /// Sends any order. The strategy is set to this one; without an account it uses the one that
    /// trades on the security's exchange.
    pub fn submit(&mut self, terms: Terms) -> Result<IntId, Reason> {
        if self.phase != StrategyPhase::Running {
            return Err(Reason::StrategyNotRunning);
        }
        if !self.book.orders.has_room() {
            return Err(Reason::MaxOpenOrders);
        }
        let account = match terms.account {
            AccountId(0) => self.account(terms.security)?,
            named => named,
        };
        let terms = Terms { strategy: self.book.strategy, account, ..terms };
        let id = self.new_id()?;
        self.book.push_request(StrategyRequest::Submit { id, terms })?;
        self.book.orders.submit(id, &terms);
        Ok(id)
    }

    /// Modifies an order; it keeps the id under which it was submitted.
    pub fn modify(&mut self, id: &IntId, changes: Changes) -> Result<(), Reason> {
        self.book.orders.find(id).ok_or(Reason::UnknownOrder)?;
        if self.phase != StrategyPhase::Running {
            return Err(Reason::StrategyNotRunning);
        }
        self.book.push_request(StrategyRequest::Modify { id: *id, changes })
    }

    /// Cancels an order, in every phase.
    pub fn cancel(&mut self, id: &IntId) -> Result<(), Reason> {
        self.book.orders.find(id).ok_or(Reason::UnknownOrder)?;
        self.book.push_request(StrategyRequest::Cancel { id: *id })
    }

    /// Cancels all its orders that are open and not being cancelled, however many requests wait.
    pub fn cancel_all(&mut self) {
        self.book.cancel_all();
    }

    /// Calls `on_timer` with this number at a time; setting the same timer again moves it.
    pub fn set_timer(&mut self, timer: u32, at: Timestamp) -> Result<(), Reason> {
        self.clear_timer(timer);
        if self.book.timers.len() >= TIMERS_MAX {
            return Err(Reason::Overflow);
        }
        self.book.timers.push((at, timer));
        Ok(())
    }

    /// Does the same after a time from now.
    pub fn set_timer_after(&mut self, timer: u32, ns: u64) -> Result<(), Reason> {
        self.set_timer(timer, self.now.plus(ns))
    }

    /// Clears a timer; one that is not set is ignored.
    pub fn clear_timer(&mut self, timer: u32) {
        self.book.timers.retain(|(_, other)| *other != timer);
    }

    /// Sends an event to the other strategies, and to clients subscribed to `generic-event.<name>`.
    /// The body is JSON.
    pub fn send_generic(&mut self, name: &str, body: &[u8]) -> Result<(), Reason> {
        let fits = (1..=GENERIC_NAME_BYTES_MAX).contains(&name.len()) && body.len() <= GENERIC_BODY_BYTES_MAX;
        if !fits {
            return Err(Reason::Overflow);
        }
        self.book.push_request(StrategyRequest::Generic { name: name.into(), body: body.into() })
    }

    fn follow(&mut self, security: SecurityId, on: bool) -> Result<(), Reason> {
        self.reference.security(security).ok_or(Reason::UnknownSecurity)?;
        let changes =
            if on { self.book.followed.insert(security) } else { self.book.followed.remove(&security) };
        if !on {
            self.book.bars.retain(|maker| maker.security() != security);
        }
        if changes { self.book.push_request(StrategyRequest::Subscribe { security, on }) } else { Ok(()) }
    }

    fn account(&self, security: SecurityId) -> Result<AccountId, Reason> {
        let row = self.reference.security(security).ok_or(Reason::UnknownSecurity)?;
        let account = self.reference.default_account(self.reference.exchange_of(row));
        account.map(|row| row.id).ok_or(Reason::UnknownAccount)
    }

    fn new_id(&mut self) -> Result<IntId, Reason> {
        if self.numbers.next >= self.numbers.end {
            return Err(Reason::LaneFull);
        }
        let id = IntId::numbered(PREFIX, self.numbers.next);
        self.numbers.next += 1;
        Ok(id)
    }
}

impl StrategyState {
    pub(super) fn cancel_all(&mut self) {
        let StrategyState { orders, requests, .. } = self;
        let asked: BTreeSet<IntId> = requests
            .iter()
            .filter_map(|request| if let StrategyRequest::Cancel { id } = request { Some(*id) } else { None })
            .collect();
        let is_left =
            |order: &&OpenOrder| order.status != Status::PendingCancel && !asked.contains(&order.id);
        let cancels = orders.open().iter().filter(is_left);
        requests.extend(cancels.map(|order| StrategyRequest::Cancel { id: order.id }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::OPEN_MAX;
    use pitlane_engine::refdata::sample;

    fn with(look: impl FnOnce(&mut Context<'_>)) {
        let mut book = StrategyState::new(StrategyId(1));
        let reference = RefData::check(sample::sound()).unwrap();
        look(&mut Context {
            now: Timestamp(1),
            phase: StrategyPhase::Running,
            operation: Operation::RealTime,
            book: &mut book,
            market: &MarketCache::default(),
            reference: &reference,
            numbers: &mut IdBlock { next: 1, end: 10_000 },
        });
    }

    #[test]
    fn a_strategy_can_queue_only_as_many_requests_as_there_is_room_for() {
        with(|context| {
            for _ in 0..REQUESTS_MAX {
                assert_eq!(context.send_generic("a", b"1"), Ok(()));
            }
            assert_eq!(context.send_generic("a", b"1"), Err(Reason::LaneFull));
        });
        with(|context| {
            for timer in 0..TIMERS_MAX as u32 {
                assert_eq!(context.set_timer(timer, Timestamp(5)), Ok(()));
            }
            assert_eq!(context.set_timer(TIMERS_MAX as u32, Timestamp(5)), Err(Reason::Overflow));
            assert_eq!(context.set_timer(0, Timestamp(6)), Ok(()), "one that is set again moves");
        });
        with(|context| {
            for interval in 1..=BARS_MAX as u64 {
                assert_eq!(context.subscribe_bars(SecurityId(1), interval), Ok(()));
            }
            assert_eq!(context.subscribe_bars(SecurityId(1), 1_000), Err(Reason::Overflow));
        });
        with(|context| {
            let terms = Terms::default();
            for number in 0..OPEN_MAX as u64 {
                assert!(context.book.orders.has_room());
                context.book.orders.submit(IntId::numbered(b's', number), &terms);
            }
            assert!(!context.book.orders.has_room());
        });
    }

    #[test]
    fn all_open_orders_can_be_cancelled_however_many_requests_wait() {
        with(|context| {
            for number in 0..OPEN_MAX as u64 {
                context.book.orders.submit(IntId::numbered(b's', number), &Terms::default());
            }
            let first = context.open_orders()[0].id;
            assert_eq!(context.cancel(&first), Ok(()));
            while context.send_generic("a", b"1").is_ok() {}
            for _ in 0..2 {
                context.cancel_all();
                let cancels = |request: &&StrategyRequest| matches!(request, StrategyRequest::Cancel { .. });
                assert_eq!(context.book.requests.iter().filter(cancels).count(), OPEN_MAX, "each once");
            }
            assert_eq!(context.cancel(&first), Err(Reason::LaneFull));
        });
    }

    #[test]
    fn an_event_for_others_has_a_name_and_a_length() {
        with(|context| {
            let (name, body) = ("n".repeat(GENERIC_NAME_BYTES_MAX), vec![b'1'; GENERIC_BODY_BYTES_MAX]);
            assert_eq!(context.send_generic(&name, &body), Ok(()));
            for (name, body) in [("", 1), ("a", body.len() + 1), (&(name.clone() + "n"), 1)] {
                assert_eq!(context.send_generic(name, &vec![b'1'; body]), Err(Reason::Overflow));
            }
        });
    }
}
