"""Names of topics, and patterns over them: segments with dots between, `*` for one segment, `>` at the end for all below."""

from __future__ import annotations

# Where only the newest value counts; everything else is told whole.
_NEWEST = ("tick.", "book.")


def check(pattern: str) -> str:
    """Refuses what the broker would refuse, since it ends the connection of all subscriptions with it."""
    segments = pattern.split(".")
    for place, segment in enumerate(segments):
        is_last = place == len(segments) - 1
        wild = "*" in segment or ">" in segment
        if segment == "" or (wild and segment != "*" and not (segment == ">" and is_last)):
            raise ValueError(
                f"{pattern!r} is no topic: segments with dots between, `*` for one, `>` at the end for the rest"
            )
    if any(character in pattern for character in "\r\n\0"):
        raise ValueError("a topic is one line")
    return pattern


def is_market_data(topic: str) -> bool:
    return topic.startswith(_NEWEST)


def tick(security_id: int | None) -> str:
    return "tick.*" if security_id is None else f"tick.{security_id:d}"


def generic_event(name: str) -> str:
    if "." in name or "*" in name or ">" in name:
        raise ValueError(f"{name!r} is no name of an event: it is one segment of a topic")
    return check(f"generic-event.{name}")


def order_updates(prefix: str, strategy: str | None, int_id: str | None) -> str:
    """The topics of order status. In an id, what has a meaning in topics is percent-encoded."""
    return f"{prefix}.{strategy or '*'}.{'*' if int_id is None else segment(int_id)}"


def segment(text: str) -> str:
    """Any text as one segment of a topic: the broker writes `.`, `*`, `>`, `/` and `%` by their codes."""
    return "".join(f"%{ord(character):02X}" if character in ".*>/%" else character for character in text)
