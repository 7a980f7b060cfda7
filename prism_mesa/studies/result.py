"""The result of a study, which `Study.run` returns and the report shows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.errors import one_line
from prism_mesa.runs.config import Config
from prism_mesa.studies.statistics.analysis import Analysis, RunTable


@dataclass(frozen=True, repr=False)
class StudyResult:
    """A study with its runs, in the folder `study_dir`.

    Attributes:
        status: See `study.StudyStatus.status`.
        values: The values in the study file.
        base: The configuration that arms and points start from.
        table: The runs and the design; ``table.runs`` is a DataFrame with a row for each run.
        facts: A row for each executed run: `run`, `ending`, `reason`, `cpu_s`, `wall_s`, `peak_memory_mb`,
            `decided_by`, `open`, `fallback`, `calls` and `tokens` (of all attempts), `sources` (JSON: source ->
            number of answers), `attempts`, `folder` (relative to `study_dir`; empty if not kept), `again` (overrides
            of ``base.yaml``, ``key=value ...``, that repeat the run).
        file: The study file; ``STUDY.yaml`` if there is none.
        notes: Remarks, for example on stale runs, undefined measures and limits.
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
        """The command that runs the study again."""
        out = self.study_dir.parent
        return f"prism study run {self.file}" + ("" if str(out) == "results" else f" --out {out}")

    @one_line
    def __repr__(self) -> str:
        done = int((self.runs["status"] == "done").sum())
        parts = [f"{done} of {len(self.runs)} runs"]
        parts += [f"{verdict.text}: {verdict.verdict}" for verdict in self.analysis.expectations]
        return f"<StudyResult {self.status}: {', '.join(parts)}, {self.study_dir}>"
