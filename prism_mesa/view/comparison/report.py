"""Write a comparison: a page of Markdown, its figure as PNG and PDF, and all values as JSON."""

import json
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from prism_mesa.domain import SHARE, STATES, states_in
from prism_mesa.economy.tables import RESPONSE_INDICATORS
from prism_mesa.errors import DataError, format_count, quote_path
from prism_mesa.figure import NotebookFigure
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.runs.run_files import check_output_folder
from prism_mesa.studies.comparison.comparison import RunComparison, as_json, folder_name
from prism_mesa.studies.folder import replacing, write_text
from prism_mesa.view.comparison import words
from prism_mesa.view.plots.economy import INDICATORS
from prism_mesa.view.plots.files import to_pdf, to_png
from prism_mesa.view.plots.rounds import Band, draw_band
from prism_mesa.view.plots.style import GREY, INK, SMALL, WIDTH, figure_legend, series_color, tidy
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.markdown import to_markdown
from prism_mesa.view.study.numbers import p_value

_JSON_FILE: Final = "comparison.json"
_FIGURE: Final = "rounds"


def write_comparison(comparison: RunComparison, out: str | Path) -> tuple[Path, ...]:
    """Write report.md, comparison.json, rounds.png and rounds.pdf to ``out/compare-<base>-<other>``; return all four.

    An earlier comparison of the same runs is replaced.

    Raises:
        DataError: If the folder is inside a run, has other contents, or cannot be created.
        RunError: If a file cannot be written.
    """
    check_output_folder(out)
    folder = Path(out) / folder_name(comparison)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _JSON_FILE).is_file():
        raise DataError(f"--out: {folder}: exists and holds no comparison: choose another folder, or move it")
    make_folder(folder)
    page, values, png, pdf = (folder / name for name in ("report.md", _JSON_FILE, f"{_FIGURE}.png", f"{_FIGURE}.pdf"))
    write_text(values, json.dumps(as_json(comparison), indent=1) + "\n")
    figure = comparison_figure(comparison)
    for file, content in ((png, to_png(figure)), (pdf, to_pdf(figure))):
        with replacing(file) as part:
            part.write_bytes(content)
    write_text(page, to_markdown(_report(comparison), {_FIGURE: png.name}))
    return page, values, png, pdf


def _report(comparison: RunComparison) -> doc.Report:
    base, other = words.side_labels(comparison)
    picture = doc.Picture(_FIGURE, figure_caption(comparison), partial(comparison_figure, comparison))
    reasons = words.reason_lines(comparison)
    divergence = (
        _listing(words.divergence_lines(comparison)),
        *([doc.Paragraph("The behaviour behind it, as prism why explains it:"), _listing(reasons)] if reasons else []),
        doc.Paragraph("Tables:"),
        _listing(words.table_lines(comparison)),
    )
    sections = (
        doc.Section("settings", "What differs in their settings", (_listing(words.settings_lines(comparison)),)),
        doc.Section("diverged", "What diverged first", divergence),
        doc.Section("measures", "Measures", _measures(comparison)),
        doc.Section("rounds", "Rounds", (doc.Paragraph(f"{words.rounds_line(comparison)}."), picture)),
        *([doc.Section("notes", "Notes", (doc.Bullets(tuple(comparison.notes)),))] if comparison.notes else []),
    )
    status = "equal" if comparison.equal else f"{format_count(comparison.n_differ, 'measure')} differ"
    sides = (comparison.pairs.base, comparison.pairs.other)
    base_runs, other_runs = (" ".join(quote_path(run.folder) for run in side) for side in sides)
    command = f"prism compare {base_runs} {'--with ' if len(comparison.pairs.base) > 1 else ''}{other_runs}"
    footer = ("To repeat: ", doc.Code(command), f". All numbers: {_JSON_FILE}; the figure for print: {_FIGURE}.pdf.")
    summary = f"{words.summary_line(comparison)}."
    return doc.Report("prism compare", f"{base} and {other}", status, summary, sections, footer)


