"""Move stances when a round is committed, by the posts that agents read or engaged with.

A reader takes its posts in the order of reading, and each post moves its current stance. The stance of a post is an
attribute of the post, or the stance of its author before the commit. So readers do not depend on each other.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.opinions import are_in_order, move_stances
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns
from prism_mesa.social.round.engagements import Columns as Engagements
from prism_mesa.social.state.attributes import Attribute, Floats
from prism_mesa.social.state.chunks import blocks, in_threads
from prism_mesa.social.state.feeds import columns_by_name, readable
from prism_mesa.social.state.network import Int32s
from prism_mesa.social.state.opinions import PARTS, Spread, UserRule, measure_spread
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.relations import first_of_each, pair_keys
from prism_mesa.social.world.attributes import Columns

PART: Final = 1 << 18
"""Approximate number of posts that a thread takes at a time; results do not depend on it."""


def open_opinions(platform: Platform) -> None:
    """Record stances before the first round."""
    if platform.params.opinions.of is not None and platform.round == 0:
        spread = _spread(platform)
        platform.opinions.first = np.array(list(spread.numbers.values()))
        _record(platform, -1, spread, {"moved": 0, "drawn_on": 0, "pushed_away": 0})


def moved_stances(platform: Platform, engagements: Engagements) -> Floats | None:
    """Return the stances of all agents after this round; None if opinions do not move.

    A post moves an agent once, even after several engagements.
    """
    params = platform.params.opinions
    if params.of is None:
        return None
    if params.when == "read":
        tick, agent, post = platform.events.seen()
    else:
        tick, agent, post, _ = engagements
        first = np.sort(np.unique(pair_keys(agent, post), return_index=True)[1])
        tick, agent, post = tick[first], agent[first], post[first]
    if not are_in_order(agent, tick):
        order = np.argsort(pair_keys(agent, tick), kind="stable")
        agent, post = agent[order], post[order]
    course = np.full(len(agent) if platform.records("influences") else 0, np.nan)
    before, attribute = _stances(platform)
    after, place = before.copy(), -1
    if params.by is not None:
        place = platform.attributes.known.of_posts(params.by)[0]
    if platform.opinions.own is None:
        _move(platform, agent, post, place, attribute, before, after, course)
    else:
        _move_by_user_rule(platform.opinions.own, platform, agent, post, place, before, after, course)
    platform.counts["moved"] = int((after != before).sum())
    if platform.records("influences"):
        _record_influences(platform, agent, post, before, course)
    return after


def commit_opinions(platform: Platform, stances: Floats | None) -> None:
    """Set the stances after this round, and record their spread."""
    if stances is None:
        return
    place, _ = platform.attributes.known.of_agents(str(platform.params.opinions.of))
    platform.population.attributes[:, place] = stances
    counts = {name: platform.counts[name] for name in ("moved", "drawn_on", "pushed_away")}
    platform.totals.update(counts)
    _record(platform, platform.round, _spread(platform), counts)


def _stances(platform: Platform) -> tuple[Floats, Attribute]:
    place, attribute = platform.attributes.known.of_agents(str(platform.params.opinions.of))
    return np.ascontiguousarray(platform.population.attributes[:, place]), attribute


def _move(
    platform: Platform,
    agent: Int32s,
    post: Int32s,
    place: int,
    attribute: Attribute,
    before: Floats,
    after: Floats,
    course: Floats,
) -> None:
    """Move stances by one of PRISM's rules; `course` gets the reader's stance after each post."""
    params, posts = platform.params.opinions, platform.posts
    repels = params.rule == "assimilation_repulsion"
    limit = (params.repulsion if repels else params.confidence) * (attribute.high - attribute.low)
    columns, rule = (posts.root, posts.author, posts.attributes, place, before), (repels, params.rate, limit)
    ends = (attribute.low, attribute.high)

    def move_part(part: slice) -> tuple[int, int]:
        drawn_on, pushed_away = move_stances(agent[part], post[part], *columns, *rule, ends, after, course[part])
        return int(drawn_on), int(pushed_away)

    # parts end between agents
    stops = [int(np.searchsorted(agent, agent[part.stop - 1], "right")) for part in blocks(len(agent), PART)]
    parts = [slice(first, stop) for first, stop in zip([0, *stops], stops, strict=False) if first < stop]
    for drawn_on, pushed_away in in_threads(move_part, parts, platform.params.threads):
        platform.counts["drawn_on"] += drawn_on
        platform.counts["pushed_away"] += pushed_away


def _move_by_user_rule(
    rule: UserRule,
    platform: Platform,
    agent: Rows,
    post: Rows,
    place: int,
    before: Floats,
    after: Floats,
    course: Floats,
) -> None:
    """Move stances by a rule of your own: by the first post of each agent, then the second, ..."""
    posts = platform.posts
    others = np.flatnonzero(posts.author[posts.root[post]] != agent)
    agent, post = agent[others], post[others]
    root = posts.root[post]
    stands = posts.attributes[root, place] if place >= 0 else before[posts.author[root]]
    begins = np.flatnonzero(first_of_each(agent))
    nth = np.arange(len(agent)) - np.repeat(begins, np.diff(begins, append=len(agent)))
    order = np.argsort(nth, kind="stable")
    for wave in np.split(order, np.cumsum(np.bincount(nth))[:-1]) if len(agent) else ():
        readers, read = agent[wave], stands[wave]
        stance = after[readers]
        after[readers] = _apply_user_rule(platform, rule, readers, post[wave], stance, read)
        if len(course):
            course[others[wave]] = after[readers]
        nearer = abs(stance - read) - abs(after[readers] - read)
        platform.counts["drawn_on"] += int((nearer > 0).sum())
        platform.counts["pushed_away"] += int((nearer < 0).sum())


def _apply_user_rule(
    platform: Platform, rule: UserRule, agent: Rows, post: Rows, stance: Floats, read: Floats
) -> Floats:
    names, network = readable(platform.attributes.known), platform.network

    def columns(some: npt.NDArray[Any]) -> Columns:
        readers, seen = agent[some], post[some]
        inside = network.holds(readers, platform.posts.author[seen])
        candidates = CandidateColumns(platform, readers, seen, inside)
        by_name = columns_by_name(names, AgentColumns(platform, readers), candidates)
        return Columns(by_name | {"stance": lambda: stance[some], "read": lambda: read[some]})

    return rule(columns, len(agent))


def _spread(platform: Platform) -> Spread:
    stances, attribute = _stances(platform)
    return measure_spread(stances, platform.population.present, attribute)


def _record(platform: Platform, round_: int, spread: Spread, counts: dict[str, int]) -> None:
    if platform.recorder is None:
        return
    if platform.records("opinions"):
        row = {"round": round_, **spread.numbers, **counts}
        platform.recorder.write("opinions", {name: np.array([value]) for name, value in row.items()})
    if platform.records("stances"):
        _, attribute = platform.attributes.known.of_agents(str(platform.params.opinions.of))
        middles = attribute.low + (np.arange(PARTS) + 0.5) / PARTS * (attribute.high - attribute.low)
        columns = {"round": np.full(PARTS, round_), "stance": middles, "agents": spread.agents}
        platform.recorder.write("stances", columns)


def _record_influences(platform: Platform, agent: Rows, post: Rows, before: Floats, course: Floats) -> None:
    """Record rows of the table `influences`, of agents whose impressions are recorded.

    `course` has the reader's stance after each post, NaN for its own posts.
    """
    mask = platform.recorded["impressions"]
    read = ~np.isnan(course) if mask is None else ~np.isnan(course) & mask[agent]
    agent, post, course = agent[read], post[read], course[read]
    previous = np.roll(course, 1)
    first = first_of_each(agent)
    previous[first] = before[agent[first]]
    moved = previous != course
    if platform.recorder is not None:
        columns = {"round": np.full(int(moved.sum()), platform.round, np.int32)}
        columns |= {"agent": agent[moved], "post": post[moved], "before": previous[moved], "after": course[moved]}
        platform.recorder.write("influences", columns)
