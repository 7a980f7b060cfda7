"""The report of a calibration: fitted values, held-out measures, and how well the data identify each parameter."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import counted, printable, shortened
from prism_mesa.figure import NotebookFigure
from prism_mesa.studies.calibration.plan import COPY
from prism_mesa.studies.calibration.result import CONFIG, CalibrationResult
from prism_mesa.studies.calibration.surrogate import IDENTIFIED, LEEWAY, Profiles
from prism_mesa.view.plots.style import GREY, INK, WIDTH, axes_legend, panels, series_color, series_marker, tidy
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.numbers import NOTHING, significant
from prism_mesa.view.study.report import write_pages

_RAUE: Final = b.Link("Raue et al. 2009", "https://doi.org/10.1093/bioinformatics/btp358")


def write_calibration_report(result: CalibrationResult) -> tuple[Path, Path]:
    """Write report.html and report.md into the calibration's folder, with figures; return both paths."""
    return write_pages(calibration_report(result), result.calibration_dir)


def calibration_report(result: CalibrationResult) -> b.Report:
    """Return the sections of a calibration's report."""
    failed = int((result.trials["status"] == "failed").sum())
    seeds = counted(len(result.plan.seeds), "seed")
    summary = f"{counted(len(result.trials), 'trial')} of {seeds}, {failed} failed; {counted(result.runs, 'run')}."
    sections = (_parameters(result), _measures(result), _trials(result), _notes(result))
    out = result.calibration_dir.parent
    file = result.plan.where if result.plan.where.endswith((".yaml", ".yml")) else result.calibration_dir / COPY
    command = f"prism calibrate {file}" + ("" if str(out) == "results" else f" --out {out}")
    footer: b.Words = ("To continue: ", b.Code(command), ". Runs that are there are not run again.")
    question = f"Which values of {counted(len(result.plan.axes), 'parameter')} meet the targets?"
    return b.Report(f"Calibration {result.plan.name}", question, "done", summary, sections, footer)


def _parameters(result: CalibrationResult) -> b.Section:
    """Return the fitted values, and how well the data identify each."""
    if result.profiles is None:
        text = "With fewer than four trials that did not fail nothing is said of what the data identify."
        values = ", ".join(f"{key} = {value:g}" for key, value in result.fitted.items())
        return b.Section("parameters", "Parameters", (b.Paragraph(values), b.Paragraph(text, note=True)))
    rows = [
        (
            b.Code(row["parameter"]),
            *(significant(row[name], 4) for name in ("fitted", "low", "high")),
            f"{significant(row['lowest'])} to {significant(row['highest'])}",
            row["verdict"],
        )
        for row in result.profiles.intervals.to_dict("records")
    ]
    numbers = b.numeric("fitted", "low", "high")
    columns = (b.Column("parameter"), *numbers, b.Column("range"), b.Column("verdict", long=True))
    rise = significant(result.plan.params.rise)
    caption = (
        f"low and high: where the objective may stay within {rise} of its least. An interval that reaches the end of "
        "its range is open there: the targets do not tell."
    )
    picture_caption: b.Words = (
        "Profiles of the objective (",
        _RAUE,
        "): for each value of a parameter the least over all others, of a surrogate of the trials (line; shade: where "
        f"it may err by {LEEWAY:g} standard deviation); dots: the best trial around that value; dashed: the least "
        f"and {rise} above it; upright: fitted.",
    )
    picture = b.Picture("profiles", picture_caption, partial(profile_figure, result, result.profiles))
    note = "A parameter that is not identified has its fitted value by chance: other values do as well."
    all_identified = (result.profiles.intervals["verdict"] == IDENTIFIED).all()
    notes = () if all_identified else (b.Paragraph(note, note=True),)
    return b.Section("parameters", "Parameters", (b.table(columns, rows, caption), picture, *notes))


