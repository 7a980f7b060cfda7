"""Which engagements count: an agent likes a root once and reshares it once, and answers a post once a round.

That holds for what chart, scripts and tools do together. What comes first counts; the rest is dropped when the round
is committed, and a script or a tool that would only repeat it is told so at once.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.social.state.population import NO_POST, Rows

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

type Mask = npt.NDArray[np.bool_]
type Keys = npt.NDArray[np.int64]
type Columns = tuple[Rows, Rows, Rows, Rows]
"""Engagements: tick, agent, post, action."""

_REPLY: Final = ACTIONS.index("reply")


class Engagements:
    """Who has liked, and who has reshared, which root in the rounds that are committed: 8 bytes each, for good.

    Attributes:
        beside: Rows that have ever engaged beside the columns: by a script, a tool, an action of a chart.
        carried: Rows that came into this round with a post at hand, or with engagements since the last commit.
    """

    def __init__(self) -> None:
        self._parts: list[Keys] = []
        self.beside: set[int] = set()
        self.carried: Rows = np.zeros(0, np.int32)

    def add(self, keys: Keys) -> None:
        """Remember likes and reshares; `keys` ascend."""
        if len(keys):
            self._parts.append(keys)

    def holds(self, keys: Keys) -> Mask:
        """Return which of `keys` have been added."""
        self._join()
        found = np.zeros(len(keys), np.bool_)
        for part in self._parts:
            found |= part[np.minimum(np.searchsorted(part, keys), len(part) - 1)] == keys
        return found

    def _join(self) -> None:
        """Join the last parts with those before them that are not much longer, so that there are few to search.

        Rounds only add parts: it costs nothing while nobody asks.
        """
        first, size = len(self._parts), 0
        while first > 0 and len(self._parts[first - 1]) <= 2 * size + 1:
            first -= 1
            size += len(self._parts[first])
        if len(self._parts) - first > 1:
            self._parts[first:] = [np.sort(np.concatenate(self._parts[first:]), kind="stable")]


def engagement_keys(agent: Rows, about: Rows, action: Rows) -> Keys:
    """Return one number for each engagement, ascending by agent, what it is about (a post, or its root), and action."""
    return agent.astype(np.int64) << 33 | about.astype(np.int64) << 2 | action


def open_round(model: "SocialModel") -> None:
    """Note who comes into the round with a post at hand, or has engaged since the last one was committed."""
    pending = [agent for _, agent, _, _ in model.events.engagements]
    model.engagements.carried = np.concatenate([np.flatnonzero(model.population.current_post != NO_POST), *pending])


def has_engaged(model: "SocialModel", row: int, post: int, action: int) -> bool:
    """Return whether an agent has liked or reshared the root of a post before, or has answered the post this round."""
    key = engagement_key(model, row, post, action)
    if key in model.events.beside:
        return True
    for _, agents, posts, actions in model.events.engagements:  # in each of them agents ascend
        of_row = slice(*(int(np.searchsorted(agents, np.int32(row), side)) for side in ("left", "right")))
        if (_keys(model, agents[of_row], posts[of_row], actions[of_row]) == key).any():
            return True
    return action != _REPLY and bool(model.engagements.holds(np.array([key]))[0])


def engagement_key(model: "SocialModel", row: int, post: int, action: int) -> int:
    """Return a number that is the same for what counts once."""
    return int(_keys(model, *(np.array([value]) for value in (row, post, action)))[0])


def counted(model: "SocialModel") -> Columns:
    """Return which of the engagements noted since the last commit count: tick, agent, post, action; by tick and agent.

    Of several that count once it is the one with the lowest tick, and of these that noted first; what was noted
    before the round opened comes before all of it.
    """
    return _counted(model)[0]


def taken(model: "SocialModel") -> Columns:
    """Return the same for good: they are remembered, and nothing is noted any more.

    What the columns have noted in vain is counted in `totals`; whoever else is not new has been told.
    """
    found, keys, n_in_vain = _counted(model)
    model.totals["repeated"] += n_in_vain
    model.engagements.add(keys[keys & 3 != _REPLY])
    model.events.engagements.clear()
    model.events.beside.clear()
    return found


def _counted(model: "SocialModel") -> tuple[Columns, Keys, int]:
    """Return the engagements that count, by tick, their keys, which ascend, and how many of the columns do not."""
    tick, agent, post, action = model.events.engaged()
    keys = _keys(model, agent, post, action)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    counts = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=counts[1:])
    if not counts.all():
        before = tick > model.params.ticks_per_round  # since the last commit, when this round had not opened
        order = order[np.lexsort((np.where(before, 0, tick)[order], keys))]
    _drop_known(model, keys, counts)
    n_in_vain = int((order[~counts] >= len(model.events.beside)).sum())
    first = order[counts]
    first = first[np.argsort(tick[first], kind="stable")]
    return (tick[first], agent[first], post[first], action[first]), keys[counts], n_in_vain


def _keys(model: "SocialModel", agent: Rows, post: Rows, action: Rows) -> Keys:
    return engagement_keys(agent, np.where(action == _REPLY, post, model.posts.root[post]), action)


def _drop_known(model: "SocialModel", keys: Keys, counts: Mask) -> None:
    """Take those out of `counts` that repeat a like or a reshare of an earlier round.

    Most cannot, and are not looked up. Feeds leave out roots that an agent has read, as long as they can be shown
    without a break; so who engages again has done it beside the columns, still has the post at hand, or means a root
    that is itself too old for feeds, and may have come back.
    """
    engaged, population = model.engagements, model.population
    oldest = model.posts.first_visible(max(model.round, 0), model.params.feed.window)
    may_repeat = (keys >> 2 & 2**31 - 1) < oldest
    suspects = np.zeros(len(population), np.bool_)
    suspects[list(engaged.beside)] = True
    suspects[engaged.carried] = True
    if suspects.any():
        may_repeat |= suspects[keys >> 33]
    which = np.flatnonzero(may_repeat)
    counts[which[engaged.holds(keys[which])]] = False
