"""Frames of the strategy link: a length, a kind and a body."""

from __future__ import annotations

from typing import NamedTuple, Union

from ..errors import DecodeError
from .codec import Reader, Writer

LINK_VERSION = 1
# The longest frame that a server sends, without its length.
FRAME_BYTES_MAX = (1 << 20) + (64 << 10)
_LENGTH_BYTES = 4


class LoggedIn(NamedTuple):
    version: int
    server: str
    idle_ms: int


class LinkRefused(NamedTuple):
    """The last frame of a connection; `retry` if another attempt may succeed."""

    code: str
    text: str
    retry: bool


class ReplyFrame(NamedTuple):
    number: int
    reply: bytes


class EventsFrame(NamedTuple):
    batch: bytes


class PricesFrame(NamedTuple):
    batch: bytes


class GenericFrame(NamedTuple):
    """An event of another strategy, or of a client of the server."""

    number: int
    sender: str
    name: str
    body: bytes


class Published(NamedTuple):
    """The published event of this number is stored."""

    number: int


ServerFrame = Union[LoggedIn, LinkRefused, ReplyFrame, EventsFrame, PricesFrame, GenericFrame, Published]


def login(strategy: str, token: str) -> bytes:
    return _frame(1, Writer().u8(LINK_VERSION).text(strategy).text(token))


def request(number: int, message: bytes) -> bytes:
    return _frame(2, Writer().u64(number).raw(message))


def publish(publisher: int, number: int, name: str, body: bytes) -> bytes:
    return _frame(3, Writer().u64(publisher).u64(number).text(name).data(body))


def acknowledge(number: int) -> bytes:
    return _frame(4, Writer().u64(number))


def decode_frame(data: bytes) -> ServerFrame:
    """Decodes a frame without its length."""
    reader = Reader(data)
    kind = reader.u8()
    frame: ServerFrame
    if kind == 129:
        frame = LoggedIn(reader.u8(), reader.text(), reader.u32())
    elif kind == 130:
        frame = LinkRefused(reader.text(), reader.text(), reader.flag())
    elif kind == 131:
        frame = ReplyFrame(reader.u64(), reader.rest())
    elif kind == 132:
        frame = EventsFrame(reader.rest())
    elif kind == 133:
        frame = PricesFrame(reader.rest())
    elif kind == 134:
        frame = GenericFrame(reader.u64(), reader.text(), reader.text(), reader.data())
    elif kind == 135:
        frame = Published(reader.u64())
    else:
        raise DecodeError(f"a frame has the unknown kind {kind}")
    reader.finish()
    return frame


class FrameBuffer:
    """Received bytes that are not complete frames yet."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[ServerFrame]:
        """Returns the frames that this data completes."""
        self._bytes += data
        frames, at = [], 0
        while len(self._bytes) - at >= _LENGTH_BYTES:
            length = int.from_bytes(self._bytes[at : at + _LENGTH_BYTES], "little")
            if not 1 <= length <= FRAME_BYTES_MAX:
                raise DecodeError(f"a frame has {length} bytes; it must have 1 to {FRAME_BYTES_MAX}")
            end = at + _LENGTH_BYTES + length
            if end > len(self._bytes):
                break
            frames.append(decode_frame(bytes(self._bytes[at + _LENGTH_BYTES : end])))
            at = end
        del self._bytes[:at]
        return frames


def _frame(kind: int, body: Writer) -> bytes:
    data = body.done()
    return Writer().u32(len(data) + 1).u8(kind).raw(data).done()
