"""The fields of all agents, one array per field, and their last transitions; row i is agent i."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Ints, Mask, Rows, UInt8, UInt16
from prism_mesa.domain import STATES, AgentState
from prism_mesa.errors import format_count
from prism_mesa.kernels.walking import arrays
from prism_mesa.snapshot import Plain, Restorable, from_plain, to_plain
from prism_mesa.social.state.agent_fields import FIELD_ROWS
from prism_mesa.social.state.chunks import packed_rows, unpack_rows
from prism_mesa.social.state.ids import Ids, Names

NO_POST: Final = arrays.NO_POST
NO_ACTION: Final = arrays.NO_ACTION
HISTORY_ENTRY: Final = arrays.HISTORY_ENTRY

IDENTITY_COLUMNS: Final = "interests traits numbers propensities attributes".split()
"""Columns that are drawn, or read from a file, when a run starts."""

MEMBER, WAITING, AWAY, GONE, SUSPENDED = range(5)
"""Membership codes: on the platform; waiting to join; left, may come back; left for good; suspended."""

STATE_BITS: Final = arrays.STATE_BITS


@dataclass(repr=False)
class Population(Restorable):
    """Columns of n agents.

    Attributes:
        ids: The agents' ids, as strings.
        names: The agents' names in prompts.
        interests: Shape (n, n_topics), int8, of length about 127.
        traits: Big Five on 1..5, shape (n, 5).
        numbers: Shape (fields, n), the fields in `AGENT_FIELDS`; each field is also an attribute, such as
            ``population.activity``.
        propensities: Shares of like, reply and reshare among engagements, shape (n, 3); rows sum to 1.
        attributes: Declared attributes as numbers, shape (n, attributes) (`state.attributes.Attributes`).
        present: Whether an agent is on the platform.
        membership: `MEMBER`, `WAITING`, `AWAY`, `GONE` or `SUSPENDED` when the last round opened; `present` also
            reflects agents that were removed or added since then.
        scripted: True for agents whose class overrides `step`; Mesa schedules them.
        state: State codes.
        ticks_in_state: Ticks since the last transition.
        pending_action: Index into `ACTIONS`, or `NO_ACTION`.
        current_post: The post under evaluation, or `NO_POST`; `current_match` holds its similarity.
        feed: This round's posts, best first, shape (n, feed size).
        n_feed: Number of posts in the feed; `n_read` is the number that the agent has read.
    """

    ids: Ids
    names: Names
    interests: npt.NDArray[np.int8]
    traits: npt.NDArray[np.float32]
    numbers: Floats
    propensities: npt.NDArray[np.float32]
    attributes: Floats
    present: Mask
    membership: UInt8
    scripted: Mask
    state: UInt8
    ticks_in_state: Int32
    pending_action: UInt8
    current_post: Int32
    current_match: npt.NDArray[np.int16]
    feed: Int32
    n_feed: UInt16
    n_read: UInt16

    def __len__(self) -> int:
        return len(self.state)

    def __getattr__(self, name: str) -> Floats:
        """Return a column of `numbers`, which is writable."""
        if name not in FIELD_ROWS:
            raise AttributeError(f"agents have no column {name!r}")
        column: Floats = self.numbers[FIELD_ROWS[name]]
        return column

    def checksums(self) -> dict[str, int]:
        """Return a CRC-32 of each column in `IDENTITY_COLUMNS`."""
        columns = {name: np.ascontiguousarray(getattr(self, name)) for name in IDENTITY_COLUMNS}
        return {name: crc32(column, crc32(str(column.shape).encode())) for name, column in columns.items()}

    def snapshot(self) -> dict[str, Plain]:
        """Return all columns; feeds without their unused entries."""
        return super().snapshot() | {"feed": packed_rows(self.feed, self.n_feed)}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot; feeds are truncated to `feed.size`, and columns missing from the snapshot stay."""
        size = self.feed.shape[1]
        self.restore_each([name for name in self.saved_fields if name in data], data)
        self.feed = np.zeros((len(self.n_feed), size), np.int32)
        unpack_rows(from_plain(data["feed"]), self.n_feed.astype(np.int64), self.feed)
        self.n_feed, self.n_read = np.minimum(self.n_feed, size), np.minimum(self.n_read, size)

    @property
    def has_joined(self) -> Mask:
        """Which agents are or were on the platform: all except those that wait to join."""
        return np.asarray(self.present | (self.membership != WAITING))

    def __repr__(self) -> str:
        return f"<Population: {format_count(len(self), 'agent')}>"

    def state_counts(
        self, skipped_rows: Sequence[int] = (), states: Sequence[AgentState] = STATES
    ) -> dict[AgentState, int]:
        """Return the number of present agents in each state, without `skipped_rows`."""
        is_counted = self.present.copy()
        is_counted[list(skipped_rows)] = False
        return dict(zip(states, np.bincount(self.state[is_counted], minlength=len(states)).tolist(), strict=True))

    def append(self, other: "Population") -> None:
        """Append the agents of another population."""
        for column in fields(self):
            column_data, added = getattr(self, column.name), getattr(other, column.name)
            if isinstance(column_data, np.ndarray):
                setattr(self, column.name, np.concatenate([column_data, added], axis=int(column.name == "numbers")))
            else:
                column_data.extend(added)


