"""Orders: submit, modify, cancel, and the errors."""

import contextlib
import dataclasses
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from conftest import TIMEOUT_S, run, wait_until_finished
from pitlane import (
    AsyncPitlane,
    CanceledOrders,
    Conflict,
    ExecType,
    LimitOrder,
    MarketOrder,
    NewTransaction,
    NotFound,
    OrderStatus,
    OrderType,
    Pitlane,
    Refused,
    Side,
    StopLimitOrder,
    TimeInForce,
    TransactionType,
)
from pitlane.problems import BadBody
from pitlane.refusals import BadLot, DuplicateOrderId, NoAuctionAhead, OrderFinished, UnknownOrder, UnknownSecurity


def test_the_prices_determine_the_type_of_an_order(client):
    kinds = {
        OrderType.MARKET: {},
        OrderType.LIMIT: {"limit": "10.25"},
        OrderType.STOP: {"stop": "9999.5"},
        OrderType.STOP_LIMIT: {"stop": "9999.5", "limit": Decimal("10000")},
    }
    for kind, prices in kinds.items():
        order = client.buy(2, 1, **prices)
        assert order.type is kind
        assert {name: getattr(order, name) for name in prices} == {
            name: Decimal(price) for name, price in prices.items()
        }
        assert order.date_time.utcoffset() == timedelta(0)
        if order.is_open:
            # The market order may be filled first.
            with contextlib.suppress(OrderFinished):
                client.cancel(order)


def test_a_security_is_named_by_id_by_symbol_or_by_itself(client):
    apple = client.security("AAPL")
    assert apple == client.security(apple) == client.security(apple.id)
    orders = [client.buy(named, 1, limit=10) for named in (apple.id, "AAPL", apple)]
    orders.append(client.submit(LimitOrder("AAPL", Side.BUY, 1, 10)))
    assert {order.security_id for order in orders} == {apple.id}
    client.validate(MarketOrder("AAPL", Side.BUY, 1))
    client.subscribe_market_data("AAPL")
    booked = client.record(NewTransaction(TransactionType.BUY, "230", security_id="AAPL", quantity=1))
    assert booked.security_id == apple.id
    assert client.cancel_all(security="AAPL").canceled == len(orders)
    assert not any(client.order(order.int_id).is_open for order in orders)
    with client.ticks("AAPL") as by_symbol, client.ticks(apple) as by_itself:
        assert by_symbol.pattern == by_itself.pattern == f"tick.{apple.id}"
        assert by_symbol.get(timeout_s=TIMEOUT_S).symbol == "AAPL"
    for unknown in ("AAP", "aapl", "", 'A"B', "A B", "ä"):
        with pytest.raises(UnknownSecurity, match="no security with the symbol"):
            client.buy(unknown, 1, limit=10)


def test_a_symbol_is_looked_up_once(client, monkeypatch):
    targets, request = [], client._http.request

    def record(method, target, headers, body):
        targets.append(target.partition("?")[0])
        return request(method, target, headers, body)

    monkeypatch.setattr(client._http, "request", record)
    for _ in range(3):
        client.cancel(client.buy("MSFT", 1, limit=10))
    assert targets.count("/rest/security.search") == 1


def test_a_symbol_of_several_securities_is_an_error(client, monkeypatch):
    apple = client.security("AAPL")
    # The reference data of the tests has no such symbol, so the response of the search is replaced.
    monkeypatch.setattr(client, "_run", lambda call: [apple, dataclasses.replace(apple, id=77, exchange_id=5)])
    client._ids.clear()
    with pytest.raises(ValueError, match=r"one of the ids 1 \(exchange 1\), 77 \(exchange 5\)"):
        client.buy("AAPL", 1)


def test_every_time_in_force_is_accepted(client):
    soon = datetime.now(timezone.utc) + timedelta(hours=1)
    for tif in TimeInForce:
        order = LimitOrder(40, Side.BUY, 1000, "0.5", tif, soon if tif is TimeInForce.GTD else None)
        if tif in (TimeInForce.ATO, TimeInForce.ATC):
            # Currencies have no auctions.
            with pytest.raises(NoAuctionAhead):
                client.submit(order)
            continue
        answer = client.submit(order)
        assert answer.tif is tif
        assert answer.is_open is (tif not in (TimeInForce.IOC, TimeInForce.FOK))
        if tif is TimeInForce.GTD:
            assert answer.tif_date == soon
    assert client.cancel_all(security=40).canceled == 3


def test_a_modified_order_has_a_new_id_and_is_found_by_the_old_one(client):
    first = client.buy(3, 10, limit=100, strategy="MOMENTUM")
    second = client.modify(first.int_id, quantity=5, limit="101.5")
    assert (second.orig_int_id, second.quantity, second.limit) == (first.int_id, 5, Decimal("101.5"))
    assert client.order(first.int_id) == second
    third = client.modify(second, limit=102, new_int_id=f"{first.int_id}-c")
    assert third.int_id == f"{first.int_id}-c"
    client.cancel(first.int_id)
    assert client.order(third.int_id).status is OrderStatus.CANCELED
    with pytest.raises(OrderFinished):
        client.cancel(third)
    with pytest.raises(OrderFinished):
        client.modify(third, limit=103)
    with pytest.raises(ValueError):
        client.modify(third)


