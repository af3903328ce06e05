"""Values and events as DataFrames of pandas or polars.

Needs the extra `pandas` or `polars`: `pip install 'pitlane[pandas]'`.
"""

from __future__ import annotations

import dataclasses
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Iterable, Literal, get_args, get_type_hints

if TYPE_CHECKING:
    import pandas
    import polars

Decimals = Literal["float", "exact"]
DECIMALS: Decimals = "float"


def to_dataframe(rows: Iterable[Any], *, decimals: Decimals = DECIMALS) -> pandas.DataFrame:
    """Returns a table with one row per value and one column per field.

    Amounts are floats, so that a table can be computed with and drawn; "exact" keeps them
    `Decimal`. An absent value is missing in the table.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'pitlane[pandas]'") from error
    kinds, cells = _columns(rows, decimals)
    # The object type first, so that pandas guesses no type and converts no exact amount.
    table = pandas.DataFrame(cells, columns=list(kinds), dtype=object).infer_objects()
    for name, kind in kinds.items():
        if kind == {Decimal} and decimals == "float":
            table[name] = table[name].astype(float)
        elif kind == {int} and None in cells[name]:
            # The type of pandas for integers of which some are missing.
            table[name] = table[name].astype("Int64")
    return table


def to_polars(rows: Iterable[Any], *, decimals: Decimals = DECIMALS) -> polars.DataFrame:
    """Returns a table of polars, like `to_dataframe`. Exact amounts have eight decimals."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("tables of polars need it: pip install 'pitlane[polars]'") from error
    kinds, cells = _columns(rows, decimals)
    types: dict[Any, Any] = {
        Decimal: polars.Float64 if decimals == "float" else polars.Decimal(38, 8),
        int: polars.Int64,
        bool: polars.Boolean,
        str: polars.String,
        datetime: polars.Datetime("us", "UTC"),
        date: polars.Date,
    }

    def column(name: str, kind: set[Any]) -> polars.Series:
        found = cells[name]
        inner = next(iter(kind)) if len(kind) == 1 else None
        if isinstance(inner, type) and issubclass(inner, Enum):
            inner = str
        if inner is Decimal and decimals == "float":
            found = [None if cell is None else float(cell) for cell in found]
        if inner in types:
            return polars.Series(name, found, dtype=types[inner])
        # A column of several types, or of values that are no plain ones.
        return polars.Series(name, found, dtype=polars.Object)

    return polars.DataFrame([column(name, kind) for name, kind in kinds.items()])


def _columns(rows: Iterable[Any], decimals: Decimals) -> tuple[dict[str, set[Any]], dict[str, list[Any]]]:
    """Returns the types and the cells of each column."""
    if decimals not in ("float", "exact"):
        raise ValueError(f"decimals must be 'float' or 'exact', not {decimals!r}")
    values = list(rows)
    kinds = _column_kinds({type(value) for value in values})
    return kinds, {name: [_cell(getattr(value, name, None)) for value in values] for name in kinds}


def _column_kinds(kinds: set[type]) -> dict[str, set[Any]]:
    """Returns the types of each column, in the order of the fields, without None."""
    columns: dict[str, set[Any]] = {}
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            hint = hints[field.name]
            alternatives = get_args(hint) if type(None) in get_args(hint) else (hint,)
            columns.setdefault(field.name, set()).update(set(alternatives) - {type(None)})
    return columns


def _cell(member: Any) -> Any:
    return member.value if isinstance(member, Enum) else member
