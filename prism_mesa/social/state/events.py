"""Events of a round before its commit, and earlier engagements, because each counts only once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from prism_mesa.arrays import Int32, Keys, Mask, Rows
from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.commit.orders import is_ascending, order_by_agent
from prism_mesa.snapshot import Plain, Restorable

LIKE: Final = ACTIONS.index("like")
REPLY: Final = ACTIONS.index("reply")
RESHARE: Final = ACTIONS.index("reshare")
_NO_KEYS: Final[Keys] = np.zeros(0, np.int64)
_MAX_JOIN_LENGTH: Final = 1 << 20
"""Maximum length of a part that is joined with others."""
_SHORT_PART_LENGTH: Final = 1 << 13
"""Length up to which parts are always joined."""


class Engagements(Restorable):
    """The likes and reshares of roots in committed rounds, 8 bytes each.

    Attributes:
        individual_rows: Rows of agents that have engaged through a script, a tool or an action.
        carried_rows: Rows of agents that began this round with a current post, or with uncommitted engagements.
    """

    saved_fields = ("individual_rows",)

    def __init__(self) -> None:
        self._parts: list[Keys] = []
        self.individual_rows: set[int] = set()
        self.carried_rows: Rows = np.zeros(0, np.int32)

    def snapshot(self) -> dict[str, Plain]:
        """Return all keys, concatenated."""
        lengths = np.array(list(map(len, self._parts)), np.int64)
        return super().snapshot() | {"keys": np.concatenate([_NO_KEYS, *self._parts]), "lengths": lengths}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        super().restore(data)
        keys, lengths = data["keys"], data["lengths"]
        self._parts = [part.copy() for part in np.split(keys, np.cumsum(lengths)[:-1])] if len(keys) else []

    def add(self, keys: Keys) -> None:
        """Add likes and reshares; `keys` must ascend."""
        if len(keys):
            self._parts.append(keys)

    def contains(self, keys: Keys) -> Mask:
        """Return which of `keys` have been added."""
        self._join_parts(max(len(keys), _SHORT_PART_LENGTH))
        is_known = np.zeros(len(keys), np.bool_)
        for part in self._parts:
            is_known |= part[np.minimum(np.searchsorted(part, keys), len(part) - 1)] == keys
        return is_known

    def _join_parts(self, max_length: int) -> None:
        """Join the last parts with earlier parts that are not much longer, so that there are few parts to search.

        A part of more than `max_length` entries is faster to search than to join. Joining very long parts would need
        twice their memory.
        """
        first = max(len(self._parts) - 1, 0)
        size = sum(map(len, self._parts[first:]))
        while first > 0 and len(self._parts[first - 1]) <= min(2 * size, max_length, _MAX_JOIN_LENGTH):
            first -= 1
            size += len(self._parts[first])
        if len(self._parts) - first > 1:
            self._parts[first:] = [np.sort(np.concatenate(self._parts[first:]), kind="stable")]


def engagement_keys(agent: Rows, target: Rows, action: Rows) -> Keys:
    """Return a number for each engagement; numbers ascend by agent, then root or post, then action."""
    return agent.astype(np.int64) << 33 | target.astype(np.int64) << 2 | action


@dataclass(frozen=True)
class TemplateTexts:
    """Words shared by engagements: the engagement ``keys[i]`` (ascending) has the words ``texts[text_indices[i]]``."""

    texts: list[str]
    keys: Keys
    text_indices: Int32


@dataclass
class Events(Restorable):
    """The events of a round before its commit; most are lists of tuples of columns.

    Attributes:
        impressions: Columns (tick, agent, post).
        engagements: Engagements of agents that are updated as columns: (tick, agent, post, action code), by agent.
        individual_engagements: All other engagements: `engagement_key` -> (tick, agent, post, action code).
        written: Posts by scripts or tools: (agent, text).
        moves: Recorded transitions: columns (tick, agent, packed move, post, was open).
        given_up: Actions that agents gave up: columns (tick, agent, post, action code, index in `Platform.marks`).
        softened: Replies that a friction made milder: (agent, post) -> (index in `Platform.marks`, attributes).
        texts: Words of replies and reshares: (agent, post, action code) -> one line.
        decided: Decisions of scripts and tools about other agents: (agent, other, index in `domain.FOLLOW_EVENTS`) ->
            (post, index in `domain.FOLLOW_REASONS`). A report has the root instead of the other agent.
        notes: Notes that agents wrote for themselves: (tick, agent, text, importance).
        template_texts: Words from templates.
    """

    saved_fields = tuple(
        "impressions engagements individual_engagements written moves given_up softened texts notes decided".split()
    )

    impressions: list[tuple[Int32, ...]] = field(default_factory=list)
    engagements: list[tuple[Int32, ...]] = field(default_factory=list)
    individual_engagements: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    written: list[tuple[int, str]] = field(default_factory=list)
    moves: list[tuple[Int32, ...]] = field(default_factory=list)
    given_up: list[tuple[Int32, ...]] = field(default_factory=list)
    softened: dict[tuple[int, int], tuple[int, list[float]]] = field(default_factory=dict)
    texts: dict[tuple[int, int, int], str] = field(default_factory=dict)
    notes: list[tuple[int, int, str, int]] = field(default_factory=list)
    decided: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    template_texts: TemplateTexts | None = None

    def all_impressions(self) -> tuple[Int32, Int32, Int32]:
        """Return all impressions as columns: tick, agent, post."""
        tick, agent, post = _concatenate(self.impressions, 3)
        return tick, agent, post

    def sort_impressions(self, n_agents: int) -> None:
        """Sort impressions by agent, unless agents already ascend within and between parts."""
        self.impressions, last_agent = [part for part in self.impressions if len(part[1])], -1
        for _, agent, _ in self.impressions:
            if agent[0] <= last_agent or not is_ascending(agent):
                tick, agent, post = self.all_impressions()
                order = order_by_agent(agent, n_agents)
                self.impressions = [(tick[order], agent[order], post[order])]
                return
            last_agent = agent[-1]

    @property
    def max_new_posts(self) -> int:
        """The maximum number of posts that the commit will add."""
        n_spread = sum(int((action != LIKE).sum()) for *_, action in self.engagements)
        return len(self.written) + len(self.individual_engagements) + n_spread

    def all_engagements(self) -> tuple[Int32, ...]:
        """Return all engagements as columns: tick, agent, post, action.

        `social.round.engagements` selects the engagements that count.
        """
        rows = list(self.individual_engagements.values())
        return _concatenate([*([tuple(np.array(rows, np.int32).T)] if rows else []), *self.engagements], 4)

    def wordless(self, tick: Rows, agent: Rows, post: Rows, action: Rows) -> tuple[Rows, Rows, Rows, Rows]:
        """Return the columns of replies and reshares that have no words yet."""
        is_unwritten = action != LIKE
        is_unwritten[list(self._written_texts(agent, post, action))] = False
        return tick[is_unwritten], agent[is_unwritten], post[is_unwritten], action[is_unwritten]

    def engagement_words(self, agent: Rows, post: Rows, action: Rows) -> tuple[list[str], Int32]:
        """Return a list of words, and for each engagement its index in the list, or -1."""
        texts: list[str] = []
        indices = np.full(len(agent), -1, np.int32)
        templates = self.template_texts
        if templates is not None and len(templates.keys):
            keys = engagement_keys(agent, post, action)
            positions = np.minimum(np.searchsorted(templates.keys, keys), len(templates.keys) - 1)
            texts += templates.texts
            np.copyto(indices, templates.text_indices[positions], where=templates.keys[positions] == keys)
        for i, text in self._written_texts(agent, post, action).items():
            indices[i] = len(texts)
            texts.append(text)
        return texts, indices

    def _written_texts(self, agent: Rows, post: Rows, action: Rows) -> dict[int, str]:
        """Return the words from `texts`, by the index of their engagement."""
        if not self.texts:
            return {}
        rows = np.flatnonzero(np.isin(agent, [row for row, _, _ in self.texts]))
        keys = zip(agent[rows].tolist(), post[rows].tolist(), action[rows].tolist(), strict=True)
        return {i: self.texts[key] for i, key in zip(rows.tolist(), keys, strict=True) if key in self.texts}


def _concatenate(parts: list[tuple[Int32, ...]], columns: int) -> tuple[Int32, ...]:
    if len(parts) == 1:
        return parts[0]
    return tuple(np.concatenate(column) for column in zip((np.zeros(0, np.int32),) * columns, *parts, strict=True))


@dataclass(frozen=True)
class Clock:
    """The clock of a run, whose round 0 starts at `start`, in UTC.

    Tick 0 opens a round, ticks 1 to `ticks_per_round` follow, and one more tick closes it.
    """

    start: datetime
    round_length: timedelta
    ticks_per_round: int

    def tick_number(self, round_: int, tick: int) -> int:
        """Return the number of a tick, which ascends with time."""
        return round_ * (self.ticks_per_round + 2) + tick

    def round_and_tick(self, number: int) -> tuple[int, int]:
        """Return the round and tick from a tick's number."""
        return divmod(number, self.ticks_per_round + 2)

    def time_at(self, number: int) -> datetime:
        """Return the time of a tick from its number."""
        round_, tick = self.round_and_tick(number)  # the product of all ticks and a long round would overflow
        return self.start + self.round_length * round_ + self.round_length * tick / (self.ticks_per_round + 2)

    def nearest_tick(self, time: datetime) -> int:
        """Return the number of the tick nearest to a time."""
        return round((time - self.start) / self.round_length * (self.ticks_per_round + 2))


@dataclass
class PendingAnswers(Restorable):
    """Agents that wait for an answer: row -> (tick, trigger, post).

    If an answer may lead to several transitions, `keys` holds the guards' values (see `Statechart.resolve_key`).
    """

    saved_fields = ("by_row", "keys")

    by_row: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)

    def add(self, ticks: Rows, rows: Rows, triggers: Rows, posts: Rows) -> None:
        """Add agents that wait, each for one answer."""
        waiting = zip(ticks.tolist(), triggers.tolist(), posts.tolist(), strict=True)
        self.by_row.update(zip(rows.tolist(), waiting, strict=True))

    def __bool__(self) -> bool:
        return bool(self.by_row)
