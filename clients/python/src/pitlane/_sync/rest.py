# Derived from _async/rest.py by tools/derive_sync.py: change that one.
"""Calls over HTTP, each asked again as long as that is safe and worth it."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import httpx

from ..call import Call, final_error, headers_of, problem_from
from ..retry import RetryRule, Retry, is_transient, is_outcome_unknown, is_unsent
from ..settings import Settings

T = TypeVar("T")

# Below the 60 s after which the service closes a connection that rests, so that no request meets a closing one.
KEEP_ALIVE_S = 30.0
# As many calls at once as a busy strategy makes; the service takes 1,024 connections from one address.
CONNECTIONS_MAX = 64


class RestClient:
    """What all calls have in common."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        headers = {"Authorization": f"Bearer {settings.token}"} if settings.token is not None else {}
        self._http = httpx.Client(
            base_url=settings.base_url,
            auth=settings.login,
            headers={"Accept": "application/json, application/problem+json", **headers},
            verify=settings.tls() if settings.is_secure else False,
            timeout=settings.timeout_s,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=KEEP_ALIVE_S),
            # Nothing of the environment stands between a client and its service: no proxy, no netrc.
            trust_env=False,
        )

    def _run(self, call: Call[T], retry: Retry | None = None) -> T:
        """Asks until there is an answer. A `Problem` says by `repeated` whether an earlier attempt may have been done."""
        retry = retry or self._settings.retry
        may_be_done, attempt = False, 1
        while True:
            retry_after_s: int | None = None
            try:
                response = self._send(call)
                if response.is_success:
                    return call.read(response)
                problem = problem_from(response)
                problem.repeated = may_be_done
                if not is_transient(problem):
                    raise problem
                may_be_done = may_be_done or is_outcome_unknown(problem)
                error: Exception = problem
                retry_after_s = problem.retry_after_s
            except httpx.LocalProtocolError:
                # Of our own making, such as a line end in a token: it stays the same.
                raise
            except httpx.TransportError as lost:
                may_be_done = may_be_done or not is_unsent(lost)
                error = lost
            if not retry.allows_another(attempt, retry_after_s) or (may_be_done and call.repeat is RetryRule.ONLY_UNSENT):
                outcome = final_error(call, error, may_be_done)
                raise outcome from (None if outcome is error else error)
            time.sleep(retry.delay_s(attempt, retry_after_s))
            attempt += 1

    def _send(self, call: Call[Any]) -> httpx.Response:
        return self._http.request(
            call.method, call.path, params=call.query, content=call.body, headers=headers_of(call)
        )
