"""`pitlane.run`: one strategy in a process of its own.

```text
Hello ─► Welcome ─► reference data, state, missed events ─► RemoteRunner ─► … ─► Bye
  ▲                                                            │
  └──────────── missed events are no longer available ◄────────┘
```
"""

from __future__ import annotations

import copy
import logging
import os
import signal
import socket
import threading
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Callable, Union

from ..errors import DecodeError, PitlaneError
from ..settings import Verify
from ..strategy import Strategy, name_of
from . import frames
from .connection import LinkAddress, LinkConnection, LinkLost, parse_addresses, wait_readable
from .market_events import NumberedEvent
from .messages import (
    Fetch,
    Hello,
    Missed,
    Piece,
    PieceReply,
    Refused,
    Reply,
    Request,
    Wait,
    Welcome,
    decode_events,
    decode_prices,
    decode_reply,
    decode_state,
)
from .record import EventRecord
from .reference import Reference
from .remote_runner import RemoteRunner, RestartNeeded, ServerRefused

# Timeout of an answer during the handshake, and pause between two attempts.
ANSWER_S = 1.0
RETRY_S = 0.1
# Longest time of an orderly shutdown.
END_S_MAX = 3.0
# Longest wait of the loop if nothing is due.
WAIT_S_MAX = 1.0
TOKEN_VARIABLE = "PITLANE_STRATEGIES__TOKEN"

_log = logging.getLogger("pitlane.live")

StrategySource = Union[Strategy, Callable[[], Strategy]]


class StrategyRefused(PitlaneError):
    """The server does not let this process run the strategy; the text is its reason."""


