"""Follow networks from files of edges."""

import numpy as np
import pandas as pd
import pyarrow as pa

from prism_mesa.arrays import Int32
from prism_mesa.errors import DataError
from prism_mesa.kernels.network import number_keys
from prism_mesa.social.params import FilesParams
from prism_mesa.social.params.network import Direction
from prism_mesa.social.params.user_files import AMBIGUOUS_COLUMNS, EDGES, FOLLOW_COLUMNS, follow_columns
from prism_mesa.social.state.chunks import blocks
from prism_mesa.social.state.ids import Ids
from prism_mesa.social.state.network import FollowNetwork, from_parts
from prism_mesa.social.world.cells import distinct_ids, parse_ids
from prism_mesa.social.world.readers import DEFAULT_FILES, Table, name_file_in_errors, read_ids, read_table

_FIRST_SLOTS = 1 << 12
"""Initial size of the hash table of ids."""
_BLOCK_KEYS = 1 << 17
"""Ids that are looked up at a time."""
_MIN_FOLLOWS_FOR_NOTE = 100
"""Minimum number of follows for the note that there are no mutual follows."""


def load_network(
    path: str, direction: Direction | None = None, files: FilesParams = DEFAULT_FILES
) -> tuple[FollowNetwork, Ids]:
    """Read an edge list and return the network and the agents' ids, by row.

    Ids are sorted as numbers if all ids are whole numbers, else as strings.

    Raises:
        DataError: If the file is missing, lacks a column, has no usable row, or does not say who follows whom.
    """
    file_table = read_ids(path, EDGES, ("src", "dst"), files)
    direction, direction_notes = _direction(file_table, direction, path, files)
    with name_file_in_errors(path, EDGES):
        table = pa.table(parse_ids({name: file_table[name] for name in ("src", "dst")}), names=["src", "dst"])
    rows, table = len(file_table), table.drop_null()
    n_blank, notes = rows - table.num_rows, (*file_table.notes, *direction_notes)
    del file_table
    if n_blank == rows:
        raise DataError(f"{EDGES}: {path}: no row has both src and dst")
    src, dst, ids = _rows_by_number(table["src"], table["dst"]) or _rows_by_hash(table["src"], table["dst"])
    del table
    parts = [(src, dst)] * (direction != "src_follows_dst") + [(dst, src)] * (direction != "dst_follows_src")
    network = from_parts(parts, len(ids))
    if not network.n_edges:
        raise DataError(f"{EDGES}: {path}: in every row an agent follows itself")
    dropped = tuple((reason, count // len(parts)) for reason, count in network.dropped)
    dropped += (("rows without src or dst", n_blank),) if n_blank else ()
    src, dst = network.edges()
    is_mutual = (network.contains(src[part], dst[part]).any() for part in blocks(len(src), _BLOCK_KEYS))
    if network.n_edges >= _MIN_FOLLOWS_FOR_NOTE and not any(is_mutual):
        notes += (f"{EDGES}: no two agents follow each other: if the graph is undirected, set network.direction=both",)
    return FollowNetwork(network.indptr, network.indices, dropped, notes), ids


def _direction(table: Table, direction: Direction | None, path: str, files: FilesParams) -> tuple[Direction, list[str]]:
    """Return the direction and notes; raise DataError if network.direction contradicts the names of columns."""
    where, is_mapped = f"{EDGES}: {path}", not {"src", "dst"}.isdisjoint(files.columns)
    src, dst = pair = table.names["src"], table.names["dst"]
    followed, follower = follow_pair = follow_columns(pair, FOLLOW_COLUMNS) or pair
    direction_by_names: Direction = "dst_follows_src" if follow_pair == pair else "src_follows_dst"
    is_undirected = direction != "both" and _is_undirected(table, path, files)
    if direction is None and not is_mapped and follow_columns(pair, AMBIGUOUS_COLUMNS):
        choices = f"src_follows_dst ({src} follows {dst}), dst_follows_src ({dst} follows {src}) or both (undirected)"
        choices = "both (every row says Undirected in column Type)" if is_undirected else choices
        raise DataError(
            f"{where}: columns {src!r} and {dst!r} do not say who follows whom: set network.direction={choices}"
        )
    direction = direction or ("dst_follows_src" if is_mapped else direction_by_names)
    if follow_columns(pair, FOLLOW_COLUMNS) and direction not in (direction_by_names, "both"):
        advice = f"set network.direction={direction_by_names}" if is_mapped else "leave network.direction out"
        raise DataError(f"{where}: {follower} follows {followed}, as the columns say: {advice}")
    is_named = direction != "both" and follow_columns(pair, FOLLOW_COLUMNS)
    notes = [f"{follower} follows {followed}, as the columns say"] if is_named else []
    notes += ["every row says Undirected in column Type: if that is right, set network.direction=both"] * is_undirected
    return direction, [f"{EDGES}: {note}" for note in notes]


def _is_undirected(table: Table, path: str, files: FilesParams) -> bool:
    """Return whether column Type, as written by Gephi, is Undirected in all rows."""
    names = [name for name in table.unread if name.casefold() == "type"]
    kinds = read_table(path, EDGES, names, files=files)[names[0]].unique().to_pylist() if len(names) == 1 else []
    return {str(kind).strip().casefold() for kind in kinds} == {"undirected"}


def _rows_by_number(src: pa.ChunkedArray, dst: pa.ChunkedArray) -> tuple[Int32, Int32, Ids] | None:
    """Return the agents' rows for both columns, and the agents' ids; None unless all ids are whole numbers."""
    if not (pa.types.is_signed_integer(src.type) and pa.types.is_signed_integer(dst.type)):
        return None
    slots, count = np.zeros((_FIRST_SLOTS, 2), np.int64), 0
    codes = [np.empty(len(column), np.int32) for column in (src, dst)]
    for column, column_codes in zip((src, dst), codes, strict=True):
        for part in blocks(len(column), _BLOCK_KEYS):
            keys = column.slice(part.start, part.stop - part.start).to_numpy().astype(np.int64)
            slots, count = number_keys(keys, slots, count, column_codes[part])
    used = slots[slots[:, 1] > 0]
    used = used[np.argsort(used[:, 0])]
    rows = np.empty(count, np.int32)
    rows[used[:, 1] - 1] = np.arange(count, dtype=np.int32)
    return rows[codes[0]], rows[codes[1]], Ids(used[:, 0].copy())


def _rows_by_hash(src: pa.ChunkedArray, dst: pa.ChunkedArray) -> tuple[Int32, Int32, Ids]:
    (src_codes, src_ids), (dst_codes, dst_ids) = _encode(src), _encode(dst)
    id_rows, ids = pd.factorize(distinct_ids(pa.concat_arrays([src_ids, dst_ids])), sort=True)
    rows, id_array = id_rows.astype(np.int32), np.asarray(ids)
    id_values = id_array if id_array.dtype == np.int64 else pa.array(list(ids), pa.string())
    return rows[: len(src_ids)][src_codes], rows[len(src_ids) :][dst_codes], Ids(id_values)


def _encode(column: pa.ChunkedArray) -> tuple[Int32, pa.Array]:
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    codes = encoded.indices.to_numpy()
    used = np.bincount(codes, minlength=len(encoded.dictionary)) > 0  # dropped rows may leave some codes unused
    return (np.cumsum(used) - 1).astype(np.int32)[codes], encoded.dictionary.filter(pa.array(used)).cast(pa.string())
