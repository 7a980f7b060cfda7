"""The folder of a run: Parquet tables written in parts, and the manifest. It holds facts and decides nothing."""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.errors import DataError, did_you_mean

TABLES = ("rounds", "ticks", "transitions", "posts", "engagements", "cascades", "agents")
LEDGER = "decisions.sqlite"
PART_ROWS = 1_000_000
PART_ROUNDS = 50

type Column = "npt.NDArray[Any] | pd.Categorical | pd.Series[Any]"


class RunFolder:
    """A run's folder while it is written.

    A table is one file, or a folder of parts once it has grown: a part is written when it holds
    `PART_ROWS` rows or `PART_ROUNDS` rounds, under a name with a leading dot that is then taken off, so
    that a crash loses at most the part that was being filled.

    Attributes:
        cpu_s: CPU seconds that went into writing so far.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.path = _new_folder(out, name)
        self._open: dict[str, tuple[int, list[pa.Table]]] = {}
        """Table -> parts written, rows waiting; one value, so that an interrupt cannot come in between."""
        self._rounds = 0
        self.cpu_s = 0.0

    def write(self, table: str, columns: "Mapping[str, Column]") -> None:
        """Append rows to a table; columns are arrays of one length."""
        at = time.process_time()
        _, waiting = self._open.setdefault(table, (0, []))
        waiting.append(_rows(columns))
        if sum(len(rows) for rows in waiting) >= PART_ROWS:
            self._flush(table)
        self.cpu_s += time.process_time() - at

    def write_whole(self, table: str, columns: "Mapping[str, Column]") -> None:
        """Write a table in one file, in place of what it held."""
        _write_file(_rows(columns), self.path / f"{table}.parquet")

    def round_done(self) -> None:
        """Count a round; every `PART_ROUNDS` rounds what waits is written."""
        self._rounds += 1
        if self._rounds % PART_ROUNDS == 0:
            for table in self._open:
                self._flush(table)

    def close(self) -> None:
        """Write what waits."""
        for table, (_, waiting) in self._open.items():
            if (self.path / f"{table}.parquet").is_dir():
                self._flush(table)
            elif waiting:
                _write_file(pa.concat_tables(waiting), self.path / f"{table}.parquet")
                waiting.clear()

    def _flush(self, table: str) -> None:
        part, waiting = self._open[table]
        if not waiting:
            return
        folder = self.path / f"{table}.parquet"
        folder.mkdir(exist_ok=True)
        _write_file(pa.concat_tables(waiting), folder / f"part-{part:05d}.parquet")
        self._open[table] = part + 1, []

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write manifest.json, in one piece."""
        part = self.path / ".manifest.json"
        part.write_text(json.dumps(manifest, indent=2, default=str) + "\n", encoding="utf-8")
        part.replace(self.path / "manifest.json")


def make_folder(out: Path) -> None:
    """Make a folder and its parents, if they are missing.

    Raises:
        DataError: If that cannot be done.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out: {out}: cannot make that folder: {error.strerror}") from None


def _new_folder(out: Path, name: str) -> Path:
    """Make and return ``out/<name>-<date>-<time>``, with a number if that is taken."""
    make_folder(out)
    stem = f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for number in range(1000):
        folder = out / (stem if not number else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise DataError(f"--out: {out}: cannot make a folder there: {error.strerror}") from None
        return folder
    raise DataError(f"--out: {out}: no free name for {stem}")


def _rows(columns: "Mapping[str, Column]") -> pa.Table:
    return pa.table({name: pa.array(_small(values)) for name, values in columns.items()})


def _small(values: Any) -> Any:
    """Return whole numbers as int32 where all fit."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        fits = not len(values) or (values.min() >= -(2**31) and values.max() < 2**31)
        return values.astype(np.int32 if fits else np.int64)
    return values


def _write_file(table: pa.Table, file: Path) -> None:
    part = file.with_name(f".{file.name}")
    pq.write_table(table, part, compression="zstd", compression_level=1, use_dictionary=_repetitive(table))
    part.replace(file)


def _repetitive(table: pa.Table) -> list[str]:
    """Return the columns worth a dictionary: categories, truth values, rounds and ticks."""
    few = ("round", "tick", "open")
    return [f.name for f in table.schema if f.name in few or pa.types.is_dictionary(f.type)]


def read_table(run: str | Path, table: str) -> pd.DataFrame:
    """Return one table of a run's folder.

    Raises:
        DataError: If there is no such run or table, or it cannot be read.
    """
    if table not in TABLES:
        raise DataError(f"{table!r} is no table of a run ({', '.join(TABLES)}).{did_you_mean(table, TABLES)}")
    file = Path(run) / f"{table}.parquet"
    if not file.exists():
        have = ", ".join(sorted(re.sub(r"\.parquet$", "", f.name) for f in Path(run).glob("*.parquet")))
        raise DataError(f"{run}: no table {table!r} there (it has: {have or 'none'})")
    try:
        return pd.read_parquet(file)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None


def read_manifest(run: str | Path) -> dict[str, Any]:
    """Return the manifest of a run's folder.

    Raises:
        DataError: If the folder holds no run, or its manifest cannot be read.
    """
    file = Path(run) / "manifest.json"
    if not file.is_file():
        raise DataError(f"{run}: no run there: manifest.json is missing")
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    return manifest
