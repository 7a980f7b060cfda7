"""Pictures of a chart: a Mermaid diagram as text, and a figure without overlapping labels."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.entities import codepoint2name
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from prism_mesa.arrays import Floats, Mask
from prism_mesa.statechart.definition import TIMEOUT
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import Cell
from prism_mesa.statechart.statechart import Statechart
from prism_mesa.statechart.states import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

ASKED: Final = "oracle (LLM) is asked"
OVERLAP: Final = "oracle (LLM) is asked where guards overlap"
CODE: Final = "oracle (LLM) may be asked, guards are code"
_CHOICE: Final = "oracle_"
_START: Final = "[*]"
_MERMAID_WORDS: Final = frozenset("as class classdef default direction end note state style".split())
DISABLED: Final = "oracle disabled, the first option is taken"


@dataclass(frozen=True)
class Choice:
    """A choice that the chart may leave open; in a fork, all transitions have targets."""

    node: str
    cell: Cell
    legend: str
    is_fork: bool

    @property
    def options(self) -> tuple[State, ...]:
        """The options; only the first option if the oracle is disabled, because the chart then takes it."""
        return self.cell.targets[:1] if self.legend == DISABLED else self.cell.targets


def open_choices(chart: Statechart) -> dict[tuple[str, State], Choice]:
    """Return the choices that the chart may leave open, by trigger and state."""
    open_cells = {f.where for f in chart.check() if f.kind in ("open", "overlap")}
    choices: dict[tuple[str, State], Choice] = {}
    for trigger, state, cell in chart.all_cells():
        is_fork = all(t.target is not None for t in cell.candidates)
        if is_fork and (cell.label not in open_cells or len(cell.targets) < 2):
            continue
        legend = ASKED if chart.oracle_enabled else DISABLED
        if is_fork and cell.guards:
            legend = OVERLAP if all(isinstance(guard, Expression) for _, _, guard in cell.guards) else CODE
        choices[trigger, state] = Choice(f"{_CHOICE}{len(choices) + 1}", cell, legend, is_fork)
    return choices


def mermaid(chart: Statechart) -> str:
    """Return the chart as a Mermaid ``stateDiagram-v2``, one arrow per transition.

    An open choice is a ``<<choice>>`` named ``oracle_<i>``, with an arrow to each of its options. If guards overlap, or
    are code that may leave the choice open, the arrows of their transitions are also drawn.
    """
    choices = open_choices(chart)
    ids = {state: _mermaid_id(chart, state) for state in chart.ordered_states}
    lines = [line for node in chart.hierarchy.tops for line in _mermaid_states(chart, node, ids)]
    lines += [f"state {choice.node} <<choice>>" for choice in choices.values()]
    lines.append(f"{_START} --> {ids[chart.initial]}")
    for t in chart.transitions:
        trigger, guard = chart.label(t, " after agent.timeout_threshold")
        label = f"{trigger} [{guard}]" if guard else trigger
        if t.target is not None:
            source, target = t.placement.source or ids[t.source], t.placement.target or ids[t.target]
            lines.append(_mermaid_line(source, target, label))
        else:
            choice = choices[t.trigger, t.source]
            lines.append(_mermaid_line(ids[t.source], choice.node, label, f"/ {choice.legend}"))
    for (trigger, state), choice in choices.items():
        if choice.is_fork:
            lines.append(_mermaid_line(ids[state], choice.node, trigger, f"/ {choice.legend}"))
        lines += [_mermaid_line(choice.node, ids[option], "oracle") for option in choice.options]
    return "\n    ".join(["stateDiagram-v2", *dict.fromkeys(lines)]) + "\n"


def _mermaid_id(chart: Statechart, state: State) -> str:
    """Return the name of a state if Mermaid reads it as one, else an id by its code."""
    is_plain = re.fullmatch(r"[A-Za-z]\w*", state.value) and state.value.lower() not in _MERMAID_WORDS
    return str(state.value) if is_plain and not state.value.startswith(_CHOICE) else f"state_{chart.codes[state]}"


def _mermaid_states(chart: Statechart, node: Any, ids: dict[State, str]) -> list[str]:
    """Return the lines that declare a state, or a parent as a box with its states."""
    if not chart.hierarchy.is_parent(node):
        name = ids[node]
        return [name if name == node.value else f'state "{_mermaid_text(node.value)}" as {name}']
    children = [line for child in chart.hierarchy.children[node] for line in _mermaid_states(chart, child, ids)]
    history = "    %% with history" if node in chart.hierarchy.history else ""
    return [f"state {node} {{", *(f"    {line}" for line in children), f"}}{history}"]


def _mermaid_text(text: str) -> str:
    line = " ".join(text.split())
    return re.sub(r"[^\w .,()\[\]'=!/+-]", lambda c: f"#{codepoint2name.get(ord(c[0]), ord(c[0]))};", line)


def _mermaid_line(source: str, target: str, *parts: str) -> str:
    return f"{source} --> {target}: {_mermaid_text(' '.join(parts))}"


type Nodes = dict[str, Floats]
"""Boxes by name: x, y, half the width, half the height, in inches."""

_INK, _GREY, _ACCENT = "#222222", "#6f6f6f", "#d1610d"
_FILLS: Final = {ASKED: _ACCENT, OVERLAP: "#f7d3b5", CODE: "white", DISABLED: "#e3e3e3"}
_FONT: Final = 8.0
_SIZES: Final = (*np.arange(0.25, 2, 0.25), *np.arange(2, 6.5, 0.5))
_BENDS: Final = (0.0, *(sign * size for size in _SIZES for sign in (1, -1)))
_T: Final = np.linspace(0, 1, 401)[:, None]
_BEZIER: Final = np.hstack([(1 - _T) ** 3, 3 * _T * (1 - _T) ** 2, 3 * _T**2 * (1 - _T), _T**3])
_SPACING: Final = 0.05  # inches between the points of a curve
_STEP: Final = 3  # the distance between the points that are compared
_MIN_TWO_COLUMN_WIDTH: Final = 7.0  # in inches, for a legend with two columns


@dataclass
class _Arrow:
    """An arrow; `size` is half the label's width and height, and `points` lie on the curve."""

    source: str
    target: str
    color: str = _INK
    label: str = ""
    size: Floats = field(default_factory=lambda: np.zeros(2))
    points: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    label_position: Floats = field(default_factory=lambda: np.full(2, np.inf))


