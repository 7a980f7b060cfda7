import math
import shutil
import sqlite3
from contextlib import closing

import pytest

from prism_mesa.errors import DataError, RunError
from prism_mesa.runs.identity import Identity
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.journal import Journal, Journals
from prism_mesa.studies.listing import listed

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
        [entry] = known.entries()
    assert (entry.done, entry.attempts) == (True, 3)


def test_a_journal_that_is_damaged_is_said_by_its_name(tmp_path):
    file = tmp_path / "journal.sqlite"
    file.write_bytes(b"nothing that a database begins with" * 100)
    with pytest.raises(DataError, match="is damaged, or no journal"):
        Journals([file])
    with pytest.raises(DataError, match="is damaged, or no journal"):
        Journal(file)
    file.unlink()
    put(file, Outcome("a", "done"))
    db = sqlite3.connect(file)
    db.execute("update runs set measures = '{'")
    db.commit()
    db.close()
    with Journals([file]) as known, pytest.raises(DataError, match=r"is damaged, .*\(run 'a': measures: "):
        known.entry("a")


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
        assert known.entry("a").has({"likes": "new"})


def test_calls_of_all_attempts_at_a_run_count(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "raised", "no such luck", facts={"calls": 2, "tokens": 20}))
    put(file, Outcome("a", "killed", "by a signal"))
    put(file, Outcome("a", "done", facts={"calls": 3, "tokens": 30}))
    with Journals([file]) as known:
        assert (known.entry("a").facts["calls"], known.entry("a").facts["tokens"], known.calls()) == (5, 50, 5)


def test_the_folder_of_a_run_that_failed_is_not_that_of_one_that_is_done(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "raised", "no such luck"), kept=True)
    put(file, Outcome("a", "done"))
    with Journals([file]) as known:
        assert not known.entry("a").kept


def test_a_run_whose_folder_is_gone_is_not_kept(tmp_path):
    file, folder = tmp_path / "journal.sqlite", tmp_path / "runs" / "a"
    put(file, Outcome("a", "done"), kept=True)
    for is_there in (False, True):
        if is_there:
            folder.mkdir(parents=True)
            (folder / "manifest.json").touch()
        with Journals([file], tmp_path / "runs") as known:
            assert known.entry("a").kept == is_there


def test_a_journal_that_is_damaged_further_on_is_said_by_its_name(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done", tables={"rounds": b"x" * 10_000}))
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xa5" * (file.stat().st_size - 4096))
    told = r"is damaged, or no journal of a study .*: rename it to journal.sqlite.damaged, and its runs are run again"
    with pytest.raises(DataError, match=told), Journals([file]) as known:
        list(known.entries())
    with pytest.raises(DataError, match=told):
        put(file, Outcome("b", "done"))


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
    with pytest.raises(RunError, match="cannot be read or written: database or disk is full; mend that"):
        journal.put(Outcome("b", "done", tables={"rounds": b"x" * 100_000}), VERSIONS, IDENTITY, "b", kept=False)
    journal.close()
    with Journals([file]) as known:
        assert [entry.run for entry in known.entries()] == ["a"]


def test_what_a_driver_left_half_written_is_taken_back(tmp_path):
    file, copy = tmp_path / "journal.sqlite", tmp_path / "copy" / "journal.sqlite"
    put(file, Outcome("a", "done"))
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("pragma cache_size = 1")
    db.execute("begin immediate")
    db.execute("update runs set ending = 'killed'")
    db.executemany("insert into rows values (?, 'rounds', ?)", [(str(n), b"x" * 5000) for n in range(50)])
    copy.parent.mkdir()
    for part in ("journal.sqlite", "journal.sqlite-journal"):
        (copy.parent / part).write_bytes((tmp_path / part).read_bytes())
    db.execute("rollback")
    db.close()
    with Journals([copy]) as known:
        assert known.entry("a").done


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("facts", '{"cpu_s": "abc"}'),
        ("facts", '{"calls": "x"}'),
        ("facts", '{"calls": 1e300}'),
        ("facts", '{"calls": 99999999999999999999}'),
        ("facts", '{"by_source": 3}'),
        ("facts", '{"collected": 3}'),
        ("facts", '{"decided_by": "\\ud800"}'),
        ("facts", "[]"),
        ("facts", "[" * 100_000),
        ("measures", '{"likes": ["1", "many", 0]}'),
        ("measures", '{"likes": 3}'),
        ("reason", b"blob"),
        ("ending", "well"),
        ("attempts", "often"),
        ("at", "noon"),
    ],
)
def test_what_no_driver_writes_is_said_by_file_run_and_column(tmp_path, column, value):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done"))
    db = sqlite3.connect(file)
    db.execute(f"update runs set {column} = ?", (value,))
    db.commit()
    db.close()
    with Journals([file]) as known, pytest.raises(DataError, match=rf"journal.sqlite: .*\(run 'a': {column}: "):
        known.entry("a")


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
        with pytest.raises(DataError, match=rf"is damaged, or no journal of a study \({table} is no table\)"):
            read()
    [found] = listed(tmp_path)
    assert f"{table} is no table" in found.error


def test_a_name_that_is_no_text_is_said_by_the_file(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done"))
    file.write_bytes(file.read_bytes().replace(b"ending", b"end\xffng"))
    with pytest.raises(DataError, match=r"journal\.sqlite: is damaged, or no journal of a study"):
        Journals([file])


def test_whatever_stands_in_a_journal_the_message_is_one_line(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done"))
    db = sqlite3.connect(file)
    db.execute("update runs set measures = ?", ('{"likes\\n\\u001b[31mof all": 3}',))
    db.commit()
    db.close()
    with Journals([file]) as known, pytest.raises(DataError, match=r"measures: likes  \[31mof all: is not") as error:
        known.entry("a")
    assert str(error.value).isprintable()


def test_rows_that_are_none_are_said_by_the_file(tmp_path):
    file = tmp_path / "journal.sqlite"
    put(file, Outcome("a", "done", tables={"rounds": b"rows"}))
    db = sqlite3.connect(file)
    db.execute("update rows set arrow = 3")
    db.commit()
    db.close()
    with Journals([file]) as known, pytest.raises(DataError, match="rows of a"):
        known.rows("a", "rounds")


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
