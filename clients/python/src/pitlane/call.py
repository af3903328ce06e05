"""One request as a value, with the reader of its response and the rule for retries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Generic, Mapping, TypeVar
from urllib.parse import quote, urlencode

from . import wire
from .errors import DecodeError, OutcomeUnknown, Problem, Unreachable
from .http.message import Response
from .operation_values import Confirmation
from .problems import problem_of
from .retry import RetryRule

T = TypeVar("T")

# The header of RFC 8288 with one link.
_LINK = re.compile(r'<(/[^>]*)>; rel="(?:next|prev)"')

PREFER_REPRESENTATION: Mapping[str, str] = {"Prefer": "return=representation"}


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[Response], T]
    query: Mapping[str, Any] | None = None
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    repeat: RetryRule = RetryRule.IDEMPOTENT


def get(path: str, kind: type[T], **query: Any) -> Call[T]:
    """Returns a call that reads a value of this kind."""
    return Call("GET", path, reader_of(kind), {name: value for name, value in query.items() if value is not None})


@dataclass(frozen=True)
class Page(Generic[T]):
    """Rows, and the path of the page that follows or precedes them."""

    rows: list[T]
    link: str | None


def page_of(path: str, kind: type[T], query: Mapping[str, Any]) -> Call[Page[T]]:
    """Returns a call that reads a page of rows of this kind."""

    def read(response: Response) -> Page[T]:
        rows = wire.decode(list[kind], wire.parse(response.content))  # type: ignore[valid-type]
        link = _LINK.match(response.headers.get("link", ""))
        return Page(rows, link.group(1) if link else None)

    return Call("GET", path, read, query or None)


def page_at(link: str, kind: type[T]) -> Call[Page[T]]:
    """Returns a call that reads the page at a link of another page."""
    return page_of(link, kind, {})


def write(method: str, path: str, body: Any = None, repeat: RetryRule = RetryRule.IDEMPOTENT) -> Call[None]:
    """Returns a call whose response has no body."""
    return Call(method, path, read_nothing, None, None if body is None else wire.render(body), repeat=repeat)


def confirmed_write(method: str, path: str, body: Any = None) -> Call[Confirmation]:
    """Returns a call for a decision that every shard of a cluster must apply."""
    rendered = None if body is None else wire.render(body)
    return Call(method, path, reader_of(Confirmation), None, rendered, repeat=RetryRule.IDEMPOTENT)


def reader_of(kind: type[T]) -> Callable[[Response], T]:
    def read(response: Response) -> T:
        return wire.decode(kind, wire.parse(response.content))

    return read


def read_nothing(response: Response) -> None:
    return None


def read_text(response: Response) -> str:
    return response.text


def read_location_id(response: Response) -> int:
    """Returns the number at the end of the Location header."""
    place = str(response.headers.get("location", ""))
    number = place.rpartition("/")[2]
    if not number.isdigit():
        raise DecodeError(f"the Location {place!r} does not end in a number")
    return int(number)


def path_segment(name: object) -> str:
    """Returns a name as one segment of a path.

    Encodes `.` and `..`, which would change the path.
    """
    quoted = quote(str(name), safe="")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


def target_of(call: Call[Any]) -> str:
    """Returns the path with the query."""
    return f"{call.path}?{urlencode(call.query, quote_via=quote)}" if call.query else call.path


def problem_from(response: Response) -> Problem:
    kind = response.headers.get("content-type", "")
    members = wire.parse(response.content) if kind.startswith("application/problem+json") else {}
    problem = problem_of(response.status, members if isinstance(members, dict) else {}, response.text)
    after = response.headers.get("retry-after", "")
    problem.retry_after_s = int(after) if after.isdigit() else None
    return problem


def final_error(call: Call[Any], error: Exception, may_be_done: bool) -> Exception:
    """Returns the error to raise after the last attempt."""
    message = f"{call.method} {call.path}: {type(error).__name__}: {error}"
    if may_be_done and call.method != "GET":
        return OutcomeUnknown(message)
    return error if isinstance(error, Problem) else Unreachable(message)
