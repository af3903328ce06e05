#!/usr/bin/env python3
"""Writes the decoders of docs/sbe/pitlane.xml for Rust, C++ and Python.

clients/sbe/generate.py           writes them
clients/sbe/generate.py --check   exit 1 if a file differs from what would be written
"""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs/sbe/pitlane.xml"
RUST = ROOT / "clients/sbe/src/messages.rs"
RUST_CODES = ROOT / "clients/sbe/src/codes.rs"
CPP = ROOT / "clients/sbe/cpp/pitlane_sbe.hpp"
# The part of the C++ decoder that does not depend on the messages.
CPP_HEAD = ROOT / "clients/sbe/cpp/pitlane_sbe.hpp.in"
PYTHON = ROOT / "clients/python/src/pitlane/_sbe_schema.py"

SIZES = {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "int8": 1, "int64": 8}
NULL = "-9223372036854775808"
# Names of the entries of groups, in messages about orders and in others; entries of one name have
# the same fields.
ENTRIES = {"bids": "Level", "asks": "Level", "changes": "LevelChange"}
ORDER_ENTRIES = {"bids": "Order", "asks": "Order", "changes": "OrderChange"}


def entry_name(message: str, group: str) -> str:
    """Returns the name of the entries of a group."""
    return (ORDER_ENTRIES if message.startswith("Orders") else ENTRIES)[group]


@dataclass
class Field:
    """A value at a fixed offset."""

    name: str
    kind: str  # number, decimal, optionalDecimal, enum or set
    primitive: str
    type_name: str
    offset: int


@dataclass
class Block:
    """Fields at fixed offsets."""

    fields: "list[Field]" = field(default_factory=list)
    length: int = 0


@dataclass
class Message:
    """A message: a block, groups and texts."""

    name: str
    id: int
    type: str
    block: Block
    groups: "list[tuple[str, Block]]"
    texts: "list[str]"


class Schema:
    """The parts of a schema that this project uses."""

    def __init__(self, path: Path) -> None:
        root = ElementTree.parse(path).getroot()
        if root.get("byteOrder") != "littleEndian":
            raise SystemExit("the decoders are for little endian")
        self.id, self.version = int(root.get("id")), int(root.get("version"))
        self.types, self.enums, self.sets = {name: ("number", name) for name in SIZES}, {}, {}
        for item in root.find("types"):
            self._read_type(item)
        self.messages = [self._read_message(item) for item in root if item.tag.endswith("message")]
        self.entries = {}
        rows = [(message.name, *group) for message in self.messages for group in message.groups]
        for message, group, block in rows:
            if self.entries.setdefault(entry_name(message, group), block) != block:
                raise SystemExit(f"the entries of {group} differ from others of their name")

    def _read_type(self, item: ElementTree.Element) -> None:
        name = item.get("name")
        if item.tag == "type":
            self.types[name] = ("number", item.get("primitiveType"))
        elif item.tag == "enum":
            self.types[name] = ("enum", item.get("encodingType"))
            self.enums[name] = [(value.get("name"), int(value.text)) for value in item]
        elif item.tag == "set":
            self.types[name] = ("set", item.get("encodingType"))
            self.sets[name] = [(choice.get("name"), int(choice.text)) for choice in item]
        elif name in ("decimal", "optionalDecimal"):
            mantissa, exponent = item
            null = mantissa.get("nullValue") if name == "optionalDecimal" else NULL
            if (mantissa.get("primitiveType"), exponent.text, null) != ("int64", "-8", NULL):
                raise SystemExit(f"{name} is not as the decoders know it")
            self.types[name] = (name, "int64")
        elif item.tag == "composite":
            widths = [part.get("primitiveType") for part in item]
            known = {"messageHeader": ["uint16"] * 4, "groupSizeEncoding": ["uint16"] * 2}
            if widths != known.get(name, ["uint16", "uint8"]):
                raise SystemExit(f"{name} is not as the decoders know it")

    def _read_block(self, item: ElementTree.Element) -> Block:
        block = Block()
        for part in item:
            if part.tag == "field":
                type_name = part.get("type")
                kind, primitive = self.types[type_name]
                block.fields.append(Field(part.get("name"), kind, primitive, type_name, block.length))
                block.length += SIZES[primitive]
        return block

    def _read_message(self, item: ElementTree.Element) -> Message:
        groups = [(part.get("name"), self._read_block(part)) for part in item if part.tag == "group"]
        texts = [part.get("name") for part in item if part.tag == "data"]
        block = self._read_block(item)
        return Message(item.get("name"), int(item.get("id")), item.get("semanticType"), block, groups, texts)


