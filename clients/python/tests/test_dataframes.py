"""Tables: amounts are exact unless the caller requests floats."""

from datetime import datetime
from decimal import Decimal

import pandas
import pytest
from conftest import run, wait_until_finished
from pitlane import AsyncPitlane, to_dataframe


def test_every_table_exists_and_is_exact(client):
    wait_until_finished(client, client.buy(9, 2))
    client.buy(9, 1, limit=1)
    names = [
        "securities",
        "families",
        "accounts",
        "exchanges",
        "strategies",
        "orders",
        "history",
        "positions",
        "transactions",
        "cash",
    ]
    tables = {name: client.dataframe(name) for name in [*names, "adapters", "sessions", "latency"]}
    for name in names:
        assert len(tables[name]) > 0, name
    assert isinstance(tables["securities"]["tick_size"][0], Decimal)
    assert tables["securities"]["type"][0] == "STOCK" and tables["securities"]["id"].dtype == "int64"
    assert isinstance(tables["orders"]["date_time"][0].to_pydatetime(), datetime)
    assert tables["transactions"]["date_time"].dt.tz is not None
    client.cancel_all(security_id=9)


def test_amounts_are_floats_on_request(client):
    table = client.dataframe("securities", decimals="float", limit=3)
    assert len(table) == 3 and table["tick_size"].dtype == "float64" and table["tick_size"][0] == 0.01
    # An absent value is missing, not zero.
    assert pandas.isna(client.dataframe("securities")["strike"][0])
    with pytest.raises(ValueError):
        client.dataframe("nonsense")


def test_ticks_convert_to_a_table(client):
    table = to_dataframe(client.collect("tick.*", count=20))
    assert len(table) == 20 and isinstance(table["last"].dropna().iloc[0], Decimal)
    exact = table["last"].dropna().astype(str).map(Decimal)
    assert (exact == table["last"].dropna()).all()
    assert to_dataframe(client.collect("log-event.error", count=1, seconds=0)).empty


def test_the_asyncio_client_returns_tables(shared):
    async def table():
        async with AsyncPitlane(shared.url) as client:
            return await client.dataframe("accounts")

    assert list(run(table())["name"]) == ["NEWYORK", "GLOBAL", "RESERVE"]