def run(
    strategy: StrategySource,
    address: str = "pitlane://127.0.0.1:9882",
    *,
    token: str | None = None,
    verify: Verify = True,
    record: str | os.PathLike[str] | None = None,
    orders_per_s: int | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Runs a strategy until SIGINT or SIGTERM, until `stop` is set, or until the server refuses it.

    `strategy` is an object, or a class or function that creates one. The settings of the server
    have a `[[strategy]]` table with its name. `address` is `pitlane://HOST:PORT`, with TLS
    `pitlanes://HOST:PORT`, or `unix:PATH`; a comma separates a server and its standby. `token` is a
    token of the role `strategy`, by default the environment variable PITLANE_STRATEGIES__TOKEN.
    `record` is a folder in which the process notes what it has received and requested. With
    `orders_per_s`, more orders wait instead of being refused.

    The server executes each order once, and the strategy receives each event once and in order,
    through losses of the connection and restarts of either side. While the connection is lost,
    orders are refused with the reason `broker-lost`. A strategy that raises an exception is
    stopped, and the server shows the traceback; this function then waits for an operator to start
    it again.
    """
    make = _factory(strategy)
    sample = make.first
    secret = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    kept = None if record is None else EventRecord(Path(record), name_of(sample))
    with _StopSignals(stop) as stopping:
        process = _StrategyProcess(parse_addresses(address), make, secret, verify, kept, orders_per_s, stopping)
        try:
            process.run()
        finally:
            process.close()
            if kept is not None:
                kept.close()


class _Factory:
    """Creates a strategy in its initial state, also when an operator starts it again."""

    def __init__(self, source: StrategySource) -> None:
        if isinstance(source, Strategy):
            self.first = source
            self._pristine = copy.deepcopy(source)
            self._create: Callable[[], Strategy] = lambda: copy.deepcopy(self._pristine)
        else:
            self.first, self._create = source(), source
        if not isinstance(self.first, Strategy):
            raise TypeError(f"a strategy extends pitlane.Strategy; {type(self.first).__name__} does not")
        self._is_first = True

    def __call__(self) -> Strategy:
        if self._is_first:
            self._is_first = False
            return self.first
        return self._create()


def _factory(source: StrategySource) -> _Factory:
    if not isinstance(source, Strategy) and not callable(source):
        raise TypeError("run needs a pitlane.Strategy, or a class or function that creates one")
    return _Factory(source)


class _StopSignals:
    """A request to stop: by a signal if this is the main thread, or by an event of the caller."""

    def __init__(self, event: threading.Event | None) -> None:
        self._event = event
        self._is_set = False
        self.wakeup, self._sender = socket.socketpair()
        self._handlers: dict[int, Any] = {}

    @property
    def is_set(self) -> bool:
        return self._is_set or (self._event is not None and self._event.is_set())

    def __enter__(self) -> _StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self.wakeup.close()
        self._sender.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._is_set:
            self._is_set = True
            # The loop waits for the sockets only.
            self._sender.send(b"\0")


class _StrategyProcess:
    def __init__(
        self,
        addresses: list[LinkAddress],
        make: _Factory,
        token: str,
        verify: Verify,
        record: EventRecord | None,
        orders_per_s: int | None,
        stopping: _StopSignals,
    ) -> None:
        self._addresses, self._make, self._token, self._verify = addresses, make, token, verify
        self._record, self._orders_per_s, self._stopping = record, orders_per_s, stopping
        self._received = [] if record is None else record.received
        self._connection: LinkConnection | None = None
        self._frame_at = 0.0
        # Events of other strategies that arrived during a handshake.
        self._early: list[frames.GenericFrame] = []
        self._number = 0
        # A clock that never goes back.
        self._clock_offset = time.time_ns() - time.monotonic_ns()

    def run(self) -> None:
        while not self._stopping.is_set:
            runner = self._begin()
            if runner is None:
                return
            _log.info("the strategy %s is connected", name_of(self._make.first))
            try:
                return self._run_until_end(runner)
            except RestartNeeded:
                _log.warning("the server no longer has the missed events: the strategy restarts from the state")
                self._received = runner.received
            except ServerRefused as refused:
                raise StrategyRefused(str(refused)) from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _now(self) -> int:
        return time.monotonic_ns() + self._clock_offset

    def _begin(self) -> RemoteRunner | None:
        """Repeats the handshake until the server accepts; returns None if a stop comes first."""
        waits_for = ""
        while not self._stopping.is_set:
            try:
                self._ensure_connected()
                incarnation = self._now()
                reply = self._ask(Hello(incarnation, _host(), self._received))
                if isinstance(reply, Refused):
                    raise StrategyRefused(reply.text)
                if isinstance(reply, Welcome):
                    runner = self._prepare(incarnation, reply)
                    if runner is not None:
                        return runner
                text = reply.text if isinstance(reply, Wait) else ""
            except LinkLost as lost:
                self.close()
                text = str(lost)
            if text and text != waits_for:
                _log.warning("waiting for the server: %s", text)
                waits_for = text
            wait_readable([self._stopping.wakeup], RETRY_S)
        return None

    def _prepare(self, incarnation: int, welcome: Welcome) -> RemoteRunner | None:
        """Fetches the announced data; returns None if the server went away in the meantime."""
        reference = self._fetch_blob(incarnation, False, welcome.reference_bytes)
        state = self._fetch_blob(incarnation, True, welcome.state_bytes)
        is_known = bool(self._received) and welcome.complete
        missed = self._fetch_missed(incarnation, welcome) if is_known else []
        if reference is None or state is None or missed is None:
            return None
        if self._record is not None and not is_known:
            self._record.begun([head.seen for head in welcome.heads])
        now = self._now()
        runner = RemoteRunner(
            now,
            incarnation,
            welcome,
            Reference(reference),
            self._make.first,
            self._make,
            self._record,
            self._orders_per_s,
        )
        runner.begin(now, missed, decode_state(state), welcome.start)
        return runner

    def _fetch_blob(self, incarnation: int, is_state: bool, total: int) -> bytes | None:
        data = b""
        while len(data) < total:
            reply = self._ask(Piece(incarnation, is_state, len(data)))
            if not isinstance(reply, PieceReply) or not reply.data:
                return None
            data += reply.data
        return data

    def _fetch_missed(self, incarnation: int, welcome: Welcome) -> list[NumberedEvent] | None:
        """Returns the events between the last one received and the state."""
        received, events = list(self._received), []
        while True:
            reply = self._ask(Fetch(incarnation, received))
            if not isinstance(reply, Missed):
                return None
            for numbered in reply.events:
                if numbered.shard >= min(len(received), len(welcome.heads)):
                    return None
                received[numbered.shard] = numbered.event.seq
                # Events after the state are delivered later.
                if numbered.event.seq <= welcome.heads[numbered.shard].seen:
                    events.append(numbered)
            if not reply.more:
                return events

    def _ask(self, request: Request) -> Reply | None:
        """Sends a request and returns its reply; None if there is none in time."""
        assert self._connection is not None
        self._number += 1
        self._connection.send(frames.request(self._number, request.encode()))
        until = time.monotonic() + ANSWER_S
        while (left := until - time.monotonic()) > 0:
            for frame in self._connection.receive(left):
                # Missed events are fetched later; prices are repeated.
                if isinstance(frame, frames.GenericFrame):
                    self._early.append(frame)
                elif isinstance(frame, frames.ReplyFrame) and frame.number == self._number:
                    return decode_reply(frame.reply)
        return None

    def _ensure_connected(self) -> LinkConnection:
        if self._connection is None:
            name, address = name_of(self._make.first), self._addresses[0]
            # The next attempt tries the next address.
            self._addresses = [*self._addresses[1:], address]
            self._connection = LinkConnection(address, name, self._token, self._verify)
            self._frame_at = time.monotonic()
            self._early.clear()
        return self._connection

    def _run_until_end(self, runner: RemoteRunner) -> None:
        # The numbers of the handshake are used on the same connection.
        runner.set_first_number(self._number)
        for early in self._early:
            runner.handle_generic(self._now(), early)
        self._early.clear()
        ends_at: float | None = None
        while True:
            if self._stopping.is_set and ends_at is None:
                ends_at = time.monotonic() + END_S_MAX
                runner.wind_down(self._now())
            try:
                self._exchange(runner, ends_at is None)
            except LinkLost as lost:
                self.close()
                _log.debug("the connection to the server was lost: %s", lost)
                runner.set_connected(self._now(), False)
            if ends_at is not None and (runner.has_left or time.monotonic() >= ends_at):
                return self._leave(runner)
            if self._connection is None and not self._reconnect(runner):
                wait_readable([self._stopping.wakeup] if ends_at is None else [], RETRY_S)

    def _exchange(self, runner: RemoteRunner, may_wake: bool) -> None:
        """Sends what is due, and handles what arrives until something is due again."""
        out = runner.poll(self._now())
        connection = self._connection
        if connection is None:
            return
        if out:
            connection.send(b"".join(out))
        wait_s = min(WAIT_S_MAX, max(0.0, (runner.deadline() - self._now()) / 1e9))
        received = connection.receive(wait_s, self._stopping.wakeup if may_wake else None)
        if received:
            self._frame_at = time.monotonic()
        elif time.monotonic() - self._frame_at > connection.idle_s:
            raise LinkLost("the server was silent for too long")
        try:
            for frame in received:
                self._handle_frame(runner, frame)
        except DecodeError as error:
            raise LinkLost(str(error)) from error

    def _handle_frame(self, runner: RemoteRunner, frame: frames.ServerFrame) -> None:
        now = self._now()
        if isinstance(frame, frames.PricesFrame):
            runner.handle_prices(now, decode_prices(frame.batch))
        elif isinstance(frame, frames.EventsFrame):
            runner.handle_events(now, decode_events(frame.batch))
        elif isinstance(frame, frames.ReplyFrame):
            runner.handle_reply(now, frame.number, decode_reply(frame.reply))
        elif isinstance(frame, frames.GenericFrame):
            runner.handle_generic(now, frame)
        elif isinstance(frame, frames.Published):
            runner.handle_published(frame.number)

    def _reconnect(self, runner: RemoteRunner) -> bool:
        try:
            self._ensure_connected()
        except LinkLost:
            return False
        runner.set_connected(self._now(), True)
        return True

    def _leave(self, runner: RemoteRunner) -> None:
        if self._connection is not None:
            try:
                self._connection.send(runner.leave())
                # The server answers, or closes the connection.
                self._connection.receive(RETRY_S)
            except LinkLost:
                pass


def _host() -> str:
    """Returns the host and the process id, for the operator of the server."""
    return f"{socket.gethostname()}:{os.getpid()}"
