"""Mesa's page on a social model, for `solara run` and notebooks: figures, sliders, Reset. It decides nothing.

`page` shows the config that the environment variable PRISM_APP_CONFIG names, or a small default model.
"""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
import math
import os
from collections.abc import Callable
from typing import Any, Final, get_args

import numpy as np
import numpy.typing as npt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from mesa.visualization import Slider, SolaraViz
from mesa.visualization.utils import update_counter
from reacton.core import Element, use_memo
from solara.components.alert import Info
from solara.components.matplotlib import FigureMatplotlib
from solara.core import component

from prism_mesa.experiments.config import load_config
from prism_mesa.social.model import SocialModel
from prism_mesa.social.network import FollowNetwork
from prism_mesa.social.params import AgentsParams, FeedParams, SocialParams
from prism_mesa.social.population import STATE_BITS
from prism_mesa.statechart import STATE_COLORS, STATES, AgentState

CONFIG_VARIABLE: Final = "PRISM_APP_CONFIG"
NETWORK_LIMIT: Final = 300
"""Most agents that the network view draws; more are a blot and take seconds."""

ENGAGEMENTS: Final = {
    "likes": AgentState.ENGAGING_LIKE,
    "replies": AgentState.ENGAGING_REPLY,
    "reshares": AgentState.ENGAGING_RESHARE,
}


def draw_states(model: SocialModel) -> Figure:
    """Return the shares of agent-ticks in each state, a round being a step of width 1."""
    figure, axes = _axes(model, "share of agent-ticks", "states")
    axes.set_ylim(0, 1)
    shares = _collected(model, [f"share_{state.value}" for state in STATE_COLORS])
    if shares.shape[1]:
        edges = np.arange(shares.shape[1] + 1)
        steps = np.append(shares, shares[:, -1:], axis=1)  # so that one round already is an area
        labels = [state.value for state in STATE_COLORS]
        axes.stackplot(edges, steps, step="post", colors=list(STATE_COLORS.values()), labels=labels)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), reverse=True, frameon=False)
    return figure


