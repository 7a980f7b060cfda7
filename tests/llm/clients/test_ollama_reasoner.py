"""Ollama as a reasoner: how it is chosen, several hosts, faults in a batch."""

import asyncio
import subprocess
import sys
from types import SimpleNamespace

import pytest
from ollama_server import as_json, chat_answer, drop, serving

from prism_mesa.errors import ConfigError
from prism_mesa.llm import Ledger, factory
from prism_mesa.llm.clients.embedded import embedded_fault
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, ReasonerParams, RuleReasoner, make_reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING


# -- as a reasoner -----------------------------------------------------------------------------------


def test_auto_takes_ollama_where_it_has_the_model_and_says_so():
    with serving(chat_answer('{"next_state": "scrolling"}')) as server:
        params = ReasonerParams(kind="auto", host=server.url, fallback="stay", max_concurrency=2)
        with make_reasoner(params) as reasoner:
            assert isinstance(reasoner, Reasoner)
            assert reasoner.label == f"Ollama llama3.2 at {server.url}"
            assert (reasoner.params.fallback, reasoner.params.max_concurrency) == ("stay", 2)
            assert (reasoner.params.answer, reasoner.params.persona) == ("choice", "individual")
            agent = SimpleNamespace(name="Ann")
            assert asyncio.run(reasoner.decide(agent, AgentState.EVALUATING, "decides", [C, S])) is S
    assert server.sent[0]["format"]["properties"]["next_state"]["enum"] == ["composing", "scrolling"]


@pytest.mark.skipif(bool(embedded_fault()), reason=f"the embedded LLM {embedded_fault()}")
def test_auto_takes_the_embedded_llm_where_ollama_is_not_and_notes_why(nobody):
    reasoner = make_reasoner(ReasonerParams(kind="auto", host=nobody, model="llama3.2"))
    assert isinstance(reasoner, Reasoner)
    assert reasoner.label == "embedded SmolLM2-135M-Instruct (llama.cpp)"
    assert (reasoner.params.answer, reasoner.params.persona) == ("probabilities", "archetype")
    assert "does not answer (connection refused)" in reasoner.note


def test_auto_takes_the_rule_where_neither_ollama_nor_the_embedded_llm_is_and_notes_why(nobody, monkeypatch, tmp_path):
    monkeypatch.setattr(factory, "embedded_fault", lambda *model: "needs xllamacpp: uv sync --inexact --extra embedded")
    reasoner = make_reasoner(ReasonerParams(kind="auto", host=nobody, ledger_path=str(tmp_path / "shared.sqlite")))
    assert isinstance(reasoner, RuleReasoner)
    assert reasoner.label == "rule-based reasoner"
    assert "does not answer (connection refused)" in reasoner.note
    assert reasoner.note.endswith("; the embedded LLM needs xllamacpp: uv sync --inexact --extra embedded")


def test_of_several_hosts_each_must_answer_and_all_are_asked(nobody):
    answer = chat_answer('{"next_state": "scrolling"}')
    asks = [PlacedQuestion(Question(Persona(f"a{i}"), AgentState.EVALUATING, "decides", (C, S))) for i in range(8)]
    with serving(always=answer) as one, serving(always=answer) as other:
        with make_reasoner(ReasonerParams(kind="ollama", host=[one.url, other.url])) as reasoner:
            assert {answer.choice for answer in reasoner.answer(asks)} == {S}
        assert reasoner.label == f"Ollama llama3.2 at {one.url} and 1 more"
        assert len(one.sent) + len(other.sent) == 8
        assert min(len(one.sent), len(other.sent)) >= 2
        with pytest.raises(ConfigError, match=f"{nobody} does not answer"):
            make_reasoner(ReasonerParams(kind="ollama", host=[one.url, nobody]))


def test_a_wrong_address_is_an_error_even_with_auto():
    with pytest.raises(ConfigError, match="is not an address"):
        make_reasoner(ReasonerParams(kind="auto", host="http://"))


def test_a_batch_over_the_real_protocol_survives_faults_and_is_recorded(tmp_path, caplog):
    good = chat_answer('{"next_state": "scrolling"}')
    asks = [
        PlacedQuestion(Question(Persona(f"a{i}"), AgentState.EVALUATING, "decides", (C, S)), agent=i) for i in range(6)
    ]
    replies = (good, drop, good, as_json(500, {"error": "x"}), good, chat_answer("Sure!"))
    with serving(*replies) as server, Ledger(tmp_path / "d.sqlite") as ledger:
        params = ReasonerParams(kind="ollama", host=server.url, max_concurrency=1, attempts=1)
        with make_reasoner(params) as reasoner:
            reasoner.record(ledger, "scope/run")
            answers = reasoner.answer(asks)
        [digest] = {row.digest for row in ledger.answers()}
        assert len(ledger.answers()) == 3
        assert [row.reason for row in ledger.asked("scope/run")] == [
            *("", "dropped", "", "server-error", "", "unparsable")
        ]
    assert [answer.choice for answer in answers] == [S, C, S, C, S, C]
    assert digest == "digest of llama3.2:latest"
    assert len(caplog.records) == 3


@pytest.mark.slow
def test_importing_the_room_imports_no_http_library():
    heavy = ("ollama", "httpx", "openai", "xllamacpp", "mesa")
    code = f"import sys; from prism_mesa.reasoner import *; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
