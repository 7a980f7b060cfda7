"""Move stances when a round is committed, by what agents read or engaged with."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.opinions import are_in_order, move_stances
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns
from prism_mesa.social.state.attributes import Attribute, Floats
from prism_mesa.social.state.chunks import blocks, in_threads
from prism_mesa.social.state.feeds import columns_by_name, readable
from prism_mesa.social.state.network import Int32s
from prism_mesa.social.state.opinions import PARTS, OwnRule, Spread, spread_of
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.relations import first_of_each, pair_keys
from prism_mesa.social.world.attributes import Columns

PART: Final = 1 << 18
"""Posts that one thread takes at a time, or a few more; not the result's business."""


def open_opinions(platform: Platform) -> None:
    """Note what agents hold before the first round."""
    if platform.params.opinions.of is not None and platform.round == 0:
        found = _spread(platform)
        platform.opinions.first = np.array(list(found.numbers.values()))
        _record(platform, -1, found, {"moved": 0, "drawn_on": 0, "pushed_away": 0})


def moved_by(platform: Platform, when: str, tick: Rows, agent: Rows, post: Rows) -> Floats | None:
    """Return what all agents hold after what was read, or engaged with, in this round; None if they move by the other.

    Args:
        platform: The platform, in which nothing changes but counts.
        when: Which of the two it is: `read` or `engaged`.
        tick: When.
        agent: Who.
        post: What; who engages with a post in several ways is moved by it once.
    """
    params, own = platform.params.opinions, platform.opinions.own
    if params.of is None or params.when != when:
        return None
    tick, agent, post = (np.asarray(column, np.int32) for column in (tick, agent, post))
    if when == "engaged":
        first = np.sort(np.unique(pair_keys(agent, post), return_index=True)[1])
        tick, agent, post = tick[first], agent[first], post[first]
    if not are_in_order(agent, tick):
        order = np.argsort(pair_keys(agent, tick), kind="stable")
        agent, post = agent[order], post[order]
    course = np.full(len(agent) if platform.records("influences") else 0, np.nan)
    read = platform, agent, post, course
    after = _moved(*read) if own is None else _moved_by_own(own, *read)
    before, _ = _stances(platform)
    platform.counts["moved"] = int((after != before).sum())
    if platform.records("influences"):
        _record_influences(platform, agent, post, before, course)
    return after


def hold(platform: Platform, after: Floats | None) -> None:
    """Let agents hold what they do after this round, and record how that is spread."""
    if after is None:
        return
    place, _ = platform.attributes.known.of_agents(str(platform.params.opinions.of))
    platform.population.attributes[:, place] = after
    counted = {name: platform.counts[name] for name in ("moved", "drawn_on", "pushed_away")}
    platform.totals.update(counted)
    _record(platform, platform.round, _spread(platform), counted)


def _stances(platform: Platform) -> tuple[Floats, Attribute]:
    place, own = platform.attributes.known.of_agents(str(platform.params.opinions.of))
    return np.ascontiguousarray(platform.population.attributes[:, place]), own


def _place_of_posts(platform: Platform) -> int:
    by = platform.params.opinions.by
    return -1 if by is None else platform.attributes.known.of_posts(by)[0]


def _moved(platform: Platform, agent: Int32s, post: Int32s, course: Floats) -> Floats:
    """Return what all hold after posts that moved them by a rule that comes with PRISM; of each post into `course`."""
    params, posts, place = platform.params.opinions, platform.posts, _place_of_posts(platform)
    before, own = _stances(platform)
    after, length = before.copy(), own.high - own.low
    repels = params.rule == "assimilation_repulsion"
    limit = (params.repulsion if repels else params.confidence) * length
    root, author, of_posts = posts.root, posts.author, posts.attributes

    ends = (own.low, own.high)

    def move_part(part: slice) -> tuple[int, int]:
        read = agent[part], post[part], root, author
        drawn_on, pushed_away = move_stances(
            *read, of_posts, place, before, repels, params.rate, limit, ends, after, course[part]
        )
        return int(drawn_on), int(pushed_away)

    counts = in_threads(move_part, _parts(agent), platform.params.threads)
    platform.counts["drawn_on"], platform.counts["pushed_away"] = (
        sum(one) for one in zip((0, 0), *counts, strict=True)
    )
    return after


