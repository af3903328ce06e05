# Derived from _async/operation.py by tools/derive_sync.py: change that one.
"""Running it: health, limits, sessions, market data, the end."""

from __future__ import annotations

from typing import Any, Mapping

from ..call import Call, confirmed_write, get, path_segment, read_text, write
from ..problems import UnknownSession
from ..retry import NO_RETRY, RetryRule
from ..values import Adapter, Confirmation, Health, Identity, Latency, Limits, Member, Rates, Risk, Session, Version
from .rest import RestClient

SERVER = "SERVER"
"""The strategy that is the server itself."""


class Operation(RestClient):
    def is_live(self) -> bool:
        """Whether the process serves. Raises `Unreachable` if nobody answers."""
        answer = self._run(get("/health/live", dict[str, str]), NO_RETRY)
        return answer.get("status") == "LIVE"

    def health(self) -> Health:
        """Whether orders would be taken, and how everything stands. Raises `Unavailable` if not, at once."""
        return self._run(get("/health/ready", Health), NO_RETRY)

    def version(self) -> Version:
        return self._run(get("/version", Version))

    def identity(self) -> Identity:
        """Who one is here."""
        return self._run(get("/rest/ext/identity", Identity))

    def metrics(self) -> str:
        """Counters and gauges in the text format of Prometheus."""
        return self._run(Call("GET", "/metrics", read_text))

    def description(self) -> Mapping[str, Any]:
        """The service's own description of its calls, as OpenAPI has it."""
        return self._run(get("/openapi.json", dict[str, Any]))

    def latency(self) -> list[Latency]:
        """Percentiles of each stage in each thread, over its last second with work."""
        return self._run(get("/rest/ext/latency", list[Latency]))

    def adapters(self) -> list[Adapter]:
        """The ways to venues."""
        return self._run(get("/rest/ext/adapter", list[Adapter]))

    def members(self) -> list[Member]:
        """The other servers of the cluster; none where there is none."""
        return self._run(get("/rest/ext/cluster", list[Member]))

    def sessions(self) -> list[Session]:
        """Who is connected, as of the last second."""
        return self._run(get("/rest/ext/session", list[Session]))

    def end_session(self, session_id: str) -> None:
        """Sends a client away."""
        try:
            self._run(write("DELETE", f"/rest/ext/session/{path_segment(session_id)}"))
        except UnknownSession as problem:
            if not problem.repeated:
                raise

    def reset_session(self, session_id: str) -> None:
        """Has both numbers of a FIX session begin with one."""
        path = f"/rest/ext/session/{path_segment(session_id)}/reset"
        self._run(write("POST", path, repeat=RetryRule.ONLY_UNSENT))

    def risk(self) -> Risk:
        """Limits, switches and restrictions."""
        return self._run(get("/rest/ext/risk", Risk))

    def set_limits(self, limits: Limits) -> Confirmation:
        """Changes limits of the strategy or account that they name, until the next start."""
        return self._run(confirmed_write("PUT", "/rest/ext/risk", limits))

    def kill_switch(self) -> Confirmation:
        """Cancels every open order and has new ones refused.

        In a cluster the answer names the shards whose servers are away: they still trade, until they are back and hear of it.
        """
        return self._run(confirmed_write("POST", "/rest/ext/kill-switch"))

    def lift_kill_switch(self) -> Confirmation:
        return self._run(confirmed_write("DELETE", "/rest/ext/kill-switch"))

    def feeds(self) -> list[str]:
        """Names of the market data feeds."""
        return self._run(get("/rest/subscription/marketdata/supported-feed", list[str]))

    def subscribe_market_data(self, security_id: int, strategy: str = SERVER) -> None:
        """Subscribes a strategy to market data of a security: its topic speaks while somebody is subscribed."""
        self._run(write("PUT", "/rest/subscription/marketdata/subscribe", _subscription_body(strategy, security_id, True)))

    def unsubscribe_market_data(self, security_id: int, strategy: str = SERVER) -> None:
        self._run(write("PUT", "/rest/subscription/marketdata/unsubscribe", _subscription_body(strategy, security_id, False)))

    def rates(self) -> Rates:
        """How fast market data goes over WebSocket."""
        return self._run(get("/rest/ext/broker/rate", Rates))

    def set_rates(self, rates: Rates) -> None:
        self._run(write("PUT", "/rest/ext/broker/rate", rates))

    def broker_url(self) -> str:
        """Where STOMP is spoken over TCP."""
        return self._run(get("/rest/broker/url/main", str))

    def websocket_url(self) -> str:
        """Where STOMP is spoken over WebSocket."""
        return self._run(get("/rest/broker/url/ws", str))

    def shut_down(self) -> None:
        """Stops the service, in good order."""
        self._run(write("POST", "/rest/runtime/exit-vm", repeat=RetryRule.ONLY_UNSENT))


def _subscription_body(strategy: str, security_id: int, subscribe: bool) -> dict[str, object]:
    return {"strategyName": strategy, "securityId": security_id, "subscribe": subscribe}
