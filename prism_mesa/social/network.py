"""The follow network: who sees whose posts, as compressed sparse rows. It is never changed during a round."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError
from prism_mesa.kernels.network import count_rows, number_keys, place_rows, tidy_rows
from prism_mesa.social.blocks import blocks
from prism_mesa.social.cells import distinct_ids, ids_of
from prism_mesa.social.files import DEFAULT, read_ids, told
from prism_mesa.social.labels import Ids
from prism_mesa.social.params import FilesParams

type Ints = npt.NDArray[np.integer[Any]]
type Int32s = npt.NDArray[np.int32]

_SLOTS = 1 << 12
"""Of the first table in which ids are looked up; it grows."""

_KEYS = 1 << 17
"""Ids that are looked up at a time."""


@dataclass(frozen=True)
class FollowNetwork:
    """Who follows whom among agents 0 .. n-1.

    Attributes:
        indptr: Shape (n + 1,): agent i follows ``indices[indptr[i]:indptr[i + 1]]``, ascending.
        indices: Followed agents, int32.
        dropped: What a file held that could not be used, in words -> count.
        notes: How the file was read, where that may surprise, in words.
    """

    indptr: npt.NDArray[np.int64]
    indices: Int32s
    dropped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of follows."""
        return len(self.indices)

    @cached_property
    def n_followers(self) -> Int32s:
        """Followers of each agent."""
        return np.bincount(self.indices, minlength=self.n_agents).astype(np.int32)

    @property
    def n_followees(self) -> Int32s:
        """How many each agent follows."""
        return np.diff(self.indptr).astype(np.int32)

    def followees(self, agent: int) -> Int32s:
        """Return whom `agent` follows, ascending."""
        return self.indices[self.indptr[agent] : self.indptr[agent + 1]]

    def edges(self) -> tuple[Int32s, Int32s]:
        """Return all follows as (src, dst): dst follows src."""
        return self.indices, np.repeat(np.arange(self.n_agents, dtype=np.int32), self.n_followees)

    def with_agent(self, follows: Sequence[int], followers: Sequence[int]) -> "FollowNetwork":
        """Return the network with one more agent, the last one."""
        new = self.n_agents
        own, fans = np.unique(np.array(follows, np.int64)), np.unique(np.array(followers, np.int64))
        more = np.append(np.bincount(fans, minlength=new), len(own))
        indices = np.insert(self.indices, self.indptr[fans + 1], new)  # the last number: rows stay ascending
        indptr = np.append(self.indptr, self.indptr[-1])
        indptr[1:] += np.cumsum(more)
        return FollowNetwork(indptr, np.append(indices, own).astype(np.int32), self.dropped, self.notes)


def from_edges(src: Ints, dst: Ints, n: int) -> FollowNetwork:
    """Return the network in which each `dst` follows its `src`; order and repetitions do not matter.

    Follows of oneself and repeated follows are left out and counted.
    """
    return from_parts([(src, dst)], n)


def from_parts(parts: Sequence[tuple[Ints, Ints]], n: int) -> FollowNetwork:
    """Return the network of several lists of edges, (src, dst), together; see `from_edges`."""
    edges = [(np.asarray(src, np.int32), np.asarray(dst, np.int32)) for src, dst in parts]
    indptr = np.zeros(n + 1, np.int64)
    for src, dst in edges:
        count_rows(src, dst, indptr)
    np.cumsum(indptr, out=indptr)
    indices, cursor = np.empty(int(indptr[-1]), np.int32), indptr[:-1].copy()
    for src, dst in edges:
        place_rows(src, dst, cursor, indices)
    given, kept = sum(len(src) for src, _ in edges), tidy_rows(indptr, indices)
    loops, repeats = given - len(indices), len(indices) - kept
    dropped = tuple((what, count) for what, count in (("self-follows", loops), ("repeated follows", repeats)) if count)
    if repeats:
        indices = indices[:kept].copy()
    return FollowNetwork(indptr, indices, dropped)


def load_network(
    path: str,
    direction: Literal["dst_follows_src", "src_follows_dst"] = "dst_follows_src",
    files: FilesParams = DEFAULT,
) -> tuple[FollowNetwork, Ids]:
    """Read an edge list and return the network and the agents' ids, sorted; row i of the network is id i.

    Ids are what the file says, as text; they are sorted as numbers if all are written as whole numbers are.

    Raises:
        DataError: If the file is missing, lacks a column, or has no usable row.
    """
    key = "network.edges"
    read = read_ids(path, key, ("src", "dst"), files)
    with told(path, key):
        table = pa.table(ids_of({name: read[name] for name in ("src", "dst")}), names=["src", "dst"])
    rows, table = len(read), table.drop_null()
    blank, notes = rows - table.num_rows, read.notes
    del read
    if blank == rows:
        raise DataError(f"{key}: {path}: no row has both src and dst")
    src, dst, ids = _by_number(table["src"], table["dst"]) or _by_hash(table["src"], table["dst"])
    del table
    network = from_edges(*((src, dst) if direction == "dst_follows_src" else (dst, src)), len(ids))
    if not network.n_edges:
        raise DataError(f"{key}: {path}: every row is an agent that follows itself")
    dropped = network.dropped + ((("rows without src or dst", blank),) if blank else ())
    return FollowNetwork(network.indptr, network.indices, dropped, notes), ids


def _by_number(src: pa.ChunkedArray, dst: pa.ChunkedArray) -> tuple[Int32s, Int32s, Ids] | None:
    """Return the rows of both columns and the ids of the rows; None if not all are whole numbers."""
    if not (pa.types.is_signed_integer(src.type) and pa.types.is_signed_integer(dst.type)):
        return None
    slots, count = np.zeros((_SLOTS, 2), np.int64), 0
    codes = [np.empty(len(column), np.int32) for column in (src, dst)]
    for column, own in zip((src, dst), codes, strict=True):
        for part in blocks(len(column), _KEYS):
            keys = column.slice(part.start, part.stop - part.start).to_numpy().astype(np.int64)
            slots, count = number_keys(keys, slots, count, own[part])
    used = slots[slots[:, 1] > 0]
    used = used[np.argsort(used[:, 0])]
    rows = np.empty(count, np.int32)
    rows[used[:, 1] - 1] = np.arange(count, dtype=np.int32)
    return rows[codes[0]], rows[codes[1]], Ids(used[:, 0].copy())


def _by_hash(src: pa.ChunkedArray, dst: pa.ChunkedArray) -> tuple[Int32s, Int32s, Ids]:
    """Return the rows of both columns of texts and the ids of the rows."""
    (src_codes, src_ids), (dst_codes, dst_ids) = _coded(src), _coded(dst)
    places, ids = pd.factorize(distinct_ids(pa.concat_arrays([src_ids, dst_ids])), sort=True)
    rows, numbers = places.astype(np.int32), np.asarray(ids)
    kept = numbers if numbers.dtype == np.int64 else pa.array(list(ids), pa.string())
    return rows[: len(src_ids)][src_codes], rows[len(src_ids) :][dst_codes], Ids(kept)


def _coded(column: pa.ChunkedArray) -> tuple[Int32s, pa.Array]:
    """Return the place of each text among the distinct ones, and these."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    coded = coded.unify_dictionaries().combine_chunks()
    codes = coded.indices.to_numpy()
    used = np.bincount(codes, minlength=len(coded.dictionary)) > 0  # dropped rows may have left some without use
    place = (np.cumsum(used) - 1).astype(np.int32)
    return place[codes], coded.dictionary.filter(pa.array(used)).cast(pa.string())