def _measures(result: CalibrationResult) -> b.Section:
    """Return each target beside the value in the fitted world."""
    groups = [
        b.Group(title, tuple(_row(row) for row in result.measures.to_dict("records") if row["set"] == name))
        for name, title in (("fit", "Fitted"), ("holdout", "Held out: the fit did not see these data"))
    ]
    numbers = b.numeric("target", "tolerance", "simulated", "95 % interval", "distance")
    columns = (b.Column("measure"), b.Column("data", long=True), *numbers, b.Column("inside"))
    first, last = result.plan.report_seeds[0], result.plan.report_seeds[-1]
    caption = f"Means over runs with seeds {first} to {last}, which no trial has had. Distances are in tolerances."
    table = b.Table(columns, tuple(group for group in groups if group.rows), caption)
    legend = "The same: fitted (dots) and held out (diamonds); grey: inside."
    picture = b.Picture("distances", legend, partial(distance_figure, result))
    return b.Section("measures", "Fitted and held out", (table, picture))


def _row(row: dict[str, Any]) -> b.Row:
    defined = row["n"] > 0
    interval = f"{significant(row['low'])} to {significant(row['high'])}" if row["low"] == row["low"] else NOTHING
    distance = f"{row['distance']:+.2f}" if defined else NOTHING
    inside = "yes" if row["inside"] else "no" if defined else "not defined"
    numbers = (significant(row[name]) for name in ("target", "tolerance", "simulated"))
    return b.Code(row["measure"]), row["data"], *numbers, interval, distance, inside


def _trials(result: CalibrationResult) -> b.Section:
    caption = (
        "Objective of each trial, and the least so far: spread evenly; likely by TPE; a probe, where a profile is low "
        "and no trial said so; or a guess, where the surrogate is least."
    )
    picture = b.Picture("trials", caption, partial(objective_figure, result))
    where = b.Paragraph(("All of them are in ", b.Link("trials.parquet", "trials.parquet"), "."))
    failed = result.trials[result.trials["status"] == "failed"]
    rows = [(str(row["trial"]), row["reason"]) for row in failed.to_dict("records")]
    table = b.table((*b.numeric("trial"), b.Column("reason", long=True)), rows)
    failures = (b.Fold("Trials that failed", (table,)),) if rows else ()
    return b.Section("trials", "Trials", (picture, where, *failures))


def _notes(result: CalibrationResult) -> b.Section:
    file = result.calibration_dir / COPY
    blocks: list[b.Block] = [b.Bullets(tuple(result.notes))] if result.notes else []
    blocks.append(b.Paragraph(("The fitted world: ", b.Code(f"prism run {result.calibration_dir / CONFIG}"), ".")))
    if file.is_file():
        blocks.append(b.Fold("The calibration file", (b.Listing(file.read_text(encoding="utf-8")),)))
    return b.Section("notes", "Notes", tuple(blocks))


def calibration_lines(result: CalibrationResult) -> list[tuple[str, str]]:
    """Return a calibration's end: fitted values, measures fitted and held out, and where the files are."""
    failed = int((result.trials["status"] == "failed").sum())
    text = f"{counted(len(result.trials), 'trial')}, {failed} failed; {counted(result.runs, 'run')}"
    lines = [("calibration", f"{result.plan.name}: {text}")]
    intervals = [] if result.profiles is None else result.profiles.intervals.to_dict("records")
    known = {row["parameter"]: row for row in intervals}
    for key, value in result.fitted.items():
        row = known.get(key)
        words = "" if row is None else f" ({significant(row['low'])} to {significant(row['high'])}: {row['verdict']})"
        lines.append(("fitted", f"{key} = {value:g}{words}"))
    for row in result.measures.to_dict("records"):
        what = "inside" if row["inside"] else "outside" if row["n"] else "not defined"
        name = "target" if row["set"] == "fit" else "held out"
        wanted = f"wanted {significant(row['target'])} +- {significant(row['tolerance'])} ({row['data']})"
        lines.append((name, b.brief(f"{row['measure']} = {significant(row['simulated'])}, {wanted}: {what}")))
    lines += [("note", b.brief(note, 600)) for note in result.notes]
    report = result.calibration_dir / "report.html"
    lines.append(("config", printable(str(result.config_file))))
    return [*lines, ("report", printable(str(report)))] if report.is_file() else lines


_LONGEST = 34


