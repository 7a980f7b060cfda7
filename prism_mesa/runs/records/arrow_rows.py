"""Rows as Arrow tables, waiting to be written."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from prism_mesa.runs.records.table_checks import ARROW_TYPES, check_written
from prism_mesa.tables import ColumnType, TableSchema

type Cells = "npt.NDArray[Any] | pd.Categorical | pd.Series[Any] | pa.Array | Sequence[Any]"
type Rows = Mapping[str, Cells]

_FEW: Final = 100
"""Rows; fewer are kept as columns, and made into a larger table later."""


class WaitingRows:
    """Rows of a table that wait to be written, each checked against `schema` if there is one.

    Args:
        schema: The table's schema, or None.
        first: Rows to begin with.
    """

    def __init__(self, schema: TableSchema | None, first: pa.Table | None = None) -> None:
        self._schema = schema
        self._held: tuple[list[pa.Table], list[Rows]] = ([] if first is None else [first], [])
        """Tables, and after them columns of few rows each; one value, as an interrupt may come."""
        self._aside: tuple[list[tuple[int, str]], int] = ([], 0)
        """The files that hold the first rows, and how many tables these are."""
        self._kind: _Kind | None = None
        self._n = 0 if first is None else len(first)

    def __len__(self) -> int:
        return self._n

    @property
    def is_new(self) -> bool:
        """Whether nothing was added, not even columns without rows."""
        return not any(self._held)

    def add(self, columns: Rows) -> None:
        """Append rows; raises TypeError if they are not what the schema says."""
        kind = _kind_of(columns)
        if kind is not None and kind == self._kind:
            self._held[1].append({name: np.array(cells) for name, cells in columns.items()})
            self._n += len(next(iter(columns.values())))
            return
        tables, _ = self._gather()
        rows = arrow_table(columns, self._schema, like=tables[-1] if tables else None)
        tables.append(rows)
        self._kind = kind
        self._n += len(rows)

    def table(self) -> pa.Table:
        """Return all rows, of which there are some."""
        return joined(self._gather()[0])

    @property
    def aside(self) -> list[tuple[int, str]]:
        """The files that hold the first of these rows (see `aside.write_aside`), in order."""
        return list(self._aside[0])

    def put_aside(self, file: tuple[int, str]) -> None:
        """Note that another file holds the rows that `fresh` returns."""
        self._aside = ([*self._aside[0], file], len(self._gather()[0]))

    def fresh(self) -> pa.Table | None:
        """Return the rows that no file holds; None if there are none."""
        tables = self._gather()[0][self._aside[1] :]
        return joined(tables) if tables else None

    def snapshot(self) -> npt.NDArray[np.uint8] | None:
        """Return the rows that no file holds, as the bytes of an Arrow stream; None if there are none."""
        rows = self.fresh()
        if rows is None:
            return None
        stream = pa.BufferOutputStream()
        write_stream(rows, stream)
        return np.frombuffer(stream.getvalue(), np.uint8)

    @classmethod
    def restored(
        cls,
        schema: TableSchema | None,
        kept: npt.NDArray[np.uint8] | None,
        aside: Sequence[tuple[tuple[int, str], bytes]] = (),
    ) -> Self:
        """Return the rows of files (each with its entry in `aside`), and those that `snapshot` returned after them."""
        rows = cls(schema)
        tables = [pa.ipc.open_stream(raw).read_all() for _, raw in aside]
        tables += [] if kept is None else [pa.ipc.open_stream(kept).read_all()]
        rows._aside = ([entry for entry, _ in aside], len(aside))
        rows._held, rows._n = (tables, []), sum(map(len, tables))
        return rows

    def clear(self) -> None:
        """Drop all rows."""
        self._held, self._aside, self._kind, self._n = ([], []), ([], 0), None, 0

    def _gather(self) -> tuple[list[pa.Table], list[Rows]]:
        """Make a table of the columns of few rows, and return what is held then."""
        tables, few = self._held
        if few:
            columns = {name: np.concatenate([rows[name] for rows in few]) for name in few[0]}
            self._held = ([*tables, arrow_table(columns, None)], [])
        return self._held


type _Kind = tuple[tuple[str, np.dtype[Any]], ...]


def _kind_of(columns: Rows) -> _Kind | None:
    """Return names and types of columns of few numbers each; None if they are anything else."""
    n, kind = None, []
    for name, cells in columns.items():
        if not isinstance(cells, np.ndarray) or cells.ndim != 1 or cells.dtype.kind not in "iufb":
            return None
        if n is None:
            n = len(cells)
        if len(cells) != n or n > _FEW:
            return None
        kind.append((name, cells.dtype))
    return tuple(kind) or None


def write_stream(rows: pa.Table, sink: Any) -> None:
    """Write rows as an Arrow stream."""
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)


def arrow_table(columns: Rows, schema: TableSchema | None, like: pa.Table | None = None) -> pa.Table:
    """Return rows as an Arrow table; raises TypeError if it has neither the columns of `like` nor of the schema."""
    types = schema.types if schema else {}
    table = pa.table({name: _arrow(cells, types.get(name)) for name, cells in columns.items()})
    if schema and not (like is not None and table.schema.equals(like.schema)):
        check_written(schema, table.schema)
    return table


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return several tables of the same columns as one."""
    return pa.concat_tables(tables, promote_options="permissive")  # int32 and int64


def _arrow(cells: Any, type_: ColumnType | None) -> pa.Array:
    """Return a column as Arrow: whole numbers in 32 bits if they fit, categories as codes, lists as `type_`."""
    if isinstance(cells, pd.Categorical):
        return pa.DictionaryArray.from_arrays(_codes(cells.codes), _category_texts(tuple(cells.categories)))
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iu" and cells.dtype != np.int32:
        fits = cells.dtype.itemsize < 4 or not len(cells) or (cells.min() >= -(2**31) and cells.max() < 2**31)
        cells = cells.astype(np.int32 if fits else np.int64)
    wanted = ARROW_TYPES[type_] if type_ and isinstance(cells, list) else None
    array = cells if isinstance(cells, pa.Array) else pa.array(cells, wanted)
    return pa.nulls(len(array), ARROW_TYPES[type_]) if type_ and pa.types.is_null(array.type) else array


def named(codes: npt.NDArray[np.signedinteger[Any]], names: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of texts: codes into the distinct `names`, below 0 for a blank."""
    return pa.DictionaryArray.from_arrays(_codes(codes), pa.array(names, pa.string()))


def _codes(codes: npt.NDArray[np.signedinteger[Any]]) -> pa.Array:
    blank = codes < 0
    return pa.array(codes, mask=blank) if blank.any() else pa.array(codes)


@lru_cache(maxsize=64)
def _category_texts(categories: tuple[str, ...]) -> pa.Array:
    """Return texts in this order; their pandas type ignores the order, so it cannot be the key."""
    return pa.array(categories, pa.string())
