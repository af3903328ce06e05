//! Events of a shard. A closed list; every interface reads the same events, so FIX, REST and STOMP
//! can never disagree.
//!
//! An order event has two forms. [`EventKind::Order`] carries the whole terms, when an order is
//! entered (nothing is filled then, so it carries the status as well) and when its terms have
//! changed. [`EventKind::Status`] carries what happened to the order since. [`Event::report`] gives
//! both the same form.

mod book_orders;
mod depth;
mod levels;
mod market_trade;
mod subject;

pub use book_orders::{
    BookOrder, ORDER_CHANGES_MAX, ORDER_SCRIPT_MAX, ORDER_TRADES_MAX, ORDERS_PER_SIDE_MAX, OrderAction,
    OrderChange, OrderChanges, OrderNumber,
};
pub use depth::{DEPTH_LEVELS_MAX, Depth, DepthLevel};
pub use levels::{
    LEVEL_CHANGES_MAX, LEVEL_EVENTS_MAX, LEVELS_PER_SIDE_MAX, LevelChange, LevelChanges, LevelsKind,
};
pub use market_trade::{MarketTrade, TradeNumber};
pub use subject::EventSubject;

use crate::command::{BudgetKind, ExecRef, MovementKind, RiskLimits, Scope, StrategyPhase, TradingSession};
use crate::directive::{Directive, DirectiveVersion};
use crate::id::{
    AccountId, AdapterId, Currency, ExchangeId, IntId, OrderHandle, PortId, SecurityId, ShardId, Source,
    StrategyId, TransactionId, Uuid,
};
use crate::number::{Money, Price, Qty};
use crate::reason::Reason;
use crate::sender::{Sender, SenderId, SentBy};
use crate::terms::{OrderKind, OrderSpecialTerms, Side, Status, Terms, Tif};
use crate::time::{Day, Timestamp};
use crate::used_ids::UsedIds;

/// Most events that one step of a shard emits. Larger work is done in several steps, see
/// [`crate::shard`].
pub const EVENTS_PER_COMMAND_MAX: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Sequence number. It rises by one with every event of a shard, from 1.
    pub seq: u64,
    pub at: Timestamp,
    pub body: EventKind,
}

const _: () = assert!(size_of::<Event>() <= 192, "an event has three cache lines");

impl Event {
    /// Flag in the sequence number of an event on the link to other servers: the event is part of a
    /// snapshot.
    pub const SNAPSHOT: u64 = 1 << 63;

    /// Returns the ExecID. It is globally unique and the same in a replay.
    pub fn exec_id(&self, instance: u64, shard: ShardId) -> Uuid {
        let instance = instance ^ (shard.0 as u64) << 48;
        let EventKind::Order(order) = &self.body else {
            return Uuid::derived(instance, 0, self.seq);
        };
        if !self.is_substitute() {
            return Uuid::derived(instance, 0, self.seq);
        }
        let words = order.id.padded().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let stir = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        Uuid::derived(instance, 2, words.fold(self.at.0, stir))
    }

    /// Returns whether another component emitted the event on behalf of the shard. Such an event
    /// has no number of its own.
    pub fn is_substitute(&self) -> bool {
        matches!(
            &self.body,
            EventKind::Order(OrderTerms { reason, .. }) | EventKind::Refused(RequestRefusal { reason, .. })
                if reason.is_substitute()
        )
    }

    /// Returns what this event reports about an order, in either form. New terms of an existing
    /// order are no report: a [`EventKind::Status`] follows them.
    pub fn report(&self) -> Option<OrderReport> {
        match &self.body {
            EventKind::Order(order) if matches!(order.what, ExecType::Entered | ExecType::Rejected) => {
                Some(OrderReport::of_order(order))
            }
            EventKind::Status(report) => Some(*report),
            EventKind::Order(_)
            | EventKind::Refused(_)
            | EventKind::Forgotten { .. }
            | EventKind::Booked(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_)
            | EventKind::Sender { .. }
            | EventKind::Sent { .. }
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::SpecialTerms(_) => None,
        }
    }
}

