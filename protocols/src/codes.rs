//! Names and codes of the same values in the three interfaces, in one place: names for REST, STOMP
//! and the web page, single characters and numbers for FIX. Reading and writing are side by side,
//! so that they cannot differ.

use std::fmt;

use pitlane_engine::command::{MovementKind, StrategyPhase, TradingSession};
use pitlane_engine::event::{Alert, ExecType, RequestKind};
use pitlane_engine::id::Origin;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::OptionKind;
use pitlane_engine::terms::{OrderKind, Side, Status, Tif};

use crate::fix::version::FixVersion;
use crate::fix::{exec_type, ord_status};

/// A value that REST and STOMP name by a word in capitals.
pub trait WireName: Copy + Sized + 'static {
    /// All values.
    const VALUES: &'static [Self];

    fn wire_name(self) -> &'static str;

    /// Returns the value of a name. Names must match exactly; `buy` is not one.
    fn from_wire_name(name: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.wire_name() == name)
    }
}

macro_rules! wire_names {
    ($($kind:ident { $($name:ident $text:literal,)* })*) => {$(
        impl WireName for $kind {
            const VALUES: &'static [$kind] = &[$($kind::$name,)*];

            fn wire_name(self) -> &'static str {
                match self {
                    $($kind::$name => $text,)*
                }
            }
        }
    )*};
}

wire_names! {
    Alert {
        LateFill "LATE_FILL",
        Overfill "OVERFILL",
        DuplicateExecution "DUPLICATE_EXECUTION",
        UnknownReport "UNKNOWN_REPORT",
        BookingOverflow "BOOKING_OVERFLOW",
        InDoubt "IN_DOUBT",
        LateReject "LATE_REJECT",
        UnexpectedReport "UNEXPECTED_REPORT",
        ExecutionsFull "EXECUTIONS_FULL",
        Unsettled "UNSETTLED",
    }
    Side {
        Buy "BUY",
        Sell "SELL",
    }
    OrderKind {
        Market "MARKET",
        Limit "LIMIT",
        Stop "STOP",
        StopLimit "STOP_LIMIT",
    }
    Tif {
        Day "DAY",
        Gtc "GTC",
        Ato "ATO",
        Ioc "IOC",
        Fok "FOK",
        Gtd "GTD",
        Atc "ATC",
    }
    Status {
        PendingNew "PENDING_NEW",
        New "NEW",
        PartiallyFilled "PARTIALLY_FILLED",
        Filled "FILLED",
        PendingCancel "PENDING_CANCEL",
        Canceled "CANCELED",
        PendingReplace "PENDING_REPLACE",
        Rejected "REJECTED",
        Expired "EXPIRED",
    }
    ExecType {
        Entered "PENDING_NEW",
        Rejected "REJECTED",
        Accepted "NEW",
        Filled "TRADE",
        CancelPending "PENDING_CANCEL",
        Canceled "CANCELED",
        Expired "EXPIRED",
        ReplacePending "PENDING_REPLACE",
        Replaced "REPLACED",
        Triggered "TRIGGERED",
        Corrected "TRADE_CORRECT",
        Snapshot "ORDER_STATUS",
    }
    RequestKind {
        Cancel "CANCEL",
        Replace "REPLACE",
    }
    Origin {
        Server "SERVER",
        Rest "REST",
        Fix "FIX",
        Strategy "STRATEGY",
    }
    MovementKind {
        Buy "BUY",
        Sell "SELL",
        Expiration "EXPIRATION",
        Credit "CREDIT",
        Debit "DEBIT",
        Interest "INTEREST",
        Fees "FEES",
        Refund "REFUND",
        Rebalance "REBALANCE",
    }
    StrategyPhase {
        Init "INIT",
        Prefeed "PREFEED",
        Start "START",
        Running "RUNNING",
        Stop "STOP",
        Exit "EXIT",
    }
    TradingSession {
        Closed "CLOSED",
        OpeningAuction "OPENING_AUCTION",
        Continuous "CONTINUOUS",
        ClosingAuction "CLOSING_AUCTION",
    }
    OptionKind {
        Call "CALL",
        Put "PUT",
    }
}

/// A value that a FIX field gives as one character.
pub trait Code: WireName {
    fn code(self) -> u8;

    fn from_code(code: u8) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.code() == code)
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $kind:ident { $($name:ident $code:literal,)* })*) => {$(
        $(#[$doc])*
        impl Code for $kind {
            fn code(self) -> u8 {
                match self {
                    $($kind::$name => $code,)*
                }
            }
        }
    )*};
}

