"""The folder of a comparison: a page of Markdown, its figure as PNG and PDF, and everything as JSON."""

import json
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
from prism_mesa.view.comparison.words import (
    HEADS,
    divergence_lines,
    in_short,
    measure_cells,
    reason_lines,
    rounds_line,
    settings_lines,
    shown_measures,
    side_labels,
    table_lines,
)
from prism_mesa.view.plots.files import pdf_of, png_of
from prism_mesa.view.plots.style import GREY, INK, SMALL, color_of, tidy, tidy_legend
from prism_mesa.view.study.blocks import (
    Block,
    Bullets,
    Code,
    Column,
    Listing,
    Paragraph,
    Picture,
    Report,
    Section,
    Words,
    table,
)
from prism_mesa.view.study.markdown import markdown_of
from prism_mesa.view.study.numbers import p_value

PAGE: Final = "report.md"
VALUES: Final = "comparison.json"
FIGURE: Final = "rounds"


def write_comparison(found: RunComparison, out: str | Path) -> tuple[Path, ...]:
    """Write report.md, comparison.json, rounds.png and rounds.pdf to ``out/compare-<base>-<other>``; return all four.

    What an earlier comparison of the same runs left there is replaced.

    Raises:
        DataError: If that folder lies in a run, holds something else, or cannot be made.
        RunError: If a file cannot be written.
    """
    check_out(out)
    folder = Path(out) / folder_name(found)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / VALUES).is_file():
        raise DataError(f"--out: {folder}: is there and holds no comparison: name another, or move it")
    make_folder(folder)
    page, values, png, pdf = (folder / name for name in (PAGE, VALUES, f"{FIGURE}.png", f"{FIGURE}.pdf"))
    write_text(values, json.dumps(as_json(found), indent=1) + "\n")
    figure = comparison_figure(found)
    for file, content in ((png, png_of(figure)), (pdf, pdf_of(figure))):
        with replacing(file) as part:
            part.write_bytes(content)
    write_text(page, markdown_of(report_of(found), {FIGURE: png.name}, {FIGURE: 1}))
    return page, values, png, pdf


def report_of(found: RunComparison) -> Report:
    """Return what the page says."""
    base, other = side_labels(found)
    sections = (
        Section("settings", "What differs in their settings", (_code(settings_lines(found)),)),
        Section("diverged", "What diverged first", tuple(_diverged(found))),
        Section("measures", "Measures", tuple(_measures(found))),
        Section("rounds", "Rounds", (Paragraph(f"{rounds_line(found)}."), _picture(found))),
    )
    notes = Section("notes", "Notes", (Bullets(tuple(found.notes)),))
    status = "equal" if found.equal else f"{counted(found.n_differ, 'measure')} differ"
    footer = ("To repeat: ", Code(_command(found)), f". All numbers: {VALUES}; the figure for print: {FIGURE}.pdf.")
    with_notes = (*sections, notes) if found.notes else sections
    return Report("prism compare", f"{base} and {other}", status, f"{in_short(found)}.", with_notes, footer)


def _code(lines: list[str]) -> Block:
    return Listing("\n".join(lines))


def _diverged(found: RunComparison) -> list[Block]:
    blocks = [_code(divergence_lines(found))]
    if told := reason_lines(found):
        blocks += [Paragraph("Why, as `prism why` tells it:".replace("`", "")), _code(told)]
    return [*blocks, Paragraph("Tables:"), _code(table_lines(found))]


def _measures(found: RunComparison) -> list[Block]:
    shown, rest = shown_measures(found, show_all=True)
    n = len(found.pairs.base)
    if not shown:
        return [Paragraph(f"{rest or 'none were taken'}.")]
    titles = (*HEADS[1:], "p (Holm)", "n") if n > 1 else tuple(head for head in HEADS[1:] if head != HEADS[4])
    columns = (Column(HEADS[0]), Column("unit"), *(Column(title, number=True) for title in titles))
    rows: list[tuple[Words, ...]] = []
    for row in shown:
        name, *cells = measure_cells(row)
        numbers = (*cells, p_value(row["p_holm"]), str(row["n"])) if n > 1 else (*cells[:3], cells[4])
        rows.append((Code(name), str(row["unit"]), *numbers))
    how = (
        "Other less base, paired by seed, with Student's 95 % intervals; the largest standardised differences (d_z) "
        f"first. p is after Holm's correction over all {found.measures['p'].count():,} measures."
        if n > 1
        else "Other less base, the largest relative differences first. One pair has no interval: what another seed "
        "would give is not known."
    )
    blocks: list[Block] = [table(columns, rows, how)]
    return [*blocks, Paragraph(f"{rest}.")] if rest else blocks


def _picture(found: RunComparison) -> Picture:
    return Picture(FIGURE, figure_caption(found), lambda: comparison_figure(found))


