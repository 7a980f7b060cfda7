"""Read columns of Parquet files, after a check of their unpacked size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from prism_mesa.social.world.csv_files import MAX_COLUMNS
from prism_mesa.social.world.unpacking import size_error

_MAX_FOOTER: Final = 64_000_000


def parquet_columns(file: Path) -> tuple[list[str], list[str]]:
    """Return the names of all columns, and of the columns of a pandas index.

    Raises:
        ValueError, OSError, pa.ArrowException: If the file is not a Parquet file, or has too many columns.
    """
    schema = _read_schema(file)
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return list(schema.names), [name for name in index if isinstance(name, str)]


def _read_schema(file: Path) -> pa.Schema:
    with file.open("rb") as source:
        source.seek(-min(8, file.stat().st_size), 2)
        end = source.read()
    if end[4:] != b"PAR1":
        raise ValueError("it is not a complete Parquet file: its end is missing")
    if int.from_bytes(end[:4], "little") > _MAX_FOOTER:
        raise ValueError(f"its footer is longer than {_MAX_FOOTER:,} bytes: save fewer columns")
    metadata = pq.read_metadata(file)
    if metadata.num_columns > MAX_COLUMNS:
        raise ValueError(f"it has {metadata.num_columns:,} columns; at most {MAX_COLUMNS:,} are allowed")
    return metadata.schema.to_arrow_schema()


def read_parquet(file: Path, columns: Sequence[str], max_bytes: int, content: str) -> pa.Table:
    """Return columns with their types, after a check that strings are UTF-8; errors name the expected `content`.

    Raises:
        ValueError: If a column holds nested values, or the columns unpack to more than `max_bytes`.
        OSError, pa.ArrowException: If the file is damaged.
    """
    schema = _read_schema(file)
    for name in columns:
        if pa.types.is_nested(schema.field(name).type):
            raise ValueError(f"column {name!r} holds {schema.field(name).type}, not {content}")
    if unpacked_size(file, columns, max_bytes) > max_bytes:
        raise size_error(max_bytes)
    texts = [name for name in columns if _is_text(schema.field(name).type)]
    with pq.ParquetFile(file, memory_map=True, pre_buffer=False, read_dictionary=texts) as source:
        table = source.read(list(columns))
    table.validate(full=True)
    return table


def unpacked_size(file: Path, columns: Sequence[str] | None, max_bytes: int) -> int:
    """Return the bytes that columns (None: all) take in memory, or some number above `max_bytes`.

    Strings are read as codes, so the check itself takes little memory.

    Raises:
        OSError, pa.ArrowException: If the file is damaged.
    """
    types = {field.name: field.type for field in _read_schema(file) if columns is None or field.name in columns}
    texts = [name for name, type_ in types.items() if _is_text(type_)]
    with pq.ParquetFile(file, read_dictionary=texts) as source:
        size = _declared_size(source.metadata, types)
        if size > max_bytes or not texts or source.metadata.num_rows * size <= max_bytes:
            return size
        for batch in source.iter_batches(columns=texts):
            size += sum(map(_text_size, batch.columns))
            if size > max_bytes:
                break
    return size


def _is_text(type_: pa.DataType) -> bool:
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_binary(type_))


def _declared_size(metadata: pq.FileMetaData, types: dict[str, pa.DataType]) -> int:
    """Return a lower bound of the bytes in memory, from the file's metadata and the width of each type."""
    pages = sum(
        column.total_uncompressed_size
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema in types
    )
    has_width = (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_fixed_size_binary)
    widths = [(type_.bit_width + 7) // 8 if any(test(type_) for test in has_width) else 4 for type_ in types.values()]
    return int(max(pages, metadata.num_rows * sum(widths)))


def _text_size(column: pa.Array) -> int:
    """Return the bytes of a column's strings, counting repetitions."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)
