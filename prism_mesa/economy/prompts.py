"""Prompts for nations; they quote names and earlier texts as data."""

import json
from collections.abc import Iterable
from typing import Any, Final

from prism_mesa.deliberation import Example, ProposedToolCall, Questions, ReasoningResult
from prism_mesa.economy.observation import PastDecision, SimulationState
from prism_mesa.economy.policy import DOMAINS, UNITS, Lever, Measure
from prism_mesa.llm.text import NAME_CAP, clean_text

SYSTEM: Final = """You are {article} {domain} policy advisor for a nation.
Analyze the current economic state and propose ONE specific policy action.
Think step-by-step about the economic situation and reasoning behind your recommendation.

Return your response as JSON with this structure:
{{
  "action": "specific policy action string",
  "reasoning": "step-by-step explanation of why this action is appropriate",
  "confidence": 0.0-1.0
}}"""

INSTRUMENTS: Final = {
    "monetary": "the policy rate (percentage points)",
    "fiscal": "government spending, taxes, borrowing (percent of GDP)",
    "trade": "tariffs on a named nation (percent), sanctions on a named nation (percent of trade stopped)",
}

_EXAMPLES: Final = (
    (
        "GDP Growth: -3.1%, Inflation: 0.4%, Unemployment: 8.2%, Interest Rate: 2.5%",
        "Lower the policy rate by 0.5 percentage points",
        "1. Unemployment is high and output shrinks. 2. Cheaper credit supports demand. 3. Unemployment falls within a "
        "year.",
        0.8,
        Measure(lever="policy_rate", size=-0.5, unit="points"),
    ),
    (
        "GDP Growth: 4.2%, Inflation: 6.1%, Unemployment: 4.4%, Interest Rate: 3.0%",
        "Raise the policy rate by 0.75 percentage points",
        "1. Inflation is far above target. 2. Dearer credit slows demand. 3. Inflation falls within two years.",
        0.8,
        Measure(lever="policy_rate", size=0.75, unit="points"),
    ),
    (
        "GDP Growth: -2.0%, Inflation: 1.1%, Unemployment: 9.0%, Interest Rate: 0.0%",
        "Increase government spending by 1% of GDP",
        "1. Unemployment is high and the rate cannot go lower. 2. The government can spend. 3. Output rises at once.",
        0.7,
        Measure(lever="spending", size=1, unit="percent_of_gdp"),
    ),
)
"""Worked examples: the indicators, the action, the reasoning, the confidence and the measure."""

STEPS: Final = """Think step-by-step:
1. What is the most pressing economic issue?
2. What policy action would address this issue?
3. What are the expected effects?

Propose ONE specific {domain} policy action."""

ABOUT_SITUATION: Final[Questions] = (
    ("understanding", "What is the most pressing economic issue?"),
    ("needs", "What else must be kept in mind: debt, prices, other nations?"),
    ("connection", "What do your last decisions, and what became of them, tell you?"),
    ("plan", "Which policy action would address the issue, by how much, and with what expected effects?"),
)
"""Questions that a nation answers before its proposal, by field of `ReasoningResult`."""

ABOUT_PROPOSAL: Final[Questions] = (
    ("understanding", "Does your proposal address the most pressing economic issue?"),
    ("needs", "Does it say which instrument, which way and by how much, and can it be carried out?"),
    ("connection", "What do the tools' results say for it and against it?"),
    ("plan", "Should it stay as it is, or what should be different?"),
)
"""Questions that a nation answers about its own proposal."""


def _try_policy_call(policy: str) -> ProposedToolCall:
    return ProposedToolCall(tool_name="try_policy", parameters={"policy": policy}, reasoning="Can it be carried out?")


_THOUGHTS: Final = (
    ReasoningResult(
        understanding="Unemployment is high and output shrinks.",
        needs="Inflation is below its target, so cheaper credit does no harm.",
        connection="The policy rate has room to fall.",
        plan="Lower the policy rate by 0.5 percentage points: unemployment falls within a year.",
        proposed_tools=[_try_policy_call("Lower the policy rate by 0.5 percentage points")],
    ),
    ReasoningResult(
        understanding="Inflation is far above target.",
        needs="Unemployment is low, so demand can slow.",
        connection="The policy rate is low for that much inflation.",
        plan="Raise the policy rate by 0.75 percentage points: inflation falls within two years.",
    ),
    ReasoningResult(
        understanding="Unemployment is high and output shrinks.",
        needs="The policy rate is zero and cannot go lower.",
        connection="The government can spend.",
        plan="Increase government spending by 1% of GDP: output rises at once.",
        proposed_tools=[_try_policy_call("Increase government spending by 1% of GDP")],
    ),
)


def worked_examples(*, typed: bool) -> tuple[Example, ...]:
    """Return examples with a thought before each answer; with `typed`, answers have a measure."""
    examples = []
    for (indicators, action, reasoning, confidence, measure), thought in zip(_EXAMPLES, _THOUGHTS, strict=True):
        answer: dict[str, Any] = {"action": action, "reasoning": reasoning, "confidence": confidence}
        answer |= {"measures": [measure.model_dump()]} if typed else {}
        examples.append(Example(indicators, json.dumps(answer), thought))
    return tuple(examples)


