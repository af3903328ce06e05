"""The moving-average cross of the engine's examples in Python, over ticks or bars.

python moving_average.py ticks.csv AAPL

It sends the same orders as the kind `moving-average-cross`, so a run has the same hash.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field

import pitlane
from pitlane import Context, OrderReport, OrderStatus, Phase, StrategyBar, StrategyTick


@dataclass
class MovingAverageCross(pitlane.Strategy):
    """Long while the average of the last few prices is above that of many, else flat or short."""

    symbol: str
    fast: int = 20
    slow: int = 100
    bar_s: float = 1
    """Prices are the closes of bars of so many seconds; 0: every tick is a price."""
    qty: int = 1
    short: bool = False
    prices: deque[int] = field(default_factory=deque, repr=False)
    fast_sum: int = 0
    slow_sum: int = 0
    above: bool | None = None

    name = "MOMENTUM"

    def parameters(self) -> dict[str, object]:
        names = ("fast", "slow", "bar_s", "qty", "short")
        return {name: getattr(self, name) for name in names}

    def on_phase(self, phase: Phase, context: Context) -> None:
        if phase is Phase.INIT:
            context.subscribe(self.symbol, bar_s=self.bar_s or None)
        elif phase is Phase.STOP:
            context.cancel_all()

    def on_tick(self, tick: StrategyTick, context: Context) -> None:
        price = tick.price
        if price is not None and not self.bar_s:
            self.add(price, context)

    def on_bar(self, bar: StrategyBar, context: Context) -> None:
        self.add(bar.close, context)

    def on_order_status(self, report: OrderReport, context: Context) -> None:
        if report.status is OrderStatus.REJECTED:
            raise RuntimeError(f"order {report.int_id} was rejected: {report.message}")

    def add(self, price: float, context: Context) -> None:
        # Sums of whole numbers are exact, so that equal averages compare as equal.
        units = round(price * 100_000_000)
        prices, fast, slow = self.prices, self.fast, self.slow
        prices.append(units)
        count = len(prices)
        self.fast_sum += units - prices[-1 - fast] if count > fast else units
        self.slow_sum += units - prices.popleft() if count > slow else units
        if count < slow:
            return
        above = self.fast_sum * slow > self.slow_sum * fast
        if above is self.above:
            return
        self.above = above
        if context.phase is Phase.RUNNING:
            self.trade(above, context)

    def trade(self, above: bool, context: Context) -> None:
        """Moves the position to its target. While an order is open it waits for the next cross."""
        if context.orders(self.symbol):
            return
        target = self.qty if above else -self.qty if self.short else 0
        missing = target - context.position(self.symbol).quantity
        if missing > 0:
            context.buy(self.symbol, missing)
        elif missing < 0:
            context.sell(self.symbol, -missing)


if __name__ == "__main__":
    print(pitlane.backtest(MovingAverageCross(sys.argv[2]), sys.argv[1]))
