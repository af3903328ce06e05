"""Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`."""

# fmt: off
from struct import Struct
from typing import NamedTuple


class Block(NamedTuple):
    """Fields at fixed offsets: name, kind and type of each."""

    layout: Struct
    fields: "list[tuple[str, str, str]]"


class Template(NamedTuple):
    """A message: its type in JSON, its block, groups and texts."""

    type: str
    block: Block
    groups: "list[tuple[str, Block]]"
    texts: "list[str]"


SCHEMA_ID = 1

ENUMS: "dict[str, dict[int, str]]" = {
    "BookSide": {0: "B", 1: "A"},
    "Side": {0: "BUY", 1: "SELL"},
    "OrderAction": {0: "ADD", 1: "CHANGE", 2: "REMOVE", 3: "TRADE"},
    "TradingSession": {0: "CLOSED", 1: "OPENING_AUCTION", 2: "CONTINUOUS", 3: "CLOSING_AUCTION"},
    "Status": {0: "PENDING_NEW", 1: "NEW", 2: "PARTIALLY_FILLED", 3: "FILLED", 4: "PENDING_CANCEL", 5: "CANCELED", 6: "PENDING_REPLACE", 7: "REJECTED", 8: "EXPIRED"},
    "ExecType": {0: "PENDING_NEW", 1: "REJECTED", 2: "NEW", 3: "TRADE", 4: "PENDING_CANCEL", 5: "CANCELED", 6: "EXPIRED", 7: "PENDING_REPLACE", 8: "REPLACED", 9: "TRIGGERED", 10: "TRADE_CORRECT", 11: "ORDER_STATUS"},
}

SETS: "dict[str, dict[int, str]]" = {
    "DepthFlags": {0: "checked"},
    "SecurityFlags": {0: "halted"},
    "OrderFlags": {0: "unknown"},
}

TEMPLATES: "dict[int, Template]" = {
    1: Template(
        "TICK",
        Block(Struct("<QQQqqqqqqqI"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("dateTime", "number", "time"), ("bid", "optionalDecimal", "optionalDecimal"), ("bidSize", "optionalDecimal", "optionalDecimal"), ("ask", "optionalDecimal", "optionalDecimal"), ("askSize", "optionalDecimal", "optionalDecimal"), ("last", "optionalDecimal", "optionalDecimal"), ("lastSize", "optionalDecimal", "optionalDecimal"), ("volume", "decimal", "decimal"), ("securityId", "number", "securityId")]),
        [
        ],
        [],
    ),
    2: Template(
        "BOOK",
        Block(Struct("<QQI"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("securityId", "number", "securityId")]),
        [
            ("bids", Block(Struct("<qq"), [("price", "decimal", "decimal"), ("size", "decimal", "decimal")])),
            ("asks", Block(Struct("<qq"), [("price", "decimal", "decimal"), ("size", "decimal", "decimal")])),
        ],
        [],
    ),
    3: Template(
        "SNAPSHOT",
        Block(Struct("<QQII"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("securityId", "number", "securityId"), ("checksum", "number", "uint32")]),
        [
            ("bids", Block(Struct("<qq"), [("price", "decimal", "decimal"), ("size", "decimal", "decimal")])),
            ("asks", Block(Struct("<qq"), [("price", "decimal", "decimal"), ("size", "decimal", "decimal")])),
        ],
        [],
    ),
    4: Template(
        "UPDATE",
        Block(Struct("<QQQIIB"), [("prevSeq", "number", "uint64"), ("seq", "number", "uint64"), ("ts", "number", "time"), ("securityId", "number", "securityId"), ("checksum", "number", "uint32"), ("flags", "set", "DepthFlags")]),
        [
            ("changes", Block(Struct("<qqB"), [("price", "decimal", "decimal"), ("size", "decimal", "decimal"), ("side", "enum", "BookSide")])),
        ],
        [],
    ),
    5: Template(
        "ORDER_STATUS",
        Block(Struct("<QQqqqqqqIHBBBB"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("quantity", "decimal", "decimal"), ("filledQuantity", "decimal", "decimal"), ("remainingQuantity", "decimal", "decimal"), ("avgPrice", "optionalDecimal", "optionalDecimal"), ("lastQuantity", "optionalDecimal", "optionalDecimal"), ("lastPrice", "optionalDecimal", "optionalDecimal"), ("securityId", "number", "securityId"), ("accountId", "number", "uint16"), ("status", "enum", "Status"), ("execType", "enum", "ExecType"), ("side", "enum", "Side"), ("flags", "set", "OrderFlags")]),
        [
        ],
        ["intId", "origIntId", "strategyName", "reason"],
    ),
    6: Template(
        "TRADE",
        Block(Struct("<QQQqqIB"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("tradeId", "number", "uint64"), ("price", "decimal", "decimal"), ("size", "optionalDecimal", "optionalDecimal"), ("securityId", "number", "securityId"), ("aggressor", "enum", "Side")]),
        [
        ],
        [],
    ),
    7: Template(
        "SNAPSHOT",
        Block(Struct("<QQII"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("securityId", "number", "securityId"), ("checksum", "number", "uint32")]),
        [
            ("bids", Block(Struct("<Qqq"), [("number", "number", "uint64"), ("price", "decimal", "decimal"), ("size", "decimal", "decimal")])),
            ("asks", Block(Struct("<Qqq"), [("number", "number", "uint64"), ("price", "decimal", "decimal"), ("size", "decimal", "decimal")])),
        ],
        [],
    ),
    8: Template(
        "UPDATE",
        Block(Struct("<QQQIIB"), [("prevSeq", "number", "uint64"), ("seq", "number", "uint64"), ("ts", "number", "time"), ("securityId", "number", "securityId"), ("checksum", "number", "uint32"), ("flags", "set", "DepthFlags")]),
        [
            ("changes", Block(Struct("<QqqBB"), [("number", "number", "uint64"), ("price", "decimal", "decimal"), ("size", "decimal", "decimal"), ("side", "enum", "BookSide"), ("action", "enum", "OrderAction")])),
        ],
        [],
    ),
    9: Template(
        "SECURITY_STATUS",
        Block(Struct("<QQIBB"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("securityId", "number", "securityId"), ("session", "enum", "TradingSession"), ("flags", "set", "SecurityFlags")]),
        [
        ],
        [],
    ),
    10: Template(
        "BAR",
        Block(Struct("<QQQqqqqqI"), [("seq", "number", "uint64"), ("ts", "number", "time"), ("dateTime", "number", "time"), ("open", "decimal", "decimal"), ("high", "decimal", "decimal"), ("low", "decimal", "decimal"), ("close", "decimal", "decimal"), ("volume", "decimal", "decimal"), ("securityId", "number", "securityId")]),
        [
        ],
        ["size"],
    ),
}
