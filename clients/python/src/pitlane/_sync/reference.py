# Derived from _async/reference.py by tools/derive_sync.py: change that one.
"""What there is to trade, where, and for whom."""

from __future__ import annotations

from typing import Mapping

from ..call import get, path_segment, write
from ..values import Account, Exchange, Forex, Security, SecurityFamily, Strategy
from ..enums import Phase
from .rest import RestClient


class Reference(RestClient):
    def securities(self, limit: int | None = None) -> list[Security]:
        """All securities."""
        return self._run(get("/rest/security", list[Security], limit=limit))

    def security(self, security_id: int) -> Security:
        return self._run(get(f"/rest/security/{security_id:d}", Security))

    def search(self, query: str = "", limit: int | None = None) -> list[Security]:
        """Securities that match: words of symbol, description or ISIN, and `field:value`, as in "apple type:STOCK"."""
        return self._run(get("/rest/security.search", list[Security], query=query, limit=limit))

    def forex(self, base_currency: str, transaction_currency: str) -> Forex:
        """The currency pair."""
        pair = {"baseCurrency": base_currency, "transactionCurrency": transaction_currency}
        return self._run(get("/rest/forex", Forex, **pair))

    def families(self) -> list[SecurityFamily]:
        """All security families."""
        return self._run(get("/rest/security-family", list[SecurityFamily]))

    def family(self, family_id: int) -> SecurityFamily:
        return self._run(get(f"/rest/security-family/{family_id:d}", SecurityFamily))

    def accounts(self) -> list[Account]:
        return self._run(get("/rest/account", list[Account]))

    def account(self, name: str) -> Account:
        return self._run(get(f"/rest/account/{path_segment(name)}", Account))

    def exchanges(self) -> list[Exchange]:
        return self._run(get("/rest/exchange", list[Exchange]))

    def strategies(self) -> list[Strategy]:
        return self._run(get("/rest/strategy", list[Strategy]))

    def set_phase(self, strategy_name: str, phase: Phase) -> None:
        """Leads a strategy to another phase of its life."""
        self._run(write("PUT", f"/rest/ext/strategy/{path_segment(strategy_name)}/phase", {"phase": phase}))

    def config_params(self) -> Mapping[str, str]:
        """Every setting of the service that holds."""
        return self._run(get("/rest/config-params", dict[str, str]))

    def clear_caches(self) -> None:
        """Has the reference data read again."""
        self._run(write("POST", "/rest/cache/clear-all"))
