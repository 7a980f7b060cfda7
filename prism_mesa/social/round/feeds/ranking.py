"""Feeds: which posts an agent is shown in a round, and in what order.

Weights and keys are declared here; `kernels.feeds.ranking` ranks for all readers, as `tests/plain_feed.py` does for
one. A score counts as float32, ties go to the newer post, so the result depends on no order of agents or edges.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.outbox import Outbox, count_copies, fill_outbox, note_writers, number_writers
from prism_mesa.kernels.feeds.room import Audience
from prism_mesa.kernels.feeds.scoring import (
    BRIDGING,
    CHRONOLOGICAL,
    DIVERSE,
    GIVEN,
    PREFERENCE,
    RANDOM,
    X_ALGO,
    Scoring,
)
from prism_mesa.kernels.feeds.slots import place_in_slots
from prism_mesa.kernels.ordering import FEW
from prism_mesa.social.params import FeedParams, XAlgoParams
from prism_mesa.social.round.feeds.depths import Depths
from prism_mesa.social.round.feeds.discovery import Discovered, discovered
from prism_mesa.social.round.feeds.in_rooms import Offer
from prism_mesa.social.state.chunks import in_threads, side_by_side
from prism_mesa.social.state.exposure import NOTHING_SHOWN, Exposure
from prism_mesa.social.state.groups import NO_GROUPS, Groups
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import REPLY, Posts
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.streams import Streams

type Ids = npt.NDArray[np.integer[Any]]
type Scores = npt.NDArray[np.float64]
type Int32 = npt.NDArray[np.int32]
type Scorer = Callable[[Int32, Int32, npt.NDArray[np.bool_]], Scores]
"""Readers, ids of posts (-1 for none), whether the one follows the author of the other -> a score of each."""

BLOCK: Final = 1 << 12
"""Readers that one thread takes at a time; not the result's business."""

_MODES: Final = {
    "random": RANDOM,
    "chronological": CHRONOLOGICAL,
    "preference": PREFERENCE,
    "x_2023": X_ALGO,
    "x_2026_08": X_ALGO,
    "bridging": BRIDGING,
    "diverse": DIVERSE,
}
PRIOR_IMPRESSIONS: Final = 20.0
"""Impressions that the mean of all posts is worth where a bridging feed weighs one (assumed, as in `XAlgoParams`)."""
_MOST_PAIRS: Final = 1 << 20
"""Candidates that are columns at a time, if these are of more than one reader: it bounds the memory of own feeds."""
_LONGEST_WINDOW: Final = 256
"""Rounds of the longest window in which readers go on where they stopped: an agent's depths are 2 bytes a round."""
_NONE: Final = np.zeros(0)
NOBODY_HIDDEN: Final = (np.zeros(0, np.int64), np.zeros(0, np.int32))


