"""Run ticks and fire triggers on columns of many agents; `SocialAgent.step` runs a tick of one agent.

Agents walk (`kernels.walking.walk`) until a choice is open that the rule does not answer, or until only the chart can
decide: at a guard in Python, or at an action. This module handles these cases, and the walk continues from that tick.
An agent that waits for an LLM pauses, and continues from the tick of its question when the answer arrives.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

import numpy as np

from prism_mesa.arrays import Ints, Mask, Rows
from prism_mesa.kernels.walking.arrays import DRAFTED, FIRE, FIRST_SET, HAS_PASSED, NOTHING, POST_AT_HAND
from prism_mesa.kernels.walking.world import Starts
from prism_mesa.social.behavior import ABANDONS, DECIDES, ENGAGING, FEED_READY, IDLE, SEES_POST, next_trigger
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import review_drafts
from prism_mesa.social.round.choices import NO_CHANGE, PENDING, TickAnswers, ask, collect_answers, needs_no_llm
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.effects import find_mark, rollback_on_error
from prism_mesa.social.round.walk import Stopped, join_starts, make_starts, select_starts, walk_agents
from prism_mesa.statechart import Expression, run_action

_CALLABLE: Final = (
    "this guard is a Python callable, evaluated agent by agent; write it as an expression over F to have it evaluated "
    "for all agents at once (docs/charts.md)"
)
_UNREADABLE: Final = (
    "this guard was evaluated agent by agent: it reads a field that is not a column, reads a missing post, or divides "
    "by zero; otherwise it would be evaluated for all agents at once (docs/charts.md)"
)


def run_ticks(platform: Platform, online: Rows) -> None:
    """Fire `feed_ready` on agents that come online, run the ticks of a round, and count states after each tick.

    One walk covers all ticks, unless code may read other agents or the order of events: scripts, guards in Python or
    actions.
    """
    ticks = platform.params.ticks_per_round
    platform.kind_counts = np.zeros((len(platform.charts), ticks, len(platform.states)), np.int64)
    is_plain = platform.params.scheduler == "columns" and not platform.agent_objects.has_scripts
    is_plain = is_plain and not platform.population.scripted.any()
    if is_plain and platform.is_complete and needs_no_llm(platform):
        advance(platform, _open_round(platform, online), ticks)
        platform.tick = ticks
        return
    fire_and_wait(platform, FEED_READY, online)
    stride = ticks if platform.is_complete and not platform.agent_objects.has_scripts else 1
    for last in range(stride, ticks + 1, stride):
        platform.tick = last
        is_waiting = np.zeros(len(platform.population), np.bool_)
        is_waiting[list(platform.pending.by_row)] = True
        is_walking = _are_in_columns(platform) & ~is_waiting
        if stride == 1:
            platform.agent_objects.step_scripts()
        advance(platform, make_starts(np.flatnonzero(is_walking), last - stride), last)
        is_other = ~is_walking & ~is_waiting & platform.population.present[: len(is_walking)]
        platform.kind_counts[:, last - stride : last] += platform.count_states(np.flatnonzero(is_other))
    await_answers(platform, ticks)
    platform.tick = ticks


def _open_round(platform: Platform, online: Rows) -> Starts:
    """Return all agents that walk in a round, and count the other agents as idle in all ticks."""
    population = platform.population
    active = np.flatnonzero(population.present & (population.state != IDLE.code))
    starts = make_starts(online, 0, platform.trigger_code(FEED_READY), FIRE)
    if len(active):
        starts = join_starts([starts, make_starts(active, 0)])
    is_idle = population.present.copy()
    is_idle[starts.rows] = False
    idle = np.flatnonzero(is_idle)
    for kind, places in platform.by_kind(idle):
        platform.kind_counts[kind, :, IDLE.code] += len(idle[places])
    return starts


def _are_in_columns(platform: Platform) -> Mask:
    population = platform.population
    is_in_columns: Mask = (population.state != IDLE.code) & population.present & ~population.scripted
    if platform.params.scheduler == "mesa":  # Mesa schedules all others, but no longer has agents that leave
        is_in_columns &= np.isin(np.arange(len(population)), list(platform.leaving))
    return is_in_columns


def fire_and_wait(platform: Platform, trigger: str, rows: Rows) -> None:
    """Fire a trigger on each of `rows`, outside the ticks, and wait for all answers; a no-op for unknown triggers."""
    code = platform.trigger_code(trigger)
    if code >= 0 and len(rows):
        advance(platform, make_starts(rows, platform.tick, code, FIRE), platform.tick)
        await_answers(platform, platform.tick)


def fire_on_active(platform: Platform, trigger: str) -> None:
    """Fire a trigger on all present agents that are not idle, outside the ticks, and wait for all answers."""
    active = platform.population.present & (platform.population.state != IDLE.code)
    fire_and_wait(platform, trigger, np.flatnonzero(active))


def await_answers(platform: Platform, until: int) -> None:
    """Wait for all pending answers; each answered agent continues up to the tick `until`."""
    while platform.pending:
        for answered in collect_answers(platform):
            for kind, places in platform.by_kind(answered.rows):
                with platform.acting(kind):
                    _resume(platform, answered.take(places), until)


def _resume(platform: Platform, answered: TickAnswers, until: int) -> None:
    """Let answered agents take their transitions, at the tick of their question, and continue from there."""
    platform.tick, rows = answered.tick, answered.rows
    choices = _Choices(AgentColumns(platform, rows), PostColumns(platform, rows, answered.posts), answered.triggers)
    sources = platform.population.state[rows]
    keys = [platform.pending.keys.pop(row, 0) for row in rows.tolist()]
    starts = make_starts(rows, answered.tick, answered.triggers, answered.targets, 1, answered.posts)
    _run_actions(choices, _chosen_transitions(choices, sources, answered.targets, keys), starts)
    advance(platform, starts, until)


def advance(platform: Platform, starts: Starts, until: int) -> None:
    """Let agents walk up to the tick `until`, kind by kind; only agents with pending answers stop before."""
    for kind, places in platform.by_kind(starts.rows):
        with platform.acting(kind):
            walking = select_starts(starts, places)
            while len(walking.rows):
                walking = _settle(platform, walk_agents(platform, walking, until))


def _settle(platform: Platform, stopped: Stopped) -> Starts:
    """Return the stopped agents that can continue, with their next steps; agents in `pending` wait for answers."""
    is_open = stopped.outcomes <= FIRST_SET
    is_drafted = (stopped.outcomes == DRAFTED) | (stopped.outcomes == DRAFTED - 1)
    answered = [_ask_open_choices(platform, stopped.take(is_open))] if is_open.any() else []
    if is_drafted.any():
        answered.append(_review_drafts(platform, stopped.take(is_drafted)))
    is_open |= is_drafted
    current_tick, fired = platform.tick, dict[int, Starts]()
    try:
        for tick in np.unique(stopped.ticks[~is_open]).tolist():
            platform.tick = tick  # because guards and actions may read the time
            fired[tick] = _fire(platform, stopped.take(~is_open & (stopped.ticks == tick)))
    except BaseException:
        for tick, starts in fired.items():  # because their actions have run
            advance(platform, starts, tick)
        raise
    platform.tick = current_tick
    return join_starts([*answered, *fired.values()])


@dataclass(frozen=True)
class _Choices:
    agents: AgentColumns
    posts: PostColumns
    triggers: Rows

    def take(self, rows: Rows) -> "_Choices":
        return _Choices(self.agents.take(rows), self.posts.take(rows), self.triggers[rows])


def _read_choices(platform: Platform, stopped: Stopped) -> _Choices:
    """Return stopped agents with the posts for guards: the next unread post for `sees_post`, else the current one."""
    population, rows = platform.population, stopped.rows
    posts = population.current_post.take(rows)
    readers = np.flatnonzero(stopped.triggers == platform.trigger_code(SEES_POST))
    n_read = population.n_read.take(rows.take(readers))
    has_next = n_read < population.n_feed.take(rows.take(readers))
    readers, n_read = readers[has_next], n_read[has_next]
    posts[readers] = population.feed[rows.take(readers), n_read]
    return _Choices(AgentColumns(platform, rows), PostColumns(platform, rows, posts), stopped.triggers)


def _ask_open_choices(platform: Platform, stopped: Stopped) -> Starts:
    choices, sets = _read_choices(platform, stopped), platform.tables.option_sets
    options = FIRST_SET - stopped.outcomes
    targets = ask(platform, choices.agents, choices.posts, stopped.triggers, options, sets, stopped.ticks)
    return _next_starts(stopped, choices, targets, np.ones(len(targets), np.bool_))


def _review_drafts(platform: Platform, stopped: Stopped) -> Starts:
    posts = _read_choices(platform, stopped).posts.posts
    gives_up = review_drafts(platform, stopped.ticks, stopped.rows, posts)
    triggers = np.where(gives_up, platform.trigger_code(ABANDONS), stopped.triggers)
    targets = np.where(gives_up, FIRE, ENGAGING["reply"].code)
    was_open = np.where(gives_up, 0, DRAFTED - stopped.outcomes) + HAS_PASSED
    decided_posts = np.where(gives_up, POST_AT_HAND, posts)
    return make_starts(stopped.rows, stopped.ticks, triggers, targets, was_open, decided_posts)


def _fire(platform: Platform, stopped: Stopped) -> Starts:
    """Let the chart fire the triggers of one tick, ask about open choices, and run actions."""
    choices = _read_choices(platform, stopped)
    sources = platform.population.state[stopped.rows].astype(np.int64)
    if not isinstance(condition := platform.tables.claim_condition, bool):
        for i in np.flatnonzero(choices.triggers == platform.trigger_code(DECIDES)).tolist():
            agent, post = choices.agents.row(i), choices.posts.row(i)
            trigger = next_trigger(platform.chart, condition, platform.states[sources[i]], agent, post)
            choices.triggers[i] = platform.trigger_code(trigger or DECIDES)  # also changes `stopped`
    fired = platform.chart.fire_many(sources, stopped.triggers, choices.agents, choices.posts)
    _note_slow_guards(platform, fired.row_by_row_guards)
    codes = [NO_CHANGE if t.target is None else t.target.code for t in fired.transitions]
    targets = np.array([*codes, NO_CHANGE])[fired.transition_indices]
    taken, was_open = fired.transition_indices.astype(np.int64), fired.option_indices >= 0
    if was_open.any():
        open_rows = np.flatnonzero(was_open)
        subset, options = choices.take(open_rows), fired.option_indices[open_rows]
        targets[open_rows] = ask(platform, subset.agents, subset.posts, subset.triggers, options, fired.option_sets)
        keys = fired.keys[open_rows].tolist()
        taken[open_rows] = _chosen_transitions(subset, sources[open_rows], targets[open_rows], keys)
        pending_rows = np.flatnonzero(targets[open_rows] == PENDING).tolist()
        platform.pending.keys.update((int(stopped.rows[open_rows[i]]), keys[i]) for i in pending_rows)
    ready_rows, starts = np.flatnonzero(targets != PENDING), _next_starts(stopped, choices, targets, was_open)
    _run_actions(choices.take(ready_rows), taken[ready_rows], starts)
    return starts


def _next_starts(stopped: Stopped, choices: _Choices, targets: Rows, was_open: Mask) -> Starts:
    targets, is_ready = np.where(targets == NO_CHANGE, NOTHING, targets), targets != PENDING
    columns = stopped.rows, stopped.ticks, stopped.triggers, targets, was_open, choices.posts.posts
    return make_starts(*(column[is_ready] for column in columns))


def _chosen_transitions(choices: _Choices, sources: Rows, targets: Rows, keys: Sequence[int]) -> Ints:
    """Return the transitions to chosen targets, for running their actions.

    The transition matters only if some transition has an action. Then the guards' values from firing (`keys`) decide,
    row by row.
    """
    chart, states = choices.agents.platform.chart, choices.agents.platform.states
    transitions = np.full(len(targets), NOTHING, np.int64)
    if not any(t.action for t in chart.transitions):
        return transitions
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    for i, target in enumerate(targets.tolist()):
        if target >= 0:
            trigger = chart.triggers[choices.triggers[i]]
            transitions[i] = index[id(chart.resolve_key(states[sources[i]], trigger, states[target], keys[i]))]
    return transitions


def _run_actions(choices: _Choices, taken: Rows, starts: Starts) -> None:
    """Run the actions of transitions that are about to be taken, in order of rows.

    If an action raises, its agent is unchanged. Agents in earlier rows still take their transitions (`starts`), and
    agents in later rows do nothing, as if agents had taken their ticks one by one.
    """
    platform = choices.agents.platform
    transitions = platform.chart.transitions
    acting = [i for i, transition in enumerate(transitions) if transition.action is not None]
    for i in np.flatnonzero(np.isin(taken, acting)).tolist() if acting else ():
        row, post = int(choices.agents.rows[i]), int(choices.posts.posts[i])
        if find_mark(platform, row, post, transitions[taken[i]].target) >= 0:
            continue
        try:
            with rollback_on_error(platform, row):
                run_action(transitions[taken[i]], platform.agent_objects.agent(row), platform.post(post, row))
        except BaseException:
            advance(platform, select_starts(starts, slice(i)), platform.tick)
            raise


def _note_slow_guards(platform: Platform, guards: Set[str]) -> None:
    for guard in sorted(guards - platform.row_by_row_guards):
        is_callable = any(str(t) == guard and not isinstance(t.guard, Expression) for t in platform.chart.transitions)
        platform.notes += (f"{guard}: {_CALLABLE if is_callable else _UNREADABLE}",)
    platform.row_by_row_guards |= guards
