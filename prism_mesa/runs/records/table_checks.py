"""Whether a table is what its schema says: exactly when it is written, as far as it matters when it is read; CSV.

A folder comes from anybody: a table that is read may be damaged, or of another version, with fewer columns or others.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.tables import Column, ColumnType, TableSchema

RUN_TABLES: Final[Mapping[str, TableSchema]] = {**SOCIAL_TABLES, **ECONOMY_TABLES}
"""All tables of runs."""
ARROW_TYPES: Final[Mapping[ColumnType, pa.DataType]] = {
    "int": pa.int32(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "category": pa.dictionary(pa.int8(), pa.string()),
}
"""What a column is written as; whole numbers, texts and codes may be wider."""
_MOST: Final = 2**53
"""Of whole numbers; some were written as floats, which hold no others."""
_DAMAGED: Final = "(it is damaged, or another version wrote it)"


def check_written(table: TableSchema, schema: pa.Schema) -> None:
    """Check that a table has the columns of its schema, in their order, and that each is of its type.

    Raises:
        TypeError: If not: whoever fills it has to be corrected, or the schema.
    """
    columns = [column for column in table.columns if not column.optional or column.name in schema.names]
    if schema.names != [column.name for column in columns]:
        names = ", ".join(map(str, schema.names))
        raise TypeError(f"table {table.name!r} has the columns {names}, not {', '.join(table.names)}")
    for column, type_ in zip(columns, schema.types, strict=True):
        if type_ != ARROW_TYPES[column.type] and not _is_wider(type_, column.type):
            raise TypeError(f"table {table.name!r}: column {column.name!r} is {type_}, not {column.type}")


def _is_wider(found: pa.DataType, type_: ColumnType) -> bool:
    """Return whether a type is another width of what a column is written as."""
    if type_ == "category":
        return bool(pa.types.is_dictionary(found) and found.value_type == ARROW_TYPES["text"])
    return bool(found == {"int": pa.int64(), "text": pa.large_string()}.get(type_))


def check_columns(where: str, table: str, schema: pa.Schema, wanted: Sequence[str]) -> None:
    """Check that a table has some columns, each once, and that those that are known hold what they should.

    Args:
        where: The file, for errors.
        table: The table's name.
        schema: What it has.
        wanted: Columns that it must have.

    Raises:
        DataError: If not.
    """
    names = [str(name) for name in schema.names]
    for name in wanted:
        if name not in names:
            raise DataError(f"{where}: there is no column {name!r} {_DAMAGED}.{did_you_mean(name, names)}")
    known = {column.name: column for column in RUN_TABLES[table].columns}
    for name, type_ in zip(names, schema.types, strict=True):
        if names.count(name) > 1:
            raise DataError(f"{where}: there are {names.count(name)} columns {name!r} {_DAMAGED}")
        if name in known and not _is_read_as(known[name], type_):
            told = f"{_short(type_)}, not {_SAID[known[name].type]}"
            raise DataError(f"{where}: column {name!r} holds {told} {_DAMAGED}")


_SAID: Final[Mapping[ColumnType, str]] = {
    "int": "whole numbers",
    "float32": "numbers",
    "float64": "numbers",
    "bool": "true and false",
    "text": "texts",
    "category": "texts",
}


def _short(value: object) -> str:
    return f"{value!s:.60}".replace("\n", " ")


def _is_read_as(column: Column, found: pa.DataType) -> bool:
    """Return whether a column of this type may hold what it should, however wide; texts may be kept as codes."""
    if pa.types.is_null(found):
        return column.blank
    match column.type:
        case "text" | "category":
            of = found.value_type if pa.types.is_dictionary(found) else found
            return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))
        case "bool":
            return bool(pa.types.is_boolean(found))
        case "int":
            return bool(pa.types.is_integer(found) or (column.blank and pa.types.is_floating(found)))
        case _:
            return bool(pa.types.is_integer(found) or pa.types.is_floating(found))


def check_values(where: str, table: str, rows: pd.DataFrame) -> None:
    """Check what the columns of a table hold, whose types are checked: no blanks, and nothing out of range.

    Raises:
        DataError: If a cell holds something else; the message says which.
    """
    for column in RUN_TABLES[table].columns:
        if column.name in rows:
            bad = np.flatnonzero(_bad(rows[column.name], column))
            if len(bad):
                value = rows[column.name].iloc[bad[0]]
                told = "nothing" if pd.isna(value) else _short(repr(value) if isinstance(value, str) else value)
                raise DataError(f"{where}: row {bad[0]}, column {column.name!r}: cannot be {told} {_DAMAGED}")


def _bad(cells: "pd.Series[Any]", column: Column) -> Any:
    """Return which cells hold what they cannot."""
    if cells.dtype in (np.int32, np.bool_):  # as nearly all are
        return []
    blank = cells.isna().to_numpy(bool) & (not column.blank)
    match column.type:
        case "int":
            numbers = cells.to_numpy(np.float64, na_value=0.0)
            return (np.abs(numbers) > _MOST) | (numbers % 1 != 0) | blank
        case "float32" | "float64":
            return ~np.isfinite(cells.to_numpy(np.float64, na_value=np.nan)) & column.finite
        case _:
            return ~cells.isin(column.one_of).to_numpy(bool) if column.one_of else blank


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
