"""Figures of agents' states and opinions by round."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from prism_mesa.domain import SHARE, AgentState, color_order
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.params import short_repr
from prism_mesa.statechart.states import find_state
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.rounds import agents_note, draw_band, interval_band, rounds_axis, seeds_note
from prism_mesa.view.plots.sources import Drawable, Group, shared_interventions, single_run, to_groups

_TITLE: Final = "What agents are doing"


def states_figure(
    source: Drawable, *, state: AgentState | str | None = None, ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw the shares of agent-ticks in each state by round.

    The shares of one run are stacked, with idle on top. Several seeds or groups get a panel for each state (or only
    for `state`), with bands over seeds. With `ax`, all states but idle are drawn into your axes.

    Args:
        source: A run, a live model, runs of several seeds, a study's result, or several of these by label.
        state: The only state to draw; None for all.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no rounds to draw.
        ConfigError: If there is no such state, or `ax` is given for several groups without `state`.
    """
    groups = to_groups(source)
    is_stack = len(groups) == len(groups[0].runs) == 1
    if state is not None:
        return _one_state(groups, state, source, ax, width)
    if ax is None and not is_stack:
        return _state_panels(groups, source, width)
    if len(groups) > 1:
        raise ConfigError("states: several groups have a panel for each state: name one (state=...), or give no ax")
    title = _TITLE if is_stack else f"{_TITLE}, except being idle"
    panel = theme.open_panel(ax, width, title, legend_lines=4 if width < theme.WIDE * 0.75 else 0)
    states = _states(groups)
    axes, table = panel.axes, groups[0].table("rounds", ["round", *map(_column, states)])
    if is_stack:
        _draw_stack(axes, table, states[::-1])
    else:
        for layer in states[1:]:
            draw_band(axes, interval_band(table, _column(layer)), color=layer.color, label=layer.value)
        axes.set_ylim(bottom=0)
    if panel.is_narrow or not panel.is_new:
        panel.legend_below(2 if panel.is_narrow else 4, reverse=is_stack)
    else:
        theme.axes_legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=is_stack)
    axes.set_ylabel("share of agent-ticks")
    theme.percent_ticks(axes.yaxis)
    rounds_axis(axes, shared_interventions(groups))
    panel.caption(_caption(groups, "in each state" if is_stack else "in each state, the rest being idle"), source)
    return panel.figure


def _caption(groups: Sequence[Group], states: str) -> str:
    return f"Shares of agent-ticks{agents_note(groups)} {states}, per round.{seeds_note(groups)}"


def _states(groups: Sequence[Group]) -> list[AgentState]:
    """Return the states that all runs have, in the order of colours."""
    shared: Sequence[AgentState] = min((run.states for group in groups for run in group.runs), key=len)
    return color_order(shared)


def _column(state: AgentState) -> str:
    return f"{SHARE}{state.value}"


def _draw_stack(axes: Axes, table: pd.DataFrame, layers: Sequence[AgentState]) -> None:
    """Draw the shares of states, from the lowest layer to idle on top."""
    edges = [*(table["round"] - 0.5), table["round"].iloc[-1] + 0.5]
    steps = [[*table[column], table[column].iloc[-1]] for column in map(_column, layers)]
    colors, labels = [state.color for state in layers], [state.value for state in layers]
    axes.stackplot(edges, steps, step="post", colors=colors, labels=labels, lw=0)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1))
    axes.grid(visible=False)


