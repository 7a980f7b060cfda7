"""The report of a calibration: fitted values, held-out measures, and how well the data identify each parameter."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import format_count, printable, shorten
from prism_mesa.studies.calibration.plan import CALIBRATION_FILE
from prism_mesa.studies.calibration.result import CONFIG, CalibrationResult
from prism_mesa.studies.calibration.surrogate import IDENTIFIED, LEEWAY, Profiles
from prism_mesa.view.plots.style import GREY, INK, axes_legend, panels, series_color, series_marker, tidy
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.numbers import NO_VALUE, significant
from prism_mesa.view.study.report import write_pages

_RAUE: Final = doc.Link("Raue et al. 2009", "https://doi.org/10.1093/bioinformatics/btp358")
_MAX_TITLE: Final = 34


def write_calibration_report(result: CalibrationResult) -> tuple[Path, Path]:
    """Write report.html and report.md into the calibration's folder, with figures; return both paths."""
    out, plan = result.calibration_dir.parent, result.plan
    file = plan.where if plan.where.endswith((".yaml", ".yml")) else result.calibration_dir / CALIBRATION_FILE
    command = f"prism calibrate {file}" + ("" if str(out) == "results" else f" --out {out}")
    footer: doc.Words = ("To continue: ", doc.Code(command), ". Finished runs are not repeated.")
    question = f"Which values of {format_count(len(plan.axes), 'parameter')} meet the targets?"
    sections = (_parameters(result), _measures(result), _trials(result), _notes(result))
    summary = f"{_counts_text(result, f' of {format_count(len(plan.seeds), "seed")}')}."
    report = doc.Report(f"Calibration {plan.name}", question, "done", summary, sections, footer)
    return write_pages(report, result.calibration_dir)


def _counts_text(result: CalibrationResult, seeds: str = "") -> str:
    n_failed = int((result.trials["status"] == "failed").sum())
    return f"{format_count(len(result.trials), 'trial')}{seeds}, {n_failed} failed; {format_count(result.runs, 'run')}"


def _parameters(result: CalibrationResult) -> doc.Section:
    profiles = result.profiles
    if profiles is None:
        text = "With fewer than four successful trials, the report cannot say which parameters the data identify."
        values = ", ".join(f"{key} = {value:g}" for key, value in result.fitted.items())
        return doc.Section("parameters", "Parameters", (doc.Paragraph(values), doc.Paragraph(text, note=True)))
    rows = [
        (
            doc.Code(row["parameter"]),
            *(significant(row[name], 4) for name in ("fitted", "low", "high")),
            f"{significant(row['lowest'])} to {significant(row['highest'])}",
            row["verdict"],
        )
        for row in profiles.intervals.to_dict("records")
    ]
    numbers = doc.number_columns("fitted", "low", "high")
    columns = (doc.Column("parameter"), *numbers, doc.Column("range"), doc.Column("verdict", long=True))
    rise = significant(result.plan.params.rise)
    caption = (
        f"low and high: where the objective stays within {rise} of its minimum. If an interval reaches the end of "
        "its range, the targets set no limit on that side."
    )
    picture_caption: doc.Words = (
        "Profiles of the objective (",
        _RAUE,
        "): for each value of a parameter, the minimum over all others according to a surrogate of the trials "
        f"(line; shade: {LEEWAY:g} standard deviation of its error). Dots: best trial near that value; dashed line: "
        f"{rise} above the overall minimum; vertical line: the fitted value.",
    )
    picture = doc.Picture("profiles", picture_caption, partial(_profile_figure, result, profiles))
    note = "The fitted value of a parameter that is not identified is arbitrary: other values fit as well."
    notes = () if (profiles.intervals["verdict"] == IDENTIFIED).all() else (doc.Paragraph(note, note=True),)
    return doc.Section("parameters", "Parameters", (doc.simple_table(columns, rows, caption), picture, *notes))


