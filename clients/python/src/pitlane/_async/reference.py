"""What there is to trade, where, and for whom."""

from __future__ import annotations

from typing import Mapping

from ..call import get, path_segment, write
from ..values import Account, Exchange, Forex, Security, SecurityFamily, Strategy
from ..enums import Phase
from .rest import AsyncRestClient


class AsyncReference(AsyncRestClient):
    async def securities(self, limit: int | None = None) -> list[Security]:
        """All securities."""
        return await self._run(get("/rest/security", list[Security], limit=limit))

    async def security(self, security_id: int) -> Security:
        return await self._run(get(f"/rest/security/{security_id:d}", Security))

    async def search(self, query: str = "", limit: int | None = None) -> list[Security]:
        """Securities that match: words of symbol, description or ISIN, and `field:value`, as in "apple type:STOCK"."""
        return await self._run(get("/rest/security.search", list[Security], query=query, limit=limit))

    async def forex(self, base_currency: str, transaction_currency: str) -> Forex:
        """The currency pair."""
        pair = {"baseCurrency": base_currency, "transactionCurrency": transaction_currency}
        return await self._run(get("/rest/forex", Forex, **pair))

    async def families(self) -> list[SecurityFamily]:
        """All security families."""
        return await self._run(get("/rest/security-family", list[SecurityFamily]))

    async def family(self, family_id: int) -> SecurityFamily:
        return await self._run(get(f"/rest/security-family/{family_id:d}", SecurityFamily))

    async def accounts(self) -> list[Account]:
        return await self._run(get("/rest/account", list[Account]))

    async def account(self, name: str) -> Account:
        return await self._run(get(f"/rest/account/{path_segment(name)}", Account))

    async def exchanges(self) -> list[Exchange]:
        return await self._run(get("/rest/exchange", list[Exchange]))

    async def strategies(self) -> list[Strategy]:
        return await self._run(get("/rest/strategy", list[Strategy]))

    async def set_phase(self, strategy_name: str, phase: Phase) -> None:
        """Leads a strategy to another phase of its life."""
        await self._run(write("PUT", f"/rest/ext/strategy/{path_segment(strategy_name)}/phase", {"phase": phase}))

    async def config_params(self) -> Mapping[str, str]:
        """Every setting of the service that holds."""
        return await self._run(get("/rest/config-params", dict[str, str]))

    async def clear_caches(self) -> None:
        """Has the reference data read again."""
        await self._run(write("POST", "/rest/cache/clear-all"))
