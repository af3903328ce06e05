"""Market data from files and frames, and what is refused in them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Callable

import pandas
import pitlane
import polars
import pyarrow
import pytest
from conftest import START_NS, walk, write
from moving_average import MovingAverageCross


def run(data: Any) -> pitlane.BacktestResult:
    return pitlane.backtest(MovingAverageCross("AAPL", 5, 40, 0, 10, True), data)


def categorical(columns: dict[str, list[Any]]) -> pandas.DataFrame:
    frame = pandas.DataFrame(columns)
    frame["time"] = pandas.to_datetime(frame["time"], unit="ns", utc=True)
    frame["security"] = frame["security"].astype("category")
    return frame


def decimals(columns: dict[str, list[Any]]) -> pyarrow.Table:
    amounts = ("bid", "bidSize", "ask", "askSize", "last", "lastSize")
    exact = {
        name: pyarrow.array(
            [None if cell is None else Decimal(str(cell)) for cell in columns[name]], pyarrow.decimal128(18, 4)
        )
        for name in amounts
    }
    return pyarrow.table({**columns, **exact})


def snake_case(columns: dict[str, list[Any]]) -> polars.DataFrame:
    frame = polars.DataFrame(columns)
    names = {"bidSize": "bid_size", "askSize": "ask_size", "lastSize": "last_size"}
    return frame.rename(names).with_columns(polars.col("security").cast(polars.Categorical))


@pytest.mark.parametrize(
    "make",
    [pandas.DataFrame, categorical, polars.DataFrame, snake_case, pyarrow.table, decimals],
    ids=["pandas", "categorical", "polars", "snake-case", "arrow", "decimals"],
)
def test_a_frame_gives_the_same_run_as_a_file(make: Callable[[Any], Any], columns: Any, ticks: str) -> None:
    from_file, from_frame = run(ticks), run(make(columns))
    assert len(from_file.fills) > 20
    assert from_frame.fills.equals(from_file.fills)
    assert from_frame.hash == from_file.hash


def test_parquet_gives_the_same_run_as_csv(columns: Any, ticks: str, tmp_path: Path) -> None:
    path = tmp_path / "ticks.parquet"
    pandas.DataFrame(columns).to_parquet(path)
    assert run(path).hash == run(ticks).hash


FORMATS = Path(__file__).parents[3] / "tests" / "data" / "formats"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trades-v1.dbn", [(0, 170.25), (10, 170.24), (20, 170.245)]),
        ("mbp-1.dbn.zst", [(0, 0.0), (10, 170.26), (10, 170.26), (20, 170.26)]),
        ("03012024.NASDAQ_ITCH50.gz", [(9, 170.2475), (10, 170.245)]),
        ("BTCUSDT-aggTrades-2024-03-01.csv", [(0, 62000.1), (250_000_000, 62000.0)]),
    ],
)
def test_files_of_other_providers_are_read(name: str, expected: list[tuple[int, float]]) -> None:
    opened_ns = 1_709_303_400_000_000_000
    seen: list[tuple[int, float]] = []

    class Listener(pitlane.Strategy):
        def on_phase(self, phase: pitlane.Phase, context: pitlane.Context) -> None:
            if phase == "INIT":
                context.subscribe("AAPL")
                context.subscribe("BTCUSD")

        def on_tick(self, tick: pitlane.StrategyTick, context: pitlane.Context) -> None:
            seen.append((tick.time_ns - opened_ns, tick.last or 0.0))

    result = pitlane.backtest(Listener, FORMATS / name, config={"simulation.symbols": "BTCUSDT=BTCUSD"})
    assert result.failures == {}
    assert seen[-len(expected) :] == expected


def test_a_damaged_file_of_another_provider_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "cut.dbn"
    path.write_bytes((FORMATS / "mbp-10.dbn").read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"cut\.dbn: at byte \d+: a record of 368 bytes is cut"):
        run(path)


def test_several_sources_are_merged_by_time(tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []

    class Both(pitlane.Strategy):
        def on_phase(self, phase: pitlane.Phase, context: pitlane.Context) -> None:
            if phase == "INIT":
                context.subscribe("AAPL")
                context.subscribe("MSFT")

        def on_tick(self, tick: pitlane.StrategyTick, context: pitlane.Context) -> None:
            seen.append((tick.time_ns, tick.symbol))

    apple, microsoft = walk(200, "AAPL", 1), walk(300, "MSFT", 2)
    result = pitlane.backtest(Both, [write(tmp_path / "a.csv", apple), polars.DataFrame(microsoft)])
    assert result.failures == {}
    expected = sorted(zip(apple["time"] + microsoft["time"], apple["security"] + microsoft["security"]))
    assert seen == expected


def test_bars_of_a_frame_become_ticks() -> None:
    bars = {
        "time": [START_NS, START_NS + 60_000_000_000],
        "security": ["AAPL", "AAPL"],
        "open": [230.0, 231.0],
        "high": [232.0, 233.0],
        "low": [229.0, 230.5],
        "close": [231.0, 232.5],
        "volume": [10_000, 20_000],
    }
    prices: list[float] = []

    class Prices(pitlane.Strategy):
        def on_phase(self, phase: pitlane.Phase, context: pitlane.Context) -> None:
            if phase == "INIT":
                context.subscribe("AAPL")

        def on_tick(self, tick: pitlane.StrategyTick, context: pitlane.Context) -> None:
            assert tick.last is not None
            prices.append(tick.last)

    assert pitlane.backtest(Prices, polars.DataFrame(bars)).failures == {}
    assert prices == [230.0, 229.0, 232.0, 231.0, 231.0, 230.5, 233.0, 232.5]


def changed(**changes: Any) -> polars.DataFrame:
    columns = walk(10)
    for name, cell in changes.items():
        columns[name][6] = cell
    return polars.DataFrame(columns, strict=False)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (changed(time=5), "frame 1:7: its time is before that of the row above"),
        (changed(security="NONE"), "frame 1:7: security: there is no security NONE"),
        (changed(bid=None), "frame 1:7: bid is missing"),
        (changed(bid=float("inf")), "frame 1:7: bid: it is infinite"),
        (changed().drop("bid"), "there is no column bid"),
        (changed().with_columns(polars.lit(True).alias("bid")), "bid: a column of type Boolean cannot be read"),
        (changed().with_columns(polars.lit("x").alias("ask")), 'frame 1:1: ask: "x"'),
        (changed().clear(), "there is nothing between from and to"),
        ("/nowhere/ticks.csv", "/nowhere/ticks.csv: No such file"),
    ],
)
def test_faulty_data_are_refused_with_their_place(data: Any, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        run(data)
    assert problem in str(refused.value)


@pytest.mark.parametrize("data", [5, None, [object()], {"time": []}])
def test_other_data_are_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="data must be paths or frames"):
        run(data)
