"""Rank feeds: which posts an agent is shown in a round, and in what order.

`kernels.feeds.ranking` ranks for all readers, as `tests/plain_feed.py` does for one. It rounds scores to float32, and
ties go to the newer post, so the result does not depend on the order of agents or edges.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.commit.seen import Lists, Pairs
from prism_mesa.kernels.feeds.depths import (
    NOTHING_PASSED,
    Passed,
    add_round,
    deepen,
    list_passed,
    rank_by_depth,
    room_for_rounds,
    unpassed,
)
from prism_mesa.kernels.feeds.gathering import NOBODY, count_candidates, list_candidates
from prism_mesa.kernels.feeds.outbox import Audience, Outbox, count_copies, fill_outbox, note_writers, number_writers
from prism_mesa.kernels.feeds.ranking import rank
from prism_mesa.kernels.feeds.scoring import (
    BRIDGING,
    CHRONOLOGICAL,
    DIVERSE,
    GIVEN,
    PREFERENCE,
    RANDOM,
    X_ALGO,
    RankScratch,
    Scoring,
    make_scratch,
)
from prism_mesa.kernels.feeds.slots import place_in_slots
from prism_mesa.kernels.lanes import LANES
from prism_mesa.kernels.ordering import FEW
from prism_mesa.snapshot import Restorable
from prism_mesa.social.params import CandidateParams, FeedParams, SlotParams, XAlgoParams
from prism_mesa.social.state.chunks import in_threads, side_by_side
from prism_mesa.social.state.exposure import NO_PAIRS, NOTHING_SHOWN, Exposure
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
"""Readers, ids of posts (-1 for none), and whether the reader follows the author -> a score of each."""

BLOCK: Final = 1 << 12
"""Readers that one thread ranks at a time. Results do not depend on it."""
_CANDIDATES: Final = 1 << 13
"""Candidates that fit into new scratch memory: enough for most blocks of readers."""
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
"""Impressions with the mean rate of all posts, added to each post in a bridging feed (assumed, as in `XAlgoParams`)."""
_MOST_PAIRS: Final = 1 << 20
"""Candidates that your own feed scores at a time, unless one reader has more: bounds the memory."""
_LONGEST_WINDOW: Final = 256
"""Rounds of the longest window for which depths are kept: they take 2 bytes for each agent and round."""
_SPARE: Final = 16
"""Rounds that are kept after they left the window, while the roots that agents passed in them move into lists."""
_SEARCHED: Final = 3
"""Number of topics nearest to an agent's interests, of which it searches for one."""
_NONE: Final = np.zeros(0)
NOBODY_HIDDEN: Final = (np.zeros(0, np.int64), np.zeros(0, np.int32))
_free: Final[deque[RankScratch]] = deque()


class CandidateList(NamedTuple):
    """The candidates of some readers, in the order in which they are scored.

    Attributes:
        reader: The reader of each candidate.
        post: Its id, or `NOBODY` where a draw gave none.
        is_followed: Whether the reader follows its author.
    """

    reader: Int32
    post: Int32
    is_followed: npt.NDArray[np.bool_]


class RankInputs(NamedTuple):
    """Readers' lists, visible posts, and how posts are scored."""

    audience: Audience
    outbox: Outbox
    scoring: Scoring

    def count(self, readers: Int32) -> int:
        """Return how many candidates some readers have, including roots that they know."""
        n = -1

        def count(scratch: RankScratch) -> bool:
            nonlocal n
            n = int(count_candidates(readers, *self, scratch))
            return n >= 0

        self._with_scratch(count)
        return n

    def listed(self, readers: Int32) -> CandidateList:
        """Return all candidates of some readers."""
        n = self.count(readers)
        listed = CandidateList(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.bool_))
        self._with_scratch(lambda scratch: list_candidates(readers, *self, scratch, *listed) == n)
        return listed

    def rank(self, readers: Int32, feed: Int32, n_feed: npt.NDArray[np.uint16]) -> None:
        """Rank the feeds of some readers, each once."""
        n_ranked = n_scored = 0

        def rank_more(scratch: RankScratch) -> bool:
            nonlocal n_ranked, n_scored
            n_ranked, n_scored = rank(readers, n_ranked, n_scored, *self, scratch, feed, n_feed)
            return bool(n_ranked == len(readers))

        self._with_scratch(rank_more)

    def _with_scratch(self, work: Callable[[RankScratch], bool]) -> None:
        is_diverse = self.scoring.mode in (X_ALGO, DIVERSE)
        n_writers = min(self.outbox.n, len(self.outbox.start)) if is_diverse else 0
        with_scratch(work, self.outbox, n_writers, self.scoring.n_groups)


