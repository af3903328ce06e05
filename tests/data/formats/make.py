#!/usr/bin/env python3
"""Writes the small files of market data in this folder, which the tests of io/market_data read.

The bytes come from packages of other authors, so that our readers are compared with another
reading of the public documents:

    python3 -m venv venv
    venv/bin/pip install databento-dbn==0.72.0 itchfeed==1.6.4 zstandard==0.25.0
    venv/bin/python tests/data/formats/make.py
"""

import datetime
import gzip
import pathlib
import struct
import zipfile
from types import SimpleNamespace

import databento_dbn as dbn
import zstandard
from itch.messages import create_message

HERE = pathlib.Path(__file__).parent
DAY = datetime.date(2024, 3, 1)
# 14:30 UTC, 09:30 in New York.
OPEN = 1_709_303_400_000_000_000
AAPL, OTHER = 32, 33
PUBLISHER = 2
PRICE = 1_000_000_000


def metadata(schema: dbn.Schema | None, version: int, symbols: tuple[str, str] = ("AAPL", "ZZZZ")) -> bytes:
    """Returns metadata that map AAPL and another symbol to their instruments on one day."""
    interval = {"start_date": DAY, "end_date": DAY + datetime.timedelta(days=1)}
    pairs = zip(symbols, (AAPL, OTHER), strict=True)
    mappings = [
        SimpleNamespace(raw_symbol=symbol, intervals=[SimpleNamespace(**interval, symbol=str(number))])
        for symbol, number in pairs
    ]
    return dbn.Metadata(
        dataset="XNAS.ITCH",
        start=OPEN,
        end=OPEN + 1_000_000_000,
        stype_in=dbn.SType.RAW_SYMBOL,
        stype_out=dbn.SType.INSTRUMENT_ID,
        schema=schema,
        symbols=list(symbols),
        partial=[],
        not_found=["NONE"],
        mappings=mappings,
        version=version,
    ).encode()


def header(instrument: int, at: int) -> dict:
    """Returns the fields that all records have; the time of the exchange is a bit earlier."""
    return {"publisher_id": PUBLISHER, "instrument_id": instrument, "ts_event": OPEN + at - 100}


def price(dollars: float | None) -> int:
    return dbn.UNDEF_PRICE if dollars is None else round(dollars * PRICE)


def trade(at: int, dollars: float, size: int, side: dbn.Side, instrument: int = AAPL) -> dbn.TradeMsg:
    return dbn.TradeMsg(
        **header(instrument, at),
        price=price(dollars),
        size=size,
        action=dbn.Action.TRADE,
        side=side,
        depth=0,
        ts_recv=OPEN + at,
        flags=128,
    )


def pair(bid: float | None, bid_size: int, ask: float | None, ask_size: int) -> dbn.BidAskPair:
    return dbn.BidAskPair(bid_px=price(bid), ask_px=price(ask), bid_sz=bid_size, ask_sz=ask_size, bid_ct=1, ask_ct=1)


def book(at: int, action: dbn.Action, dollars: float, size: int, levels: list[dbn.BidAskPair], kind=dbn.MBP10Msg):
    return kind(
        **header(AAPL, at),
        price=price(dollars),
        size=size,
        action=action,
        side=dbn.Side.BID,
        depth=0,
        ts_recv=OPEN + at,
        flags=128,
        levels=levels + [pair(None, 0, None, 0)] * (10 - len(levels)) if kind is dbn.MBP10Msg else levels[0],
    )


def order(at: int, number: int, action: dbn.Action, side: dbn.Side, dollars: float | None, size: int, flags: int = 128):
    return dbn.MBOMsg(
        **header(AAPL, at),
        order_id=number,
        price=price(dollars),
        size=size,
        action=action,
        side=side,
        ts_recv=OPEN + at,
        flags=flags,
    )


def bar(at: int, prices: tuple[float, float, float, float], volume: int) -> dbn.OHLCVMsg:
    opened, high, low, close = map(price, prices)
    return dbn.OHLCVMsg(
        rtype=dbn.RType.OHLCV_1M,
        publisher_id=PUBLISHER,
        instrument_id=AAPL,
        ts_event=OPEN + at,
        open=opened,
        high=high,
        low=low,
        close=close,
        volume=volume,
    )