codes! {
    /// Side (54).
    Side {
        Buy b'1',
        Sell b'2',
    }
    /// OrdType (40).
    OrderKind {
        Market b'1',
        Limit b'2',
        Stop b'3',
        StopLimit b'4',
    }
    /// TimeInForce (59).
    Tif {
        Day b'0',
        Gtc b'1',
        Ato b'2',
        Ioc b'3',
        Fok b'4',
        Gtd b'6',
        Atc b'7',
    }
    /// CxlRejResponseTo (434).
    RequestKind {
        Cancel b'1',
        Replace b'2',
    }
}

/// Values of ExecType (150) and OrdStatus (39) that a FIX session sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FixProfile {
    /// Only values of the specification's lists.
    #[default]
    Spec,
    /// Also the values of FIX 4.4 for a cancel, a replacement and an expiry.
    Strict44,
    /// The values of FIX 4.2, which has others for a fill and none for a status.
    Fix42,
}

impl FixProfile {
    /// Returns the profile of a session of this version.
    pub fn in_version(self, version: FixVersion) -> FixProfile {
        match version {
            FixVersion::Fix42 => FixProfile::Fix42,
            FixVersion::Fix44 | FixVersion::Fix50Sp2 => self,
        }
    }

    /// Returns OrdRejReason (103): "broker's option" for a value that the version does not have.
    pub fn ord_rej_reason(self, reason: u32) -> u32 {
        const BROKER_OPTION: u32 = 0;
        const STALE_ORDER: u32 = 8;
        if self == FixProfile::Fix42 && reason > STALE_ORDER { BROKER_OPTION } else { reason }
    }

    /// Returns CxlRejReason (102): "broker's option" for a value that the version does not have.
    pub fn cxl_rej_reason(self, reason: u32) -> u32 {
        const BROKER_OPTION: u32 = 2;
        const ALREADY_PENDING: u32 = 3;
        if self == FixProfile::Fix42 && reason > ALREADY_PENDING { BROKER_OPTION } else { reason }
    }
}

/// ExecTransType (20) of FIX 4.2: whether a report is about something new, or only a status.
pub fn exec_trans_type(what: ExecType) -> u8 {
    const NEW: u8 = b'0';
    const STATUS: u8 = b'3';
    match what {
        ExecType::Triggered | ExecType::Corrected | ExecType::Snapshot => STATUS,
        ExecType::Entered
        | ExecType::Rejected
        | ExecType::Accepted
        | ExecType::Filled
        | ExecType::CancelPending
        | ExecType::Canceled
        | ExecType::Expired
        | ExecType::ReplacePending
        | ExecType::Replaced => NEW,
    }
}

/// Returns OrdStatus (39) of a report. In FIX 4.2 an order that was replaced and has no fill is
/// "replaced" in the report of it.
pub fn reported_ord_status(profile: FixProfile, what: ExecType, status: Status) -> u8 {
    let is_replaced = what == ExecType::Replaced && status == Status::New;
    if profile == FixProfile::Fix42 && is_replaced {
        return ord_status::REPLACED;
    }
    ord_status(profile, status)
}

/// Returns OrdStatus (39).
pub fn ord_status(profile: FixProfile, status: Status) -> u8 {
    match status {
        Status::PendingNew => ord_status::PENDING_NEW,
        Status::New => ord_status::NEW,
        Status::PartiallyFilled => ord_status::PARTIALLY_FILLED,
        Status::Filled => ord_status::FILLED,
        Status::PendingCancel => ord_status::PENDING_CANCEL,
        Status::Canceled => ord_status::CANCELED,
        Status::PendingReplace => ord_status::PENDING_REPLACE,
        Status::Rejected => ord_status::REJECTED,
        // Choice: the specification has no value for it; Text distinguishes it from a cancel. See
        // protocols/README.md.
        Status::Expired if profile == FixProfile::Spec => ord_status::CANCELED,
        Status::Expired => ord_status::EXPIRED,
    }
}

