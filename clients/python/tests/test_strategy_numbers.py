"""Amounts of strategies: what is on the grid of a security, and what is refused."""

from decimal import Decimal
from typing import Any

import pytest
from pitlane.strategy_numbers import nearest, on_grid, text_of, to_decimal, to_float

CENT = 1_000_000
NEW_YORK = 5_000_000


def price(value: Any, step: int = CENT) -> int:
    return on_grid(value, step, "limit", "tick", "AAPL")


@pytest.mark.parametrize("value", [232.55, "232.55", Decimal("232.55"), 232.5 + 0.05])
def test_the_same_price_in_every_type_is_the_same_number(value: Any) -> None:
    assert price(value) == 23_255_000_000


def test_an_error_of_float_arithmetic_is_not_a_price_of_its_own() -> None:
    assert 100.01 + 0.01 != 100.02
    assert price(100.01 + 0.01) == 10_002_000_000
    assert price(sum([0.1] * 10)) == 100_000_000
    assert price(9_999.99 + 0.01) == 1_000_000_000_000
    assert price(-0.1 - 0.2) == -30_000_000


@pytest.mark.parametrize("value", [100.005, "100.005", Decimal("100.005"), 100.00001])
def test_a_price_off_the_grid_is_refused_with_its_neighbours(value: Any) -> None:
    with pytest.raises(ValueError, match=r"the nearest valid values are 100 and 100\.01") as refused:
        price(value)
    assert str(refused.value).startswith(f"limit {value} is not a multiple of the tick size 0.01 of AAPL")


def test_a_negative_price_has_its_neighbours_on_both_sides() -> None:
    with pytest.raises(ValueError, match=r"-0\.1 and -0\.05"):
        price(-0.07, NEW_YORK)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x", Decimal("NaN"), Decimal("Infinity")])
def test_what_is_not_a_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        price(value)


@pytest.mark.parametrize("value", [True, None, [1]])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="limit must be a"):
        price(value)


def test_an_amount_beyond_the_range_is_refused() -> None:
    assert price(92_233_720_368) == 9_223_372_036_800_000_000
    with pytest.raises(ValueError, match=r"too large; amounts are below 92233720368\.54775807"):
        price(92_233_720_369)


def test_conversions_are_exact() -> None:
    assert [text_of(raw) for raw in (0, 1, -CENT, 23_255_000_000)] == ["0", "0.00000001", "-0.01", "232.55"]
    assert to_decimal(23_255_000_000) == Decimal("232.55")
    assert to_float(23_255_000_000) == 232.55
    assert nearest(100.004, CENT, "price") == 10_000_000_000
    assert nearest("100.005", CENT, "price") == 10_001_000_000
