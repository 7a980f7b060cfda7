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

_ORDER: Final = (
    *(AgentState.IDLE, AgentState.RESTING, AgentState.SCROLLING, AgentState.EVALUATING, AgentState.COMPOSING),
    *(AgentState.ENGAGING_LIKE, AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE),
)
_COLUMNS: Final = ["round", "tick", "agent", "from_state", "to_state", "open"]


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
    moves = _moves(run, row, rounds)
    ends, n_ticks = _span(run, rounds), max(1, int(run.table("ticks", ["tick"])["tick"].max()))
    at = (moves["round"] + moves["tick"].clip(upper=n_ticks) / (n_ticks + 1)).to_numpy(np.float64)
    panel = open_panel(ax, width, height=6.6 if width > 12 else 7.4)
    axes = panel.axes
    first = AgentState(moves["from_state"].iloc[0])
    states = [first, *(AgentState(target) for target in moves["to_state"])]
    edges = np.concatenate([[ends[0]], at, [ends[1] + 1]])
    for state in _ORDER:
        places = [place for place, target in enumerate(states) if target is state]
        spans = [(edges[place], edges[place + 1] - edges[place]) for place in places]
        axes.broken_barh(spans, (_ORDER.index(state) - 0.36, 0.72), color=STATE_COLORS[state], lw=0.6)
    asked, by = moves["open"].to_numpy(bool), f"decided by {shortened(run.decided_by, 50)}"
    heights = [_ORDER.index(AgentState(target)) for target in moves.loc[asked, "to_state"]]
    marks: dict[str, Any] = {"color": INK, "ms": 3.5, "mfc": "white", "mew": 0.9, "clip_on": False}
    axes.plot(at[asked], heights, "D", label=f"open choice, {by}", **marks)
    axes.set_yticks(range(len(_ORDER)), [state.value.replace("_", " ") for state in _ORDER])
    axes.set(xlim=(ends[0], ends[1] + 1), ylim=(-0.6, len(_ORDER) - 0.4))
    axes.grid(visible=False, axis="y")
    rounds_axis(axes)
    panel.title(f"{shortened(printable(name), 40)}, agent {row}")
    if asked.any():
        panel.legend_below(1)
    panel.caption(_caption(ends, n_ticks, len(moves), int(asked.sum()), by), of)
    return panel.figure


def _caption(ends: tuple[int, int], n_ticks: int, n_moves: int, n_open: int, by: str) -> str:
    """Return a caption with the rounds, the ticks per round, and the number of open choices."""
    single = ends[0] == ends[1]
    when = f"round {ends[0]:,}, of" if single else f"rounds {ends[0]:,} to {ends[1]:,}, each of"
    text = f"{n_open:,} of them {'an open choice' if n_open == 1 else 'open choices'}{f', {by}' if n_open else ''}"
    moves = counted(n_moves, "transition")
    return f"States of one agent in {when} {counted(n_ticks, 'tick')}: n = {moves}, {text}."


def _find_agent(run: RunTables, agent: int | str) -> tuple[int, str]:
    """Return the row and name of an agent, given its row, id or name."""
    agents = run.table("agents", ["agent", "id", "name", "recorded_transitions"])
    by_row = agents["agent"].astype(str) == str(agent)
    for known in (by_row, agents["id"].astype(str) == str(agent), agents["name"].astype(str) == str(agent)):
        if int(known.sum()) > 1:
            rows = ", ".join(map(str, agents.loc[known, "agent"].tolist()[:6]))
            raise DataError(f"{run.name}: several agents are called {shown(agent)}: give the row, one of {rows}")
        if known.any():
            row = agents[known].iloc[0]
            if not row["recorded_transitions"]:
                raise DataError(
                    f"{run.name}: transitions of agent {row['agent']} were not recorded (records.transitions)"
                )
            return int(row["agent"]), str(row["name"])
    near = did_you_mean(str(agent), agents["name"].astype(str).tolist())
    raise DataError(
        f"{run.name}: no agent {shown(agent)}: give a row from 0 to {len(agents) - 1}, an id or a name.{near}"
    )


def _moves(run: RunTables, row: int, rounds: tuple[int, int] | None) -> pd.DataFrame:
    """Return the transitions of an agent in some rounds, in order."""
    moves = run.table("transitions", _COLUMNS)
    moves = moves[moves["agent"] == row]
    if rounds is not None:
        moves = moves[moves["round"].between(*rounds)]
    if moves.empty:
        raise DataError(f"{run.name}: agent {row} did nothing in these rounds: nothing to draw")
    return moves.sort_values(["round", "tick"], kind="stable")


def _span(run: RunTables, rounds: tuple[int, int] | None) -> tuple[int, int]:
    """Return the first and last round to show."""
    if rounds is not None:
        return rounds
    rows = run.table("rounds", ["round"])["round"]
    return int(rows.min()), int(rows.max())
