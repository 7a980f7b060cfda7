"""Figures of the chart: how often each transition was taken, and the states of one agent over time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from prism_mesa.domain import SHARE, STATES, AgentState, color_order
from prism_mesa.errors import ChartError, DataError, did_you_mean, format_count, printable, shorten
from prism_mesa.params import short_repr
from prism_mesa.social.behavior import ROUND_ENDS, social_chart
from prism_mesa.statechart.states import find_state
from prism_mesa.view.plots.rounds import agents_note, rounds_axis
from prism_mesa.view.plots.sources import MOVES, Drawable, Group, OneRun, RunTables, single_run, to_groups
from prism_mesa.view.plots.style import GREY, INK, NARROW, PAPER, SMALL, WIDE, open_panel

type Pair = tuple[AgentState, AgentState]
type Moves = Mapping[Pair, tuple[float, float]]
"""Mean numbers of transitions between two states over seeds: all transitions, and only open choices."""
type Boxes = Mapping[AgentState, FancyBboxPatch]

OPEN: Final = "#b34700"
"""Colour of choices that the guards left open."""
_ARROW: Final = "#6b6b6b"

_CENTERS: Final[Mapping[AgentState, tuple[float, float]]] = {
    AgentState.IDLE: (2.5, 7.0),
    AgentState.SCROLLING: (2.5, 5.6),
    AgentState.EVALUATING: (2.5, 3.7),
    AgentState.COMPOSING: (2.5, 1.9),
    AgentState.RESTING: (6.0, 5.6),
    AgentState.ENGAGING_LIKE: (6.0, 3.4),
    AgentState.ENGAGING_REPLY: (6.0, 1.9),
    AgentState.ENGAGING_RESHARE: (6.0, 0.45),
}
"""Centres of boxes, in centimetres of a narrow figure."""
_HALF_SIZE: Final = (1.2, 0.38)  # half the width and height of a box
_SIZE: Final = (8.4, 7.5)
_MORE_STEP: Final = 2.6
_SCROLL, _EVALUATE, _COMPOSE = AgentState.SCROLLING, AgentState.EVALUATING, AgentState.COMPOSING
_REST, _REPLY, _RESHARE = AgentState.RESTING, AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE
_ROUTES: Final[Mapping[Pair, tuple[float, float, float, float, float]]] = {
    (_SCROLL, _EVALUATE): (0.55, 0, 0.55, 0, 0),
    (_EVALUATE, _SCROLL): (-0.55, 0, -0.55, 0, 0),
    (_SCROLL, _COMPOSE): (_HALF_SIZE[0], -0.25, _HALF_SIZE[0], 0.2, -0.36),
    (_COMPOSE, _SCROLL): (-_HALF_SIZE[0], 0, -_HALF_SIZE[0], 0, -0.36),
    (_SCROLL, _REST): (0, 0.1, 0, 0.1, 0),
    (_REST, _SCROLL): (0, -0.1, 0, -0.1, 0),
    (_REPLY, _REST): (_HALF_SIZE[0], 0, _HALF_SIZE[0], -0.15, 0.3),
    (_RESHARE, _REST): (_HALF_SIZE[0], 0, _HALF_SIZE[0], 0.15, 0.3),
}
"""Start and end of an arrow, relative to the centres of its boxes, and its bend to the right, as a share of its length.
Other arrows connect the centres."""
_COUNT_SHIFT: Final[Mapping[Pair, float]] = {(_SCROLL, _REST): 0.24, (_REST, _SCROLL): -0.24}
"""Distance of a count above its arrow, for counts that would hide the arrow."""
_LOOP: Final = np.array([[0.8, 0.38], [1.2, 0.1]])
"""Start and end of an arrow from a state to itself."""
_BEND: Final = 0.3
"""Bend of an arrow without a route, if a straight line would cross a box."""
_MANY_SOURCES: Final = 4
"""A trigger that leads from this many states to one is drawn as a label without arrows, as is `round_ends`."""
_PAIR_SHIFT: Final = 0.3
"""Shift to the right of an arrow without a route if another arrow leads back, in centimetres."""
_THIN, _THICK = 0.6, 4.0


def chart_figure(source: Drawable, *, ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Draw the states with the share of agent-ticks spent in each, and how often each transition was taken.

    Transitions that no agent took are dotted (for PRISM's chart only). A trigger that leads from four or more states
    to one is drawn as a label, and so is `round_ends`. If a live model records no transitions, the histories of its
    agents are counted.

    Args:
        source: A run, a live model, or runs of several seeds, whose means are drawn.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no transitions, or several groups of runs are given.
    """
    groups = to_groups(source)
    if len(groups) > 1:
        raise DataError(f"chart: {len(groups)} groups of runs given: draw each in its own figure")
    group = groups[0]
    counts = _counts(group)
    states = group.runs[0].states
    moves, labels = _arrows_and_labels(counts, states)
    scale = min(1.4, max(1.0, width / NARROW))
    panel = open_panel(ax, width, "How often each transition was taken", height=_SIZE[1] * scale + 2.0)
    axes = panel.axes
    # a unit of the drawing is a centimetre times the scale
    margin = max(0.0, ((width - 0.3) / scale if ax is None else NARROW - 0.3) - _SIZE[0]) / 2
    right = _SIZE[0] + _MORE_STEP * max(0, len(states) - len(STATES) - 1)
    axes.set(xlim=(-margin, right + margin), ylim=(0, _SIZE[1]), aspect="equal")
    axes.axis("off")
    boxes = _draw_boxes(axes, group, {state for pair in moves for state in pair}, states)
    _draw_arrows(axes, boxes, moves, _untaken_pairs(group.runs[0], moves, set(labels.index)))
    for target, rows in labels.groupby("to_state"):
        lines = [
            f"{row.Index[0]}\nfrom {format_count(row.sources, 'state')}: {compact_count(row.n)}"
            for row in rows.itertuples()
        ]
        _draw_label(axes, find_state(target, states), "\n".join(lines))
    panel.caption(_caption(group, counts["n"].sum()), source)
    return panel.figure


