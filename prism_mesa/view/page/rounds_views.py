"""The views that show a run by round: states, engagement and the oracle."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from reacton.ipyvuetify import Html
from solara.core import component

from prism_mesa.domain import SHARE, STATE_COLORS, AgentState, color_order, states_in
from prism_mesa.llm.params import STAND_INS
from prism_mesa.view.page.source import Source
from prism_mesa.view.page.widgets import NEUTRAL, Json, show_answers, show_series, view_card

MAX_POINTS: Final = 300  # maximum number of points in a line; longer runs are drawn as means over several rounds
_ENGAGEMENT: Final = {
    "likes": STATE_COLORS[AgentState.ENGAGING_LIKE],
    "replies": STATE_COLORS[AgentState.ENGAGING_REPLY],
    "reshares": STATE_COLORS[AgentState.ENGAGING_RESHARE],
}
_SOURCE_COLORS: Final = {
    "llm": "#0072b2",
    "cache": "#56b4e9",
    "rule": "#009e73",
    "distilled": "#cc79a7",
    "fallback": "#d55e00",
    "budget": "#e69f00",
    "failed": "#b3261e",
}


def _round_means(source: Source, names: Sequence[str]) -> tuple[list[int], dict[str, list[float]]]:
    """Return rounds and columns to draw, as means over groups of rounds if there are more than `MAX_POINTS`."""
    columns = source.round_columns()
    rounds = columns.get("round", np.zeros(0))
    starts = np.arange(0, len(rounds), max(1, -(-len(rounds) // MAX_POINTS)))
    sizes = np.diff(np.append(starts, len(rounds)))
    means = {name: np.add.reduceat(columns[name], starts) / sizes if len(starts) else starts for name in names}
    rounded = {name: [float(f"{mean:.5g}") for mean in values.tolist()] for name, values in means.items()}
    return [int(number) for number in rounds[starts]], rounded


def _draw(
    label: str,
    unit: str,
    source: Source,
    round_: int,
    compared: Sequence[Source],
    lines: Mapping[str, tuple[str, str]],
    *,
    min_top: float = 4,
    stacked: bool = False,
) -> None:
    """Draw columns of the table of rounds, as key -> (name, colour), on axes shared with `compared`."""
    rounds, columns = _round_means(source, [*lines])
    runs = (source, *compared)
    values_by_source = [np.array([*_round_means(run, [*lines])[1].values()]) for run in runs]
    maxima = [float((values.sum(axis=0) if stacked else values).max(initial=0)) for values in values_by_source]
    with Html(tag="div", class_="prism-grow"):
        show_series(
            label=f"{label} by round, up to round {round_}",
            unit=unit,
            rounds=rounds,
            series=[{"name": name, "color": color, "values": columns[key]} for key, (name, color) in lines.items()],
            span=min(max(run.rounds for run in runs), max(30, 2 * (round_ + 1))),  # the axis of a long run grows
            stacked=stacked,
            min_top=max(min_top, *maxima),
        )


@component
def states_view(source: Source, round_: int, compared: Sequence[Source] = ()) -> None:
    """Show shares of agent-ticks in the active states, on axes shared with `compared`."""
    idle = source.round_columns().get(SHARE + "idle", np.zeros(0))
    unit = f"share of agent-ticks; the rest is idle ({100 * idle[-1]:.1f} %)" if len(idle) else "share of agent-ticks"
    active = color_order(states_in(source.round_columns()))[1:]
    lines = {SHARE + state.value: (state.value, state.color) for state in reversed(active)}
    with view_card("What agents do", "view-states short"):
        _draw("Shares of agent-ticks in each state", unit, source, round_, compared, lines, min_top=0.01, stacked=True)


@component
def engagement_view(source: Source, round_: int, compared: Sequence[Source] = ()) -> None:
    """Show likes, replies and reshares per round, on axes shared with `compared`."""
    columns = source.round_columns()
    impressions = columns.get("impressions", np.zeros(0))[-1:].sum()
    rate = f"; {sum(columns[name][-1] for name in _ENGAGEMENT) / impressions:.2%} of impressions" if impressions else ""
    lines = {name: (name, color) for name, color in _ENGAGEMENT.items()}
    with view_card("Engagement", "view-engagement short"):
        _draw("Likes, replies and reshares", f"per round{rate}", source, round_, compared, lines)


@component
def oracle_view(source: Source, round_: int, compared: Sequence[Source] = ()) -> None:
    """Show who answered open choices, what the answers cost, and the number of open choices per round."""
    oracle = source.oracle()
    lines = {"open": ("open choices", _SOURCE_COLORS["llm"]), "fallback": ("fallbacks", _SOURCE_COLORS["fallback"])}
    with view_card("Oracle: who decides open choices", "view-oracle short"):
        show_answers(
            label=oracle.label,
            sources=_answer_shares(oracle.sources or {}),
            spent=[_spent_row(name, amount, limit) for name, (amount, limit) in oracle.spent.items()],
            reasons=[f"{reason} ({n:,})" for reason, n in oracle.reasons.items()],
            notes=list(oracle.notes),
        )
        _draw("Open choices and fallbacks", "per round", source, round_, compared, lines)


def _answer_shares(sources: Mapping[str, int]) -> list[Json]:
    total = sum(sources.values())
    order = sorted(sources, key=lambda name: (name in STAND_INS, -sources[name]))
    return [
        {"name": name, "n": n, "share": f"{n / total:.1%}", "color": _SOURCE_COLORS.get(name, NEUTRAL)}
        for name in order
        if (n := sources[name])
    ]


def _spent_row(name: str, amount: float, limit: float | None) -> Json:
    number = "{:,.0f}" if amount >= 100 or amount == int(amount) else "{:,.1f}"
    return {"name": name, "spent": number.format(amount), "limit": "no limit" if limit is None else f"of {limit:,g}"}
