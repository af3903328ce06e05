"""Fixtures: one service shared by all tests that leave it intact, and services for single tests."""

import asyncio
from typing import Any, Awaitable, Callable, Iterator, TypeVar

import pytest
from pitlane import Order, OrderUpdate, Pitlane
from service import Service

T = TypeVar("T")

TIMEOUT_S = 20
"""Limit for events that must arrive; none takes that long."""


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
def new_service() -> Iterator[Callable[..., Service]]:
    """Creates services that only this test uses."""
    made: list[Service] = []

    def make(*settings: str, config: str = "") -> Service:
        made.append(Service(*settings, config=config))
        return made[-1]

    yield make
    for service in made:
        service.remove()


def wait_until_finished(client: Pitlane, *orders: Order) -> list[Order]:
    """Returns the orders once they are finished. A market order may wait for liquidity."""
    with client.orders() as updates:
        left = {order.int_id for order in orders if client.order(order.int_id).is_open}
        while left:
            update = updates.get(timeout_s=TIMEOUT_S)
            if isinstance(update, OrderUpdate) and update.status.is_finished:
                left.discard(update.int_id)
    return [client.order(order.int_id) for order in orders]


def run(work: Awaitable[T], seconds: float = 30) -> T:
    """Runs an asyncio test with a time limit."""

    async def limited() -> Any:
        return await asyncio.wait_for(work, seconds)

    return asyncio.run(limited())
