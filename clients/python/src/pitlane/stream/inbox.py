"""One subscription as the hub sees it: where messages go, and how it ends. Whoever reads it puts a way to wait around it."""

from __future__ import annotations

from datetime import datetime
from typing import Mapping

from ..errors import Closed, Overflow, StreamError
from ..events import Gap, Happening
from ..topics import check
from .mailbox import CAPACITY, Mailbox, Policy


class Inbox:
    def __init__(
        self,
        pattern: str,
        *,
        last_value: bool = False,
        policy: Policy = Policy.BY_TOPIC,
        capacity: int = CAPACITY,
    ) -> None:
        self.pattern = check(pattern)
        self.headers: Mapping[str, str] = {"last-value": "true"} if last_value else {}
        self._mailbox = Mailbox(policy, capacity)
        self._is_confirmed = self._is_closed = False
        # The gap that is not over yet.
        self._gap: Gap | None = None
        self._failure: StreamError | None = None

    @property
    def replaced(self) -> int:
        """Events that were replaced by newer ones before they were read."""
        return self._mailbox.replaced

    @property
    def has_ended(self) -> bool:
        return self._is_closed or self._failure is not None

    @property
    def is_settled(self) -> bool:
        """Whether it is known if events will come."""
        return self._is_confirmed or self.has_ended

    def put(self, topic: str, body: bytes) -> None:
        try:
            self._mailbox.put(topic, body)
        except Overflow as overflow:
            self.fail(overflow)

    def confirm(self, now: datetime) -> None:
        """From here on events come, or come again."""
        self._is_confirmed = True
        if self._gap is not None:
            self._put_gap(Gap(self.pattern, self._gap.since, self._gap.reason, now))
            self._gap = None

    def lose(self, now: datetime, reason: str) -> None:
        """From here on they do not."""
        if self._is_confirmed and self._gap is None:
            self._gap = Gap(self.pattern, now, reason)
            self._put_gap(self._gap)

    def fail(self, error: StreamError) -> None:
        self._failure = self._failure or error

    def end(self) -> None:
        self._is_closed = True

    def take(self) -> Happening | None:
        """The next event; None: there is none now. What waited before an end is read before that is told."""
        happening = self._mailbox.take()
        if happening is None and self._failure is not None:
            raise self._failure
        if happening is None and self._is_closed:
            raise Closed(f"{self.pattern!r} is closed")
        return happening

    def _put_gap(self, gap: Gap) -> None:
        try:
            self._mailbox.put_gap(gap)
        except Overflow as overflow:
            self.fail(overflow)
