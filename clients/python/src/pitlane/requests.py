"""Orders and manual transactions to send. The service chooses each value that is None.

An amount is a `Decimal`, an `int` or a string such as "100.25", never a float. `security_id` is an
id, a symbol or a `Security`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar, Union

from .enums import OrderType, Side, TimeInForce, TransactionType
from .values import SecurityRef
from .wire import Number


@dataclass(frozen=True)
class MarketOrder:
    """An order that fills at the best available price."""

    type: ClassVar[OrderType] = OrderType.MARKET

    security_id: SecurityRef
    side: Side
    quantity: Number
    tif: TimeInForce | None = None
    tif_date: datetime | date | None = None
    int_id: str | None = None
    strategy_id: int | None = None
    strategy_name: str | None = None
    account_id: int | None = None
    exchange_id: int | None = None
    exchange_order: bool | None = None


@dataclass(frozen=True)
class LimitOrder:
    """An order that fills at its limit price or better."""

    type: ClassVar[OrderType] = OrderType.LIMIT

    security_id: SecurityRef
    side: Side
    quantity: Number
    limit: Number
    tif: TimeInForce | None = None
    tif_date: datetime | date | None = None
    int_id: str | None = None
    strategy_id: int | None = None
    strategy_name: str | None = None
    account_id: int | None = None
    exchange_id: int | None = None
    exchange_order: bool | None = None


@dataclass(frozen=True)
class StopOrder:
    """An order that becomes a market order when its stop price is reached."""

    type: ClassVar[OrderType] = OrderType.STOP

    security_id: SecurityRef
    side: Side
    quantity: Number
    stop: Number
    tif: TimeInForce | None = None
    tif_date: datetime | date | None = None
    int_id: str | None = None
    strategy_id: int | None = None
    strategy_name: str | None = None
    account_id: int | None = None
    exchange_id: int | None = None
    exchange_order: bool | None = None


@dataclass(frozen=True)
class StopLimitOrder:
    """An order that becomes a limit order when its stop price is reached."""

    type: ClassVar[OrderType] = OrderType.STOP_LIMIT

    security_id: SecurityRef
    side: Side
    quantity: Number
    limit: Number
    stop: Number
    tif: TimeInForce | None = None
    tif_date: datetime | date | None = None
    int_id: str | None = None
    strategy_id: int | None = None
    strategy_name: str | None = None
    account_id: int | None = None
    exchange_id: int | None = None
    exchange_order: bool | None = None


NewOrder = Union[MarketOrder, LimitOrder, StopOrder, StopLimitOrder]


@dataclass(frozen=True)
class OrderChange:
    """Changed values of an order.

    A value of None stays unchanged. The type of an order cannot change.
    """

    quantity: Number | None = None
    limit: Number | None = None
    stop: Number | None = None
    tif: TimeInForce | None = None
    tif_date: datetime | date | None = None


@dataclass(frozen=True)
class NewTransaction:
    """A trade or a cash transfer.

    A trade has `security_id`, `quantity` and `price`; a cash transfer has `price` and `currency`.
    """

    type: TransactionType
    price: Number
    security_id: SecurityRef | None = None
    quantity: Number | None = None
    currency: str | None = None
    commission: Number | None = None
    strategy_id: int | None = None
    strategy_name: str | None = None
    account_id: int | None = None
    uuid: str | None = None


def build_order(
    security: SecurityRef,
    side: Side,
    quantity: Number,
    limit: Number | None,
    stop: Number | None,
    tif: TimeInForce | None,
    tif_date: datetime | date | None,
    int_id: str | None,
    strategy_name: str | None,
    account_id: int | None,
) -> NewOrder:
    """Returns an order whose type follows from the given prices."""
    if limit is None and stop is None:
        return MarketOrder(security, side, quantity, tif, tif_date, int_id, None, strategy_name, account_id)
    if stop is None:
        assert limit is not None
        return LimitOrder(security, side, quantity, limit, tif, tif_date, int_id, None, strategy_name, account_id)
    if limit is None:
        return StopOrder(security, side, quantity, stop, tif, tif_date, int_id, None, strategy_name, account_id)
    return StopLimitOrder(security, side, quantity, limit, stop, tif, tif_date, int_id, None, strategy_name, account_id)
