"""Feeds: which posts an agent is shown in a round, and in what order. Ranking only reads the platform.

Every candidate gets an integer score and is packed with its agent and post into one 64-bit key, so that
one sort orders all feeds at once and the result depends on no order of agents or edges.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import RunError
from prism_mesa.social.network import FollowNetwork
from prism_mesa.social.params import FeedParams, XAlgoParams
from prism_mesa.social.population import Population
from prism_mesa.social.posts import REPLY, Posts, matches, relevance_of
from prism_mesa.social.seen import Seen, ragged
from prism_mesa.streams import Streams

type Ids = npt.NDArray[np.integer[Any]]
type Scores = npt.NDArray[np.float64]

BLOCK: Final = 1 << 12
"""Agents ranked at a time: bounds the memory, not the result."""

_SCORE_BITS, _POST_BITS, _PLACE_BITS = 26, 24, 26  # leave 13 bits for the place of an agent in its block


@dataclass(frozen=True)
class Visible:
    """The posts that can be shown in a round: ids `first` .. `first` + n - 1, with local numbers from 0.

    Attributes:
        by_author: Local numbers grouped by author; agent i's are ``by_author[start[i]:start[i] + count[i]]``.
        wrote: Whether an author has any: a column small enough for the nearest cache.
        root: Local numbers' roots, as ranks among the distinct roots.
        roots: Ids of the distinct roots, ascending; `root_author` who wrote them.
        is_doubtful: Roots that an agent may have seen, or may be shown twice: older than this round, or with
            several visible copies.
        rank: Rank of every post that is a visible root, -1 for all others.
    """

    first: int
    n: int
    by_author: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    wrote: npt.NDArray[np.bool_]
    root: npt.NDArray[np.int64]
    roots: npt.NDArray[np.int64]
    root_author: npt.NDArray[np.int32]
    is_doubtful: npt.NDArray[np.bool_]
    rank: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Pairs of an agent (its place in the block) and a visible post (its local number).

    Attributes:
        is_outsider: Which posts are by authors that the agent does not follow; None: none of them.
    """

    agent: Ids
    post: Ids
    is_outsider: npt.NDArray[np.bool_] | None = None

    def take(self, which: npt.NDArray[Any]) -> "Candidates":
        """Return the pairs that a mask marks or indices name."""
        outsiders = None if self.is_outsider is None else self.is_outsider[which]
        return Candidates(self.agent[which], self.post[which], outsiders)


