"""What a calibration comes to, in lines: as the command prints it."""

from prism_mesa.errors import counted, printable
from prism_mesa.studies.calibration.result import CalibrationResult
from prism_mesa.view.study.blocks import brief
from prism_mesa.view.study.numbers import significant

type Lines = list[tuple[str, str]]


def calibration_lines(result: CalibrationResult) -> Lines:
    """Return a calibration's end: fitted values, measures fitted and held out, and where the files are."""
    failed = int((result.trials["status"] == "failed").sum())
    told = f"{counted(len(result.trials), 'trial')}, {failed} failed; {counted(result.runs, 'run')}"
    lines = [("calibration", f"{result.plan.name}: {told}")]
    intervals = [] if result.profiles is None else result.profiles.intervals.to_dict("records")
    known = {row["parameter"]: row for row in intervals}
    for key, value in result.fitted.items():
        row = known.get(key)
        said = "" if row is None else f" ({significant(row['low'])} to {significant(row['high'])}: {row['verdict']})"
        lines.append(("fitted", f"{key} = {value:g}{said}"))
    for row in result.measures.to_dict("records"):
        what = "inside" if row["inside"] else "outside" if row["n"] else "not defined"
        name = "target" if row["set"] == "fit" else "held out"
        wanted = f"wanted {significant(row['target'])} +- {significant(row['tolerance'])} ({row['data']})"
        lines.append((name, brief(f"{row['measure']} = {significant(row['simulated'])}, {wanted}: {what}")))
    lines += [("note", brief(note, 600)) for note in result.notes]
    report = result.calibration_dir / "report.html"
    lines.append(("config", printable(str(result.config_file))))
    return [*lines, ("report", printable(str(report)))] if report.is_file() else lines
