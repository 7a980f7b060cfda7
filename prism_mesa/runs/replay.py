"""Repeat a run from its folder without an LLM, and compare every table."""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import DataError, RunError, format_count, one_line
from prism_mesa.llm import AnswerStore, Ledger, LLMClient
from prism_mesa.llm.clients.recorded import RecordedClient
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.identity import input_digests, input_text, module_input, user_modules
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.recorded import PACKAGE_PREFIX, is_economy, recorded_config, recorded_economy
from prism_mesa.runs.rounds import without_repeated_warnings
from prism_mesa.runs.run_files import (
    LEDGER,
    count_rows,
    has_table,
    read_manifest,
    read_table,
    run_folder,
    table_files,
    table_path,
)
from prism_mesa.runs.social import run as run_platform
from prism_mesa.runs.trust import unsigned
from prism_mesa.social.tables import SOCIAL_TABLES


@dataclass(frozen=True, repr=False)
class Replay:
    """The result of repeating a run.

    Attributes:
        run_dir: The folder of the repetition; None if it was not kept.
        differences: Table -> a description of its first difference; empty if all tables are equal.
        rows: Table -> its number of rows.
        answered: Number of open choices, or decisions of nations, with an answer from the ledger, including fallbacks.
        recomputed: Number of decisions that a rule or a distilled model made again.
        texts: Number of thoughts and texts from the ledger, including failures.
        calls: Number of LLM calls, which is 0.
        notes: Modules of the user that may have changed since the run.
    """

    run_dir: Path | None
    differences: dict[str, str]
    rows: dict[str, int]
    answered: int
    recomputed: int
    texts: int
    calls: int
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether every table has the same bytes, or at least the same values."""
        return not self.differences

    @one_line
    def __repr__(self) -> str:
        tables = format_count(len(self.rows), "table")
        result = f"equal: {tables}" if self.equal else f"of {tables}: {', '.join(self.differences)} differ"
        folder_text = "" if self.run_dir is None else f", {self.run_dir}"
        return f"<Replay {result}{folder_text}>"


def _recorded_llm(run_dir: Path, config: EconomyConfig) -> LLMClient | None:
    llm = read_run(run_dir).manifest.llm
    if llm is None:
        return None
    client = RecordedClient(llm.name, llm.digest, dict(llm.decoding))
    store = AnswerStore("replay", Ledger(run_dir / LEDGER, read_only=True))
    return LLMClient(client, config.reasoner, store=store, kind=llm.kind or "")


def replay(
    run: str | os.PathLike[str],
    *,
    out: str | Path | None = None,
    on_round: Callable[[int], None] | None = None,
    trust: bool = False,
) -> Replay:
    """Repeat a run from its ledger, without an LLM, and compare every table, like ``prism replay``.

    Args:
        run: A result, or the run's folder, which is only read.
        out: Parent folder of the repeated run; None deletes it. The repetition of a run from elsewhere is not signed.
        on_round: Called after each round or quarter, with the number completed.
        trust: Whether to use the modules and outside files that a run from elsewhere names.

    Returns:
        The differences; `equal` says whether every table is the same.

    Raises:
        DataError: If the run has not ended, cannot be repeated from its folder, or is not trusted.
        RunError: If the ledger lacks an answer; the message names the question.
    """
    run_dir = run_folder(run)
    with nullcontext() if trust or read_run(run_dir).origin == "own" else unsigned():
        if out is None:
            with tempfile.TemporaryDirectory(prefix="prism-replay-", suffix=".temporary") as folder:
                return _replay(run_dir, Path(folder), on_round, keep=False, trust=trust)
        return _replay(run_dir, Path(out), on_round, keep=True, trust=trust)


@without_repeated_warnings()
def _replay(run_dir: Path, out: Path, on_round: Callable[[int], None] | None, *, keep: bool, trust: bool) -> Replay:
    if is_economy(run_dir):
        nations = recorded_economy(run_dir)
        repeat = partial(run_economy, nations, out=out, llm=_recorded_llm(run_dir, nations), on_round=on_round)
        return _repeat_and_compare(run_dir, repeat, ECONOMY_TABLES, keep=keep)
    config = recorded_config(run_dir, trust=trust)
    recorded = read_run(run_dir)
    rounds = recorded.manifest.summary.rounds
    if rounds != config.rounds and recorded.manifest.status != "done":  # a run can end early and be done
        progress = "" if rounds is None else f", {rounds} of {config.rounds} rounds"
        why = f"has not come to its end (status {recorded.state}{progress}): there is nothing to compare"
        raise DataError(f"{run_dir}: {why}{recorded.advice}")
    notes = _changed_modules(recorded, config)
    repeat = partial(run_platform, config, out=out, on_round=on_round)
    return _repeat_and_compare(run_dir, repeat, SOCIAL_TABLES, notes, keep=keep)


def _changed_modules(run: RecordedRun, config: Config) -> tuple[str, ...]:
    """Return notes on the user's modules that changed since a run."""
    before = read_manifest(run.folder).get("inputs_one_by_one", {})
    names = [module_input(module) for module in user_modules(config) if not f"{module}.".startswith(PACKAGE_PREFIX)]
    after = input_digests(config)
    return tuple(f"{input_text(name)} has changed since the run" for name in names if before.get(name) != after[name])


