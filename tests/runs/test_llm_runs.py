"""Runs in which an LLM decides."""

import json
import sqlite3
import time
from hashlib import sha256

import pytest
from ollama_server import as_json, chat_answer, drop, models, serving
from small_runs import small, table_bytes

from prism_mesa.errors import ConfigError
from prism_mesa.runs.run_files import read_manifest
from prism_mesa.runs.social import run

# -- with an LLM -------------------------------------------------------------------------------------


def llm(handler):
    """Answer by the question, so that swapped questions would show."""
    prompt = handler.body["messages"][-1]["content"]
    states = handler.body["format"]["properties"]["next_state"]["enum"]
    chosen = states[sha256(prompt.encode()).digest()[0] % len(states)]
    chat_answer(json.dumps({"next_state": chosen}))(handler)


def asking(server, **more):
    reasoner = {"kind": "ollama", "host": server.url, "backoff_s": 0, **more}
    reasoner = {key: value for key, value in reasoner.items() if value is not None}
    return small(agents={"n": 16, "activity": 1, "band": 0.4}, reasoner=reasoner)


def ledger_of(folder):
    db = sqlite3.connect(folder / "decisions.sqlite")
    try:
        asked = db.execute("SELECT round, tick, agent, key, source, reason FROM asked").fetchall()
        answers = dict(db.execute("SELECT key, choice FROM answers").fetchall())
    finally:
        db.close()
    return asked, answers


def test_an_llm_decides_and_the_ledger_holds_what_was_asked_and_answered(tmp_path):
    with serving(always=llm) as server:
        result = run(asking(server), out=tmp_path)
        n_sent = len(server.sent)
    asked, answers = ledger_of(result.run_dir)
    by_source = result.summary["decisions"]["by_source"]
    assert result.status == "done"
    assert result.summary["decisions"]["decided_by"] == f"Ollama llama3.2 at {server.url}"
    assert read_manifest(result.run_dir)["llm"] == {
        "kind": "ollama",
        "name": "llama3.2",
        "digest": "digest of llama3.2:latest",
        "server": "0.99",
        "decoding": {"temperature": 0.0, "seed": 0, "max_tokens": 256, "answer": "choice"},
        "answer": "choice",
        "persona": "individual",
        "ledger": "live",
    }
    assert by_source["llm"] == len(answers) == n_sent > 0
    assert sum(by_source.values()) == len(asked) == result.summary["decisions"]["open"]
    moves = result.table("transitions").query("open")
    gone = {(r, t, a): to for r, t, a, to in moves[["round", "tick", "agent", "to_state"]].itertuples(index=False)}
    assert gone == {(r, t, a): answers[key] for r, t, a, key, _, _ in asked}
    assert set(gone.values()) == {"composing", "scrolling"}


@pytest.mark.slow
def test_an_llm_run_can_be_made_again_byte_by_byte_though_answers_come_in_another_order(tmp_path):
    def slow_for_some(handler):
        time.sleep(0.02 * (len(handler.server.sent) % 3))
        llm(handler)

    with serving(always=llm) as server:
        first = run(asking(server), out=tmp_path)
        server.always = slow_for_some
        again = run(asking(server, max_concurrency=2), out=tmp_path)
    assert table_bytes(first.run_dir) == table_bytes(again.run_dir)


@pytest.mark.usefixtures("hurried")
def test_a_server_that_dies_in_mid_run_fails_the_run_and_every_fallback_is_recorded(tmp_path, caplog):
    with serving(always=llm) as server:

        def die(done):
            if done == 1:
                server.always = drop  # for connections that are open; new ones are refused
                server.shutdown()
                server.server_close()

        result = run(asking(server), out=tmp_path, on_round=die)
    decisions = result.summary["decisions"]
    asked, answers = ledger_of(result.run_dir)
    fallbacks = [row for row in asked if row[4] == "fallback"]
    assert result.status == read_manifest(result.run_dir)["status"] == "failed"
    assert "reasoner.max_fallback_share allows 5.0%" in result.summary["error"]
    assert {row[0] for row in fallbacks} == {1, 2}
    assert not {row[3] for row in fallbacks} & set(answers)
    assert len(fallbacks) == decisions["by_source"]["fallback"] == result.table("rounds")["fallback"].sum()
    assert {row[5] for row in fallbacks} <= {"dropped", "refused", "circuit-open", "still-down"}
    assert sum(decisions["fallback_reasons"].values()) == len(fallbacks)
    assert len(result.table("rounds")) == 3
    moves = result.table("transitions").query("open").set_index(["round", "tick", "agent"])["to_state"]
    assert {moves.loc[row[:3]] for row in fallbacks} == {"composing"}  # the first option
    assert "fallback 'first'" in caplog.text


@pytest.mark.usefixtures("hurried")
def test_how_many_fallbacks_a_run_bears_is_the_users_choice(tmp_path, caplog):
    with serving(always=as_json(500, {"error": "out of memory"})) as server:
        result = run(asking(server, max_fallback_share=1, fallback="stay"), out=tmp_path)
    assert result.status == "done"
    assert result.summary["decisions"]["by_source"] == {"fallback": result.summary["decisions"]["open"]}
    assert result.summary["decisions"]["fallback_reasons"].keys() <= {"server-error", "circuit-open", "still-down"}
    assert not result.table("transitions")["open"].any()  # everybody stayed


def test_an_llm_that_is_not_there_is_bad_input_and_auto_says_why_the_rule_decides(tmp_path, monkeypatch):
    monkeypatch.setattr("prism_mesa.llm.factory.embedded_fault", lambda model: "is not installed")
    with serving(tags=models("phi3:latest")) as server:
        with pytest.raises(ConfigError, match=r"reasoner.model: 'llama3.2' is not on the server \(it has: phi3"):
            run(asking(server), out=tmp_path / "out")
        assert not (tmp_path / "out").exists()
        result = run(asking(server, kind="auto", backoff_s=None), out=tmp_path)
    assert result.summary["decisions"]["decided_by"] == "rule-based reasoner"
    assert "'ollama pull llama3.2'" in result.summary["decisions"]["note"]
