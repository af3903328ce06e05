"""Bars built from ticks.

The time of a bar is that of the source. A bar is complete when the first tick of a later interval
arrives, and intervals without a tick have no bar.
"""

from __future__ import annotations

from typing import NamedTuple

from .market_events import RawTick

VOLUME_MAX = 2**63 - 1


class RawBar(NamedTuple):
    start: int
    open: int
    high: int
    low: int
    close: int
    volume: int
    ticks: int


class BarMaker:
    """Builds the bars of one security and length."""

    def __init__(self, security_id: int, interval_ns: int) -> None:
        self.security_id, self.interval_ns = security_id, interval_ns
        self._bar: RawBar | None = None
        # Volume of the day at the last tick.
        self._volume = 0

    def handle(self, tick: RawTick) -> RawBar | None:
        """Adds a tick and returns the bar that it completed."""
        price = price_of(tick)
        if price is None:
            return None
        start = tick.at - tick.at % self.interval_ns
        before, self._volume = self._volume, tick.volume
        bar = self._bar
        if bar is None:
            self._bar = RawBar(start, price, price, price, price, 0, 1)
            return None
        # The first tick of a day carries all of its volume.
        traded = tick.volume if tick.volume < before else tick.volume - before
        if start > bar.start:
            self._bar = RawBar(start, price, price, price, price, traded, 1)
            return bar
        volume = min(VOLUME_MAX, bar.volume + traded)
        high, low = max(bar.high, price), min(bar.low, price)
        self._bar = RawBar(bar.start, bar.open, high, low, price, volume, bar.ticks + 1)
        return None


def price_of(tick: RawTick) -> int | None:
    """Returns the price of the last trade; before the first trade the middle of the quote."""
    if tick.traded:
        return tick.last
    if tick.bid_size <= 0 or tick.ask_size <= 0:
        return None
    total = tick.bid + tick.ask
    # Rounded towards zero, as in the service.
    return total // 2 if total >= 0 else -(-total // 2)
