"""The state of one subscription: its queue of events and its end.

The reader supplies the condition.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Mapping, Protocol

from ..errors import Closed, DecodeError, Overflow
from ..events import Gap, StreamItem, ticks_of
from ..sbe import CONTENT_TYPE
from ..topics import check
from .event_queue import CAPACITY, EventQueue, Policy


class ConditionLike(Protocol):
    """Held during a change and notified after it: a `threading.Condition`, or one for asyncio."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> Any: ...

    def notify_all(self) -> None: ...


# Windows that the broker accepts, in milliseconds.
WINDOW_MS_MIN, WINDOW_MS_MAX = 10, 60_000


def checked_window(milliseconds: int) -> int:
    """Rejects a window of conflation that the broker would close the connection for."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int):
        raise TypeError("conflate_ms is a whole number of milliseconds")
    if not WINDOW_MS_MIN <= milliseconds <= WINDOW_MS_MAX:
        raise ValueError(f"conflate_ms is from {WINDOW_MS_MIN} to {WINDOW_MS_MAX}, not {milliseconds}")
    return milliseconds


class SubscriptionState:
    def __init__(
        self,
        condition: ConditionLike,
        pattern: str,
        *,
        last_value: bool = False,
        conflate_ms: int | None = None,
        is_binary: bool = False,
        policy: Policy = Policy.BY_TOPIC,
        capacity: int = CAPACITY,
    ) -> None:
        """`is_binary` is for ticks only: several of them share a message."""
        self._condition = condition
        self.pattern = check(pattern)
        headers = {"last-value": "true"} if last_value else {}
        if conflate_ms is not None:
            headers["conflate"] = str(checked_window(conflate_ms))
        if is_binary:
            headers.update({"accept": CONTENT_TYPE, "batch": "true"})
        self._is_binary = is_binary
        self.headers: Mapping[str, str] = headers
        self._queue = EventQueue(policy, capacity)
        self._is_confirmed = self._is_closed = False
        # The gap that has begun and not ended.
        self._gap: Gap | None = None
        self._failure: Exception | None = None

    @property
    def replaced(self) -> int:
        """Number of events that newer events replaced before they were read."""
        return self._queue.replaced

    @property
    def has_ended(self) -> bool:
        return self._is_closed or self._failure is not None

    @property
    def is_settled(self) -> bool:
        """Whether the broker has confirmed the subscription, or it has ended."""
        return self._is_confirmed or self.has_ended

    def put(self, topic: str, body: bytes) -> None:
        with self._condition:
            try:
                if self._is_binary:
                    for tick in ticks_of(body):
                        self._queue.put_event(tick)
                else:
                    self._queue.put(topic, body)
            except (DecodeError, Overflow) as error:
                self._failure = error
            self._condition.notify_all()

    def confirm(self, now: datetime) -> None:
        """Marks the subscription as confirmed: events arrive from now on. Ends an open gap."""
        with self._condition:
            self._is_confirmed = True
            if self._gap is not None:
                self._put_gap(Gap(self.pattern, self._gap.since, self._gap.reason, now))
                self._gap = None
            self._condition.notify_all()

    def lose(self, now: datetime, reason: str) -> None:
        """Marks the connection as lost: events do not arrive from now on. Begins a gap."""
        with self._condition:
            if self._is_confirmed and self._gap is None:
                self._gap = Gap(self.pattern, now, reason)
                self._put_gap(self._gap)
            self._condition.notify_all()

    def fail(self, error: Exception) -> None:
        with self._condition:
            self._failure = self._failure or error
            self._condition.notify_all()

    def end(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def take(self) -> StreamItem | None:
        """Returns the next event, or None if none waits. The caller must hold the condition.

        Events that waited before the end are returned before the end is raised.
        """
        item = self._queue.take()
        if item is None and self._failure is not None:
            raise self._failure
        if item is None and self._is_closed:
            raise Closed(f"{self.pattern!r} is closed")
        return item

    def _put_gap(self, gap: Gap) -> None:
        try:
            self._queue.put_gap(gap)
        except Overflow as overflow:
            self._failure = overflow
