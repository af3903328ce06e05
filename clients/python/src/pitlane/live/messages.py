"""Requests to the server and its replies.

Amounts are in units of 10⁻⁸, times in nanoseconds since the epoch.
"""

from __future__ import annotations

from typing import NamedTuple, Union

from ..errors import DecodeError
from .codec import Reader, Writer
from .market_events import NumberedEvent, RawTick, read_event, read_tick
from .reasons import read_reason

MESSAGE_VERSION = 1


class Hello(NamedTuple):
    """A new process, with the numbers that it or its predecessor has received, by shard."""

    incarnation: int
    host: str
    received: list[int]

    def encode(self) -> bytes:
        return _request(0, self.incarnation).text(self.host).numbers(self.received).done()


class Resume(NamedTuple):
    """The same process, after it and the server lost contact."""

    incarnation: int
    received: list[int]

    def encode(self) -> bytes:
        return _request(1, self.incarnation).numbers(self.received).done()


class Piece(NamedTuple):
    """Asks for more of the reference data or of the state."""

    incarnation: int
    is_state: bool
    at: int

    def encode(self) -> bytes:
        return _request(2, self.incarnation).flag(self.is_state).u32(self.at).done()


class Fetch(NamedTuple):
    """Asks for the events since these numbers."""

    incarnation: int
    received: list[int]

    def encode(self) -> bytes:
        return _request(3, self.incarnation).numbers(self.received).done()


class Follow(NamedTuple):
    """Starts or stops the prices of a security."""

    incarnation: int
    security_id: int
    on: bool

    def encode(self) -> bytes:
        return _request(4, self.incarnation).u32(self.security_id).flag(self.on).done()


class CommandRequest(NamedTuple):
    """An order, a request about one, a phase or a subscription."""

    incarnation: int
    command: Command

    def encode(self) -> bytes:
        # The server fills in the source and the token.
        writer = _request(5, self.incarnation).u32(0).u32(0)
        self.command.write(writer)
        return writer.done()


class Heartbeat(NamedTuple):
    incarnation: int
    prices: int
    received: list[int]
    idle: bool

    def encode(self) -> bytes:
        return _request(6, self.incarnation).u64(self.prices).numbers(self.received).flag(self.idle).done()


class Failed(NamedTuple):
    """The strategy has failed and stopped, with the reason."""

    incarnation: int
    reason: str

    def encode(self) -> bytes:
        return _request(7, self.incarnation).text(self.reason).done()


class Bye(NamedTuple):
    incarnation: int

    def encode(self) -> bytes:
        return _request(8, self.incarnation).done()


Request = Union[Hello, Resume, Piece, Fetch, Follow, CommandRequest, Heartbeat, Failed, Bye]


class Terms(NamedTuple):
    """The terms of an order. Enumerations are their numbers on the link."""

    quantity: int
    limit: int
    stop: int
    tif_date: int
    security_id: int
    strategy_id: int
    account_id: int
    side: int
    kind: int
    tif: int
    limit_given: bool
    stop_given: bool
    exchange_order: bool


class Submit(NamedTuple):
    int_id: str
    terms: Terms

    def write(self, writer: Writer) -> None:
        terms = self.terms
        writer.u8(0).order_id(self.int_id)
        writer.decimal(terms.quantity).decimal(terms.limit).decimal(terms.stop).u64(terms.tif_date)
        writer.u32(terms.security_id).u16(terms.strategy_id).u16(terms.account_id)
        writer.u8(terms.side).u8(terms.kind).u8(terms.tif)
        writer.flag(terms.limit_given).flag(terms.stop_given).flag(terms.exchange_order).flag(False)


class Changes(NamedTuple):
    """Changed values of an order; None stays unchanged."""

    quantity: int | None
    limit: int | None
    stop: int | None
    tif: int | None
    tif_date: int | None


class Modify(NamedTuple):
    handle: int
    int_id: str
    """Id of the request, which becomes the id of the order."""
    changes: Changes

    def write(self, writer: Writer) -> None:
        changes = self.changes
        bits = sum(1 << bit for bit, value in enumerate(changes) if value is not None)
        writer.u8(1).u64(self.handle).order_id(self.int_id).u8(bits)
        for amount in (changes.quantity, changes.limit, changes.stop):
            if amount is not None:
                writer.decimal(amount)
        if changes.tif is not None:
            writer.u8(changes.tif)
        if changes.tif_date is not None:
            writer.u64(changes.tif_date)


class Cancel(NamedTuple):
    handle: int
    int_id: str

    def write(self, writer: Writer) -> None:
        writer.u8(2).u64(self.handle).order_id(self.int_id)


class Subscribe(NamedTuple):
    strategy_id: int
    security_id: int
    on: bool

    def write(self, writer: Writer) -> None:
        writer.u8(4).u16(self.strategy_id).u32(self.security_id).flag(self.on)


