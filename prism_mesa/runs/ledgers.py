"""A ledger as tables: counted for a look, or written out for analysis."""

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
    """Return the ledger of a file or of a run's folder.

    Raises:
        DataError: If there is none, or the folder holds a link to one elsewhere.
    """
    path = file / LEDGER if file.is_dir() else file
    if not path.is_file():
        raise DataError(f"{file}: no ledger there: give a {LEDGER}, or the folder of a run")
    if file.is_dir():
        check_within(file, path)
    return Ledger(path, read_only=True)


def ledger_stats(file: str | Path) -> dict[str, Any]:
    """Return what a ledger holds: answers, LLMs, tokens, questions by source, fallbacks by reason, runs.

    Raises:
        DataError: If there is no ledger.
    """
    with _opened(Path(file)) as ledger:
        answers, asked = ledger.answers(), ledger.asked()
    latencies = pd.Series([answer.latency_ms for answer in answers], dtype=float)
    return {
        "answers": len(answers),
        "llms": dict(Counter(answer.llm for answer in answers)),
        "choices": dict(Counter(map(_kind_of, answers))),
        "tokens": tokens_spent(answers, asked),
        "median_ms": round(float(latencies.median()), 1) if answers else 0.0,
        "questions": len(asked),
        "sources": dict(Counter(row.source for row in asked)),
        "fallbacks": dict(Counter(row.reason for row in asked if row.source == "fallback")),
        "runs": len({row.run for row in asked}),
    }


def tokens_spent(answers: Iterable[StoredAnswer], asked: Iterable[AskedRow]) -> int:
    """Return the tokens of all that was said, useless answers included; of an older ledger, of its answers."""
    useful = sum(answer.prompt_tokens + answer.completion_tokens for answer in answers)
    return max(useful, sum((row.prompt_tokens or 0) + (row.completion_tokens or 0) for row in asked))


def _kind_of(answer: StoredAnswer) -> str:
    """Return the option that was chosen, or what else the answer holds."""
    return answer.choice or ("probabilities" if answer.probabilities else "in a form")


def export_ledger(file: str | Path, out: str | Path | None = None) -> dict[str, tuple[Path, int]]:
    """Write `answers` and `asked` as Parquet below `out`, or beside the ledger, and return each one's file and rows.

    Raises:
        DataError: If there is no ledger, the folder cannot be made, or holds a link under the name of a file.
    """
    with _opened(Path(file)) as ledger:
        answers = pd.DataFrame(map(asdict, ledger.answers()), columns=[field.name for field in fields(StoredAnswer)])
        asked = pd.DataFrame(map(asdict, ledger.asked()), columns=[field.name for field in fields(AskedRow)])
    out = out if out is not None else Path(file) if Path(file).is_dir() else Path(file).parent
    make_folder(Path(out))
    written = {}
    for name, table in (("answers", answers), ("asked", asked)):
        path = Path(out) / f"{name}.parquet"
        if path.is_symlink():  # whoever made the folder would choose which file is overwritten
            raise DataError(f"{path}: is a link, and would be written through: name another folder with --out")
        table.to_parquet(path, index=False)
        written[name] = (path, len(table))
    return written
