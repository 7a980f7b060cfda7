"""The folder of a run: Parquet tables written in parts, and the manifest. It holds facts and decides nothing."""

import json
import re
import shutil
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.errors import DataError, PrismError, PrismWarning, did_you_mean, said_openly
from prism_mesa.runs.table_checks import check_columns, check_values
from prism_mesa.runs.trust import SIGNATURE, Origin, is_inside, origin, sign

TABLES = ("rounds", "ticks", "transitions", "impressions", "posts", "engagements", "cascades", "agents")
"""The tables of a run of a platform."""
WRITTEN_TABLES = ("thoughts", "notes")
"""Further tables, where an LLM writes (`content: llm`): what agents thought, called and said; what they noted."""
ECONOMY_TABLES = ("indicators", "decisions", "verdicts", "trade", "reasoning", "nations", "responses", "baselines")
"""The tables of a run of nations; `reasoning` only where an LLM decided."""
LEDGER = "decisions.sqlite"
MANIFEST = "manifest.json"
MOST_MANIFEST_BYTES = 64 * 2**20
PART_ROWS = 1_000_000
PART_ROUNDS = 50

type Column = "npt.NDArray[Any] | pd.Categorical | pd.Series[Any] | pa.Array"


class RunFolder:
    """A run's folder while it is written.

    A table is one file, or a folder of parts once it has grown: a part is written when it holds
    `PART_ROWS` rows or `PART_ROUNDS` rounds, under a name with a leading dot that is then taken off, so
    that a crash loses at most the part that was being filled.

    Attributes:
        cpu_s: CPU seconds that went into writing so far.
        notes: What whoever made the run should know of its folder.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.path = new_folder(out, name)
        self._open: dict[str, tuple[int, list[pa.Table]]] = {}
        """Table -> parts written, rows waiting; one value, so that an interrupt cannot come in between."""
        self._rounds = 0
        self.cpu_s = 0.0
        self.notes: list[str] = []

    def write(self, table: str, columns: "Mapping[str, Column]") -> None:
        """Append rows to a table; columns are arrays of one length."""
        at = time.process_time()
        _, waiting = self._open.setdefault(table, (0, []))
        waiting.append(_rows(columns))
        while sum(len(rows) for rows in waiting) >= PART_ROWS:
            waiting = self._flush(table)
        self.cpu_s += time.process_time() - at

    def write_whole(self, table: str, blocks: "Mapping[str, Column] | Iterable[Mapping[str, Column]]") -> None:
        """Write a table in place of what it held: one file, or a folder of parts if it comes in several blocks.

        A block is made when the one before has been written, so no more than two are in memory.
        """
        at = time.process_time()
        blocks = [blocks] if isinstance(blocks, Mapping) else blocks
        file = self.path / f"{table}.parquet"
        parts = self.path / f".{table}.parts"
        shutil.rmtree(parts, ignore_errors=True)
        parts.mkdir()
        n = 0
        for n, block in enumerate(blocks, start=1):
            _write_file(_rows(block), parts / _part(n - 1))
        if n == 1:
            (parts / _part(0)).replace(file)
            parts.rmdir()
        else:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
            parts.replace(file)
        self.cpu_s += time.process_time() - at

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
                while self._flush(table):
                    pass
            elif waiting:
                _write_file(_joined(waiting), self.path / f"{table}.parquet")
                waiting.clear()

    def _flush(self, table: str) -> list[pa.Table]:
        """Write a part of what waits, `PART_ROWS` rows at most, and return the rest."""
        part, waiting = self._open[table]
        if not sum(len(rows) for rows in waiting):
            return []
        rows = _joined(waiting)
        folder = self.path / f"{table}.parquet"
        folder.mkdir(exist_ok=True)
        _write_file(rows[:PART_ROWS], folder / _part(part))
        rest = [rows[PART_ROWS:]] if len(rows) > PART_ROWS else []
        self._open[table] = part + 1, rest
        return rest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write manifest.json, in one piece, signed (`trust.sign`), without passwords of addresses."""
        values, unsigned = sign(_openly(dict(manifest)))
        part = self.path / f".{MANIFEST}"
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        part.replace(self.path / MANIFEST)
        if unsigned and unsigned not in self.notes:
            self.notes.append(unsigned)
            warnings.warn(unsigned, PrismWarning, stacklevel=2)