def with_scratch(work: Callable[[RankScratch], bool], outbox: Outbox, n_writers: int = 0, n_groups: int = 0) -> None:
    """Call `work` with scratch memory, doubled while it returns False; threads keep the memory between rounds."""
    try:
        scratch = _free.pop()
    except IndexError:
        scratch = make_scratch(0, 0, 0, 0)
    n_roots, size = outbox.n + len(outbox.old_roots), max(_CANDIDATES, len(scratch.fresh) - LANES)
    if len(scratch.met) * 64 < n_roots or len(scratch.better) < n_writers or len(scratch.of_group) < n_groups:
        scratch = make_scratch(size, 2 * n_roots, 2 * n_writers, n_groups)
    while not work(scratch):
        size *= 2
        scratch = make_scratch(size, 2 * n_roots, 2 * n_writers, n_groups)
    _free.append(scratch)


class Depths(Restorable):
    """How far agents have read into each of the last rounds, so that chronological feeds begin where readers stopped.

    An agent knows a root that it has passed and whose author it follows, or that `Exposure` lists: roots that it wrote,
    read by a copy or in other feeds, or passed before its follows, mutes or blocks changed.

    Attributes:
        depth: Shape (agents, rounds): round r is column ``r % rounds``; see `Passed`. It has no rows until it is used.
        window: Rounds that are visible.
        opened: The last round with a column.
        old: Roots that have left the window but have visible copies, until they are in lists.
    """

    changes = ("depth", "window", "opened", "old")

    def __init__(self) -> None:
        self.depth, self.old = np.zeros((0, 0), np.uint16), np.zeros(0, np.int32)
        self.window, self.opened = 0, -1
        self._rounds, self._filled = room_for_rounds(0, 0, 0), -1
        self._ranked: list[tuple[Int32, Int32]] = []

    def ranked_in(self, round_: int) -> bool:
        """Return whether the feeds of a round were ranked by depth."""
        return self.opened == round_ and bool(self._ranked)

    def _passed(self, posts: Posts) -> Passed:
        """Return the input of kernels, with the posts of all opened rounds."""
        n_agents, rows = self.depth.shape
        rounds = range(max(self.opened - rows + 1, 0), self.opened + 1)
        ends = np.searchsorted(posts.round, np.arange(rounds.start, rounds.stop + 1, dtype=np.int32)).tolist()
        largest = max(last - first for first, last in pairwise(ends))
        if largest > self._rounds.item.shape[1] or self._rounds.has_posts.shape != (rows, n_agents // 64 + 1):
            self._rounds, self._filled = room_for_rounds(rows, n_agents, 2 * largest), -1
        for round_, (first, last) in zip(rounds, pairwise(ends), strict=True):
            if round_ > self._filled:
                add_round(posts.author[first:last], first, round_ % rows, self._rounds)
        self._filled = self.opened
        return Passed(self.depth, self._rounds, self.window, self.old, posts.author, posts.round)

    def open(self, n_agents: int, now: int, window: int = 0) -> None:
        """Add a round in which agents have passed nothing yet. The first call needs the `window`."""
        n, rows = self.depth.shape
        if not n:
            rows, self.window, self.opened = window + _SPARE, window, now - 1
        if n < n_agents:
            newcomers = np.full((n_agents - n, rows), NOTHING_PASSED, np.uint16)
            self.depth = np.concatenate([self.depth.reshape(n, rows), newcomers])
        if self.opened < now:
            self.depth[:, now % rows] = NOTHING_PASSED
            self.opened, self._ranked = now, []

    def rank(
        self,
        readers: Int32,
        most: Int32 | None,
        audience: Audience,
        recent: Lists,
        outbox: Outbox,
        population: Population,
        posts: Posts,
        now: int,
        block: int,
        threads: int,
    ) -> None:
        """Write chronological feeds of up to `most` posts for each reader."""
        if most is None:
            most = np.full(len(readers), population.feed.shape[1], np.int32)
        self._ranked.append((readers, most))
        shared = now, self._passed(posts), audience, recent, outbox

        def rank_block(first: int) -> None:
            part, n_ranked = slice(first, first + block), 0

            def rank_more(scratch: RankScratch) -> bool:
                nonlocal n_ranked
                feeds = scratch, population.feed, population.n_feed
                n_ranked = rank_by_depth(readers[part], n_ranked, most[part], *shared, *feeds)
                return bool(n_ranked == len(readers[part]))

            with_scratch(rank_more, outbox)

        in_threads(rank_block, range(0, len(readers), block), threads)

    def note_read(self, population: Population, posts: Posts, now: int) -> None:
        """Note how far the readers of this round's ranked feeds have read."""
        if len(self.depth):
            self.open(len(population), now)
        for readers, most in self._ranked:
            deepen(readers, most, now, self._passed(posts), population.feed, population.n_feed, population.n_read)

    def unpassed(
        self, read: Sequence[Pairs], seen: Sequence[tuple[Int32, ...]], n_read: npt.NDArray[np.uint16]
    ) -> list[Pairs]:
        """Return those of the roots read in this round that depths do not cover; `seen` has the impressions."""
        if not self._ranked or self._rounds.n.max() >= NOTHING_PASSED:  # depths of large rounds are not exact
            return list(read)
        is_deep = np.zeros(len(n_read), np.bool_)
        for readers, _ in self._ranked:
            is_deep[readers] = True
        columns = zip(read, seen, strict=True)
        parts = [Pairs(*unpassed(part.agents, post, part.roots, is_deep, n_read)) for part, (*_, post) in columns]
        return [part for part in parts if len(part.agents)]

    def leave(self, network: FollowNetwork, posts: Posts, shown: npt.NDArray[np.uint8]) -> Pairs:
        """Keep roots that leave the window if their bits in `shown` are set; return those that some agents have passed.

        Each round handles a part of the agents. After `_SPARE` rounds, all agents that passed a root have it in lists.
        """
        if not len(self.depth):
            return NO_PAIRS
        now, (n_agents, rows) = self.opened, self.depth.shape
        first, behind = (posts.first_visible(round_, self.window) for round_ in (now, now + 1))
        left = np.arange(first, behind, dtype=np.int32)
        old = np.append(self.old, left[posts.root[left] == left])
        old = old[shown[old >> 3] >> (old & 7) & 1 == 1]
        spare = rows - self.window
        agents = np.arange(now % spare, n_agents, spare, dtype=np.int32)
        self.old = old[posts.round[old] > now - rows + 2]
        return self._list(agents, old, network, posts)

    def listed(self, agents: Ids, network: FollowNetwork, posts: Posts, now: int) -> Pairs:
        """Return the agents and all roots that they have passed as round `now` opens, ascending."""
        rows = np.unique(agents[agents < len(self.depth)]).astype(np.int32)
        rows = rows[(self.depth[rows] != NOTHING_PASSED).any(axis=1)]
        if not len(rows):
            return NO_PAIRS
        first, behind = posts.first_visible(now, self.window), posts.first_visible(self.opened + 1, 1)
        visible = np.arange(first, behind, dtype=np.int32)
        roots = np.append(self.old, visible[posts.root[visible] == visible])
        return self._list(rows, roots, network, posts)

    def forget(self, agents: Ids, network: FollowNetwork, posts: Posts, now: int) -> Pairs:
        """Let agents start from nothing; return them and the roots that they have passed, for the lists."""
        listed = self.listed(agents, network, posts, now)
        self.depth[agents[agents < len(self.depth)]] = NOTHING_PASSED
        return listed

    def _list(self, agents: Int32, roots: Int32, network: FollowNetwork, posts: Posts) -> Pairs:
        return Pairs(*list_passed(agents, roots, self._passed(posts), network.indptr, network.indices))


class Discovered(NamedTuple):
    """Posts that agents find outside their follows, as local numbers of roots (`Outbox`), best first.

    Attributes:
        trending: Those with the highest velocity; ties go to the newer one.
        found: Shape (topics, posts): those nearest to each topic, then `NOBODY`.
        query: The topic that each agent searches for; -1 for none.
    """

    trending: Int32
    found: Int32
    query: npt.NDArray[np.int16]

    def first(self, params: CandidateParams | SlotParams) -> Self:
        """Return as many of each kind as feeds have candidates, or slots, for."""
        return self._replace(trending=self.trending[: params.trending], found=self.found[:, : params.search].copy())


def discovered(
    readers: Int32, outbox: Outbox, population: Population, posts: Posts, params: FeedParams, streams: Streams, now: int
) -> Discovered:
    """Return what some readers find outside their follows, as many posts as feeds have candidates or slots for."""
    n_trending, n_found = (
        max(getattr(params.candidates, key), getattr(params.slots, key)) for key in ("trending", "search")
    )
    query = np.zeros(0, np.int16)
    if not (n_trending or n_found):
        return Discovered(np.zeros(0, np.int32), np.zeros((len(posts.topics.names), 0), np.int32), query)
    ids = np.arange(outbox.first, len(posts))
    roots = ids[posts.root[ids] == ids]
    if n_found:
        query = np.full(len(population), -1, np.int16)
        query[readers] = _topics_searched(readers, population, posts, streams, now)
    moving = roots[posts.velocity[roots] > 0]
    best = moving[np.lexsort((moving, posts.velocity[moving]))[::-1][:n_trending]] - outbox.first
    return Discovered(best.astype(np.int32), _search(roots, posts, n_found, outbox.first), query)


def _search(roots: Ids, posts: Posts, most: int, first: int) -> Int32:
    topics = posts.topics.name_vectors.astype(np.int64)
    results = np.full((len(topics), min(most, len(roots))), NOBODY, np.int32)
    if not results.size:
        return results
    texts, which = np.unique(posts.text_id[roots], return_inverse=True)
    vectors = posts.text_vectors[texts].astype(np.int64)
    for row, axis in zip(results, topics, strict=True):
        nearness = (vectors @ axis)[which]
        near = np.flatnonzero(nearness > 0)
        key = nearness[near] << 32 | roots[near]
        best = np.sort(np.partition(key, -most)[-most:] if len(key) > most else key)[::-1]
        row[: len(best)] = (best & 0xFFFFFFFF) - first
    return results


def _topics_searched(
    readers: Int32, population: Population, posts: Posts, streams: Streams, now: int
) -> npt.NDArray[np.int16]:
    if not posts.topics.names:
        return np.full(len(readers), -1, np.int16)
    nearest = posts.topics.nearest_names(population.interests[readers], _SEARCHED)
    n_near = (nearest >= 0).sum(axis=1)  # they come first
    drawn = (streams.uniform("search", readers, round_=now) * n_near).astype(np.int64)
    return nearest[np.arange(len(readers)), drawn]


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
    block: int = BLOCK,
    scorer: Scorer | None = None,
    hidden: tuple[npt.NDArray[np.int64], Int32] = NOBODY_HIDDEN,
    shown: Exposure = NOTHING_SHOWN,
    groups: Groups | None = None,
    depths: Depths | None = None,
    most: Int32 | None = None,
) -> None:
    """Write this round's feed of each of `agents` (row numbers, each once) into the population.

    A feed holds up to `feed.size` posts, or `most` (one number per agent), best first. It shows posts of the last
    `feed.window` rounds that are not the agent's own, whose root the agent has neither read (see `seen`) nor written,
    and whose author is not `hidden` from it (`Relations.hidden_rows`). It shows each root once, by its best-ranked
    copy. Where roots can be shown again, `seen` holds those that cannot be, and `shown` the copies that each agent has
    read. Roots that `depths` cover need not be in `seen`.
    """
    population.n_read[agents] = population.n_feed[agents] = 0
    outbox = _unsorted_outbox(posts, params, len(population), now)
    if not outbox.n or not len(agents):
        return
    readers = np.ascontiguousarray(agents, np.int32)
    if depths is not None and not shown.is_used and goes_by_depth(params, outbox, network):
        depths.open(len(population), now, params.window)
        known, recent = seen.long_and_recent
        audience = Audience(network.indptr, network.indices, *known, *hidden, *shown.lists)
        depths.rank(readers, most, audience, recent, outbox, population, posts, now, block, threads)
        return
    if depths is not None:
        seen.add(*depths.forget(readers, network, posts, now))
    outbox = _sorted_outbox(outbox, posts, threads)
    found = discovered(readers, outbox, population, posts, params, streams, now)
    audience = Audience(network.indptr, network.indices, *seen.lists, *hidden, *shown.lists)
    inputs = RankInputs(audience, outbox, make_scoring(outbox, population, posts, params, streams, now, found, groups))
    feeds = population.feed, population.n_feed

    def rank_block(first: int) -> None:
        block_readers = readers[first : first + block]
        if scorer is None:
            inputs.rank(block_readers, *feeds)
        else:
            for part in _split(block_readers, inputs):
                scoring = inputs.scoring._replace(given=scorer(*inputs.listed(part)))
                inputs._replace(scoring=scoring).rank(part, *feeds)
        if params.slots.trending or params.slots.search:
            place_in_slots(block_readers, *found.first(params.slots), params.slots.every, *inputs, *feeds)

    in_threads(rank_block, range(0, len(readers), block), threads)
    if most is not None:
        population.n_feed[readers] = np.minimum(population.n_feed[readers], most)


