"""Buys when the price has fallen, and sells when it has risen by as much.

python buy_the_dip.py ticks.csv                    a back-test
python buy_the_dip.py pitlane://127.0.0.1:9882     live, in a process of its own
"""

import sys
from dataclasses import dataclass
from decimal import Decimal

import pitlane


@dataclass
class BuyTheDip(pitlane.Strategy):
    dip: Decimal = Decimal("0.50")
    qty: int = 10
    mark: Decimal = Decimal(0)
    """The highest bid since the last sale; while it holds shares, the price it paid."""

    name = "DIP"
    decimals = "exact"

    def on_phase(self, phase, context):
        if phase == "INIT":
            context.subscribe("AAPL")

    def on_tick(self, tick, context):
        if context.phase != "RUNNING" or tick.mid is None or context.orders("AAPL"):
            return
        held = context.position("AAPL").quantity
        if held > 0 and tick.bid - self.mark >= self.dip:
            context.sell("AAPL", held)
            self.mark = tick.bid
        elif held == 0 and self.mark - tick.ask >= self.dip:
            context.buy("AAPL", self.qty)
            self.mark = tick.ask
        elif held == 0:
            self.mark = max(self.mark, tick.bid)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if "://" in sys.argv[1] or sys.argv[1].startswith("unix:"):
        pitlane.run(BuyTheDip(), sys.argv[1])
    else:
        print(pitlane.backtest(BuyTheDip(), sys.argv[1]))
