"""The view of the network: laid out once, recoloured each round; large networks are sampled."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from reacton.core import use_memo
from reacton.ipyvuetify import Html
from scipy.ndimage import map_coordinates
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.domain import color_order, states_in
from prism_mesa.errors import format_count, shorten
from prism_mesa.streams import Streams
from prism_mesa.view.page.source import ABSENT, AgentAttribute, Follows, Source
from prism_mesa.view.page.widgets import NEUTRAL, PALETTE, Json, encoded, pack_nodes, show_graph, show_inputs, view_card

MAX_AGENTS: Final = 5000  # larger networks are sampled evenly
MAX_FOLLOWS: Final = 12_000  # a larger number of follows is sampled evenly
_LAYOUT_STEPS: Final = 120
_GRID: Final = 64
_GOLDEN_ANGLE: Final = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class NetworkLayout:
    """The rows of the agents to draw, ascending, and their positions, shape (len(agents), 2), each in -1..1."""

    agents: Ints
    points: Floats


def lay_out(follows: Follows) -> NetworkLayout:
    """Place agents so that those who follow each other are close.

    Follows attract agents, and agents repel each other, with the forces of Fruchterman and Reingold (1991,
    doi:10.1002/spe.4380211102). The repulsion is computed on a grid, so the time grows linearly with the number of
    agents. The same network always gives the same layout.
    """
    agents = np.arange(len(follows.followers))
    if len(agents) > MAX_AGENTS:
        agents = np.sort(np.argsort(Streams(0).uniform("agents drawn", agents), kind="stable")[:MAX_AGENTS])
    src, dst = sample_follows(agents, follows, 4 * MAX_FOLLOWS)
    return NetworkLayout(agents, _find_equilibrium(src, dst, follows.followers[agents]))


def sample_follows(agents: Rows, follows: Follows, limit: int = MAX_FOLLOWS) -> tuple[Rows, Rows]:
    """Return follows between drawn agents, as indices into `agents`; above `limit`, an even sample."""
    index = np.full(len(follows.followers), -1, np.int64)
    index[agents] = np.arange(len(agents))
    src, dst = index[follows.src], index[follows.dst]
    is_drawn = (src >= 0) & (dst >= 0)
    src, dst = src[is_drawn], dst[is_drawn]
    if len(src) > limit:
        draws = Streams(0).uniform("follows drawn", agents[dst], index=agents[src].astype(np.uint64))
        is_kept = draws < limit / len(src)
        src, dst = src[is_kept], dst[is_kept]
    return src, dst


def _find_equilibrium(src: Rows, dst: Rows, followers: Rows) -> Floats:
    """Return the positions at which attraction and repulsion balance, in -1..1."""
    n = len(followers)
    order = np.argsort(-followers, kind="stable")
    points = np.empty((n, 2))
    angle, radius = _GOLDEN_ANGLE * np.arange(n), np.sqrt((np.arange(n) + 0.5) / max(n, 1))
    points[order] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    degree = np.bincount(src, minlength=n) + np.bincount(dst, minlength=n)
    weight = 1 / np.sqrt(np.maximum(degree[src], 1) * np.maximum(degree[dst], 1))  # keeps hubs from attracting all
    mass = 1 + np.sqrt(degree)
    for step in range(_LAYOUT_STEPS if n > 1 else 0):
        offsets = points[dst] - points[src]
        attraction = np.zeros((n, 2))
        for axis in (0, 1):
            force = weight * offsets[:, axis]
            attraction[:, axis] = np.bincount(src, force, n) - np.bincount(dst, force, n)
        move = 0.9 * attraction + _repulsion(points, mass) - 0.04 * points
        length = np.maximum(np.hypot(*move.T), 1e-12)[:, None]
        max_step = 0.12 * (1 - step / _LAYOUT_STEPS) + 0.004
        points += move / length * np.minimum(length, max_step)
    return _scale_points(points)


def _repulsion(points: Floats, mass: Floats) -> Floats:
    """Return the force that pushes each agent away from all others, approximated with masses in grid cells."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(float((high - low).max()), 1e-9) / (_GRID - 1)
    cells = (points - low) / size
    nearest = np.rint(cells).astype(np.int64)
    cell_mass = np.bincount(nearest[:, 0] * _GRID + nearest[:, 1], mass, _GRID * _GRID).reshape(_GRID, _GRID)
    steps = np.arange(2 * _GRID)
    offsets = np.where(steps < _GRID, steps, steps - 2 * _GRID) * size
    squared_distance = offsets[:, None] ** 2 + offsets[None, :] ** 2 + (0.7 * size) ** 2
    padded = (2 * _GRID, 2 * _GRID)
    mass_spectrum = np.fft.rfft2(cell_mass, padded)
    repulsion = np.empty_like(points)
    scale = 0.55 / mass.sum()
    for axis, direction in enumerate((offsets[:, None], offsets[None, :])):
        field = np.fft.irfft2(mass_spectrum * np.fft.rfft2(direction / squared_distance), padded)[:_GRID, :_GRID]
        repulsion[:, axis] = scale * map_coordinates(field, cells.T, order=1, mode="nearest")
    return repulsion


