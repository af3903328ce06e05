"""Events and prices from the server. Amounts are in units of 10⁻⁸."""

from __future__ import annotations

import struct
from typing import Callable, NamedTuple, Union

from ..enums import ExecType, OrderStatus, OrderType, Phase, Side, TimeInForce, TransactionType
from ..errors import DecodeError
from .codec import Reader
from .reasons import read_reason

# The values of each enumeration in the order of their numbers on the link.
EXEC_TYPES = (
    ExecType.PENDING_NEW,
    ExecType.REJECTED,
    ExecType.NEW,
    ExecType.TRADE,
    ExecType.PENDING_CANCEL,
    ExecType.CANCELED,
    ExecType.EXPIRED,
    ExecType.PENDING_REPLACE,
    ExecType.REPLACED,
    ExecType.TRIGGERED,
    ExecType.TRADE_CORRECT,
    ExecType.ORDER_STATUS,
)
STATUSES = (
    OrderStatus.PENDING_NEW,
    OrderStatus.NEW,
    OrderStatus.PARTIALLY_FILLED,
    OrderStatus.FILLED,
    OrderStatus.PENDING_CANCEL,
    OrderStatus.CANCELED,
    OrderStatus.PENDING_REPLACE,
    OrderStatus.REJECTED,
    OrderStatus.EXPIRED,
)
SIDES = (Side.BUY, Side.SELL)
ORDER_TYPES = (OrderType.MARKET, OrderType.LIMIT, OrderType.STOP, OrderType.STOP_LIMIT)
TIFS = (
    TimeInForce.DAY,
    TimeInForce.GTC,
    TimeInForce.ATO,
    TimeInForce.IOC,
    TimeInForce.FOK,
    TimeInForce.GTD,
    TimeInForce.ATC,
)
TRANSACTION_TYPES = tuple(TransactionType)
PHASES = tuple(Phase)

_TICK = struct.Struct("<I6qBqQ")
_AMOUNTS = struct.Struct("<5q")
_SENDER_FLAG = 0x80


class RawTick(NamedTuple):
    """The current market of a security."""

    security_id: int
    bid: int
    bid_size: int
    ask: int
    ask_size: int
    last: int
    last_size: int
    traded: bool
    volume: int
    at: int


class OrderEntered(NamedTuple):
    """An order with its terms: it was entered, rejected or modified, or is part of the state."""

    handle: int
    int_id: str
    orig_int_id: str
    exec_type: ExecType
    status: OrderStatus
    reason: str
    quantity: int
    limit: int | None
    stop: int | None
    security_id: int
    side: Side
    type: OrderType
    tif: TimeInForce


class StatusReport(NamedTuple):
    handle: int
    int_id: str
    orig_int_id: str
    quantity: int
    filled: int
    avg_price: int
    last_quantity: int
    last_price: int
    security_id: int
    exec_type: ExecType
    status: OrderStatus
    reason: str
    side: Side
    type: OrderType
    tif: TimeInForce


class RequestRefusal(NamedTuple):
    """A cancel or a modification was refused; the order continues unchanged."""

    handle: int
    int_id: str
    request_id: str
    is_cancel: bool
    status: OrderStatus
    reason: str


class Forgotten(NamedTuple):
    """The shard will not report this order again."""

    handle: int
    int_id: str


class PositionState(NamedTuple):
    quantity: int
    cost: int
    realized: int


class Booked(NamedTuple):
    """A transaction, with the position and the shard's part of the cash after it."""

    id: int
    int_id: str
    type: TransactionType
    security_id: int | None
    quantity: int
    price: int
    commission: int
    currency: str
    position: PositionState
    cash: int


class PositionAdjusted(NamedTuple):
    security_id: int
    position: PositionState


class CashAdjusted(NamedTuple):
    currency: str
    cash: int


class TradingDay(NamedTuple):
    day: int


class PhaseReported(NamedTuple):
    """A shard has accepted a phase of the strategy."""

    phase: Phase


EventBody = Union[
    OrderEntered,
    StatusReport,
    RequestRefusal,
    Forgotten,
    Booked,
    PositionAdjusted,
    CashAdjusted,
    TradingDay,
    PhaseReported,
]


class ShardEvent(NamedTuple):
    seq: int
    at: int
    body: EventBody


class NumberedEvent(NamedTuple):
    """An event, and the number of the previous one of the same shard for the same strategy."""

    shard: int
    before: int
    event: ShardEvent


def read_tick(reader: Reader) -> RawTick:
    security_id, bid, bid_size, ask, ask_size, last, last_size, traded, volume, at = reader.unpack(_TICK)
    if traded > 1:
        raise DecodeError("a tick has a flag that is none")
    return RawTick(security_id, bid, bid_size, ask, ask_size, last, last_size, traded == 1, volume, at)