def write_dbn() -> None:
    bid, ask, none = dbn.Side.BID, dbn.Side.ASK, dbn.Side.NONE
    add, cancel, modify, clear = dbn.Action.ADD, dbn.Action.CANCEL, dbn.Action.MODIFY, dbn.Action.CLEAR
    fill, traded = dbn.Action.FILL, dbn.Action.TRADE
    trades = [
        trade(0, 170.25, 100, bid),
        trade(5, 99.0, 1, bid, OTHER),
        trade(10, 170.24, 50, ask),
        trade(20, 170.245, 7, none),
    ]
    for version in (1, 2, 3):
        content = metadata(dbn.Schema.TRADES, version) + b"".join(map(bytes, trades))
        (HERE / f"trades-v{version}.dbn").write_bytes(content)
    best = [
        book(0, add, 170.24, 300, [pair(170.24, 300, 170.26, 200)], dbn.MBP1Msg),
        book(10, traded, 170.26, 50, [pair(170.24, 300, 170.26, 200)], dbn.MBP1Msg),
        book(10, cancel, 170.26, 50, [pair(170.24, 300, 170.26, 150)], dbn.MBP1Msg),
        book(20, cancel, 170.24, 300, [pair(None, 0, 170.26, 150)], dbn.MBP1Msg),
    ]
    write_zst("mbp-1.dbn.zst", metadata(dbn.Schema.MBP_1, 2) + b"".join(map(bytes, best)))
    deep = [
        book(0, add, 170.24, 300, [pair(170.24, 300, 170.26, 200), pair(170.23, 500, 170.27, 100)]),
        book(10, cancel, 170.23, 100, [pair(170.24, 300, 170.26, 200), pair(170.23, 400, 170.27, 100)]),
        book(20, traded, 170.24, 300, [pair(170.24, 300, 170.26, 200), pair(170.23, 400, 170.27, 100)]),
        book(20, cancel, 170.24, 300, [pair(170.23, 400, 170.26, 200), pair(170.22, 60, 170.27, 100)]),
    ]
    (HERE / "mbp-10.dbn").write_bytes(metadata(dbn.Schema.MBP_10, 3) + b"".join(map(bytes, deep)))
    orders = [
        order(0, 9, cancel, bid, 170.0, 10),
        order(1, 0, clear, none, None, 0),
        order(2, 1, add, bid, 170.24, 100),
        order(3, 2, add, bid, 170.24, 200),
        order(4, 3, add, ask, 170.26, 150),
        order(5, 4, add, bid, 170.23, 80),
        order(6, 0, traded, ask, 170.24, 130, flags=0),
        order(6, 1, fill, bid, 170.24, 100, flags=0),
        order(6, 1, cancel, bid, 170.24, 100, flags=0),
        order(6, 2, fill, bid, 170.24, 30, flags=0),
        order(6, 2, cancel, bid, 170.24, 30),
        order(7, 3, modify, ask, 170.25, 140),
        order(8, 2, cancel, bid, 170.24, 170),
    ]
    write_zst("mbo.dbn.zst", metadata(dbn.Schema.MBO, 3) + b"".join(map(bytes, orders)))
    bars = [bar(0, (170, 171, 169.5, 170.5), 4_000), bar(60_000_000_000, (170.5, 170.75, 170.25, 170.5), 800)]
    (HERE / "ohlcv-1m.dbn").write_bytes(metadata(dbn.Schema.OHLCV_1M, 3) + b"".join(map(bytes, bars)))
    # Live data name their symbols by records.
    live = dbn.Metadata(
        dataset="XNAS.ITCH", start=OPEN, stype_in=None, stype_out=dbn.SType.INSTRUMENT_ID, schema=None, version=3
    ).encode()
    symbol = dbn.SymbolMappingMsg(
        publisher_id=PUBLISHER,
        instrument_id=AAPL,
        ts_event=OPEN,
        stype_in=dbn.SType.RAW_SYMBOL,
        stype_in_symbol="AAPL",
        stype_out=dbn.SType.INSTRUMENT_ID,
        stype_out_symbol=str(AAPL),
        start_ts=OPEN,
        end_ts=OPEN + 1,
    )
    (HERE / "live.dbn").write_bytes(live + bytes(symbol) + b"".join(map(bytes, trades)))
    foreign = metadata(dbn.Schema.TRADES, 3, ("YYYY", "ZZZZ"))
    (HERE / "foreign.dbn").write_bytes(foreign + b"".join(map(bytes, trades)))


def write_zst(name: str, content: bytes) -> None:
    (HERE / name).write_bytes(zstandard.ZstdCompressor().compress(content))


