//! Commands that a shard accepts. A closed list: FIX, REST, STOMP, strategies, feeds, venues and
//! the operator all use it.

mod subject;
mod venue_levels;
mod venue_report;
mod watch_target;

pub use self::venue_levels::{VENUE_LEVELS_MAX, VenueLevels};
pub use self::venue_report::{ExecRef, VenueFee, VenueReport, VenueState};
pub use self::watch_target::WatchTarget;

use crate::directive::{Directive, DirectiveVersion};
use crate::id::{
    AccountId, AdapterId, Currency, ExchangeId, IntId, OrderHandle, Origin, PortId, SecurityId, Source,
    StrategyId, Uuid,
};
use crate::number::{Money, Price, Qty};
use crate::sender::{SenderId, SenderPart};
use crate::terms::{Changes, Side, SpecialTerms, Terms};
use crate::time::{Day, NS_PER_MS, Timestamp};

/// One command. It carries no time: the caller that applies it passes the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Source that sends the command and receives its answers.
    pub source: Source,
    /// The source's own mark. It comes back with [`crate::event::EventKind::Done`].
    pub token: u32,
    /// Sender of an order, modification, cancel or close; see [`crate::sender`].
    pub sender: SenderId,
    pub body: CommandKind,
}

impl Command {
    /// Creates a command without a sender.
    pub const fn new(source: Source, token: u32, body: CommandKind) -> Command {
        Command { source, token, sender: SenderId::NONE, body }
    }
}

const _: () = assert!(size_of::<Command>() <= 128, "a command has two cache lines");

/// Its tag is a whole word for the same reason as that of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum CommandKind {
    // From clients.
    Submit {
        id: IntId,
        terms: Terms,
    },
    Modify {
        order: OrderHandle,
        id: IntId,
        changes: Changes,
    },
    Cancel {
        order: OrderHandle,
        id: IntId,
    },
    /// Closes a position with a reduce-only market order. If `qty` is zero it closes the whole
    /// position and cancels its open orders first; otherwise it closes `qty`.
    Close {
        id: IntId,
        strategy: StrategyId,
        account: AccountId,
        security: SecurityId,
        qty: Qty,
    },
    Subscribe {
        strategy: StrategyId,
        security: SecurityId,
        on: bool,
    },
    // From feeds.
    Quote {
        security: SecurityId,
        quote: Quote,
    },
    Trade {
        security: SecurityId,
        trade: Trade,
    },
    /// A quote and a trade at once.
    Tick {
        security: SecurityId,
        quote: Quote,
        trade: Trade,
    },
    // From venues.
    Report {
        order: OrderHandle,
        report: VenueReport,
    },
    Adapter {
        adapter: AdapterId,
        connected: bool,
    },
    // From bookkeeping.
    Transaction(Movement),
    /// The security has expired: every position in it is closed at this price.
    Expire {
        security: SecurityId,
        price: Price,
    },
    ResetPositions,
    ResetCash,
    // From the operator.
    Limits {
        scope: Scope,
        limits: RiskLimits,
    },
    Restrict {
        scope: Scope,
        security: SecurityId,
        on: bool,
    },
    Kill {
        scope: Scope,
        on: bool,
    },
    Phase {
        strategy: StrategyId,
        phase: StrategyPhase,
    },
    Halt {
        security: SecurityId,
        on: bool,
    },
    /// The budget pool grants a share of a limit, or recalls a part of it.
    Budget(BudgetChange),
    // From the clock.
    Session {
        exchange: ExchangeId,
        session: TradingSession,
    },
    TradingDay {
        day: Day,
    },
    Timer,
    // From the threads themselves.
    /// Changes which events a port wants to receive.
    Watch {
        port: PortId,
        what: WatchTarget,
        on: bool,
    },
    /// Requests a copy of the whole state, as events, for one port.
    Snapshot {
        port: PortId,
    },
    // New variants come last: they are stored by their number.
    /// Puts reference data into force. They are identified by their name and were staged before,
    /// see [`crate::shard::Shard::stage`].
    Reference {
        name: u64,
    },
    /// Runs all checks of a new order and nothing else. The answer is the reason for which the
    /// order would be refused.
    Validate {
        terms: Terms,
    },
    /// A switch, limit or restriction for all shards. It has no effect where a newer version is
    /// known for its key.
    Direct {
        version: DirectiveVersion,
        directive: Directive,
    },
    /// The exchange has been in this session since then, by its calendar. Unlike
    /// [`CommandKind::Session`] it says whether the exchange has hours at all. With hours its DAY
    /// orders end at its close; without hours they end at the rollover of the trading day.
    Schedule {
        exchange: ExchangeId,
        session: TradingSession,
        /// Start of the session by the calendar; a start after a pause applies it later. Zero:
        /// unknown, or without hours.
        since: Timestamp,
        has_hours: bool,
    },
    /// This date is over at the exchange: its securities that expire on it or before are expired.
    /// Orders for them are refused and open orders end. Each position left is reported as
    /// [`crate::event::Alert::Unsettled`] until [`CommandKind::Expire`] closes it.
    Expiry {
        exchange: ExchangeId,
        day: Day,
    },
    /// Describes a sender. A port sends it before the first command of that sender. It is not
    /// answered.
    Sender {
        id: SenderId,
        part: SenderPart,
    },
    /// Newest record of the audit log's hash chain. The shard stores it and does nothing else with
    /// it. See `io/auth/src/audit/anchor.rs`.
    AuditAnchor(AuditAnchor),
    /// Cancels every open order that the filter selects, each as if it had been cancelled under
    /// this id. An order with a pending cancel keeps that one.
    CancelOrders {
        id: IntId,
        filter: CancelFilter,
    },
    /// A level of the feed's book has another size. Levels say how much is ahead of an order; the
    /// best prices come with [`CommandKind::Quote`].
    Level {
        security: SecurityId,
        level: FeedLevel,
    },
    /// Part of a change of an outside venue's book. It is not stored, see
    /// [`CommandKind::is_stored`].
    VenueLevels(VenueLevels),
    /// The book of an outside venue is complete with the levels that came before this command, or
    /// it is unknown until further levels come.
    VenueBook {
        security: SecurityId,
        is_known: bool,
    },
    /// ExecInst, MinQty and MaxFloor of the order or modification that follows from the same source
    /// with the same token. It is not answered.
    SpecialTerms(SpecialTerms),
}

