"""What agents are doing, round by round."""

from collections.abc import Sequence
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import ConfigError
from prism_mesa.params import shown
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots.rounds import agents_in_words, draw_band, interval_band, rounds_axis, seeds_in_words
from prism_mesa.view.plots.sources import Drawable, Group, groups_of, interventions_of
from prism_mesa.view.plots.style import (
    CM,
    GREY,
    SMALL,
    TEXT,
    WIDE,
    Panel,
    color_of,
    dashes_of,
    labels_of,
    letters,
    new_figure,
    open_panel,
    percent_axis,
    tidy,
    tidy_legend,
)

_ORDER: Final = tuple(STATE_COLORS)[::-1]
_ACTIVE: Final = tuple(state for state in STATE_COLORS if state is not AgentState.IDLE)
_TITLE: Final = "What agents are doing"


def states_figure(
    of: Drawable, *, state: AgentState | str | None = None, ax: Axes | None = None, width: float = WIDE
) -> Figure:
    """Return the shares of agent-ticks in each state, round by round.

    Of one run they are stacked, idle on top. Of several seeds, or groups of runs, there is a panel for each state, or
    one for the state that is named, with bands over seeds; into `ax` go all states but idle, which is the rest.

    Args:
        of: A run, a live model, runs of several seeds, a study's result, or several of these by label.
        state: The only state that is drawn.
        ax: Axes to draw into; None: a new figure.
        width: Of a new figure, in centimetres.

    Raises:
        DataError: If there are no rounds to draw.
        ConfigError: If there is no such state, or `ax` is given for several groups without `state`.
    """
    groups = groups_of(of)
    one = None if state is None else _state(state)
    if one is None and ax is None and (len(groups) > 1 or groups[0].n_seeds > 1):
        return _panels(of, groups, width)
    if one is None and len(groups) > 1:
        told = "several groups of runs have a panel for each state"
        raise ConfigError(f"states: {told}: name one (state=...), or give no ax")
    lines = (0 if one else 4) if width < WIDE * 0.75 else 0
    panel = open_panel(ax, width, legend_lines=len(groups) if len(groups) > 1 else lines)
    tables = [group.table("rounds", ["round", *_columns([one] if one else _ORDER)]) for group in groups]
    if one is not None:
        _one_state(panel, groups, tables, one)
    elif groups[0].n_seeds == 1:
        _stack(panel, tables[0])
    else:
        _lines(panel, tables[0])
    rounds_axis(panel.axes, interventions_of(groups))
    what = f"in state {one.value}" if one else "in each state"
    rest = ", idle being the rest" if one is None and groups[0].n_seeds > 1 else ""
    told = f"Shares of agent-ticks{agents_in_words(groups)} {what}{rest}, per round.{seeds_in_words(groups)}"
    panel.caption(told, of)
    return panel.figure


def _state(state: AgentState | str) -> AgentState:
    try:
        return AgentState(state)
    except ValueError as error:
        raise ConfigError(f"states: state={shown(state)}: {error}") from None


def _columns(states: Sequence[AgentState]) -> list[str]:
    return [f"share_{state.value}" for state in states]


def _percent(axes: Axes, name: str = "share of agent-ticks") -> None:
    axes.set_ylabel(name, fontsize=TEXT)
    percent_axis(axes.yaxis)


def _stack(panel: Panel, table: pd.DataFrame) -> None:
    axes = panel.axes
    shares = table[_columns(_ORDER)].to_numpy().T
    edges = [*(table["round"] - 0.5), table["round"].iloc[-1] + 0.5]
    steps = [[*row, row[-1]] for row in shares]
    colors, labels = [STATE_COLORS[one] for one in _ORDER], [one.value for one in _ORDER]
    axes.stackplot(edges, steps, step="post", colors=colors, labels=labels, lw=0)
    axes.set(xlim=(edges[0], edges[-1]), ylim=(0, 1))
    _percent(axes)
    axes.grid(visible=False)
    panel.title(_TITLE)
    _legend(panel, reverse=True)


def _lines(panel: Panel, table: pd.DataFrame) -> None:
    for state in _ACTIVE:
        band = interval_band(table, f"share_{state.value}")
        draw_band(panel.axes, band, color=STATE_COLORS[state], label=state.value)
    panel.axes.set_ylim(bottom=0)
    _percent(panel.axes)
    panel.title(f"{_TITLE}, but for being idle")
    _legend(panel)


def _legend(panel: Panel, *, reverse: bool = False) -> None:
    if panel.is_narrow or not panel.own:
        panel.legend_below(2 if panel.is_narrow else 4, reverse=reverse)
    else:
        panel.legend_beside(reverse=reverse)


def _one_state(panel: Panel, groups: Sequence[Group], tables: Sequence[pd.DataFrame], state: AgentState) -> None:
    _curves(panel.axes, groups, tables, state, letters(panel.width, SMALL) // 2)
    _percent(panel.axes)
    panel.title(f"Share of agent-ticks in state {state.value}")
    if any(group.label for group in groups):
        panel.legend_below(1 if panel.is_narrow else 2)


def _curves(
    axes: Axes, groups: Sequence[Group], tables: Sequence[pd.DataFrame], state: AgentState, longest: int
) -> None:
    """Draw a line for each group; a single one has the state's colour."""
    names = labels_of([group.label for group in groups], longest)
    for place, (table, name) in enumerate(zip(tables, names, strict=True)):
        own = GREY if state is AgentState.IDLE else STATE_COLORS[state]  # its own is too light for a line
        color = color_of(place) if len(groups) > 1 else own
        draw_band(axes, interval_band(table, f"share_{state.value}"), color=color, label=name, ls=dashes_of(place))
    axes.set_ylim(bottom=0)


def _panels(of: Drawable, groups: Sequence[Group], width: float) -> Figure:
    """Return a panel for each state, in which each group has a line."""
    columns = 4 if width > WIDE * 0.75 else 2
    rows = -(-len(_ORDER) // columns)
    figure = new_figure(width, 3.5 * rows + 1.5 + 0.4 * len(groups))
    grid = figure.subplots(rows, columns, sharex=True)
    tables = [group.table("rounds", ["round", *_columns(_ORDER)]) for group in groups]
    for place, (axes, state) in enumerate(zip(grid.flat, STATE_COLORS, strict=True)):
        _curves(axes, groups, tables, state, letters(width) // 2)
        percent_axis(axes.yaxis)
        tidy(axes, state.value)
        if place // columns == rows - 1:
            rounds_axis(axes, most=5)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    if len(groups) > 1:
        options = {"ncols": 1 if columns == 2 else min(len(labels), 3), "frameon": False, "fontsize": SMALL}
        tidy_legend(figure.legend(handles, labels, loc="outside upper left", **options))
    text = f"Shares of agent-ticks{agents_in_words(groups)} in each state, per round.{seeds_in_words(groups)}"
    Panel(figure, grid.flat[0], True, figure.get_figwidth() / CM).caption(text, of)
    return figure
