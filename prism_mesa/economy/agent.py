"""Nations as Mesa agents: one whose policy an LLM sets in words, and the baselines beside it."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mesa
import numpy as np

from prism_mesa.agents import Action, Decision, LLMAgent, ReasoningChain
from prism_mesa.economy.policy import Measure, Policy
from prism_mesa.economy.reading import Reading, read_policy
from prism_mesa.economy.states import NationState, SimulationState
from prism_mesa.economy.words import is_about
from prism_mesa.reasoner import LLMClient, Place
from prism_mesa.reasoner.prompt import plain

if TYPE_CHECKING:
    from prism_mesa.economy.model import EconomyModel


class PolicyDecision(Decision):
    """What an LLM proposes for a nation: the policy in words, the reasoning, and how sure it is, 0 to 1."""


_SYSTEM: Final = """You are {article} {domain} policy advisor for a nation.
Analyze the current economic state and propose ONE specific policy action.
Think step-by-step about the economic situation and reasoning behind your recommendation.

Return your response as JSON with this structure:
{{
  "action": "specific policy action string",
  "reasoning": "step-by-step explanation of why this action is appropriate",
  "confidence": 0.0-1.0
}}"""

_INSTRUMENTS: Final = {
    "monetary": "the policy rate (percentage points)",
    "fiscal": "government spending, taxes, borrowing (percent of GDP)",
    "trade": "tariffs on a named nation (percent), sanctions on a named nation (percent of trade stopped)",
}

_EXAMPLES: Final = """Examples of good answers:
GDP Growth: -3.1%, Inflation: 0.4%, Unemployment: 8.2%, Interest Rate: 2.5%
{"action": "Lower the policy rate by 0.5 percentage points", "reasoning": "1. Unemployment is high and output shrinks. \
2. Cheaper credit supports demand. 3. Unemployment falls within a year.", "confidence": 0.8}
GDP Growth: 4.2%, Inflation: 6.1%, Unemployment: 4.4%, Interest Rate: 3.0%
{"action": "Raise the policy rate by 0.75 percentage points", "reasoning": "1. Inflation is far above target. \
2. Dearer credit slows demand. 3. Inflation falls within two years.", "confidence": 0.8}
GDP Growth: -2.0%, Inflation: 1.1%, Unemployment: 9.0%, Interest Rate: 0.0%
{"action": "Increase government spending by 1% of GDP", "reasoning": "1. Unemployment is high and the rate cannot go \
lower. 2. The government can spend. 3. Output rises at once.", "confidence": 0.7}"""

_STEPS: Final = """Think step-by-step:
1. What is the most pressing economic issue?
2. What policy action would address this issue?
3. What are the expected effects?

Propose ONE specific {domain} policy action."""

_REASON_CAP: Final = 160


@dataclass(frozen=True)
class Past:
    """A decision of an earlier quarter and what became of it; `reason` is empty if it was carried out."""

    quarter: str
    action: str
    reason: str


type Proposal = tuple[Action[PolicyDecision], Reading, ReasoningChain | None]
"""What a nation wants to do, how its words were read, and the reasoning behind it."""


class Nation(mesa.Agent):
    """A nation on Mesa: its row of the model's world.

    Attributes:
        row: Its place in all arrays of the world.
        past: Its last decisions, oldest first.
    """

    model: "EconomyModel"
    row: int
    name: str
    past: deque[Past]

    @property
    def state(self) -> NationState:
        """Where it stands, exactly."""
        return self.model.nation_state(self.row)


class EconLLMAgent(LLMAgent[SimulationState, PolicyDecision], Nation):
    """A nation whose policy an LLM proposes in words; see `LLMAgent` for the arguments.

    Args:
        memory: How many of its past decisions a prompt tells.
    """

    def __init__(
        self,
        model: mesa.Model,
        name: str,
        llm_client: LLMClient,
        *,
        domain: str = "economic",
        prompt_style: str = "chain_of_thought",
        row: int = -1,
        memory: int = 4,
    ) -> None:
        super().__init__(
            model,
            name,
            llm_client,
            response_model=PolicyDecision,
            domain=domain,
            prompt_style=prompt_style,
            row=row,
        )
        self.past = deque(maxlen=memory)

    def _construct_prompt(self, state: SimulationState) -> str:
        """Return the contract's prompt, static text first, with what else the nation knows between its two messages."""
        system = _SYSTEM.format(article="an" if self.domain == "economic" else "a", domain=self.domain)
        levers = _INSTRUMENTS.values() if self.domain == "economic" else [_INSTRUMENTS[self.domain]]
        tools = f"Instruments: {'; '.join(levers)}. Say which one, which way, and by how much."
        parts = [system, tools]
        if self.prompt_style == "examples":
            parts.append(_EXAMPLES)
        parts += [self._situation(state), self._others(state), self._memory(), _STEPS.format(domain=self.domain)]
        return "\n\n".join(part for part in parts if part)

    def _situation(self, state: SimulationState) -> str:
        own = state.agents[self.name]
        return (
            f"You advise {plain(self.name, 80)}; it is {state.quarter}.\n"
            "Current economic state:\n"
            f"- GDP Growth: {own.gdp_growth:.1f}%\n"
            f"- Inflation: {own.inflation:.1f}%\n"
            f"- Unemployment: {own.unemployment:.1f}%\n"
            f"- Interest Rate: {own.policy_rate:.2f}%\n"
            f"- Government spending: {own.spending:.1f}% of GDP, taxes: {own.taxes:.1f}%, debt: {own.debt:.0f}%\n"
            f"- Trade balance: {own.trade_balance:+.1f}% of GDP\n"
            f"- Inflation target: {own.inflation_target:.1f}%, usual unemployment: {own.natural_unemployment:.1f}%, "
            f"output gap: {own.output_gap:+.1f}%"
        )

    def _others(self, state: SimulationState) -> str:
        lines = []
        for name, other in state.agents.items():
            if name != self.name:
                against = "".join(self._barriers(state, name))
                lines.append(
                    f"- {plain(name, 80)}: growth {other.gdp_growth:.1f}%, inflation {other.inflation:.1f}%, "
                    f"unemployment {other.unemployment:.1f}%, interest rate {other.policy_rate:.2f}%{against}"
                )
        return "Other nations (estimates):\n" + "\n".join(lines) if lines else ""

    def _barriers(self, state: SimulationState, other: str) -> Iterator[str]:
        """Yield what stands between oneself and another nation, if anything."""
        world = state.global_state
        for kind, unit, of in (("tariff", "", world.tariffs), ("sanctions", " of trade", world.sanctions)):
            for by, whose, against in (("your", self.name, other), ("its", other, self.name)):
                size = of.get(whose, {}).get(against)
                if size:
                    yield f", {by} {kind} on {'it' if by == 'your' else 'you'} {size:.1f}%{unit}"

    def _memory(self) -> str:
        lines = [
            f"- {past.quarter}: <<< {plain(past.action, 200)} >>> "
            + (f"was rejected: {plain(past.reason, _REASON_CAP)}" if past.reason else "was carried out")
            for past in self.past
        ]
        return "Your last decisions:\n" + "\n".join(lines) if lines else ""

    def _validate_decision(self, decision: PolicyDecision) -> bool:
        """Return whether the action names anything of the agent's domain, by its words."""
        return is_about(decision.action, self.domain)

    @property
    def decided_by(self) -> str:
        """Who decides, for summaries."""
        return self.llm_client.label

    async def propose(self, state: SimulationState) -> Proposal:
        """Return what the nation wants to do, how it was read, and why.

        Raises:
            LLMFailureException: If the LLM gave no usable answer.
        """
        action = await self.decide_action(state)
        place = Place(state.turn, self.row, tick=1)
        reading = await read_policy(action.action_string, self.name, list(state.agents), self.llm_client, place)
        return action, reading, self.reasoning_chain


