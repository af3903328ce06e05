# Derived from _async/streams.py by tools/derive_sync.py: change that one.
"""Events by topic, from the service's broker."""

from __future__ import annotations

import time
from typing import Any, Union

from .. import topics
from ..call import get
from ..events import Event, Gap, StreamItem, OrderUpdate, Tick
from ..retry import NO_RETRY
from ..settings import Settings
from ..stream.synchronous import SubscriptionManager, Subscription
from ..stream.event_queue import CAPACITY, Policy
from ..values import Health
from .rest import RestClient


class Streams(RestClient):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._subscriptions = SubscriptionManager(self._broker, settings)

    def subscribe(
        self,
        pattern: str,
        *,
        last_value: bool = False,
        policy: Policy = Policy.BY_TOPIC,
        capacity: int = CAPACITY,
    ) -> Subscription[StreamItem]:
        """Events of every topic that matches, such as `tick.*`, `order.MOMENTUM.*` or `log-event.>`.

        `last_value`: first the newest known value of each market-data topic. A lost connection is opened again, and told by `Gap`.
        """
        return self._subscriptions.subscribe(pattern, last_value=last_value, policy=policy, capacity=capacity)

    def ticks(
        self, security_id: int | None = None, *, policy: Policy = Policy.BY_TOPIC
    ) -> Subscription[Union[Tick, Gap]]:
        """Market data of one security, or of all; first what is known now."""
        return self._subscriptions.subscribe(topics.tick(security_id), last_value=True, policy=policy)

    def orders(
        self, strategy: str | None = None, int_id: str | None = None, *, prefix: str = "pitlane"
    ) -> Subscription[Union[OrderUpdate, Gap]]:
        """What happens to orders: all of them, a strategy's, or one. `prefix` is the service's `broker.orderTopicPrefix`."""
        return self._subscriptions.subscribe(topics.order_updates(prefix, strategy, int_id))

    def collect(
        self, pattern: str, *, count: int, seconds: float | None = None, capacity: int = CAPACITY
    ) -> list[Event]:
        """So many events, every one; fewer if the time is up before. What a gap took is not there."""
        events: list[Event] = []
        with self.subscribe(pattern, policy=Policy.EVERY, capacity=capacity) as subscription:
            end = None if seconds is None else _clock() + seconds
            while len(events) < count:
                try:
                    event = subscription.get(None if end is None else max(0.0, end - _clock()))
                except TimeoutError:
                    break
                if isinstance(event, Event):
                    events.append(event)
        return events

    def publish(self, name: str, data: Any) -> None:
        """Tells other strategies: `data` goes as JSON to whoever subscribed to `generic-event.<name>`."""
        self._subscriptions.publish(topics.generic_event(name), data)

    def _broker(self) -> str:
        """Where the stream comes from. Asked once: the hub itself tries again."""
        if self._settings.broker is not None:
            return self._settings.broker
        if self._settings.transport == "ws":
            return self._run(get("/rest/broker/url/ws", str), NO_RETRY)
        if self._settings.is_secure:
            # The service names its plain port first; who came by TLS wants no password in the clear.
            health: Health = self._run(get("/health/ready", Health), NO_RETRY)
            for listener in health.listeners:
                if listener.name == "stomp+tls":
                    return f"stomp+ssl://{self._settings.host}:{listener.address.rpartition(':')[2]}"
            raise ValueError("the service has no STOMP over TLS: transport='ws', or name a broker")
        return self._run(get("/rest/broker/url/main", str), NO_RETRY)


def _clock() -> float:
    return time.monotonic()
