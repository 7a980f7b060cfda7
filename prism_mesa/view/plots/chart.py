"""The chart with its use: how often each transition was taken, and how long agents were in each state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from prism_mesa.errors import ChartError, DataError, counted
from prism_mesa.social.behavior import ROUND_ENDS, social_chart
from prism_mesa.statechart import STATE_COLORS, STATES, AgentState, Statechart
from prism_mesa.view.plots.rounds import of_agents
from prism_mesa.view.plots.sources import MOVES, Drawable, Group, LiveRun, RunTables, to_groups
from prism_mesa.view.plots.style import GREY, INK, NARROW, PAPER, SMALL, TEXT, WIDE, open_panel

type Pair = tuple[AgentState, AgentState]
type Boxes = Mapping[AgentState, FancyBboxPatch]

OPEN: Final = "#b34700"
"""Colour of what the guards left open."""

_PLACES: Final[Mapping[AgentState, tuple[float, float]]] = {
    AgentState.IDLE: (2.5, 7.0),
    AgentState.SCROLLING: (2.5, 5.6),
    AgentState.EVALUATING: (2.5, 3.7),
    AgentState.COMPOSING: (2.5, 1.9),
    AgentState.RESTING: (6.0, 5.6),
    AgentState.ENGAGING_LIKE: (6.0, 3.4),
    AgentState.ENGAGING_REPLY: (6.0, 1.9),
    AgentState.ENGAGING_RESHARE: (6.0, 0.45),
}
"""Middles of boxes, in centimetres of a narrow figure."""
_HALF: Final = (1.2, 0.38)
_SIZE: Final = (8.4, 7.5)
_SCROLL, _EVALUATE, _COMPOSE = AgentState.SCROLLING, AgentState.EVALUATING, AgentState.COMPOSING
_REST, _REPLY, _RESHARE = AgentState.RESTING, AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE
_ROUTES: Final[Mapping[Pair, tuple[float, float, float, float, float]]] = {
    (_SCROLL, _EVALUATE): (0.55, 0, 0.55, 0, 0),
    (_EVALUATE, _SCROLL): (-0.55, 0, -0.55, 0, 0),
    (_SCROLL, _COMPOSE): (_HALF[0], -0.25, _HALF[0], 0.2, -0.36),
    (_COMPOSE, _SCROLL): (-_HALF[0], 0, -_HALF[0], 0, -0.36),
    (_SCROLL, _REST): (0, 0.1, 0, 0.1, 0),
    (_REST, _SCROLL): (0, -0.1, 0, -0.1, 0),
    (_REPLY, _REST): (_HALF[0], 0, _HALF[0], -0.15, 0.3),
    (_RESHARE, _REST): (_HALF[0], 0, _HALF[0], 0.15, 0.3),
}
"""Where an arrow begins and ends, from the middles of its boxes, and how far it bends as a share of its length, to the
right if above 0; others go from middle to middle."""
_BESIDE: Final[Mapping[Pair, float]] = {(_SCROLL, _REST): 0.24, (_REST, _SCROLL): -0.24}
"""How far above its arrow a number stands that would hide it."""
_CORNER: Final = np.array([[0.8, 0.38], [1.2, 0.1]])
"""Where an arrow from a state to itself begins and ends."""
_BEND: Final = 0.3
"""Of an arrow without a route of its own that would cross a box."""
_MANY_SOURCES: Final = 4
"""A trigger that leads from so many states to one is a label without arrows; so is `round_ends`, always."""
_APART: Final = 0.3
"""How far an arrow without a route of its own moves to its right if another leads back, in centimetres."""
_THIN, _THICK = 0.6, 4.0


@dataclass(frozen=True)
class Taken:
    """Number of transitions between two states: all, and those that the guards left open; means over seeds."""

    n: float
    was_open: float


def chart_figure(of: Drawable, *, ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Return the states with the share of agent-ticks spent in each, and how often each transition was taken.

    Transitions that no agent took are dotted (for PRISM's chart only). A trigger that leads from four or more states
    to one is drawn as a label, and so is `round_ends`. If a live model records no transitions, the histories of its
    agents are counted.

    Args:
        of: A run, a live model, or runs of several seeds, whose means are drawn.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no transitions, or several groups of runs are given.
    """
    groups = to_groups(of)
    if len(groups) > 1:
        raise DataError(f"chart: {len(groups)} groups of runs given: this figure is of one: draw each by itself")
    group = groups[0]
    counts = _counts(group)
    moves, labels = _arrows_and_labels(counts, group.n_seeds)
    scale = min(1.4, max(1.0, width / NARROW))
    panel = open_panel(ax, width, height=_SIZE[1] * scale + 2.0)
    axes = panel.axes
    _prepare(axes, scale if ax is None else 1.0, width if ax is None else NARROW)
    boxes = _draw_boxes(axes, _shares(group), {state for pair in moves for state in pair})
    _draw_arrows(axes, boxes, moves, _never_taken(group.runs[0], moves, labels))
    for place in {target for _, target in labels}:
        into = {trigger: entry for (trigger, target), entry in labels.items() if target is place}
        lines = [f"{trigger}\nfrom {counted(n, 'state')}: {_short(count)}" for trigger, (n, count) in into.items()]
        _write_beside(axes, place, "\n".join(lines))
    panel.axes.set_title("How often each transition was taken", loc="left", fontsize=TEXT)
    panel.caption(
        _caption(group, sum(taken.n for taken in moves.values()) + sum(count for _, count in labels.values())), of
    )
    return panel.figure


