"""The walk: agents take tick after tick by the chart's tables, until the tables do not say what happens next.

Tables come from the chart and the trigger rules (`ChartTables`), and guards are programs. An agent stops if the tables
do not decide (a guard in Python, an action), or at an open choice that the rule does not answer. The walk then returns
the agent's tick, its trigger and the reason, and a later walk continues from there. Agents do not interact, so results
do not depend on how they are divided into blocks.
"""

from typing import Any, Final

import numpy as np

from prism_mesa.arrays import UInt8
from prism_mesa.kernels.compiling import early_inline_kernel, lean_kernel
from prism_mesa.kernels.lanes import unlikely
from prism_mesa.kernels.walking.arrays import (
    DRAFTED,
    FIRE,
    FIRST_SET,
    HAS_PASSED,
    NO_POST,
    NOTHING,
    POST_AT_HAND,
    UNDECIDED,
)
from prism_mesa.kernels.walking.reading import find_trigger_post, load_agent, load_state, prefetch_group
from prism_mesa.kernels.walking.steps import (
    STOPPED,
    answer_choice,
    ask_instead,
    choose_action,
    find_outcome,
    find_outcome_apart,
    find_trigger,
    gives_up,
    has_draft,
    scroll_past,
    transition,
)
from prism_mesa.kernels.walking.world import Starts, WalkOutput, World

GROUP: Final = 64
"""Number of agents whose posts are prefetched together."""


@lean_kernel
def walk(starts: Starts, first: int, last: int, until: int, records: UInt8, world: World, out: WalkOutput) -> None:
    """Let agents take their ticks up to `until`, or until they stop.

    Args:
        starts: The agents that walk.
        first: Index of the first agent in `starts` to walk.
        last: Index after the last agent to walk.
        until: The last tick.
        records: Whether moves are recorded, with one entry for each agent of the population, or one for all.
        world: The inputs. The walk changes the population and histories.
        out: Receives the events. It needs room for one event of each kind per agent and tick.
    """
    records_stride = min(1, len(records) - 1)
    for i in range(first, last):
        if (i - first) % GROUP == 0:
            prefetch_group(starts, i, min(i + GROUP, last), until, world)
        _walk_one(starts, i, until, records[starts.rows[i] * records_stride], world, out)


@early_inline_kernel
def _walk_one(starts: Starts, i: Any, until: Any, is_recorded: Any, world: World, out: WalkOutput) -> None:
    people, chart, constants, registers = world.people, world.chart, world.constants, out.registers
    has_acts, has_accounts = len(world.taste_tables.marks.key) > 0, len(chart.action_program) > 0
    scrolls_past = constants.glances > 1 and chart.sees_trigger >= 0
    row, start = np.int64(np.uint32(starts.rows[i])), np.int64(starts.start_ticks[i])
    trigger, outcome, was_open = np.int64(starts.triggers[i]), np.int64(starts.targets[i]), np.int64(starts.was_open[i])
    was_open &= 1
    decided_post, tick, at_hand = np.int64(starts.decided_posts[i]), start, np.int64(POST_AT_HAND)
    state, ticks_in_state, post = (
        np.int64(people.state[row]),
        np.int64(people.ticks_in_state[row]),
        np.int64(people.current_post[row]),
    )
    loaded = np.int64(NO_POST)  # the post that is loaded into registers
    load_agent(row, registers, world)
    while True:
        is_new_tick = tick > start
        if is_new_tick or outcome == FIRE:
            load_state(row, state, ticks_in_state, registers, world)
        if is_new_tick:
            outcome, was_open, decided_post = np.int64(FIRE), np.int64(0), at_hand
            trigger, loaded = find_trigger(row, state, ticks_in_state, post, loaded, registers, world)
            if scrolls_past and trigger == chart.sees_trigger:
                loaded = scroll_past(tick, row, post, registers, world, out)
                if loaded == NO_POST:
                    trigger, ticks_in_state = np.int64(NOTHING), np.int64(0)
        if trigger >= 0:
            if outcome == FIRE:
                outcome, loaded = find_outcome(row, trigger, state, post, loaded, registers, world, out)
                if unlikely(has_acts):
                    outcome = ask_instead(row, trigger, state, outcome, post, world)
            if outcome <= FIRST_SET and world.rule.answers:
                was_open, decided_post = np.int64(1), find_trigger_post(row, trigger, post, world)
                out.answered[FIRST_SET - outcome] += 1
                outcome, loaded = answer_choice(
                    tick, row, trigger, outcome, post, decided_post, loaded, registers, world
                )
            if unlikely(has_acts) and outcome >= 0 and chart.engages[outcome] >= 0:
                if gives_up(tick, row, trigger, state, outcome, post, world, out):
                    trigger, was_open, decided_post = np.int64(chart.abandons_trigger), np.int64(0), at_hand
                    outcome, loaded = find_outcome_apart(row, trigger, state, post, loaded, registers, world, out)
                elif (is_new_tick or starts.was_open[i] < HAS_PASSED) and has_draft(row, trigger, outcome, post, world):
                    outcome = DRAFTED - was_open
            if unlikely(outcome <= UNDECIDED):
                _stop(row, tick, trigger, outcome, out)
                break
            if outcome >= 0:
                post = transition(
                    tick, row, trigger, state, outcome, post, decided_post, was_open, is_recorded, world, out
                )
                if unlikely(has_accounts) and chart.composes[outcome]:
                    loaded = choose_action(tick, row, post, loaded, registers, world)
                state, ticks_in_state = np.int64(np.uint8(outcome)), np.int64(0)
        if (trigger >= 0 or is_new_tick) and 1 <= tick <= constants.ticks:
            out.counts[tick - 1, state] += 1
        if tick >= until:
            break
        if state == chart.idle:
            for tick_left in range(tick + 1, min(until, constants.ticks) + 1):
                out.counts[tick_left - 1, state] += 1
            break
        tick += 1
        ticks_in_state += 1
    people.state[row], people.ticks_in_state[row], people.current_post[row] = state, ticks_in_state, post


@early_inline_kernel
def _stop(row: Any, tick: Any, trigger: Any, outcome: Any, out: WalkOutput) -> None:
    index = np.uint32(out.size[STOPPED])
    out.stopped[0, index] = row
    out.stopped[1, index] = tick
    out.stopped[2, index] = trigger
    out.stopped[3, index] = outcome
    out.size[STOPPED] = index + 1
