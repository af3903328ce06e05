"""Search for parameters: a back-test for each combination of values, several at a time.

```python
result = pitlane.sweep(Cross, "ticks.csv", {"fast": range(10, 51, 10), "slow": [100, 200]})
print(result.runs)
best = result.repeat(0)
```
"""

from __future__ import annotations

import functools
import itertools
import os
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from .backtest_frames import Frames, make_frame
from .backtest_run import BacktestResult, Config, RunSettings, data_sources, load_engine, run_settings, run_strategies
from .strategy import Strategy, name_of, parameter_text
from .strategy_numbers import Decimals
from .sweep_workers import StartMethod, WorkerLost, WorkerPool

Grid = Mapping[str, Iterable[Any]]
Window = Optional[Tuple[int, int]]
"""Begin and end in nanoseconds since the epoch; None: all data."""
Planned = Tuple[int, Window]
"""Number of a combination, and its window."""
Creator = Callable[..., Strategy]
Progress = Callable[[int, int], object]

_RATIOS = ("return", "sharpe", "sortino", "calmar", "max_draw_down", "profit_factor", "win_rate", "train", "test")


@dataclass(frozen=True)
class _SearchSettings:
    """What is searched and how, as the engine reads it."""

    grid: Sequence[Tuple[str, Sequence[str]]]
    sort: str
    jobs: Optional[int]
    walk_forward: Optional[str]


class _Combinations:
    """All combinations of the values of a grid; the last parameter changes fastest."""

    def __init__(self, grid: Grid) -> None:
        self.values: Dict[str, List[Any]] = {}
        for name, values in grid.items():
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise TypeError(f"the values of {name} must be several, such as [10, 20], not {values!r}")
            self.values[name] = list(values)
        if not self.values:
            raise ValueError("the grid has no parameters")

    def point(self, number: int) -> Dict[str, Any]:
        point: Dict[str, Any] = {}
        for name, values in reversed(self.values.items()):
            number, at = divmod(number, len(values))
            point[name] = values[at]
        return dict(reversed(point.items()))


class _Runner:
    """Does single runs: in this process, or in one of a pool."""

    def __init__(self, creator: Creator, points: _Combinations, data: Any, settings: RunSettings) -> None:
        self._creator, self._points, self._data, self._settings = creator, points, data, settings

    def run(self, planned: Planned, *, is_figures_only: bool) -> Tuple[Any, Strategy]:
        point, window = planned
        strategy = self._creator(**self._points.point(point))
        if not isinstance(strategy, Strategy):
            raise TypeError(f"a strategy must extend pitlane.Strategy, and {type(strategy).__name__} does not")
        settings = replace(self._settings, window=window, is_figures_only=is_figures_only)
        return run_strategies([strategy], self._data, settings), strategy

    def run_all(self, plan: Sequence[Planned]) -> Iterable[Tuple[int, Any]]:
        return ((place, self(planned)) for place, planned in enumerate(plan))

    def __call__(self, planned: Planned) -> Any:
        """Returns the figures of a run, or the reason why it failed."""
        try:
            outcome, strategy = self.run(planned, is_figures_only=True)
        except (Exception, SystemExit) as error:
            return f"{type(error).__name__}: {error}"
        return outcome.figures(name_of(strategy))


