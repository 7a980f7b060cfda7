"""Carrying out transitions: what changes in the population when agents move, for one row or for all.

The statechart decides; this module writes. What happens to other agents and to posts is only noted down
(`Events`), for the round's commit.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.records import ACTIONS
from prism_mesa.social.behavior import COMPOSING, ENGAGING, IDLE, RESTING, SCROLLING, SEES_POST
from prism_mesa.social.population import NO_ACTION, NO_POST, STATE_BITS, Rows
from prism_mesa.statechart import STATES

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

_ENGAGING: Final = {state.code: ACTIONS.index(action) for action, state in ENGAGING.items()}
_LETS_GO: Final = np.array([state in (IDLE, SCROLLING, RESTING) for state in STATES])


@dataclass
class Events:
    """What happened in a round and is not yet committed: lists of column tuples.

    Attributes:
        impressions: (agent, root of the post read).
        engagements: (tick, agent, post, action code).
        written: Extra posts by agents' own scripts: (agent, text).
        moves: Transitions for the records: (tick, agent, packed move, post, was open).
    """

    impressions: list[tuple[Rows, Rows]] = field(default_factory=list)
    engagements: list[tuple[Rows, Rows, Rows, Rows]] = field(default_factory=list)
    written: list[tuple[int, str]] = field(default_factory=list)
    moves: list[tuple[Rows, Rows, Rows, Rows, npt.NDArray[np.bool_]]] = field(default_factory=list)

    def engaged(self) -> tuple[Rows, Rows, Rows, Rows]:
        """Return (tick, agent, post, action) in this order, each (agent, post, action) once, at its first tick."""
        if not self.engagements:
            empty = np.zeros(0, np.int64)
            return empty, empty, empty, empty
        tick, agent, post, action = (np.concatenate(column) for column in zip(*self.engagements, strict=True))
        key = (agent * (post.max() + np.int64(1)) + post) * len(ACTIONS) + action
        _, first = np.unique(key, return_index=True)
        order = first[np.argsort(tick[first], kind="stable")]
        return tick[order], agent[order], post[order], action[order]


def read_next(model: "SocialModel", rows: Rows) -> None:
    """Let each agent of `rows` (each once, with an unread post) read the next post of its feed: the impression."""
    population = model.population
    posts = population.feed[rows, population.n_read[rows]]
    population.n_read[rows] += 1
    population.current_post[rows] = posts
    population.current_match[rows] = model.matches(rows, posts)
    model.events.impressions.append((rows, model.posts.root[posts]))


def follow_up(
    model: "SocialModel", rows: Rows, triggers: Rows, sources: Rows, targets: Rows, was_open: npt.NDArray[np.bool_]
) -> None:
    """Do what transitions entail, after the state of each of `rows` (each once) has been set.

    Reading a post sets the post at hand and counts the impression; entering COMPOSING draws the pending
    action; entering an ENGAGING state notes the engagement; entering IDLE, SCROLLING or RESTING lets go
    of the post. A self-transition enters nothing.
    """
    population = model.population
    sees = model.trigger_code(SEES_POST)
    reading = rows[triggers == sees]
    reading = reading[population.n_read.take(reading) < population.n_feed.take(reading)]
    if len(reading):
        read_next(model, reading)
    moved = sources != targets
    if not moved.all():
        columns = (rows, triggers, sources, targets, was_open)
        rows, triggers, sources, targets, was_open = (column[moved] for column in columns)
    posts = population.current_post[rows]
    _note(model, rows, triggers, sources, targets, posts, was_open)
    composing = rows[targets == COMPOSING.code]
    if len(composing):
        population.pending_action[composing] = drawn_actions(model, composing)
    for code, action in _ENGAGING.items():
        here = (targets == code) & (posts != NO_POST)
        if here.any():
            note_engagements(model, rows[here], posts[here], action)
    free = rows[_LETS_GO[targets]]
    population.current_post[free] = NO_POST
    population.pending_action[free] = NO_ACTION


def _note(
    model: "SocialModel",
    rows: Rows,
    triggers: Rows,
    sources: Rows,
    targets: Rows,
    posts: Rows,
    was_open: npt.NDArray[np.bool_],
) -> None:
    if not model.keeps_moves or not len(rows):
        return
    moves = triggers.astype(np.uint16) << 2 * STATE_BITS | sources.astype(np.uint16) << STATE_BITS | targets
    tick = np.full(len(rows), model.tick)
    model.events.moves.append((tick, rows, moves.astype(np.uint16), posts, was_open))


def drawn_actions(model: "SocialModel", rows: Rows) -> npt.NDArray[np.uint8]:
    """Return an action for each agent, drawn from its propensities."""
    shares = model.population.propensities[rows].astype(np.float64)
    u = model.streams.uniform("action", rows, round_=model.round, tick=model.tick)
    return ((u >= shares[:, 0]).astype(np.uint8) + (u >= shares[:, 0] + shares[:, 1])).astype(np.uint8)


def note_engagements(model: "SocialModel", rows: Rows, posts: Rows, action: int) -> None:
    """Note that each agent engages with a post; it counts when the round is committed."""
    columns = np.full(len(rows), model.tick), rows, posts, np.full(len(rows), action)
    model.events.engagements.append(columns)


def with_actions(model: "SocialModel", rows: Rows, taken: Any, contexts: Any) -> None:
    """Run the actions of the transitions that are about to be taken, in the order of rows."""
    acting = {i for i, t in enumerate(model.chart.transitions) if t.action is not None}
    if not acting:
        return
    for i in np.flatnonzero(np.isin(taken, list(acting))):
        action = model.chart.transitions[taken[i]].action
        if action is not None:
            action(model.agent(int(rows[i])), contexts.row(int(i)))