def _openly(value: Any) -> Any:
    """Return a value with no password of an address in any text of it."""
    if isinstance(value, dict):
        return {key: _openly(held) for key, held in value.items()} | _host_openly(value.get("host"))
    if isinstance(value, list | tuple):
        return [_openly(held) for held in value]
    return said_openly(value) if isinstance(value, str) else value


def _host_openly(host: Any) -> dict[str, Any]:
    """Return the addresses of servers, if they are some, without who asks, which may be written before an @."""
    if isinstance(host, str):
        return {"host": said_openly(f"host={host}").removeprefix("host=")}
    return {"host": [_host_openly(one).get("host", one) for one in host]} if isinstance(host, list | tuple) else {}


def run_around(path: str | Path) -> Path | None:
    """Return the folder of a run that a path is, or lies in; None if there is none."""
    where = Path(path).resolve()
    return next((folder for folder in (where, *where.parents) if _is_run(folder)), None)


def _is_run(folder: Path) -> bool:
    try:
        return "config" in read_manifest(folder)
    except DataError:
        return False


def check_out(out: str | Path) -> None:
    """Check that what is kept does not go into a run.

    Raises:
        DataError: If it would.
    """
    run = run_around(out)
    if run is not None:
        raise DataError(f"--out: {out}: lies in the folder of a run, {run}, which is only read: name another")


def make_folder(out: Path) -> None:
    """Make a folder and its parents, if they are missing.

    Raises:
        DataError: If that cannot be done.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out: {out}: cannot make that folder: {error.strerror}") from None


def new_folder(out: Path, name: str) -> Path:
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


def _part(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _rows(columns: "Mapping[str, Column]") -> pa.Table:
    return pa.table({name: _arrow(values) for name, values in columns.items()})


def _joined(waiting: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(waiting, promote_options="permissive")  # whole numbers of 32 bits and of 64


def _arrow(values: Any) -> pa.Array:
    """Return a column as Arrow holds it: whole numbers of 32 bits where all fit, categories as their codes."""
    if isinstance(values, pd.Categorical):
        return named(values.codes, list(values.categories))
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.dtype == np.int32:
        return values if isinstance(values, pa.Array) else pa.array(values)
    fits = values.dtype.itemsize < 4 or not len(values) or (values.min() >= -(2**31) and values.max() < 2**31)
    return pa.array(values.astype(np.int32 if fits else np.int64))


def named(codes: npt.NDArray[np.signedinteger[Any]], names: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of texts as codes into the distinct `names`; a code below 0 is a blank."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(names, pa.string()))


def _write_file(table: pa.Table, file: Path) -> None:
    """Write a file in one piece: small, in little time, and with the bounds of round, tick and agent for queries."""
    few = [f.name for f in table.schema if pa.types.is_dictionary(f.type) or f.name == "interests"]
    steps = [f.name for f in table.schema if pa.types.is_integer(f.type)]
    part = file.with_name(f".{file.name}")
    pq.write_table(
        table,
        part,
        compression="zstd",
        compression_level=1,
        use_dictionary=few,
        column_encoding=dict.fromkeys(steps, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in ("round", "tick", "agent") if name in table.column_names],
    )
    part.replace(file)


def read_table(run: str | Path, table: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return one table of a run's folder, or only some of its columns.

    Raises:
        DataError: If there is no such run, table or column, it cannot be read, or holds what no such table does.
    """
    file = _table_of(run, table)
    with _naming_file(file):
        read = pq.ParquetDataset(file, partitioning=None)
        check_columns(str(file), table, read.schema, columns or ())
        columns_read = read.read(columns=None if columns is None else list(columns))
        columns_read.validate(full=True)  # a text that is not UTF-8 comes out only where it is used
        rows: pd.DataFrame = columns_read.to_pandas(ignore_metadata=True)
    check_values(str(file), table, rows)
    return rows


def columns_of(run: str | Path, table: str) -> list[str]:
    """Return the names of a table's columns; those of an older run may be fewer.

    Raises:
        DataError: If there is no such run or table, or it cannot be read.
    """
    file = _table_of(run, table)
    with _naming_file(file):
        return [str(name) for name in pq.read_schema(files_of(file)[0]).names]


