"""Reads binary STOMP bodies (`accept: application/x-pitlane-sbe`) as the objects of JSON bodies."""

from decimal import Decimal
from struct import Struct
from typing import Any

from ._sbe_schema import ENUMS, SCHEMA_ID, SETS, TEMPLATES, Block

CONTENT_TYPE = "application/x-pitlane-sbe"

_HEADER = Struct("<HHHH")
_GROUP = Struct("<HH")
_LENGTH = Struct("<H")
_NULL = -(2**63)
_NULL_CODE = 255
_EXPONENT = -8
# Order of the values of a change in JSON; levels have no action and no number.
_CHANGE = ("action", "number", "side", "price", "size")


class SbeError(ValueError):
    """A body that is not as the schema says."""


def decode(body: bytes) -> "list[dict[str, Any]]":
    """Return the messages of a body. Prices and sizes are decimals, times nanoseconds since 1970.

    Members have the names of the JSON bodies; `symbol`, `venue` and `feed` are in the reference
    data.
    """
    messages, at = [], 0
    while at < len(body):
        message, at = _message(body, at)
        messages.append(message)
    return messages


def _message(body: bytes, at: int) -> "tuple[dict[str, Any], int]":
    length, template_id, schema_id, _version = _HEADER.unpack_from(body, _checked(body, at, 8))
    template = TEMPLATES.get(template_id)
    if schema_id != SCHEMA_ID or template is None:
        raise SbeError(f"schema {schema_id} has no message {template_id}")
    at += 8
    message: dict[str, Any] = {"type": template.type}
    _read(template.block, body, _checked(body, at, length), length, message)
    at += length
    for name, block in template.groups:
        stride, count = _GROUP.unpack_from(body, _checked(body, at, 4))
        _checked(body, at + 4, stride * count)
        entries: list[dict[str, Any]] = [{} for _ in range(count)]
        for number, entry in enumerate(entries):
            _read(block, body, at + 4 + number * stride, stride, entry)
        message[name] = entries
        at += 4 + stride * count
    for name in template.texts:
        (size,) = _LENGTH.unpack_from(body, _checked(body, at, 2))
        start = _checked(body, at + 2, size)
        at = start + size
        text = body[start:at].decode()
        if text:
            message[name] = text
    _finish(message)
    return message, at


def _checked(body: bytes, at: int, size: int) -> int:
    if at + size > len(body):
        raise SbeError("the body ends inside a message")
    return at


def _read(block: Block, body: bytes, at: int, length: int, into: "dict[str, Any]") -> None:
    if length < block.layout.size:
        raise SbeError("a block is shorter than the schema says")
    for (name, kind, type_name), value in zip(block.fields, block.layout.unpack_from(body, at)):
        if kind == "enum":
            if value != _NULL_CODE:
                into[name] = ENUMS[type_name].get(value)
        elif kind == "set":
            into.update({choice: True for bit, choice in SETS[type_name].items() if value >> bit & 1})
        elif kind == "number":
            into[name] = value
        elif value != _NULL or kind == "decimal":
            into[name] = Decimal(value).scaleb(_EXPONENT)


def _finish(message: "dict[str, Any]") -> None:
    """Give rows, flags and checksums the form that they have in JSON."""
    if message["type"] in ("SNAPSHOT", "UPDATE"):
        for name in ("bids", "asks"):
            if name in message:
                message[name] = [list(row.values()) for row in message[name]]
        if "changes" in message:
            message["changes"] = [[row[name] for name in _CHANGE if name in row] for row in message["changes"]]
        if message["type"] == "UPDATE" and not message.pop("checked", False):
            del message["checksum"]
    elif message["type"] == "SECURITY_STATUS":
        message.setdefault("halted", False)
