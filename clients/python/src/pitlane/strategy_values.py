"""What a strategy receives and sees. Amounts are floats, or `Decimal`s on request.

The attributes are the same in a back-test and live. Times are nanoseconds since the epoch, as the
engine counts them; `time` is the same with microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from .enums import ExecType, OrderStatus, OrderType, Side, TimeInForce, TransactionType
from .errors import PitlaneError
from .strategy_numbers import Amount, nearest, reader_of
from .wire import time_of_ns


class RequestRefused(PitlaneError):
    """The request of a strategy was refused before it was sent; `reason` is the stable code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{message} ({reason})")
        self.reason = reason
        self.message = message


class ContextClosed(PitlaneError):
    """The context was used outside a callback of its strategy."""


class _Timed:
    time_ns: int

    @property
    def time(self) -> datetime:
        """The time in UTC, with microseconds."""
        return time_of_ns(self.time_ns)


@dataclass(frozen=True)
class StrategyTick(_Timed):
    """The current market of a security. A side without a quote is None."""

    security_id: int
    symbol: str
    time_ns: int
    """Time at the source."""
    bid: Optional[float] = None
    bid_size: Optional[float] = None
    ask: Optional[float] = None
    ask_size: Optional[float] = None
    last: Optional[float] = None
    """Price of the last trade."""
    last_size: Optional[float] = None
    volume: float = 0.0
    """Volume of the trading day."""

    @property
    def mid(self) -> Optional[float]:
        """The middle of the quote; None without a quote on both sides."""
        return None if self.bid is None or self.ask is None else (self.bid + self.ask) / 2

    @property
    def price(self) -> Optional[float]:
        """The price of the last trade; before the first trade the middle of the quote."""
        return self.last if self.last is not None else self.mid


@dataclass(frozen=True)
class StrategyBar(_Timed):
    """A completed bar. `time_ns` is its start."""

    security_id: int
    symbol: str
    time_ns: int
    interval_s: float
    open: float
    high: float
    low: float
    close: float
    volume: float
    ticks: int


@dataclass(frozen=True)
class OrderReport(_Timed):
    """What happened to an order of the strategy, and its state afterwards.

    `int_id` is the id under which the strategy submitted it, also after a modification.
    """

    int_id: str
    time_ns: int
    security_id: int
    symbol: str
    side: Side
    type: OrderType
    tif: TimeInForce
    exec_type: ExecType
    status: OrderStatus
    quantity: float
    filled_quantity: float
    remaining_quantity: float
    avg_price: Optional[float]
    last_quantity: Optional[float]
    """Quantity of this fill; None if this is not a fill."""
    last_price: Optional[float]
    reason: Optional[str]
    """Stable code of the reason, if the order was rejected or cancelled by the venue."""
    message: Optional[str]
    """The same reason as text."""

    @property
    def is_finished(self) -> bool:
        return self.status.is_finished


@dataclass(frozen=True)
class Fill(_Timed):
    """A fill of an order of the strategy."""

    int_id: str
    time_ns: int
    security_id: int
    symbol: str
    side: Side
    quantity: float
    price: float
    filled_quantity: float
    """Quantity filled so far, this fill included."""
    remaining_quantity: float


@dataclass(frozen=True)
class StrategyTransaction(_Timed):
    """A transaction of the strategy, with the position after it."""

    id: int
    time_ns: int
    type: TransactionType
    security_id: Optional[int]
    symbol: Optional[str]
    quantity: float
    """Above zero bought, below zero sold."""
    price: float
    commission: float
    currency: str
    int_id: Optional[str]
    position: float
    realized_pl: float
    """Profit realised in this position so far."""


@dataclass(frozen=True)
class Refusal:
    """A refused request: an order that could not be sent, or a change that came too late."""

    int_id: str
    request: str
    """`submit`, `modify` or `cancel`."""
    reason: str
    message: str


@dataclass(frozen=True)
class OpenOrder:
    """An order of the strategy that has not ended."""

    int_id: str
    security_id: int
    symbol: str
    side: Side
    status: OrderStatus
    quantity: float
    filled_quantity: float
    limit: Optional[float]
    stop: Optional[float]

    @property
    def remaining_quantity(self) -> float:
        return self.quantity - self.filled_quantity


@dataclass(frozen=True)
class StrategyPosition:
    """A position of the strategy. A `quantity` above zero is long, below zero short."""

    security_id: int
    symbol: str
    quantity: float
    avg_price: Optional[float]
    realized_pl: float

    @property
    def is_flat(self) -> bool:
        return self.quantity == 0


@dataclass(frozen=True)
class Instrument:
    """A security with the grid of its prices and quantities."""

    id: int
    symbol: str
    currency: str
    tick_size: float
    lot_size: float
    contract_size: float
    tick_raw: int
    """Tick size in units of 10⁻⁸."""
    lot_raw: int
    decimals: str

    def round_price(self, price: Amount) -> Any:
        """Returns the nearest valid price."""
        return self._convert(nearest(price, self.tick_raw, "price"))

    def round_quantity(self, quantity: Amount) -> Any:
        """Returns the nearest valid quantity, which may be zero."""
        return self._convert(nearest(quantity, self.lot_raw, "quantity"))

    def _convert(self, raw: int) -> Any:
        return reader_of(self.decimals)(raw)
