"""The report of field experiments: tables for the terminal, and a page of Markdown with figures."""

from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from prism_mesa.errors import format_count, printable
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.experiments.evaluation import VERDICTS, ExperimentResults, OutcomeRow
from prism_mesa.studies.experiments.outcomes import FACTOR, FigureParams, Outcome
from prism_mesa.studies.folder import write_text
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.files import to_png
from prism_mesa.view.study.numbers import NO_VALUE, decimals_for, interval, number, significant

HEADERS: Final = ("outcome", "unit", "role", "published", "allowed", "simulated", "95 % interval", "verdict")


def summary_line(results: ExperimentResults) -> str:
    """Return how many predicted outcomes are inside, and how many have the right sign."""
    rows = results.scored
    inside = sum(row.verdict == "inside" for row in rows)
    signed = [row for row in rows if row.sign_right is not None]
    right, established = sum(row.sign_right is True for row in rows), sum(row.sign_established is True for row in rows)
    predicted = sum(row.outcome.role == "predicted" and row.outcome.published is None for row in results.rows)
    text = f"{inside} of {len(rows)} predicted outcomes inside; the sign is right in {right} of {len(signed)}"
    text += f" (in {established} the interval excludes no effect)"
    return text + (f"; {format_count(predicted, 'further outcome')} predicted before looking" if predicted else "")


def experiment_lines(results: ExperimentResults) -> list[str]:
    """Return the lines that the command prints."""
    groups = {name: [_cells(row) for row in rows] for name, rows in _rows_by_experiment(results)}
    widths = [
        max(map(len, column)) for column in zip(HEADERS, *(row for g in groups.values() for row in g), strict=True)
    ]
    lines = []
    for name, cells in groups.items():
        lines += [f"{name}: {results.experiments[name].title}"]
        lines += ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (HEADERS, *cells)] + [""]
    hours = f"{sum(results.cpu_hours.values()):.2g} CPU hours ({results.scale} scale)"
    return [*lines, summary_line(results), hours, f"report: {results.path / 'report.md'}"]


def _rows_by_experiment(results: ExperimentResults) -> Iterator[tuple[str, list[OutcomeRow]]]:
    for name in results.experiments:
        yield name, [row for row in results.rows if row.experiment == name]


def _cells(row: OutcomeRow) -> tuple[str, ...]:
    """Return the cells of a row in the order of `HEADERS`."""
    outcome, decimals = row.outcome, decimals_for([row.low], [row.high], [row.value])
    published = outcome.published if isinstance(outcome.published, str) else significant(outcome.published)
    return (
        outcome.what,
        outcome.unit,
        outcome.role,
        f"{published}{f' ({outcome.mark})' if outcome.mark else ''}",
        _allowed_text(outcome),
        number(row.value, decimals),
        interval(row.low, row.high, decimals),
        row.verdict if row.sign_right is not False or row.verdict == "inside" else f"{row.verdict}, wrong sign",
    )


def _allowed_text(outcome: Outcome) -> str:
    low, high = outcome.allowed
    return f"{significant(low)} to {significant(high)}" if isfinite(low) and isfinite(high) else NO_VALUE


def write_report(results: ExperimentResults) -> Path:
    """Write report.md, outcomes.csv and figures into the folder of the results; return the page."""
    make_folder(results.path / "figures")
    figures = experiment_figures(results)
    for name, figure in figures.items():
        (results.path / "figures" / f"{name}.png").write_bytes(to_png(figure))
    results.table.to_csv(results.path / "outcomes.csv", index=False)
    page = results.path / "report.md"
    write_text(page, _markdown(results, list(figures)))
    return page


def _markdown(results: ExperimentResults, figures: Sequence[str]) -> str:
    """Return the report as Markdown."""
    parts = ["# Field experiments", f"**{summary_line(results)}.**"]
    parts += ["\n".join(f"- *{name}*: {text}." for name, text in VERDICTS.items())]
    parts += [f"A published number without an interval allows a factor of {FACTOR:g} either way."]
    parts += [f"![{results.figures[name].title}](figures/{name}.png)" for name in figures]
    for name, rows in _rows_by_experiment(results):
        experiment = results.experiments[name]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in (HEADERS, ["---"] * len(HEADERS), *map(_cells, rows)))
        parts += [f"## {experiment.title}", f"`{name}`, `{experiment.study}`. {experiment.source}", table]
    hours = ", ".join(f"{name} {value:.2g}" for name, value in results.cpu_hours.items())
    parts += ["## Runs", f"CPU hours: {hours}.", *(f"- {printable(note)}" for note in results.notes)]
    return "\n\n".join(parts) + "\n"


def experiment_figures(results: ExperimentResults) -> dict[str, Figure]:
    """Return the figures of the file whose outcomes have been simulated, by name."""
    rows = {f"{row.experiment}.{row.name}": row for row in results.rows}
    return {
        name: _draw(figure, rows)
        for name, figure in results.figures.items()
        if all(outcome in rows for outcomes in figure.series.values() for outcome in outcomes)
    }


def _draw(params: FigureParams, rows: dict[str, OutcomeRow]) -> Figure:
    """Draw simulated outcomes with intervals, and published numbers as black lines with their ranges in grey."""
    figure, [axes] = theme.panels(1, columns=1)
    n = len(params.series)
    for index, (label, outcomes) in enumerate(params.series.items()):
        color, style = theme.series_color(index), theme.series_marker(index)
        for place, row in enumerate(rows[name] for name in outcomes):
            x, outcome = place + 0.5 * ((index + 0.5) / n - 0.5), row.outcome
            low, high = outcome.allowed
            if isfinite(low) and isfinite(high):
                axes.bar(x, high - low, 0.4 / n, low, color=theme.INK, alpha=0.12, lw=0)
            if isinstance(outcome.published, float):
                axes.hlines(outcome.published, x - 0.2 / n, x + 0.2 / n, color=theme.INK, lw=1.4)
            axes.vlines(x, row.low, row.high, color=color, lw=1.2)
            axes.plot(x, row.value, style, color=color, ms=4, label=label if place == 0 else None)
    axes.axhline(0, color=theme.GREY, lw=0.8)
    axes.set_xticks(range(len(params.x)), [str(x) for x in params.x])
    axes.set(xlabel=params.xlabel, ylabel=params.ylabel)
    if n > 1:
        theme.axes_legend(axes)
    theme.tidy(axes, params.title, grid="y")
    return figure
