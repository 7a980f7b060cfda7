"""A study and what became of it: what `Study.run` returns, and the report is made from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.errors import one_line
from prism_mesa.runs.config import Config
from prism_mesa.studies.statistics.analysis import Analysis, RunTable


@dataclass(frozen=True, repr=False)
class StudyResult:
    """A study with its runs.

    Attributes:
        study_dir: Its folder.
        name: Its name.
        question: In words.
        status: `done`: all runs are done or skipped; `failed`: some failed and none is missing; `incomplete`: some are
            missing.
        values: The study file's values, as they were read.
        base: The configuration that arms and points start from.
        table: The runs and how they were designed; ``table.runs`` is a DataFrame with a row for each run.
        facts: A row for each run that was run: `run`, `ending`, `reason`, `cpu_s`, `wall_s`, `peak_memory_mb`,
            `decided_by`, `open`, `fallback`, `calls` and `tokens` (of all attempts), `sources` (JSON: source ->
            answers), `attempts`, `folder` (relative to `study_dir`; blank: not kept), `again` (what makes
            the run again on top of ``base.yaml``: ``key=value ...``).
        analysis: What the runs say.
        file: The study file, as it was named; ``STUDY.yaml`` where there was none.
        notes: What a reader of the results should know: stale runs, measures that were not a number, limits.
    """

    study_dir: Path
    name: str
    question: str
    status: str
    values: dict[str, Any]
    base: Config
    table: RunTable
    facts: pd.DataFrame
    analysis: Analysis
    notes: tuple[str, ...]
    file: str = "STUDY.yaml"

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each run: `run`, `arm`, `seed`, `status`, `reason`, the factors by dotted key, the measures."""
        return self.table.runs

    @property
    def command(self) -> str:
        """What runs the study, typed where it was run before."""
        out = self.study_dir.parent
        return f"prism study run {self.file}" + ("" if str(out) == "results" else f" --out {out}")

    @one_line
    def __repr__(self) -> str:
        done = int((self.runs["status"] == "done").sum())
        told = [f"{done} of {len(self.runs)} runs"]
        told += [f"{verdict.text}: {verdict.verdict}" for verdict in self.analysis.expectations]
        return f"<StudyResult {self.status}: {', '.join(told)}, {self.study_dir}>"
