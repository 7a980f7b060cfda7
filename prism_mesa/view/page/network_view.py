"""The view of the network: laid out once, recoloured each round; large networks are sampled."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from reacton.core import use_memo
from reacton.ipyvuetify import Html
from scipy.ndimage import map_coordinates
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import counted, shortened
from prism_mesa.statechart import STATE_COLORS
from prism_mesa.streams import Streams
from prism_mesa.view.page.source import ABSENT, AgentAttribute, Follows, Ints, Source
from prism_mesa.view.page.widgets import NEUTRAL, SCALE, Json, pack_nodes, packed, show_graph, show_inputs, view_card

type Points = npt.NDArray[np.float64]

MAX_AGENTS: Final = 5000  # agents to draw; an even sample of more
MAX_FOLLOWS: Final = 12_000  # follows to draw; an even sample of more
_STEPS: Final = 120
_CELLS: Final = 64
_GOLDEN: Final = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class NetworkLayout:
    """The rows of the agents to draw, ascending, and their positions, shape (len(agents), 2), each in -1..1."""

    agents: npt.NDArray[np.int64]
    points: Points


def lay_out(follows: Follows) -> NetworkLayout:
    """Return positions of agents, in which agents that follow each other are close.

    Follows attract agents, and crowded places repel them: the forces of Fruchterman and Reingold (1991,
    doi:10.1002/spe.4380211102). The repulsion is read from a grid, so the time grows linearly with the number of
    agents. The same network gives the same picture.
    """
    agents = np.arange(len(follows.followers))
    if len(agents) > MAX_AGENTS:
        agents = np.sort(np.argsort(Streams(0).uniform("agents drawn", agents), kind="stable")[:MAX_AGENTS])
    src, dst = sample_follows(agents, follows, 4 * MAX_FOLLOWS)
    return NetworkLayout(agents, _find_equilibrium(src, dst, follows.followers[agents]))


def sample_follows(agents: Ints, follows: Follows, limit: int = MAX_FOLLOWS) -> tuple[Ints, Ints]:
    """Return follows between drawn agents, as indices into `agents`; above `limit`, an even sample."""
    position = np.full(len(follows.followers), -1, np.int64)
    position[agents] = np.arange(len(agents))
    src, dst = position[follows.src], position[follows.dst]
    is_drawn = (src >= 0) & (dst >= 0)
    src, dst = src[is_drawn], dst[is_drawn]
    if len(src) > limit:
        draws = Streams(0).uniform("follows drawn", agents[dst], index=agents[src].astype(np.uint64))
        is_kept = draws < limit / len(src)
        src, dst = src[is_kept], dst[is_kept]
    return src, dst


def _find_equilibrium(src: Ints, dst: Ints, followers: Ints) -> Points:
    """Return the positions at which both forces balance, in -1..1."""
    n = len(followers)
    order = np.argsort(-followers, kind="stable")
    points = np.empty((n, 2))
    angle, radius = _GOLDEN * np.arange(n), np.sqrt((np.arange(n) + 0.5) / max(n, 1))
    points[order] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    degree = np.bincount(src, minlength=n) + np.bincount(dst, minlength=n)
    weight = 1 / np.sqrt(np.maximum(degree[src], 1) * np.maximum(degree[dst], 1))  # keeps hubs from pulling everyone in
    mass = 1 + np.sqrt(degree)
    for step in range(_STEPS if n > 1 else 0):
        offsets = points[dst] - points[src]
        pull = np.zeros((n, 2))
        for axis in (0, 1):
            force = weight * offsets[:, axis]
            pull[:, axis] = np.bincount(src, force, n) - np.bincount(dst, force, n)
        move = 0.9 * pull + _push(points, mass) - 0.04 * points
        length = np.maximum(np.hypot(*move.T), 1e-12)[:, None]
        max_step = 0.12 * (1 - step / _STEPS) + 0.004
        points += move / length * np.minimum(length, max_step)
    return _scale_points(points)


def _push(points: Points, mass: Points) -> Points:
    """Return the force that pushes each agent away from all others, approximated by masses in grid cells."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(float((high - low).max()), 1e-9) / (_CELLS - 1)
    cells = (points - low) / size
    nearest = np.rint(cells).astype(np.int64)
    crowd = np.bincount(nearest[:, 0] * _CELLS + nearest[:, 1], mass, _CELLS * _CELLS).reshape(_CELLS, _CELLS)
    steps = np.arange(2 * _CELLS)
    away = np.where(steps < _CELLS, steps, steps - 2 * _CELLS) * size
    far = away[:, None] ** 2 + away[None, :] ** 2 + (0.7 * size) ** 2
    padded = (2 * _CELLS, 2 * _CELLS)
    spread = np.fft.rfft2(crowd, padded)
    push = np.empty_like(points)
    scale = 0.55 / mass.sum()
    for axis, direction in enumerate((away[:, None], away[None, :])):
        field = np.fft.irfft2(spread * np.fft.rfft2(direction / far), padded)[:_CELLS, :_CELLS]
        push[:, axis] = scale * map_coordinates(field, cells.T, order=1, mode="nearest")
    return push