def _make_arrows(chart: Statechart, choices: dict[tuple[str, State], Choice]) -> list[_Arrow]:
    """Return the arrows; arrows of the same color between the same two nodes are merged."""
    arrows: dict[tuple[str, str, str], _Arrow] = {}

    def add_arrow(source: str, target: str, color: str, *parts: str) -> None:
        arrow = arrows.setdefault((source, target, color), _Arrow(source, target, color))
        label = "\n".join(re.sub(r" (and|or) ", r"\n\1 ", w) if len(w) > 44 else w for w in parts if w)
        if label not in arrow.label.split("\nor "):
            arrow.label += f"\nor {label}" if arrow.label else label

    notes = _trigger_notes(chart)
    add_arrow(_START, chart.initial.value, _INK)
    for t in chart.transitions:
        choice = choices.get((t.trigger, t.source))
        trigger, guard = chart.label(t)
        guard = guard and f"[{guard}]"
        if choice is not None and (choice.is_fork or t.target is None):
            add_arrow(t.source.value, choice.node, _ACCENT, trigger, "" if choice.is_fork else guard)
            if t.target is not None:
                add_arrow(choice.node, t.target.value, _ACCENT, guard)
        elif t.target is not None and t.trigger not in notes:
            add_arrow(t.source.value, t.target.value, _GREY if t.trigger == TIMEOUT else _INK, trigger, guard)
    for choice in choices.values():
        for option in () if choice.is_fork else choice.options:
            add_arrow(choice.node, option.value, _ACCENT)
    return list(arrows.values())


def _trigger_notes(chart: Statechart) -> dict[str, str]:
    """Return notes on unguarded triggers that lead from many states to the same state."""
    notes = {}
    for trigger, row in chart.cells.items():
        targets = {t.target for cell in row.values() for t in cell.candidates}
        target = targets.pop()
        if trigger == TIMEOUT or targets or target is None or any(cell.guards for cell in row.values()):
            continue
        names = ", ".join(state.value for state in chart.members if state in row)
        if set(row) == chart.states - {target}:
            names = "any active state" if target is chart.initial else f"any state but {target.value}"
        if len(row) > 3 or (len(row) == 3 and names.startswith("any ")):
            notes[trigger] = fill(f"{trigger}: {names} \u2192 {target.value}", 60)
    return notes


