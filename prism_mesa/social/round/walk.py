"""Handing the population to the walk: parts of it, shared between threads, and gathering what came about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.utility import PREVIEW, Tastes, TasteTables, fill_previews
from prism_mesa.kernels.walking.arrays import ITS_OWN, NOTHING, HistoryRing, People, PostTable, RoundConstants
from prism_mesa.kernels.walking.walk import walk
from prism_mesa.kernels.walking.world import Ahead, Starts, World
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.choices import answers_at_once
from prism_mesa.social.round.walk_tables import WalkBuffers
from prism_mesa.social.state.chunks import in_threads
from prism_mesa.social.state.population import Population, Rows
from prism_mesa.social.state.topics import UNIT_LENGTH

type Int32 = npt.NDArray[np.int32]

MOST_EVENTS: Final = 1 << 18
"""Most events of one kind in a block of agents: bounds the memory for events, not the result."""

PART: Final = 1 << 13
"""Agents from which on several threads share them."""
_PARTS: Final = 8
"""Parts of the agents for each thread, as one part takes longer than another."""


@dataclass(frozen=True)
class Walkers:
    """Agents about to walk (see `kernels.walking.world.Starts`)."""

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
        triggers: Rows | int,
        targets: Rows | int,
        opens: npt.NDArray[np.generic] | int,
        about: Rows | int = ITS_OWN,
    ) -> Self:
        """Return agents in these columns."""
        n = len(rows)
        return cls(
            np.ascontiguousarray(rows, np.int32),
            _column(at, n),
            _column(triggers, n),
            _column(targets, n),
            _column(opens, n).astype(np.uint8),
            _column(about, n),
        )

    @classmethod
    def starting(cls, rows: Rows, at: int) -> Self:
        """Return agents that go on from a tick with nothing to do first."""
        return cls.of(rows, at, NOTHING, NOTHING, 0)

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


def _column(values: npt.NDArray[np.generic] | int, n: int) -> Int32:
    found = np.empty(n, np.int32)
    found[:] = values
    return found


@dataclass(frozen=True)
class Stopped:
    """Agents that have stopped, ascending by row, and what stopped them (an outcome of `kernels.walking.arrays`)."""

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
    seen = min(platform.params.feed.size, ticks * platform.glances) + 1
    block = max(1, MOST_EVENTS // max(ticks + 1, seen))
    keeps, world = platform.move_keeping(), world_of(platform)
    starts, has_moves = Starts(**vars(walkers)), bool(keeps.any())

    def part(room: WalkBuffers, rows: slice) -> None:
        for first in range(rows.start, rows.stop, block):
            last = min(first + block, rows.stop)
            n = last - first
            room.make_room(n, n * seen, n * (ticks + 1), n * (ticks + 1) * has_moves)
            walk(starts, first, last, until, keeps, world, room.out)

    return _gathered(platform, len(walkers.rows), part)


def _gathered(platform: Platform, n: int, work: Callable[[WalkBuffers, slice], None]) -> Stopped:
    """Let parts of `n` agents do their work; note what came about, and return those that have stopped."""
    threads = platform.params.threads
    n_parts = 1 if threads == 1 or n < PART else _PARTS * threads
    cuts = np.linspace(0, n, n_parts + 1).astype(np.int64).tolist()
    tables = platform.tables
    rooms = platform.walk_buffers.take(
        n_parts, platform.params.ticks_per_round, len(tables.option_sets), tables.programs
    )
    in_threads(lambda i: work(rooms[i], slice(cuts[i], cuts[i + 1])), range(n_parts), threads)
    events, found = platform.events, [room.came_about() for room in rooms]
    for room, came in zip(rooms, found, strict=True):
        platform.tick_counts += room.out.counts
        tables.note_values(room.out.gave_value)
        for options, n_answered in zip(tables.option_sets, room.out.answered.tolist(), strict=True):
            _count_answers(platform, len(options), n_answered)
        for columns, noted in (
            (came.impressions, events.impressions),
            (came.engagements, events.engagements),
            (came.moves, events.moves),
        ):
            if columns[0].size:
                noted.append(columns)
    return Stopped(*np.concatenate([came.stopped for came in found], axis=1))


def _count_answers(platform: Platform, n_options: int, n_answered: int) -> None:
    """Count what the rule has answered; of one option it is not asked."""
    if n_options > 1 and n_answered:
        platform.counts["open"] += n_answered
        platform.sources["rule"] += n_answered


def answers_in_walks(platform: Platform) -> bool:
    """Return whether open choices are answered while agents walk: by the rule, as it is.

    A guard in Python may look at other agents: of these nobody has gone on yet whose choice is open in the same tick.
    """
    is_rule = type(platform.reasoner.batch_reasoner) is RuleReasoner
    return is_rule and platform.tables.is_whole and answers_at_once(platform)


def world_of(platform: Platform, *, reads: bool = True) -> World:
    """Return all that a walk goes by; `reads` says whether agents may scroll past posts in it."""
    tables, asked = platform.tables, platform.reasoner.batch_reasoner
    key = platform.streams.key("choice", platform.round)
    posts, tastes = platform.posts.table, platform.tastes
    rule = (asked if isinstance(asked, RuleReasoner) else RuleReasoner()).in_walks(key)
    return World(
        tables.chart,
        tables.programs,
        tables.options,
        rule._replace(answers=answers_in_walks(platform)),
        people_of(platform.population),
        posts,
        *tastes,
        _ahead(platform, posts, *tastes, reads=reads),
        _setting(platform),
        HistoryRing(platform.history.ring, platform.history.count),
    )


def _ahead(platform: Platform, posts: PostTable, tastes: Tastes, tables: TasteTables, *, reads: bool) -> Ahead:
    """Return what agents see of the posts in their feeds, if they may scroll past any."""
    feeds, first = platform.feeds, len(platform.posts)
    if reads and platform.glances > 1:
        first = platform.posts.first_visible(max(platform.round, 0), feeds.longest_window)
    previews = np.empty(len(platform.posts) - first, PREVIEW)
    fill_previews(first, posts, tastes, tables, previews)
    return Ahead(first, previews, feeds.are_of_followed)


def people_of(population: Population) -> People:
    """Return the columns of the population that kernels work on."""
    return People(**{name: getattr(population, name) for name in People._fields})


def _setting(platform: Platform) -> RoundConstants:
    return RoundConstants(
        half_band=platform.half_band,
        glances=platform.glances,
        unit_length=UNIT_LENGTH,
        action_key=platform.streams.key("action", platform.round),
        ticks=platform.params.ticks_per_round,
        clock=platform.time_of_day.number(max(platform.round, 0), 0),
        depth=platform.history.depth,
    )
