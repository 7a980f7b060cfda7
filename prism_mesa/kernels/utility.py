"""What a post is worth to a reader, in units of relevance: one rule for the walk, for columns, and for one agent."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed
from prism_mesa.kernels.matching import relevance_at
from prism_mesa.kernels.ordering import is_among
from prism_mesa.kernels.walk_arrays import RESHARE, PostTable

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Floats = npt.NDArray[np.float64]

MOOD_BITS: Final = 16
"""Bits of a draw that say a mood: its log-odds are read from a table, so that they are the same everywhere."""
_MOOD_SHIFT: Final = np.uint64(64 - MOOD_BITS)


class Tastes(NamedTuple):
    """What utility is made of, beside the post; log-odds but for `weight` and `sensitivity`.

    Attributes:
        weight: Of relevance.
        sensitivity: Relevance that one log-odds is worth; 0: utility is weight times relevance.
        gamma: Share of the appeal after a reshare and for who does not follow the author.
        reshared: What a post has more after a reshare.
        aged: What a root has lost after 0, 1, 2, ... rounds; the last stands for more.
        closeness: What a post by a close tie has more.
        mood: Of each leading part of a draw, shape (2**MOOD_BITS,).
        mood_key: Key of these draws.
        now: The round.
        indptr: With `indices`: whom each agent follows, ascending.
        indices: See `indptr`.
        close_indptr: With `close_indices`: its close ties among them.
        close_indices: See `close_indptr`.
    """

    weight: float
    sensitivity: float
    gamma: float
    reshared: float
    aged: Floats
    closeness: float
    mood: Floats
    mood_key: np.uint64
    now: int
    indptr: Int64
    indices: Int32
    close_indptr: Int64
    close_indices: Int32


@part_of_kernels
def utility_at(row: Any, post: Any, relevance: float, posts: PostTable, tastes: Tastes) -> float:
    """Return the utility of a post of this relevance to the agent of a row."""
    utility = tastes.weight * relevance
    if tastes.sensitivity != 0.0:
        root, author = np.int64(posts.root[post]), posts.author[post]
        is_reshare = posts.kind[post] == RESHARE
        share, more = 1.0, 0.0
        if is_reshare:
            share, more = tastes.gamma, tastes.reshared
        elif tastes.gamma != 1.0 and not is_among(tastes.indices, tastes.indptr[row], tastes.indptr[row + 1], author):
            share = tastes.gamma
        if tastes.closeness != 0.0:
            for i in range(tastes.close_indptr[row], tastes.close_indptr[row + 1]):
                if tastes.close_indices[i] == author:
                    more += tastes.closeness
        draw = mixed(mixed(tastes.mood_key, posts.key[root]), np.uint64(row)) >> _MOOD_SHIFT
        age = np.int64(min(max(tastes.now - posts.round[root], 0), len(tastes.aged) - 1))
        log_odds = share * posts.appeal[root] - tastes.aged[age] + more + tastes.mood[np.int64(draw)]
        utility += tastes.sensitivity * log_odds
    return utility


@kernel
def utilities(
    readers: Int64, shown: Int64, matches: Int64, unit_length: float, posts: PostTable, tastes: Tastes, out: Floats
) -> None:
    """Write the utility of each of the posts `shown` to the reader before it; arrays of one length."""
    for i in range(len(out)):
        out[i] = utility_at(readers[i], shown[i], relevance_at(matches[i], unit_length), posts, tastes)
