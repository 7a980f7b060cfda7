"""The report of a calibration: fitted values, held-out measures, and how well the data identify each parameter."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import counted, printable, shortened
from prism_mesa.studies.calibration.plan import COPY
from prism_mesa.studies.calibration.result import CONFIG, CalibrationResult
from prism_mesa.studies.calibration.surrogate import IDENTIFIED, LEEWAY, Profiles
from prism_mesa.view.plots.style import GREY, INK, axes_legend, panels, series_color, series_marker, tidy
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.numbers import NOTHING, significant
from prism_mesa.view.study.report import write_pages

_RAUE: Final = b.Link("Raue et al. 2009", "https://doi.org/10.1093/bioinformatics/btp358")
_MAX_TITLE: Final = 34


def write_calibration_report(result: CalibrationResult) -> tuple[Path, Path]:
    """Write report.html and report.md into the calibration's folder, with figures; return both paths."""
    out, plan = result.calibration_dir.parent, result.plan
    file = plan.where if plan.where.endswith((".yaml", ".yml")) else result.calibration_dir / COPY
    command = f"prism calibrate {file}" + ("" if str(out) == "results" else f" --out {out}")
    footer: b.Words = ("To continue: ", b.Code(command), ". Finished runs are not repeated.")
    question = f"Which values of {counted(len(plan.axes), 'parameter')} meet the targets?"
    sections = (_parameters(result), _measures(result), _trials(result), _notes(result))
    summary = f"{_counts(result, f' of {counted(len(plan.seeds), "seed")}')}."
    report = b.Report(f"Calibration {plan.name}", question, "done", summary, sections, footer)
    return write_pages(report, result.calibration_dir)


def _counts(result: CalibrationResult, seeds: str = "") -> str:
    n_failed = int((result.trials["status"] == "failed").sum())
    return f"{counted(len(result.trials), 'trial')}{seeds}, {n_failed} failed; {counted(result.runs, 'run')}"


def _parameters(result: CalibrationResult) -> b.Section:
    """Return the fitted values, and how well the data identify each."""
    profiles = result.profiles
    if profiles is None:
        text = "With fewer than four successful trials, the report does not say what the data identify."
        values = ", ".join(f"{key} = {value:g}" for key, value in result.fitted.items())
        return b.Section("parameters", "Parameters", (b.Paragraph(values), b.Paragraph(text, note=True)))
    rows = [
        (
            b.Code(row["parameter"]),
            *(significant(row[name], 4) for name in ("fitted", "low", "high")),
            f"{significant(row['lowest'])} to {significant(row['highest'])}",
            row["verdict"],
        )
        for row in profiles.intervals.to_dict("records")
    ]
    numbers = b.numeric("fitted", "low", "high")
    columns = (b.Column("parameter"), *numbers, b.Column("range"), b.Column("verdict", long=True))
    rise = significant(result.plan.params.rise)
    caption = (
        f"low and high: where the objective stays within {rise} of its minimum. An interval that reaches the end "
        "of its range is open there: the targets set no limit."
    )
    picture_caption: b.Words = (
        "Profiles of the objective (",
        _RAUE,
        "): for each value of a parameter, the minimum over all others, of a surrogate of the trials (line; shade: its "
        f"error of {LEEWAY:g} standard deviation); dots: the best trial near that value; dashed: {rise} above the "
        "overall minimum; vertical: the fitted value.",
    )
    picture = b.Picture("profiles", picture_caption, partial(_profile_figure, result, profiles))
    note = "A parameter that is not identified has its fitted value by chance: other values fit as well."
    all_identified = (profiles.intervals["verdict"] == IDENTIFIED).all()
    notes = () if all_identified else (b.Paragraph(note, note=True),)
    return b.Section("parameters", "Parameters", (b.table(columns, rows, caption), picture, *notes))


def _measures(result: CalibrationResult) -> b.Section:
    """Return each target with the value in the fitted world."""
    records = result.measures.to_dict("records")
    groups = [
        b.Group(title, tuple(_row(row) for row in records if row["set"] == name))
        for name, title in (("fit", "Fitted"), ("holdout", "Held out: the fit did not use these data"))
    ]
    numbers = b.numeric("target", "tolerance", "simulated", "95 % interval", "distance")
    columns = (b.Column("measure"), b.Column("data", long=True), *numbers, b.Column("inside"))
    first, last = result.plan.report_seeds[0], result.plan.report_seeds[-1]
    caption = f"Means over runs with seeds {first} to {last}, which no trial used. Distances are in tolerances."
    table = b.Table(columns, tuple(group for group in groups if group.rows), caption)
    legend = "The same: fitted (dots) and held out (diamonds); grey: inside."
    picture = b.Picture("distances", legend, partial(_distance_figure, result))
    return b.Section("measures", "Fitted and held out", (table, picture))


def _row(row: dict[str, Any]) -> b.Row:
    interval = f"{significant(row['low'])} to {significant(row['high'])}" if row["low"] == row["low"] else NOTHING
    distance = f"{row['distance']:+.2f}" if row["n"] else NOTHING
    inside = "yes" if row["inside"] else "no" if row["n"] else "not defined"
    numbers = (significant(row[name]) for name in ("target", "tolerance", "simulated"))
    return b.Code(row["measure"]), row["data"], *numbers, interval, distance, inside


