"""Calls over HTTP. Each call is retried while a retry is safe and can succeed."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TypeVar

from ..call import Call, final_error, problem_from, target_of
from ..http.asynchronous import AsyncHttpClient
from ..http.message import TransportError
from ..pace import RequestPace
from ..problems import TooManyRequests
from ..retry import NO_RETRY, Retry, RetryRule, is_outcome_unknown, is_transient
from ..settings import Settings

T = TypeVar("T")


class AsyncRestClient:
    """Base class of the client: sends calls and retries them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http = AsyncHttpClient(settings)
        self._pace = RequestPace()

    async def _run(self, call: Call[T], retry: Retry | None = None) -> T:
        """Sends a call and retries it until there is a response.

        `Problem.repeated` is true if the service may have executed an earlier attempt.
        """
        retry = retry or self._settings.retry
        may_be_done, attempt = False, 1
        while True:
            delay_s = self._pace.delay_s(monotonic())
            if delay_s > 0 and retry is not NO_RETRY:
                await asyncio.sleep(delay_s)
            retry_after_s: int | None = None
            try:
                response = await self._http.request(call.method, target_of(call), call.headers, call.body)
                if response.is_success:
                    return call.read(response)
                problem = problem_from(response)
                problem.repeated = may_be_done
                if not is_transient(problem):
                    raise problem
                may_be_done = may_be_done or is_outcome_unknown(problem)
                error: Exception = problem
                retry_after_s = problem.retry_after_s
            except TransportError as lost:
                may_be_done = may_be_done or not lost.is_unsent
                error = lost
            if isinstance(error, TooManyRequests):
                # All calls wait: the service counts them together.
                self._pace.handle_refusal(monotonic(), float(retry_after_s or 1))
            is_unsafe = may_be_done and call.repeat is RetryRule.ONLY_UNSENT
            if is_unsafe or not retry.allows_another(attempt, retry_after_s):
                outcome = final_error(call, error, may_be_done)
                raise outcome from (None if outcome is error else error)
            await asyncio.sleep(retry.delay_s(attempt, retry_after_s))
            attempt += 1