def _scale_points(points: Floats) -> Floats:
    """Scale points to -1..1, and move outliers closer to the others."""
    if not len(points):
        return points
    points = points - np.median(points, axis=0)
    radius = np.hypot(*points.T)
    typical_radius = max(float(np.quantile(radius, 0.98)), 1e-9)
    compressed = typical_radius + 0.3 * typical_radius * np.tanh((radius - typical_radius) / typical_radius)
    points = points * np.where(radius > typical_radius, compressed / np.maximum(radius, 1e-9), 1)[:, None]
    return np.asarray(points / max(float(np.abs(points).max()), 1e-9), np.float64)


_GROUP_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_STATE: Final = "state"


@component
def network_view(source: Source, round_: int, selected: int, select: Callable[[int], None], name: str) -> None:
    """Show who follows whom, coloured by state or an attribute."""
    color_choice = use_reactive(_STATE)
    attributes = source.attributes()
    follows = source.follows()
    layout = use_memo(lambda: lay_out(follows), [id(source.run), source.n_agents])
    nodes = use_memo(lambda: _network_nodes(source, layout, follows), [layout, follows])
    pairs = use_memo(lambda: sample_follows(layout.agents, follows), [layout, follows])
    links = use_memo(lambda: encoded(np.stack(pairs, axis=1), np.int32), [pairs])
    key = color_choice.value if color_choice.value in attributes else _STATE
    codes, legend = _network_colors(source, attributes, key)
    n, n_agents, n_pairs, n_follows = len(layout.agents), source.n_agents, len(pairs[0]), len(follows.src)
    note = f"{n:,} of {n_agents:,} agents, drawn evenly; " if n < n_agents else f"{format_count(n, 'agent')}; "
    note += f"{n_pairs:,} of {n_follows:,} follows" if n_pairs < n_follows else format_count(n_follows, "follow")
    note += " as lines; larger dots have more followers."
    note += " Colour: the most active state of each agent in the round." if key == _STATE else ""
    label = f"The network of {format_count(len(layout.agents), 'agent')} after round {round_}, coloured by {key}"
    with view_card("Who follows whom", "view-network tall"):
        item = {"group": "", "key": "by", "label": "coloured by", "kind": "select", "choices": [_STATE, *attributes]}
        show_inputs(
            name=f"{name}-network",
            items=[{**item, "value": key}],
            inline=True,
            event_change=lambda change: color_choice.set(change["value"]),
        )
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=label,
                nodes=nodes,
                links=links,
                colors=encoded(codes[layout.agents], np.uint8),
                faint=2 if key == _STATE else 0,  # idle and resting
                legend=[{"name": name, "color": color} for name, color in legend],
                note=note,
                selected=selected,
                axis=None,
                curved=False,
                event_pick=lambda picked: select(int(picked["id"])),
            )


def _network_nodes(source: Source, layout: NetworkLayout, follows: Follows) -> Json:
    followers = follows.followers[layout.agents]
    min_size = 1.6 if len(layout.agents) > 1000 else 2.4
    size = min_size + 9 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
    pairs = zip(layout.agents.tolist(), followers.tolist(), strict=True)
    names = [f"{source.agent_name(row)} ({row}), {n:,} followers" for row, n in pairs]
    x, y = layout.points[:, 0], layout.points[:, 1]
    return pack_nodes(f"network {id(source.run)}", x, y, size, layout.agents, names)


def _network_colors(
    source: Source, attributes: Mapping[str, AgentAttribute], key: str
) -> tuple[np.ndarray[Any, Any], list[tuple[str, str]]]:
    """Return the colour code of each agent, and the name and colour of each code."""
    states = source.states()
    if key == _STATE:
        ranks = np.full(256, ABSENT, np.uint8)
        ordered = color_order(states_in(source.round_columns()))
        for rank, state in enumerate(ordered):
            ranks[state.code] = rank
        return ranks[states], [(state.value, state.color) for state in ordered]
    attribute = attributes[key]
    values = attribute.values
    valid = np.isfinite(values) & (states != ABSENT)
    codes = np.full(len(values), ABSENT, np.uint8)
    if attribute.names:
        order = np.argsort(-np.bincount(values[valid].astype(np.int64), minlength=len(attribute.names)), kind="stable")
        groups = np.sort(order[: len(_GROUP_COLORS)])
        ranks = np.full(len(attribute.names), len(groups), np.uint8)
        ranks[groups] = np.arange(len(groups))
        codes[valid] = ranks[values[valid].astype(np.int64)]
        legend = [(shorten(attribute.names[i], 30), _GROUP_COLORS[rank]) for rank, i in enumerate(groups.tolist())]
        return codes, legend + ([("others", NEUTRAL)] if len(attribute.names) > len(groups) else [])
    low, high = (float(values[valid].min()), float(values[valid].max())) if valid.any() else (0.0, 1.0)
    scaled = (values[valid] - low) / max(high - low, 1e-12) * len(PALETTE)
    codes[valid] = np.clip(scaled, 0, len(PALETTE) - 1).astype(np.uint8)
    labels = [f"{low:.3g}", *[""] * (len(PALETTE) - 2), f"{high:.3g} {attribute.unit}".strip()]
    return codes, list(zip(labels, PALETTE, strict=True))
