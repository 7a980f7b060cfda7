"""Ask the reasoner about open choices, and report choices that it cannot answer.

Agents that wait for an LLM's answer pause (`PendingAnswers`) while all others continue with their ticks. Agents do not
interact within a round, so the result is the same as if all had waited. The rule and distilled models answer whole
columns at once. If `reasoner.llm_share` is below 1, a keyed draw selects the choices for the LLM. With a larger share,
the LLM gets the same choices and more.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from prism_mesa.arrays import Floats, Ints, Mask, Rows
from prism_mesa.domain import AgentState
from prism_mesa.errors import ConfigError, format_count
from prism_mesa.reasoner import (
    Answer,
    DetailedChoices,
    OpenChoices,
    PlacedQuestion,
    Question,
    ReasonerParams,
    asks_llm,
    is_distilled,
)
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.questions import prompt_matches, questions
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.population import NO_POST
from prism_mesa.statechart import Statechart
from prism_mesa.streams import digest64

FALLBACK_KEY: Final = "reasoner.max_fallback_share"
NO_CHANGE: Final = -1
PENDING: Final = -2
"""The target of an agent that waits for an answer."""


@dataclass(frozen=True)
class TickAnswers:
    """The answers to the questions of one tick, as columns; `rows` ascend."""

    tick: int
    rows: Ints
    triggers: Ints
    posts: Ints
    targets: Ints

    def take(self, rows: slice | Rows) -> "TickAnswers":
        """Return some of the answers."""
        columns = (column[rows] for column in (self.rows, self.triggers, self.posts, self.targets))
        return TickAnswers(self.tick, *columns)


def ask(
    platform: Platform,
    agents: AgentColumns,
    posts: PostColumns,
    triggers: Rows,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
    ticks: Rows | int | None = None,
) -> Ints:
    """Return the code of each agent's next state, `NO_CHANGE`, or `PENDING` if an LLM was asked.

    The rows of `agents` ascend without repetitions. `options` are indices into `option_sets`, in which a single option
    needs no answer. `ticks` are the ticks of the questions; None means the current tick.
    """
    rows = agents.rows
    targets = np.full(len(rows), NO_CHANGE, np.int64)
    draws = choice_draws(platform, rows, triggers, platform.tick if ticks is None else ticks)
    for i, choices in enumerate(option_sets):
        if len(choices) == 1:
            targets[options == i] = choices[0].code
    indices = np.flatnonzero(np.array([len(choices) > 1 for choices in option_sets])[options])
    platform.counts["open"] += len(indices)
    if not len(indices):
        return targets
    question_ticks = np.broadcast_to(platform.tick if ticks is None else ticks, len(rows))
    is_for_llm = goes_to_llm(platform, rows[indices], triggers[indices], question_ticks[indices])
    _answer_in_batch(platform, agents, posts, options, option_sets, draws, indices[~is_for_llm], targets)
    indices = indices[is_for_llm]
    if not len(indices) or not asks_llm(platform.reasoner):
        return targets
    agents, posts, question_ticks = agents.take(indices), posts.take(indices), question_ticks[indices]
    trigger_names = [platform.chart.triggers[trigger] for trigger in triggers[indices].tolist()]
    new_questions = questions(agents, posts, trigger_names, [option_sets[i] for i in options[indices].tolist()])
    platform.reasoner.submit(place_questions(platform, question_ticks, agents.rows, new_questions, draws[indices]))
    platform.pending.add(question_ticks, agents.rows, triggers[indices], posts.posts)
    targets[indices] = PENDING
    return targets


def _answer_in_batch(
    platform: Platform,
    agents: AgentColumns,
    posts: PostColumns,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
    draws: Floats,
    indices: Rows,
    targets: Ints,
) -> None:
    reasoner = platform.reasoner.batch_reasoner
    if reasoner is None:
        return
    for i, choices in enumerate(option_sets):
        selected = indices[options[indices] == i]
        if len(selected):
            agent_columns, post_columns = agents.take(selected), posts.take(selected)
            columns = _columns(choices, agent_columns, post_columns, draws[selected])
            if is_distilled(reasoner):
                answers = reasoner.choose(_detailed_choices(columns, agent_columns, post_columns))
            else:
                answers = reasoner.choose(columns)
            targets[selected] = np.array([state.code for state in choices])[answers]
            platform.sources[reasoner.source_for(choices)] += len(selected)


def needs_no_llm(platform: Platform) -> bool:
    """Return whether no open choice goes to an LLM."""
    return platform.reasoner.batch_reasoner is not None and not platform.reasoner.llm_share


def goes_to_llm(platform: Platform, rows: Rows, triggers: Rows, ticks: Rows | int) -> Mask:
    """Return which open choices go to the LLM; keyed draws decide."""
    share = platform.reasoner.llm_share
    if share in (0, 1):
        return np.full(len(rows), share == 1)
    return _trigger_draws(platform, "llm share", rows, triggers, ticks) < share


def ask_single(platform: Platform, row: int, question: Question) -> Answer:
    """Ask a single agent's question, and wait for the answer."""
    rows = np.array([row])
    platform.counts["open"] += 1
    codes = np.array([platform.trigger_code(question.trigger)])
    draws = choice_draws(platform, rows, codes, platform.tick)
    batch_reasoner = platform.reasoner.batch_reasoner
    is_for_llm = batch_reasoner is None or goes_to_llm(platform, rows, codes, platform.tick)[0]
    reasoner = platform.reasoner if is_for_llm or batch_reasoner is None else batch_reasoner
    [answer] = reasoner.answer(place_questions(platform, np.array([platform.tick]), rows, [question], draws))
    _count(platform, [answer])
    return answer


