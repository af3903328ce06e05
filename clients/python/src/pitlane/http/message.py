"""Requests and responses of HTTP/1.1, without a socket."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Mapping
from urllib.parse import urlsplit

# Above the limits of the service: its heads are below 1 KiB.
HEAD_BYTES_MAX = 64 * 1024
# A list of all orders that the service can find by id has about 200 MB.
BODY_BYTES_MAX = 1024 * 1024 * 1024
# Digits of the size of a chunk: more than `BODY_BYTES_MAX` needs.
_CHUNK_DIGITS_MAX = 8
_HEX = frozenset(b"0123456789abcdefABCDEF")
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) (\d{3})(?: |$)", re.ASCII)
# A line with a name without spaces: with one, it is a folded line or an attempt to smuggle a header
# (RFC 9112, 5.1).
_HEADER = re.compile(r"^([!-9;-~]+):[ \t]*([^\r\n]*?)[ \t]*(?:\r\n|\Z)", re.MULTILINE)


class TransportError(Exception):
    """There was no complete response.

    `is_unsent`: no byte of the request was sent, so the service cannot have executed it.
    """

    def __init__(self, message: str, *, is_unsent: bool = False) -> None:
        super().__init__(message)
        self.is_unsent = is_unsent


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    """Headers by their names in lower case."""
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


class RequestEncoder:
    """Encodes the requests to one service. Address and login are rendered once."""

    def __init__(self, base_url: str, authorization: str | None) -> None:
        parts = urlsplit(base_url)
        self._prefix = parts.path.rstrip("/")
        # Without the user information, which is no part of the Host header.
        host = parts.netloc.rpartition("@")[2].encode("idna").decode()
        lines = [f"Host: {host}", "Accept: application/json, application/problem+json"]
        if authorization is not None:
            if not (authorization.isascii() and authorization.isprintable()):
                raise ValueError("a token has printable ASCII characters only")
            lines.append(f"Authorization: {authorization}")
        self._common = "".join(f"{line}\r\n" for line in lines)

    def encode(self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None) -> bytes:
        """Returns the bytes of a request. `target` is percent-encoded, with its query."""
        lines = [f"{method} {self._prefix}{target} HTTP/1.1\r\n", self._common]
        for name, value in (headers or {}).items():
            lines.append(f"{name}: {value}\r\n")
        if body is not None:
            lines.append(f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
            return "".join(lines).encode("ascii") + body
        # The methods that usually have a body need its length even if it is empty (RFC 9110, 8.6).
        lines.append("\r\n" if method in ("GET", "DELETE") else "Content-Length: 0\r\n\r\n")
        return "".join(lines).encode("ascii")


def basic_authorization(name: str, password: str) -> str:
    """Returns the Authorization of a login with a password (RFC 7617)."""
    if ":" in name:
        raise ValueError("the name of a login must not contain a colon")
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


class ResponseDecoder:
    """Decodes one response from data in pieces of any size.

    ```text
    head ──┬─► chunked body ─────────────┬─► complete
           ├─► body with Content-Length ─┤
           └─► body until the end ───────┘
    ```
    Must not be used after an error or after the response.
    """

    def __init__(self) -> None:
        # The data that is not decoded yet, and the bytes without which nothing more can be decoded.
        # A long body is joined once, not again with each piece.
        self._pieces: list[bytes] = []
        self._missing = 1
        self._status = 0
        self._headers: dict[str, str] | None = None
        # Bytes of the body, or None: until the connection ends.
        self._length: int | None = None
        self._is_chunked = False
        # The decoded chunks and their length.
        self._chunks: list[bytes] = []
        self._chunks_bytes = 0
        self._is_in_trailer = False
        self._is_kept = False

    @property
    def can_reuse(self) -> bool:
        """Whether the connection can be used for another request after this response."""
        return self._is_kept and not self._pieces

    def feed(self, data: bytes) -> Response | None:
        """Returns the response if this data completes it."""
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return None
        buffer = data if len(self._pieces) == 1 else b"".join(self._pieces)
        while self._headers is None:
            end = buffer.find(b"\r\n\r\n")
            if end > HEAD_BYTES_MAX or (end < 0 and len(buffer) > HEAD_BYTES_MAX):
                raise TransportError("the head of a response is too long")
            if end < 0:
                self._wait_for(1, buffer)
                return None
            self._read_head(buffer[:end])
            buffer = buffer[end + 4 :]
        if self._is_chunked:
            return self._read_chunks(buffer)
        length = BODY_BYTES_MAX + 1 if self._length is None else self._length
        if len(buffer) < length:
            self._wait_for(length - len(buffer), buffer)
            return None
        if self._length is None:
            raise TransportError("a response is too long")
        return self._complete(buffer[:length], buffer[length:])

    def feed_end(self) -> Response:
        """Returns the response if the end of the connection completes it."""
        if self._headers is None or self._is_chunked or self._length is not None:
            raise TransportError("the service closed the connection before its response was complete")
        return self._complete(b"".join(self._pieces), b"")

    def _wait_for(self, missing: int, buffer: bytes) -> None:
        self._missing = missing
        self._pieces = [buffer] if buffer else []

    def _complete(self, content: bytes, rest: bytes) -> Response:
        assert self._headers is not None
        self._pieces = [rest] if rest else []
        return Response(self._status, self._headers, content)

    def _read_head(self, head: bytes) -> None:
        start, _, rest = head.decode("latin-1").partition("\r\n")
        match = _STATUS_LINE.match(start)
        if match is None:
            raise TransportError(f"not a response of HTTP/1.1: {start[:40]!r}")
        version, code = match.groups()
        headers = _headers(rest)
        self._status = int(code)
        if self._status < 200:
            # An interim response; the final one follows. The client never asks for an upgrade.
            if self._status == 101:
                raise TransportError("the service switched to another protocol")
            return
        self._read_framing(headers)
        is_closing = "close" in headers.get("connection", "").lower()
        self._is_kept = version == "1" and not is_closing and (self._is_chunked or self._length is not None)
        self._headers = headers

    def _read_framing(self, headers: Mapping[str, str]) -> None:
        """Finds out where the body ends (RFC 9112, 6.3)."""
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if self._status in (204, 304):
            self._length = 0
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise TransportError(f"unknown transfer coding {coding[:40]!r}")
            self._is_chunked = True
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 10 or int(length) > BODY_BYTES_MAX:
                raise TransportError(f"invalid Content-Length {length[:20]!r}")
            self._length = int(length)

    def _read_chunks(self, buffer: bytes) -> Response | None:
        at = 0
        while True:
            end = buffer.find(b"\r\n", at)
            if end < 0:
                if len(buffer) - at > HEAD_BYTES_MAX:
                    raise TransportError("the head of a chunk is too long")
                self._wait_for(1, buffer[at:])
                return None
            if self._is_in_trailer:
                # Trailers have no meaning here; an empty line ends them.
                is_last, at = end == at, end + 2
                if is_last:
                    return self._complete(b"".join(self._chunks), buffer[at:])
                continue
            size, start = _chunk_size(buffer[at:end]), end + 2
            if size == 0:
                self._is_in_trailer, at = True, start
                continue
            if self._chunks_bytes + size > BODY_BYTES_MAX:
                raise TransportError("a response is too long")
            missing = start + size + 2 - len(buffer)
            if missing > 0:
                self._wait_for(missing, buffer[at:])
                return None
            if buffer[start + size : start + size + 2] != b"\r\n":
                raise TransportError("a chunk does not end after its size")
            self._chunks.append(buffer[start : start + size])
            self._chunks_bytes += size
            at = start + size + 2


def _headers(text: str) -> dict[str, str]:
    found = _HEADER.findall(text)
    headers = {name.lower(): value for name, value in found}
    lines = text.count("\n") + 1 if text else 0
    if len(headers) == lines:
        return headers
    if len(found) != lines:
        raise TransportError(f"invalid header in {text[:200]!r}")
    # Repeated headers are one list.
    for name in headers:
        headers[name] = ", ".join(value for other, value in found if other.lower() == name)
    return headers


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].rstrip(b" \t")
    if not digits or len(digits) > _CHUNK_DIGITS_MAX or not _HEX.issuperset(digits):
        raise TransportError(f"invalid chunk size {line[:20]!r}")
    return int(digits, 16)
