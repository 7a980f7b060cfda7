"""The ticks of a round over columns, and firing a trigger on many agents; `SocialAgent.step` does a tick of one row.

Agents walk (`kernels.walking.walk`) until a choice is open that the rule does not answer, or until only the chart
itself can go on: at a guard in Python, or at an action. These are settled here, and the walk goes on from that tick. An
agent that waits for an LLM stands still, and goes on from the tick of its question when the answer comes.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.walking.arrays import FIRE, FIRST_SET, NOTHING
from prism_mesa.kernels.walking.world import Starts
from prism_mesa.social.behavior import DECIDES, FEED_READY, IDLE, SEES_POST, next_trigger
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.choices import NO_CHANGE, PENDING, TickAnswers, answers_at_once, ask, collect_answers
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.effects import rollback_on_error
from prism_mesa.social.round.walk import Stopped, join_starts, make_starts, select_starts, walk_agents
from prism_mesa.social.state.population import Rows
from prism_mesa.statechart import STATES, Expression, act

type Mask = npt.NDArray[np.bool_]

_CALLABLE: Final = (
    "this guard is a Python callable, evaluated agent by agent; write it as an expression over F to have it evaluated "
    "for all agents at once (docs/charts.md)"
)
_NO_COLUMNS: Final = (
    "this guard was evaluated agent by agent: it reads a field that is no column, or a post where there is none, or "
    "divides by zero; without that it is evaluated for all agents at once (docs/charts.md)"
)


def run_ticks(platform: Platform, online: Rows) -> None:
    """Fire `feed_ready` on agents that come online, run the ticks of a round, and count states after each tick.

    All ticks are one walk, unless something may look at other agents or at the order of events: scripts, guards in
    Python, actions.
    """
    ticks = platform.params.ticks_per_round
    platform.tick_counts = np.zeros((ticks, len(STATES)), np.int64)
    is_plain = platform.params.scheduler == "columns" and not platform.scripts.has_scripts
    is_plain = is_plain and not platform.population.scripted.any()
    if is_plain and platform.tables.is_whole and answers_at_once(platform):
        advance(platform, _open_round(platform, online), ticks)
        platform.tick = ticks
        return
    fire_and_wait(platform, FEED_READY, online)
    stride = ticks if platform.tables.is_whole and not platform.scripts.has_scripts else 1
    for last in range(stride, ticks + 1, stride):
        platform.tick = last
        waits = np.zeros(len(platform.population), np.bool_)
        waits[list(platform.pending.by_row)] = True
        walks = _moved_by_columns(platform) & ~waits
        if stride == 1:
            platform.scripts.step_scripts()
        advance(platform, make_starts(np.flatnonzero(walks), last - stride), last)
        others = platform.population.state[: len(walks)][~walks & ~waits & platform.population.present[: len(walks)]]
        platform.tick_counts[last - stride : last] += np.bincount(others, minlength=len(STATES))
    await_answers(platform, ticks)
    platform.tick = ticks


def _open_round(platform: Platform, online: Rows) -> Starts:
    """Return all agents that walk in a round, and count the others, which are idle in all its ticks."""
    population = platform.population
    awake = np.flatnonzero(population.present & (population.state != IDLE.code))
    starts = make_starts(online, 0, platform.trigger_code(FEED_READY), FIRE)
    if len(awake):
        starts = join_starts([starts, make_starts(awake, 0)])
    platform.tick_counts[:, IDLE.code] += np.count_nonzero(population.present) - len(starts.rows)
    return starts


def _moved_by_columns(platform: Platform) -> Mask:
    population = platform.population
    moved: Mask = (population.state != IDLE.code) & population.present & ~population.scripted
    if platform.params.scheduler == "mesa":  # Mesa schedules the others, but no longer knows agents that leave
        moved &= np.isin(np.arange(len(population)), list(platform.leaving))
    return moved


def fire_and_wait(platform: Platform, trigger: str, rows: Rows) -> None:
    """Fire a trigger on each of `rows`, outside the ticks, and wait for all answers; a no-op if no chart has it."""
    code = platform.trigger_code(trigger)
    if code >= 0 and len(rows):
        advance(platform, make_starts(rows, platform.tick, code, FIRE), platform.tick)
        await_answers(platform, platform.tick)


def fire_on_active(platform: Platform, trigger: str) -> None:
    """Fire a trigger on all present agents that are not idle, outside the ticks, and wait for all answers."""
    active = platform.population.present & (platform.population.state != IDLE.code)
    fire_and_wait(platform, trigger, np.flatnonzero(active))


def await_answers(platform: Platform, until: int) -> None:
    """Wait for all answers that are out; agents that get one go on up to the tick `until`."""
    while platform.pending:
        for answered in collect_answers(platform):
            _resume(platform, answered, until)


def _resume(platform: Platform, answered: TickAnswers, until: int) -> None:
    """Let agents go where their answers lead, at the tick of their question, and on from there."""
    platform.tick, rows = answered.tick, answered.rows
    choice = _Choice(AgentColumns(platform, rows), PostColumns(platform, rows, answered.posts), answered.triggers)
    sources = platform.population.state[rows]
    keys = [platform.pending.keys.pop(row, 0) for row in rows.tolist()]
    starts = make_starts(rows, answered.tick, answered.triggers, answered.targets, 1, answered.posts)
    _run_actions(choice, _transitions_to(choice, sources, answered.targets, keys), starts)
    advance(platform, starts, until)


def advance(platform: Platform, starts: Starts, until: int) -> None:
    """Let agents walk up to the tick `until`, and settle what stops them, except answers that are out."""
    while len(starts.rows):
        starts = _settle(platform, walk_agents(platform, starts, until))


def _settle(platform: Platform, stopped: Stopped) -> Starts:
    """Return the agents that can go on, and what they do next; agents whose question is out are in `pending`."""
    is_open = stopped.outcomes <= FIRST_SET
    answered = [_ask_open_choices(platform, stopped.take(is_open))] if is_open.any() else []
    now, fired = platform.tick, dict[int, Starts]()
    try:
        for tick in np.unique(stopped.ticks[~is_open]).tolist():
            platform.tick = tick  # guards and actions may read the time
            fired[tick] = _fire(platform, stopped.take(~is_open & (stopped.ticks == tick)))
    except BaseException:
        for tick, starts in fired.items():  # their actions have run
            advance(platform, starts, tick)
        raise
    platform.tick = now
    return join_starts([*answered, *fired.values()])


@dataclass(frozen=True)
class _Choice:
    agents: AgentColumns
    posts: PostColumns
    triggers: Rows

    def take(self, which: Rows) -> "_Choice":
        return _Choice(self.agents.take(which), self.posts.take(which), self.triggers[which])


def _choice(platform: Platform, stopped: Stopped) -> _Choice:
    """Return what the guards of stopped agents read: the next unread post for `sees_post`, else the current one."""
    population, rows = platform.population, stopped.rows
    posts = population.current_post.take(rows)
    sees = np.flatnonzero(stopped.triggers == platform.trigger_code(SEES_POST))
    n_read = population.n_read.take(rows.take(sees))
    has_next = n_read < population.n_feed.take(rows.take(sees))
    sees, n_read = sees[has_next], n_read[has_next]
    posts[sees] = population.feed[rows.take(sees), n_read]
    return _Choice(AgentColumns(platform, rows), PostColumns(platform, rows, posts), stopped.triggers)


def _ask_open_choices(platform: Platform, stopped: Stopped) -> Starts:
    choice, sets = _choice(platform, stopped), platform.tables.option_sets
    options = FIRST_SET - stopped.outcomes
    targets = ask(platform, choice.agents, choice.posts, stopped.triggers, options, sets, stopped.ticks)
    return _going_on(stopped, choice, targets, np.ones(len(targets), np.bool_))


def _fire(platform: Platform, stopped: Stopped) -> Starts:
    """Let the chart itself fire the triggers of one tick, ask about open choices, and run actions."""
    choice = _choice(platform, stopped)
    sources = platform.population.state[stopped.rows].astype(np.int64)
    if not isinstance(claimed := platform.tables.claimed, bool):
        for i in np.flatnonzero(choice.triggers == platform.trigger_code(DECIDES)).tolist():
            agent, post = choice.agents.row(i), choice.posts.row(i)
            trigger = next_trigger(platform.chart, claimed, STATES[sources[i]], agent, post)
            choice.triggers[i] = platform.trigger_code(trigger or DECIDES)  # also changes `stopped`
    fired = platform.chart.fire_many(sources, stopped.triggers, choice.agents, choice.posts)
    _note_row_by_row(platform, fired.row_by_row_guards)
    codes = [NO_CHANGE if t.target is None else t.target.code for t in fired.transitions]
    targets = np.array([*codes, NO_CHANGE])[fired.taken]
    taken, was_open = fired.taken.astype(np.int64), fired.open >= 0
    if was_open.any():
        where = np.flatnonzero(was_open)
        asking, options = choice.take(where), fired.open[where]
        targets[where] = ask(platform, asking.agents, asking.posts, asking.triggers, options, fired.option_sets)
        keys = fired.keys[where].tolist()
        taken[where] = _transitions_to(asking, sources[where], targets[where], keys)
        wait = np.flatnonzero(targets[where] == PENDING).tolist()
        platform.pending.keys.update((int(stopped.rows[where[i]]), keys[i]) for i in wait)
    here, starts = np.flatnonzero(targets != PENDING), _going_on(stopped, choice, targets, was_open)
    _run_actions(choice.take(here), taken[here], starts)
    return starts


def _going_on(stopped: Stopped, choice: _Choice, targets: Rows, was_open: Mask) -> Starts:
    targets, here = np.where(targets == NO_CHANGE, NOTHING, targets), targets != PENDING
    columns = stopped.rows, stopped.ticks, stopped.triggers, targets, was_open, choice.posts.posts
    return make_starts(*(column[here] for column in columns))


def _transitions_to(choice: _Choice, sources: Rows, targets: Rows, keys: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the transitions that lead to chosen targets, whose actions are to run.

    Only where a transition has an action does it matter which one is taken. What the guards said when the trigger was
    fired (`keys`) then decides, row by row.
    """
    chart = choice.agents.platform.chart
    transitions = np.full(len(targets), NOTHING, np.int64)
    if not any(t.action for t in chart.transitions):
        return transitions
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    for i, target in enumerate(targets.tolist()):
        if target >= 0:
            trigger = chart.triggers[choice.triggers[i]]
            transitions[i] = index[id(chart.resolve_key(STATES[sources[i]], trigger, STATES[target], keys[i]))]
    return transitions


