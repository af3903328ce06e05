"""JSON and values: exact, and told when something is not as described."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Optional, Tuple

import pytest

from pitlane import LimitOrder, OrderStatus, Side, TimeInForce, DecodeError, wire


@dataclass(frozen=True)
class Sample:
    int_id: str
    realized_pl: Decimal
    at: Optional[datetime] = None
    day: Optional[date] = None
    side: Optional[Side] = None
    parts: Tuple[int, ...] = ()
    flag: Optional[bool] = None


def sample(text):
    return wire.decode(Sample, wire.parse(text))


def test_no_number_passes_through_a_float():
    value = sample('{"intId":"a","realizedPL":90071992.54740993,"new":1}')
    assert value == Sample("a", Decimal("90071992.54740993"))
    assert str(sample('{"intId":"a","realizedPL":0.1}').realized_pl) == "0.1"
    assert sample('{"intId":"a","realizedPL":5}').realized_pl == Decimal(5)


def test_times_have_a_zone_and_keep_their_microseconds():
    utc = timezone.utc
    assert wire.parse_time("2026-11-14T09:30:00.123456789Z") == datetime(2026, 11, 14, 9, 30, 0, 123456, utc)
    assert wire.parse_time("2026-11-14T09:30:00Z") == datetime(2026, 11, 14, 9, 30, tzinfo=utc)
    assert wire.parse_time("2026-11-14T09:30:00.5+01:00").utcoffset() == timedelta(hours=1)
    assert wire.time_of_ns(1794747730801133749) == datetime(2026, 11, 15, 13, 2, 10, 801133, utc)
    assert wire.format_time(wire.parse_time("2026-11-14T09:30:00.5+01:00")) == "2026-11-14T08:30:00.500000Z"
    with pytest.raises(ValueError):
        wire.format_time(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "nonsense",
        "{}",
        '{"intId":1,"realizedPL":1}',
        '{"intId":"a","realizedPL":true}',
        '{"intId":"a","realizedPL":"NaN"}',
        '{"intId":"a","realizedPL":NaN}',
        '{"intId":"a","realizedPL":"x"}',
        '{"intId":"a","realizedPL":1,"at":"yesterday"}',
        '{"intId":"a","realizedPL":1,"side":"HOLD"}',
        '{"intId":"a","realizedPL":1,"parts":[1.5]}',
        '{"intId":"a","realizedPL":1,"parts":{}}',
        '{"intId":"a","realizedPL":1,"flag":1}',
    ],
)
def test_what_is_not_as_described_is_told(text):
    with pytest.raises(DecodeError):
        sample(text)


def test_an_order_is_written_exactly_and_what_is_none_is_left_out():
    order = LimitOrder(1, Side.BUY, Decimal("1E+3"), "0.00001", TimeInForce.GTD, date(2026, 12, 1))
    assert wire.parse(wire.render(order)) == {
        "securityId": 1,
        "side": "BUY",
        "quantity": "1000",
        "limit": "0.00001",
        "tif": "GTD",
        "tifDate": "2026-12-01",
    }


@pytest.mark.parametrize("amount", [0.1, 1.0, True, Decimal("NaN"), Decimal("Infinity"), None])
def test_a_float_is_no_amount(amount):
    with pytest.raises((TypeError, ValueError)):
        wire.decimal_text(amount)


def test_a_float_never_gets_into_a_request():
    with pytest.raises(TypeError):
        wire.render(LimitOrder(1, Side.BUY, 5, 100.25))  # type: ignore[arg-type]


def test_words_are_texts():
    assert str(Side.BUY) == "BUY" == Side.BUY
    assert Side.BUY.opposite is Side.SELL
    assert [status for status in OrderStatus if status.is_finished] == ["FILLED", "CANCELED", "REJECTED", "EXPIRED"]