type Rule = Callable[["EconomyModel", int], tuple[Policy, str]]
"""Returns the policy of the nation in a row, and why, for the model as it stands."""


class RuleAgent(Nation):
    """A nation whose policy follows a rule.

    Args:
        rule: One of `RULES`.
    """

    def __init__(self, model: mesa.Model, name: str, rule: str, *, row: int) -> None:
        super().__init__(model)
        self.name = name
        self.row = row
        self.rule = rule
        self.past = deque(maxlen=0)

    @property
    def decided_by(self) -> str:
        """Who decides, for summaries."""
        return _DECIDED_BY[self.rule]

    def decide(self) -> Proposal:
        """Return what the rule says."""
        policy, why = RULES[self.rule](self.model, self.row)
        decision = PolicyDecision(action=str(policy), reasoning=why, confidence=1.0)
        action = Action[PolicyDecision](agent_name=self.name, action_string=str(policy), policy_decision=decision)
        return action, Reading(policy, "rule"), None


def taylor_rule(model: "EconomyModel", row: int) -> tuple[Policy, str]:
    """Return the policy rate of Taylor's rule (1993), as far as the limits of a quarter allow."""
    limits, world = model.params.economy.limits, model.world
    wished, now = float(model.macro.taylor_rate(world)[row]), float(world.policy_rate[row])
    rate = float(np.clip(wished, limits.lower_bound, limits.highest_rate))
    rate = float(np.clip(rate, now - limits.rate_step, now + limits.rate_step))  # a rate too high comes down in steps
    seen = f"inflation {world.inflation_year[row]:.2f}, output gap {world.gap[row]:.2f}"
    why = f"Taylor's rule gives {wished:.2f}: {seen}"
    return Policy(measures=(Measure(lever="policy_rate", how="to", size=rate, unit="points"),)), why


def no_policy(model: "EconomyModel", row: int) -> tuple[Policy, str]:
    """Return a policy that does nothing."""
    return Policy(), "nothing is done in this run"


_RANDOM: Final = (("policy_rate", "points", 0.5), ("spending", "percent_of_gdp", 0.5), ("taxes", "percent_of_gdp", 0.5))


def random_policy(model: "EconomyModel", row: int) -> tuple[Policy, str]:
    """Return one measure of a drawn instrument and size: half a point at most, tariffs up to 10 percent."""
    quarter, streams, n = model.world.quarter, model.streams, len(model.macro.names)
    n_levers = len(_RANDOM) + (n > 1)
    lever = int(streams.integers("random/lever", row, n_levers, index=quarter)[0])
    size = float(streams.uniform("random/size", row, index=quarter)[0])
    if lever < len(_RANDOM):
        name, unit, most = _RANDOM[lever]
        values: dict[str, Any] = {"lever": name, "size": round((2 * size - 1) * most, 2), "unit": unit}
    else:
        other = int(streams.integers("random/target", row, n - 1, index=quarter)[0])
        target = model.macro.names[other + (other >= row)]
        values = {"lever": "tariff", "how": "to", "size": round(10 * size, 1), "unit": "points", "target": target}
    return Policy(measures=(Measure(**values),)), "drawn at random"


_DECIDED_BY: Final = {"taylor": "Taylor's rule (1993)", "nothing": "nobody", "random": "chance"}
RULES: Final[dict[str, Rule]] = {"taylor": taylor_rule, "nothing": no_policy, "random": random_policy}
