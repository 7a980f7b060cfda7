"""Carrying out a transition: what changes in the population when one agent moves. `kernels.walk` does so for all.

The statechart decides; this module writes. What happens to other agents and to posts is only noted down
(`Events`), for the round's commit.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.records import ACTIONS
from prism_mesa.social.behavior import COMPOSING, ENGAGING, IDLE, RESTING, SCROLLING, SEES_POST
from prism_mesa.social.population import NO_ACTION, NO_POST, Rows, packed_move
from prism_mesa.statechart import STATES, AgentState

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

type Int32 = npt.NDArray[np.int32]

_ACTION_OF: Final = {state: ACTIONS.index(action) for action, state in ENGAGING.items()}
LETS_GO: Final = np.array([state in (IDLE, SCROLLING, RESTING) for state in STATES])
"""Which states let go of the post at hand when they are entered."""


@dataclass
class Events:
    """What happened in a round and is not yet committed: lists of column tuples.

    Attributes:
        impressions: (tick, agent, post).
        engagements: (tick, agent, post, action code).
        written: Extra posts by agents' own scripts: (agent, text).
        moves: Transitions for the records: (tick, agent, packed move, post, was open).
    """

    impressions: list[tuple[Rows, ...]] = field(default_factory=list)
    engagements: list[tuple[Rows, ...]] = field(default_factory=list)
    written: list[tuple[int, str]] = field(default_factory=list)
    moves: list[tuple[Rows, ...]] = field(default_factory=list)

    def seen(self) -> tuple[Int32, Int32, Int32]:
        """Take the impressions: tick, agent, post."""
        tick, agent, post = _taken(self.impressions, 3)
        return tick, agent, post

    def engaged(self) -> tuple[Rows, Rows, Rows, Rows]:
        """Take the engagements: tick, agent, post, action, in this order; a repetition counts at its first tick."""
        tick, agent, post, action = _taken(self.engagements, 4)
        key = (agent.astype(np.int64) * (post.max(initial=0) + np.int64(1)) + post) * len(ACTIONS) + action
        _, first = np.unique(key, return_index=True)
        order = first[np.argsort(tick[first], kind="stable")]
        return tick[order], agent[order], post[order], action[order]


def _taken(parts: list[tuple[Rows, ...]], columns: int) -> list[npt.NDArray[np.int32]]:
    """Return the columns of all parts, and empty their list."""
    none = (np.zeros(0, np.int32),) * columns
    joined = [np.concatenate(column) for column in zip(none, *parts, strict=True)]
    parts.clear()
    return joined


def read_next(model: "SocialModel", row: int) -> None:
    """Let an agent that has an unread post read the next one of its feed: the impression."""
    population = model.population
    post = population.feed[row, population.n_read[row]]
    population.n_read[row] += 1
    population.current_post[row] = post
    population.current_match[row] = model.matches(np.array([row]), np.array([post]))[0]
    model.events.impressions.append(_columns(model.tick, row, int(post)))


def follow_up(
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
    if target in _ACTION_OF and post != NO_POST:
        note_engagement(model, row, post, _ACTION_OF[target])
    if LETS_GO[target.code]:
        population.current_post[row] = NO_POST
        population.pending_action[row] = NO_ACTION


def drawn_action(model: "SocialModel", row: int) -> int:
    """Return an action for an agent, drawn from its propensities."""
    like, reply, _ = model.population.propensities[row].astype(np.float64)
    u = model.streams.uniform("action", row, round_=model.round, tick=model.tick)[0]
    return int(u >= like) + int(u >= like + reply)


def note_engagement(model: "SocialModel", row: int, post: int, action: int) -> None:
    """Note that an agent engages with a post; it counts when the round is committed."""
    model.events.engagements.append(_columns(model.tick, row, post, action))


def _columns(*values: int) -> tuple[Rows, ...]:
    return tuple(np.array([value], np.int32) for value in values)
