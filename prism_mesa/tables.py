"""Schemas of a run's tables: columns with their types, units and meanings."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

type ColumnType = Literal["int", "float32", "float64", "bool", "text", "category"]
"""int has 32 bits, or 64 bits if necessary; category stores strings as codes."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        meaning: A description in lower case, without a full stop.
        unit: The unit of numbers, unless they are counts or rows.
        one_of: The allowed strings; empty if all strings are allowed.
        blank: Whether a cell may be empty.
        finite: Whether numbers must be finite.
        optional: Whether the column exists only with the mechanism that `meaning` names.
    """

    name: str
    type: ColumnType
    meaning: str
    unit: str = ""
    one_of: tuple[str, ...] = ()
    blank: bool = False
    finite: bool = True
    optional: bool = False


@dataclass(frozen=True)
class TableSchema:
    """The schema of a table, used for writing, checks and documentation.

    Attributes:
        name: The name of the table, and of its file without the suffix.
        row: A description of a row.
        columns: The columns, in order.
    """

    name: str
    row: str
    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @cached_property
    def types(self) -> dict[str, ColumnType]:
        """The type of each column, by name."""
        return {column.name: column.type for column in self.columns}


def make_schema(name: str, row: str, *columns: Column) -> TableSchema:
    """Return the schema of a table with these columns."""
    return TableSchema(name, row, columns)


def index_tables(*tables: TableSchema) -> dict[str, TableSchema]:
    """Return schemas by the names of their tables, in order."""
    return {table.name: table for table in tables}
