"""Quotes both sides around the mid price of one security for a given time within a position limit.

    python market_maker.py [--url http://127.0.0.1:9090] [--symbol AAPL] [--seconds 60]
                           [--quantity 5] [--position-max 20]

After each tick it compares its two quotes with the desired quotes, and sends, modifies or cancels
them. It cancels both immediately when the event stream is lost, and always before it exits.
"""

from __future__ import annotations

import argparse
import time
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from pitlane import Conflict, Gap, LimitOrder, Order, Pitlane, Refused, Security, Side, Tick

STRATEGY = "MARKET_MAKER"
# Distance of a quote from the mid price, in ticks.
DISTANCE_TICKS = 3


class MarketMaker:
    def __init__(self, client: Pitlane, security: Security, quantity: Decimal, position_max: Decimal) -> None:
        self.client, self.security = client, security
        self.quantity, self.position_max = quantity, position_max
        self.quotes: dict[Side, Order] = {}
        self.quoted = 0

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        try:
            with self.client.ticks(self.security.id) as ticks:
                while (left := end - time.monotonic()) > 0:
                    try:
                        self.handle(ticks.get(timeout_s=left))
                    except TimeoutError:
                        break
        finally:
            self.withdraw()

    def handle(self, event: Tick | Gap) -> None:
        if isinstance(event, Gap):
            # Without market data the quotes could be far from the market.
            self.withdraw()
        elif event.mid is not None:
            for side in Side:
                self.quote(side, self.price(side, event.mid))

    def price(self, side: Side, mid: Decimal) -> Decimal:
        """Returns the nearest price on the tick grid that is far enough from the mid price."""
        tick = self.security.tick_size
        away = DISTANCE_TICKS * tick
        if side is Side.BUY:
            return ((mid - away) / tick).to_integral_value(ROUND_FLOOR) * tick
        return ((mid + away) / tick).to_integral_value(ROUND_CEILING) * tick

    def quote(self, side: Side, price: Decimal) -> None:
        resting = self.resting_quote(side)
        room = self.room(side)
        try:
            if resting is not None and room < resting.remaining_quantity:
                self.client.cancel(resting)
                del self.quotes[side]
            elif resting is None and room >= self.quantity:
                order = LimitOrder(self.security.id, side, self.quantity, price, strategy_name=STRATEGY)
                self.quotes[side] = self.client.submit(order)
                self.quoted += 1
            elif resting is not None and resting.limit != price:
                self.quotes[side] = self.client.modify(resting, limit=price)
                self.quoted += 1
        except (Conflict, Refused):
            # The quote was filled or refused. The next tick quotes again.
            self.quotes.pop(side, None)

    def resting_quote(self, side: Side) -> Order | None:
        """Returns the current state of the quote if it is open."""
        known = self.quotes.get(side)
        if known is None:
            return None
        order = self.client.order(known.int_id)
        if not order.is_open:
            del self.quotes[side]
            return None
        return order

    def room(self, side: Side) -> Decimal:
        """Returns the quantity that may be traded on this side within the position limit."""
        held = self.position()
        return self.position_max - (held if side is Side.BUY else -held)

    def position(self) -> Decimal:
        mine = (
            row.quantity
            for row in self.client.positions()
            if (row.strategy_name, row.security_id) == (STRATEGY, self.security.id)
        )
        return sum(mine, Decimal(0))

    def withdraw(self) -> None:
        self.client.cancel_all(strategy=STRATEGY, security=self.security)
        self.quotes.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description="Quotes both sides of one security.")
    parser.add_argument("--url", default="http://127.0.0.1:9090")
    parser.add_argument("--symbol", default="AAPL")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--quantity", type=Decimal, default=Decimal(5))
    parser.add_argument("--position-max", type=Decimal, default=Decimal(20))
    arguments = parser.parse_args()
    with Pitlane(arguments.url) as client:
        (security,) = [found for found in client.search(arguments.symbol) if found.symbol == arguments.symbol]
        maker = MarketMaker(client, security, arguments.quantity, arguments.position_max)
        maker.run(arguments.seconds)
        portfolio = client.portfolio(STRATEGY)
        print(
            f"quoted {maker.quoted} times, holding {maker.position()},"
            f" net value {portfolio.net_liquidation_value} {portfolio.base_currency}"
        )


if __name__ == "__main__":
    main()
