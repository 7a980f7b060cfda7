"""Reporters of states, portrayals, and explanations of chart agents."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from prism_mesa.chart_agents.slot import OpenChoice
from prism_mesa.errors import ChartError
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
    members: Iterable[Any] = getattr(agents, "agents", agents)
    codes: Counter[tuple[Statechart, int]] = Counter()
    members = [agent for agent in members if hasattr(agent, "_table")]
    for agent in members:
        own_chart = agent.charts.get(chart) if chart else agent.chart
        if own_chart is not None:
            codes[own_chart, agent._table.charts[chart].codes[agent._row]] += 1
    if members and not codes:
        names = " or ".join(repr(name) for name in {name: 0 for agent in members for name in agent.charts})
        advice = f"give chart={names}" if names else "leave it out, as each agent has a single chart"
        raise ChartError(f"state_counts: chart={chart!r} is not a chart of the agents; {advice}")
    counts = {state.value: 0 for own_chart, _ in codes for state in own_chart.ordered_states}
    for (own_chart, code), n in codes.items():
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


def why(agent: Any, trigger: str, context: Any = None) -> None:
    """Print why `trigger` has the effect that it has now: the guards' answers, the question, and its answer.

    The reasoner answers an open choice, as for `fire`: it asks and counts unless the answer is recorded. Nothing else
    changes.
    """
    for name, chart in agent._charts.items():
        slot = agent._slot(name)
        print(f"{type(agent).__name__} {agent.unique_id}, {name and f'{name}: '}{slot.state.value} --{trigger}-->")
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
            _explain_choice(OpenChoice(slot, cell, node.key, context))
        else:
            print("  so nothing happens")


def _explain_choice(choice: OpenChoice) -> None:
    reasoner: Any = getattr(choice.slot.agent.model, "reasoner", None)
    print(f"  so the choice is open: {' or '.join(option.value for option in choice.options)}")
    if reasoner is None:
        print("  the model has no reasoner")
        return
    placed = choice.place(reasoner)
    oracle = getattr(reasoner, "oracle", None)
    if oracle is not None:
        print(f"  the question:\n{oracle.write(placed.question)}")
    [answer] = reasoner.answer([placed])
    state = "stay" if answer.choice is None else answer.choice.value
    print(f"  the answer: {state} ({answer.source})")
