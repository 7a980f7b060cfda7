"""Putting open choices to the reasoner.

An LLM is not waited for: its questions go out, and the agents that put them stand still (`PendingAnswers`) while all
others go on with their ticks. Agents do not meet within a round, so the result is the same as if all had waited. Rules
and distilled models answer whole columns at once; with `reasoner.llm_share` below 1 an agent's keyed draw says who is
asked: who goes to the LLM with a smaller share also does with a larger one.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.reasoner import (
    Answer,
    DetailedChoices,
    OpenChoices,
    PlacedQuestion,
    Question,
    asks_llm,
    is_distilled,
)
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.questions import questions
from prism_mesa.social.state.population import NO_POST, Rows
from prism_mesa.statechart import AgentState
from prism_mesa.streams import digest64

type Codes = npt.NDArray[np.int64]

NO_CHANGE: Final = -1
PENDING: Final = -2
"""What an agent goes to whose question is out: not known yet."""


@dataclass(frozen=True)
class Answered:
    """Answers that have come for one tick: `rows` ascending, and for each what it was doing and where it goes."""

    tick: int
    rows: Codes
    triggers: Codes
    posts: Codes
    targets: Codes


def ask(
    platform: Platform,
    agents: AgentColumns,
    posts: PostColumns,
    triggers: Rows,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
    ticks: Rows | int | None = None,
) -> Codes:
    """Return the code of the state that each agent goes to, `NO_CHANGE`, or `PENDING` if an LLM was asked.

    Args:
        platform: Whose reasoner is asked, and whose counters count.
        agents: Who has an open choice, in ascending order; each once.
        posts: What they decide about.
        triggers: Indices of the triggers that were fired.
        options: Indices into `option_sets`.
        option_sets: What there is to choose from. A set of one is taken without asking.
        ticks: At which tick each one asks; None: all at that of the platform.
    """
    rows = agents.rows
    chosen = np.full(len(rows), NO_CHANGE, np.int64)
    draws = choice_draws(platform, rows, triggers, platform.tick if ticks is None else ticks)
    for i, only in enumerate(option_sets):
        if len(only) == 1:
            chosen[options == i] = only[0].code
    where = np.flatnonzero(np.array([len(choices) > 1 for choices in option_sets])[options])
    platform.counts["open"] += len(where)
    if not len(where):
        return chosen
    at = np.broadcast_to(platform.tick if ticks is None else ticks, len(rows))
    waits = goes_to_llm(platform, rows[where], triggers[where], at[where])
    _answer_in_batch(platform, agents, posts, options, option_sets, draws, where[~waits], chosen)
    where = where[waits]
    if not len(where) or not asks_llm(platform.reasoner):
        return chosen
    agents, posts, at = agents.take(where), posts.take(where), at[where]
    names = [platform.chart.triggers[trigger] for trigger in triggers[where].tolist()]
    sets = [option_sets[i] for i in options[where].tolist()]
    platform.reasoner.submit(asks_of(platform, at, agents.rows, questions(agents, posts, names, sets), draws[where]))
    platform.pending.put(at, agents.rows, triggers[where], posts.posts)
    chosen[where] = PENDING
    return chosen


def _answer_in_batch(
    platform: Platform,
    agents: AgentColumns,
    posts: PostColumns,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
    draws: npt.NDArray[np.float64],
    where: Rows,
    chosen: Codes,
) -> None:
    """Write into `chosen` what those at the places `where` are answered who do not go to an LLM."""
    answers = platform.reasoner.batch_reasoner
    if answers is None:
        return
    for i, choices in enumerate(option_sets):
        here = where[options[where] == i]
        if len(here):
            columns = _columns(choices, agents.take(here), posts.take(here), draws[here])
            if is_distilled(answers):
                picked = answers.choose(_detailed(columns, agents.take(here), posts.take(here)))
            else:
                picked = answers.choose(columns)
            chosen[here] = np.array([state.code for state in choices])[picked]
            platform.sources[answers.source_for(choices)] += len(here)


def answers_at_once(platform: Platform) -> bool:
    """Return whether nobody is waited for: no open choice goes to an LLM."""
    return platform.reasoner.batch_reasoner is not None and not platform.reasoner.llm_share


def goes_to_llm(platform: Platform, rows: Rows, triggers: Rows, ticks: Rows | int) -> npt.NDArray[np.bool_]:
    """Return whose open choice goes to the LLM: by keyed draws, so that a larger share has all of a smaller one."""
    share = platform.reasoner.llm_share
    if share in (0, 1):
        return np.full(len(rows), share == 1)
    return _drawn_by_trigger(platform, "llm share", rows, triggers, ticks) < share


def ask_alone(platform: Platform, row: int, question: Question) -> Answer:
    """Return the answer to one agent, which is waited for."""
    rows = np.array([row])
    platform.counts["open"] += 1
    codes = np.array([platform.trigger_code(question.trigger)])
    draws = choice_draws(platform, rows, codes, platform.tick)
    batch_reasoner = platform.reasoner.batch_reasoner
    asked = (
        platform.reasoner
        if batch_reasoner is None or goes_to_llm(platform, rows, codes, platform.tick)[0]
        else batch_reasoner
    )
    [answer] = asked.answer(asks_of(platform, np.array([platform.tick]), rows, [question], draws))
    _count(platform, [answer])
    return answer


def choice_draws(platform: Platform, rows: Rows, triggers: Rows, ticks: Rows | int) -> npt.NDArray[np.float64]:
    """Return the keyed draws by which open choices are decided; by the triggers' names, whatever else a chart has."""
    return _drawn_by_trigger(platform, "choice", rows, triggers, ticks)


