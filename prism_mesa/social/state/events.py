"""What happens in a round before it is committed, and which engagements count only once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.commit.orders import ascends, order_by_agent
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.state.population import Rows

type Mask = npt.NDArray[np.bool_]
type Keys = npt.NDArray[np.int64]

LIKE: Final = ACTIONS.index("like")
REPLY: Final = ACTIONS.index("reply")
_NO_KEYS: Final[Keys] = np.zeros(0, np.int64)
_LONG: Final = 1 << 20
_SHORT: Final = 1 << 13
"""Keys in a part that is joined for however few are sought, and (`_LONG`) in one that never is."""


class Engagements(Restorable):
    """Who has liked, and who has reshared, which root in the rounds that are committed: 8 bytes each, for good.

    Attributes:
        beside: Rows that have ever engaged beside the columns: by a script, a tool, an action of a chart.
        carried: Rows that came into this round with a post at hand, or with engagements since the last commit.
    """

    changes = ("beside",)

    def __init__(self) -> None:
        self._parts: list[Keys] = []
        self.beside: set[int] = set()
        self.carried: Rows = np.zeros(0, np.int32)

    def snapshot(self) -> dict[str, Plain]:
        """Return all keys, one part behind the other."""
        lengths = np.array(list(map(len, self._parts)), np.int64)
        return super().snapshot() | {"keys": np.concatenate([_NO_KEYS, *self._parts]), "lengths": lengths}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned."""
        super().restore(kept)
        keys, lengths = kept["keys"], kept["lengths"]
        self._parts = [part.copy() for part in np.split(keys, np.cumsum(lengths)[:-1])] if len(keys) else []

    def add(self, keys: Keys) -> None:
        """Remember likes and reshares; `keys` ascend."""
        if len(keys):
            self._parts.append(keys)

    def holds(self, keys: Keys) -> Mask:
        """Return which of `keys` have been added."""
        self._join(max(len(keys), _SHORT))
        found = np.zeros(len(keys), np.bool_)
        for part in self._parts:
            found |= part[np.minimum(np.searchsorted(part, keys), len(part) - 1)] == keys
        return found

    def _join(self, most: int) -> None:
        """Join the last parts with those before them that are not much longer, so that there are few to search.

        Rounds only add parts: it costs nothing while nobody asks. Parts of more than `most` entries stay: to join them
        takes longer than to search them for so many. Very long ones stay too, as joining takes their memory twice.
        """
        first = max(len(self._parts) - 1, 0)
        size = sum(map(len, self._parts[first:]))
        while first > 0 and len(self._parts[first - 1]) <= min(2 * size, most, _LONG):
            first -= 1
            size += len(self._parts[first])
        if len(self._parts) - first > 1:
            self._parts[first:] = [np.sort(np.concatenate(self._parts[first:]), kind="stable")]


def engagement_keys(agent: Rows, about: Rows, action: Rows) -> Keys:
    """Return one number for each engagement, ascending by agent, what it is about (a post, or its root), and action."""
    return agent.astype(np.int64) << 33 | about.astype(np.int64) << 2 | action


type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TemplateTexts:
    """Words that many engagements share: that of ``keys[i]`` says ``texts[places[i]]``.

    Attributes:
        keys: What `engagement_keys` makes of the engagements, ascending.
    """

    texts: list[str]
    keys: Int64
    places: Int32


