# Generated from _async/operation.py by tools/derive_sync.py. Change that file instead.
"""Calls for operators: health, limits, sessions, market data, shutdown."""

from __future__ import annotations

from typing import Any, Mapping

from ..call import Call, confirmed_write, get, path_segment, read_text, write
from ..operation_values import (
    Adapter,
    Alert,
    Confirmation,
    Health,
    Identity,
    Latency,
    Limits,
    LimitUse,
    LoggedEvent,
    Member,
    Rates,
    Risk,
    Session,
    Version,
)
from ..problems import UnknownSession
from ..retry import NO_RETRY, RetryRule
from ..values import SecurityRef
from .securities import SecurityLookup

SERVER = "SERVER"
"""The strategy of the server itself."""


class Operation(SecurityLookup):
    def is_live(self) -> bool:
        """Returns whether the process runs. Raises `Unreachable` if there is no response."""
        answer = self._run(get("/health/live", dict[str, str]), NO_RETRY)
        return answer.get("status") == "LIVE"

    def health(self) -> Health:
        """Returns the state of the service and its parts.

        Raises `Unavailable`, without a retry, if the service does not accept orders.
        """
        return self._run(get("/health/ready", Health), NO_RETRY)

    def version(self) -> Version:
        """Returns the version of the service and of its formats."""
        return self._run(get("/version", Version))

    def identity(self) -> Identity:
        """Returns the name and the role of the login."""
        return self._run(get("/rest/ext/identity", Identity))

    def metrics(self) -> str:
        """Returns counters and gauges in the text format of Prometheus."""
        return self._run(Call("GET", "/metrics", read_text))

    def description(self) -> Mapping[str, Any]:
        """Returns the OpenAPI description of the service."""
        return self._run(get("/openapi.json", dict[str, Any]))

    def latency(self) -> list[Latency]:
        """Returns latency percentiles per stage and thread, over the last second with work."""
        return self._run(get("/rest/ext/latency", list[Latency]))

    def adapters(self) -> list[Adapter]:
        """Returns the adapters to venues."""
        return self._run(get("/rest/ext/adapter", list[Adapter]))

    def members(self) -> list[Member]:
        """Returns the other servers of the cluster; empty if there is no cluster."""
        return self._run(get("/rest/ext/cluster", list[Member]))

    def alerts(self, *, limit: int | None = None) -> list[Alert]:
        """Returns conditions that an operator should look at, the newest first."""
        return self._run(get("/rest/ext/alert", list[Alert], limit=limit))

    def log_events(self, *, limit: int | None = None) -> list[LoggedEvent]:
        """Returns the last warnings and errors of the service, the newest first."""
        return self._run(get("/rest/ext/log", list[LoggedEvent], limit=limit))

    def sessions(self) -> list[Session]:
        """Returns the connected sessions. The list is updated once per second."""
        return self._run(get("/rest/ext/session", list[Session]))

    def end_session(self, session_id: str) -> None:
        """Disconnects a client."""
        try:
            self._run(write("DELETE", f"/rest/ext/session/{path_segment(session_id)}"))
        except UnknownSession as problem:
            if not problem.repeated:
                raise

    def reset_session(self, session_id: str) -> None:
        """Resets both sequence numbers of a FIX session to 1."""
        path = f"/rest/ext/session/{path_segment(session_id)}/reset"
        self._run(write("POST", path, repeat=RetryRule.ONLY_UNSENT))

    def risk(self) -> Risk:
        """Returns limits, switches and restrictions."""
        return self._run(get("/rest/ext/risk", Risk))

    def limit_uses(self) -> list[LimitUse]:
        """Returns the use of the limits, and what they refused in the trading day."""
        return self._run(get("/rest/ext/risk/use", list[LimitUse]))

    def set_limits(self, limits: Limits) -> Confirmation:
        """Changes limits of the named strategy or account until the next start of the service."""
        return self._run(confirmed_write("PUT", "/rest/ext/risk", limits))

    def kill_switch(self) -> Confirmation:
        """Cancels every open order and makes the service refuse new ones.

        In a cluster the result names the shards whose servers are away. These shards still trade;
        they apply the switch when their servers return.
        """
        return self._run(confirmed_write("POST", "/rest/ext/kill-switch"))

    def lift_kill_switch(self) -> Confirmation:
        """Makes the service accept orders again."""
        return self._run(confirmed_write("DELETE", "/rest/ext/kill-switch"))

    def feeds(self) -> list[str]:
        """Returns the names of the market data feeds."""
        return self._run(get("/rest/subscription/marketdata/supported-feed", list[str]))

    def subscribe_market_data(self, security: SecurityRef, strategy: str = SERVER) -> None:
        """Subscribes a strategy to market data of a security.

        The service publishes the topic of a security while at least one strategy is subscribed.
        """
        body = _subscription_body(strategy, self._security_id(security), True)
        self._run(write("PUT", "/rest/subscription/marketdata/subscribe", body))

    def unsubscribe_market_data(self, security: SecurityRef, strategy: str = SERVER) -> None:
        """Ends the subscription of a strategy to market data of a security."""
        body = _subscription_body(strategy, self._security_id(security), False)
        self._run(write("PUT", "/rest/subscription/marketdata/unsubscribe", body))

    def rates(self) -> Rates:
        """Returns the rate limits of market data over WebSocket."""
        return self._run(get("/rest/ext/broker/rate", Rates))

    def set_rates(self, rates: Rates) -> None:
        """Changes the rate limits of market data over WebSocket."""
        self._run(write("PUT", "/rest/ext/broker/rate", rates))

    def broker_url(self) -> str:
        """Returns the address of STOMP over TCP."""
        return self._run(get("/rest/broker/url/main", str))

    def websocket_url(self) -> str:
        """Returns the address of STOMP over WebSocket."""
        return self._run(get("/rest/broker/url/ws", str))

    def shut_down(self) -> None:
        """Shuts the service down gracefully."""
        self._run(write("POST", "/rest/runtime/exit-vm", repeat=RetryRule.ONLY_UNSENT))


def _subscription_body(strategy: str, security_id: int, subscribe: bool) -> dict[str, object]:
    return {"strategyName": strategy, "securityId": security_id, "subscribe": subscribe}