def _parts(agent: Rows) -> list[slice]:
    """Return parts of ascending agents, of which none divides what one of them has read."""
    ends = [int(np.searchsorted(agent, agent[part.stop - 1], "right")) for part in blocks(len(agent), PART)]
    return [slice(first, end) for first, end in zip([0, *ends], ends, strict=False) if first < end]


def _moved_by_own(rule: OwnRule, platform: Platform, agent: Rows, post: Rows, course: Floats) -> Floats:
    """Return what all hold after a user's function was asked about the first post of each, then the second, ..."""
    posts = platform.posts
    before, _ = _stances(platform)
    after, place = before.copy(), _place_of_posts(platform)
    root = posts.root[post]
    others = np.flatnonzero(posts.author[root] != agent)
    agent, post, root = agent[others], post[others], root[others]
    stands = posts.attributes[root, place] if place >= 0 else before[posts.author[root]]
    begins = np.flatnonzero(first_of_each(agent))
    nth = np.arange(len(agent)) - np.repeat(begins, np.diff(begins, append=len(agent)))
    order = np.argsort(nth, kind="stable")
    for wave in np.split(order, np.cumsum(np.bincount(nth))[:-1]) if len(agent) else ():
        readers, read = agent[wave], stands[wave]
        stance = after[readers]
        after[readers] = _asked(platform, rule, readers, post[wave], stance, read)
        if len(course):
            course[others[wave]] = after[readers]
        nearer = abs(stance - read) - abs(after[readers] - read)
        platform.counts["drawn_on"] += int((nearer > 0).sum())
        platform.counts["pushed_away"] += int((nearer < 0).sum())
    return after


def _asked(platform: Platform, rule: OwnRule, agent: Rows, post: Rows, stance: Floats, read: Floats) -> Floats:
    """Return what a user's function says that agents hold who have read a post each."""
    names, network = readable(platform.attributes.known), platform.network

    def columns(some: npt.NDArray[Any]) -> Columns:
        inside = network.holds(agent[some], platform.posts.author[post[some]])
        readers, posts = (
            AgentColumns(platform, agent[some]),
            CandidateColumns(platform, agent[some], post[some], inside),
        )
        own = {"stance": lambda: stance[some], "read": lambda: read[some]}
        return Columns(columns_by_name(names, readers, posts) | own)

    return rule(columns, len(agent))


def _spread(platform: Platform) -> Spread:
    stances, own = _stances(platform)
    return spread_of(stances, platform.population.present, own)


def _record(platform: Platform, round_: int, found: Spread, counted: dict[str, int]) -> None:
    """Give rows of the tables `opinions` and `stances` to the recorder."""
    if platform.recorder is None:
        return
    if platform.records("opinions"):
        row = {"round": round_, **found.numbers, **counted}
        platform.recorder.write("opinions", {name: np.array([value]) for name, value in row.items()})
    if platform.records("stances"):
        _, own = platform.attributes.known.of_agents(str(platform.params.opinions.of))
        middles = own.low + (np.arange(PARTS) + 0.5) / PARTS * (own.high - own.low)
        columns = {"round": np.full(PARTS, round_), "stance": middles, "agents": found.agents}
        platform.recorder.write("stances", columns)


def _record_influences(platform: Platform, agent: Rows, post: Rows, before: Floats, course: Floats) -> None:
    """Give rows of the table `influences`, of the agents whose impressions are recorded, to the recorder.

    Args:
        platform: The platform.
        agent: Who read, ascending.
        post: What.
        before: What all agents held before.
        course: What the reader held after each post; NaN where it was its own.
    """
    mask = platform.recorded["impressions"]
    read = ~np.isnan(course) if mask is None else ~np.isnan(course) & mask[agent]
    agent, post, course = agent[read], post[read], course[read]
    held = np.roll(course, 1)
    first = first_of_each(agent)
    held[first] = before[agent[first]]
    moved = held != course
    if platform.recorder is not None:
        columns = {"round": np.full(int(moved.sum()), platform.round, np.int32)}
        columns |= {"agent": agent[moved], "post": post[moved], "before": held[moved], "after": course[moved]}
        platform.recorder.write("influences", columns)