def examples(*, typed: bool) -> str:
    """Return examples for a nation that answers without thinking first."""
    lines = [f"{example.text}\n{example.response}" for example in worked_examples(typed=typed)]
    return "\n".join(["Examples of good answers:", *lines])


_ACTION_CAP: Final = 200
_REASON_CAP: Final = 160


def system(domain: str) -> str:
    """Return the adviser's role and the format of an answer."""
    return SYSTEM.format(article="an" if domain == "economic" else "a", domain=domain)


def instruments(domain: str) -> str:
    """Return the instruments of a domain."""
    levers = INSTRUMENTS.values() if domain == "economic" else [INSTRUMENTS[domain]]
    return f"Instruments: {'; '.join(levers)}. Say which one, which way, and by how much."


def levers_and_units(levers: Iterable[Lever]) -> str:
    """Explain the format of measures: instruments with their units, and the other fields."""
    lines = "\n".join(f"- {lever}: {' or '.join(UNITS[lever])}" for lever in levers)
    return f"""Instruments ("lever"), and the units of their sizes:
{lines}
"by" moves an instrument (above 0 up, below 0 down), "to" sets it. points are percentage points, percent is relative to
where the instrument stands. Only tariff and sanction have a target, one nation each."""


def measures(domain: str) -> str:
    """Ask for the policy in numbers, too, and explain the format."""
    return f"""Give the same policy in numbers as "measures", one for each instrument that moves:
{{"lever": "...", "how": "by" or "to", "size": number, "unit": "...", "target": nation or null}}
{levers_and_units(DOMAINS[domain])}"""


def situation(name: str, state: SimulationState) -> str:
    """Return the nation's indicators."""
    nation = state.agents[name]
    return (
        f"You advise {clean_text(name, NAME_CAP)}{f'; it is {state.quarter}' if state.quarter else ''}.\n"
        "Current economic state:\n"
        f"- GDP Growth: {nation.gdp_growth:.1f}%\n"
        f"- Inflation: {nation.inflation:.1f}%\n"
        f"- Unemployment: {nation.unemployment:.1f}%\n"
        f"- Interest Rate: {nation.policy_rate:.2f}%\n"
        f"- Government spending: {nation.spending:.1f}% of GDP, taxes: {nation.taxes:.1f}%, debt: {nation.debt:.0f}%\n"
        f"- Trade balance: {nation.trade_balance:+.1f}% of GDP\n"
        f"- Inflation target: {nation.inflation_target:.1f}%, usual unemployment: {nation.natural_unemployment:.1f}%, "
        f"output gap: {nation.output_gap:+.1f}%"
    )


def headline(name: str, state: SimulationState) -> str:
    """Return the nation's indicators in one line, as in the examples."""
    nation = state.agents[name]
    return (
        f"GDP Growth: {nation.gdp_growth:.1f}%, Inflation: {nation.inflation:.1f}%, "
        f"Unemployment: {nation.unemployment:.1f}%, Interest Rate: {nation.policy_rate:.1f}%"
    )


def others(name: str, state: SimulationState) -> str:
    """Return the indicators of other nations as the nation sees them; empty without other nations."""
    lines = [
        f"- {clean_text(other, NAME_CAP)}: growth {seen.gdp_growth:.1f}%, inflation {seen.inflation:.1f}%, "
        f"unemployment {seen.unemployment:.1f}%, interest rate {seen.policy_rate:.2f}%{barriers(name, other, state)}"
        for other, seen in state.agents.items()
        if other != name
    ]
    return "Other nations (estimates):\n" + "\n".join(lines) if lines else ""


def barriers(name: str, other: str, state: SimulationState) -> str:
    """Return the tariffs and sanctions between two nations, each after a comma."""
    text, world = "", state.global_state
    for kind, unit, sizes in (("tariff", "", world.tariffs), ("sanctions", " of trade", world.sanctions)):
        if size := sizes.get(name, {}).get(other):
            text += f", your {kind} on it {size:.1f}%{unit}"
        if size := sizes.get(other, {}).get(name):
            text += f", its {kind} on you {size:.1f}%{unit}"
    return text


def memory(past: Iterable[PastDecision]) -> str:
    """Return the nation's past decisions; empty without decisions."""
    lines = [f"- {decision_line(decision, _ACTION_CAP, _REASON_CAP)}" for decision in past]
    return "Your last decisions:\n" + "\n".join(lines) if lines else ""


def decision_line(past: PastDecision, action_cap: int, reason_cap: int) -> str:
    """Return a past decision and whether it was carried out."""
    outcome = f"was rejected: {clean_text(past.reason, reason_cap)}" if past.reason else "was carried out"
    return f"{past.quarter}: <<< {clean_text(past.action, action_cap)} >>> {outcome}"