/// Selects open orders: those that agree with every field that is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelFilter {
    pub strategy: Option<StrategyId>,
    pub security: Option<SecurityId>,
    pub side: Option<Side>,
    /// The kind of source that sent the order.
    pub origin: Option<Origin>,
    /// The source that sent the order, such as one FIX session.
    pub source: Option<Source>,
}

/// A record of an audit log, identified by its line number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditAnchor {
    /// Identifies the log: each server of a standby pair has its own.
    pub log: u64,
    pub line: u64,
    pub hash: [u8; 32],
}

/// Best prices. A size of zero means that this side is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    pub bid: Price,
    pub bid_size: Qty,
    pub ask: Price,
    pub ask_size: Qty,
    /// Time of the quote at its source.
    pub at: Timestamp,
}

/// A price level of the feed's book. A size of zero means that nothing is left at this price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedLevel {
    pub side: Side,
    pub price: Price,
    pub size: Qty,
    /// Time of the change at its source.
    pub at: Timestamp,
}

/// A trade on the market in which this platform took no part. A size of zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trade {
    pub price: Price,
    pub size: Qty,
    pub at: Timestamp,
}

/// A transaction that no order made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movement {
    pub kind: MovementKind,
    pub strategy: StrategyId,
    pub account: AccountId,
    /// For trades and expirations.
    pub security: Option<SecurityId>,
    /// Signed; for trades and expirations.
    pub qty: Qty,
    /// Per unit for trades; the amount for cash movements.
    pub price: Price,
    pub commission: Money,
    /// For cash movements.
    pub currency: Currency,
    /// Given by the sender to make the call idempotent. Zero: none.
    pub uuid: Uuid,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MovementKind {
    #[default]
    Buy,
    Sell,
    Expiration,
    Credit,
    Debit,
    Interest,
    Fees,
    Refund,
    /// Money or quantity moved between strategies, signed.
    Rebalance,
}

impl MovementKind {
    pub const ALL: [MovementKind; 9] = [
        MovementKind::Buy,
        MovementKind::Sell,
        MovementKind::Expiration,
        MovementKind::Credit,
        MovementKind::Debit,
        MovementKind::Interest,
        MovementKind::Fees,
        MovementKind::Refund,
        MovementKind::Rebalance,
    ];
}

/// Subject of a limit, a switch or a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Global,
    Strategy(StrategyId),
    Account(AccountId),
    Security(SecurityId),
    Adapter(AdapterId),
}

/// Pre-trade limits of one strategy or account. Zero means: no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskLimits {
    pub max_order_qty: Qty,
    pub max_order_value: Money,
    /// Largest distance from the last price, in hundredths of a percent.
    pub price_collar_bp: u32,
    pub max_open_orders: u32,
    pub max_position: Qty,
    pub max_orders_per_s: u32,
    pub duplicate_window_ms: u32,
    /// Amount that the account may spend in `credit_currency`; for accounts only.
    pub credit: Money,
    pub credit_currency: Currency,
    pub trading_enabled: bool,
}

impl RiskLimits {
    /// Returns the length of the duplicate window in nanoseconds; zero: none.
    #[inline]
    pub fn duplicate_window_ns(&self) -> u64 {
        self.duplicate_window_ms as u64 * NS_PER_MS
    }
}

impl Default for RiskLimits {
    fn default() -> RiskLimits {
        RiskLimits {
            max_order_qty: Qty::ZERO,
            max_order_value: Money::ZERO,
            price_collar_bp: 0,
            max_open_orders: 0,
            max_position: Qty::ZERO,
            max_orders_per_s: 0,
            duplicate_window_ms: 0,
            credit: Money::ZERO,
            credit_currency: Currency::default(),
            trading_enabled: true,
        }
    }
}

/// A change of a shard's part of a limit that spans securities. The parts never add up to more than
/// the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetChange {
    pub scope: Scope,
    pub kind: BudgetKind,
    pub act: BudgetAct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetKind {
    OpenOrders,
    OrdersPerSecond,
    Credit,
}

impl BudgetKind {
    pub const ALL: [BudgetKind; 3] =
        [BudgetKind::OpenOrders, BudgetKind::OrdersPerSecond, BudgetKind::Credit];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetAct {
    /// Lifts the limit.
    Lift,
    /// Sets the share to this amount.
    Set(i64),
    /// Adds this amount to the share.
    Grant(i64),
    /// Recalls up to this amount; the shard answers with the amount it returns.
    Recall(i64),
}

/// Phases of a strategy's lifecycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrategyPhase {
    #[default]
    Init,
    Prefeed,
    Start,
    Running,
    Stop,
    Exit,
}

/// Trading session of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TradingSession {
    Closed,
    OpeningAuction,
    /// Without a calendar, trading is always continuous.
    #[default]
    Continuous,
    ClosingAuction,
}

impl TradingSession {
    pub const ALL: [TradingSession; 4] = [
        TradingSession::Closed,
        TradingSession::OpeningAuction,
        TradingSession::Continuous,
        TradingSession::ClosingAuction,
    ];
}
