"""The states of one agent by tick, with its open choices."""

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import DataError, counted, did_you_mean, printable, shortened
from prism_mesa.params import shown
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots.rounds import rounds_axis
from prism_mesa.view.plots.sources import OneRun, RunTables, one_run
from prism_mesa.view.plots.style import INK, WIDE, open_panel

_ROWS: Final = (
    *(AgentState.IDLE, AgentState.RESTING, AgentState.SCROLLING, AgentState.EVALUATING, AgentState.COMPOSING),
    *(AgentState.ENGAGING_LIKE, AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE),
)


def timeline_figure(
    of: OneRun,
    agent: int | str,
    *,
    rounds: tuple[int, int] | None = None,
    ax: Axes | None = None,
    width: float = WIDE,
) -> Figure:
    """Return the states of one agent over time, a row for each, with a mark at each open choice.

    Args:
        of: A run, or a live model that records transitions.
        agent: The agent's row, id or name.
        rounds: The first and last round to show; None for all.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is no such agent, its transitions were not recorded, or there are none in these rounds.
    """
    run = one_run(of)
    row, name = _find_agent(run, agent)
    first, last = rounds or run.table("rounds", ["round"])["round"].agg(["min", "max"]).tolist()
    moves = run.table("transitions", ["round", "tick", "agent", "from_state", "to_state", "open"])
    moves = moves[(moves["agent"] == row) & moves["round"].between(first, last)]
    if moves.empty:
        raise DataError(f"{run.name}: agent {row} did nothing in these rounds: nothing to draw")
    moves = moves.sort_values(["round", "tick"], kind="stable")
    n_ticks = max(1, int(run.table("ticks", ["tick"])["tick"].max()))
    at = (moves["round"] + moves["tick"].clip(upper=n_ticks) / (n_ticks + 1)).to_numpy(np.float64)
    title = f"{shortened(printable(name), 40)}, agent {row}"
    panel = open_panel(ax, width, title, height=6.6 if width > 12 else 7.4)
    axes = panel.axes
    states = [AgentState(state) for state in (moves["from_state"].iloc[0], *moves["to_state"])]
    edges = np.array([first, *at, last + 1], np.float64)
    for height, state in enumerate(_ROWS):
        spans = [(edges[n], edges[n + 1] - edges[n]) for n, entered in enumerate(states) if entered is state]
        axes.broken_barh(spans, (height - 0.36, 0.72), color=STATE_COLORS[state], lw=0.6)
    is_open, decided = moves["open"].to_numpy(bool), f"decided by {shortened(run.decided_by, 50)}"
    heights = np.array([_ROWS.index(state) for state in states[1:]])
    marks: dict[str, Any] = {"color": INK, "ms": 3.5, "mfc": "white", "mew": 0.9, "clip_on": False}
    axes.plot(at[is_open], heights[is_open], "D", label=f"open choice, {decided}", **marks)
    axes.set_yticks(range(len(_ROWS)), [state.value.replace("_", " ") for state in _ROWS])
    axes.set(xlim=(first, last + 1), ylim=(-0.6, len(_ROWS) - 0.4))
    axes.grid(visible=False, axis="y")
    rounds_axis(axes)
    if n_open := int(is_open.sum()):
        panel.legend_below(1)
    when = f"round {first:,}, of" if first == last else f"rounds {first:,} to {last:,}, each of"
    choices = f"{'an open choice' if n_open == 1 else 'open choices'}{f', {decided}' if n_open else ''}"
    span = f"States of one agent in {when} {counted(n_ticks, 'tick')}"
    panel.caption(f"{span}: n = {counted(len(moves), 'transition')}, {n_open:,} of them {choices}.", of)
    return panel.figure


def _find_agent(run: RunTables, agent: int | str) -> tuple[int, str]:
    """Return the row and name of an agent, given its row, id or name."""
    agents = run.table("agents", ["agent", "id", "name", "recorded_transitions"])
    for column in ("agent", "id", "name"):
        matches: pd.DataFrame = agents[agents[column].astype(str) == str(agent)]
        if len(matches) > 1:
            rows = ", ".join(map(str, matches["agent"].tolist()[:6]))
            raise DataError(f"{run.name}: several agents are called {shown(agent)}: give the row, one of {rows}")
        for row, name, is_recorded in matches[["agent", "name", "recorded_transitions"]].itertuples(index=False):
            if not is_recorded:
                raise DataError(f"{run.name}: transitions of agent {row} were not recorded (records.transitions)")
            return int(row), str(name)
    near = did_you_mean(str(agent), agents["name"].astype(str).tolist())
    known = f"give a row from 0 to {len(agents) - 1}, an id or a name"
    raise DataError(f"{run.name}: no agent {shown(agent)}: {known}.{near}")
