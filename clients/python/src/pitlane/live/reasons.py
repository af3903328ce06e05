"""Reasons in the order of their numbers on the strategy link, with a sentence for people."""

from __future__ import annotations

from .codec import Reader

REASONS: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("unknown-security", "there is no such security"),
    ("not-tradeable", "the security cannot be traded"),
    ("unknown-account", "there is no such account"),
    ("account-inactive", "the account is not active"),
    ("account-elsewhere", "the account does not trade on the security's exchange"),
    ("unknown-strategy", "there is no such strategy"),
    ("strategy-not-running", "the strategy is not in the phase RUNNING"),
    ("unknown-exchange", "there is no such exchange"),
    ("venue-unavailable", "the adapter to the venue is not connected"),
    ("quantity-not-positive", "the quantity must be above zero"),
    ("bad-lot", "the quantity is not a multiple of the lot size"),
    ("bad-tick", "the price is not on the tick grid"),
    ("limit-missing", "this order type needs a limit price"),
    ("limit-superfluous", "this order type takes no limit price"),
    ("stop-missing", "this order type needs a stop price"),
    ("stop-superfluous", "this order type takes no stop price"),
    ("tif-date-missing", "GTD needs a date"),
    ("tif-date-superfluous", "only GTD takes a date"),
    ("tif-date-past", "the date of GTD lies in the past"),
    ("tif-not-allowed", "the order type does not go with this time in force"),
    ("no-auction-ahead", "the exchange has no such auction ahead in this session"),
    ("overflow", "the amount is too large to be counted"),
    ("duplicate-order-id", "the order id has been used before"),
    ("bad-order-id", "an order id has 1 to 48 printable ASCII characters without space"),
    ("unknown-order", "there is no such order"),
    ("order-finished", "too late: the order is finished"),
    ("request-pending", "an earlier request for this order is still pending"),
    ("not-acknowledged", "the venue has not acknowledged the order yet"),
    ("busy", "the platform is busy; try again"),
    ("too-many-orders", "the platform holds as many orders as it can"),
    ("kill-switch", "the kill switch is on"),
    ("trading-disabled", "trading is switched off for this strategy or account"),
    ("restricted", "the security is restricted for this strategy or account"),
    ("max-order-qty", "the quantity is above the limit for one order"),
    ("max-order-value", "the value is above the limit for one order"),
    ("price-collar", "the price is too far from the last price"),
    ("no-reference-price", "there is no last price to check against"),
    ("max-open-orders", "too many open orders"),
    ("max-position", "the position could grow above its limit"),
    ("order-rate", "too many orders in this second"),
    ("duplicate-order", "the same order was sent a moment ago"),
    ("insufficient-funds", "the account's credit does not cover the order"),
    ("position-flat", "the position is flat"),
    ("position-too-small", "the position is smaller than the quantity"),
    ("close-in-progress", "the position is being closed already"),
    ("reduce-only", "an order that closes a position cannot be changed"),
    ("venue-rejected", "refused by the venue"),
    ("self-trade", "the order would have traded with an order of the same account"),
    ("price-band", "the price is outside the venue's band"),
    ("halted", "trading in the security is halted"),
    ("ioc", "immediate or cancel: the rest is cancelled"),
    ("fok", "fill or kill: it could not be filled whole"),
    ("no-liquidity", "there is nothing to trade against"),
    ("venue-cancelled", "cancelled by the venue"),
    ("simulated-reject", "rejected at random by the simulated venue"),
    ("requested", "as requested"),
    ("expired-day", "expired at the end of the session"),
    ("expired-gtd", "expired at its date"),
    ("expired-auction", "expired: the auction is over"),
    ("security-expired", "the security has expired"),
    ("triggered", "the stop price was reached"),
    ("stop-here", "the new quantity was filled already"),
    ("late-fill", "a fill arrived after the end of the order"),
    ("overfill", "the venue filled more than was ordered"),
    ("bust", "the venue took a fill back"),
    ("correction", "the venue corrected a fill"),
    ("unknown-position", "there is no such position"),
    ("unknown-execution", "there is no such execution"),
    ("bad-transaction", "the transaction lacks a value or has one too many"),
    ("unknown-scope", "there is no such strategy, account or security"),
    ("in-doubt", "the connection was lost before the venue answered"),
    ("adjusted", "recomputed from the transactions"),
    ("storage-failed", "the platform cannot store the request now, so it refused it"),
    ("broker-lost", "the connection to the server is lost: the message broker or the server is away"),
    ("owner-away", "the server that owns the security is away"),
    ("report-lost", "the order was accepted, and its report was lost while the server that owns the security was away"),
    ("missed-fill", "a missed fill, counted from a later report of the venue about the order"),
    ("expired-security", "the security has expired and can no longer be traded"),
    ("strategy-not-permitted", "the account may not be used by this strategy"),
    ("venue-rate", "the order would exceed a limit of the venue; it was not sent"),
    ("venue-unsupported", "the venue does not offer such an order or change"),
    ("min-notional", "the value is below the venue's minimum for one order"),
    ("max-notional", "the value is above the venue's maximum for one order"),
)


def read_reason(reader: Reader) -> str:
    """Reads the code of a reason; empty if there is none."""
    return reader.choice(REASONS)[0]


def text_of(code: str) -> str:
    return _TEXTS.get(code, code)


_TEXTS = dict(REASONS)
