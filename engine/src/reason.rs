//! Reasons of refusals and events. One closed list for the whole platform: the same code appears in
//! FIX 58, in the REST problem body, in the STOMP payload and in the metrics, and never changes its
//! spelling.
//!
//! Rules: docs/domain.md#reasons.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// A reason, with its stable code and a sentence for people.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            /// No reason.
            #[default]
            None,
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            pub const ALL: &[Reason] = &[Reason::None, $(Reason::$name,)*];

            /// Returns the stable, machine-readable code.
            pub fn code(self) -> &'static str {
                match self {
                    Reason::None => "",
                    $(Reason::$name => $code,)*
                }
            }

            /// Returns the meaning of the code, for people.
            pub fn text(self) -> &'static str {
                match self {
                    Reason::None => "",
                    $(Reason::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    // Reference data.
    UnknownSecurity = "unknown-security", "there is no such security";
    NotTradeable = "not-tradeable", "the security cannot be traded";
    UnknownAccount = "unknown-account", "there is no such account";
    AccountInactive = "account-inactive", "the account is not active";
    AccountElsewhere = "account-elsewhere", "the account does not trade on the security's exchange";
    UnknownStrategy = "unknown-strategy", "there is no such strategy";
    StrategyNotRunning = "strategy-not-running", "the strategy is not in the phase RUNNING";
    UnknownExchange = "unknown-exchange", "there is no such exchange";
    VenueUnavailable = "venue-unavailable", "the adapter to the venue is not connected";
    // Form.
    QuantityNotPositive = "quantity-not-positive", "the quantity must be above zero";
    BadLot = "bad-lot", "the quantity is not a multiple of the lot size";
    BadTick = "bad-tick", "the price is not on the tick grid";
    LimitMissing = "limit-missing", "this order type needs a limit price";
    LimitSuperfluous = "limit-superfluous", "this order type takes no limit price";
    StopMissing = "stop-missing", "this order type needs a stop price";
    StopSuperfluous = "stop-superfluous", "this order type takes no stop price";
    TifDateMissing = "tif-date-missing", "GTD needs a date";
    TifDateSuperfluous = "tif-date-superfluous", "only GTD takes a date";
    TifDatePast = "tif-date-past", "the date of GTD lies in the past";
    TifNotAllowed = "tif-not-allowed", "the order type does not go with this time in force";
    NoAuctionAhead = "no-auction-ahead", "the exchange has no such auction ahead in this session";
    Overflow = "overflow", "the amount is too large to be counted";
    // Identity.
    DuplicateId = "duplicate-order-id", "the order id has been used before";
    BadId = "bad-order-id", "an order id has 1 to 48 printable ASCII characters without space";
    UnknownOrder = "unknown-order", "there is no such order";
    OrderFinished = "order-finished", "too late: the order is finished";
    RequestPending = "request-pending", "an earlier request for this order is still pending";
    NotAcknowledged = "not-acknowledged", "the venue has not acknowledged the order yet";
    LaneFull = "busy", "the platform is busy; try again";
    ShardFull = "too-many-orders", "the platform holds as many orders as it can";
    // Risk.
    KillSwitch = "kill-switch", "the kill switch is on";
    TradingDisabled = "trading-disabled", "trading is switched off for this strategy or account";
    Restricted = "restricted", "the security is restricted for this strategy or account";
    MaxOrderQty = "max-order-qty", "the quantity is above the limit for one order";
    MaxOrderValue = "max-order-value", "the value is above the limit for one order";
    PriceCollar = "price-collar", "the price is too far from the last price";
    NoReferencePrice = "no-reference-price", "there is no last price to check against";
    MaxOpenOrders = "max-open-orders", "too many open orders";
    MaxPosition = "max-position", "the position could grow above its limit";
    OrderRate = "order-rate", "too many orders in this second";
    DuplicateOrder = "duplicate-order", "the same order was sent a moment ago";
    InsufficientFunds = "insufficient-funds", "the account's credit does not cover the order";
    PositionFlat = "position-flat", "the position is flat";
    PositionTooSmall = "position-too-small", "the position is smaller than the quantity";
    CloseInProgress = "close-in-progress", "the position is being closed already";
    ReduceOnly = "reduce-only", "an order that closes a position cannot be changed";
    // The venue.
    VenueRejected = "venue-rejected", "refused by the venue";
    SelfTrade = "self-trade", "the order would have traded with an order of the same account";
    PriceBand = "price-band", "the price is outside the venue's band";
    Halted = "halted", "trading in the security is halted";
    Ioc = "ioc", "immediate or cancel: the rest is cancelled";
    Fok = "fok", "fill or kill: it could not be filled whole";
    NoLiquidity = "no-liquidity", "there is nothing to trade against";
    VenueCancelled = "venue-cancelled", "cancelled by the venue";
    VenueRandomReject = "simulated-reject", "rejected at random by the simulated venue";
    // Ends and changes of orders.
    Requested = "requested", "as requested";
    ExpiredDay = "expired-day", "expired at the end of the session";
    ExpiredGtd = "expired-gtd", "expired at its date";
    ExpiredAuction = "expired-auction", "expired: the auction is over";
    SecurityExpired = "security-expired", "the security has expired";
    Triggered = "triggered", "the stop price was reached";
    StopHere = "stop-here", "the new quantity was filled already";
    LateFill = "late-fill", "a fill arrived after the end of the order";
    Overfill = "overfill", "the venue filled more than was ordered";
    Bust = "bust", "the venue took a fill back";
    Correction = "correction", "the venue corrected a fill";
    // Bookkeeping.
    UnknownPosition = "unknown-position", "there is no such position";
    UnknownExecution = "unknown-execution", "there is no such execution";
    BadTransaction = "bad-transaction", "the transaction lacks a value or has one too many";
    UnknownScope = "unknown-scope", "there is no such strategy, account or security";
    InDoubt = "in-doubt", "the connection was lost before the venue answered";
    Adjusted = "adjusted", "recomputed from the transactions";
    // The journal. From here on new reasons come last, whatever their subject: they are stored by
    // their number.
    StorageFailed = "storage-failed", "the platform cannot store the request now, so it refused it";
    BrokerLost = "broker-lost", "the connection to the server is lost: the message broker or the server is away";
    OwnerAway = "owner-away", "the server that owns the security is away";
    ReportLost = "report-lost", "the order was accepted, and its report was lost while the server that owns the security was away";
    MissedFill = "missed-fill", "a missed fill, counted from a later report of the venue about the order";
    ExpiredSecurity = "expired-security", "the security has expired and can no longer be traded";
    StrategyNotPermitted = "strategy-not-permitted", "the account may not be used by this strategy";
    VenueRate = "venue-rate", "the order would exceed a limit of the venue; it was not sent";
    VenueUnsupported = "venue-unsupported", "the venue does not offer such an order or change";
    MinNotional = "min-notional", "the value is below the venue's minimum for one order";
    MaxNotional = "max-notional", "the value is above the venue's maximum for one order";
    ExecInstNotTaken = "exec-inst-not-taken", "the venue does not take this ExecInst (18)";
    MinQtyNotTaken = "min-qty-not-taken", "the venue does not take this MinQty (110), or it is above OrderQty (38)";
    MaxFloorNotTaken = "max-floor-not-taken", "the venue does not take this MaxFloor (111)";
}

impl Reason {
    /// Returns whether another component gives this reason on behalf of a shard. Such an event has
    /// no number.
    pub fn is_substitute(self) -> bool {
        matches!(self, Reason::StorageFailed | Reason::OwnerAway | Reason::ReportLost)
    }

    /// Returns whether a limit of a strategy or an account gives this reason.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Reason::MaxOrderQty
                | Reason::MaxOrderValue
                | Reason::PriceCollar
                | Reason::NoReferencePrice
                | Reason::MaxOpenOrders
                | Reason::MaxPosition
                | Reason::OrderRate
                | Reason::DuplicateOrder
                | Reason::InsufficientFunds
                | Reason::TradingDisabled
                | Reason::Restricted
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_code_and_words() {
        let mut codes: Vec<_> = Reason::ALL.iter().map(|r| r.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Reason::ALL.len());
        for reason in &Reason::ALL[1..] {
            assert!(!reason.text().is_empty());
            assert!(reason.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", reason.code());
        }
        assert_eq!(Reason::None.text(), "");
    }
}