def read_event(reader: Reader) -> ShardEvent:
    seq, at, tag = reader.u64(), reader.u64(), reader.u8()
    read = _BODIES.get(tag)
    if read is None:
        raise DecodeError(f"there is no event {tag} for strategies")
    return ShardEvent(seq, at, read(reader))


def _read_order(reader: Reader) -> OrderEntered:
    handle, int_id, orig_int_id = reader.u64(), reader.order_id(), reader.order_id()
    _skip_source(reader)
    what, has_sender = _read_what(reader)
    status, reason = reader.choice(STATUSES), read_reason(reader)
    quantity, limit, stop = reader.decimal(), reader.decimal(), reader.decimal()
    reader.u64()
    security_id = reader.u32()
    reader.take(4)
    side, type, tif = reader.choice(SIDES), reader.choice(ORDER_TYPES), reader.choice(TIFS)
    limit_given, stop_given = reader.flag(), reader.flag()
    reader.flag()
    reader.flag()
    if has_sender:
        reader.u32()
    return OrderEntered(
        handle,
        int_id,
        orig_int_id,
        what,
        status,
        reason,
        quantity,
        limit if limit_given else None,
        stop if stop_given else None,
        security_id,
        side,
        type,
        tif,
    )


def _read_status(reader: Reader) -> StatusReport:
    handle, int_id, orig_int_id = reader.u64(), reader.order_id(), reader.order_id()
    quantity, filled, avg_price, last_quantity, last_price = reader.unpack(_AMOUNTS)
    _skip_source(reader)
    security_id = reader.u32()
    reader.take(4)
    what, has_sender = _read_what(reader)
    status, reason = reader.choice(STATUSES), read_reason(reader)
    side, type, tif = reader.choice(SIDES), reader.choice(ORDER_TYPES), reader.choice(TIFS)
    reader.flag()
    if has_sender:
        reader.u32()
    amounts = (quantity, filled, avg_price, last_quantity, last_price)
    return StatusReport(handle, int_id, orig_int_id, *amounts, security_id, what, status, reason, side, type, tif)


def _read_refusal(reader: Reader) -> RequestRefusal:
    handle, int_id, request_id = reader.u64(), reader.order_id(), reader.order_id()
    _skip_source(reader)
    is_cancel = not reader.flag()
    return RequestRefusal(handle, int_id, request_id, is_cancel, reader.choice(STATUSES), read_reason(reader))


def _read_forgotten(reader: Reader) -> Forgotten:
    handle = reader.u64()
    _skip_source(reader)
    return Forgotten(handle, reader.order_id())


def _read_booked(reader: Reader) -> Booked:
    id = reader.u64()
    reader.u64()
    int_id = reader.order_id()
    reader.u128()
    type = reader.choice(TRANSACTION_TYPES)
    reader.take(4)
    security_id = reader.optional(reader.u32)
    quantity, price, commission = reader.decimal(), reader.decimal(), reader.decimal()
    currency = reader.currency()
    position = _read_position(reader)
    return Booked(id, int_id, type, security_id, quantity, price, commission, currency, position, reader.decimal())


def _read_adjusted(reader: Reader) -> PositionAdjusted | CashAdjusted:
    reader.u16()
    if reader.flag():
        currency = reader.currency()
        reader.decimal()
        return CashAdjusted(currency, reader.decimal())
    security_id = reader.u32()
    _read_position(reader)
    return PositionAdjusted(security_id, _read_position(reader))


def _read_trading_day(reader: Reader) -> TradingDay:
    return TradingDay(reader.i32())


def _read_phase(reader: Reader) -> PhaseReported:
    reader.u16()
    return PhaseReported(reader.choice(PHASES))


def _read_position(reader: Reader) -> PositionState:
    return PositionState(reader.decimal(), reader.decimal(), reader.decimal())


def _read_what(reader: Reader) -> tuple[ExecType, bool]:
    """Reads the kind of a report, and whether a sender follows as the last field."""
    value = reader.u8()
    number = value & ~_SENDER_FLAG
    if number >= len(EXEC_TYPES):
        raise DecodeError(f"there is no report {number}")
    return EXEC_TYPES[number], value != number


def _skip_source(reader: Reader) -> None:
    # Only events of this strategy arrive.
    reader.take(4)


_BODIES: dict[int, Callable[[Reader], EventBody]] = {
    0: _read_order,
    1: _read_status,
    2: _read_refusal,
    3: _read_forgotten,
    4: _read_booked,
    5: _read_adjusted,
    11: _read_trading_day,
    12: _read_phase,
}
