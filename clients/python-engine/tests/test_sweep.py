"""Searches for parameters of strategies in Python and of kinds of the engine."""

from __future__ import annotations

import functools
import json
import math
import os
import pickle
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pitlane
import polars
import pytest
from conftest import walk, write
from moving_average import MovingAverageCross
from test_same_as_rust import SECTION

GRID = {"fast": [3, 5, 9], "slow": [20, 40]}

create = functools.partial(MovingAverageCross, "AAPL", bar_s=0, qty=10, short=True)


class CheckedCross(MovingAverageCross):
    """Refuses parameters that make no sense."""

    def __init__(self, fast: int, slow: int = 20) -> None:
        if fast >= slow:
            raise ValueError("fast must be below slow")
        super().__init__("AAPL", fast, slow, 0)


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return pandas.DataFrame(walk(2_000))


@pytest.fixture()
def settings(tmp_path: Path) -> str:
    path = tmp_path / "momentum.toml"
    path.write_text(SECTION.format(fast=5, slow=40, bar_s=0, qty=10, short="true"))
    return str(path)


def rows_of(result: pitlane.SweepResult) -> list[tuple[Any, ...]]:
    """Returns all cells as texts, which compare equal where numbers are missing."""
    return [tuple(map(str, row)) for row in result.runs.itertuples(index=False)]


def test_a_search_in_python_finds_what_the_search_of_the_engine_finds(frame: pandas.DataFrame, settings: str) -> None:
    python = pitlane.sweep(create, frame, GRID, jobs=2)
    rust = pitlane.sweep("MOMENTUM", frame, GRID, config=settings, jobs=2)
    assert (python.planned, python.is_stopped) == (6, False)
    assert rows_of(python) == rows_of(rust)
    assert set(zip(python.runs["fast"], python.runs["slow"])) == {(f, s) for f in GRID["fast"] for s in GRID["slow"]}
    assert list(python.runs["return"]) == sorted(python.runs["return"], reverse=True)
    assert python.best == rust.best == {"fast": python.runs["fast"][0], "slow": python.runs["slow"][0]}
    assert len(set(python.runs["hash"])) == 6 and min(python.runs["fills"]) > 5


def test_every_run_can_be_repeated(frame: pandas.DataFrame, settings: str) -> None:
    python = pitlane.sweep(create, frame, GRID, jobs=2, sort="max-draw-down")
    assert list(python.runs["max_draw_down"]) == sorted(python.runs["max_draw_down"])
    rust = pitlane.sweep("MOMENTUM", frame, GRID, config=settings, sort="max-draw-down")
    for result in (python, rust):
        for row, run in enumerate(result.runs.itertuples()):
            again = result.repeat(row)
            assert again.hash == run.hash and len(again.fills) == run.fills
    best = pitlane.backtest(create(**python.best), frame)
    assert best.hash == python.runs["hash"][0]
    with pytest.raises(IndexError, match="there is no row 6; the search has 6 runs"):
        python.repeat(6)


def test_a_repeated_run_with_another_hash_is_reported(frame: pandas.DataFrame) -> None:
    quantities = iter([1, 2])

    def unsteady(fast: int) -> MovingAverageCross:
        return MovingAverageCross("AAPL", fast, 20, 0, next(quantities))

    result = pitlane.sweep(unsteady, frame, {"fast": [3]}, jobs=1)
    with pytest.raises(ValueError, match=f"and had {result.runs['hash'][0]} in the search"):
        result.repeat(0)


def test_the_number_and_kind_of_processes_changes_nothing(frame: pandas.DataFrame, tmp_path: Path) -> None:
    here = pitlane.sweep(create, frame, GRID, jobs=1)
    assert rows_of(pitlane.sweep(create, frame, GRID, jobs=3)) == rows_of(here)
    # New interpreters import the module of the class and read the file.
    ticks = write(tmp_path / "ticks.csv", walk(2_000))
    assert rows_of(pitlane.sweep(create, ticks, GRID, jobs=2, processes="spawn")) == rows_of(here)
    assert here.runs["hash"][0] == pitlane.backtest(create(**here.best), ticks).hash


def test_a_run_that_fails_loses_no_other(frame: pandas.DataFrame) -> None:
    class Fragile(CheckedCross):
        def on_tick(self, tick: pitlane.StrategyTick, context: pitlane.Context) -> None:
            if self.fast == 4:
                raise ZeroDivisionError("no spread")
            if self.fast == 6:
                os.kill(os.getpid(), signal.SIGKILL)
            super().on_tick(tick, context)

    result = pitlane.sweep(Fragile, frame, {"fast": [3, 4, 6, 8, 30]}, jobs=2)
    runs = result.runs.set_index("fast")
    assert list(runs.index[:2]) in ([3, 8], [8, 3]) and runs["failure"][:2].isna().all()
    assert "ZeroDivisionError: no spread" in runs["failure"][4]
    assert runs["failure"][6] == "the process of the run ended with the status -9"
    assert runs["failure"][30] == "ValueError: fast must be below slow"
    assert runs["hash"][[4, 6, 30]].isna().all()
    assert "3 runs failed" in str(result)
    with pytest.raises(ValueError, match="the run has failed: ValueError"):
        result.repeat(list(result.runs["fast"]).index(30))
    only_failed = pitlane.sweep(CheckedCross, frame, {"fast": [30]}, jobs=2)
    assert only_failed.best is None and len(only_failed.runs) == 1


