"""The folder of a comparison: a page of Markdown, its figure as PNG and PDF, and everything as JSON."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from prism_mesa.economy.tables import SHOWN
from prism_mesa.errors import DataError, counted, in_command
from prism_mesa.figure import NotebookFigure
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.runs.run_files import check_out
from prism_mesa.studies.comparison.comparison import RunComparison, as_json, folder_name
from prism_mesa.studies.folder import replacing, write_text
from prism_mesa.view.comparison import words
from prism_mesa.view.plots.economy import INDICATORS
from prism_mesa.view.plots.files import to_pdf, to_png
from prism_mesa.view.plots.style import GREY, INK, SMALL, figure_legend, series_color, tidy
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.markdown import to_markdown
from prism_mesa.view.study.numbers import p_value

PAGE: Final = "report.md"
VALUES: Final = "comparison.json"
FIGURE: Final = "rounds"


def write_comparison(comparison: RunComparison, out: str | Path) -> tuple[Path, ...]:
    """Write report.md, comparison.json, rounds.png and rounds.pdf to ``out/compare-<base>-<other>``; return all four.

    An earlier comparison of the same runs is replaced.

    Raises:
        DataError: If that folder lies in a run, holds something else, or cannot be made.
        RunError: If a file cannot be written.
    """
    check_out(out)
    folder = Path(out) / folder_name(comparison)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / VALUES).is_file():
        raise DataError(f"--out: {folder}: is there and holds no comparison: name another, or move it")
    make_folder(folder)
    page, values, png, pdf = (folder / name for name in (PAGE, VALUES, f"{FIGURE}.png", f"{FIGURE}.pdf"))
    write_text(values, json.dumps(as_json(comparison), indent=1) + "\n")
    figure = comparison_figure(comparison)
    for file, content in ((png, to_png(figure)), (pdf, to_pdf(figure))):
        with replacing(file) as part:
            part.write_bytes(content)
    write_text(page, to_markdown(comparison_report(comparison), {FIGURE: png.name}))
    return page, values, png, pdf


def comparison_report(comparison: RunComparison) -> b.Report:
    """Return the sections of the page."""
    base, other = words.side_labels(comparison)
    picture = b.Picture(FIGURE, figure_caption(comparison), partial(comparison_figure, comparison))
    sections = (
        b.Section("settings", "What differs in their settings", (_listing(words.settings_lines(comparison)),)),
        b.Section("diverged", "What diverged first", _divergence(comparison)),
        b.Section("measures", "Measures", _measures(comparison)),
        b.Section("rounds", "Rounds", (b.Paragraph(f"{words.rounds_line(comparison)}."), picture)),
        *([b.Section("notes", "Notes", (b.Bullets(tuple(comparison.notes)),))] if comparison.notes else []),
    )
    status = "equal" if comparison.equal else f"{counted(comparison.n_differ, 'measure')} differ"
    base_runs, other_runs = (
        " ".join(in_command(run.folder) for run in side) for side in (comparison.pairs.base, comparison.pairs.other)
    )
    command = f"prism compare {base_runs} {'--with ' if len(comparison.pairs.base) > 1 else ''}{other_runs}"
    footer = ("To repeat: ", b.Code(command), f". All numbers: {VALUES}; the figure for print: {FIGURE}.pdf.")
    return b.Report("prism compare", f"{base} and {other}", status, f"{words.in_short(comparison)}.", sections, footer)


def _listing(lines: Iterable[str]) -> b.Block:
    return b.Listing("\n".join(lines))


def _divergence(comparison: RunComparison) -> tuple[b.Block, ...]:
    why = words.reason_lines(comparison)
    return (
        _listing(words.divergence_lines(comparison)),
        *([b.Paragraph("Why, as prism why tells it:"), _listing(why)] if why else []),
        b.Paragraph("Tables:"),
        _listing(words.table_lines(comparison)),
    )


def _measures(comparison: RunComparison) -> tuple[b.Block, ...]:
    shown, rest = words.shown_measures(comparison, show_all=True)
    several = len(comparison.pairs.base) > 1
    if not shown:
        return (b.Paragraph(f"{rest or 'none were taken'}."),)
    heads = [head for head in words.HEADS[1:] if several or head != words.INTERVAL]
    columns = (b.Column(words.HEADS[0]), b.Column("unit"), *b.numeric(*heads, *(("p (Holm)", "n") if several else ())))
    rows = []
    for row in shown:
        name, *cells = words.measure_cells(row, several=several)
        tests = (p_value(row["p_holm"]), str(row["n"])) if several else ()
        rows.append((b.Code(name), str(row["unit"]), *cells, *tests))
    caption = (
        "Other less base, paired by seed, with Student's 95 % intervals; the largest standardised differences (d_z) "
        f"first. p is after Holm's correction over all {comparison.measures['p'].count():,} measures."
        if several
        else "Other less base, the largest relative differences first. One pair has no interval: what another seed "
        "would give is not known."
    )
    return b.table(columns, rows, caption), *([b.Paragraph(f"{rest}.")] if rest else [])


WIDTH: Final = 17 / 2.54
"""Inches: the width of a page's text."""
_HEIGHT: Final = 1.95
_COLUMNS: Final = 3
_MOST_NATIONS: Final = 3
_PANELS: Final = {
    "online": "agents online",
    "impressions": "impressions",
    "likes": "likes",
    "replies": "replies",
    "reshares": "reshares",
    "new_follows": "new follows",
    "unfollows": "unfollows",
    "blocks": "blocks",
    "share_idle": "share idle",
    "share_scrolling": "share scrolling",
    "share_evaluating": "share evaluating",
    "share_resting": "share resting",
}
_INDICATORS: Final = INDICATORS | {"policy_rate": "policy rate, % a year"}