def _place_nodes(chart: Statechart, choices: dict[tuple[str, State], Choice], arrows: list[_Arrow]) -> Nodes:
    """Place all nodes: at the `position` of the states, or in layers from the initial state.

    Layers are better for few states, and if the chart does not begin in the first state.
    """
    positions: dict[State, tuple[float, float]] = {s: s.position for s in chart.states if hasattr(s, "position")}
    if len(chart.states) < 6 or chart.initial is not chart.ordered_states[0] or len(positions) < len(chart.states):
        positions = _layer_positions(chart, max(2.35, 0.5 + 2 * max(arrow.size[0] for arrow in arrows)))
    nodes = {state.value: np.array([*positions[state], 0.76, 0.22]) for state in chart.ordered_states}
    x, y = positions[chart.initial]
    nodes[_START] = np.array([x, y + 0.7, 0.07, 0.07])
    for (_, state), choice in choices.items():
        nodes[choice.node] = np.array([*_free_position(choice, nodes[state.value], nodes, arrows), 0.26, 0.26])
    return nodes


def _layer_positions(chart: Statechart, gap: float) -> dict[State, tuple[float, float]]:
    layers, remaining = [[chart.initial]], [s for s in chart.ordered_states if s is not chart.initial]
    while remaining:
        targets = {t.target for t in chart.transitions if t.source in layers[-1]}
        layers.append([s for s in remaining if s in targets] or remaining)
        remaining = [s for s in remaining if s not in layers[-1]]
    return {
        state: ((i - (len(layer) - 1) / 2) * gap, -1.9 * depth)
        for depth, layer in enumerate(layers)
        for i, state in enumerate(layer)
    }


def _free_position(choice: Choice, source: Floats, nodes: Nodes, arrows: list[_Arrow]) -> Floats:
    """Find a position near the source and the options, away from boxes and short straight lines."""
    end_points = np.array([source[:2], *(nodes[option.value][:2] for option in choice.options)])
    pairs = [(nodes[a.source], nodes[a.target]) for a in arrows if {a.source, a.target} <= set(nodes)]
    lines = [(start + (end - start) * _T[::8])[:, :2] for start, end in pairs if np.hypot(*(end - start)[:2]) < 3]
    occupied = np.vstack([*lines, end_points])

    def cost(position: Floats) -> float:
        distances = np.hypot(*(end_points - position).T)
        n_near = (np.hypot(*(occupied - position).T) < 0.7).sum()
        n_hits = _hits(position[None], _stack_boxes(nodes.values()), 0.5).sum()
        return float(distances.max() + 0.1 * distances.sum() + 0.3 * n_near + 9 * n_hits)

    angles = np.arange(12) * np.pi / 6
    return min((source[:2] + r * np.array([np.cos(a), np.sin(a)]) for r in (0.95, 1.8, 2.2) for a in angles), key=cost)


def _curve_points(nodes: Nodes, arrow: _Arrow, bend: float) -> Floats:
    """Return an arrow's points between its ends, bent to the left by `bend` inches."""
    ends = nodes[arrow.source], nodes[arrow.target]
    start, chord = ends[0][:2], (ends[1] - ends[0])[:2]
    loop = [(bend, 0.7), (bend, -0.7)] if bend > 0 else [(-0.7, bend / 2), (0.7, bend / 2)]
    steps = np.array([(0, 0), *loop, (0, 0)])
    if chord.any():
        side, along = bend * np.array([-chord[1], chord[0]]) / np.hypot(*chord), (0.25 - 0.09 * abs(bend)) * chord
        steps = np.array([0 * chord, along + side, chord - along + side, chord])
    points = np.asarray(start + _BEZIER @ steps)
    for name, box in zip((arrow.source, arrow.target), ends, strict=True):
        scaled = np.abs(points - box[:2]) / box[2:]
        is_box = not name.startswith((_CHOICE, _START))
        points = points[(scaled.max(1) if is_box else scaled.sum(1)) > 1]
    if len(points) < 2:
        return points
    length = np.append(0, np.hypot(*np.diff(points, axis=0).T).cumsum())
    grid = np.linspace(0, length[-1], int(length[-1] / _SPACING) + 2)
    return np.column_stack([np.interp(grid, length, points[:, 0]), np.interp(grid, length, points[:, 1])])


