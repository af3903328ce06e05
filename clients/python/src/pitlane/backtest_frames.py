"""Columns of a back-test as frames of pandas or polars, whichever is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Collection, Literal, Mapping, Sequence

from .strategy_numbers import Decimals, reader_of

Frames = Literal["auto", "pandas", "polars"]

_MISSING = "tables need pandas or polars: pip install pandas"


def make_frame(
    columns: Mapping[str, Sequence[Any]],
    frames: Frames,
    *,
    amounts: Collection[str],
    times: Collection[str],
    decimals: Decimals,
) -> Any:
    """Returns a frame. `amounts` are in units of 10⁻⁸, `times` in nanoseconds since the epoch."""
    read = reader_of(decimals)
    cells: dict[str, Sequence[Any]] = {}
    for name, values in columns.items():
        cells[name] = [None if value is None else read(value) for value in values] if name in amounts else values
    if _choice(frames) == "polars":
        return _polars(cells, amounts, times, decimals)
    return _pandas(cells, amounts, times, decimals)


def _choice(frames: Frames) -> str:
    if frames != "auto":
        if frames not in ("pandas", "polars"):
            raise ValueError(f'frames must be "auto", "pandas" or "polars", not {frames!r}')
        return frames
    for name in ("pandas", "polars"):
        if find_spec(name) is not None:
            return name
    raise ImportError(_MISSING)


def _pandas(
    cells: Mapping[str, Sequence[Any]], amounts: Collection[str], times: Collection[str], decimals: Decimals
) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(_MISSING) from error
    table = {}
    for name, values in cells.items():
        if name in times:
            table[name] = pandas.to_datetime(pandas.Series(values, dtype="Int64"), unit="ns", utc=True)
        elif name in amounts:
            table[name] = pandas.Series(values, dtype=object if decimals == "exact" else "float64")
        else:
            table[name] = pandas.Series(values, dtype=None if values else object)
    return pandas.DataFrame(table)


def _polars(
    cells: Mapping[str, Sequence[Any]], amounts: Collection[str], times: Collection[str], decimals: Decimals
) -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError(_MISSING.replace("pip install pandas", "pip install polars")) from error
    table = []
    for name, values in cells.items():
        if name in times:
            series = polars.Series(name, values, dtype=polars.Int64)
            table.append(series.cast(polars.Datetime("ns", "UTC")))
        elif name in amounts:
            exact = polars.Decimal(scale=8, precision=38)
            table.append(polars.Series(name, values, dtype=exact if decimals == "exact" else polars.Float64))
        else:
            table.append(polars.Series(name, values, strict=False))
    return polars.DataFrame(table)