def write_itch() -> None:
    """Writes the messages of a short morning with a length of two bytes before each."""
    opened = (9 * 3600 + 30 * 60) * 1_000_000_000

    def message(kind: bytes, at: int, locate: int = 7, **fields) -> bytes:
        made = create_message(kind, stock_locate=locate, tracking_number=0, timestamp=opened + at, **fields)
        content = made.to_bytes()
        return struct.pack(">H", len(content)) + content

    def stock(locate: int, symbol: bytes, at: int) -> bytes:
        return message(
            b"R",
            at,
            locate,
            stock=symbol.ljust(8),
            market_category=b"Q",
            financial_status_indicator=b"N",
            round_lot_size=100,
            round_lots_only=b"N",
            issue_classification=b"C",
            issue_sub_type=b"Z ",
            authenticity=b"P",
            short_sale_threshold_indicator=b"N",
            ipo_flag=b"N",
            luld_ref=b"1",
            etp_flag=b"N",
            etp_leverage_factor=0,
            inverse_indicator=b"N",
        )

    def add(at: int, number: int, side: bytes, shares: int, price_4: int, locate: int = 7) -> bytes:
        return message(
            b"A",
            at,
            locate,
            order_reference_number=number,
            buy_sell_indicator=side,
            shares=shares,
            stock=b"AAPL    ",
            price=price_4,
        )

    messages = [
        message(b"S", -10, 0, event_code=b"O"),
        stock(7, b"AAPL", -9),
        stock(8, b"ZZZZ", -8),
        add(0, 1, b"B", 100, 1_702_400),
        add(1, 2, b"B", 200, 1_702_400),
        add(2, 3, b"S", 150, 1_702_600),
        add(2, 99, b"S", 150, 1_702_600, locate=8),
        message(
            b"F",
            3,
            order_reference_number=4,
            buy_sell_indicator=b"B",
            shares=80,
            stock=b"AAPL    ",
            price=1_702_300,
            attribution=b"NSDQ",
        ),
        message(b"E", 4, order_reference_number=1, executed_shares=60, match_number=1),
        message(
            b"C",
            5,
            order_reference_number=1,
            executed_shares=40,
            match_number=2,
            printable=b"Y",
            execution_price=1_702_450,
        ),
        message(b"X", 6, order_reference_number=2, cancelled_shares=50),
        message(b"U", 7, order_reference_number=3, new_order_reference_number=5, shares=120, price=1_702_500),
        message(b"D", 8, order_reference_number=2),
        message(
            b"P",
            9,
            order_reference_number=0,
            buy_sell_indicator=b"B",
            shares=33,
            stock=b"AAPL    ",
            price=1_702_475,
            match_number=3,
        ),
        message(b"Q", 10, shares=5_000, stock=b"AAPL    ", cross_price=1_702_450, match_number=4, cross_type=b"O"),
        message(b"S", 20, 0, event_code=b"C"),
    ]
    content = b"".join(messages)
    (HERE / "03012024.NASDAQ_ITCH50").write_bytes(content)
    with (HERE / "03012024.NASDAQ_ITCH50.gz").open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as compressed:
        compressed.write(content)


def write_binance() -> None:
    """Writes rows in the layouts of https://github.com/binance/binance-public-data."""
    spot = "1,62000.10000000,0.00500000,310.00050000,1709303400000,False,True\n"
    spot += "2,62000.00000000,0.10000000,6200.00000000,1709303400250,True,True\n"
    (HERE / "BTCUSDT-trades-2024-03-01.csv").write_text(spot)
    future = "id,price,qty,quote_qty,time,is_buyer_maker\n"
    future += "1,62000.1,0.005,310.0005,1709303400000,false\n2,62000.0,0.1,6200.0,1709303400250,true\n"
    (HERE / "BTCUSDT-trades-2024-03.csv").write_text(future)
    # From 2025 on, spot data have microseconds.
    aggregated = "1,94000.10000000,0.00500000,1,2,1740839400000000,False,True\n"
    aggregated += "2,94000.00000000,0.10000000,3,3,1740839400250001,True,True\n"
    info = zipfile.ZipInfo("BTCUSDT-aggTrades-2025-03-01.csv", (2025, 3, 2, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(HERE / "BTCUSDT-aggTrades-2025-03-01.zip", "w") as archive:
        archive.writestr(info, aggregated)
    header = "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n"
    rows = "1,62000.1,0.005,1,2,1709303400000,false\n2,62000.0,0.1,3,3,1709303400250,true\n"
    (HERE / "BTCUSDT-aggTrades-2024-03-01.csv").write_text(header + rows)
    klines = "1709303400000,62000.0,62100.0,61950.0,62050.0,12.5,1709303459999,775000.0,321,6.0,372000.0,0\n"
    klines += "1709303460000,62050.0,62060.0,62000.0,62010.0,4.0,1709303519999,248000.0,100,2.0,124000.0,0\n"
    (HERE / "BTCUSDT-1m-2024-03-01.csv").write_text(klines)


if __name__ == "__main__":
    write_dbn()
    write_itch()
    write_binance()