def _route_arrows(arrows: list[_Arrow], nodes: Nodes) -> None:
    """Find the best curve and label position for each arrow in turn, with all other arrows fixed."""
    curves: list[dict[float, Floats]] = [{} for _ in arrows]
    for arrow, cached_points in [*zip(arrows, curves, strict=True)] * 3:
        other_arrows = [a for a in arrows if a is not arrow]
        lines = np.pad(np.vstack([np.zeros((0, 2)), *(a.points[::_STEP] for a in other_arrows)]), ((0, 0), (0, 2)))
        labels = _stack_boxes(np.append(a.label_position, a.size) for a in other_arrows if a.label)
        ends = np.array([nodes[arrow.source], nodes[arrow.target]])
        other_boxes = _stack_boxes(box for name, box in nodes.items() if name not in (arrow.source, arrow.target))
        lowest_cost, stiffness = np.inf, 5 / (1 + np.hypot(*(ends[0] - ends[1])[:2]))
        for bend in _BENDS:
            if stiffness * abs(bend) > lowest_cost:
                continue
            if bend not in cached_points:
                cached_points[bend] = _curve_points(nodes, arrow, bend)
            points = cached_points[bend]
            if len(points) < 4:
                continue
            outside = points[::_STEP][~_hits(points[::_STEP], ends, 0.3).any(1)]
            cost = stiffness * abs(bend) + 6 * _hits(outside, lines, 0.14).any(1).sum()
            cost += 8 * _hits(points[::_STEP], labels, 0.06).sum() + 16 * _hits(outside, other_boxes, 0.12).sum()
            positions = points[np.linspace(len(points) * 0.12, len(points) * 0.8, 12).astype(int)]
            costs = cost + _label_costs(positions, arrow.size, points, lines, np.vstack([labels, other_boxes, ends]))
            if costs.min() < lowest_cost:
                lowest_cost, arrow.points, arrow.label_position = costs.min(), points, positions[costs.argmin()]


