"""One service for all tests that leave it as it is; those that end or ruin one start their own."""

import asyncio
from typing import Any, Awaitable, Callable, Iterator, TypeVar

import pytest
from service import Service

from pitlane import Order, OrderUpdate, Pitlane

T = TypeVar("T")

PATIENCE_S = 20
"""For what must come; nothing takes that long."""


@pytest.fixture(scope="session")
def shared() -> Iterator[Service]:
    service = Service().start()
    yield service
    service.remove()


@pytest.fixture()
def client(shared: Service) -> Iterator[Pitlane]:
    with Pitlane(shared.url) as client:
        yield client


@pytest.fixture()
def own() -> Iterator[Callable[..., Service]]:
    """Makes services that are this test's alone."""
    made: list[Service] = []

    def make(*settings: str) -> Service:
        made.append(Service(*settings))
        return made[-1]

    yield make
    for service in made:
        service.remove()


def ended(client: Pitlane, *orders: Order) -> list[Order]:
    """These orders when they have ended: a market order waits for somebody to trade with."""
    with client.orders() as updates:
        left = {order.int_id for order in orders if client.order(order.int_id).is_open}
        while left:
            update = updates.get(timeout_s=PATIENCE_S)
            if isinstance(update, OrderUpdate) and update.status.is_finished:
                left.discard(update.int_id)
    return [client.order(order.int_id) for order in orders]


def run(work: Awaitable[T], seconds: float = 30) -> T:
    """A test for asyncio, which never hangs."""

    async def limited() -> Any:
        return await asyncio.wait_for(work, seconds)

    return asyncio.run(limited())