def _repeat_and_compare(
    run_dir: Path, repeat: Callable[[], RunResult], tables: Iterable[str], notes: tuple[str, ...] = (), *, keep: bool
) -> Replay:
    try:
        result = repeat()
    except RunError as error:
        raise RunError("; ".join([f"{run_dir} cannot be repeated: {error.__cause__}", *notes])) from error
    differences, rows = {}, {}
    for table in tables:
        if not any(has_table(folder, table) for folder in (run_dir, result.run_dir)):
            continue
        rows[table], difference = _compare_table(run_dir, result.run_dir, table)
        if difference:
            differences[table] = difference
    decisions, writing = result.summary["decisions"], result.summary.get("writing") or {"by_source": {}, "calls": 0}
    calls = int(decisions["llm"]["calls"]) + int(writing["calls"])
    counts = _count_answers(decisions, writing["by_source"])
    return Replay(result.run_dir if keep else None, differences, rows, *counts, calls, notes)


def _count_answers(decisions: Mapping[str, Any], texts: Mapping[str, int]) -> tuple[int, int, int]:
    if "made" in decisions:
        recomputed = int(decisions["read_by"].get("rule", 0))
        answered = int(decisions["made"]) - recomputed
        return answered, recomputed, sum(decisions["by_source"].values()) - answered
    recomputed = sum(decisions["by_source"].get(source, 0) for source in ("rule", "distilled"))
    return int(decisions["open"]) - recomputed, recomputed, sum(texts.values())


def _compare_table(first: Path, second: Path, table: str) -> tuple[int, str]:
    """Return the number of rows of a table, and its first difference between two runs; empty if both are equal."""
    for folder, where in ((first, "in the run"), (second, "when repeated")):
        if not has_table(folder, table):
            return 0, f"is missing {where}"
    rows = count_rows(first, table)
    if _file_digests(first, table) == _file_digests(second, table):
        return rows, ""
    return rows, _first_difference(read_table(first, table), read_table(second, table))


def _file_digests(run_dir: Path, table: str) -> dict[str, str]:
    files = table_files(table_path(run_dir, table))
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def _first_difference(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Describe the first difference between two tables; empty if only the files differ, as between pyarrow versions.

    Columns that an older run lacks are not compared.
    """
    if list(before.columns) != [name for name in after.columns if name in before.columns]:
        return f"its columns are {', '.join(after.columns)}"
    if len(before) != len(after):
        return f"{len(before)} rows in the run, {len(after)} when repeated"
    for column in before.columns:
        old, new = before[column], after[column]
        is_equal = (old.astype(object) == new.astype(object)) | (old.isna() & new.isna())
        if not is_equal.all():
            row = int((~is_equal).to_numpy().argmax())
            return f"row {row}, {column}: {old.iloc[row]} in the run, {new.iloc[row]} when repeated"
    return ""
