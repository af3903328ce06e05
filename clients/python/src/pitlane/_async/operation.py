"""Running it: health, limits, sessions, market data, the end."""

from __future__ import annotations

from typing import Any, Mapping

from ..call import Call, confirmed_write, get, path_segment, read_text, write
from ..problems import UnknownSession
from ..retry import NO_RETRY, RetryRule
from ..values import Adapter, Confirmation, Health, Identity, Latency, Limits, Member, Rates, Risk, Session, Version
from .rest import AsyncRestClient

SERVER = "SERVER"
"""The strategy that is the server itself."""


class AsyncOperation(AsyncRestClient):
    async def is_live(self) -> bool:
        """Whether the process serves. Raises `Unreachable` if nobody answers."""
        answer = await self._run(get("/health/live", dict[str, str]), NO_RETRY)
        return answer.get("status") == "LIVE"

    async def health(self) -> Health:
        """Whether orders would be taken, and how everything stands. Raises `Unavailable` if not, at once."""
        return await self._run(get("/health/ready", Health), NO_RETRY)

    async def version(self) -> Version:
        return await self._run(get("/version", Version))

    async def identity(self) -> Identity:
        """Who one is here."""
        return await self._run(get("/rest/ext/identity", Identity))

    async def metrics(self) -> str:
        """Counters and gauges in the text format of Prometheus."""
        return await self._run(Call("GET", "/metrics", read_text))

    async def description(self) -> Mapping[str, Any]:
        """The service's own description of its calls, as OpenAPI has it."""
        return await self._run(get("/openapi.json", dict[str, Any]))

    async def latency(self) -> list[Latency]:
        """Percentiles of each stage in each thread, over its last second with work."""
        return await self._run(get("/rest/ext/latency", list[Latency]))

    async def adapters(self) -> list[Adapter]:
        """The ways to venues."""
        return await self._run(get("/rest/ext/adapter", list[Adapter]))

    async def members(self) -> list[Member]:
        """The other servers of the cluster; none where there is none."""
        return await self._run(get("/rest/ext/cluster", list[Member]))

    async def sessions(self) -> list[Session]:
        """Who is connected, as of the last second."""
        return await self._run(get("/rest/ext/session", list[Session]))

    async def end_session(self, session_id: str) -> None:
        """Sends a client away."""
        try:
            await self._run(write("DELETE", f"/rest/ext/session/{path_segment(session_id)}"))
        except UnknownSession as problem:
            if not problem.repeated:
                raise

    async def reset_session(self, session_id: str) -> None:
        """Has both numbers of a FIX session begin with one."""
        path = f"/rest/ext/session/{path_segment(session_id)}/reset"
        await self._run(write("POST", path, repeat=RetryRule.ONLY_UNSENT))

    async def risk(self) -> Risk:
        """Limits, switches and restrictions."""
        return await self._run(get("/rest/ext/risk", Risk))

    async def set_limits(self, limits: Limits) -> Confirmation:
        """Changes limits of the strategy or account that they name, until the next start."""
        return await self._run(confirmed_write("PUT", "/rest/ext/risk", limits))

    async def kill_switch(self) -> Confirmation:
        """Cancels every open order and has new ones refused.

        In a cluster the answer names the shards whose servers are away: they still trade, until they are back and hear of it.
        """
        return await self._run(confirmed_write("POST", "/rest/ext/kill-switch"))

    async def lift_kill_switch(self) -> Confirmation:
        return await self._run(confirmed_write("DELETE", "/rest/ext/kill-switch"))

    async def feeds(self) -> list[str]:
        """Names of the market data feeds."""
        return await self._run(get("/rest/subscription/marketdata/supported-feed", list[str]))

    async def subscribe_market_data(self, security_id: int, strategy: str = SERVER) -> None:
        """Subscribes a strategy to market data of a security: its topic speaks while somebody is subscribed."""
        await self._run(write("PUT", "/rest/subscription/marketdata/subscribe", _subscription_body(strategy, security_id, True)))

    async def unsubscribe_market_data(self, security_id: int, strategy: str = SERVER) -> None:
        await self._run(write("PUT", "/rest/subscription/marketdata/unsubscribe", _subscription_body(strategy, security_id, False)))

    async def rates(self) -> Rates:
        """How fast market data goes over WebSocket."""
        return await self._run(get("/rest/ext/broker/rate", Rates))

    async def set_rates(self, rates: Rates) -> None:
        await self._run(write("PUT", "/rest/ext/broker/rate", rates))

    async def broker_url(self) -> str:
        """Where STOMP is spoken over TCP."""
        return await self._run(get("/rest/broker/url/main", str))

    async def websocket_url(self) -> str:
        """Where STOMP is spoken over WebSocket."""
        return await self._run(get("/rest/broker/url/ws", str))

    async def shut_down(self) -> None:
        """Stops the service, in good order."""
        await self._run(write("POST", "/rest/runtime/exit-vm", repeat=RetryRule.ONLY_UNSENT))


def _subscription_body(strategy: str, security_id: int, subscribe: bool) -> dict[str, object]:
    return {"strategyName": strategy, "securityId": security_id, "subscribe": subscribe}
