"""Mesa's page on a social model: of the config that PRISM_APP_CONFIG names, else a small one."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from mesa.visualization import Slider, SolaraViz
from mesa.visualization.utils import update_counter
from reacton.core import use_memo
from solara.components.columns import ColumnsResponsive
from solara.components.matplotlib import FigureMatplotlib
from solara.components.misc import Text
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError
from prism_mesa.runs.config import load_config
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import FEED_MODES, AgentsParams, NetworkParams, SocialParams
from prism_mesa.social.state.population import unpacked_codes
from prism_mesa.statechart import STATE_COLORS, STATES, AgentState

NETWORK_LIMIT: Final = 300  # agents; more are a blot, and slow to draw
_STATES: Final = {state.value: color for state, color in STATE_COLORS.items()}
_ENGAGEMENT: Final = {
    "likes": STATE_COLORS[AgentState.ENGAGING_LIKE],
    "replies": STATE_COLORS[AgentState.ENGAGING_REPLY],
    "reshares": STATE_COLORS[AgentState.ENGAGING_RESHARE],
}


class PageModel(SocialModel):
    """A social model that says its errors on the page, where an exception would take the page's place.

    With inputs that do not fit (a seed that is no number) it takes the config alone; a failing round ends the run.
    """

    def __init__(self, config: SocialParams, **inputs: Any) -> None:
        try:
            super().__init__(config, **inputs)
            self.fault = ""
        except PrismError as error:
            self.__dict__.clear()  # what was half made
            super().__init__(config)
            self.fault = f"{error}; the page's own values are used. "

    def step(self) -> None:
        """Run one round."""
        try:
            super().step()
        except PrismError as error:
            self.fault, self.running = f"Stopped: {error}. ", False


def caption(model: PageModel) -> str:
    """Return where the model on show stands, what it was made with, and what went wrong."""
    p = model.params
    oracle = "on" if p.statechart.oracle_enabled else "off"
    return (
        f"{model.fault}Round {model.round + 1} of {p.rounds}: {len(model.population)} agents, {p.feed.mode} feed, "
        f"band {p.agents.band:g}, post rate {p.agents.post_rate:g}, oracle {oracle}, seed {p.seed}."
    )


def draw_states(model: SocialModel) -> Figure:
    """Return the shares of agent-ticks in each state, a round being a step of width 1."""
    figure, axes = _axes(model, "what agents are doing", "share of agent-ticks", _STATES)
    shares = _collected(model, [f"share_{state}" for state in _STATES])[::-1]  # idle on top
    steps = np.append(shares, shares[:, -1:], axis=1)  # the last one again, so that one round is an area too
    axes.stackplot(np.arange(steps.shape[1]), steps, step="post", colors=list(_STATES.values())[::-1])
    axes.set_ylim(0, 1)
    return figure


def draw_engagement(model: SocialModel) -> Figure:
    """Return likes, replies and reshares per round."""
    figure, axes = _axes(model, "engagement", "per round", _ENGAGEMENT)
    counts = _collected(model, list(_ENGAGEMENT))
    for row, color in zip(counts, _ENGAGEMENT.values(), strict=True):
        axes.plot(np.arange(len(row)) + 0.5, row, color=color, marker="o", markersize=3)
    axes.set_ylim(0, 1.05 * counts.max(initial=10))
    return figure


def draw_network(model: SocialModel) -> Figure | str:
    """Return who follows whom, or why it is not drawn; colour: what an agent did last round, area: its followers.

    A sunflower (Vogel 1979, doi:10.1016/0025-5564(79)90080-4) with the most followed in the middle, ties by row,
    each with room in proportion to its area. It takes microseconds, so nothing is kept between drawings.
    """
    network, n = model.network, len(model.population)
    if n > NETWORK_LIMIT:
        return f"The network is drawn for up to {NETWORK_LIMIT} agents; this one has {n}."
    if model.history.depth < model.params.ticks_per_round + 2:
        return "The network is not drawn: statechart.max_history_depth is below ticks_per_round + 2, a round's moves."
    area = 4.0 + network.n_followers
    order = np.argsort(-area, kind="stable")
    radius = np.sqrt(np.cumsum(area[order]) - area[order] / 2)
    angle = np.arange(n) * math.pi * (3 - math.sqrt(5))
    places = np.empty((n, 2))
    places[order] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    here, (src, dst) = model.population.present, network.edges()
    ends = np.stack([places[src], places[dst]], axis=1)[here[src] & here[dst]]
    figure, axes = _axes(model, "the most that each agent did in the last round", "", _STATES)
    axes.add_collection(LineCollection(list(ends), colors="#333333", alpha=0.05, linewidths=0.4, zorder=0))
    colors = np.array(list(_STATES.values()))[furthest(model)][here]
    sizes = (20_000 * area / area.sum())[here]
    x, y = places[here].T
    axes.scatter(x, y, sizes, colors.tolist(), edgecolors="#555555", linewidths=0.4)
    axes.autoscale()
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure


def furthest(model: SocialModel) -> npt.NDArray[np.int64]:
    """Return for each agent the place in `STATE_COLORS` of the most it did in the last round, as its history tells."""
    rank = np.array([list(STATE_COLORS).index(state) for state in STATES])
    history = model.history
    kept = np.arange(history.depth) < history.count[:, None]
    recent = kept & (history.ring["clock"] >= model.time_of_day.number(model.round, 0))
    entered = np.where(recent, rank[unpacked_codes(history.ring["move"])[2]], 0)
    return np.asarray(np.maximum(entered.max(axis=1), rank[model.population.state]), np.int64)


@component
def view(model: PageModel, draw: Callable[[PageModel], Figure | str]) -> None:
    """What `draw` returns, a figure or a line of text, anew after every step."""
    update_counter.get()
    shown = draw(model)
    if isinstance(shown, str):
        Text(shown)
    else:
        FigureMatplotlib(shown, format="png")


@component
def make_page(config: SocialParams | None = None) -> None:
    """Mesa's page on a model of `config`; by default of 200 agents who follow 20 others, few enough to draw.

    Each browser tab has a model of its own. Changed parameters count from the next Reset on. The views stand below
    Mesa's components, not among them: its draggable grid stays blank with ipyvuetify 3 (mesa/mesa issue 3806).
    """
    config = config or SocialParams(agents=AgentsParams(n=200), network=NetworkParams(mean_degree=20))
    model: Any = use_reactive(use_memo(lambda: PageModel(config), []))
    SolaraViz(model, components=[], model_params=inputs(config), name="PRISM")
    with ColumnsResponsive(12, large=[12, 6, 6, 6]):
        for draw in (caption, draw_states, draw_engagement, draw_network):
            view(model.value, draw)


def inputs(config: SocialParams) -> dict[str, Any]:
    """Return Mesa's model parameters: the config, and what the page lets a user change in it.

    A graph from a file brings its own number of agents, so there is no slider for it then.
    """
    agents, chart, least = config.agents, config.statechart, max(50, math.ceil(config.network.mean_degree) + 1)
    modes = list(dict.fromkeys([*FEED_MODES, config.feed.mode]))
    n = Slider("Agents", agents.n, min(least, agents.n), max(1000, agents.n), 1, dtype=int)
    return {
        "config": config,
        "rng": {"type": "InputText", "label": "Seed", "value": str(config.seed)},
        **({} if config.network.edges else {"agents_n": n}),
        "rounds": Slider("Rounds", config.rounds, 1, max(100, config.rounds), 1, dtype=int),
        "feed_mode": {"type": "Select", "label": "Feed", "value": config.feed.mode, "values": modes},
        "agents_band": Slider("Band", agents.band, 0.0, 1.0, 0.001),
        "agents_post_rate": Slider("Post rate", agents.post_rate, 0.0, 1.0, 0.005),
        "statechart_oracle_enabled": {"type": "Checkbox", "label": "Oracle", "value": chart.oracle_enabled},
    }


def _collected(model: SocialModel, names: list[str]) -> npt.NDArray[np.float64]:
    """Return columns of the DataCollector, shape (names, rounds); a round that is just being written is left out."""
    columns = [model.datacollector.model_vars[name] for name in names]
    rounds = min(len(column) for column in columns)
    return np.array([column[:rounds] for column in columns], np.float64)


def _axes(model: SocialModel, title: str, ylabel: str, legend: Mapping[str, str]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.2, 4.8))
    axes = figure.add_subplot(title=title, xlabel="round", ylabel=ylabel, xlim=(0, max(10, model.round + 1)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    handles = [Line2D([], [], ls="", marker="o", color=color, label=name) for name, color in legend.items()]
    figure.subplots_adjust(left=0.1, right=0.72, bottom=0.11, top=0.93)
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return figure, axes


_file = os.environ.get("PRISM_APP_CONFIG")
page = make_page(load_config(_file) if _file else None)
