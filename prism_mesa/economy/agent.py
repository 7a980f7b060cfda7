"""Nations as Mesa agents, which ask an LLM or follow a rule."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import mesa

from prism_mesa.deliberation import Limits, TurnContext
from prism_mesa.deliberation.prompts import join_parts
from prism_mesa.deliberation.tools import RESULT_CAP
from prism_mesa.economy import prompts
from prism_mesa.economy.llm_agent import Action, LLMAgent, ReasoningChain
from prism_mesa.economy.observation import NationState, PastDecision, SimulationState
from prism_mesa.economy.params import ThinkingParams
from prism_mesa.economy.policy import DOMAINS
from prism_mesa.economy.reading import PolicyDecision, Reading, TypedPolicyDecision, is_about, read_policy
from prism_mesa.economy.rules import RULES, RuleContext
from prism_mesa.economy.tools import Judge, nation_tools
from prism_mesa.errors import PrismWarning, one_line
from prism_mesa.llm import LLMClient, RunPosition
from prism_mesa.markup import card_html, facts_html, html_or_repr

type Proposal = tuple[Action[PolicyDecision], Reading, ReasoningChain | None]
"""A nation's action, the policy in it, and the reasoning."""


class Nation(mesa.Agent):
    """A nation of a model.

    Attributes:
        row: The nation's index in all arrays of the world.
        memory: The number of past decisions that the nation remembers.
        past: The remembered decisions, oldest first.
        reasoning_chain: The reasoning of the last quarter; None if no LLM was asked.
    """

    model: Any
    row: int
    name: str
    memory: int = 0
    past: Sequence[PastDecision] = ()
    reasoning_chain: ReasoningChain | None = None

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.row} {self.name!r}: decided by {self.decided_by}>"

    @html_or_repr
    def _repr_html_(self) -> str:
        state = self.state
        facts: dict[str, object] = {
            "output gap": f"{state.output_gap:+.1f} %",
            "inflation": f"{state.inflation:.1f} % a year",
            "unemployment": f"{state.unemployment:.1f} %",
            "policy rate": f"{state.policy_rate:.2f} %",
            "debt": f"{state.debt:.0f} % of GDP",
            "last policies": "; ".join(f"{decision.quarter}: {decision.action}" for decision in self.past[-3:]),
        }
        return card_html("nation", self.name, facts_html(facts.items()), remark=f"decided by {self.decided_by}")

    @property
    @abstractmethod
    def decided_by(self) -> str:
        """The LLM or the rule that decides, for summaries."""

    @property
    def state(self) -> NationState:
        """The nation's indicators, without error."""
        state: NationState = self.model.state.nation_states[self.row]
        return state


class EconLLMAgent(LLMAgent[SimulationState, PolicyDecision], Nation):
    """A nation whose policy an LLM proposes in words; see `LLMAgent` for the other arguments.

    Args:
        memory: The number of past decisions in a prompt.
        thinking: Limits on thoughts and tool calls before a decision; None: ask the LLM once, without tools.
        judge: Returns the validator's judgement of a policy; without it the nation cannot try policies.
        typed_measures: Whether the LLM also gives the policy in numbers.
    """

    def __init__(
        self,
        model: mesa.Model | None = None,
        name: str = "",
        llm_client: LLMClient | None = None,
        *,
        domain: str = "economic",
        memory: int = 4,
        thinking: ThinkingParams | None = None,
        judge: Judge | None = None,
        typed_measures: bool = True,
        **options: Any,
    ) -> None:
        limits, self._result_chars = None, RESULT_CAP
        if thinking is not None:
            limits = Limits(thinking.iterations, tool_calls=thinking.max_tool_calls, tokens=thinking.max_tokens)
            self._result_chars = thinking.result_chars
        answer_type = TypedPolicyDecision if typed_measures else PolicyDecision
        super().__init__(model, name, llm_client, response_model=answer_type, domain=domain, limits=limits, **options)
        self.memory, self._judge, self._typed_measures = memory, judge, typed_measures

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Warn if a subclass overrides only `decide_action`, because models call `decide`."""
        super().__init_subclass__(**kwargs)
        if "decide_action" in vars(cls) and "decide" not in vars(cls):
            text = f"{cls.__name__}.decide_action: a model calls decide, which returns a ReasonedAction"
            warnings.warn(text, PrismWarning, stacklevel=2)

    def _construct_prompt(self, state: SimulationState) -> str:
        """Return the contract's two messages with the nation's situation between them; static text comes first."""
        examples = prompts.examples(typed=self._typed_measures) if self.prompt_style == "examples" else ""
        static_parts = (prompts.system(self.domain), prompts.instruments(self.domain), self._measures, examples)
        return join_parts(*static_parts, self._situation(state), prompts.STEPS.format(domain=self.domain))

    @property
    def _measures(self) -> str:
        return prompts.measures(self.domain) if self._typed_measures else ""

    def _situation(self, state: SimulationState) -> str:
        name = self.name
        return join_parts(prompts.situation(name, state), prompts.others(name, state), prompts.memory(self.past))

    def _begin_turn(self, state: SimulationState) -> tuple[str, TurnContext]:
        """Return the nation's indicators, and the prompt in parts, because thoughts do not need the answer's format."""
        return prompts.headline(self.name, state), TurnContext(
            description=prompts.instruments(self.domain),
            situation=self._situation(state),
            task=join_parts(prompts.system(self.domain), self._measures, prompts.STEPS.format(domain=self.domain)),
            tools=nation_tools(self.name, state, self.past, self.domain, self._judge, self._result_chars),
            questions=(prompts.ABOUT_SITUATION, prompts.ABOUT_PROPOSAL),
            examples=prompts.worked_examples(typed=self._typed_measures) if self.prompt_style == "examples" else (),
        )

    def _validate_decision(self, decision: PolicyDecision) -> bool:
        measures = decision.measures if isinstance(decision, TypedPolicyDecision) else ()
        names_lever = any(measure.lever in DOMAINS[self.domain] for measure in measures)
        return names_lever or is_about(decision.action, self.domain)

    @property
    def decided_by(self) -> str:
        """The LLM's label."""
        return self.llm_client.label

    async def read(self, action: Action[PolicyDecision], state: SimulationState) -> Reading:
        """Read the policy in the nation's decision; errors as in `read_policy`."""
        position = RunPosition(state.turn, self.row, tick=1)
        return await read_policy(action.policy_decision, self.name, list(state.agents), self.llm_client, position)


class RuleAgent(Nation):
    """A nation whose policy follows a rule, one of `RULES`."""

    def __init__(self, model: mesa.Model, name: str, rule: str, *, row: int) -> None:
        super().__init__(model)
        self.name, self.rule, self.row = name, rule, row

    @property
    def decided_by(self) -> str:
        """The rule's label."""
        return RULES[self.rule].label


def propose_by_rule(rule: str, name: str, row: int, context: RuleContext) -> Proposal:
    """Return the proposal of one of `RULES` for a nation."""
    policy, reason = RULES[rule].policy(context, row)
    decision = PolicyDecision(action=str(policy), reasoning=reason, confidence=1.0)
    action: Action[PolicyDecision] = Action(agent_name=name, action_string=str(policy), policy_decision=decision)
    return action, Reading(policy, "rule"), None
