"""Move agents' stances when a round is committed, by the posts that they read or engaged with.

Posts move the reader's stance one after the other, as they were read. The stance of a post is an attribute of the post,
or the stance of its author before the commit, so readers do not depend on each other.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Rows
from prism_mesa.kernels.opinions import are_in_order, move_stances
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns
from prism_mesa.social.round.engagements import Columns as Engagements
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.state.chunks import blocks, map_in_threads
from prism_mesa.social.state.feeds import columns_by_name, readable_fields
from prism_mesa.social.state.opinions import N_PARTS, Spread, UserRule, measure_spread
from prism_mesa.social.state.relations import is_first, pair_keys
from prism_mesa.social.world.attributes import Columns

PART_SIZE: Final = 1 << 18
"""Approximate number of posts that a thread processes at a time. Results do not depend on it."""


def record_initial_opinions(platform: Platform) -> None:
    """Record stances before the first round."""
    if platform.params.opinions.of is not None and platform.round == 0:
        spread = _spread(platform)
        platform.opinions.first = np.array(list(spread.numbers.values()))
        _record(platform, -1, spread, {"moved": 0, "drawn_on": 0, "pushed_away": 0})


def moved_stances(platform: Platform, engagements: Engagements) -> Floats | None:
    """Return the stances of all agents after this round; None if `opinions.of` is not set.

    A post moves an agent once, even after several engagements.
    """
    params = platform.params.opinions
    if params.of is None:
        return None
    if params.when == "read":
        tick, agent, post = platform.events.all_impressions()
    else:
        tick, agent, post, _ = engagements
        first_engagements = np.sort(np.unique(pair_keys(agent, post), return_index=True)[1])
        tick, agent, post = tick[first_engagements], agent[first_engagements], post[first_engagements]
    if not are_in_order(agent, tick):
        order = np.argsort(pair_keys(agent, tick), kind="stable")
        agent, post = agent[order], post[order]
    path = np.full(len(agent) if platform.records("influences") else 0, np.nan)
    old, attribute = _stances(platform)
    new = old.copy()
    index = -1 if params.by is None else platform.attributes.schema.post_attribute(params.by)[0]
    if platform.opinions.user_rule is None:
        _move(platform, agent, post, index, attribute, old, new, path)
    else:
        _move_by_user_rule(platform.opinions.user_rule, platform, agent, post, index, old, new, path)
    platform.counts["moved"] = int((new != old).sum())
    if platform.records("influences"):
        _record_influences(platform, agent, post, old, path)
    return new


def commit_opinions(platform: Platform, stances: Floats | None) -> None:
    """Set the stances after this round, and record their spread."""
    if stances is None:
        return
    index, _ = platform.attributes.schema.agent_attribute(str(platform.params.opinions.of))
    platform.population.attributes[:, index] = stances
    counts = {name: platform.counts[name] for name in ("moved", "drawn_on", "pushed_away")}
    platform.totals.update(counts)
    _record(platform, platform.round, _spread(platform), counts)


def _stances(platform: Platform) -> tuple[Floats, Attribute]:
    index, attribute = platform.attributes.schema.agent_attribute(str(platform.params.opinions.of))
    return np.ascontiguousarray(platform.population.attributes[:, index]), attribute


def _move(
    platform: Platform,
    agent: Int32,
    post: Int32,
    index: int,
    attribute: Attribute,
    old: Floats,
    new: Floats,
    path: Floats,
) -> None:
    """Move stances by one of PRISM's rules; `path` receives the reader's stance after each post."""
    params, posts = platform.params.opinions, platform.posts
    repels = params.rule == "assimilation_repulsion"
    limit = (params.repulsion if repels else params.confidence) * (attribute.high - attribute.low)
    columns, rule = (posts.root, posts.author, posts.attributes, index, old), (repels, params.rate, limit)
    bounds = (attribute.low, attribute.high)

    def move_part(part: slice) -> tuple[int, int]:
        n_attracted, n_repelled = move_stances(agent[part], post[part], *columns, *rule, bounds, new, path[part])
        return int(n_attracted), int(n_repelled)

    # no agent is split between two parts
    stops = [int(np.searchsorted(agent, agent[part.stop - 1], "right")) for part in blocks(len(agent), PART_SIZE)]
    parts = [slice(first, stop) for first, stop in zip([0, *stops], stops, strict=False) if first < stop]
    for n_attracted, n_repelled in map_in_threads(move_part, parts, platform.params.threads):
        platform.counts["drawn_on"] += n_attracted
        platform.counts["pushed_away"] += n_repelled


def _move_by_user_rule(
    rule: UserRule, platform: Platform, agent: Rows, post: Rows, index: int, old: Floats, new: Floats, path: Floats
) -> None:
    """Move stances by your own rule: by each agent's first post, then by the second posts, and so on."""
    posts = platform.posts
    kept_rows = np.flatnonzero(posts.author[posts.root[post]] != agent)
    agent, post = agent[kept_rows], post[kept_rows]
    root = posts.root[post]
    post_stances = posts.attributes[root, index] if index >= 0 else old[posts.author[root]]
    firsts = np.flatnonzero(is_first(agent))
    nth_post = np.arange(len(agent)) - np.repeat(firsts, np.diff(firsts, append=len(agent)))
    order = np.argsort(nth_post, kind="stable")
    for turn in np.split(order, np.cumsum(np.bincount(nth_post))[:-1]) if len(agent) else ():
        readers, stance_read = agent[turn], post_stances[turn]
        stance = new[readers]
        new[readers] = _apply_user_rule(platform, rule, readers, post[turn], stance, stance_read)
        if len(path):
            path[kept_rows[turn]] = new[readers]
        approach = abs(stance - stance_read) - abs(new[readers] - stance_read)
        platform.counts["drawn_on"] += int((approach > 0).sum())
        platform.counts["pushed_away"] += int((approach < 0).sum())


