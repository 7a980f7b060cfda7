"""Follow networks from files of edges."""

import numpy as np
import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError
from prism_mesa.kernels.network import number_keys
from prism_mesa.social.params import FilesParams
from prism_mesa.social.params.network import Direction
from prism_mesa.social.params.user_files import EDGES, FOLLOWS, UNCLEAR, follow_columns
from prism_mesa.social.state.chunks import blocks
from prism_mesa.social.state.ids import Ids
from prism_mesa.social.state.network import FollowNetwork, Int32s, from_parts
from prism_mesa.social.world.cells import distinct_ids, parse_ids
from prism_mesa.social.world.readers import DEFAULT, Table, naming_file, read_ids, read_table

_SLOTS = 1 << 12
"""Size of the first hash table of ids, which grows."""
_KEYS = 1 << 17
"""Ids that are looked up at a time."""
_SOME_SIZE = 100
"""Follows from which on a note reports that there is no mutual pair."""


def load_network(
    path: str, direction: Direction | None = None, files: FilesParams = DEFAULT
) -> tuple[FollowNetwork, Ids]:
    """Read an edge list and return the network and the ids of its rows.

    Ids are sorted, as numbers if all are whole numbers, else as texts.

    Raises:
        DataError: If the file is missing, lacks a column, has no usable row, or does not say who follows whom.
    """
    read = read_ids(path, EDGES, ("src", "dst"), files)
    direction, by_name = _direction(read, direction, path, files)
    with naming_file(path, EDGES):
        table = pa.table(parse_ids({name: read[name] for name in ("src", "dst")}), names=["src", "dst"])
    rows, table = len(read), table.drop_null()
    blank, notes = rows - table.num_rows, (*read.notes, *by_name)
    del read
    if blank == rows:
        raise DataError(f"{EDGES}: {path}: no row has both src and dst")
    src, dst, ids = _by_number(table["src"], table["dst"]) or _by_hash(table["src"], table["dst"])
    del table
    parts = [(src, dst)] * (direction != "src_follows_dst") + [(dst, src)] * (direction != "dst_follows_src")
    network = from_parts(parts, len(ids))
    if not network.n_edges:
        raise DataError(f"{EDGES}: {path}: in every row an agent follows itself")
    dropped = tuple((what, count // len(parts)) for what, count in network.dropped)
    dropped += (("rows without src or dst", blank),) if blank else ()
    src, dst = network.edges()
    is_mutual = (network.holds(src[part], dst[part]).any() for part in blocks(len(src), _KEYS))
    if network.n_edges >= _SOME_SIZE and not any(is_mutual):
        notes += (f"{EDGES}: no two agents follow each other: if the graph is undirected, set network.direction=both",)
    return FollowNetwork(network.indptr, network.indices, dropped, notes), ids


def _direction(read: Table, direction: Direction | None, path: str, files: FilesParams) -> tuple[Direction, list[str]]:
    """Return the direction of rows, and notes; the key must not contradict the names of columns."""
    where, mapped = f"{EDGES}: {path}", not {"src", "dst"}.isdisjoint(files.columns)
    src, dst = pair = read.names["src"], read.names["dst"]
    followed, follower = named = follow_columns(pair, FOLLOWS) or pair
    meant: Direction = "dst_follows_src" if named == pair else "src_follows_dst"
    undirected = direction != "both" and _is_undirected(read, path, files)
    if direction is None and not mapped and follow_columns(pair, UNCLEAR):
        ways = f"src_follows_dst ({src} follows {dst}), dst_follows_src ({dst} follows {src}) or both (undirected)"
        ways = "both (every row says Undirected in column Type)" if undirected else ways
        raise DataError(
            f"{where}: columns {src!r} and {dst!r} do not say who follows whom: set network.direction={ways}"
        )
    direction = direction or ("dst_follows_src" if mapped else meant)
    if follow_columns(pair, FOLLOWS) and direction not in (meant, "both"):
        way = f"set network.direction={meant}" if mapped else "leave network.direction out"
        raise DataError(f"{where}: {follower} follows {followed}, as the columns say: {way}")
    by_name = direction != "both" and follow_columns(pair, FOLLOWS)
    notes = [f"{follower} follows {followed}, as the columns say"] if by_name else []
    notes += ["every row says Undirected in column Type: if it is so, set network.direction=both"] * undirected
    return direction, [f"{EDGES}: {note}" for note in notes]


def _is_undirected(read: Table, path: str, files: FilesParams) -> bool:
    """Return whether all rows are undirected, as Gephi writes it."""
    names = [name for name in read.unread if name.casefold() == "type"]
    kinds = read_table(path, EDGES, names, files=files)[names[0]].unique().to_pylist() if len(names) == 1 else []
    return {str(kind).strip().casefold() for kind in kinds} == {"undirected"}


def _by_number(src: pa.ChunkedArray, dst: pa.ChunkedArray) -> tuple[Int32s, Int32s, Ids] | None:
    """Return the rows of both columns and the ids of rows; None unless all are whole numbers."""
    if not (pa.types.is_signed_integer(src.type) and pa.types.is_signed_integer(dst.type)):
        return None
    slots, count = np.zeros((_SLOTS, 2), np.int64), 0
    codes = [np.empty(len(column), np.int32) for column in (src, dst)]
    for column, column_codes in zip((src, dst), codes, strict=True):
        for part in blocks(len(column), _KEYS):
            keys = column.slice(part.start, part.stop - part.start).to_numpy().astype(np.int64)
            slots, count = number_keys(keys, slots, count, column_codes[part])
    used = slots[slots[:, 1] > 0]
    used = used[np.argsort(used[:, 0])]
    rows = np.empty(count, np.int32)
    rows[used[:, 1] - 1] = np.arange(count, dtype=np.int32)
    return rows[codes[0]], rows[codes[1]], Ids(used[:, 0].copy())


def _by_hash(src: pa.ChunkedArray, dst: pa.ChunkedArray) -> tuple[Int32s, Int32s, Ids]:
    """Return the rows of both text columns and the ids of rows."""
    (src_codes, src_ids), (dst_codes, dst_ids) = _coded(src), _coded(dst)
    places, ids = pd.factorize(distinct_ids(pa.concat_arrays([src_ids, dst_ids])), sort=True)
    rows, numbers = places.astype(np.int32), np.asarray(ids)
    kept = numbers if numbers.dtype == np.int64 else pa.array(list(ids), pa.string())
    return rows[: len(src_ids)][src_codes], rows[len(src_ids) :][dst_codes], Ids(kept)


def _coded(column: pa.ChunkedArray) -> tuple[Int32s, pa.Array]:
    """Return the index of each text among the distinct texts, and these."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    coded = coded.unify_dictionaries().combine_chunks()
    codes = coded.indices.to_numpy()
    used = np.bincount(codes, minlength=len(coded.dictionary)) > 0  # dropped rows may leave some unused
    place = (np.cumsum(used) - 1).astype(np.int32)
    return place[codes], coded.dictionary.filter(pa.array(used)).cast(pa.string())
