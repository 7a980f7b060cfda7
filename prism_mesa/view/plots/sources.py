"""What figures are drawn from: runs, live models, studies, and several of these, as tables of one shape.

Whatever is given becomes groups of runs: `groups_of`. A group has a label and one run for each seed.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from prism_mesa.errors import DataError, counted
from prism_mesa.params import shown
from prism_mesa.runs.run_files import MANIFEST, folder_of
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import InterventionParams
from prism_mesa.view.plots.live import LiveRun
from prism_mesa.view.plots.recorded import CollectedRun, RecordedRun, read_collected

if TYPE_CHECKING:
    from prism_mesa.studies.result import StudyResult

type RunTables = RecordedRun | LiveRun | CollectedRun
"""The tables of one run, wherever they are."""

type OneRun = str | os.PathLike[str] | SocialModel
"""A run: its result, its folder, or a model that is still going."""

type Drawable = "OneRun | StudyResult | Sequence[OneRun] | Mapping[str, OneRun | StudyResult | Sequence[OneRun]]"
"""What figures take: a run; runs that differ in their seed; a study; or several of these by label."""

MOST_GROUPS: Final = 7
"""Groups that a figure shows: more colours are not told apart."""
_APART: Final = ("seed", "name", "threads", "checkpoint_every")
"""Keys in which runs of a group may differ."""


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed only.

    Attributes:
        label: What they are called; empty where there is one group.
        runs: At least one.
    """

    label: str
    runs: tuple[RunTables, ...]

    @property
    def n_seeds(self) -> int:
        """How many runs there are, each with a seed of its own."""
        return len(self.runs)

    @property
    def n_agents(self) -> int:
        """Agents of the first run, as its configuration says; 0 if it does not."""
        return self.runs[0].n_agents

    def has(self, table: str) -> bool:
        """Return whether all of its runs have a table."""
        return all(run.has(table) for run in self.runs)

    def table(self, name: str, columns: Sequence[str]) -> pd.DataFrame:
        """Return columns of a table of all runs below each other, with `seed` before them.

        Raises:
            DataError: If a run has no such table, or none of them a row.
        """
        parts = [run.table(name, columns) for run in self.runs]
        if not any(map(len, parts)):
            raise DataError(f"{self.runs[0].name}: table {name!r} has no rows: there is nothing to draw")
        frames = [part[list(columns)].assign(seed=run.seed) for part, run in zip(parts, self.runs, strict=True)]
        return pd.concat(frames, ignore_index=True)[["seed", *columns]]

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Return how many rows of a table there are of each combination, of all runs: columns `seed`, `by` and `n`.

        Of recorded runs the table is read in parts.
        """
        frames = [run.counts(name, by).assign(seed=run.seed) for run in self.runs]
        return pd.concat(frames, ignore_index=True)[["seed", *by, "n"]]


def groups_of(given: Drawable) -> tuple[Group, ...]:
    """Return what is given as groups of runs.

    Args:
        given: A run (a result, its folder, or a live `SocialModel`); several that differ in their seed only; a study's
            result, whose conditions are groups; or several of these by label.

    Raises:
        DataError: If it is none of these, there are too many groups, or runs of a group differ in more than their seed,
            or have the same seed.
    """
    if isinstance(given, str | os.PathLike | SocialModel):
        return (Group("", (_run_of(given),)),)
    if isinstance(given, Mapping):
        found = [group for label, one in given.items() for group in _labelled(str(label), groups_of(one))]
    else:
        found = _several(given)
    if not found:
        raise DataError("no run was given: there is nothing to draw")
    if len(found) > MOST_GROUPS:
        told = f"{len(found)} groups of runs (the first: {found[0].label!r})"
        raise DataError(f"{told}: a figure shows at most {MOST_GROUPS}: give some of them by label, {{label: runs}}")
    return tuple(found)


def one_run(given: Drawable) -> RunTables:
    """Return what is given as a single run.

    Raises:
        DataError: If it is none, or several.
    """
    groups = groups_of(given)
    if len(groups) > 1 or groups[0].n_seeds > 1:
        n = sum(group.n_seeds for group in groups)
        raise DataError(f"{counted(n, 'run')} given: this figure is of one")
    return groups[0].runs[0]


def run_names(of: Drawable) -> str:
    """Return a sentence that names the runs, with seeds; empty for groups of several seeds, or above three groups."""
    groups = groups_of(of)
    if len(groups) > 3 or any(group.n_seeds > 1 for group in groups):
        return ""
    return f" From {', '.join(f'{run.name} (seed {run.seed})' for group in groups for run in group.runs)}."


def interventions_of(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the interventions that all runs have: `at`, `until`, `set`, `agents`; none where they differ."""
    found = [_interventions(group.runs[0].config) for group in groups]
    return found[0] if all(one == found[0] for one in found) else []


