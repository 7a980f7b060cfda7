"""Let agents walk: share them among threads, and gather their events."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Int32, Mask, Rows
from prism_mesa.kernels.utility import PREVIEW, fill_previews
from prism_mesa.kernels.walking.arrays import NOTHING, POST_AT_HAND, HistoryRing, People, RoundConstants
from prism_mesa.kernels.walking.walk import walk
from prism_mesa.kernels.walking.world import Previews, Starts, World
from prism_mesa.reasoner import RuleReasoner
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.choices import needs_no_llm
from prism_mesa.social.round.walk_tables import WalkBuffers
from prism_mesa.social.state.chunks import map_in_threads
from prism_mesa.social.state.topics import UNIT_LENGTH

MAX_EVENTS: Final = 1 << 18
"""Maximum number of events of one kind in a block of agents; it limits memory. Results do not depend on it."""
MIN_SHARED_AGENTS: Final = 1 << 13
"""Minimum number of agents for which threads share a walk."""
_PARTS_PER_THREAD: Final = 8
"""Number of parts of agents for each thread. There are several because some parts take longer than others."""


def make_starts(
    rows: Rows,
    start_ticks: Rows | int,
    triggers: Rows | int = NOTHING,
    targets: Rows | int = NOTHING,
    was_open: npt.NDArray[np.generic] | int = 0,
    decided_posts: Rows | int = POST_AT_HAND,
) -> Starts:
    """Return agents that are about to walk (see `Starts`); a number applies to all agents."""
    columns = np.empty((5, len(rows)), np.int32)
    for column, values in zip(columns, (start_ticks, triggers, targets, was_open, decided_posts), strict=True):
        column[:] = values
    ticks, codes, target_codes, is_open, posts = columns
    return Starts(np.ascontiguousarray(rows, np.int32), ticks, codes, target_codes, is_open.astype(np.uint8), posts)


def join_starts(parts: Sequence[Starts]) -> Starts:
    """Return the agents of all parts, sorted by row."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return make_starts(np.zeros(0, np.int32), 0)
    joined = Starts(*map(np.concatenate, zip(*parts, strict=True)))
    return select_starts(joined, np.argsort(joined.rows, kind="stable"))


def select_starts(starts: Starts, rows: slice | Rows) -> Starts:
    """Return some of the agents."""
    selected: list[Any] = [column[rows] for column in starts]
    return Starts(*selected)


class Stopped(NamedTuple):
    """Agents that have stopped, sorted by row, with the reason as an outcome (`kernels.walking.arrays`)."""

    rows: Int32
    ticks: Int32
    triggers: Int32
    outcomes: Int32

    def take(self, rows: Mask) -> "Stopped":
        """Return the agents that a mask marks."""
        return self if rows.all() else Stopped(*(column[rows] for column in self))


def walk_agents(platform: Platform, starts: Starts, until: int) -> Stopped:
    """Let agents walk up to the tick `until`; note their events and counts, and return those that have stopped."""
    ticks, threads, n = platform.params.ticks_per_round, platform.params.threads, len(starts.rows)
    max_impressions = min(platform.params.feed.size, ticks * platform.glances) + 1
    block = max(1, MAX_EVENTS // max(ticks + 1, max_impressions))
    records, world = platform.move_mask(), make_world(platform)
    n_parts = 1 if threads == 1 or n < MIN_SHARED_AGENTS else _PARTS_PER_THREAD * threads
    cuts = np.linspace(0, n, n_parts + 1).astype(np.int64).tolist()
    n_sets, programs = len(platform.tables.option_sets), platform.tables.programs
    buffers = platform.walk_buffers.take(n_parts, ticks, len(platform.states), n_sets, programs)

    def walk_part(part: int) -> None:
        for first in range(cuts[part], cuts[part + 1], block):
            last = min(first + block, cuts[part + 1])
            rows = last - first
            n_moves = rows * (ticks + 1) if records.any() else 0
            n_given_up = rows * (ticks + 1) if len(platform.marks.key) else 0
            buffers[part].make_room(rows, rows * max_impressions, rows * (ticks + 1), n_moves, n_given_up)
            walk(starts, first, last, until, records, world, buffers[part].out)

    map_in_threads(walk_part, range(n_parts), threads)
    return Stopped(*np.concatenate([_gather(platform, buffer) for buffer in buffers], axis=1))


def _gather(platform: Platform, buffers: WalkBuffers) -> Int32:
    """Note the events and counts of one part of a walk, and return its stopped agents."""
    tables, events = platform.tables, platform.events
    platform.kind_counts[platform.kind] += buffers.out.counts
    tables.note_values(buffers.out.has_value)
    for options, n_answered in zip(tables.option_sets, buffers.out.answered.tolist(), strict=True):
        if len(options) > 1 and n_answered:  # a single option needs no answer
            platform.counts["open"] += n_answered
            platform.sources["rule"] += n_answered
    walk_events = buffers.events()
    for name in ("impressions", "engagements", "moves", "given_up"):
        columns = getattr(walk_events, name)
        if columns[0].size:
            getattr(events, name).append(columns)
    return walk_events.stopped


def rule_answers_walks(platform: Platform) -> bool:
    """Return whether the rule answers open choices while agents walk.

    It does not if there are guards in Python. These may read other agents, and must not see an agent in a later tick
    than its open choice.
    """
    is_rule = type(platform.reasoner.batch_reasoner) is RuleReasoner
    return is_rule and platform.is_complete and needs_no_llm(platform)


def make_world(platform: Platform) -> World:
    """Return the inputs of a walk."""
    tables, reasoner = platform.tables, platform.reasoner.batch_reasoner
    key = platform.streams.key("choice", platform.round)
    posts, (tastes, taste_tables), population = platform.posts.table, platform.tastes, platform.population
    rule = (reasoner if isinstance(reasoner, RuleReasoner) else RuleReasoner()).kernel_rule(key)
    first = len(platform.posts)
    if platform.glances > 1:
        first = platform.posts.first_visible(max(platform.round, 0), platform.params.feed.window)
    pool, preview_key = platform.walk_buffers, (platform.round, first, len(platform.posts))
    if pool.preview_key != preview_key:
        pool.previews, pool.preview_key = np.empty(len(platform.posts) - first, PREVIEW), preview_key
        fill_previews(first, posts, tastes, taste_tables, pool.previews)
    return World(
        tables.chart,
        tables.programs,
        tables.options,
        rule._replace(answers=rule_answers_walks(platform)),
        People(**{name: getattr(population, name) for name in People._fields}),
        posts,
        tastes,
        taste_tables,
        Previews(first, pool.previews, platform.feeds.show_only_followed),
        RoundConstants(
            half_band=platform.half_band,
            glances=platform.glances,
            unit_length=UNIT_LENGTH,
            action_key=platform.streams.key("action", platform.round),
            ticks=platform.params.ticks_per_round,
            first_clock=platform.time_of_day.tick_number(max(platform.round, 0), 0),
            history_depth=platform.history.depth,
        ),
        HistoryRing(platform.history.ring, platform.history.count),
    )
