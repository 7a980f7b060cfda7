"""The ticks of a round over columns, and firing one trigger on many agents; `SocialAgent.step` does so for its row.

Agents walk (`kernels.walking.walk`) until a choice is open that the rule does not answer, or until something only the
chart itself knows: a guard in Python, an action. These are settled here, and the walk goes on from the tick at which
they stopped. Who waits for an LLM's answer stands still; when it comes, the agent goes on from its question's tick.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.walking.arrays import FIRE, FIRST_SET, NOTHING
from prism_mesa.social.behavior import DECIDES, FEED_READY, IDLE, SEES_POST, next_trigger
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.choices import NO_CHANGE, PENDING, Answered, answers_at_once, ask, collect_answers
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.effects import undone_if_raised
from prism_mesa.social.round.walk import Stopped, Walkers, walk_agents
from prism_mesa.social.state.population import Rows
from prism_mesa.statechart import STATES, Expression, act

type Mask = npt.NDArray[np.bool_]


def run_ticks(platform: Platform, online: Rows) -> None:
    """Fire `feed_ready` on who comes online, let all do the ticks of a round, and count their states after each.

    All ticks are done in one go, unless there is something that may look at other agents, or at the order in which
    things happen: agents with scripts, guards in Python, actions.
    """
    ticks = platform.params.ticks_per_round
    platform.tick_counts = np.zeros((ticks, len(STATES)), np.int64)
    if _is_one_walk(platform):
        advance(platform, _opening(platform, online), ticks)
        platform.tick = ticks
        return
    fire_and_wait(platform, FEED_READY, online)
    stride = ticks if platform.tables.is_whole and not platform.scripts.has_scripts else 1
    for last in range(stride, ticks + 1, stride):
        platform.tick = last
        stands = np.zeros(len(platform.population), np.bool_)
        stands[list(platform.pending.by_row)] = True
        walks = moved_by_columns(platform) & ~stands
        if stride == 1:
            platform.scripts.step_scripts()
        advance(platform, Walkers.starting(np.flatnonzero(walks), last - stride), last)
        others = platform.population.state[: len(walks)][~walks & ~stands & platform.population.present[: len(walks)]]
        platform.tick_counts[last - stride : last] += np.bincount(others, minlength=len(STATES))
    await_answers(platform, ticks)
    platform.tick = ticks


def _is_one_walk(platform: Platform) -> bool:
    """Return whether a round is one walk of all agents: nobody is waited for, and the columns move all."""
    is_plain = platform.params.scheduler == "columns" and not platform.scripts.has_scripts
    is_plain = is_plain and not platform.population.scripted.any()
    return is_plain and platform.tables.is_whole and answers_at_once(platform)


def _opening(platform: Platform, online: Rows) -> Walkers:
    """Return all who walk in a round, and count all others, who are idle, in all of its ticks."""
    population, code = platform.population, platform.trigger_code(FEED_READY)
    walks = population.present & (population.state != IDLE.code)
    n_there = np.count_nonzero(population.present)
    if walks.any():
        walks[online] = True
        rows = np.flatnonzero(walks)
        walks[:] = False
        walks[online] = code >= 0
        finds_feed = walks[rows]
        walkers = Walkers.of(rows, 0, np.where(finds_feed, code, NOTHING), np.where(finds_feed, FIRE, NOTHING), 0)
    elif code >= 0:
        walkers = Walkers.of(online, 0, code, FIRE, 0)
    else:
        walkers = Walkers.starting(online, 0)
    platform.tick_counts[:, IDLE.code] += n_there - len(walkers.rows)
    return walkers


def moved_by_columns(platform: Platform) -> Mask:
    """Return which agents the columns move."""
    population = platform.population
    moved: Mask = (population.state != IDLE.code) & population.present & ~population.scripted
    if platform.params.scheduler == "mesa":  # all others are Mesa's, which no longer knows those who leave
        moved &= np.isin(np.arange(len(population)), list(platform.leaving))
    return moved


def fire_and_wait(platform: Platform, trigger: str, rows: Rows) -> None:
    """Fire a trigger on each of `rows`, outside the ticks, and wait for all answers; nothing if no chart knows it."""
    code = platform.trigger_code(trigger)
    if code < 0 or not len(rows):
        return
    advance(platform, Walkers.of(rows, platform.tick, code, FIRE, 0), platform.tick)
    await_answers(platform, platform.tick)


def fire_on_active(platform: Platform, trigger: str) -> None:
    """Fire a trigger on all who are there and not idle, outside the ticks, and wait for all answers."""
    code = platform.trigger_code(trigger)
    active = platform.population.present & (platform.population.state != IDLE.code)
    fire_and_wait(platform, trigger, np.flatnonzero(active))


def await_answers(platform: Platform, until: int) -> None:
    """Wait for all answers that are out; who gets one goes on up to the tick `until`."""
    while platform.pending:
        for answered in collect_answers(platform):
            _resume(platform, answered, until)


def _resume(platform: Platform, came: Answered, until: int) -> None:
    """Let agents whose answers have come go where these lead, at the tick of their question, and on from there."""
    platform.tick = came.tick
    choice = _Choice(AgentColumns(platform, came.rows), PostColumns(platform, came.rows, came.posts), came.triggers)
    sources = platform.population.state[came.rows]
    keys = [platform.pending.keys.pop(row, 0) for row in came.rows.tolist()]
    ones = np.ones(len(came.rows), np.uint8)
    goes = Walkers.of(came.rows, came.tick, came.triggers, came.targets, ones, came.posts)
    _run_actions(choice, _transitions_to(choice, sources, came.targets, keys), goes)
    advance(platform, goes, until)


def advance(platform: Platform, walkers: Walkers, until: int) -> None:
    """Let agents walk up to the tick `until`, settling whatever stops them, but for answers that are waited for."""
    while len(walkers.rows):
        walkers = _settle(platform, walk_agents(platform, walkers, until))


def _settle(platform: Platform, stopped: Stopped) -> Walkers:
    """Return those who can go on, with what they do next; those whose question is out wait in `Platform.pending`."""
    is_open = stopped.outcomes <= FIRST_SET
    answered = [_put_open_choices(platform, stopped.take(is_open))] if is_open.any() else []
    now, fired = platform.tick, dict[int, Walkers]()
    try:
        for tick in np.unique(stopped.ticks[~is_open]).tolist():
            platform.tick = tick  # guards and actions may ask for the time
            fired[tick] = _fire(platform, stopped.take(~is_open & (stopped.ticks == tick)))
    except BaseException:
        for tick, goes in fired.items():  # their actions have run
            advance(platform, goes, tick)
        raise
    platform.tick = now
    return Walkers.joined([*answered, *fired.values()])


@dataclass(frozen=True)
class _Choice:
    """Agents that fire triggers, and the posts at hand."""

    agents: AgentColumns
    posts: PostColumns
    triggers: Rows

    def take(self, which: Rows) -> "_Choice":
        return _Choice(self.agents.take(which), self.posts.take(which), self.triggers[which])


def _choice(platform: Platform, stopped: Stopped) -> _Choice:
    return _Choice(
        AgentColumns(platform, stopped.rows), posts_at_hand(platform, stopped.rows, stopped.triggers), stopped.triggers
    )


def _put_open_choices(platform: Platform, stopped: Stopped) -> Walkers:
    """Put open choices, and return those that are answered at once."""
    choice, sets = _choice(platform, stopped), platform.tables.option_sets
    options = FIRST_SET - stopped.outcomes
    targets = ask(platform, choice.agents, choice.posts, stopped.triggers, options, sets, stopped.ticks)
    return _going_on(stopped, choice, targets, np.ones(len(targets), np.bool_))


def _fire(platform: Platform, stopped: Stopped) -> Walkers:
    """Let the chart itself say what happens at one tick, ask, and run the actions of what is taken."""
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
        asking = choice.take(where)
        targets[where] = ask(
            platform, asking.agents, asking.posts, asking.triggers, fired.open[where], fired.option_sets
        )
        keys = fired.keys[where].tolist()
        taken[where] = _transitions_to(asking, sources[where], targets[where], keys)
        wait = np.flatnonzero(targets[where] == PENDING).tolist()
        platform.pending.keys.update((int(stopped.rows[where[i]]), keys[i]) for i in wait)
    here, goes = np.flatnonzero(targets != PENDING), _going_on(stopped, choice, targets, was_open)
    _run_actions(choice.take(here), taken[here], goes)
    return goes


def _going_on(stopped: Stopped, choice: _Choice, targets: Rows, was_open: Mask) -> Walkers:
    here, about = targets != PENDING, choice.posts.posts
    targets = np.where(targets == NO_CHANGE, NOTHING, targets)
    return Walkers.of(
        stopped.rows[here], stopped.ticks[here], stopped.triggers[here], targets[here], was_open[here], about[here]
    )


def posts_at_hand(platform: Platform, rows: Rows, triggers: Rows) -> PostColumns:
    """Return what each agent's guards read: the next unread post for `sees_post`, else the current one."""
    population = platform.population
    posts = population.current_post.take(rows)
    sees = np.flatnonzero(triggers == platform.trigger_code(SEES_POST))
    sees = sees[population.n_read.take(rows.take(sees)) < population.n_feed.take(rows.take(sees))]
    posts[sees] = population.feed[rows.take(sees), population.n_read.take(rows.take(sees))]
    return PostColumns(platform, rows, posts)


