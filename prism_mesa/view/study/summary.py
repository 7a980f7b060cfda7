"""Lines that the commands for studies print."""

from prism_mesa.errors import format_count, printable
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.study import StudyPlan, StudyStatus
from prism_mesa.view.study.blocks import brief
from prism_mesa.view.study.contents import status_counts
from prism_mesa.view.study.numbers import significant

type Lines = list[tuple[str, str]]

_MAX_FAILURES = 5
_MAX_LINES = 12


def study_lines(result: StudyResult) -> Lines:
    """Return the lines at the end of a study: question, runs, verdicts, notes, and the path of the report."""
    runs = result.table.runs
    failed = runs[runs["status"] == "failed"]
    rows = failed.head(_MAX_FAILURES).to_dict("records")
    lines = [("question", brief(result.question, 400)), ("runs", status_counts(runs))]
    lines += _failures([(row["run"], f"{row['arm']}, seed {row['seed']}", row["reason"]) for row in rows], len(failed))
    for verdict in result.analysis.expectations:
        lines += [(verdict.verdict, brief(verdict.text)), ("", brief(verdict.sentence, 600))]
    if not result.analysis.expectations:
        lines += _result_lines(result)
    lines += [("note", brief(note, 600)) for note in (*result.notes, *result.analysis.notes)]
    report = result.study_dir / "report.html"
    return [*lines, ("report", printable(str(report)))] if report.is_file() else lines


def _failures(failures: list[tuple[str, str, str]], n: int) -> Lines:
    lines = [("failed", f"{brief(run, 60)} ({brief(text, 120)}): {brief(reason)}") for run, text, reason in failures]
    more = [("", f"and {n - len(lines):,} more: runs.parquet has their reasons")] if n > len(lines) else []
    return lines + more


def _result_lines(result: StudyResult) -> Lines:
    """Return the means; for sampled designs, the total Sobol indices or Morris's mu*."""
    indices = result.analysis.sensitivity
    indices = indices[indices["index"].isin(["st", "mu_star"])]
    table = indices if len(indices) else result.analysis.answers
    arm_keys = ["arm"] if len(result.table.arms) > 1 else []
    lines = []
    for row in table.head(_MAX_LINES).to_dict("records"):
        interval = f"95 % interval {significant(row['low'])} to {significant(row['high'])}"
        if len(indices):
            label = "total" if row["index"] == "st" else "mu*"
            text = f"{row['measure']}: {row['factor']}: {significant(row['value'])} ({interval})"
        else:
            condition = [*(row[name] for name in arm_keys), *(f"{name}={row[name]}" for name in result.table.factors)]
            label, mean = "mean", f"{significant(row['mean'])} ({interval}; n = {row['n']})"
            text = f"{row['measure']}: {', '.join(condition) or 'all'}: {mean}"
        lines.append((label, printable(text)))
    more = [("", f"and {len(table) - _MAX_LINES:,} more in the report")] if len(table) > _MAX_LINES else []
    return lines + more


def status_lines(name: str, status: StudyStatus) -> Lines:
    """Return the progress of a study: its runs by status, and its first failures."""
    counts = f"{status.done:,} done, {status.failed:,} failed, {status.missing:,} missing"
    counts += f", {status.skipped:,} skipped" if status.skipped else ""
    lines = [("study", f"{printable(name)} ({status.status})"), ("runs", f"{status.planned:,} planned: {counts}")]
    lines += _failures(list(status.failures[:_MAX_FAILURES]), status.failed)
    return lines + [("note", brief(note, 600)) for note in status.notes]


def plan_lines(plan: StudyPlan) -> Lines:
    """Return the expected costs of a study (runs, CPU time, LLM calls) and the width of its intervals."""
    size = f"{format_count(plan.conditions, 'condition')} x {format_count(plan.seeds, 'seed')}"
    done = f"{plan.done:,} are done, {plan.pilot:,} of them as a pilot"
    lines = [("runs", f"{format_count(plan.runs, 'run')} ({size}); {done}")]
    if plan.cpu_hours is not None and plan.wall_hours is not None:
        wall = f"{_duration(plan.wall_hours)} of wall time are left with {format_count(plan.workers, 'worker')}"
        lines.append(("time", f"{_duration(plan.cpu_hours)} of CPU in all; {wall}"))
    if plan.calls is not None:
        lines.append(("LLM", format_count(round(plan.calls), "call")))
    widest = plan.widths.groupby(["measure", "term"], sort=False)["half_width"].max().reset_index()
    for index, row in enumerate(widest.head(_MAX_LINES).to_dict("records")):
        groups = "arms" if row["term"] == "arm" else f"levels of {row['term']}"
        width = significant(row["half_width"])
        text = f"{row['measure']}: differences between {groups} to within \u00b1 {width} (95 %)"
        lines.append(("precision" if index == 0 else "", printable(text)))
    if len(widest):
        basis = f"estimated from the {format_count(plan.done, 'run')} done so far"
        lines.append(("", f"{basis}: the final intervals may be half or twice as wide; --json lists every pair"))
    return lines + [("note", brief(note, 600)) for note in plan.notes]


def _duration(hours: float) -> str:
    """Format a number of hours.

    >>> _duration(2.5), _duration(0.05), _duration(0.001)
    ('2.5 h', '3.0 min', '4 s')
    """
    if hours >= 1:
        return f"{hours:,.1f} h"
    return f"{hours * 60:.1f} min" if hours * 60 >= 1 else f"{hours * 3600:.0f} s"
