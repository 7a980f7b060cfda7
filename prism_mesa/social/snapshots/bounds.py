"""What must hold of the state that a snapshot brings back: kernels check no index, so none may lead outside.

All of them raise DataError, in one line, if something does not hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.deliberation import Notebook
from prism_mesa.domain import ACTIONS, FOLLOW_EVENTS, FOLLOW_REASONS
from prism_mesa.errors import DataError
from prism_mesa.snapshot import is_column, require, require_within
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.state.clock import Clock
from prism_mesa.social.state.engagements import Engagements
from prism_mesa.social.state.events import Events
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.groups import GroupCounts
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import GONE, NO_ACTION, NO_POST, History, Population
from prism_mesa.social.state.posts import NO_PARENT, POST, RESHARE, Posts
from prism_mesa.social.state.relations import Relations, pairs_of
from prism_mesa.social.state.sampling import Recorded
from prism_mesa.statechart import STATES

type Numbers = npt.NDArray[Any]

_ACTIONS: Final = len(ACTIONS)
_MOVES: Final = 5
_MOST: Final = 2**31


def check_time(time: Clock, round_: int, tick: int) -> None:
    """Check that round and tick are some that a run can have."""
    require(round_ >= -1 and time.number(round_ + 2, 0) < _MOST, f"round {round_:,} is none that can be")
    time.at(time.number(round_ + 2, 0))  # an OverflowError, if there is no such date
    require(0 <= tick <= time.ticks_per_round + 1, f"round {round_:,} has no tick {tick:,}")


def check_population(population: Population, n_posts: int) -> None:
    """Check all columns of agents."""
    n = len(population.ids)
    lengths = {len(getattr(population, name)) for name in (*population.changes, "feed")}
    require(lengths == {n}, f"columns of {n:,} agents differ in length")
    require_within("an agent's state", population.state, 0, len(STATES))
    require_within("what an agent is to the platform", population.membership, 0, GONE + 1)
    for name in ("traits", "propensities", "engagement_threshold", "activity", "post_rate"):
        require(bool(np.isfinite(getattr(population, name)).all()), f"an agent's {name} is no number")
    known = population.pending_action[population.pending_action != NO_ACTION]
    require_within("an agent's pending action", known, 0, _ACTIONS)
    require_within("an agent's current post", population.current_post, NO_POST, n_posts)
    require_within("an agent's ticks", population.ticks_in_state, 0, _MOST)
    require_within("an agent's limit of ticks", population.timeout_threshold, 1, _MOST)
    read, shown = population.n_read, population.n_feed
    require(bool((read <= shown).all()), "an agent has read more posts than its feed has")
    require_within("a feed's length", shown, 0, population.feed.shape[1] + 1)
    require_within("a post of a feed", population.range_shown(), 0, n_posts)


def check_network(network: FollowNetwork, n: int) -> None:
    """Check who follows whom among `n` agents."""
    for what, start, entries in (
        ("the network", network.indptr, network.indices),
        ("the close ties", network.close_indptr, network.close_indices),
    ):
        _check_rows(what, start, entries, n, n)
        ascends, begins = np.diff(entries) > 0, start[1:-1]
        ascends[begins[(begins > 0) & (begins < len(entries))] - 1] = True
        require(bool(ascends.all()), f"{what}: a row does not ascend")


def check_known(exposure: Exposure, n: int, n_posts: int) -> None:
    """Check what agents have read."""
    _check_rows("what agents have read", exposure.start, exposure.roots, n, n_posts)
    falls = np.flatnonzero(exposure.roots[1 : len(exposure)] < exposure.roots[: max(len(exposure) - 1, 0)]) + 1
    begins = exposure.start[np.searchsorted(exposure.start, falls)]
    require(bool((begins == falls).all()), "what agents have read stands in no order")


def check_history(history: History, n: int, n_posts: int, n_triggers: int, time: Clock) -> None:
    """Check what agents did."""
    require(history.ring.shape == (n, history.depth) and len(history.count) == n, "histories differ in length")
    require_within("a history's length", history.count, 0, 2**62)
    for clock in history.check(n_posts, n_triggers):
        time.at(clock)  # an OverflowError, if there is no such date


def check_posts(posts: Posts, n: int, round_: int) -> None:
    """Check all posts: the tree of reshares, authors, texts, and when they appeared."""
    ids, n_texts = np.arange(len(posts)), len(posts.texts)
    require_within("an author of a post", posts.author, 0, n)
    require_within("a post's text", posts.text_id, 0, n_texts)
    require_within("a post's wording", posts.wording, 0, 2**31)
    require_within("a post's words", posts.words, -1, n_texts)
    require_within("a post's kind", posts.kind, 0, RESHARE + 1)
    require_within("a post's round", posts.round, 0, round_ + 2)
    require_within("a post's round of writing", posts.written, 0, round_ + 2)
    require(bool((np.diff(posts.round) >= 0).all()), "posts do not stand in the order of their rounds")
    parent, root, reshared = posts.parent, posts.root, posts.kind == RESHARE
    has_none = posts.kind == POST
    require(bool((parent[has_none] == NO_PARENT).all()), "a post has a parent")
    require(bool(((parent >= 0) & (parent < ids) | has_none).all()), "a post's parent does not stand before it")
    require(bool((root[~reshared] == ids[~reshared]).all()), "a post's root is another one")
    require(bool(((root[reshared] >= 0) & (root[reshared] < ids[reshared])).all()), "a reshare's root is later")
    require(not reshared[root[reshared]].any(), "a reshare's root is a reshare")


def check_outcomes(outcomes: Outcomes, recorded: Recorded, posts: Posts, n: int) -> None:
    """Check what the run has come to."""
    require(len(outcomes.attention) <= n and len(recorded.n_engaged) == n, "counts by agent differ in length")
    require(outcomes.is_of(posts), "more impressions were counted than there are")
    require_within("what an agent has of attention", outcomes.attention, 0, 2**62)
    require_within("how often an agent has engaged", recorded.n_engaged, 0, 2**31)


def check_engagements(
    engagements: Engagements, liked: dict[int, Any], notebook: Notebook, n: int, n_posts: int, n_topics: int
) -> None:
    """Check who has engaged with what, and what agents wrote down."""
    _rows("who has engaged", engagements.beside, n)
    _rows("who has liked", liked, n)
    for likes in liked.values():
        for like in likes:
            require(isinstance(like, tuple) and len(like) == 3 and all(type(x) is int for x in like), "a like is none")
            require(0 <= like[2] < n_posts, "a like is of no post")
    agents = set(notebook.rows()["agent"])
    _rows("who has noted something", agents, n)
    lengths = {len(note.vector) for agent in agents for note in notebook.of(agent) if note.vector is not None}
    require(lengths <= {n_topics}, "a note's vector is none of the topics")


def check_group_counts(counts: GroupCounts, n_groups: int, n_posts: int) -> None:
    """Check what groups of agents have read, and engaged with."""
    shape = counts.impressions.shape
    require(counts.engagements.shape == shape and shape[1] == n_groups, "groups are not those of feed.attribute")
    require(shape[0] <= n_posts, "groups have read posts that are not there")
    require_within("how often a group has read a post", counts.impressions, 0, 2**31)
    require_within("how often a group has engaged with a post", counts.engagements, 0, 2**31)


def check_relations(relations: Relations, n: int, n_posts: int) -> None:
    """Check who has muted, blocked or reported whom or what, and who is followed anew."""
    for name, below in (("muted", n), ("blocked", n), ("reported", n_posts), ("new_follows", n)):
        keys = getattr(relations, name)
        require(bool((np.diff(keys) > 0).all()), f"what is {name} does not ascend")
        agent, other = pairs_of(keys)
        require_within(f"who has {name}", agent, 0, n)
        require_within(f"what is {name}", other, 0, below)
    require(relations.counts.keys() <= set(FOLLOW_EVENTS), "something is counted that agents cannot decide")


def check_events(events: Events, n: int, n_posts: int, ticks: int) -> None:
    """Check what has happened since the last commit: mostly nothing."""
    tick, agent, post, action = (0, ticks + 2), (0, n), (0, n_posts), (0, _ACTIONS)
    for parts, ranges in ((events.impressions, (tick, agent, post)), (events.engagements, (tick, agent, post, action))):
        for part in parts:
            _check_columns(part, ranges)
    for part in events.moves:
        _check_columns(part, (tick, agent, (0, 2**16), (NO_POST, n_posts), (0, 2)))
    for own in events.beside.values():
        _check_numbers(own, (tick, agent, post, action))
    for about, text in events.texts.items():
        _check_numbers(about, (agent, post, action))
        require(isinstance(text, str), "words are no text")
    for about, why in events.decided.items():
        _check_numbers(about, (agent, (0, 2**31), (0, len(FOLLOW_EVENTS))))
        is_report = FOLLOW_EVENTS[about[2]] == "report"
        _check_numbers((about[1], *why), (post if is_report else agent, (-1, n_posts), (0, len(FOLLOW_REASONS))))
        require(not is_report or why[0] >= 0, "a report is of no post")
    for row, text in events.written:
        _check_numbers((row,), (agent,))
        require(isinstance(text, str), "words are no text")
    for at, row, text, importance in events.notes:
        _check_numbers((at, row, importance), (tick, agent, (1, 11)))
        require(isinstance(text, str), "a note is no text")


def _check_rows(what: str, start: Numbers, entries: Numbers, n: int, below: int) -> None:
    require(len(start) == n + 1, f"{what}: there are not {n:,} rows")
    require(int(start[0]) == 0 and int(start[-1]) == len(entries), f"{what}: the rows are not those of its entries")
    require(bool((np.diff(start) >= 0).all()), f"{what}: a row ends before it begins")
    require_within(what, entries, 0, below)


def _check_columns(part: tuple[Numbers, ...], ranges: Sequence[tuple[int, int]]) -> None:
    whole = isinstance(part, tuple) and len(part) == len(ranges) and all(map(is_column, part))
    require(whole and len(set(map(len, part))) == 1, "events are no columns of one length")
    for column, (low, below) in zip(part, ranges, strict=True):
        require_within("an event", column, low, below)


def _check_numbers(numbers: tuple[Any, ...], ranges: Sequence[tuple[int, int]]) -> None:
    fit = isinstance(numbers, tuple) and len(numbers) == len(ranges)
    fit = fit and all(type(x) is int and low <= x < below for x, (low, below) in zip(numbers, ranges, strict=True))
    require(fit, "an event is none that can be")


def _rows(what: str, rows: Iterable[Any], n: int) -> None:
    require(all(type(row) is int and 0 <= row < n for row in rows), f"{what}: is no agent")


def check_attributes(known: Mapping[str, Attribute], kept: npt.NDArray[np.float64], whose: str) -> None:
    """Check that each attribute has values that are its own."""
    for place, own in enumerate(known.values()):
        try:
            own.check(kept[:, place])
        except ValueError as error:
            raise DataError(f"the snapshot is damaged: attribute {own.name} of {whose}: {error}") from None
