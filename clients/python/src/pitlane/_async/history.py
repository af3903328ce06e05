"""The past of the market: bars, ticks, and the newest prices beside those of the day before."""

from __future__ import annotations

from datetime import date, datetime
from typing import Iterable, Literal, TypeVar

from ..call import get, page_at, page_of
from ..market_values import Depth, DepthMessage, HistoryBar, HistoryTick, Quote, depth_after
from ..values import SecurityRef
from ..wire import format_time
from .securities import AsyncSecurityLookup

T = TypeVar("T")

BarInterval = Literal["1s", "1m", "1d"]

# The most rows that the service puts into one response.
_PAGE_ROWS_MAX = 10_000
# Rows without a range and without a limit.
_ROWS = 1_000


class AsyncHistory(AsyncSecurityLookup):
    async def bars(
        self,
        security: SecurityRef,
        interval: BarInterval = "1m",
        *,
        start: datetime | date | None = None,
        end: datetime | date | None = None,
        limit: int | None = None,
    ) -> list[HistoryBar]:
        """Returns bars of a security in order of time: of a second, a minute or a trading day.

        With `start` these are the first `limit` bars that begin at `start` or later and before
        `end`, and all of them without `limit`. Without `start` they are the last `limit` bars, at
        most 1000 without `limit`. A date is its beginning in UTC. An interval without trades has no
        bar; a bar that is not `complete` may still change.
        """
        query: dict[str, object] = {"securityId": await self._security_id(security), "interval": interval}
        return await self._rows("/rest/ext/bars", HistoryBar, query, start, end, limit)

    async def tick_history(
        self,
        security: SecurityRef,
        *,
        start: datetime | date | None = None,
        end: datetime | date | None = None,
        limit: int | None = None,
    ) -> list[HistoryTick]:
        """Returns recent ticks of a security in order of time; the arguments are those of `bars`.

        `ticks` subscribes to the ticks that follow.
        """
        query: dict[str, object] = {"securityId": await self._security_id(security)}
        return await self._rows("/rest/ext/ticks", HistoryTick, query, start, end, limit)

    async def quote(self, security: SecurityRef) -> Quote:
        """Returns the newest prices of a security and those of its trading day."""
        (found,) = await self.quotes([security])
        return found

    async def quotes(self, securities: Iterable[SecurityRef] | None = None) -> list[Quote]:
        """Returns the quotes of these securities, or of all that have ever had a price."""
        query = {}
        if securities is not None:
            ids = [str(await self._security_id(security)) for security in securities]
            if not ids:
                return []
            query["securityId"] = ",".join(ids)
        return (await self._run(page_of("/rest/ext/quote", Quote, query))).rows

    async def depth(self, security: SecurityRef, *, since: Depth | None = None) -> Depth:
        """Returns the price levels of a security.

        With `since`, an earlier result for the same security, the service sends only what has
        changed after it.
        """
        path = f"/rest/ext/depth/{await self._security_id(security)}"
        message = await self._run(get(path, DepthMessage, since=since.seq if since else None))
        return depth_after(message, since)

    async def _rows(
        self,
        path: str,
        kind: type[T],
        query: dict[str, object],
        start: datetime | date | None,
        end: datetime | date | None,
        limit: int | None,
    ) -> list[T]:
        """Reads as many pages as are needed for the rows."""
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be above zero, not {limit}")
        if limit is None and start is None:
            limit = _ROWS
        query["limit"] = _PAGE_ROWS_MAX if limit is None else min(limit, _PAGE_ROWS_MAX)
        for name, at in (("from", start), ("to", end)):
            if at is not None:
                query[name] = format_time(at) if isinstance(at, datetime) else at.isoformat()
        page = await self._run(page_of(path, kind, query))
        rows = page.rows
        while page.link is not None and (limit is None or len(rows) < limit):
            page = await self._run(page_at(page.link, kind))
            rows = page.rows + rows if start is None else rows + page.rows
        if limit is None:
            return rows
        return rows[-limit:] if start is None else rows[:limit]
