"""Pictures of a run, from its tables."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from prism_mesa.runs.measures import ccdf
from prism_mesa.runs.run_files import read_table
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.frames import (
    DPI,
    changes_of,
    filled_table,
    framed,
    mark_changes,
    save,
    save_figures,
    whole_numbers,
)
from prism_mesa.view.network import network_figure
from prism_mesa.view.opinions import draw_opinions

_SHARES = [f"share_{state.value}" for state in list(STATE_COLORS)[::-1]]
_ENGAGEMENT = {
    "likes": (AgentState.ENGAGING_LIKE, "o"),
    "replies": (AgentState.ENGAGING_REPLY, "s"),
    "reshares": (AgentState.ENGAGING_RESHARE, "^"),
}


def states_figure(rounds: pd.DataFrame, changes: Sequence[Mapping[str, Any]] = ()) -> Figure:
    """Return the shares of agent-ticks in each state per round, stacked, idle on top.

    Args:
        rounds: Columns `round` and `share_<state>`: the table `rounds` of a run.
        changes: Its interventions, as the manifest holds them: `at`, `until`, `set`.
    """
    figure, axes = framed("What agents are doing")
    order = list(STATE_COLORS)[::-1]
    shares = rounds[_SHARES].to_numpy().T
    edges = [*(rounds["round"] - 0.5), rounds["round"].iloc[-1] + 0.5]
    steps = [[*row, row[-1]] for row in shares]
    colors, labels = [STATE_COLORS[s] for s in order], [s.value for s in order]
    axes.stackplot(edges, steps, step="post", colors=colors, labels=labels, lw=0)
    axes.set(xlabel="round", ylabel="share of agent-ticks", xlim=(edges[0], edges[-1]), ylim=(0, 1))
    axes.xaxis.set_major_locator(whole_numbers())
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    mark_changes(axes, changes)
    return figure


def cascades_figure(cascades: pd.DataFrame) -> Figure:
    """Return the share of cascades that reach a size, both axes logarithmic.

    Args:
        cascades: Column `size`: the table `cascades` of a run.
    """
    figure, axes = framed("How far posts spread")
    sizes, shares = ccdf(cascades["size"])
    axes.loglog(sizes, shares, "o-", color="#4c72b0", ms=4, lw=1)
    axes.set(xlabel="cascade size s (post and its reshares)", ylabel="share of posts with size ≥ s")
    axes.grid(alpha=0.25, which="both")
    if not len(sizes):
        axes.text(0.5, 0.5, "nobody posted", transform=axes.transAxes, ha="center")
    return figure


def engagement_figure(rounds: pd.DataFrame, changes: Sequence[Mapping[str, Any]] = ()) -> Figure:
    """Return likes, replies and reshares per round.

    Args:
        rounds: Columns `round`, `likes`, `replies`, `reshares`: the table `rounds` of a run.
        changes: As for `states_figure`.
    """
    figure, axes = framed("Engagement per round")
    for name, (state, marker) in _ENGAGEMENT.items():
        axes.plot(
            rounds["round"],
            rounds[name],
            marker=marker,
            color=STATE_COLORS[state],
            ms=4,
            lw=1.2,
            label=name,
            clip_on=False,
        )
    axes.set(xlabel="round", ylabel="engagements", ylim=(0, max(1, axes.get_ylim()[1])))
    axes.xaxis.set_major_locator(whole_numbers())
    axes.yaxis.set_major_locator(whole_numbers())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    mark_changes(axes, changes)
    return figure


def draw_run(run_dir: str | Path, *, partly: bool = False) -> list[Path]:
    """Draw states, cascades, engagement, and opinions if they move, as PNG files into a run's folder; return the paths.

    network.png is drawn too where the network moves, and it can be made again.

    Args:
        run_dir: The folder.
        partly: Whether a picture is left out for which the folder has no table or no rows.

    Raises:
        DataError: If the folder lacks a table, or no round was completed; not with `partly`.
    """
    folder = Path(run_dir)

    def cascades() -> Figure:
        trees = read_table(folder, "cascades", ["size", "kind"])
        return cascades_figure(trees[trees["kind"] == "post"])

    changes = changes_of(folder)
    figures = {
        "states": lambda: states_figure(filled_table(folder, "rounds", ["round", *_SHARES]), changes),
        "cascades": cascades,
        "engagement": lambda: engagement_figure(filled_table(folder, "rounds", ["round", *_ENGAGEMENT]), changes),
    }
    drawn = [*save_figures(folder, figures, DPI, partly=partly), *draw_opinions(folder, partly=partly)]
    return drawn + save_figures(folder, {"network": lambda: network_figure(folder)}, DPI, partly=True)


_WAVES = {"before": ("#9a9a9a", "o", -0.14), "after": ("#4c72b0", "s", 0.14)}


def survey_figure(table: pd.DataFrame, asks: Mapping[str, str]) -> Figure:
    """Return what agents answered to closed questions before and after a run, and the change, with its intervals.

    Args:
        table: Columns `question`, `option`, `wave`, `n`, `mean`, `low`, `high`: the table of a survey, not empty.
        asks: Question -> its words, for titles.
    """
    groups = list(table.groupby("question", sort=False))
    sizes = [1.5 + 0.42 * len(rows["option"].unique()) for _, rows in groups]
    figure = Figure(figsize=(10, sum(sizes) + 0.7), layout="constrained")
    grid = figure.subplots(len(sizes), 2, squeeze=False, width_ratios=[2, 1], height_ratios=sizes)
    for (shares, changes), (question, rows) in zip(grid, groups, strict=True):
        options = list(rows["option"].unique())
        for wave, style in _WAVES.items():
            _dots(shares, rows[rows["wave"] == wave], options, style, wave)
        _dots(changes, rows[rows["wave"] == "change"], options, ("#c44e52", "D", 0.0), "change")
        shares.axvline(1 / len(options), color="#b8b8b8", lw=1, ls="--", label="all options alike")
        changes.axvline(0, color="#b8b8b8", lw=1, ls="--")
        labels = [textwrap.fill(str(option), 34) for option in options]
        shares.set_yticks(range(len(options)), labels=labels, parse_math=False)
        changes.set_yticks(range(len(options)), labels=[])
        shares.set_xlim(left=0)
        for axes in (shares, changes):
            axes.set_ylim(len(options) - 0.5, -0.5)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.25, axis="x")
        n = ", ".join(f"{rows.loc[rows['wave'] == wave, 'n'].max():,} {wave}" for wave in _WAVES)
        asked = textwrap.fill(asks.get(str(question), str(question)), 60)
        shares.set_title(f"{asked}\nn = {n}", loc="left", fontsize=10, parse_math=False)
        changes.xaxis.set_major_locator(MaxNLocator(4))
        changes.set_title("change", loc="left", fontsize=10)
    for axes, text in zip(grid[-1], ("mean probability, 95 % interval over agents", "after - before"), strict=True):
        axes.set_xlabel(text)
    figure.legend(*grid[0][0].get_legend_handles_labels(), frameon=False, loc="outside lower left", ncols=3)
    return figure


def _dots(axes: Axes, rows: pd.DataFrame, options: list[str], style: tuple[str, str, float], wave: str) -> None:
    """Draw the means of one wave with their intervals, a line for each option; what nobody answered is left out."""
    color, marker, shift = style
    known = rows[rows["n"] > 0]
    places = [options.index(option) + shift for option in known["option"]]
    reach = [known["mean"] - known["low"], known["high"] - known["mean"]]
    axes.errorbar(known["mean"], places, xerr=reach, fmt=marker, color=color, ms=5, lw=1.6, capsize=3, label=wave)


def draw_survey(folder: str | Path, table: pd.DataFrame, asks: Mapping[str, str]) -> list[Path]:
    """Draw survey.png into a survey's folder, and return its path; nothing where no closed question was asked."""
    if table.empty:
        return []
    file = Path(folder) / "survey.png"
    save(survey_figure(table, asks), file)
    return [file]


