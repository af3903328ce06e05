"""What a strategy in a back-test receives, sees and may do."""

from __future__ import annotations

import signal
from decimal import Decimal
from typing import Any, Callable

import pitlane
import polars
import pytest
from conftest import START_NS, walk
from pitlane import Context, OrderStatus, Phase, RequestRefused, StrategyTick

SECOND_NS = 1_000_000_000


def quotes(count: int = 20, bid: float = 230.0, ask: float = 230.1) -> polars.DataFrame:
    """Returns one quote a second, all equal."""
    return polars.DataFrame(
        {
            "time": [START_NS + at * SECOND_NS for at in range(count)],
            "security": ["AAPL"] * count,
            "bid": [bid] * count,
            "bidSize": [500.0] * count,
            "ask": [ask] * count,
            "askSize": [400.0] * count,
            "last": [None] * count,
            "lastSize": [None] * count,
        }
    )


class Follower(pitlane.Strategy):
    """Follows one security and calls `step` with the number of each tick."""

    def __init__(self) -> None:
        self.count = 0
        self.log: list[Any] = []

    def on_phase(self, phase: Phase, context: Context) -> None:
        if phase is Phase.INIT:
            context.subscribe("AAPL")

    def on_tick(self, tick: StrategyTick, context: Context) -> None:
        self.count += 1
        self.step(self.count, tick, context)

    def step(self, number: int, tick: StrategyTick, context: Context) -> None: ...


def in_step(step: Callable[[Any, int, StrategyTick, Context], None], **members: Any) -> Any:
    return type("Stepping", (Follower,), {"step": step, **members})()


def run(strategy: Any, data: Any = None, **options: Any) -> pitlane.BacktestResult:
    return pitlane.backtest(strategy, quotes() if data is None else data, **options)


def checked(strategy: Any, data: Any = None, **options: Any) -> pitlane.BacktestResult:
    result = run(strategy, data, **options)
    assert result.failures == {}
    return result


def test_ticks_have_the_values_of_the_data() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        self.log.append(
            (tick.time_ns, tick.symbol, tick.bid, tick.bid_size, tick.ask, tick.ask_size, tick.last, tick.mid)
        )
        assert context.now_ns == tick.time_ns
        assert tick.time == context.now
        newest = context.tick("AAPL")
        assert newest is not None and newest.time_ns == tick.time_ns

    strategy = in_step(step)
    checked(strategy)
    assert len(strategy.log) == 20
    assert strategy.log[3] == (START_NS + 3 * SECOND_NS, "AAPL", 230.0, 500.0, 230.1, 400.0, None, 230.05)


def test_exact_amounts_are_decimals_everywhere() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        assert (tick.bid, tick.mid) == (Decimal("230"), Decimal("230.05"))
        if number == 1:
            context.buy("AAPL", 10, limit=tick.ask)
        position = context.position("AAPL")
        self.log.append((position.quantity, position.avg_price, context.security("AAPL").tick_size))

    strategy = in_step(step, decimals="exact")
    result = checked(strategy)
    assert strategy.log[-1] == (Decimal(10), Decimal("230.1"), Decimal("0.01"))
    assert all(type(value) is Decimal for value in strategy.log[-1])
    fills = result.frame("fills", decimals="exact")
    assert list(fills["price"]) == [Decimal("230.1")]


