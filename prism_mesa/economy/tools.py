"""Tools that let a nation look up facts and try policies before it decides; they change nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from prism_mesa.deliberation import Tool, ToolRegistry
from prism_mesa.economy.observation import NationState, PastDecision, SimulationState
from prism_mesa.economy.policy import Policy
from prism_mesa.economy.policy_text import UnclearPolicyError, parse_policy
from prism_mesa.economy.prompts import barriers, decision_line
from prism_mesa.economy.reading import is_about
from prism_mesa.economy.validator import Judgement
from prism_mesa.errors import AgentError, did_you_mean
from prism_mesa.llm.text import NAME_CAP, clean_text

type Judge = Callable[[Policy], Judgement]
"""A function that returns the validator's judgement of a nation's policy in the current quarter."""

_ACTION_CAP: Final = 120
_REASON_CAP: Final = 120
_MAX_LISTED_NAMES: Final = 20
"""The maximum number of nations' names in a tool's schema."""


def nation_tools(
    name: str, state: SimulationState, past: Sequence[PastDecision], domain: str, judge: Judge | None, result_chars: int
) -> ToolRegistry:
    """Return the tools of a nation in a quarter; without a `judge`, `try_policy` is missing.

    The tools run in the caller's thread; a result has at most `result_chars` characters.
    """

    def try_policy(policy: str) -> str:
        """Try out a policy: tells whether it would be carried out now, and if not, why. It changes nothing.

        Args:
            policy: the policy in words, with instrument, direction and size, such as 'raise taxes by 1% of GDP'.
        """
        if not is_about(policy, domain):
            return f"It would count as no answer: it names nothing of {domain} policy."
        try:
            parsed_policy = parse_policy(policy, name, list(state.agents))
        except UnclearPolicyError as error:
            return f"It may not be understood: {error}."
        if not parsed_policy.measures:
            return "It would be carried out: nothing is changed."
        judgement = judge(parsed_policy) if judge is not None else Judgement()
        if not judgement.accepted:
            return f"It would be rejected: {judgement.reason}."
        return f"It would be carried out, as {parsed_policy}: {_effects_text(judgement)}."

    def past_decisions() -> str:
        """Tell your own past decisions, newest first: whether they were carried out, and how things went on."""
        if not past:
            return "You remember no decision of yours."
        later_states = [*(decision.before for decision in past[1:]), state.agents[name]]
        lines = [
            f"{decision_line(decision, _ACTION_CAP, _REASON_CAP)}{_changes_text(decision.before, later_state)}"
            for decision, later_state in zip(past, later_states, strict=True)
        ]
        return "; ".join(reversed(lines))

    tools: list[Callable[..., str] | Tool] = [] if judge is None else [try_policy]
    tools.append(past_decisions)
    if len(state.agents) > 1:
        tools.append(_look_tool(name, state))
    return ToolRegistry(tools, timeout_s=None, result_cap=result_chars)


def _look_tool(observer: str, state: SimulationState) -> Tool:
    names = {clean_text(nation, NAME_CAP): nation for nation in state.agents}

    def look_at_nation(name: str) -> str:
        """Look closely at another nation: all its indicators as you see them, and what stands between you.

        Args:
            name: the nation's name.
        """
        wanted = clean_text(name, NAME_CAP)
        matching_name = next((listed for listed in names if listed.lower() == wanted.lower()), None)
        if matching_name is None:
            others = [other for other, nation in names.items() if nation != observer]
            suggestion = did_you_mean(wanted, others)
            raise AgentError(f"name: there is no nation {wanted!r}; allowed: {', '.join(others)}.{suggestion}")
        nation = names[matching_name]
        barriers_text = "" if nation == observer else barriers(observer, nation, state)
        return f"{matching_name}: {_indicators_text(state.agents[nation])}{barriers_text}."

    tool = Tool.wrap(look_at_nation, timeout_s=None)
    if len(names) > _MAX_LISTED_NAMES:
        return tool
    parameter = tool.parameters["properties"]["name"] | {"enum": sorted(names)}
    return replace(tool, parameters=tool.parameters | {"properties": {"name": parameter}})


def _effects_text(judgement: Judgement) -> str:
    return "; ".join(
        verdict.reason
        for verdict in judgement.verdicts
        if verdict.check == "bounds" or (verdict.check == "feasibility" and verdict.measure < 0)
    )


def _changes_text(before: NationState | None, after: NationState | None) -> str:
    if before is None or after is None:
        return ""
    indicators = (
        ("GDP growth", "gdp_growth"),
        ("inflation", "inflation"),
        ("unemployment", "unemployment"),
        ("interest rate", "policy_rate"),
    )
    changes = [f"{label} {getattr(before, name):.1f}% -> {getattr(after, name):.1f}%" for label, name in indicators]
    return f", then {', '.join(changes)}"


def _indicators_text(view: NationState) -> str:
    return (
        f"GDP growth {view.gdp_growth:.1f}%, output gap {view.output_gap:+.1f}%, inflation {view.inflation:.1f}% "
        f"(target {view.inflation_target:.1f}%), unemployment {view.unemployment:.1f}% "
        f"(usual {view.natural_unemployment:.1f}%), interest rate {view.policy_rate:.2f}%, government spending "
        f"{view.spending:.1f}% of GDP, taxes {view.taxes:.1f}%, deficit {view.deficit:.1f}%, debt {view.debt:.0f}%, "
        f"trade balance {view.trade_balance:+.1f}% of GDP, exchange rate {view.exchange_rate:+.1f}% from its long run"
    )
