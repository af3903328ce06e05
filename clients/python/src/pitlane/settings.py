"""Settings of a client.

Each field is a keyword argument of `Pitlane(...)` and `AsyncPitlane(...)`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Literal, Union
from urllib.parse import urlsplit

from .retry import Retry

Transport = Literal["tcp", "ws"]
Ids = Literal["own", "service"]
Verify = Union[ssl.SSLContext, str, bool]


@dataclass(frozen=True)
class Settings:
    base_url: str = "http://127.0.0.1:9090"
    login: tuple[str, str] | None = field(default=None, repr=False)
    """Name and password."""
    token: str | None = field(default=None, repr=False)
    """A token, instead of a login."""
    verify: Verify = True
    """TLS verification: a context, the path of a trusted certificate, or whether to verify."""
    transport: Transport = "tcp"
    """Transport of events:

    STOMP over TCP, or over WebSocket, where the service throttles market data.
    """
    broker: str | None = None
    """Address of the broker: `stomp://host:port`, `stomp+ssl://…`, `ws://…` or `wss://…`.

    None: the client reads it from the service.
    """
    ids: Ids = "own"
    """Source of order ids: the client, or the service, which takes a call before each order."""
    retry: Retry = Retry()
    timeout_s: float = 10.0
    """Timeout of one attempt of a call, in seconds."""
    heart_beat_s: float = 5.0
    """Heart-beat interval of the event stream; after twice this silence the connection is lost."""

    def __post_init__(self) -> None:
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise ValueError(f"{self.base_url!r} is not an HTTP address such as http://127.0.0.1:9090")
        if self.login is not None and self.token is not None:
            raise ValueError("login and token exclude each other")
        if self.transport not in ("tcp", "ws"):
            raise ValueError(f"transport must be tcp or ws, not {self.transport!r}")
        if self.heart_beat_s < 1:
            raise ValueError("heart_beat_s must be at least 1, the shortest interval of the service")

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.base_url).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def credentials(self) -> tuple[str | None, str | None]:
        """Login and passcode for STOMP. A token is a passcode without a login."""
        return self.login if self.login is not None else (None, self.token)

    def tls(self) -> ssl.SSLContext:
        """Returns the TLS context for `verify`."""
        if isinstance(self.verify, ssl.SSLContext):
            return self.verify
        context = ssl.create_default_context(cafile=self.verify if isinstance(self.verify, str) else None)
        if self.verify is False:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
