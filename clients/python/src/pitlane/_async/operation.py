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
from .securities import AsyncSecurityLookup

SERVER = "SERVER"
"""The strategy of the server itself."""


class AsyncOperation(AsyncSecurityLookup):
    async def is_live(self) -> bool:
        """Returns whether the process runs. Raises `Unreachable` if there is no response."""
        answer = await self._run(get("/health/live", dict[str, str]), NO_RETRY)
        return answer.get("status") == "LIVE"

    async def health(self) -> Health:
        """Returns the state of the service and its parts.

        Raises `Unavailable`, without a retry, if the service does not accept orders.
        """
        return await self._run(get("/health/ready", Health), NO_RETRY)

    async def version(self) -> Version:
        """Returns the version of the service and of its formats."""
        return await self._run(get("/version", Version))

    async def identity(self) -> Identity:
        """Returns the name and the role of the login."""
        return await self._run(get("/rest/ext/identity", Identity))

    async def metrics(self) -> str:
        """Returns counters and gauges in the text format of Prometheus."""
        return await self._run(Call("GET", "/metrics", read_text))

    async def description(self) -> Mapping[str, Any]:
        """Returns the OpenAPI description of the service."""
        return await self._run(get("/openapi.json", dict[str, Any]))

    async def latency(self) -> list[Latency]:
        """Returns latency percentiles per stage and thread, over the last second with work."""
        return await self._run(get("/rest/ext/latency", list[Latency]))

    async def adapters(self) -> list[Adapter]:
        """Returns the adapters to venues."""
        return await self._run(get("/rest/ext/adapter", list[Adapter]))

    async def members(self) -> list[Member]:
        """Returns the other servers of the cluster; empty if there is no cluster."""
        return await self._run(get("/rest/ext/cluster", list[Member]))

    async def alerts(self, *, limit: int | None = None) -> list[Alert]:
        """Returns conditions that an operator should look at, the newest first."""
        return await self._run(get("/rest/ext/alert", list[Alert], limit=limit))

    async def log_events(self, *, limit: int | None = None) -> list[LoggedEvent]:
        """Returns the last warnings and errors of the service, the newest first."""
        return await self._run(get("/rest/ext/log", list[LoggedEvent], limit=limit))

    async def sessions(self) -> list[Session]:
        """Returns the connected sessions. The list is updated once per second."""
        return await self._run(get("/rest/ext/session", list[Session]))

    async def end_session(self, session_id: str) -> None:
        """Disconnects a client."""
        try:
            await self._run(write("DELETE", f"/rest/ext/session/{path_segment(session_id)}"))
        except UnknownSession as problem:
            if not problem.repeated:
                raise

    async def reset_session(self, session_id: str) -> None:
        """Resets both sequence numbers of a FIX session to 1."""
        path = f"/rest/ext/session/{path_segment(session_id)}/reset"
        await self._run(write("POST", path, repeat=RetryRule.ONLY_UNSENT))

    async def risk(self) -> Risk:
        """Returns limits, switches and restrictions."""
        return await self._run(get("/rest/ext/risk", Risk))

    async def limit_uses(self) -> list[LimitUse]:
        """Returns the use of the limits, and what they refused in the trading day."""
        return await self._run(get("/rest/ext/risk/use", list[LimitUse]))

    async def set_limits(self, limits: Limits) -> Confirmation:
        """Changes limits of the named strategy or account until the next start of the service."""
        return await self._run(confirmed_write("PUT", "/rest/ext/risk", limits))

    async def kill_switch(self) -> Confirmation:
        """Cancels every open order and makes the service refuse new ones.

        In a cluster the result names the shards whose servers are away. These shards still trade;
        they apply the switch when their servers return.
        """
        return await self._run(confirmed_write("POST", "/rest/ext/kill-switch"))

    async def lift_kill_switch(self) -> Confirmation:
        """Makes the service accept orders again."""
        return await self._run(confirmed_write("DELETE", "/rest/ext/kill-switch"))

    async def feeds(self) -> list[str]:
        """Returns the names of the market data feeds."""
        return await self._run(get("/rest/subscription/marketdata/supported-feed", list[str]))

    async def subscribe_market_data(self, security: SecurityRef, strategy: str = SERVER) -> None:
        """Subscribes a strategy to market data of a security.

        The service publishes the topic of a security while at least one strategy is subscribed.
        """
        body = _subscription_body(strategy, await self._security_id(security), True)
        await self._run(write("PUT", "/rest/subscription/marketdata/subscribe", body))

    async def unsubscribe_market_data(self, security: SecurityRef, strategy: str = SERVER) -> None:
        """Ends the subscription of a strategy to market data of a security."""
        body = _subscription_body(strategy, await self._security_id(security), False)
        await self._run(write("PUT", "/rest/subscription/marketdata/unsubscribe", body))

    async def rates(self) -> Rates:
        """Returns the rate limits of market data over WebSocket."""
        return await self._run(get("/rest/ext/broker/rate", Rates))

    async def set_rates(self, rates: Rates) -> None:
        """Changes the rate limits of market data over WebSocket."""
        await self._run(write("PUT", "/rest/ext/broker/rate", rates))

    async def broker_url(self) -> str:
        """Returns the address of STOMP over TCP."""
        return await self._run(get("/rest/broker/url/main", str))

    async def websocket_url(self) -> str:
        """Returns the address of STOMP over WebSocket."""
        return await self._run(get("/rest/broker/url/ws", str))

    async def shut_down(self) -> None:
        """Shuts the service down gracefully."""
        await self._run(write("POST", "/rest/runtime/exit-vm", repeat=RetryRule.ONLY_UNSENT))


def _subscription_body(strategy: str, security_id: int, subscribe: bool) -> dict[str, object]:
    return {"strategyName": strategy, "securityId": security_id, "subscribe": subscribe}
