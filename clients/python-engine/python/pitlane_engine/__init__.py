"""The engine of Pitlane as a native extension. `pitlane.backtest` uses it."""

from .pitlane_native import Core, Outcome, Tick, __version__, run

__all__ = ["Core", "Outcome", "Tick", "__version__", "run"]