def _counts(group: Group) -> pd.DataFrame:
    """Return mean numbers of transitions over seeds: columns `trigger`, `from_state`, `to_state`, `open`, `n`."""
    if group.has("transitions"):
        counts = group.count_rows("transitions", ["trigger", "from_state", "to_state", "open"])
    elif group.has(MOVES):
        counts = group.count_rows(MOVES, ["trigger", "from_state", "to_state"]).assign(open=False)
    else:
        raise DataError(f"{group.runs[0].name}: no transitions are recorded: there is nothing to draw")
    if counts.empty:
        raise DataError(f"{group.runs[0].name}: no agent has moved: there is nothing to draw")
    return counts.assign(n=counts["n"] / len(group.runs))


def _arrows_and_labels(counts: pd.DataFrame, states: Sequence[AgentState]) -> tuple[Moves, pd.DataFrame]:
    """Return the arrows, and the labels by `trigger` and `to_state`: columns `sources` (states) and `n`."""
    by_trigger = counts.groupby(["trigger", "to_state"], observed=True)
    labels = by_trigger.agg(sources=("from_state", "nunique"), n=("n", "sum"))
    labels = labels[(labels["sources"] >= _MANY_SOURCES) | (labels.index.get_level_values(0) == ROUND_ENDS)]
    is_label = pd.MultiIndex.from_frame(counts[["trigger", "to_state"]]).isin(labels.index)
    arrows = counts[~is_label].assign(n_open=lambda rows: rows["n"].where(rows["open"].astype(bool), 0.0))
    sums = arrows.groupby(["from_state", "to_state"], observed=True, sort=False)[["n", "n_open"]].sum()
    try:
        moves = {
            (find_state(start, states), find_state(end, states)): (n, n_open)
            for (start, end), n, n_open in sums.itertuples()
        }
    except ChartError as error:
        raise DataError(f"table 'transitions': {error}") from None
    return moves, labels