@dataclass
class Events(Restorable):
    """What happened in a round and is not yet committed: lists of column tuples.

    Attributes:
        impressions: (tick, agent, post).
        engagements: Those of the columns: (tick, agent, post, action code); agents ascend in each tuple.
        beside: All others, each that counts once: `engagement_key` -> tick, agent, post, action code.
        written: Extra posts, by agents' own scripts or a tool: (agent, text).
        moves: Transitions for the records: (tick, agent, packed move, post, was open).
        texts: The words of replies and reshares: (agent, post, action code) -> one line.
        decided: What scripts and tools decide about others: (agent, other, place in `domain.FOLLOW_EVENTS`) -> (post,
            place in `domain.FOLLOW_REASONS`); of a report the root stands in the place of the other.
        notes: What agents wrote down for themselves: (tick, agent, text, importance).
        template_texts: Words of those that are not among `texts`, if they were given in columns.
    """

    changes = ("impressions", "engagements", "beside", "written", "moves", "texts", "notes", "decided")

    impressions: list[tuple[Int32, ...]] = field(default_factory=list)
    engagements: list[tuple[Int32, ...]] = field(default_factory=list)
    beside: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    written: list[tuple[int, str]] = field(default_factory=list)
    moves: list[tuple[Int32, ...]] = field(default_factory=list)
    texts: dict[tuple[int, int, int], str] = field(default_factory=dict)
    notes: list[tuple[int, int, str, int]] = field(default_factory=list)
    decided: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    template_texts: TemplateTexts | None = None

    def seen(self) -> tuple[Int32, Int32, Int32]:
        """Return all impressions: tick, agent, post."""
        tick, agent, post = _joined(self.impressions, 3)
        return tick, agent, post

    def put_in_order(self, n_agents: int) -> None:
        """Let agents ascend in the parts of impressions, each of which begins behind the last agent of that before."""
        self.impressions, last = [part for part in self.impressions if len(part[1])], -1
        for _, agent, _ in self.impressions:
            if agent[0] <= last or not ascends(agent):
                tick, agent, post = self.seen()
                order = order_by_agent(agent, n_agents)
                self.impressions = [(tick[order], agent[order], post[order])]
                return
            last = agent[-1]

    @property
    def n_engaged(self) -> int:
        """How many engagements were noted; fewer may count."""
        return len(self.beside) + sum(len(part[0]) for part in self.engagements)

    def engaged(self) -> tuple[Int32, ...]:
        """Return all engagements: tick, agent, post, action; `social.round.engagements` says which of them count."""
        if not self.beside:
            return _joined(self.engagements, 4)
        beside = tuple(np.array(list(self.beside.values()), np.int32).T)
        return _joined([beside, *self.engagements], 4)

    def unwritten(self, tick: Rows, agent: Rows, post: Rows, action: Rows) -> tuple[Rows, Rows, Rows, Rows]:
        """Return the replies and reshares among engagements that nobody gave words to, in their order."""
        left = action != LIKE
        left[list(self._given(agent, post, action))] = False
        return tick[left], agent[left], post[left], action[left]

    def words(self, agent: Rows, post: Rows, action: Rows) -> tuple[list[str], Int32]:
        """Return different words, and which of them each of the engagements has, -1 for none."""
        said: list[str] = []
        places = np.full(len(agent), -1, np.int32)
        if self.template_texts is not None and len(self.template_texts.keys):
            keys = engagement_keys(agent, post, action)
            at = np.minimum(np.searchsorted(self.template_texts.keys, keys), len(self.template_texts.keys) - 1)
            said += self.template_texts.texts
            np.copyto(places, self.template_texts.places[at], where=self.template_texts.keys[at] == keys)
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


def _joined(parts: list[tuple[Int32, ...]], columns: int) -> tuple[Int32, ...]:
    """Return the columns of all parts."""
    if len(parts) == 1:
        return parts[0]
    none = (np.zeros(0, np.int32),) * columns
    return tuple(np.concatenate(column) for column in zip(none, *parts, strict=True))


@dataclass(frozen=True)
class Clock:
    """Time of a run: tick 0 opens a round, 1 .. T are its ticks, T + 1 closes it.

    Attributes:
        start: When round 0 opens, in UTC.
        round_length: Simulated length of a round.
        ticks_per_round: T.
    """

    start: datetime
    round_length: timedelta
    ticks_per_round: int

    def number(self, round_: int, tick: int) -> int:
        """Return round and tick as one number that grows with time."""
        return round_ * (self.ticks_per_round + 2) + tick

    def round_and_tick(self, number: int) -> tuple[int, int]:
        """Return the round and the tick of a number."""
        return divmod(number, self.ticks_per_round + 2)

    def at(self, number: int) -> datetime:
        """Return the time of a numbered tick."""
        round_, rest = self.round_and_tick(number)  # apart: all ticks times a long round would overflow
        return self.start + self.round_length * round_ + self.round_length * rest / (self.ticks_per_round + 2)

    def nearest(self, time: datetime) -> int:
        """Return the numbered tick nearest to a time."""
        return round((time - self.start) / self.round_length * (self.ticks_per_round + 2))


@dataclass
class PendingAnswers(Restorable):
    """Agents whose question is out, with what they were doing: row -> (tick, trigger, post).

    `keys` holds what the guards said to those whose answer may lead along several transitions (see
    `Statechart.resolve_key`).
    """

    changes = ("by_row", "keys")

    by_row: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)

    def put(self, ticks: Rows, rows: Rows, triggers: Rows, posts: Rows) -> None:
        """Let agents wait; each waits for one answer at most."""
        doing = zip(ticks.tolist(), triggers.tolist(), posts.tolist(), strict=True)
        self.by_row.update(zip(rows.tolist(), doing, strict=True))

    def __bool__(self) -> bool:
        return bool(self.by_row)
