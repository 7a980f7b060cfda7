"""What enters the table of posts, and when: the first and the fifth step of a round."""

from functools import lru_cache, partial
from typing import Final, NamedTuple

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
from prism_mesa.social.round.engagements import taken
from prism_mesa.social.round.follow_rules import NO_DECISIONS, Decisions, Exposures, by_rules, drawn_exposures
from prism_mesa.social.round.follows import commit_follows
from prism_mesa.social.round.opinions import hold, moved_by
from prism_mesa.social.state.attributes import Floats
from prism_mesa.social.state.chunks import blocks, in_threads, side_by_side
from prism_mesa.social.state.events import LIKE, Events, Int32
from prism_mesa.social.state.exposure import NO_PAIRS, in_order
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import NO_PARENT, POST, REPLY, RESHARE
from prism_mesa.social.tables import COUNTERS
from prism_mesa.streams import Streams

N_TEXTS_CONSIDERED: Final = 4
_MANY: Final = 1 << 15
"""Agents from which on threads share the steps of a commit."""
_KIND_OF_ACTION: Final[npt.NDArray[np.int64]] = np.array(
    [{"reply": REPLY, "reshare": RESHARE}.get(action, POST) for action in ACTIONS]
)


def publish(platform: Platform, comes: npt.NDArray[np.bool_]) -> None:
    """Add the posts that agents write of themselves and those that are scheduled for this round.

    `comes` says of each row whether its agent comes online; `agents.posting` says whether that matters.

    Agents' own posts get their ids in a keyed order: the newest post comes first in a feed, and no agent
    should always be the newest. Scheduled ones lie among them in the order of their file.
    """
    population, platform.first_of_round = platform.population, len(platform.posts)
    will = platform.streams.happens("posts", population.post_rate, round_=platform.round)
    if platform.params.agents.posting == "online":
        will &= comes
    own = np.flatnonzero(will & population.present)
    author, text = platform.schedule.of_round(platform.round)
    here = population.present[author]
    platform.totals["unwritten"] += int(np.count_nonzero(~here))
    author = np.concatenate([own, author[here]])
    drawn = _texts_of(platform, own)
    key = platform.streams.bits("post", author, round_=platform.round, index=np.concatenate([drawn, text[here]]))
    text = np.concatenate([own_posts(platform, own, drawn), text[here]])  # the key is of what was drawn all the same
    wording = np.pad(platform.posts.new_wordings(text[: len(own)]), (0, len(text) - len(own)))
    chance = key
    if len(author) > len(own):
        chance = key.copy()
        chance[len(own) :] = np.sort(chance[len(own) :])
    order = order_by_bits(np.zeros(len(chance), np.int32), chance, 1)
    author, text, wording = author.take(order), text.take(order), wording.take(order)
    platform.posts.add(author, text, platform.round, POST, NO_PARENT, None, key.take(order), wording=wording)
    platform.counts["posts"] = len(author)


def _texts_of(platform: Platform, authors: Rows) -> npt.NDArray[np.int32]:
    """Return what each author posts: of some texts that circulate, the one nearest to its interests."""
    key = platform.streams.key("text", platform.round, 0)
    current, interests = circulating(platform).astype(np.int32), platform.population.interests
    writers, out = authors.astype(np.int32), np.empty(len(authors), np.int32)

    def draw(part: slice) -> None:
        nearest_texts(key, writers[part], current, interests, platform.topics.vectors, N_TEXTS_CONSIDERED, out[part])

    in_threads(draw, list(blocks(len(out))), platform.params.threads)
    return out


def circulating(platform: Platform) -> npt.NDArray[np.int64]:
    """Return the texts of the corpus that are talked about in this round.

    All texts stand in a drawn order, of which a window moves on by one text a round, round and round.
    """
    texts = len(platform.posts.corpus.texts)
    places = platform.round + np.arange(min(platform.params.posts.circulating, texts))
    return _drawn_order(platform.streams, texts)[places % texts]


@lru_cache(maxsize=1)
def _drawn_order(streams: Streams, texts: int) -> npt.NDArray[np.int64]:
    return np.argsort(streams.bits("circulation", np.arange(texts)))


def commit(platform: Platform) -> None:
    """Let the round's events reach counters and cascades; the order in which they came about does not matter.

    Replies and reshares become posts, which appear in the next round.
    """
    platform.depths.note_read(platform.population, platform.posts, platform.round)
    threads = platform.params.threads if len(platform.population) >= _MANY else 1
    # counters stay where they are while there come to be more posts
    room = platform.posts.make_room(platform.events.n_engaged + len(platform.events.written))
    *_, read, engagements = side_by_side([*room, partial(_read, platform), partial(taken, platform)], threads)
    record_impressions(platform, platform.events.impressions)  # a recorder may belong to this thread
    record_views(platform, [part.roots for part in read])
    exposures, moved = _of_reading(platform)
    if moved is None:
        moved = moved_by(platform, "engaged", *engagements[:3])
    ruled = NO_DECISIONS if exposures is None else by_rules(platform, exposures, engagements[1:3])
    _count_by_group(platform, *engagements[1:3])
    count = partial(_count, platform, _window(platform), *engagements[2:])
    side_by_side([count, partial(_spread_and_remember, platform, read, ruled, *engagements)], threads)
    hold(platform, moved)
    keep_notes(platform)
    record_engagements(platform, *engagements)
    platform.events = Events(moves=platform.events.moves)


def _read(platform: Platform) -> list[Pairs]:
    """Count impressions, and return who has read which root."""
    events, root, counter = platform.events, platform.posts.root, platform.posts.impressions
    events.put_in_order(len(platform.population))
    read = [Pairs(agent, roots_counted(post, root, counter)) for _, agent, post in events.impressions]
    platform.counts["impressions"] = sum(len(part.agents) for part in read)
    return read


