"""What a nation may look up and try before it decides. No tool changes a world, and none asks an LLM."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from prism_mesa.deliberation import Tool, ToolRegistry
from prism_mesa.economy.observation import NationState, PastDecision, SimulationState
from prism_mesa.economy.policy import Policy
from prism_mesa.economy.policy_text import UnclearPolicyError, parse_policy
from prism_mesa.economy.prompts import barriers, decision_in_words
from prism_mesa.economy.reading import is_about
from prism_mesa.economy.validator import Judgement
from prism_mesa.errors import AgentError, did_you_mean
from prism_mesa.llm.text import NAME_CAP, plain

type Judge = Callable[[Policy], Judgement]
"""Returns what the validator would say to a nation's policy now."""

_ACTION_CAP: Final = 120
_REASON_CAP: Final = 120
_MOST_NAMED: Final = 20
"""Nations whose names a tool lists: what an LLM may call is told, and its answer kept to it."""


class NationTools:
    """The tools of a nation in a quarter.

    Args:
        name: The nation.
        state: What it sees.
        past: Its past decisions, oldest first.
        domain: What it decides about.
        judge: The validator; None: there is nothing to try a policy on.
    """

    def __init__(
        self, name: str, state: SimulationState, past: Sequence[PastDecision], *, domain: str, judge: Judge | None
    ) -> None:
        self.name = name
        self.state = state
        self.past = past
        self.domain = domain
        self._judge = judge

    def registry(self, result_chars: int) -> ToolRegistry:
        """Return the tools; they run in the caller's thread. What does not exist is not offered."""
        tools: list[Callable[..., str] | Tool] = [] if self._judge is None else [self.try_policy]
        tools.append(self.past_decisions)
        if len(self.state.agents) > 1:
            tools.append(self._looking())
        return ToolRegistry(tools, timeout_s=None, result_cap=result_chars)

    def _looking(self) -> Tool:
        """Return the tool that looks at a nation, with the names that there are, if they are not too many."""
        tool = Tool.of(self.look_at_nation, timeout_s=None)
        if len(self.state.agents) > _MOST_NAMED:
            return tool
        name = tool.parameters["properties"]["name"] | {
            "enum": sorted(plain(one, NAME_CAP) for one in self.state.agents)
        }
        return replace(tool, parameters=tool.parameters | {"properties": {"name": name}})

    def try_policy(self, policy: str) -> str:
        """Try out a policy: tells whether it would be carried out now, and if not, why. It changes nothing.

        Args:
            policy: the policy in words, with instrument, direction and size, such as 'raise taxes by 1% of GDP'.
        """
        if not is_about(policy, self.domain):
            return f"It would count as no answer: it names nothing of {self.domain} policy."
        try:
            said = parse_policy(policy, self.name, list(self.state.agents))
        except UnclearPolicyError as error:
            return f"It may not be understood: {error}."
        if not said.measures:
            return "It would be carried out: nothing is changed."
        judgement = self._judge(said) if self._judge is not None else Judgement()
        if not judgement.accepted:
            return f"It would be rejected: {judgement.reason}."
        return f"It would be carried out, as {said}: {_effects(judgement)}."

    def past_decisions(self) -> str:
        """Tell your own past decisions, newest first: whether they were carried out, and how things went on."""
        if not self.past:
            return "You remember no decision of yours."
        after = [*(one.before for one in self.past[1:]), self.state.agents[self.name]]
        told = [
            f"{decision_in_words(one, _ACTION_CAP, _REASON_CAP)}{_course(one.before, then)}"
            for one, then in zip(self.past, after, strict=True)
        ]
        return "; ".join(reversed(told))

    def look_at_nation(self, name: str) -> str:
        """Look closely at another nation: all its indicators as you see them, and what stands between you.

        Args:
            name: the nation's name.
        """
        known = {plain(other, NAME_CAP).lower(): other for other in self.state.agents}
        found = known.get(plain(name, NAME_CAP).lower())
        if found is None:
            names = [plain(other, NAME_CAP) for other in self.state.agents if other != self.name]
            near = did_you_mean(name, names)
            raise AgentError(f"name: there is no nation {plain(name, NAME_CAP)!r}; allowed: {', '.join(names)}.{near}")
        between = "" if found == self.name else barriers(self.name, found, self.state)
        return f"{plain(found, NAME_CAP)}: {_indicators(self.state.agents[found])}{between}."


def _effects(judgement: Judgement) -> str:
    """Return what a policy would set and what the budget says to it."""
    told = [
        verdict.reason
        for verdict in judgement.verdicts
        if verdict.check == "bounds" or (verdict.check == "feasibility" and verdict.measure < 0)
    ]
    return "; ".join(told)


def _course(before: NationState | None, after: NationState | None) -> str:
    """Return how indicators went from one quarter to the next."""
    if before is None or after is None:
        return ""
    shown = (
        ("GDP growth", "gdp_growth"),
        ("inflation", "inflation"),
        ("unemployment", "unemployment"),
        ("interest rate", "policy_rate"),
    )
    told = [f"{label} {getattr(before, name):.1f}% -> {getattr(after, name):.1f}%" for label, name in shown]
    return f", then {', '.join(told)}"


def _indicators(of: NationState) -> str:
    return (
        f"GDP growth {of.gdp_growth:.1f}%, output gap {of.output_gap:+.1f}%, inflation {of.inflation:.1f}% "
        f"(target {of.inflation_target:.1f}%), unemployment {of.unemployment:.1f}% "
        f"(usual {of.natural_unemployment:.1f}%), interest rate {of.policy_rate:.2f}%, government spending "
        f"{of.spending:.1f}% of GDP, taxes {of.taxes:.1f}%, deficit {of.deficit:.1f}%, debt {of.debt:.0f}%, "
        f"trade balance {of.trade_balance:+.1f}% of GDP, exchange rate {of.exchange_rate:+.1f}% from its long run"
    )
