"""`LLMClient`: its ledger, and which LLM is asked."""

import json
import re
import socket

import pytest
from ollama_server import chat_answer, serving
from toy_clients import Said, ask, failure, nobody, quick, says, toy

from prism_mesa.economy.params import AdvisorParams
from prism_mesa.errors import ConfigError, LLMFailureException, OracleError
from prism_mesa.llm import (
    AnswerStore,
    AskedRow,
    FunctionClient,
    Ledger,
    LLMClient,
    RunPosition,
    StoredAnswer,
    factory,
    make_llm_client,
)
from prism_mesa.reasoner import ReasonerParams
from prism_mesa.reasoner.asking import recorded_oracle

# -- the ledger ----------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shared.sqlite"


@pytest.fixture
def own(tmp_path):
    with Ledger(tmp_path / "decisions.sqlite") as ledger:
        yield ledger


def rows_of(path):
    with Ledger(path) as ledger:
        return ledger.answers(), ledger.asked()


def answered(function, mode, path, prompts, *, own=None, run="scope/run", form=Said, accept=None, **given):
    """Ask some prompts as a run of its own, one after the other; return words or failures, and the client."""
    store = AnswerStore(mode, None if path is None else Ledger(path))
    found = []
    with LLMClient(toy(function), quick(**given), store=store) as client:
        if own is not None:
            client.record(own, run)
        else:
            client.store.run = run
        for agent, prompt in enumerate(prompts):
            try:
                position = RunPosition(2, agent, tick=1)
                found.append(ask(client, prompt, form, accept=accept, position=position, component="policy").word)
            except LLMFailureException as error:
                found.append((error.reason, error.attempts, error.component))
    return found, client


def good_and_bad(prompt):
    return "Sure!" if prompt == "bad" else says(prompt)


def test_who_asked_what_and_what_came_of_it_is_written_down(own):
    found, _ = answered(good_and_bad, "live", None, ["a", "bad", "a"], own=own)
    assert found == ["a", ("unparsable", 2, "policy"), "a"]
    [answer] = own.answers()
    asked = own.asked()
    assert (answer.prompt, answer.llm, answer.raw, answer.choice, answer.decoding) == ("a", "toy", says("a"), "", "{}")
    name, schema = json.loads(answer.options)
    assert (name, json.loads(schema)) == ("Said", Said.model_json_schema())
    assert asked == [
        AskedRow(2, 1, 0, answer.key, "llm", "", 1, "scope/run"),
        AskedRow(2, 1, 1, asked[1].key, "failed", "unparsable", 2, "scope/run"),
        AskedRow(2, 1, 2, answer.key, "cache", "", 0, "scope/run"),
    ]


def test_a_replay_repeats_answers_and_failures_and_asks_nobody(path, own):
    prompts = ["a", "bad", "b", "a"]
    before, first = answered(good_and_bad, "live", path, prompts)
    rows = rows_of(path)
    after, again = answered(nobody, "replay", path, prompts, own=own)
    assert after == before == ["a", ("unparsable", 2, "policy"), "b", "a"]
    assert [row.source for row in own.asked()] == ["cache", "failed", "cache", "cache"]
    assert again.usage["calls"] == 0
    assert again.reasons == first.reasons == {"unparsable": 1}
    assert again.label == "function toy, replayed"
    assert rows_of(path) == rows


def test_a_replay_repeats_the_failures_of_a_run_that_was_never_answered(path):
    """Such a ledger does not even say which LLM was asked."""
    before, _ = answered(good_and_bad, "live", path, ["bad"])
    with LLMClient(FunctionClient(nobody, "unknown"), store=AnswerStore("replay", Ledger(path))) as client:
        client.store.run = "scope/again"
        failed = failure(client, "bad", position=RunPosition(2, 0, tick=1))
    assert [(failed.reason, failed.attempts, "policy")] == before


