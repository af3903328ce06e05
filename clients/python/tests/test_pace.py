"""Delays before requests and orders, over a virtual clock."""

import bisect
import random

import pytest
from pitlane import Retry
from pitlane.pace import WINDOW_S, OrderPace, RequestPace


def test_a_retry_waits_at_least_as_long_as_the_service_asks_for():
    retry = Retry(attempts=4, wait_s_first=0.05, wait_s_max=2.0, retry_after_s_max=10.0)
    assert [retry.delay_s(attempt, None) for attempt in (1, 2, 3, 20)] == [0.05, 0.1, 0.2, 2.0]
    assert [retry.delay_s(attempt, 5) for attempt in (1, 20)] == [5.0, 5.0]
    assert retry.allows_another(3, 10) and not retry.allows_another(3, 11) and not retry.allows_another(4, None)


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_no_second_has_more_orders_than_the_limit(limit):
    pace, rng, now, sent = OrderPace(limit), random.Random(limit), 0.0, []
    for _ in range(10 * limit):
        now += rng.choice((0.0, 0.3 / limit, 2.0 / limit))
        sent.append(now + pace.delay_s("A", now))
        # Another strategy has its own limit.
        assert limit > 1 or pace.delay_s("B", 10.0 * len(sent)) == 0.0
    assert sent == sorted(sent)
    for number, at in enumerate(sent):
        assert bisect.bisect_left(sent, at + WINDOW_S - 1e-9) - number <= limit
    # A burst up to the limit does not wait.
    assert [OrderPace(limit).delay_s(None, 5.0) for _ in range(limit)] == [0.0] * limit


class Bucket:
    """The limit of the service: a second's worth, which fills steadily."""

    def __init__(self, per_s):
        self.per_s, self.full_at = per_s, 0.0

    def take(self, now):
        full_at = max(self.full_at, now) + 1.0 / self.per_s
        if full_at - now > 1.0:
            return False
        self.full_at = full_at
        return True


@pytest.mark.parametrize("per_s", [5, 200])
def test_a_refused_client_slows_down_and_is_rarely_refused_again(per_s):
    bucket, pace, now = Bucket(per_s), RequestPace(), 100.0
    accepted = refused = 0
    end = now + 60
    while now < end:
        delay = pace.delay_s(now)
        assert delay == 0.0 or refused
        now += delay
        if bucket.take(now):
            accepted += 1
        else:
            refused += 1
            pace.handle_refusal(now, 1.0)
        now += 0.0001
    assert refused <= 25
    assert accepted >= 0.4 * 60 * per_s


def test_a_limit_that_is_gone_is_forgotten():
    pace, now = RequestPace(), 100.0
    for _ in range(20):
        assert pace.delay_s(now) == 0.0
    pace.handle_refusal(now, 1.0)
    # Refusals of requests that were on their way count once.
    pace.handle_refusal(now + 0.1, 1.0)
    assert pace.delay_s(now) == 1.0
    for _ in range(100_000):
        now += pace.delay_s(now) + 0.001
    assert pace.delay_s(now) == pace.delay_s(now) == 0.0
