"""Functions and LLMs that answer with what cannot be used: understood, if it names an option; else said, and loudly."""

import json

import pytest
from ollama_server import as_json, serving
from stand_in import StandIn
from worlds import PLAIN_FILE, plain, ran, small

from prism_mesa import AgentState, Reasoner
from prism_mesa.errors import LLMFailureException, PrismWarning, RunError
from prism_mesa.llm import OllamaChatClient
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.runs.social import run

LIVELY = {"agents_n": 100, "agents_band": 0.4, "agents_activity": 1.0}
QUICK = {"backoff_s": 0, "attempts": 1}


def says(*answers):
    """Return a function that plays an LLM, says one thing after the other, the last one for ever, and counts."""

    def llm(prompt):
        llm.asked += 1
        return answers[min(llm.asked, len(answers)) - 1]

    llm.asked = 0
    return llm


# -- the name of an option alone -------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["composing it is", "composing or scrolling", "compose", "", "engaging_like"])
def test_anything_else_is_not_guessed_at(said):
    model = small(reasoner=Reasoner(says(said), **QUICK), agents_n=12, agents_band=0.4, rounds=1)
    with pytest.warns(PrismWarning, match=r"100.0% of .* open choices? were answered by the fallback"):
        model.step()
    model.close()
    assert 0 < model.totals["open"] < 20
    assert model.sources == {"fallback": model.totals["open"]}


# -- nothing but useless answers -------------------------------------------------------------------------


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_function_whose_first_twenty_answers_are_useless_ends_the_step_with_what_it_said_and_what_is_wanted(attempts):
    llm = says("I would\x1b[2J rather write.")
    model = small(**LIVELY, reasoner=Reasoner(llm, backoff_s=0, attempts=attempts, max_concurrency=1))
    wanted = (
        r"function .*says.*llm: its first 20 answers are all useless; the last answer was 'I would\[2J rather "
        r"write\.'; PRISM expects {\"next_state\": \"composing\"}, or the name of an option alone: composing or scro"
    )
    with pytest.raises(LLMFailureException, match=wanted) as caught:
        model.run_for(10)
    model.close()
    assert (caught.value.reason, llm.asked) == ("useless", 20)


@pytest.mark.slow
def test_after_one_good_answer_useless_ones_are_fallbacks_however_many():
    llm = says(*["Hm."] * 19, "scrolling", "Hm.")
    model = small(**LIVELY, reasoner=Reasoner(llm, **QUICK), reasoner_max_fallback_share=1, rounds=5)
    ran(model, 5)
    model.close()
    assert model.sources["fallback"] > 30
    assert llm.asked > 40


def test_an_llm_that_does_not_answer_at_all_is_not_called_useless():
    def down(prompt):
        raise TimeoutError("no answer")

    model = ran(small(**LIVELY, reasoner=Reasoner(down, max_fallback_share=1, **QUICK), rounds=3))
    model.close()
    assert model.sources["fallback"] == model.totals["open"] > 50


def test_a_single_decision_falls_back_however_often_it_is_asked_for():
    asked = Reasoner(says("Hm."), **QUICK)
    agent = type("Agent", (), {"name": "Ann"})()
    options = [AgentState.SCROLLING, AgentState.COMPOSING]

    async def thirty():
        return [await asked.decide(agent, AgentState.EVALUATING, "decides", options, f"post {i}") for i in range(30)]

    import asyncio

    with asked:
        assert set(asyncio.run(thirty())) == {AgentState.SCROLLING}


def test_a_run_ends_as_failed_and_keeps_its_tables(tmp_path):
    given = plain({"agents.n": 100, "agents.band": 0.4, "agents.activity": 1.0, "rounds": 3})
    with pytest.raises(RunError, match=r"round 0: .*its first 20 answers are all useless"):
        run(given, out=tmp_path, reasoner=Reasoner(says("Hm."), **QUICK))
    [folder] = tmp_path.iterdir()
    assert read_manifest(folder)["status"] == "failed"
    assert len(read_table(folder, "agents")) == 100


def test_the_command_says_it_of_a_server_in_one_line(prism, tmp_path):
    with StandIn(lambda body: json.dumps({"next_state": "dancing"})) as server:
        given = (PLAIN_FILE, "agents.n=100", "agents.band=0.4", "agents.activity=1", "reasoner.kind=ollama", "rounds=3")
        code, _, err = prism("run", *given, f"reasoner.host={server.url}", "--out", tmp_path)
    assert code == 1
    line = err.splitlines()[-1]
    assert "are all useless" in line
    assert "dancing" in line
    assert "or the name of an option alone: composing or scrolling" in line


# -- more fallbacks than are allowed ---------------------------------------------------------------------


def fails_sometimes(prompt):
    if len(prompt) % 3 == 0:
        raise TimeoutError("no answer")
    return "scrolling"


def test_too_many_fallbacks_are_a_warning_when_the_last_round_is_done():
    model = small(**LIVELY, reasoner=Reasoner(fails_sometimes, **QUICK), rounds=3)
    ran(model, 2)
    with pytest.warns(PrismWarning, match=r"^SocialModel: .*% of \d+ open choices .*max_fallback_share allows 5.0%$"):
        model.step()
    model.close()  # once is enough


@pytest.mark.parametrize("where", ["model", "reasoner"])
def test_a_larger_share_can_be_allowed_in_either_place(where):
    allowed = {"max_fallback_share": 1} if where == "reasoner" else {}
    params = {"reasoner_max_fallback_share": 1} if where == "model" else {}
    model = small(**LIVELY, **params, reasoner=Reasoner(fails_sometimes, **QUICK, **allowed), rounds=3)
    ran(model).close()
    assert model.totals["fallback"] > 0


def test_a_run_says_it_by_its_status_and_not_twice(tmp_path):
    given = plain({"agents.n": 100, "agents.band": 0.4, "agents.activity": 1.0, "rounds": 2})
    result = run(given, out=tmp_path, reasoner=Reasoner(fails_sometimes, **QUICK))
    assert result.status == "failed"
    assert "max_fallback_share allows 5.0%" in result.summary["error"]


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "told", "way"),
    [
        (400, '"d1-omni:600m" does not support chat', "an LLM that chats"),
        (400, '"llama3.2:latest" does not support thinking', "reasoner.think=false"),
        (400, "the request exceeds the available context size", "reasoner.num_ctx"),
        (401, "who are you?", "set the key"),
        (404, "model not found", "reasoner.model"),
    ],
)
def test_a_server_that_refuses_the_first_twenty_questions_ends_the_run_with_its_words_and_a_way_out(status, told, way):
    with serving(always=as_json(status, {"error": told})) as server:
        reasoner = Reasoner(OllamaChatClient(host=server.url), max_concurrency=1, **QUICK)
        model = small(**LIVELY, reasoner=reasoner)
        with pytest.raises(LLMFailureException, match=r"its first 20 answers are all useless") as caught:
            model.run_for(10)
        model.close()
        assert len(server.sent) == 20
    assert told.replace('"', "")[-20:] in str(caught.value).replace('"', "")
    assert way in str(caught.value)