def _of_reading(platform: Platform) -> tuple[Exposures | None, Floats | None]:
    """Return what comes of what was read.

    That is what was drawn in a network that moves, and what agents hold whose opinions move by what they read.
    """
    exposures = moved = None
    if platform.params.network.dynamics == "live":
        _, readers, post = platform.events.seen()
        exposures = drawn_exposures(platform, readers, post, platform.posts.root[post])
    if platform.params.opinions.of is not None:
        moved = moved_by(platform, "read", *platform.events.seen())
    return exposures, moved


def _window(platform: Platform) -> slice:
    """Return which posts agents may have read in this round, by their ids."""
    first, now = platform.posts.first_visible, platform.round
    return slice(first(now, platform.params.feed.window), first(now + 1, 1))


def _count(platform: Platform, window: slice, post: Int32, action: Int32) -> None:
    """Count engagements, and the attention that authors of the posts of a window got."""
    platform.outcomes.count_attention(platform.posts, len(platform.population), window)
    likes, replies = platform.outcomes.count_engagements(platform.posts, post, action)
    for counter, n in zip(COUNTERS, (likes, replies, len(post) - likes - replies), strict=True):
        platform.counts[counter] = n


def _count_by_group(platform: Platform, agent: Rows, post: Rows) -> None:
    """Count who reads, and who engages, by groups of agents, where a feed has gone by it."""
    groups, root = platform.groups, platform.posts.root
    if groups is not None and platform.feeds.is_bridging(platform.round):
        _, readers, read = platform.events.seen()
        groups.counts.count(len(platform.posts), groups.of, (readers, root[read]), (agent, root[post]))


class _Copies(NamedTuple):
    """Engagements that become posts, in the order of these: who, with what, how, the kind of post, and its key."""

    agent: Int32
    post: Int32
    action: Int32
    kind: npt.NDArray[np.int64]
    key: npt.NDArray[np.uint64]


def _copies(platform: Platform, tick: Int32, agent: Int32, post: Int32, action: Int32) -> _Copies:
    """Return the replies and reshares among engagements, by tick and by a key."""
    spreads = np.flatnonzero(action != LIKE)
    tick, agent, post, action = (column.take(spreads) for column in (tick, agent, post, action))
    kind = _KIND_OF_ACTION[action]
    key = spread_keys(platform.streams.key("reshare", platform.round), tick, agent, post, kind, platform.posts.key)
    order = order_by_bits(tick, key, platform.params.ticks_per_round + 2)
    return _Copies(agent.take(order), post.take(order), action.take(order), kind.take(order), key.take(order))


def _spread_and_remember(platform: Platform, read: list[Pairs], ruled: Decisions, *engagements: Int32) -> None:
    """Do what does not ask how often something was engaged with."""
    _spread(platform, *engagements)
    _publish_written(platform)
    platform.outcomes.count_posts(platform.posts)
    _remember(platform, read, engagements[1:3], *commit_follows(platform, ruled))


def _spread(platform: Platform, *engagements: Int32) -> None:
    """Let the replies and reshares among engagements become posts of the next round."""
    posts = platform.posts
    agent, post, action, kind, key = _copies(platform, *engagements)
    text_id, words = posts.worded(post, kind, *platform.events.words(agent, post, action))
    root = np.where(kind == RESHARE, posts.root[post], NO_PARENT)
    wording = posts.wording[posts.root[post]]
    posts.add(agent, text_id, platform.round + 1, kind, post, root, key, words, wording, written=platform.round)


def _publish_written(platform: Platform) -> None:
    """Let what agents have written in scripts and while they thought become posts of the next round.

    A draw about a post depends on its author and on which of the author's posts it is, not on what others wrote.
    """
    if not platform.events.written:
        return
    written = sorted(platform.events.written, key=lambda entry: entry[0])  # stable: each agent's in its own order
    author = np.array([row for row, _ in written])
    text_id = platform.posts.add_texts([text for _, text in written])
    which = np.arange(len(author)) - np.searchsorted(author, author)
    key = platform.streams.bits("written", author, round_=platform.round, index=which)
    platform.posts.add(author, text_id, platform.round + 1, POST, NO_PARENT, None, key, written=platform.round)


def _remember(platform: Platform, read: list[Pairs], engaged: tuple[Int32, ...], agents: Rows, roots: Rows) -> None:
    """Note who knows a root, having read it or written it this round; let go of roots that can no more be shown.

    What some agents are never to be shown comes beside it. Where roots can be shown again only those count as known
    that an agent has engaged with.
    """
    posts, first = platform.posts, platform.first_of_round
    threads = platform.params.threads
    own = first + np.flatnonzero(posts.root[first:] == np.arange(first, len(posts), dtype=np.int32))
    agents, roots = np.append(posts.author[own], agents), np.append(own, roots)
    shown = np.zeros(len(posts) // 8 + 1, np.uint8)
    shown[-1] = 255 << (len(posts) & 7) & 255  # no post of a later round has been out of view
    still = posts.first_visible(platform.round + 1, platform.params.feed.window)
    mark(posts.root[still:], shown)
    if platform.copies.is_used:
        platform.met.renew(read, NO_PAIRS, shown, threads)
        mark(np.arange(still, len(posts), dtype=np.int32), shown)
        read = [Pairs(agent, post.copy()) for _, agent, post in platform.events.impressions]
        platform.copies.renew(read, NO_PAIRS, shown, threads)
        read, (agent, post) = [], engaged
        agents, roots = np.append(agents, agent), np.append(roots, posts.root[post])
    beside = in_order(agents, roots, len(platform.population))
    platform.exposure.renew(read, beside, shown, threads, joined=not platform.depths.ranked_in(platform.round))
