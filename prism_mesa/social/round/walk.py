"""Handing the population to the walk: blocks of rows, shared between threads, and gathering what came about."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.walk import walk
from prism_mesa.kernels.walk_arrays import ITS_OWN, NOTHING, HistoryRing, People, RoundConstants, WalkOutput
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.chunks import in_threads
from prism_mesa.social.state.population import Population, Rows
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.statechart import STATES

type Int32 = npt.NDArray[np.int32]

BLOCK: Final = 1 << 13
"""Most agents that walk in one block: bounds the memory for events, not the result."""

_MOST_EVENTS: Final = 1 << 18
"""Most events of one kind in a block: with many ticks, blocks have fewer agents."""


@dataclass(frozen=True)
class Walkers:
    """Agents about to walk, each once: arrays of one length.

    Attributes:
        rows: Which agents.
        at: The tick that each has come to.
        triggers: What happens there first, or `NOTHING`.
        targets: Where that leads (see `kernels.walk.walk`).
        opens: Whether that was an open choice.
        about: The post that was decided about, or `ITS_OWN`.
    """

    rows: Int32
    at: Int32
    triggers: Int32
    targets: Int32
    opens: npt.NDArray[np.uint8]
    about: Int32

    @classmethod
    def of(
        cls,
        rows: Rows,
        at: Rows | int,
        triggers: Rows,
        targets: Rows,
        opens: npt.NDArray[np.generic],
        about: Rows | int = ITS_OWN,
    ) -> Self:
        """Return agents in these columns."""
        return cls(
            np.ascontiguousarray(rows, np.int32),
            np.array(np.broadcast_to(at, len(rows)), np.int32),
            np.ascontiguousarray(triggers, np.int32),
            np.ascontiguousarray(targets, np.int32),
            np.ascontiguousarray(opens, np.uint8),
            np.array(np.broadcast_to(about, len(rows)), np.int32),
        )

    @classmethod
    def starting(cls, rows: Rows, at: int) -> Self:
        """Return agents that go on from a tick with nothing to do first."""
        none = np.full(len(rows), NOTHING)
        return cls.of(rows, at, none, none.copy(), np.zeros(len(rows), np.uint8))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return all of several parts, ascending by row."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.starting(np.zeros(0, np.int32), 0)
        names = [column.name for column in fields(cls)]
        joined = cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        return joined.cut(np.argsort(joined.rows, kind="stable"))

    def cut(self, which: slice | Rows) -> Self:
        """Return these agents only."""
        return type(self)(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True)
class Stopped:
    """Agents that have stopped, ascending by row, and what stopped them (an outcome of `kernels.walk_arrays`)."""

    rows: Int32
    ticks: Int32
    triggers: Int32
    outcomes: Int32

    def take(self, which: npt.NDArray[np.bool_]) -> "Stopped":
        """Return those that a mask marks."""
        if which.all():
            return self
        return Stopped(self.rows[which], self.ticks[which], self.triggers[which], self.outcomes[which])


def walk_agents(platform: Platform, walkers: Walkers, until: int) -> Stopped:
    """Let agents walk up to the tick `until`; note their events and counts, and return those that have stopped."""
    ticks = platform.params.ticks_per_round
    feed = platform.params.feed
    seen = min(feed.size, ticks * feed.glances)
    size = max(1, min(BLOCK, _MOST_EVENTS // (max(ticks, seen) + 1)))
    cuts = [slice(first, first + size) for first in range(0, len(walkers.rows), size)]
    keeping = platform.move_keeping()
    keeps = bool(keeping.any())
    n_programs = len(platform.tables.programs.reads_post)
    common = (
        keeping,
        platform.tables.chart,
        platform.tables.programs,
        people_of(platform.population),
        platform.posts.table,
        *platform.tastes,
        _setting(platform),
        HistoryRing(platform.history.ring, platform.history.count),
    )

    # used again from block to block: memory that is given back and forth is not all given back
    rooms: list[WalkOutput] = []

    def block(cut: slice) -> WalkOutput:
        part = walkers.cut(cut)
        out = rooms.pop() if rooms else _room(min(size, len(walkers.rows)), ticks, seen, n_programs, keeps=keeps)
        walk(part.rows, part.at, part.triggers, part.targets, part.opens, part.about, until, *common, out)
        trimmed = _take_out(out)
        rooms.append(out)
        return trimmed

    found = in_threads(block, cuts, platform.params.threads)
    events = platform.events
    for out in found:
        platform.tick_counts += out.counts
        platform.tables.note_values(out.gave_value)
        for columns, noted in (
            (out.impressions, events.impressions),
            (out.engagements, events.engagements),
            (out.moves, events.moves),
        ):
            if columns.size:
                noted.append(tuple(columns))
    return Stopped(*np.concatenate([out.stopped for out in found], axis=1))


def people_of(population: Population) -> People:
    """Return the columns of the population that kernels work on."""
    return People(**{name: getattr(population, name) for name in People._fields})


def _setting(platform: Platform) -> RoundConstants:
    return RoundConstants(
        half_band=platform.half_band,
        glances=platform.params.feed.glances,
        unit_length=UNIT_LENGTH,
        action_key=platform.streams.key("action", platform.round),
        ticks=platform.params.ticks_per_round,
        clock=platform.time_of_day.number(max(platform.round, 0), 0),
        depth=platform.history.depth,
    )


def _room(n: int, ticks: int, seen: int, n_programs: int, *, keeps: bool) -> WalkOutput:
    most = n * (ticks + 1)
    return WalkOutput(
        size=np.zeros(5, np.int64),
        counts=np.zeros((ticks, len(STATES)), np.int64),
        stopped=np.empty((4, n), np.int32),
        impressions=np.empty((3, n * (seen + 1)), np.int32),
        engagements=np.empty((4, most), np.int32),
        moves=np.empty((5, most if keeps else 0), np.int32),
        gave_value=np.zeros(n_programs, np.uint8),
    )


def _take_out(out: WalkOutput) -> WalkOutput:
    """Return what came about, without the room that was not needed, which is made ready for the next block."""
    stopped, impressions, engagements, moves = out.size[:4].tolist()
    counts = out.counts.copy()
    out.counts[:] = 0
    return out._replace(
        counts=counts,
        stopped=out.stopped[:, :stopped].copy(),
        impressions=out.impressions[:, :impressions].copy(),
        engagements=out.engagements[:, :engagements].copy(),
        moves=out.moves[:, :moves].copy(),
        gave_value=out.gave_value.copy(),
    )
