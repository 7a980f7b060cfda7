"""What all who decide have in common: one agent's choice from many agents', and the option that a draw falls on."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.llm.params import Source
from prism_mesa.reasoner.question import Answer, OpenChoices, PlacedQuestion, Question, question_of
from prism_mesa.statechart import AgentState

type Floats = npt.NDArray[np.float64]
type Ints = npt.NDArray[np.int64]


class Decider:
    """Decides for one agent as it answers questions."""

    def answer(self, asks: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers to some questions, in the order of `asks`."""
        raise NotImplementedError

    async def answer_all(self, asks: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers to some questions, in the order of `asks`."""
        return self.answer(asks)

    async def decide(
        self,
        agent: Any,
        current_state: AgentState,
        trigger: str,
        options: Sequence[AgentState],
        context: Any = None,
        draw: float = 0.5,
    ) -> AgentState:
        """Return which of the options one agent takes; a single option is returned without asking.

        The agent is read by attribute (see `question_of`) and never changed. `context` is the post at hand,
        a mapping, or anything else that can be told; `draw` in [0, 1) decides between probabilities.

        Raises:
            ValueError: If there are no options.
        """
        question = question_of(agent, current_state, trigger, options, context)
        [answer] = await self.answer_all([PlacedQuestion(question, draw=draw)])
        return question.state if answer.choice is None else answer.choice


class BatchReasoner[C: OpenChoices](Decider):
    """Answers whole columns of open choices at once. It needs no LLM, no ledger and no connection.

    Attributes:
        note: Why it decides in place of the reasoner that the configuration names; else empty.
        n_archetypes: Number of archetypes into which agents are clustered; 0 if each agent is asked for itself.
        llm_share: Share of the open choices that an LLM answers.
        llms: Names of the LLMs among which agents are divided: none here.
    """

    note = ""
    n_archetypes = 0
    llm_share = 0.0
    llms: tuple[str, ...] = ()

    @property
    def batch_reasoner(self) -> Self:
        """Who answers whole columns."""
        return self

    def source_of(self, options: tuple[AgentState, ...]) -> Source:
        """Return who answers to a set of options are counted for."""
        raise NotImplementedError

    def columns(self, options: tuple[AgentState, ...], asks: Sequence[PlacedQuestion]) -> C:
        """Return questions that share their options as columns."""
        raise NotImplementedError

    def probabilities(self, choices: C) -> Floats:
        """Return the probability of each option, shape ``(n, len(options))``; a row adds up to 1."""
        raise NotImplementedError

    def choose(self, choices: C) -> Ints:
        """Return for each row the index of the option that its draw falls on."""
        return drawn(self.probabilities(choices), choices.draws)

    def chances(self, question: Question) -> tuple[float, ...]:
        """Return the probability of each option of one question."""
        [row] = self.probabilities(self.columns(question.options, [PlacedQuestion(question)])).tolist()
        return tuple(row)

    def answer(self, asks: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers to some questions, in the order of `asks`."""
        answers: dict[int, Answer] = {}
        for options in dict.fromkeys(ask.question.options for ask in asks):
            places = [place for place, ask in enumerate(asks) if ask.question.options == options]
            choices = self.columns(options, [asks[place] for place in places])
            chances = self.probabilities(choices)
            chosen, source = drawn(chances, choices.draws).tolist(), self.source_of(options)
            for place, index, row in zip(places, chosen, chances.tolist(), strict=True):
                answers[place] = Answer(options[index], source, probabilities=tuple(row))
        return [answers[place] for place in range(len(asks))]

    def close(self) -> None:
        """Do nothing: there is nothing to close. It is here so that all reasoners can be closed."""


def drawn(probabilities: Floats, draws: Floats) -> Ints:
    """Return for each row the index of the first option whose cumulative probability exceeds its draw."""
    chosen = np.zeros(len(probabilities), np.int64)
    before = np.zeros(len(probabilities))
    for column in range(probabilities.shape[1]):
        reached = (before <= draws) & (probabilities[:, column] > 0)
        chosen = np.where(reached, column, chosen)
        before = before + probabilities[:, column]
    return chosen


def drawn_one(probabilities: Sequence[float], draw: float) -> int:
    """Return for one row what `drawn` returns for many: its answers come one by one."""
    before, chosen = 0.0, 0
    for place, probability in enumerate(probabilities):
        if before <= draw and probability > 0:
            chosen = place
        before += probability
    return chosen