def snake(name: str) -> str:
    """Returns a name in lower case with underscores."""
    return "".join("_" + char.lower() if char.isupper() else char for char in name)


def pascal(name: str) -> str:
    """Returns a name in capitals without underscores: PENDING_NEW becomes PendingNew."""
    return "".join(part[0].upper() + part[1:].lower() for part in name.split("_"))


RUST_TYPES = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int64": "i64"}


def rust_getters(schema: Schema, block: Block) -> "list[str]":
    """Returns the methods that read the fields of a block."""
    lines = []
    for item in block.fields:
        name, offset = snake(item.name), item.offset
        read = f"{RUST_TYPES[item.primitive]}::from_le_bytes(octets(self.block, {offset}))"
        if item.kind == "set":
            for choice, bit in schema.sets[item.type_name]:
                lines += [
                    f"    pub fn is_{snake(choice)}(&self) -> bool {{",
                    f"        {read} & {1 << bit} != 0",
                    "    }",
                    "",
                ]
            continue
        result, value = RUST_TYPES[item.primitive], read
        if item.kind == "decimal":
            result, value = "Decimal", f"Decimal({read})"
        elif item.kind == "optionalDecimal":
            result, value = "Option<Decimal>", f"Decimal::optional({read})"
        elif item.kind == "enum":
            result, value = f"Option<{item.type_name}>", f"{item.type_name}::from_code({read})"
        lines += [f"    pub fn {name}(&self) -> {result} {{", f"        {value}", "    }", ""]
    return lines[:-1]


def rust_codes(schema: Schema) -> str:
    """Returns the enums for Rust."""
    lines = ["//! Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`.", ""]
    for name, values in schema.enums.items():
        lines += rust_enum(name, values)
    return "\n".join(lines).rstrip("\n") + "\n"


def rust_view(schema: Schema, name: str, block: Block) -> "list[str]":
    """Returns a struct over a block, with its methods."""
    return [
        "/// An entry of a group.",
        "#[derive(Clone, Copy, Debug)]",
        f"pub struct {name}<'a> {{",
        "    block: &'a [u8],",
        "}",
        "",
        f"impl<'a> View<'a> for {name}<'a> {{",
        f"    const BLOCK_LENGTH: usize = {block.length};",
        "",
        f"    fn new(block: &'a [u8]) -> {name}<'a> {{",
        f"        {name} {{ block }}",
        "    }",
        "}",
        "",
        f"impl {name}<'_> {{",
        *rust_getters(schema, block),
        "}",
        "",
    ]


def rust_enum(name: str, values: "list[tuple[str, int]]") -> "list[str]":
    """Returns an enum with the conversions from its code and to its name."""
    lines = ["#[derive(Clone, Copy, Debug, PartialEq, Eq)]", f"pub enum {name} {{"]
    lines += [f"    {pascal(value)}," for value, _ in values]
    lines += [
        "}",
        "",
        f"impl {name} {{",
        f"    pub fn from_code(code: u8) -> Option<{name}> {{",
        "        match code {",
    ]
    lines += [f"            {code} => Some({name}::{pascal(value)})," for value, code in values]
    lines += [
        "            _ => None,",
        "        }",
        "    }",
        "",
        "    pub fn name(self) -> &'static str {",
        "        match self {",
    ]
    lines += [f'            {name}::{pascal(value)} => "{value}",' for value, _ in values]
    return [*lines, "        }", "    }", "}", ""]