/// Returns ExecType (150): the reason of the report.
pub fn exec_type(profile: FixProfile, what: ExecType, status: Status) -> u8 {
    let strict = profile != FixProfile::Spec;
    match what {
        ExecType::Filled if profile == FixProfile::Fix42 => {
            if status == Status::Filled {
                exec_type::FILL
            } else {
                exec_type::PARTIAL_FILL
            }
        }
        ExecType::Triggered | ExecType::Corrected | ExecType::Snapshot if profile == FixProfile::Fix42 => {
            ord_status(profile, status)
        }
        ExecType::Entered => exec_type::PENDING_NEW,
        ExecType::Accepted => exec_type::NEW,
        ExecType::Filled => exec_type::TRADE,
        ExecType::CancelPending => exec_type::PENDING_CANCEL,
        ExecType::ReplacePending => exec_type::PENDING_REPLACE,
        ExecType::Rejected if status == Status::Rejected => exec_type::REJECTED,
        // Choice: a venue that rejects an accepted order has cancelled it. See protocols/README.md.
        ExecType::Rejected | ExecType::Canceled if strict => exec_type::CANCELED,
        ExecType::Replaced if strict => exec_type::REPLACED,
        ExecType::Expired if strict => exec_type::EXPIRED,
        ExecType::Rejected | ExecType::Canceled | ExecType::Replaced | ExecType::Expired => {
            exec_type::ORDER_STATUS
        }
        ExecType::Triggered | ExecType::Corrected | ExecType::Snapshot => exec_type::ORDER_STATUS,
    }
}

/// Returns OrdRejReason (103) of FIX 4.4.
pub fn ord_rej_reason(reason: Reason) -> u32 {
    const BROKER_OPTION: u32 = 0;
    const UNKNOWN_SYMBOL: u32 = 1;
    const EXCHANGE_CLOSED: u32 = 2;
    const EXCEEDS_LIMIT: u32 = 3;
    const TOO_LATE_TO_ENTER: u32 = 4;
    const UNKNOWN_ORDER: u32 = 5;
    const DUPLICATE_ORDER: u32 = 6;
    const UNSUPPORTED: u32 = 11;
    const INCORRECT_QUANTITY: u32 = 13;
    const UNKNOWN_ACCOUNT: u32 = 15;
    const OTHER: u32 = 99;
    match reason {
        Reason::UnknownSecurity | Reason::UnknownExchange => UNKNOWN_SYMBOL,
        Reason::UnknownAccount | Reason::AccountInactive | Reason::AccountElsewhere => UNKNOWN_ACCOUNT,
        Reason::QuantityNotPositive | Reason::BadLot => INCORRECT_QUANTITY,
        Reason::DuplicateId | Reason::DuplicateOrder => DUPLICATE_ORDER,
        Reason::UnknownOrder => UNKNOWN_ORDER,
        Reason::NoAuctionAhead | Reason::TifDatePast => TOO_LATE_TO_ENTER,
        Reason::Halted => EXCHANGE_CLOSED,
        Reason::LimitMissing
        | Reason::LimitSuperfluous
        | Reason::StopMissing
        | Reason::StopSuperfluous
        | Reason::TifDateMissing
        | Reason::TifDateSuperfluous
        | Reason::TifNotAllowed
        | Reason::VenueUnsupported
        | Reason::ExecInstNotTaken
        | Reason::MinQtyNotTaken
        | Reason::MaxFloorNotTaken => UNSUPPORTED,
        Reason::MaxOrderQty
        | Reason::MaxOrderValue
        | Reason::MinNotional
        | Reason::MaxNotional
        | Reason::MaxOpenOrders
        | Reason::MaxPosition
        | Reason::OrderRate
        | Reason::VenueRate
        | Reason::InsufficientFunds
        | Reason::PriceCollar
        | Reason::PriceBand
        | Reason::Overflow => EXCEEDS_LIMIT,
        Reason::NotTradeable
        | Reason::ExpiredSecurity
        | Reason::StrategyNotPermitted
        | Reason::VenueUnavailable
        | Reason::LaneFull
        | Reason::StorageFailed
        | Reason::BrokerLost
        | Reason::OwnerAway
        | Reason::ShardFull
        | Reason::KillSwitch
        | Reason::TradingDisabled
        | Reason::Restricted
        | Reason::VenueRejected
        | Reason::VenueCancelled
        | Reason::VenueRandomReject
        | Reason::SelfTrade
        | Reason::NoLiquidity
        | Reason::NoReferencePrice => BROKER_OPTION,
        Reason::None
        | Reason::UnknownStrategy
        | Reason::StrategyNotRunning
        | Reason::BadTick
        | Reason::BadId
        | Reason::OrderFinished
        | Reason::RequestPending
        | Reason::NotAcknowledged
        | Reason::PositionFlat
        | Reason::PositionTooSmall
        | Reason::CloseInProgress
        | Reason::ReduceOnly
        | Reason::Ioc
        | Reason::Fok
        | Reason::Requested
        | Reason::ExpiredDay
        | Reason::ExpiredGtd
        | Reason::ExpiredAuction
        | Reason::SecurityExpired
        | Reason::Triggered
        | Reason::StopHere
        | Reason::LateFill
        | Reason::Overfill
        | Reason::Bust
        | Reason::Correction
        | Reason::UnknownPosition
        | Reason::UnknownExecution
        | Reason::BadTransaction
        | Reason::UnknownScope
        | Reason::InDoubt
        | Reason::Adjusted
        | Reason::MissedFill
        | Reason::ReportLost => OTHER,
    }
}

