"""The ticks of a round over columns, and firing one trigger on many agents; `SocialAgent.step` does so for its row.

Who waits for an LLM's answer falls behind; when the answer comes, it goes on from the tick of its question.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from prism_mesa.social.asking import LATER, STAY, Answered, ask, collect_answers
from prism_mesa.social.behavior import IDLE, SEES_POST, next_triggers
from prism_mesa.social.columns import AgentColumns, PostColumns
from prism_mesa.social.moves import follow_up, with_actions
from prism_mesa.social.population import STATE_BITS, Rows
from prism_mesa.statechart import STATES

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel


def run_ticks(model: "SocialModel") -> None:
    """Let all agents do the ticks of a round, and count their states at the end of each."""
    ticks = model.params.ticks_per_round
    model.tick_counts = np.zeros((ticks, len(STATES)), np.int64)
    for tick in range(1, ticks + 1):
        model.tick = tick
        active = np.flatnonzero(model.active() & ~_waiting(model))
        model.step_scripts()
        tick_columns(model, active)
        _count_states(model, np.flatnonzero(model.population.present & ~_waiting(model)))
    while model.waiting:
        _catch_up(model)
    model.tick = ticks


def _catch_up(model: "SocialModel") -> None:
    """Let those whose answers have come do the ticks that all others have done."""
    came = {answered.tick: answered for answered in collect_answers(model)}
    moving = np.zeros(0, np.int64)
    for tick in range(min(came), model.params.ticks_per_round + 1):
        model.tick = tick
        tick_columns(model, moving)
        if tick in came:
            resume_columns(model, came[tick])
            moving = np.sort(np.concatenate([moving, came[tick].rows]))
        moving = moving[~_waiting(model)[moving]]
        _count_states(model, moving)
        idle = model.population.state[moving] == IDLE.code
        model.tick_counts[tick:, IDLE.code] += int(idle.sum())
        moving = moving[~idle]


def _waiting(model: "SocialModel") -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(model.population), np.bool_)
    mask[list(model.waiting.by_row)] = True
    return mask


def _count_states(model: "SocialModel", rows: Rows) -> None:
    states = model.population.state[rows]
    model.tick_counts[model.tick - 1] += np.bincount(states, minlength=len(STATES))


def fire_and_wait(model: "SocialModel", trigger: str, rows: Rows) -> None:
    """Fire a trigger on each of `rows`, outside the ticks, and wait for all answers; nothing if no chart knows it."""
    code = model.trigger_code(trigger)
    if code < 0 or not len(rows):
        return
    fire_columns(model, rows, np.full(len(rows), code, np.int16))
    while model.waiting:
        for answered in collect_answers(model):
            resume_columns(model, answered)


def tick_columns(model: "SocialModel", rows: Rows) -> None:
    """Do one tick for each of `rows` (ascending, none idle): count it, find the trigger, fire."""
    if not len(rows):
        return
    population = model.population
    waited = population.ticks_in_state.take(rows) + 1
    population.ticks_in_state[rows] = waited
    states = population.state.take(rows)
    own = np.array([model.chart.timeouts.get(state, 0) for state in STATES])[states]
    timed_out = waited >= np.where(own > 0, own, population.timeout_threshold.take(rows))
    agents = AgentColumns(model, rows)
    here = PostColumns(model, rows, population.current_post[rows])
    triggers = next_triggers(model.chart, states, timed_out, agents, here)
    fires = np.flatnonzero(triggers >= 0)
    fire_columns(model, rows.take(fires), triggers.take(fires))


def fire_columns(model: "SocialModel", rows: Rows, triggers: Rows) -> None:
    """Fire a trigger (an index into the chart's triggers; -1 none) on each of `rows`, ask, apply, follow up.

    Whose question goes out to an LLM waits in `model.waiting`; `resume_columns` goes on with it.
    """
    sources = model.population.state[rows].astype(np.int64)
    agents, posts = AgentColumns(model, rows), posts_at_hand(model, rows, triggers)
    fired = model.chart.fire_many(sources, triggers, agents, posts)
    model.rowwise |= fired.rowwise
    arrows = [STAY if t.target is None else t.target.code for t in fired.transitions]
    targets = np.array([*arrows, STAY])[fired.taken]
    taken, was_open = fired.taken.copy(), fired.open >= 0
    if was_open.any():
        where = np.flatnonzero(was_open)
        targets[where] = ask(
            model, agents.take(where), posts.take(where), triggers[where], fired.open[where], fired.option_sets
        )
        taken[where] = _arrows_to(model, agents.take(where), posts.take(where), triggers[where], targets[where])
        if model.waiting:
            here = np.flatnonzero(targets != LATER)
            rows, triggers, posts = rows[here], triggers[here], posts.take(here)
            taken, targets, was_open = taken[here], targets[here], was_open[here]
    _apply(model, rows, triggers, posts, taken, targets, was_open)


def resume_columns(model: "SocialModel", came: Answered) -> None:
    """Let agents whose answers have come go where these lead, at the tick of their question."""
    agents, posts = AgentColumns(model, came.rows), PostColumns(model, came.rows, came.posts)
    taken = _arrows_to(model, agents, posts, came.triggers, came.targets)
    _apply(model, came.rows, came.triggers, posts, taken, came.targets, np.ones(len(came.rows), np.bool_))


def _apply(
    model: "SocialModel",
    rows: Rows,
    triggers: Rows,
    posts: PostColumns,
    taken: Rows,
    targets: Rows,
    was_open: npt.NDArray[np.bool_],
) -> None:
    """Take the transitions `taken` (-1: one without an action) to `targets` (`STAY`: none)."""
    population = model.population
    with_actions(model, rows, taken, posts)
    go = np.flatnonzero(targets != STAY)
    rows, triggers, targets = rows[go], triggers[go], targets[go]
    sources = population.state[rows].astype(np.int64)
    population.state[rows] = targets
    population.ticks_in_state[rows] = 0
    if model.history.depth:
        changed = np.flatnonzero(sources != targets)
        moves = triggers[changed].astype(np.uint16) << 2 * STATE_BITS | (sources << STATE_BITS | targets)[changed]
        model.history.record(rows[changed], moves.astype(np.uint16), model.clock, posts.posts[go[changed]])
    follow_up(model, rows, triggers, sources, targets, was_open[go])


def posts_at_hand(model: "SocialModel", rows: Rows, triggers: Rows) -> PostColumns:
    """Return what each agent's guards read: the next unread post for `sees_post`, else the current one."""
    population = model.population
    posts = population.current_post.take(rows)
    sees = np.flatnonzero(triggers == model.trigger_code(SEES_POST))
    sees = sees[population.n_read.take(rows.take(sees)) < population.n_feed.take(rows.take(sees))]
    posts[sees] = population.feed[rows.take(sees), population.n_read.take(rows.take(sees))]
    return PostColumns(model, rows, posts)


def _arrows_to(
    model: "SocialModel", agents: AgentColumns, posts: PostColumns, triggers: Rows, targets: Rows
) -> npt.NDArray[np.int64]:
    """Return the transitions that lead to chosen targets: their actions are to be run.

    Only where a transition has an action does it matter which one it is; then the rule of
    `Statechart.apply` decides, row by row.
    """
    chart = model.chart
    found = np.full(len(targets), -1, np.int64)
    if not any(t.action for t in chart.transitions):
        return found
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    for i, target in enumerate(targets.tolist()):
        if target >= 0:
            arrow = chart.arrow_to(agents.row(i), chart.triggers[triggers[i]], STATES[target], posts.row(i))
            found[i] = index[id(arrow)]
    return found
