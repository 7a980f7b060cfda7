"""What a post is worth to a reader, in units of relevance: one rule for the walk, for columns, and for one agent."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, lean_part_of_kernels
from prism_mesa.kernels.draws import mixed
from prism_mesa.kernels.matching import relevance_at
from prism_mesa.kernels.ordering import is_among
from prism_mesa.kernels.walk_arrays import RESHARE, PostTable

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Floats = npt.NDArray[np.float64]

MOOD_BITS: Final = 16
"""Bits of a draw that say a mood: its log-odds are read from a table, so that they are the same everywhere."""
MOOD_SHIFT: Final = np.uint64(64 - MOOD_BITS)


class Tastes(NamedTuple):
    """Numbers of utility; log-odds but for `weight` and `sensitivity`.

    Attributes:
        weight: Of relevance.
        sensitivity: Relevance that one log-odds is worth; 0: there is nothing but relevance.
        gamma: Share of the appeal after a reshare and for who does not follow the author.
        reshared: What a post has more after a reshare.
        closeness: What a post by a close tie has more.
        homophily: What a post has less if its root's author and the reader are unlike by 1.
        attribute: The column by which they are.
        scale: What a difference of 1 in it counts; they are unlike by 1 at most.
        mood_key: Key of the draws of moods.
        now: The round.
    """

    weight: float
    sensitivity: float
    gamma: float
    reshared: float
    closeness: float
    homophily: float
    attribute: int
    scale: float
    mood_key: np.uint64
    now: int


class TasteTables(NamedTuple):
    """Arrays of utility.

    Attributes:
        aged: Log-odds that a root has lost after 0, 1, 2, ... rounds; the last stands for more.
        mood: Log-odds of each leading part of a draw, shape (2**MOOD_BITS,).
        indptr: With `indices`: whom each agent follows, ascending.
        indices: See `indptr`.
        close_indptr: With `close_indices`: its close ties among them.
        close_indices: See `close_indptr`.
        attributes: Of agents, shape (agents, attributes).
    """

    aged: Floats
    mood: Floats
    indptr: Int64
    indices: Int32
    close_indptr: Int64
    close_indices: Int32
    attributes: Floats


@lean_part_of_kernels
def unlike_at(row: Any, other: Any, tastes: Tastes, attributes: Floats) -> Any:
    """Return by how much two agents are unlike, 0 to 1."""
    difference = attributes[row, tastes.attribute] - attributes[other, tastes.attribute]
    return min(1.0, abs(difference) * tastes.scale)


@lean_part_of_kernels
def utility_at(row: Any, post: Any, relevance: float, tastes: Tastes, tables: TasteTables, posts: PostTable) -> float:
    """Return the utility of a post of this relevance to the agent of a row.

    Every array that is handed over is counted, which takes twice as long as all the rest; so `kernels.walk` has these
    lines once more, where agents scroll past posts, and calls this only if there is more than relevance.
    """
    utility = tastes.weight * relevance
    if tastes.sensitivity != 0.0:
        root, author = np.int64(posts.root[post]), posts.author[post]
        share, more = 1.0, 0.0
        if posts.kind[post] == RESHARE:
            share, more = tastes.gamma, tastes.reshared
        elif tastes.gamma != 1.0 and not is_among(tables.indices, tables.indptr[row], tables.indptr[row + 1], author):
            share = tastes.gamma
        if tastes.closeness != 0.0:
            for i in range(tables.close_indptr[row], tables.close_indptr[row + 1]):
                if tables.close_indices[i] == author:
                    more += tastes.closeness
        if tastes.homophily != 0.0:
            more -= tastes.homophily * unlike_at(row, posts.author[root], tastes, tables.attributes)
        draw = mixed(mixed(tastes.mood_key, posts.key[root]), np.uint64(row)) >> MOOD_SHIFT
        age = np.int64(min(max(tastes.now - posts.round[root], 0), len(tables.aged) - 1))
        odds = share * posts.appeal[root] - tables.aged[age] + more + tables.mood[np.int64(draw)]
        utility += tastes.sensitivity * odds
    return utility


@kernel
def utilities(
    readers: Int64,
    shown: Int64,
    matches: Int64,
    unit_length: float,
    posts: PostTable,
    tastes: Tastes,
    tables: TasteTables,
    out: Floats,
) -> None:
    """Write the utility of each of the posts `shown` to the reader before it; arrays of one length."""
    for i in range(len(out)):
        relevance = relevance_at(matches[i], unit_length)
        out[i] = utility_at(readers[i], shown[i], relevance, tastes, tables, posts)
