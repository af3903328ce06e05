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
    floats: Collection[str] = (),
) -> Any:
    """Returns a frame.

    `amounts` are in units of 10⁻⁸, `times` in nanoseconds since the epoch. `floats` are columns of
    floats, also if all values are missing.
    """
    read = reader_of(decimals)
    cells: dict[str, Sequence[Any]] = {}
    for name, values in columns.items():
        cells[name] = [None if value is None else read(value) for value in values] if name in amounts else values
    floats = floats if decimals == "exact" else [*floats, *amounts]
    exact = amounts if decimals == "exact" else ()
    if _choice(frames) == "polars":
        return _polars(cells, exact, times, floats)
    return _pandas(cells, exact, times, floats)


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
    cells: Mapping[str, Sequence[Any]], exact: Collection[str], times: Collection[str], floats: Collection[str]
) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(_MISSING) from error
    table = {}
    for name, values in cells.items():
        if name in times:
            table[name] = pandas.to_datetime(pandas.Series(values, dtype="Int64"), unit="ns", utc=True)
        elif name in floats:
            table[name] = pandas.Series(values, dtype="float64")
        else:
            table[name] = pandas.Series(values, dtype=object if name in exact or not values else None)
    return pandas.DataFrame(table)


def _polars(
    cells: Mapping[str, Sequence[Any]], exact: Collection[str], times: Collection[str], floats: Collection[str]
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
        elif name in floats:
            table.append(polars.Series(name, values, dtype=polars.Float64))
        elif name in exact:
            table.append(polars.Series(name, values, dtype=polars.Decimal(scale=8, precision=38)))
        else:
            table.append(polars.Series(name, values, strict=False))
    return polars.DataFrame(table)