def _measures(result: CalibrationResult) -> doc.Section:
    records = result.measures.to_dict("records")
    groups = [
        doc.Group(title, tuple(_row(row) for row in records if row["set"] == name))
        for name, title in (("fit", "Fitted"), ("holdout", "Held out: the fit did not use these data"))
    ]
    numbers = doc.number_columns("target", "tolerance", "simulated", "95 % interval", "distance")
    columns = (doc.Column("measure"), doc.Column("data", long=True), *numbers, doc.Column("inside"))
    first, last = result.plan.report_seeds[0], result.plan.report_seeds[-1]
    caption = f"Means over runs with seeds {first} to {last}, which no trial used. Distances are in tolerances."
    table = doc.Table(columns, tuple(group for group in groups if group.rows), caption)
    legend = "Distances from targets: fitted (dots), held out (diamonds); grey: inside the tolerance."
    picture = doc.Picture("distances", legend, partial(_distance_figure, result))
    return doc.Section("measures", "Fitted and held out", (table, picture))


def _row(row: dict[str, Any]) -> doc.Row:
    interval = f"{significant(row['low'])} to {significant(row['high'])}" if row["low"] == row["low"] else NO_VALUE
    distance = f"{row['distance']:+.2f}" if row["n"] else NO_VALUE
    inside = "yes" if row["inside"] else "no" if row["n"] else "not defined"
    numbers = (significant(row[name]) for name in ("target", "tolerance", "simulated"))
    return doc.Code(row["measure"]), row["data"], *numbers, interval, distance, inside


def _trials(result: CalibrationResult) -> doc.Section:
    caption = (
        "Objective of each trial, and the minimum so far (line). Spread: spread evenly over the ranges; likely: "
        "proposed by TPE; probe: where a profile is low without a trial; guess: where the surrogate is lowest."
    )
    picture = doc.Picture("trials", caption, partial(_objective_figure, result))
    link = doc.Paragraph(("All trials are in ", doc.Link("trials.parquet", "trials.parquet"), "."))
    failed = result.trials[result.trials["status"] == "failed"]
    rows = [(str(row["trial"]), row["reason"]) for row in failed.to_dict("records")]
    table = doc.simple_table((*doc.number_columns("trial"), doc.Column("reason", long=True)), rows)
    failures = (doc.Fold("Trials that failed", (table,)),) if rows else ()
    return doc.Section("trials", "Trials", (picture, link, *failures))


def _notes(result: CalibrationResult) -> doc.Section:
    file = result.calibration_dir / CALIBRATION_FILE
    blocks: list[doc.Block] = [doc.Bullets(tuple(result.notes))] if result.notes else []
    blocks.append(doc.Paragraph(("The fitted world: ", doc.Code(f"prism run {result.calibration_dir / CONFIG}"), ".")))
    if file.is_file():
        blocks.append(doc.Fold("The calibration file", (doc.Listing(file.read_text(encoding="utf-8")),)))
    return doc.Section("notes", "Notes", tuple(blocks))


def calibration_lines(result: CalibrationResult) -> list[tuple[str, str]]:
    """Return the lines of a calibration's summary: fitted values, measures fitted and held out, and files."""
    lines = [("calibration", f"{result.plan.name}: {_counts_text(result)}")]
    intervals = [] if result.profiles is None else result.profiles.intervals.to_dict("records")
    ranges = {
        row["parameter"]: f" ({significant(row['low'])} to {significant(row['high'])}: {row['verdict']})"
        for row in intervals
    }
    lines += [("fitted", f"{key} = {value:g}{ranges.get(key, '')}") for key, value in result.fitted.items()]
    for row in result.measures.to_dict("records"):
        verdict = "inside" if row["inside"] else "outside" if row["n"] else "not defined"
        target = f"target {significant(row['target'])} +- {significant(row['tolerance'])} ({row['data']})"
        text = doc.brief(f"{row['measure']} = {significant(row['simulated'])}, {target}: {verdict}")
        lines.append(("target" if row["set"] == "fit" else "held out", text))
    lines += [("note", doc.brief(note, 600)) for note in result.notes]
    lines.append(("config", printable(str(result.config_file))))
    report = result.calibration_dir / "report.html"
    return [*lines, ("report", printable(str(report)))] if report.is_file() else lines


