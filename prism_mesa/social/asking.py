"""Putting a tick's open choices to the reasoner. It changes no agent: whoever asked applies the answers."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from prism_mesa.reasoner import Ask, OpenChoices, RuleReasoner, question_of
from prism_mesa.social.columns import AgentColumns, PostColumns
from prism_mesa.social.population import NO_POST, Rows
from prism_mesa.statechart import STATES, AgentState
from prism_mesa.streams import digest64

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

STAY = -1


def ask(
    model: "SocialModel",
    agents: AgentColumns,
    posts: PostColumns,
    triggers: Rows,
    options: Rows,
    option_sets: tuple[tuple[AgentState, ...], ...],
) -> npt.NDArray[np.int64]:
    """Return the code of the state that each agent goes to, or `STAY`.

    Args:
        model: Whose reasoner is asked, and whose counters count.
        agents: Who has an open choice, in ascending order; each once.
        posts: What they decide about.
        triggers: Indices of the triggers that were fired.
        options: Indices into `option_sets`.
        option_sets: What there is to choose from. A set of one is taken without asking.
    """
    rows = agents.rows
    chosen = np.full(len(rows), STAY, np.int64)
    # by name: a draw does not depend on what else is in the chart
    names = np.array([digest64(trigger) for trigger in model.chart.triggers], np.uint64)[triggers]
    draws = model.streams.uniform("choice", rows, round_=model.round, tick=model.tick, index=names)
    several = np.array([len(options) > 1 for options in option_sets])[options]
    for i, only in enumerate(option_sets):
        if len(only) == 1:
            chosen[options == i] = only[0].code
    where = np.flatnonzero(several)
    model.counts["open"] += len(where)
    if not len(where):
        return chosen
    if isinstance(model.reasoner, RuleReasoner):
        model.sources["rule"] += len(where)
        for i, choices in enumerate(option_sets):
            here = where[options[where] == i]
            if len(here):
                codes = np.array([state.code for state in choices])
                picked = model.reasoner.choose(_columns(choices, agents.take(here), posts.take(here), draws[here]))
                chosen[here] = codes[picked]
        return chosen
    asks = [
        Ask(
            question=question_of(
                agents.row(i),
                STATES[model.population.state[rows[i]]],
                model.chart.triggers[triggers[i]],
                option_sets[options[i]],
                posts.row(i),
            ),
            round=model.round,
            tick=model.tick,
            agent=int(rows[i]),
            draw=float(draws[i]),
        )
        for i in where.tolist()
    ]
    answers = model.reasoner.answer(asks)
    model.sources.update(Counter(answer.source for answer in answers))
    model.counts["fallback"] += sum(answer.source == "fallback" for answer in answers)
    chosen[where] = [STAY if answer.choice is None else answer.choice.code for answer in answers]
    return chosen


def _columns(
    options: tuple[AgentState, ...], agents: AgentColumns, posts: PostColumns, draws: npt.NDArray[np.float64]
) -> OpenChoices:
    """Return open choices as columns; without a post at hand relevance is the middle of the band and velocity 0."""
    population, rows = agents.model.population, agents.rows
    has_post = posts.posts != NO_POST
    n = len(rows)
    low, high = agents.column("low_threshold"), agents.column("high_threshold")
    relevance, velocity = (low + high) / 2, np.zeros(n, np.int64)
    there = posts.take(np.flatnonzero(has_post))
    if has_post.any():
        relevance[has_post] = there.column("relevance")
        velocity[has_post] = there.column("velocity")
    return OpenChoices(
        options=options,
        relevance=relevance,
        low=low,
        high=high,
        velocity=velocity,
        traits=population.traits[rows].astype(np.float64),
        propensities=population.propensities[rows].astype(np.float64),
        draws=draws,
    )
