"""Repeat a run from its folder, without any LLM, and compare every table."""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import DataError, RunError, counted, one_line
from prism_mesa.llm import AnswerStore, Ledger, LLMClient
from prism_mesa.llm.clients.recorded import RecordedClient
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.identity import input_text, inputs_one_by_one, inputs_version, module_input, modules_named
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.recorded import OWN_PACKAGE, is_economy, recorded_config, recorded_economy, recorded_readings
from prism_mesa.runs.rounds import as_before
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
        answered: Open choices, or decisions of nations, answered from the ledger, with fallbacks.
        recomputed: Number of those that a rule or a distilled model decided again.
        texts: Thoughts and texts from the ledger, with those that had failed.
        calls: Number of LLM calls, which is 0.
        notes: The user's modules that changed since the run, or may have.
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
        tables = counted(len(self.rows), "table")
        result = f"equal: {tables}" if self.equal else f"of {tables}: {', '.join(self.differences)} differ"
        kept = "" if self.run_dir is None else f", {self.run_dir}"
        return f"<Replay {result}{kept}>"


def _recorded_llm(run_dir: Path, config: EconomyConfig) -> LLMClient | None:
    """Return the LLM of a run of nations, which answers from its ledger; None if none was asked."""
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
        out: Parent folder in which the repetition is kept; None: it is dropped. The repetition of a run from elsewhere
            is not signed.
        on_round: Called with the number of rounds or quarters done, after each.
        trust: Whether modules, and files outside of the folder, that only the folder names may be used; those of runs
            made here may be.

    Returns:
        What differs; `equal` says whether every table is the same.

    Raises:
        DataError: If the run has not come to its end, cannot be repeated from its folder, or is not trusted.
        RunError: If the ledger lacks an answer; the message names the question.
    """
    run_dir = run_folder(run)
    with nullcontext() if trust or read_run(run_dir).whose == "own" else unsigned():
        if out is None:
            with tempfile.TemporaryDirectory(prefix="prism-replay-", suffix=".temporary") as folder:
                return _replayed(run_dir, Path(folder), on_round, keep=False, trust=trust)
        return _replayed(run_dir, Path(out), on_round, keep=True, trust=trust)


@as_before()
def _replayed(run_dir: Path, out: Path, on_round: Callable[[int], None] | None, *, keep: bool, trust: bool) -> Replay:
    if is_economy(run_dir):
        nations = recorded_economy(run_dir)
        llm, readings = _recorded_llm(run_dir, nations), recorded_readings(run_dir)
        return _repeated(
            run_dir,
            lambda: run_economy(nations, out=out, llm=llm, on_round=on_round, readings=readings),
            ECONOMY_TABLES,
            keep=keep,
        )
    config = recorded_config(run_dir, trust=trust)
    recorded = read_run(run_dir)
    rounds = recorded.manifest.summary.rounds
    if rounds != config.rounds and recorded.manifest.status != "done":  # a run that is done can have ended itself
        done = "" if rounds is None else f", {rounds} of {config.rounds} rounds"
        why = f"has not come to its end (status {recorded.state}{done}): there is nothing to compare"
        raise DataError(f"{run_dir}: {why}{recorded.way_on}")
    notes = _changed_modules(recorded, config)
    return _repeated(run_dir, lambda: run_platform(config, out=out, on_round=on_round), SOCIAL_TABLES, notes, keep=keep)


def _changed_modules(run: RecordedRun, config: Config) -> tuple[str, ...]:
    """Return notes on the user's modules that changed since a run; an older run does not tell which."""
    facts = read_manifest(run.folder)
    kept = facts.get("inputs_one_by_one")
    if not isinstance(kept, Mapping):
        kept = inputs_one_by_one(config) if facts.get("inputs") == inputs_version(config) else {}
    own = [module_input(module) for module in modules_named(config) if not f"{module}.".startswith(OWN_PACKAGE)]
    now = inputs_one_by_one(config)
    return tuple(f"{input_text(name)} is not that of the run" for name in own if kept.get(name) != now[name])


def _repeated(
    run_dir: Path,
    repeat: Callable[[], RunResult],
    tables: Iterable[str],
    notes: tuple[str, ...] = (),
    *,
    keep: bool,
) -> Replay:
    try:
        result = repeat()
    except RunError as error:
        raise RunError("; ".join([f"{run_dir}: cannot be repeated: {error.__cause__}", *notes])) from error
    differences, rows = {}, {}
    for table in tables:
        if not any(has_table(folder, table) for folder in (run_dir, result.run_dir)):
            continue
        rows[table], difference = _compared(run_dir, result.run_dir, table)
        if difference:
            differences[table] = difference
    decisions, writing = result.summary["decisions"], result.summary.get("writing") or {"by_source": {}, "calls": 0}
    calls = int(decisions["llm"]["calls"]) + int(writing["calls"])
    counts = _counted(decisions, writing["by_source"])
    return Replay(result.run_dir if keep else None, differences, rows, *counts, calls, notes)


def _counted(decisions: Mapping[str, Any], texts: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the numbers of decisions answered from the ledger, of those recomputed, and of texts."""
    if "made" in decisions:
        recomputed = int(decisions["read_by"].get("rule", 0))
        answered = int(decisions["made"]) - recomputed
        return answered, recomputed, sum(decisions["by_source"].values()) - answered
    recomputed = sum(decisions["by_source"].get(source, 0) for source in ("rule", "distilled"))
    return int(decisions["open"]) - recomputed, recomputed, sum(texts.values())


def _compared(first: Path, second: Path, table: str) -> tuple[int, str]:
    """Return the rows of a table in the first run, and where it differs in the second, by bytes and then by values."""
    for folder, where in ((first, "in the run"), (second, "when repeated")):
        if not has_table(folder, table):
            return 0, f"there is none {where}"
    rows = count_rows(first, table)
    if _file_digests(first, table) == _file_digests(second, table):
        return rows, ""
    return rows, _first_difference(read_table(first, table), read_table(second, table))


def _file_digests(run_dir: Path, table: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a table."""
    files = table_files(table_path(run_dir, table))
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def _first_difference(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Return where two tables differ, in words; empty if only their files do, as between versions of pyarrow.

    An older run may have fewer columns; only these are compared.
    """
    if list(before.columns) != [name for name in after.columns if name in before.columns]:
        return f"its columns are {', '.join(after.columns)}"
    if len(before) != len(after):
        return f"{len(before)} rows in the run, {len(after)} when repeated"
    for column in before.columns:
        old, new = before[column], after[column]
        same = (old.astype(object) == new.astype(object)) | (old.isna() & new.isna())
        if not same.all():
            row = int((~same).to_numpy().argmax())
            return f"row {row}, {column}: {old.iloc[row]} in the run, {new.iloc[row]} when repeated"
    return ""