def goes_by_depth(params: FeedParams, outbox: Outbox, network: FollowNetwork) -> bool:
    """Return whether readers go on where they stopped, rather than look at all that is visible to them.

    They do in chronological feeds of followed agents that look back at most `_LONGEST_WINDOW` rounds, if an average
    agent would have more than `FEW` posts in view.
    """
    is_plain = params.ranking == "chronological" and params.candidates.followed is None and not params.has_others
    return is_plain and params.window <= _LONGEST_WINDOW and outbox.n * network.n_edges > FEW * network.n_agents**2


def _split(readers: Int32, inputs: RankInputs) -> Iterator[Int32]:
    if len(readers) == 1 or inputs.count(readers) <= _MOST_PAIRS:
        yield readers
        return
    for half in np.array_split(readers, 2):
        yield from _split(half, inputs)


def make_outbox(posts: Posts, params: FeedParams, n_agents: int, now: int, threads: int = 1) -> Outbox:
    """Return the posts that can be shown in a round, by author; threads share the authors."""
    return _sorted_outbox(_unsorted_outbox(posts, params, n_agents, now), posts, threads)


def _unsorted_outbox(posts: Posts, params: FeedParams, n_agents: int, now: int) -> Outbox:
    first, words = posts.first_visible(now, params.window), n_agents // 64 + 1
    root = posts.root[first:]
    places = np.zeros(words, np.uint64), np.zeros(words, np.int32), np.zeros(n_agents + 2, np.int32)
    return Outbox(first, len(root), *places, np.zeros(len(root) + 1, np.uint64), np.sort(root[root < first]), root)


