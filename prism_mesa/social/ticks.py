"""One tick over columns, and firing one trigger on many agents. `SocialAgent.step` does the same for its row."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from prism_mesa.social.asking import STAY, ask
from prism_mesa.social.behavior import SEES_POST, next_triggers
from prism_mesa.social.columns import AgentColumns, PostColumns
from prism_mesa.social.moves import follow_up, with_actions
from prism_mesa.social.population import STATE_BITS, Rows
from prism_mesa.statechart import STATES

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel


def tick_columns(model: "SocialModel", rows: Rows) -> None:
    """Do one tick for each of `rows` (ascending, none idle): count it, find the trigger, fire."""
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
    """Fire a trigger (an index into the chart's triggers; -1 none) on each of `rows`, ask, apply, follow up."""
    population = model.population
    sources = population.state[rows].astype(np.int64)
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
    with_actions(model, rows, taken, posts)
    go = np.flatnonzero(targets != STAY)
    rows, triggers, sources, targets = rows[go], triggers[go], sources[go], targets[go]
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
        if target != STAY:
            arrow = chart.arrow_to(agents.row(i), chart.triggers[triggers[i]], STATES[target], posts.row(i))
            found[i] = index[id(arrow)]
    return found
