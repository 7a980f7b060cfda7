"""Base classes of reasoners, and the selection of options by random draws."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import AgentState
from prism_mesa.llm.params import Source
from prism_mesa.reasoner.question import Answer, OpenChoices, PlacedQuestion, Question, make_question

type Floats = npt.NDArray[np.float64]
type Ints = npt.NDArray[np.int64]


class Decider(ABC):
    """A base class that makes single decisions by answering questions."""

    @abstractmethod
    async def answer_all(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers in the order of `questions`."""

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

        For the attributes of `agent` see `make_question`, for `context` see `read_post`. `draw`, a number in [0, 1),
        selects an option if there are probabilities.

        Raises:
            ValueError: If there are no options.
        """
        question = make_question(agent, current_state, trigger, options, context)
        [answer] = await self.answer_all([PlacedQuestion(question, draw=draw)])
        return question.state if answer.choice is None else answer.choice


class BatchReasoner[C: OpenChoices](Decider):
    """Answers whole columns of open choices, without an LLM, a ledger or a connection.

    Attributes:
        note: Why this reasoner replaces the configured reasoner; empty if it is the configured one.
        n_archetypes: Number of archetypes into which agents are clustered; 0 for none.
        llm_share: Share of open choices that an LLM answers.
        llms: Names of the LLMs among which the agents are divided; empty without an LLM.
    """

    note = ""
    n_archetypes = 0
    llm_share = 0.0
    llms: tuple[str, ...] = ()

    @property
    def batch_reasoner(self) -> Self:
        """The reasoner that answers whole columns."""
        return self

    @abstractmethod
    def source_for(self, options: tuple[AgentState, ...]) -> Source:
        """Return the source of answers to a set of options."""

    @abstractmethod
    def columns(self, options: tuple[AgentState, ...], questions: Sequence[PlacedQuestion]) -> C:
        """Return questions with the same options as columns."""

    @abstractmethod
    def probabilities(self, choices: C) -> Floats:
        """Return the probability of each option, shape ``(n, len(options))``; rows sum to 1."""

    def choose(self, choices: C) -> Ints:
        """Return the index of the option that each row's draw selects."""
        return select_options(self.probabilities(choices), choices.draws)

    def chances(self, question: Question) -> tuple[float, ...]:
        """Return the probability of each option of one question."""
        [row] = self.probabilities(self.columns(question.options, [PlacedQuestion(question)])).tolist()
        return tuple(row)

    async def answer_all(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers in the order of `questions`."""
        return self.answer(questions)

    def answer(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers in the order of `questions`."""
        answers: dict[int, Answer] = {}
        for options in dict.fromkeys(placed.question.options for placed in questions):
            indices = [i for i, placed in enumerate(questions) if placed.question.options == options]
            choices = self.columns(options, [questions[i] for i in indices])
            chances = self.probabilities(choices)
            selected = select_options(chances, choices.draws).tolist()
            for i, option, row in zip(indices, selected, chances.tolist(), strict=True):
                answers[i] = Answer(options[option], self.source_for(options), probabilities=tuple(row))
        return [answers[i] for i in range(len(questions))]

    def close(self) -> None:
        """Do nothing, because only reasoners that ask an LLM need closing."""


def select_options(probabilities: Floats, draws: Floats) -> Ints:
    """Return for each row the index of the first option whose cumulative probability exceeds the draw."""
    indices, cumulative = np.zeros(len(probabilities), np.int64), np.zeros(len(probabilities))
    for column in range(probabilities.shape[1]):
        indices = np.where((cumulative <= draws) & (probabilities[:, column] > 0), column, indices)
        cumulative = cumulative + probabilities[:, column]
    return indices
