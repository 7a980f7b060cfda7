import math
import sqlite3

import pytest

from prism_mesa.errors import DataError
from prism_mesa.studies.design.identity import Identity
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.journal import Journal, Journals

IDENTITY = Identity("c", "d", "p")
VERSIONS = {"likes": "1", "reshares": "1"}


def put(file, outcome, *, versions=VERSIONS, kept=False):
    journal = Journal(file)
    journal.put(outcome, versions, IDENTITY, "ranked, seed 1", kept=kept)
    journal.close()


def test_what_became_of_a_run_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "journal.sqlite"
    measures = {"likes": 3.0, "reshares": math.nan}
    put(file, Outcome("a", "done", measures=measures, facts={"calls": 2}, tables={"rounds": b"rows"}), kept=True)
    with Journals([file]) as known:
        entry = known.entry("a")
        assert known.rows("a", "rounds") == b"rows"
        assert known.rows("a", "ticks") is known.rows("b", "rounds") is known.entry("b") is None
    assert (entry.done, entry.kept, entry.attempts, entry.facts, entry.identity) == (
        True,
        True,
        1,
        {"calls": 2},
        IDENTITY,
    )
    assert entry.measures == {"likes": ("1", 3.0), "reshares": ("1", None)}
    assert entry.has(VERSIONS)
    assert not entry.has(VERSIONS | {"likes": "2"})
    assert not entry.has(VERSIONS | {"posts": "1"})


def test_measures_that_were_taken_before_stay(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done", measures={"likes": 3.0}), kept=True)
    put(file, Outcome("a", "done", measures={"reshares": 4.0}))
    with Journals([file]) as known:
        entry = known.entry("a")
    assert entry.measures == {"likes": ("1", 3.0), "reshares": ("1", 4.0)}
    assert (entry.attempts, entry.kept) == (2, True)


def test_of_several_journals_the_run_that_is_done_counts(tmp_path):
    files = [tmp_path / f"journal-{k}-of-2.sqlite" for k in (1, 2)]
    put(files[0], Outcome("a", "killed", "by a signal"))
    put(files[0], Outcome("a", "killed", "by a signal"))
    put(files[1], Outcome("a", "done", measures={"likes": 1.0}))
    with Journals(files) as known:
        assert known.entry("a").done
        assert len(list(known.entries())) == 2


def test_a_journal_that_is_damaged_is_said_by_its_name(tmp_path):
    file = tmp_path / "journal.sqlite"
    file.write_bytes(b"nothing that a database begins with" * 100)
    with pytest.raises(DataError, match="is damaged, or no journal"):
        Journals([file])
    with pytest.raises(DataError, match="cannot be written as a journal"):
        Journal(file)
    file.unlink()
    put(file, Outcome("a", "done"))
    db = sqlite3.connect(file)
    db.execute("update runs set measures = '{'")
    db.commit()
    db.close()
    with Journals([file]) as known, pytest.raises(DataError, match="run a is damaged"):
        known.entry("a")
