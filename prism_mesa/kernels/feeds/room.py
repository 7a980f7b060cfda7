"""Memory in which feeds are ranked: a thread has its own, and it is kept, but nothing in it outlasts a reader."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.lanes import LANES, own_lines
from prism_mesa.kernels.ordering import DIGITS

READERS: Final = 64
"""Readers taken through the passes of `gathering` at a time."""

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]


class Room(NamedTuple):
    """Arrays with space for some candidates, and for as many authors.

    Attributes:
        author_ends: Shape (`READERS`,): where the authors of each reader of a block end. So `inside_ends` and `ends`:
            where its candidates by those whom it follows end, and all of them.
        author: Of a block of readers; where the items of each begin in the outbox, and how many it has.
        begin: See `author`.
        n_items: See `author`.
        inside_ends: See `author_ends`.
        ends: See `author_ends`.
        root: Roots of all candidates of a block, `NOBODY` where a draw found none.
        tag: Of each the upper half of its item: ``local number << 1 | whether several visible posts have its root``.
        score: What they score, where further posts of an author score less.
        fresh: Of one reader: which candidates it does not know; `key` by what they are sorted, `order` their places.
        key: See `fresh`.
        order: See `fresh`.
        best: Of these the best copy of each root, best first.
        scratch: For whoever sorts; `counts` too.
        counts: See `scratch`.
        met: A bit for each root by `place_of_root`; all 0 between readers.
        listed: A bit for each visible post, as `met`.
        better: By an author's place in the outbox, how many of its posts are kept; all 0 between readers.
        of_group: By a group, how many posts of its members are kept.
    """

    author_ends: Int64
    author: Int32
    begin: Int32
    n_items: Int32
    inside_ends: Int64
    ends: Int64
    root: Int32
    tag: npt.NDArray[np.uint32]
    score: npt.NDArray[np.float64]
    fresh: Int32
    key: Keys
    order: Int64
    best: Int32
    scratch: Int64
    counts: Int64
    met: Keys
    listed: Keys
    better: Int32
    of_group: Int32


def room_for(candidates: int, roots: int, writers: int, groups: int) -> Room:
    """Return room for so many candidates, roots of visible posts, authors of these, and groups of authors."""
    n = candidates + LANES
    return Room(
        author_ends=own_lines(READERS, np.int64),
        author=own_lines(n, np.int32),
        begin=own_lines(n, np.int32),
        n_items=own_lines(n, np.int32),
        inside_ends=own_lines(READERS, np.int64),
        ends=own_lines(READERS, np.int64),
        root=own_lines(n, np.int32),
        tag=own_lines(n, np.uint32),
        score=own_lines(n, np.float64),
        fresh=own_lines(n, np.int32),
        key=own_lines(n, np.uint64),
        order=own_lines(n, np.int64),
        best=own_lines(n, np.int32),
        scratch=own_lines(n, np.int64),
        counts=own_lines(DIGITS, np.int64),
        met=own_lines(roots // 64 + 1, np.uint64),
        listed=own_lines(roots // 64 + 1, np.uint64),
        better=own_lines(writers, np.int32),
        of_group=own_lines(groups, np.int32),
    )


class Audience(NamedTuple):
    """Four lists for each agent i, all ascending: ``indices[indptr[i]:indptr[i + 1]]``, and so on.

    Attributes:
        indptr: With `indices`: whom each agent follows (`social.state.network.FollowNetwork`).
        indices: See `indptr`.
        known_start: With `known`: roots that each agent has seen (`social.state.exposure.Exposure`).
        known: See `known_start`.
        hidden_start: With `hidden`: whose posts are not shown to each agent; empty if nobody's are.
        hidden: See `hidden_start`.
        shown_start: With `shown`: posts that each agent has read, where roots can be shown again; else of no agents.
        shown: See `shown_start`.
    """

    indptr: Int64
    indices: Int32
    known_start: Int64
    known: Int32
    hidden_start: Int64
    hidden: Int32
    shown_start: Int64
    shown: Int32
