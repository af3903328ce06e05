"""Topics and patterns.

A topic has segments separated by dots. In a pattern, `*` matches one segment, and `>` at the end
matches all remaining segments.
"""

from __future__ import annotations

# Topics of which only the newest value matters. Subscribers receive every message of other topics.
_NEWEST = ("tick.", "book.")


def check(pattern: str) -> str:
    """Rejects an invalid pattern.

    The broker would close the connection of all subscriptions for it.
    """
    segments = pattern.split(".")
    for place, segment in enumerate(segments):
        is_last = place == len(segments) - 1
        wild = "*" in segment or ">" in segment
        if segment == "" or (wild and segment != "*" and not (segment == ">" and is_last)):
            raise ValueError(
                f"{pattern!r} is not a topic: use segments separated by dots, `*` for one segment, "
                "and `>` at the end for the rest"
            )
    if any(character in pattern for character in "\r\n\0"):
        raise ValueError("a topic must not contain line ends or NUL")
    return pattern


def is_market_data(topic: str) -> bool:
    return topic.startswith(_NEWEST)


def tick(security_id: int | None) -> str:
    return "tick.*" if security_id is None else f"tick.{security_id:d}"


def trade(security_id: int | None) -> str:
    return "trade.*" if security_id is None else f"trade.{security_id:d}"


def generic_event(name: str) -> str:
    if "." in name or "*" in name or ">" in name:
        raise ValueError(f"{name!r} is not an event name: it must be one segment of a topic")
    return check(f"generic-event.{name}")


def order_updates(prefix: str, strategy: str | None, int_id: str | None) -> str:
    """Returns the pattern of order status topics, with the id percent-encoded."""
    return f"{prefix}.{strategy or '*'}.{'*' if int_id is None else segment(int_id)}"


def segment(text: str) -> str:
    """Returns a text as one topic segment. Like the broker, encodes `.`, `*`, `>`, `/` and `%`."""
    return "".join(f"%{ord(character):02X}" if character in ".*>/%" else character for character in text)
