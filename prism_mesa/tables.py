"""What a table of a run holds: columns with their types, units and meanings, declared beside what fills them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

type ColumnType = Literal["int", "float32", "float64", "bool", "text", "category"]
"""int: 32 bits, or 64 where one does not fit; category: texts, kept as codes."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        meaning: In words; begins in lower case, and ends without a full stop.
        unit: Of numbers that are no counts and no row numbers.
        one_of: The texts that there are; empty: any.
        blank: Whether a cell may hold nothing.
        finite: Whether no number may be infinite, or not a number.
        optional: Whether a run only has it where the mechanism is on that its meaning names.
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
    """A table: what it is written as, read as, and described as.

    Attributes:
        name: Its name, and that of its file without the ending.
        row: What a row is of, in words.
        columns: In the order in which they are written.
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


def by_name(*tables: TableSchema) -> dict[str, TableSchema]:
    """Return tables by their names, in the order given."""
    return {table.name: table for table in tables}
