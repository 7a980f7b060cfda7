"""Tokens of useless answers: counted in the usage, the budget and the ledger; ledgers from before know none."""

import sqlite3

import pytest
from ollama_server import chat_answer, serving

from prism_mesa.llm import Ledger
from prism_mesa.llm.ledger import AskedRow
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, ReasonerParams, make_reasoner
from prism_mesa.runs.ledgers import export_ledger, ledger_stats
from prism_mesa.statechart import AgentState

GOOD = chat_answer('{"next_state": "scrolling"}')
USELESS = {
    "prose": chat_answer("Sure!"),
    "empty": chat_answer(""),
    "thought": chat_answer("<think>hm", done_reason="length"),
}


def asked(names="a"):
    options = (AgentState.COMPOSING, AgentState.SCROLLING)
    questions = [Question(Persona(name), AgentState.EVALUATING, "decides", options) for name in names]
    return [PlacedQuestion(question, agent=at) for at, question in enumerate(questions)]


@pytest.mark.parametrize("useless", USELESS)
def test_tokens_of_useless_answers_count_in_the_usage_and_in_the_ledger(useless, tmp_path):
    path = tmp_path / "decisions.sqlite"
    with serving(USELESS[useless], GOOD, USELESS[useless], USELESS[useless]) as server, Ledger(path) as ledger:
        own = ReasonerParams(kind="ollama", host=server.url, backoff_s=0, attempts=2, max_concurrency=1)
        with make_reasoner(own) as reasoner:
            reasoner.record(ledger, "scope/run")
            reasoner.answer(asked("aa"))
            reasoner.answer(asked("b"))
            usage = reasoner.usage
        rows = [(row.source, row.attempts, row.prompt_tokens, row.completion_tokens) for row in ledger.asked()]
    assert rows == [("llm", 2, 1800, 16), ("cache", 0, 0, 0), ("fallback", 2, 1800, 16)]
    assert (usage["calls"], usage["prompt_tokens"], usage["completion_tokens"]) == (4, 3600, 32)
    assert ledger_stats(path)["tokens"] == 3632


@pytest.mark.parametrize("useless", USELESS)
def test_a_limit_of_tokens_counts_useless_answers_at_what_they_cost(useless):
    with serving(always=USELESS[useless]) as server:
        own = ReasonerParams(kind="ollama", host=server.url, backoff_s=0, attempts=5, max_tokens=3500)
        with make_reasoner(own) as reasoner:
            most = reasoner.handler.prepare(asked()[0]).prompt.encode()
            reasoner.answer(asked())
            [run, *_] = [reasoner.budget.snapshot()["run"]]
    assert len(most) + 256 + 256 < 3500 - 908
    assert run[1] == 3500 - 908 * len(server.sent)


def older(path):
    with Ledger(path) as ledger:
        ledger.write([], [AskedRow(1, 2, 3, "k", "llm", "", 1, "a/1")])
    with sqlite3.connect(path) as db:
        for name in ("prompt_tokens", "completion_tokens"):
            db.execute(f"ALTER TABLE asked DROP COLUMN {name}")
    db.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_ledger_from_before_is_read_and_written_on_and_knows_no_tokens(read_only, tmp_path):
    path = tmp_path / "old.sqlite"
    older(path)
    with Ledger(path, read_only=read_only) as ledger:
        if not read_only:
            ledger.write([], [AskedRow(1, 2, 4, "k", "llm", "", 1, "a/1", 90, 8)])
        rows = ledger.asked()
    assert [row.prompt_tokens for row in rows] == [None, 90][: len(rows)]
    assert len(rows) == 2 - read_only
    assert ledger_stats(path)["tokens"] == (0 if read_only else 98)
    export_ledger(path)