@pytest.mark.parametrize("by_name", [False, True])
def test_walk_forward_tests_each_choice_over_other_data(frame: pandas.DataFrame, settings: str, by_name: bool) -> None:
    strategy, config = ("MOMENTUM", settings) if by_name else (create, None)
    result = pitlane.sweep(strategy, frame, GRID, config=config, jobs=2, walk_forward="60s,30s")
    windows, runs = result.windows, result.runs
    assert len(windows) >= 3 and result.planned == len(windows) * 7
    train = runs[runs["part"] == "train"]
    factor = 1.0
    for window in windows.itertuples():
        assert window.test_from - window.train_from == pandas.Timedelta("60s")
        of_window = train[train["from"] == window.train_from]
        assert len(of_window) == 6 and of_window["return"].max() == window.train
        assert window.train_hash in set(of_window["hash"])
        (tested,) = runs[(runs["part"] == "test") & (runs["from"] == window.test_from)].itertuples()
        assert (tested.fast, tested.slow, tested.hash) == (window.fast, window.slow, window.test_hash)
        assert result.repeat(tested.Index).hash == window.test_hash
        factor *= 1 + window.test
    assert result.tested_return == pytest.approx(factor - 1, abs=1e-12)
    with pytest.raises(ValueError, match="walk-forward: the data are shorter than one window"):
        pitlane.sweep(strategy, frame, GRID, config=config, walk_forward="30d,10d")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("by_name", [False, True])
def test_an_interruption_keeps_the_finished_runs(
    frame: pandas.DataFrame, settings: str, jobs: int, by_name: bool
) -> None:
    seen: list[tuple[int, int]] = []

    def progress(done: int, planned: int) -> None:
        seen.append((done, planned))
        if done == 2:
            raise KeyboardInterrupt

    strategy, config = ("MOMENTUM", settings) if by_name else (create, None)
    result = pitlane.sweep(strategy, frame, {"fast": range(2, 18)}, config=config, jobs=jobs, progress=progress)
    assert sorted(seen)[:2] == [(1, 16), (2, 16)]
    assert result.is_stopped and result.planned == 16 and 2 <= len(result.runs) < 16
    assert "of 16 runs (stopped)" in str(result)


def test_results_are_frames_and_files(frame: pandas.DataFrame, tmp_path: Path) -> None:
    polar = pitlane.sweep(create, frame, {"fast": [3], "qty": [1, 7]}, jobs=1, frames="polars")
    assert isinstance(polar.runs, polars.DataFrame)
    assert polar.runs["sharpe"].dtype == polars.Float64, "withheld for all runs"
    exact = polar.frame("runs", decimals="exact")["end_equity"]
    assert all(isinstance(value, Decimal) for value in exact)
    with pytest.raises(ValueError, match="there is no frame 'trades'"):
        polar.frame("trades")
    polar.report(tmp_path / "sweep")
    files = {path.name for path in (tmp_path / "sweep").iterdir()}
    assert files == {"sweep.txt", "sweep.csv", "sweep.json", "sweep.html"}
    written = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert [run["hash"] for run in written["runs"]] == list(polar.runs["hash"])
    assert written["runs"][0]["command"].startswith("pitlane.backtest(strategy(fast=3, qty=")
    assert math.isclose(written["runs"][0]["return"], polar.runs["return"][0])
    plain = pitlane.sweep(CheckedCross, frame, {"fast": [3]}, jobs=1)
    assert "repeat the best: pitlane.backtest(CheckedCross(fast=3), data)" in str(plain)


def test_a_parameter_may_have_the_name_of_a_figure(frame: pandas.DataFrame) -> None:
    def make(fees: int) -> MovingAverageCross:
        return create(fast=fees)

    result = pitlane.sweep(make, frame, {"fees": [3, 5]}, jobs=1)
    assert sorted(result.runs["parameter.fees"]) == [3, 5]
    assert result.runs["fees"].dtype == "float64"


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"grid": {}}, ValueError, "the grid has no parameters"),
        ({"grid": {"fast": []}}, ValueError, "grid: fast has no values"),
        ({"grid": {"fast": "3"}}, TypeError, "the values of fast must be several"),
        ({"grid": {"fast": 3}}, TypeError, "the values of fast must be several"),
        ({"grid": {"fast slow": [3]}}, ValueError, "'fast slow' is not the name of a parameter"),
        ({"grid": {"fast": range(1_000), "slow": range(101)}}, ValueError, "more than 100000 combinations"),
        ({"strategy": "ABSENT"}, ValueError, "there is no strategy ABSENT in the settings"),
        ({"strategy": create(fast=3)}, TypeError, "a class or a function"),
        ({"sort": "beauty"}, ValueError, "sort: it must be one of return, sharpe"),
        ({"walk_forward": "5"}, ValueError, "walk_forward: it must be two lengths such as 30d,10d"),
        ({"jobs": 0}, ValueError, "jobs must be at least 1"),
        ({"processes": "threads"}, ValueError, 'processes must be "fork" or "spawn"'),
        ({"config": {"simulation.chas": 1}}, ValueError, r"simulation\.chas"),
        ({"data": "absent.csv"}, ValueError, r"absent\.csv"),
    ],
)
def test_faults_of_a_search_are_reported(
    frame: pandas.DataFrame, settings: str, changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    arguments = {"strategy": create, "data": frame, "grid": {"fast": [3]}, "config": settings, **changes}
    with pytest.raises(error, match=text):
        pitlane.sweep(**arguments)


def test_what_is_no_strategy_is_a_run_that_failed(frame: pandas.DataFrame) -> None:
    result = pitlane.sweep(lambda fast: object(), frame, {"fast": [3]}, jobs=1)
    assert "a strategy must extend pitlane.Strategy" in result.runs["failure"][0]
    with pytest.raises((AttributeError, pickle.PicklingError), match=r"pickle|local"):
        pitlane.sweep(lambda fast: object(), frame, {"fast": [3]}, jobs=2, processes="spawn")
