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
from prism_mesa.social.engaged import engagement_key, engagement_keys, has_engaged
from prism_mesa.social.population import NO_ACTION, NO_POST, Rows, packed_move
from prism_mesa.statechart import STATES, AgentState

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]

_LIKE: Final = ACTIONS.index("like")
_ACTION_OF: Final = {state: ACTIONS.index(action) for action, state in ENGAGING.items()}
LETS_GO: Final = np.array([state in (IDLE, SCROLLING, RESTING) for state in STATES])
"""Which states let go of the post at hand when they are entered."""


@dataclass(frozen=True)
class Stock:
    """Words that many engagements share: that of ``keys[i]`` says ``texts[places[i]]``.

    Attributes:
        keys: What `engagement_keys` makes of the engagements, ascending.
    """

    texts: list[str]
    keys: Int64
    places: Int32


@dataclass
class Events:
    """What happened in a round and is not yet committed: lists of column tuples.

    Attributes:
        impressions: (tick, agent, post).
        engagements: Those of the columns: (tick, agent, post, action code); agents ascend in each tuple.
        beside: All others, each that counts once: `engagement_key` -> tick, agent, post, action code.
        written: Extra posts, by agents' own scripts or a tool: (agent, text).
        moves: Transitions for the records: (tick, agent, packed move, post, was open).
        texts: The words of replies and reshares: (agent, post, action code) -> one line.
        notes: What agents wrote down for themselves: (tick, agent, text, importance).
        stock: Words of those that are not among `texts`, if they were given in columns.
    """

    impressions: list[tuple[Rows, ...]] = field(default_factory=list)
    engagements: list[tuple[Rows, ...]] = field(default_factory=list)
    beside: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    written: list[tuple[int, str]] = field(default_factory=list)
    moves: list[tuple[Rows, ...]] = field(default_factory=list)
    texts: dict[tuple[int, int, int], str] = field(default_factory=dict)
    notes: list[tuple[int, int, str, int]] = field(default_factory=list)
    stock: Stock | None = None

    def seen(self) -> tuple[Int32, Int32, Int32]:
        """Take the impressions: tick, agent, post."""
        tick, agent, post = _taken(self.impressions, 3)
        return tick, agent, post

    def engaged(self) -> list[Int32]:
        """Return all engagements: tick, agent, post, action; `social.engaged` says which of them count."""
        beside = tuple(np.array(list(self.beside.values()), np.int32).reshape(-1, 4).T)
        return _joined([beside, *self.engagements], 4)

    def unwritten(self, tick: Rows, agent: Rows, post: Rows, action: Rows) -> tuple[Rows, Rows, Rows, Rows]:
        """Return the replies and reshares among engagements that nobody gave words to, in their order."""
        left = action != _LIKE
        left[list(self._given(agent, post, action))] = False
        return tick[left], agent[left], post[left], action[left]

    def words(self, agent: Rows, post: Rows, action: Rows) -> tuple[list[str], Int32]:
        """Return different words, and which of them each of the engagements has, -1 for none."""
        said: list[str] = []
        places = np.full(len(agent), -1, np.int32)
        if self.stock is not None and len(self.stock.keys):
            keys = engagement_keys(agent, post, action)
            at = np.minimum(np.searchsorted(self.stock.keys, keys), len(self.stock.keys) - 1)
            said += self.stock.texts
            np.copyto(places, self.stock.places[at], where=self.stock.keys[at] == keys)
        for i, text in self._given(agent, post, action).items():
            places[i] = len(said)
            said.append(text)
        return said, places

    def _given(self, agent: Rows, post: Rows, action: Rows) -> dict[int, str]:
        """Return which of the engagements stand in `texts`, and their words."""
        if not self.texts:
            return {}
        own = np.flatnonzero(np.isin(agent, [row for row, _, _ in self.texts]))
        keys = zip(agent[own].tolist(), post[own].tolist(), action[own].tolist(), strict=True)
        return {i: self.texts[key] for i, key in zip(own.tolist(), keys, strict=True) if key in self.texts}


def _joined(parts: list[tuple[Rows, ...]], columns: int) -> list[Int32]:
    """Return the columns of all parts."""
    none = (np.zeros(0, np.int32),) * columns
    return [np.concatenate(column) for column in zip(none, *parts, strict=True)]


def _taken(parts: list[tuple[Rows, ...]], columns: int) -> list[Int32]:
    """Return the columns of all parts, and empty their list."""
    joined = _joined(parts, columns)
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
    if target in _ACTION_OF and post != NO_POST and not note_engagement(model, row, post, _ACTION_OF[target]):
        model.totals["repeated"] += 1
    if LETS_GO[target.code]:
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
    model.engaged.beside.add(row)
    model.events.beside[engagement_key(model, row, post, action)] = (
        model.tick if tick is None else tick,
        row,
        post,
        action,
    )
    return True


def _columns(*values: int) -> tuple[Rows, ...]:
    return tuple(np.array([value], np.int32) for value in values)