def count_rows(run: str | Path, table: str) -> int:
    """Return the number of rows of a table, which is read off its files' ends.

    Raises:
        DataError: If there is no such run or table, or it cannot be read.
    """
    file = _table_of(run, table)
    with _naming_file(file):
        return sum(pq.read_metadata(part).num_rows for part in files_of(file))


def files_of(table: Path) -> list[Path]:
    """Return the files of a table, in the order of its rows."""
    return sorted(table.glob("part-*.parquet")) if table.is_dir() else [table]


def _table_of(run: str | Path, table: str) -> Path:
    if table not in (*TABLES, *WRITTEN_TABLES, *ECONOMY_TABLES):
        allowed = ECONOMY_TABLES if (Path(run) / "indicators.parquet").exists() else (*TABLES, *WRITTEN_TABLES)
        raise DataError(f"{table!r} is no table of a run ({', '.join(allowed)}).{did_you_mean(table, allowed)}")
    file = Path(run) / f"{table}.parquet"
    if not file.exists():
        have = ", ".join(sorted(re.sub(r"\.parquet$", "", f.name) for f in Path(run).glob("*.parquet")))
        raise DataError(f"{run}: no table {table!r} there (it has: {have or 'none'})")
    parts = sorted(file.iterdir()) if file.is_dir() else [file]  # those of a folder are all read, whatever their names
    for part in parts:
        check_within(Path(run), part)
    if not parts:
        raise DataError(f"{file}: holds no part of a table")
    return file


def check_within(run: Path, file: Path) -> None:
    """Check that a file of a run's folder is a plain one and lies in it, also where it is a link.

    What SQLite reads with a ledger, a log of its name beside it, has to lie there too. In a run that was made here
    links may lead anywhere.

    Raises:
        DataError: If not.
    """
    if not file.is_file():
        raise DataError(f"{file}: is no plain file: nothing is read from it")
    logs = [file.with_name(f"{LEDGER}{log}") for log in ("-wal", "-journal")] if file.name == LEDGER else []
    for read in (file, *filter(Path.is_symlink, logs)):
        if not is_inside(run, read) and not _is_own(run):
            raise DataError(f"{read}: is a link out of {run}, a run from elsewhere: put the file itself there")


def _is_own(run: Path) -> bool:
    try:
        return manifest_and_origin(run)[1] == "own"
    except DataError:
        return False


@contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    """Make errors of reading `file` say so in one line."""
    try:
        yield
    except PrismError:
        raise
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:  # UnicodeDecodeError is a ValueError
        raise DataError(f"{file}: cannot be read: {next(iter(str(error).splitlines()), 'it is damaged')}") from None


def read_manifest(run: str | Path) -> dict[str, Any]:
    """Return the manifest of a run's folder, as it stands there: it may hold anything (`manifest_of` checks it).

    Raises:
        DataError: If the folder holds no run, or its manifest cannot be read.
    """
    return manifest_and_origin(run)[0]


def manifest_and_origin(run: str | Path) -> tuple[dict[str, Any], Origin]:
    """Return the manifest of a run's folder without its signature, and whose it is.

    Raises:
        DataError: If the folder holds no run, or its manifest cannot be read.
    """
    file = Path(run) / MANIFEST
    with _naming_file(file):
        there, size = file.is_file(), file.stat().st_size if file.is_file() else 0
    if not there:
        raise DataError(f"{run}: no run there: {MANIFEST} is missing")
    if size > MOST_MANIFEST_BYTES:
        raise DataError(f"{file}: has more than {MOST_MANIFEST_BYTES // 2**20} MB: is none that PRISM wrote")
    try:
        manifest = json.loads(file.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    if not isinstance(manifest, dict):
        raise DataError(f"{file}: cannot be read: it holds a {type(manifest).__name__}, not keys and values")
    whose = origin(manifest)
    if whose != "own" and not is_inside(Path(run), file):
        raise DataError(f"{file}: is a link out of {run}, a run from elsewhere: put the file itself there")
    return {key: value for key, value in manifest.items() if key != SIGNATURE}, whose
