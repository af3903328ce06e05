"""Connections for plain threads, which share them. Each request has one while it waits."""

from __future__ import annotations

import select
import socket
import threading
import time
from typing import Mapping

from ..settings import Settings
from .message import RequestEncoder, Response, ResponseDecoder, TransportError
from .pool_limits import CONNECTIONS_MAX, KEEP_ALIVE_S, READ_BYTES


class HttpClient:
    def __init__(self, settings: Settings) -> None:
        self._encoder = RequestEncoder(settings.base_url, settings.authorization)
        self._address, self._timeout_s = (settings.host, settings.port), settings.timeout_s
        self._tls = settings.tls() if settings.is_secure else None
        # Guards the idle connections, of which the most recently used is last, and the number of
        # all connections. Notified when either changes.
        self._changed = threading.Condition()
        self._idle: list[_Connection] = []
        self._count = 0
        self._is_closed = False

    def request(self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None) -> Response:
        """Sends a request and returns the response. Raises `TransportError` if there is none."""
        data = self._encoder.encode(method, target, headers, body)
        connection = self._acquire()
        try:
            response = connection.exchange(data)
        except BaseException:
            self._drop(connection)
            raise
        self._release(connection)
        return response

    def close(self) -> None:
        """Closes the idle connections, and the others after their requests."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._count -= len(idle)
        for connection in idle:
            connection.close()

    def _acquire(self) -> _Connection:
        until = time.monotonic() + self._timeout_s
        with self._changed:
            while True:
                if self._is_closed:
                    raise TransportError("the client is closed", is_unsent=True)
                while self._idle:
                    connection = self._idle.pop()
                    if connection.is_usable():
                        return connection
                    self._count -= 1
                    connection.close()
                if self._count < CONNECTIONS_MAX:
                    self._count += 1
                    break
                if not self._changed.wait(until - time.monotonic()):
                    raise TransportError("all connections are in use", is_unsent=True)
        try:
            return self._open()
        except BaseException:
            with self._changed:
                self._count -= 1
                self._changed.notify()
            raise

    def _open(self) -> _Connection:
        try:
            plain = socket.create_connection(self._address, self._timeout_s)
            try:
                # A request is one write, so there is nothing to collect.
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is None:
                    return _Connection(plain)
                return _Connection(self._tls.wrap_socket(plain, server_hostname=self._address[0]))
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise TransportError(f"cannot connect: {error}", is_unsent=True) from error

    def _release(self, connection: _Connection) -> None:
        if not connection.can_reuse or self._is_closed:
            return self._drop(connection)
        connection.idle_since = time.monotonic()
        with self._changed:
            self._idle.append(connection)
            self._changed.notify()

    def _drop(self, connection: _Connection) -> None:
        connection.close()
        with self._changed:
            self._count -= 1
            self._changed.notify()


class _Connection:
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.can_reuse = True
        self.idle_since = 0.0

    def exchange(self, data: bytes) -> Response:
        decoder = ResponseDecoder()
        try:
            self._socket.sendall(data)
            while True:
                received = self._socket.recv(READ_BYTES)
                response = decoder.feed(received) if received else decoder.feed_end()
                if response is not None:
                    self.can_reuse = decoder.can_reuse and bool(received)
                    return response
        except OSError as error:
            raise TransportError(f"the connection was lost: {error}") from error

    def is_usable(self) -> bool:
        """Returns whether the service has kept the connection open.

        An idle connection becomes readable when the service closes it.
        """
        return time.monotonic() - self.idle_since < KEEP_ALIVE_S and not _is_readable(self._socket)

    def close(self) -> None:
        try:
            self._socket.close()
        except OSError:
            # The connection was already lost.
            pass


def _is_readable(connected: socket.socket) -> bool:
    if hasattr(select, "poll"):
        poller = select.poll()
        poller.register(connected, select.POLLIN)
        return bool(poller.poll(0))
    # Windows has no poll, and its select has no limit for the number of a socket.
    return bool(select.select([connected], [], [], 0)[0])
