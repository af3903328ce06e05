"""Reference data: securities, accounts, exchanges and strategies."""

from __future__ import annotations

from typing import Mapping

from ..call import get, path_segment, write
from ..enums import Phase
from ..values import Account, Exchange, Forex, Security, SecurityFamily, SecurityRef, StrategyInfo
from .securities import AsyncSecurityLookup


class AsyncReference(AsyncSecurityLookup):
    async def securities(self, limit: int | None = None) -> list[Security]:
        """Returns all securities."""
        return await self._run(get("/rest/security", list[Security], limit=limit))

    async def security(self, security: SecurityRef) -> Security:
        """Returns one security by its id or symbol."""
        return await self._run(get(f"/rest/security/{await self._security_id(security):d}", Security))

    async def search(self, query: str = "", limit: int | None = None) -> list[Security]:
        """Returns the securities that match a query.

        A query has words of the symbol, the description or the ISIN, and terms `field:value`, as in
        "apple type:STOCK".
        """
        return await self._run(get("/rest/security.search", list[Security], query=query, limit=limit))

    async def forex(self, base_currency: str, transaction_currency: str) -> Forex:
        """Returns a currency pair."""
        pair = {"baseCurrency": base_currency, "transactionCurrency": transaction_currency}
        return await self._run(get("/rest/forex", Forex, **pair))

    async def families(self) -> list[SecurityFamily]:
        """Returns all security families."""
        return await self._run(get("/rest/security-family", list[SecurityFamily]))

    async def family(self, family_id: int) -> SecurityFamily:
        """Returns one security family."""
        return await self._run(get(f"/rest/security-family/{family_id:d}", SecurityFamily))

    async def accounts(self) -> list[Account]:
        """Returns all accounts."""
        return await self._run(get("/rest/account", list[Account]))

    async def account(self, name: str) -> Account:
        """Returns one account."""
        return await self._run(get(f"/rest/account/{path_segment(name)}", Account))

    async def exchanges(self) -> list[Exchange]:
        """Returns all exchanges."""
        return await self._run(get("/rest/exchange", list[Exchange]))

    async def strategies(self) -> list[StrategyInfo]:
        """Returns all strategies."""
        return await self._run(get("/rest/strategy", list[StrategyInfo]))

    async def set_phase(self, strategy_name: str, phase: Phase) -> None:
        """Moves a strategy to another phase of its lifecycle."""
        await self._run(write("PUT", f"/rest/ext/strategy/{path_segment(strategy_name)}/phase", {"phase": phase}))

    async def config_params(self) -> Mapping[str, str]:
        """Returns the effective settings of the service."""
        return await self._run(get("/rest/config-params", dict[str, str]))

    async def clear_caches(self) -> None:
        """Makes the service reload the reference data."""
        await self._run(write("POST", "/rest/cache/clear-all"))
