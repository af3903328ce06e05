"""A bid and an ask at the market, for the tests that kill processes.

python3 market_maker.py NAME SYMBOL ADDRESS RECORD
"""

import sys

import pitlane

QUANTITY = 10
POSITION_MAX = 1000


class MarketMaker(pitlane.Strategy):
    """Keeps a quote on each side, which may be that of an earlier process, and moves it with the
    market."""

    def __init__(self, name, symbol):
        self.name, self.symbol = name, symbol

    def on_phase(self, phase, context):
        if phase == "INIT":
            context.subscribe(self.symbol)
        elif phase == "STOP":
            context.cancel_all()

    def on_tick(self, tick, context):
        if context.phase != "RUNNING" or tick.mid is None:
            return
        held = context.position(self.symbol).quantity
        orders = {order.side: order for order in context.orders(self.symbol)}
        try:
            if held < POSITION_MAX:
                self.quote(orders.get("BUY"), context.buy, tick.bid, context)
            if held > -POSITION_MAX:
                self.quote(orders.get("SELL"), context.sell, tick.ask, context)
        except pitlane.RequestRefused:
            # The connection is lost; the next tick comes when it is back.
            pass

    def quote(self, order, send, price, context):
        price = context.security(self.symbol).round_price(price)
        if order is None:
            send(self.symbol, QUANTITY, limit=price)
        elif order.status in ("NEW", "PARTIALLY_FILLED") and order.limit != price:
            context.modify(order, limit=price)


if __name__ == "__main__":
    name, symbol, address, record = sys.argv[1:]
    pitlane.run(MarketMaker(name, symbol), address, record=record)
