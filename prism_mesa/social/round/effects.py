"""Carrying out a transition: what changes in the population when one agent moves. `kernels.walk` does so for all.

What happens to other agents and to posts is only noted down
(`Events`), for the round's commit.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from prism_mesa.domain import ACTIONS
from prism_mesa.social.behavior import COMPOSING, ENGAGING, IDLE, RESTING, SCROLLING, SEES_POST
from prism_mesa.social.round.engagements import engagement_key, has_engaged
from prism_mesa.social.state.population import NO_ACTION, NO_POST, Rows, packed_move
from prism_mesa.statechart import STATES, AgentState

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel


_LIKE: Final = ACTIONS.index("like")
_ACTION_OF: Final = {state: ACTIONS.index(action) for action, state in ENGAGING.items()}
RELEASES_POST: Final = np.array([state in (IDLE, SCROLLING, RESTING) for state in STATES])
"""Which states let go of the post at hand when they are entered."""


def read_next(model: "SocialModel", row: int) -> None:
    """Let an agent that has an unread post read the next one of its feed: the impression."""
    population = model.population
    post = population.feed[row, population.n_read[row]]
    population.n_read[row] += 1
    population.current_post[row] = post
    population.current_match[row] = model.matches(np.array([row]), np.array([post]))[0]
    model.events.impressions.append(_columns(model.tick, row, int(post)))


def apply_effects(
    model: "SocialModel", row: int, trigger: int, source: AgentState, target: AgentState, *, was_open: bool
) -> None:
    """Do what a transition of one agent entails, after its state has been set.

    Reading a post sets the post at hand and counts the impression; entering COMPOSING draws the pending
    action; entering an ENGAGING state notes the engagement; entering IDLE, SCROLLING or RESTING lets go
    of the post. A self-transition enters nothing.
    """
    population = model.population
    if trigger == model.trigger_code(SEES_POST) and population.n_read[row] < population.n_feed[row]:
        read_next(model, row)
    if source is target:
        return
    post = int(population.current_post[row])
    if model.keeps_moves(row):
        move = packed_move(trigger, source.code, target.code)
        model.events.moves.append(_columns(model.tick, row, move, post, was_open))
    if target is COMPOSING:
        population.pending_action[row] = drawn_action(model, row)
    if target in _ACTION_OF and post != NO_POST and not note_engagement(model, row, post, _ACTION_OF[target]):
        model.totals["repeated"] += 1
    if RELEASES_POST[target.code]:
        population.current_post[row] = NO_POST
        population.pending_action[row] = NO_ACTION


def drawn_action(model: "SocialModel", row: int) -> int:
    """Return an action for an agent, drawn from its propensities."""
    like, reply, _ = model.population.propensities[row].astype(np.float64)
    u = model.streams.uniform("action", row, round_=model.round, tick=model.tick)[0]
    return int(u >= like) + int(u >= like + reply)


def note_engagement(
    model: "SocialModel", row: int, post: int, action: int, words: str = "", *, tick: int | None = None
) -> bool:
    """Note that an agent engages with a post, and return whether that is new; it counts when the round is committed.

    Words go to the engagement with this post, also if it was noted before; the first ones are kept.
    """
    if words:
        model.events.texts.setdefault((row, post, action), words)
    if has_engaged(model, row, post, action):
        return False
    model.engagements.beside.add(row)
    model.events.beside[engagement_key(model, row, post, action)] = (
        model.tick if tick is None else tick,
        row,
        post,
        action,
    )
    return True


def _columns(*values: int) -> tuple[Rows, ...]:
    return tuple(np.array([value], np.int32) for value in values)
