"""Base classes of reasoners, and the selection of options by random draws."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Any, Self

import numpy as np

from prism_mesa.arrays import Floats, Ints
from prism_mesa.domain import AgentState
from prism_mesa.errors import ConfigError
from prism_mesa.llm.params import Source
from prism_mesa.reasoner.prompt import SOCIAL, Role
from prism_mesa.reasoner.question import Answer, OpenChoices, PlacedQuestion, Question, make_own_question, make_question
from prism_mesa.statechart import State


class Decider(ABC):
    """A base class that makes single decisions by answering questions.

    Attributes:
        role: Whom it stands for; its questions are in the words of this role.
    """

    role: Role = SOCIAL

    @abstractmethod
    async def answer_all(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers in the order of `questions`."""

    @abstractmethod
    def answer(self, questions: Sequence[PlacedQuestion]) -> list[Answer]:
        """Return the answers in the order of `questions`, without `await`."""

    def question(
        self, agent: Any, current_state: State, trigger: str, options: Sequence[State], context: Any = None
    ) -> Question:
        """Return one agent's open choice; for `agent` and `context` see `make_question`."""
        is_own = isinstance(current_state, Enum) and not isinstance(current_state, AgentState)
        if is_own or self.role is not SOCIAL:
            _require_known_states(self.role, agent)
            return make_own_question(agent, current_state, trigger, options, context, self.role.describe)
        return make_question(agent, current_state, trigger, options, context)

    def decide_now(
        self,
        agent: Any,
        current_state: State,
        trigger: str,
        options: Sequence[State],
        context: Any = None,
        draw: float = 0.5,
    ) -> State:
        """Return the same as `decide`, for code that does not `await`."""
        question = self.question(agent, current_state, trigger, options, context)
        [answer] = self.answer([PlacedQuestion(question, draw=draw)])
        return question.state if answer.choice is None else answer.choice

    async def decide(
        self,
        agent: Any,
        current_state: State,
        trigger: str,
        options: Sequence[State],
        context: Any = None,
        draw: float = 0.5,
    ) -> State:
        """Return one agent's choice; a single option is returned without asking.

        For the attributes of `agent` see `make_question`, for `context` see `read_post`. `draw`, a number in [0, 1),
        selects an option if there are probabilities. Code that does not `await` calls `decide_now`.

        Raises:
            ValueError: If there are no options.
        """
        question = self.question(agent, current_state, trigger, options, context)
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
    def source_for(self, options: tuple[State, ...]) -> Source:
        """Return the source of answers to a set of options."""

    @abstractmethod
    def columns(self, options: tuple[State, ...], questions: Sequence[PlacedQuestion]) -> C:
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
            if other := [option.value for option in options if not isinstance(option, AgentState)]:
                raise ConfigError(
                    f"the rule and distilled models decide only on the platform, not {other[0]!r}: "
                    "answer by a function, Reasoner(function), or set fallback to first or stay"
                )
            indices = [i for i, placed in enumerate(questions) if placed.question.options == options]
            choices = self.columns(options, [questions[i] for i in indices])
            chances = self.probabilities(choices)
            selected = select_options(chances, choices.draws).tolist()
            for i, option, row in zip(indices, selected, chances.tolist(), strict=True):
                answers[i] = Answer(options[option], self.source_for(options), probabilities=tuple(row))
        return [answers[i] for i in range(len(questions))]

    def close(self) -> None:
        """Do nothing, because only reasoners that ask an LLM need closing."""


def _require_known_states(role: Role, agent: Any) -> None:
    """Check that each described state is in a chart of the agent's model, if the agent has a chart."""
    by_type = getattr(getattr(agent, "model", None), "agents_by_type", {})
    owners = (agent, *(next(iter(agents), None) for agents in by_type.values()))
    charts = [
        c for o in owners for c in (getattr(o, "chart", None), *getattr(o, "charts", {}).values()) if c is not None
    ]
    for name, _ in role.descriptions if charts and role is not SOCIAL else ():
        if all(name not in [member.value for member in chart.members] for chart in charts):
            charts[0].find_state(name, "descriptions of the reasoner")


def select_options(probabilities: Floats, draws: Floats) -> Ints:
    """Return for each row the index of the first option whose cumulative probability exceeds the draw."""
    indices, cumulative = np.zeros(len(probabilities), np.int64), np.zeros(len(probabilities))
    for column in range(probabilities.shape[1]):
        indices = np.where((cumulative <= draws) & (probabilities[:, column] > 0), column, indices)
        cumulative = cumulative + probabilities[:, column]
    return indices
