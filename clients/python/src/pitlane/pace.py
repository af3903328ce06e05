"""Delays that keep a client below the limits of the service. Times are seconds of any clock."""

from __future__ import annotations

import threading
from collections import deque

# The service counts orders by the second. Two orders that are sent a second apart may arrive a
# little closer.
WINDOW_S = 1.05
# After this many times the rate at which the service refused a request, the limit is gone.
FORGET_FACTOR = 4.0
GROWTH_PER_S = 1.2
# A limit of fewer requests is unusual; below this rate, the delays of the retries are enough.
RATE_MIN = 5.0


class OrderPace:
    """Allows a number of new orders of each strategy in any period of one second."""

    def __init__(self, orders_per_s: int) -> None:
        self._orders_per_s = orders_per_s
        self._lock = threading.Lock()
        # For each strategy the times of its last orders, at most `orders_per_s` of them.
        self._sent: dict[str | None, deque[float]] = {}

    def delay_s(self, strategy: str | None, now: float) -> float:
        """Returns how long the next order of a strategy must wait, and reserves that time."""
        with self._lock:
            sent = self._sent.setdefault(strategy, deque(maxlen=self._orders_per_s))
            at = max(now, sent[0] + WINDOW_S) if len(sent) == self._orders_per_s else now
            sent.append(at)
            return at - now


class RequestPace:
    """Slows a client down after the service has refused a request because there were too many.

    The service does not tell its limit. Half the requests of the last two seconds are a first
    estimate; each further refusal halves it, and it grows while there is none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Requests in the current second and in the one before.
        self._second = 0
        self._sent = self._sent_before = 0
        # Requests per second while there is a limit, and the rate at which it is forgotten.
        self._rate: float | None = None
        self._forget_at = 0.0
        self._grown_at = 0.0
        # The time of the next request while there is a limit.
        self._next_at = 0.0

    def delay_s(self, now: float) -> float:
        """Returns how long the next request must wait, and reserves that time for it."""
        with self._lock:
            self._count(now)
            if self._rate is None:
                return 0.0
            if now - self._grown_at >= 1.0:
                self._rate *= GROWTH_PER_S
                self._grown_at = now
                if self._rate > self._forget_at:
                    self._rate = None
                    return 0.0
            at = max(now, self._next_at)
            self._next_at = at + 1.0 / self._rate
            return at - now

    def handle_refusal(self, now: float, retry_after_s: float) -> None:
        """Waits for the time that the service asks for, and is slower afterwards."""
        with self._lock:
            # Requests that were on their way together are refused together, and count as one.
            if self._rate is not None and now < self._grown_at:
                return
            if self._rate is None:
                self._rate = (self._sent + self._sent_before) / 2
                self._forget_at = FORGET_FACTOR * max(RATE_MIN, self._rate)
            else:
                self._rate /= 2
            self._rate = max(RATE_MIN, self._rate)
            self._next_at = now + retry_after_s
            self._grown_at = now + retry_after_s

    def _count(self, now: float) -> None:
        second = int(now)
        if second != self._second:
            self._sent_before = self._sent if second == self._second + 1 else 0
            self._second, self._sent = second, 0
        self._sent += 1
