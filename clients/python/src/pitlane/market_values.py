"""Values of the market: bars, ticks, quotes, depth. `values` has the rules of all values."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Optional, Tuple


@dataclass(frozen=True)
class HistoryBar:
    """The trades of a security in an interval, which begins at `date_time`."""

    security_id: int
    date_time: datetime
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    trades: int
    complete: bool


@dataclass(frozen=True)
class HistoryTick:
    """A change of the market of a security.

    `last` and `last_size` are those of the trades since the tick before, and None without one. A
    side without a quote is None.
    """

    security_id: int
    date_time: datetime
    bid: Optional[Decimal] = None
    bid_size: Optional[Decimal] = None
    ask: Optional[Decimal] = None
    ask_size: Optional[Decimal] = None
    last: Optional[Decimal] = None
    last_size: Optional[Decimal] = None


@dataclass(frozen=True)
class Quote:
    """The newest prices of a security.

    `open`, `high`, `low` and `volume` are those of the trading day. `previous_close` is the last
    price of the trading day before, which began at `previous_day`. Unknown values are None.
    """

    security_id: int
    volume: Decimal
    date_time: Optional[datetime] = None
    bid: Optional[Decimal] = None
    bid_size: Optional[Decimal] = None
    ask: Optional[Decimal] = None
    ask_size: Optional[Decimal] = None
    last: Optional[Decimal] = None
    last_size: Optional[Decimal] = None
    open: Optional[Decimal] = None
    high: Optional[Decimal] = None
    low: Optional[Decimal] = None
    previous_close: Optional[Decimal] = None
    previous_day: Optional[datetime] = None

    @property
    def change(self) -> Optional[Decimal]:
        """The last price relative to the previous close, such as 0.01 for one percent."""
        if self.last is None or not self.previous_close:
            return None
        return self.last / self.previous_close - 1


class PriceLevel(NamedTuple):
    price: Decimal
    size: Decimal


class LevelChange(NamedTuple):
    """The new size of a level; zero removes it."""

    side: str
    """B (bid) or A (ask)."""

    price: Decimal
    size: Decimal


@dataclass(frozen=True)
class DepthMessage:
    """A SNAPSHOT of the depth, or an UPDATE of the depth at `prev_seq`."""

    type: str
    seq: int
    ts: int
    security_id: int
    date_time: datetime
    prev_seq: Optional[int] = None
    symbol: Optional[str] = None
    feed: Optional[str] = None
    bids: Tuple[PriceLevel, ...] = ()
    asks: Tuple[PriceLevel, ...] = ()
    changes: Tuple[LevelChange, ...] = ()
    checksum: Optional[int] = None


@dataclass(frozen=True)
class Depth:
    """The price levels of a security, best first, as they were at `seq`."""

    security_id: int
    seq: int
    date_time: datetime
    bids: Tuple[PriceLevel, ...]
    asks: Tuple[PriceLevel, ...]
    symbol: Optional[str] = None

    @property
    def spread(self) -> Optional[Decimal]:
        return self.asks[0].price - self.bids[0].price if self.bids and self.asks else None


def depth_after(message: DepthMessage, before: Optional[Depth]) -> Depth:
    """Returns the depth after a message. Raises ValueError if it is the update of another depth."""
    if message.type == "SNAPSHOT":
        bids, asks = message.bids, message.asks
    elif before is None or before.seq != message.prev_seq or before.security_id != message.security_id:
        raise ValueError(f"an update of the depth {message.prev_seq} of the security {message.security_id}")
    else:
        bids = _changed(before.bids, message.changes, "B")
        asks = _changed(before.asks, message.changes, "A")
    return Depth(message.security_id, message.seq, message.date_time, bids, asks, message.symbol)


def _changed(levels: Tuple[PriceLevel, ...], changes: Tuple[LevelChange, ...], side: str) -> Tuple[PriceLevel, ...]:
    sizes = dict(levels)
    sizes.update((change.price, change.size) for change in changes if change.side == side)
    prices = sorted((price for price, size in sizes.items() if size), reverse=side == "B")
    return tuple(PriceLevel(price, sizes[price]) for price in prices)
