"""Events for plain threads: the hub lives in a thread of its own, and readers wait for what it puts into their boxes."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Any, Callable, Generic, TypeVar, cast

from ..errors import Closed, StreamLost
from ..events import Happening
from ..settings import Settings
from .hub import Hub, not_confirmed
from .inbox import Inbox

E = TypeVar("E", bound=Happening)

# For the thread to end in good order; it is a daemon, so nothing hangs on it.
END_S_MAX = 5.0


class Subscription(Generic[E]):
    """Events as they come: `for event in subscription`. `with` ends it in the end."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, hub: Hub, bell: threading.Condition, inbox: Inbox, timeout_s: float
    ) -> None:
        self._loop, self._hub, self._bell, self._inbox, self._timeout_s = loop, hub, bell, inbox, timeout_s

    @property
    def pattern(self) -> str:
        return self._inbox.pattern

    @property
    def replaced(self) -> int:
        """Events that were replaced by newer ones before they were read."""
        return self._inbox.replaced

    def ready(self) -> None:
        """Returns when the broker has confirmed it: no event after this is missed. `subscribe` has waited for that already."""
        with self._bell:
            is_settled = self._bell.wait_for(lambda: self._inbox.is_settled, self._timeout_s)
        if not is_settled:
            self.close()
            raise not_confirmed(self.pattern, self._timeout_s, self._hub)

    def get(self, timeout_s: float | None = None) -> E:
        """The next event. Raises `TimeoutError` if none comes in time, and `Closed` after the end."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        with self._bell:
            while (happening := self._inbox.take()) is None:
                left = None if end is None else end - time.monotonic()
                if not self._bell.wait(left):
                    raise TimeoutError(f"no event of {self.pattern!r} within {timeout_s:g} s")
        return cast(E, happening)

    def close(self) -> None:
        self._inbox.end()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hub.remove, self._inbox)

    def __iter__(self) -> Subscription[E]:
        return self

    def __next__(self) -> E:
        try:
            return self.get()
        except Closed:
            raise StopIteration from None

    def __enter__(self) -> Subscription[E]:
        self.ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Feed:
    """All subscriptions of one client, and the thread they live in."""

    def __init__(self, resolve: Callable[[], str], settings: Settings) -> None:
        self._resolve, self._settings = resolve, settings
        self._starting = threading.Lock()
        self._room: tuple[asyncio.AbstractEventLoop, Hub, threading.Thread] | None = None

    def subscribe(self, pattern: str, **settings: Any) -> Subscription[Any]:
        bell = threading.Condition()
        inbox = Inbox(bell, pattern, **settings)
        loop, hub, _ = self._there()
        subscription: Subscription[Any] = Subscription(loop, hub, bell, inbox, self._settings.timeout_s)
        loop.call_soon_threadsafe(hub.add, inbox)
        subscription.ready()
        return subscription

    def publish(self, topic: str, data: Any) -> None:
        loop, hub, _ = self._there()
        sent = asyncio.run_coroutine_threadsafe(hub.publish(topic, data), loop)
        try:
            sent.result(self._settings.timeout_s)
        except FutureTimeoutError:
            sent.cancel()
            raise StreamLost(f"the broker did not take {topic!r} in time") from None

    def close(self) -> None:
        with self._starting:
            room, self._room = self._room, None
        if room is not None:
            _end(room)

    def _there(self) -> tuple[asyncio.AbstractEventLoop, Hub, threading.Thread]:
        with self._starting:
            if self._room is not None and self._room[1].is_closed:
                _end(self._room)
                self._room = None
            if self._room is None:
                self._room = self._start()
            return self._room

    def _start(self) -> tuple[asyncio.AbstractEventLoop, Hub, threading.Thread]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_live, args=(loop,), name="pitlane-events", daemon=True)
        thread.start()

        async def resolve() -> str:
            # It waits for an answer over HTTP, which the loop must not.
            return await loop.run_in_executor(None, self._resolve)

        async def make() -> Hub:
            return Hub(resolve, self._settings)

        hub = asyncio.run_coroutine_threadsafe(make(), loop).result(END_S_MAX)
        return loop, hub, thread


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _end(room: tuple[asyncio.AbstractEventLoop, Hub, threading.Thread]) -> None:
    loop, hub, thread = room
    closing = asyncio.run_coroutine_threadsafe(hub.close(), loop)
    try:
        closing.result(END_S_MAX)
    except FutureTimeoutError:
        # The thread is a daemon: what is left of it ends with the process.
        closing.cancel()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(END_S_MAX)