def test_orders_run_through_their_states() -> None:
    class Trader(Follower):
        def step(self, number: int, tick: StrategyTick, context: Context) -> None:
            if number == 1:
                self.resting = context.buy("AAPL", 5, limit=229.5)
            elif number == 2:
                (order,) = context.orders("AAPL")
                assert (order.int_id, order.status) == (self.resting, OrderStatus.NEW)
                assert (order.quantity, order.limit, order.remaining_quantity) == (5, 229.5, 5)
                context.modify(order, quantity=8, limit=229.6)
            elif number == 3:
                order = context.order(self.resting)
                assert order is not None and (order.quantity, order.limit) == (8, 229.6)
                context.cancel(order)
            elif number == 4:
                assert context.orders() == [] and context.order(self.resting) is None
                context.sell("AAPL", 3)

        def on_order_status(self, report: pitlane.OrderReport, context: Context) -> None:
            self.log.append((report.int_id, str(report.exec_type), report.filled_quantity))

        def on_fill(self, fill: pitlane.Fill, context: Context) -> None:
            self.log.append(("fill", fill.side, fill.quantity, fill.price))

        def on_transaction(self, transaction: pitlane.StrategyTransaction, context: Context) -> None:
            if transaction.security_id is not None:
                self.log.append(("transaction", transaction.quantity, transaction.position))

    trader = Trader()
    result = checked(trader)
    kinds = [entry[1] for entry in trader.log if entry[0] == trader.resting]
    assert kinds[:2] == ["PENDING_NEW", "NEW"] and "REPLACED" in kinds and kinds[-1] == "CANCELED"
    assert ("fill", "SELL", 3, 230.0) in trader.log
    assert ("transaction", -3, -3) in trader.log
    assert list(result.orders["status"]) == ["CANCELED", "FILLED"]
    assert list(result.fills["quantity"]) == [-3]
    assert list(result.fills["position"]) == [-3]
    assert float(result.equity["equity"].iloc[0]) == 1_000_000


def test_a_price_off_the_grid_is_refused_with_its_neighbours() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        with pytest.raises(ValueError, match=r"230\.005 is not a multiple .* are 230 and 230\.01"):
            context.buy("AAPL", 1, limit=230.005)
        with pytest.raises(ValueError, match=r"quantity 0\.5 is not a multiple of the lot size 1 of AAPL"):
            context.buy("AAPL", 0.5)
        with pytest.raises(ValueError, match="must be above zero"):
            context.buy("AAPL", -1)
        assert context.security("AAPL").round_price(230.004) == 230.0
        self.log.append(context.buy("AAPL", 1, limit=229.01 + 0.01))

    strategy = in_step(step)
    result = checked(strategy)
    assert set(result.orders["limit"]) == {229.02}
    assert len(strategy.log) == 20


def test_requests_that_are_not_possible_are_refused_at_once() -> None:
    class Hasty(Follower):
        def on_phase(self, phase: Phase, context: Context) -> None:
            super().on_phase(phase, context)
            with pytest.raises(RequestRefused) as refused:
                context.cancel("s999")
            self.log.append(refused.value.reason)
            if phase is Phase.INIT:
                with pytest.raises(RequestRefused) as refused:
                    context.buy("AAPL", 1)
                assert refused.value.reason == "strategy-not-running"
                with pytest.raises(RequestRefused, match='symbol "APPL"'):
                    context.subscribe("APPL")
                with pytest.raises(RequestRefused, match="id 999999"):
                    context.subscribe(999_999)

    hasty = Hasty()
    checked(hasty)
    assert set(hasty.log) == {"unknown-order"}


def test_timers_are_due_at_their_time() -> None:
    class Timed(Follower):
        def step(self, number: int, tick: StrategyTick, context: Context) -> None:
            if number == 1:
                context.set_timer(7, after_s=2.5)
                context.set_timer(8, at=START_NS + 4 * SECOND_NS + 1)
                context.set_timer(9, after_s=1)
                context.clear_timer(9)

        def on_timer(self, timer: int, context: Context) -> None:
            self.log.append((timer, context.now_ns - START_NS))

    timed = Timed()
    checked(timed)
    assert timed.log == [(7, 2_500_000_000), (8, 4_000_000_001)]


def test_bars_come_before_the_tick_that_ends_them() -> None:
    class Bars(Follower):
        def on_phase(self, phase: Phase, context: Context) -> None:
            if phase is Phase.INIT:
                context.subscribe("AAPL", bar_s=5)

        def step(self, number: int, tick: StrategyTick, context: Context) -> None:
            self.log.append(number)

        def on_bar(self, bar: pitlane.StrategyBar, context: Context) -> None:
            self.log.append((bar.time_ns - START_NS, bar.interval_s, bar.close, bar.ticks))

    bars = Bars()
    checked(bars)
    assert bars.log[5:7] == [(0, 5.0, 230.05, 5), 6]


