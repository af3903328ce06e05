"""Tables: amounts are numbers to compute with, and exact on request."""

from datetime import datetime
from decimal import Decimal

import pandas
import pytest
from conftest import run, wait_until_finished
from pitlane import AsyncPitlane, to_dataframe


def test_every_table_exists_and_is_exact_on_request(client):
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
    tables = {name: client.dataframe(name, decimals="exact") for name in [*names, "adapters", "sessions", "latency"]}
    for name in names:
        assert len(tables[name]) > 0, name
    assert isinstance(tables["securities"]["tick_size"][0], Decimal)
    assert tables["securities"]["type"][0] == "STOCK" and tables["securities"]["id"].dtype == "int64"
    assert isinstance(tables["orders"]["date_time"][0].to_pydatetime(), datetime)
    assert tables["transactions"]["date_time"].dt.tz is not None
    client.cancel_all(security=9)


def test_numbers_are_numeric_columns(client):
    table = client.dataframe("securities", limit=3)
    assert len(table) == 3 and table["tick_size"].dtype == "float64" and table["tick_size"][0] == 0.01
    # An absent value is missing, not zero, and the column stays numeric.
    assert table["strike"].dtype == "float64" and table["strike"].isna().all()
    assert table["underlying_id"].dtype == "Int64" and table["underlying_id"].isna().all()
    assert pandas.isna(client.dataframe("securities", decimals="exact")["strike"][0])
    with pytest.raises(ValueError):
        client.dataframe("nonsense")
    with pytest.raises(ValueError, match="'float' or 'exact'"):
        client.dataframe("securities", decimals="double")


def test_ticks_convert_to_a_table(client):
    ticks = client.collect("tick.*", count=20)
    exact = to_dataframe(ticks, decimals="exact")["last"].dropna()
    assert list(exact) == [tick.last for tick in ticks if tick.last is not None]
    table = to_dataframe(ticks)
    assert len(table) == 20 and table["last"].dtype == table["bid"].dtype == "float64"
    assert list(table["last"].dropna()) == [float(last) for last in exact]
    assert to_dataframe(client.collect("log-event.error", count=1, seconds=0)).empty


def test_the_asyncio_client_returns_tables(shared):
    async def table():
        async with AsyncPitlane(shared.url) as client:
            return await client.dataframe("accounts")

    assert list(run(table())["name"]) == ["NEWYORK", "GLOBAL", "RESERVE"]