class SetPhase(NamedTuple):
    strategy_id: int
    phase: int

    def write(self, writer: Writer) -> None:
        writer.u8(17).u16(self.strategy_id).u8(self.phase)


OrderCommand = Union[Submit, Modify, Cancel]
Command = Union[OrderCommand, Subscribe, SetPhase]


class Head(NamedTuple):
    """Progress of a shard: the last event for the strategy, and the last event of all."""

    last: int
    seen: int


class Welcome(NamedTuple):
    """Data that a new process needs."""

    epoch: int
    shards: int
    port: int
    strategy_id: int
    numbers: tuple[int, int]
    lease_ms: int
    heads: list[Head]
    complete: bool
    reference_bytes: int
    state_bytes: int
    kind: str
    securities: list[int]
    parameters: list[tuple[str, str]]
    start: bool
    cancel_on_failure: bool


class Refused(NamedTuple):
    text: str


class Wait(NamedTuple):
    text: str


class UnknownSession(NamedTuple):
    pass


class PieceReply(NamedTuple):
    at: int
    data: bytes


class Missed(NamedTuple):
    events: list[NumberedEvent]
    more: bool


class Gone(NamedTuple):
    pass


class Follows(NamedTuple):
    tick: RawTick | None


class Accepted(NamedTuple):
    pass


class Declined(NamedTuple):
    reason: str


class Busy(NamedTuple):
    pass


Reply = Union[Welcome, Refused, Wait, UnknownSession, PieceReply, Missed, Gone, Follows, Accepted, Declined, Busy]


class EventBatch(NamedTuple):
    epoch: int
    incarnation: int
    events: list[NumberedEvent]
    heads: list[Head]


class PriceBatch(NamedTuple):
    epoch: int
    number: int
    paced: bool
    ticks: list[RawTick]


def decode_reply(data: bytes) -> Reply:
    reader = _versioned(data)
    tag = reader.u8()
    reply: Reply
    if tag == 0:
        reply = _read_welcome(reader)
    elif tag == 1:
        reply = Refused(reader.text())
    elif tag == 2:
        reply = Wait(reader.text())
    elif tag == 4:
        reply = PieceReply(reader.u32(), reader.data())
    elif tag == 5:
        reply = Missed(reader.list(lambda: _read_numbered(reader)), reader.flag())
    elif tag == 7:
        reply = Follows(reader.optional(lambda: read_tick(reader)))
    elif tag == 9:
        reply = Declined(read_reason(reader))
    elif tag in _PLAIN:
        reply = _PLAIN[tag]
    else:
        raise DecodeError(f"there is no reply {tag}")
    reader.finish()
    return reply


_PLAIN: dict[int, Reply] = {3: UnknownSession(), 6: Gone(), 8: Accepted(), 10: Busy()}


def decode_events(data: bytes) -> EventBatch:
    reader = _versioned(data)
    batch = EventBatch(
        reader.u64(),
        reader.u64(),
        reader.list(lambda: _read_numbered(reader)),
        reader.list(lambda: Head(reader.u64(), reader.u64())),
    )
    reader.finish()
    return batch


def decode_prices(data: bytes) -> PriceBatch:
    reader = _versioned(data)
    batch = PriceBatch(reader.u64(), reader.u64(), reader.flag(), reader.list(lambda: read_tick(reader)))
    reader.finish()
    return batch


def decode_state(data: bytes) -> list[NumberedEvent]:
    """Decodes the state: events without the numbers of previous ones."""
    reader = Reader(data)
    state = reader.list(lambda: NumberedEvent(reader.u8(), 0, read_event(reader)))
    reader.finish()
    return state


def _request(tag: int, incarnation: int) -> Writer:
    return Writer().u8(MESSAGE_VERSION).u8(tag).u64(incarnation)


def _versioned(data: bytes) -> Reader:
    reader = Reader(data)
    version = reader.u8()
    if version != MESSAGE_VERSION:
        raise DecodeError(f"the server uses version {version} of the messages, this client {MESSAGE_VERSION}")
    return reader


def _read_numbered(reader: Reader) -> NumberedEvent:
    return NumberedEvent(reader.u8(), reader.u64(), read_event(reader))


def _read_welcome(reader: Reader) -> Welcome:
    return Welcome(
        reader.u64(),
        reader.u8(),
        reader.u8(),
        reader.u16(),
        (reader.u64(), reader.u64()),
        reader.u32(),
        reader.list(lambda: Head(reader.u64(), reader.u64())),
        reader.flag(),
        reader.u32(),
        reader.u32(),
        reader.text(),
        reader.list(reader.u32),
        reader.list(lambda: (reader.text(), reader.text())),
        reader.flag(),
        reader.flag(),
    )