def _counts(group: Group) -> pd.DataFrame:
    """Return numbers of transitions: columns `trigger`, `from_state`, `to_state`, `open`, `n`."""
    if group.has("transitions"):
        counts = group.counts("transitions", ["trigger", "from_state", "to_state", "open"])
    elif group.has(MOVES):
        counts = group.counts(MOVES, ["trigger", "from_state", "to_state"]).assign(open=False)
    else:
        raise DataError(f"{group.runs[0].name}: no transitions are recorded: there is nothing to draw")
    if counts.empty:
        raise DataError(f"{group.runs[0].name}: nobody has moved: there is nothing to draw")
    return counts


def _arrows_and_labels(
    counts: pd.DataFrame, n_seeds: int
) -> tuple[dict[Pair, Taken], dict[tuple[str, AgentState], tuple[int, float]]]:
    """Return the arrows, and the labels without arrows: (trigger, target) -> numbers of states and transitions."""
    sources = counts.groupby(["trigger", "to_state"])["from_state"].nunique()
    labels: dict[tuple[str, AgentState], tuple[int, float]] = {}
    moves: dict[Pair, Taken] = {}
    for row in counts.to_dict("records"):
        try:
            source, target = AgentState(row["from_state"]), AgentState(row["to_state"])
        except ChartError as error:
            raise DataError(f"table 'transitions': {error}") from None
        n, many = row["n"] / n_seeds, int(sources[row["trigger"], row["to_state"]])
        if many >= _MANY_SOURCES or row["trigger"] == ROUND_ENDS:
            before = labels.get((row["trigger"], target), (many, 0.0))[1]
            labels[row["trigger"], target] = (many, before + n)
        else:
            known = moves.get((source, target), Taken(0, 0))
            moves[source, target] = Taken(known.n + n, known.was_open + n * bool(row["open"]))
    return moves, labels


def _never_taken(
    run: RunTables, moves: Mapping[Pair, Taken], labels: Mapping[tuple[str, AgentState], Any]
) -> set[Pair]:
    """Return the arrows of the chart that no agent took; none if the chart is unknown."""
    params = run.config.get("statechart")
    chart: Statechart | None = run.model.chart if isinstance(run, LiveRun) else None
    if chart is None and isinstance(params, Mapping) and params.get("chart", "") is None:
        chart = social_chart
    if chart is None:
        return set()
    arrows = [t for t in chart.transitions if t.trigger != ROUND_ENDS and (t.trigger, t.target) not in labels]
    joined = {(t.source, t.target) for t in arrows if t.target}
    return {(source, target) for source, target in joined if (source, target) not in moves}


def _shares(group: Group) -> dict[AgentState, float]:
    """Return the share of agent-ticks in each state over all rounds and seeds; empty if rounds were not kept."""
    if not group.has("rounds"):
        return {}
    table = group.table("rounds", [f"share_{state.value}" for state in STATES])
    return {state: float(table[f"share_{state.value}"].mean()) for state in STATES}


def _prepare(axes: Axes, scale: float, width: float) -> None:
    """Centre the drawing, whose unit is a centimetre times `scale`, in axes of the given size in centimetres."""
    spare = max(0.0, (width - 0.3) / scale - _SIZE[0]) / 2
    axes.set(xlim=(-spare, _SIZE[0] + spare), ylim=(0, _SIZE[1]), aspect="equal")
    axes.axis("off")


def _draw_boxes(axes: Axes, shares: Mapping[AgentState, float], taken: set[AgentState]) -> Boxes:
    boxes = {}
    for state, (x, y) in _PLACES.items():
        corner, style = (x - _HALF[0], y - _HALF[1]), "round,pad=0,rounding_size=0.15"
        edge = GREY if state is AgentState.IDLE else STATE_COLORS[state]
        box = FancyBboxPatch(corner, 2 * _HALF[0], 2 * _HALF[1], style, fc=PAPER, ec=edge, lw=1.6, zorder=4)
        axes.add_patch(box)
        ink = INK if state in taken or shares.get(state) else GREY
        words = f"{state.value}\n{100 * shares[state]:.2g} %" if state in shares else state.value
        axes.text(x, y, words, ha="center", va="center", zorder=5, color=ink, fontsize=SMALL)
        boxes[state] = box
    return boxes


