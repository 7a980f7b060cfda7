"""What a post scores for a reader in each feed mode, and the memory in which feeds are ranked."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import Table, part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.feeds.outbox import BITS_32, LOWER
from prism_mesa.kernels.lanes import LANES, aligned_zeros
from prism_mesa.kernels.matching import match_of, relevance_at
from prism_mesa.kernels.ordering import DIGITS

READERS: Final = 64
"""Readers taken through the passes of `gathering` at a time."""

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]


class RankScratch(NamedTuple):
    """Memory in which a thread ranks feeds: arrays with space for some candidates, and for as many authors.

    A thread keeps it between rounds, but nothing in it is read by the next reader.

    Attributes:
        author_ends, inside_ends, ends: Shape (`READERS`,): for each reader of a block, where its authors end, where
            its candidates by authors that it follows end, and where all its candidates end.
        author, begin, n_items: The authors of a block; where the items of each begin in the outbox, and their number.
        root: Roots of all candidates of a block, `NOBODY` where a draw gave none.
        tag: The upper half of their items: ``local number << 1 | whether several visible posts have its root``.
        score: Their scores, where further posts of an author score less.
        fresh, key, order: The candidates that a reader does not know, their sort keys, and their places.
        best: The best copy of each of their roots, best first.
        places, counts: For sorting.
        met: A bit for each root by `place_of_root`; all 0 between readers.
        listed: A bit for each visible post, likewise.
        better: Posts kept of each author, by its place in the outbox; all 0 between readers.
        of_group: Posts kept of each group.
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
    places: Int64
    counts: Int64
    met: Keys
    listed: Keys
    better: Int32
    of_group: Int32


