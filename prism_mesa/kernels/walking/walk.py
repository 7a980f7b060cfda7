"""The walk: agents do tick after tick by the chart's tables, until the tables do not say what happens.

The rules are tables (`ChartTables`, from the chart and the trigger rules) and programs (guards). If the tables do not
determine what happens (a Python guard, an action), or a choice is open that the rule does not answer, the agent stops:
its tick, its trigger and the reason are returned, and a later walk continues from there. Agents do not interact, so any
division into blocks gives the same columns and events.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import early_part_of_kernels, lean_kernel
from prism_mesa.kernels.walking.arrays import (
    FIRE,
    FIRST_SET,
    GUARDED,
    NO_POST,
    NOTHING,
    POST_AT_HAND,
    UNDECIDED,
)
from prism_mesa.kernels.walking.reading import at_hand_of, fetch_posts, load_agent, load_moment
from prism_mesa.kernels.walking.steps import STOPPED, answer, leads_to, meets, scroll_past, transition
from prism_mesa.kernels.walking.world import Starts, WalkOutput, World

type UInt8 = npt.NDArray[np.uint8]

GROUP: Final = 64
"""Agents whose reading is prepared together."""


@lean_kernel
def walk(starts: Starts, first: int, last: int, until: int, keeps: UInt8, world: World, out: WalkOutput) -> None:
    """Let agents take their ticks up to `until`, or until each stops.

    Args:
        starts: The agents that walk.
        first: Index of the first agent of `starts` to walk.
        last: Index after the last.
        until: The last tick.
        keeps: Whose moves are recorded: one entry per agent of the population, or one for all.
        world: The chart, the population, which is changed, and everything that is read.
        out: Receives the events; it has room for one more of each per row and tick.
    """
    keeps_step = min(1, len(keeps) - 1)
    for i in range(first, last):
        if (i - first) % GROUP == 0:
            fetch_posts(starts, i, min(i + GROUP, last), until, world)
        _walk_one(starts, i, until, keeps[starts.rows[i] * keeps_step], world, out)


@early_part_of_kernels
def _walk_one(starts: Starts, i: Any, until: Any, keeps: Any, world: World, out: WalkOutput) -> None:
    people, chart, setting, register = world.people, world.chart, world.setting, out.register
    scrolls_past = setting.glances > 1 and chart.sees_trigger >= 0
    row, start = np.int64(np.uint32(starts.rows[i])), np.int64(starts.at[i])
    trigger, outcome, was_open = np.int64(starts.triggers[i]), np.int64(starts.targets[i]), np.int64(starts.opens[i])
    decided, tick = np.int64(starts.about[i]), start
    state, waited, post = (
        np.int64(people.state[row]),
        np.int64(people.ticks_in_state[row]),
        np.int64(people.current_post[row]),
    )
    loaded = np.int64(NO_POST)  # the post loaded into registers
    if trigger >= 0 and outcome == FIRE and chart.fixed[trigger, state] != GUARDED:
        outcome = np.int64(chart.fixed[trigger, state])
    if until > start or outcome == FIRE or outcome <= FIRST_SET:  # else no guard and no rule reads the registers
        load_agent(row, register, world)
    while True:
        is_new_tick = tick > start
        if is_new_tick or outcome == FIRE:
            load_moment(row, state, waited, register, world)
        if is_new_tick:
            outcome, was_open, decided = np.int64(FIRE), np.int64(0), np.int64(POST_AT_HAND)
            trigger, loaded = meets(row, state, waited, post, loaded, register, world)
            if scrolls_past and trigger == chart.sees_trigger:
                loaded = scroll_past(tick, row, post, register, world, out)
                if loaded == NO_POST:
                    trigger, waited = np.int64(NOTHING), np.int64(0)
        if trigger >= 0 and outcome == FIRE:
            outcome, loaded = leads_to(row, trigger, state, post, loaded, register, world, out)
        if trigger >= 0 and outcome <= FIRST_SET and world.rule.answers:
            was_open, decided = np.int64(1), at_hand_of(row, trigger, post, world)
            out.answered[FIRST_SET - outcome] += 1
            outcome, loaded = answer(tick, row, trigger, outcome, post, decided, loaded, register, world)
        if trigger >= 0 and outcome <= UNDECIDED:
            _stop(row, tick, trigger, outcome, out)
            break
        if trigger >= 0 and outcome >= 0:
            post = transition(tick, row, trigger, state, outcome, post, decided, was_open, keeps, world, out)
            state, waited = np.int64(np.uint8(outcome)), np.int64(0)
        if (trigger >= 0 or is_new_tick) and 1 <= tick <= setting.ticks:
            out.counts[tick - 1, state] += 1
        if tick >= until:
            break
        if state == chart.idle:
            for rest in range(tick + 1, min(until, setting.ticks) + 1):
                out.counts[rest - 1, state] += 1
            break
        tick += 1
        waited += 1
    people.state[row], people.ticks_in_state[row], people.current_post[row] = state, waited, post


@early_part_of_kernels
def _stop(row: Any, tick: Any, trigger: Any, outcome: Any, out: WalkOutput) -> None:
    at = np.uint32(out.size[STOPPED])
    out.stopped[0, at] = row
    out.stopped[1, at] = tick
    out.stopped[2, at] = trigger
    out.stopped[3, at] = outcome
    out.size[STOPPED] = at + 1
