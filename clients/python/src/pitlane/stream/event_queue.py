"""What waits for a reader: bounded, with a named policy of what happens when the reader is slower than the market."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import Tuple, Union

from ..errors import Overflow
from ..events import Gap, StreamItem, event_of
from ..topics import is_market_data

# As many as the service itself keeps for a slow reader.
CAPACITY = 10_000

_Message = Tuple[str, bytes]


class Policy(Enum):
    """Nothing is ever left out silently of what is told whole: a full mailbox ends the subscription with `Overflow`."""

    BY_TOPIC = "by-topic"
    """The newest of each tick and book, everything else whole."""
    NEWEST = "newest"
    """Of each topic only the newest that was not read yet."""
    EVERY = "every"
    """All of it."""


class EventQueue:
    """Not for two threads at once. Messages are read into events when they are taken, so that what is replaced costs nothing."""

    def __init__(self, policy: Policy = Policy.BY_TOPIC, capacity: int = CAPACITY) -> None:
        self._policy, self._capacity = policy, capacity
        # In the order of arrival; a topic that waits keeps its place when a newer message replaces the older.
        self._waiting: OrderedDict[Union[str, int], Union[_Message, Gap]] = OrderedDict()
        self._count = 0
        self.replaced = 0
        """Messages that were replaced by newer ones before they were read."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, topic: str, body: bytes) -> None:
        if self._is_newest_only(topic):
            self.replaced += topic in self._waiting
            self._add(topic, (topic, body))
        else:
            self._count += 1
            self._add(self._count, (topic, body))

    def put_gap(self, gap: Gap) -> None:
        self._count += 1
        self._add(self._count, gap)

    def take(self) -> StreamItem | None:
        if not self._waiting:
            return None
        _, item = self._waiting.popitem(last=False)
        return item if isinstance(item, Gap) else event_of(*item)

    def _add(self, key: str | int, item: _Message | Gap) -> None:
        if len(self._waiting) >= self._capacity and key not in self._waiting:
            raise Overflow(f"{self._capacity} events wait to be read: read faster, or ask for Policy.NEWEST")
        self._waiting[key] = item

    def _is_newest_only(self, topic: str) -> bool:
        if self._policy is Policy.BY_TOPIC:
            return is_market_data(topic)
        return self._policy is Policy.NEWEST
