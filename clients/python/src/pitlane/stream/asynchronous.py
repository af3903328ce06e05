"""Events for asyncio: the hub lives in the caller's loop."""

from __future__ import annotations

import asyncio
from datetime import datetime
from types import TracebackType
from typing import Any, Awaitable, Callable, Generic, TypeVar, cast

from ..errors import Closed, StreamError, StreamLost
from ..events import Happening
from ..settings import Settings
from .hub import Hub
from .inbox import Inbox

E = TypeVar("E", bound=Happening)


class _Box(Inbox):
    """An inbox that wakes whoever waits."""

    def __init__(self, pattern: str, **settings: Any) -> None:
        super().__init__(pattern, **settings)
        self.changed = asyncio.Event()

    def put(self, topic: str, body: bytes) -> None:
        super().put(topic, body)
        self.changed.set()

    def confirm(self, now: datetime) -> None:
        super().confirm(now)
        self.changed.set()

    def lose(self, now: datetime, reason: str) -> None:
        super().lose(now, reason)
        self.changed.set()

    def fail(self, error: StreamError) -> None:
        super().fail(error)
        self.changed.set()

    def end(self) -> None:
        super().end()
        self.changed.set()


class AsyncSubscription(Generic[E]):
    """Events as they come: `async for event in subscription`. `async with` ends it in the end."""

    def __init__(self, hub: Hub, box: _Box, timeout_s: float) -> None:
        self._hub, self._box, self._timeout_s = hub, box, timeout_s

    @property
    def pattern(self) -> str:
        return self._box.pattern

    @property
    def replaced(self) -> int:
        """Events that were replaced by newer ones before they were read."""
        return self._box.replaced

    async def ready(self) -> None:
        """Returns when the broker has confirmed it: no event after this is missed."""
        try:
            await asyncio.wait_for(self._settled(), self._timeout_s)
        except asyncio.TimeoutError:
            await self.close()
            raise StreamLost(f"the broker did not confirm {self.pattern!r} within {self._timeout_s:g} s") from None

    async def get(self, timeout_s: float | None = None) -> E:
        """The next event. Raises `TimeoutError` if none comes in time, and `Closed` after the end."""
        try:
            return await asyncio.wait_for(self._next(), timeout_s)
        except asyncio.TimeoutError:
            raise TimeoutError(f"no event of {self.pattern!r} within {timeout_s:g} s") from None

    async def close(self) -> None:
        self._hub.remove(self._box)
        self._box.end()

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
        if not self._box.is_settled:
            await self.ready()
        while (happening := self._box.take()) is None:
            self._box.changed.clear()
            await self._box.changed.wait()
        return cast(E, happening)

    async def _settled(self) -> None:
        while not self._box.is_settled:
            self._box.changed.clear()
            await self._box.changed.wait()


class AsyncFeed:
    """All subscriptions of one client."""

    def __init__(self, resolve: Callable[[], Awaitable[str]], settings: Settings) -> None:
        self._resolve, self._settings = resolve, settings
        # Made at the first use, which is in the loop it belongs to.
        self._hub: Hub | None = None

    def subscribe(self, pattern: str, **settings: Any) -> AsyncSubscription[Any]:
        hub, box = self._there(), _Box(pattern, **settings)
        hub.add(box)
        return AsyncSubscription(hub, box, self._settings.timeout_s)

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