/// Returns CxlRejReason (102) of FIX 4.4. Most reasons are about the terms of a replacement, which
/// have no number of their own.
pub fn cxl_rej_reason(reason: Reason) -> u32 {
    const TOO_LATE: u32 = 0;
    const UNKNOWN_ORDER: u32 = 1;
    const BROKER_OPTION: u32 = 2;
    const ALREADY_PENDING: u32 = 3;
    const DUPLICATE_CL_ORD_ID: u32 = 6;
    const OTHER: u32 = 99;
    match reason {
        Reason::OrderFinished | Reason::StopHere | Reason::LateFill => TOO_LATE,
        Reason::UnknownOrder => UNKNOWN_ORDER,
        Reason::RequestPending => ALREADY_PENDING,
        Reason::DuplicateId => DUPLICATE_CL_ORD_ID,
        Reason::NotAcknowledged
        | Reason::VenueRejected
        | Reason::VenueUnavailable
        | Reason::VenueCancelled
        | Reason::VenueRandomReject
        | Reason::LaneFull
        | Reason::StorageFailed
        | Reason::BrokerLost
        | Reason::OwnerAway => BROKER_OPTION,
        Reason::None
        | Reason::UnknownSecurity
        | Reason::NotTradeable
        | Reason::UnknownAccount
        | Reason::AccountInactive
        | Reason::AccountElsewhere
        | Reason::UnknownStrategy
        | Reason::StrategyNotRunning
        | Reason::UnknownExchange
        | Reason::QuantityNotPositive
        | Reason::BadLot
        | Reason::BadTick
        | Reason::LimitMissing
        | Reason::LimitSuperfluous
        | Reason::StopMissing
        | Reason::StopSuperfluous
        | Reason::TifDateMissing
        | Reason::TifDateSuperfluous
        | Reason::TifDatePast
        | Reason::TifNotAllowed
        | Reason::NoAuctionAhead
        | Reason::Overflow
        | Reason::BadId
        | Reason::ShardFull
        | Reason::KillSwitch
        | Reason::TradingDisabled
        | Reason::Restricted
        | Reason::MaxOrderQty
        | Reason::MaxOrderValue
        | Reason::PriceCollar
        | Reason::NoReferencePrice
        | Reason::MaxOpenOrders
        | Reason::MaxPosition
        | Reason::OrderRate
        | Reason::DuplicateOrder
        | Reason::InsufficientFunds
        | Reason::PositionFlat
        | Reason::PositionTooSmall
        | Reason::CloseInProgress
        | Reason::ReduceOnly
        | Reason::SelfTrade
        | Reason::PriceBand
        | Reason::Halted
        | Reason::Ioc
        | Reason::Fok
        | Reason::NoLiquidity
        | Reason::Requested
        | Reason::ExpiredDay
        | Reason::ExpiredGtd
        | Reason::ExpiredAuction
        | Reason::SecurityExpired
        | Reason::Triggered
        | Reason::Overfill
        | Reason::Bust
        | Reason::Correction
        | Reason::UnknownPosition
        | Reason::UnknownExecution
        | Reason::BadTransaction
        | Reason::UnknownScope
        | Reason::InDoubt
        | Reason::Adjusted
        | Reason::ReportLost
        | Reason::MissedFill
        | Reason::ExpiredSecurity
        | Reason::StrategyNotPermitted
        | Reason::VenueRate
        | Reason::VenueUnsupported
        | Reason::MinNotional
        | Reason::MaxNotional
        | Reason::ExecInstNotTaken
        | Reason::MinQtyNotTaken
        | Reason::MaxFloorNotTaken => OTHER,
    }
}

/// Text (58): the code and its text, `bad-lot: the quantity is not a multiple of the lot size`.
/// Empty without a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonText(pub Reason);

impl fmt::Display for ReasonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Reason::None {
            return Ok(());
        }
        f.write_str(self.0.code())?;
        f.write_str(": ")?;
        f.write_str(self.0.text())
    }
}

#[cfg(test)]
mod tests;
