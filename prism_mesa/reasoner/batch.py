"""Base classes of reasoners, and the option that a draw selects."""

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

    async def answer_all(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers to some questions, in the order of `questions`."""
        raise NotImplementedError

    async def decide(
        self,
        agent: Any,
        current_state: AgentState,
        trigger: str,
        options: Sequence[AgentState],
        context: Any = None,
        draw: float = 0.5,
    ) -> AgentState:
        """Return one agent's choice; a single option is returned without asking.

        The agent is read by attribute (see `question_of`). `context` is the post, a mapping, or any other value; `draw`
        in [0, 1) selects among probabilities.

        Raises:
            ValueError: If there are no options.
        """
        question = question_of(agent, current_state, trigger, options, context)
        [answer] = await self.answer_all([PlacedQuestion(question, draw=draw)])
        return question.state if answer.choice is None else answer.choice


class BatchReasoner[C: OpenChoices](Decider):
    """Answers whole columns of open choices at once, without LLM, ledger or connection.

    Attributes:
        note: Why it decides in place of the configured reasoner; else empty.
        n_archetypes: Number of archetypes into which agents are clustered; 0: none.
        llm_share: Share of open choices that an LLM answers.
        llms: Names of the LLMs among which agents are divided; empty here.
    """

    note = ""
    n_archetypes = 0
    llm_share = 0.0
    llms: tuple[str, ...] = ()

    @property
    def batch_reasoner(self) -> Self:
        """The reasoner that answers whole columns."""
        return self

    def source_for(self, options: tuple[AgentState, ...]) -> Source:
        """Return the source of answers to a set of options."""
        raise NotImplementedError

    def columns(self, options: tuple[AgentState, ...], questions: Sequence[PlacedQuestion]) -> C:
        """Return questions with the same options as columns."""
        raise NotImplementedError

    def probabilities(self, choices: C) -> Floats:
        """Return the probability of each option, shape ``(n, len(options))``; rows sum to 1."""
        raise NotImplementedError

    def choose(self, choices: C) -> Ints:
        """Return for each row the index of the option that its draw selects."""
        return drawn(self.probabilities(choices), choices.draws)

    def chances(self, question: Question) -> tuple[float, ...]:
        """Return the probability of each option of one question."""
        [row] = self.probabilities(self.columns(question.options, [PlacedQuestion(question)])).tolist()
        return tuple(row)

    async def answer_all(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return what `answer` returns."""
        return self.answer(questions)

    def answer(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers to some questions, in the order of `questions`."""
        answers: dict[int, Answer] = {}
        for options in dict.fromkeys(ask.question.options for ask in questions):
            indices = [i for i, ask in enumerate(questions) if ask.question.options == options]
            choices = self.columns(options, [questions[i] for i in indices])
            chances = self.probabilities(choices)
            chosen = drawn(chances, choices.draws).tolist()
            for i, option, row in zip(indices, chosen, chances.tolist(), strict=True):
                answers[i] = Answer(options[option], self.source_for(options), probabilities=tuple(row))
        return [answers[i] for i in range(len(questions))]

    def close(self) -> None:
        """Do nothing: only reasoners that ask an LLM have something to close."""


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
    """Return for one row what `drawn` returns for many."""
    before, chosen = 0.0, 0
    for place, probability in enumerate(probabilities):
        if before <= draw and probability > 0:
            chosen = place
        before += probability
    return chosen
