"""Back-tests in this process: the real shard and venue, with a clock that the data drive.

Needs the package `pitlane-engine`, which has the engine as a native extension.

```python
result = pitlane.backtest(BuyTheDip(), "ticks.csv")
print(result.statistics)
result.report("report")
```
"""

from __future__ import annotations

import json
import logging
import os
import re
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .backtest_frames import Frames, make_frame
from .strategy import Strategy, name_of, parameter_texts
from .strategy_numbers import Decimals

Strategies = Union[Strategy, Type[Strategy], Sequence[Union[Strategy, Type[Strategy]]]]
Config = Union[str, "os.PathLike[str]", Mapping[str, Any], Iterable[Union[str, "os.PathLike[str]"]], None]

_MISSING = (
    "back-tests need the native engine: pip install pitlane-engine "
    "(from a checkout: pip install ./clients/python-engine)"
)
_log = logging.getLogger("pitlane.backtest")


@dataclass(frozen=True)
class RunSettings:
    """Settings of one run, as the engine reads them."""

    files: Sequence[str] = ()
    """Files of settings, or names of presets."""
    options: Sequence[Tuple[str, str]] = ()
    """Keys and values above the files."""
    parameters: Sequence[Tuple[str, str]] = ()
    """Parameters of strategies of the settings, instead of those there."""
    window: Optional[Tuple[int, int]] = None
    """Begin and end of the run in nanoseconds since the epoch; None: those of the settings."""
    is_figures_only: bool = False
    """Whether orders, fills and round trips are not kept."""


