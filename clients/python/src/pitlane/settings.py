"""Settings of a client.

Each field is a keyword argument of `Pitlane(...)` and `AsyncPitlane(...)`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Literal, Union
from urllib.parse import urlsplit

from .http.message import basic_authorization
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
    """Longest time without data from the service during one attempt of a call, in seconds."""
    orders_per_s: int | None = None
    """Most new orders per second of one strategy; further calls wait. None: as fast as possible."""
    heart_beat_s: float = 5.0
    """Heart-beat interval of the event stream; after twice this silence the connection is lost."""

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{self.base_url!r} is not an HTTP address such as http://127.0.0.1:9090")
        if url.username is not None:
            raise ValueError("the address must not contain a login: use login=(name, password) or token=…")
        if self.login is not None and self.token is not None:
            raise ValueError("login and token exclude each other")
        if self.transport not in ("tcp", "ws"):
            raise ValueError(f"transport must be tcp or ws, not {self.transport!r}")
        if self.orders_per_s is not None and self.orders_per_s < 1:
            raise ValueError("orders_per_s must be at least 1")
        if self.heart_beat_s < 1:
            raise ValueError("heart_beat_s must be at least 1, the shortest interval of the service")

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.base_url).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.base_url).port or (443 if self.is_secure else 80)

    @property
    def authorization(self) -> str | None:
        """The Authorization header of HTTP."""
        if self.token is not None:
            return f"Bearer {self.token}"
        return None if self.login is None else basic_authorization(*self.login)

    @property
    def credentials(self) -> tuple[str | None, str | None]:
        """Login and passcode for STOMP. A token is a passcode without a login."""
        return self.login if self.login is not None else (None, self.token)

    def tls(self) -> ssl.SSLContext:
        """Returns the TLS context for `verify`."""
        return tls_context(self.verify)


def tls_context(verify: Verify) -> ssl.SSLContext:
    if isinstance(verify, ssl.SSLContext):
        return verify
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
