"""JSON and values: numbers are exact, and invalid JSON is an error."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Optional, Tuple

import pytest
from pitlane import DecodeError, LimitOrder, OrderStatus, Side, TimeInForce, wire


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


def test_numbers_are_never_converted_to_floats():
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
def test_json_that_does_not_match_is_an_error(text):
    with pytest.raises(DecodeError):
        sample(text)


def test_an_order_is_encoded_exactly_without_absent_values():
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
def test_a_float_is_not_an_amount(amount):
    with pytest.raises((TypeError, ValueError)):
        wire.decimal_text(amount)


def test_a_request_rejects_floats():
    with pytest.raises(TypeError):
        wire.render(LimitOrder(1, Side.BUY, 5, 100.25))  # type: ignore[arg-type]


def test_enumerations_are_strings():
    assert str(Side.BUY) == "BUY" == Side.BUY
    assert Side.BUY.opposite is Side.SELL
    assert [status for status in OrderStatus if status.is_finished] == ["FILLED", "CANCELED", "REJECTED", "EXPIRED"]