def _transitions_to(choice: _Choice, sources: Rows, targets: Rows, keys: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the transitions that lead to chosen targets: their actions are to be run.

    Only where a transition has an action does it matter which one it is; then what the guards said when the trigger
    was fired (`keys`) decides, row by row.
    """
    chart = choice.agents.platform.chart
    found = np.full(len(targets), NOTHING, np.int64)
    if not any(t.action for t in chart.transitions):
        return found
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    for i, target in enumerate(targets.tolist()):
        if target >= 0:
            trigger = chart.triggers[choice.triggers[i]]
            found[i] = index[id(chart.resolve_key(STATES[sources[i]], trigger, STATES[target], keys[i]))]
    return found


def _run_actions(choice: _Choice, taken: Rows, goes: Walkers) -> None:
    """Run the actions of the transitions that are about to be taken, in the order of rows.

    If one raises, its agent is as before, those of the rows before it go where they were going (`goes`), and those
    behind it have done nothing: as if agents did their tick one by one.
    """
    platform = choice.agents.platform
    transitions = platform.chart.transitions
    acting = [i for i, transition in enumerate(transitions) if transition.action is not None]
    for i in np.flatnonzero(np.isin(taken, acting)).tolist() if acting else ():
        row, post = int(choice.agents.rows[i]), int(choice.posts.posts[i])
        try:
            with undone_if_raised(platform, row):
                act(transitions[taken[i]], platform.scripts.agent(row), platform.post(post, row))
        except BaseException:
            advance(platform, goes.cut(slice(i)), platform.tick)
            raise


def _note_row_by_row(platform: Platform, guards: Set[str]) -> None:
    """Keep the labels of guards that were evaluated agent by agent, and name each one once in the platform's notes."""
    for guard in sorted(guards - platform.row_by_row_guards):
        is_callable = any(str(t) == guard and not isinstance(t.guard, Expression) for t in platform.chart.transitions)
        platform.notes += (f"{guard}: {_CALLABLE if is_callable else _NO_COLUMNS}",)
    platform.row_by_row_guards |= guards


_CALLABLE: Final = (
    "this guard is a Python callable, evaluated agent by agent; write it as an expression over F to have it evaluated "
    "for all agents at once (docs/charts.md)"
)
_NO_COLUMNS: Final = (
    "this guard was evaluated agent by agent: it reads a field that is no column, or a post where there is none, or "
    "divides by zero; without that it is evaluated for all agents at once (docs/charts.md)"
)
