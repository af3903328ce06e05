"""Reasons to refuse an order, a position or a transaction: one exception class for each code."""

from .errors import Conflict, NotFound, Refused, Unavailable


class UnknownSecurity(NotFound):
    """There is no such security."""

    code = "unknown-security"
    about = "securityId"


class NotTradeable(Refused):
    """The security cannot be traded."""

    code = "not-tradeable"
    about = "securityId"


class UnknownAccount(NotFound):
    """There is no such account."""

    code = "unknown-account"
    about = "accountId"


class AccountInactive(Refused):
    """The account is not active."""

    code = "account-inactive"
    about = "accountId"


class AccountElsewhere(Refused):
    """The account does not trade on the security's exchange."""

    code = "account-elsewhere"
    about = "accountId"


class UnknownStrategy(NotFound):
    """There is no such strategy."""

    code = "unknown-strategy"
    about = "strategyName"


class StrategyNotRunning(Refused):
    """The strategy is not in the phase RUNNING."""

    code = "strategy-not-running"


class UnknownExchange(NotFound):
    """There is no such exchange."""

    code = "unknown-exchange"
    about = "exchangeId"


class VenueUnavailable(Refused):
    """The adapter to the venue is not connected."""

    code = "venue-unavailable"


class QuantityNotPositive(Refused):
    """The quantity must be above zero."""

    code = "quantity-not-positive"
    about = "quantity"


class BadLot(Refused):
    """The quantity is not a multiple of the lot size."""

    code = "bad-lot"
    about = "quantity"


class BadTick(Refused):
    """The price is not on the tick grid."""

    code = "bad-tick"


class LimitMissing(Refused):
    """This order type needs a limit price."""

    code = "limit-missing"
    about = "limit"


class LimitSuperfluous(Refused):
    """This order type takes no limit price."""

    code = "limit-superfluous"
    about = "limit"


class StopMissing(Refused):
    """This order type needs a stop price."""

    code = "stop-missing"
    about = "stop"


class StopSuperfluous(Refused):
    """This order type takes no stop price."""

    code = "stop-superfluous"
    about = "stop"


class TifDateMissing(Refused):
    """GTD needs a date."""

    code = "tif-date-missing"
    about = "tifDate"


class TifDateSuperfluous(Refused):
    """Only GTD takes a date."""

    code = "tif-date-superfluous"
    about = "tifDate"


class TifDatePast(Refused):
    """The date of GTD is in the past."""

    code = "tif-date-past"
    about = "tifDate"


class TifNotAllowed(Refused):
    """The order type does not support this time in force."""

    code = "tif-not-allowed"
    about = "tif"


class NoAuctionAhead(Refused):
    """The exchange has no such auction later in this session."""

    code = "no-auction-ahead"
    about = "tif"


class Overflow(Refused):
    """The amount exceeds the numeric range."""

    code = "overflow"


class DuplicateOrderId(Refused):
    """The order id has already been used."""

    code = "duplicate-order-id"
    about = "intId"


class BadOrderId(Refused):
    """An order id has 1 to 48 printable ASCII characters without space."""

    code = "bad-order-id"
    about = "intId"


class UnknownOrder(NotFound):
    """There is no such order."""

    code = "unknown-order"


class OrderFinished(Conflict):
    """The order is already finished."""

    code = "order-finished"


class RequestPending(Conflict):
    """An earlier request for this order is still pending."""

    code = "request-pending"


class NotAcknowledged(Conflict):
    """The venue has not acknowledged the order yet."""

    code = "not-acknowledged"


class Busy(Unavailable):
    """The platform is busy; try again."""

    code = "busy"


class TooManyOrders(Unavailable):
    """The platform has reached its maximum number of orders."""

    code = "too-many-orders"


class KillSwitchOn(Refused):
    """The kill switch is on."""

    code = "kill-switch"


class TradingDisabled(Refused):
    """Trading is switched off for this strategy or account."""

    code = "trading-disabled"


class Restricted(Refused):
    """The security is restricted for this strategy or account."""

    code = "restricted"
    about = "securityId"


