"""The ledger: what went to an LLM stays readable, whole, and under the right key."""

import sqlite3
import threading

import pytest

from prism_mesa.errors import DataError
from prism_mesa.reasoner import AskedRow, Ledger, StoredAnswer, answer_key
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


def test_an_answer_comes_back_as_it_was_put(ledger):
    ledger.put(stored())
    assert ledger.get("k") == stored()
    assert ledger.get("other") is None


def test_the_first_answer_of_a_key_stands(ledger):
    ledger.put(stored(choice="scrolling"))
    ledger.put(stored(choice="composing"))
    assert [answer.choice for answer in ledger.answers()] == ["scrolling"]


def test_probabilities_come_back_as_they_were_put(ledger):
    row = stored(choice="", probabilities="[0.7, 0.3]")
    ledger.put(row)
    assert ledger.get("k") == row


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
    with pytest.raises(DataError, match=r"old.sqlite: not a ledger \(it has no table answers with a column options\)"):
        Ledger(path)


def test_a_closed_ledger_can_be_closed_again(ledger):
    ledger.close()
    ledger.close()


def test_asked_rows_keep_their_order_and_fallbacks_are_no_answers(ledger):
    rows = [AskedRow(2, 1, 9, "k", "fallback", "timeout", 1), AskedRow(1, 0, 3, "k", "llm", "", 1)]
    ledger.write([], rows)
    assert ledger.asked() == rows
    assert ledger.answers() == []


def test_a_tick_is_written_whole_or_not_at_all(ledger):
    without_an_agent = AskedRow(1, 1, None, "k", "llm")
    with pytest.raises(sqlite3.IntegrityError, match=r"asked\.agent"):
        ledger.write([stored()], [AskedRow(1, 1, 1, "k", "llm"), without_an_agent])
    assert ledger.answers() == ledger.asked() == []


def test_another_process_can_read_while_a_run_writes(ledger):
    ledger.put(stored("one"))
    reader = sqlite3.connect(ledger.path)
    try:
        assert reader.execute("SELECT count(*) FROM answers").fetchone() == (1,)
        ledger.put(stored("two"))
        assert reader.execute("SELECT key FROM answers ORDER BY rowid").fetchall() == [("one",), ("two",)]
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        reader.close()


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


def test_a_file_that_is_no_ledger_is_refused_in_one_line(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 100)
    with pytest.raises(DataError, match=r"notes.txt: not a ledger .*name another file"):
        Ledger(path)


def test_a_path_that_cannot_be_opened_is_refused_in_one_line(tmp_path):
    with pytest.raises(DataError, match="cannot be opened"):
        Ledger(tmp_path)
