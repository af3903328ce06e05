"""How a client is set up. Each field is a keyword of `Pitlane(...)` and `AsyncPitlane(...)`."""

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
    """Instead of a login."""
    verify: Verify = True
    """Of TLS: a context, the path of a certificate to trust, or whether to look at all."""
    transport: Transport = "tcp"
    """Of events: STOMP over TCP, or over WebSocket, where market data is throttled by the service."""
    broker: str | None = None
    """Where events come from: `stomp://host:port`, `stomp+ssl://…`, `ws://…` or `wss://…`. None: the service is asked."""
    ids: Ids = "own"
    """Who makes the ids of orders: we, or the service by a call before each order."""
    retry: Retry = Retry()
    timeout_s: float = 10.0
    """Of one attempt at a call."""
    heart_beat_s: float = 5.0
    """Of the stream of events: twice this without a word, and the connection counts as lost."""

    def __post_init__(self) -> None:
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise ValueError(f"{self.base_url!r} is no address such as http://127.0.0.1:9090")
        if self.login is not None and self.token is not None:
            raise ValueError("a login or a token, not both")
        if self.transport not in ("tcp", "ws"):
            raise ValueError(f"transport is tcp or ws, not {self.transport!r}")
        if self.heart_beat_s < 1:
            raise ValueError("heart_beat_s is at least 1: the service beats no faster")

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.base_url).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def credentials(self) -> tuple[str | None, str | None]:
        """As STOMP has them: a token is a passcode without a login."""
        return self.login if self.login is not None else (None, self.token)

    def tls(self) -> ssl.SSLContext:
        if isinstance(self.verify, ssl.SSLContext):
            return self.verify
        context = ssl.create_default_context(cafile=self.verify if isinstance(self.verify, str) else None)
        if self.verify is False:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
