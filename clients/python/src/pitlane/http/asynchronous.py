"""Connections for asyncio. Each request has a connection of its own while it waits."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Mapping, cast

from ..settings import Settings
from .message import RequestEncoder, Response, ResponseDecoder, TransportError
from .pool_limits import CONNECTIONS_MAX, KEEP_ALIVE_S

# Time for the connections to end, which with TLS takes a message in each direction.
CLOSE_S_MAX = 1.0


class AsyncHttpClient:
    def __init__(self, settings: Settings) -> None:
        self._encoder = RequestEncoder(settings.base_url, settings.authorization)
        self._address, self._timeout_s = (settings.host, settings.port), settings.timeout_s
        self._tls = settings.tls() if settings.is_secure else None
        # The most recently used connection is last.
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        # Connections that are open or being opened.
        self._count = 0
        # Requests that wait for a connection, or for room for another one.
        self._waiting: deque[asyncio.Future[_Connection | None]] = deque()
        self._is_closed = False

    async def request(
        self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> Response:
        """Sends a request and returns the response. Raises `TransportError` if there is none."""
        data = self._encoder.encode(method, target, headers, body)
        connection = self._take_idle() or await self._acquire()
        try:
            response = await connection.exchange(data, self._timeout_s)
        except BaseException:
            # Also if the caller was cancelled: the response would be that of the next request.
            self._drop(connection)
            raise
        self._release(connection)
        return response

    async def aclose(self) -> None:
        """Closes all connections. Requests that still wait fail."""
        self._is_closed = True
        self._idle.clear()
        ending = [connection.close() for connection in self._open]
        while self._waiting:
            self._pass_on(None)
        if ending:
            await asyncio.wait(ending, timeout=CLOSE_S_MAX)

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            self._drop(connection)
        return None

    async def _acquire(self) -> _Connection:
        if self._is_closed:
            raise TransportError("the client is closed", is_unsent=True)
        if self._count < CONNECTIONS_MAX:
            return await self._connect()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[_Connection | None] = loop.create_future()
        self._waiting.append(waiter)
        timer = loop.call_later(self._timeout_s, _expire, waiter)
        try:
            connection = await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._pass_on(waiter.result())
            raise
        finally:
            timer.cancel()
        if connection is not None and connection.is_usable():
            return connection
        if connection is not None:
            self._drop(connection)
        return await self._acquire()

    def _pass_on(self, connection: _Connection | None) -> None:
        """Gives a connection, or the room for another one, to the request that waits longest."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter.set_result(connection)
        if connection is not None:
            self._idle.append(connection)

    async def _connect(self) -> _Connection:
        loop, (host, port) = asyncio.get_running_loop(), self._address
        self._count += 1
        try:
            opening = loop.create_connection(
                lambda: _Connection(loop), host, port, ssl=self._tls, server_hostname=host if self._tls else None
            )
            _, protocol = await asyncio.wait_for(opening, self._timeout_s)
        except BaseException as error:
            self._count -= 1
            self._pass_on(None)
            if isinstance(error, (OSError, asyncio.TimeoutError)):
                message = str(error) or f"no answer within {self._timeout_s:g} s"
                raise TransportError(f"cannot connect: {message}", is_unsent=True) from error
            raise
        self._open.add(protocol)
        return protocol

    def _release(self, connection: _Connection) -> None:
        if not connection.can_reuse or self._is_closed:
            return self._drop(connection)
        connection.idle_since = time.monotonic()
        self._pass_on(connection)

    def _drop(self, connection: _Connection) -> None:
        connection.abort()
        self._open.discard(connection)
        self._count -= 1
        self._pass_on(None)


def _expire(waiter: asyncio.Future[_Connection | None]) -> None:
    if not waiter.done():
        waiter.set_exception(TransportError("all connections are in use", is_unsent=True))


class _Connection(asyncio.Protocol):
    """A connection with at most one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._decoder: ResponseDecoder | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._ended: asyncio.Future[None] = loop.create_future()
        self._received_at = 0.0
        self.can_reuse = True
        self.idle_since = 0.0

    async def exchange(self, data: bytes, timeout_s: float) -> Response:
        if self._transport is None or self._transport.is_closing():
            raise TransportError("the connection was lost", is_unsent=True)
        self._decoder, self._answer = ResponseDecoder(), self._loop.create_future()
        self._received_at = self._loop.time()
        timer = self._loop.call_at(self._received_at + timeout_s, self._handle_timeout, timeout_s, self._answer)
        self._transport.write(data)
        try:
            return await self._answer
        finally:
            timer.cancel()
            self._decoder = self._answer = None

    def is_usable(self) -> bool:
        is_fresh = time.monotonic() - self.idle_since < KEEP_ALIVE_S
        return is_fresh and self.can_reuse and self._transport is not None and not self._transport.is_closing()

    def close(self) -> asyncio.Future[None]:
        """Returns a future for the end of the connection."""
        if self._transport is not None:
            self._transport.close()
        return self._ended

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        decoder, answer = self._decoder, self._answer
        if decoder is None or answer is None or answer.done():
            # The service sent data that no request asked for.
            self.can_reuse = False
            self.abort()
            return
        self._received_at = self._loop.time()
        try:
            response = decoder.feed(data)
        except TransportError as error:
            return self._fail(error)
        if response is not None:
            self.can_reuse = decoder.can_reuse
            answer.set_result(response)

    def eof_received(self) -> bool:
        self.can_reuse = False
        if self._decoder is not None and self._answer is not None and not self._answer.done():
            try:
                self._answer.set_result(self._decoder.feed_end())
            except TransportError as error:
                self._fail(error)
        # The transport closes itself.
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.can_reuse = False
        self._fail(TransportError(f"the connection was lost: {error or 'closed'}"))
        if not self._ended.done():
            self._ended.set_result(None)

    def _handle_timeout(self, timeout_s: float, answer: asyncio.Future[Response]) -> None:
        """Ends the request if the service has been silent for the whole time."""
        if answer.done():
            return
        until = self._received_at + timeout_s
        if self._loop.time() < until:
            self._loop.call_at(until, self._handle_timeout, timeout_s, answer)
        else:
            self._fail(TransportError(f"no response within {timeout_s:g} s"))

    def _fail(self, error: TransportError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
