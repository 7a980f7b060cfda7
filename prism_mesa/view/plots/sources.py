"""The sources of figures (runs, live models and studies) as tables of one shape.

`to_groups` turns whatever a figure takes into groups of runs. A group has a label and one run for each seed.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError, counted, printable
from prism_mesa.params import shown
from prism_mesa.runs.records.arrow_rows import WaitingRows
from prism_mesa.runs.records.final_tables import agent_blocks, cascade_blocks, post_blocks
from prism_mesa.runs.run_files import MANIFEST, batches_of, folder_of, has_table, read_manifest, read_table
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import InterventionParams
from prism_mesa.social.round.collect import ROUND_FIELDS, SHARE_FIELDS, TICK_FIELDS
from prism_mesa.social.state.outcomes import cascades
from prism_mesa.social.state.population import STATE_NAMES, unpacked_codes

if TYPE_CHECKING:
    from prism_mesa.studies.result import StudyResult

type RunTables = StoredRun | LiveRun
"""The tables of one run, wherever they are."""

type OneRun = str | os.PathLike[str] | SocialModel
"""A run: its result, its folder, or a model that is still going."""

type Drawable = "OneRun | StudyResult | Sequence[OneRun] | Mapping[str, OneRun | StudyResult | Sequence[OneRun]]"
"""What figures take: a run; runs that differ in their seed; a study; or several of these by label."""

MOST_GROUPS: Final = 7
"""Groups that a figure shows: more colours are not told apart."""
MOVES: Final = "moves"
"""A table that only live models have: the last changes of state of each agent (`statechart.max_history_depth`)."""
ORACLE: Final = "the oracle"
"""Who decided, of a run that does not say."""
_MAY_DIFFER: Final = ("seed", "name", "threads", "checkpoint_every")
"""Keys in which runs of a group may differ."""


@dataclass(frozen=True)
class StoredRun:
    """A run of a platform in its folder, or a run of a study that collects tables of all runs.

    Attributes:
        folder: Its folder; None if it was not kept.
        name: The name of the folder, or of the run in its study.
        seed: Its seed; -1 if the manifest names none.
        config: The configuration in the manifest, unchecked; empty without a folder.
        n_agents: Its number of agents; 0 if unknown.
        decided_by: Who answered its open choices.
        collected: Returns a table of all runs of the study by name, or None if the study does not collect it.
        study_dir: The folder of its study.
    """

    folder: Path | None
    name: str
    seed: int
    config: Mapping[str, Any]
    n_agents: int = 0
    decided_by: str = ORACLE
    collected: Callable[[str], pd.DataFrame | None] = lambda name: None
    study_dir: Path | None = None

    def _is_kept(self, table: str) -> bool:
        return self.folder is not None and has_table(self.folder, table)

    def has(self, table: str) -> bool:
        """Return whether it has a table, or its study has collected it."""
        return self._is_kept(table) or self.collected(table) is not None

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table, or only some of its columns.

        Raises:
            DataError: If it was neither kept nor collected, or is damaged.
        """
        if self.folder is not None and (self._is_kept(name) or self.study_dir is None):
            return read_table(self.folder, name, columns)
        if (table := self.collected(name)) is None:
            hint = f"`keep: tables` or `collect: [{name}]` in the study file keeps it"
            raise DataError(f"{self.study_dir}: no table {name!r} of its runs is kept: {hint}")
        rows = table[table["run"] == self.name].drop(columns=["run", "arm", "seed"]).reset_index(drop=True)
        return rows if columns is None else rows[list(columns)]

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Count the rows of a table by columns: `by` and `n`. Files are read in parts.

        Raises:
            DataError: As for `table`.
        """
        if self.folder is None or not self._is_kept(name):
            return _count([self.table(name, by)], by)
        batches = batches_of(self.folder, name, by, rows=1 << 20)
        return _count((pa.Table.from_batches([batch]).to_pandas() for batch in batches), by)


def _stored_run(folder: Path) -> StoredRun:
    """Return the run in a folder, whose manifest may hold anything.

    Raises:
        DataError: If there is no run.
    """
    manifest = read_manifest(folder)
    summary, config = (part if isinstance(part := manifest.get(key), dict) else {} for key in ("summary", "config"))
    # the summary comes first: a network from a file sets the number of agents, whatever `agents.n` says
    agents = config.get("agents")
    n = summary.get("agents", agents.get("n") if isinstance(agents, dict) else 0)
    seed, by = manifest.get("seed"), manifest.get("decided_by")
    return StoredRun(
        folder,
        folder.resolve().name,
        seed if isinstance(seed, int) else -1,
        config,
        n if isinstance(n, int) else 0,
        printable(by) if isinstance(by, str) and by else ORACLE,
    )


def _study_run(study_dir: Path, run: str, seed: int, read: Callable[[str], pd.DataFrame | None]) -> StoredRun:
    """Return a run of a study; `read` returns the tables that the study collects."""
    folder = study_dir / "runs" / run
    kept = _stored_run(folder) if (folder / MANIFEST).is_file() else StoredRun(None, run, seed, {})
    return replace(kept, name=run, seed=seed, collected=read, study_dir=study_dir)


def _read_collected(study_dir: Path, name: str) -> pd.DataFrame | None:
    """Return a table that a study has collected; None if it has not.

    Raises:
        DataError: If it cannot be read.
    """
    file = study_dir / f"{name}.parquet"
    if name in ("runs", "facts") or not file.is_file():
        return None
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = next(iter(str(error).splitlines()), "it is damaged")
        raise DataError(f"{file}: cannot be read: {reason}") from None


def _count(parts: Iterable[pd.DataFrame], by: Sequence[str]) -> pd.DataFrame:
    """Count the rows of each combination over parts of a table: columns `by` and `n`."""
    counts = [part.groupby(list(by), observed=True).size().rename("n").reset_index() for part in parts]
    for part in counts:  # parts have different categories
        for name in part.columns[part.dtypes == "category"]:
            part[name] = part[name].astype(str)
    if not counts:
        return pd.DataFrame(columns=[*by, "n"])
    return pd.concat(counts).groupby(list(by), as_index=False)["n"].sum()


class LiveRun:
    """A running model; tables hold its current state.

    It has tables of events (`transitions`, `impressions`, ...) if its recorder has a method ``table(name)``, such as
    `runs.records.in_memory.RowsInMemory`. Its attributes are those of `StoredRun`, and `model`.
    """

    folder = None
    name = "the model"

    def __init__(self, model: SocialModel) -> None:
        self.model = model
        self.seed = model.params.seed
        self.config: Mapping[str, Any] = model.params.model_dump()
        self.n_agents = len(model.population)
        self.decided_by = printable(model.reasoner.label)
        self._made: dict[str, Callable[[], pd.DataFrame]] = {
            "rounds": self._rounds,
            "ticks": self._ticks,
            "posts": lambda: _frame(post_blocks(self.model)),
            "agents": lambda: _frame(agent_blocks(self.model)),
            "cascades": self._cascades,
            MOVES: self._moves,
        }

    def has(self, table: str) -> bool:
        """Return whether it has a table."""
        return table in self._made or self._recorded(table) is not None

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table as in the folder of a run, or only some of its columns.

        Raises:
            DataError: If it is not recorded.
        """
        frame = self._made[name]() if name in self._made else self._recorded(name)
        if frame is None:
            hint = "SocialModel(recorder=RowsInMemory(SOCIAL_TABLES)) keeps it"
            raise DataError(f"{self.name}: no table {name!r} is recorded: {hint}")
        return frame if columns is None else frame[list(columns)]

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Count the rows of a table by columns: `by` and `n`."""
        return _count([self.table(name, by)], by)

    def _recorded(self, name: str) -> pd.DataFrame | None:
        table = getattr(self.model.recorder, "table", None)
        try:
            return table(name) if callable(table) else None
        except DataError:
            return None

    def _rounds(self) -> pd.DataFrame:
        kept, names = self.model.prism_datacollector.model_vars, (*ROUND_FIELDS, *SHARE_FIELDS)
        n = min(len(kept[name]) for name in names)  # another thread may be writing a round
        first = self.model.round + 1 - n
        return pd.DataFrame({"round": np.arange(first, first + n), **{name: kept[name][:n] for name in names}})

    def _ticks(self) -> pd.DataFrame:
        kept = self.model.prism_datacollector.tables["ticks"]
        return pd.DataFrame({name: kept[name] for name in ("round", "tick", *TICK_FIELDS)})

    def _cascades(self) -> pd.DataFrame:
        posts = self.model.posts
        return _frame(cascade_blocks(self.model, cascades(posts.parent, posts.root, posts.kind)))

    def _moves(self) -> pd.DataFrame:
        history = self.model.history
        kept = np.arange(history.depth) < history.count[:, None]
        for row in history.limits:
            kept[row] = np.isin(np.arange(history.depth), history.places(row))
        agent, place = np.nonzero(kept)
        names = {"trigger": self.model.chart.triggers, "from_state": STATE_NAMES, "to_state": STATE_NAMES}
        codes = zip(names.items(), unpacked_codes(history.ring["move"][agent, place]), strict=True)
        columns = {name: pd.Categorical.from_codes(code.astype(np.int32), list(texts)) for (name, texts), code in codes}
        return pd.DataFrame({"agent": agent, **columns})


def _frame(blocks: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    rows = WaitingRows(None)
    for block in blocks:
        rows.add(block)
    frame: pd.DataFrame = rows.table().to_pandas(ignore_metadata=True)
    return frame


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed.

    Attributes:
        label: Label of the group; empty if it is the only one.
        runs: The runs, at least one.
    """

    label: str
    runs: tuple[RunTables, ...]

    @property
    def n_seeds(self) -> int:
        """Number of runs, each with its own seed."""
        return len(self.runs)

    @property
    def n_agents(self) -> int:
        """Number of agents of the first run; 0 if unknown."""
        return self.runs[0].n_agents

    def has(self, table: str) -> bool:
        """Return whether all of its runs have a table."""
        return all(run.has(table) for run in self.runs)

    def table(self, name: str, columns: Sequence[str]) -> pd.DataFrame:
        """Return a table of all runs, stacked, with `seed` as the first column.

        Raises:
            DataError: If a run lacks the table, or all are empty.
        """
        parts = [run.table(name, columns) for run in self.runs]
        if not any(map(len, parts)):
            raise DataError(f"{self.runs[0].name}: table {name!r} has no rows: there is nothing to draw")
        frames = [part[list(columns)].assign(seed=run.seed) for part, run in zip(parts, self.runs, strict=True)]
        return pd.concat(frames, ignore_index=True)[["seed", *columns]]

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Count the rows of a table by columns, for all runs: `seed`, `by` and `n`."""
        frames = [run.counts(name, by).assign(seed=run.seed) for run in self.runs]
        return pd.concat(frames, ignore_index=True)[["seed", *by, "n"]]


def to_groups(drawable: Drawable) -> tuple[Group, ...]:
    """Return the source of a figure as groups of runs.

    Args:
        drawable: A run (a result, its folder, or a live `SocialModel`); several runs that differ only in their seed;
            a study's result, whose conditions become groups; or a mapping from labels to any of these.

    Raises:
        DataError: If it is none of these, there are too many groups, or runs of a group differ in more than their
            seed or share a seed.
    """
    groups: list[Group] = []
    if isinstance(drawable, str | os.PathLike | SocialModel):
        return (Group("", (_run_tables(drawable),)),)
    if isinstance(drawable, Mapping):
        for label, part in drawable.items():
            parts = to_groups(part)
            groups += [Group(f"{label}: {group.label}" if group.label else str(label), group.runs) for group in parts]
    else:
        groups = _several(drawable)
    if not groups:
        raise DataError("no run was given: there is nothing to draw")
    if len(groups) > MOST_GROUPS:
        n = f"{len(groups)} groups of runs (the first: {groups[0].label!r})"
        raise DataError(f"{n}: a figure shows at most {MOST_GROUPS}: give some of them by label, {{label: runs}}")
    return tuple(groups)


def one_run(drawable: Drawable) -> RunTables:
    """Return the single run of a figure.

    Raises:
        DataError: If there is none, or there are several.
    """
    groups = to_groups(drawable)
    if (n := sum(group.n_seeds for group in groups)) > 1:
        raise DataError(f"{counted(n, 'run')} given: this figure is of one")
    return groups[0].runs[0]


def run_names(drawable: Drawable) -> str:
    """Return a sentence that names the runs and seeds; empty for groups of several seeds, or more than three groups."""
    groups = to_groups(drawable)
    if len(groups) > 3 or any(group.n_seeds > 1 for group in groups):
        return ""
    return f" From {', '.join(f'{run.name} (seed {run.seed})' for group in groups for run in group.runs)}."


def shared_interventions(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the interventions of the runs (`at`, `until`, `set`, `agents`), or none if runs differ in them."""
    each = [_interventions(group.runs[0].config) for group in groups]
    return each[0] if all(interventions == each[0] for interventions in each) else []


