"""Converts JSON to values and back.

Numbers are never converted to floats, and JSON that does not match its description is an error. A
value is a frozen dataclass; its annotations determine how its members are read. `int_id` in Python
is `intId` in JSON.
"""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Callable, Mapping, Type, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import DecodeError

T = TypeVar("T")

Number = Union[Decimal, int, str]
"""Types of an amount.

A float is an error, because a float cannot represent amounts such as 0.1 exactly.
"""

# Names that do not follow the rule.
_IRREGULAR = {"realized_pl": "realizedPL", "unrealized_pl": "unrealizedPL", "gross_pl": "grossPL", "net_pl": "netPL"}
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def decode(kind: Type[T], value: Any) -> T:
    """Reads a value of this kind from parsed JSON.

    Ignores unknown members, so the service may add some.
    """
    try:
        read: Callable[[Any], T] = reader(kind)
        return read(value)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DecodeError(f"not a {getattr(kind, '__name__', kind)}: {error!r}") from error


def parse(text: Union[str, bytes]) -> Any:
    """Parses JSON with exact numbers."""
    try:
        return _JSON.decode(text if isinstance(text, str) else text.decode())
    except ValueError as error:
        raise DecodeError(f"not JSON: {error}") from error


def render(value: Any) -> bytes:
    """Returns the JSON of a value, without members that are None."""
    return _TO_JSON(encode(value)).encode()


def encode(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value
    names = _names.get(kind)
    if names is None and dataclasses.is_dataclass(kind):
        names = _names[kind] = [(field.name, json_name(field.name)) for field in dataclasses.fields(kind)]
    if names is not None:
        members = ((key, getattr(value, name)) for name, key in names)
        return {key: encode(member) for key, member in members if member is not None}
    if isinstance(value, Mapping):
        return {name: encode(member) for name, member in value.items() if member is not None}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (Decimal, float)):
        return decimal_text(value)
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, date):
        return value.isoformat()
    return value


def decimal_text(value: Any) -> str:
    """Returns an amount as text without an exponent."""
    return format(decimal(value), "f")


def decimal(value: Any) -> Decimal:
    if type(value) is int:
        return Decimal(value)
    if type(value) is Decimal and value.is_finite():
        return value
    if isinstance(value, (bool, float)) or not isinstance(value, (Decimal, int, str)):
        raise TypeError(f"an amount must be a Decimal, an int or a str, not {type(value).__name__} {value!r}")
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value!r} is not an amount")
    return number


def parse_time(text: str) -> datetime:
    """Parses a time of RFC 3339. A datetime has microseconds; finer digits are truncated."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    seconds, fraction, zone = match.groups()
    micros = (fraction or "")[:6].ljust(6, "0")
    return datetime.fromisoformat(f"{seconds}.{micros}{'+00:00' if zone == 'Z' else zone}")


def format_time(at: datetime) -> str:
    if at.tzinfo is None:
        raise ValueError("a time needs a time zone, for example datetime.now(timezone.utc)")
    return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def time_of_ns(nanoseconds: int) -> datetime:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return datetime.fromtimestamp(seconds, timezone.utc) + timedelta(microseconds=rest // 1000)


def json_name(name: str) -> str:
    first, *others = name.split("_")
    return _IRREGULAR.get(name) or first + "".join(other.capitalize() for other in others)


def reader(kind: Any) -> Callable[[Any], Any]:
    """Returns the function that reads a value of this kind, created once per kind."""
    read = _readers.get(kind)
    if read is None:
        read = _readers[kind] = _reader(kind)
    return read


_readers: dict[Any, Callable[[Any], Any]] = {}
# The names of the members of a dataclass, in Python and in JSON.
_names: dict[type, list[tuple[str, str]]] = {}


def _reader(kind: Any) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(kind):
        return _object_reader(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Union:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        read = reader(inner)
        return lambda value: None if value is None else read(value)
    if origin in (tuple, list):
        return _list_reader(origin, reader(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        read = reader(arguments[1])
        return lambda value: {name: read(member) for name, member in value.items()}
    plain: dict[Any, Callable[[Any], Any]] = {
        Any: lambda value: value,
        Decimal: decimal,
        datetime: parse_time,
        date: date.fromisoformat,
    }
    if kind in plain:
        return plain[kind]
    if issubclass(kind, Enum):
        return _enum_reader(kind)
    if issubclass(kind, tuple):
        return _row_reader(kind)
    return _plain_reader(kind)


def _enum_reader(kind: Type[Enum]) -> Callable[[Any], Any]:
    members = {member.value: member for member in kind}

    def read_enum(value: Any) -> Any:
        try:
            return members[value]
        except KeyError:
            raise ValueError(f"{value!r} is not a {kind.__name__}") from None

    return read_enum


def _list_reader(make: Callable[[Any], Any], read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_list(value: Any) -> Any:
        if not isinstance(value, list):
            raise TypeError(f"{value!r} is not a list")
        return make(map(read, value))

    return read_list


def _row_reader(kind: Any) -> Callable[[Any], Any]:
    """Returns the reader of a NamedTuple, which is a list in JSON."""
    members = [reader(hint) for hint in get_type_hints(kind).values()]

    def read_row(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(members):
            raise TypeError(f"{value!r} is not a list of {len(members)} values")
        return kind(*(read(member) for read, member in zip(members, value)))

    return read_row


def _object_reader(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    # For each member its name in Python, its reader, and the type whose values need no reader.
    members = {json_name(field.name): (field.name, *_reader_and_type(hints[field.name])) for field in fields}
    # Other members have a default, which is an attribute of the class.
    required = {field.name: None for field in fields if field.default is dataclasses.MISSING}

    def read_object(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not an object")
        found: dict[str, Any] = {}
        for key, member in value.items():
            entry = members.get(key)
            if entry is not None:
                name, read, plain = entry
                found[name] = member if type(member) is plain else read(member)
        if not required.keys() <= found.keys():
            missing = [name for name in required if name not in found]
            raise TypeError(f"without {', '.join(map(json_name, missing))}")
        # The constructor of a frozen class sets each member by a function call, which took half of
        # the time to read an order.
        instance = object.__new__(kind)
        instance.__dict__.update(found)
        return instance

    return read_object


def _reader_and_type(hint: Any) -> tuple[Callable[[Any], Any], Any]:
    arguments = get_args(hint)
    inner = [argument for argument in arguments if argument is not type(None)]
    plain = inner[0] if type(None) in arguments and len(inner) == 1 else hint
    # JSON has no decimal that is not finite.
    return reader(hint), plain if plain in (str, int, bool, Decimal) else None


def _plain_reader(kind: Any) -> Callable[[Any], Any]:
    def read_plain(value: Any) -> Any:
        # In Python a bool is an int; in JSON it is not.
        if type(value) is not kind:
            raise TypeError(f"{value!r} is not of type {kind.__name__}")
        return value

    return read_plain


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


_TO_JSON = json.JSONEncoder(separators=(",", ":")).encode
_JSON = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)