def _sorted_outbox(outbox: Outbox, posts: Posts, threads: int) -> Outbox:
    if not outbox.n:
        return outbox
    author, root, words = posts.author[outbox.first :], outbox.root, len(outbox.has_posts)
    least, parts = int(root.min()), threads if len(outbox.start) > BLOCK else 1
    copies = np.zeros(int(root.max()) - least + 1, np.uint8)
    cuts = [words * part // parts * 64 for part in range(parts + 1)]
    rows = [np.empty((2, outbox.n), np.int32) for _ in range(parts)]
    ranges = zip(pairwise(cuts), rows, strict=True)
    noted = [partial(note_writers, author, *authors, outbox.has_posts, part[0]) for authors, part in ranges]
    _, *counts = side_by_side([partial(count_copies, root, least, copies), *noted], parts)
    number_writers(outbox.has_posts, outbox.writers)
    places = [(post[:n], writer[:n]) for (post, writer), n in zip(rows, counts, strict=True)]
    starts = accumulate(counts[:-1], initial=0)
    side_by_side(
        [partial(fill_outbox, author, root, least, copies, *part, outbox) for part in zip(places, starts, strict=True)],
        parts,
    )
    return outbox


def make_scoring(
    outbox: Outbox,
    population: Population,
    posts: Posts,
    params: FeedParams,
    streams: Streams,
    now: int,
    discoveries: Discovered,
    groups: Groups | None,
) -> Scoring:
    """Return the inputs for scoring the visible posts of a round."""
    candidates, weights, is_x = params.candidates, params.weights or params.x_algo, params.weights is not None
    groups = groups or NO_GROUPS
    good, bad = predicted(outbox.root, posts, weights) if is_x else (_NONE, 0.0)
    if params.mode == "bridging":
        good = groups.counts.consensus(outbox.root, PRIOR_IMPRESSIONS)
    trending, found, query = discoveries.first(candidates)
    return Scoring(
        mode=_MODES.get(params.ranking, GIVEN),
        key=streams.key("feed order", now, 0),
        post_key=posts.key,
        interests=population.interests,
        text_id=posts.text_id,
        vectors=posts.text_vectors,
        unit_length=UNIT_LENGTH,
        followed=-1 if candidates.followed is None else candidates.followed,
        outsiders=candidates.out_of_network + (weights.out_of_network if is_x else 0),
        outsider_key=streams.key("out of network", now, 0),
        two_hops=candidates.two_hops,
        two_hops_key=streams.key("two hops", now, 0),
        trending=trending,
        found=found,
        query=query,
        good=good,
        bad=bad,
        factor=np.where(posts.kind[outbox.first :] == REPLY, weights.reply_factor, 1.0) if is_x else _NONE,
        outsider_factor=weights.out_of_network_factor,
        diversity=diversity(weights) if is_x else np.ones(0 if params.mode == "diverse" else 1),
        group=groups.of,
        n_groups=groups.counts.n,
        author=posts.author,
        given=_NONE,
    )


def predicted(roots: Ids, posts: Posts, params: XAlgoParams) -> tuple[Scores, float]:
    """Return the weighted predictions for posts of these roots that grow with relevance, and those that shrink with it.

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
    """Return likes, replies and reshares per impression of these roots, shrunk to the prior rates."""
    prior = params.prior_impressions
    shown = posts.impressions[root] + prior
    like = (posts.likes[root] + params.rate_like * prior) / shown
    reply = (posts.replies[root] + params.rate_reply * prior) / shown
    return like, reply, (posts.reshares[root] + params.rate_reshare * prior) / shown


def diversity(params: XAlgoParams) -> Scores:
    """Return the factor of a post's score with 0, 1, 2, ... better-ranked posts of its author in one feed."""
    before = np.arange(256)
    return np.asarray((1.0 - params.author_floor) * params.author_decay**before + params.author_floor)
