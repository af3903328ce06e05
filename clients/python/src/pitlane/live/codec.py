"""The byte format of the strategy link: exact and canonical, little-endian."""

from __future__ import annotations

import struct
from typing import Callable, TypeVar

from ..errors import DecodeError

T = TypeVar("T")

NO_HANDLE = 2**64 - 1
"""The handle of no order."""
ID_BYTES_MAX = 48


class Reader:
    """Reads values from bytes. Bytes that stand for no value are a `DecodeError`."""

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._data):
            raise DecodeError(f"byte {self.at}: the bytes end before the value does")
        taken, self.at = self._data[self.at : end], end
        return taken

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Reads numbers of a fixed layout."""
        return layout.unpack(self.take(layout.size))

    def rest(self) -> bytes:
        return self.take(self.left)

    def finish(self) -> None:
        if self.left:
            raise DecodeError(f"byte {self.at}: the value ends before the bytes do")

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def u128(self) -> int:
        return int.from_bytes(self.take(16), "little")

    def i32(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)

    def decimal(self) -> int:
        """Reads an amount in units of 10⁻⁸."""
        return int.from_bytes(self.take(8), "little", signed=True)

    def flag(self) -> bool:
        value = self.u8()
        if value > 1:
            raise DecodeError(f"byte {self.at}: {value} is not a flag")
        return value == 1

    def choice(self, values: tuple[T, ...]) -> T:
        """Reads the number of one of these values."""
        number = self.u8()
        if number >= len(values):
            raise DecodeError(f"byte {self.at}: there is no value {number}")
        return values[number]

    def data(self) -> bytes:
        return self.take(self.u32())

    def text(self) -> str:
        try:
            return self.data().decode()
        except UnicodeDecodeError:
            raise DecodeError(f"byte {self.at}: the text is not UTF-8") from None

    def order_id(self) -> str:
        """Reads the id of an order; empty if there is none."""
        length = self.u8()
        raw = self.take(length)
        if length > ID_BYTES_MAX or not all(0x20 < byte < 0x7F for byte in raw):
            raise DecodeError(f"byte {self.at}: this is not an id of an order")
        return raw.decode("ascii")

    def currency(self) -> str:
        raw = self.take(4)
        # The mark of a code with more than four characters.
        if raw[0] & 0x80:
            raw = bytes([raw[0] & 0x7F]) + raw[1:] + self.take(4)
        raw = raw.rstrip(b"\0")
        if not raw.isalnum() and raw:
            raise DecodeError(f"byte {self.at}: this is not a currency")
        return raw.decode("ascii")

    def list(self, read: Callable[[], T]) -> list[T]:
        count = self.u32()
        # An item has at least one byte, so a wrong count does not take memory.
        if count > self.left:
            raise DecodeError(f"byte {self.at}: the bytes end before the list does")
        return [read() for _ in range(count)]

    def optional(self, read: Callable[[], T]) -> T | None:
        return read() if self.flag() else None


class Writer:
    """Collects the bytes of a message."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def done(self) -> bytes:
        return b"".join(self._parts)

    def raw(self, data: bytes) -> Writer:
        self._parts.append(data)
        return self

    def u8(self, value: int) -> Writer:
        return self.raw(value.to_bytes(1, "little"))

    def u16(self, value: int) -> Writer:
        return self.raw(value.to_bytes(2, "little"))

    def u32(self, value: int) -> Writer:
        return self.raw(value.to_bytes(4, "little"))

    def u64(self, value: int) -> Writer:
        return self.raw(value.to_bytes(8, "little"))

    def decimal(self, value: int) -> Writer:
        return self.raw(value.to_bytes(8, "little", signed=True))

    def flag(self, value: bool) -> Writer:
        return self.raw(b"\1" if value else b"\0")

    def data(self, value: bytes) -> Writer:
        return self.u32(len(value)).raw(value)

    def text(self, value: str) -> Writer:
        return self.data(value.encode())

    def order_id(self, value: str) -> Writer:
        encoded = value.encode("ascii")
        return self.u8(len(encoded)).raw(encoded)

    def numbers(self, values: list[int]) -> Writer:
        self.u32(len(values))
        return self.raw(b"".join(value.to_bytes(8, "little") for value in values))
