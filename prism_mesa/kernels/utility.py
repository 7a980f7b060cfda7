"""The utility of a post for a reader, in units of relevance: one rule for the walk, for columns, and for one agent."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import Table, kernel, lean_kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed
from prism_mesa.kernels.matching import relevance_at
from prism_mesa.kernels.ordering import is_among, n_among
from prism_mesa.kernels.walking.arrays import RESHARE, PostTable

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Floats = npt.NDArray[np.float64]

MOOD_BITS: Final = 16
"""Bits of a draw that say a mood: its log-odds are read from a table, so that they are the same everywhere."""
MOOD_SHIFT: Final = np.uint64(64 - MOOD_BITS)

SOFT_STEPS: Final = 256
"""Steps to a log-odds of the table of `softplus`."""


class Tastes(NamedTuple):
    """The numbers behind utility; log-odds except `weight` and `sensitivity`.

    Attributes:
        weight: Weight of relevance.
        sensitivity: Relevance that one log-odds is worth; 0 makes utility relevance.
        gamma: Share of the appeal that is left after a reshare, and for readers who do not follow the author.
        reshared: What a reshare adds.
        closeness: Log-odds of engaging because the author is a close tie; -inf for none.
        homophily: What a post loses if its root's author and the reader are unlike by 1.
        attribute: The column that unlikeness compares.
        scale: Unlikeness per unit of difference; it is at most 1.
        per_source: What a post gains for each time that its reader has read its root before (`TasteTables.met`).
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
    per_source: float
    mood_key: np.uint64
    now: int


class TasteTables(NamedTuple):
    """Arrays of utility.

    Attributes:
        aged: Log-odds that a root has lost after 0, 1, 2, ... rounds; the last applies to more.
        mood: Log-odds for each leading part of a draw, shape (2**MOOD_BITS,).
        soft: ``log(1 + exp(-k / SOFT_STEPS))`` for k = 0, 1, 2, ...; the last applies to more.
        indptr, indices: The agents that each agent follows, ascending.
        close_indptr, close_indices: Its close ties among them.
        attributes: Attributes of agents, shape (agents, attributes).
        met_start, met: With `feed.repeats`, the roots that each agent has read, ascending, once for each time.
    """

    aged: Floats
    mood: Floats
    soft: Floats
    indptr: Int64
    indices: Int32
    close_indptr: Int64
    close_indices: Int32
    attributes: Table[np.float64]
    met_start: Int64
    met: Int32


@part_of_kernels
def unlike_at(row: Any, other: Any, tastes: Tastes, attributes: Floats) -> Any:
    """Return how unlike two agents are, 0 to 1."""
    difference = attributes[row, tastes.attribute] - attributes[other, tastes.attribute]
    return min(1.0, abs(difference) * tastes.scale)


@part_of_kernels
def softplus(x: Any, soft: Floats) -> Any:
    """Return ``log(1 + exp(x))``; the table rounds `x`, and only for the part that vanishes away from 0."""
    return max(x, 0.0) + soft[np.int64(min(abs(x) * SOFT_STEPS + 0.5, len(soft) - 1.0))]


@part_of_kernels
def _odds(
    row: Any,
    root: Any,
    author: Any,
    of_root: Any,
    is_reshare: Any,
    is_followed: Any,
    appeal: Any,
    aged: float,
    draw: np.uint64,
    tastes: Tastes,
    tables: TasteTables,
) -> float:
    """Return a post's log-odds for a reader besides relevance.

    `author` wrote the post, `of_root` its `root`, which has the appeal, has lost `aged`, and begins the draw of moods.
    A close tie is another reason to engage: it and the appeal combine as a soft maximum of log-odds.
    """
    share, more = 1.0, 0.0
    if is_reshare:
        share, more = tastes.gamma, tastes.reshared
    elif tastes.gamma != 1.0 and not (
        is_followed or is_among(tables.indices, tables.indptr[row], tables.indptr[row + 1], author)
    ):
        share = tastes.gamma
    if tastes.closeness > -np.inf:
        for i in range(tables.close_indptr[row], tables.close_indptr[row + 1]):
            if tables.close_indices[i] == author:
                more += softplus(tastes.closeness - share * appeal, tables.soft)
    if tastes.homophily != 0.0:
        more -= tastes.homophily * unlike_at(row, of_root, tastes, tables.attributes)
    if tastes.per_source != 0.0 and len(tables.met_start) > 1:
        more += tastes.per_source * n_among(tables.met, tables.met_start[row], tables.met_start[row + 1], root)
    mood = tables.mood[np.int64(mixed(draw, np.uint64(row)) >> MOOD_SHIFT)]
    return np.float64(share * appeal - aged + more + mood)


