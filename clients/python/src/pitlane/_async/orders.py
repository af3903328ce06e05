"""Calls that submit, modify, cancel and read orders.

Every order and every modification is sent with its own id, so that a lost response never creates a
second order: the client repeats the same request, and the service repeats its first response.
"""

from __future__ import annotations

import asyncio
from datetime import date, datetime
from time import monotonic
from typing import Any, Callable, Mapping, TypeVar

from ..call import PREFER_REPRESENTATION, Call, get, path_segment, read_nothing, reader_of, write
from ..enums import OrderStatus, OrderType, Side, TimeInForce
from ..errors import NotFound, OutcomeUnknown, Problem
from ..http.message import Response
from ..ids import new_order_id
from ..pace import OrderPace
from ..problems import raise_if_rejected
from ..refusals import DuplicateOrderId, OrderFinished, RequestPending
from ..requests import NewOrder, OrderChange, build_order
from ..settings import Settings
from ..values import Account, CanceledOrders, Order, OrderChanges, SecurityRef
from ..wire import Number, encode, render
from .securities import AsyncSecurityLookup

T = TypeVar("T")

_READ_ORDER = reader_of(Order)

_PATHS = {
    OrderType.MARKET: "market",
    OrderType.LIMIT: "limit",
    OrderType.STOP: "stop",
    OrderType.STOP_LIMIT: "stoplimit",
}


