"""The ticks of a round over columns, and firing one trigger on many agents; `SocialAgent.step` does so for its row.

Agents walk (`kernels.walk`) until a choice is open, or until something only the chart itself knows: a guard in Python,
an action. These are settled here, and the walk goes on from the tick at which they stopped. Who waits for an LLM's
answer stands still; when it comes, the agent goes on from the tick of its question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.walk_arrays import FIRE, FIRST_SET, NOTHING
from prism_mesa.social.behavior import SEES_POST
from prism_mesa.social.round.choices import NO_CHANGE, PENDING, Answered, ask, collect_answers
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.guard_faults import note_row_by_row
from prism_mesa.social.round.walk import Stopped, Walkers, walk_agents
from prism_mesa.social.state.population import Rows
from prism_mesa.statechart import STATES

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

type Mask = npt.NDArray[np.bool_]


def run_ticks(model: "SocialModel") -> None:
    """Let all agents do the ticks of a round, and count their states at the end of each.

    All ticks are done in one go, unless there is something that may look at other agents, or at the order in which
    things happen: agents with scripts, guards in Python, actions.
    """
    ticks = model.params.ticks_per_round
    model.tick_counts = np.zeros((ticks, len(STATES)), np.int64)
    stride = ticks if model.tables.is_whole and not model.has_scripts else 1
    for last in range(stride, ticks + 1, stride):
        model.tick = last
        stands = np.zeros(len(model.population), np.bool_)
        stands[list(model.pending.by_row)] = True
        walks = model.active() & ~stands
        if stride == 1:
            model.step_scripts()
        advance(model, Walkers.starting(np.flatnonzero(walks), last - stride), last)
        others = model.population.state[: len(walks)][~walks & ~stands & model.population.present[: len(walks)]]
        model.tick_counts[last - stride : last] += np.bincount(others, minlength=len(STATES))
    await_answers(model, ticks)
    model.tick = ticks


def fire_and_wait(model: "SocialModel", trigger: str, rows: Rows) -> None:
    """Fire a trigger on each of `rows`, outside the ticks, and wait for all answers; nothing if no chart knows it."""
    code = model.trigger_code(trigger)
    if code < 0 or not len(rows):
        return
    walkers = Walkers.starting(rows, model.tick)
    walkers.triggers[:], walkers.targets[:] = code, FIRE
    advance(model, walkers, model.tick)
    await_answers(model, model.tick)


def await_answers(model: "SocialModel", until: int) -> None:
    """Wait for all answers that are out; who gets one goes on up to the tick `until`."""
    while model.pending:
        for answered in collect_answers(model):
            _resume(model, answered, until)


def _resume(model: "SocialModel", came: Answered, until: int) -> None:
    """Let agents whose answers have come go where these lead, at the tick of their question, and on from there."""
    model.tick = came.tick
    choice = _Choice(AgentColumns(model, came.rows), PostColumns(model, came.rows, came.posts), came.triggers)
    sources = model.population.state[came.rows]
    keys = [model.pending.keys.pop(row, 0) for row in came.rows.tolist()]
    _run_actions(choice, _transitions_to(choice, sources, came.targets, keys))
    ones = np.ones(len(came.rows), np.uint8)
    advance(model, Walkers.of(came.rows, came.tick, came.triggers, came.targets, ones, came.posts), until)


def advance(model: "SocialModel", walkers: Walkers, until: int) -> None:
    """Let agents walk up to the tick `until`, settling whatever stops them, but for answers that are waited for."""
    while len(walkers.rows):
        walkers = _settle(model, walk_agents(model, walkers, until))


def _settle(model: "SocialModel", stopped: Stopped) -> Walkers:
    """Return those who can go on, with what they do next; those whose question is out wait in `model.pending`."""
    is_open = stopped.outcomes <= FIRST_SET
    parts = [_put_open_choices(model, stopped.take(is_open))] if is_open.any() else []
    now = model.tick
    for tick in np.unique(stopped.ticks[~is_open]).tolist():
        model.tick = tick  # guards and actions may ask for the time
        parts.append(_fire(model, stopped.take(~is_open & (stopped.ticks == tick))))
    model.tick = now
    return Walkers.joined(parts)


@dataclass(frozen=True)
class _Choice:
    """Agents that fire triggers, and the posts at hand."""

    agents: AgentColumns
    posts: PostColumns
    triggers: Rows

    def take(self, which: Rows) -> "_Choice":
        return _Choice(self.agents.take(which), self.posts.take(which), self.triggers[which])


def _choice(model: "SocialModel", stopped: Stopped) -> _Choice:
    return _Choice(
        AgentColumns(model, stopped.rows), posts_at_hand(model, stopped.rows, stopped.triggers), stopped.triggers
    )


def _put_open_choices(model: "SocialModel", stopped: Stopped) -> Walkers:
    """Put open choices, and return those that are answered at once."""
    choice, sets = _choice(model, stopped), model.tables.option_sets
    options = FIRST_SET - stopped.outcomes
    targets = ask(model, choice.agents, choice.posts, stopped.triggers, options, sets, stopped.ticks)
    return _going_on(stopped, choice, targets, np.ones(len(targets), np.bool_))


def _fire(model: "SocialModel", stopped: Stopped) -> Walkers:
    """Let the chart itself say what happens at one tick, ask, and run the actions of what is taken."""
    choice = _choice(model, stopped)
    sources = model.population.state[stopped.rows].astype(np.int64)
    fired = model.chart.fire_many(sources, stopped.triggers, choice.agents, choice.posts)
    note_row_by_row(model, fired.row_by_row_guards)
    codes = [NO_CHANGE if t.target is None else t.target.code for t in fired.transitions]
    targets = np.array([*codes, NO_CHANGE])[fired.taken]
    taken, was_open = fired.taken.astype(np.int64), fired.open >= 0
    if was_open.any():
        where = np.flatnonzero(was_open)
        asking = choice.take(where)
        targets[where] = ask(model, asking.agents, asking.posts, asking.triggers, fired.open[where], fired.option_sets)
        keys = fired.keys[where].tolist()
        taken[where] = _transitions_to(asking, sources[where], targets[where], keys)
        wait = np.flatnonzero(targets[where] == PENDING).tolist()
        model.pending.keys.update((int(stopped.rows[where[i]]), keys[i]) for i in wait)
    here = np.flatnonzero(targets != PENDING)
    _run_actions(choice.take(here), taken[here])
    return _going_on(stopped, choice, targets, was_open)


def _going_on(stopped: Stopped, choice: _Choice, targets: Rows, was_open: Mask) -> Walkers:
    here, about = targets != PENDING, choice.posts.posts
    targets = np.where(targets == NO_CHANGE, NOTHING, targets)
    return Walkers.of(
        stopped.rows[here], stopped.ticks[here], stopped.triggers[here], targets[here], was_open[here], about[here]
    )


def posts_at_hand(model: "SocialModel", rows: Rows, triggers: Rows) -> PostColumns:
    """Return what each agent's guards read: the next unread post for `sees_post`, else the current one."""
    population = model.population
    posts = population.current_post.take(rows)
    sees = np.flatnonzero(triggers == model.trigger_code(SEES_POST))
    sees = sees[population.n_read.take(rows.take(sees)) < population.n_feed.take(rows.take(sees))]
    posts[sees] = population.feed[rows.take(sees), population.n_read.take(rows.take(sees))]
    return PostColumns(model, rows, posts)


def _transitions_to(choice: _Choice, sources: Rows, targets: Rows, keys: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the transitions that lead to chosen targets: their actions are to be run.

    Only where a transition has an action does it matter which one it is; then what the guards said when the trigger
    was fired (`keys`) decides, row by row.
    """
    chart = choice.agents.model.chart
    found = np.full(len(targets), NOTHING, np.int64)
    if not any(t.action for t in chart.transitions):
        return found
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    for i, target in enumerate(targets.tolist()):
        if target >= 0:
            trigger = chart.triggers[choice.triggers[i]]
            found[i] = index[id(chart.resolve_key(STATES[sources[i]], trigger, STATES[target], keys[i]))]
    return found


def _run_actions(choice: _Choice, taken: Rows) -> None:
    """Run the actions of the transitions that are about to be taken, in the order of rows."""
    model = choice.agents.model
    actions = [t.action for t in model.chart.transitions]
    acting = [i for i, action in enumerate(actions) if action is not None]
    if not acting:
        return
    for i in np.flatnonzero(np.isin(taken, acting)).tolist():
        action = actions[taken[i]]
        if action is not None:
            row, post = int(choice.agents.rows[i]), int(choice.posts.posts[i])
            action(model.agent(row), model.post(post, row))
