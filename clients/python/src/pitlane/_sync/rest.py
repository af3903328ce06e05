# Generated from _async/rest.py by tools/derive_sync.py. Change that file instead.
"""Calls over HTTP. Each call is retried while a retry is safe and can succeed."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import httpx

from ..call import Call, final_error, headers_of, problem_from
from ..retry import Retry, RetryRule, is_outcome_unknown, is_transient, is_unsent
from ..settings import Settings

T = TypeVar("T")

# Below the 60 s after which the service closes an idle connection, so that no request is sent on a
# connection that is being closed.
KEEP_ALIVE_S = 30.0
# Enough for the concurrent calls of a busy strategy. The service accepts 1,024 connections from one
# address.
CONNECTIONS_MAX = 64


class RestClient:
    """Base class of the client: sends calls and retries them."""

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
            # The environment must not change how a client reaches its service: no proxy, no netrc.
            trust_env=False,
        )

    def _run(self, call: Call[T], retry: Retry | None = None) -> T:
        """Sends a call and retries it until there is a response.

        `Problem.repeated` is true if the service may have executed an earlier attempt.
        """
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
                # A fault of the request itself, such as a line end in a token: a retry cannot help.
                raise
            except httpx.TransportError as lost:
                may_be_done = may_be_done or not is_unsent(lost)
                error = lost
            is_unsafe = may_be_done and call.repeat is RetryRule.ONLY_UNSENT
            if is_unsafe or not retry.allows_another(attempt, retry_after_s):
                outcome = final_error(call, error, may_be_done)
                raise outcome from (None if outcome is error else error)
            time.sleep(retry.delay_s(attempt, retry_after_s))
            attempt += 1

    def _send(self, call: Call[Any]) -> httpx.Response:
        return self._http.request(
            call.method, call.path, params=call.query, content=call.body, headers=headers_of(call)
        )
