"""Putting open choices to the reasoner.

An LLM is not waited for: its questions go out, and the agents that put them stand still (`PendingAnswers`) while all
others go on with their ticks. Agents do not meet within a round, so the result is the same as if all had waited. Rules
and distilled models answer whole columns at once; with `reasoner.llm_share` below 1 an agent's keyed draw says who is
asked: who goes to the LLM with a smaller share also does with a larger one.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.reasoner import (
    Answer,
    DetailedChoices,
    DistilledReasoner,
    OpenChoices,
    PlacedQuestion,
    Question,
    Reasoner,
)
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.questions import questions
from prism_mesa.social.state.population import NO_POST, Rows
from prism_mesa.statechart import AgentState
from prism_mesa.streams import digest64

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

type Codes = npt.NDArray[np.int64]

NO_CHANGE: Final = -1
PENDING: Final = -2
"""What an agent goes to whose question is out: not known yet."""


@dataclass
class PendingAnswers:
    """Agents whose question is out, with what they were doing: row -> (tick, trigger, post).

    `keys` holds what the guards said to those whose answer may lead along several transitions (see
    `Statechart.resolve_key`).
    """

    by_row: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)

    def put(self, ticks: Rows, rows: Rows, triggers: Rows, posts: Rows) -> None:
        """Let agents wait; each waits for one answer at most."""
        doing = zip(ticks.tolist(), triggers.tolist(), posts.tolist(), strict=True)
        self.by_row.update(zip(rows.tolist(), doing, strict=True))

    def __bool__(self) -> bool:
        return bool(self.by_row)


@dataclass(frozen=True)
class Answered:
    """Answers that have come for one tick: `rows` ascending, and for each what it was doing and where it goes."""

    tick: int
    rows: Codes
    triggers: Codes
    posts: Codes
    targets: Codes


def ask(
    model: "SocialModel",
    agents: AgentColumns,
    posts: PostColumns,
    triggers: Rows,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
    ticks: Rows | int | None = None,
) -> Codes:
    """Return the code of the state that each agent goes to, `NO_CHANGE`, or `PENDING` if an LLM was asked.

    Args:
        model: Whose reasoner is asked, and whose counters count.
        agents: Who has an open choice, in ascending order; each once.
        posts: What they decide about.
        triggers: Indices of the triggers that were fired.
        options: Indices into `option_sets`.
        option_sets: What there is to choose from. A set of one is taken without asking.
        ticks: At which tick each one asks; None: all at that of the model.
    """
    rows = agents.rows
    chosen = np.full(len(rows), NO_CHANGE, np.int64)
    draws = choice_draws(model, rows, triggers, model.tick if ticks is None else ticks)
    for i, only in enumerate(option_sets):
        if len(only) == 1:
            chosen[options == i] = only[0].code
    where = np.flatnonzero(np.array([len(choices) > 1 for choices in option_sets])[options])
    model.counts["open"] += len(where)
    if not len(where):
        return chosen
    at = np.broadcast_to(model.tick if ticks is None else ticks, len(rows))
    waits = goes_to_llm(model, rows[where], triggers[where], at[where])
    _answer_in_batch(model, agents, posts, options, option_sets, draws, where[~waits], chosen)
    where = where[waits]
    if not len(where) or not isinstance(model.reasoner, Reasoner):
        return chosen
    agents, posts, at = agents.take(where), posts.take(where), at[where]
    names = [model.chart.triggers[trigger] for trigger in triggers[where].tolist()]
    sets = [option_sets[i] for i in options[where].tolist()]
    model.reasoner.submit(asks_of(model, at, agents.rows, questions(agents, posts, names, sets), draws[where]))
    model.pending.put(at, agents.rows, triggers[where], posts.posts)
    chosen[where] = PENDING
    return chosen


def _answer_in_batch(
    model: "SocialModel",
    agents: AgentColumns,
    posts: PostColumns,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
    draws: npt.NDArray[np.float64],
    where: Rows,
    chosen: Codes,
) -> None:
    """Write into `chosen` what those at the places `where` are answered who do not go to an LLM."""
    answers = model.reasoner.batch_reasoner
    if answers is None:
        return
    for i, choices in enumerate(option_sets):
        here = where[options[where] == i]
        if len(here):
            columns = _columns(choices, agents.take(here), posts.take(here), draws[here])
            if isinstance(answers, DistilledReasoner):
                picked = answers.choose(_detailed(columns, agents.take(here), posts.take(here)))
            else:
                picked = answers.choose(columns)
            chosen[here] = np.array([state.code for state in choices])[picked]
            model.sources[answers.source_of(choices)] += len(here)


def goes_to_llm(model: "SocialModel", rows: Rows, triggers: Rows, ticks: Rows | int) -> npt.NDArray[np.bool_]:
    """Return whose open choice goes to the LLM: by keyed draws, so that a larger share has all of a smaller one."""
    share = model.reasoner.llm_share
    if share in (0, 1):
        return np.full(len(rows), share == 1)
    return _drawn_by_trigger(model, "llm share", rows, triggers, ticks) < share


def ask_alone(model: "SocialModel", row: int, question: Question) -> Answer:
    """Return the answer to one agent, which is waited for."""
    rows = np.array([row])
    model.counts["open"] += 1
    codes = np.array([model.trigger_code(question.trigger)])
    draws = choice_draws(model, rows, codes, model.tick)
    batch_reasoner = model.reasoner.batch_reasoner
    asked = (
        model.reasoner if batch_reasoner is None or goes_to_llm(model, rows, codes, model.tick)[0] else batch_reasoner
    )
    [answer] = asked.answer(asks_of(model, np.array([model.tick]), rows, [question], draws))
    _count(model, [answer])
    return answer


def choice_draws(model: "SocialModel", rows: Rows, triggers: Rows, ticks: Rows | int) -> npt.NDArray[np.float64]:
    """Return the keyed draws by which open choices are decided; by the triggers' names, whatever else a chart has."""
    return _drawn_by_trigger(model, "choice", rows, triggers, ticks)