def _label_costs(positions: Floats, size: Floats, points: Floats, lines: Floats, boxes: Floats) -> Floats:
    if not size.any():
        return np.zeros(len(positions))
    hidden_share = _hits(positions, np.pad(points, ((0, 0), (0, 2))), size).mean(1)
    off_centre = np.hypot(*(positions - points[len(points) // 2]).T)
    n_boxes = _hits(positions, boxes, size + np.array([0.15, 0.06])).sum(1)
    overlap = 100 * n_boxes + 8 * _hits(positions, lines, size + 0.06).sum(1)
    return np.asarray(overlap + 40 * np.maximum(0, hidden_share - 0.5) + off_centre)


def _hits(points: Floats, boxes: Floats, margin: float | Floats = 0.0) -> Mask:
    """Return whether each point lies in each box widened by `margin`."""
    half_sizes = boxes[:, 2:] + margin
    in_x = np.abs(points[:, :1] - boxes[:, 0]) < half_sizes[:, 0]
    return np.asarray(in_x & (np.abs(points[:, 1:] - boxes[:, 1]) < half_sizes[:, 1]))


def _stack_boxes(boxes: Iterable[Floats]) -> Floats:
    return np.array([*boxes]).reshape(-1, 4)


def draw_chart(chart: Statechart, figure: "Figure | None" = None) -> "Figure":
    """Draw the chart with boxes, labelled arrows, dashed timeouts, and a diamond where the oracle is asked.

    Similar arrows between the same two boxes are merged. Arrows of guards that may overlap start at the diamond.
    Unguarded triggers that lead from many states to the same state are notes in the legend instead of arrows.

    Args:
        chart: The chart.
        figure: A figure to clear and draw into, at its size; by default a new one.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from prism_mesa.figure import NotebookFigure

    choices = open_choices(chart)
    arrows = _make_arrows(chart, choices)
    scratch_figure = Figure(dpi=100)
    for arrow in arrows:
        text = scratch_figure.text(0, 0, arrow.label, fontsize=_FONT, linespacing=1.1, parse_math=False)
        arrow.size = np.array(text.get_window_extent().size) / 200 * bool(arrow.label)
    nodes = _place_nodes(chart, choices, arrows)
    _route_arrows(arrows, nodes)
    legend = _legend(chart, {c.legend for c in choices.values()}, has_timeouts=any(a.color == _GREY for a in arrows))
    low, high = _figure_bounds(arrows, nodes, "\n".join(legend).count("\n") + 1)
    figure = NotebookFigure(figsize=tuple(high - low)) if figure is None else figure
    figure.clear()
    scale = float(min(figure.get_size_inches() / (high - low)))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    axes.axis("off")
    for arrow in arrows:
        _draw_arrow(axes, arrow, scale)
    for parent in chart.hierarchy.children:
        _draw_parent(axes, parent, _stack_boxes(nodes[leaf.value] for leaf in chart.hierarchy.leaves(parent)), scale)
    fills = {choice.node: _FILLS[choice.legend] for choice in choices.values()}
    for name, box in nodes.items():
        _draw_node(axes, name, box, fills.get(name, _INK), scale)
    handles = [Line2D([], [], label=label, **{"ls": "none"} | style) for label, style in legend.items()]
    columns = 1 if high[0] - low[0] < _MIN_TWO_COLUMN_WIDTH else 2
    axes.legend(handles=handles, loc="lower center", ncols=columns, fontsize=_FONT * scale, frameon=False)
    return figure


def _figure_bounds(arrows: list[_Arrow], nodes: Nodes, n_rows: int) -> tuple[Floats, Floats]:
    """Return the lower left and upper right corners of the figure, with room for the legend below."""
    labels = [np.append(arrow.label_position, arrow.size) for arrow in arrows if arrow.label]
    lines = [np.pad(arrow.points, ((0, 0), (0, 2))) for arrow in arrows]
    boxes = np.vstack([_stack_boxes(nodes.values()), *labels, *lines])
    low, high = (boxes[:, :2] - boxes[:, 2:]).min(0) - 0.15, (boxes[:, :2] + boxes[:, 2:]).max(0) + 0.15
    margin = max(0.0, 4.4 - (high - low)[0]) / 2
    rows = n_rows if high[0] - low[0] < _MIN_TWO_COLUMN_WIDTH else (n_rows + 1) // 2
    return low - np.array([margin, 0.3 + 0.2 * rows]), high + np.array([margin, 0])


def _legend(chart: Statechart, choice_legends: set[str], *, has_timeouts: bool) -> dict[str, dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {"initial state": {"marker": "o", "color": _INK}}
    if has_timeouts:
        entries["timeout, after agent.timeout_threshold ticks unless given"] = {"ls": "--", "color": _GREY}
    for choice_legend in sorted(choice_legends):
        entries[choice_legend] = {"marker": "D", "markerfacecolor": _FILLS[choice_legend], "markeredgecolor": _ACCENT}
    return entries | {note: {} for note in _trigger_notes(chart).values()}


def _draw_arrow(axes: "Axes", arrow: _Arrow, scale: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    color, points = arrow.color, arrow.points
    axes.plot(*points[:-1].T, color=color, lw=1.1 * scale, ls="--" if color == _GREY else "-", zorder=2)
    head = FancyArrowPatch(tuple(points[-4]), tuple(points[-1]), arrowstyle="-|>", shrinkA=0, shrinkB=0, color=color)
    head.set(linewidth=0, mutation_scale=11 * scale)
    axes.add_patch(head)
    if arrow.label:
        (x, y), box = arrow.label_position, {"facecolor": "white", "edgecolor": "none", "pad": scale}
        text = axes.text(x, y, arrow.label, ha="center", va="center", color=color, bbox=box, parse_math=False)
        text.set(fontsize=_FONT * scale, linespacing=1.1, zorder=3)


def _draw_parent(axes: "Axes", name: str, boxes: Floats, scale: float) -> None:
    """Draw a parent as a dashed box around the boxes of its states."""
    from matplotlib.patches import FancyBboxPatch

    low, high = (boxes[:, :2] - boxes[:, 2:]).min(0) - 0.12, (boxes[:, :2] + boxes[:, 2:]).max(0) + 0.12
    (x, y), (w, h) = low, high - low
    axes.add_patch(FancyBboxPatch((x, y), w, h, "round,pad=0,rounding_size=0.1", fc="none", ec=_GREY, ls=":"))
    axes.text(x, y, f" {name}", fontsize=_FONT * scale, color=_GREY, ha="left", va="top")


def _draw_node(axes: "Axes", name: str, box: Floats, fill_color: str, scale: float) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch, Polygon

    x, y, w, h = box
    if name == _START:
        axes.add_patch(Circle((x, y), w, color=_INK, zorder=4))
        return
    color, text, corners = "#14304d", name, "round,pad=0,rounding_size=0.14"
    shape: Patch = FancyBboxPatch((x - w, y - h), 2 * w, 2 * h, corners, fc="#eaf1f8", ec="#2f5d8a")
    if name.startswith(_CHOICE):
        shape = Polygon([(x - w, y), (x, y + h), (x + w, y), (x, y - h)], fc=fill_color, ec=_ACCENT)
        color, text = "white" if fill_color == _ACCENT else _ACCENT, "?"
    shape.set(linewidth=1.2 * scale, zorder=4, gid=f"state-{name}")  # pages find the box in the SVG by this id
    axes.add_patch(shape)
    axes.text(x, y, text, fontsize=9.5 * scale, color=color, ha="center", va="center", weight="bold", zorder=5)