class MaxOrderQty(Refused):
    """The quantity is above the limit for one order."""

    code = "max-order-qty"
    about = "quantity"


class MaxOrderValue(Refused):
    """The value is above the limit for one order."""

    code = "max-order-value"


class PriceCollar(Refused):
    """The price is too far from the last price."""

    code = "price-collar"


class NoReferencePrice(Refused):
    """There is no last price to check against."""

    code = "no-reference-price"


class MaxOpenOrders(Refused):
    """There are too many open orders."""

    code = "max-open-orders"


class MaxPosition(Refused):
    """The position could exceed its limit."""

    code = "max-position"


class OrderRate(Refused):
    """There are too many orders in this second."""

    code = "order-rate"


class DuplicateOrder(Refused):
    """An identical order was sent within the duplicate window."""

    code = "duplicate-order"


class InsufficientFunds(Refused):
    """The account's credit does not cover the order."""

    code = "insufficient-funds"


class PositionFlat(Conflict):
    """The position is flat."""

    code = "position-flat"


class PositionTooSmall(Refused):
    """The position is smaller than the quantity."""

    code = "position-too-small"
    about = "quantity"


class CloseInProgress(Conflict):
    """The position is already being closed."""

    code = "close-in-progress"


class ReduceOnly(Refused):
    """An order that closes a position cannot be changed."""

    code = "reduce-only"


class VenueRejected(Refused):
    """The venue rejected the order."""

    code = "venue-rejected"


class SelfTrade(Refused):
    """The order would have traded with an order of the same account."""

    code = "self-trade"


class PriceBand(Refused):
    """The price is outside the price band of the venue."""

    code = "price-band"


class Halted(Refused):
    """Trading in the security is halted."""

    code = "halted"


class ImmediateOrCancel(Refused):
    """Immediate or cancel: the remaining quantity is cancelled."""

    code = "ioc"


class FillOrKill(Refused):
    """Fill or kill: the order could not be filled completely."""

    code = "fok"


class NoLiquidity(Refused):
    """There is no liquidity to trade against."""

    code = "no-liquidity"


class VenueCancelled(Refused):
    """The venue cancelled the order."""

    code = "venue-cancelled"


class SimulatedReject(Refused):
    """The simulated venue rejected the order at random."""

    code = "simulated-reject"


class UnknownPosition(NotFound):
    """There is no such position."""

    code = "unknown-position"


class UnknownExecution(NotFound):
    """There is no such execution."""

    code = "unknown-execution"


class BadTransaction(Refused):
    """The transaction lacks a value or has a superfluous one."""

    code = "bad-transaction"


class UnknownScope(NotFound):
    """There is no such strategy, account or security."""

    code = "unknown-scope"


class StorageFailed(Unavailable):
    """The platform cannot store the request now, so it refused it."""

    code = "storage-failed"


class BrokerLost(Unavailable):
    """The connection to the server is lost: the message broker or the server is away."""

    code = "broker-lost"


class OwnerAway(Unavailable):
    """The server that owns the security is away."""

    code = "owner-away"


class ExpiredSecurity(Refused):
    """The security has expired and can no longer be traded."""

    code = "expired-security"
    about = "securityId"


class StrategyNotPermitted(Refused):
    """The account may not be used by this strategy."""

    code = "strategy-not-permitted"
    about = "accountId"


class VenueRate(Unavailable):
    """The order would exceed a limit of the venue; it was not sent."""

    code = "venue-rate"


class VenueUnsupported(Refused):
    """The venue does not offer such an order or change."""

    code = "venue-unsupported"


class MinNotional(Refused):
    """The value is below the venue's minimum for one order."""

    code = "min-notional"


class MaxNotional(Refused):
    """The value is above the venue's maximum for one order."""

    code = "max-notional"


class ExecInstNotTaken(Refused):
    """The venue does not take this ExecInst (18)."""

    code = "exec-inst-not-taken"


class MinQtyNotTaken(Refused):
    """The venue does not take this MinQty (110), or it is above OrderQty (38)."""

    code = "min-qty-not-taken"


class MaxFloorNotTaken(Refused):
    """The venue does not take this MaxFloor (111)."""

    code = "max-floor-not-taken"
