"""The client side of a STOMP session, without a socket.

```text
new ── connect ──► connecting ── CONNECTED ──► open ── ERROR, silence, disconnect ──► ended
                       └──────── ERROR ─────────────────────────────────────────────────▲
```
The caller passes all input to `handle_bytes` and `handle_timeout`, then drains `poll_event` and
`poll_transmit`, and calls `handle_timeout` again at `poll_timeout`. Times are seconds of a
monotonic clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Mapping, Union

from .codec import Decoder, Frame, FrameError, encode

# Heart-beat intervals without data after which the connection is lost. The service uses the same
# factor.
HEART_BEAT_TOLERANCE = 2.0
# Time within which the broker must answer CONNECT, in seconds.
CONNECT_S_MAX = 10.0


@dataclass(frozen=True)
class Connected:
    """The session is open."""

    version: str


@dataclass(frozen=True)
class Message:
    subscription: str
    topic: str
    body: bytes


@dataclass(frozen=True)
class Receipt:
    """The request with this id has taken effect."""

    id: str


@dataclass(frozen=True)
class Ended:
    """The session has ended; this is its last event.

    `receipt` is the id of the refused request, if a request of this session was the reason.
    """

    message: str
    receipt: str | None = None
    is_login_refused: bool = False


SessionEvent = Union[Connected, Message, Receipt, Ended]

_PREFIX = "/topic/"


class StompSession:
    def __init__(self, host: str, login: str | None, passcode: str | None, heart_beat_s: float) -> None:
        self._host, self._login, self._passcode = host, login, passcode
        self._offer_ms = round(heart_beat_s * 1000)
        self._decoder = Decoder()
        self._events: deque[SessionEvent] = deque()
        self._out = bytearray()
        self._is_open = self._has_ended = False
        # Negotiated heart-beat intervals in seconds; zero: no heart-beats.
        self._send_s = self._receive_s = 0.0
        self._sent_at = self._received_at = 0.0

    def connect(self, now: float) -> None:
        """Sends CONNECT."""
        headers = {"accept-version": "1.2,1.1", "host": self._host, "heart-beat": f"{self._offer_ms},{self._offer_ms}"}
        if self._login is not None:
            headers["login"] = self._login
        if self._passcode is not None:
            headers["passcode"] = self._passcode
        self._received_at = now
        self._send_frame(Frame("CONNECT", headers))

    def subscribe(self, id: str, topic: str, headers: Mapping[str, str]) -> None:
        """Sends SUBSCRIBE. A `Receipt` with the same id confirms it."""
        self._send_frame(Frame("SUBSCRIBE", {"id": id, "destination": _PREFIX + topic, "receipt": id, **headers}))

    def unsubscribe(self, id: str) -> None:
        self._send_frame(Frame("UNSUBSCRIBE", {"id": id}))

    def send(self, topic: str, body: bytes, receipt: str) -> None:
        headers = {"destination": _PREFIX + topic, "content-type": "application/json", "receipt": receipt}
        self._send_frame(Frame("SEND", headers, body))

    def disconnect(self, receipt: str) -> None:
        self._send_frame(Frame("DISCONNECT", {"receipt": receipt}))

    def handle_bytes(self, now: float, data: bytes) -> None:
        self._received_at = now
        try:
            for frame in self._decoder.feed(data):
                if not self._has_ended:
                    self._handle_frame(frame)
        except FrameError as error:
            self._end(str(error))

    def handle_end(self, message: str) -> None:
        """Ends the session because the connection was lost."""
        self._end(message)

    def handle_timeout(self, now: float) -> None:
        if self._has_ended:
            return
        if not self._is_open and now - self._received_at >= CONNECT_S_MAX:
            self._end("the broker did not answer CONNECT in time")
        elif self._receive_s and now - self._received_at >= HEART_BEAT_TOLERANCE * self._receive_s:
            self._end("no heart-beat")
        elif self._send_s and now - self._sent_at >= self._send_s:
            self._out += b"\n"

    def poll_event(self) -> SessionEvent | None:
        return self._events.popleft() if self._events else None

    def poll_transmit(self, now: float) -> bytes:
        """Returns the data to write."""
        out = bytes(self._out)
        if out:
            self._sent_at = now
            self._out.clear()
        return out

    def poll_timeout(self) -> float | None:
        """Returns the time at which the caller must call `handle_timeout`."""
        if self._has_ended:
            return None
        if not self._is_open:
            return self._received_at + CONNECT_S_MAX
        times = []
        if self._receive_s:
            times.append(self._received_at + HEART_BEAT_TOLERANCE * self._receive_s)
        if self._send_s:
            times.append(self._sent_at + self._send_s)
        return min(times, default=None)

    def _handle_frame(self, frame: Frame) -> None:
        headers = frame.headers
        if frame.command == "MESSAGE" and self._is_open:
            topic = headers.get("destination", "")
            topic = topic[len(_PREFIX) :] if topic.startswith(_PREFIX) else topic
            self._events.append(Message(headers.get("subscription", ""), topic, frame.body))
        elif frame.command == "RECEIPT" and self._is_open:
            self._events.append(Receipt(headers.get("receipt-id", "")))
        elif frame.command == "CONNECTED" and not self._is_open:
            self._is_open = True
            self._negotiate_heart_beat(headers.get("heart-beat", "0,0"))
            self._events.append(Connected(headers.get("version", "1.0")))
        elif frame.command == "ERROR":
            message = headers.get("message") or frame.body.decode(errors="replace") or "no message"
            is_login_refused = not self._is_open and "login" in message
            self._end(message, headers.get("receipt-id"), is_login_refused)
        else:
            self._end(f"unexpected frame {frame.command[:16]}")

    def _negotiate_heart_beat(self, text: str) -> None:
        """Sets the intervals: the longer of offer and request; zero on either side means none."""
        sends, _, wants = text.partition(",")
        if not (sends.isdigit() and wants.isdigit()):
            raise FrameError(f"invalid heart-beat {text[:20]!r}")
        # A quarter of the interval earlier, so that the heart-beat arrives in time.
        self._send_s = max(self._offer_ms, int(wants)) * 0.75 / 1000 if int(wants) else 0.0
        self._receive_s = max(self._offer_ms, int(sends)) / 1000 if int(sends) else 0.0

    def _send_frame(self, frame: Frame) -> None:
        if not self._has_ended:
            self._out += encode(frame)

    def _end(self, message: str, receipt: str | None = None, is_login_refused: bool = False) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._events.append(Ended(message, receipt, is_login_refused))