def _command(found: RunComparison) -> str:
    base, other = (" ".join(in_command(run.folder) for run in side) for side in (found.pairs.base, found.pairs.other))
    return f"prism compare {base} {'--with ' if len(found.pairs.base) > 1 else ''}{other}"


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
_INDICATORS: Final = {
    "output_gap": "output gap, %",
    "inflation": "inflation, % a year",
    "unemployment": "unemployment, %",
    "policy_rate": "policy rate, % a year",
}

type Panel = tuple[str, pd.DataFrame]


def comparison_figure(found: RunComparison) -> Figure:
    """Return per-round curves of both sides, each with the difference below it; bands where there are several pairs."""
    panels, columns = _panels(found), _columns(found)
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
        at = _marked_round(found)
        for axes in (upper, lower):
            axes.tick_params(labelsize=SMALL)
            if at is not None:
                axes.axvline(at, color=GREY, ls="--", lw=0.9, zorder=1)
        if row == rows - 1 or place + columns >= len(panels):
            lower.set_xlabel("quarter" if found.pairs.of_nations else "round", fontsize=SMALL + 0.5)
        if column == 0:
            lower.set_ylabel("difference", fontsize=SMALL + 0.5)
    tidy_legend(
        figure.legend(handles=_legend(found), loc="outside upper center", ncols=2, frameon=False, fontsize=SMALL)
    )
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # places stay, however often it is written
    return figure


def figure_caption(found: RunComparison) -> str:
    """Return what the figure shows, with units and numbers of runs."""
    base, other = side_labels(found)
    n = len(found.pairs.base)
    nations = found.pairs.of_nations
    told = [
        f"{'Quarters' if nations else 'Rounds'} of {base} (base) and {other} (other), and below each the difference"
    ]
    told[0] += (
        f", other less base (n = {counted(n, 'pair')} of runs with the same seed)."
        if _same_seeds(found)
        else (f", other less base (n = {counted(n, 'pair')} of runs, with different seeds).")
    )
    if nations:
        names = list(dict.fromkeys(found.rounds["nation"]))
        left = f", the first {_MOST_NATIONS} of {len(names)} nations" if len(names) > _MOST_NATIONS else ""
        told.append(f"Percent at the end of each quarter{left}.")
    else:
        told.append(f"Counts a round{_agents(found)}; shares are of agent-ticks.")
    told.append(
        "Bands are 95 % intervals of the mean; that of the difference is paired by seed."
        if n > 1
        else "One pair has no interval."
    )
    if (words := _marked_in_words(found)) is not None:
        told.append(f"Dashed line: {words}.")
    return " ".join(told)


def _agents(found: RunComparison) -> str:
    agents = (found.pairs.base[0].manifest.config or {}).get("agents")
    n = agents.get("n") if isinstance(agents, dict) else None
    return f" of {counted(n, 'agent')}" if isinstance(n, int) else ""


def _same_seeds(found: RunComparison) -> bool:
    return found.pairs.base[0].manifest.seed == found.pairs.other[0].manifest.seed


def _panels(found: RunComparison) -> list[Panel]:
    """Return the title and the rows of each panel that there is."""
    rounds = found.rounds
    if not found.pairs.of_nations:
        chosen = [(title, rounds[rounds["column"] == name]) for name, title in _PANELS.items()]
        return [(title, rows) for title, rows in chosen if len(rows)]
    nations = list(dict.fromkeys(rounds["nation"]))[:_MOST_NATIONS]
    chosen = [
        (f"{nation}: {_INDICATORS[name]}", rounds[(rounds["column"] == name) & (rounds["nation"] == nation)])
        for name in SHOWN
        for nation in nations
    ]
    return [(title, rows) for title, rows in chosen if len(rows)]


def _columns(found: RunComparison) -> int:
    """Return how many panels stand side by side: of nations one for each."""
    return min(found.rounds["nation"].nunique(), _MOST_NATIONS) if found.pairs.of_nations else _COLUMNS


def _curves(axes: Axes, rounds: pd.DataFrame, title: str) -> None:
    for place, side in enumerate(("base", "other")):
        _band(axes, rounds, f"{side}_low", f"{side}_high", color_of(place))
        axes.plot(rounds["round"], rounds[side], color=color_of(place), **_style(place), zorder=3 - place)
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


def _marked_round(found: RunComparison) -> int | None:
    """Return where the sides part: where one branched, else where they diverged."""
    if found.free_from:
        return found.free_from
    return None if found.first_divergence is None else found.first_divergence.round


def _marked_in_words(found: RunComparison) -> str | None:
    at, what = _marked_round(found), "quarter" if found.pairs.of_nations else "round"
    if at is None:
        return None
    return f"they branch in {what} {at}" if found.free_from else f"they diverge in {what} {at}"


def _legend(found: RunComparison) -> list[Line2D]:
    handles = [
        Line2D([], [], color=color_of(place), label=f"{('base', 'other')[place]}: {label}", **_style(place))
        for place, label in enumerate(side_labels(found))
    ]
    handles.append(Line2D([], [], color=INK, lw=1, label="difference, other less base"))
    if (words := _marked_in_words(found)) is not None:
        handles.append(Line2D([], [], color=GREY, ls="--", lw=0.9, label=words))
    return handles
