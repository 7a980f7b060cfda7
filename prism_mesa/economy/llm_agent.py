"""Mesa agents whose actions an LLM chooses, and the reasoning behind them."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import mesa
from pydantic import BaseModel, ConfigDict, Field

from prism_mesa.deliberation import (
    AgentErrorEvent,
    AgentTextEvent,
    Conversation,
    Deliberation,
    Event,
    Limits,
    ToolFinishedEvent,
    TurnContext,
    run_turns,
    start_turn,
)
from prism_mesa.deliberation.prompts import join_parts
from prism_mesa.errors import AgentError
from prism_mesa.errors import LLMFailureException as LLMFailureException
from prism_mesa.llm import LLMClient, RunPosition

logger = logging.getLogger("prism_mesa.economy.llm_agent")


class Observation(Protocol):
    """The state that an agent sees when it decides."""

    @property
    def turn(self) -> int:
        """The round of the decision, from 0."""


class Decision(BaseModel):
    """What an LLM answers: what is to be done, why, and how sure it is.

    Only the JSON schema limits the lengths, to keep small LLMs short; a longer answer is valid.
    """

    model_config = ConfigDict(frozen=True)

    action: str = Field(min_length=1, json_schema_extra={"maxLength": 200})
    reasoning: str = Field(min_length=1, json_schema_extra={"maxLength": 600})
    confidence: float = Field(ge=0, le=1)


class ReasoningChain(BaseModel):
    """The reasoning behind an agent's decision.

    Attributes:
        prompt: The prompt; if the agent thought first, the part that all prompts of the turn share.
        thoughts: Thoughts, tool calls and proposals before the decision, in order; empty if the agent did not think.
    """

    model_config = ConfigDict(frozen=True)

    chain_id: str
    turn: int
    component: str
    agent_id: str
    prompt: str
    action: str
    reasoning: str
    confidence: float
    thoughts: tuple[Event, ...] = ()


class Action[D: Decision](BaseModel):
    """The action that an agent chooses, as a sentence.

    Attributes:
        reasoning_chain_id: The id of the `ReasoningChain`; empty if no LLM was asked.
        validated: Whether a validator has accepted the action.
    """

    model_config = ConfigDict(frozen=True)

    agent_name: str
    action_string: str
    policy_decision: D
    reasoning_chain_id: str = ""
    validated: bool = False


class ReasonedAction[D: Decision](NamedTuple):
    """An action and the reasoning behind it."""

    action: Action[D]
    chain: ReasoningChain


class LLMAgent[S: Observation, D: Decision](mesa.Agent, ABC):
    """An agent whose actions an LLM chooses, in free text.

    Args:
        model: The Mesa model; None to try an agent without a model.
        name: The agent's name, which prompts contain.
        llm_client: The LLM. Only `call_with_retry` is needed, but `limits` require an `LLMClient`.
        response_model: The type of the answer.
        domain: The subject of the agent's decisions.
        prompt_style: The style of prompts, which the subclass defines.
        row: The agent's row in the model, the ledger and tables.
        limits: Limits on thoughts and tool calls before a decision (see `deliberation`); None: ask the LLM once.

    Attributes:
        reasoning_chain: The reasoning of the last decision; None before the first.
    """

    model: Any

    def __init__(
        self,
        model: mesa.Model | None = None,
        name: str = "",
        llm_client: LLMClient | None = None,
        *,
        response_model: type[D],
        domain: str,
        prompt_style: str = "chain_of_thought",
        row: int = -1,
        limits: Limits | None = None,
    ) -> None:
        if not name or llm_client is None:
            raise AgentError(f"{type(self).__name__}: give a name and an llm_client")
        if model is None:
            self.model = None
        else:
            super().__init__(model)
        self.name, self.row = name, row
        self.llm_client: LLMClient = llm_client
        self.response_model, self.domain, self.prompt_style, self.limits = response_model, domain, prompt_style, limits
        self.reasoning_chain: ReasoningChain | None = None

    @abstractmethod
    def _construct_prompt(self, state: S) -> str:
        """Return the complete prompt (system and user message) for a state."""

    @abstractmethod
    def _validate_decision(self, decision: D) -> bool:
        """Return whether a decision is about the agent's domain; otherwise the LLM is asked again."""

    def _begin_turn(self, state: S) -> tuple[str, TurnContext]:
        """Return the first text of a turn with thoughts, and its facts, questions and tools."""
        context = TurnContext(description=self._construct_prompt(state), task="Decide, in the form that you are told.")
        return "What do you decide?", context

    def turn(self, state: S) -> tuple[str, TurnContext]:
        """Return the first text and the context of a turn in which the agent thinks before it decides."""
        text, context = self._begin_turn(state)
        return text, replace(
            context,
            response_type=self.response_model,
            accept=self._validate_decision,
            accept_rule=self.domain,
            limits=self.limits or Limits(),
            position=RunPosition(state.turn, self.row),
            must_respond=True,
        )

    async def decide_action(self, state: S) -> Action[D]:
        """Return the action that the LLM chooses, and store the reasoning; errors as in `decide`."""
        reasoned_action: ReasonedAction[D] = await self.decide(state)
        self.reasoning_chain = reasoned_action.chain
        return reasoned_action.action

    async def decide(self, state: S) -> ReasonedAction[D]:
        """Return the action that the LLM chooses, and the reasoning, without changing the agent.

        Raises LLMFailureException if no attempt gives a usable answer (the step then fails), and OracleError if a
        replayed ledger lacks the question.
        """
        thoughts: list[Event] = []
        try:
            if self.limits is not None:
                text, context = self.turn(state)
                prompt = join_parts(context.task, context.description, context.situation)
                decision, thoughts = await Deliberation(self.llm_client, context).respond(text)
            else:
                prompt = self._construct_prompt(state)
                decision = await self.llm_client.call_with_retry(
                    prompt=prompt,
                    response_model=self.response_model,
                    accept=self._validate_decision,
                    accept_rule=self.domain,
                    component="agent",
                    position=RunPosition(state.turn, self.row),
                )
        except LLMFailureException as error:
            logger.error("LLM_FAILURE component=agent agent_id=%s error=%s", self.name, error)
            raise
        return self.make_action(state, prompt, decision, thoughts)

    def make_action(self, state: S, prompt: str, decision: D, thoughts: Sequence[Event] = ()) -> ReasonedAction[D]:
        """Return the action and the reasoning in an LLM's decision, and log the reasoning at level DEBUG."""
        chain = ReasoningChain(
            chain_id=f"{state.turn:04d}-{self.name}",
            turn=state.turn,
            component="agent",
            agent_id=self.name,
            prompt=prompt,
            thoughts=tuple(thoughts),
            **decision.model_dump(include={"action", "reasoning", "confidence"}),
        )
        logger.debug(
            "llm_reasoning_chain component=%s agent_id=%s chain_id=%s confidence=%s action=%s reasoning=%s",
            *(chain.component, chain.agent_id, chain.chain_id, chain.confidence, chain.action, chain.reasoning),
        )
        action: Action[D] = Action(
            agent_name=self.name,
            action_string=decision.action,
            policy_decision=decision,
            reasoning_chain_id=chain.chain_id,
        )
        return ReasonedAction(action, chain)


