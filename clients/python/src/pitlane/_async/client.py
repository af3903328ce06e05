"""The client, which combines all groups of calls in one class."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..dataframes import DECIMALS, Decimals, to_dataframe, to_polars
from ..retry import Retry
from ..settings import Ids, Settings, Transport, Verify
from .history import AsyncHistory
from .ledger import AsyncLedger
from .operation import AsyncOperation
from .orders import AsyncOrders
from .reference import AsyncReference
from .streams import AsyncStreams

if TYPE_CHECKING:
    import pandas
    import polars


class AsyncPitlane(AsyncReference, AsyncHistory, AsyncOrders, AsyncLedger, AsyncOperation, AsyncStreams):
    """A client of one service. Use it as a context manager, or call `close()`."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:9090",
        *,
        login: tuple[str, str] | None = None,
        token: str | None = None,
        verify: Verify = True,
        transport: Transport = "tcp",
        broker: str | None = None,
        ids: Ids = "own",
        retry: Retry = Retry(),
        timeout_s: float = 10.0,
        orders_per_s: int | None = None,
        heart_beat_s: float = 5.0,
    ) -> None:
        super().__init__(
            Settings(
                base_url, login, token, verify, transport, broker, ids, retry, timeout_s, orders_per_s, heart_beat_s
            )
        )

    async def dataframe(self, what: str, *, decimals: Decimals = DECIMALS, **arguments: Any) -> pandas.DataFrame:
        """Returns the result of a call as a table.

        `what` is securities, families, accounts, exchanges, strategies, orders (the open orders),
        history, positions, transactions, cash, adapters, alerts, sessions, latency, bars, ticks or
        quotes. Amounts are floats; `decimals="exact"` keeps them `Decimal`. Further arguments are
        passed to the call.
        """
        return to_dataframe(await self._table(what, arguments), decimals=decimals)

    async def polars(self, what: str, *, decimals: Decimals = DECIMALS, **arguments: Any) -> polars.DataFrame:
        """Returns the result of a call as a table of polars, like `dataframe`."""
        return to_polars(await self._table(what, arguments), decimals=decimals)

    async def _table(self, what: str, arguments: dict[str, Any]) -> list[Any]:
        calls = {"orders": "open_orders", "history": "order_history", "ticks": "tick_history"}
        if what not in _TABLES:
            raise ValueError(f"unknown table {what!r}: expected one of {', '.join(_TABLES)}")
        rows: list[Any] = await getattr(self, calls.get(what, what))(**arguments)
        return rows

    async def close(self) -> None:
        """Ends all subscriptions and closes all connections."""
        await self._subscriptions.close()
        await self._http.aclose()

    async def __aenter__(self) -> AsyncPitlane:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


_TABLES = (
    "securities",
    "families",
    "accounts",
    "exchanges",
    "strategies",
    "orders",
    "history",
    "positions",
    "transactions",
    "cash",
    "adapters",
    "alerts",
    "sessions",
    "latency",
    "bars",
    "ticks",
    "quotes",
)