def _untaken_pairs(run: RunTables, moves: Moves, labels: set[tuple[str, str]]) -> set[Pair]:
    """Return the arrows of the chart that no agent took; an empty set if the chart is unknown."""
    params = run.config.get("statechart")
    is_default = isinstance(params, Mapping) and params.get("chart", "") is None
    chart = run.model.chart if run.model is not None else social_chart if is_default else None
    if chart is None:
        return set()
    arrows = [(t.trigger, t.source, t.target) for t in chart.transitions if t.target and t.trigger != ROUND_ENDS]
    return {(source, end) for trigger, source, end in arrows if (trigger, end.value) not in labels} - moves.keys()


def _draw_boxes(axes: Axes, group: Group, used: set[AgentState], states: Sequence[AgentState]) -> Boxes:
    """Draw the states, with the share of agent-ticks over all rounds and seeds if rounds were kept."""
    columns = {state: SHARE + state.value for state in states}
    shares = group.table("rounds", list(columns.values())).mean() if group.has("rounds") else {}
    boxes = {}
    for state in states:
        x, y = _center(state)
        corner, style = (x - _HALF_SIZE[0], y - _HALF_SIZE[1]), "round,pad=0,rounding_size=0.15"
        edge = GREY if state is AgentState.IDLE else state.color
        box = FancyBboxPatch(corner, 2 * _HALF_SIZE[0], 2 * _HALF_SIZE[1], style, fc=PAPER, ec=edge, lw=1.6, zorder=4)
        axes.add_patch(box)
        share = shares.get(columns[state])
        text = state.value if share is None else f"{state.value}\n{100 * share:.2g} %"
        color = INK if state in used or share else GREY
        axes.text(x, y, text, ha="center", va="center", zorder=5, color=color, fontsize=SMALL)
        boxes[state] = box
    return boxes


def _center(state: AgentState) -> tuple[float, float]:
    """Return the centre of a state's box; more states stand in a row between resting and the engagements."""
    return _CENTERS.get(state) or (6.0 + _MORE_STEP * (state.code - len(STATES)), 4.5)


def _draw_arrows(axes: Axes, boxes: Boxes, moves: Moves, untaken: set[Pair]) -> None:
    arrows = untaken | moves.keys()
    largest = max((n for n, _ in moves.values()), default=1.0)
    for pair in untaken:
        x, y = _draw_arrow(axes, boxes, pair, pair[::-1] in arrows, lw=0.8, ls=":", color=GREY)
        _draw_count(axes, x, y, "0", GREY, "center")
    for pair, (n, n_open) in moves.items():
        thickness = _THIN + (_THICK - _THIN) * float(np.sqrt(n / largest))
        x, y = _draw_arrow(axes, boxes, pair, pair[::-1] in arrows, lw=thickness, color=_ARROW)
        _draw_count(axes, x, y, compact_count(n), INK, "bottom" if n_open else "center")
        if n_open:
            _draw_count(axes, x, y, f"{compact_count(n_open)} open", OPEN, "top")


def _draw_count(axes: Axes, x: float, y: float, text: str, color: str, va: str) -> None:
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}
    axes.text(x, y, text, va=va, ha="center", color=color, fontsize=SMALL, bbox=box, zorder=3)