def choice_draws(platform: Platform, rows: Rows, triggers: Rows, ticks: Rows | int) -> Floats:
    """Return the keyed draws that decide open choices; the trigger's name is part of the key."""
    return _trigger_draws(platform, "choice", rows, triggers, ticks)


def _trigger_draws(platform: Platform, purpose: str, rows: Rows, triggers: Rows, ticks: Rows | int) -> Floats:
    names = np.array([digest64(trigger) for trigger in platform.chart.triggers], np.uint64)[triggers]
    return platform.streams.uniform(purpose, rows, round_=platform.round, tick=ticks, index=names)


def place_questions(
    platform: Platform, ticks: Rows, rows: Rows, new_questions: list[Question], draws: Floats
) -> list[PlacedQuestion]:
    """Return the questions with their round, tick, agent, draw, number of followers, and LLM."""
    followers = platform.network.n_followers[rows].tolist()
    llms = platform.llms.assigned_names(rows, platform.population)
    columns = new_questions, ticks.tolist(), rows.tolist(), draws.tolist(), followers, llms
    return [PlacedQuestion(question, platform.round, *row) for question, *row in zip(*columns, strict=True)]


def collect_answers(platform: Platform) -> list[TickAnswers]:
    """Wait for pending answers, and return them by tick."""
    if not platform.pending or not asks_llm(platform.reasoner):
        return []
    answers = platform.reasoner.collect()
    _count(platform, [answer for _, answer in answers])
    rows = []
    for question, answer in answers:
        tick, trigger, post = platform.pending.by_row.pop(question.agent)
        rows.append((tick, question.agent, trigger, post, NO_CHANGE if answer.choice is None else answer.choice.code))
    table = np.array(sorted(rows), np.int64).reshape(-1, 5)
    ticks = table[:, 0]
    return [TickAnswers(tick, *table[ticks == tick, 1:].T) for tick in sorted(set(ticks.tolist()))]


def _count(platform: Platform, answers: list[Answer]) -> None:
    sources = Counter(answer.source for answer in answers)
    platform.sources.update(sources)
    platform.counts["fallback"] += sources["fallback"]


def _columns(options: tuple[AgentState, ...], agents: AgentColumns, posts: PostColumns, draws: Floats) -> OpenChoices:
    """Return open choices as columns; without a post, utility is the middle of the band and other values are 0."""
    population, rows = agents.platform.population, agents.rows
    has_post = posts.posts != NO_POST
    n = len(rows)
    low, high = agents.column("low_threshold"), agents.column("high_threshold")
    relevance, utility = (low + high) / 2, (low + high) / 2
    velocity, media = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    if has_post.any():
        with_post = posts.take(np.flatnonzero(has_post))
        relevance[has_post], utility[has_post] = with_post.column("relevance"), with_post.column("utility")
        velocity[has_post] = with_post.column("velocity")
        media[has_post] = agents.platform.posts.has_media(with_post.posts)
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


def _detailed_choices(columns: OpenChoices, agents: AgentColumns, posts: PostColumns) -> DetailedChoices:
    """Return open choices with all features of a distilled model; without a post, features are 0."""
    rows_with_post = np.flatnonzero(posts.posts != NO_POST)
    with_post = posts.take(rows_with_post)

    def column(name: str) -> Ints:
        values = np.zeros(len(agents.rows), np.int64)
        if len(rows_with_post):
            values[rows_with_post] = (
                with_post.platform.posts.kind[with_post.posts] if name == "kind" else with_post.column(name)
            )
        return values

    return DetailedChoices.from_open_choices(columns, prompt_matches(agents.platform, agents.rows, posts.posts), column)


def shortfall(platform: Platform) -> str:
    """Return one line if the share of fallbacks, or of missing texts, is above its limit; else an empty string."""
    max_share, totals, written = allowed_share(platform), platform.totals, platform.written
    fallbacks = totals["fallback"] / max(1, totals["open"])
    limit = f"{FALLBACK_KEY} allows {max_share:.1%}"
    if fallbacks > max_share:
        reasons = _counts_text(getattr(platform.reasoner, "reasons", {}))
        choices = format_count(totals["open"], "open choice")
        return f"{fallbacks:.1%} of {choices} were answered by the fallback ({reasons}); {limit}"
    missing = written["failed"] / max(1, written.total())
    if platform.writer is not None and missing > max_share:
        why = _counts_text(platform.writer.reasons)
        return f"{missing:.1%} of {written.total()} texts were not written by the LLM (failed calls: {why}); {limit}"
    return ""


def allowed_share(platform: Platform) -> float:
    """Return the allowed share of fallbacks, from the platform's parameters or else from the reasoner's."""
    max_share = platform.params.reasoner.max_fallback_share
    is_default = max_share == ReasonerParams.model_fields["max_fallback_share"].default
    return platform.reasoner.params.max_fallback_share if is_default and asks_llm(platform.reasoner) else max_share


def _counts_text(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in reasons.items())


def unlearned_notes(reasoner: object, chart: Statechart, attributes: Attributes) -> tuple[str, ...]:
    """Return a note on open choices that a distilled model has not learned; the rule decides these.

    Raises:
        ConfigError: If the model has learned no open choice of the chart.
    """
    if not is_distilled(reasoner):
        return ()
    open_choices = [options for options in WalkTables(chart, attributes).option_sets if len(options) > 1]
    new_choices = [options for options in open_choices if reasoner.model.find(options) is None]
    choices = "; ".join(" or ".join(options) for options in new_choices)
    if new_choices and len(new_choices) == len(open_choices):
        raise ConfigError(
            f"reasoner.distilled: has learned none of the open choices of this chart ({choices}): distill a run with it"
        )
    return (f"reasoner.distilled: the rule decides choices that it has not learned: {choices}",) if new_choices else ()
