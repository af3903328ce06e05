"""The base class of strategies, the same for back-tests and live trading.

```python
class BuyTheDip(pitlane.Strategy):
    def on_phase(self, phase, context):
        if phase == "INIT":
            context.subscribe("AAPL")

    def on_tick(self, tick, context):
        if tick.last is not None and tick.last < 200 and context.position("AAPL").is_flat:
            context.buy("AAPL", 10)
```
"""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from .enums import Phase
from .strategy_context import Context
from .strategy_numbers import Decimals
from .strategy_values import Fill, OrderReport, Refusal, StrategyBar, StrategyTick, StrategyTransaction


class Strategy:
    """The class that an author extends. Every callback has an empty default.

    A callback that raises an exception stops this strategy, and only this one; the traceback is the
    reason. A strategy acts only through the `Context` of a callback, so it does the same over the
    same events in a back-test and live. Callbacks that the class does not override cost nothing.
    """

    name: str = ""
    """Name of the strategy; the name of the class if empty."""
    decimals: Decimals = "float"
    """"float", or "exact" for amounts as `Decimal`."""
    cancel_on_failure: bool = True
    """Whether its open orders are cancelled if it fails."""

    def parameters(self) -> Mapping[str, Any]:
        """Returns the parameters, which reports show.

        A dataclass has its fields as parameters.
        """
        if dataclasses.is_dataclass(self):
            return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {}

    def on_phase(self, phase: Phase, context: Context) -> None:
        """Handles the entry into a phase.

        In INIT the strategy subscribes to securities and bars. Orders are possible in RUNNING only.
        """

    def on_tick(self, tick: StrategyTick, context: Context) -> None:
        """Handles a tick of a subscribed security, in PREFEED and RUNNING."""

    def on_bar(self, bar: StrategyBar, context: Context) -> None:
        """Handles a completed bar, in PREFEED and RUNNING, before the tick that ended it."""

    def on_order_status(self, report: OrderReport, context: Context) -> None:
        """Handles a report about an order of the strategy."""

    def on_fill(self, fill: Fill, context: Context) -> None:
        """Handles a fill of an order of the strategy, after `on_order_status`."""

    def on_refused(self, refusal: Refusal, context: Context) -> None:
        """Handles a refused request, such as a cancel that came too late."""

    def on_transaction(self, transaction: StrategyTransaction, context: Context) -> None:
        """Handles a transaction of the strategy, including those of orders that others sent for it.

        The context has the position after it.
        """

    def on_generic(self, name: str, data: Any, context: Context) -> None:
        """Handles an event of another strategy or of a client."""

    def on_timer(self, timer: int, context: Context) -> None:
        """Handles a due timer."""


def name_of(strategy: Strategy) -> str:
    return strategy.name or type(strategy).__name__


def parameter_texts(strategy: Strategy) -> dict[str, str]:
    """Returns the parameters as texts, as the settings of a service have them."""
    return {str(name): parameter_text(value) for name, value in strategy.parameters().items()}


def parameter_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
