"""Shares of agents in each state by round."""

from collections.abc import Sequence
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import ConfigError
from prism_mesa.params import shown
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.rounds import draw_band, interval_band, of_agents, rounds_axis, seeds_note
from prism_mesa.view.plots.sources import Drawable, Group, shared_interventions, to_groups

_ORDER: Final = tuple(STATE_COLORS)[::-1]
_ACTIVE: Final = tuple(state for state in STATE_COLORS if state is not AgentState.IDLE)
_TITLE: Final = "What agents are doing"


def states_figure(
    of: Drawable, *, state: AgentState | str | None = None, ax: Axes | None = None, width: float = look.WIDE
) -> Figure:
    """Return the shares of agent-ticks in each state by round.

    The shares of one run are stacked, idle on top. Several seeds or groups get a panel for each state, or only for
    `state`, with bands over seeds; if you pass `ax`, it shows all states but idle.

    Args:
        of: A run, a live model, runs of several seeds, a study's result, or several of these by label.
        state: The only state to draw.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no rounds to draw.
        ConfigError: If there is no such state, or `ax` is given for several groups without `state`.
    """
    groups = to_groups(of)
    only = None if state is None else _state(state)
    if only is None and ax is None and (len(groups) > 1 or groups[0].n_seeds > 1):
        return _panels(of, groups, width)
    if only is None and len(groups) > 1:
        reason = "several groups of runs have a panel for each state"
        raise ConfigError(f"states: {reason}: name one (state=...), or give no ax")
    lines = (0 if only else 4) if width < look.WIDE * 0.75 else 0
    panel = look.open_panel(ax, width, legend_lines=len(groups) if len(groups) > 1 else lines)
    tables = [group.table("rounds", ["round", *_columns([only] if only else _ORDER)]) for group in groups]
    if only is not None:
        _one_state(panel, groups, tables, only)
    elif groups[0].n_seeds == 1:
        _stack(panel, tables[0])
    else:
        _lines(panel, tables[0])
    rounds_axis(panel.axes, shared_interventions(groups))
    which = f"in state {only.value}" if only else "in each state"
    rest = ", idle being the rest" if only is None and groups[0].n_seeds > 1 else ""
    panel.caption(f"Shares of agent-ticks{of_agents(groups)} {which}{rest}, per round.{seeds_note(groups)}", of)
    return panel.figure


def _state(state: AgentState | str) -> AgentState:
    try:
        return AgentState(state)
    except ValueError as error:
        raise ConfigError(f"states: state={shown(state)}: {error}") from None


def _columns(states: Sequence[AgentState]) -> list[str]:
    return [f"share_{state.value}" for state in states]


def _percent(axes: Axes) -> None:
    axes.set_ylabel("share of agent-ticks", fontsize=look.TEXT)
    look.percent_axis(axes.yaxis)


def _stack(panel: look.Panel, table: pd.DataFrame) -> None:
    axes = panel.axes
    shares = table[_columns(_ORDER)].to_numpy().T
    edges = [*(table["round"] - 0.5), table["round"].iloc[-1] + 0.5]
    steps = [[*row, row[-1]] for row in shares]
    colors, labels = [STATE_COLORS[state] for state in _ORDER], [state.value for state in _ORDER]
    axes.stackplot(edges, steps, step="post", colors=colors, labels=labels, lw=0)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1))
    _percent(axes)
    axes.grid(visible=False)
    panel.title(_TITLE)
    _legend(panel, reverse=True)


def _lines(panel: look.Panel, table: pd.DataFrame) -> None:
    for state in _ACTIVE:
        band = interval_band(table, f"share_{state.value}")
        draw_band(panel.axes, band, color=STATE_COLORS[state], label=state.value)
    panel.axes.set_ylim(bottom=0)
    _percent(panel.axes)
    panel.title(f"{_TITLE}, but for being idle")
    _legend(panel)


def _legend(panel: look.Panel, *, reverse: bool = False) -> None:
    if panel.is_narrow or not panel.is_new:
        panel.legend_below(2 if panel.is_narrow else 4, reverse=reverse)
    else:
        panel.legend_beside(reverse=reverse)


def _one_state(panel: look.Panel, groups: Sequence[Group], tables: Sequence[pd.DataFrame], state: AgentState) -> None:
    _curves(panel.axes, groups, tables, state, look.letters(panel.width, look.SMALL) // 2)
    _percent(panel.axes)
    panel.title(f"Share of agent-ticks in state {state.value}")
    if any(group.label for group in groups):
        panel.legend_below(1 if panel.is_narrow else 2)


def _curves(
    axes: Axes, groups: Sequence[Group], tables: Sequence[pd.DataFrame], state: AgentState, longest: int
) -> None:
    """Draw a line for each group; a single group has the state's colour."""
    names = look.short_labels([group.label for group in groups], longest)
    for place, (table, name) in enumerate(zip(tables, names, strict=True)):
        color = (
            look.GREY if state is AgentState.IDLE else STATE_COLORS[state]
        )  # the colour of idle is too light for a line
        color = look.series_color(place) if len(groups) > 1 else color
        draw_band(
            axes, interval_band(table, f"share_{state.value}"), color=color, label=name, ls=look.series_dashes(place)
        )
    axes.set_ylim(bottom=0)


def _panels(of: Drawable, groups: Sequence[Group], width: float) -> Figure:
    """Return a panel for each state, with a line for each group."""
    columns = 4 if width > look.WIDE * 0.75 else 2
    rows = -(-len(_ORDER) // columns)
    figure = look.new_figure(width, 3.5 * rows + 1.5 + 0.4 * len(groups))
    grid = figure.subplots(rows, columns, sharex=True)
    tables = [group.table("rounds", ["round", *_columns(_ORDER)]) for group in groups]
    for place, (axes, state) in enumerate(zip(grid.flat, STATE_COLORS, strict=True)):
        _curves(axes, groups, tables, state, look.letters(width) // 2)
        look.percent_axis(axes.yaxis)
        look.tidy(axes, state.value)
        if place // columns == rows - 1:
            rounds_axis(axes, most=5)
    if len(groups) > 1:
        n_columns = 1 if columns == 2 else min(len(groups), 3)
        look.figure_legend(figure, grid.flat[0], loc="outside upper left", ncols=n_columns)
    text = f"Shares of agent-ticks{of_agents(groups)} in each state, per round.{seeds_note(groups)}"
    look.write_caption(figure, text, width, of)
    return figure
