"""Types of the native module. `pitlane.Context` and `pitlane.backtest` are the public interface."""

from datetime import datetime
from typing import Any, Mapping, Sequence

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

    def table(self, name: str) -> tuple[Mapping[str, Sequence[Any]], Sequence[str], Sequence[str]]:
        """Returns the columns of `orders`, `fills` or `equity`.

        The second value names the columns in units of 10⁻⁸, the third those in nanoseconds.
        """

    def write_report(self, folder: str) -> None:
        """Writes report.txt, report.json and report.html into a folder."""

def run(
    strategies: Sequence[tuple[str, str, Mapping[str, str], bool, Any]],
    sources: Sequence[str | tuple[str, Any]],
    files: Sequence[str],
    settings: Sequence[tuple[str, str]],
) -> Outcome:
    """Runs strategies over market data; `pitlane.backtest` prepares the arguments."""
