"""Tables as CSV, which spreadsheets open: nothing in them is run."""

from pathlib import Path
from typing import Any

import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a text begins that a spreadsheet runs as a formula, or begins to after what it drops."""


def write_csv(table: pd.DataFrame, file: Path, **how: Any) -> None:
    """Write a table as CSV; a text that a spreadsheet would take for a formula gets an apostrophe before it.

    A carriage return becomes a line feed: Python 3.12 would not quote it, and what follows it would be a row.

    Args:
        table: The table; its index is left out.
        file: The file.
        how: As for `pandas.DataFrame.to_csv`.
    """
    cells = {name: column.map(_inert) for name, column in table.items() if not _is_number(column)}
    table.assign(**cells).to_csv(file, index=False, lineterminator="\n", **how)


def _is_number(column: "pd.Series[Any]") -> bool:
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