def _run_actions(choice: _Choice, taken: Rows, starts: Starts) -> None:
    """Run the actions of the transitions about to be taken, in the order of rows.

    If one raises, its agent is as before, agents of earlier rows go where they were going (`starts`), and those of
    later rows have done nothing: as if agents did their ticks one by one.
    """
    platform = choice.agents.platform
    transitions = platform.chart.transitions
    acting = [i for i, transition in enumerate(transitions) if transition.action is not None]
    for i in np.flatnonzero(np.isin(taken, acting)).tolist() if acting else ():
        row, post = int(choice.agents.rows[i]), int(choice.posts.posts[i])
        try:
            with rollback_on_error(platform, row):
                act(transitions[taken[i]], platform.scripts.agent(row), platform.post(post, row))
        except BaseException:
            advance(platform, select_starts(starts, slice(i)), platform.tick)
            raise


def _note_row_by_row(platform: Platform, guards: Set[str]) -> None:
    """Name each guard that was evaluated agent by agent once in the platform's notes."""
    for guard in sorted(guards - platform.row_by_row_guards):
        is_callable = any(str(t) == guard and not isinstance(t.guard, Expression) for t in platform.chart.transitions)
        platform.notes += (f"{guard}: {_CALLABLE if is_callable else _NO_COLUMNS}",)
    platform.row_by_row_guards |= guards