def _interventions(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the interventions of an unchecked configuration."""
    try:
        return [InterventionParams.model_validate(values).model_dump() for values in config["interventions"]]
    except (LookupError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return []


def _several(drawable: object) -> list[Group]:
    """Return a study, or runs of several seeds, as groups."""
    from prism_mesa.studies.result import StudyResult  # one that is drawn has loaded its statistics

    if isinstance(drawable, StudyResult):
        return _conditions(drawable)
    if isinstance(drawable, Iterable):
        return [_seeds_group([_run_tables(run) for run in drawable])]
    raise DataError(f"give a run, a model, a study's result, or several by label, not {shown(drawable)}")


def _run_tables(run: object) -> RunTables:
    """Return the tables of a run.

    Raises:
        DataError: If there is no run, or the folder is a study's.
    """
    from prism_mesa.studies.folder import MANIFEST as STUDY_MANIFEST

    if isinstance(run, SocialModel):
        return LiveRun(run)
    folder = folder_of(run)
    if not (folder / MANIFEST).exists() and (folder / STUDY_MANIFEST).exists():
        raise DataError(f"{folder}: is the folder of a study: give its result, Study(...).report(), or its runs")
    return _stored_run(folder)


def _seeds_group(runs: Sequence[RunTables]) -> Group:
    """Return runs as one group if they differ only in their seeds."""
    if not runs:
        raise DataError("no run was given: there is nothing to draw")
    first, by_seed = runs[0], dict[int, RunTables]()
    for run in runs:
        if (key := _first_difference(first.config, run.config)) is not None:
            by_label = "give them by label: {label: run}"
            raise DataError(f"{first.name} and {run.name} differ in {key}, not only in their seed: {by_label}")
        if (other := by_seed.setdefault(run.seed, run)) is not run:
            raise DataError(f"{other.name} and {run.name} have the same seed, {run.seed}: give one of them")
    return Group("", tuple(runs))


def _first_difference(left: Mapping[str, Any], right: Mapping[str, Any]) -> str | None:
    """Return the first key, other than the seed, in which two configurations differ; None if there is none."""
    for key in dict.fromkeys([*left, *right]):
        value, other = left.get(key), right.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            if (below := _first_difference(value, other)) is not None:
                return f"{key}.{below}"
        elif key not in _MAY_DIFFER and json.dumps(value, default=str) != json.dumps(other, default=str):
            return str(key)
    return None


def _conditions(result: "StudyResult") -> list[Group]:
    """Return the conditions of a study, each with its completed runs."""
    from prism_mesa.view.study.contents import condition_label, conditions, rows_of_condition

    groups = []
    read = cache(partial(_read_collected, result.study_dir))
    for condition in conditions(result.table):
        rows = rows_of_condition(result.table.runs, result.table, condition)
        rows = rows[rows["status"] == "done"].drop_duplicates("seed")
        pairs = zip(rows["run"], rows["seed"], strict=True)
        runs = tuple(_study_run(result.study_dir, str(run), int(seed), read) for run, seed in pairs)
        if runs:
            groups.append(Group(condition_label(result.table, condition), runs))
    return groups
