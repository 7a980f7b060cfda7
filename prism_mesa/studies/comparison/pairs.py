"""Which runs are compared with which: two sides, paired by seed, and what is to be known of them."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, counted
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.runs.manifest import Manifest, read_run
from prism_mesa.runs.run_files import MANIFEST, folder_of, has_table, read_manifest, read_table

type Given = RunResult | str | os.PathLike[str] | Sequence[RunResult | str | os.PathLike[str]]
"""A run (a result or its folder), a folder that holds runs, or several of these."""

MOST_PAIRS: Final = 10_000
_MOST_NAMED: Final = 4
_APART: Final = ("seed", "name", "threads", "checkpoint_every")  # keys in which runs of one side may differ
_BEFORE_ROUNDS: Final = {"posts": "written", "decisions": "round"}
"""Of a platform and of nations: the table that gets rows before a round is done, and the column of that round."""


@dataclass(frozen=True)
class OneRun:
    """A run that is compared.

    Attributes:
        manifest: What its manifest says, checked.
        rounds: Rounds or quarters that its tables hold.
        broken: Whether it was broken off within a round: some tables have rows of that, and whole ones count them.
    """

    folder: Path
    manifest: Manifest
    facts: dict[str, Any]
    rounds: int
    broken: bool

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.resolve().name


@dataclass(frozen=True)
class Pairs:
    """The runs of two sides.

    Attributes:
        base: The runs of one side, one for each pair.
        rounds: How many rounds or quarters are compared: as many as all of them have.
    """

    base: tuple[OneRun, ...]
    other: tuple[OneRun, ...]
    rounds: int
    notes: tuple[str, ...]

    @property
    def of_nations(self) -> bool:
        """Whether they are of nations."""
        return self.base[0].manifest.of_nations

    @property
    def whole(self) -> bool:
        """Whether all runs have exactly the rounds that are compared."""
        return all(map(self.is_whole, (*self.base, *self.other)))

    def is_whole(self, run: OneRun) -> bool:
        """Return whether a run has exactly the rounds that are compared."""
        return run.rounds == self.rounds and not run.broken

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """The seeds of the first side."""
        return tuple(run.manifest.seed for run in self.base)


def pair_runs(base: Given, other: Given) -> Pairs:
    """Return the runs of two sides, paired by seed; two runs alone are a pair whatever their seeds are.

    Raises:
        DataError: If there is no such run, a run is on both sides, or the sides cannot be paired.
    """
    notes: list[str] = []
    left, right = (_side(given, notes) for given in (base, other))
    _check_sides(left, right)
    pairs = [(left[0], right[0])] if len(left) == len(right) == 1 else _by_seed(left, right, notes)
    if len(pairs) > MOST_PAIRS:
        raise DataError(f"{len(pairs):,} pairs of runs: at most {MOST_PAIRS:,} are compared")
    bases, others = tuple(one for one, _ in pairs), tuple(two for _, two in pairs)
    seeds = bases[0].manifest.seed, others[0].manifest.seed
    if seeds[0] != seeds[1]:
        notes.append(f"their seeds differ ({seeds[0]} and {seeds[1]}): so do all draws, whatever else differs")
    rounds = min(run.rounds for run in (*bases, *others))
    empty = next((run for run in (*bases, *others) if not run.rounds), None)
    if empty is not None:
        what = "quarter" if empty.manifest.of_nations else "round"
        raise DataError(f"{empty.folder}: holds no {what} to compare (status {empty.manifest.status})")
    return Pairs(bases, others, rounds, (*notes, *_unequal_lengths(bases, others, rounds)))


def sides_by_settings(runs: Sequence[RunResult | str | os.PathLike[str]]) -> tuple[list[Path], list[Path]]:
    """Return runs as two sides, by their configurations without the seed; the first run's side is the first.

    Raises:
        DataError: If these are not two.
    """
    folders = run_folders(runs)
    found: dict[str, list[Path]] = {}
    for folder in folders:
        config = dict(read_run(folder).manifest.config or {})
        told = {key: value for key, value in config.items() if key not in _APART}
        branched = read_manifest(folder).get("branched_from") is not None
        found.setdefault(json.dumps([told, branched], sort_keys=True, default=str), []).append(folder)
    if len(found) != 2:
        raise DataError(
            f"{counted(len(folders), 'run')} of {counted(len(found), 'configuration')} that differ in more than the "
            "seed: two are compared; say which: prism compare BASE... --with OTHER..."
        )
    left, right = found.values()
    return left, right


def run_folders(given: Given) -> list[Path]:
    """Return the folders of runs: those given, and those in a folder that holds runs.

    Raises:
        DataError: If there is no run.
    """
    many = [given] if isinstance(given, RunResult | str | os.PathLike) else list(given)
    found = [folder for item in many for folder in _runs_in(folder_of(item))]
    if not found:
        raise DataError("no run was given: a comparison needs one for each side")
    return found


def _runs_in(folder: Path) -> list[Path]:
    if (folder / MANIFEST).exists() or not folder.is_dir() or (folder / "runs.parquet").exists():
        return [folder]
    inside = sorted(file.parent for file in folder.glob(f"*/{MANIFEST}") if ".broken-" not in file.parent.name)
    return [one for one in inside if "config" in read_manifest(one)] or [folder]


def _side(given: Given, notes: list[str]) -> list[OneRun]:
    """Return the runs of a side; of a folder of runs those without a round are left out."""
    folders = run_folders(given)
    runs = [_opened(folder) for folder in folders]
    filled = [run for run in runs if run.rounds]
    if filled and len(filled) < len(runs):
        left_out = [f"{run.name} ({run.manifest.status})" for run in runs if not run.rounds]
        notes.append(f"left out, for want of a round: {_named(left_out)}")
    return filled or runs


def _opened(folder: Path) -> OneRun:
    run = read_run(folder)
    if run.manifest.config is None:
        raise DataError(f"{folder}: manifest.json holds no configuration: another version wrote it")
    table = "indicators" if run.manifest.of_nations else "rounds"
    rounds = 0
    if has_table(folder, table):
        column = read_table(folder, table, ["round"])["round"]
        rounds = int(column.max()) + 1 if len(column) else 0
        if rounds > len(column):
            raise DataError(
                f"{folder}: table {table!r} is damaged: it has round {rounds - 1:,} in {len(column):,} rows"
            )
    broken = run.manifest.status != "done" and any(_goes_beyond(folder, *of, rounds) for of in _BEFORE_ROUNDS.items())
    return OneRun(folder, run.manifest, read_manifest(folder), rounds, broken)


def _goes_beyond(folder: Path, table: str, column: str, rounds: int) -> bool:
    """Return whether a table has rows of a later round than those that are done."""
    return has_table(folder, table) and bool((read_table(folder, table, [column])[column] >= rounds).any())


def _check_sides(left: Sequence[OneRun], right: Sequence[OneRun]) -> None:
    known: dict[Path, OneRun] = {}
    for run in (*left, *right):
        if known.setdefault(run.folder.resolve(), run) is not run:
            raise DataError(f"{run.folder}: is given twice: a run is compared with another one")
    first = left[0]
    for run in (*left, *right):
        if run.manifest.of_nations != first.manifest.of_nations:
            kinds = ["nations" if one.manifest.of_nations else "a platform" for one in (first, run)]
            raise DataError(f"{first.folder} is a run of {kinds[0]}, {run.folder} of {kinds[1]}: they share no table")


def _by_seed(left: Sequence[OneRun], right: Sequence[OneRun], notes: list[str]) -> list[tuple[OneRun, OneRun]]:
    ours, theirs = _seeds(left), _seeds(right)
    both = [seed for seed in ours if seed in theirs and seed is not None]
    if not both:
        told = [_named([str(seed) for seed in side]) for side in (ours, theirs)]
        raise DataError(f"no seed is on both sides, by which runs are paired (seeds: {told[0]}; and {told[1]})")
    alone = [run.name for side in (ours, theirs) for seed, run in side.items() if seed not in both]
    if alone:
        notes.append(f"left out, their seeds being on one side only: {_named(alone)}")
    return [(ours[seed], theirs[seed]) for seed in both]


def _seeds(side: Iterable[OneRun]) -> dict[int | None, OneRun]:
    found: dict[int | None, OneRun] = {}
    for run in side:
        before = found.setdefault(run.manifest.seed, run)
        if before is not run:
            raise DataError(f"seed {run.manifest.seed}: {before.folder} and {run.folder}, both on one side: give one")
    return found


def _unequal_lengths(base: Sequence[OneRun], other: Sequence[OneRun], rounds: int) -> list[str]:
    """Return what is to be known of runs that have not come to their end, or have more rounds than others."""
    runs = (*base, *other)
    what = "quarters" if runs[0].manifest.of_nations else "rounds"
    early = [
        f"{run.name} ({run.manifest.status}, {run.rounds} of {run.manifest.planned})"
        for run in runs
        if run.manifest.planned is not None and run.rounds < run.manifest.planned
    ]
    found = [f"not come to an end: {_named(early)}"] if early else []
    if broken := [run.name for run in runs if run.broken]:
        found.append(f"broken off within a round, so that no whole runs are compared: {_named(broken)}")
    if any(run.rounds != rounds for run in runs):
        most = max(run.rounds for run in runs)
        found.append(f"they have {rounds} to {most} {what}: the first {rounds} are compared, and no whole runs")
    return found


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
