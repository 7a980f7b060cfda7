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
from prism_mesa.view.page.widgets import OTHER, SCALE, Json, pack_nodes, packed, show_graph, show_inputs, view_card

type Points = npt.NDArray[np.float64]

MAX_AGENTS: Final = 5000  # agents that are drawn; of more, an even sample
MAX_FOLLOWS: Final = 12_000  # follows that are drawn; of more, an even sample
_STEPS: Final = 120
_CELLS: Final = 64
_GOLDEN: Final = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class NetworkLayout:
    """The rows of the agents to draw, ascending, and their positions, shape (len(agents), 2), each in -1..1."""

    agents: npt.NDArray[np.int64]
    where: Points


def lay_out(follows: Follows) -> NetworkLayout:
    """Return positions of agents: agents that follow each other are close, others apart.

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
    """Return follows between drawn agents, as positions among them; too many are thinned evenly."""
    place = np.full(len(follows.followers), -1, np.int64)
    place[agents] = np.arange(len(agents))
    src, dst = place[follows.src], place[follows.dst]
    drawn = (src >= 0) & (dst >= 0)
    src, dst = src[drawn], dst[drawn]
    if len(src) > limit:
        draws = Streams(0).uniform("follows drawn", agents[dst], index=agents[src].astype(np.uint64))
        kept = draws < limit / len(src)
        src, dst = src[kept], dst[kept]
    return src, dst


def _find_equilibrium(src: Ints, dst: Ints, followers: Ints) -> Points:
    """Return the positions at which both forces balance, in -1..1."""
    n = len(followers)
    order = np.argsort(-followers, kind="stable")
    where = np.empty((n, 2))
    turn, out = _GOLDEN * np.arange(n), np.sqrt((np.arange(n) + 0.5) / max(n, 1))
    where[order] = np.stack([out * np.cos(turn), out * np.sin(turn)], axis=1)
    degree = np.bincount(src, minlength=n) + np.bincount(dst, minlength=n)
    weight = 1 / np.sqrt(np.maximum(degree[src], 1) * np.maximum(degree[dst], 1))  # keeps hubs from pulling everyone in
    mass = 1 + np.sqrt(degree)
    for step in range(_STEPS if n > 1 else 0):
        ends = where[dst] - where[src]
        pull = np.zeros((n, 2))
        for axis in (0, 1):
            force = weight * ends[:, axis]
            pull[:, axis] = np.bincount(src, force, n) - np.bincount(dst, force, n)
        move = 0.9 * pull + _push(where, mass) - 0.04 * where
        length = np.maximum(np.hypot(*move.T), 1e-12)[:, None]
        max_step = 0.12 * (1 - step / _STEPS) + 0.004
        where += move / length * np.minimum(length, max_step)
    return _scale_points(where)


def _push(where: Points, mass: Points) -> Points:
    """Return the force that pushes each agent away from all others, approximated by masses in grid cells."""
    low, high = where.min(axis=0), where.max(axis=0)
    size = max(float((high - low).max()), 1e-9) / (_CELLS - 1)
    at = (where - low) / size
    cell = np.rint(at).astype(np.int64)
    crowd = np.bincount(cell[:, 0] * _CELLS + cell[:, 1], mass, _CELLS * _CELLS).reshape(_CELLS, _CELLS)
    steps = np.arange(2 * _CELLS)
    away = np.where(steps < _CELLS, steps, steps - 2 * _CELLS) * size
    far = away[:, None] ** 2 + away[None, :] ** 2 + (0.7 * size) ** 2
    room = (2 * _CELLS, 2 * _CELLS)
    spread = np.fft.rfft2(crowd, room)
    push = np.empty_like(where)
    scale = 0.55 / mass.sum()
    for axis, along in enumerate((away[:, None], away[None, :])):
        field = np.fft.irfft2(spread * np.fft.rfft2(along / far), room)[:_CELLS, :_CELLS]
        push[:, axis] = scale * map_coordinates(field, at.T, order=1, mode="nearest")
    return push


def _scale_points(where: Points) -> Points:
    """Scale points into -1..1, and pull in outliers."""
    if not len(where):
        return where
    where = where - np.median(where, axis=0)
    radius = np.hypot(*where.T)
    reach = max(float(np.quantile(radius, 0.98)), 1e-9)
    pulled_in = reach + 0.3 * reach * np.tanh((radius - reach) / reach)
    where = where * np.where(radius > reach, pulled_in / np.maximum(radius, 1e-9), 1)[:, None]
    return np.asarray(where / max(float(np.abs(where).max()), 1e-9), np.float64)


_GROUP_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_STATE: Final = "state"


@component
def network_view(source: Source, at: int, chosen: int, choose: Callable[[int], None], name: str) -> None:
    """Show who follows whom, coloured by state or an attribute."""
    by = use_reactive(_STATE)
    attributes = source.attributes()
    follows = source.follows()
    drawn = use_memo(lambda: lay_out(follows), [id(source.run), source.n_agents])
    nodes = use_memo(lambda: _network_nodes(source, drawn, follows), [drawn, follows])
    pairs = use_memo(lambda: sample_follows(drawn.agents, follows), [drawn, follows])
    links = use_memo(lambda: packed(np.stack(pairs, axis=1), np.int32), [pairs])
    colour = by.value if by.value in attributes else _STATE
    codes, legend = _network_colors(source, attributes, colour)
    n, n_agents, n_pairs, n_follows = len(drawn.agents), source.n_agents, len(pairs[0]), len(follows.src)
    note = f"{n:,} of {n_agents:,} agents, drawn evenly; " if n < n_agents else f"{counted(n, 'agent')}; "
    note += f"{n_pairs:,} of {n_follows:,} follows" if n_pairs < n_follows else counted(n_follows, "follow")
    note += " as lines; the larger a dot, the more followers."
    note += " Colour: the most active state of each agent in the round." if colour == _STATE else ""
    with view_card("Who follows whom", "view-network tall"):
        item = {"group": "", "key": "by", "label": "coloured by", "kind": "select", "choices": [_STATE, *attributes]}
        show_inputs(
            name=f"{name}-network",
            items=[{**item, "value": colour}],
            inline=True,
            event_change=lambda change: by.set(change["value"]),
        )
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=f"The network of {counted(len(drawn.agents), 'agent')} after round {at}, coloured by {colour}",
                nodes=nodes,
                links=links,
                colors=packed(codes[drawn.agents], np.uint8),
                faint=2 if colour == _STATE else 0,  # idle and resting
                legend=[{"name": name, "color": color} for name, color in legend],
                note=note,
                selected=chosen,
                axis=None,
                curved=False,
                event_pick=lambda picked: choose(int(picked["id"])),
            )


def _network_nodes(source: Source, drawn: NetworkLayout, follows: Follows) -> Json:
    followers = follows.followers[drawn.agents]
    least = 1.6 if len(drawn.agents) > 1000 else 2.4
    size = least + 9 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
    names = [
        f"{source.agent_name(row)} ({row}), {n:,} followers"
        for row, n in zip(drawn.agents.tolist(), followers.tolist(), strict=True)
    ]
    x, y = drawn.where[:, 0], drawn.where[:, 1]
    return pack_nodes(f"network {id(source.run)}", x, y, size, drawn.agents, names)


def _network_colors(
    source: Source, attributes: Mapping[str, AgentAttribute], by: str
) -> tuple[np.ndarray[Any, Any], list[tuple[str, str]]]:
    """Return a code for each agent, and the name and colour of each code."""
    states = source.states()
    if by == _STATE:
        place = np.full(256, ABSENT, np.uint8)
        for rank, state in enumerate(STATE_COLORS):
            place[state.code] = rank
        return place[states], [(state.value, color) for state, color in STATE_COLORS.items()]
    attribute = attributes[by]
    values = attribute.values
    known = np.isfinite(values) & (states != ABSENT)
    codes = np.full(len(values), ABSENT, np.uint8)
    if attribute.names:
        common = np.argsort(-np.bincount(values[known].astype(np.int64), minlength=len(attribute.names)), kind="stable")
        few = np.sort(common[: len(_GROUP_COLORS)])
        place = np.full(len(attribute.names), len(few), np.uint8)
        place[few] = np.arange(len(few))
        codes[known] = place[values[known].astype(np.int64)]
        legend = [(shortened(attribute.names[i], 30), _GROUP_COLORS[at]) for at, i in enumerate(few.tolist())]
        return codes, legend + ([("others", OTHER)] if len(attribute.names) > len(few) else [])
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)
    part = (values[known] - low) / max(high - low, 1e-12) * len(SCALE)
    codes[known] = np.clip(part, 0, len(SCALE) - 1).astype(np.uint8)
    ends = [f"{low:.3g}", *[""] * (len(SCALE) - 2), f"{high:.3g} {attribute.unit}".strip()]
    return codes, list(zip(ends, SCALE, strict=True))
