"""The first and fifth steps of a round: publish posts, and commit the round's events."""

from functools import lru_cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.commit.orders import order_by_bits, spread_keys
from prism_mesa.kernels.commit.posts import nearest_texts, roots_counted
from prism_mesa.kernels.commit.seen import Pairs, mark
from prism_mesa.social.content.activity import keep_notes
from prism_mesa.social.content.writer import own_posts
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.collect import record_engagements, record_impressions, record_views
from prism_mesa.social.round.engagements import commit_engagements
from prism_mesa.social.round.follow_rules import NO_DECISIONS, Decisions, draw_decisions, drawn_exposures
from prism_mesa.social.round.follows import commit_follows
from prism_mesa.social.round.opinions import commit_opinions, moved_stances
from prism_mesa.social.state.chunks import blocks, in_threads, side_by_side
from prism_mesa.social.state.events import LIKE, Events, Int32
from prism_mesa.social.state.exposure import NO_PAIRS, in_order
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import NO_PARENT, POST, REPLY, RESHARE
from prism_mesa.social.tables import COUNTERS
from prism_mesa.streams import Streams

N_TEXTS_CONSIDERED: Final = 4
_MIN_AGENTS_FOR_THREADS: Final = 1 << 15
"""Number of agents from which on threads share the steps of a commit."""
_KIND_OF_ACTION: Final[npt.NDArray[np.int64]] = np.array(
    [{"reply": REPLY, "reshare": RESHARE}.get(action, POST) for action in ACTIONS]
)


def publish(platform: Platform, is_online: npt.NDArray[np.bool_]) -> None:
    """Add the agents' own posts and the posts scheduled for this round.

    `is_online` tells which agents come online, for `agents.posting=online`. Posts get their ids in a keyed order, so
    that no agent always has the newest post; scheduled posts keep their order.
    """
    population, posts, now = platform.population, platform.posts, platform.round
    platform.first_of_round = len(posts)
    is_writing = platform.streams.happens("posts", population.post_rate, round_=now)
    if platform.params.agents.posting == "online":
        is_writing &= is_online
    writers = np.flatnonzero(is_writing & population.present)
    n = len(writers)
    author, text = platform.schedule.of_round(now)
    is_present = population.present[author]
    platform.totals["unwritten"] += int(np.count_nonzero(~is_present))
    author = np.concatenate([writers, author[is_present]])
    drawn = _nearest_texts(platform, writers)
    key = platform.streams.bits("post", author, round_=now, index=np.concatenate([drawn, text[is_present]]))
    text = np.concatenate([own_posts(platform, writers, drawn), text[is_present]])  # keys depend on drawn texts only
    wording = np.pad(posts.new_wordings(text[:n]), (0, len(text) - n))
    order_key = key
    if len(author) > n:
        order_key = key.copy()
        order_key[n:] = np.sort(order_key[n:])
    order = order_by_bits(np.zeros(len(order_key), np.int32), order_key, 1)
    author, text, wording = author.take(order), text.take(order), wording.take(order)
    posts.add(author, text, now, POST, NO_PARENT, None, key.take(order), wording=wording)
    platform.counts["posts"] = len(author)


def _nearest_texts(platform: Platform, authors: Rows) -> Int32:
    """Return the text that each author posts: of some drawn circulating texts, the nearest to its interests."""
    key = platform.streams.key("text", platform.round, 0)
    current, interests = circulating(platform).astype(np.int32), platform.population.interests
    writers, texts = authors.astype(np.int32), np.empty(len(authors), np.int32)

    def draw(part: slice) -> None:
        nearest_texts(key, writers[part], current, interests, platform.topics.vectors, N_TEXTS_CONSIDERED, texts[part])

    in_threads(draw, list(blocks(len(texts))), platform.params.threads)
    return texts


def circulating(platform: Platform) -> npt.NDArray[np.int64]:
    """Return the texts of the corpus that circulate in this round.

    The texts have a drawn order. A window moves along this order by one text a round, and starts again at its end.
    """
    texts = len(platform.posts.corpus.texts)
    positions = platform.round + np.arange(min(platform.params.posts.circulating, texts))
    return _drawn_order(platform.streams, texts)[positions % texts]


@lru_cache(maxsize=1)
def _drawn_order(streams: Streams, texts: int) -> npt.NDArray[np.int64]:
    return np.argsort(streams.bits("circulation", np.arange(texts)))


def commit(platform: Platform) -> None:
    """Apply the round's events to counters, cascades, follows and opinions, independently of their order.

    Replies and reshares become posts that appear in the next round.
    """
    platform.depths.note_read(platform.population, platform.posts, platform.round)
    threads = platform.params.threads if len(platform.population) >= _MIN_AGENTS_FOR_THREADS else 1
    # counters must not move while posts are added
    fills = platform.posts.make_room(platform.events.n_engaged + len(platform.events.written))
    steps = partial(_count_impressions, platform), partial(commit_engagements, platform)
    *_, read_pairs, engagements = side_by_side([*fills, *steps], threads)
    _, agent, post, action = engagements
    record_impressions(platform, platform.events.impressions)  # in this thread, because a recorder may be bound to it
    record_views(platform, [part.roots for part in read_pairs])
    decisions = NO_DECISIONS
    if platform.params.network.dynamics == "live":
        _, readers, seen = platform.events.seen()
        decisions = draw_decisions(platform, drawn_exposures(platform, readers, seen), (agent, post))
    stances = moved_stances(platform, engagements)
    if platform.groups is not None and platform.feeds.is_bridging(platform.round):
        _, readers, seen = platform.events.seen()
        groups, root = platform.groups, platform.posts.root
        groups.counts.count(len(platform.posts), groups.of, (readers, root[seen]), (agent, root[post]))
    first, now = platform.posts.first_visible, platform.round
    visible = slice(first(now, platform.params.feed.window), first(now + 1, 1))
    count = partial(_count, platform, visible, post, action)
    side_by_side([count, partial(_spread_and_remember, platform, read_pairs, decisions, *engagements)], threads)
    commit_opinions(platform, stances)
    keep_notes(platform)
    record_engagements(platform, *engagements)
    platform.events = Events(moves=platform.events.moves)


