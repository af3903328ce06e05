"""The number of retries, and the requests that may be retried.

A request that was never sent may always be retried. A request whose response was lost may be
retried only if it is idempotent: reads, writes with an id of the client, and writes that set a
value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from .errors import Overloaded, Problem, Unavailable


class RetryRule(Enum):
    """When a request may be retried."""

    IDEMPOTENT = auto()
    """Always: executing the request twice has the same effect as executing it once."""
    ONLY_UNSENT = auto()
    """Only if the service cannot have executed the request."""


@dataclass(frozen=True)
class Retry:
    """The number of attempts of a call and the delays between them.

    `Retry(attempts=1)`: no retry.
    """

    attempts: int = 8
    wait_s_first: float = 0.05
    wait_s_max: float = 2.0
    """Longest delay; each delay is twice the previous one, up to this."""
    retry_after_s_max: float = 10.0
    """If Retry-After asks for a longer delay, the call fails immediately instead."""

    def allows_another(self, attempt: int, retry_after_s: int | None) -> bool:
        """Returns whether another attempt follows attempt number `attempt`, counted from 1."""
        return attempt < self.attempts and (retry_after_s or 0) <= self.retry_after_s_max

    def delay_s(self, attempt: int, retry_after_s: int | None) -> float:
        """Returns the delay after attempt number `attempt`, in seconds.

        It is never shorter than the service asks for.
        """
        grown = self.wait_s_first * 2.0 ** min(attempt - 1, 30)
        return max(min(self.wait_s_max, grown), float(retry_after_s or 0))


NO_RETRY = Retry(attempts=1)


def is_transient(problem: Problem) -> bool:
    """Returns whether the same request may succeed soon."""
    return isinstance(problem, (Overloaded, Unavailable))


def is_outcome_unknown(problem: Problem) -> bool:
    """Returns whether the service itself does not know if it executed the request."""
    return problem.reason == "no-answer"
