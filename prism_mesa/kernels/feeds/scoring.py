"""Scores of posts for a reader in each feed mode, and the memory for ranking feeds."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Ints, UInt32, UInt64
from prism_mesa.kernels.compiling import Table, inline_kernel
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.feeds.outbox import BITS_32, LOWER
from prism_mesa.kernels.lanes import LANES, aligned_zeros
from prism_mesa.kernels.matching import compute_match, match_to_relevance
from prism_mesa.kernels.ordering import DIGITS

READERS: Final = 64
"""Number of readers in a block of `gathering`."""


class RankScratch(NamedTuple):
    """Memory in which a thread ranks feeds, with room for the candidates and authors of a block of readers.

    A thread keeps the memory between rounds, but ranking one reader never uses values of the previous reader.

    Attributes:
        author_ends, followed_ends, ends: Shape (`READERS`,). For each reader of a block: the end of its authors, of its
            candidates by followed authors, and of all its candidates.
        author, begin, n_items: The authors of a block, where the items of each begin in the outbox, and their number.
        root: Roots of all candidates of a block; `NO_POST` if a draw gave no post.
        tag: The upper half of each candidate's item, ``local number << 1 | has_copies``.
        score: Scores of candidates, unused in modes that sort by time.
        fresh, key, order: The candidates that a reader does not know, their sort keys, and their order.
        best: The best copy of each root, best first.
        places, counts: Memory for sorting.
        root_bits: A bit for each root, at `root_place`; all 0 between readers.
        post_bits: A bit for each visible post; all 0 between readers.
        word_bits: A bit for each word of `post_bits`; all 0 between readers.
        agent_bits: A bit for each agent; all 0 between readers.
        n_better: Number of better posts of each author, by `writer_index`; all 0 between readers.
        n_of_group: Number of better posts of each group.
    """

    author_ends: Ints
    author: Int32
    begin: Int32
    n_items: Int32
    followed_ends: Ints
    ends: Ints
    root: Int32
    tag: UInt32
    score: Floats
    fresh: Int32
    key: UInt64
    order: Ints
    best: Int32
    places: Ints
    counts: Ints
    root_bits: UInt64
    post_bits: UInt64
    word_bits: UInt64
    agent_bits: UInt64
    n_better: Int32
    n_of_group: Int32


def make_scratch(candidates: int, roots: int, writers: int, groups: int, agents: int) -> RankScratch:
    """Return memory for these numbers of candidates, roots of visible posts, their authors, groups, and agents."""
    n = candidates + LANES
    return RankScratch(
        author_ends=aligned_zeros(READERS, np.int64),
        author=aligned_zeros(n, np.int32),
        begin=aligned_zeros(n, np.int32),
        n_items=aligned_zeros(n, np.int32),
        followed_ends=aligned_zeros(READERS, np.int64),
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
        root_bits=aligned_zeros(roots // 64 + 1, np.uint64),
        post_bits=aligned_zeros(roots // 64 + 1, np.uint64),
        word_bits=aligned_zeros(roots // 4096 + 1, np.uint64),
        agent_bits=aligned_zeros(agents // 64 + 1, np.uint64),
        n_better=aligned_zeros(writers, np.int32),
        n_of_group=aligned_zeros(groups, np.int32),
    )


RANDOM, CHRONOLOGICAL, PREFERENCE, X_ALGO, BRIDGING, DIVERSE, USER_SCORES = range(7)


class Scoring(NamedTuple):
    """The inputs for scores, with configuration keys in brackets.

    Attributes:
        mode: `RANDOM`, ..., or `USER_SCORES` (`feed.mode`).
        key: Key of the draws of a random order, including round and tick.
        post_key: Keys of all posts.
        interests, text_id, vectors: Interests of agents, texts of posts, and topic vectors of texts.
        unit_length: Similarity of two equal topic vectors.
        max_followed: Maximum number of posts by followed agents, or -1 for all (`feed.candidates.followed`).
        n_outsiders, outsider_key: Number of posts drawn from the whole platform for each reader, and the key of their
            draws (`feed.candidates.out_of_network`).
        n_two_hops, two_hops_key: The same for posts by followees of followees (`feed.candidates.two_hops`).
        trending: Local numbers of trending posts, the same for all readers (`feed.candidates.trending`).
        search_results: Local numbers of the results of a search for each topic, shape (topics, posts), then `NO_POST`.
        query: The topic that each agent searches for, or -1.
        gain: The part of each visible post's score that grows with relevance; in bridging feeds, the whole score.
        loss: The part that shrinks with relevance; it is the same for all posts.
        factor: Factor of each visible post's score. A negative score is divided by it.
        outsider_factor: Factor for posts by authors that the reader does not follow.
        diversity: Factors for 0, 1, 2, ... better-ranked posts of the same author; the last factor applies to more. If
            empty, the score is divided by 1, 2, 3, ...
        group, n_groups: The group of each agent (`feed.attribute`); empty without groups.
        author: Authors of all posts.
        user_scores: Scores of all candidates, in the order of `gathering.list_candidates`, for `USER_SCORES`; -inf
            drops a candidate.
        post_bits, reader_bits: The acts of the platform that apply to each visible post, and to each agent; empty if
            there are none. Each act has a bit.
        act_score: What each of these acts adds to the score of a post.
        hiding: The bits of acts that take posts out of the candidates instead.
        common: The bits of these acts that apply to all readers, so that their posts are in no author's list.
        pair_shift: Added to the score of each candidate, in the order of `user_scores`; empty if nothing is added.
            Candidates with -inf are dropped.
    """

    mode: int
    key: np.uint64
    post_key: UInt64
    interests: Table[np.int8]
    text_id: Int32
    vectors: Table[np.int8]
    unit_length: float
    max_followed: int
    n_outsiders: int
    outsider_key: np.uint64
    n_two_hops: int
    two_hops_key: np.uint64
    trending: Int32
    search_results: Table[np.int32]
    query: npt.NDArray[np.int16]
    gain: Floats
    loss: float
    factor: Floats
    outsider_factor: float
    diversity: Floats
    group: npt.NDArray[np.int16]
    n_groups: int
    author: Int32
    user_scores: Floats
    post_bits: UInt32
    reader_bits: UInt32
    act_score: Floats
    hiding: np.uint32
    common: np.uint32
    pair_shift: Floats


@inline_kernel
def _ascending_bits(score: float) -> np.uint64:
    """Return an integer below 2**32 that ascends with the score, rounded to float32."""
    rounded = np.float32(score)
    bits = np.uint64(np.float32(0.0 if rounded == 0.0 else rounded).view(np.uint32))  # -0 is 0
    return ~bits & LOWER if bits >> np.uint64(31) else bits | np.uint64(1 << 31)


@inline_kernel
def hiding_bits(reader: Any, scoring: Scoring) -> Any:
    """Return the bits of acts that take posts out for a reader."""
    return scoring.reader_bits[reader] & scoring.hiding if len(scoring.reader_bits) > 0 else np.uint32(0)


@inline_kernel
def _sum_scores(bits: Any, scoring: Scoring) -> float:
    total = 0.0
    for act in range(len(scoring.act_score)):
        if bits >> np.uint32(act) & np.uint32(1):
            total += scoring.act_score[act]
    return total


@inline_kernel
def discount(score: float, factor: float) -> float:
    """Multiply a score by a factor of at most 1; a negative score is divided by the factor."""
    return score / factor if score < 0.0 else score * factor


@inline_kernel
def score_post(reader: Any, local: Any, is_outsider: bool, first: int, scoring: Scoring) -> float:
    """Return the score of a visible post for a reader; higher is better."""
    post = first + local
    if scoring.mode == RANDOM:
        return uniform(mix(mix(scoring.key, scoring.post_key[post]), np.uint64(reader)))
    if scoring.mode == CHRONOLOGICAL:
        return 0.0
    if scoring.mode == BRIDGING:
        return np.float64(scoring.gain[local])
    match = compute_match(scoring.interests, scoring.vectors, reader, scoring.text_id[post])
    if scoring.mode == PREFERENCE:
        return np.float64(match)
    relevance = match_to_relevance(match, scoring.unit_length)
    if scoring.mode == DIVERSE:
        return relevance
    score = 2.0 * (relevance * scoring.gain[local] + (1.0 - relevance) * scoring.loss)
    if is_outsider:
        score = discount(score, scoring.outsider_factor)
    return discount(score, scoring.factor[local])


@inline_kernel
def sort_key(score: Any, tag: Any) -> np.uint64:
    """Return a number that ascends with the score; of equal scores, the newer post has the larger number."""
    return _ascending_bits(score) << BITS_32 | np.uint64(tag)


@inline_kernel
def score_fresh(
    reader: Any, n: Any, followed_end: Any, first_score: Any, first: Any, scoring: Scoring, scratch: RankScratch
) -> Any:
    """Write the scores and sort keys of the first `n` of `RankScratch.fresh`; return how many can be shown.

    In mode `USER_SCORES`, the score of candidate 0 is at `first_score`.
    """
    n_kept, bits = np.int64(0), np.uint32(0)
    if len(scoring.reader_bits) > 0:
        bits = scoring.reader_bits[reader] & ~scoring.hiding
    if scoring.mode == CHRONOLOGICAL and not bits and len(scoring.pair_shift) == 0:
        for i in range(n):
            scratch.key[i] = scratch.tag[np.uint64(scratch.fresh[i])]
        return np.int64(n)
    for i in range(n):
        candidate = scratch.fresh[i]
        tag = scratch.tag[np.uint64(candidate)]
        if scoring.mode == USER_SCORES:
            score = scoring.user_scores[first_score + candidate]
            if score == -np.inf:
                continue
        else:
            score = score_post(reader, np.int64(tag >> np.uint32(1)), candidate >= followed_end, first, scoring)
        if bits:
            score += _sum_scores(bits & scoring.post_bits[np.int64(tag >> np.uint32(1))], scoring)
        if len(scoring.pair_shift) > 0:
            score += scoring.pair_shift[first_score + candidate]
            if scoring.pair_shift[first_score + candidate] == -np.inf:
                continue
        scratch.score[candidate] = score
        scratch.fresh[n_kept] = candidate
        scratch.key[n_kept] = sort_key(score, tag)
        n_kept += 1
    return n_kept