class SweepResult:
    """The outcome of a search."""

    def __init__(
        self, outcome: Any, points: _Combinations, repeat: Callable[[Planned], BacktestResult], frames: Frames
    ):
        self._outcome, self._points, self._repeat, self._frames = outcome, points, repeat, frames
        self.planned, self.is_stopped = outcome.state()
        """Number of planned runs, and whether the search was stopped before all were done."""

    @property
    def runs(self) -> Any:
        """All runs as a frame, the best first.

        Each row has the parameters, the `hash` of the run and its figures; a figure that is
        withheld is missing. The column of a parameter with the name of a figure is
        `parameter.NAME`. A run that failed has its reason in `failure`. With windows, `part` is
        "train" or "test", and `from` and `to` are the window.
        """
        return self.frame("runs")

    @property
    def windows(self) -> Any:
        """The windows of a walk-forward search as a frame.

        Each row has the parameters that were chosen, the statistic over both parts, and the hashes
        of both runs.
        """
        return self.frame("windows")

    def frame(self, name: str, *, decimals: Decimals = "float") -> Any:
        """Returns `runs` or `windows`; "exact" keeps amounts as `Decimal`s."""
        if name not in ("runs", "windows"):
            raise ValueError(f'there is no frame {name!r}; there are "runs" and "windows"')
        columns, amounts, times = getattr(self._outcome, name)()
        numbers = columns.pop("point")
        points = [{} if number is None else self._points.point(number) for number in numbers]
        cells: Dict[str, Sequence[Any]] = {}
        for parameter in self._points.values:
            label = f"parameter.{parameter}" if parameter in columns else parameter
            cells[label] = [point.get(parameter) for point in points]
        cells.update(columns)
        return make_frame(cells, self._frames, amounts=amounts, times=times, decimals=decimals, floats=_RATIOS)

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The parameters of the best run; None if no run has the statistic."""
        number = self._outcome.best()
        return None if number is None else self._points.point(number)

    @property
    def tested_return(self) -> float | None:
        """The return of all tests of a walk-forward search, one after the other."""
        tested: float | None = self._outcome.tested_return()
        return tested

    def repeat(self, row: int) -> BacktestResult:
        """Repeats a run of `runs` and returns all of its outcome.

        `row` is its place there, 0 for the best. Raises `ValueError` if the run has another hash
        than in the search: data or files have changed, or the strategy is not deterministic.
        """
        columns, _, _ = self._outcome.runs()
        count = len(columns["point"])
        if not 0 <= row < count:
            raise IndexError(f"there is no row {row}; the search has {count} runs")
        if columns["failure"][row] is not None:
            raise ValueError(f"the run has failed: {columns['failure'][row]}")
        begin, end = columns["from"][row], columns["to"][row]
        result = self._repeat((columns["point"][row], None if begin is None else (begin, end)))
        if result.hash != columns["hash"][row]:
            raise ValueError(f"the run has the hash {result.hash} now, and had {columns['hash'][row]} in the search")
        return result

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the results into a folder: sweep.txt, sweep.csv, sweep.json and sweep.html."""
        self._outcome.write(os.fspath(path))

    def __str__(self) -> str:
        return str(self._outcome.text())

    def __repr__(self) -> str:
        return f"<SweepResult {self.planned} runs planned{', stopped' if self.is_stopped else ''}>"


