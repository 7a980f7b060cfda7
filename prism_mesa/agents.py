"""What every Mesa agent shares that lets an LLM decide: the prompt, the question, the reasoning that is kept.

Here Mesa begins. It is generic in what the LLM answers with and in what the agent sees; it knows no domain.
"""

import logging
from abc import ABC, abstractmethod
from typing import Any, Protocol

import mesa
from pydantic import BaseModel, ConfigDict, Field

from prism_mesa.errors import LLMFailureException
from prism_mesa.reasoner import LLMClient, Place
from prism_mesa.reasoner.loops import run_now

logger = logging.getLogger("prism_mesa.agents")


class Seen(Protocol):
    """What an agent looks at; `turn` is the round in which it decides, from 0."""

    @property
    def turn(self) -> int:
        """The round."""
        ...


class Decision(BaseModel):
    """What an LLM answers: what is to be done, why, and how sure it is.

    The lengths stand in the JSON schema only, which keeps small LLMs short: a longer answer is no fault.
    """

    model_config = ConfigDict(frozen=True)

    action: str = Field(min_length=1, json_schema_extra={"maxLength": 200})
    reasoning: str = Field(min_length=1, json_schema_extra={"maxLength": 600})
    confidence: float = Field(ge=0, le=1)


class ReasoningChain(BaseModel):
    """Why an agent decided as it did: what it was told and what it said to itself."""

    model_config = ConfigDict(frozen=True)

    chain_id: str
    turn: int
    component: str
    agent_id: str
    prompt: str
    action: str
    reasoning: str
    confidence: float


class Action[D: Decision](BaseModel):
    """What an agent wants to do, in words.

    Attributes:
        policy_decision: The decision behind it.
        reasoning_chain_id: Names the `ReasoningChain`; empty if no LLM was asked.
        validated: Whether a validator has accepted it; nobody else may say so.
    """

    model_config = ConfigDict(frozen=True)

    agent_name: str
    action_string: str
    policy_decision: D
    reasoning_chain_id: str = ""
    validated: bool = False


class LLMAgent[S: Seen, D: Decision](mesa.Agent, ABC):
    """An agent whose actions an LLM chooses, in free text.

    Args:
        model: The model it belongs to.
        name: What it is called, in prompts too.
        llm_client: Who is asked; needs `call_with_retry` only.
        response_model: The form of the answer.
        domain: What it decides about.
        prompt_style: How it is asked; what that means is the subclass's.

    Attributes:
        row: Its place among the agents of its model: in the ledger and in tables.
        reasoning_chain: The last one; None before the first decision.
    """

    def __init__(
        self,
        model: mesa.Model,
        name: str,
        llm_client: LLMClient,
        *,
        response_model: type[D],
        domain: str,
        prompt_style: str = "chain_of_thought",
        row: int = -1,
    ) -> None:
        super().__init__(model)
        self.name = name
        self.llm_client = llm_client
        self.response_model = response_model
        self.domain = domain
        self.prompt_style = prompt_style
        self.row = row
        self.reasoning_chain: ReasoningChain | None = None

    @abstractmethod
    def _construct_prompt(self, state: S) -> str:
        """Return the whole prompt, system and user message, for what the agent sees."""

    @abstractmethod
    def _validate_decision(self, decision: D) -> bool:
        """Return whether a decision is about the agent's domain at all; one that is not counts as no answer."""

    async def decide_action(self, state: S) -> Action[D]:
        """Return what the agent wants to do, as its LLM says.

        The reasoning is logged at DEBUG and kept as `reasoning_chain`; nothing else of the agent changes.

        Raises:
            LLMFailureException: If no attempt brought a usable answer; the step must then be given up.
            OracleError: If a ledger is replayed that does not hold the question.
        """
        prompt = self._construct_prompt(state)
        try:
            decision = await self.llm_client.call_with_retry(
                prompt=prompt,
                response_model=self.response_model,
                accept=self._validate_decision,
                accepts=self.domain,
                component="agent",
                place=Place(state.turn, self.row),
            )
        except LLMFailureException as error:
            logger.error("LLM_FAILURE component=agent agent_id=%s error=%s", self.name, error)
            raise
        chain = self._chain(state, prompt, decision)
        logger.debug(
            "llm_reasoning_chain component=%s agent_id=%s chain_id=%s confidence=%s action=%s reasoning=%s",
            chain.component,
            chain.agent_id,
            chain.chain_id,
            chain.confidence,
            chain.action,
            chain.reasoning,
        )
        self.reasoning_chain = chain
        return Action(
            agent_name=self.name,
            action_string=decision.action,
            policy_decision=decision,
            reasoning_chain_id=chain.chain_id,
        )

    def decide_action_sync(self, state: S) -> Action[D]:
        """Do what `decide_action` does, for callers that cannot await, inside a running loop or not."""
        return run_now(self.decide_action(state))

    def _chain(self, state: S, prompt: str, decision: D) -> ReasoningChain:
        said: dict[str, Any] = decision.model_dump(include={"action", "reasoning", "confidence"})
        return ReasoningChain(
            chain_id=f"{state.turn:04d}-{self.name}",
            turn=state.turn,
            component="agent",
            agent_id=self.name,
            prompt=prompt,
            **said,
        )