def _drawn_by_trigger(
    platform: Platform, purpose: str, rows: Rows, triggers: Rows, ticks: Rows | int
) -> npt.NDArray[np.float64]:
    names = np.array([digest64(trigger) for trigger in platform.chart.triggers], np.uint64)[triggers]
    return platform.streams.uniform(purpose, rows, round_=platform.round, tick=ticks, index=names)


def asks_of(
    platform: Platform, ticks: Rows, rows: Rows, asked: list[Question], draws: npt.NDArray[np.float64]
) -> list[PlacedQuestion]:
    """Return questions with their place in the run."""
    followers, llms = platform.network.n_followers[rows].tolist(), platform.llms.of(rows, platform.population)
    places = zip(ticks.tolist(), rows.tolist(), draws.tolist(), followers, llms, strict=True)
    return [PlacedQuestion(question, platform.round, *own) for question, own in zip(asked, places, strict=True)]


def collect_answers(platform: Platform) -> list[Answered]:
    """Return answers that have come to agents that wait, by tick; some have, unless nobody waits."""
    if not platform.pending or not asks_llm(platform.reasoner):
        return []
    found = platform.reasoner.collect()
    _count(platform, [answer for _, answer in found])
    doing = platform.pending.by_row
    # sorted: tick, row, trigger, post, target
    came = sorted((*_tick_first(ask.agent, doing.pop(ask.agent)), _code(answer)) for ask, answer in found)
    table = np.array(came, np.int64).reshape(-1, 5)
    ticks = table[:, 0]
    return [Answered(tick, *table[ticks == tick, 1:].T) for tick in sorted(set(ticks.tolist()))]


def _tick_first(row: int, doing: tuple[int, int, int]) -> tuple[int, int, int, int]:
    tick, trigger, post = doing
    return tick, row, trigger, post


def _code(answer: Answer) -> int:
    return NO_CHANGE if answer.choice is None else answer.choice.code


def _count(platform: Platform, answers: list[Answer]) -> None:
    sources = Counter(answer.source for answer in answers)
    platform.sources.update(sources)
    platform.counts["fallback"] += sources["fallback"]


def _columns(
    options: tuple[AgentState, ...], agents: AgentColumns, posts: PostColumns, draws: npt.NDArray[np.float64]
) -> OpenChoices:
    """Return open choices as columns; without a post both are the middle of the band, all else of it is 0."""
    population, rows = agents.platform.population, agents.rows
    has_post = posts.posts != NO_POST
    n = len(rows)
    low, high = agents.column("low_threshold"), agents.column("high_threshold")
    relevance, utility = (low + high) / 2, (low + high) / 2
    velocity, media = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    there = posts.take(np.flatnonzero(has_post))
    if has_post.any():
        relevance[has_post], utility[has_post] = there.column("relevance"), there.column("utility")
        velocity[has_post] = there.column("velocity")
        media[has_post] = agents.platform.posts.has_media(there.posts)
    return OpenChoices(
        options=options,
        relevance=relevance,
        utility=utility,
        low=low,
        high=high,
        velocity=velocity,
        media=media,
        traits=population.traits[rows].astype(np.float64),
        propensities=population.propensities[rows].astype(np.float64),
        draws=draws,
    )


def _detailed(columns: OpenChoices, agents: AgentColumns, posts: PostColumns) -> DetailedChoices:
    """Return open choices with all that a distilled model looks at; 0 where there is no post at hand."""
    has_post = np.flatnonzero(posts.posts != NO_POST)
    there = posts.take(has_post)

    def column(name: str) -> Codes:
        found = np.zeros(len(agents.rows), np.int64)
        if len(has_post):
            found[has_post] = there.platform.posts.kind[there.posts] if name == "kind" else there.column(name)
        return found

    return DetailedChoices.of(columns, agents.platform.prompt_interests.matches(agents.rows, posts.posts), column)