def _count_impressions(platform: Platform) -> list[Pairs]:
    events, root, counter = platform.events, platform.posts.root, platform.posts.impressions
    events.put_in_order(len(platform.population))
    read = [Pairs(agent, roots_counted(post, root, counter)) for _, agent, post in events.impressions]
    platform.counts["impressions"] = sum(len(part.agents) for part in read)
    return read


def _count(platform: Platform, visible: slice, post: Int32, action: Int32) -> None:
    platform.outcomes.count_attention(platform.posts, len(platform.population), visible)
    likes, replies = platform.outcomes.count_engagements(platform.posts, post, action)
    for counter, n in zip(COUNTERS, (likes, replies, len(post) - likes - replies), strict=True):
        platform.counts[counter] = n


def _spread_and_remember(platform: Platform, read: list[Pairs], decisions: Decisions, *engagements: Int32) -> None:
    """Take the steps of a commit that do not read the counters of engagements."""
    _, agent, post, _ = engagements
    _spread(platform, *engagements)
    _publish_written(platform)
    platform.outcomes.count_posts(platform.posts)
    _remember(platform, read, (agent, post), *commit_follows(platform, decisions))


def _spread(platform: Platform, tick: Int32, agent: Int32, post: Int32, action: Int32) -> None:
    """Add replies and reshares as posts of the next round, by tick and then by a key."""
    posts, now = platform.posts, platform.round
    spreads = np.flatnonzero(action != LIKE)
    tick, agent, post, action = (column.take(spreads) for column in (tick, agent, post, action))
    kind = _KIND_OF_ACTION[action]
    key = spread_keys(platform.streams.key("reshare", now), tick, agent, post, kind, posts.key)
    order = order_by_bits(tick, key, platform.params.ticks_per_round + 2)
    agent, post, action, kind, key = agent[order], post[order], action[order], kind[order], key[order]
    text_id, words = posts.worded(post, kind, *platform.events.words(agent, post, action))
    root = np.where(kind == RESHARE, posts.root[post], NO_PARENT)
    posts.add(agent, text_id, now + 1, kind, post, root, key, words, posts.wording[posts.root[post]], written=now)


def _publish_written(platform: Platform) -> None:
    """Add the posts that agents wrote by scripts and tools to the next round.

    Draws about a post depend only on its author and its position among the author's posts.
    """
    if not platform.events.written:
        return
    written = sorted(platform.events.written, key=lambda entry: entry[0])  # stable: keeps each agent's order
    author = np.array([row for row, _ in written])
    text_id = platform.posts.add_texts([text for _, text in written])
    index = np.arange(len(author)) - np.searchsorted(author, author)
    key = platform.streams.bits("written", author, round_=platform.round, index=index)
    platform.posts.add(author, text_id, platform.round + 1, POST, NO_PARENT, None, key, written=platform.round)


def _remember(platform: Platform, read: list[Pairs], engaged: tuple[Int32, ...], agents: Rows, roots: Rows) -> None:
    """Store the roots that agents have read or written, and drop roots that feeds can no longer show.

    `agents` and `roots` are pairs that feeds must not show. With `feed.repeats` an agent has read only the roots that
    it has engaged with.
    """
    posts, first, threads = platform.posts, platform.first_of_round, platform.params.threads
    written = first + np.flatnonzero(posts.root[first:] == np.arange(first, len(posts), dtype=np.int32))
    agents, roots = np.append(posts.author[written], agents), np.append(written, roots)
    shown = np.zeros(len(posts) // 8 + 1, np.uint8)
    shown[-1] = 255 << (len(posts) & 7) & 255  # posts of later rounds count as shown
    first_shown = posts.first_visible(platform.round + 1, platform.params.feed.window)
    mark(posts.root[first_shown:], shown)
    if platform.copies.is_used:
        platform.met.renew(read, NO_PAIRS, shown, threads)
        mark(np.arange(first_shown, len(posts), dtype=np.int32), shown)
        read = [Pairs(agent, post.copy()) for _, agent, post in platform.events.impressions]
        platform.copies.renew(read, NO_PAIRS, shown, threads)
        read, (agent, post) = [], engaged
        agents, roots = np.append(agents, agent), np.append(roots, posts.root[post])
    depths, joined = platform.depths, not platform.depths.ranked_in(platform.round)
    read = depths.unpassed(read, platform.events.impressions, platform.population.n_read)
    passed = depths.leave(platform.network, posts, shown)
    extra_pairs = in_order(agents, roots, len(platform.population))
    if len(passed.agents):
        extra_pairs = Pairs(np.append(extra_pairs.agents, passed.agents), np.append(extra_pairs.roots, passed.roots))
        order = np.argsort(extra_pairs.agents, kind="stable")  # merges the two
        extra_pairs = Pairs(extra_pairs.agents[order], extra_pairs.roots[order])
    platform.exposure.renew(read, extra_pairs, shown, threads, joined=joined)
