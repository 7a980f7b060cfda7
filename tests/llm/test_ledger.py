"""The ledger: what went to an LLM stays readable, whole, and under the right key."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from prism_mesa.errors import DataError
from prism_mesa.llm import AskedRow, Ledger, StoredAnswer, answer_key
from prism_mesa.statechart import AgentState

OPTIONS = (AgentState.COMPOSING, AgentState.SCROLLING)


def stored(key="k", choice="scrolling", **changed):
    row = {
        "prompt": "p",
        "options": '["composing", "scrolling"]',
        "llm": "tiny",
        "digest": "d1",
        "decoding": "{}",
        "raw": '{"next_state": "scrolling"}',
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "latency_ms": 1.5,
    }
    return StoredAnswer(key=key, choice=choice, **(row | changed))


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "run" / "decisions.sqlite") as opened:
        yield opened


def test_the_first_answer_of_a_key_stands(ledger):
    ledger.put(stored(choice="scrolling"))
    ledger.put(stored(choice="composing"))
    assert [answer.choice for answer in ledger.answers()] == ["scrolling"]


def test_the_rows_of_a_run_can_be_read_apart_and_the_latest_run_comes_first(ledger):
    rows = [AskedRow(1, i, 0, "k", "llm", run=run) for i, run in enumerate(("a/1", "b/1", "a/2", "a/1"))]
    ledger.write([], rows)
    assert ledger.runs() == ["a/1", "a/2", "b/1"]
    assert ledger.asked("a/1") == [rows[0], rows[3]]
    assert ledger.asked("c") == []


def test_the_llms_that_have_answered_are_told_the_latest_first(ledger):
    for key, llm, digest in (("1", "tiny", "d1"), ("2", "big", "d9"), ("3", "tiny", "d2"), ("4", "big", "d9")):
        ledger.put(stored(key, llm=llm, digest=digest))
    assert ledger.llms() == [("big", "d9", "{}"), ("tiny", "d2", "{}"), ("tiny", "d1", "{}")]


def test_a_ledger_of_another_version_is_refused_with_what_it_lacks(tmp_path):
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE answers (key TEXT PRIMARY KEY, prompt TEXT)")
    db.close()
    with pytest.raises(
        DataError, match=r"old.sqlite is not a ledger \(it has no table answers with a column options\)"
    ):
        Ledger(path)


def test_a_tick_is_written_whole_or_not_at_all(ledger):
    without_an_agent = AskedRow(1, 1, None, "k", "llm")
    with pytest.raises(sqlite3.IntegrityError, match=r"asked\.agent"):
        ledger.write([stored()], [AskedRow(1, 1, 1, "k", "llm"), without_an_agent])
    assert ledger.answers() == ledger.asked() == []


def test_two_ledgers_on_one_file_and_several_threads_lose_nothing(ledger):
    def fill(target, name):
        for i in range(50):
            target.write([stored(f"{name} {i}")], [AskedRow(1, i, 0, f"{name} {i}", "llm")])

    with Ledger(ledger.path) as second:
        threads = [
            threading.Thread(target=fill, args=(target, name))
            for target, name in ((ledger, "a"), (ledger, "b"), (second, "c"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(ledger.answers()) == len(ledger.asked()) == 150


def test_a_closed_ledger_is_one_file_and_opens_again_with_its_rows(tmp_path):
    path = tmp_path / "d.sqlite"
    with Ledger(path) as first:
        first.put(stored())
    assert [file.name for file in tmp_path.iterdir()] == ["d.sqlite"]
    with Ledger(path) as again:
        assert again.get("k") == stored()


def test_the_key_changes_with_everything_that_can_change_the_answer():
    given = {"prompt": "p", "options": OPTIONS, "llm": "tiny", "digest": "d", "decoding": {"seed": 0, "top_k": 1}}
    changes = [
        {"prompt": "q"},
        {"options": OPTIONS[::-1]},
        {"llm": "big"},
        {"digest": "e"},
        {"decoding": {"seed": 1, "top_k": 1}},
    ]
    keys = {answer_key(**(given | change)) for change in [{}, *changes]}
    assert len(keys) == 6
    assert answer_key(**(given | {"decoding": {"top_k": 1, "seed": 0}})) == answer_key(**given)
    assert len(answer_key(**given)) == 64


def test_text_that_is_no_unicode_is_stored_with_question_marks(ledger):
    ledger.put(stored(raw="half \ud83d pair"))
    assert ledger.get("k").raw == "half ? pair"


def test_a_path_that_cannot_be_opened_is_refused_in_one_line(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        Ledger(tmp_path)


# -- only looked at ----------------------------------------------------------------------------------


@pytest.fixture
def as_somebody():
    """Return a folder, and what makes this process a user who may read it and not write there."""
    folder = Path(tempfile.mkdtemp(prefix="prism-ledger-"))  # root may not look for others through pytest's own
    is_root = os.geteuid() == 0

    @contextmanager
    def somebody(mode=0o555):
        folder.chmod(mode)
        if is_root:
            os.seteuid(65534)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)

    yield folder, somebody
    shutil.rmtree(folder)


def everything_in(folder):
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def killed(path):
    """Leave a ledger as a process does that is killed while it writes: its rows are in the log beside it."""
    code = (
        "import os, sys\nfrom prism_mesa.llm import AskedRow, Ledger\n"
        "ledger = Ledger(sys.argv[1])\nledger.write([], [AskedRow(1, 2, 3, 'k', 'llm', run='a/1')])\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    assert path.with_name(f"{path.name}-wal").stat().st_size


def test_looking_makes_and_changes_no_file_not_even_for_a_moment(tmp_path):
    path = tmp_path / "d.sqlite"
    with Ledger(path) as ledger:
        ledger.put(stored())
    before = everything_in(tmp_path)
    with Ledger(path, read_only=True) as looked_at:
        assert looked_at.get("k") == stored()
        assert everything_in(tmp_path) == before
        with pytest.raises(DataError, match="cannot be written: it was opened read-only"):
            looked_at.put(stored("other"))
    assert everything_in(tmp_path) == before


def test_a_ledger_on_a_disk_that_cannot_be_written_is_read(as_somebody):
    folder, somebody = as_somebody
    with Ledger(folder / "d.sqlite") as ledger:
        ledger.put(stored())
    before = everything_in(folder)
    with somebody(), Ledger(folder / "d.sqlite", read_only=True) as looked_at:
        assert looked_at.answers() == [stored()]
    assert everything_in(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("with_index", [True, False], ids=["with -shm", "without"])
def test_what_a_killed_run_left_on_such_a_disk_is_read_too(with_index, as_somebody):
    folder, somebody = as_somebody
    killed(folder / "d.sqlite")
    if not with_index:
        (folder / "d.sqlite-shm").unlink()
    before = everything_in(folder)
    with somebody(), Ledger(folder / "d.sqlite", read_only=True) as looked_at:
        assert [row.agent for row in looked_at.asked()] == [3]
    assert everything_in(folder) == before


def test_whoever_looks_sees_what_is_written_meanwhile(tmp_path):
    path = tmp_path / "d.sqlite"
    Ledger(path).close()
    with Ledger(path, read_only=True) as looked_at:
        assert looked_at.answers() == []
        with Ledger(path) as ledger:
            ledger.put(stored("one"))
            assert [answer.key for answer in looked_at.answers()] == ["one"]
            ledger.put(stored("two"))
            assert [answer.key for answer in looked_at.answers()] == ["one", "two"]
        assert [answer.key for answer in looked_at.answers()] == ["one", "two"]


def test_what_is_locked_is_said_to_be_that(tmp_path, monkeypatch):
    monkeypatch.setattr("prism_mesa.llm.ledger._WAIT_S", 0.05)
    path = tmp_path / "d.sqlite"
    Ledger(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(DataError, match=r"d\.sqlite is locked by another program: try again"):
            Ledger(path).put(stored())
    finally:
        holder.close()


def test_what_is_damaged_is_said_to_be_that_and_not_to_be_no_ledger(tmp_path):
    path = tmp_path / "d.sqlite"
    with Ledger(path) as ledger:
        ledger.write([stored(f"k{i}", prompt="p" * 500) for i in range(200)], [])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(DataError, match=r"d\.sqlite is damaged"):
        Ledger(path, read_only=True).answers()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"d\.sqlite is damaged"):
        Ledger(path, read_only=True).answers()


def test_no_ledger_is_what_is_no_sqlite_file_or_has_other_tables(tmp_path):
    (tmp_path / "text").write_text("dear diary, " * 100)
    (tmp_path / "empty").write_bytes(b"")
    with sqlite3.connect(tmp_path / "view") as db:
        db.execute("CREATE VIEW answers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n")
    db.close()
    for name in ("text", "empty", "view"):
        with pytest.raises(DataError, match=rf"{name} is not a (ledger|SQLite file).*name another file"):
            Ledger(tmp_path / name, read_only=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE asked SET round = 'soon'", "round has type str, not int"),
        ("UPDATE answers SET raw = x'ff00'", "raw has type bytes, not str"),
        ("UPDATE answers SET latency_ms = 'long'", "latency_ms has type str, not float"),
        ("UPDATE answers SET raw = CAST(x'ff' AS TEXT)", "cannot be read (Could not decode to UTF-8"),
    ],
)
def test_a_row_that_holds_what_none_does_is_one_line(change, said, tmp_path):
    path = tmp_path / "d.sqlite"
    with Ledger(path) as ledger:
        ledger.write([stored()], [AskedRow(1, 2, 3, "k", "llm")])
    with sqlite3.connect(path) as db:
        db.execute(change)
    db.close()
    with Ledger(path, read_only=True) as looked_at, pytest.raises(DataError, match=re.escape(said)):
        (looked_at.asked if "asked" in change else looked_at.answers)()