def rank_feeds(
    agents: Ids,
    population: Population,
    posts: Posts,
    seen: Exposure,
    network: FollowNetwork,
    params: FeedParams,
    streams: Streams,
    now: int,
    *,
    threads: int = 1,
    block: int | None = None,
    own: Scorer | None = None,
    hidden: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]] = NOBODY_HIDDEN,
    shown: Exposure = NOTHING_SHOWN,
    groups: Groups | None = None,
    depths: Depths | None = None,
    most: Int32 | None = None,
) -> None:
    """Write this round's feed of each of `agents` (row numbers, each once) into the population.

    A feed holds up to `feed.size` posts, or `most` (one number for each agent), best first: of the last `feed.window`
    rounds, not the agent's own, of a root that it has not read (as `seen` says) or written, each root once (its
    best-ranked copy), and by nobody that is `hidden` from it (`Relations.hidden_rows`). Where roots can be shown again,
    `seen` are those that cannot, and `shown` are the copies that each agent has read. `depths` saves time.
    """
    population.n_read[agents] = 0
    population.n_feed[agents] = 0
    outbox = bare_outbox(posts, params, len(population), now)
    if not outbox.n or not len(agents):
        return
    readers, size = np.ascontiguousarray(agents, np.int32), block or BLOCK
    if most is None:
        most = np.full(len(readers), population.feed.shape[1], np.int32)
    if depths is not None and not shown.is_used and goes_by_depth(params, outbox, network):
        known, recent = seen.long_and_recent
        audience = Audience(network.indptr, network.indices, *known, *hidden, *shown.lists)
        depths.rank(readers, most, audience, recent, outbox, population, posts, params.window, now, size, threads)
        return
    audience = Audience(network.indptr, network.indices, *seen.lists, *hidden, *shown.lists)
    outbox = filled_outbox(outbox, posts, threads)
    beside = discovered(readers, outbox, population, posts, params, streams, now)
    scoring = scoring_of(outbox, population, posts, params, streams, now, beside, groups)
    offer, feeds = Offer(audience, outbox, scoring), (population.feed, population.n_feed)

    def rank_block(first: int) -> None:
        block = readers[first : first + size]
        if own is None:
            offer.rank(block, *feeds)
        else:
            for part in _cut(block, offer):
                given = scoring._replace(given=own(*offer.listed(part)))
                offer._replace(scoring=given).rank(part, *feeds)
        if params.slots.trending or params.slots.search:
            place_in_slots(block, *beside.most(params.slots), params.slots.every, *offer, *feeds)

    in_threads(rank_block, range(0, len(readers), size), threads)
    population.n_feed[readers] = np.minimum(population.n_feed[readers], most)


def goes_by_depth(params: FeedParams, outbox: Outbox, network: FollowNetwork) -> bool:
    """Return whether readers go on where they stopped, and do not look at all that is visible to them.

    They do in chronological feeds of followed agents alone that look back at most `_LONGEST_WINDOW` rounds, where there
    is much to look at: if all posted alike, an average agent would have more than `FEW` posts in view.
    """
    is_plain = params.ranking == "chronological" and params.candidates.followed is None and not params.has_others
    return is_plain and params.window <= _LONGEST_WINDOW and outbox.n * network.n_edges > FEW * network.n_agents**2


def _cut(readers: Int32, offer: Offer) -> Iterator[Int32]:
    """Yield readers in parts that have few candidates together."""
    if len(readers) == 1 or offer.count(readers) <= _MOST_PAIRS:
        yield readers
        return
    for half in np.array_split(readers, 2):
        yield from _cut(half, offer)


def outbox_of(posts: Posts, params: FeedParams, n_agents: int, now: int, threads: int = 1) -> Outbox:
    """Return the posts that can be shown in a round, by author; threads share the authors."""
    return filled_outbox(bare_outbox(posts, params, n_agents, now), posts, threads)


def bare_outbox(posts: Posts, params: FeedParams, n_agents: int, now: int) -> Outbox:
    """Return the posts that can be shown in a round, without their authors."""
    first, words = posts.first_visible(now, params.window), n_agents // 64 + 1
    root = posts.root[first:]
    places = np.zeros(words, np.uint64), np.zeros(words, np.int32), np.zeros(n_agents + 2, np.int32)
    return Outbox(first, len(root), *places, np.zeros(len(root) + 1, np.uint64), np.sort(root[root < first]), root)


