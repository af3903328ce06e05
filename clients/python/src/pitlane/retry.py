"""How often, and what may be asked again.

A request that was never sent may always be sent again. One that was sent and not answered may be sent again only if doing it
twice is doing it once: reads, writes under an id of ours, and writes that set something to a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import httpx

from .errors import Overloaded, Problem, Unavailable


class RetryRule(Enum):
    IDEMPOTENT = auto()
    """Twice is once."""
    ONLY_UNSENT = auto()
    """Only if it certainly was not done."""


@dataclass(frozen=True)
class Retry:
    """How long a call goes on. `Retry(attempts=1)`: it is said once."""

    attempts: int = 8
    wait_s_first: float = 0.05
    wait_s_max: float = 2.0
    """Each wait is twice the one before, up to this."""
    retry_after_s_max: float = 10.0
    """Whoever is told by Retry-After to wait for longer is told so at once."""

    def allows_another(self, attempt: int, retry_after_s: int | None) -> bool:
        """Whether there is another attempt after this one, which count from 1."""
        return attempt < self.attempts and (retry_after_s or 0) <= self.retry_after_s_max

    def delay_s(self, attempt: int, retry_after_s: int | None) -> float:
        grown = self.wait_s_first * 2.0 ** min(attempt - 1, 30)
        return min(self.wait_s_max, max(grown, float(retry_after_s or 0)))


NO_RETRY = Retry(attempts=1)


def is_unsent(error: httpx.TransportError) -> bool:
    """Whether the service cannot have seen the request."""
    return isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))


def is_transient(problem: Problem) -> bool:
    """Whether the same request may fare better in a moment."""
    return isinstance(problem, (Overloaded, Unavailable))


def is_outcome_unknown(problem: Problem) -> bool:
    """Whether the service itself does not know if it was done."""
    return problem.reason == "no-answer"