def _listing(lines: list[str]) -> doc.Block:
    return doc.Listing("\n".join(lines))


def _measures(comparison: RunComparison) -> tuple[doc.Block, ...]:
    top_rows, others = words.select_measures(comparison, show_all=True)
    has_intervals = len(comparison.pairs.base) > 1
    if not top_rows:
        return (doc.Paragraph(f"{others or 'none were taken'}."),)
    headers = [header for header in words.HEADERS[1:] if has_intervals or header != words.INTERVAL]
    test_headers = ("p (Holm)", "n") if has_intervals else ()
    columns = (doc.Column(words.HEADERS[0]), doc.Column("unit"), *doc.number_columns(*headers, *test_headers))
    rows = []
    for row in top_rows:
        name, *cells = words.measure_cells(row, has_intervals=has_intervals)
        tests = (p_value(row["p_holm"]), str(row["n"])) if has_intervals else ()
        rows.append((doc.Code(name), str(row["unit"]), *cells, *tests))
    caption = (
        "Other less base, paired by seed, with Student's 95 % intervals; the largest standardised differences (d_z) "
        f"first. p has Holm's correction over all {comparison.measures['p'].count():,} measures."
        if has_intervals
        else "Other less base, the largest relative differences first. One pair has no interval: it does not show what "
        "another seed would give."
    )
    return doc.simple_table(columns, rows, caption), *([doc.Paragraph(f"{others}.")] if others else [])


_ROW_HEIGHT: Final = 1.95  # inches
_COLUMNS: Final = 3
_MAX_NATIONS: Final = 3
_PANELS: Final = (
    *("online", "impressions", "likes", "replies", "reshares", "new_follows", "unfollows", "blocks"),
    *("share_idle", "share_scrolling", "share_evaluating", "share_resting"),
)
_TITLES: Final = {"online": "agents online"}
_INDICATORS: Final = INDICATORS | {"policy_rate": "policy rate, % a year"}
_LINES: Final[tuple[dict[str, Any], ...]] = (
    {"color": series_color(0), "ls": "-", "lw": 1.3},
    {"color": series_color(1), "ls": (0, (4, 1)), "lw": 1.3},
)
"""Styles of base and other."""