def _interventions(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return those of a configuration, as it may stand in anybody's folder."""
    try:
        return [InterventionParams.model_validate(one).model_dump() for one in config["interventions"]]
    except (LookupError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return []


def _several(given: object) -> list[Group]:
    """Return a study, or runs of several seeds, as groups."""
    from prism_mesa.studies.result import StudyResult  # one that is drawn has loaded its statistics

    if isinstance(given, StudyResult):
        return _of_study(given)
    if isinstance(given, Iterable):
        return [_of_seeds([_run_of(one) for one in given])]
    raise DataError(f"give a run, a model, a study's result, or several by label, not {shown(given)}")


def _labelled(label: str, groups: Iterable[Group]) -> list[Group]:
    return [Group(f"{label}: {group.label}" if group.label else label, group.runs) for group in groups]


def _run_of(given: object) -> RunTables:
    if isinstance(given, SocialModel):
        return LiveRun(given)
    folder = folder_of(given)
    if not (folder / MANIFEST).exists():
        _refuse_study(folder)
    return RecordedRun(folder)


def _refuse_study(folder: Path) -> None:
    """Say what to draw in the place of a study's folder."""
    from prism_mesa.studies.folder import MANIFEST as STUDY_MANIFEST

    if (folder / STUDY_MANIFEST).exists():
        raise DataError(f"{folder}: is the folder of a study: give its result, Study(...).report(), or its runs")


def _of_seeds(runs: Sequence[RunTables]) -> Group:
    """Return runs as one group, if they differ in their seeds and in nothing else."""
    first, known = (runs[0] if runs else None), dict[int, RunTables]()
    if first is None:
        raise DataError("no run was given: there is nothing to draw")
    for run in runs:
        if (key := _differs(first.config, run.config)) is not None:
            by_label = "give them by label: {label: run}"
            raise DataError(f"{first.name} and {run.name} differ in {key}, not only in their seed: {by_label}")
        if known.setdefault(run.seed, run) is not run:
            raise DataError(f"{known[run.seed].name} and {run.name} have the same seed, {run.seed}: give one of them")
    return Group("", tuple(runs))


def _differs(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """Return the first key in which two configurations differ, but for their seeds; None if there is none."""
    for key in dict.fromkeys([*one, *other]):
        if key in _APART:
            continue
        left, right = one.get(key), other.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if (below := _differs(left, right)) is not None:
                return f"{key}.{below}"
        elif json.dumps(left, default=str) != json.dumps(right, default=str):
            return str(key)
    return None


def _of_study(result: "StudyResult") -> list[Group]:
    """Return the conditions of a study, each with the runs that are done."""
    from prism_mesa.view.study.contents import condition_label, conditions, of_condition

    found = []
    read = cache(partial(read_collected, result.study_dir))
    for condition in conditions(result.table):
        own = of_condition(result.table.runs, result.table, condition)
        own = own[own["status"] == "done"].drop_duplicates("seed")
        pairs = zip(own["run"], own["seed"], strict=True)
        runs = tuple(CollectedRun(result.study_dir, str(run), int(seed), read) for run, seed in pairs)
        if runs:
            found.append(Group(condition_label(result.table, condition), runs))
    return found
