"""Reference data from the server: what a strategy needs of securities."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import DecodeError
from ..strategy_context import InstrumentRow
from ..strategy_values import RequestRefused
from .codec import Reader
from .reasons import text_of


class Reference:
    """Securities by id and by symbol, and the accounts for their exchanges."""

    def __init__(self, data: bytes) -> None:
        reader = Reader(data)
        # The type of adapter of each exchange.
        self._adapters = dict(reader.list(lambda: _read_exchange(reader)))
        families = {family.id: family for family in reader.list(lambda: _read_family(reader))}
        self._rows: dict[int, InstrumentRow] = {}
        self._exchanges: dict[int, int] = {}
        self._ids: dict[str, list[int]] = {}
        for id, symbol, family_id in reader.list(lambda: _read_security(reader)):
            family = families.get(family_id)
            if family is None:
                raise DecodeError(f"security {id} belongs to no family")
            self._rows[id] = (id, symbol, family.currency, family.tick_size, family.lot_size, family.contract_size)
            self._exchanges[id] = family.exchange_id
            self._ids.setdefault(symbol, []).append(id)
        self._accounts = reader.list(lambda: _read_account(reader))
        reader.list(lambda: (reader.u16(), reader.text(), reader.flag()))
        if reader.left:
            reader.list(lambda: (reader.u16(), reader.list(reader.u16)))
        if reader.left:
            reader.list(lambda: _read_limits(reader))
        reader.finish()

    def find(self, key: int | str) -> InstrumentRow:
        """Returns a security, or raises `RequestRefused` if there is none, or more than one."""
        ids = [key] if isinstance(key, int) else self._ids.get(key, [])
        if len(ids) > 1:
            names = ", ".join(map(str, ids))
            raise RequestRefused(
                "unknown-security", f"several securities have the symbol {key!r}: use an id of {names}"
            )
        row = self._rows.get(ids[0]) if ids else None
        if row is None:
            raise RequestRefused("unknown-security", f"{text_of('unknown-security')}: {key!r}")
        return row

    def default_account(self, security_id: int) -> int:
        """Returns the one active account that may trade on the exchange of a security."""
        exchange_id = self._exchanges[self.find(security_id)[0]]
        adapter = self._adapters.get(exchange_id)
        fitting = [
            account.id
            for account in self._accounts
            if account.active
            and account.adapter_type == adapter
            and (not account.exchanges or exchange_id in account.exchanges)
        ]
        if len(fitting) != 1:
            found = "no active account" if not fitting else f"several accounts, {', '.join(map(str, fitting))}:"
            raise RequestRefused("unknown-account", f"the exchange has {found} name one with account_id")
        return fitting[0]

    def symbol(self, security_id: int) -> str:
        row = self._rows.get(security_id)
        return "" if row is None else row[1]


class _Family(NamedTuple):
    id: int
    exchange_id: int
    currency: str
    contract_size: int
    tick_size: int
    lot_size: int


class _Account(NamedTuple):
    id: int
    active: bool
    adapter_type: str
    exchanges: list[int]


def _read_exchange(reader: Reader) -> tuple[int, str]:
    id = reader.u16()
    for _ in range(3):
        reader.data()
    reader.take(8)
    reader.flag()
    reader.u8()
    return id, reader.text()


def _read_family(reader: Reader) -> _Family:
    id = reader.u32()
    reader.data()
    reader.data()
    family = _Family(id, reader.u16(), reader.currency(), reader.decimal(), reader.decimal(), reader.decimal())
    reader.decimal()
    reader.flag()
    reader.flag()
    return family


def _read_limits(reader: Reader) -> None:
    reader.u32()
    for _ in range(2):
        reader.optional(lambda: (reader.decimal(), reader.flag()))
    reader.u8()


def _read_security(reader: Reader) -> tuple[int, str, int]:
    id, symbol = reader.u32(), reader.text()
    reader.data()
    reader.u8()
    family_id = reader.u32()
    reader.optional(reader.data)
    reader.optional(reader.u32)
    reader.optional(reader.i32)
    reader.optional(reader.decimal)
    reader.optional(reader.u8)
    reader.optional(reader.currency)
    reader.optional(reader.decimal)
    reader.flag()
    return id, symbol, family_id


def _read_account(reader: Reader) -> _Account:
    id = reader.u16()
    reader.data()
    return _Account(id, reader.flag(), reader.text(), reader.list(reader.u16))