def _trials(result: CalibrationResult) -> b.Section:
    caption = (
        "Objective of each trial, and the minimum so far. Trials are spread evenly; likely, according to TPE; probes, "
        "where a profile is low without a trial; or guesses, where the surrogate is lowest."
    )
    picture = b.Picture("trials", caption, partial(_objective_figure, result))
    link = b.Paragraph(("All of them are in ", b.Link("trials.parquet", "trials.parquet"), "."))
    failed = result.trials[result.trials["status"] == "failed"]
    rows = [(str(row["trial"]), row["reason"]) for row in failed.to_dict("records")]
    table = b.table((*b.numeric("trial"), b.Column("reason", long=True)), rows)
    failures = (b.Fold("Trials that failed", (table,)),) if rows else ()
    return b.Section("trials", "Trials", (picture, link, *failures))


def _notes(result: CalibrationResult) -> b.Section:
    file = result.calibration_dir / COPY
    blocks: list[b.Block] = [b.Bullets(tuple(result.notes))] if result.notes else []
    blocks.append(b.Paragraph(("The fitted world: ", b.Code(f"prism run {result.calibration_dir / CONFIG}"), ".")))
    if file.is_file():
        blocks.append(b.Fold("The calibration file", (b.Listing(file.read_text(encoding="utf-8")),)))
    return b.Section("notes", "Notes", tuple(blocks))


def calibration_lines(result: CalibrationResult) -> list[tuple[str, str]]:
    """Return the lines of a calibration's summary: fitted values, measures fitted and held out, and files."""
    lines = [("calibration", f"{result.plan.name}: {_counts(result)}")]
    intervals = [] if result.profiles is None else result.profiles.intervals.to_dict("records")
    ranges = {
        row["parameter"]: f" ({significant(row['low'])} to {significant(row['high'])}: {row['verdict']})"
        for row in intervals
    }
    lines += [("fitted", f"{key} = {value:g}{ranges.get(key, '')}") for key, value in result.fitted.items()]
    for row in result.measures.to_dict("records"):
        verdict = "inside" if row["inside"] else "outside" if row["n"] else "not defined"
        target = f"wanted {significant(row['target'])} +- {significant(row['tolerance'])} ({row['data']})"
        text = b.brief(f"{row['measure']} = {significant(row['simulated'])}, {target}: {verdict}")
        lines.append(("target" if row["set"] == "fit" else "held out", text))
    lines += [("note", b.brief(note, 600)) for note in result.notes]
    lines.append(("config", printable(str(result.config_file))))
    report = result.calibration_dir / "report.html"
    return [*lines, ("report", printable(str(report)))] if report.is_file() else lines


def _profile_figure(result: CalibrationResult, profiles: Profiles) -> Figure:
    """Return the profile of the objective for each parameter: its lowest value with the parameter held fixed."""
    figure, grid = panels(len(result.plan.axes), height=2.5)
    limit, color = profiles.least + result.plan.params.rise, series_color(0)
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
        tidy(axes, shortened(axis.key, _MAX_TITLE))
    return figure


def _distance_figure(result: CalibrationResult) -> Figure:
    """Return the distance of each measure from its target, in tolerances, with its interval."""
    rows = result.measures
    figure, [axes] = panels(1, height=0.55 + 0.3 * len(rows))
    axes.axvspan(-1, 1, color=GREY, alpha=0.2, lw=0)
    axes.axvline(0, color=GREY, lw=0.8)
    ends = rows[["low", "high"]].sub(rows["target"], axis=0).div(rows["tolerance"], axis=0).to_numpy()
    names = []
    for index, row in enumerate(rows.to_dict("records")):
        number, marker, label = (0, "o", "fitted") if row["set"] == "fit" else (1, "D", "held out")
        axes.plot(ends[index], [index, index], color=series_color(number), lw=1.5)
        axes.plot(row["distance"], index, marker, color=series_color(number), ms=5)
        names.append(shortened(f"{row['measure']} ({label})", 2 * _MAX_TITLE))
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("asinh", linear_width=3)
    largest = 1.1 * float(np.nanmax([2.0, *rows["distance"].abs(), *np.abs(ends).ravel()]))
    axes.set(xlim=(-largest, largest), ylim=(len(names) - 0.5, -0.5), xlabel="distance from the target, in tolerances")
    axes.set_xticks([tick for tick in (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100) if abs(tick) <= largest])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:g}")
    tidy(axes, grid="x")
    return figure


def _objective_figure(result: CalibrationResult) -> Figure:
    """Return the objective of each trial in order, and the best value so far."""
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


def _objective_axis(axes: Axes, linear: float, largest: float) -> None:
    """Start an axis at 0, make it logarithmic above `linear`, and thin out its ticks."""
    axes.set_yscale("asinh", linear_width=linear)
    axes.set(ylim=(0, 1.3 * largest), ylabel="objective")
    axes.minorticks_off()
    powers = (10.0**power for power in range(8))
    axes.set_yticks([0.0, *(tick for tick in powers if linear / 2 < tick <= 1.3 * largest)])
    axes.yaxis.set_major_formatter("{x:,.0f}")
