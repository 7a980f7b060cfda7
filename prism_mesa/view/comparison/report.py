"""The folder of a comparison: a page of Markdown, its figure as PNG and PDF, and everything as JSON."""

import json
from pathlib import Path
from typing import Final

from prism_mesa.errors import DataError, counted, in_command
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.runs.run_files import check_out
from prism_mesa.studies.comparison.comparison import RunComparison, as_json, folder_name
from prism_mesa.studies.folder import replacing, write_text
from prism_mesa.view.comparison.figure import comparison_figure, figure_caption
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
