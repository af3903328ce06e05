"""Encodes and decodes STOMP frames.

```text
COMMAND LF
name:value LF …        escaped: \\\\ \\n \\r \\c
LF
body NUL               content-length bytes, or everything up to the first NUL
```
There may be any number of line ends between frames; they are heart-beats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, Mapping

# Above the limits of the service: its heads are below 1 KiB, its bodies below 64 KiB.
HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 1024 * 1024

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c"}
_UNESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "c": ":"}
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
# These frames do not escape headers, as in STOMP 1.0, so that every version can read them.
_UNESCAPED = ("CONNECT", "CONNECTED")


class FrameError(Exception):
    """The data is not a valid frame."""


@dataclass(frozen=True)
class Frame:
    command: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def encode(frame: Frame) -> bytes:
    plain = frame.command in _UNESCAPED
    lines = [frame.command]
    for name, value in frame.headers.items():
        lines.append(f"{name}:{value}" if plain else f"{escape(name)}:{escape(value)}")
    if frame.body:
        lines.append(f"content-length:{len(frame.body)}")
    return "\n".join(lines).encode() + b"\n\n" + frame.body + b"\0"


class Decoder:
    """Decodes frames from data in pieces of any size. Must not be used after an error."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        # Command and headers of the current frame, and the length of its body if known.
        self._head: tuple[str, dict[str, str]] | None = None
        self._length: int | None = None
        # Offset up to which the buffer has been searched.
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        while True:
            frame = self._next()
            if frame is None:
                return
            yield frame

    def _next(self) -> Frame | None:
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        end = self._body_end()
        if end is None:
            return None
        (command, headers), body = self._head, bytes(self._buffer[:end])
        self._drop(end + 1)
        self._head = self._length = None
        return Frame(command, headers, body)

    def _read_head(self) -> bool:
        start = 0
        while start < len(self._buffer) and self._buffer[start] in b"\r\n":
            start += 1
        if start:
            self._drop(start)
        end = self._blank_line()
        if end is None:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise FrameError("the head of a frame is too long")
            return False
        self._head = _head(bytes(self._buffer[:end]))
        self._length = _content_length(self._head[1])
        self._drop(end)
        return True

    def _blank_line(self) -> int | None:
        """Returns the end of the head, which is after the first empty line."""
        at = self._searched
        while (at := self._buffer.find(b"\n", at)) >= 0:
            rest = self._buffer[at + 1 : at + 3]
            if rest[:1] == b"\n":
                return at + 2
            if rest == b"\r\n":
                return at + 3
            if bytes(rest) in (b"", b"\r"):
                # The next bytes decide.
                self._searched = at
                return None
            at += 1
        self._searched = len(self._buffer)
        return None

    def _body_end(self) -> int | None:
        if self._length is None:
            end = self._buffer.find(b"\0", self._searched)
            self._searched = len(self._buffer)
            if end < 0 and len(self._buffer) > BODY_BYTES_MAX:
                raise FrameError("the body of a frame is too long")
            return None if end < 0 else end
        if len(self._buffer) <= self._length:
            return None
        if self._buffer[self._length] != 0:
            raise FrameError("a body does not end after content-length bytes")
        return self._length

    def _drop(self, count: int) -> None:
        del self._buffer[:count]
        self._searched = 0


def escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def unescape(text: str) -> str:
    return _ESCAPED.sub(_plain, text) if "\\" in text else text


def _plain(match: re.Match[str]) -> str:
    try:
        return _UNESCAPES[match.group(1)]
    except KeyError:
        raise FrameError(f"unknown escape {match.group()!r}") from None


def _head(data: bytes) -> tuple[str, dict[str, str]]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FrameError("the head of a frame is not UTF-8") from error
    command, *lines = [line[:-1] if line.endswith("\r") else line for line in text.split("\n")]
    read = str if command in _UNESCAPED else unescape
    headers: dict[str, str] = {}
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon:
            raise FrameError(f"header without a colon: {line[:40]!r}")
        # The first of repeated headers is used.
        headers.setdefault(read(name), read(value))
    return command, headers


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > BODY_BYTES_MAX:
        raise FrameError(f"invalid content-length {text[:20]!r}")
    return int(text)