def make_scratch(candidates: int, roots: int, writers: int, groups: int) -> RankScratch:
    """Return memory for so many candidates, roots of visible posts, authors of these, and groups of authors."""
    n = candidates + LANES
    return RankScratch(
        author_ends=aligned_zeros(READERS, np.int64),
        author=aligned_zeros(n, np.int32),
        begin=aligned_zeros(n, np.int32),
        n_items=aligned_zeros(n, np.int32),
        inside_ends=aligned_zeros(READERS, np.int64),
        ends=aligned_zeros(READERS, np.int64),
        root=aligned_zeros(n, np.int32),
        tag=aligned_zeros(n, np.uint32),
        score=aligned_zeros(n, np.float64),
        fresh=aligned_zeros(n, np.int32),
        key=aligned_zeros(n, np.uint64),
        order=aligned_zeros(n, np.int64),
        best=aligned_zeros(n, np.int32),
        places=aligned_zeros(n, np.int64),
        counts=aligned_zeros(DIGITS, np.int64),
        met=aligned_zeros(roots // 64 + 1, np.uint64),
        listed=aligned_zeros(roots // 64 + 1, np.uint64),
        better=aligned_zeros(writers, np.int32),
        of_group=aligned_zeros(groups, np.int32),
    )


type Floats = npt.NDArray[np.float64]

RANDOM, CHRONOLOGICAL, PREFERENCE, X_ALGO, BRIDGING, DIVERSE, GIVEN = range(7)


class Scoring(NamedTuple):
    """The inputs for scores. The key of the configuration stands in brackets.

    Attributes:
        mode: `RANDOM`, ..., or `GIVEN` (`feed.mode`).
        key: Of the draws of a random order, with round and tick mixed in.
        post_key: Keys of all posts.
        interests, text_id, vectors: Interests of agents, texts of posts, and topic vectors of texts.
        unit_length: Similarity of two equal topic vectors.
        followed: Most posts by followed agents, the newest; below 0: all (`feed.candidates.followed`).
        outsiders, outsider_key: Posts drawn from the whole platform for each reader, and the key of the draws
            (`feed.candidates.out_of_network`).
        two_hops, two_hops_key: Posts drawn from those whom the followed follow (`feed.candidates.two_hops`).
        trending: Local numbers of posts offered to all readers (`feed.candidates.trending`).
        found: Local numbers of the posts that a search for each topic finds, shape (topics, posts), then `NOBODY`.
        query: The topic that each agent searches for; below 0 for none.
        good: The part of a visible post's score that grows with relevance, or all of it (bridging).
        bad: The part that shrinks with relevance, the same for all posts.
        factor: Of each visible post's score; a score below 0 is divided by it.
        outsider_factor: Of the score of a post by an author that is not followed.
        diversity: Factor of the score with 0, 1, 2, ... better-ranked posts of its author; the last stands for more.
            If empty, the score is divided by 1, 2, 3, ...
        group, n_groups: The group of each agent (`feed.attribute`); empty without groups.
        author: Authors of all posts.
        given: Scores of all candidates, in the order of `gathering.list_candidates` (`GIVEN`), else empty.
    """

    mode: int
    key: np.uint64
    post_key: Keys
    interests: Table[np.int8]
    text_id: Int32
    vectors: Table[np.int8]
    unit_length: float
    followed: int
    outsiders: int
    outsider_key: np.uint64
    two_hops: int
    two_hops_key: np.uint64
    trending: Int32
    found: Table[np.int32]
    query: npt.NDArray[np.int16]
    good: Floats
    bad: float
    factor: Floats
    outsider_factor: float
    diversity: Floats
    group: npt.NDArray[np.int16]
    n_groups: int
    author: Int32
    given: Floats


@part_of_kernels
def _rising(score: float) -> np.uint64:
    """Return a whole number below 2**32 that ascends with a score as float32."""
    held = np.float32(score)
    bits = np.uint64(np.float32(0.0 if held == 0.0 else held).view(np.uint32))  # -0 is 0
    return ~bits & LOWER if bits >> np.uint64(31) else bits | np.uint64(1 << 31)


@part_of_kernels
def lowered(score: float, factor: float) -> float:
    """Return a score lowered by a factor of at most 1; a score below 0 is divided by it."""
    return score / factor if score < 0.0 else score * factor


@part_of_kernels
def scored(reader: Any, local: Any, is_outsider: bool, first: int, scoring: Scoring) -> float:
    """Return the score of a visible post for a reader; higher is better."""
    post = first + local
    if scoring.mode == RANDOM:
        return unit(mixed(mixed(scoring.key, scoring.post_key[post]), np.uint64(reader)))
    if scoring.mode == CHRONOLOGICAL:
        return 0.0
    if scoring.mode == BRIDGING:
        return np.float64(scoring.good[local])
    match = match_of(scoring.interests, scoring.vectors, reader, scoring.text_id[post])
    if scoring.mode == PREFERENCE:
        return np.float64(match)
    relevance = relevance_at(match, scoring.unit_length)
    if scoring.mode == DIVERSE:
        return relevance
    score = 2.0 * (relevance * scoring.good[local] + (1.0 - relevance) * scoring.bad)
    if is_outsider:
        score = lowered(score, scoring.outsider_factor)
    return lowered(score, scoring.factor[local])


@part_of_kernels
def sort_key(score: Any, tag: Any) -> np.uint64:
    """Return a number that sorts by score, then by age: the newer post has the larger one (`RankScratch.tag`)."""
    return _rising(score) << BITS_32 | np.uint64(tag)


@part_of_kernels
def score_fresh(
    reader: Any, n: Any, inside_end: Any, given_at: Any, first: Any, scoring: Scoring, scratch: RankScratch
) -> None:
    """Write what the first `n` of `RankScratch.fresh` score, and by what they are sorted.

    Scores of `GIVEN` begin at `given_at` with that of candidate 0.
    """
    for i in range(n):
        candidate = scratch.fresh[i]
        tag = scratch.tag[np.uint64(candidate)]
        if scoring.mode == CHRONOLOGICAL:
            scratch.key[i] = tag
            continue
        if scoring.mode == GIVEN:
            score = scoring.given[given_at + candidate]
        else:
            score = scored(reader, np.int64(tag >> np.uint32(1)), candidate >= inside_end, first, scoring)
        scratch.score[candidate] = score
        scratch.key[i] = sort_key(score, tag)
