"""The past of the market: bars equal to those that pandas computes from the recorded ticks."""

import signal
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO
from time import monotonic, sleep
from urllib.request import Request, urlopen

import pandas
import polars
import pytest
from conftest import run
from pitlane import (
    AsyncPitlane,
    BadRequest,
    DecodeError,
    NotFound,
    Pitlane,
    PriceLevel,
    to_dataframe,
    to_polars,
    wire,
)
from pitlane.market_values import DepthMessage, depth_after

LIMIT_S = 60
INTERVALS = {"1s": "1s", "1m": "1min", "1d": "1D"}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def wait_for(condition):
    """Waits for what a running market brings about."""
    end = monotonic() + LIMIT_S
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.05)


def bars_of(ticks, length, exchange):
    """Computes bars from ticks with pandas, and nothing of ours."""
    table = to_dataframe(ticks, decimals="exact")
    trades = table[table["last"].notna()]
    # A day begins at midnight, or at the close before if the session passes midnight.
    is_overnight = length == "1D" and exchange.close <= exchange.open
    shift = pandas.Timedelta(exchange.close if is_overnight else 0)
    local = trades["date_time"].dt.tz_convert(exchange.time_zone)
    starts = ((local - shift).dt.floor(length) + shift).dt.tz_convert("UTC")
    groups = trades.groupby(starts)
    return pandas.DataFrame(
        {
            "open": groups["last"].first(),
            "high": groups["last"].max(),
            "low": groups["last"].min(),
            "close": groups["last"].last(),
            "volume": groups["last_size"].sum(),
            "trades": groups["last"].count(),
        }
    )


def assert_bars_are_those_of_pandas(client, security):
    """Compares all bars with all ticks of a market that stands still."""
    found = client.security(security).exchange_id
    (exchange,) = (row for row in client.exchanges() if row.id == found)
    ticks = client.tick_history(security, start=EPOCH)
    for interval, length in INTERVALS.items():
        ours = to_dataframe(client.bars(security, interval, start=EPOCH), decimals="exact")
        expected = bars_of(ticks, length, exchange)
        assert list(ours["date_time"]) == list(expected.index), interval
        for column in expected.columns:
            assert list(ours[column]) == list(expected[column]), (interval, column)


def test_bars_are_those_that_pandas_computes_also_after_a_kill(new_service):
    service = new_service("feed.rate=400").start()
    with Pitlane(service.url) as client:
        wait_for(lambda: len(client.bars(1, "1s")) >= 4)
        bars = [bar for bar in client.bars(1, "1s") if bar.complete]
        assert bars
    service.end(signal.SIGKILL)
    service.settings.append("feed.on=false")
    service.start()
    with Pitlane(service.url) as client:
        kept = client.bars(1, "1s")
        assert kept[: len(bars)] == bars
        for security in (1, 30, 50):
            assert_bars_are_those_of_pandas(client, security)
        quote, day = client.quote(1), client.bars(1, "1d")[-1]
        assert (quote.open, quote.high, quote.low, quote.last) == (day.open, day.high, day.low, day.close)


def test_the_simulated_market_goes_on_where_it_ended(new_service):
    service = new_service("feed.rate=4000").start()
    with Pitlane(service.url) as client:
        wait_for(lambda: len(client.tick_history(1, limit=200)) == 200)
    service.end()
    service.start()
    with Pitlane(service.url) as client:
        count = len(client.tick_history(1, start=EPOCH))
        wait_for(lambda: len(client.tick_history(1, start=EPOCH)) > count + 20)
        bids = [tick.bid for tick in client.tick_history(1, start=EPOCH)]
        # Each event moves the bid by two ticks at most, also the first one after a start.
        reach = 2 * client.security(1).tick_size
        assert all(abs(later - earlier) <= reach for earlier, later in zip(bids, bids[1:]))


