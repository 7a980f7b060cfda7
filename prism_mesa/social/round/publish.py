"""Publish posts (step 1 of a round), and commit the round's events (step 5)."""

from functools import lru_cache, partial
from typing import Final

import numpy as np

from prism_mesa.arrays import Int32, Ints, Mask, Rows
from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.commit.orders import new_post_keys, order_by_bits
from prism_mesa.kernels.commit.posts import count_by_root, nearest_texts
from prism_mesa.kernels.commit.seen import Pairs, mark_posts
from prism_mesa.kernels.utility import NO_MARKS
from prism_mesa.social.content.activity import store_notes
from prism_mesa.social.content.writer import write_own_posts
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import active_acts, draw_key, note_acts, note_given_up
from prism_mesa.social.round.collect import record_engagements, record_impressions, record_views
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.round.engagements import commit_engagements
from prism_mesa.social.round.follow_rules import NO_DECISIONS, Decisions, draw_decisions, draw_exposures
from prism_mesa.social.round.follows import commit_follows
from prism_mesa.social.round.opinions import commit_opinions, moved_stances
from prism_mesa.social.round.presence import note_sessions
from prism_mesa.social.state.chunks import blocks, map_in_threads, mapped_zeros, run_in_threads
from prism_mesa.social.state.events import LIKE, Events
from prism_mesa.social.state.exposure import NO_PAIRS, sort_pairs
from prism_mesa.social.state.feeds import is_true
from prism_mesa.social.state.posts import NO_PARENT, POST, REPLY, RESHARE
from prism_mesa.social.tables import COUNTERS
from prism_mesa.streams import Streams

N_TEXTS_CONSIDERED: Final = 4
_MIN_AGENTS_FOR_THREADS: Final = 1 << 15
"""Minimum number of agents for which threads share the steps of a commit."""
_KIND_OF_ACTION: Final = np.array([{"reply": REPLY, "reshare": RESHARE}.get(action, POST) for action in ACTIONS])


def publish(platform: Platform, is_online: Mask) -> None:
    """Add the agents' own posts and the posts scheduled for this round.

    If `agents.posting` is `online`, only agents in `is_online` post. Posts get their ids in a keyed order, so that no
    agent always has the newest post. Scheduled posts keep their order.
    """
    population, posts, now = platform.population, platform.posts, platform.round
    platform.first_of_round = len(posts)
    is_writing = platform.streams.draw_events("posts", population.post_rate, round_=now)
    if platform.params.agents.posting == "online":
        is_writing &= is_online
    writers = np.flatnonzero(is_writing & population.present)
    n = len(writers)
    author, text = platform.schedule.posts_in_round(now)
    is_present = population.present[author]
    platform.totals["unwritten"] += int(np.count_nonzero(~is_present))
    author = np.concatenate([writers, author[is_present]])
    drawn_texts = _nearest_texts(platform, writers)
    key = platform.streams.bits("post", author, round_=now, index=np.concatenate([drawn_texts, text[is_present]]))
    text = np.concatenate([write_own_posts(platform, writers, drawn_texts), text[is_present]])  # not in keys
    wording = np.pad(posts.new_wordings(text[:n]), (0, len(text) - n))
    order_key = np.append(key[:n], np.sort(key[n:]))
    order = order_by_bits(np.zeros(len(order_key), np.int32), order_key, 1)
    author, text, wording = author.take(order), text.take(order), wording.take(order)
    posts.add(author, text, now, POST, NO_PARENT, None, key.take(order), wording=wording)
    platform.counts["posts"] = len(author) + _publish_for_platform(platform)


def _publish_for_platform(platform: Platform) -> int:
    """Add the posts that interventions let accounts publish, and return their number."""
    n_before, posts = len(platform.posts), platform.posts
    for index, act in active_acts(platform, "post"):
        params = act.post
        if params is None or (platform.round - act.at) % (params.every or platform.params.rounds):
            continue
        rows = np.flatnonzero(platform.population.present)
        rows = rows[is_true(params.by, len(rows), AgentColumns(platform, rows))]
        [text] = posts.add_texts([params.text])
        key = platform.streams.bits(f"post of {draw_key(act)}", rows, round_=platform.round)
        ids = posts.add(rows, np.full(len(rows), text), platform.round, POST, NO_PARENT, None, key)
        for name, value in params.attributes.items():
            place, attribute = platform.attributes.schema.post_attribute(name)
            posts.attributes[ids, place] = attribute.number(value)
        note_acts(platform, "post", index, act, posts=ids, agents=rows)
    return len(posts) - n_before


