"""Subscriptions for plain threads.

The `BrokerClient` runs in its own thread and fills their queues.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Any, Callable, Generic, TypeVar, cast

from ..errors import Closed, StreamLost
from ..events import StreamItem
from ..settings import Settings
from .broker_client import BrokerClient, not_confirmed
from .subscription_state import SubscriptionState

E = TypeVar("E", bound=StreamItem)

# Time for the thread to end. It is a daemon thread, so it does not keep the process alive.
END_S_MAX = 5.0


class Subscription(Generic[E]):
    """A subscription: `for event in subscription` reads it, and `with` closes it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: BrokerClient,
        condition: threading.Condition,
        state: SubscriptionState,
        timeout_s: float,
    ) -> None:
        self._loop, self._broker, self._condition = loop, broker, condition
        self._state, self._timeout_s = state, timeout_s

    @property
    def pattern(self) -> str:
        return self._state.pattern

    @property
    def replaced(self) -> int:
        """Number of events that newer events replaced before they were read."""
        return self._state.replaced

    def ready(self) -> None:
        """Waits until the broker has confirmed the subscription. No later event is missed.

        `subscribe` has already waited for the confirmation.
        """
        with self._condition:
            is_settled = self._condition.wait_for(lambda: self._state.is_settled, self._timeout_s)
        if not is_settled:
            self.close()
            raise not_confirmed(self.pattern, self._timeout_s, self._broker)

    def get(self, timeout_s: float | None = None) -> E:
        """Returns the next event.

        Raises `TimeoutError` if none arrives in time, and `Closed` after the end.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        with self._condition:
            while (item := self._state.take()) is None:
                left = None if end is None else end - time.monotonic()
                if not self._condition.wait(left):
                    raise TimeoutError(f"no event of {self.pattern!r} within {timeout_s:g} s")
        return cast(E, item)

    def close(self) -> None:
        """Ends the subscription."""
        self._state.end()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._broker.remove, self._state)

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


class SubscriptionManager:
    """All subscriptions of one client, and the thread of their `BrokerClient`."""

    def __init__(self, resolve: Callable[[], str], settings: Settings) -> None:
        self._resolve, self._settings = resolve, settings
        self._starting = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, BrokerClient, threading.Thread] | None = None

    def subscribe(self, pattern: str, **settings: Any) -> Subscription[Any]:
        condition = threading.Condition()
        state = SubscriptionState(condition, pattern, **settings)
        loop, broker, _ = self._ensure_started()
        subscription: Subscription[Any] = Subscription(loop, broker, condition, state, self._settings.timeout_s)
        loop.call_soon_threadsafe(broker.add, state)
        subscription.ready()
        return subscription

    def publish(self, topic: str, data: Any) -> None:
        loop, broker, _ = self._ensure_started()
        sent = asyncio.run_coroutine_threadsafe(broker.publish(topic, data), loop)
        try:
            sent.result(self._settings.timeout_s)
        except FutureTimeoutError:
            sent.cancel()
            raise StreamLost(f"the broker did not confirm the message to {topic!r} in time") from None

    def close(self) -> None:
        with self._starting:
            running, self._running = self._running, None
        if running is not None:
            _stop(running)

    def _ensure_started(self) -> tuple[asyncio.AbstractEventLoop, BrokerClient, threading.Thread]:
        with self._starting:
            if self._running is not None and self._running[1].is_closed:
                _stop(self._running)
                self._running = None
            if self._running is None:
                self._running = self._start()
            return self._running

    def _start(self) -> tuple[asyncio.AbstractEventLoop, BrokerClient, threading.Thread]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run_loop, args=(loop,), name="pitlane-events", daemon=True)
        thread.start()

        async def resolve() -> str:
            # The function blocks on HTTP, so it must not run in the event loop.
            return await loop.run_in_executor(None, self._resolve)

        async def make() -> BrokerClient:
            return BrokerClient(resolve, self._settings)

        broker = asyncio.run_coroutine_threadsafe(make(), loop).result(END_S_MAX)
        return loop, broker, thread


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _stop(running: tuple[asyncio.AbstractEventLoop, BrokerClient, threading.Thread]) -> None:
    loop, broker, thread = running
    closing = asyncio.run_coroutine_threadsafe(broker.close(), loop)
    try:
        closing.result(END_S_MAX)
    except FutureTimeoutError:
        # A daemon thread ends with the process.
        closing.cancel()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(END_S_MAX)