def _draw_arrows(axes: Axes, boxes: Boxes, moves: Mapping[Pair, Taken], never: set[Pair]) -> None:
    drawn = never | moves.keys()
    most = max((taken.n for taken in moves.values()), default=1.0)
    for pair in never:
        _arrow(axes, boxes, pair, {"lw": 0.8, "ls": ":", "color": GREY}, "0", "", apart=pair[::-1] in drawn)
    for pair, taken in moves.items():
        line = {"lw": _THIN + (_THICK - _THIN) * float(np.sqrt(taken.n / most)), "color": "#6b6b6b"}
        of_it = f"{_short(taken.was_open)} open" if taken.was_open else ""
        _arrow(axes, boxes, pair, line, _short(taken.n), of_it, apart=pair[::-1] in drawn)


def _arrow(axes: Axes, boxes: Boxes, pair: Pair, line: dict[str, Any], number: str, of_it: str, *, apart: bool) -> None:
    """Draw an arrow, off the middle if `apart`, with its count, and the count of open choices below."""
    start, end = (np.array(_PLACES[state]) for state in pair)
    bend = 0.0 if _is_free(pair) else _BEND
    patches: dict[str, Any] = {"patchA": boxes[pair[0]], "patchB": boxes[pair[1]]}
    if pair in _ROUTES:
        *ends, bend = _ROUTES[pair]
        start, end = start + ends[:2], end + ends[2:]
    elif pair[0] is pair[1]:
        start, end, bend, patches = start + _CORNER[0], start + _CORNER[1], -2.0, {}
    elif apart:
        right = _APART * np.array([(end - start)[1], (start - end)[0]]) / np.hypot(*(end - start))
        start, end = start + right, end + right
    if bend and pair in _ROUTES:
        patches = {}  # from edge to edge
    style: dict[str, Any] = {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 1, "shrinkB": 1}
    style |= {"mutation_scale": 7 + line["lw"], "arrowstyle": "-|>", "zorder": 2}
    axes.add_patch(FancyArrowPatch(tuple(start), tuple(end), **style, **patches, **line))
    along = end - start
    x, y = (start + end) / 2 + bend / 2 * np.array([along[1], -along[0]])
    y += _BESIDE.get(pair, 0.0)
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}
    text: dict[str, Any] = {"ha": "center", "fontsize": SMALL, "bbox": box, "zorder": 3}
    axes.text(x, y, number, va="bottom" if of_it else "center", color=INK if number != "0" else GREY, **text)
    if of_it:
        axes.text(x, y, of_it, va="top", color=OPEN, **text)


def _is_free(pair: Pair) -> bool:
    """Return whether the space between two boxes is free."""
    start, end = (np.array(_PLACES[state]) for state in pair)
    along = end - start
    for state, place in _PLACES.items():
        t = float(np.clip((np.array(place) - start) @ along / max(along @ along, 1e-9), 0, 1))
        if state not in pair and (np.abs(start + t * along - place) < _HALF).all():
            return False
    return True


def _write_beside(axes: Axes, target: AgentState, words: str) -> None:
    """Write beside a state which triggers lead to it from many states."""
    x, y = _PLACES[target][0] + _HALF[0], _PLACES[target][1]
    style: dict[str, Any] = {"arrowstyle": "-|>", "color": "#6b6b6b", "lw": 1.2}
    options: dict[str, Any] = {"va": "center", "fontsize": SMALL, "parse_math": False, "in_layout": False}
    axes.annotate(words, (x, y), (x + 0.6, y), arrowprops=style, **options)


def _short(count: float) -> str:
    """Format a count with about three digits.

    >>> [_short(n) for n in (0.4, 912, 12_345, 123_456, 1_234_567)]
    ['0.4', '912', '12,345', '123k', '1.23M']
    """
    if count < 10 and count != round(count):
        return f"{count:.1g}"
    if count < 99_950:
        return f"{count:,.0f}"
    return f"{count / 1e3:,.0f}k" if count < 999_500 else f"{count / 1e6:,.3g}M"


def _caption(group: Group, n: float) -> str:
    """Return a caption with the numbers of transitions and agents."""
    means = f", means over n = {group.n_seeds} seeds" if group.n_seeds > 1 else ""
    text = f"Transitions{of_agents([group])} (n = {_short(n)}{means}); in brown what the guards left open"
    if not group.has("transitions"):
        depth = next(run.model.history.depth for run in group.runs if isinstance(run, LiveRun))
        text = f"Transitions{of_agents([group])} (n = {_short(n)}), the last {depth} of each agent at most"
    return f"{text}. In boxes: share of agent-ticks. The thicker an arrow, the more often it was taken.{_sample(group)}"


def _sample(group: Group) -> str:
    """Return the number of agents whose transitions are recorded, if not all."""
    run = group.runs[0]
    if isinstance(run, LiveRun) or not group.has("agents"):
        return ""
    try:
        recorded = run.table("agents", ["recorded_transitions"])["recorded_transitions"]
    except DataError:  # from an older version
        return ""
    return (
        "" if recorded.all() else f" Transitions are recorded of {int(recorded.sum()):,} of {len(recorded):,} agents."
    )
