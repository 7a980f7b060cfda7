import math
import shutil
import sqlite3
from contextlib import closing

import pytest

from prism_mesa.errors import DataError, RunError
from prism_mesa.runs.identity import Identity
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.journal import Journal, Journals
from prism_mesa.studies.listing import list_folders

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
    assert (entry.done, entry.kept, entry.attempts) == (True, True, 1)
    assert (entry.facts, entry.identity) == ({"calls": 2}, IDENTITY)
    assert entry.measures == {"likes": ("1", 3.0), "reshares": ("1", None)}
    assert entry.has_current_measures(VERSIONS)
    assert not entry.has_current_measures(VERSIONS | {"likes": "2"})
    assert not entry.has_current_measures(VERSIONS | {"posts": "1"})


def test_measures_that_were_taken_before_stay(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done", measures={"likes": 3.0}), kept=True)
    put(file, Outcome("a", "done", measures={"reshares": 4.0}))
    with Journals([file]) as known:
        entry = known.entry("a")
    assert entry.measures == {"likes": ("1", 3.0), "reshares": ("1", 4.0)}
    assert (entry.attempts, entry.kept) == (2, True)


def test_what_several_journals_say_of_a_run_is_put_together(tmp_path):
    files = [tmp_path / name for name in ("journal-1-of-2.sqlite", "journal-2-of-2.sqlite", "journal.sqlite")]
    collected = {"collected": ["rounds"], "calls": 3}
    put(files[0], Outcome("a", "killed", "by a signal", facts={"calls": 5, "collected": ["posts"]}))
    put(files[1], Outcome("a", "done", measures={"likes": 1.0}, facts=collected, tables={"rounds": b"rows"}), kept=True)
    put(files[2], Outcome("a", "done", measures={"reshares": 2.0}, facts={"collected": ["ticks"]}))
    with Journals(files) as known:
        entry = known.entry("a")
        assert list(known.entries()) == [entry]
        assert known.rows("a", "rounds") == b"rows"
        assert known.calls() == 8
    assert (entry.done, entry.kept, entry.attempts) == (True, True, 3)
    assert entry.measures == {"likes": ("1", 1.0), "reshares": ("1", 2.0)}
    assert (entry.facts["collected"], entry.facts["calls"]) == (["rounds", "ticks"], 8)


@pytest.mark.parametrize("last", [0, 1])
def test_of_a_measure_in_several_journals_the_last_one_that_was_taken_counts(tmp_path, last):
    files = [tmp_path / f"journal-{k}-of-2.sqlite" for k in (1, 2)]
    for k, version in ((1 - last, "old"), (last, "new")):
        put(files[k], Outcome("a", "done", measures={"likes": 1.0}), versions={"likes": version})
    with Journals(files) as known:
        assert known.entry("a").has_current_measures({"likes": "new"})


def test_a_run_is_kept_if_it_was_done_and_its_folder_is_there(tmp_path):
    file, folder = tmp_path / "journal.sqlite", tmp_path / "runs" / "a"
    put(file, Outcome("a", "done"), kept=True)
    put(file, Outcome("failed", "raised", "no such luck"), kept=True)
    put(file, Outcome("failed", "done"))
    for is_there in (False, True):
        if is_there:
            folder.mkdir(parents=True)
            (folder / "manifest.json").touch()
        with Journals([file], tmp_path / "runs") as known:
            assert known.entry("a").kept == is_there
    with Journals([file]) as known:
        assert not known.entry("failed").kept


def test_calls_of_all_attempts_at_a_run_count(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "raised", "no such luck", facts={"calls": 2, "tokens": 20}))
    put(file, Outcome("a", "killed", "by a signal"))
    put(file, Outcome("a", "done", facts={"calls": 3, "tokens": 30}))
    with Journals([file]) as known:
        assert (known.entry("a").facts["calls"], known.entry("a").facts["tokens"], known.calls()) == (5, 50, 5)


def text(file):
    file.write_bytes(b"nothing that a database begins with" * 100)


def damaged_page(file):
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xa5" * (file.stat().st_size - 4096))


def changed(table, column, value):
    def change(file):
        with closing(sqlite3.connect(file)) as db, db:
            db.execute(f"update {table} set {column} = ?", (value,))

    return change


def read_all(file):
    with Journals([file]) as known:
        return list(known.entries()), known.rows("a", "rounds")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (text, "is damaged or not a study's journal"),
        (damaged_page, "rename it to journal.sqlite.damaged"),
        (changed("runs", "facts", '{"calls": "x"}'), "run 'a': facts: "),
        (changed("runs", "facts", "[" * 100_000), "run 'a': facts: "),
        (changed("runs", "measures", '{"likes": ["1", "many", 0]}'), "run 'a': measures: likes"),
        (changed("runs", "ending", "well"), "run 'a': ending: "),
        (changed("rows", "arrow", 3), "rows of a"),
    ],
)
def test_a_damaged_journal_is_named_with_what_is_wrong_in_it(tmp_path, damage, why):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done", tables={"rounds": b"x" * 10_000}))
    damage(file)
    with pytest.raises(DataError, match=r"journal\.sqlite is damaged") as error:
        read_all(file)
    assert why in str(error.value)
    assert str(error.value).isprintable()


def test_a_full_disk_is_said_in_a_line_and_the_journal_stays_whole(tmp_path, monkeypatch):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done"))
    connect = sqlite3.connect

    def with_little_room(*given, **named):
        db = connect(*given, **named)
        db.execute("pragma max_page_count = 8")
        return db

    monkeypatch.setattr(sqlite3, "connect", with_little_room)
    journal = Journal(file)
    with pytest.raises(RunError, match="database or disk is full"):
        journal.put(Outcome("b", "done", tables={"rounds": b"x" * 100_000}), VERSIONS, IDENTITY, "b", kept=False)
    journal.close()
    with Journals([file]) as known:
        assert [entry.run for entry in known.entries()] == ["a"]


@pytest.mark.parametrize("table", ["runs", "rows"])
def test_a_query_without_end_in_place_of_a_table_is_refused_and_not_asked(tmp_path, table):
    file = tmp_path / "study" / "journal.sqlite"
    file.parent.mkdir()
    put(file, Outcome("a", "done"))
    (file.parent / "study.json").write_text('{"kind": "study", "name": "x", "runs": 2}')
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute(f"alter table {table} rename to others")
        endless = "with recursive c(x) as (select 1 union all select x + 1 from c)"
        db.execute(f"create view {table} as {endless} select others.* from others, c")
    for read in (lambda: Journals([file]), lambda: Journal(file)):
        with pytest.raises(DataError, match=rf"is damaged or not a study's journal \({table} is not a table\)"):
            read()
    [found] = list_folders(tmp_path)
    assert f"{table} is not a table" in found.error


def test_reading_what_a_killed_driver_left_half_written_changes_nothing_in_the_folder(tmp_path):
    file, there = tmp_path / "journal.sqlite", tmp_path / "killed"
    put(file, Outcome("a", "done", measures={"likes": 1.0}))
    there.mkdir()
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("pragma cache_size = 1")  # what does not fit is written before it is committed
        db.execute("begin")
        db.execute("update runs set reason = ?", ("x" * 100_000,))
        for name in ("journal.sqlite", "journal.sqlite-journal"):
            shutil.copyfile(tmp_path / name, there / name)
    before = {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in there.iterdir()}
    assert len(before) == 2
    with Journals([there / "journal.sqlite"]) as known:
        assert [(entry.run, entry.reason) for entry in known.entries()] == [("a", "")]
    assert {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in there.iterdir()} == before