def _nearest_texts(platform: Platform, authors: Rows) -> Int32:
    """Return the text that each author posts: the nearest to its interests among a few drawn circulating texts."""
    key = platform.streams.key("text", platform.round, 0)
    current, interests = circulating_texts(platform).astype(np.int32), platform.population.interests
    writers, texts = authors.astype(np.int32), np.empty(len(authors), np.int32)

    def draw(part: slice) -> None:
        nearest_texts(key, writers[part], current, interests, platform.topics.vectors, N_TEXTS_CONSIDERED, texts[part])

    map_in_threads(draw, list(blocks(len(texts))), platform.params.threads)
    return texts


def circulating_texts(platform: Platform) -> Ints:
    """Return the texts of the corpus that circulate in this round.

    Texts are in a random order. A window moves along this order by one text per round, and wraps around at the end.
    """
    n_texts = len(platform.posts.corpus.texts)
    positions = platform.round + np.arange(min(platform.params.posts.circulating, n_texts))
    return _text_order(platform.streams, n_texts)[positions % n_texts]


@lru_cache(maxsize=1)
def _text_order(streams: Streams, n_texts: int) -> Ints:
    return np.argsort(streams.bits("circulation", np.arange(n_texts)))


def commit(platform: Platform) -> None:
    """Apply the round's events to counters, cascades, follows and opinions, independently of their order.

    Replies and reshares become posts that appear in the next round.
    """
    platform.depths.note_read(platform.population, platform.posts, platform.round)
    threads = platform.params.threads if len(platform.population) >= _MIN_AGENTS_FOR_THREADS else 1
    # counters must not move while posts are added
    fills = platform.posts.make_room(platform.events.max_new_posts)
    steps = partial(_count_impressions, platform), partial(commit_engagements, platform)
    *_, read_pairs, engagements = run_in_threads([*fills, *steps], threads)
    _, agent, post, action = engagements
    record_impressions(platform, platform.events.impressions)  # in this thread, because a recorder may only work here
    record_views(platform, [part.roots for part in read_pairs])
    note_sessions(platform)
    decisions = NO_DECISIONS
    if platform.params.network.dynamics == "live":
        _, readers, seen_posts = platform.events.all_impressions()
        decisions = draw_decisions(platform, draw_exposures(platform, readers, seen_posts), (agent, post))
    stances = moved_stances(platform, engagements)
    if platform.groups is not None and platform.feeds.is_bridging(platform.round):
        _, readers, seen_posts = platform.events.all_impressions()
        groups, root = platform.groups, platform.posts.root
        groups.counts.count(len(platform.posts), groups.agent_groups, (readers, root[seen_posts]), (agent, root[post]))
    count = partial(_count, platform, post, action)
    run_in_threads([count, partial(_commit_posts, platform, read_pairs, decisions, *engagements)], threads)
    commit_opinions(platform, stances)
    store_notes(platform)
    record_engagements(platform, *engagements)
    note_given_up(platform)
    platform.marks = NO_MARKS  # labels are of posts and agents as the round opened
    platform.events = Events(moves=platform.events.moves)


def _count_impressions(platform: Platform) -> list[Pairs]:
    events, posts, n_agents = platform.events, platform.posts, len(platform.population)
    events.sort_impressions(n_agents)
    counts = mapped_zeros(len(posts), np.int32)
    read_pairs = [Pairs(agent, count_by_root(post, posts.root, counts)) for _, agent, post in events.impressions]
    first = min((int(post.min()) for *_, post in events.impressions), default=len(posts))
    platform.outcomes.count_impressions(posts, n_agents, posts.root[first:], counts)
    platform.counts["impressions"] = sum(len(part.agents) for part in read_pairs)
    return read_pairs


def _count(platform: Platform, post: Int32, action: Int32) -> None:
    likes, replies = platform.outcomes.count_engagements(platform.posts, post, action)
    for counter, n in zip(COUNTERS, (likes, replies, len(post) - likes - replies), strict=True):
        platform.counts[counter] = n


