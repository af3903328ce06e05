"""Exceptions, grouped by cause. All of them are `PitlaneError`s.

```text
PitlaneError
├ Problem                 the service refused the request: status, code, message, field
│ └ BadRequest, NotFound, Refused, … └ one class for each code, in problems.py
├ Unreachable             there was no response, and the request had no effect
├ OutcomeUnknown          the response was lost, and a retry is not safe: read the state first
├ DecodeError             a response or message does not match its description
└ StreamError             a subscription ended: BrokerRefused, LoginRefused, Overflow, StreamLost,
                          Closed
```
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Mapping

_NAMED = re.compile(r"(?:unknown|missing|duplicate) field `(\w+)`|parameter `(\w+)`|^`([a-z]\w+)`")


class PitlaneError(Exception):
    """Base class of all exceptions of this package."""


class Problem(PitlaneError):
    """The service refused or failed to execute the request (RFC 9457)."""

    code: ClassVar[str] = ""
    about: ClassVar[str | None] = None

    def __init__(self, status: int, reason: str, message: str, members: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{message} ({reason}, {status})")
        self.status = status
        self.reason = reason
        """Stable code of the problem; events and FIX messages carry the same code."""
        self.message = message
        self.members: Mapping[str, Any] = members or {}
        """All members of the response."""
        self.retry_after_s: int | None = None
        self.repeated = False
        """Whether an earlier attempt of the same request was sent and its response was lost."""

    @property
    def field(self) -> str | None:
        """The member of the request that is wrong, if known."""
        named = self.members.get("field")
        if isinstance(named, str):
            return named
        match = _NAMED.search(self.message) if self.status == 400 else None
        return match.group(match.lastindex or 0) if match else self.about

    @property
    def request_id(self) -> str | None:
        """The id of the request in the log of the service."""
        named = self.members.get("requestId")
        return named if isinstance(named, str) else None

    @property
    def int_id(self) -> str | None:
        """The id of the rejected order, if the service created one."""
        named = self.members.get("intId")
        return named if isinstance(named, str) else None


class BadRequest(Problem):
    """The request is malformed: 400 and similar."""


class LoginRequired(Problem):
    """The request needs a valid login: 401."""


class NotPermitted(Problem):
    """The login lacks the permission: 403."""


class NotFound(Problem):
    """The resource does not exist: 404, or 422 if an order refers to it."""


class Conflict(Problem):
    """The request is not possible in the current state: 409."""


class Refused(Problem):
    """Validation or a risk check refused the request: 422. Nothing was sent to a venue."""


class Overloaded(Problem):
    """The client sent too many requests: 429."""


class Unavailable(Problem):
    """The service cannot execute the request now: 503."""


class Unreachable(PitlaneError):
    """No attempt reached the service. The request had no effect."""


class OutcomeUnknown(PitlaneError):
    """The response was lost.

    The request may have been executed, and a retry could execute it twice.
    """

    int_id: str | None = None
    """The id of the order; `client.order(int_id)` returns its state."""


class DecodeError(PitlaneError):
    """A response or a message does not match its description."""


class StreamError(PitlaneError):
    """A subscription has ended. The subclass is the reason."""


class BrokerRefused(StreamError):
    """The broker refused the subscription or the message."""


class LoginRefused(StreamError):
    """The broker refused the login."""


class Overflow(StreamError):
    """The events were read too slowly, and the policy does not allow dropping them."""


class Closed(StreamError):
    """The client closed the subscription."""


class StreamLost(StreamError):
    """The broker could not be reached in time."""