class BacktestResult:
    """The outcome of a back-test.

    `orders`, `fills`, `round_trips`, `equity` and `statistics` are frames of pandas or polars.
    """

    def __init__(self, outcome: Any, strategies: list[Strategy], frames: Frames) -> None:
        self._outcome = outcome
        self._frames = frames
        self.strategies = strategies
        """The objects that ran, with the attributes that they have set."""
        self.hash: str = outcome.hash()
        """Hash of all orders, fills and values; equal for equal runs."""
        self.ticks, self.seconds = outcome.speed()
        """Rows of data, and the duration of the run."""

    @property
    def orders(self) -> Any:
        """The orders, each with its last state."""
        return self.frame("orders")

    @property
    def fills(self) -> Any:
        """The fills, with fee, realised profit and position after each."""
        return self.frame("fills")

    @property
    def round_trips(self) -> Any:
        """Positions from the entry to the exit, with fees and profit."""
        return self.frame("round_trips")

    @property
    def equity(self) -> Any:
        """The value of each strategy in samples."""
        return self.frame("equity")

    @property
    def statistics(self) -> Any:
        """The figures of the report, one row for each strategy."""
        rows = [_scalars(row) for row in self.summary["strategies"]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        return make_frame(columns, self._frames, amounts=(), times=(), decimals="float")

    def frame(self, name: str, *, decimals: Decimals = "float") -> Any:
        """Returns one of the frames by its name; "exact" keeps amounts as `Decimal`s."""
        columns, amounts, times = self._outcome.table(name)
        return make_frame(columns, self._frames, amounts=amounts, times=times, decimals=decimals)

    @property
    def summary(self) -> Mapping[str, Any]:
        """The report as a mapping, as in report.json."""
        summary: Mapping[str, Any] = json.loads(self._outcome.json())
        return summary

    @property
    def failures(self) -> Mapping[str, str]:
        """The strategies that failed, each with the traceback of its exception."""
        failures: Mapping[str, str] = self._outcome.failures()
        return failures

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes report.txt, report.json and report.html into a folder."""
        self._outcome.write_report(os.fspath(path))

    def __str__(self) -> str:
        return str(self._outcome.text())

    def __repr__(self) -> str:
        return f"<BacktestResult {self.ticks} ticks, hash {self.hash}>"


def backtest(strategy: Strategies, data: Any, *, config: Config = None, frames: Frames = "auto") -> BacktestResult:
    """Runs strategies over market data and returns the outcome.

    `strategy` is an object or a class that extends `Strategy`, or several of them. A class is
    created without arguments; an object keeps what it stores, so use a new one for each run. `data`
    is a path, a frame (pandas, polars, pyarrow or another with `__arrow_c_stream__`), or several of
    them, which are merged by time. Paths are files of any format that `pitlane simulate` reads:
    CSV, Parquet, Databento, NASDAQ ITCH, Binance. Frames have the columns of CSV files. `config` is
    a file of settings, several files, or a mapping such as `{"simulation.cash": 50_000}`.
    `[[strategy]]` sections of a file run too.

    A strategy that raises an exception fails alone: it is in `failures`, and the run goes on. The
    same data, settings and strategies give the same `hash`.
    """
    objects = _objects(strategy)
    outcome = run_strategies(objects, data_sources(data), run_settings(config))
    result = BacktestResult(outcome, objects, frames)
    for name, reason in result.failures.items():
        _log.error("strategy %s failed: %s", name, reason)
    return result


def load_engine() -> Any:
    """Returns the native engine, or says how it is installed."""
    try:
        import pitlane_engine
    except ImportError as error:
        raise ImportError(_MISSING) from error
    return pitlane_engine


def run_strategies(objects: Sequence[Strategy], data: Any, settings: RunSettings) -> Any:
    """Runs strategies and returns the outcome of the engine."""
    engine = load_engine()
    rows = [
        (name_of(one), kind, parameter_texts(one), bool(one.cancel_on_failure), one)
        for one, kind in zip(objects, _kinds(objects))
    ]
    return engine.run(rows, data, settings)


def _objects(strategy: Strategies) -> list[Strategy]:
    several: list[Any] = list(strategy) if isinstance(strategy, (list, tuple)) else [strategy]
    objects = [one() if isinstance(one, type) else one for one in several]
    for one in objects:
        if not isinstance(one, Strategy):
            raise TypeError(f"a strategy must extend pitlane.Strategy, and {type(one).__name__} does not")
    return objects


def _kinds(objects: Sequence[Strategy]) -> list[str]:
    """Returns the names of the classes, which reports show as kinds; each only once."""
    kinds: list[str] = []
    for one in objects:
        name = re.sub(r"[^A-Za-z0-9_]", "_", type(one).__name__)[:50]
        kinds.append(name if name not in kinds else f"{name}-{len(kinds) + 1}")
    return kinds


def run_settings(config: Config) -> RunSettings:
    if config is None:
        return RunSettings()
    if isinstance(config, Mapping):
        return RunSettings(options=tuple(_flat("", config)))
    if isinstance(config, (str, os.PathLike)):
        return RunSettings(files=(os.fspath(config),))
    return RunSettings(files=tuple(os.fspath(path) for path in config))


def _flat(prefix: str, settings: Mapping[str, Any]) -> Iterable[Tuple[str, str]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        elif isinstance(value, (bool, list, tuple)):
            yield f"{prefix}{key}", json.dumps(value)
        else:
            yield f"{prefix}{key}", str(value)


def data_sources(data: Any) -> List[Any]:
    """Returns paths, and frames with a name, in a form that the engine reads."""
    several = data if isinstance(data, (list, tuple)) else [data]
    sources: list[Any] = []
    for at, one in enumerate(several, start=1):
        if isinstance(one, (str, os.PathLike)):
            sources.append(os.fspath(one))
        elif hasattr(one, "__arrow_c_stream__"):
            sources.append((f"frame {at}", _checked(one)))
        else:
            raise TypeError(
                f"data must be paths or frames of pandas, polars or pyarrow, not {type(one).__name__}; "
                "a frame of pandas needs pandas 2.2 or later and pyarrow"
            )
    return sources


def _checked(frame: Any) -> Any:
    """Returns the frame in a form that the engine reads, or says what it needs."""
    package = type(frame).__module__.split(".")[0]
    if package == "pandas":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError("a frame of pandas as data needs pyarrow: pip install pyarrow") from error
    if package == "polars" and hasattr(frame, "with_columns"):
        import polars

        # A column without any value has no type of its own, and Rust cannot read such a column of
        # polars.
        return frame.with_columns(polars.col(polars.Null).cast(polars.Float64))
    return frame


def _scalars(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members that fit into one cell; those of nested objects have dotted names."""
    scalars: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            inner = _scalars(value).items()
            scalars.update({f"{name}.{key}": member for key, member in inner})
        elif not isinstance(value, list):
            scalars[name] = value
    return scalars
