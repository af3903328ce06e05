# Generated from _async/streams.py by tools/derive_sync.py. Change that file instead.
"""Subscriptions to events, by topic, at the broker of the service."""

from __future__ import annotations

import time
from typing import Any, Union

from .. import topics
from ..call import get
from ..events import Event, Gap, OrderUpdate, StreamItem, Tick, Trade
from ..operation_values import Health
from ..retry import NO_RETRY
from ..settings import Settings
from ..stream.synchronous import Subscription, SubscriptionManager
from ..stream.event_queue import CAPACITY, Policy
from ..values import Security, SecurityRef
from .securities import SecurityLookup


class Streams(SecurityLookup):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._subscriptions = SubscriptionManager(self._broker, settings)

    def subscribe(
        self,
        pattern: str,
        *,
        last_value: bool = False,
        conflate_ms: int | None = None,
        policy: Policy = Policy.BY_TOPIC,
        capacity: int = CAPACITY,
    ) -> Subscription[StreamItem]:
        """Subscribes to all topics that match, as in `tick.*`, `order.MOMENTUM.*` or `log-event.>`.

        With `last_value`, the subscription first returns the newest known value of each market data
        topic. With `conflate_ms`, the service sends market data at most once in this time, with the
        newest value of each topic. The client reopens a lost connection and reports the loss by a
        `Gap`.
        """
        return self._subscriptions.subscribe(
            pattern, last_value=last_value, conflate_ms=conflate_ms, policy=policy, capacity=capacity
        )

    def ticks(
        self,
        security: SecurityRef | None = None,
        *,
        conflate_ms: int | None = None,
        binary: bool = False,
        policy: Policy = Policy.BY_TOPIC,
    ) -> Subscription[Union[Tick, Gap]]:
        """Subscribes to market data of one security, or of all.

        The newest known values come first. `conflate_ms` is as in `subscribe`. With `binary`, the
        service sends ticks in fixed layouts, several in one message, which costs less to transfer
        and to decode. Such ticks have no `symbol` and no `feed`.
        """
        if isinstance(security, Security):
            security = security.id
        topic = self._tick_topic(security) if isinstance(security, str) else topics.tick(security)
        return self._subscriptions.subscribe(
            topic, last_value=True, conflate_ms=conflate_ms, is_binary=binary, policy=policy
        )

    def trades(
        self, security: SecurityRef | None = None, *, capacity: int = CAPACITY
    ) -> Subscription[Union[Trade, Gap]]:
        """Subscribes to every trade of one security, or of all.

        None is left out, except during a `Gap`.
        """
        if isinstance(security, Security):
            security = security.id
        topic = self._trade_topic(security) if isinstance(security, str) else topics.trade(security)
        return self._subscriptions.subscribe(topic, policy=Policy.EVERY, capacity=capacity)

    def orders(
        self, strategy: str | None = None, int_id: str | None = None, *, prefix: str = "pitlane"
    ) -> Subscription[Union[OrderUpdate, Gap]]:
        """Subscribes to updates of all orders, of a strategy's orders, or of one order.

        `prefix` is the setting `broker.orderTopicPrefix` of the service.
        """
        return self._subscriptions.subscribe(topics.order_updates(prefix, strategy, int_id))

    def collect(
        self, pattern: str, *, count: int, seconds: float | None = None, capacity: int = CAPACITY
    ) -> list[Event]:
        """Returns the next `count` events, or fewer if `seconds` pass first.

        No event is left out, except during a `Gap`.
        """
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
        """Publishes `data` as JSON to the subscribers of `generic-event.<name>`."""
        self._subscriptions.publish(topics.generic_event(name), data)

    def _tick_topic(self, symbol: str) -> str:
        return topics.tick(self._security_id(symbol))

    def _trade_topic(self, symbol: str) -> str:
        return topics.trade(self._security_id(symbol))

    def _broker(self) -> str:
        """Returns the address of the broker. Does not retry, because the `BrokerClient` does."""
        if self._settings.broker is not None:
            return self._settings.broker
        if self._settings.transport == "ws":
            return self._run(get("/rest/broker/url/ws", str), NO_RETRY)
        if self._settings.is_secure:
            # The service returns its port without TLS. A client that uses TLS must not send its
            # password in plain text.
            health: Health = self._run(get("/health/ready", Health), NO_RETRY)
            for listener in health.listeners:
                if listener.name == "stomp+tls":
                    return f"stomp+ssl://{self._settings.host}:{listener.address.rpartition(':')[2]}"
            raise ValueError("the service has no listener for STOMP over TLS: use transport='ws' or set broker")
        return self._run(get("/rest/broker/url/main", str), NO_RETRY)


def _clock() -> float:
    return time.monotonic()