class AsyncOrders(AsyncSecurityLookup):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._order_pace = None if settings.orders_per_s is None else OrderPace(settings.orders_per_s)

    async def buy(
        self,
        security: SecurityRef,
        quantity: Number,
        *,
        limit: Number | None = None,
        stop: Number | None = None,
        tif: TimeInForce | None = None,
        tif_date: datetime | date | None = None,
        int_id: str | None = None,
        strategy: str | None = None,
        account_id: int | None = None,
    ) -> Order:
        """Submits a buy order.

        The prices determine its type: market, limit, stop or stop-limit.
        """
        return await self.submit(
            build_order(security, Side.BUY, quantity, limit, stop, tif, tif_date, int_id, strategy, account_id)
        )

    async def sell(
        self,
        security: SecurityRef,
        quantity: Number,
        *,
        limit: Number | None = None,
        stop: Number | None = None,
        tif: TimeInForce | None = None,
        tif_date: datetime | date | None = None,
        int_id: str | None = None,
        strategy: str | None = None,
        account_id: int | None = None,
    ) -> Order:
        """Submits a sell order, like `buy`."""
        return await self.submit(
            build_order(security, Side.SELL, quantity, limit, stop, tif, tif_date, int_id, strategy, account_id)
        )

    async def submit(self, order: NewOrder) -> Order:
        """Submits an order and returns its current state."""
        members = await self._members(order)
        try:
            return raise_if_rejected(await self._write(order, members, _READ_ORDER, PREFER_REPRESENTATION))
        except DuplicateOrderId as problem:
            # The client generated the id, so this is the order of the attempt whose response was
            # lost.
            if problem.repeated and order.int_id is None:
                return raise_if_rejected(await self.order(members["intId"]))
            raise

    async def send(self, order: NewOrder) -> str:
        """Submits an order without reading its state, and returns its id."""
        members = await self._members(order)
        try:
            await self._write(order, members, read_nothing, None)
        except DuplicateOrderId as problem:
            if not problem.repeated or order.int_id is not None:
                raise
        return str(members["intId"])

    async def validate(self, order: NewOrder) -> None:
        """Runs all checks of an order without submitting it.

        Raises the error with which the service would refuse the order.
        """
        security_id = await self._security_id(order.security_id)
        body = {"type": order.type, **encode(order), "securityId": security_id}
        await self._run(write("POST", "/rest/ext/execution/order/validate", body))

    async def modify(
        self,
        order: Order | str,
        *,
        quantity: Number | None = None,
        limit: Number | None = None,
        stop: Number | None = None,
        tif: TimeInForce | None = None,
        tif_date: datetime | date | None = None,
        new_int_id: str | None = None,
        account_id: int | None = None,
    ) -> Order:
        """Modifies an open order and returns it with its new id.

        A value of None stays unchanged.
        """
        change = OrderChange(quantity, limit, stop, tif, tif_date)
        if change == OrderChange():
            raise ValueError("modify needs at least one changed value")
        current = await self.order(order) if isinstance(order, str) else order
        new_id = new_int_id or await self._new_id(account_id or current.account_id)
        body = {"intId": current.int_id, "newIntId": new_id, "accountId": account_id, **encode(change)}
        path = f"/rest/execution/modify/order/{_PATHS[current.type]}"
        call = Call("POST", path, _READ_ORDER, body=render(body), headers=PREFER_REPRESENTATION)
        try:
            return await self._run(call)
        except OutcomeUnknown as unknown:
            unknown.int_id = new_id
            raise
        except (DuplicateOrderId, OrderFinished, RequestPending) as problem:
            return await self._modified_before(new_id, problem)

    async def cancel(self, order: Order | str, *, account_id: int | None = None, handle: str | None = None) -> None:
        """Requests the cancellation of an open order.

        `orders()` and `order(int_id)` report the outcome. If several open orders have the id, the
        error has `candidates`, each with its `handle`.
        """
        int_id = order if isinstance(order, str) else order.int_id
        asked = {"accountId": account_id, "handle": handle}
        query = {name: value for name, value in asked.items() if value is not None}
        try:
            await self._run(Call("DELETE", f"/rest/execution/order/{path_segment(int_id)}", read_nothing, query))
        except OutcomeUnknown as unknown:
            unknown.int_id = int_id
            raise
        except (OrderFinished, RequestPending) as problem:
            # A retry after a lost response: the first attempt has taken effect.
            ends = (OrderStatus.CANCELED, OrderStatus.PENDING_CANCEL)
            if not problem.repeated or (await self.order(int_id)).status not in ends:
                raise

    async def cancel_all(
        self,
        *,
        strategy: str | None = None,
        security: SecurityRef | None = None,
        side: Side | None = None,
    ) -> CanceledOrders:
        """Cancels all open orders, or those of a strategy, security and side, with one request.

        It waits for the venues up to ten seconds. Orders without an answer by then are counted as
        `pending`; an order whose cancel was pending before is not counted.
        """
        query: dict[str, str | int] = {"all": "true"}
        if strategy is not None:
            query["strategyName"] = strategy
        if security is not None:
            query["securityId"] = await self._security_id(security)
        if side is not None:
            query["side"] = side.value
        return await self._run(Call("DELETE", "/rest/execution/order", reader_of(CanceledOrders), query))

    async def open_orders(self, limit: int | None = None) -> list[Order]:
        """Returns all open orders."""
        return await self._run(get("/rest/execution/order", list[Order], limit=limit))

    async def order_history(self, limit: int | None = None) -> list[Order]:
        """Returns the orders that finished today, the latest first."""
        return await self._run(get("/rest/ext/order/history", list[Order], limit=limit))

    async def orders_with_id(self, int_id: str) -> list[Order]:
        """Returns all orders that have or had this id: several if two clients used the same id."""
        return await self._run(get(f"/rest/execution/order/{path_segment(int_id)}", list[Order]))

    async def order(self, int_id: str) -> Order:
        """Returns the current state of an order by any id that it has had.

        If a FIX client has used the same id, this returns the order that was entered over REST.
        """
        found = await self.orders_with_id(int_id)
        return next((order for order in found if order.source == "REST"), found[0])

    async def order_changes(self, order: Order | str, *, account_id: int | None = None) -> OrderChanges:
        """Returns what happened to an order, by any id that it has had.

        If several orders have had the id, this returns the changes of the one submitted last.
        """
        int_id = order if isinstance(order, str) else order.int_id
        call = get("/rest/ext/order/changes", OrderChanges, intId=int_id, accountId=account_id)
        return await self._run(call)

    async def next_order_id(self, account_id: int) -> str:
        """Returns an order id that the service never gives to another client."""
        call = Call("POST", "/rest/next-order-id", reader_of(str), body=render(account_id))
        return await self._run(call)

    async def _members(self, order: NewOrder) -> dict[str, Any]:
        """Returns the members of the JSON of an order, with its id and that of its security."""
        members: dict[str, Any] = encode(order)
        members["securityId"] = await self._security_id(order.security_id)
        if order.int_id is None:
            members["intId"] = await self._new_id(order.account_id)
        return members

    async def _write(
        self,
        order: NewOrder,
        members: dict[str, Any],
        read: Callable[[Response], T],
        headers: Mapping[str, str] | None,
    ) -> T:
        if self._order_pace is not None:
            delay_s = self._order_pace.delay_s(order.strategy_name, monotonic())
            if delay_s > 0:
                await asyncio.sleep(delay_s)
        path = f"/rest/execution/order/{_PATHS[order.type]}"
        try:
            return await self._run(Call("POST", path, read, body=render(members), headers=headers))
        except OutcomeUnknown as unknown:
            unknown.int_id = members["intId"]
            raise

    async def _modified_before(self, new_id: str, problem: Problem) -> Order:
        """Returns the order if the attempt whose response was lost has modified it."""
        if problem.repeated:
            try:
                return await self.order(new_id)
            except NotFound:
                pass
        raise problem

    async def _new_id(self, account_id: int | None) -> str:
        if self._settings.ids == "own":
            return new_order_id()
        if account_id is None:
            # The ids do not depend on the account, but the call requires one.
            accounts = await self._run(get("/rest/account", list[Account]))
            account_id = next(account.id for account in accounts if account.active)
        return await self.next_order_id(account_id)
