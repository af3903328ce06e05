"""The bounded queue of a subscription, with a policy for readers slower than the market."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import Tuple, Union

from ..errors import Overflow
from ..events import Event, Gap, StreamItem, event_of
from ..topics import is_market_data

# The service queues the same number of events for a slow reader.
CAPACITY = 10_000

_Message = Tuple[str, bytes]


class Policy(Enum):
    """Which events may be replaced by newer ones while they wait.

    Other events are never dropped silently: a full queue ends the subscription with `Overflow`.
    """

    BY_TOPIC = "by-topic"
    """Keeps the newest message of each tick and book topic, and every message of other topics."""
    NEWEST = "newest"
    """Keeps the newest unread message of each topic."""
    EVERY = "every"
    """Keeps every message."""


class EventQueue:
    """A queue of messages. Not thread-safe.

    Messages are decoded when they are taken, so that a replaced message costs no decoding.
    """

    def __init__(self, policy: Policy = Policy.BY_TOPIC, capacity: int = CAPACITY) -> None:
        self._policy, self._capacity = policy, capacity
        # In order of arrival. A newer message takes the place of the message that it replaces.
        self._waiting: OrderedDict[Union[str, int], Union[_Message, StreamItem]] = OrderedDict()
        self._count = 0
        self.replaced = 0
        """Number of messages that newer messages replaced before they were read."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, topic: str, body: bytes) -> None:
        self._put(topic, (topic, body))

    def put_event(self, event: Event) -> None:
        """Adds an event that is already decoded."""
        self._put(event.topic, event)

    def put_gap(self, gap: Gap) -> None:
        self._count += 1
        self._add(self._count, gap)

    def take(self) -> StreamItem | None:
        if not self._waiting:
            return None
        _, item = self._waiting.popitem(last=False)
        return event_of(*item) if isinstance(item, tuple) else item

    def _put(self, topic: str, item: _Message | Event) -> None:
        if self._is_newest_only(topic):
            self.replaced += topic in self._waiting
            self._add(topic, item)
        else:
            self._count += 1
            self._add(self._count, item)

    def _add(self, key: str | int, item: _Message | StreamItem) -> None:
        if len(self._waiting) >= self._capacity and key not in self._waiting:
            raise Overflow(f"{self._capacity} events wait to be read: read faster, or use Policy.NEWEST")
        self._waiting[key] = item

    def _is_newest_only(self, topic: str) -> bool:
        if self._policy is Policy.BY_TOPIC:
            return is_market_data(topic)
        return self._policy is Policy.NEWEST