/// Its tag is a whole word, so that the rest is copied in whole words: half the time of a report
/// once went into waiting for bytes that were written one way and read another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EventKind {
    Order(OrderTerms),
    Status(OrderReport),
    /// A cancel or a modification was refused; the order continues unchanged.
    Refused(RequestRefusal),
    /// The shard will not report this order again: its slot is free.
    Forgotten {
        order: OrderHandle,
        source: Source,
        id: IntId,
    },
    Booked(Booking),
    /// A reset found another value than the stored one, and corrected it.
    Adjusted {
        strategy: StrategyId,
        what: Adjustment,
    },
    Tick(Tick),
    /// The bids, directly followed by the asks: the two belong together.
    Depth(Depth),
    Subscription {
        strategy: StrategyId,
        security: SecurityId,
        on: bool,
        subscribers: u32,
    },
    Session {
        exchange: ExchangeId,
        session: TradingSession,
    },
    Halt {
        security: SecurityId,
        on: bool,
    },
    TradingDay {
        day: Day,
    },
    Phase {
        strategy: StrategyId,
        phase: StrategyPhase,
    },
    Adapter {
        adapter: AdapterId,
        connected: bool,
    },
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
    Alert {
        alert: Alert,
        order: OrderHandle,
        security: SecurityId,
        reason: Reason,
    },
    /// For a venue's adapter.
    ToVenue(Instruction),
    /// For the budget pool.
    Budget(BudgetUse),
    /// The command of this source and token is done: as requested if the reason is
    /// [`Reason::None`], otherwise refused for the reason.
    Done {
        source: Source,
        token: u32,
        reason: Reason,
    },
    /// A snapshot for this port begins: the events up to its end give the current state.
    SnapshotBegin {
        port: PortId,
    },
    SnapshotEnd {
        port: PortId,
    },
    // New variants come last: they are stored by their number.
    /// Ids that were used in this trading day, for the desk that owns them. Part of a snapshot.
    UsedIds(UsedIds),
    /// The newest directive for its key, as the shard has applied it.
    Directed {
        version: DirectiveVersion,
        directive: Directive,
    },
    /// Data of a sender.
    Sender {
        id: SenderId,
        sender: Sender,
    },
    /// Senders of the requests of an order. Emitted in snapshots, where the requests themselves are
    /// absent.
    Sent {
        order: OrderHandle,
        sent: SentBy,
    },
    /// Part of a snapshot or an update of a book's price levels.
    Levels(LevelChanges),
    /// Part of a snapshot or an update of the orders of a book.
    BookOrders(OrderChanges),
    /// A trade of the market.
    MarketTrade(MarketTrade),
    /// ExecInst, MinQty and MaxFloor of the order in the event that follows.
    SpecialTerms(OrderSpecialTerms),
    /// Position of an account in a security, over all strategies. Part of a snapshot; afterwards
    /// the bookings tell how it changes. Without an account, of all accounts: when the security has
    /// expired and no booking shows it.
    Exposure {
        account: Option<AccountId>,
        security: SecurityId,
        qty: Qty,
    },
}

/// The terms of an order, and its state as they take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderTerms {
    pub order: OrderHandle,
    pub id: IntId,
    /// Id before the last modification.
    pub orig_id: IntId,
    pub source: Source,
    pub what: ExecType,
    pub status: Status,
    pub reason: Reason,
    /// Sender of the order, when it is entered or rejected; otherwise none.
    pub sender: SenderId,
    pub terms: Terms,
}

/// A report of what happened to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderReport {
    pub order: OrderHandle,
    /// The order's id. In a pending report, and in the final report of a cancel, the request's id.
    pub id: IntId,
    /// The previous id: after a modification, and in reports of requests the order's own id.
    pub orig_id: IntId,
    pub qty: Qty,
    pub cum_qty: Qty,
    pub avg_price: Price,
    /// Quantity of this fill.
    pub last_qty: Qty,
    pub last_price: Price,
    pub source: Source,
    /// Sender of the request that this report is about; none if it is about no request.
    pub sender: SenderId,
    pub security: SecurityId,
    pub strategy: StrategyId,
    pub account: AccountId,
    pub what: ExecType,
    pub status: Status,
    pub reason: Reason,
    pub side: Side,
    pub kind: OrderKind,
    pub tif: Tif,
    /// Whether the connection was lost before the venue answered. The status is then the last known
    /// one.
    pub in_doubt: bool,
}

impl OrderReport {
    fn of_order(order: &OrderTerms) -> OrderReport {
        OrderReport {
            order: order.order,
            id: order.id,
            orig_id: order.orig_id,
            qty: order.terms.qty,
            cum_qty: Qty::ZERO,
            avg_price: Price::ZERO,
            last_qty: Qty::ZERO,
            last_price: Price::ZERO,
            source: order.source,
            sender: order.sender,
            security: order.terms.security,
            strategy: order.terms.strategy,
            account: order.terms.account,
            what: order.what,
            status: order.status,
            reason: order.reason,
            side: order.terms.side,
            kind: order.terms.kind,
            tif: order.terms.tif,
            in_doubt: false,
        }
    }