type Panel = tuple[str, pd.DataFrame]


def comparison_figure(comparison: RunComparison) -> Figure:
    """Return per-round curves of both sides, each with the difference below it; bands where there are several pairs."""
    panels, columns = _panels(comparison), _COLUMNS
    if comparison.pairs.of_nations:
        columns = min(comparison.rounds["nation"].nunique(), _MOST_NATIONS)
    rows = -(-len(panels) // columns)
    figure = NotebookFigure(
        figsize=(WIDTH, _HEIGHT * max(rows, 1) + 0.55), layout=ConstrainedLayoutEngine(h_pad=0.02, hspace=0.0)
    )
    grid = figure.add_gridspec(max(rows, 1), columns)
    for place, (title, rounds) in enumerate(panels):
        row, column = divmod(place, columns)
        inner = grid[row, column].subgridspec(2, 1, height_ratios=(2, 1), hspace=0.06)
        upper = figure.add_subplot(inner[0])
        lower = figure.add_subplot(inner[1], sharex=upper)
        _curves(upper, rounds, title)
        _difference(lower, rounds)
        for axes in (upper, lower):
            axes.tick_params(labelsize=SMALL)
            if (mark := _mark(comparison)) is not None:
                axes.axvline(mark[0], color=GREY, ls="--", lw=0.9, zorder=1)
        if row == rows - 1 or place + columns >= len(panels):
            lower.set_xlabel("quarter" if comparison.pairs.of_nations else "round", fontsize=SMALL + 0.5)
        if column == 0:
            lower.set_ylabel("difference", fontsize=SMALL + 0.5)
    figure_legend(figure, _legend(comparison), loc="outside upper center", ncols=2)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # places stay, however often it is written
    return figure


def figure_caption(comparison: RunComparison) -> str:
    """Return what the figure shows, with units and numbers of runs."""
    base, other = words.side_labels(comparison)
    pairs, of_nations = counted(len(comparison.pairs.base), "pair"), comparison.pairs.of_nations
    same_seed = comparison.pairs.base[0].manifest.seed == comparison.pairs.other[0].manifest.seed
    seeds = f"{pairs} of runs with the same seed" if same_seed else f"{pairs} of runs, with different seeds"
    text = (
        f"{'Quarters' if of_nations else 'Rounds'} of {base} (base) and {other} (other), and below each the difference"
    )
    sentences = [f"{text}, other less base (n = {seeds})."]
    if of_nations:
        n = comparison.rounds["nation"].nunique()
        left = f", the first {_MOST_NATIONS} of {n} nations" if n > _MOST_NATIONS else ""
        sentences.append(f"Percent at the end of each quarter{left}.")
    else:
        agents = (comparison.pairs.base[0].manifest.config or {}).get("agents")
        n_agents = agents.get("n") if isinstance(agents, dict) else None
        of = f" of {counted(n_agents, 'agent')}" if isinstance(n_agents, int) else ""
        sentences.append(f"Counts a round{of}; shares are of agent-ticks.")
    bands = "Bands are 95 % intervals of the mean; that of the difference is paired by seed."
    sentences.append(bands if len(comparison.pairs.base) > 1 else "One pair has no interval.")
    if (mark := _mark(comparison)) is not None:
        sentences.append(f"Dashed line: {mark[1]}.")
    return " ".join(sentences)


def _panels(comparison: RunComparison) -> list[Panel]:
    """Return the title and the rows of each panel; panels without rows are left out."""
    rounds = comparison.rounds
    if comparison.pairs.of_nations:
        nations = list(dict.fromkeys(rounds["nation"]))[:_MOST_NATIONS]
        panels = [
            (f"{nation}: {_INDICATORS[name]}", rounds[(rounds["column"] == name) & (rounds["nation"] == nation)])
            for name in SHOWN
            for nation in nations
        ]
    else:
        panels = [(title, rounds[rounds["column"] == name]) for name, title in _PANELS.items()]
    return [(title, rows) for title, rows in panels if len(rows)]


def _curves(axes: Axes, rounds: pd.DataFrame, title: str) -> None:
    for place, side in enumerate(("base", "other")):
        _band(axes, rounds, f"{side}_low", f"{side}_high", series_color(place))
        axes.plot(rounds["round"], rounds[side], color=series_color(place), **_style(place), zorder=3 - place)
    tidy(axes)
    axes.set_title(title, loc="left", fontsize=SMALL + 1, parse_math=False)
    axes.tick_params(labelbottom=False)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _difference(axes: Axes, rounds: pd.DataFrame) -> None:
    axes.axhline(0, color=GREY, lw=0.8)
    _band(axes, rounds, "low", "high", INK)
    axes.plot(rounds["round"], rounds["difference"], color=INK, lw=1)
    tidy(axes)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    if rounds["equal"].all():
        axes.set(ylim=(-1, 1), yticks=[0])
        axes.text(0.97, 0.9, "equal", transform=axes.transAxes, ha="right", va="top", fontsize=SMALL)


def _style(place: int) -> dict[str, Any]:
    return {"ls": ("-", (0, (4, 1)))[place], "lw": 1.3}


def _band(axes: Axes, rounds: pd.DataFrame, low: str, high: str, color: str) -> None:
    if rounds[low].notna().any():
        axes.fill_between(rounds["round"], rounds[low], rounds[high], color=color, alpha=0.2, lw=0)


def _mark(comparison: RunComparison) -> tuple[int, str] | None:
    """Return the round in which the sides part and why (a branch or a divergence), or None if they never do."""
    unit = "quarter" if comparison.pairs.of_nations else "round"
    if comparison.can_differ_from:
        return comparison.can_differ_from, f"they branch in {unit} {comparison.can_differ_from}"
    if comparison.first_divergence is None or (at := comparison.first_divergence.round) is None:
        return None
    return at, f"they diverge in {unit} {at}"


def _legend(comparison: RunComparison) -> list[Line2D]:
    handles = [
        Line2D([], [], color=series_color(place), label=f"{('base', 'other')[place]}: {label}", **_style(place))
        for place, label in enumerate(words.side_labels(comparison))
    ]
    handles.append(Line2D([], [], color=INK, lw=1, label="difference, other less base"))
    if (mark := _mark(comparison)) is not None:
        handles.append(Line2D([], [], color=GREY, ls="--", lw=0.9, label=mark[1]))
    return handles