def decide_all[S: Observation, D: Decision](
    agents: Sequence[LLMAgent[S, D]], states: Sequence[S], llm_client: LLMClient
) -> list[ReasonedAction[D]]:
    """Return the decisions of agents that think first and share an LLM, given the states that they see.

    All agents ask at the same time, so the use of a limit does not depend on the order of answers. If several agents
    fail, the failure of the first is raised; errors as in `LLMAgent.decide`.
    """
    pairs = [agent.turn(state) for agent, state in zip(agents, states, strict=True)]
    thoughts: list[list[Event]] = [[] for _ in pairs]
    turns = [start_turn(text, Conversation(), context) for text, context in pairs]
    decisions = run_turns(llm_client, turns, lambda i, event: thoughts[i].append(event))
    return [
        agent.make_action(state, join_parts(context.task, context.description, context.situation), decision, events)
        for agent, state, (_, context), decision, events in zip(agents, states, pairs, decisions, thoughts, strict=True)
    ]


def thoughts_in_json(thoughts: Iterable[Event]) -> str:
    """Return the thoughts before a decision as a JSON list; without thoughts, an empty string.

    Each entry has a `kind`: `thought` (with its parts), `tool` (with the call and its result), `proposal` (with the
    decision so far), or `error` (with its reason).
    """
    entries: list[dict[str, Any]] = []
    for event in thoughts:
        match event:
            case AgentTextEvent():
                entries.append({"kind": "thought" if event.type == "thought" else "proposal", **json.loads(event.text)})
            case ToolFinishedEvent():
                call = event.model_dump(mode="json", include={"tool_name", "parameters"})
                entries.append({"kind": "tool", **call, **event.result.model_dump()})
            case AgentErrorEvent():
                entries.append({"kind": "error", **event.model_dump()})
    return json.dumps(entries, ensure_ascii=False) if entries else ""
