"""What can go wrong, by who is at fault. Everything here is a `PitlaneError`.

```text
PitlaneError
├ Problem                 the service answered no: status, code, message, field
│ └ BadRequest, NotFound, Refused, … └ one class for each code, in problems.py
├ Unreachable             nobody answered, and nothing was done
├ OutcomeUnknown          sent, not answered, and not safe to send again: look before asking again
├ DecodeError          the answer is not what the service says it would be
└ StreamError             a subscription has ended: BrokerRefused, LoginRefused, Overflow, StreamLost, Closed
```
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Mapping

_NAMED = re.compile(r"(?:unknown|missing|duplicate) field `(\w+)`|parameter `(\w+)`|^`([a-z]\w+)`")


class PitlaneError(Exception):
    """Any of ours."""


class Problem(PitlaneError):
    """The service answered that it did not do it (RFC 9457)."""

    code: ClassVar[str] = ""
    about: ClassVar[str | None] = None

    def __init__(self, status: int, reason: str, message: str, members: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{message} ({reason}, {status})")
        self.status = status
        self.reason = reason
        """The code of the answer: stable, and the same that events and FIX carry."""
        self.message = message
        self.members: Mapping[str, Any] = members or {}
        """Everything that the answer said."""
        self.retry_after_s: int | None = None
        self.repeated = False
        """Whether an earlier attempt at the same request was sent and its answer lost."""

    @property
    def field(self) -> str | None:
        """The member of the request that is wrong, where that is known."""
        named = self.members.get("field")
        if isinstance(named, str):
            return named
        match = _NAMED.search(self.message) if self.status == 400 else None
        return match.group(match.lastindex or 0) if match else self.about

    @property
    def request_id(self) -> str | None:
        """By which the service's log calls the request."""
        named = self.members.get("requestId")
        return named if isinstance(named, str) else None

    @property
    def int_id(self) -> str | None:
        """The order that was refused, where one was made."""
        named = self.members.get("intId")
        return named if isinstance(named, str) else None


class BadRequest(Problem):
    """Malformed: 400 and its kin."""


class LoginRequired(Problem):
    """Who is it? 401."""


class NotPermitted(Problem):
    """Known, and may not: 403."""


class NotFound(Problem):
    """There is no such thing: 404, or 422 where an order names it."""


class Conflict(Problem):
    """Not possible as things stand: 409."""


class Refused(Problem):
    """Well formed, and refused by validation or risk: 422. Nothing was sent to a venue."""


class Overloaded(Problem):
    """Too many requests: 429."""


class Unavailable(Problem):
    """Not now: 503."""


class Unreachable(PitlaneError):
    """No connection, as often as was tried. Nothing was done."""


class OutcomeUnknown(PitlaneError):
    """The request was sent and the answer was lost. It may have been done, and asking again could do it twice."""

    int_id: str | None = None
    """The order that it was about: `client.order(int_id)` tells."""


class DecodeError(PitlaneError):
    """An answer or a message that is not as described."""


class StreamError(PitlaneError):
    """A subscription has ended."""


class BrokerRefused(StreamError):
    """The broker does not permit it, or does not understand it."""


class LoginRefused(StreamError):
    """The broker does not know the login."""


class Overflow(StreamError):
    """The events were read too slowly, and none may be left out."""


class Closed(StreamError):
    """The subscription was closed on this side."""


class StreamLost(StreamError):
    """The broker could not be reached in time."""