def sweep(
    strategy: Union[Creator, str],
    data: Any,
    grid: Grid,
    *,
    config: Config = None,
    jobs: int | None = None,
    sort: str = "return",
    walk_forward: str | None = None,
    progress: Progress | None = None,
    processes: StartMethod = "fork",
    frames: Frames = "auto",
) -> SweepResult:
    """Runs a back-test for every combination of the values of some parameters.

    `strategy` is a class or a function that creates a strategy from the parameters, or the name of
    a `[[strategy]]` of the settings, whose kind is one of the engine. `grid` has the values of each
    parameter: `{"fast": range(10, 51, 10), "slow": [100, 200]}`. `data` and `config` are those of
    `backtest`. `jobs` runs are done at the same time, by default one for each core. `sort` is the
    statistic that orders the runs: return, sharpe, sortino, calmar, max-draw-down, profit-factor,
    expectancy or win-rate. `walk_forward="30d,10d"` chooses parameters over 30 days, tests them
    over the next 10, and moves on by 10. `progress(done, planned)` is called after each run.

    The data are read once. Strategies in Python run in processes, if there are several jobs.
    "fork" shares class and data with them. A strategy that uses a library with threads, such as
    polars, needs "spawn": the class must be in a module, and each process reads the data. The
    number of jobs changes no result, and each run has the hash of the same `backtest`.

    A run that fails is in the results with its reason, and loses no other. Ctrl-C ends the search
    and keeps the finished runs.
    """
    engine = load_engine()
    points = _Combinations(grid)
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    if processes not in ("fork", "spawn"):
        raise ValueError(f'processes must be "fork" or "spawn", not {processes!r}')
    settings = run_settings(config)
    sources = data_sources(data)
    if isinstance(strategy, str):
        names = [name if "." in name else f"{strategy}.{name}" for name in points.values]
        search = _search_settings(points, names, parameter_text, sort, jobs, walk_forward)
        ticks = engine.read_data(sources, settings)
        outcome = engine.search_kinds(settings, ticks, search, progress)
        repeat = functools.partial(_repeat_kind, points, names, ticks, settings, frames)
        return SweepResult(outcome, points, repeat, frames)
    if not callable(strategy):
        raise TypeError("sweep needs a class or a function that creates a strategy, or the name of one in the settings")
    for name in points.values:
        if not name.isidentifier():
            raise ValueError(f"{name!r} is not the name of a parameter")
    search = _search_settings(points, list(points.values), _literal, sort, jobs, walk_forward)
    ticks = engine.read_data(sources, settings)
    runner = _Runner(strategy, points, ticks, settings)
    workers = jobs or _cores()
    create = getattr(strategy, "__name__", "strategy")
    if workers == 1:
        outcome = engine.search(search, ticks.period(), _Runs(progress, runner.run_all), create)
    else:
        again = functools.partial(_read_again, strategy, points, sources, settings)
        make = functools.partial(_same, runner) if processes == "fork" else again
        with WorkerPool(workers, processes, make) as pool:
            outcome = engine.search(search, ticks.period(), _Runs(progress, pool.run), create)
    return SweepResult(outcome, points, functools.partial(_repeat_run, runner, frames), frames)


def _cores() -> int:
    """Returns the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _literal(value: Any) -> str:
    """Returns a value as Python source for the command that repeats a run."""
    return repr(value) if isinstance(value, (str, bytes)) else str(value)


class _Runs:
    """Does the runs of a plan for the engine, and counts them over all plans of the search."""

    def __init__(
        self, progress: Progress | None, run: Callable[[Sequence[Planned]], Iterable[Tuple[int, Any]]]
    ) -> None:
        self._progress, self._run, self._done = progress, run, itertools.count(1)

    def __call__(self, plan: Sequence[Planned], planned: int) -> List[Any]:
        """Returns an outcome for each run; None for those that were not done."""
        answers: List[Any] = [None] * len(plan)
        try:
            for place, answer in self._run(plan):
                answers[place] = str(answer) if isinstance(answer, WorkerLost) else answer
                done = next(self._done)
                if self._progress is not None:
                    self._progress(done, planned)
        except KeyboardInterrupt:
            pass
        return answers


def _search_settings(
    points: _Combinations,
    names: Sequence[str],
    text: Callable[[Any], str],
    sort: str,
    jobs: int | None,
    walk_forward: str | None,
) -> _SearchSettings:
    values = [[text(value) for value in values] for values in points.values.values()]
    return _SearchSettings(list(zip(names, values)), sort, jobs, walk_forward)


def _same(runner: _Runner) -> _Runner:
    return runner


def _read_again(creator: Creator, points: _Combinations, sources: List[Any], settings: RunSettings) -> _Runner:
    return _Runner(creator, points, load_engine().read_data(sources, settings), settings)


def _repeat_run(runner: _Runner, frames: Frames, planned: Planned) -> BacktestResult:
    outcome, strategy = runner.run(planned, is_figures_only=False)
    return BacktestResult(outcome, [strategy], frames)


def _repeat_kind(
    points: _Combinations, names: Sequence[str], ticks: Any, settings: RunSettings, frames: Frames, planned: Planned
) -> BacktestResult:
    point, window = planned
    values = [parameter_text(value) for value in points.point(point).values()]
    parameters = tuple(zip(names, values))
    return BacktestResult(
        run_strategies([], ticks, replace(settings, parameters=parameters, window=window)), [], frames
    )
