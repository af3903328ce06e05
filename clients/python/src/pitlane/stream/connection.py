"""Connections for STOMP: TCP, TLS or WebSocket."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Callable, Union
from urllib.parse import urlsplit

READ_BYTES_MAX = 256 * 1024
CLOSE_S_MAX = 2.0
# Above the largest message of the service.
MESSAGE_BYTES_MAX = 2 * 1024 * 1024


class TcpConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """Reads data; empty if the other side has closed the connection."""
        return await self._reader.read(READ_BYTES_MAX)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), CLOSE_S_MAX)
        except (OSError, asyncio.TimeoutError):
            # The connection is closed in either case.
            self._writer.transport.abort()


class WebSocketConnection:
    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        from websockets.exceptions import ConnectionClosed

        try:
            message: Union[str, bytes] = await self._socket.recv()
        except ConnectionClosed:
            return b""
        return message.encode() if isinstance(message, str) else message

    async def write(self, data: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(data.decode())
        except ConnectionClosed as closed:
            raise ConnectionError(str(closed)) from closed

    async def close(self) -> None:
        await self._socket.close()


Connection = Union[TcpConnection, WebSocketConnection]


async def open_connection(url: str, tls: Callable[[], ssl.SSLContext]) -> Connection:
    """Connects to `stomp://`, `stomp+ssl://`, `ws://` or `wss://`. Raises OSError if that fails."""
    parts = urlsplit(url)
    if parts.scheme in ("ws", "wss"):
        return await _open_websocket(url, tls() if parts.scheme == "wss" else None)
    if parts.scheme not in ("stomp", "stomp+ssl") or parts.hostname is None or parts.port is None:
        raise ValueError(f"{url!r} is not a broker address such as stomp://127.0.0.1:61613")
    context = tls() if parts.scheme == "stomp+ssl" else None
    return TcpConnection(*await asyncio.open_connection(parts.hostname, parts.port, ssl=context))


async def _open_websocket(url: str, context: ssl.SSLContext | None) -> Connection:
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException
        from websockets.typing import Subprotocol
    except ImportError as error:
        raise ImportError("events over WebSocket need the package websockets: pip install 'pitlane[ws]'") from error
    try:
        socket = await connect(
            url,
            ssl=context,
            subprotocols=[Subprotocol("v12.stomp"), Subprotocol("v11.stomp")],
            # STOMP has its own heart-beats, and events are too small to benefit from compression.
            ping_interval=None,
            compression=None,
            max_size=MESSAGE_BYTES_MAX,
            close_timeout=CLOSE_S_MAX,
            proxy=None,
        )
    except WebSocketException as error:
        raise ConnectionError(str(error)) from error
    return WebSocketConnection(socket)
