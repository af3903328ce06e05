"""The socket of a strategy link: TCP, TLS or a Unix socket."""

from __future__ import annotations

import select
import socket
import ssl
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ..errors import DecodeError, PitlaneError
from ..settings import Verify, tls_context
from . import frames

PORT = 9882
# Time to connect and to log in, and longest time in which the server reads nothing.
TIMEOUT_S = 5.0
READ_BYTES = 256 * 1024


class LinkAddress(NamedTuple):
    """Where the server listens; `path` is that of a Unix socket, otherwise empty."""

    host: str
    port: int
    path: str
    is_secure: bool


class LinkLost(Exception):
    """The connection ended, or could not be opened. Another attempt may succeed."""


class LinkRejected(PitlaneError):
    """The server refused the connection, and another attempt would not succeed.

    `code` is stable, such as `bad-token` or `unknown-strategy`.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


def parse_addresses(text: str) -> list[LinkAddress]:
    """Parses the addresses of a server and its standby, separated by commas."""
    return [parse_address(address.strip()) for address in text.split(",")]


def parse_address(address: str) -> LinkAddress:
    """Parses `pitlane://HOST:PORT`, `pitlanes://HOST:PORT` or `unix:PATH`."""
    if "@" in address:
        raise ValueError("the address must not contain a login: use token=…")
    if address.startswith("unix:"):
        # Both unix:/path and the form of a URL, unix:///path, are in use.
        path = address[len("unix:") :]
        path = path[2:] if path.startswith("//") else path
        if path:
            return LinkAddress("", 0, path, False)
    else:
        url = urlsplit(address)
        is_plain = not (url.path.strip("/") or url.query or url.fragment)
        if url.scheme in ("pitlane", "pitlanes") and url.hostname and is_plain:
            return LinkAddress(url.hostname, url.port or PORT, "", url.scheme == "pitlanes")
    raise ValueError(
        f"{address!r} is not the address of a server: use pitlane://HOST:PORT, pitlanes://HOST:PORT or unix:PATH"
    )


class LinkConnection:
    """A connection on which the login has succeeded."""

    def __init__(self, address: LinkAddress, strategy: str, token: str, verify: Verify) -> None:
        self._buffer = frames.FrameBuffer()
        self._received: list[frames.ServerFrame] = []
        self._socket = _open(address, verify)
        try:
            self._socket.sendall(frames.login(strategy, token))
            while not self._received:
                self._read()
        except (OSError, LinkLost) as error:
            self._socket.close()
            raise LinkLost(str(error)) from error
        answer = self._received.pop(0)
        if isinstance(answer, frames.LoggedIn):
            self.server, self.idle_s = answer.server, answer.idle_ms / 1000
            return
        self._socket.close()
        if not isinstance(answer, frames.LinkRefused):
            raise LinkLost("the server did not answer the login")
        raise LinkLost(answer.text) if answer.retry else LinkRejected(answer.code, answer.text)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise LinkLost(str(error)) from error

    def receive(self, timeout_s: float, wakeup: socket.socket | None = None) -> list[frames.ServerFrame]:
        """Waits for frames up to a time, or until `wakeup` is readable."""
        if not self._received and (self._has_pending() or self._wait(timeout_s, wakeup)):
            self._read()
        received, self._received = self._received, []
        for frame in received:
            if isinstance(frame, frames.LinkRefused):
                raise LinkLost(frame.text) if frame.retry else LinkRejected(frame.code, frame.text)
        return received

    def close(self) -> None:
        self._socket.close()

    def _has_pending(self) -> bool:
        """Whether TLS has decrypted data that the socket no longer shows."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _wait(self, timeout_s: float, wakeup: socket.socket | None) -> bool:
        waited = [self._socket] if wakeup is None else [self._socket, wakeup]
        return self._socket in wait_readable(waited, timeout_s)

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except OSError as error:
            raise LinkLost(str(error)) from error
        if not data:
            raise LinkLost("the server closed the connection")
        try:
            self._received += self._buffer.feed(data)
        except DecodeError as error:
            raise LinkLost(str(error)) from error


def wait_readable(sockets: list[socket.socket], timeout_s: float) -> list[socket.socket]:
    return list(select.select(sockets, [], [], max(0.0, timeout_s))[0])


def _open(address: LinkAddress, verify: Verify) -> socket.socket:
    try:
        if address.path:
            unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            unix.settimeout(TIMEOUT_S)
            unix.connect(str(Path(address.path)))
            return unix
        plain = socket.create_connection((address.host, address.port), TIMEOUT_S)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not address.is_secure:
                return plain
            return tls_context(verify).wrap_socket(plain, server_hostname=address.host)
        except BaseException:
            plain.close()
            raise
    except ssl.SSLCertVerificationError as error:
        raise LinkRejected("bad-certificate", str(error)) from error
    except OSError as error:
        raise LinkLost(f"cannot connect: {error}") from error
