"""Tables of a run that is kept in a folder, and of a run of a study."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError, printable
from prism_mesa.runs.run_files import batches_of, has_table, read_manifest, read_table

ORACLE: Final = "the oracle"
"""Who decided, of a run that does not say."""


class RecordedRun:
    """A run of a platform in its folder, of which only what is asked for is read.

    Attributes:
        folder: Its folder.
        name: The folder's name.
        config: The configuration, as its manifest holds it: it may hold anything.
        seed: Its seed; -1 where the manifest names none.
        n_agents: How many agents its summary says, or before there is one its configuration; 0 where neither does.
        decided_by: Who answered its open choices, as a summary calls it.

    Raises:
        DataError: If there is no run.
    """

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(folder)
        config, seed = manifest.get("config"), manifest.get("seed")
        self.folder = folder
        self.name = folder.resolve().name
        self.config: Mapping[str, Any] = config if isinstance(config, dict) else {}
        self.seed = seed if isinstance(seed, int) else -1
        self.n_agents = n_agents_of(manifest)
        by = manifest.get("decided_by")
        self.decided_by = printable(by) if isinstance(by, str) and by else ORACLE

    def has(self, table: str) -> bool:
        """Return whether it has a table."""
        return has_table(self.folder, table)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table, or only some of its columns.

        Raises:
            DataError: If it is not there, or damaged.
        """
        return read_table(self.folder, name, columns)

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Return how many rows of a table there are of each combination: columns `by` and `n`."""
        parts = [
            pa.Table.from_batches([batch]).to_pandas().groupby(list(by), observed=True).size()
            for batch in batches_of(self.folder, name, by, rows=1 << 20)
        ]
        return added_up(parts, by)


class CollectedRun:
    """A run of a study: of its folder where it is kept, else of the tables that the study collects.

    Args:
        study_dir: The study's folder.
        run: The run's name.
        seed: Its seed.
        read: Returns a collected table by name, as `read_collected` does.

    Attributes:
        folder: Its own folder; None where none is kept.
        name: Its name.
        seed: Its seed.
        config: Its configuration where its folder is kept, else nothing.
        n_agents: As for `RecordedRun`.
        decided_by: As for `RecordedRun`.
    """

    def __init__(self, study_dir: Path, run: str, seed: int, read: Callable[[str], pd.DataFrame | None]) -> None:
        kept = study_dir / "runs" / run
        self._study_dir, self._read = study_dir, read
        self._recorded = RecordedRun(kept) if (kept / "manifest.json").is_file() else None
        self.folder = kept if self._recorded is not None else None
        self.name, self.seed = run, seed
        self.config: Mapping[str, Any] = {} if self._recorded is None else self._recorded.config
        self.n_agents = 0 if self._recorded is None else self._recorded.n_agents
        self.decided_by = ORACLE if self._recorded is None else self._recorded.decided_by

    def has(self, table: str) -> bool:
        """Return whether it has a table, or the study has collected it."""
        return (self._recorded is not None and self._recorded.has(table)) or self._read(table) is not None

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table, or only some of its columns.

        Raises:
            DataError: If it is neither kept nor collected, or damaged.
        """
        if self._recorded is not None and self._recorded.has(name):
            return self._recorded.table(name, columns)
        found = self._read(name)
        if found is None:
            way = f"`keep: tables` or `collect: [{name}]` in the study file keeps it"
            raise DataError(f"{self._study_dir}: no table {name!r} of its runs is kept: {way}")
        own = found[found["run"] == self.name].drop(columns=["run", "arm", "seed"])
        return own.reset_index(drop=True) if columns is None else own[list(columns)].reset_index(drop=True)

    def counts(self, name: str, by: Sequence[str]) -> pd.DataFrame:
        """Return how many rows of a table there are of each combination: columns `by` and `n`."""
        if self._recorded is not None and self._recorded.has(name):
            return self._recorded.counts(name, by)
        return added_up([self.table(name, by).groupby(list(by), observed=True).size()], by)


def read_collected(study_dir: Path, name: str) -> pd.DataFrame | None:
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
        told = next(iter(str(error).splitlines()), "it is damaged")
        raise DataError(f"{file}: cannot be read: {told}") from None


def added_up(parts: Sequence["pd.Series[int]"], by: Sequence[str]) -> pd.DataFrame:
    """Return counts of parts of a table as those of the whole: columns `by` and `n`."""
    frames = [part.rename("n").reset_index() for part in parts]
    if not frames:
        return pd.DataFrame(columns=[*by, "n"])
    for frame in frames:  # categories of parts differ
        for name in by:
            if isinstance(frame[name].dtype, pd.CategoricalDtype):
                frame[name] = frame[name].astype(str)
    return pd.concat(frames).groupby(list(by), as_index=False)["n"].sum()


def n_agents_of(manifest: Mapping[str, Any]) -> int:
    """Return how many agents a run has, as its manifest says; 0 where it does not.

    A network that is read from a file has its own number, whatever `agents.n` says: the summary tells it.
    """
    summary, config = (manifest.get(name) for name in ("summary", "config"))
    told = summary.get("agents") if isinstance(summary, Mapping) else None
    agents = config.get("agents") if isinstance(config, Mapping) else None
    n = told if isinstance(told, int) else agents.get("n") if isinstance(agents, Mapping) else None
    return n if isinstance(n, int) else 0
