//! What a strategy sees and may do while it is told something.
//!
//! All it asks for is noted as an [`StrategyRequest`] and leaves when the call is over; so a strategy depends on messages only, and whoever
//! runs it takes them to a shard in this process or to a server elsewhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::bars::BarMaker;
use super::market::MarketCache;
use super::orders::{OpenOrder, OpenOrders};
use crate::command::Phase;
use crate::desk::IdBlock;
use crate::event::{PositionState, Tick};
use crate::id::{AccountId, Currency, IntId, SecurityId, ShardId, StrategyId};
use crate::number::{Money, Price, Qty};
use crate::reason::Reason;
use crate::refdata::RefData;
use crate::terms::{Changes, OrderKind, Side, Terms};
use crate::time::Timestamp;

/// Requests that may wait to be sent: more than a strategy in good order asks for in one call, and those that waited for room.
pub const REQUESTS_MAX: usize = 512;
/// Timers and series of bars of one strategy: they are looked through one by one.
pub const TIMERS_MAX: usize = 64;
pub const BARS_MAX: usize = 64;
/// Longest name and body of an event between strategies; the broker's own bounds are not below.
pub const GENERIC_NAME_BYTES_MAX: usize = 128;
pub const GENERIC_BODY_BYTES_MAX: usize = 65_536;
/// First letter of the ids of strategies' orders.
pub const PREFIX: u8 = b's';

/// Whose clock rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    #[default]
    RealTime,
    Simulation,
}

/// Something a strategy has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyRequest {
    Submit { id: IntId, terms: Terms },
    Modify { id: IntId, changes: Changes },
    Cancel { id: IntId },
    Subscribe { security: SecurityId, on: bool },
    Generic { name: Box<str>, body: Box<[u8]> },
}

/// What is kept for one strategy between calls.
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
    pub fn new(strategy: StrategyId) -> StrategyState {
        StrategyState {
            strategy,
            requests: VecDeque::with_capacity(REQUESTS_MAX),
            ..StrategyState::default()
        }
    }

    /// When the next timer is due.
    pub fn deadline(&self) -> Timestamp {
        self.timers.iter().map(|(at, _)| *at).min().unwrap_or(Timestamp::MAX)
    }

    fn ask(&mut self, ask: StrategyRequest) -> Result<(), Reason> {
        if self.requests.len() >= REQUESTS_MAX {
            return Err(Reason::LaneFull);
        }
        self.requests.push_back(ask);
        Ok(())
    }
}

/// See the module's comment.
#[derive(Debug)]
pub struct Context<'a> {
    pub(super) now: Timestamp,
    pub(super) phase: Phase,
    pub(super) operation: Operation,
    pub(super) book: &'a mut StrategyState,
    pub(super) market: &'a MarketCache,
    pub(super) reference: &'a RefData,
    pub(super) numbers: &'a mut IdBlock,
}

/// What it sees.
impl Context<'_> {
    /// The time: of the clock, in simulation of the data.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn operation(&self) -> Operation {
        self.operation
    }

    pub fn strategy(&self) -> StrategyId {
        self.book.strategy
    }

    pub fn reference(&self) -> &RefData {
        self.reference
    }

    /// The newest market of a security that any strategy here follows; None before the first tick.
    pub fn tick(&self, security: SecurityId) -> Option<&Tick> {
        self.market.tick(security)
    }

    /// Flat if there never was one.
    pub fn position(&self, security: SecurityId) -> PositionState {
        self.book.positions.get(&security).copied().unwrap_or_default()
    }

    /// None if the parts add up to more than can be counted.
    pub fn cash(&self, currency: Currency) -> Option<Money> {
        let parts = self.book.cash.iter().filter(|((of, _), _)| *of == currency);
        parts.map(|(_, part)| *part).try_fold(Money::ZERO, Money::checked_add)
    }

    /// Its orders that have not ended, in the order they were submitted.
    pub fn open_orders(&self) -> &[OpenOrder] {
        self.book.orders.open()
    }

    /// None once it has ended.
    pub fn order(&self, id: &IntId) -> Option<&OpenOrder> {
        self.book.orders.find(id)
    }
}