def _drawn_by_trigger(
    model: "SocialModel", purpose: str, rows: Rows, triggers: Rows, ticks: Rows | int
) -> npt.NDArray[np.float64]:
    names = np.array([digest64(trigger) for trigger in model.chart.triggers], np.uint64)[triggers]
    return model.streams.uniform(purpose, rows, round_=model.round, tick=ticks, index=names)


def asks_of(
    model: "SocialModel", ticks: Rows, rows: Rows, asked: list[Question], draws: npt.NDArray[np.float64]
) -> list[PlacedQuestion]:
    """Return questions with their place in the run."""
    followers = model.network.n_followers[rows].tolist()
    places = zip(asked, ticks.tolist(), rows.tolist(), draws.tolist(), followers, strict=True)
    return [PlacedQuestion(question, model.round, tick, row, draw, n) for question, tick, row, draw, n in places]


def collect_answers(model: "SocialModel") -> list[Answered]:
    """Return answers that have come to agents that wait, by tick; some have, unless nobody waits."""
    if not model.pending or not isinstance(model.reasoner, Reasoner):
        return []
    found = model.reasoner.collect()
    _count(model, [answer for _, answer in found])
    doing = model.pending.by_row
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


def _count(model: "SocialModel", answers: list[Answer]) -> None:
    sources = Counter(answer.source for answer in answers)
    model.sources.update(sources)
    model.counts["fallback"] += sources["fallback"]


def _columns(
    options: tuple[AgentState, ...], agents: AgentColumns, posts: PostColumns, draws: npt.NDArray[np.float64]
) -> OpenChoices:
    """Return open choices as columns; without a post relevance is the middle of the band and all else of it 0."""
    population, rows = agents.model.population, agents.rows
    has_post = posts.posts != NO_POST
    n = len(rows)
    low, high = agents.column("low_threshold"), agents.column("high_threshold")
    relevance, velocity, media = (low + high) / 2, np.zeros(n, np.int64), np.zeros(n, np.bool_)
    there = posts.take(np.flatnonzero(has_post))
    if has_post.any():
        relevance[has_post] = there.column("relevance")
        velocity[has_post] = there.column("velocity")
        media[has_post] = agents.model.posts.has_media(there.posts)
    return OpenChoices(
        options=options,
        relevance=relevance,
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
            found[has_post] = there.model.posts.kind[there.posts] if name == "kind" else there.column(name)
        return found

    return DetailedChoices.of(columns, agents.model.prompt_interests.matches(agents.rows, posts.posts), column)