@part_of_kernels
def _aged(root: Any, tastes: Tastes, tables: TasteTables, posts: PostTable) -> Any:
    """Return the log-odds that a root has lost by now."""
    return tables.aged[np.int64(min(max(tastes.now - posts.round[root], 0), len(tables.aged) - 1))]


@part_of_kernels
def begin_of_moods(post: Any, root: Any, tastes: Tastes, tables: TasteTables, posts: PostTable) -> Any:
    """Return the start of draws of moods: equal for all copies of a root, unless it can be shown again."""
    draw = mixed(tastes.mood_key, posts.key[root])
    if len(tables.met_start) > 1 and post != root:
        draw = mixed(draw, np.uint64(posts.author[post]))
    return draw


@part_of_kernels
def utility_at(row: Any, post: Any, relevance: float, tastes: Tastes, tables: TasteTables, posts: PostTable) -> float:
    """Return the utility of a post of this relevance for the agent of a row."""
    utility = tastes.weight * relevance
    if tastes.sensitivity != 0.0:
        root, is_reshare = np.int64(posts.root[post]), posts.kind[post] == RESHARE
        aged, draw = _aged(root, tastes, tables, posts), begin_of_moods(post, root, tastes, tables, posts)
        author, of_root, appeal = posts.author[post], posts.author[root], posts.appeal[root]
        odds = _odds(row, root, author, of_root, is_reshare, False, appeal, aged, draw, tastes, tables)
        utility += tastes.sensitivity * odds
    return utility


PREVIEW: Final = np.dtype(
    [
        ("draw", np.uint64),
        ("aged", np.float64),
        ("appeal", np.float32),
        ("root", np.int32),
        ("author", np.int32),
        ("of_root", np.int32),
        ("text", np.int32),
        ("is_reshare", np.bool_),
    ],
    align=True,
)
"""What decides whether a reader passes a post, in one place of memory: it is read for each post that is scrolled past.

They are the start of its draw of moods, the log-odds that its root has lost with age, its appeal, its root, who
wrote it, who wrote its root, its text, and whether it is a reshare.
"""


@lean_kernel
def fill_previews(first: int, posts: PostTable, tastes: Tastes, tables: TasteTables, out: npt.NDArray[Any]) -> None:
    """Write the previews of the posts from id `first` on; `out` has an entry of type `PREVIEW` for each."""
    for place in range(len(out)):
        post = first + place
        root = np.int64(posts.root[post])
        out[place].draw = begin_of_moods(post, root, tastes, tables, posts)
        out[place].aged = _aged(root, tastes, tables, posts)
        out[place].appeal = posts.appeal[root]
        out[place].root = root
        out[place].author = posts.author[post]
        out[place].of_root = posts.author[root]
        out[place].text = posts.text_id[post]
        out[place].is_reshare = posts.kind[post] == RESHARE


@part_of_kernels
def utility_ahead(
    row: Any, ahead: Any, relevance: float, is_followed: Any, tastes: Tastes, tables: TasteTables
) -> float:
    """Return what `utility_at` does, from a post's preview; `is_followed` says that its author is known to be."""
    utility = tastes.weight * relevance
    if tastes.sensitivity != 0.0:
        author, of_root, is_reshare, appeal = ahead.author, ahead.of_root, ahead.is_reshare, ahead.appeal
        aged, draw = ahead.aged, ahead.draw
        odds = _odds(row, ahead.root, author, of_root, is_reshare, is_followed, appeal, aged, draw, tastes, tables)
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
    """Write the utility of each of the posts `shown` for its reader; arrays have one length."""
    for i in range(len(out)):
        relevance = relevance_at(matches[i], unit_length)
        out[i] = utility_at(readers[i], shown[i], relevance, tastes, tables, posts)
