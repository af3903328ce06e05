"""Amounts of strategies: floats or decimals outside, whole numbers of 10⁻⁸ inside.

The engine counts prices, quantities and money in units of 10⁻⁸. A strategy receives them as floats,
or as exact `Decimal`s if it asks for them. What a strategy sends must be on the grid of the
security: a price is a multiple of its tick size, a quantity one of its lot size.
"""

from __future__ import annotations

import numbers
import operator
from decimal import Decimal, InvalidOperation
from typing import Any, Callable, Literal, Union

Decimals = Literal["float", "exact"]
Amount = Union[float, int, Decimal, str]
"""A price or a quantity that a strategy sends."""

SCALE = 10**8
RAW_MAX = 2**63 - 1

# The distance from the grid, in parts of a step, that is an error of float arithmetic and not a
# price of its own: 100.01 + 0.01 is 100.02000000000001. Errors are below 10⁻⁹ of a step of 0.01 up
# to prices of ten thousand.
_STEPS_PER_ERROR = 10**6


def to_float(raw: int) -> float:
    return raw / SCALE


def to_decimal(raw: int) -> Decimal:
    return Decimal(raw) / SCALE


def reader_of(decimals: str) -> Callable[[int], Any]:
    """Returns the function that converts an amount of the engine for a strategy."""
    if decimals not in ("float", "exact"):
        raise ValueError(f'decimals must be "float" or "exact", not {decimals!r}')
    return to_decimal if decimals == "exact" else to_float


def on_grid(value: Amount, step: int, field: str, grid: str, symbol: str) -> int:
    """Returns an amount in units of 10⁻⁸.

    Raises a `ValueError` that names the nearest valid amounts if it is not a multiple of `step`.
    """
    numerator, denominator, is_float = _ratio(value, field)
    numerator *= SCALE
    denominator *= step
    # The nearest multiple of the step, and twice the distance from it.
    steps = (2 * numerator + denominator) // (2 * denominator)
    distance = abs(numerator - steps * denominator)
    tolerance = denominator // _STEPS_PER_ERROR if is_float else 0
    if distance > tolerance:
        below = numerator // denominator
        nearest = f"{text_of(below * step)} and {text_of((below + 1) * step)}"
        raise ValueError(
            f"{field} {value} is not a multiple of the {grid} size {text_of(step)} of {symbol}; "
            f"the nearest valid values are {nearest}"
        )
    raw = steps * step
    if abs(raw) > RAW_MAX:
        raise ValueError(f"{field} {value} is too large; amounts are below {text_of(RAW_MAX)}")
    return raw


def nearest(value: Amount, step: int, field: str) -> int:
    """Returns the nearest multiple of `step`, in units of 10⁻⁸. A half is rounded up."""
    numerator, denominator, _ = _ratio(value, field)
    numerator *= SCALE
    denominator *= step
    return (2 * numerator + denominator) // (2 * denominator) * step


def text_of(raw: int) -> str:
    """Returns an amount as text, without trailing zeros and without an exponent."""
    sign, units = ("-", -raw) if raw < 0 else ("", raw)
    whole, part = divmod(units, SCALE)
    digits = f"{part:08d}".rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def _ratio(value: Amount, field: str) -> tuple[int, int, bool]:
    """Returns an amount as an exact fraction, and whether it was a float."""
    if isinstance(value, bool):
        raise TypeError(f"{field} must be a number, not {value!r}")
    try:
        if isinstance(value, (Decimal, str)):
            number = Decimal(value)
            return (*number.as_integer_ratio(), False)
        if isinstance(value, numbers.Integral):
            return operator.index(value), 1, False
        if isinstance(value, numbers.Real):
            return (*float(value).as_integer_ratio(), True)
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ValueError(f"{field} {value!r} is not a number") from error
    raise TypeError(f"{field} must be a float, an int, a Decimal or a str, not {type(value).__name__} {value!r}")
