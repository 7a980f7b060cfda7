"""Let the population walk: share agents between threads, and gather what happened."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.utility import PREVIEW, fill_previews
from prism_mesa.kernels.walking.arrays import NOTHING, POST_AT_HAND, HistoryRing, People, RoundConstants
from prism_mesa.kernels.walking.walk import walk
from prism_mesa.kernels.walking.world import Ahead, Starts, World
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.choices import answers_at_once
from prism_mesa.social.round.walk_tables import WalkBuffers
from prism_mesa.social.state.chunks import in_threads
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.topics import UNIT_LENGTH

type Int32 = npt.NDArray[np.int32]

MOST_EVENTS: Final = 1 << 18
"""Most events of one kind in a block of agents: bounds the memory for events. Results do not depend on it."""
PART: Final = 1 << 13
"""Agents from which on several threads share them."""
_PARTS: Final = 8
"""Parts of the agents for each thread: some parts take longer than others."""


def make_starts(
    rows: Rows,
    at: Rows | int,
    triggers: Rows | int = NOTHING,
    targets: Rows | int = NOTHING,
    opens: npt.NDArray[np.generic] | int = 0,
    about: Rows | int = POST_AT_HAND,
) -> Starts:
    """Return agents about to walk (see `Starts`); a number stands for all of them."""
    columns = np.empty((5, len(rows)), np.int32)
    for column, values in zip(columns, (at, triggers, targets, opens, about), strict=True):
        column[:] = values
    ticks, codes, leads, is_open, posts = columns
    return Starts(np.ascontiguousarray(rows, np.int32), ticks, codes, leads, is_open.astype(np.uint8), posts)


def join_starts(parts: Sequence[Starts]) -> Starts:
    """Return the agents of all parts, ascending by row."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return make_starts(np.zeros(0, np.int32), 0)
    joined = Starts(*map(np.concatenate, zip(*parts, strict=True)))
    return select_starts(joined, np.argsort(joined.rows, kind="stable"))


def select_starts(starts: Starts, which: slice | Rows) -> Starts:
    """Return some of the agents."""
    selected: list[Any] = [column[which] for column in starts]
    return Starts(*selected)


class Stopped(NamedTuple):
    """Agents that have stopped, ascending by row, and the reason (an outcome of `kernels.walking.arrays`)."""

    rows: Int32
    ticks: Int32
    triggers: Int32
    outcomes: Int32

    def take(self, which: npt.NDArray[np.bool_]) -> "Stopped":
        """Return the agents that a mask marks."""
        return self if which.all() else Stopped(*(column[which] for column in self))


def walk_agents(platform: Platform, starts: Starts, until: int) -> Stopped:
    """Let agents walk up to the tick `until`; note their events and counts, and return those that have stopped."""
    ticks, threads, n = platform.params.ticks_per_round, platform.params.threads, len(starts.rows)
    most_seen = min(platform.params.feed.size, ticks * platform.glances) + 1
    block = max(1, MOST_EVENTS // max(ticks + 1, most_seen))
    records, world = platform.move_mask(), make_world(platform)
    n_parts = 1 if threads == 1 or n < PART else _PARTS * threads
    cuts = np.linspace(0, n, n_parts + 1).astype(np.int64).tolist()
    n_sets, programs = len(platform.tables.option_sets), platform.tables.programs
    buffers = platform.walk_buffers.take(n_parts, ticks, n_sets, programs)

    def walk_part(part: int) -> None:
        for first in range(cuts[part], cuts[part + 1], block):
            last = min(first + block, cuts[part + 1])
            rows = last - first
            n_moves = rows * (ticks + 1) if records.any() else 0
            buffers[part].make_room(rows, rows * most_seen, rows * (ticks + 1), n_moves)
            walk(starts, first, last, until, records, world, buffers[part].out)

    in_threads(walk_part, range(n_parts), threads)
    return Stopped(*np.concatenate([_gather(platform, buffer) for buffer in buffers], axis=1))


def _gather(platform: Platform, buffers: WalkBuffers) -> Int32:
    """Note the events and counts of one part of a walk, and return its stopped agents."""
    tables, events = platform.tables, platform.events
    platform.tick_counts += buffers.out.counts
    tables.note_values(buffers.out.gave_value)
    for options, n_answered in zip(tables.option_sets, buffers.out.answered.tolist(), strict=True):
        if len(options) > 1 and n_answered:  # a single option is taken without asking the rule
            platform.counts["open"] += n_answered
            platform.sources["rule"] += n_answered
    walked = buffers.events()
    for columns, noted in (
        (walked.impressions, events.impressions),
        (walked.engagements, events.engagements),
        (walked.moves, events.moves),
    ):
        if columns[0].size:
            noted.append(columns)
    return walked.stopped


def answers_in_walks(platform: Platform) -> bool:
    """Return whether the rule answers open choices while agents walk.

    It does not with guards in Python: they may look at other agents, and must not see an agent beyond the tick of its
    open choice.
    """
    is_rule = type(platform.reasoner.batch_reasoner) is RuleReasoner
    return is_rule and platform.tables.is_whole and answers_at_once(platform)


def make_world(platform: Platform) -> World:
    """Return all that a walk reads and changes."""
    tables, reasoner = platform.tables, platform.reasoner.batch_reasoner
    key = platform.streams.key("choice", platform.round)
    posts, (tastes, taste_tables), population = platform.posts.table, platform.tastes, platform.population
    rule = (reasoner if isinstance(reasoner, RuleReasoner) else RuleReasoner()).kernel_rule(key)
    first = len(platform.posts)
    if platform.glances > 1:
        first = platform.posts.first_visible(max(platform.round, 0), platform.feeds.longest_window)
    buffers, previewed = platform.walk_buffers, (platform.round, first, len(platform.posts))
    if buffers.previewed != previewed:
        buffers.previews, buffers.previewed = np.empty(len(platform.posts) - first, PREVIEW), previewed
        fill_previews(first, posts, tastes, taste_tables, buffers.previews)
    return World(
        tables.chart,
        tables.programs,
        tables.options,
        rule._replace(answers=answers_in_walks(platform)),
        People(**{name: getattr(population, name) for name in People._fields}),
        posts,
        tastes,
        taste_tables,
        Ahead(first, buffers.previews, platform.feeds.are_of_followed),
        RoundConstants(
            half_band=platform.half_band,
            glances=platform.glances,
            unit_length=UNIT_LENGTH,
            action_key=platform.streams.key("action", platform.round),
            ticks=platform.params.ticks_per_round,
            clock=platform.time_of_day.number(max(platform.round, 0), 0),
            depth=platform.history.depth,
        ),
        HistoryRing(platform.history.ring, platform.history.count),
    )