def rust(schema: Schema) -> str:
    """Returns the decoder for Rust."""
    lines = ["//! Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`.", ""]
    lines += ["use crate::codes::{" + ", ".join(sorted(schema.enums)) + "};"]
    lines += ["use crate::{Decimal, Group, Reader, SbeError, View, octets};", ""]
    lines += [f"pub(crate) const SCHEMA_ID: u16 = {schema.id};", ""]
    lines += ["/// Any message of the schema.", "#[derive(Clone, Copy, Debug)]", "pub enum Message<'a> {"]
    lines += [f"    {message.name}({message.name}<'a>)," for message in schema.messages]
    lines += ["}", "", "impl<'a> Message<'a> {"]
    lines += ["    pub(crate) fn read(template: u16, reader: &mut Reader<'a>) -> Result<Message<'a>, SbeError> {"]
    lines += ["        match template {"]
    for message in schema.messages:
        lines += [f"            {message.id} => Ok(Message::{message.name}({message.name}::read(reader)?)),"]
    lines += ["            other => Err(SbeError::UnknownTemplate(other)),", "        }", "    }", "}", ""]
    for name, block in schema.entries.items():
        lines += rust_view(schema, name, block)
    for message in schema.messages:
        lines += rust_message(schema, message)
    return "\n".join(lines).rstrip("\n") + "\n"


def rust_message(schema: Schema, message: Message) -> "list[str]":
    """Returns the struct of a message."""
    names = [snake(name) for name, _ in message.groups] + [snake(name) for name in message.texts]
    lines = [f"/// `{message.type}`", "#[derive(Clone, Copy, Debug)]", f"pub struct {message.name}<'a> {{"]
    lines += ["    block: &'a [u8],"]
    for group, _ in message.groups:
        lines += [f"    pub {snake(group)}: Group<'a, {entry_name(message.name, group)}<'a>>,"]
    lines += [f"    pub {snake(text)}: &'a str," for text in message.texts]
    lines += ["}", "", f"impl<'a> {message.name}<'a> {{"]
    lines += [f"    fn read(reader: &mut Reader<'a>) -> Result<{message.name}<'a>, SbeError> {{"]
    lines += [f"        let block = reader.block({message.block.length})?;"]
    lines += [f"        let {snake(group)} = reader.group()?;" for group, _ in message.groups]
    lines += [f"        let {snake(text)} = reader.text()?;" for text in message.texts]
    lines += [f"        Ok({message.name} {{ {', '.join(['block', *names])} }})", "    }", ""]
    return [*lines, *rust_getters(schema, message.block), "}", ""]


CPP_TYPES = {
    "uint8": "std::uint8_t",
    "uint16": "std::uint16_t",
    "uint32": "std::uint32_t",
    "uint64": "std::uint64_t",
    "int64": "std::int64_t",
}


def cpp_getters(schema: Schema, block: Block) -> "list[str]":
    """Returns the methods that read the fields of a block."""
    lines = []
    for item in block.fields:
        kind, name = CPP_TYPES[item.primitive], snake(item.name)
        read = f"detail::read<{kind}>(block_ + {item.offset})"
        if item.kind == "set":
            for choice, bit in schema.sets[item.type_name]:
                lines += [f"    bool is_{snake(choice)}() const {{ return ({read} & {1 << bit}) != 0; }}"]
        elif item.kind == "decimal":
            lines += [f"    Decimal {name}() const {{ return Decimal{{{read}}}; }}"]
        elif item.kind == "optionalDecimal":
            lines += [f"    std::optional<Decimal> {name}() const {{ return detail::optional({read}); }}"]
        elif item.kind == "enum":
            lines += [f"    {item.type_name} {name}() const {{ return static_cast<{item.type_name}>({read}); }}"]
        else:
            lines += [f"    {kind} {name}() const {{ return {read}; }}"]
    return lines


