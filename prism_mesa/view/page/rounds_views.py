"""The views of a run by rounds: states, engagement, and the oracle."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from reacton.ipyvuetify import Html
from solara.core import component

from prism_mesa.llm.params import STAND_INS
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.page.source import OracleOnShow, Source
from prism_mesa.view.page.widgets import OTHER, Json, show_answers, show_series, view_card

MAX_POINTS: Final = 300
"""Maximum number of points in a line; a longer run is drawn as means over several rounds."""
_ACTIVE: Final = tuple(state for state in STATE_COLORS if state is not AgentState.IDLE)
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


def thinned(
    rounds: np.ndarray[Any, Any], columns: Mapping[str, np.ndarray[Any, Any]]
) -> tuple[list[int], dict[str, Any]]:
    """Thin rounds and columns to at most `MAX_POINTS` rows: the first round, then means of equal numbers of rounds."""
    step = -(-len(rounds) // MAX_POINTS) if len(rounds) else 1
    starts = np.arange(0, len(rounds), step)
    sizes = np.diff(np.append(starts, len(rounds)))
    means = {
        name: [float(f"{v:.5g}") for v in (np.add.reduceat(column, starts) / sizes if len(starts) else column).tolist()]
        for name, column in columns.items()
    }
    return [int(number) for number in rounds[starts]], means


def _lines(source: Source, names: Sequence[str]) -> tuple[list[int], dict[str, Any]]:
    """Return the rounds and columns to draw."""
    columns = source.round_columns()
    return thinned(columns.get("round", np.zeros(0)), {name: columns.get(name, np.zeros(0)) for name in names})


def _draw(
    label: str,
    unit: str,
    source: Source,
    round_: int,
    others: Sequence[Source],
    lines: Mapping[str, tuple[str, str]],
    *,
    min_top: float = 4,
    as_shares: bool = False,
) -> None:
    """Draw columns of the table of rounds, each with a name and a colour, on axes shared with `others`.

    Shares are stacked. The vertical axis reaches at least to `min_top`.
    """
    rounds, columns = _lines(source, [*lines])
    sources = (source, *others)
    drawn = [np.array([*_lines(shown, [*lines])[1].values()]) for shown in sources]
    highest = [float((values.sum(axis=0) if as_shares else values).max(initial=0)) for values in drawn]
    with Html(tag="div", class_="prism-grow"):
        show_series(
            label=f"{label} by round, up to round {round_}",
            unit=unit,
            rounds=rounds,
            series=[{"name": name, "color": color, "values": columns[key]} for key, (name, color) in lines.items()],
            span=min(max(shown.rounds for shown in sources), max(30, 2 * (round_ + 1))),  # a long run is thinned
            stacked=as_shares,
            percent=as_shares,
            least=max(min_top, *highest),
        )


@component
def states_view(source: Source, round_: int, others: Sequence[Source] = ()) -> None:
    """Show shares of agent-ticks in the active states, on axes shared with `others`."""
    idle = source.round_columns().get("share_idle", np.zeros(0))
    unit = f"share of agent-ticks; the rest is idle ({100 * idle[-1]:.1f} %)" if len(idle) else "share of agent-ticks"
    lines = {f"share_{state.value}": (state.value, STATE_COLORS[state]) for state in reversed(_ACTIVE)}
    with view_card("What agents do", "view-states short"):
        _draw("Shares of agent-ticks in each state", unit, source, round_, others, lines, min_top=0.01, as_shares=True)


@component
def engagement_view(source: Source, round_: int, others: Sequence[Source] = ()) -> None:
    """Show likes, replies and reshares per round, on axes shared with `others`."""
    columns = source.round_columns()
    impressions = columns.get("impressions", np.zeros(0))
    n = sum(columns[name][-1] for name in _ENGAGEMENT) if len(impressions) else 0
    rate = f"; {n / impressions[-1]:.2%} of impressions" if len(impressions) and impressions[-1] else ""
    lines = {name: (name, color) for name, color in _ENGAGEMENT.items()}
    with view_card("Engagement", "view-engagement short"):
        _draw("Likes, replies and reshares", f"per round{rate}", source, round_, others, lines)


@component
def oracle_view(source: Source, round_: int, others: Sequence[Source] = ()) -> None:
    """Show who answered open choices, at what cost, and how many choices are open per round."""
    oracle = source.oracle()
    lines = {"open": ("open choices", _SOURCE_COLORS["llm"]), "fallback": ("fallbacks", _SOURCE_COLORS["fallback"])}
    with view_card("Oracle: who decides what is open", "view-oracle short"):
        show_answers(
            label=oracle.label,
            sources=_answer_shares(oracle),
            spent=[_spent_row(resource.what, resource.spent, resource.limit) for resource in oracle.spent],
            reasons=[f"{reason} ({n:,})" for reason, n in oracle.reasons.items()],
            notes=list(oracle.notes),
        )
        _draw("Open choices and fallbacks", "per round", source, round_, others, lines)


def _answer_shares(oracle: OracleOnShow) -> list[Json]:
    counts = {name: n for name, n in (oracle.sources or {}).items() if n}
    total = sum(counts.values())
    order = sorted(counts, key=lambda name: (name in STAND_INS, -counts[name]))
    shares = {name: f"{counts[name] / total:.1%}" for name in order}
    return [
        {"name": name, "n": counts[name], "share": share, "color": _SOURCE_COLORS.get(name, OTHER)}
        for name, share in shares.items()
    ]


def _spent_row(what: str, spent: float, limit: float | None) -> Json:
    number = "{:,.0f}" if spent >= 100 or spent == int(spent) else "{:,.1f}"
    return {"what": what, "spent": number.format(spent), "limit": "no limit" if limit is None else f"of {limit:,g}"}
