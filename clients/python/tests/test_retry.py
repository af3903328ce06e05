"""A lost response never creates a second order. A proxy cuts the connections at random places."""

import asyncio
import socket
import threading
from collections import Counter

import pytest
from conftest import run, wait_until_finished
from pitlane import AsyncPitlane, NewTransaction, OutcomeUnknown, Pitlane, Refused, Retry, TransactionType, Unreachable
from pitlane.problems import TooManyRequests
from pitlane.refusals import BadLot, OrderRate
from proxy import Proxy

# Retries follow almost immediately; nine of ten connections may break in a row.
MANY_RETRIES = Retry(attempts=200, wait_s_first=0.0005, wait_s_max=0.002)
ORDERS = 60


@pytest.fixture()
def broken(new_service):
    service = new_service("feed.on=true").start()
    proxies = []

    def make(seed):
        proxies.append(Proxy(service.addresses["http"], seed))
        return service, proxies[-1]

    yield make
    for proxy in proxies:
        proxy.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_every_order_is_created_once(broken, seed):
    service, proxy = broken(seed)
    with Pitlane(f"http://{proxy.address}", retry=MANY_RETRIES) as client:
        resting = [client.buy(1, 1, limit=100 + number) for number in range(ORDERS)]
        bought = [client.buy(2, 1) for _ in range(ORDERS)]
        changed = [client.modify(order, quantity=2) for order in resting]
        for order in changed[::2]:
            client.cancel(order)
        refused = 0
        for _ in range(10):
            with pytest.raises(BadLot):
                client.buy(1, "0.5", limit=100)
            refused += 1
        credits = [client.record(NewTransaction(TransactionType.CREDIT, 1, currency="USD")) for _ in range(10)]
    assert proxy.cuts > ORDERS / 2
    with Pitlane(service.url) as direct:
        wait_until_finished(direct, *bought)
        open_orders, history = direct.open_orders(), direct.order_history()
        transactions = direct.transactions()
    assert {order.int_id for order in open_orders} == {order.int_id for order in changed[1::2]}
    # Each order was modified once: the previous id is that of the submission.
    assert {order.orig_int_id for order in open_orders} == {order.int_id for order in resting[1::2]}
    assert all(order.quantity == 2 for order in open_orders)
    outcomes = Counter(order.status.value for order in history)
    assert outcomes == {"CANCELED": len(changed[::2]), "FILLED": ORDERS, "REJECTED": refused}
    fills = [row.order_int_id for row in transactions if row.type is TransactionType.BUY]
    assert sorted(fills) == sorted(order.int_id for order in bought)
    credited = [row.id for row in transactions if row.type is TransactionType.CREDIT]
    assert sorted(credited) == sorted(credit.id for credit in credits)


def test_concurrent_orders_are_created_once(broken):
    service, proxy = broken(3)

    async def trade():
        async with AsyncPitlane(f"http://{proxy.address}", retry=MANY_RETRIES) as client:
            return await asyncio.gather(*(client.buy(1, 1, limit=100) for _ in range(ORDERS)))

    made = {order.int_id for order in run(trade())}
    assert proxy.cuts > 0
    with Pitlane(service.url) as direct:
        assert {order.int_id for order in direct.open_orders()} == made
        assert len(direct.open_orders()) == len(made) == ORDERS


def test_a_request_that_is_not_idempotent_is_not_repeated(broken):
    """The service chooses the id of an order that reduces a position, so a retry is not safe."""
    service, proxy = broken(4)
    with Pitlane(service.url) as direct, Pitlane(f"http://{proxy.address}", retry=MANY_RETRIES) as client:
        direct.record(NewTransaction(TransactionType.BUY, "230", security_id=1, quantity=1000))
        (position,) = direct.positions()
        known, unknown = set(), 0
        for _ in range(40):
            try:
                known.add(client.reduce_position(position, 1).int_id)
            except OutcomeUnknown:
                unknown += 1
        assert known and unknown
        made = {order.int_id for order in [*direct.open_orders(), *direct.order_history()]}
        assert known <= made
        assert len(made) <= len(known) + unknown


def test_a_retry_after_a_restart_returns_the_same_order(new_service):
    """The response is lost because the service is killed and restarted: there is one order."""
    service = new_service().start()
    with Pitlane(service.url, retry=Retry(attempts=100, wait_s_first=0.02, wait_s_max=0.05)) as client:
        order = client.buy(1, 1, limit=100)
        service.end(9)
        starting = threading.Thread(target=service.start)
        starting.start()
        again = client.buy(1, 1, limit=100, int_id=order.int_id)
        starting.join()
        assert again.int_id == order.int_id and len(client.open_orders()) == 1


def test_a_retry_after_a_restart_returns_the_same_refusal(new_service):
    """A refused order stays refused after a restart, and no order is created."""
    service = new_service().start()
    with Pitlane(service.url, retry=Retry(attempts=100, wait_s_first=0.02, wait_s_max=0.05)) as client:
        for _ in range(2):
            with pytest.raises(Refused):
                client.buy(1, "0.5", limit=100, int_id="half-a-share")
            service.end(9)
            service.start()
        assert client.open_orders() == [] and len(client.order_history()) == 1


def test_a_throttled_client_waits_for_retry_after(new_service):
    service = new_service("http.rate_per_peer=20").start()
    with Pitlane(service.url, retry=Retry(attempts=1)) as hasty, pytest.raises(TooManyRequests) as caught:
        for _ in range(1000):
            hasty.accounts()
    assert caught.value.status == 429 and caught.value.retry_after_s
    with Pitlane(service.url) as patient:
        assert len({len(patient.accounts()) for _ in range(10)}) == 1


def test_orders_stay_below_the_limit_of_the_strategy(new_service):
    service = new_service("risk.strategies.max_orders_per_s=10", "topology.shards=1").start()
    with Pitlane(service.url, orders_per_s=10) as client:
        assert len({client.buy("AAPL", 1, limit=10).int_id for _ in range(15)}) == 15
    with Pitlane(service.url) as hasty, pytest.raises(OrderRate):
        for _ in range(50):
            hasty.buy("AAPL", 1, limit=10)


def test_a_service_that_does_not_run_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with Pitlane(f"http://{address}", retry=Retry(attempts=2, wait_s_first=0)) as client:
        with pytest.raises(Unreachable):
            client.buy(1, 1)


def test_a_lost_response_names_the_order():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with Pitlane(f"http://{address}", retry=Retry(attempts=2, wait_s_first=0), timeout_s=0.05) as client:
            with pytest.raises(OutcomeUnknown) as caught:
                client.buy(1, 1, int_id="lost-1")
            assert caught.value.int_id == "lost-1"
            with pytest.raises(Unreachable):
                client.positions()
