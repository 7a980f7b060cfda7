"""The follow network in compressed sparse rows; it does not change during a round."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from zlib import crc32

import numpy as np

from prism_mesa.arrays import Int32, Ints, Mask, Rows
from prism_mesa.kernels import network as kernels
from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.chunks import mapped_zeros


@dataclass(frozen=True)
class FollowNetwork(Restorable):
    """The follows among agents 0 .. n-1.

    Attributes:
        indptr: Shape (n + 1,): agent i follows ``indices[indptr[i]:indptr[i + 1]]``, ascending.
        indices: Followed agents, int32.
        dropped: Pairs of a reason why rows of a file were left out, and their number.
        notes: Notes on how the file was read.
        close_indptr, close_indices: The close ties of each agent in the same format; they are a subset of its follows.
    """

    saved_fields = ("indptr", "indices", "close_indptr", "close_indices")

    indptr: Ints
    indices: Int32
    dropped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    close_indptr: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    close_indices: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))

    def __post_init__(self) -> None:
        if not len(self.close_indptr):
            object.__setattr__(self, "close_indptr", mapped_zeros(len(self.indptr), np.int64))

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of follows."""
        return len(self.indices)

    @cached_property
    def n_followers(self) -> Int32:
        """Number of followers of each agent."""
        return np.bincount(self.indices, minlength=self.n_agents).astype(np.int32)

    @cached_property
    def checksum(self) -> int:
        """A CRC-32 of all arrays."""
        return reduce(lambda checksum, name: crc32(getattr(self, name), checksum), self.saved_fields, 0)

    @property
    def n_followees(self) -> Int32:
        """Number of followees of each agent."""
        return np.diff(self.indptr).astype(np.int32)

    def followees(self, agent: int) -> Int32:
        """Return the agents that `agent` follows, ascending."""
        return self.indices[self.indptr[agent] : self.indptr[agent + 1]]

    def edges(self) -> tuple[Int32, Int32]:
        """Return all follows as (src, dst): dst follows src."""
        return self.indices, np.repeat(np.arange(self.n_agents, dtype=np.int32), self.n_followees)

    def contains(self, agents: Rows, others: Rows) -> Mask:
        """Return whether each agent follows the other; both arrays have the same length."""
        follows, pairs = np.empty(len(agents), np.bool_), (np.asarray(agents, np.int64), np.asarray(others, np.int64))
        kernels.are_in_rows(self.indptr, self.indices, *pairs, follows)
        return follows

    def with_changes(self, added: Ints, removed: Ints) -> "FollowNetwork":
        """Return the network with some follows added and removed; close ties end with their follows.

        `added` and `removed` are disjoint arrays of distinct, ascending numbers ``agent << 32 | followed``.
        """
        rows = self._change_rows(self.indptr, self.indices, added, removed)
        close_rows = self.close_indptr, self.close_indices
        if len(self.close_indices) and len(removed):
            close_rows = self._change_rows(*close_rows, removed[:0], removed)
        return FollowNetwork(*rows, self.dropped, self.notes, *close_rows)

    def _change_rows(self, indptr: Ints, indices: Int32, added: Ints, removed: Ints) -> tuple[Ints, Int32]:
        starts, entries = np.empty(len(indptr), np.int64), np.empty(len(indices) + len(added), np.int32)
        return starts, entries[: kernels.change_rows(indptr, indices, added, removed, starts, entries)]

    def subnetwork(self, is_present: Mask) -> "FollowNetwork":
        """Return the network among the present agents."""

        def select_rows(indptr: Ints, indices: Int32) -> tuple[Ints, Int32]:
            starts, entries = np.empty(len(indptr), np.int64), np.empty(len(indices), np.int32)
            return starts, entries[: kernels.select_rows(indptr, indices, is_present, starts, entries)].copy()

        follows, close_ties = (select_rows(*rows) for rows in self._row_arrays())
        return FollowNetwork(*follows, self.dropped, self.notes, *close_ties)

    def with_joiners(
        self, drawn_network: "FollowNetwork", is_present: Mask, is_joining: Mask
    ) -> tuple["FollowNetwork", Ints]:
        """Return the network with the drawn follows of agents that join, and these follows as numbers.

        See `with_changes` for the numbers. `is_present` marks all present agents, and `is_joining` marks the agents
        among them that have just joined.
        """
        follow_keys, close_keys = (_joiner_keys(*rows, is_present, is_joining) for rows in drawn_network._row_arrays())
        no_keys = follow_keys[:0]
        rows = self._change_rows(self.indptr, self.indices, follow_keys, no_keys)
        ties = self.close_indptr, self.close_indices
        ties = self._change_rows(*ties, close_keys, no_keys) if len(close_keys) else ties
        return FollowNetwork(*rows, self.dropped, self.notes, *ties), follow_keys

    def _row_arrays(self) -> tuple[tuple[Ints, Int32], tuple[Ints, Int32]]:
        return (self.indptr, self.indices), (self.close_indptr, self.close_indices)

    def with_agent(self, follows: Sequence[int], followers: Sequence[int]) -> "FollowNetwork":
        """Return the network with one more agent, who has no close ties."""
        row = self.n_agents
        followees, new_followers = np.unique(np.array(follows, np.int64)), np.unique(np.array(followers, np.int64))
        n_added = np.append(np.bincount(new_followers, minlength=row), len(followees))
        indices = np.insert(self.indices, self.indptr[new_followers + 1], row)  # the highest row, so the order stays
        indptr = np.append(self.indptr, self.indptr[-1])
        indptr[1:] += np.cumsum(n_added)
        close_indptr = np.append(self.close_indptr, self.close_indptr[-1])
        edges = np.append(indices, followees).astype(np.int32)
        return FollowNetwork(indptr, edges, self.dropped, self.notes, close_indptr, self.close_indices)


def _joiner_keys(indptr: Ints, indices: Int32, is_present: Mask, is_joining: Mask) -> Ints:
    keys = np.empty(kernels.list_new_edges(indptr, indices, is_present, is_joining, np.zeros(0, np.int64)), np.int64)
    if len(keys):
        kernels.list_new_edges(indptr, indices, is_present, is_joining, keys)
    return keys


def from_edges(src: Rows, dst: Rows, n: int) -> FollowNetwork:
    """Return the network in which each `dst` follows its `src`; the order does not matter.

    Self-follows and duplicates are dropped and counted.
    """
    return from_parts([(src, dst)], n)


def from_parts(parts: Sequence[tuple[Rows, Rows]], n: int) -> FollowNetwork:
    """Return the network of several lists of edges (src, dst); see `from_edges`."""
    edges = [(np.asarray(src, np.int32), np.asarray(dst, np.int32)) for src, dst in parts]
    indptr = np.zeros(n + 1, np.int64)
    for src, dst in edges:
        kernels.count_rows(src, dst, indptr)
    np.cumsum(indptr, out=indptr)
    indices, cursor = np.empty(int(indptr[-1]), np.int32), indptr[:-1].copy()
    for src, dst in edges:
        kernels.place_rows(src, dst, cursor, indices)
    n_edges, n_edges_kept = sum(len(src) for src, _ in edges), kernels.tidy_rows(indptr, indices)
    loops, repeats = n_edges - len(indices), len(indices) - n_edges_kept
    dropped = tuple((reason, n) for reason, n in (("self-follows", loops), ("repeated follows", repeats)) if n)
    if repeats:
        indices = indices[:n_edges_kept].copy()
    return FollowNetwork(indptr, indices, dropped)
