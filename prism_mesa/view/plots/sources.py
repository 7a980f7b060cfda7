"""The sources of figures (runs, live models and studies) as tables of one shape.

`to_groups` turns the source of a figure into groups of runs. A group has a label and one run for each seed.
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

from prism_mesa.domain import SHARE, AgentState, states_in
from prism_mesa.errors import DataError, printable
from prism_mesa.params import flatten, short_repr
from prism_mesa.runs.records.arrow_rows import WaitingRows
from prism_mesa.runs.records.final_tables import agent_blocks, cascade_blocks, post_blocks
from prism_mesa.runs.run_files import (
    MANIFEST,
    has_table,
    read_batches,
    read_column_names,
    read_manifest,
    read_table,
    run_folder,
)
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import InterventionParams
from prism_mesa.social.round.collect import ROUND_FIELDS
from prism_mesa.social.state.outcomes import cascades
from prism_mesa.social.state.population import unpack_codes

if TYPE_CHECKING:
    from prism_mesa.studies.result import StudyResult

type OneRun = str | os.PathLike[str] | SocialModel
"""A run: its result, its folder, or a live model."""

type Drawable = "OneRun | StudyResult | Sequence[OneRun] | Mapping[str, OneRun | StudyResult | Sequence[OneRun]]"
"""The source of a figure: a run, runs that differ in their seed, a study, or several of these by label."""

ENGAGEMENTS: Final = ["likes", "replies", "reshares"]
"""Columns that count engagements."""
MAX_GROUPS: Final = 7
"""Maximum number of groups in a figure; more colours are hard to distinguish."""
MOVES: Final = "moves"
"""A table that only live models have: each agent's last transitions (`statechart.max_history_depth`)."""
ORACLE: Final = "the oracle"
"""The name of the decider if the manifest has none."""
_VARYING_KEYS: Final = ("seed", "name", "threads", "checkpoint_every")
"""Keys that may differ between runs of a group."""


