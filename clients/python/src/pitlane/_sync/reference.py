# Generated from _async/reference.py by tools/derive_sync.py. Change that file instead.
"""Reference data: securities, accounts, exchanges and strategies."""

from __future__ import annotations

from typing import Mapping

from ..call import get, path_segment, write
from ..enums import Phase
from ..values import Account, Exchange, Forex, Security, SecurityFamily, SecurityRef, StrategyInfo
from .securities import SecurityLookup


class Reference(SecurityLookup):
    def securities(self, limit: int | None = None) -> list[Security]:
        """Returns all securities."""
        return self._run(get("/rest/security", list[Security], limit=limit))

    def security(self, security: SecurityRef) -> Security:
        """Returns one security by its id or symbol."""
        return self._run(get(f"/rest/security/{self._security_id(security):d}", Security))

    def search(self, query: str = "", limit: int | None = None) -> list[Security]:
        """Returns the securities that match a query.

        A query has words of the symbol, the description or the ISIN, and terms `field:value`, as in
        "apple type:STOCK".
        """
        return self._run(get("/rest/security.search", list[Security], query=query, limit=limit))

    def forex(self, base_currency: str, transaction_currency: str) -> Forex:
        """Returns a currency pair."""
        pair = {"baseCurrency": base_currency, "transactionCurrency": transaction_currency}
        return self._run(get("/rest/forex", Forex, **pair))

    def families(self) -> list[SecurityFamily]:
        """Returns all security families."""
        return self._run(get("/rest/security-family", list[SecurityFamily]))

    def family(self, family_id: int) -> SecurityFamily:
        """Returns one security family."""
        return self._run(get(f"/rest/security-family/{family_id:d}", SecurityFamily))

    def accounts(self) -> list[Account]:
        """Returns all accounts."""
        return self._run(get("/rest/account", list[Account]))

    def account(self, name: str) -> Account:
        """Returns one account."""
        return self._run(get(f"/rest/account/{path_segment(name)}", Account))

    def exchanges(self) -> list[Exchange]:
        """Returns all exchanges."""
        return self._run(get("/rest/exchange", list[Exchange]))

    def strategies(self) -> list[StrategyInfo]:
        """Returns all strategies."""
        return self._run(get("/rest/strategy", list[StrategyInfo]))

    def set_phase(self, strategy_name: str, phase: Phase) -> None:
        """Moves a strategy to another phase of its lifecycle."""
        self._run(write("PUT", f"/rest/ext/strategy/{path_segment(strategy_name)}/phase", {"phase": phase}))

    def config_params(self) -> Mapping[str, str]:
        """Returns the effective settings of the service."""
        return self._run(get("/rest/config-params", dict[str, str]))

    def clear_caches(self) -> None:
        """Makes the service reload the reference data."""
        self._run(write("POST", "/rest/cache/clear-all"))
