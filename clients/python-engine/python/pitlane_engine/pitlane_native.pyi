"""Types of the native module. `pitlane.Context` and `pitlane.backtest` are the public interface."""

from datetime import datetime
from typing import Any, Callable, Mapping, Protocol, Sequence

__version__: str

class Tick:
    """The current market of a security, with the attributes of `pitlane.StrategyTick`."""

    @property
    def security_id(self) -> int: ...
    @property
    def symbol(self) -> str: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def time(self) -> datetime: ...
    @property
    def bid(self) -> float | None: ...
    @property
    def bid_size(self) -> float | None: ...
    @property
    def ask(self) -> float | None: ...
    @property
    def ask_size(self) -> float | None: ...
    @property
    def last(self) -> float | None: ...
    @property
    def last_size(self) -> float | None: ...
    @property
    def volume(self) -> float: ...
    @property
    def mid(self) -> float | None: ...
    @property
    def price(self) -> float | None: ...

class Core:
    """The core of a context; `pitlane.strategy_context.Core` describes its methods."""

class Outcome:
    """A finished run."""

    def hash(self) -> str:
        """Returns the hash of the run as 16 hexadecimal digits."""

    def speed(self) -> tuple[int, float]:
        """Returns the number of ticks, and the seconds that the run took."""

    def text(self) -> str:
        """Returns the report as text."""

    def json(self) -> str:
        """Returns the report as JSON."""

    def failures(self) -> Mapping[str, str]:
        """Returns the strategies that failed, each with its reason."""

    def figures(self, strategy: str) -> str | tuple[Any, ...]:
        """Returns the figures of a strategy, or the reason why it failed."""

    def table(self, name: str) -> tuple[Mapping[str, Sequence[Any]], Sequence[str], Sequence[str]]:
        """Returns the columns of `orders`, `fills` or `equity`.

        The second value names the columns in units of 10⁻⁸, the third those in nanoseconds.
        """

    def write_report(self, folder: str) -> None:
        """Writes report.txt, report.json and report.html into a folder."""

class TickData:
    """Market data that were read once for all runs of a search."""

    def period(self) -> tuple[int, int]:
        """Returns begin and end of the period that windows divide, in nanoseconds."""

class SearchOutcome:
    """A finished search."""

    def state(self) -> tuple[int, bool]:
        """Returns the number of planned runs, and whether the search was stopped."""

    def best(self) -> int | None:
        """Returns the number of the best combination."""

    def tested_return(self) -> float | None:
        """Returns the return of all tests of a walk-forward search."""

    def runs(self) -> tuple[dict[str, Sequence[Any]], Sequence[str], Sequence[str]]:
        """Returns the columns of the runs, the best first, as `Outcome.table` does."""

    def windows(self) -> tuple[dict[str, Sequence[Any]], Sequence[str], Sequence[str]]:
        """Returns the columns of the windows of a walk-forward search."""

    def text(self) -> str:
        """Returns the results as text."""

    def write(self, folder: str) -> None:
        """Writes sweep.txt, sweep.csv, sweep.json and sweep.html into a folder."""

class RunSettings(Protocol):
    """Settings of one run; `pitlane.backtest_run.RunSettings` describes the attributes."""

    files: Sequence[str]
    options: Sequence[tuple[str, str]]
    parameters: Sequence[tuple[str, str]]
    window: tuple[int, int] | None
    is_figures_only: bool

class SearchSettings(Protocol):
    """What is searched, and how."""

    grid: Sequence[tuple[str, Sequence[str]]]
    sort: str
    jobs: int | None
    walk_forward: str | None

def run(
    strategies: Sequence[tuple[str, str, Mapping[str, str], bool, Any]],
    data: TickData | Sequence[str | tuple[str, Any]],
    settings: RunSettings,
) -> Outcome:
    """Runs strategies over market data; `pitlane.backtest` prepares the arguments."""

def read_data(sources: Sequence[str | tuple[str, Any]], settings: RunSettings) -> TickData:
    """Reads market data for the runs of a search."""

def search(
    settings: SearchSettings,
    period: tuple[int, int],
    run_all: Callable[[Sequence[tuple[int, tuple[int, int] | None]], int], Sequence[str | tuple[Any, ...] | None]],
    create: str,
) -> SearchOutcome:
    """Searches the parameters of a strategy in Python; `run_all` does the runs of a plan."""

def search_kinds(
    settings: RunSettings, ticks: TickData, search: SearchSettings, progress: Callable[[int, int], object] | None
) -> SearchOutcome:
    """Searches the parameters of strategies of the settings in threads of this process."""
