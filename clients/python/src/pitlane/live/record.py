"""A strategy's own record of the order events it received, one line each.

```text
L <incarnation>                   a process starts
A <id>                            it requests an order
E <shard> <number> <words>        an event
H <number> <number> …             last event received, by shard: nothing before it is missing
B <number> <number> …             restart from the state at these numbers; earlier: unknown
```

A line is written before the strategy receives the event. After a restart, a process reads here what
its predecessor received, and asks the server for the events since. `pitlane strategy` writes the
same lines.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..strategy_numbers import text_of
from .market_events import (
    Booked,
    CashAdjusted,
    Forgotten,
    NumberedEvent,
    OrderEntered,
    PhaseReported,
    PositionAdjusted,
    RequestRefusal,
    StatusReport,
)

_NAME = re.compile(r"[^A-Za-z0-9_-]")


class EventRecord:
    def __init__(self, folder: Path, strategy: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = _NAME.sub(lambda match: "".join(f"%{byte:02X}" for byte in match.group().encode()), strategy)
        path = folder / f"{name}.told"
        text = path.read_bytes() if path.exists() else b""
        # A line that was cut off by a crash of the machine counts as not written.
        whole = text.rfind(b"\n") + 1
        self.received = received_in(text[:whole].decode(errors="replace"))
        """Last event received by shard; empty if unknown."""
        # Without a buffer, so that a line is in the file before the strategy acts on it.
        self._file = open(path, "ab", buffering=0)
        if whole < len(text):
            self._file.truncate(whole)

    def incarnation(self, incarnation: int) -> None:
        self._write(f"L {incarnation}")

    def asked(self, int_id: str) -> None:
        self._write(f"A {int_id}")

    def event(self, numbered: NumberedEvent) -> None:
        self._write(f"E {numbered.shard} {numbered.event.seq} {_words(numbered)}")

    def numbers(self, received: list[int]) -> None:
        self._write(f"H {' '.join(map(str, received))}")

    def begun(self, received: list[int]) -> None:
        self._write(f"B {' '.join(map(str, received))}")

    def close(self) -> None:
        self._file.close()

    def _write(self, line: str) -> None:
        self._file.write(f"{line}\n".encode())


def received_in(text: str) -> list[int]:
    """Returns the numbers of the last entry about each shard."""
    received: list[int] = []
    for line in text.splitlines():
        tag, *fields = line.split(" ")
        if tag in ("H", "B"):
            received = [int(field) for field in fields if field.isdigit()]
        elif tag == "E" and len(fields) >= 2 and fields[0].isdigit() and fields[1].isdigit():
            shard = int(fields[0])
            if shard < len(received):
                received[shard] = max(received[shard], int(fields[1]))
    return received


def _words(numbered: NumberedEvent) -> str:
    body = numbered.event.body
    if isinstance(body, OrderEntered):
        return f"order {body.int_id} {body.exec_type.value} {body.status.value} {text_of(body.quantity)}"
    if isinstance(body, StatusReport):
        amounts = f"{text_of(body.filled)} {text_of(body.last_quantity)} {text_of(body.last_price)}"
        return f"status {body.int_id} {body.exec_type.value} {body.status.value} {amounts}"
    if isinstance(body, RequestRefusal):
        return f"refused {body.request_id} {body.reason}"
    if isinstance(body, Booked):
        return f"booked {body.id} {body.int_id} {text_of(body.quantity)} {text_of(body.price)}"
    if isinstance(body, Forgotten):
        return f"forgotten {body.int_id}"
    if isinstance(body, PhaseReported):
        return f"phase {body.phase.value}"
    return "adjusted" if isinstance(body, (PositionAdjusted, CashAdjusted)) else "other"