def filled_outbox(outbox: Outbox, posts: Posts, threads: int = 1) -> Outbox:
    """Return the outbox with its posts by author."""
    if not outbox.n:
        return outbox
    author, root, words = posts.author[outbox.first :], outbox.root, len(outbox.wrote)
    least, parts = int(root.min()), threads if len(outbox.start) > BLOCK else 1
    copies = np.zeros(int(root.max()) - least + 1, np.uint8)
    cuts = [words * part // parts * 64 for part in range(parts + 1)]
    room = [np.empty((2, outbox.n), np.int32) for _ in range(parts)]
    ranges = zip(pairwise(cuts), room, strict=True)
    noted = [partial(note_writers, author, *authors, outbox.wrote, rows[0]) for authors, rows in ranges]
    _, *counts = side_by_side([partial(count_copies, root, least, copies), *noted], parts)
    number_writers(outbox.wrote, outbox.writers)
    of_all = author, root, least, copies
    own = [(own_posts[:k], writers[:k]) for (own_posts, writers), k in zip(room, counts, strict=True)]
    before = accumulate(counts[:-1], initial=0)
    filled = [partial(fill_outbox, *of_all, rows, n, outbox) for rows, n in zip(own, before, strict=True)]
    side_by_side(filled, parts)
    return outbox


def scoring_of(
    outbox: Outbox,
    population: Population,
    posts: Posts,
    params: FeedParams,
    streams: Streams,
    now: int,
    beside: Discovered,
    groups: Groups | None,
) -> Scoring:
    """Return what the visible posts are ranked by in a round."""
    also, own, is_x = params.candidates, params.weights or params.x_algo, params.weights is not None
    groups = groups or NO_GROUPS
    good, bad = predicted(outbox.root, posts, own) if is_x else (_NONE, 0.0)
    if params.mode == "bridging":
        good = groups.counts.consensus(outbox.root, PRIOR_IMPRESSIONS)
    trending, found, query = beside.most(also)
    return Scoring(
        mode=_MODES.get(params.ranking, GIVEN),
        key=streams.key("feed order", now, 0),
        post_key=posts.key,
        interests=population.interests,
        text_id=posts.text_id,
        vectors=posts.text_vectors,
        unit_length=UNIT_LENGTH,
        followed=-1 if also.followed is None else also.followed,
        outsiders=also.out_of_network + (own.out_of_network if is_x else 0),
        outsider_key=streams.key("out of network", now, 0),
        two_hops=also.two_hops,
        two_hops_key=streams.key("two hops", now, 0),
        trending=trending,
        found=found,
        query=query,
        good=good,
        bad=bad,
        factor=np.where(posts.kind[outbox.first :] == REPLY, own.reply_factor, 1.0) if is_x else _NONE,
        outsider_factor=own.out_of_network_factor,
        diversity=diversity(own) if is_x else np.ones(0 if params.mode == "diverse" else 1),
        group=groups.of,
        n_groups=groups.counts.n,
        author=posts.author,
        given=_NONE,
    )


def predicted(roots: Ids, posts: Posts, params: XAlgoParams) -> tuple[Scores, float]:
    """Return the weighted predictions of posts of these roots that grow with relevance, and those that shrink with it.

    A probability is the observed rate per impression, shrunk to the prior rate by `prior_impressions`. A score is
    ``2 * (relevance * the first + (1 - relevance) * the second)``.
    """
    like, reply, reshare = engagement_rates(roots, posts, params)
    good = params.weight_like * like + params.weight_reshare * reshare
    good = good + (params.weight_reply + params.weight_reply_engaged * params.reply_engaged) * reply
    good = good + params.weight_good_click * params.rate_good_click
    good = good + params.weight_profile_click * params.rate_profile_click
    return good, params.weight_negative * params.rate_negative + params.weight_report * params.rate_report


def engagement_rates(root: Ids, posts: Posts, params: XAlgoParams) -> tuple[Scores, Scores, Scores]:
    """Return likes, replies and reshares per impression of posts of these roots, as far as their impressions say."""
    prior = params.prior_impressions
    shown = posts.impressions[root] + prior
    like = (posts.likes[root] + params.rate_like * prior) / shown
    reply = (posts.replies[root] + params.rate_reply * prior) / shown
    return like, reply, (posts.reshares[root] + params.rate_reshare * prior) / shown


def diversity(params: XAlgoParams) -> Scores:
    """Return the factor of a post's score with 0, 1, 2, ... better-ranked posts of its author in one feed."""
    before = np.arange(256)
    return np.asarray((1.0 - params.author_floor) * params.author_decay**before + params.author_floor)