def test_rows_are_those_of_the_range_and_of_the_limit(client):
    wait_for(lambda: len(client.tick_history(1, start=EPOCH, limit=15)) == 15)
    last = client.tick_history(1, limit=10)
    assert len(last) == 10 and last == sorted(last, key=lambda tick: tick.date_time)
    first = client.tick_history(1, start=EPOCH, limit=8)
    again = client.tick_history(1, start=EPOCH, end=first[-1].date_time + timedelta(seconds=1))
    assert len(first) == 8 and again[:8] == first
    assert client.tick_history(1, start=date(2100, 1, 1)) == []
    assert client.bars("AAPL", "1m", limit=1)[0].security_id == 1


def test_pages_are_read_one_after_the_other(client, monkeypatch):
    wait_for(lambda: len(client.tick_history(1, start=EPOCH, limit=15)) == 15)
    end = client.tick_history(1, start=EPOCH, limit=15)[-1].date_time
    whole = client.tick_history(1, start=EPOCH, end=end)
    monkeypatch.setattr("pitlane._sync.history._PAGE_ROWS_MAX", 3)
    assert client.tick_history(1, start=EPOCH, end=end) == whole
    assert client.tick_history(1, start=EPOCH, end=end, limit=8) == whole[:8]
    assert client.tick_history(1, end=end, limit=8) == whole[-8:]


def test_a_quote_has_the_prices_of_the_day(client):
    wait_for(lambda: client.quote(1).open is not None)
    quote = client.quote("AAPL")
    assert quote.security_id == 1 and quote.low <= quote.last <= quote.high and quote.volume > 0
    # Without a trading day before there is no change.
    assert (quote.change is None) == (quote.previous_close is None)
    assert {quote.security_id for quote in client.quotes([1, 9])} == {1, 9}
    assert client.quotes([]) == [] and len(client.quotes()) > 2


def test_tables_of_pandas_and_polars_have_the_same_rows(client):
    wait_for(lambda: len(client.bars(1, "1s", start=EPOCH, limit=2)) == 2)
    arguments = {"security": 1, "interval": "1s", "start": EPOCH, "limit": 2}
    table, frame = client.dataframe("bars", **arguments), client.polars("bars", **arguments)
    assert table["close"].dtype == "float64" and frame["close"].dtype == polars.Float64
    assert list(table["close"]) == list(frame["close"]) and list(table["complete"]) == list(frame["complete"])
    exact = client.polars("bars", decimals="exact", **arguments)
    assert exact["open"].to_list() == [bar.open for bar in client.bars(**arguments)]
    ticks = client.tick_history(1, limit=5)
    frame = to_polars(ticks)
    assert frame["date_time"].dtype == polars.Datetime("us", "UTC") and len(frame) == 5
    assert frame["bid"].to_list() == [None if tick.bid is None else float(tick.bid) for tick in ticks]
    assert to_polars([]).is_empty()
    assert client.polars("securities", limit=2)["type"].to_list() == ["STOCK", "STOCK"]
    assert client.polars("accounts")["name"].to_list() == client.dataframe("accounts")["name"].to_list()


def read_columns(url, media_type):
    """Reads an answer with polars, and nothing of ours."""
    with urlopen(Request(url, headers={"Accept": media_type})) as response:
        assert response.headers["Content-Type"] == media_type
        content = BytesIO(response.read())
    return READERS[media_type](content)


READERS = {
    "application/vnd.apache.parquet": polars.read_parquet,
    "application/vnd.apache.arrow.stream": polars.read_ipc_stream,
}


