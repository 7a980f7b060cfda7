"""A chart as Mermaid text, and the open choices that text and picture show."""

import re
from dataclasses import dataclass
from html.entities import codepoint2name
from typing import Final

from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import Cell
from prism_mesa.statechart.statechart import Statechart
from prism_mesa.statechart.states import STATES, AgentState
from prism_mesa.statechart.transitions import Transition

ASKED: Final = "oracle (LLM) is asked"
OVERLAP: Final = "oracle (LLM) is asked where guards overlap"
CODE: Final = "oracle (LLM) may be asked, guards are code"
DISABLED: Final = "oracle disabled, the first option is taken"


@dataclass(frozen=True)
class Choice:
    """A choice that the chart may leave open; a fork, between trigger and guards, if every transition has a target."""

    node: str
    cell: Cell
    asks: str
    is_fork: bool

    @property
    def options(self) -> tuple[AgentState, ...]:
        """The options; with the oracle disabled, the one that is taken."""
        return self.cell.declared[:1] if self.asks == DISABLED else self.cell.declared


def open_choices(chart: Statechart) -> dict[tuple[str, AgentState], Choice]:
    """Return the choices that the chart may leave open, by trigger and state."""
    undecided = {f.where for f in chart.check() if f.kind in ("open", "overlap")}
    choices: dict[tuple[str, AgentState], Choice] = {}
    for trigger, state, cell in chart.all_cells():
        is_fork = all(t.target is not None for t in cell.candidates)
        if is_fork and (cell.place not in undecided or len(cell.declared) < 2):
            continue
        asks = ASKED if chart.oracle_enabled else DISABLED
        if is_fork and cell.arms:
            asks = OVERLAP if all(isinstance(guard, Expression) for _, _, guard in cell.arms) else CODE
        choices[trigger, state] = Choice(f"oracle_{len(choices) + 1}", cell, asks, is_fork)
    return choices


def arrow_label(chart: Statechart, t: Transition, default: str = "") -> tuple[str, str]:
    """Return the trigger, and the guard in brackets; `default` follows timeouts without ticks of their own."""
    trigger, guard = chart.label(t, default)
    return trigger, guard and f"[{guard}]"


def mermaid(chart: Statechart) -> str:
    """Return the chart as a Mermaid ``stateDiagram-v2``, one arrow per transition.

    An open choice is a ``<<choice>>`` named ``oracle_<i>``, with an arrow to each of its options. Where guards
    overlap, or are code and may leave the choice open, it stands beside the arrows of its transitions.
    """
    choices = open_choices(chart)
    lines = [state.value for state in STATES if state in chart.states]
    lines += [f"state {choice.node} <<choice>>" for choice in choices.values()]
    lines.append(f"[*] --> {chart.initial.value}")
    for t in chart.transitions:
        words = arrow_label(chart, t, " after agent.timeout_threshold")
        if t.target is not None:
            lines.append(_line(t.source.value, t.target.value, *words))
        else:
            choice = choices[t.trigger, t.source]
            lines.append(_line(t.source.value, choice.node, *words, f"/ {choice.asks}"))
    for (trigger, state), choice in choices.items():
        if choice.is_fork:
            lines.append(_line(state.value, choice.node, trigger, f"/ {choice.asks}"))
        lines += [_line(choice.node, option.value, "oracle") for option in choice.options]
    return "\n    ".join(["stateDiagram-v2", *lines]) + "\n"


def _line(source: str, target: str, *words: str) -> str:
    plain = re.compile(r"[\w .,()\[\]'=!/+-]")
    label = " ".join(" ".join(words).split())
    safe = (c if plain.match(c) else f"#{codepoint2name.get(ord(c), ord(c))};" for c in label)
    return f"{source} --> {target}: {''.join(safe)}"
