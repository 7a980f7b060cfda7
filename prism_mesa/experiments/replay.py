"""Repeating a run from its folder, without any LLM, and comparing every table. It changes nothing in that folder."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from prism_mesa.errors import DataError, RunError
from prism_mesa.experiments.config import INPUT_FILES, Config, EconomyConfig, make_config
from prism_mesa.experiments.economy import run_economy
from prism_mesa.experiments.execution import RunResult
from prism_mesa.experiments.run import run
from prism_mesa.experiments.store import (
    ECONOMY_TABLES,
    LEDGER,
    TABLES,
    WRITTEN_TABLES,
    count_rows,
    files_of,
    read_manifest,
    read_table,
)
from prism_mesa.params import merged, nested, validated
from prism_mesa.reasoner import Books, Ledger, LLMClient
from prism_mesa.reasoner.distilled import kept_copy
from prism_mesa.reasoner.recorded import RecordedClient


@dataclass(frozen=True)
class Replay:
    """What came of repeating a run.

    Attributes:
        run_dir: Where the repetition is; None if it was not kept.
        differences: Table -> where it differs, in words; empty if all tables are equal.
        rows: Table -> its rows.
        answered: Open choices, or decisions of nations, that were answered from the ledger (fallbacks and leftovers of
            limits among them).
        reckoned: Those that a rule or a distilled model decided again.
        texts: Thoughts and texts that were answered from the ledger, what did not come among them.
        calls: Calls of an LLM, which is 0.
    """

    run_dir: Path | None
    differences: dict[str, str]
    rows: dict[str, int]
    answered: int
    reckoned: int
    texts: int
    calls: int

    @property
    def equal(self) -> bool:
        """Whether every table has the same bytes, or at least the same values."""
        return not self.differences


def recorded_rounds(run_dir: Path) -> int:
    """Return the rounds or quarters that a run was to have.

    Raises:
        DataError: If there is no run, or its manifest does not say.
    """
    rounds = read_manifest(run_dir).get("config", {}).get("rounds")
    if not isinstance(rounds, int):
        raise DataError(f"{run_dir}: manifest.json does not say how many rounds it has: another version wrote it")
    return rounds


def is_economy(run_dir: Path) -> bool:
    """Return whether a run is one of nations.

    Raises:
        DataError: If there is no run.
    """
    return read_manifest(run_dir).get("system") == "economy"


def recorded_economy(run_dir: Path) -> EconomyConfig:
    """Return the configuration with which the completed quarters of a run of nations are repeated from its ledger.

    Raises:
        DataError: If no quarter was completed.
    """
    manifest = read_manifest(run_dir)
    done = manifest.get("summary", {}).get("rounds", 0)
    if not done:
        raise DataError(f"{run_dir}: no quarter of it was completed (status {manifest['status']}): nothing to repeat")
    top: dict[str, Any] = {"rounds": done, "reasoner": {"kind": "rule", "ledger": "live"}}
    if (llm := manifest["llm"]) is not None:
        top = {"rounds": done, "economy": {"prompt_style": llm["prompt_style"]}}
        top["reasoner"] = {"ledger": "replay", "ledger_path": str(run_dir / LEDGER)}
    return validated(EconomyConfig, merged(manifest["config"], top), str(run_dir))


def _recorded_llm(run_dir: Path, config: EconomyConfig) -> LLMClient | None:
    """Return the LLM of a run of nations as its folder knows it, or None if none was asked.

    Raises:
        DataError: If the ledger is missing.
    """
    llm = read_manifest(run_dir)["llm"]
    if llm is None:
        return None
    if not (run_dir / LEDGER).is_file():
        raise DataError(f"{run_dir}: {LEDGER} is missing: without its answers this run cannot be repeated")
    client = RecordedClient(llm["name"], llm["digest"], llm["decoding"])
    books = Books("replay", Ledger(run_dir / LEDGER, read_only=True))
    return LLMClient(client, config.reasoner, books=books, kind=llm["kind"])


def recorded_config(run_dir: Path) -> Config:
    """Return the configuration with which a run of a platform is repeated from its own ledger.

    Raises:
        DataError: If there is no run, it was given things in Python, or it has no ledger.
    """
    manifest = read_manifest(run_dir)
    if manifest.get("system") == "economy":
        raise DataError(f"{run_dir}: is a run of nations, not of a platform")
    if not {"llm", "config", "status"} <= manifest.keys() or "kind" not in (manifest["llm"] or {"kind": ""}):
        raise DataError(f"{run_dir}: manifest.json does not say who was asked: another version wrote it")
    if any(manifest.get("made_in_python", ())):
        raise DataError(
            f"{run_dir}: was given a chart, agents or a reasoner in Python, which its folder does not hold: run it "
            f"from there, with reasoner.ledger=replay and reasoner.ledger_path={run_dir / LEDGER}"
        )
    values = _with_paths_of(manifest["config"], Path(manifest.get("working_directory", ".")))
    own: dict[str, Any] = {"kind": "rule", "llm_share": 1.0, "distilled": None}
    if manifest["llm"] is not None:
        if not (run_dir / LEDGER).is_file():
            raise DataError(f"{run_dir}: {LEDGER} is missing: without its answers this run cannot be repeated")
        llm = manifest["llm"]
        own = {"kind": llm["kind"], "model": llm["name"], "answer": llm["answer"], "persona": llm["persona"]}
        own |= {"ledger": "replay", "ledger_path": str(run_dir / LEDGER)}
    if distilled := manifest.get("distilled"):
        own |= {"distilled": str(kept_copy(run_dir, distilled))} | ({} if manifest["llm"] else {"kind": "distilled"})
    own |= {"max_fallback_share": 1.0}
    if values.get("content") == "llm" and manifest["llm"] is None:  # auto found no LLM that could write
        values = merged(values, {"content": "template"})
    return make_config(merged(values, {"reasoner": own}), str(run_dir))


def _with_paths_of(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return configuration values whose input files are those of the folder in which the run was started."""
    paths = {(group, key): values.get(group, {}).get(key) for group, key in INPUT_FILES}
    there = {(group, key): str(folder / path) for (group, key), path in paths.items() if path is not None}
    return merged(values, nested({f"{group}.{key}": path for (group, key), path in there.items()}))


