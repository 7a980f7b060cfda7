"""Rank feeds: choose the posts that each agent is shown in a round, and their order.

`kernels.feeds.ranking` ranks the feeds of all readers; `tests/plain_feed.py` does the same for one reader. Scores are
rounded to float32, and ties go to the newer post, so results do not depend on the order of agents or edges.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Ints, Mask, Rows, UInt8, UInt16, UInt32
from prism_mesa.kernels.commit.seen import Lists, Pairs
from prism_mesa.kernels.feeds.depths import (
    NOTHING_PASSED,
    DepthTables,
    add_round,
    list_passed,
    list_uncovered,
    make_rounds,
    rank_by_depth,
    update_depths,
)
from prism_mesa.kernels.feeds.gathering import NO_POST, count_candidates, list_candidates
from prism_mesa.kernels.feeds.outbox import Audience, Outbox, count_copies, fill_outbox, note_writers, number_writers
from prism_mesa.kernels.feeds.ranking import rank
from prism_mesa.kernels.feeds.scoring import (
    BRIDGING,
    CHRONOLOGICAL,
    DIVERSE,
    PREFERENCE,
    RANDOM,
    USER_SCORES,
    X_ALGO,
    RankScratch,
    Scoring,
    make_scratch,
)
from prism_mesa.kernels.feeds.slots import fill_slots
from prism_mesa.kernels.lanes import LANES
from prism_mesa.kernels.ordering import FEW_CANDIDATES
from prism_mesa.snapshot import Restorable
from prism_mesa.social.params import CandidateParams, FeedParams, SlotParams, XAlgoParams
from prism_mesa.social.state.chunks import map_in_threads, mapped_zeros, run_in_threads
from prism_mesa.social.state.exposure import NO_EXPOSURE, NO_PAIRS, Exposure
from prism_mesa.social.state.groups import NO_GROUPS, Groups
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import REPLY, Posts
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.streams import Streams

type Scorer = Callable[[Int32, Int32, Mask], Floats]
"""A function of readers, post ids (-1 for none) and whether the reader follows the author; it returns scores."""

BLOCK: Final = 1 << 12
"""Number of readers that a thread ranks at a time. Results do not depend on it."""
_MIN_CANDIDATES: Final = 1 << 13
"""Number of candidates for which new scratch memory has room: enough for most blocks of readers."""
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
"""In bridging feeds, each post gets this many extra impressions with the mean rate of all posts (assumed)."""
_MAX_PAIRS: Final = 1 << 20
"""Maximum number of candidates that your own feed scores at a time, unless a single reader has more."""
_MAX_WINDOW: Final = 256
"""Longest window, in rounds, for which depths are used. Depths take 2 bytes per agent and round."""
_SPARE_ROUNDS: Final = 16
"""Number of rounds before the window for which depths are kept while their roots move into lists."""
_N_SEARCH_TOPICS: Final = 3
"""Each agent searches for one of this many topics, those nearest to its interests."""
_NO_SCORES: Final = np.zeros(0)
NOBODY_HIDDEN: Final = (np.zeros(0, np.int64), np.zeros(0, np.int32))
_free_scratch: Final[deque[RankScratch]] = deque()


class FeedActs(NamedTuple):
    """What acts of the platform change in feeds; each act has a bit.

    Attributes:
        post_bits, reader_bits: The acts that apply to each visible post, and to each agent; empty without acts.
        score: What each act adds to the score of a post; -inf for acts that leave posts out.
        hiding, common: The bits of acts that leave posts out, and of acts that apply to all readers.
        pair_bits: The bits of acts that apply to pairs of reader and post.
        pair_shift: Returns what these acts add to the score of each candidate.
    """

    post_bits: UInt32 = np.zeros(0, np.uint32)
    reader_bits: UInt32 = np.zeros(0, np.uint32)
    score: Floats = _NO_SCORES
    hiding: np.uint32 = np.uint32(0)
    common: np.uint32 = np.uint32(0)
    pair_bits: np.uint32 = np.uint32(0)
    pair_shift: Scorer | None = None

    def added_scores(self, bits: np.uint32) -> Floats:
        """Return what acts with these bits add to the score of each visible post, -inf if they leave it out."""
        added = np.zeros(len(self.post_bits))
        for act, score in enumerate(self.score.tolist()):
            added[self.post_bits & bits & np.uint32(1 << act) != 0] += score
        return added

    def split(self, readers: Rows, params: FeedParams) -> Iterator[tuple[Rows, Self]]:
        """Yield readers without acts, with acts on posts, and on pairs, with their acts in units of the ranking.

        If feeds show trending posts or search results, which are the same for many readers, all readers of a group have
        the same acts.
        """
        if not len(self.reader_bits):
            yield readers, self
            return
        scaled, bits = self._in_units_of(params.ranking), self.reader_bits[readers]
        has_acts, has_pairs = bits != 0, bits & self.pair_bits != 0
        parts = [~has_acts, has_acts & ~has_pairs, has_pairs]
        if params.discovers:
            parts = [bits == value for value in np.unique(bits)]
        for part in parts:
            if part.any():
                first_bits = bits[part.argmax()]
                acts = scaled if first_bits & self.pair_bits else scaled._replace(pair_shift=None)
                yield readers[part], acts if first_bits else type(self)()

    def _in_units_of(self, ranking: str) -> Self:
        """Return the acts with scores in the units of a ranking: `preference` ranks by similarity, not relevance."""
        if ranking != "preference":
            return self
        scale, pair_shift = 2 * UNIT_LENGTH, self.pair_shift
        scaled = None if pair_shift is None else lambda *candidates: scale * pair_shift(*candidates)
        return self._replace(score=scale * self.score, pair_shift=scaled)


NO_FEED_ACTS: Final = FeedActs()


class CandidateList(NamedTuple):
    """The candidates of some readers, in the order in which they are scored.

    Attributes:
        reader: The reader of each candidate.
        post: The id of each candidate, or `NO_POST` if a draw gave no post.
        is_followed: Whether the reader follows the author.
    """

    reader: Int32
    post: Int32
    is_followed: Mask


class RankInputs(NamedTuple):
    """The inputs of ranking: lists of readers, visible posts, and parameters of scores."""

    audience: Audience
    outbox: Outbox
    scoring: Scoring

    def count(self, readers: Int32) -> int:
        """Return an upper bound of the number of candidates of some readers."""
        n = -1

        def count(scratch: RankScratch) -> bool:
            nonlocal n
            n = int(count_candidates(readers, *self, scratch))
            return n >= 0

        self._with_scratch(count)
        return n

    def list_all(self, readers: Int32) -> CandidateList:
        """Return all candidates of some readers."""
        n = self.count(readers)
        reader, post, is_followed = np.full(n, -1, np.int32), np.empty(n, np.int32), np.empty(n, np.bool_)
        self._with_scratch(lambda scratch: list_candidates(readers, *self, scratch, reader, post, is_followed) >= 0)
        n = int(np.count_nonzero(reader >= 0))
        return CandidateList(reader[:n], post[:n], is_followed[:n])

    def with_scores(self, readers: Int32, scorer: Scorer | None, pair_shift: Scorer | None) -> Self:
        """Return the inputs with scores for each candidate of some readers."""
        candidates = self.list_all(readers)
        user_scores, added = (_NO_SCORES if score is None else score(*candidates) for score in (scorer, pair_shift))
        return self._replace(scoring=self.scoring._replace(user_scores=user_scores, pair_shift=added))

    def rank(self, readers: Int32, feed: Int32, n_feed: UInt16) -> None:
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
    n_roots, n_agents = outbox.n + len(outbox.old_roots), len(outbox.start)
    try:
        scratch = _free_scratch.pop()
    except IndexError:
        scratch = make_scratch(0, 0, 0, 0, 0)
    size, has_room = max(_MIN_CANDIDATES, len(scratch.fresh) - LANES), len(scratch.root_bits) * 64 >= n_roots
    has_room &= len(scratch.n_better) >= n_writers and len(scratch.n_of_group) >= n_groups
    if not has_room or len(scratch.agent_bits) < len(outbox.has_posts):
        scratch = make_scratch(size, 2 * n_roots, 2 * n_writers, n_groups, n_agents)
    while not work(scratch):
        size *= 2
        scratch = make_scratch(size, 2 * n_roots, 2 * n_writers, n_groups, n_agents)
    _free_scratch.append(scratch)


class Depths(Restorable):
    """How far agents have read into each of the last rounds: chronological feeds continue where readers stopped.

    An agent knows a root if it has passed the root and follows the author, or if `Exposure` lists the root. These lists
    have roots that the agent wrote, read as a copy or in other feeds, or passed before its follows, mutes or blocks
    changed.

    Attributes:
        depth: Shape (agents, rounds); round r is in column ``r % rounds``. See `DepthTables`. Empty until first used.
        window: Number of visible rounds.
        opened: The last opened round; it has a column.
        old: Old roots: they have left the window, have visible copies, and are not yet in lists.
    """

    saved_fields = ("depth", "window", "opened", "old")

    def __init__(self) -> None:
        self.depth, self.old = np.zeros((0, 0), np.uint16), np.zeros(0, np.int32)
        self.window, self.opened = 0, -1
        self._rounds, self._filled = make_rounds(0, 0, 0), -1
        self._ranked: list[tuple[Int32, Int32]] = []

    def has_ranked(self, round_: int) -> bool:
        """Return whether the feeds of a round were ranked by depth."""
        return self.opened == round_ and bool(self._ranked)

    def _kernel_tables(self, posts: Posts) -> DepthTables:
        """Return the inputs of kernels, with the posts of all opened rounds."""
        n_agents, rows = self.depth.shape
        rounds = range(max(self.opened - rows + 1, 0), self.opened + 1)
        ends = np.searchsorted(posts.round, np.arange(rounds.start, rounds.stop + 1, dtype=np.int32)).tolist()
        largest = max(last - first for first, last in pairwise(ends))
        if largest > self._rounds.item.shape[1] or self._rounds.has_posts.shape != (rows, n_agents // 64 + 1):
            self._rounds, self._filled = make_rounds(rows, n_agents, 2 * largest), -1
        for round_, (first, last) in zip(rounds, pairwise(ends), strict=True):
            if round_ > self._filled:
                add_round(first, last, posts.root, posts.author, posts.round, round_ % rows, self._rounds)
        self._filled = self.opened
        return DepthTables(self.depth, self._rounds, self.window, self.old, posts.author, posts.round)

    def open(self, n_agents: int, now: int, window: int = 0) -> None:
        """Add a round, in which agents have passed no posts yet. The first call needs `window`."""
        n, rows = self.depth.shape
        if not n:
            rows, self.window, self.opened = window + _SPARE_ROUNDS, window, now - 1
        if n < n_agents:
            newcomers = np.full((n_agents - n, rows), NOTHING_PASSED, np.uint16)
            self.depth = np.concatenate([self.depth.reshape(n, rows), newcomers])
        if self.opened < now:
            self.depth[:, now % rows] = NOTHING_PASSED
            self.opened, self._ranked = now, []

    def rank(
        self,
        readers: Int32,
        max_posts: Int32 | None,
        audience: Audience,
        recent: Lists,
        outbox: Outbox,
        population: Population,
        posts: Posts,
        now: int,
        block: int,
        threads: int,
    ) -> None:
        """Write a chronological feed of up to `max_posts` posts for each reader."""
        if max_posts is None:
            max_posts = np.full(len(readers), population.feed.shape[1], np.int32)
        self._ranked.append((readers, max_posts))
        tables = self._kernel_tables(posts)
        visible = np.arange(max(now - self.window + 1, 0), now + 1) % self.depth.shape[1]
        is_active = np.bitwise_or.reduce(tables.rounds.has_posts[visible])
        shared = now, tables, is_active, audience, recent, outbox

        def rank_block(first: int) -> None:
            part, n_ranked = slice(first, first + block), 0

            def rank_more(scratch: RankScratch) -> bool:
                nonlocal n_ranked
                feeds = scratch, population.feed, population.n_feed
                n_ranked = rank_by_depth(readers[part], n_ranked, max_posts[part], *shared, *feeds)
                return bool(n_ranked == len(readers[part]))

            with_scratch(rank_more, outbox)

        map_in_threads(rank_block, range(0, len(readers), block), threads)

    def note_read(self, population: Population, posts: Posts, now: int) -> None:
        """Update depths with the posts that readers have read in this round."""
        if len(self.depth):
            self.open(len(population), now)
        feeds = population.feed, population.n_feed, population.n_read
        for readers, max_posts in self._ranked:
            update_depths(readers, max_posts, now, self._kernel_tables(posts), *feeds)

    def list_uncovered(
        self, read_pairs: Sequence[Pairs], impressions: Sequence[tuple[Int32, ...]], n_read: UInt16
    ) -> list[Pairs]:
        """Return the roots read in this round that depths do not cover, from all impressions of the round."""
        if not self._ranked or self._rounds.n.max() >= NOTHING_PASSED:  # depths of large rounds are not exact
            return list(read_pairs)
        is_deep = np.zeros(len(n_read), np.bool_)
        for readers, _ in self._ranked:
            is_deep[readers] = True
        columns = zip(read_pairs, impressions, strict=True)
        parts = [Pairs(*list_uncovered(part.agents, post, part.roots, is_deep, n_read)) for part, (*_, post) in columns]
        return [part for part in parts if len(part.agents)]

    def list_departing(self, network: FollowNetwork, posts: Posts, shown_bits: UInt8) -> Pairs:
        """Return the roots leaving the window that agents have passed, as pairs (agent, root) for `Exposure`.

        Only roots with a bit in `shown_bits` are kept. Each round handles a part of the agents. After `_SPARE_ROUNDS`
        rounds, all agents that passed a root have it in their lists.
        """
        if not len(self.depth):
            return NO_PAIRS
        now, (n_agents, rows) = self.opened, self.depth.shape
        first, stop = (posts.first_visible(round_, self.window) for round_ in (now, now + 1))
        departing = np.arange(first, stop, dtype=np.int32)
        old = np.append(self.old, departing[posts.root[departing] == departing])
        old = old[shown_bits[old >> 3] >> (old & 7) & 1 == 1]
        spare = rows - self.window
        agents = np.arange(now % spare, n_agents, spare, dtype=np.int32)
        self.old = old[posts.round[old] > now - rows + 2]
        return self._passed_pairs(agents, old, network, posts)

    def passed_roots(self, agents: Rows, network: FollowNetwork, posts: Posts, now: int) -> Pairs:
        """Return pairs of these agents and all roots that they have passed as round `now` opens, ascending."""
        rows = np.unique(agents[agents < len(self.depth)]).astype(np.int32)
        rows = rows[(self.depth[rows] != NOTHING_PASSED).any(axis=1)]
        if not len(rows):
            return NO_PAIRS
        first, stop = posts.first_visible(now, self.window), posts.first_visible(self.opened + 1, 1)
        visible = np.arange(first, stop, dtype=np.int32)
        roots = np.append(self.old, visible[posts.root[visible] == visible])
        return self._passed_pairs(rows, roots, network, posts)

    def reset(self, agents: Rows, network: FollowNetwork, posts: Posts, now: int) -> Pairs:
        """Clear the depths of these agents, and return the pairs of `passed_roots`."""
        passed = self.passed_roots(agents, network, posts, now)
        self.depth[agents[agents < len(self.depth)]] = NOTHING_PASSED
        return passed

    def _passed_pairs(self, agents: Int32, roots: Int32, network: FollowNetwork, posts: Posts) -> Pairs:
        return Pairs(*list_passed(agents, roots, self._kernel_tables(posts), network.indptr, network.indices))


class Discoveries(NamedTuple):
    """Trending posts and search results, as local numbers of roots (`Outbox`), best first.

    Attributes:
        trending: The posts with the highest velocity; ties go to the newer post.
        search_results: The posts nearest to each topic, shape (topics, posts), then `NO_POST`.
        query: The topic that each agent searches for, or -1.
    """

    trending: Int32
    search_results: Int32
    query: npt.NDArray[np.int16]

    def limit_to(self, params: CandidateParams | SlotParams) -> Self:
        """Return the first posts of each kind, as many as `params` sets."""
        trending, search_results = self.trending[: params.trending], self.search_results[:, : params.search].copy()
        return self._replace(trending=trending, search_results=search_results)


def discover(
    readers: Int32,
    outbox: Outbox,
    population: Population,
    posts: Posts,
    params: FeedParams,
    streams: Streams,
    now: int,
    acts: FeedActs = NO_FEED_ACTS,
) -> Discoveries:
    """Return trending posts and the search results of some readers, as many as candidates or slots need.

    The same acts must leave posts out for all readers.
    """
    n_trending, n_results = (
        max(getattr(params.candidates, key), getattr(params.slots, key)) for key in ("trending", "search")
    )
    query = np.zeros(0, np.int16)
    if not (n_trending or n_results):
        return Discoveries(np.zeros(0, np.int32), np.zeros((len(posts.topics.names), 0), np.int32), query)
    ids = np.arange(outbox.first, len(posts))
    roots = ids[posts.root[ids] == ids]
    if len(acts.post_bits):
        roots = roots[acts.added_scores(acts.reader_bits[readers[0]])[roots - outbox.first] > -np.inf]
    if n_results:
        query = np.full(len(population), -1, np.int16)
        query[readers] = _draw_search_topics(readers, population, posts, streams, now)
    growing = roots[posts.velocity[roots] > 0]
    best = growing[np.lexsort((growing, posts.velocity[growing]))[::-1][:n_trending]] - outbox.first
    return Discoveries(best.astype(np.int32), _search(roots, posts, n_results, outbox.first), query)


def _search(roots: Rows, posts: Posts, max_posts: int, first: int) -> Int32:
    topics = posts.topics.name_vectors.astype(np.int64)
    results = np.full((len(topics), min(max_posts, len(roots))), NO_POST, np.int32)
    if not results.size:
        return results
    texts, text_indices = np.unique(posts.text_id[roots], return_inverse=True)
    vectors = posts.text_vectors[texts].astype(np.int64)
    for row, axis in zip(results, topics, strict=True):
        similarity = (vectors @ axis)[text_indices]
        matching = np.flatnonzero(similarity > 0)
        key = similarity[matching] << 32 | roots[matching]
        best = np.sort(np.partition(key, -max_posts)[-max_posts:] if len(key) > max_posts else key)[::-1]
        row[: len(best)] = (best & 0xFFFFFFFF) - first
    return results


def _draw_search_topics(
    readers: Int32, population: Population, posts: Posts, streams: Streams, now: int
) -> npt.NDArray[np.int16]:
    if not posts.topics.names:
        return np.full(len(readers), -1, np.int16)
    nearest = posts.topics.nearest_names(population.interests[readers], _N_SEARCH_TOPICS)
    n_near = (nearest >= 0).sum(axis=1)  # these come first
    picks = (streams.uniform("search", readers, round_=now) * n_near).astype(np.int64)
    return nearest[np.arange(len(readers)), picks]


def rank_feeds(
    agents: Rows,
    population: Population,
    posts: Posts,
    exposure: Exposure,
    network: FollowNetwork,
    params: FeedParams,
    streams: Streams,
    now: int,
    *,
    threads: int = 1,
    block: int = BLOCK,
    scorer: Scorer | None = None,
    hidden: tuple[Ints, Int32] = NOBODY_HIDDEN,
    read_copies: Exposure = NO_EXPOSURE,
    groups: Groups | None = None,
    depths: Depths | None = None,
    max_posts: Int32 | None = None,
    acts: FeedActs = NO_FEED_ACTS,
    sort_posts: Callable[[], Outbox] | None = None,
) -> None:
    """Write this round's feed of each of `agents` (row numbers, each once) into the population.

    A feed has up to `feed.size` posts, or `max_posts` (one number per agent), best first, by other agents and from the
    last `feed.window` rounds. It leaves out roots that the agent has read (`exposure`) or written, and `hidden` authors
    (`Relations.hidden_rows`), and shows only the best-ranked copy of a root. If roots can be shown again, `exposure`
    has only those that cannot, and `read_copies` the copies that each agent has read. Roots that `depths` cover need
    not be in `exposure`. `acts` take posts out or change their scores. `sort_posts` returns `make_outbox` of the round.
    """
    population.n_read[agents] = population.n_feed[agents] = 0
    n_visible = len(posts) - posts.first_visible(now, params.window)
    if not n_visible or not len(agents):
        return
    readers, is_plain = np.ascontiguousarray(agents, np.int32), not (read_copies.is_used or len(acts.reader_bits))
    if depths is not None and is_plain and ranks_by_depth(params, n_visible, network):
        depths.open(len(population), now, params.window)
        long, recent = exposure.long_and_recent
        audience = Audience(network.indptr, network.indices, *long, *hidden, *read_copies.lists)
        outbox = _unsorted_outbox(posts, params, len(population), now)
        depths.rank(readers, max_posts, audience, recent, outbox, population, posts, now, block, threads)
        return
    if depths is not None:
        exposure.add(*depths.reset(readers, network, posts, now))
    outbox = sort_posts() if sort_posts else make_outbox(posts, params, len(population), now, threads, acts)
    discoveries = discover(readers, outbox, population, posts, params, streams, now, acts)
    audience = Audience(network.indptr, network.indices, *exposure.lists, *hidden, *read_copies.lists)
    scoring = make_scoring(outbox, population, posts, params, streams, now, discoveries, groups, acts)
    inputs, feeds = RankInputs(audience, outbox, scoring), (population.feed, population.n_feed)

    def rank_block(first: int) -> None:
        block_readers = readers[first : first + block]
        is_plain = scorer is None and acts.pair_shift is None
        for part in (block_readers,) if is_plain else _split(block_readers, inputs):
            (inputs if is_plain else inputs.with_scores(part, scorer, acts.pair_shift)).rank(part, *feeds)
        if params.slots.trending or params.slots.search:
            fill_slots(block_readers, *discoveries.limit_to(params.slots), params.slots.every, *inputs, *feeds)

    map_in_threads(rank_block, range(0, len(readers), block), threads)
    if max_posts is not None:
        population.n_feed[readers] = np.minimum(population.n_feed[readers], max_posts)


def ranks_by_depth(params: FeedParams, n_visible: int, network: FollowNetwork) -> bool:
    """Return whether feeds continue where readers stopped, instead of visiting all visible posts.

    This holds for chronological feeds with followed agents only and a window of at most `_MAX_WINDOW` rounds, if an
    average agent would have more than `FEW_CANDIDATES` candidates.
    """
    is_plain = params.ranking == "chronological" and params.candidates.followed is None and not params.shows_unfollowed
    is_long = n_visible * network.n_edges > FEW_CANDIDATES * network.n_agents**2
    return is_plain and params.window <= _MAX_WINDOW and is_long


def _split(readers: Int32, inputs: RankInputs) -> Iterator[Int32]:
    if len(readers) == 1 or inputs.count(readers) <= _MAX_PAIRS:
        yield readers
        return
    for half in np.array_split(readers, 2):
        yield from _split(half, inputs)


def make_outbox(
    posts: Posts, params: FeedParams, n_agents: int, now: int, threads: int = 1, acts: FeedActs = NO_FEED_ACTS
) -> Outbox:
    """Return the posts that feeds of a round can show, by author; each thread handles a part of the authors.

    Posts that `acts` take out for all readers get no author, so they are in no author's list.
    """
    outbox = _unsorted_outbox(posts, params, n_agents, now)
    if not outbox.n:
        return outbox
    author, root, words = posts.author[outbox.first :], outbox.root, len(outbox.has_posts)
    if acts.common:
        author = np.where(acts.added_scores(acts.common) == -np.inf, np.int32(NO_POST), author)
    lowest_root, parts = int(root.min()), threads if len(outbox.start) > BLOCK else 1
    copies = np.zeros(int(root.max()) - lowest_root + 1, np.uint8)
    cuts = [words * part // parts * 64 for part in range(parts + 1)]
    rows = [mapped_zeros(2 * outbox.n, np.int32).reshape(2, -1) for _ in range(parts)]
    ranges = zip(pairwise(cuts), rows, strict=True)
    tasks = [partial(note_writers, author, *authors, outbox.has_posts, part[0]) for authors, part in ranges]
    _, *counts = run_in_threads([partial(count_copies, root, lowest_root, copies), *tasks], parts)
    number_writers(outbox.has_posts, outbox.writers)
    places = [(post[:n], writer[:n]) for (post, writer), n in zip(rows, counts, strict=True)]
    starts = accumulate(counts[:-1], initial=0)
    filled = zip(places, starts, strict=True)
    run_in_threads([partial(fill_outbox, author, root, lowest_root, copies, *part, outbox) for part in filled], parts)
    return outbox


def _unsorted_outbox(posts: Posts, params: FeedParams, n_agents: int, now: int) -> Outbox:
    first, words = posts.first_visible(now, params.window), n_agents // 64 + 1
    root = posts.root[first:]
    places = np.zeros(words, np.uint64), np.zeros(words, np.int32), mapped_zeros(n_agents + 2, np.int32)
    return Outbox(first, len(root), *places, mapped_zeros(len(root) + 1, np.uint64), np.sort(root[root < first]), root)


def make_scoring(
    outbox: Outbox,
    population: Population,
    posts: Posts,
    params: FeedParams,
    streams: Streams,
    now: int,
    discoveries: Discoveries,
    groups: Groups | None,
    acts: FeedActs = NO_FEED_ACTS,
) -> Scoring:
    """Return the inputs for scoring the visible posts of a round."""
    candidates, weights, is_x_algo = params.candidates, params.weights or params.x_algo, params.weights is not None
    groups = groups or NO_GROUPS
    gain, loss = predict_score_parts(outbox.root, posts, weights) if is_x_algo else (_NO_SCORES, 0.0)
    if params.mode == "bridging":
        gain = groups.counts.consensus(outbox.root, PRIOR_IMPRESSIONS)
    trending, search_results, query = discoveries.limit_to(candidates)
    return Scoring(
        mode=_MODES.get(params.ranking, USER_SCORES),
        key=streams.key("feed order", now, 0),
        post_key=posts.key,
        interests=population.interests,
        text_id=posts.text_id,
        vectors=posts.text_vectors,
        unit_length=UNIT_LENGTH,
        max_followed=-1 if candidates.followed is None else candidates.followed,
        n_outsiders=candidates.out_of_network + (weights.out_of_network if is_x_algo else 0),
        outsider_key=streams.key("out of network", now, 0),
        n_two_hops=candidates.two_hops,
        two_hops_key=streams.key("two hops", now, 0),
        trending=trending,
        search_results=search_results,
        query=query,
        gain=gain,
        loss=loss,
        factor=np.where(posts.kind[outbox.first :] == REPLY, weights.reply_factor, 1.0) if is_x_algo else _NO_SCORES,
        outsider_factor=weights.out_of_network_factor,
        diversity=diversity_factors(weights) if is_x_algo else np.ones(0 if params.mode == "diverse" else 1),
        group=groups.agent_groups,
        n_groups=groups.counts.n,
        author=posts.author,
        user_scores=_NO_SCORES,
        post_bits=acts.post_bits,
        reader_bits=acts.reader_bits,
        act_score=acts.score,
        hiding=acts.hiding,
        common=acts.common,
        pair_shift=_NO_SCORES,
    )


def predict_score_parts(roots: Rows, posts: Posts, params: XAlgoParams) -> tuple[Floats, float]:
    """Return the gain of posts with these roots, and their loss, which is the same for all.

    Both are sums of weighted probabilities. A probability is the observed rate per impression, shrunk towards the prior
    rate by `prior_impressions`. A score is ``2 * (relevance * gain + (1 - relevance) * loss)``.
    """
    like, reply, reshare = engagement_rates(roots, posts, params)
    gain = params.weight_like * like + params.weight_reshare * reshare
    gain = gain + (params.weight_reply + params.weight_reply_engaged * params.reply_engaged) * reply
    gain = gain + params.weight_good_click * params.rate_good_click
    gain = gain + params.weight_profile_click * params.rate_profile_click
    return gain, params.weight_negative * params.rate_negative + params.weight_report * params.rate_report


def engagement_rates(root: Rows, posts: Posts, params: XAlgoParams) -> tuple[Floats, Floats, Floats]:
    """Return likes, replies and reshares per impression of these roots, shrunk towards the prior rates."""
    prior = params.prior_impressions
    n_impressions = posts.impressions[root] + prior
    like = (posts.likes[root] + params.rate_like * prior) / n_impressions
    reply = (posts.replies[root] + params.rate_reply * prior) / n_impressions
    return like, reply, (posts.reshares[root] + params.rate_reshare * prior) / n_impressions


def diversity_factors(params: XAlgoParams) -> Floats:
    """Return the factors of scores for posts with 0, 1, 2, ... better-ranked posts by the same author in a feed."""
    n_better = np.arange(256)
    return np.asarray((1.0 - params.author_floor) * params.author_decay**n_better + params.author_floor)