def _profile_figure(result: CalibrationResult, profiles: Profiles) -> Figure:
    """Draw the profile of the objective for each parameter: the minimum with the parameter held fixed."""
    figure, grid = panels(len(result.plan.axes), height=2.5)
    limit, color = profiles.minimum + result.plan.params.rise, series_color(0)
    for axes, axis in zip(grid, result.plan.axes, strict=True):
        curve = profiles.curves[profiles.curves["parameter"] == axis.key]
        interval = profiles.intervals[profiles.intervals["parameter"] == axis.key].iloc[0]
        value = curve["value"]
        axes.axvspan(interval["low"], interval["high"], color=color, alpha=0.1, lw=0)
        axes.axhline(limit, color=GREY, lw=0.8, ls="--")
        axes.fill_between(value, curve["possible"], curve["objective"], color=color, alpha=0.25, lw=0)
        axes.plot(value, curve["objective"], color=color, lw=1.5)
        axes.plot(value, curve["tried"], "o", color=INK, ms=2.5)
        axes.axvline(interval["fitted"], color=series_color(1), lw=1)
        _objective_axis(axes, max(limit, 1.0), float(np.nanmax(curve[["objective", "tried"]].to_numpy())))
        if axis.log:
            axes.set_xscale("log")
        axes.set_xlim(axis.low, axis.high)
        tidy(axes, shorten(axis.key, _MAX_TITLE))
    return figure


def _distance_figure(result: CalibrationResult) -> Figure:
    rows = result.measures
    figure, [axes] = panels(1, height=0.55 + 0.3 * len(rows))
    axes.axvspan(-1, 1, color=GREY, alpha=0.2, lw=0)
    axes.axvline(0, color=GREY, lw=0.8)
    bounds = rows[["low", "high"]].sub(rows["target"], axis=0).div(rows["tolerance"], axis=0).to_numpy()
    names = []
    for index, row in enumerate(rows.to_dict("records")):
        series, marker, label = (0, "o", "fitted") if row["set"] == "fit" else (1, "D", "held out")
        axes.plot(bounds[index], [index, index], color=series_color(series), lw=1.5)
        axes.plot(row["distance"], index, marker, color=series_color(series), ms=5)
        names.append(shorten(f"{row['measure']} ({label})", 2 * _MAX_TITLE))
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("asinh", linear_width=3)
    largest = 1.1 * float(np.nanmax([2.0, *rows["distance"].abs(), *np.abs(bounds).ravel()]))
    axes.set(xlim=(-largest, largest), ylim=(len(names) - 0.5, -0.5), xlabel="distance from the target, in tolerances")
    axes.set_xticks([tick for tick in (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100) if abs(tick) <= largest])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:g}")
    tidy(axes, grid="x")
    return figure


def _objective_figure(result: CalibrationResult) -> Figure:
    succeeded = result.trials[result.trials["status"] == "done"]
    figure, [axes] = panels(1, height=2.4)
    for index, kind in enumerate(("spread", "likely", "probe", "guess")):
        rows = succeeded[succeeded["how"] == kind]
        axes.plot(rows["trial"], rows["objective"], series_marker(index), color=series_color(index), ms=3, label=kind)
    axes.step(succeeded["trial"], succeeded["objective"].cummin(), where="post", color=INK, lw=1)
    _objective_axis(axes, 1.0, float(succeeded["objective"].max()))
    axes.set_xlabel("trial")
    axes_legend(axes)
    tidy(axes)
    return figure


def _objective_axis(axes: Axes, linear_width: float, largest: float) -> None:
    """Start an axis at 0, make it logarithmic above `linear_width`, and thin out its ticks."""
    axes.set_yscale("asinh", linear_width=linear_width)
    axes.set(ylim=(0, 1.3 * largest), ylabel="objective")
    axes.minorticks_off()
    powers = (10.0**power for power in range(8))
    axes.set_yticks([0.0, *(tick for tick in powers if linear_width / 2 < tick <= 1.3 * largest)])
    axes.yaxis.set_major_formatter("{x:,.0f}")
