"""Runs the moving-average cross of the engine's examples in NautilusTrader, over a tick file that
`pitlane simulate` reads too.

`python cross.py ticks.csv fast slow qty` prints one line of JSON. `runS` is the time of
`engine.run()` alone, over ticks that are objects in memory already; `madeS` is the time to read the
file and to create these objects.
"""

import json
import sys
import time
from decimal import Decimal

import nautilus_trader
import pandas
from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.config import LoggingConfig, RiskEngineConfig, StrategyConfig
from nautilus_trader.model.currencies import USD
from nautilus_trader.model.enums import AccountType, OmsType, OrderSide
from nautilus_trader.model.identifiers import InstrumentId, Symbol, Venue
from nautilus_trader.model.instruments import Equity
from nautilus_trader.model.objects import Money, Price, Quantity
from nautilus_trader.persistence.wranglers import QuoteTickDataWrangler, TradeTickDataWrangler
from nautilus_trader.trading.strategy import Strategy

VENUE = Venue("XNAS")
AAPL = Equity(
    instrument_id=InstrumentId(Symbol("AAPL"), VENUE),
    raw_symbol=Symbol("AAPL"),
    currency=USD,
    price_precision=2,
    price_increment=Price.from_str("0.01"),
    lot_size=Quantity.from_int(1),
    ts_event=0,
    ts_init=0,
)


class CrossConfig(StrategyConfig, frozen=True):
    fast: int
    slow: int
    qty: int


class Cross(Strategy):
    """Holds a long position while the fast average is above the slow one, else a short one.

    The averages are sums of the last prices, updated with each price.
    """

    def __init__(self, config: CrossConfig) -> None:
        super().__init__(config)
        self.fast, self.slow, self.qty = config.fast, config.slow, config.qty
        self.prices = [0.0] * config.slow
        self.next = self.count = self.submitted = 0
        self.fast_sum = self.slow_sum = 0
        self.last = None
        self.position = self.pending = 0

    def on_start(self) -> None:
        self.subscribe_quote_ticks(AAPL.id)
        self.subscribe_trade_ticks(AAPL.id)

    def on_trade_tick(self, tick) -> None:
        # A trade is followed by the quote of the same row, which makes it a price.
        self.last = tick.price.raw

    def on_quote_tick(self, tick) -> None:
        price = self.last if self.last is not None else (tick.bid_price.raw + tick.ask_price.raw) // 2
        fast, slow, prices, at = self.fast, self.slow, self.prices, self.next
        if self.count == slow:
            self.slow_sum -= prices[at]
        if self.count >= fast:
            self.fast_sum -= prices[at - fast]
        prices[at] = price
        self.slow_sum += price
        self.fast_sum += price
        self.next = at + 1 if at + 1 < slow else 0
        if self.count < slow:
            self.count += 1
            if self.count < slow:
                return
        self.turn(self.fast_sum * slow > self.slow_sum * fast)

    def turn(self, above: bool) -> None:
        missing = (self.qty if above else -self.qty) - self.position
        if missing and not self.pending:
            side = OrderSide.BUY if missing > 0 else OrderSide.SELL
            self.submitted += 1
            self.pending = abs(missing)
            self.submit_order(self.order_factory.market(AAPL.id, side, Quantity.from_int(abs(missing))))

    def on_order_filled(self, event) -> None:
        # Tracked here: querying portfolio and cache at every tick takes several times as long.
        filled = int(event.last_qty)
        self.position += filled if event.order_side == OrderSide.BUY else -filled
        self.pending -= filled


def ticks(path: str) -> list:
    rows = pandas.read_csv(path)
    rows.index = pandas.to_datetime(rows["time"], unit="ns", utc=True)
    names = {"bid": "bid_price", "ask": "ask_price", "bidSize": "bid_size", "askSize": "ask_size"}
    quotes = QuoteTickDataWrangler(AAPL).process(rows.rename(columns=names)[list(names.values())])
    traded = rows[rows["last"].notna()]
    trades = pandas.DataFrame(
        {"price": traded["last"], "quantity": traded["lastSize"], "buyer_maker": False, "trade_id": range(len(traded))},
        index=traded.index,
    )
    trades = TradeTickDataWrangler(AAPL).process(trades)
    # At equal times the trade comes first: in our simulation it happens under the previous quote.
    return sorted(trades + quotes, key=lambda tick: tick.ts_init)


def main(path: str, fast: str, slow: str, qty: str) -> None:
    begin = time.perf_counter()
    data = ticks(path)
    made_s = time.perf_counter() - begin
    engine = BacktestEngine(
        BacktestEngineConfig(
            logging=LoggingConfig(bypass_logging=True),
            risk_engine=RiskEngineConfig(bypass=True),
            run_analysis=False,
        )
    )
    engine.add_venue(
        venue=VENUE,
        oms_type=OmsType.NETTING,
        account_type=AccountType.MARGIN,
        base_currency=USD,
        starting_balances=[Money(1_000_000, USD)],
        default_leverage=Decimal(10),
    )
    engine.add_instrument(AAPL)
    engine.add_data(data, sort=False)
    strategy = Cross(CrossConfig(fast=int(fast), slow=int(slow), qty=int(qty)))
    engine.add_strategy(strategy)
    begin = time.perf_counter()
    engine.run()
    run_s = time.perf_counter() - begin
    quotes = sum(1 for tick in data if hasattr(tick, "bid_price"))
    filled = sum(1 for order in engine.cache.orders() if order.is_closed and order.filled_qty == order.quantity)
    report = {
        "version": nautilus_trader.__version__,
        "ticks": quotes,
        "orders": strategy.submitted,
        "filled": filled,
        "runS": run_s,
        "madeS": made_s,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