/// What it may do. A request is declined here at once, or its order is told of later.
impl Context<'_> {
    /// Asks for the ticks of a security, which the server then has quoted.
    pub fn subscribe(&mut self, security: SecurityId) -> Result<(), Reason> {
        self.follow(security, true)
    }

    pub fn unsubscribe(&mut self, security: SecurityId) -> Result<(), Reason> {
        self.follow(security, false)
    }

    /// Asks for bars of a security, and for its ticks, of which they are made.
    pub fn subscribe_bars(&mut self, security: SecurityId, interval_ns: u64) -> Result<(), Reason> {
        if interval_ns == 0 || self.book.bars.len() >= BARS_MAX {
            return Err(Reason::Overflow);
        }
        self.follow(security, true)?;
        let is_known = |maker: &BarMaker| (maker.security(), maker.interval_ns()) == (security, interval_ns);
        if !self.book.bars.iter().any(is_known) {
            self.book.bars.push(BarMaker::new(security, interval_ns));
        }
        Ok(())
    }

    /// An order at whatever price there is. Gives its id.
    pub fn market(&mut self, security: SecurityId, side: Side, qty: Qty) -> Result<IntId, Reason> {
        self.submit(Terms { security, side, qty, kind: OrderKind::Market, ..Terms::default() })
    }

    /// An order at this price or better, for the day. Gives its id.
    pub fn limit(
        &mut self,
        security: SecurityId,
        side: Side,
        qty: Qty,
        limit: Price,
    ) -> Result<IntId, Reason> {
        let kind = OrderKind::Limit;
        self.submit(Terms { security, side, qty, kind, limit, limit_given: true, ..Terms::default() })
    }

    /// Any order. The strategy is its own; without an account it goes to the one that trades on the security's exchange.
    pub fn submit(&mut self, terms: Terms) -> Result<IntId, Reason> {
        if self.phase != Phase::Running {
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
        self.book.ask(StrategyRequest::Submit { id, terms })?;
        self.book.orders.submit(id, &terms);
        Ok(id)
    }

    /// Changes what is named; the order keeps the id it was submitted under.
    pub fn modify(&mut self, id: &IntId, changes: Changes) -> Result<(), Reason> {
        self.book.orders.find(id).ok_or(Reason::UnknownOrder)?;
        if self.phase != Phase::Running {
            return Err(Reason::StrategyNotRunning);
        }
        self.book.ask(StrategyRequest::Modify { id: *id, changes })
    }

    /// Works in every phase.
    pub fn cancel(&mut self, id: &IntId) -> Result<(), Reason> {
        self.book.orders.find(id).ok_or(Reason::UnknownOrder)?;
        self.book.ask(StrategyRequest::Cancel { id: *id })
    }

    /// Cancels all its orders that are open and not being cancelled; as many as there is room for.
    pub fn cancel_all(&mut self) {
        self.book.cancel_all();
    }

    /// Calls `on_timer` with this number at a time; one that is set again moves.
    pub fn set_timer(&mut self, timer: u32, at: Timestamp) -> Result<(), Reason> {
        self.clear_timer(timer);
        if self.book.timers.len() >= TIMERS_MAX {
            return Err(Reason::Overflow);
        }
        self.book.timers.push((at, timer));
        Ok(())
    }

    pub fn clear_timer(&mut self, timer: u32) {
        self.book.timers.retain(|(_, other)| *other != timer);
    }

    /// Tells the other strategies, and clients that listen to `generic-event.<name>`. The body is JSON.
    pub fn send_generic(&mut self, name: &str, body: &[u8]) -> Result<(), Reason> {
        let fits = (1..=GENERIC_NAME_BYTES_MAX).contains(&name.len()) && body.len() <= GENERIC_BODY_BYTES_MAX;
        if !fits {
            return Err(Reason::Overflow);
        }
        self.book.ask(StrategyRequest::Generic { name: name.into(), body: body.into() })
    }

    fn follow(&mut self, security: SecurityId, on: bool) -> Result<(), Reason> {
        self.reference.security(security).ok_or(Reason::UnknownSecurity)?;
        let changes =
            if on { self.book.followed.insert(security) } else { self.book.followed.remove(&security) };
        if !on {
            self.book.bars.retain(|maker| maker.security() != security);
        }
        if changes { self.book.ask(StrategyRequest::Subscribe { security, on }) } else { Ok(()) }
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
        for order in orders.open() {
            let is_asked =
                requests.iter().any(|ask| matches!(ask, StrategyRequest::Cancel { id } if *id == order.id));
            let is_pending = order.status == crate::terms::Status::PendingCancel;
            if !is_asked && !is_pending && requests.len() < REQUESTS_MAX {
                requests.push_back(StrategyRequest::Cancel { id: order.id });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refdata::sample;
    use crate::strategy::orders::OPEN_MAX;

    fn with(look: impl FnOnce(&mut Context<'_>)) {
        let mut book = StrategyState::new(StrategyId(1));
        let reference = RefData::check(sample::sound()).unwrap();
        look(&mut Context {
            now: Timestamp(1),
            phase: Phase::Running,
            operation: Operation::RealTime,
            book: &mut book,
            market: &MarketCache::default(),
            reference: &reference,
            numbers: &mut IdBlock { next: 1, end: 10_000 },
        });
    }

    #[test]
    fn a_strategy_asks_for_no_more_than_there_is_room_for() {
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
