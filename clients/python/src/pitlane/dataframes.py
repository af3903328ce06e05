"""Values and events as tables of pandas, which is there if one asks for it: `pip install 'pitlane[pandas]'`."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Iterable, Literal

if TYPE_CHECKING:
    import pandas

Decimals = Literal["exact", "float"]
DECIMALS: Decimals = "exact"


def to_dataframe(rows: Iterable[Any], *, decimals: Decimals = DECIMALS) -> pandas.DataFrame:
    """One row for each value, one column for each of its members.

    Amounts stay `Decimal` and are exact; "float" makes columns that numpy counts with. What is not told is missing.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'pitlane[pandas]'") from error
    values = list(rows)
    columns = list(dict.fromkeys(field.name for value in values for field in dataclasses.fields(value)))
    cells = {name: [_cell(getattr(value, name, None)) for value in values] for name in columns}
    # Made of objects first, so that nothing is turned into a float on the way.
    table = pandas.DataFrame(cells, columns=columns, dtype=object).infer_objects()
    if decimals == "float":
        for name in columns:
            if {type(cell) for cell in cells[name] if cell is not None} == {Decimal}:
                table[name] = table[name].astype(float)
    return table


def _cell(member: Any) -> Any:
    return member.value if isinstance(member, Enum) else member