def _draw_arrow(
    axes: Axes, boxes: Boxes, pair: Pair, has_opposite: bool, *, lw: float, **line: Any
) -> tuple[float, float]:
    """Draw an arrow, shifted if another arrow leads back, and return the position of its count."""
    start, end = (np.array(_center(state)) for state in pair)
    bend = 0.0 if _is_unobstructed(pair) else _BEND
    patches: dict[str, Any] = {"patchA": boxes[pair[0]], "patchB": boxes[pair[1]]}
    if pair in _ROUTES:
        *offsets, bend = _ROUTES[pair]
        start, end = start + offsets[:2], end + offsets[2:]
        patches = {} if bend else patches  # a bent route goes from edge to edge
    elif pair[0] is pair[1]:
        start, end, bend, patches = start + _LOOP[0], start + _LOOP[1], -2.0, {}
    elif has_opposite:
        shift = _PAIR_SHIFT * np.array([(end - start)[1], (start - end)[0]]) / np.hypot(*(end - start))
        start, end = start + shift, end + shift
    style: dict[str, Any] = {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 1, "shrinkB": 1, "arrowstyle": "-|>"}
    style |= {"mutation_scale": 7 + lw, "lw": lw, "zorder": 2}
    axes.add_patch(FancyArrowPatch(tuple(start), tuple(end), **style, **patches, **line))
    direction = end - start
    x, y = (start + end) / 2 + bend / 2 * np.array([direction[1], -direction[0]])
    return x, y + _COUNT_SHIFT.get(pair, 0.0)


def _is_unobstructed(pair: Pair) -> bool:
    start, end = (np.array(_center(state)) for state in pair)
    direction = end - start
    for state in {*_CENTERS, *pair}:
        center = _center(state)
        t = float(np.clip((np.array(center) - start) @ direction / max(direction @ direction, 1e-9), 0, 1))
        if state not in pair and (np.abs(start + t * direction - center) < _HALF_SIZE).all():
            return False
    return True


def _draw_label(axes: Axes, target: AgentState, text: str) -> None:
    """Write the triggers that lead from many states to one next to that state."""
    x, y = _center(target)[0] + _HALF_SIZE[0], _center(target)[1]
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": _ARROW, "lw": 1.2}
    options: dict[str, Any] = {"va": "center", "fontsize": SMALL, "parse_math": False, "in_layout": False}
    axes.annotate(text, (x, y), (x + 0.6, y), arrowprops=arrow, **options)


def compact_count(count: float) -> str:
    """Format a count with about three digits.

    >>> [compact_count(n) for n in (0.4, 912, 12_345, 123_456, 1_234_567)]
    ['0.4', '912', '12,345', '123k', '1.23M']
    """
    if count < 10 and count != round(count):
        return f"{count:.1g}"
    if count < 99_950:
        return f"{count:,.0f}"
    return f"{count / 1e3:,.0f}k" if count < 999_500 else f"{count / 1e6:,.3g}M"


def _caption(group: Group, n: float) -> str:
    """Return a caption with the numbers of transitions and agents, and of recorded agents if not all are."""
    run, sample_note = group.runs[0], ""
    means = f", means over n = {len(group.runs)} seeds" if len(group.runs) > 1 else ""
    count = f"Transitions{agents_note([group])} (n = {compact_count(n)}{means})"
    if run.model is not None and not group.has("transitions"):
        text = f"{count}, the last {run.model.history.depth} of each agent at most"
    else:
        text = f"{count}; open choices, which the guards did not settle, in brown"
    if run.model is None and group.has("agents"):
        recorded = run.table("agents", ["recorded_transitions"])["recorded_transitions"]
        n_recorded, n_agents = int(recorded.sum()), len(recorded)
        sample_note = "" if recorded.all() else f" Transitions are recorded for {n_recorded:,} of {n_agents:,} agents."
    return f"{text}. In boxes: share of agent-ticks. The thicker an arrow, the more often it was taken.{sample_note}"


