# Generated from _async/securities.py by tools/derive_sync.py. Change that file instead.
"""The ids of securities by their symbols."""

from __future__ import annotations

from ..call import get
from ..refusals import UnknownSecurity
from ..settings import Settings
from ..values import Security, SecurityRef
from .rest import RestClient


class SecurityLookup(RestClient):
    """Base class of the calls that name a security by its id, by its symbol or by itself."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        # The service never gives the symbol of a security to another one.
        self._ids: dict[str, int] = {}

    def _security_id(self, security: SecurityRef) -> int:
        if isinstance(security, int):
            return security
        if isinstance(security, Security):
            return security.id
        known = self._ids.get(security)
        if known is None:
            known = self._ids[security] = self._find(security)
        return known

    def _find(self, symbol: str) -> int:
        # The search has no escape for quotation marks, and no symbol needs one.
        rows: list[Security] = []
        if symbol and '"' not in symbol:
            rows = self._run(get("/rest/security.search", list[Security], query=f'symbol:"{symbol}"'))
        found = [security for security in rows if security.symbol == symbol]
        if not found:
            message = f"there is no security with the symbol {symbol!r}"
            raise UnknownSecurity(404, UnknownSecurity.code, message)
        if len(found) > 1:
            choices = ", ".join(f"{security.id} (exchange {security.exchange_id})" for security in found)
            raise ValueError(f"several securities have the symbol {symbol!r}: use one of the ids {choices}")
        return found[0].id