def test_strategies_send_events_to_each_other() -> None:
    class Receiver(Follower):
        name = "RECEIVER"

        def on_generic(self, name: str, data: Any, context: Context) -> None:
            self.log.append((name, data))

    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        if number == 2:
            context.send_generic("spread", {"bid": 1, "wide": True})

    receiver = Receiver()
    checked([in_step(step, name="SENDER"), receiver])
    assert receiver.log == [("spread", {"bid": 1, "wide": True})]


def test_an_exception_fails_that_strategy_alone() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        if number == 3:
            context.buy("AAPL", 1)
            raise KeyError("no such model")

    failing, other = in_step(step, name="FAILING"), in_step(lambda *_: None, name="OTHER")
    result = run([failing, other])
    assert list(result.failures) == ["FAILING"]
    reason = result.failures["FAILING"]
    assert "KeyError: 'no such model'" in reason
    assert 'raise KeyError("no such model")' in reason, "the line of the author's file"
    assert (failing.count, other.count) == (3, 20)
    assert len(result.orders) == 0, "what a failed callback asked for is not sent"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_ends_the_run(error: type[BaseException]) -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        if number == 3:
            raise error

    strategy = in_step(step)
    with pytest.raises(error):
        run(strategy)
    assert strategy.count == 3


def test_a_signal_ends_the_run() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        if number == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(in_step(step))


def test_a_context_is_valid_during_a_callback_only() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        self.log.append((context, tick))

    strategy = in_step(step)
    checked(strategy)
    context, tick = strategy.log[0]
    assert tick.bid == 230.0, "a tick may be kept"
    with pytest.raises(pitlane.ContextClosed):
        context.buy("AAPL", 1)
    with pytest.raises(pitlane.ContextClosed):
        context.now_ns  # noqa: B018


def test_callbacks_that_are_not_overridden_are_not_needed() -> None:
    class Silent(pitlane.Strategy):
        pass

    assert checked(Silent).ticks == 20


def test_settings_are_those_of_simulate() -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        self.log.append(context.cash())

    strategy = in_step(step)
    checked(strategy, config={"simulation": {"cash": 50_000}})
    assert strategy.log[0] == 50_000.0
    with pytest.raises(ValueError, match=r"simulation\.chas"):
        run(in_step(step), config={"simulation.chas": 1})


def test_names_are_unique_and_strategies_are_of_the_class() -> None:
    with pytest.raises(ValueError, match="two strategies have the name"):
        run([Follower(), Follower()])
    with pytest.raises(TypeError, match=r"must extend pitlane\.Strategy"):
        run(object())
    with pytest.raises(ValueError, match="nothing to simulate"):
        run([])
    with pytest.raises(ValueError, match="decimals must be"):
        run(in_step(lambda *_: None, decimals="double"))


def test_the_result_has_frames_and_a_report(tmp_path: Any) -> None:
    def step(self: Any, number: int, tick: StrategyTick, context: Context) -> None:
        if number in (1, 10):
            (context.buy if number == 1 else context.sell)("AAPL", 1)

    result = checked(in_step(step), walk_frame())
    assert list(result.statistics["name"]) == ["Stepping"]
    assert str(result.fills["time"].dtype) == "datetime64[ns, UTC]"
    result.report(tmp_path / "report")
    assert {path.name for path in (tmp_path / "report").iterdir()} >= {"report.txt", "report.json", "report.html"}
    assert result.hash in str(result)
    as_polars = checked(in_step(step), walk_frame(), frames="polars")
    assert isinstance(as_polars.orders, polars.DataFrame)
    assert as_polars.orders["quantity"].to_list() == [1.0, 1.0]
    assert as_polars.hash == result.hash


def walk_frame() -> polars.DataFrame:
    return polars.DataFrame(walk(500))
