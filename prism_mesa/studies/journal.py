"""What became of each run of a study, written down at once: a driver that is killed loses what was under way.

SQLite, a file for each driver (shard), so that drivers on several machines write to files of their own.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError
from prism_mesa.studies.design.identity import Identity
from prism_mesa.studies.engines.job import Outcome

_TABLES: Final = """
create table if not exists runs (
    run text primary key, ending text not null, reason text not null, attempts integer not null,
    measures text not null, facts text not null, config text not null, data text not null, code text not null,
    told text not null, kept integer not null
);
create table if not exists rows (run text not null, name text not null, arrow blob not null, primary key (run, name));
"""
_WAIT_S: Final = 60


@dataclass(frozen=True)
class Entry:
    """What is known of a run.

    Attributes:
        measures: Values by name, each with what stands for the code that took it.
        identity: Of what its condition was made.
        told: Condition and seed in words.
        kept: Whether it has a folder.
    """

    run: str
    ending: str
    reason: str
    attempts: int
    measures: dict[str, tuple[str, float | None]]
    facts: dict[str, Any]
    identity: Identity
    told: str
    kept: bool

    @property
    def done(self) -> bool:
        """Whether it came to a good end."""
        return self.ending == "done"

    def has(self, versions: Mapping[str, str]) -> bool:
        """Return whether all measures were taken, by the code that there is now."""
        return all(name in self.measures and self.measures[name][0] == version for name, version in versions.items())


class Journal:
    """The journal of one driver.

    Raises:
        DataError: If the file cannot be written, or is none.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._db = sqlite3.connect(file, _WAIT_S, isolation_level=None)
            self._db.executescript(_TABLES)
        except sqlite3.Error as error:
            raise DataError(f"{file}: cannot be written as a journal: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def put(self, outcome: Outcome, versions: Mapping[str, str], identity: Identity, told: str, *, kept: bool) -> None:
        """Write down what became of a run, in one piece; measures that were taken before stay."""
        before = self._db.execute("select attempts, measures, kept from runs where run = ?", (outcome.run,)).fetchone()
        attempts, measures = (before[0], json.loads(before[1])) if before else (0, {})
        kept = kept or bool(before and before[2])
        measures |= {
            name: [versions[name], value if value == value else None] for name, value in outcome.measures.items()
        }
        row = (
            outcome.run,
            outcome.ending,
            outcome.reason,
            attempts + 1,
            json.dumps(measures),
            json.dumps(outcome.facts),
            identity.config,
            identity.data,
            identity.code,
            told,
            int(kept),
        )
        self._db.execute("begin immediate")
        try:
            self._db.execute(f"insert or replace into runs values ({', '.join('?' * len(row))})", row)
            for name, arrow in outcome.tables.items():
                self._db.execute("insert or replace into rows values (?, ?, ?)", (outcome.run, name, arrow))
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")


class Journals:
    """All journals of a study's folder, to be read."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._databases = [_opened(file) for file in files]

    def __enter__(self) -> "Journals":
        return self

    def __exit__(self, *_: object) -> None:
        for db in self._databases:
            db.close()

    def entry(self, run: str) -> Entry | None:
        """Return what is known of a run: of several journals the one that says it is done."""
        found = [entry for db in self._databases for entry in _entries(db, "where run = ?", (run,))]
        return max(found, key=lambda entry: (entry.done, entry.attempts), default=None)

    def entries(self) -> Iterator[Entry]:
        """Yield what is known of all runs; one that several journals have comes several times."""
        for db in self._databases:
            yield from _entries(db, "", ())

    def rows(self, run: str, table: str) -> bytes | None:
        """Return the rows of a run's table that were collected, as an Arrow IPC stream."""
        for db in self._databases:
            found = db.execute("select arrow from rows where run = ? and name = ?", (run, table)).fetchone()
            if found:
                return bytes(found[0])
        return None


def _opened(file: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", _WAIT_S, uri=True)
        with closing(db.execute("select count(*) from runs, rows where 0")) as checked:
            checked.fetchone()
    except sqlite3.Error as error:
        raise DataError(f"{file}: is damaged, or no journal of a study: {error}") from None
    return db


def _entries(db: sqlite3.Connection, where: str, values: tuple[str, ...]) -> Iterator[Entry]:
    columns = "run, ending, reason, attempts, measures, facts, config, data, code, told, kept"
    for row in db.execute(f"select {columns} from runs {where}", values):
        run, ending, reason, attempts, measures, facts, config, data, code, told, kept = row
        try:
            values_of = {name: (str(version), value) for name, (version, value) in json.loads(measures).items()}
            entry = Entry(
                run,
                ending,
                reason,
                int(attempts),
                values_of,
                dict(json.loads(facts)),
                Identity(config, data, code),
                told,
                bool(kept),
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"the journal of run {run} is damaged: {error}") from None
        yield entry