_COMPARED = {"llm": "#4d4d4d", "logistic": "#4c72b0", "boosting": "#55a868", "rule": "#c44e52", "majority": "#b8b8b8"}


def distilled_figure(judged: Mapping[str, Any]) -> Figure:
    """Return how well a distilled model does on held-out personas and posts: calibration, log loss, and AUC.

    Args:
        judged: One of the `choices` of a report of `prism distill`.
    """
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    curves, *bars = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    first, second = judged["options"][0], "log loss (nats; lower is better)"
    curves.plot([0, 1], [0, 1], color="#b8b8b8", lw=1, ls="--")
    for name, groups in judged["calibration"].items():
        said, true = ([group[side] for group in groups] for side in ("said", "true"))
        curves.plot(said, true, "o-", color=_COMPARED[name], ms=4, lw=1.2, label=name)
    curves.set(xlabel=f"P({first}) as predicted", ylabel="as the LLM gave it", xlim=(0, 1), ylim=(0, 1))
    curves.set_title(f"Calibration, {judged['rows']:,} decisions", loc="left")
    curves.legend(frameon=False)
    for axes, (measure, title) in zip(bars, (("log_loss", second), ("auc", "AUC (higher is better)")), strict=True):
        names = [name for name in _COMPARED if name in judged["scores"]]
        values = [judged["scores"][name][measure] for name in names]
        axes.barh(names[::-1], values[::-1], color=[_COMPARED[name] for name in names[::-1]])
        for place, value in enumerate(values[::-1]):
            axes.text(value, place, f" {value:.3f}", va="center")
        axes.set_title(title, loc="left")
        axes.set_xlim(0, 1.25 * max(values))
    for axes in (curves, *bars):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def drift_figure(drift: pd.DataFrame) -> Figure:
    """Return how outcomes move with the share of the LLM: counts against those of the largest share, and states.

    Args:
        drift: Columns `share`, `seed`, `outcome`, `value`, `relative`: the table of `prism distill --drift`.
    """
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    full = drift["share"].max()
    is_state = drift["outcome"].str.startswith("share ")
    for name, rows in drift[~is_state].groupby("outcome", sort=False):
        means = rows.groupby("share")["relative"].mean()
        left.plot(means.index, means, "o-", ms=4, lw=1.2, label=name)
    left.axhline(1, color="#b8b8b8", lw=1, ls="--")
    left.set(xlabel="share of open choices that the LLM answers", ylabel=f"outcome / outcome with share {full:g}")
    left.set_title("Outcomes", loc="left")
    for name, rows in drift[is_state].groupby("outcome", sort=False):
        means = rows.groupby("share")["value"].mean() * 100
        state = AgentState(str(name).removeprefix("share "))
        right.plot(means.index, means - means[full], "o-", color=STATE_COLORS[state], ms=4, lw=1.2, label=state.value)
    right.axhline(0, color="#b8b8b8", lw=1, ls="--")
    right.set(xlabel="share of open choices that the LLM answers", ylabel="percentage points")
    right.set_title(f"Agent-ticks in each state, against share {full:g}", loc="left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def draw_distilled(folder: str | Path, report: Mapping[str, Any], drift: pd.DataFrame | None = None) -> list[Path]:
    """Draw distilled.png, and drift.png if there is a drift, into a folder, and return their paths."""
    judged = next(choice for choice in report["choices"] if "scores" in choice)
    figures = {"distilled": distilled_figure(judged)}
    if drift is not None:
        figures["drift"] = drift_figure(drift)
    for name, figure in figures.items():
        save(figure, Path(folder) / f"{name}.png")
    return [Path(folder) / f"{name}.png" for name in figures]