def draw_engagement(model: SocialModel) -> Figure:
    """Return likes, replies and reshares per round."""
    figure, axes = _axes(model, "per round", "engagement")
    for (name, state), counts in zip(ENGAGEMENTS.items(), _collected(model, list(ENGAGEMENTS)), strict=True):
        middles = np.arange(len(counts)) + 0.5
        axes.plot(middles, counts, color=STATE_COLORS[state], marker="o", markersize=3, label=name)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def draw_network(model: SocialModel) -> Figure | str:
    """Return who follows whom, or why it is not drawn: color is what an agent did last round, area its followers."""
    if len(model.population) > NETWORK_LIMIT:
        return f"The network is drawn for up to {NETWORK_LIMIT} agents; this one has {len(model.population)}."
    if not model.history.depth:
        return "The network is not drawn: with statechart.max_history_depth=0 nothing tells what agents did."
    places = layout(model.network)
    src, dst = model.network.edges()
    shown = np.flatnonzero(model.population.present)
    colors = list(STATE_COLORS.values())
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.add_subplot(title="who did what in the last round" if model.round >= 0 else "before the first round")
    lines = np.stack([places[src], places[dst]], axis=1)
    axes.add_collection(LineCollection(list(lines), colors="#333333", alpha=0.06, linewidths=0.4))
    x, y = places[shown].T
    axes.scatter(
        x,
        y,
        s=12 + 3 * model.network.n_followers[shown],
        c=[colors[i] for i in furthest(model)[shown]],
        edgecolors="#444444",
        linewidths=0.4,
    )
    axes.set_axis_off()
    axes.set_aspect("equal")
    dots = [Line2D([], [], ls="", marker="o", color=color, label=state.value) for state, color in STATE_COLORS.items()]
    axes.legend(handles=dots[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def furthest(model: SocialModel) -> npt.NDArray[np.int64]:
    """Return for each agent the place in `STATE_COLORS` of the most it did in the last round, as its history tells."""
    rank = np.array([list(STATE_COLORS).index(state) for state in STATES])
    history = model.history
    kept = np.arange(history.depth) < history.count[:, None]
    recent = kept & (history.clocks >= model.time_of_day.number(model.round, 0))
    entered = np.where(recent, rank[history.moves & (1 << STATE_BITS) - 1], 0)
    most: npt.NDArray[np.int64] = np.maximum(entered.max(axis=1), rank[model.population.state])
    return most


def layout(network: FollowNetwork) -> npt.NDArray[np.float64]:
    """Return a place for each agent, shape (n, 2): a sunflower with the most followed in the middle.

    Seeds of equal area at the golden angle (Vogel 1979, doi:10.1016/0025-5564(79)90080-4); ties go to the
    lower row. It takes microseconds, so nothing is kept between drawings.
    """
    n = network.n_agents
    rank = np.empty(n)
    rank[np.argsort(-network.n_followers, kind="stable")] = np.arange(n)
    angle = rank * math.pi * (3 - math.sqrt(5))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.sqrt(rank)[:, None]


def view(draw: Callable[[SocialModel], Figure | str]) -> Callable[[SocialModel], Element]:
    """Return a component that shows what `draw` returns, a figure or one line of text, anew after every step."""

    @component
    def drawn(model: SocialModel) -> None:
        update_counter.get()
        shown = draw(model)
        if isinstance(shown, str):
            Info(shown)
        else:
            FigureMatplotlib(shown, format="png")

    return drawn


VIEWS: Final = (view(draw_states), view(draw_engagement), view(draw_network))


def make_page(config: SocialParams | None = None) -> Element:
    """Return the page on a model of `config`; by default of 200 agents, few enough to draw their network.

    Each browser tab has a model of its own. Changed parameters count from the next Reset on.
    """
    return social_page(config or SocialParams(agents=AgentsParams(n=200)))


@component
def social_page(config: SocialParams) -> None:
    """Mesa's page with the inputs and figures of this module."""
    model = use_memo(lambda: SocialModel(config), [])
    SolaraViz(model, components=[(shown, 0) for shown in VIEWS], model_params=inputs(config), name="PRISM")


def inputs(config: SocialParams) -> dict[str, Any]:
    """Return Mesa's model parameters: the config, and what the page lets a user change in it.

    A graph from a file brings its own number of agents, so there is no slider for it then.
    """
    agents, least = config.agents, max(50, math.ceil(config.network.mean_degree / 50 + 1) * 50)
    modes = list(get_args(FeedParams.model_fields["mode"].annotation))
    n = Slider("Agents", agents.n, min(least, agents.n), max(1000, agents.n), 50, dtype=int)
    return {
        "config": config,
        "rng": {"type": "InputText", "label": "Seed", "value": str(config.seed)},
        **({} if config.network.edges else {"agents_n": n}),
        "rounds": Slider("Rounds", config.rounds, 1, max(100, config.rounds), 1, dtype=int),
        "feed_mode": {"type": "Select", "label": "Feed", "value": config.feed.mode, "values": modes},
        "agents_band": Slider("Band in which the oracle is asked", agents.band, 0.0, 1.0, 0.05),
        "agents_post_rate": Slider("Posts per agent and round", agents.post_rate, 0.0, 1.0, 0.05),
        "statechart_oracle_enabled": {
            "type": "Checkbox",
            "label": "Ask the oracle",
            "value": config.statechart.oracle_enabled,
        },
    }


def configured() -> SocialParams | None:
    """Return the config that the environment names, or None.

    Raises:
        ConfigError: If it cannot be used.
    """
    path = os.environ.get(CONFIG_VARIABLE)
    return load_config(path) if path else None


def _collected(model: SocialModel, names: list[str]) -> npt.NDArray[np.float64]:
    """Return columns of the DataCollector, shape (names, rounds); a round that is just being written is left out."""
    columns = [model.datacollector.model_vars[name] for name in names]
    rounds = min(len(column) for column in columns)
    return np.array([column[:rounds] for column in columns], np.float64)


def _axes(model: SocialModel, ylabel: str, title: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel="round", ylabel=ylabel)
    axes.set_xlim(0, max(10, model.round + 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


page = make_page(configured())
