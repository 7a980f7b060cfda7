"""Rows of tables that are kept in Arrow tables until they are written."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from prism_mesa.runs.records.table_checks import ARROW_TYPES, check_schema
from prism_mesa.tables import ColumnType, TableSchema

type Cells = "npt.NDArray[Any] | pd.Categorical | pd.Series[Any] | pa.Array | Sequence[Any]"
type Rows = Mapping[str, Cells]


class WaitingRows:
    """Rows of a table that wait to be written; `add` checks them against the schema, if there is one."""

    def __init__(self, schema: TableSchema | None, first: pa.Table | None = None) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = [] if first is None else [first]

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    @property
    def is_new(self) -> bool:
        """Whether no rows were added, not even empty columns."""
        return not self._tables

    def add(self, columns: Rows) -> None:
        """Append rows; raises TypeError if they do not fit the schema."""
        self._tables.append(arrow_table(columns, self._schema, previous=self._tables[-1] if self._tables else None))

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(self._tables, promote_options="permissive")  # int32 and int64

    def clear(self) -> None:
        """Drop all rows."""
        self._tables = []

    def snapshot(self) -> npt.NDArray[np.uint8] | None:
        """Return the rows as the bytes of an Arrow stream; None if nothing was added."""
        if self.is_new:
            return None
        rows, stream = self.table(), pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, rows.schema) as writer:
            writer.write_table(rows)
        return np.frombuffer(stream.getvalue(), np.uint8)

    @classmethod
    def from_snapshot(cls, schema: TableSchema | None, stream: npt.NDArray[np.uint8] | None) -> Self:
        """Return the rows in the bytes that `snapshot` returned."""
        return cls(schema, None if stream is None else pa.ipc.open_stream(stream).read_all())


def arrow_table(columns: Rows, schema: TableSchema | None, previous: pa.Table | None = None) -> pa.Table:
    """Return rows as an Arrow table; raises TypeError if they fit neither the `previous` table nor the schema."""
    types = schema.types if schema else {}
    table = pa.table({name: _arrow(cells, types.get(name)) for name, cells in columns.items()})
    if schema and not (previous is not None and table.schema.equals(previous.schema)):
        check_schema(schema, table.schema)
    return table


def _arrow(cells: Any, type_: ColumnType | None) -> pa.Array:
    """Return a column as an Arrow array: 32-bit integers if they fit, codes for categories, `type_` for lists."""
    if isinstance(cells, pd.Categorical):
        return pa.DictionaryArray.from_arrays(_codes(cells.codes), _category_texts(tuple(cells.categories)))
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iu" and cells.dtype != np.int32:
        fits = cells.dtype.itemsize < 4 or not len(cells) or (cells.min() >= -(2**31) and cells.max() < 2**31)
        cells = cells.astype(np.int32 if fits else np.int64)
    arrow_type = ARROW_TYPES[type_] if type_ and isinstance(cells, list) else None
    array = cells if isinstance(cells, pa.Array) else pa.array(cells, arrow_type)
    return pa.nulls(len(array), ARROW_TYPES[type_]) if type_ and pa.types.is_null(array.type) else array


def category_column(codes: npt.NDArray[np.signedinteger[Any]], names: Sequence[str]) -> pa.DictionaryArray:
    """Return a text column from codes, which are indices into the distinct `names`; a code below 0 is a blank."""
    return pa.DictionaryArray.from_arrays(_codes(codes), pa.array(names, pa.string()))


def _codes(codes: npt.NDArray[np.signedinteger[Any]]) -> pa.Array:
    blank = codes < 0
    return pa.array(codes, mask=blank) if blank.any() else pa.array(codes)


@lru_cache(maxsize=64)
def _category_texts(categories: tuple[str, ...]) -> pa.Array:
    """Return category texts as an Arrow array; the tuple is the key, because a pandas dtype ignores the order."""
    return pa.array(categories, pa.string())