def test_the_changes_of_an_order_have_its_former_limit(client):
    first = client.buy(3, 10, limit=100)
    second = client.modify(first, limit="101.5")
    client.cancel(second)
    assert client.order(second.int_id).status is OrderStatus.CANCELED
    changes = client.order_changes(first.int_id, account_id=first.account_id)
    assert changes == client.order_changes(second)
    assert (changes.int_id, changes.date_time, changes.complete) == (second.int_id, first.date_time, True)
    limits = {change.exec_type: change.limit for change in changes.changes}
    assert limits[ExecType.NEW] == 100
    assert limits[ExecType.REPLACED] == limits[ExecType.CANCELED] == Decimal("101.5")
    with pytest.raises(NotFound):
        client.order_changes("never sent")


def test_send_returns_only_the_id(client):
    int_id = client.send(StopLimitOrder(3, Side.BUY, 1, limit=9999, stop=9998))
    assert client.order(int_id).type is OrderType.STOP_LIMIT
    client.cancel(int_id)


def test_cancel_all_cancels_the_orders_of_a_strategy_or_security(client):
    of_pairs = [client.buy(4, 1, limit=price, strategy="PAIRS").int_id for price in (10, 11)]
    other = client.buy(4, 1, limit=12, strategy="MARKET_MAKER")
    assert client.cancel_all(strategy="PAIRS", security=4, side=Side.SELL).canceled == 0
    assert client.cancel_all(strategy="PAIRS", security=4) == CanceledOrders(2, 0, 0, 0, True, [])
    assert not any(client.order(int_id).is_open for int_id in of_pairs)
    assert client.order(other.int_id).is_open
    assert client.cancel_all(security=4).canceled == 1
    with pytest.raises(NotFound):
        client.cancel_all(strategy="NOBODY")


def test_an_id_creates_one_order(client):
    order = LimitOrder(5, Side.BUY, 1, 10, int_id="mine-1")
    first = client.submit(order)
    assert client.submit(order) == first
    with pytest.raises(DuplicateOrderId) as caught:
        client.submit(dataclasses.replace(order, limit=11))
    assert (caught.value.status, caught.value.reason, caught.value.field) == (422, "duplicate-order-id", "intId")
    assert not caught.value.repeated
    client.cancel("mine-1")


def test_the_service_can_create_the_ids(shared):
    with Pitlane(shared.url, ids="service") as client:
        order = client.buy(5, 1, limit=10)
        assert order.int_id.startswith("r")
        assert client.modify(order, limit=11).int_id.startswith("r")
        client.cancel(order)


def test_any_printable_text_is_a_valid_id(client):
    for odd in ("..", "a/b", "a%2Fb", "ä"[:0] + "x?y#z", "a.b*c>"):
        order = client.buy(5, 1, limit=10, int_id=odd)
        assert client.order(odd).int_id == order.int_id == odd
        client.cancel(odd)


def test_each_reason_of_a_refusal_has_its_own_exception(client):
    with pytest.raises(BadLot) as caught:
        client.buy(1, "0.5", limit=100)
    problem = caught.value
    assert isinstance(problem, Refused)
    assert (problem.status, problem.reason, problem.field) == (422, "bad-lot", "quantity")
    assert "lot size" in problem.message and problem.request_id
    assert client.order(problem.int_id).status is OrderStatus.REJECTED
    with pytest.raises(BadLot):
        client.validate(MarketOrder(1, Side.BUY, "0.5"))
    with pytest.raises(UnknownSecurity) as unknown:
        client.security(999)
    assert isinstance(unknown.value, NotFound) and unknown.value.status == 404
    with pytest.raises(UnknownOrder):
        client.order("unknown")
    with pytest.raises(BadBody) as bad:
        client.submit(MarketOrder(1, "HOLD", 1))
    assert bad.value.status == 400
    with pytest.raises(TypeError):
        client.buy(1, 0.5)


def test_a_flat_position_cannot_be_closed(client):
    wait_until_finished(client, client.sell(10, 3, strategy="PAIRS"))
    position = next(row for row in client.positions() if (row.security_id, row.strategy_name) == (10, "PAIRS"))
    assert position.quantity == -3
    (closing,) = wait_until_finished(client, client.close_position(position.id))
    assert (closing.side, closing.quantity, closing.status) == (Side.BUY, 3, OrderStatus.FILLED)
    with pytest.raises(Conflict):
        client.close_position(position)


def test_orders_work_with_asyncio(shared):
    async def trade():
        async with AsyncPitlane(shared.url) as client:
            order = await client.buy("MSFT", 1, limit=10)
            async with client.ticks("MSFT") as ticks:
                assert (await ticks.get(timeout_s=TIMEOUT_S)).symbol == "MSFT"
            with pytest.raises(UnknownSecurity):
                await client.ticks("NONE").get(timeout_s=TIMEOUT_S)
            order = await client.modify(order, limit="10.5")
            await client.cancel(order)
            with pytest.raises(BadLot):
                await client.sell(6, "0.1")
            return await client.order(order.int_id)

    assert run(trade()).status is OrderStatus.CANCELED