    /// Returns the quantity left in the market: zero once the order has ended.
    pub fn leaves_qty(&self) -> Qty {
        if self.status.is_finished() {
            return Qty::ZERO;
        }
        self.qty.checked_sub(self.cum_qty).unwrap_or_default()
    }
}

/// Cause of a report. FIX derives its ExecType from it, see `protocols`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExecType {
    /// Received and checked, not yet at the venue.
    #[default]
    Entered,
    Rejected,
    Accepted,
    Filled,
    CancelPending,
    Canceled,
    Expired,
    ReplacePending,
    Replaced,
    /// A stop price was reached.
    Triggered,
    /// A fill was taken back or corrected.
    Corrected,
    /// Nothing happened: this is the current state. In snapshots.
    Snapshot,
}

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRefusal {
    pub order: OrderHandle,
    /// The order's own id; none if the order is unknown.
    pub id: IntId,
    pub request_id: IntId,
    pub source: Source,
    pub request: RequestKind,
    pub status: Status,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    Cancel,
    Replace,
}

/// A transaction, with the position and cash after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    pub id: TransactionId,
    pub order: OrderHandle,
    pub order_id: IntId,
    /// The venue's execution id; for a movement the UUID that its sender gave.
    pub exec: ExecRef,
    pub kind: MovementKind,
    pub strategy: StrategyId,
    pub account: AccountId,
    /// Absent for cash movements.
    pub security: Option<SecurityId>,
    /// Signed.
    pub qty: Qty,
    pub price: Price,
    pub commission: Money,
    pub currency: Currency,
    /// Position after the transaction.
    pub position: PositionState,
    /// This shard's part of the strategy's cash in the currency after the transaction.
    pub cash: Money,
}

/// Stored state of a position. Invariant: without a quantity there is no cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PositionState {
    /// Signed: above zero long, below zero short.
    pub qty: Qty,
    /// Amount paid for it, signed like the quantity; the average price is `cost.per(qty, contract
    /// size)`.
    pub cost: Money,
    pub realized: Money,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    Position { security: SecurityId, before: PositionState, after: PositionState },
    Cash { currency: Currency, before: Money, after: Money },
}

/// Complete market data of a security, so that a newer tick replaces an older one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    pub security: SecurityId,
    pub bid: Price,
    pub bid_size: Qty,
    pub ask: Price,
    pub ask_size: Qty,
    pub last: Price,
    pub last_size: Qty,
    /// Whether there has been a last price at all.
    pub traded: bool,
    /// Volume of the trading day.
    pub volume: Qty,
    /// Time at the source.
    pub at: Timestamp,
}

impl Tick {
    /// Returns whether there is a bid and an ask.
    pub fn is_quoted(&self) -> bool {
        self.bid_size.is_positive() && self.ask_size.is_positive()
    }
}

/// A condition that a person should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alert {
    /// A fill for an order that had ended.
    LateFill,
    Overfill,
    /// An execution that was received before; dropped.
    DuplicateExecution,
    /// A report for an unknown order.
    UnknownReport,
    /// A fill so large that its money cannot be counted: reported (with [`Reason::Overflow`]) but
    /// not booked, and the security is halted.
    BookingOverflow,
    InDoubt,
    LateReject,
    /// A report that does not fit the state of the order; dropped.
    UnexpectedReport,
    /// The memory for executions of venues is full; duplicates can no longer be detected.
    ExecutionsFull,
    /// A security has expired and a position in it waits for its settlement price.
    Unsettled,
}

/// An instruction to a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub adapter: AdapterId,
    pub order: OrderHandle,
    pub request: VenueRequest,
    pub id: IntId,
    /// Id of a cancel or replace request.
    pub request_id: IntId,
    pub terms: Terms,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VenueRequest {
    New,
    Cancel,
    Replace,
    /// After a reconnect: report everything known about the order.
    Query,
    /// Ask the venue for the status of the order: the reports received may be incomplete.
    Status,
}

/// A shard's use of its share of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetUse {
    pub scope: Scope,
    pub kind: BudgetKind,
    pub granted: i64,
    pub used: i64,
    /// Amount just returned, as an answer to a recall.
    pub returned: i64,
    /// Amount for want of which something was refused.
    pub wanting: i64,
}

#[cfg(test)]
mod tests;