def test_an_unknown_prompt_is_not_recorded_and_the_error_says_where(path):
    answered(says, "live", path, ["a"])
    with pytest.raises(OracleError, match=rf"the ledger {re.escape(str(path))} holds no answer for round 2, agent 1$"):
        answered(nobody, "replay", path, ["a", "b"])
    with pytest.raises(OracleError, match="another question is recorded there: has the configuration") as caught:
        answered(nobody, "replay", path, ["b"])
    assert caught.value.reason == "not-recorded"


@pytest.mark.parametrize("mode", ["cache", "replay"])
def test_a_shared_answer_that_no_longer_fits_fails_in_words_and_is_written_down(mode, path, own, caplog):
    answered(says, "live", path, ["a"])
    found, client = answered(nobody, mode, path, ["a"], own=own, accept=lambda said: said.word == "z")
    assert found == [("irrelevant", 0, "policy")]
    assert (client.counts, client.reasons, client.usage["calls"]) == ({"failed": 1}, {"irrelevant": 1}, 0)
    assert [(row.source, row.reason) for row in own.asked()] == [("failed", "irrelevant")]
    assert "LLM_FAILURE component=policy agent=0 (irrelevant" in caplog.text


# -- who is asked --------------------------------------------------------------------------------------


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_auto_with_nobody_there_says_why_of_both(closed_port, monkeypatch):
    monkeypatch.setattr(factory, "embedded_fault", lambda gguf: "needs xllamacpp")
    client, note = make_llm_client(AdvisorParams(host=closed_port))
    assert client is None
    assert re.search(f"no Ollama: {re.escape(closed_port)} does not answer.*; the embedded LLM needs xllamacpp$", note)
    assert "reasoner.kind=rule" not in note


def test_auto_takes_ollama_where_it_answers_and_has_the_model():
    with serving(always=chat_answer(says("yes"))) as server:
        client, note = make_llm_client(AdvisorParams(host=server.url))
        with client:
            assert (client.kind, client.note, note) == ("ollama", "", "")
            assert client.label == f"Ollama llama3.2 at {server.url}"
            assert ask(client).word == "yes"
        options = server.sent[0]["options"]
    assert options == {"temperature": 0.7, "seed": 0, "num_predict": 512}


def test_a_replay_looks_for_nobody_and_knows_the_llm_from_the_ledger(path, closed_port):
    answered(says, "live", path, ["a"])
    params = AdvisorParams(kind="ollama", host=closed_port, ledger="replay", ledger_path=str(path))
    client, note = make_llm_client(params)
    with client:
        assert (client.label, note) == ("toy, replayed", "")
        assert ask(client, "a").word == "a"


@pytest.mark.parametrize(
    "decoding",
    [{"method": "pmi", "build": "xllamacpp 1"}, {"temperature": 0.7, "seed": 0, "max_tokens": 512, "answer": "choice"}],
)
def test_a_replay_takes_no_oracle_of_choices_for_the_llm_of_a_ledger_that_both_have_used(decoding, path):
    answered(says, "live", path, ["a"])
    with Ledger(path) as ledger:
        ledger.put(StoredAnswer("key", "like or scroll?", "[]", "oracle", "", json.dumps(decoding), "{}"))
    client, _ = make_llm_client(AdvisorParams(ledger="replay", ledger_path=str(path)))
    with client:
        assert ask(client, "a").word == "a"


def test_a_replay_of_choices_takes_no_llm_that_answered_in_a_form(path):
    with Ledger(path) as ledger:
        for key, decoding in (("1", {"method": "pmi", "build": "x"}), ("2", {"temperature": 0.7, "build": "x"})):
            ledger.put(StoredAnswer(key, "?", "[]", "SmolLM2", "", json.dumps(decoding), "{}"))
        assert recorded_oracle(ledger, ReasonerParams(kind="embedded")).decoding["method"] == "pmi"


def test_a_ledger_of_another_llm_cannot_be_replayed(path):
    answered(says, "live", path, ["a"])
    with pytest.raises(ConfigError, match=r"has no answers of the configured LLM .* \(it has: toy \{\}\)"):
        make_llm_client(AdvisorParams(ledger="replay", ledger_path=str(path), model="llama3.2"))
