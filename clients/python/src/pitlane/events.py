"""Events of the service as typed values. Each has its topic, its sequence number and its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Callable, Mapping, Optional, Tuple, Type, Union

from . import sbe, wire
from .enums import ExecType, OrderStatus, OrderType, Phase, Side, TimeInForce
from .errors import DecodeError
from .values import CashBalance, Position, Transaction


@dataclass(frozen=True)
class Event:
    """Base class of events.

    `seq` increases within a shard. `ts` is the time of the engine in nanoseconds since the epoch.
    """

    topic: str
    seq: int
    ts: int

    @property
    def at(self) -> datetime:
        """The time of the engine, with microseconds."""
        return wire.time_of_ns(self.ts)


@dataclass(frozen=True)
class Gap:
    """The connection was lost; events that are published in the meantime do not arrive.

    A subscription returns one `Gap` immediately, and a second one when events arrive again. A
    strategy with quotes in the market should cancel them at the first, and read its orders and
    positions again at the second.
    """

    pattern: str
    since: datetime
    reason: str
    until: Optional[datetime] = None
    """End of the gap; None at its beginning."""

    @property
    def is_over(self) -> bool:
        return self.until is not None


@dataclass(frozen=True)
class Tick(Event):
    """The current market of a security. A side without a quote is None."""

    security_id: int
    symbol: Optional[str] = None
    bid: Optional[Decimal] = None
    bid_size: Optional[Decimal] = None
    ask: Optional[Decimal] = None
    ask_size: Optional[Decimal] = None
    last: Optional[Decimal] = None
    last_size: Optional[Decimal] = None
    volume: Optional[Decimal] = None
    date_time: Optional[datetime] = None
    feed: Optional[str] = None

    @property
    def mid(self) -> Optional[Decimal]:
        return None if self.bid is None or self.ask is None else (self.bid + self.ask) / 2


@dataclass(frozen=True)
class Trade(Event):
    """One trade of the market. `trade_id` increases with every trade of a security."""

    trade_id: int
    security_id: int
    price: Decimal
    date_time: datetime
    size: Optional[Decimal] = None
    """None if the feed does not say it."""
    aggressor: Optional[Side] = None
    """Side of the order that took; None in an auction, and for trades of a feed."""
    symbol: Optional[str] = None


@dataclass(frozen=True)
class SecurityStatus(Event):
    """A security entered another trading session, or trading was halted or resumed."""

    security_id: int
    halted: bool
    date_time: datetime
    session: Optional[str] = None
    symbol: Optional[str] = None


@dataclass(frozen=True)
class Level:
    price: Decimal
    size: Decimal


@dataclass(frozen=True)
class Book(Event):
    """The depth of a market, with the best level first."""

    security_id: int
    bids: Tuple[Level, ...] = ()
    asks: Tuple[Level, ...] = ()
    symbol: Optional[str] = None
    date_time: Optional[datetime] = None


@dataclass(frozen=True)
class Bar(Event):
    security_id: int
    size: str
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    date_time: datetime
    symbol: Optional[str] = None


@dataclass(frozen=True)
class OrderUpdate(Event):
    """A change of an order, and its state after the change."""

    int_id: str
    status: OrderStatus
    exec_type: ExecType
    filled_quantity: Decimal
    remaining_quantity: Decimal
    security_id: int
    side: Side
    quantity: Decimal
    account_id: int
    orig_int_id: Optional[str] = None
    strategy_name: Optional[str] = None
    avg_price: Optional[Decimal] = None
    last_quantity: Optional[Decimal] = None
    last_price: Optional[Decimal] = None
    reason: Optional[str] = None
    symbol: Optional[str] = None
    venue: Optional[str] = None
    unknown: Optional[bool] = None


@dataclass(frozen=True)
class OrderTerms(Event):
    """An order as submitted or modified: the fields of `Order`, with its type as `order_type`."""

    int_id: str
    order_type: OrderType
    side: Side
    quantity: Decimal
    tif: TimeInForce
    strategy_id: int
    account_id: int
    security_id: int
    exchange_order: bool
    status: OrderStatus
    filled_quantity: Decimal
    remaining_quantity: Decimal
    source: str
    date_time: datetime
    last_update: datetime
    limit: Optional[Decimal] = None
    stop: Optional[Decimal] = None
    tif_date: Optional[datetime] = None
    strategy_name: Optional[str] = None
    symbol: Optional[str] = None
    exchange_id: Optional[int] = None
    venue: Optional[str] = None
    avg_price: Optional[Decimal] = None
    last_quantity: Optional[Decimal] = None
    last_price: Optional[Decimal] = None
    orig_int_id: Optional[str] = None
    reason: Optional[str] = None
    unknown: Optional[bool] = None
    exec_inst: Optional[str] = None
    min_qty: Optional[Decimal] = None
    max_floor: Optional[Decimal] = None


@dataclass(frozen=True)
class PositionChange(Event):
    position: Position


@dataclass(frozen=True)
class Booking(Event):
    """A transaction was executed or recorded."""

    transaction: Transaction


@dataclass(frozen=True)
class CashChange(Event):
    cash: CashBalance


@dataclass(frozen=True)
class SubscriptionChange(Event):
    """A strategy subscribed to market data of a security, or ended its subscription."""

    strategy_id: int
    security_id: int
    subscribe: bool
    subscribers: int
    strategy_name: Optional[str] = None
    symbol: Optional[str] = None


@dataclass(frozen=True)
class SessionChange(Event):
    """The state of an adapter or of a FIX session changed."""

    name: str
    state: str


@dataclass(frozen=True)
class PhaseChange(Event):
    """A strategy entered another phase of its lifecycle."""

    strategy_id: int
    phase: Phase
    strategy_name: Optional[str] = None
    # Reason of the stop, if the strategy failed.
    reason: Optional[str] = None


@dataclass(frozen=True)
class LogEvent(Event):
    level: str
    logger: str
    message: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class GenericEvent(Event):
    """A message from one strategy to the others."""

    name: str
    data: Any


@dataclass(frozen=True)
class OtherEvent(Event):
    """An event of a type that this version of the client does not know."""

    type: str
    raw: Mapping[str, Any]


StreamItem = Union[Event, Gap]

_KINDS: Mapping[str, Type[Event]] = {
    "TICK": Tick,
    "BOOK": Book,
    "BAR": Bar,
    "TRADE": Trade,
    "SECURITY_STATUS": SecurityStatus,
    "ORDER_STATUS": OrderUpdate,
    "ORDER": OrderTerms,
    "SUBSCRIPTION": SubscriptionChange,
    "SESSION": SessionChange,
    "LIFECYCLE": PhaseChange,
    "LOG_EVENT": LogEvent,
    "GENERIC_EVENT": GenericEvent,
}

# Events that wrap a value of REST.
_WRAPPED: Mapping[str, Callable[..., Event]] = {
    "POSITION": lambda raw, **stamp: PositionChange(**stamp, position=wire.decode(Position, raw)),
    "CASH_BALANCE": lambda raw, **stamp: CashChange(**stamp, cash=wire.decode(CashBalance, raw)),
    "TRANSACTION": lambda raw, **stamp: Booking(
        **stamp, transaction=wire.decode(Transaction, {**raw, "type": raw.get("transactionType")})
    ),
}


def ticks_of(body: bytes) -> list[Tick]:
    """Decodes the ticks of a binary message."""
    try:
        return [_tick_of(raw) for raw in sbe.decode(body)]
    except (sbe.SbeError, KeyError) as error:
        raise DecodeError(f"not ticks: {error!r}") from error


def _tick_of(raw: Mapping[str, Any]) -> Tick:
    return Tick(
        topic=f"tick.{raw['securityId']}",
        seq=raw["seq"],
        ts=raw["ts"],
        security_id=raw["securityId"],
        bid=raw.get("bid"),
        bid_size=raw.get("bidSize"),
        ask=raw.get("ask"),
        ask_size=raw.get("askSize"),
        last=raw.get("last"),
        last_size=raw.get("lastSize"),
        volume=raw["volume"],
        date_time=wire.time_of_ns(raw["dateTime"]),
    )


def event_of(topic: str, body: bytes) -> Event:
    """Decodes the event of a message."""
    raw = wire.parse(body)
    if not isinstance(raw, dict) or type(raw.get("seq")) is not int or type(raw.get("ts")) is not int:
        raise DecodeError(f"{topic}: the message has no seq or ts: {body[:80]!r}")
    name = raw.get("type")
    kind = _KINDS.get(str(name))
    if kind is not None:
        return wire.decode(kind, {**raw, "topic": topic})
    stamp = {"topic": topic, "seq": raw["seq"], "ts": raw["ts"]}
    wrap = _WRAPPED.get(str(name))
    if wrap is not None:
        return wrap(raw, **stamp)
    return OtherEvent(topic, raw["seq"], raw["ts"], str(name), raw)
