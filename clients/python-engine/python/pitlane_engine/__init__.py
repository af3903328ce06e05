"""The engine of Pitlane as a native extension. `pitlane.backtest` and `pitlane.sweep` use it."""

from .pitlane_native import (
    Core,
    Outcome,
    SearchOutcome,
    Tick,
    TickData,
    __version__,
    read_data,
    run,
    search,
    search_kinds,
)

__all__ = [
    "Core",
    "Outcome",
    "SearchOutcome",
    "Tick",
    "TickData",
    "__version__",
    "read_data",
    "run",
    "search",
    "search_kinds",
]