def profile_figure(result: CalibrationResult, profiles: Profiles) -> Figure:
    """Return the profile of the objective for each parameter: its lowest value with the parameter held fixed."""
    axes = result.plan.axes
    figure, grid = panels(len(axes), height=2.5)
    most = profiles.least + result.plan.params.rise
    for panel, axis in zip(grid, axes, strict=True):
        curve = profiles.curves[profiles.curves["parameter"] == axis.key]
        known = profiles.intervals[profiles.intervals["parameter"] == axis.key].iloc[0]
        value = curve["value"]
        panel.axvspan(known["low"], known["high"], color=series_color(0), alpha=0.1, linewidth=0)
        panel.axhline(most, color=GREY, linewidth=0.8, linestyle="--")
        panel.fill_between(value, curve["possible"], curve["objective"], color=series_color(0), alpha=0.25, linewidth=0)
        panel.plot(value, curve["objective"], color=series_color(0), linewidth=1.5)
        panel.plot(value, curve["tried"], "o", color=INK, markersize=2.5)
        panel.axvline(known["fitted"], color=series_color(1), linewidth=1)
        _upwards(panel, max(most, 1.0), float(np.nanmax(curve[["objective", "tried"]].to_numpy())))
        if axis.log:
            panel.set_xscale("log")
        panel.set_xlim(axis.low, axis.high)
        panel.set_ylabel("objective")
        tidy(panel, shortened(axis.key, _LONGEST))
    return figure


def distance_figure(result: CalibrationResult) -> Figure:
    """Return the distance of each measure from its target, in tolerances, with its interval."""
    rows = result.measures
    figure = NotebookFigure(figsize=(WIDTH, 0.9 + 0.3 * len(rows)), layout="constrained")
    panel: Axes = figure.subplots()
    panel.axvspan(-1, 1, color=GREY, alpha=0.2, linewidth=0)
    panel.axvline(0, color=GREY, linewidth=0.8)
    for place, row in enumerate(rows.to_dict("records")):
        color = series_color(0 if row["set"] == "fit" else 1)
        ends = [(row[end] - row["target"]) / row["tolerance"] for end in ("low", "high")]
        panel.plot(ends, [place, place], color=color, linewidth=1.5)
        panel.plot(row["distance"], place, "o" if row["set"] == "fit" else "D", color=color, markersize=5)
    names = [f"{row['measure']} ({'fitted' if row['set'] == 'fit' else 'held out'})" for row in rows.to_dict("records")]
    panel.set_yticks(range(len(names)), [shortened(name, 2 * _LONGEST) for name in names])
    panel.set_xscale("asinh", linear_width=3)
    ends_of_all = (rows[["low", "high"]].sub(rows["target"], axis=0)).div(rows["tolerance"], axis=0)
    furthest = 1.1 * float(np.nanmax([2.0, *rows["distance"].abs(), *ends_of_all.abs().to_numpy().ravel()]))
    panel.set_xlim(-furthest, furthest)
    panel.set_xticks([tick for tick in (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100) if abs(tick) <= furthest])
    panel.minorticks_off()
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xlabel("distance from the target, in tolerances")
    tidy(panel, grid="x")
    return figure


def objective_figure(result: CalibrationResult) -> Figure:
    """Return the objective of each trial in order, and the best value so far."""
    done = result.trials[result.trials["status"] == "done"]
    figure, [panel] = panels(1, height=2.4)
    for place, how in enumerate(("spread", "likely", "probe", "guess")):
        rows = done[done["how"] == how]
        panel.plot(
            rows["trial"], rows["objective"], series_marker(place), color=series_color(place), markersize=3, label=how
        )
    panel.step(done["trial"], done["objective"].cummin(), where="post", color=INK, linewidth=1)
    _upwards(panel, 1.0, float(done["objective"].max()))
    panel.set_xlabel("trial")
    panel.set_ylabel("objective")
    axes_legend(panel)
    tidy(panel)
    return figure


def _upwards(panel: Axes, linear: float, most: float) -> None:
    """Start an axis at 0, make it logarithmic above `linear`, and thin out its ticks."""
    panel.set_yscale("asinh", linear_width=linear)
    panel.set_ylim(0, 1.3 * most)
    panel.minorticks_off()
    tens = [10.0**power for power in range(8) if 10.0**power > linear / 2]
    panel.set_yticks([0.0, *(tick for tick in tens if tick <= 1.3 * most)])
    panel.yaxis.set_major_formatter("{x:,.0f}")
