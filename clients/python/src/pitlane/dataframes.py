"""Values and events as pandas DataFrames.

Needs the extra `pandas`: `pip install 'pitlane[pandas]'`.
"""

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
    """Returns a table with one row per value and one column per field.

    Amounts stay exact `Decimal`s; "float" converts them for use with numpy. An absent value is
    missing in the table.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("tables need pandas: pip install 'pitlane[pandas]'") from error
    values = list(rows)
    columns = list(dict.fromkeys(field.name for value in values for field in dataclasses.fields(value)))
    cells = {name: [_cell(getattr(value, name, None)) for value in values] for name in columns}
    # The object type first, so that pandas converts no amount to a float.
    table = pandas.DataFrame(cells, columns=columns, dtype=object).infer_objects()
    if decimals == "float":
        for name in columns:
            if {type(cell) for cell in cells[name] if cell is not None} == {Decimal}:
                table[name] = table[name].astype(float)
    return table


def _cell(member: Any) -> Any:
    return member.value if isinstance(member, Enum) else member