def _apply_user_rule(
    platform: Platform, rule: UserRule, agent: Rows, post: Rows, stance: Floats, stance_read: Floats
) -> Floats:
    names, network = readable_fields(platform.attributes.schema), platform.network

    def columns(rows: npt.NDArray[Any]) -> Columns:
        readers, posts = agent[rows], post[rows]
        candidates = CandidateColumns(platform, readers, posts, network.contains(readers, platform.posts.author[posts]))
        by_name = columns_by_name(names, AgentColumns(platform, readers), candidates)
        return Columns(by_name | {"stance": lambda: stance[rows], "read": lambda: stance_read[rows]})

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
        _, attribute = platform.attributes.schema.agent_attribute(str(platform.params.opinions.of))
        middles = attribute.low + (np.arange(N_PARTS) + 0.5) / N_PARTS * (attribute.high - attribute.low)
        columns = {"round": np.full(N_PARTS, round_), "stance": middles, "agents": spread.agents}
        platform.recorder.write("stances", columns)


def _record_influences(platform: Platform, agent: Rows, post: Rows, old: Floats, path: Floats) -> None:
    """Record the table `influences` for agents whose impressions are recorded.

    `path` has the reader's stance after each post; NaN for the reader's own posts.
    """
    mask = platform.recorded["impressions"]
    by_others = ~np.isnan(path) if mask is None else ~np.isnan(path) & mask[agent]
    agent, post, path = agent[by_others], post[by_others], path[by_others]
    previous = np.where(is_first(agent), old[agent], np.roll(path, 1))
    moved = previous != path
    if platform.recorder is not None:
        columns = {"round": np.full(int(moved.sum()), platform.round, np.int32)}
        columns |= {"agent": agent[moved], "post": post[moved], "before": previous[moved], "after": path[moved]}
        platform.recorder.write("influences", columns)
