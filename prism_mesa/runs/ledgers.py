"""A ledger in numbers, and as tables."""

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


def _opened(file: Path) -> Ledger:
    """Return the ledger of a file or a run's folder; raises DataError if there is none, or it is a link elsewhere."""
    path = file / LEDGER if file.is_dir() else file
    if not path.is_file():
        raise DataError(f"{file}: no ledger there: give a {LEDGER}, or the folder of a run")
    if file.is_dir():
        check_within(file, path)
    return Ledger(path, read_only=True)


def ledger_stats(file: str | Path) -> dict[str, Any]:
    """Count a ledger's answers, LLMs, tokens, questions, fallbacks and runs; raises DataError if there is none."""
    with _opened(Path(file)) as ledger:
        answers, asked = ledger.answers(), ledger.asked()
    latencies = pd.Series([answer.latency_ms for answer in answers], dtype=float)
    return {
        "answers": len(answers),
        "llms": dict(Counter(answer.llm for answer in answers)),
        "choices": dict(Counter(map(_choice, answers))),
        "tokens": tokens_spent(answers, asked),
        "median_ms": round(float(latencies.median()), 1) if answers else 0.0,
        "questions": len(asked),
        "sources": dict(Counter(row.source for row in asked)),
        "fallbacks": dict(Counter(row.reason for row in asked if row.source == "fallback")),
        "runs": len({row.run for row in asked}),
    }


def tokens_spent(answers: Iterable[StoredAnswer], asked: Iterable[AskedRow]) -> int:
    """Return the tokens of all answers, useless ones included; an older ledger has only the useful ones."""
    useful = sum(answer.prompt_tokens + answer.completion_tokens for answer in answers)
    return max(useful, sum((row.prompt_tokens or 0) + (row.completion_tokens or 0) for row in asked))


def _choice(answer: StoredAnswer) -> str:
    """Return the chosen option, or what else the answer holds."""
    return answer.choice or ("probabilities" if answer.probabilities else "in a form")


def export_ledger(file: str | Path, out: str | Path | None = None) -> dict[str, tuple[Path, int]]:
    """Write `answers` and `asked` as Parquet into `out`, or beside the ledger; return the file and rows of each.

    Raises:
        DataError: If there is no ledger, or the folder cannot be made, or has a link where a file would go.
    """
    with _opened(Path(file)) as ledger:
        answers = pd.DataFrame(map(asdict, ledger.answers()), columns=[field.name for field in fields(StoredAnswer)])
        asked = pd.DataFrame(map(asdict, ledger.asked()), columns=[field.name for field in fields(AskedRow)])
    out = out if out is not None else Path(file) if Path(file).is_dir() else Path(file).parent
    make_folder(Path(out))
    written = {}
    for name, table in (("answers", answers), ("asked", asked)):
        path = Path(out) / f"{name}.parquet"
        if path.is_symlink():  # the folder may come from anybody, and choose what is overwritten
            raise DataError(f"{path}: is a link, and would be written through: name another folder with --out")
        table.to_parquet(path, index=False)
        written[name] = (path, len(table))
    return written