def _scale_points(points: Points) -> Points:
    """Scale points into -1..1, and pull in outliers."""
    if not len(points):
        return points
    points = points - np.median(points, axis=0)
    radius = np.hypot(*points.T)
    reach = max(float(np.quantile(radius, 0.98)), 1e-9)
    reduced = reach + 0.3 * reach * np.tanh((radius - reach) / reach)
    points = points * np.where(radius > reach, reduced / np.maximum(radius, 1e-9), 1)[:, None]
    return np.asarray(points / max(float(np.abs(points).max()), 1e-9), np.float64)


_GROUP_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_STATE: Final = "state"


@component
def network_view(source: Source, round_: int, chosen: int, choose: Callable[[int], None], name: str) -> None:
    """Show who follows whom, coloured by state or an attribute."""
    color_choice = use_reactive(_STATE)
    attributes = source.attributes()
    follows = source.follows()
    layout = use_memo(lambda: lay_out(follows), [id(source.run), source.n_agents])
    nodes = use_memo(lambda: _network_nodes(source, layout, follows), [layout, follows])
    pairs = use_memo(lambda: sample_follows(layout.agents, follows), [layout, follows])
    links = use_memo(lambda: packed(np.stack(pairs, axis=1), np.int32), [pairs])
    key = color_choice.value if color_choice.value in attributes else _STATE
    codes, legend = _network_colors(source, attributes, key)
    n, n_agents, n_pairs, n_follows = len(layout.agents), source.n_agents, len(pairs[0]), len(follows.src)
    note = f"{n:,} of {n_agents:,} agents, drawn evenly; " if n < n_agents else f"{counted(n, 'agent')}; "
    note += f"{n_pairs:,} of {n_follows:,} follows" if n_pairs < n_follows else counted(n_follows, "follow")
    note += " as lines; the larger a dot, the more followers."
    note += " Colour: the most active state of each agent in the round." if key == _STATE else ""
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
                label=f"The network of {counted(len(layout.agents), 'agent')} after round {round_}, coloured by {key}",
                nodes=nodes,
                links=links,
                colors=packed(codes[layout.agents], np.uint8),
                faint=2 if key == _STATE else 0,  # idle and resting
                legend=[{"name": name, "color": color} for name, color in legend],
                note=note,
                selected=chosen,
                axis=None,
                curved=False,
                event_pick=lambda picked: choose(int(picked["id"])),
            )


def _network_nodes(source: Source, layout: NetworkLayout, follows: Follows) -> Json:
    followers = follows.followers[layout.agents]
    min_size = 1.6 if len(layout.agents) > 1000 else 2.4
    size = min_size + 9 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
    names = [
        f"{source.agent_name(row)} ({row}), {n:,} followers"
        for row, n in zip(layout.agents.tolist(), followers.tolist(), strict=True)
    ]
    x, y = layout.points[:, 0], layout.points[:, 1]
    return pack_nodes(f"network {id(source.run)}", x, y, size, layout.agents, names)


def _network_colors(
    source: Source, attributes: Mapping[str, AgentAttribute], key: str
) -> tuple[np.ndarray[Any, Any], list[tuple[str, str]]]:
    """Return a code for each agent, and the name and colour of each code."""
    states = source.states()
    if key == _STATE:
        position = np.full(256, ABSENT, np.uint8)
        for rank, state in enumerate(STATE_COLORS):
            position[state.code] = rank
        return position[states], [(state.value, color) for state, color in STATE_COLORS.items()]
    attribute = attributes[key]
    values = attribute.values
    valid = np.isfinite(values) & (states != ABSENT)
    codes = np.full(len(values), ABSENT, np.uint8)
    if attribute.names:
        order = np.argsort(-np.bincount(values[valid].astype(np.int64), minlength=len(attribute.names)), kind="stable")
        groups = np.sort(order[: len(_GROUP_COLORS)])
        position = np.full(len(attribute.names), len(groups), np.uint8)
        position[groups] = np.arange(len(groups))
        codes[valid] = position[values[valid].astype(np.int64)]
        legend = [(shortened(attribute.names[i], 30), _GROUP_COLORS[rank]) for rank, i in enumerate(groups.tolist())]
        return codes, legend + ([("others", NEUTRAL)] if len(attribute.names) > len(groups) else [])
    low, high = (float(values[valid].min()), float(values[valid].max())) if valid.any() else (0.0, 1.0)
    part = (values[valid] - low) / max(high - low, 1e-12) * len(SCALE)
    codes[valid] = np.clip(part, 0, len(SCALE) - 1).astype(np.uint8)
    ends = [f"{low:.3g}", *[""] * (len(SCALE) - 2), f"{high:.3g} {attribute.unit}".strip()]
    return codes, list(zip(ends, SCALE, strict=True))
