"""Reporters of states, portrayals, and explanations of chart agents."""

from collections import Counter
from typing import Any

from prism_mesa.chart_agents.slot import OpenChoice
from prism_mesa.errors import ChartError
from prism_mesa.reasoner.question import Answer, PlacedQuestion
from prism_mesa.statechart import Statechart
from prism_mesa.statechart.selection import GuardErrors, evaluate_guards


def state_counts(agents: Any, chart: str = "") -> dict[str, int]:
    """Return the number of agents in each state by its value, zeros included; a reporter for a DataCollector.

    Args:
        agents: A model or its chart agents.
        chart: The name of the chart, if the agents have several.

    Raises:
        ChartError: If no agent has such a chart.
    """
    members = [agent for agent in getattr(agents, "agents", agents) if hasattr(agent, "_table")]
    codes: dict[Statechart, list[int]] = {}
    for agent in members:
        own_chart = agent.charts.get(chart) if chart else agent.chart
        if own_chart is not None:
            codes.setdefault(own_chart, []).append(agent._table.charts[chart].codes[agent._row])
    if members and not codes:
        names = " or ".join(repr(name) for name in {name: 0 for agent in members for name in agent.charts})
        advice = f"give chart={names}" if names else "leave it out, as each agent has a single chart"
        raise ChartError(f"state_counts: chart={chart!r} is not a chart of the agents; {advice}")
    counts = {state.value: 0 for own_chart in codes for state in own_chart.ordered_states}
    for own_chart, own_codes in codes.items():
        for code, n in Counter(own_codes).items():
            counts[own_chart.members[code].value] += n
    return counts


def state_shares(agents: Any, chart: str = "") -> dict[str, float]:
    """Return the share of agents in each state, as `state_counts` does."""
    counts = state_counts(agents, chart)
    return {name: n / max(1, sum(counts.values())) for name, n in counts.items()}


def portray(agent: Any) -> Any:
    """Return the portrayal of an agent for SolaraViz, with the color of its state."""
    from mesa.visualization.components import AgentPortrayalStyle

    if getattr(agent, "chart", None) is None:
        charts = ", ".join(map(repr, getattr(agent, "charts", ()))) or "no chart"
        advice = "write a function that returns AgentPortrayalStyle(color=...)"
        raise ChartError(f"portray: {type(agent).__name__} has {charts}; {advice}")
    return AgentPortrayalStyle(color=agent.chart.colors[agent.state])


def why(agent: Any, trigger: str | None = None, context: Any = None) -> None:
    """Print why `trigger` has the effect that it has now: the guards' answers, the question, and its answer.

    The reasoner answers an open choice, as for `fire`: it asks and counts unless the answer is recorded. Nothing else
    changes. Without `trigger`, the agent's last open choice is printed, as it was asked and answered.
    """
    for name, chart in agent._charts.items():
        slot, label = agent._slot(name), f"{type(agent).__name__} {agent.unique_id}, {name and f'{name}: '}"
        if trigger is None:
            _print_last_choice(agent, label, *vars(agent).get("_answers", {}).get(name, ()))
            continue
        print(f"{label}{slot.state.value} --{trigger}-->")
        for transition, answer, values in chart.explain(slot, trigger, context, agent):
            print(f"  {transition}: {answer or 'no guard'}{''.join(f', {k} = {v}' for k, v in values.items())}")
        cell = chart.cells.get(trigger, {}).get(slot.state)
        if cell is None:
            print(f"  {chart.why_not(slot, trigger)}")
            continue
        node = evaluate_guards(cell.copy(), agent, context, GuardErrors())
        if node.transition is not None and node.transition.target is not None:
            print(f"  so {node.transition.target.value}")
        elif node.options:
            print(f"  so the choice is open: {' or '.join(option.value for option in node.options)}")
            reasoner = getattr(agent.model, "reasoner", None)
            if reasoner is None:
                print("  the model has no reasoner")
                continue
            placed = OpenChoice(slot, cell, node.key, context).place(reasoner)
            _print_answer(agent, placed, *reasoner.answer([placed]))
        else:
            print("  so nothing happens")


def _print_last_choice(agent: Any, label: str, placed: PlacedQuestion | None = None, answer: Any = None) -> None:
    if placed is None:
        print(f"{label}no choice has been open; state_history has the changes")
        return
    question = placed.question
    options = " or ".join(option.value for option in question.options)
    print(f"{label}tick {placed.round}: {question.state.value} --{question.trigger}--> {options}")
    _print_answer(agent, placed, answer)


def _print_answer(agent: Any, placed: PlacedQuestion, answer: Answer) -> None:
    oracle = getattr(agent.model.reasoner, "oracle", None)
    if oracle is not None:
        print(f"  the question:\n{oracle.write(placed.question)}")
    print(f"  the answer: {'stay' if answer.choice is None else answer.choice.value} ({answer.source})")
