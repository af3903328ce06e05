"""The connection to the broker, shared by all subscriptions of a client.

It opens the connection, keeps it alive, reopens it after a loss, and then renews every
subscription. It runs in one event loop: that of the user of an `AsyncPitlane`, or that of the
thread of a `Pitlane`.
"""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable

from ..errors import BrokerRefused, LoginRefused, OutcomeUnknown, PitlaneError, StreamError, StreamLost
from ..settings import Settings
from ..stomp.session import Connected, Ended, Message, Receipt, StompSession
from ..wire import render
from .connection import Connection, open_connection
from .subscription_state import SubscriptionState

# Delay between two attempts to connect. It doubles up to the maximum, so that the client reaches a
# restarted service within a second.
WAIT_S_FIRST = 0.05
WAIT_S_MAX = 1.0
# Time to wait for the end of a session after DISCONNECT.
DISCONNECT_S_MAX = 1.0


class BrokerClient:
    def __init__(self, resolve: Callable[[], Awaitable[str]], settings: Settings) -> None:
        self._resolve, self._settings = resolve, settings
        self._states: dict[str, SubscriptionState] = {}
        # Sent messages that wait for their receipts.
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._numbers = itertools.count(1)
        self._session: StompSession | None = None
        self._wake = asyncio.Event()
        self._opened = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        self.last_error = "no answer"
        """Error of the last attempt to connect."""

    @property
    def is_closed(self) -> bool:
        return self._is_closing

    def add(self, state: SubscriptionState) -> None:
        id = f"s{next(self._numbers)}"
        self._states[id] = state
        if self._session is not None:
            self._subscribe(id, state)
        self._start_task()

    def remove(self, state: SubscriptionState) -> None:
        for id in [id for id, other in self._states.items() if other is state]:
            del self._states[id]
            if self._session is not None:
                self._session.unsubscribe(id)
                self._wake.set()

    async def publish(self, topic: str, data: Any) -> None:
        """Publishes a message, and returns when the broker has confirmed it."""
        self._start_task()
        while self._session is None:
            await self._opened.wait()
        receipt = f"p{next(self._numbers)}"
        self._pending[receipt] = asyncio.get_running_loop().create_future()
        self._session.send(topic, render(data), receipt)
        self._wake.set()
        try:
            await self._pending[receipt]
        finally:
            del self._pending[receipt]

    async def close(self) -> None:
        self._is_closing = True
        for state in self._states.values():
            state.end()
        if self._session is not None:
            self._session.disconnect("bye")
            self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=DISCONNECT_S_MAX if self._session is not None else 0)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _start_task(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
            self._task.add_done_callback(self._handle_done)

    def _handle_done(self, task: asyncio.Task[None]) -> None:
        """Fails all subscriptions if the task has failed, so that no reader waits forever."""
        if not task.cancelled() and task.exception() is not None:
            self._fail_all(StreamError(f"the event stream has failed: {task.exception()!r}"))

    async def _run(self) -> None:
        wait_s = WAIT_S_FIRST
        while not self._is_closing:
            try:
                # Resolved for each attempt: a restarted service may have another address.
                url = await self._resolve()
                connection = await asyncio.wait_for(open_connection(url, self._settings.tls), self._settings.timeout_s)
            except (OSError, asyncio.TimeoutError, PitlaneError) as error:
                # Readers already have a `Gap`, and a new subscription waits for a limited time.
                self.last_error = str(error) or type(error).__name__
            except (ValueError, ImportError) as error:
                # A retry cannot succeed.
                return self._fail_all(StreamError(str(error)))
            else:
                wait_s = WAIT_S_FIRST if await self._run_session(connection) else wait_s
            await asyncio.sleep(0 if self._is_closing else wait_s)
            wait_s = min(WAIT_S_MAX, 2 * wait_s)

    async def _run_session(self, connection: Connection) -> bool:
        """Runs one session from CONNECT to its end. Returns whether it was open."""
        clock = asyncio.get_running_loop().time
        session = StompSession(self._settings.host, *self._settings.credentials, self._settings.heart_beat_s)
        session.connect(clock())
        read = asyncio.ensure_future(connection.read())
        wake = asyncio.ensure_future(self._wake.wait())
        try:
            while not self._drain(session):
                data = session.poll_transmit(clock())
                if data:
                    await asyncio.wait_for(connection.write(data), self._settings.timeout_s)
                until = session.poll_timeout()
                timeout = None if until is None else max(0.0, until - clock())
                await asyncio.wait({read, wake}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if read.done():
                    data = read.result()
                    if data:
                        session.handle_bytes(clock(), data)
                        read = asyncio.ensure_future(connection.read())
                    else:
                        session.handle_end("the connection was closed")
                if wake.done():
                    self._wake.clear()
                    wake = asyncio.ensure_future(self._wake.wait())
                session.handle_timeout(clock())
        except (OSError, asyncio.TimeoutError) as error:
            session.handle_end(str(error) or type(error).__name__)
            self._drain(session)
        finally:
            was_open, self._session = self._session is not None, None
            self._opened.clear()
            for task in (read, wake):
                task.cancel()
            await asyncio.gather(read, wake, return_exceptions=True)
            await connection.close()
        return was_open

    def _drain(self, session: StompSession) -> bool:
        """Handles the events of the session. Returns whether the session has ended."""
        while (event := session.poll_event()) is not None:
            if isinstance(event, Message):
                state = self._states.get(event.subscription)
                if state is not None:
                    state.put(event.topic, event.body)
                    if state.has_ended:
                        self.remove(state)
            elif isinstance(event, Receipt):
                self._handle_receipt(event.id)
            elif isinstance(event, Connected):
                self._session = session
                self._opened.set()
                for id, state in self._states.items():
                    self._subscribe(id, state)
            elif isinstance(event, Ended):
                self._handle_end(event)
                return True
        return False

    def _handle_receipt(self, id: str) -> None:
        state, pending = self._states.get(id), self._pending.get(id)
        if pending is not None and not pending.done():
            pending.set_result(None)
        if state is not None:
            state.confirm(datetime.now(timezone.utc))

    def _handle_end(self, ended: Ended) -> None:
        self.last_error = ended.message
        refused = self._states.pop(ended.receipt or "", None)
        if refused is not None:
            refused.fail(BrokerRefused(f"{refused.pattern}: {ended.message}"))
        for receipt, pending in self._pending.items():
            if not pending.done():
                is_ours = receipt == ended.receipt
                pending.set_exception(BrokerRefused(ended.message) if is_ours else OutcomeUnknown(ended.message))
        if ended.is_login_refused:
            return self._fail_all(LoginRefused(ended.message))
        if not self._is_closing:
            for state in self._states.values():
                state.lose(datetime.now(timezone.utc), ended.message)

    def _fail_all(self, error: StreamError) -> None:
        self._is_closing = True
        for state in self._states.values():
            state.fail(error)

    def _subscribe(self, id: str, state: SubscriptionState) -> None:
        assert self._session is not None
        self._session.subscribe(id, state.pattern, state.headers)
        self._wake.set()


def not_confirmed(pattern: str, seconds: float, broker: BrokerClient) -> StreamLost:
    return StreamLost(f"the broker did not confirm {pattern!r} within {seconds:g} s: {broker.last_error}")