@dataclass(frozen=True)
class RunTables:
    """The tables of one run of a platform: from its folder, from a live model, or collected by its study.

    A live model has tables of its current state. It has tables of events (`transitions`, `impressions`, ...) if its
    recorder has a method ``table(name)``, such as `runs.records.in_memory.RowsInMemory`.

    Attributes:
        name: The name of the folder, or of the run in its study.
        seed: Its seed; -1 if the manifest has none.
        config: The configuration in the manifest, unchecked; empty without a folder.
        n_agents: Its number of agents; 0 if unknown.
        decided_by: Who answered its open choices.
        folder: Its folder; None if it was not kept.
        model: The live model; None for a stored run.
        find_table: Function that returns a table that is not in the folder, or None; None for a run in a folder.
        hint: How to keep a table that `find_table` does not return.
    """

    name: str
    seed: int
    config: Mapping[str, Any]
    n_agents: int = 0
    decided_by: str = ORACLE
    folder: Path | None = None
    model: SocialModel | None = None
    find_table: Callable[[str], pd.DataFrame | None] | None = None
    hint: str = ""

    def _has_file(self, table: str) -> bool:
        return self.folder is not None and has_table(self.folder, table)

    def has(self, table: str) -> bool:
        """Return whether it has a table."""
        return self._has_file(table) or (self.find_table is not None and self.find_table(table) is not None)

    @property
    def states(self) -> tuple[AgentState, ...]:
        """The states of its agents, by code."""
        if self._has_file("rounds"):
            return states_in(read_column_names(str(self.folder), "rounds"))
        table = None if self.find_table is None else self.find_table("rounds")
        return states_in(() if table is None else table.columns)

    def table(self, name: str, columns: Sequence[str]) -> pd.DataFrame:
        """Return columns of a table; a missing or damaged table raises a DataError."""
        if self.folder is not None and (self.find_table is None or self._has_file(name)):
            return read_table(self.folder, name, columns)
        table = None if self.find_table is None else self.find_table(name)
        if table is None:
            raise DataError(f"{self.name}: no table {name!r} is kept: {self.hint}")
        return table[list(columns)]

    def count_rows(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Count the rows of a table by columns: `by` and `n`. Files are read in parts."""
        if self.folder is None or not self._has_file(name):
            return _count([self.table(name, by)], by)
        batches = read_batches(self.folder, name, by, rows=1 << 20)
        return _count((pa.Table.from_batches([batch]).to_pandas() for batch in batches), by)


def _stored_run(folder: Path) -> RunTables:
    """Return the run in a folder; its manifest is not validated."""
    manifest = read_manifest(folder)
    summary, config = (part if isinstance(part := manifest.get(key), dict) else {} for key in ("summary", "config"))
    # prefer the summary, because a network from a file overrides `agents.n`
    agents = config.get("agents")
    n = summary.get("agents", agents.get("n") if isinstance(agents, dict) else 0)
    seed, decided_by = manifest.get("seed"), manifest.get("decided_by")
    return RunTables(
        folder.resolve().name,
        seed if isinstance(seed, int) else -1,
        config,
        n if isinstance(n, int) else 0,
        printable(decided_by) if isinstance(decided_by, str) and decided_by else ORACLE,
        folder,
    )


def _read_collected(study_dir: Path, name: str) -> pd.DataFrame | None:
    file = study_dir / f"{name}.parquet"
    if name in ("runs", "facts") or not file.is_file():
        return None
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = next(iter(str(error).splitlines()), "it is damaged")
        raise DataError(f"{file} cannot be read: {reason}") from None


def _count(parts: Iterable[pd.DataFrame], by: Sequence[str]) -> pd.DataFrame:
    """Count the rows of each combination over parts of a table: columns `by` and `n`."""
    counts = [part.groupby(list(by), observed=True).size().rename("n").reset_index() for part in parts]
    if not counts:
        return pd.DataFrame(columns=[*by, "n"])
    # parts have different categories
    frames = [part.astype(dict.fromkeys(part.select_dtypes("category"), str)) for part in counts]
    return pd.concat(frames).groupby(list(by), as_index=False)["n"].sum()


def _live_run(model: SocialModel) -> RunTables:
    hint = "SocialModel(recorder=RowsInMemory(SOCIAL_TABLES)) keeps it"
    decider, config = printable(model.reasoner.label), model.params.model_dump()
    find, n = partial(_live_table, model), len(model.population)
    return RunTables("the model", model.params.seed, config, n, decider, model=model, find_table=find, hint=hint)


def _live_table(model: SocialModel, name: str) -> pd.DataFrame | None:
    match name:
        case "rounds":
            columns, shares = model.prism_datacollector.model_vars, [SHARE + s.value for s in model.platform.states]
            fields = (*ROUND_FIELDS, *shares)
            n = min(len(columns[field]) for field in fields)  # another thread may be writing a round
            first = model.round + 1 - n
            values = {field: columns[field][:n] for field in fields}
            return pd.DataFrame({"round": np.arange(first, first + n), **values})
        case "ticks":
            ticks = model.prism_datacollector.tables["ticks"]
            return pd.DataFrame(dict(ticks))
        case "posts":
            return _to_frame(post_blocks(model))
        case "agents":
            return _to_frame(agent_blocks(model))
        case "cascades":
            posts = model.posts
            return _to_frame(cascade_blocks(model, cascades(posts.parent, posts.root, posts.kind)))
        case "moves":
            return _moves(model)
    table = getattr(model.recorder, "table", None)
    try:
        return table(name) if callable(table) else None
    except DataError:
        return None


def _moves(model: SocialModel) -> pd.DataFrame:
    """Return the table `MOVES`: columns `agent`, `trigger`, `from_state`, `to_state`."""
    history = model.history
    is_stored = np.arange(history.depth) < history.count[:, None]
    for row in history.limits:
        is_stored[row] = np.isin(np.arange(history.depth), history.positions(row))
    agent, index = np.nonzero(is_stored)
    states = [state.value for state in model.platform.states]
    names = {"trigger": model.chart.triggers, "from_state": states, "to_state": states}
    codes = zip(names.items(), unpack_codes(history.ring["move"][agent, index]), strict=True)
    columns = {name: pd.Categorical.from_codes(code.astype(np.int32), list(texts)) for (name, texts), code in codes}
    return pd.DataFrame({"agent": agent, **columns})


def _to_frame(blocks: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
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
        runs: The runs, at least one, each with its own seed.
    """

    label: str
    runs: tuple[RunTables, ...]

    def has(self, table: str) -> bool:
        """Return whether all of its runs have a table."""
        return all(run.has(table) for run in self.runs)

    def table(self, name: str, columns: Sequence[str]) -> pd.DataFrame:
        """Return a table of all runs, stacked, with `seed` first; a missing or empty table raises a DataError."""
        parts = [run.table(name, columns).assign(seed=run.seed) for run in self.runs]
        if not any(map(len, parts)):
            raise DataError(f"{self.runs[0].name}: table {name!r} has no rows: there is nothing to draw")
        return pd.concat(parts, ignore_index=True)[["seed", *columns]]

    def count_rows(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Count the rows of a table by columns, for all runs: `seed`, `by` and `n`."""
        parts = [run.count_rows(name, by).assign(seed=run.seed) for run in self.runs]
        return pd.concat(parts, ignore_index=True)[["seed", *by, "n"]]


def to_groups(source: Drawable) -> tuple[Group, ...]:
    """Return the source of a figure as groups of runs; the conditions of a study become groups.

    Raises:
        DataError: If the source is not valid, there are too many groups, or the runs of a group share a seed or differ
            in more than the seed.
    """
    groups: list[Group] = []
    if isinstance(source, str | os.PathLike | SocialModel):
        return (Group("", (_run_tables(source),)),)
    from prism_mesa.studies.result import StudyResult  # loading the statistics is slow, but a result has loaded them

    if isinstance(source, Mapping):
        for label, item in source.items():
            for group in to_groups(item):
                groups.append(Group(f"{label}: {group.label}" if group.label else str(label), group.runs))
    elif isinstance(source, StudyResult):
        groups = _conditions(source)
    elif isinstance(source, Iterable):
        runs = tuple(_run_tables(run) for run in source)
        _check_seeds(runs)
        groups = [Group("", runs)] if runs else []
    else:
        raise DataError(f"give a run, a model, a study's result, or several by label, not {short_repr(source)}")
    if not groups:
        raise DataError("no run was given: there is nothing to draw")
    if len(groups) > MAX_GROUPS:
        n = f"{len(groups)} groups of runs (the first: {groups[0].label!r})"
        raise DataError(f"{n}: a figure shows at most {MAX_GROUPS}: give some of them by label, {{label: runs}}")
    return tuple(groups)


def single_run(source: Drawable) -> RunTables:
    """Return the single run of a figure; raise a DataError if there is none or more than one."""
    groups = to_groups(source)
    if (n := sum(len(group.runs) for group in groups)) > 1:
        raise DataError(f"{n:,} runs given: this figure shows one")
    return groups[0].runs[0]


def run_names(source: Drawable) -> str:
    """Return a sentence that names the runs and seeds; empty for several seeds or more than three groups."""
    groups = to_groups(source)
    if len(groups) > 3 or any(len(group.runs) > 1 for group in groups):
        return ""
    return f" From {', '.join(f'{group.runs[0].name} (seed {group.runs[0].seed})' for group in groups)}."


def shared_interventions(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the interventions of the runs as in a manifest; none if the runs have different ones."""
    first, *others = (_interventions(group.runs[0].config) for group in groups)
    return first if all(interventions == first for interventions in others) else []


def _interventions(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the interventions of a configuration that was not validated."""
    try:
        return [InterventionParams.model_validate(values).model_dump() for values in config["interventions"]]
    except (LookupError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return []


def _run_tables(run: object) -> RunTables:
    from prism_mesa.studies.folder import MANIFEST as STUDY_MANIFEST

    if isinstance(run, SocialModel):
        return _live_run(run)
    folder = run_folder(run)
    if not (folder / MANIFEST).exists() and (folder / STUDY_MANIFEST).exists():
        raise DataError(f"{folder} is the folder of a study: give its result, Study(...).report(), or its runs")
    return _stored_run(folder)


def _check_seeds(runs: Sequence[RunTables]) -> None:
    """Raise a DataError if runs differ in more than their seeds, or share a seed."""
    by_seed: dict[int, RunTables] = {}
    for run in runs:
        first, values = (dict(flatten(config)) for config in (runs[0].config, run.config))
        for key in first | values:
            left, right = (json.dumps(config.get(key), default=str) for config in (first, values))
            if key.rpartition(".")[2] not in _VARYING_KEYS and left != right:
                by_label = "give them by label: {label: run}"
                raise DataError(f"{runs[0].name} and {run.name} differ in {key}, not only in their seed: {by_label}")
        if (other := by_seed.setdefault(run.seed, run)) is not run:
            raise DataError(f"{other.name} and {run.name} have the same seed, {run.seed}: give one of them")


def _conditions(result: "StudyResult") -> list[Group]:
    """Return the conditions of a study, each with its completed runs."""
    from prism_mesa.view.study.contents import condition_label, conditions, rows_of_condition

    groups, collected = [], cache(partial(_read_collected, result.study_dir))
    hint = f"`keep: tables`, or its name in `collect`, keeps it in the study {result.study_dir}"
    for condition in conditions(result.table):
        rows = rows_of_condition(result.table.runs, result.table, condition)
        rows = rows[rows["status"] == "done"].drop_duplicates("seed")
        runs = []
        for name, seed in zip(rows["run"].astype(str), rows["seed"].astype(int), strict=True):
            folder = result.study_dir / "runs" / name
            run = _stored_run(folder) if (folder / MANIFEST).is_file() else RunTables(name, seed, {})
            find_table = partial(_collected_table, collected, name)
            runs.append(replace(run, name=name, seed=seed, find_table=find_table, hint=hint))
        if runs:
            groups.append(Group(condition_label(result.table, condition), tuple(runs)))
    return groups


def _collected_table(collected: Callable[[str], pd.DataFrame | None], run: str, name: str) -> pd.DataFrame | None:
    table = collected(name)
    return None if table is None else table[table["run"] == run]