def cpp(schema: Schema) -> str:
    """Returns the decoder for C++."""
    lines = [(CPP_HEAD.read_text() % schema.id).rstrip("\n"), ""]
    for name, values in schema.enums.items():
        lines += [f"enum class {name} : std::uint8_t {{"]
        lines += [f"    {value} = {code}," for value, code in values]
        lines += ["};", "", f"inline const char *name_of({name} value) {{", "    switch (value) {"]
        lines += [f'        case {name}::{value}: return "{value}";' for value, _ in values]
        lines += ["    }", '    return "";', "}", ""]
    for name, block in schema.entries.items():
        lines += ["// An entry of a group.", f"class {name} {{", "  public:"]
        lines += [f"    static constexpr std::size_t block_length = {block.length};"]
        lines += [f"    explicit {name}(const char *block) : block_(block) {{}}", *cpp_getters(schema, block)]
        lines += ["", "  private:", "    const char *block_;", "};", ""]
    for message in schema.messages:
        lines += [f"// {message.type}", f"class {message.name} {{", "  public:"]
        lines += [f"    static constexpr std::uint16_t template_id = {message.id};"]
        parts = [f"block_(reader.block({message.block.length}))"]
        members = ["    const char *block_;"]
        accessors = []
        for group, _ in message.groups:
            entry = entry_name(message.name, group)
            parts += [f"{snake(group)}_(reader.group<{entry}>())"]
            members += [f"    Group<{entry}> {snake(group)}_;"]
            accessors += [f"    const Group<{entry}> &{snake(group)}() const {{ return {snake(group)}_; }}"]
        for text in message.texts:
            parts += [f"{snake(text)}_(reader.text())"]
            members += [f"    std::string_view {snake(text)}_;"]
            accessors += [f"    std::string_view {snake(text)}() const {{ return {snake(text)}_; }}"]
        lines += [f"    explicit {message.name}(Reader &reader)", "        : " + ",\n          ".join(parts) + " {}"]
        lines += [*cpp_getters(schema, message.block), *accessors, "", "  private:", *members, "};", ""]
    return "\n".join([*lines, "}  // namespace pitlane"]) + "\n"


FORMATS = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "int64": "q"}


def python_fields(block: Block) -> str:
    """Returns the format and the fields of a block as an expression."""
    layout = "<" + "".join(FORMATS[item.primitive] for item in block.fields)
    fields = ", ".join(f'("{item.name}", "{item.kind}", "{item.type_name}")' for item in block.fields)
    return f'Block(Struct("{layout}"), [{fields}])'


def python(schema: Schema) -> str:
    """Returns the tables of the Python decoder."""
    lines = ['"""Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`."""', ""]
    lines += ["# fmt: off", "from struct import Struct", "from typing import NamedTuple", ""]
    lines += ["", "class Block(NamedTuple):", '    """Fields at fixed offsets: name, kind and type of each."""', ""]
    lines += ["    layout: Struct", '    fields: "list[tuple[str, str, str]]"', "", ""]
    lines += ["class Template(NamedTuple):", '    """A message: its type in JSON, its block, groups and texts."""', ""]
    lines += [
        "    type: str",
        "    block: Block",
        '    groups: "list[tuple[str, Block]]"',
        '    texts: "list[str]"',
        "",
        "",
    ]
    lines += [f"SCHEMA_ID = {schema.id}", "", 'ENUMS: "dict[str, dict[int, str]]" = {']
    for name, values in schema.enums.items():
        lines += [f'    "{name}": {{' + ", ".join(f'{code}: "{value}"' for value, code in values) + "},"]
    lines += ["}", "", 'SETS: "dict[str, dict[int, str]]" = {']
    for name, values in schema.sets.items():
        lines += [f'    "{name}": {{' + ", ".join(f'{bit}: "{value}"' for value, bit in values) + "},"]
    lines += ["}", "", 'TEMPLATES: "dict[int, Template]" = {']
    for message in schema.messages:
        lines += [
            f"    {message.id}: Template(",
            f'        "{message.type}",',
            f"        {python_fields(message.block)},",
            "        [",
        ]
        lines += [f'            ("{group}", {python_fields(block)}),' for group, block in message.groups]
        texts = ", ".join(f'"{text}"' for text in message.texts)
        lines += ["        ],", f"        [{texts}],", "    ),"]
    return "\n".join([*lines, "}"]) + "\n"


def main() -> int:
    """Writes or checks the files."""
    schema = Schema(SCHEMA)
    files = {RUST: rust(schema), RUST_CODES: rust_codes(schema), CPP: cpp(schema), PYTHON: python(schema)}
    if "--check" not in sys.argv[1:]:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return 0
    old = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in old:
        print(f"{path.relative_to(ROOT)} does not match the schema: run clients/sbe/generate.py")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
