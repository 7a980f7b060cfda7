"""Carrying out a transition: what changes in the population when one agent moves. `kernels.walking` does so for all.

What happens to other agents and to posts is only noted down (`Events`), for the round's commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.social.behavior import COMPOSING, ENGAGES_BY, RELEASES_POST, SEES_POST
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.engagements import engagement_key, has_engaged
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.population import NO_ACTION, NO_POST, Population, Rows, packed_move
from prism_mesa.statechart import AgentState, Expression


def read_posts(platform: Platform, row: int, tick: int, most: int) -> Rows:
    """Let an agent read the next posts of its feed, at most so many, and return them: the impressions."""
    population = platform.population
    first = int(population.n_read[row])
    read = population.feed[row, first : min(first + most, int(population.n_feed[row]))].astype(np.int32)
    population.n_read[row] += len(read)
    if len(read):
        where = np.full((2, len(read)), [[tick], [row]], np.int32)
        platform.events.impressions.append((*where, read))
    return read


def pass_posts(platform: Platform, row: int) -> bool:
    """Let a scrolling agent pass posts that lie below its band; return whether the next post is one that it meets.

    It passes up to `Platform.glances` posts in a tick, and none that the chart claims. Each is an impression, and
    scrolling on starts its patience anew.
    """
    population = platform.population
    low = float(population.engagement_threshold[row]) - platform.half_band
    unread = population.feed[row, int(population.n_read[row]) : int(population.n_feed[row])]
    ahead = unread[: platform.glances].astype(np.int32)
    readers = np.full(len(ahead), row)
    good = platform.utilities(readers, ahead, platform.matches(readers, ahead)) >= low
    if isinstance(claimed := platform.tables.claimed, Expression):
        agent = platform.scripts.agent(row)
        good |= np.array([bool(claimed(agent, platform.post(post, row))) for post in ahead.tolist()], np.bool_)
    stops = bool(good.any())
    read_posts(platform, row, platform.tick, int(good.argmax()) if stops else len(ahead))
    if not stops:
        population.ticks_in_state[row] = 0
    return stops


def read_next(platform: Platform, row: int) -> None:
    """Let an agent that has an unread post read the next one of its feed, which is then at hand."""
    post = read_posts(platform, row, platform.tick, 1)
    platform.population.current_match[row] = platform.matches(np.array([row]), post)[0]
    platform.population.current_post[row] = post[0]


def apply_effects(
    platform: Platform, row: int, trigger: int, source: AgentState, target: AgentState, *, was_open: bool
) -> None:
    """Do what a transition of one agent entails, after its state has been set.

    Reading a post sets the post at hand and counts the impression; entering COMPOSING draws the pending
    action; entering an ENGAGING state notes the engagement; entering IDLE, SCROLLING or RESTING lets go
    of the post. A self-transition enters nothing.
    """
    population = platform.population
    if trigger == platform.trigger_code(SEES_POST) and population.n_read[row] < population.n_feed[row]:
        read_next(platform, row)
    if source is target:
        return
    post = int(population.current_post[row])
    if platform.records_moves(row):
        move = packed_move(trigger, source.code, target.code)
        platform.events.moves.append(_columns(platform.tick, row, move, post, was_open))
    if target is COMPOSING:
        population.pending_action[row] = drawn_action(platform, row)
    if target in ENGAGES_BY and post != NO_POST and not note_engagement(platform, row, post, ENGAGES_BY[target]):
        platform.totals["repeated"] += 1
    if target in RELEASES_POST:
        population.current_post[row] = NO_POST
        population.pending_action[row] = NO_ACTION


def drawn_action(platform: Platform, row: int) -> int:
    """Return an action for an agent, drawn from its propensities."""
    like, reply, _ = platform.population.propensities[row].astype(np.float64)
    u = platform.streams.uniform("action", row, round_=platform.round, tick=platform.tick)[0]
    return int(u >= like) + int(u >= like + reply)


def note_engagement(
    platform: Platform, row: int, post: int, action: int, words: str = "", *, tick: int | None = None
) -> bool:
    """Note that an agent engages with a post, and return whether that is new; it counts when the round is committed.

    Words go to the engagement with this post, also if it was noted before; the first ones are kept.
    """
    if words:
        platform.events.texts.setdefault((row, post, action), words)
    if has_engaged(platform, row, post, action):
        return False
    platform.engagements.beside.add(row)
    platform.events.beside[engagement_key(platform, row, post, action)] = (
        platform.tick if tick is None else tick,
        row,
        post,
        action,
    )
    return True


def _columns(*values: int) -> tuple[npt.NDArray[np.int32], ...]:
    return tuple(np.array(values, np.int32).reshape(-1, 1))


_COLUMNS: Final = (*(f.name for f in fields(Population) if f.name not in ("ids", "names", "numbers")), *AGENT_FIELDS)


@contextmanager
def rollback_on_error(platform: Platform, row: int) -> Iterator[None]:
    """If the block raises, bring back an agent's own fields, and let go of what was noted for the commit meanwhile.

    What an action did to other agents, or to objects of its author's, stays.
    """
    population, history, events = platform.population, platform.history, platform.events
    held = [_value(getattr(population, column), row) for column in _COLUMNS]
    name, count, ring = population.names[row], history.count.item(row), history.ring[row].copy()
    limit = history.limit(row)
    was_beside = row in platform.engagements.beside
    noted: list[tuple[Any, int]] = [(kept, len(kept)) for kept in vars(events).values() if hasattr(kept, "__len__")]
    try:
        yield
    except BaseException:
        for column, value in zip(_COLUMNS, held, strict=True):
            getattr(population, column)[row] = value
        if population.names[row] != name:  # whoever is set one holds it for good
            population.names[row] = name
        if history.limit(row) != limit:
            history.limits[row] = limit
        history.count[row], history.ring[row] = count, ring
        if not was_beside:
            platform.engagements.beside.discard(row)
        for kept, n in noted:
            while len(kept) > n:  # lists and dicts only grow in a round
                kept.popitem() if isinstance(kept, dict) else kept.pop()
        raise


def _value(column: npt.NDArray[Any], row: int) -> Any:
    """Return what stands in a row, so that nothing changes it."""
    return column.item(row) if column.ndim == 1 else column[row].copy()