def timeline_figure(
    source: OneRun,
    agent: int | str,
    *,
    rounds: tuple[int, int] | None = None,
    ax: Axes | None = None,
    width: float = WIDE,
) -> Figure:
    """Draw the states of one agent over time, with a row for each state and a mark at each open choice.

    Args:
        source: A run, or a live model that records transitions.
        agent: The agent's row, id or name.
        rounds: The first and last round to show; None for all.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is no such agent, its transitions were not recorded, or there are none in these rounds.
    """
    run = single_run(source)
    row, name = _find_agent(run, agent)
    first, last = rounds or run.table("rounds", ["round"])["round"].agg(["min", "max"]).tolist()
    moves = run.table("transitions", ["round", "tick", "agent", "from_state", "to_state", "open"])
    moves = moves[(moves["agent"] == row) & moves["round"].between(first, last)]
    if moves.empty:
        raise DataError(f"{run.name}: agent {row} did nothing in these rounds: nothing to draw")
    moves = moves.sort_values(["round", "tick"], kind="stable")
    n_ticks = max(1, int(run.table("ticks", ["tick"])["tick"].max()))
    times = (moves["round"] + moves["tick"].clip(upper=n_ticks) / (n_ticks + 1)).to_numpy(np.float64)
    panel = open_panel(ax, width, f"{shorten(printable(name), 40)}, agent {row}", height=6.6 if width > 12 else 7.4)
    axes = panel.axes
    states = [find_state(state, run.states) for state in (moves["from_state"].iloc[0], *moves["to_state"])]
    state_rows = color_order(run.states)
    edges = np.array([first, *times, last + 1], np.float64)
    for height, state in enumerate(state_rows):
        spans = [(edges[n], edges[n + 1] - edges[n]) for n, entered in enumerate(states) if entered is state]
        axes.broken_barh(spans, (height - 0.36, 0.72), color=state.color, lw=0.6)
    is_open, decider = moves["open"].to_numpy(bool), f"decided by {shorten(run.decided_by, 50)}"
    heights = np.array([state_rows.index(state) for state in states[1:]])
    marks: dict[str, Any] = {"color": INK, "ms": 3.5, "mfc": "white", "mew": 0.9, "clip_on": False}
    axes.plot(times[is_open], heights[is_open], "D", label=f"open choice, {decider}", **marks)
    axes.set_yticks(range(len(state_rows)), [state.value.replace("_", " ") for state in state_rows])
    axes.set(xlim=(first, last + 1), ylim=(-0.6, len(state_rows) - 0.4))
    axes.grid(visible=False, axis="y")
    rounds_axis(axes)
    if n_open := int(is_open.sum()):
        panel.legend_below(1)
    span_text = f"round {first:,}, of" if first == last else f"rounds {first:,} to {last:,}, each of"
    choices = f"{'an open choice' if n_open == 1 else 'open choices'}{f', {decider}' if n_open else ''}"
    span = f"States of one agent in {span_text} {format_count(n_ticks, 'tick')}"
    panel.caption(f"{span}: n = {format_count(len(moves), 'transition')}, {n_open:,} of them {choices}.", source)
    return panel.figure


def _find_agent(run: RunTables, agent: int | str) -> tuple[int, str]:
    agents = run.table("agents", ["agent", "id", "name", "recorded_transitions"])
    for column in ("agent", "id", "name"):
        matches: pd.DataFrame = agents[agents[column].astype(str) == str(agent)]
        if len(matches) > 1:
            rows = ", ".join(map(str, matches["agent"].tolist()[:6]))
            raise DataError(f"{run.name}: several agents are called {short_repr(agent)}: give the row, one of {rows}")
        for row, name, is_recorded in matches[["agent", "name", "recorded_transitions"]].itertuples(index=False):
            if not is_recorded:
                raise DataError(f"{run.name}: transitions of agent {row} were not recorded (records.transitions)")
            return int(row), str(name)
    hint = did_you_mean(str(agent), agents["name"].astype(str).tolist())
    allowed = f"give a row from 0 to {len(agents) - 1}, an id or a name"
    raise DataError(f"{run.name}: no agent {short_repr(agent)}: {allowed}.{hint}")
