"""The effects of a transition on the fields of one agent; `kernels.walking` has the same effects for columns.

`Events` collects effects on other agents and on posts for the commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Rows
from prism_mesa.domain import ACTIONS, AgentState
from prism_mesa.kernels.utility import first_giving_up
from prism_mesa.social.behavior import ACTION_INDICES, COMPOSING, SEES_POST, STATES_WITHOUT_POST
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import review_drafts
from prism_mesa.social.round.engagements import engagement_key, has_engaged
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.events import REPLY
from prism_mesa.social.state.population import NO_ACTION, NO_POST, Population, pack_move
from prism_mesa.statechart import Expression

_FIELDS: Final = (*(f.name for f in fields(Population) if f.name not in ("ids", "names", "numbers")), *AGENT_FIELDS)


def read_posts(platform: Platform, row: int, tick: int, max_posts: int) -> Rows:
    """Let an agent read up to `max_posts` posts of its feed, and return them. Each is an impression."""
    population = platform.population
    first = int(population.n_read[row])
    posts = population.feed[row, first : min(first + max_posts, int(population.n_feed[row]))].astype(np.int32)
    population.n_read[row] += len(posts)
    if len(posts):
        platform.events.impressions.append((*np.full((2, len(posts)), [[tick], [row]], np.int32), posts))
    return posts


def pass_posts(platform: Platform, row: int) -> bool:
    """Let a scrolling agent pass posts below its band, and return whether it stops at the next post.

    It passes up to `Platform.glances` posts in a tick, each an impression. It also stops at a post for which the chart
    asks for a decision (`WalkTables.claim_condition`). If it does not stop, its timeout starts again.
    """
    population = platform.population
    low_threshold = float(population.engagement_threshold[row]) - platform.half_band
    unread = population.feed[row, int(population.n_read[row]) : int(population.n_feed[row])]
    next_posts = unread[: platform.glances].astype(np.int32)
    readers = np.full(len(next_posts), row)
    is_stop = platform.utilities(readers, next_posts, platform.similarities(readers, next_posts)) >= low_threshold
    if isinstance(claims := platform.tables.claim_condition, Expression):
        agent = platform.agent_objects.agent(row)
        is_stop |= np.array([bool(claims(agent, platform.post(post, row))) for post in next_posts.tolist()], np.bool_)
    stops = bool(is_stop.any())
    read_posts(platform, row, platform.tick, int(is_stop.argmax()) if stops else len(next_posts))
    if not stops:
        population.ticks_in_state[row] = 0
    return stops


def read_next(platform: Platform, row: int) -> None:
    """Let an agent read the next post of its feed, which becomes its current post."""
    post = read_posts(platform, row, platform.tick, 1)
    platform.population.current_match[row] = platform.similarities(np.array([row]), post)[0]
    platform.population.current_post[row] = post[0]


def apply_effects(
    platform: Platform, row: int, trigger: int, source: AgentState, target: AgentState, *, was_open: bool
) -> None:
    """Apply the effects of an agent's transition, after its state has been set.

    `sees_post` reads the next post. Entering COMPOSING draws the pending action, entering an engaging state notes the
    engagement, and entering IDLE, SCROLLING or RESTING releases the post. A self-transition does not enter its state.
    """
    population, tick = platform.population, platform.tick
    if trigger == platform.trigger_code(SEES_POST) and population.n_read[row] < population.n_feed[row]:
        read_next(platform, row)
    if source is target:
        return
    post = int(population.current_post[row])
    if platform.records_moves(row):
        move = pack_move(trigger, source.code, target.code)
        platform.events.moves.append(tuple(np.array([[tick], [row], [move], [post], [was_open]], np.int32)))
    if target.resembled is COMPOSING:
        like, reply, _ = population.propensities[row].astype(np.float64)
        draw = platform.streams.uniform("action", row, round_=platform.round, tick=tick)[0]
        population.pending_action[row] = int(draw >= like) + int(draw >= like + reply)
        if platform.tables.engages:
            population.pending_action[row] = _choose_action(platform, row, float(draw))
    action = ACTION_INDICES.get(target.resembled)
    if action is not None and post != NO_POST and not note_engagement(platform, row, post, action):
        platform.totals["repeated"] += 1
    if target.resembled in STATES_WITHOUT_POST:
        population.current_post[row] = NO_POST
        population.pending_action[row] = NO_ACTION


def action_shares(platform: Platform, row: int) -> dict[int, float]:
    """Return the propensities of the actions that an agent can compose; accounts only those whose condition is true."""
    engages, propensities = platform.tables.engages, platform.population.propensities[row].tolist()
    if not engages:
        return dict(enumerate(propensities))
    agent, post = platform.agent_objects.agent(row), platform.post(int(platform.population.current_post[row]), row)
    return {
        index: propensities[index]
        for index, action in enumerate(ACTIONS)
        if action in engages and _is_true(engages[action], agent, post)
    }


def _choose_action(platform: Platform, row: int, draw: float) -> int:
    """Return the action that an account composes: one of `action_shares`."""
    shares = action_shares(platform, row)
    left, chosen = sum(shares.values()) * draw, 0
    for action, share in shares.items():
        chosen = action if left >= 0 else chosen
        left -= share
    return chosen


def _is_true(condition: Expression, agent: object, post: object) -> bool:
    try:
        return bool(condition(agent, post))
    except (ArithmeticError, AttributeError, TypeError):  # it counts as false in the chart's guards, too
        return False


def find_mark(platform: Platform, row: int, post: int, target: AgentState | None) -> int:
    """Return the label or friction for which an agent gives up the action of a target state, or -1.

    It is an index into `Platform.marks`. Frictions on drafts are not considered.
    """
    if target is None or target.resembled not in ACTION_INDICES or post == NO_POST or not len(platform.marks.key):
        return -1
    root, raised = int(platform.posts.root[post]), not platform.tables.engages
    return int(first_giving_up(row, root, ACTION_INDICES[target.resembled], raised, platform.marks, platform.posts.key))


def give_up(platform: Platform, row: int, post: int, target: AgentState) -> bool:
    """Return whether an agent gives up the action of a target state because of a label or friction, and note it."""
    mark, action = find_mark(platform, row, post, target), ACTION_INDICES.get(target.resembled)
    if mark >= 0:
        event = tuple(np.array([[platform.tick], [row], [post], [action], [mark]], np.int32))
        platform.events.given_up.append(event)
    elif action == REPLY and platform.marks.drafts and post != NO_POST:
        return bool(review_drafts(platform, *(np.array([value]) for value in (platform.tick, row, post)))[0])
    return mark >= 0


def note_engagement(
    platform: Platform, row: int, post: int, action: int, words: str = "", *, tick: int | None = None
) -> bool:
    """Note an engagement for the commit, and return whether it is new. Repeats do not replace its words."""
    if words:
        platform.events.texts.setdefault((row, post, action), words)
    if has_engaged(platform, row, post, action):
        return False
    platform.engagements.individual_rows.add(row)
    event_tick = platform.tick if tick is None else tick
    platform.events.individual_engagements[engagement_key(platform, row, post, action)] = event_tick, row, post, action
    return True


@contextmanager
def rollback_on_error(platform: Platform, row: int) -> Iterator[None]:
    """If the block raises, restore the agent's fields, and drop the events that the block noted.

    Changes to other agents and to your own objects stay.
    """
    population, history, events = platform.population, platform.history, platform.events
    values = [np.array(getattr(population, column)[row]) for column in _FIELDS]
    name, count, ring = population.names[row], history.count.item(row), history.ring[row].copy()
    limit = history.limit(row)
    was_noted = row in platform.engagements.individual_rows
    lengths: list[tuple[Any, int]] = [(part, len(part)) for part in vars(events).values() if hasattr(part, "__len__")]
    try:
        yield
    except BaseException:
        for column, value in zip(_FIELDS, values, strict=True):
            getattr(population, column)[row] = value
        if population.names[row] != name:  # setting a name stores it, even the same name
            population.names[row] = name
        if history.limit(row) != limit:
            history.limits[row] = limit
        history.count[row], history.ring[row] = count, ring
        if not was_noted:
            platform.engagements.individual_rows.discard(row)
        for container, n in lengths:
            while len(container) > n:  # lists and dicts only grow during a round
                container.popitem() if isinstance(container, dict) else container.pop()
        raise