def rank_feeds(
    agents: Ids,
    population: Population,
    posts: Posts,
    seen: Seen,
    network: FollowNetwork,
    params: FeedParams,
    streams: Streams,
    now: int,
) -> None:
    """Write this round's feed of each of `agents` (row numbers, each once) into the population.

    A feed holds up to `params.size` posts, best first: of the last `params.window` rounds, not the
    agent's own, of a root that it has not seen, each root once (its best-ranked copy). Ties go to
    the newer post; scores tie if they agree in float32 to 17 binary digits of the fraction.
    """
    visible = _visible(posts, params, len(population), now)
    population.n_read[agents] = 0
    population.n_feed[agents] = 0
    if not visible.n or not len(agents):
        return
    for block in np.array_split(agents, max(1, -(-len(agents) // BLOCK))):
        _rank_block(block, visible, population, posts, seen, network, params, streams, now)


def _visible(posts: Posts, params: FeedParams, n_agents: int, now: int) -> Visible:
    first = posts.first_visible(now, params.window)
    author = posts.author[first:]
    by_author = np.sort(author.astype(np.int64) << _POST_BITS | np.arange(len(author)))
    by_author = (by_author & ((1 << _POST_BITS) - 1)).astype(np.int32)
    count = np.bincount(author, minlength=n_agents)
    is_root = np.zeros(len(posts), np.bool_)
    is_root[posts.root[first:]] = True
    roots, rank = np.flatnonzero(is_root), np.where(is_root, np.cumsum(is_root) - 1, -1)
    root = rank[posts.root[first:]]
    if len(author) >> _POST_BITS:
        raise RunError(f"feed.window: {len(author)} posts are visible at once, more than 2**{_POST_BITS}; lower it")
    is_doubtful = (np.bincount(root, minlength=len(roots)) > 1) | (posts.round[roots] < now)
    start = np.cumsum(count) - count
    return Visible(
        first, len(author), by_author, start, count, count > 0, root, roots, posts.author[roots], is_doubtful, rank
    )


def _rank_block(
    block: Ids,
    visible: Visible,
    population: Population,
    posts: Posts,
    seen: Seen,
    network: FollowNetwork,
    params: FeedParams,
    streams: Streams,
    now: int,
) -> None:
    found = _in_network(block, visible, network)
    if params.mode == "x_algo" and params.x_algo.out_of_network:
        found = _with_outsiders(found, block, visible, posts, network, params.x_algo, streams, now)
    score = _scores(found, block, visible, population, posts, params, streams, now)
    if params.mode == "x_algo":  # its scores are needed again
        order = np.argsort(_keys(found, score))
        order = order[_fresh(found.take(order), block, visible, seen)]
        found, score = found.take(order), score[order]
        score = _diverse(found, score, visible, posts, params.x_algo)
        found = found.take(np.argsort(_keys(found, score)))
    else:
        found = _unpacked(np.sort(_keys(found, score)))
        found = found.take(_fresh(found, block, visible, seen))
    agent = found.agent
    n_found = np.bincount(agent, minlength=len(block))
    place = np.arange(len(agent)) - (np.cumsum(n_found) - n_found)[agent]
    shown = place < params.size
    population.feed[block[agent[shown]], place[shown]] = visible.first + found.post[shown]
    population.n_feed[block] = np.minimum(n_found, params.size)


def _keys(found: Candidates, score: Scores) -> npt.NDArray[np.uint64]:
    """Return whole numbers that sort by agent, then best score, then newest post."""
    key = found.agent.astype(np.uint64) << np.uint64(_SCORE_BITS + _POST_BITS)
    key |= (np.uint64((1 << _SCORE_BITS) - 1) - _whole(score)) << np.uint64(_POST_BITS)
    key |= np.uint64((1 << _POST_BITS) - 1) - found.post.astype(np.uint64)
    return key


def _unpacked(keys: npt.NDArray[np.uint64]) -> Candidates:
    """Return the pairs that keys were made of."""
    top_post = np.uint64((1 << _POST_BITS) - 1)
    agent = (keys >> np.uint64(_SCORE_BITS + _POST_BITS)).astype(np.int64)
    return Candidates(agent, (top_post - (keys & top_post)).astype(np.int64))


def _whole(score: Scores) -> npt.NDArray[np.uint64]:
    """Return whole numbers below 2**26 in the order of `score`: its float32 bits, shortened."""
    bits = score.astype(np.float32).view(np.uint32)
    rising = np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
    return (rising >> np.uint32(32 - _SCORE_BITS)).astype(np.uint64)


def _fresh(ranked: Candidates, block: Ids, visible: Visible, seen: Seen) -> npt.NDArray[np.bool_]:
    """Mark, among ranked pairs, the first of each agent with each root that it neither has seen nor wrote.

    One sort of (agent, root, place): what an agent knows has place 0, the candidates follow in their rank,
    and all but the first of a group go.
    """
    root = visible.root[ranked.post]
    is_doubtful = visible.is_doubtful[root]
    if ranked.is_outsider is not None:
        is_doubtful |= ranked.is_outsider  # it may have been drawn twice
    doubtful = np.flatnonzero(is_doubtful)
    known = _known(block, visible, seen)
    pairs = ranked.agent[doubtful] << _POST_BITS | root[doubtful]
    places = np.arange(1, len(doubtful) + 1)
    keys = np.concatenate([(known[0] << _POST_BITS | known[1]) << _PLACE_BITS, pairs << _PLACE_BITS | places])
    keys.sort()
    pairs = keys >> _PLACE_BITS
    again = keys[1:][pairs[1:] == pairs[:-1]] & ((1 << _PLACE_BITS) - 1)
    fresh = np.ones(len(root), np.bool_)
    fresh[doubtful[again[again > 0] - 1]] = False
    return fresh


def _known(block: Ids, visible: Visible, seen: Seen) -> tuple[Ids, Ids]:
    """Return the visible roots that agents have seen or written, as (place in the block, rank of the root)."""
    reader, read = seen.of(block)
    rank = visible.rank[read]
    place = np.full(max(int(block.max()), int(visible.root_author.max())) + 1, -1)
    place[block] = np.arange(len(block))
    writer = place[visible.root_author]
    return (
        np.concatenate([reader[rank >= 0], writer[writer >= 0]]),
        np.concatenate([rank[rank >= 0], np.flatnonzero(writer >= 0)]),
    )


def _in_network(block: Ids, visible: Visible, network: FollowNetwork) -> Candidates:
    """Return each agent with each visible post of those it follows."""
    edge_at, owner = ragged(network.indptr[block], network.indptr[block + 1] - network.indptr[block])
    followee = network.indices.take(edge_at)
    wrote = np.flatnonzero(visible.wrote.take(followee))
    followee, owner = followee.take(wrote), owner.take(wrote)
    at, left = visible.start.take(followee), visible.count.take(followee)
    owners, posts = [owner[:0]], [visible.by_author[:0]]
    while len(owner):  # each author's first post, then the second of those who have one, and so on
        owners.append(owner)
        posts.append(visible.by_author.take(at))
        more = np.flatnonzero(left > 1)
        owner, at, left = owner.take(more), at.take(more) + 1, left.take(more) - 1
    return Candidates(np.concatenate(owners), np.concatenate(posts))


def _with_outsiders(
    found: Candidates,
    block: Ids,
    visible: Visible,
    posts: Posts,
    network: FollowNetwork,
    params: XAlgoParams,
    streams: Streams,
    now: int,
) -> Candidates:
    """Add posts drawn evenly from the whole platform, less own ones and those of followed agents."""
    m = params.out_of_network
    agent, index = np.repeat(np.arange(len(block)), m), np.tile(np.arange(m), len(block))
    post = streams.integers("out of network", block[agent], visible.n, round_=now, index=index)
    author = posts.author[visible.first + post]
    n = network.n_agents
    edge_at, owner = ragged(network.indptr[block], network.indptr[block + 1] - network.indptr[block])
    follows = owner * n + network.indices[edge_at]  # ascending: rows are sorted, and so are the agents
    wanted = agent * n + author
    at = np.minimum(np.searchsorted(follows, wanted), max(0, len(follows) - 1))
    known = follows[at] == wanted if len(follows) else np.zeros(len(wanted), np.bool_)
    keep = ~known & (author != block[agent])
    return Candidates(
        np.append(found.agent, agent[keep]),
        np.append(found.post, post[keep]),
        np.repeat([False, True], [len(found.post), int(keep.sum())]),
    )


def _scores(
    found: Candidates,
    block: Ids,
    visible: Visible,
    population: Population,
    posts: Posts,
    params: FeedParams,
    streams: Streams,
    now: int,
) -> Scores:
    """Return a score for each pair, or one for all; more is better."""
    if params.mode == "random":
        return streams.uniform(
            "feed order", block[found.agent], round_=now, index=posts.key[visible.first + found.post]
        )
    if params.mode == "chronological":
        return np.zeros(1)  # the same for all: ties go to the newer post
    match = matches(population.interests[block[found.agent]], posts.vectors(visible.first + found.post))
    if params.mode == "preference":
        return match.astype(np.float64)
    good, bad = _predicted(np.arange(visible.first, visible.first + visible.n), posts, params.x_algo)
    relevance = relevance_of(match)
    score = 2.0 * (relevance * good[found.post] + (1.0 - relevance) * bad)
    if found.is_outsider is not None:
        score = _lowered(score, np.where(found.is_outsider, params.x_algo.out_of_network_factor, 1.0))
    is_reply = posts.kind[visible.first + found.post] == REPLY
    return _lowered(score, np.where(is_reply, params.x_algo.reply_factor, 1.0))


def _lowered(score: Scores, factor: npt.NDArray[np.floating[Any]]) -> Scores:
    """Return scores times a factor of at most 1; a score below 0 is divided by it, so that it too goes down."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.divide(score, factor, out=score * factor, where=score < 0))


def _predicted(ids: Ids, posts: Posts, params: XAlgoParams) -> tuple[Scores, float]:
    """Return each post's weighted predictions that grow with relevance, and those that shrink with it.

    A probability is the observed rate per impression, held to the prior rate by `prior_impressions`.
    """
    root = posts.root[ids]
    prior = params.prior_impressions
    shown = posts.impressions[root] + prior
    like = (posts.likes[root] + params.rate_like * prior) / shown
    reply = (posts.replies[root] + params.rate_reply * prior) / shown
    reshare = (posts.reshares[root] + params.rate_reshare * prior) / shown
    good = params.weight_like * like + params.weight_reshare * reshare
    good = good + (params.weight_reply + params.weight_reply_engaged * params.reply_engaged) * reply
    good = good + params.weight_good_click * params.rate_good_click
    good = good + params.weight_profile_click * params.rate_profile_click
    return good, params.weight_negative * params.rate_negative + params.weight_report * params.rate_report


def _diverse(ranked: Candidates, score: Scores, visible: Visible, posts: Posts, params: XAlgoParams) -> Scores:
    """Return the scores of ranked pairs, lowered for each better-ranked post of one author in one feed."""
    group = ranked.agent * np.int64(1 << 32) + posts.author[visible.first + ranked.post]
    order = np.argsort(group, kind="stable")
    _, start, size = np.unique(group[order], return_index=True, return_counts=True)
    before = np.empty(len(order), np.int64)
    before[order] = np.arange(len(order)) - np.repeat(start, size)
    factor = (1.0 - params.author_floor) * params.author_decay**before + params.author_floor
    return _lowered(score, factor)
