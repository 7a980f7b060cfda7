"""The view of the network: laid out once, coloured anew in each round."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from reacton.core import use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import counted, shortened
from prism_mesa.statechart import STATE_COLORS
from prism_mesa.view.page.layout import Drawn, drawn_follows, lay_out
from prism_mesa.view.page.source import NOT_THERE, AgentAttribute, Follows, Source
from prism_mesa.view.page.widgets import OTHER, SCALE, Json, OnAgent, packed, show_graph, show_inputs, view_card

_GROUP_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_STATE: Final = "state"


@component
def network_view(source: Source, at: int, chosen: int, choose: OnAgent, name: str) -> None:
    """Who follows whom, coloured by state or an attribute."""
    by = use_reactive(_STATE)
    attributes = source.attributes()
    follows = source.follows()
    drawn = use_memo(lambda: lay_out(follows), [id(source.run), source.n_agents])
    nodes = use_memo(lambda: _network_nodes(source, drawn, follows), [drawn, follows])
    pairs = use_memo(lambda: drawn_follows(drawn, follows), [drawn, follows])
    links = use_memo(lambda: packed(np.stack(pairs, axis=1), np.int32), [pairs])
    colour = by.value if by.value in attributes else _STATE
    codes, legend = _network_colors(source, attributes, colour)
    note = _network_note(source, drawn, len(pairs[0]), len(follows.src))
    note += " Colour: the most that each did in the round." if colour == _STATE else ""
    with view_card("Who follows whom", "view-network tall"):
        item = {"group": "", "key": "by", "label": "coloured by", "kind": "select", "value": colour}
        show_inputs(
            name=f"{name}-network",
            items=[{**item, "choices": [_STATE, *attributes]}],
            inline=True,
            event_change=lambda change: by.set(change["value"]),
        )
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=f"The network of {counted(len(drawn.agents), 'agent')} after round {at}, coloured by {colour}",
                nodes=nodes,
                links=links,
                colors=packed(codes[drawn.agents], np.uint8),
                palette=[color for _, color in legend],
                faint=2 if colour == _STATE else 0,  # idle and resting
                legend=[{"name": said, "color": color} for said, color in legend],
                note=note,
                selected=chosen,
                axis=None,
                square=True,
                curved=False,
                event_pick=lambda picked: choose(int(picked["id"])),
            )


def _network_nodes(source: Source, drawn: Drawn, follows: Follows) -> Json:
    followers = follows.followers[drawn.agents]
    least = 1.6 if len(drawn.agents) > 1000 else 2.4
    size = least + 9 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
    return {
        "key": f"network {id(source.run)}",
        "x": packed(drawn.where[:, 0], np.float32),
        "y": packed(drawn.where[:, 1], np.float32),
        "size": packed(size, np.float32),
        "ids": packed(drawn.agents, np.int32),
        "names": [
            f"{source.agent_name(row)} ({row}), {n:,} followers"
            for row, n in zip(drawn.agents.tolist(), followers.tolist(), strict=True)
        ],
    }


def _network_colors(
    source: Source, attributes: Mapping[str, AgentAttribute], by: str
) -> tuple[np.ndarray[Any, Any], list[tuple[str, str]]]:
    """Return a code for each agent, and what the codes stand for: name and colour."""
    states = source.states()
    if by == _STATE:
        place = np.full(256, NOT_THERE, np.uint8)
        for rank, state in enumerate(STATE_COLORS):
            place[state.code] = rank
        return place[states], [(state.value, color) for state, color in STATE_COLORS.items()]
    own = attributes[by]
    values = own.values
    known = np.isfinite(values) & (states != NOT_THERE)
    codes = np.full(len(values), NOT_THERE, np.uint8)
    if own.names:
        common = np.argsort(-np.bincount(values[known].astype(np.int64), minlength=len(own.names)), kind="stable")
        few = np.sort(common[: len(_GROUP_COLORS)])
        place = np.full(len(own.names), len(few), np.uint8)
        place[few] = np.arange(len(few))
        codes[known] = place[values[known].astype(np.int64)]
        legend = [(shortened(own.names[i], 30), _GROUP_COLORS[at]) for at, i in enumerate(few.tolist())]
        return codes, legend + ([("others", OTHER)] if len(own.names) > len(few) else [])
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)
    part = (values[known] - low) / max(high - low, 1e-12) * len(SCALE)
    codes[known] = np.clip(part, 0, len(SCALE) - 1).astype(np.uint8)
    ends = [f"{low:.3g}", *[""] * (len(SCALE) - 2), f"{high:.3g} {own.unit}".strip()]
    return codes, list(zip(ends, SCALE, strict=True))


def _network_note(source: Source, drawn: Drawn, n_pairs: int, n_follows: int) -> str:
    n = len(drawn.agents)
    agents = f"{n:,} of {source.n_agents:,} agents, drawn evenly" if n < source.n_agents else counted(n, "agent")
    share = f"{n_pairs:,} of {n_follows:,} follows" if n_pairs < n_follows else counted(n_follows, "follow")
    return f"{agents}; {share} as lines; the larger a dot, the more followers."