@pytest.mark.parametrize("media_type", READERS)
def test_parquet_and_arrow_have_the_rows_of_the_json(shared, client, media_type):
    wait_for(lambda: len(client.bars(1, "1s", start=EPOCH, limit=2)) == 2)
    wait_for(lambda: len(client.tick_history(1, start=EPOCH, limit=15)) == 15)
    # Rows of the past do not change, unlike the last ones.
    bars = client.bars(1, "1s", start=EPOCH, limit=1)
    ticks = client.tick_history(1, start=EPOCH, limit=15)
    # A tick that shows neither a quote nor a trade is in the JSON only.
    ticks = [tick for tick in ticks if tick.bid or tick.ask or tick.last]
    number, time = polars.Decimal(18, 8), polars.Datetime("ns", "UTC")
    for path, rows, limit, columns in (
        ("bars?securityId=1&interval=1s", bars, 1, "open high low close volume"),
        ("ticks?securityId=1", ticks, 15, "bid bid_size ask ask_size last last_size"),
    ):
        start = f"{shared.url}/rest/ext/{path}&from=1970-01-01"
        frame = read_columns(f"{start}&limit={limit}", media_type)
        assert frame.dtypes == [time, polars.UInt32] + [number] * len(columns.split())
        names = [name.replace("_s", "S") for name in columns.split()]
        assert frame.columns == ["time", "security", *names]
        times = frame["time"].dt.cast_time_unit("us").to_list()
        assert times == [row.date_time for row in rows]
        assert set(frame["security"]) == {1}
        for name, field in zip(names, columns.split()):
            assert frame[name].to_list() == [getattr(row, field) for row in rows], name
        empty = read_columns(f"{start}&to=1970-01-02", media_type)
        assert (empty.height, empty.schema) == (0, frame.schema)


def test_a_wrong_question_is_an_error_with_words(client):
    with pytest.raises(NotFound, match="no security"):
        client.bars(999_999)
    with pytest.raises(BadRequest, match="1s, 1m or 1d"):
        client.bars(1, "5m")
    with pytest.raises(BadRequest, match="later than"):
        client.tick_history(1, start=EPOCH + timedelta(days=1), end=EPOCH)
    with pytest.raises(ValueError, match="above zero"):
        client.tick_history(1, limit=0)
    with pytest.raises(ValueError, match="time zone"):
        client.tick_history(1, start=datetime(2026, 11, 14))


def test_the_asyncio_client_reads_the_past(shared):
    async def read():
        async with AsyncPitlane(shared.url) as client:
            return await client.quote(1), await client.bars(1, "1d")

    quote, bars = run(read())
    assert isinstance(quote.volume, Decimal) and bars[-1].open == quote.open


def levels(*rows):
    return tuple(PriceLevel(Decimal(price), Decimal(size)) for price, size in rows)


def depth_message(text):
    return wire.decode(DepthMessage, wire.parse(f'{{{text},"ts":1,"securityId":7,"dateTime":"2026-11-18T09:00:00Z"}}'))


def test_an_update_changes_the_depth_it_follows():
    snapshot = depth_message('"type":"SNAPSHOT","seq":5,"bids":[[10,5],[9.5,2]],"asks":[[11,6]]')
    before = depth_after(snapshot, None)
    assert (before.bids, before.asks, before.spread) == (levels((10, 5), ("9.5", 2)), levels((11, 6)), 1)
    changes = '[["B",9.75,1],["B",10,0],["A",10.5,3],["A",11,7]]'
    update = depth_message(f'"type":"UPDATE","prevSeq":5,"seq":8,"changes":{changes}')
    after = depth_after(update, before)
    assert (after.seq, after.bids) == (8, levels(("9.75", 1), ("9.5", 2)))
    assert after.asks == levels(("10.5", 3), (11, 7))
    for other in (None, after):
        with pytest.raises(ValueError, match="an update of the depth 5"):
            depth_after(update, other)
    with pytest.raises(DecodeError):
        depth_message('"type":"SNAPSHOT","seq":5,"bids":[[10]]')


def test_depth_since_an_earlier_one_is_the_whole_depth(client):
    wait_for(lambda: client.depth(1).bids and client.depth(1).asks)
    depth = client.depth(1)
    for _ in range(20):
        depth = client.depth(1, since=depth)
        assert depth.spread > 0
        assert list(depth.bids) == sorted(depth.bids, reverse=True) and list(depth.asks) == sorted(depth.asks)
    with pytest.raises(NotFound):
        client.depth(999_999)
