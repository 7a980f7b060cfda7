"""What a post scores for a reader in each feed mode, and the key by which posts are sorted."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.feeds.outbox import BITS_32, LOWER
from prism_mesa.kernels.feeds.room import Room
from prism_mesa.kernels.matching import match_of, relevance_at

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]
type Floats = npt.NDArray[np.float64]

RANDOM, CHRONOLOGICAL, PREFERENCE, X_ALGO, BRIDGING, DIVERSE, GIVEN = range(7)


class Scoring(NamedTuple):
    """What posts are ranked by.

    Attributes:
        mode: `RANDOM`, `CHRONOLOGICAL`, `PREFERENCE`, `X_ALGO`, `BRIDGING`, `DIVERSE`, or `GIVEN`.
        key: Of the draws of the feed's order (random), with round and tick mixed in.
        post_key: Keys of all posts.
        interests: Of all agents; `text_id` of all posts, `vectors` of all texts.
        unit_length: Similarity of two equal topic vectors.
        followed: Most posts by those whom a reader follows, the newest; below 0: all.
        outsiders: Posts drawn from the whole platform for each reader; `outsider_key` of these draws.
        two_hops: Posts drawn for each reader from those whom somebody follows whom it follows; `two_hops_key` of these.
        trending: Local numbers of posts that all readers may be shown.
        found: Local numbers of what a search for each topic finds, shape (topics, posts), `NOBODY` behind the last.
        query: The topic that each agent searches for; below 0: none.
        good: What of a visible post's score grows with relevance, or all of it (bridging); `bad` what shrinks with it,
            one for all.
        factor: Of each visible post's score; below 0 the score is divided by it.
        outsider_factor: Of the score of a post by somebody who is not followed.
        diversity: Factor of the score with 0, 1, 2, ... better-ranked posts of its author; the last stands for more.
            Nothing: the score is divided by 1, 2, 3, ...
        group: The group that each agent is of, `n_groups` in all; nothing where there are none.
        author: Authors of all posts.
        given: Scores of all candidates, in the order of `gathering.list_candidates` (given), else nothing.
    """

    mode: int
    key: np.uint64
    post_key: Keys
    interests: npt.NDArray[np.int8]
    text_id: Int32
    vectors: npt.NDArray[np.int8]
    unit_length: float
    followed: int
    outsiders: int
    outsider_key: np.uint64
    two_hops: int
    two_hops_key: np.uint64
    trending: Int32
    found: Int32
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
    """Return a whole number, below 2**32, in the order of a score as float32."""
    held = np.float32(score)
    bits = np.uint64(np.float32(0.0 if held == 0.0 else held).view(np.uint32))  # -0 is 0
    return ~bits & LOWER if bits >> np.uint64(31) else bits | np.uint64(1 << 31)


@part_of_kernels
def lowered(score: float, factor: float) -> float:
    """Return a score times a factor of at most 1; one below 0 is divided by it, so that it too goes down."""
    return score / factor if score < 0.0 else score * factor


@part_of_kernels
def scored(reader: Any, local: Any, is_outsider: bool, first: int, scoring: Scoring) -> float:
    """Return the score of a visible post for a reader; more is better."""
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
    """Return a number that sorts by score, then by age: the newer post has the larger one (`Room.tag`)."""
    return _rising(score) << BITS_32 | np.uint64(tag)


@part_of_kernels
def score_fresh(reader: Any, n: Any, inside_end: Any, given_at: Any, first: Any, scoring: Scoring, room: Room) -> None:
    """Write what the first `n` of `Room.fresh` score, and by what they are sorted.

    The scores of given ones begin at `given_at` with that of candidate 0.
    """
    for i in range(n):
        one = room.fresh[i]
        tag = room.tag[np.uint64(one)]
        if scoring.mode == CHRONOLOGICAL:
            room.key[i] = tag
            continue
        if scoring.mode == GIVEN:
            score = scoring.given[given_at + one]
        else:
            score = scored(reader, np.int64(tag >> np.uint32(1)), one >= inside_end, first, scoring)
        room.score[one] = score
        room.key[i] = sort_key(score, tag)