Population.saved_fields = tuple(column.name for column in fields(Population) if column.name != "feed")


class Categories:
    """A column of codes that can be compared with strings.

    >>> (Categories(np.array([0, 2]), ("like", "reply", "reshare")) == "reshare").tolist()
    [False, True]
    """

    def __init__(self, codes: Rows, names: tuple[str, ...]) -> None:
        self._codes, self._names = codes, names

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        code = self._names.index(other) if isinstance(other, str) and other in self._names else -1
        return np.asarray(self._codes == code)

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]

    def texts(self) -> npt.NDArray[np.str_]:
        """Return the column as strings."""
        return np.asarray(np.array([*self._names, ""])[self._codes])


STATE_NAMES: Final = tuple(state.value for state in STATES)


class History(Restorable):
    """The latest transitions of every agent, in ring buffers; 10 bytes per entry.

    Attributes:
        ring: Shape (n, depth), with the fields `move` (packed trigger, source and target), `clock`
            (`Clock.tick_number`) and `post` (the current post, or `NO_POST`).
        count: Transitions so far, shape (n,).
        limits: Limits below `depth`, by row.
    """

    def __init__(self, n: int, depth: int) -> None:
        self.depth = depth
        self.ring = np.zeros((n, depth), HISTORY_ENTRY)
        self.count = np.zeros(n, np.int64)
        self.limits: dict[int, int] = {}

    def limit(self, row: int) -> int:
        """Return the number of transitions that an agent keeps."""
        return self.limits.get(row, self.depth)

    def set_limit(self, row: int, limit: int) -> None:
        """Limit an agent's history; dropped transitions do not come back."""
        entries = self.ring[row, self.positions(row, limit)]
        self.ring[row, : len(entries)], self.count[row], self.limits[row] = entries, len(entries), limit

    def positions(self, row: int, n: int | None = None) -> Ints:
        """Return the positions of an agent's last transitions (up to `n`) in the ring buffer, oldest first."""
        count, limit = int(self.count[row]), self.limit(row)
        return np.arange(max(0, count - min(limit if n is None else n, limit)), count) % max(self.depth, 1)

    def snapshot(self) -> dict[str, Plain]:
        """Return the ring buffers, or only their entries if at most half is in use."""
        lengths = np.minimum(self.count, self.depth)
        ring = self.ring if 2 * int(lengths.sum()) > self.ring.size else packed_rows(self.ring, lengths)
        return {"count": self.count, "ring": ring, "limits": to_plain(self.limits)}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        self.count, self.limits, ring = (from_plain(data[name]) for name in ("count", "limits", "ring"))
        if ring.ndim == 2:
            self.ring = ring
        else:
            self.ring = np.zeros((len(self.count), self.depth), HISTORY_ENTRY)
            unpack_rows(ring, np.minimum(self.count, self.depth), self.ring)

    def grow(self, n_agents: int) -> None:
        """Make room for `n_agents` agents."""
        self.ring = np.concatenate([self.ring, np.zeros((n_agents, self.depth), HISTORY_ENTRY)])
        self.count = np.concatenate([self.count, np.zeros(n_agents, np.int64)])

    def record(self, rows: Rows, moves: UInt16, clock: Int32, posts: Rows) -> None:
        """Append one entry to the history of each of `rows`, which are distinct."""
        if not self.depth:
            return
        entries = np.empty(len(rows), HISTORY_ENTRY)
        entries["move"], entries["clock"], entries["post"] = moves, clock, posts
        count = self.count[rows]
        self.ring.reshape(-1)[rows * self.depth + count % self.depth] = entries  # one index is faster than two
        self.count[rows] = count + 1

    def last_moves(self, row: int, max_moves: int) -> list[int]:
        """Return up to `max_moves` last packed moves of an agent, oldest first."""
        moves: list[int] = self.ring["move"][row, self.positions(row, max_moves)].tolist()
        return moves

    def entries(self, row: int) -> list[tuple[int, int, int]]:
        """Return (move, clock, post) of an agent's transitions, oldest first."""
        entries: list[tuple[int, int, int]] = self.ring[row, self.positions(row)].tolist()
        return entries


def pack_move(trigger: int, source: int, target: int) -> int:
    """Return a transition as a number below 2**16 (up to 256 triggers and 16 states)."""
    return trigger << 2 * STATE_BITS | source << STATE_BITS | target


def unpack_codes[Move: (int, Rows)](move: Move) -> tuple[Move, Move, Move]:
    """Return the trigger's index and the codes of source and target, for one move or a column."""
    state = (1 << STATE_BITS) - 1
    return move >> 2 * STATE_BITS, move >> STATE_BITS & state, move & state


def unpack_move(move: int, states: Sequence[AgentState] = STATES) -> tuple[int, AgentState, AgentState]:
    """Return the trigger's index, the source and the target."""
    trigger, source, target = unpack_codes(move)
    return trigger, states[source], states[target]
