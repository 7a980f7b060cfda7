"""Pair the runs of two sides by seed."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, format_count
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.runs.manifest import Manifest, read_run
from prism_mesa.runs.run_files import MANIFEST, has_table, read_manifest, read_table, run_folder

type Runs = RunResult | str | os.PathLike[str] | Sequence[RunResult | str | os.PathLike[str]]
"""A run (a result or its folder), a folder that holds runs, or several of these."""

MAX_PAIRS: Final = 10_000
_RUN_KEYS: Final = ("seed", "name", "threads", "checkpoint_every")  # keys that may differ within a side
_EARLY_TABLES: Final = {"posts": "written", "decisions": "round"}
"""Table -> its round column, for tables (of platforms, of nations) that may have rows of an unfinished round."""


@dataclass(frozen=True)
class ComparedRun:
    """A run of a comparison.

    Attributes:
        facts: The unchecked values of its manifest.
        rounds: Number of rounds or quarters in its tables.
        broken: Whether the run stopped within a round, so that some tables lack rows of that round.
    """

    folder: Path
    manifest: Manifest
    facts: dict[str, Any]
    rounds: int
    broken: bool

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.resolve().name

    @property
    def unit(self) -> str:
        """What a round of it is called."""
        return "quarter" if self.manifest.is_economy else "round"


@dataclass(frozen=True)
class Pairs:
    """The runs of two sides, in pairs; `rounds` is the number of rounds (or quarters) that all runs share."""

    base: tuple[ComparedRun, ...]
    other: tuple[ComparedRun, ...]
    rounds: int
    notes: tuple[str, ...]

    @property
    def is_economy(self) -> bool:
        """Whether the runs are runs of nations."""
        return self.base[0].manifest.is_economy

    @property
    def same_length(self) -> bool:
        """Whether no run has more than the compared rounds."""
        return all(map(self.is_fully_compared, (*self.base, *self.other)))

    def is_fully_compared(self, run: ComparedRun) -> bool:
        """Return whether a run has no more than the compared rounds."""
        return run.rounds == self.rounds and not run.broken

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """The seeds of the first side."""
        return tuple(run.manifest.seed for run in self.base)


def pair_runs(base: Runs, other: Runs) -> Pairs:
    """Return the runs of two sides in pairs with the same seed. If each side is one run, their seeds may differ."""
    notes: list[str] = []
    left, right = _read_side(base, notes), _read_side(other, notes)
    _check_sides([*left, *right])
    pairs = [(left[0], right[0])] if len(left) == len(right) == 1 else _pair_by_seed(left, right, notes)
    if len(pairs) > MAX_PAIRS:
        raise DataError(f"{len(pairs):,} pairs of runs: at most {MAX_PAIRS:,} are allowed")
    bases, others = zip(*pairs, strict=True)
    seeds = bases[0].manifest.seed, others[0].manifest.seed
    if seeds[0] != seeds[1]:
        notes.append(f"their seeds differ ({seeds[0]} and {seeds[1]}): so all random draws differ, too")
    runs = (*bases, *others)
    rounds = min(run.rounds for run in runs)
    if not rounds:
        empty = next(run for run in runs if not run.rounds)
        raise DataError(f"{empty.folder}: no {empty.unit} to compare (status {empty.manifest.status})")
    return Pairs(bases, others, rounds, (*notes, *_notes_on_length(runs, rounds)))


def sides_by_settings(runs: Sequence[RunResult | str | os.PathLike[str]]) -> tuple[list[Path], list[Path]]:
    """Split runs into two sides by configuration, ignoring the seed; the first run is on the first side."""
    folders = run_folders(runs)
    groups: dict[str, list[Path]] = {}
    for folder in folders:
        config = dict(read_run(folder).manifest.config or {})
        settings = {key: value for key, value in config.items() if key not in _RUN_KEYS}
        is_branch = read_manifest(folder).get("branched_from") is not None
        groups.setdefault(json.dumps([settings, is_branch], sort_keys=True, default=str), []).append(folder)
    if len(groups) != 2:
        sizes = f"{format_count(len(folders), 'run')} of {format_count(len(groups), 'configuration')}, instead of two"
        raise DataError(f"{sizes}: name the two sides: prism compare BASE... --with OTHER...")
    left, right = groups.values()
    return left, right


def run_folders(runs: Runs) -> list[Path]:
    """Return the folders of runs; a folder of several runs is replaced with their folders."""
    items = [runs] if isinstance(runs, RunResult | str | os.PathLike) else list(runs)
    folders = [folder for item in items for folder in _find_runs(run_folder(item))]
    if not folders:
        raise DataError("give a run for each side")
    return folders


def _find_runs(folder: Path) -> list[Path]:
    if (folder / MANIFEST).exists() or not folder.is_dir() or (folder / "runs.parquet").exists():
        return [folder]
    candidates = sorted(file.parent for file in folder.glob(f"*/{MANIFEST}") if ".broken-" not in file.parent.name)
    return [run_dir for run_dir in candidates if "config" in read_manifest(run_dir)] or [folder]


def _read_side(items: Runs, notes: list[str]) -> list[ComparedRun]:
    """Return the runs of a side; leave out runs without rounds if other runs have rounds."""
    runs = [_open_run(folder) for folder in run_folders(items)]
    complete = [run for run in runs if run.rounds]
    if complete and len(complete) < len(runs):
        left_out = [f"{run.name} ({run.manifest.status})" for run in runs if not run.rounds]
        notes.append(f"left out, without rounds: {join_names(left_out)}")
    return complete or runs


def _open_run(folder: Path) -> ComparedRun:
    manifest = read_run(folder).manifest
    if manifest.config is None:
        raise DataError(f"{folder}: manifest.json: no configuration: another version wrote it")
    table = "indicators" if manifest.is_economy else "rounds"
    rounds = 0
    if has_table(folder, table):
        column = read_table(folder, table, ["round"])["round"]
        rounds = int(column.max()) + 1 if len(column) else 0
        if rounds > len(column):
            raise DataError(f"{folder}: table {table!r} is damaged: round {rounds - 1:,}, but {len(column):,} rows")
    broken = manifest.status != "done" and any(
        has_table(folder, name) and bool((read_table(folder, name, [column])[column] >= rounds).any())
        for name, column in _EARLY_TABLES.items()
    )
    return ComparedRun(folder, manifest, read_manifest(folder), rounds, broken)


def _check_sides(runs: Sequence[ComparedRun]) -> None:
    first, seen_folders = runs[0], set[Path]()
    for run in runs:
        if run.folder.resolve() in seen_folders:
            raise DataError(f"{run.folder}: occurs twice: give different runs")
        seen_folders.add(run.folder.resolve())
        if run.manifest.is_economy != first.manifest.is_economy:
            kinds = ["nations" if item.manifest.is_economy else "a platform" for item in (first, run)]
            raise DataError(f"{first.folder} is a run of {kinds[0]}, {run.folder} of {kinds[1]}: they share no table")


def _pair_by_seed(
    left: Sequence[ComparedRun], right: Sequence[ComparedRun], notes: list[str]
) -> list[tuple[ComparedRun, ComparedRun]]:
    sides_by_seed = [_runs_by_seed(side) for side in (left, right)]
    lefts, rights = sides_by_seed
    shared_seeds = [seed for seed in lefts if seed in rights and seed is not None]
    if not shared_seeds:
        seeds = "; and ".join(join_names(list(map(str, side))) for side in sides_by_seed)
        raise DataError(f"no seed is on both sides, so no runs can be paired (seeds: {seeds})")
    unpaired_runs = [run.name for side in sides_by_seed for seed, run in side.items() if seed not in shared_seeds]
    if unpaired_runs:
        notes.append(f"left out, with seeds on one side only: {join_names(unpaired_runs)}")
    return [(lefts[seed], rights[seed]) for seed in shared_seeds]


def _runs_by_seed(side: Iterable[ComparedRun]) -> dict[int | None, ComparedRun]:
    runs: dict[int | None, ComparedRun] = {}
    for run in side:
        first = runs.setdefault(run.manifest.seed, run)
        if first is not run:
            raise DataError(f"seed {run.manifest.seed}: {first.folder} and {run.folder} are on one side: drop one")
    return runs


def _notes_on_length(runs: Sequence[ComparedRun], rounds: int) -> list[str]:
    unfinished_runs = [
        f"{run.name} ({run.manifest.status}, {run.rounds} of {run.manifest.planned_rounds})"
        for run in runs
        if run.manifest.planned_rounds is not None and run.rounds < run.manifest.planned_rounds
    ]
    notes = [f"unfinished: {join_names(unfinished_runs)}"] if unfinished_runs else []
    if broken := [run.name for run in runs if run.broken]:
        notes.append(f"stopped within a round, so measures are left out: {join_names(broken)}")
    longest = max(run.rounds for run in runs)
    if longest != rounds:
        span = f"{rounds} to {longest} {runs[0].unit}s"
        notes.append(f"runs have {span}: only the first {rounds} are compared, without measures")
    return notes


def join_names(names: Sequence[str], limit: int = 4) -> str:
    """Return up to `limit` names on one line, and the number of further names."""
    n_more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {n_more} more" if n_more > 0 else "")