def _one_state(
    groups: Sequence[Group], name: AgentState | str, source: Drawable, ax: Axes | None, width: float
) -> Figure:
    try:
        state = find_state(name, _states(groups))
    except ValueError as error:
        raise ConfigError(f"states: state={short_repr(name)}: {error}") from None
    title, legend_lines = f"Share of agent-ticks in state {state.value}", len(groups) if len(groups) > 1 else 0
    panel = theme.open_panel(ax, width, title, legend_lines=legend_lines)
    _draw_curves(panel.axes, groups, state, theme.letters(panel.width) // 2)
    panel.axes.set_ylabel("share of agent-ticks")
    rounds_axis(panel.axes, shared_interventions(groups))
    if any(group.label for group in groups):
        panel.legend_below(1 if panel.is_narrow else 2)
    panel.caption(_caption(groups, f"in state {state.value}"), source)
    return panel.figure


def _state_panels(groups: Sequence[Group], source: Drawable, width: float) -> Figure:
    columns = 4 if width > theme.WIDE * 0.75 else 2
    states = _states(groups)
    rows = -(-len(states) // columns)
    figure = theme.new_figure(width, 3.5 * rows + 1.5 + 0.4 * len(groups))
    grid = figure.subplots(rows, columns, sharex=True)
    for axes, state in zip(grid.flat, states, strict=False):
        _draw_curves(axes, groups, state, theme.letters(width) // 2)
        theme.tidy(axes, state.value)
    for axes in grid.flat[len(states) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        rounds_axis(axes, n_ticks=5)
    if len(groups) > 1:
        n_columns = 1 if columns == 2 else min(len(groups), 3)
        theme.figure_legend(figure, grid.flat[0], loc="outside upper left", ncols=n_columns)
    theme.write_caption(figure, _caption(groups, "in each state"), width, source)
    return figure


def _draw_curves(axes: Axes, groups: Sequence[Group], state: AgentState, label_letters: int) -> None:
    """Draw a line for each group; a single group has the state's colour."""
    labels = theme.short_labels([group.label for group in groups], label_letters)
    for index, (group, label) in enumerate(zip(groups, labels, strict=True)):
        color = theme.GREY if state is AgentState.IDLE else state.color  # idle is too light for a line
        color = theme.series_color(index) if len(groups) > 1 else color
        band = interval_band(group.table("rounds", ["round", _column(state)]), _column(state))
        draw_band(axes, band, color=color, label=label, ls=theme.series_dashes(index))
    axes.set_ylim(bottom=0)
    theme.percent_ticks(axes.yaxis)


def opinions_figure(source: Drawable, *, ax: Axes | None = None, width: float = theme.WIDE) -> Figure:
    """Draw the share of agents at each stance by round, shown as shades, and the mean stance.

    Args:
        source: A run in which opinions change.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If opinions do not change, or a table is damaged.
    """
    run = single_run(source)
    group = Group("", (run,))
    means, stances = group.table("opinions", ["round", "mean"]), group.table("stances", ["round", "stance", "agents"])
    if stances.duplicated(["round", "stance"]).any() or stances["stance"].nunique() < 2:
        raise DataError(f"{run.name}: table 'stances' does not have each part of the range once: it is damaged")
    panel = theme.open_panel(ax, width, "What agents hold")
    axes = panel.axes
    axes.grid(visible=False)
    counts = stances.pivot(index="stance", columns="round", values="agents")
    shares = (counts / counts.sum().clip(lower=1)).to_numpy(np.float64)
    middles, rounds = counts.index.to_numpy(), counts.columns.to_numpy()
    half_width = (middles[1] - middles[0]) / 2
    edges = [*(rounds - 0.5), rounds[-1] + 0.5], [*(middles - half_width), middles[-1] + half_width]
    norm = PowerNorm(0.5, 0, max(float(np.nanmax(shares)), 1e-9))
    image = axes.pcolormesh(*edges, shares, cmap="Blues", norm=norm, rasterized=True)
    axes.plot(means["round"], means["mean"], color=theme.INK, lw=1, label="mean")
    axes.set_ylim(edges[1][0], edges[1][-1])
    params = run.config.get("opinions")
    axes.set_ylabel(f"{params.get('of') if isinstance(params, Mapping) else None!s:.60}", parse_math=False)
    rounds_axis(axes, shared_interventions([group]))
    bar = panel.figure.colorbar(image, ax=axes)
    bar.set_label("share of agents", fontsize=theme.TEXT)
    bar.ax.tick_params(labelsize=theme.SMALL)
    theme.axes_legend(axes, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    n_agents = f"n = {int(counts.iloc[:, -1].sum()):,} in the last round"
    parts = f"{len(middles)} equal parts of the range; round -1 is the state before the first round"
    panel.caption(f"Shares of agents ({n_agents}) in {parts}.", source)
    return panel.figure
