"""Positions, transactions, cash and portfolios."""

from __future__ import annotations

from datetime import date
from uuid import uuid4

from ..call import PREFER_REPRESENTATION, Call, get, read_location_id, read_text, reader_of, write
from ..requests import NewTransaction
from ..retry import RetryRule
from ..values import CashBalance, Order, Portfolio, PortfolioSample, Position, Profit, ProfitDay, Transaction
from ..wire import Number, decimal_text, encode, render
from .securities import AsyncSecurityLookup


class AsyncLedger(AsyncSecurityLookup):
    async def positions(self) -> list[Position]:
        """Returns all positions, valued at market prices."""
        return await self._run(get("/rest/position", list[Position]))

    async def close_position(self, position: Position | int, *, account_id: int | None = None) -> Order:
        """Sends a market order that closes the position, and returns that order.

        The service chooses the id of the order, so the client cannot retry after a lost response.
        It raises `OutcomeUnknown` then; read the positions before you call this again.
        """
        return await self._run(_closing("DELETE", f"/rest/position/{_id(position)}", None, account_id))

    async def reduce_position(
        self, position: Position | int, quantity: Number, *, account_id: int | None = None
    ) -> Order:
        """Sends a market order that reduces the position by `quantity`, like `close_position`."""
        body = render({"quantity": decimal_text(quantity)})
        return await self._run(_closing("POST", f"/rest/position/reduce/{_id(position)}", body, account_id))

    async def reset_positions(self) -> None:
        """Recomputes every position from the transactions."""
        await self._run(write("POST", "/rest/position/reset-positions"))

    async def transactions(self, strategy: str | None = None, limit: int | None = None) -> list[Transaction]:
        """Returns the transactions of the trading day, newest first."""
        return await self._run(get("/rest/transaction/daily", list[Transaction], strategy=strategy, limit=limit))

    async def transaction(self, transaction_id: int) -> Transaction:
        """Returns one transaction."""
        return await self._run(get(f"/rest/transaction/{transaction_id:d}", Transaction))

    async def record(self, transaction: NewTransaction) -> Transaction:
        """Records a manual transaction and returns it as booked.

        The service books it once, even if the client has to retry.
        """
        members = {**encode(transaction), "uuid": transaction.uuid or str(uuid4())}
        if transaction.security_id is not None:
            members["securityId"] = await self._security_id(transaction.security_id)
        booked = await self._run(Call("POST", "/rest/transaction", read_location_id, body=render(members)))
        return await self.transaction(booked)

    async def cash(self) -> list[CashBalance]:
        """Returns the cash of every strategy in every currency."""
        return await self._run(get("/rest/ext/cash-balance", list[CashBalance]))

    async def reset_cash_balances(self) -> None:
        """Recomputes every cash balance from the transactions."""
        await self._run(write("POST", "/rest/transaction/reset-cash-balances"))

    async def reset_cache_balances(self) -> None:
        """Does the same as `reset_cash_balances`, under the path in the specification."""
        await self._run(write("POST", "/rest/transaction/reset-cache-balances"))

    async def portfolio(self, strategy: str | None = None) -> Portfolio:
        """Returns the portfolio of a strategy, or of all strategies together."""
        return await self._run(get("/rest/ext/portfolio", Portfolio, strategy=strategy))

    async def portfolio_history(self, strategy: str | None = None) -> list[PortfolioSample]:
        """Returns the value of the portfolio over the last four hours, oldest first."""
        return await self._run(get("/rest/ext/portfolio/history", list[PortfolioSample], strategy=strategy))

    async def profit(self, strategy: str | None = None, day: str | None = None) -> Profit:
        """Returns the profit of a trading day before and after fees, by strategy and security.

        `day` is a date (`YYYY-MM-DD`); without it the running day is meant.
        """
        return await self._run(get("/rest/ext/profit", Profit, strategy=strategy, day=day))

    async def profit_days(self, strategy: str | None = None) -> list[ProfitDay]:
        """Returns the profit of the trading days that have ended, newest first."""
        return await self._run(get("/rest/ext/profit/days", list[ProfitDay], strategy=strategy))

    async def report(
        self, strategy: str | None = None, *, start: date | str | None = None, end: date | str | None = None
    ) -> str:
        """Returns the report of live trading as an HTML page, with the plots of a back-test.

        `start` and `end` are the first and the last trading day (`YYYY-MM-DD`); without them all
        days that the service has kept are meant, and the running one.
        """
        query = {"strategy": strategy, "from": start, "to": end}
        given = {name: str(value) for name, value in query.items() if value is not None}
        return await self._run(Call("GET", "/rest/ext/report", read_text, given))


def _closing(method: str, path: str, body: bytes | None, account_id: int | None) -> Call[Order]:
    query = {} if account_id is None else {"accountId": account_id}
    return Call(method, path, reader_of(Order), query, body, PREFER_REPRESENTATION, RetryRule.ONLY_UNSENT)


def _id(position: Position | int) -> int:
    return position.id if isinstance(position, Position) else position
