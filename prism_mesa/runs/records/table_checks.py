"""Check tables against their schemas: strictly when they are written, leniently when they are read."""

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
"""Types of written columns; integers, texts and codes may be wider."""
_MAX_INTEGER: Final = 2**53
"""The largest integer that is allowed; older runs wrote some integers as floats."""
_DAMAGED: Final = "(it is damaged, or another version wrote it)"


def check_schema(table: TableSchema, schema: pa.Schema) -> None:
    """Raise TypeError unless a table has the columns of its schema, in order, with their types."""
    columns = [column for column in table.columns if not column.optional or column.name in schema.names]
    if schema.names != [column.name for column in columns]:
        names = ", ".join(map(str, schema.names))
        raise TypeError(f"table {table.name!r} has the columns {names}, not {', '.join(table.names)}")
    for column, type_ in zip(columns, schema.types, strict=True):
        if type_ != ARROW_TYPES[column.type] and not _is_wider(type_, column.type):
            raise TypeError(f"table {table.name!r}: column {column.name!r} is {type_}, not {column.type}")


def _is_wider(type_: pa.DataType, column: ColumnType) -> bool:
    if column == "category":
        return bool(pa.types.is_dictionary(type_) and type_.value_type == ARROW_TYPES["text"])
    return bool(type_ == {"int": pa.int64(), "text": pa.large_string()}.get(column))


def check_columns(where: str, table: str, schema: pa.Schema, required: Sequence[str]) -> None:
    """Raise DataError if a table lacks a required column, has a column twice, or has a column of the wrong type."""
    names = [str(name) for name in schema.names]
    for name in required:
        if name not in names:
            raise DataError(f"{where}: there is no column {name!r} {_DAMAGED}.{did_you_mean(name, names)}")
    known = {column.name: column for column in RUN_TABLES[table].columns}
    for name, type_ in zip(names, schema.types, strict=True):
        if names.count(name) > 1:
            raise DataError(f"{where}: there are {names.count(name)} columns {name!r} {_DAMAGED}")
        if name in known and not _fits(known[name], type_):
            type_name = f"{_short(type_)}, not {known[name].type}"
            raise DataError(f"{where}: column {name!r} holds {type_name} {_DAMAGED}")


def _short(value: object) -> str:
    return f"{value!s:.60}".replace("\n", " ")


def _fits(column: Column, type_: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(type_):
        return column.blank
    match column.type:
        case "text" | "category":
            text = type_.value_type if types.is_dictionary(type_) else type_
            return bool(types.is_string(text) or types.is_large_string(text) or types.is_string_view(text))
        case "bool":
            return bool(types.is_boolean(type_))
        case "int":
            return bool(types.is_integer(type_) or (column.blank and types.is_floating(type_)))
        case _:
            return bool(types.is_integer(type_) or types.is_floating(type_))


def check_values(where: str, table: str, rows: pd.DataFrame) -> None:
    """Raise DataError if a column has an invalid blank or a value out of range; the types are checked already."""
    for column in RUN_TABLES[table].columns:
        if column.name in rows:
            invalid = np.flatnonzero(_find_invalid(rows[column.name], column))
            if len(invalid):
                value = rows[column.name].iloc[invalid[0]]
                text = "nothing" if pd.isna(value) else _short(repr(value) if isinstance(value, str) else value)
                raise DataError(f"{where}: row {invalid[0]}, column {column.name!r}: cannot be {text} {_DAMAGED}")


def _find_invalid(cells: "pd.Series[Any]", column: Column) -> Any:
    """Return a mask of the cells that are blank but must not be, or are out of range."""
    if cells.dtype in (np.int32, np.bool_):  # most columns: always valid
        return []
    is_blank = cells.isna().to_numpy(bool) & (not column.blank)
    match column.type:
        case "int":
            numbers = cells.to_numpy(np.float64, na_value=0.0)
            return (np.abs(numbers) > _MAX_INTEGER) | (numbers % 1 != 0) | is_blank
        case "float32" | "float64":
            return ~np.isfinite(cells.to_numpy(np.float64, na_value=np.nan)) & column.finite
        case _:
            is_known = cells.isin(column.one_of).to_numpy(bool) | (not column.one_of)
            return ~np.where(cells.isna(), column.blank, is_known)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of texts that a spreadsheet would run as formulas."""


def write_csv(table: pd.DataFrame, file: Path, **options: Any) -> None:
    """Write a table as CSV without its index; `options` is passed to `DataFrame.to_csv`.

    An apostrophe protects texts that a spreadsheet would run as formulas. Carriage returns become line feeds, because
    Python 3.12 does not quote them.
    """
    is_number = pd.api.types.is_numeric_dtype
    cells = {name: column.map(_escape_formula) for name, column in table.items() if not is_number(column.dtype)}
    table.assign(**cells).to_csv(file, index=False, lineterminator="\n", **options)


def _escape_formula(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    cell = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