def comparison_figure(comparison: RunComparison) -> Figure:
    """Draw curves of both sides by round, each with the difference below it, and with bands for several pairs."""
    panels, columns, marker = _panels(comparison), _COLUMNS, _divergence_marker(comparison)
    if comparison.pairs.is_economy:
        columns = min(comparison.rounds["nation"].nunique(), _MAX_NATIONS)
    rows = max(-(-len(panels) // columns), 1)
    layout = ConstrainedLayoutEngine(h_pad=0.02, hspace=0.0)
    figure = NotebookFigure(figsize=(WIDTH, _ROW_HEIGHT * rows + 0.55), layout=layout)
    grid = figure.add_gridspec(rows, columns)
    for index, (title, rounds) in enumerate(panels.items()):
        row, column = divmod(index, columns)
        cell = grid[row, column].subgridspec(2, 1, height_ratios=(2, 1), hspace=0.06)
        upper = figure.add_subplot(cell[0])
        lower = figure.add_subplot(cell[1], sharex=upper)
        _draw_sides(upper, rounds, title)
        _draw_difference(lower, rounds)
        if marker is not None:
            for axes in (upper, lower):
                axes.axvline(marker[0], color=GREY, ls="--", lw=0.9, zorder=1)
        if row == rows - 1 or index + columns >= len(panels):
            lower.set_xlabel(comparison.pairs.base[0].unit, fontsize=SMALL + 0.5)
        if column == 0:
            lower.set_ylabel("difference", fontsize=SMALL + 0.5)
    sides = zip(("base", "other"), words.side_labels(comparison), _LINES, strict=True)
    handles = [Line2D([], [], label=f"{side}: {label}", **line) for side, label, line in sides]
    handles.append(Line2D([], [], color=INK, lw=1, label="difference, other less base"))
    if marker is not None:
        handles.append(Line2D([], [], color=GREY, ls="--", lw=0.9, label=marker[1]))
    figure_legend(figure, handles, loc="outside upper center", ncols=2)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # keep the layout when the figure is written several times
    return figure


def figure_caption(comparison: RunComparison) -> str:
    """Return the caption of the figure, with units and numbers of runs."""
    base, other = words.side_labels(comparison)
    pairs = comparison.pairs
    seeds = "the same seed" if pairs.base[0].manifest.seed == pairs.other[0].manifest.seed else "different seeds"
    text = f"{pairs.base[0].unit.capitalize()}s of {base} (base) and {other} (other), and below each the difference"
    sentences = [f"{text}, other less base (n = {format_count(len(pairs.base), 'pair')} of runs with {seeds})."]
    if pairs.is_economy:
        n = comparison.rounds["nation"].nunique()
        nations = f", the first {_MAX_NATIONS} of {n} nations" if n > _MAX_NATIONS else ""
        sentences.append(f"Percent at the end of each quarter{nations}.")
    else:
        agents = (pairs.base[0].manifest.config or {}).get("agents")
        n_agents = agents.get("n") if isinstance(agents, dict) else None
        population = f" of {format_count(n_agents, 'agent')}" if isinstance(n_agents, int) else ""
        sentences.append(f"Counts a round{population}; shares are of agent-ticks.")
    bands = "Bands are 95 % intervals of the mean; those of the difference are paired by seed."
    sentences.append(bands if len(pairs.base) > 1 else "One pair has no interval.")
    if (marker := _divergence_marker(comparison)) is not None:
        sentences.append(f"Dashed line: {marker[1]}.")
    return " ".join(sentences)


def _panels(comparison: RunComparison) -> dict[str, pd.DataFrame]:
    """Return the rows to draw by title of the panel; panels without rows are left out."""
    rounds = comparison.rounds
    by_column = dict(list(rounds.groupby("column")))
    if not comparison.pairs.is_economy:
        shares = (SHARE + state.value for state in states_in(by_column)[len(STATES) :])
        panels = (*(name for name in _PANELS if name in by_column), *shares)
        return {_TITLES.get(name, name.replace("_", " ")): by_column[name] for name in panels}
    nations = list(dict.fromkeys(rounds["nation"]))[:_MAX_NATIONS]
    names = [name for name in RESPONSE_INDICATORS if name in by_column]
    return {
        f"{nation}: {_INDICATORS[name]}": by_column[name][by_column[name]["nation"] == nation]
        for name in names
        for nation in nations
    }


def _draw_sides(axes: Axes, rounds: pd.DataFrame, title: str) -> None:
    for index, side in enumerate(("base", "other")):
        band = Band(rounds["round"], rounds[side], rounds[f"{side}_low"], rounds[f"{side}_high"])
        draw_band(axes, band, zorder=3 - index, **_LINES[index])
    tidy(axes)
    axes.set_title(title, loc="left", fontsize=SMALL + 1, parse_math=False)
    axes.tick_params(labelbottom=False)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _draw_difference(axes: Axes, rounds: pd.DataFrame) -> None:
    axes.axhline(0, color=GREY, lw=0.8)
    draw_band(axes, Band(rounds["round"], rounds["difference"], rounds["low"], rounds["high"]), color=INK, lw=1)
    tidy(axes)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    if rounds["equal"].all():
        axes.set(ylim=(-1, 1), yticks=[0])
        axes.text(0.97, 0.9, "equal", transform=axes.transAxes, ha="right", va="top", fontsize=SMALL)


def _divergence_marker(comparison: RunComparison) -> tuple[int, str] | None:
    """Return the first round in which the sides can differ or do differ, and a label; None if they never do."""
    if branch_round := comparison.can_differ_from:
        return branch_round, f"they branch in {comparison.pairs.base[0].unit} {branch_round}"
    first = comparison.first_divergence
    if first is None or first.round is None:
        return None
    return first.round, f"they diverge in {comparison.pairs.base[0].unit} {first.round}"