def _commit_posts(platform: Platform, read_pairs: list[Pairs], decisions: Decisions, *engagements: Int32) -> None:
    """Run the steps of a commit that do not read the counters of engagements."""
    _, agent, post, _ = engagements
    _add_spread_posts(platform, *engagements)
    _publish_written(platform)
    platform.outcomes.count_posts(platform.posts)
    _update_lists(platform, read_pairs, (agent, post), *commit_follows(platform, decisions))


def _add_spread_posts(platform: Platform, tick: Int32, agent: Int32, post: Int32, action: Int32) -> None:
    """Add replies and reshares as posts of the next round, ordered by tick and then by key."""
    posts, now = platform.posts, platform.round
    rows = np.flatnonzero(action != LIKE)
    tick, agent, post, action = (column.take(rows) for column in (tick, agent, post, action))
    kind = _KIND_OF_ACTION[action]
    key = new_post_keys(platform.streams.key("reshare", now), tick, agent, post, kind, posts.key)
    order = order_by_bits(tick, key, platform.params.ticks_per_round + 2)
    agent, post, action, kind, key = agent[order], post[order], action[order], kind[order], key[order]
    text_id, words = posts.compose_texts(post, kind, *platform.events.engagement_words(agent, post, action))
    root = np.where(kind == RESHARE, posts.root[post], NO_PARENT)
    ids = posts.add(agent, text_id, now + 1, kind, post, root, key, words, posts.wording[posts.root[post]], written=now)
    if softened := platform.events.softened:
        for new, row, parent, code in zip(*(c.tolist() for c in (ids, agent, post, kind)), strict=True):
            if code == REPLY and (row, parent) in softened:
                posts.attributes[new] = softened[row, parent][1]


def _publish_written(platform: Platform) -> None:
    """Add the posts that agents wrote by scripts and tools to the next round.

    A post's key depends only on round, author, and its position among the author's posts.
    """
    if not platform.events.written:
        return
    written = sorted(platform.events.written, key=lambda entry: entry[0])  # stable: keeps each agent's order
    author = np.array([row for row, _ in written])
    text_id = platform.posts.add_texts([text for _, text in written])
    index = np.arange(len(author)) - np.searchsorted(author, author)
    key = platform.streams.bits("written", author, round_=platform.round, index=index)
    platform.posts.add(author, text_id, platform.round + 1, POST, NO_PARENT, None, key, written=platform.round)


def _update_lists(
    platform: Platform, read_pairs: list[Pairs], engaged: tuple[Int32, ...], agents: Rows, roots: Rows
) -> None:
    """Add the roots that agents have read or written to their lists, and drop roots that feeds can no longer show.

    `agents` and `roots` are more pairs that feeds must not show. With `feed.repeats`, lists have only the roots that an
    agent has engaged with, not all that it has read.
    """
    posts, first, threads = platform.posts, platform.first_of_round, platform.params.threads
    written = first + np.flatnonzero(posts.root[first:] == np.arange(first, len(posts), dtype=np.int32))
    agents, roots = np.append(posts.author[written], agents), np.append(written, roots)
    shown_bits = np.zeros(len(posts) // 8 + 1, np.uint8)
    shown_bits[-1] = 255 << (len(posts) & 7) & 255  # posts of later rounds count as shown
    first_shown = posts.first_visible(platform.round + 1, platform.params.feed.window)
    mark_posts(posts.root[first_shown:], shown_bits)
    if platform.copies.is_used:
        platform.read_roots.update_lists(read_pairs, NO_PAIRS, shown_bits, threads)
        mark_posts(np.arange(first_shown, len(posts), dtype=np.int32), shown_bits)
        read_pairs = [Pairs(agent, post.copy()) for _, agent, post in platform.events.impressions]
        platform.copies.update_lists(read_pairs, NO_PAIRS, shown_bits, threads)
        read_pairs, (agent, post) = [], engaged
        agents, roots = np.append(agents, agent), np.append(roots, posts.root[post])
    depths, joined = platform.depths, not platform.depths.has_ranked(platform.round)
    read_pairs = depths.list_uncovered(read_pairs, platform.events.impressions, platform.population.n_read)
    departing = depths.list_departing(platform.network, posts, shown_bits)
    agents, roots = np.append(agents, departing.agents), np.append(roots, departing.roots)
    extra_pairs = sort_pairs(agents, roots, len(platform.population))
    platform.exposure.update_lists(read_pairs, extra_pairs, shown_bits, threads, joined=joined)
