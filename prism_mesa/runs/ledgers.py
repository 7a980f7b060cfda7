"""Summarise a ledger, and export it as tables."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.errors import DataError
from prism_mesa.llm import AskedRow, Ledger, StoredAnswer
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.runs.run_files import LEDGER, check_within


def _open_ledger(file: Path) -> Ledger:
    """Open the ledger in a file or a run's folder; raises DataError if it is missing, or a link out of the folder."""
    path = file / LEDGER if file.is_dir() else file
    if not path.is_file():
        raise DataError(f"{file}: no ledger there: give a {LEDGER}, or the folder of a run")
    if file.is_dir():
        check_within(file, path)
    return Ledger(path, read_only=True)


def ledger_stats(file: str | Path) -> dict[str, Any]:
    """Count a ledger's answers, LLMs, tokens, questions, fallbacks and runs; raises DataError without a ledger."""
    with _open_ledger(Path(file)) as ledger:
        answers, questions = ledger.answers(), ledger.asked()
    latencies = pd.Series([answer.latency_ms for answer in answers], dtype=float)
    return {
        "answers": len(answers),
        "llms": dict(Counter(answer.llm for answer in answers)),
        "choices": dict(Counter(a.choice or ("probabilities" if a.probabilities else "structured") for a in answers)),
        "tokens": tokens_spent(answers, questions),
        "median_ms": round(float(latencies.median()), 1) if answers else 0.0,
        "questions": len(questions),
        "sources": dict(Counter(row.source for row in questions)),
        "fallbacks": dict(Counter(row.reason for row in questions if row.source == "fallback")),
        "runs": len({row.run for row in questions}),
    }


def tokens_spent(answers: Iterable[StoredAnswer], questions: Iterable[AskedRow]) -> int:
    """Return the tokens of all answers; questions also count useless answers, but none from a shared ledger."""
    answer_tokens = sum(answer.prompt_tokens + answer.completion_tokens for answer in answers)
    return max(answer_tokens, sum(row.prompt_tokens + row.completion_tokens for row in questions))


def export_ledger(file: str | Path, out: str | Path | None = None) -> dict[str, tuple[Path, int]]:
    """Write `answers` and `asked` as Parquet into `out`, or next to the ledger; return files and row counts by table.

    Raises DataError if there is no ledger, the folder cannot be made, or one of the files is a link.
    """
    with _open_ledger(Path(file)) as ledger:
        answers = pd.DataFrame(map(asdict, ledger.answers()), columns=[field.name for field in fields(StoredAnswer)])
        questions = pd.DataFrame(map(asdict, ledger.asked()), columns=[field.name for field in fields(AskedRow)])
    out = out if out is not None else Path(file) if Path(file).is_dir() else Path(file).parent
    make_folder(Path(out))
    files = {}
    for name, table in (("answers", answers), ("asked", questions)):
        path = Path(out) / f"{name}.parquet"
        if path.is_symlink():  # a folder from elsewhere could overwrite the user's files
            raise DataError(f"{path} is a link to another file: name another folder with --out")
        table.to_parquet(path, index=False)
        files[name] = (path, len(table))
    return files
