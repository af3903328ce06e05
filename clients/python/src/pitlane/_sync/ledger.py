# Derived from _async/ledger.py by tools/derive_sync.py: change that one.
"""Positions, transactions, cash, and what they are worth."""

from __future__ import annotations

import dataclasses
from uuid import uuid4

from ..call import PREFER_REPRESENTATION, Call, get, read_location_id, reader_of, write
from ..requests import NewTransaction
from ..retry import RetryRule
from ..values import CashBalance, Order, Portfolio, Position, Transaction
from ..wire import Number, decimal_text, render
from .rest import RestClient


class Ledger(RestClient):
    def positions(self) -> list[Position]:
        """All positions, at the market's prices."""
        return self._run(get("/rest/position", list[Position]))

    def close_position(self, position: Position | int, *, account_id: int | None = None) -> Order:
        """Sends a market order for all of it, and answers that order.

        The service gives the order its id, so a lost answer cannot be asked for again: `OutcomeUnknown`, then look.
        """
        return self._run(_closing("DELETE", f"/rest/position/{_id(position)}", None, account_id))

    def reduce_position(
        self, position: Position | int, quantity: Number, *, account_id: int | None = None
    ) -> Order:
        """The same for a part of it."""
        body = render({"quantity": decimal_text(quantity)})
        return self._run(_closing("POST", f"/rest/position/reduce/{_id(position)}", body, account_id))

    def reset_positions(self) -> None:
        """Has every position counted again from the transactions."""
        self._run(write("POST", "/rest/position/reset-positions"))

    def transactions(self, strategy: str | None = None, limit: int | None = None) -> list[Transaction]:
        """Those of the trading day, newest first."""
        return self._run(get("/rest/transaction/daily", list[Transaction], strategy=strategy, limit=limit))

    def transaction(self, transaction_id: int) -> Transaction:
        return self._run(get(f"/rest/transaction/{transaction_id:d}", Transaction))

    def record(self, transaction: NewTransaction) -> Transaction:
        """Records a transaction by hand, once, however often it must be asked; answers it as it was booked."""
        named = dataclasses.replace(transaction, uuid=transaction.uuid or str(uuid4()))
        booked = self._run(Call("POST", "/rest/transaction", read_location_id, body=render(named)))
        return self.transaction(booked)

    def cash(self) -> list[CashBalance]:
        """Cash of every strategy in every currency."""
        return self._run(get("/rest/ext/cash-balance", list[CashBalance]))

    def reset_cash_balances(self) -> None:
        """Has every cash balance counted again from the transactions."""
        self._run(write("POST", "/rest/transaction/reset-cash-balances"))

    def reset_cache_balances(self) -> None:
        """The same call under the specification's name."""
        self._run(write("POST", "/rest/transaction/reset-cache-balances"))

    def portfolio(self, strategy: str | None = None) -> Portfolio:
        """What a strategy, or all of them, own."""
        return self._run(get("/rest/ext/portfolio", Portfolio, strategy=strategy))


def _closing(method: str, path: str, body: bytes | None, account_id: int | None) -> Call[Order]:
    query = {} if account_id is None else {"accountId": account_id}
    return Call(method, path, reader_of(Order), query, body, PREFER_REPRESENTATION, RetryRule.ONLY_UNSENT)


def _id(position: Position | int) -> int:
    return position.id if isinstance(position, Position) else position
