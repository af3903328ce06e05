"""Subscriptions for asyncio. The `BrokerClient` runs in the event loop of the caller."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Awaitable, Callable, Generic, TypeVar, cast

from ..errors import Closed, PitlaneError, StreamLost
from ..events import StreamItem
from ..settings import Settings
from ..topics import check
from .broker_client import BrokerClient, not_confirmed
from .subscription_state import SubscriptionState

E = TypeVar("E", bound=StreamItem)

UNRESOLVED = "?"
"""The pattern of a subscription while it is being looked up."""


class _LoopCondition:
    """A condition for one event loop. It needs no lock, because everything runs in one thread."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def notify_all(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        self._event.clear()
        await self._event.wait()


class AsyncSubscription(Generic[E]):
    """A subscription: `async for event in subscription` reads it, and `async with` closes it."""

    def __init__(
        self, broker: BrokerClient, condition: _LoopCondition, state: SubscriptionState, timeout_s: float
    ) -> None:
        self._broker, self._condition = broker, condition
        self._state, self._timeout_s = state, timeout_s

    @property
    def pattern(self) -> str:
        return self._state.pattern

    @property
    def replaced(self) -> int:
        """Number of events that newer events replaced before they were read."""
        return self._state.replaced

    async def ready(self) -> None:
        """Waits until the broker has confirmed the subscription. No later event is missed."""
        try:
            await asyncio.wait_for(self._settled(), self._timeout_s)
        except asyncio.TimeoutError:
            await self.close()
            raise not_confirmed(self.pattern, self._timeout_s, self._broker) from None

    async def get(self, timeout_s: float | None = None) -> E:
        """Returns the next event.

        Raises `TimeoutError` if none arrives in time, and `Closed` after the end.
        """
        try:
            return await asyncio.wait_for(self._next(), timeout_s)
        except asyncio.TimeoutError:
            raise TimeoutError(f"no event of {self.pattern!r} within {timeout_s:g} s") from None

    async def close(self) -> None:
        """Ends the subscription."""
        self._broker.remove(self._state)
        self._state.end()

    def __aiter__(self) -> AsyncSubscription[E]:
        return self

    async def __anext__(self) -> E:
        try:
            return await self._next()
        except Closed:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> AsyncSubscription[E]:
        await self.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _next(self) -> E:
        if not self._state.is_settled:
            await self.ready()
        while (item := self._state.take()) is None:
            await self._condition.wait()
        return cast(E, item)

    async def _settled(self) -> None:
        while not self._state.is_settled:
            await self._condition.wait()


class AsyncSubscriptionManager:
    """All subscriptions of one client."""

    def __init__(self, resolve: Callable[[], Awaitable[str]], settings: Settings) -> None:
        self._resolve, self._settings = resolve, settings
        # Created at the first use, so that it belongs to the running event loop.
        self._broker: BrokerClient | None = None
        # Subscriptions whose patterns are being looked up.
        self._lookups: set[asyncio.Task[None]] = set()

    def subscribe(self, pattern: str | Awaitable[str], **settings: Any) -> AsyncSubscription[Any]:
        """Adds a subscription. Its pattern may be the result of a call, such as a look-up."""
        broker, condition = self._ensure_started(), _LoopCondition()
        if isinstance(pattern, str):
            state = SubscriptionState(condition, pattern, **settings)
            broker.add(state)
        else:
            state = SubscriptionState(condition, UNRESOLVED, **settings)
            lookup = asyncio.ensure_future(_add_resolved(broker, state, pattern))
            self._lookups.add(lookup)
            lookup.add_done_callback(self._lookups.discard)
        return AsyncSubscription(broker, condition, state, self._settings.timeout_s)

    async def publish(self, topic: str, data: Any) -> None:
        try:
            await asyncio.wait_for(self._ensure_started().publish(topic, data), self._settings.timeout_s)
        except asyncio.TimeoutError:
            raise StreamLost(f"the broker did not confirm the message to {topic!r} in time") from None

    async def close(self) -> None:
        for lookup in self._lookups:
            lookup.cancel()
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.close()

    def _ensure_started(self) -> BrokerClient:
        if self._broker is None or self._broker.is_closed:
            self._broker = BrokerClient(self._resolve, self._settings)
        return self._broker


async def _add_resolved(broker: BrokerClient, state: SubscriptionState, pattern: Awaitable[str]) -> None:
    try:
        state.pattern = check(await pattern)
    except (PitlaneError, ValueError) as error:
        return state.fail(error)
    except asyncio.CancelledError:
        state.end()
        raise
    if not state.has_ended:
        broker.add(state)
