"""What a study comes to, in lines: as the commands on studies print it."""

from collections.abc import Mapping
from typing import Any

from prism_mesa.errors import counted, printable
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import brief
from prism_mesa.view.study.contents import run_counts, runs_in_words
from prism_mesa.view.study.numbers import significant

_MOST_FAILURES = 5


def study_lines(result: StudyResult) -> list[str]:
    """Return a study's end: its question, its runs, what became of its expectations, and where the report is."""
    lines = [
        f"question    {brief(result.question, 400)}",
        f"runs        {runs_in_words(result.table.runs)}",
        *_failure_lines(result),
    ]
    for verdict in result.analysis.expectations:
        lines.append(f"{verdict.verdict:<11} {brief(verdict.text)}")
        lines.append(f"            {brief(verdict.sentence, 600)}")
    if not result.analysis.expectations:
        lines.append("expected    nothing: the study states no expectation (expect: ['MEASURE: ARM > ARM'])")
    lines += [f"note        {brief(note, 600)}" for note in (*result.notes, *result.analysis.notes)]
    lines.append(f"report      {printable(str(result.study_dir / 'report.html'))}")
    return lines


def _failure_lines(result: StudyResult) -> list[str]:
    """Return the first runs that failed, with their reasons."""
    failed = result.table.runs[result.table.runs["status"] == "failed"]
    rows = failed.head(_MOST_FAILURES).to_dict("records")
    lines = [f"failed      {brief(row['run'], 60)} (seed {row['seed']}): {brief(row['reason'])}" for row in rows]
    if len(failed) > _MOST_FAILURES:
        lines.append(f"            and {len(failed) - _MOST_FAILURES:,} more: runs.parquet has their reasons")
    return lines


def status_lines(result: StudyResult) -> list[str]:
    """Return how far a study is: its runs, per arm where it has several."""
    lines = [
        f"study       {printable(result.name)} ({result.status})",
        f"runs        {runs_in_words(result.table.runs)}",
    ]
    if len(result.table.arms) > 1:
        for arm in result.table.arms:
            counts = run_counts(result.table.runs[result.table.runs["arm"] == arm])
            lines.append(f"arm         {brief(arm, 60)}: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
    return [*lines, *_failure_lines(result)]


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Return what a study would take: runs, CPU hours, calls of an LLM, and how wide its intervals would be.

    Args:
        plan: `runs`; `cpu_hours`; `calls`; `widths`: measure -> half the width of the 95 % interval of a difference
            to expect. What is not known may be None or left out.
    """
    lines = [f"runs        {counted(int(plan['runs']), 'run')}"]
    if plan.get("cpu_hours") is not None:
        lines.append(f"time        {_hours(float(plan['cpu_hours']))} of CPU")
    if plan.get("calls") is not None:
        lines.append(f"LLM         {counted(round(plan['calls']), 'call')}")
    widths: Mapping[str, float] = plan.get("widths") or {}
    longest = max(map(len, widths), default=0)
    for place, (measure, width) in enumerate(widths.items()):
        head = "to expect" if place == 0 else ""
        lines.append(f"{head:<11} {printable(measure):<{longest}}  difference \u00b1 {significant(width)} (95 %)")
    return lines


def _hours(hours: float) -> str:
    """Return a time as a reader takes it in.

    >>> _hours(2.5), _hours(0.05), _hours(0.001)
    ('2.5 h', '3.0 min', '4 s')
    """
    if hours >= 1:
        return f"{hours:,.1f} h"
    return f"{hours * 60:.1f} min" if hours * 60 >= 1 else f"{hours * 3600:.0f} s"