def replay(
    run_dir: str | Path, *, out: str | Path | None = None, on_round: Callable[[int], None] | None = None
) -> Replay:
    """Run a run again from its configuration and its ledger, asking nobody, and compare every table.

    Args:
        run_dir: The run's folder.
        out: Parent folder for the repetition, which is then kept.
        on_round: As in `run`.

    Raises:
        DataError: If the run has not come to its end, or cannot be repeated from its folder.
        RunError: If the ledger lacks an answer; the message names the question.
    """
    run_dir = Path(run_dir)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="prism-replay-") as folder:
            return _replayed(run_dir, Path(folder), on_round, keep=False)
    return _replayed(run_dir, Path(out), on_round, keep=True)


def _replayed(run_dir: Path, out: Path, on_round: Callable[[int], None] | None, *, keep: bool) -> Replay:
    if is_economy(run_dir):
        nations = recorded_economy(run_dir)
        llm = _recorded_llm(run_dir, nations)

        def told(done: int) -> None:
            if done and on_round is not None:
                on_round(done)

        return _repeated(
            run_dir, lambda: run_economy(nations, out=out, llm=llm, on_round=told), ECONOMY_TABLES, keep=keep
        )
    config = recorded_config(run_dir)
    status, rounds = read_manifest(run_dir)["status"], read_manifest(run_dir).get("summary", {}).get("rounds")
    if rounds != config.rounds:
        done = "none" if rounds is None else str(rounds)
        raise DataError(
            f"{run_dir}: has not come to its end (status {status}, {done} of {config.rounds} rounds): "
            "there is nothing to compare"
        )
    tables = (*TABLES, *WRITTEN_TABLES)
    return _repeated(run_dir, lambda: run(config, out=out, on_round=on_round), tables, keep=keep)


def _repeated(run_dir: Path, repeat: Callable[[], RunResult], tables: Sequence[str], *, keep: bool) -> Replay:
    try:
        result = repeat()
    except RunError as error:
        raise RunError(f"{run_dir}: cannot be repeated: {error.__cause__}") from error
    differences, rows = {}, {}
    for table in tables:
        if not any((folder / f"{table}.parquet").exists() for folder in (run_dir, result.run_dir)):
            continue
        rows[table], difference = _compared(run_dir, result.run_dir, table)
        if difference:
            differences[table] = difference
    decisions, writing = result.summary["decisions"], result.summary.get("writing") or {"by_source": {}, "calls": 0}
    calls = int(decisions["llm"]["calls"]) + int(writing["calls"])
    counts = _counted(decisions, writing["by_source"])
    return Replay(result.run_dir if keep else None, differences, rows, *counts, calls)


def _counted(decisions: Mapping[str, Any], texts: Mapping[str, int]) -> tuple[int, int, int]:
    """Return how many decisions were answered from the ledger and reckoned again, and the answers for texts."""
    if "made" in decisions:
        reckoned = int(decisions["read_by"].get("rule", 0))
        answered = int(decisions["made"]) - reckoned
        return answered, reckoned, sum(decisions["by_source"].values()) - answered
    reckoned = sum(decisions["by_source"].get(source, 0) for source in ("rule", "distilled"))
    return int(decisions["open"]) - reckoned, reckoned, sum(texts.values())


def _compared(first: Path, second: Path, table: str) -> tuple[int, str]:
    """Return the rows of a table in the first run, and where it differs in the second: by bytes, then by values."""
    for folder, where in ((first, "in the run"), (second, "when repeated")):
        if not (folder / f"{table}.parquet").exists():
            return 0, f"there is none {where}"
    rows = count_rows(first, table)
    if _bytes_of(first, table) == _bytes_of(second, table):
        return rows, ""
    return rows, _first_difference(read_table(first, table), read_table(second, table))


def _bytes_of(run_dir: Path, table: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a table."""
    files = files_of(run_dir / f"{table}.parquet")
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def _first_difference(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Return in words where two tables differ; an empty string if only their files do (another version of pyarrow)."""
    if list(before.columns) != list(after.columns):
        return f"its columns are {', '.join(after.columns)}"
    if len(before) != len(after):
        return f"{len(before)} rows in the run, {len(after)} when repeated"
    for column in before.columns:
        same = (before[column].astype(object) == after[column].astype(object)) | (
            before[column].isna() & after[column].isna()
        )
        if not same.all():
            row = int((~same).to_numpy().argmax())
            return (
                f"row {row}, {column}: {before[column].iloc[row]} in the run, {after[column].iloc[row]} when repeated"
            )
    return ""
