"""Events for asyncio: the hub lives in the caller's loop."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Awaitable, Callable, Generic, TypeVar, cast

from ..errors import Closed, StreamLost
from ..events import Happening
from ..settings import Settings
from .hub import Hub, not_confirmed
from .inbox import Inbox

E = TypeVar("E", bound=Happening)


class _Bell:
    """All happens in one thread, so there is nothing to hold."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def notify_all(self) -> None:
        self._rung.set()

    async def wait(self) -> None:
        self._rung.clear()
        await self._rung.wait()


class AsyncSubscription(Generic[E]):
    """Events as they come: `async for event in subscription`. `async with` ends it in the end."""

    def __init__(self, hub: Hub, bell: _Bell, inbox: Inbox, timeout_s: float) -> None:
        self._hub, self._bell, self._inbox, self._timeout_s = hub, bell, inbox, timeout_s

    @property
    def pattern(self) -> str:
        return self._inbox.pattern

    @property
    def replaced(self) -> int:
        """Events that were replaced by newer ones before they were read."""
        return self._inbox.replaced

    async def ready(self) -> None:
        """Returns when the broker has confirmed it: no event after this is missed."""
        try:
            await asyncio.wait_for(self._settled(), self._timeout_s)
        except asyncio.TimeoutError:
            await self.close()
            raise not_confirmed(self.pattern, self._timeout_s, self._hub) from None

    async def get(self, timeout_s: float | None = None) -> E:
        """The next event. Raises `TimeoutError` if none comes in time, and `Closed` after the end."""
        try:
            return await asyncio.wait_for(self._next(), timeout_s)
        except asyncio.TimeoutError:
            raise TimeoutError(f"no event of {self.pattern!r} within {timeout_s:g} s") from None

    async def close(self) -> None:
        self._hub.remove(self._inbox)
        self._inbox.end()

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
        if not self._inbox.is_settled:
            await self.ready()
        while (happening := self._inbox.take()) is None:
            await self._bell.wait()
        return cast(E, happening)

    async def _settled(self) -> None:
        while not self._inbox.is_settled:
            await self._bell.wait()


class AsyncFeed:
    """All subscriptions of one client."""

    def __init__(self, resolve: Callable[[], Awaitable[str]], settings: Settings) -> None:
        self._resolve, self._settings = resolve, settings
        # Made at the first use, which is in the loop it belongs to.
        self._hub: Hub | None = None

    def subscribe(self, pattern: str, **settings: Any) -> AsyncSubscription[Any]:
        hub, bell = self._there(), _Bell()
        inbox = Inbox(bell, pattern, **settings)
        hub.add(inbox)
        return AsyncSubscription(hub, bell, inbox, self._settings.timeout_s)

    async def publish(self, topic: str, data: Any) -> None:
        try:
            await asyncio.wait_for(self._there().publish(topic, data), self._settings.timeout_s)
        except asyncio.TimeoutError:
            raise StreamLost(f"the broker did not take {topic!r} in time") from None

    async def close(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            await hub.close()

    def _there(self) -> Hub:
        if self._hub is None or self._hub.is_closed:
            self._hub = Hub(self._resolve, self._settings)
        return self._hub
