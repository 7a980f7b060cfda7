"""The OpenAI client against a small server that speaks the real protocol and breaks it on request."""

import asyncio
import json

import pytest
from ollama_server import as_json, drip, late, raw, serving

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import Ledger, OpenAIChatClient
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner, ReasonerParams, make_reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
SECRET = "sk-a-very-secret-key-1234567890"
SCROLL = '{"next_state": "scrolling"}'


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def completion(content, *, logprobs=None, **more):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny"}
    usage = {"prompt_tokens": 900, "completion_tokens": 8, "total_tokens": 908}
    return {**body, "choices": [choice | {"logprobs": logprobs}], "usage": usage, **more}


def says(content, **more):
    return as_json(200, completion(content, **more))


def listing(*names):
    return as_json(200, {"object": "list", "data": [{"id": n, "object": "model", "created": 1} for n in names]})


def noting(seen, reply):
    """Answer with `reply` and keep the headers that came."""

    def answer(handler):
        seen.append(handler.headers)
        reply(handler)

    return answer


def client_of(server, **given):
    return OpenAIChatClient("tiny", f"{server.url}/v1", **given)


def chat(client, **given):
    return asyncio.run(client.chat("Which?", **given))


# -- asking ----------------------------------------------------------------------------------------------


def test_the_server_is_sent_the_model_the_schema_and_every_decoding_option():
    schema = {"type": "object"}
    with serving(says("a"), says("b")) as server:
        client = client_of(server, temperature=0.5, seed=40, max_tokens=12)
        chat(client, schema=schema)
        chat(client, seed_offset=2)
    first, second = server.sent
    assert (first["model"], first["temperature"], first["seed"], first["max_tokens"]) == ("tiny", 0.5, 40, 12)
    assert first["messages"] == [{"role": "user", "content": "Which?"}]
    assert first["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }
    assert second["seed"] == 42
    assert not {"response_format", "logprobs", "top_logprobs"} & second.keys()
    assert client.decoding == {"temperature": 0.5, "seed": 40, "max_tokens": 12}


def test_log_probabilities_come_where_they_are_asked_for():
    tops = [{"token": "A", "logprob": -0.1, "bytes": None}, {"token": "B", "logprob": -3, "bytes": None}]
    logprobs = {"content": [{"token": "A", "logprob": -0.1, "bytes": None, "top_logprobs": tops}]}
    with serving(says("A", logprobs=logprobs), says("A")) as server:
        client = client_of(server)
        told, not_told = chat(client, top_logprobs=20), chat(client, top_logprobs=20)
    assert (server.sent[0]["logprobs"], server.sent[0]["top_logprobs"]) == (True, 20)
    assert told.top_logprobs == ((("A", -0.1), ("B", -3.0)),)
    assert not_told.top_logprobs == ()


def broken(**change):
    return as_json(200, completion("x") | change)


FAULTS = [
    ("timeout", drip, r"no answer within 0\.3 s"),
    ("dropped", raw(200, b'{"mess', announced=500), "the connection broke"),
    ("http-401", as_json(401, {"error": {"message": f"wrong key: {SECRET}"}}), r"wrong key: \*\*\* \(status 401\)"),
    ("http-400", as_json(400, ["bad"]), "status 400"),
    ("busy", as_json(503, {"error": {"message": "server busy"}}), r"server busy \(status 503\)"),
    ("server-error", as_json(500, ["out", "of", "memory"]), "status 500"),
    ("not-json", raw(200, b"<html>Welcome</html>"), "the answer is not JSON"),
    ("wrong-shape", as_json(200, {"error": "something"}), "not a chat answer"),
    ("wrong-shape", as_json(200, [1, 2]), "not a chat answer"),
    ("wrong-shape", broken(choices=[]), "not a chat answer"),
    ("wrong-shape", broken(choices=[{"message": "hi"}]), "not a chat answer"),
    ("wrong-shape", says(["a"]), "not a chat answer"),
    ("wrong-shape", says("a", logprobs={"content": [{"token": "A"}]}), "not a chat answer"),
    (
        "wrong-shape",
        says("a", logprobs={"content": [{"top_logprobs": [{"token": "A", "logprob": "x"}]}]}),
        "not a chat",
    ),
    ("empty", says(None), "the answer is empty"),
]


@pytest.mark.parametrize(("reason", "reply", "said"), FAULTS, ids=[f"{i}-{fault[0]}" for i, fault in enumerate(FAULTS)])
def test_every_fault_has_its_own_reason_and_says_what_happened(reason, reply, said):
    with serving(reply) as server, pytest.raises(OracleError, match=said) as caught:
        chat(client_of(server, timeout_s=0.3 if reason == "timeout" else 5))  # a machine that does much else is slow
    assert caught.value.reason == reason
    assert str(caught.value).startswith(f"tiny at {server.url}/v1: ")
    assert SECRET not in str(caught.value)


# -- the key -------------------------------------------------------------------------------------------------


def test_the_key_comes_from_the_environment(monkeypatch):
    seen = []
    with serving(*[noting(seen, says("x"))] * 3) as server:
        for value in (SECRET, f" {SECRET}\n", ""):
            monkeypatch.setenv("OPENAI_API_KEY", value)
            chat(client_of(server))
    assert [headers["Authorization"] for headers in seen] == [f"Bearer {SECRET}"] * 2 + ["Bearer none"]


def test_the_key_is_nowhere_in_what_is_shown_or_written_down(tmp_path, caplog):
    replies = [
        as_json(401, {"error": {"message": f"wrong key: {SECRET}"}}),
        as_json(500, {"error": {"message": f"with key {SECRET} out of memory"}}),
        as_json(503, {"error": {"message": "x" * 190 + SECRET}}),
        says(SCROLL),
    ]
    path = tmp_path / "d.sqlite"
    with serving(*replies) as server, Ledger(path) as ledger:
        client = client_of(server)
        with Reasoner(client, ledger=ledger, max_concurrency=1, attempts=1) as reasoner:
            asked = [
                PlacedQuestion(Question(Persona(f"a{i}"), AgentState.EVALUATING, "decides", (C, S))) for i in range(4)
            ]
            answers = reasoner.answer(asked)
        rows = [*ledger.answers(), *ledger.asked()]
    shown = [repr(vars(client)), client.label, json.dumps(client.decoding), repr(rows), repr(answers), caplog.text]
    assert [answer.reason for answer in answers] == ["http-401", "server-error", "busy", ""]
    assert "wrong key: ***" in caplog.text
    assert not [text for text in shown if SECRET in text or SECRET[:12] in text]
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("more", ["\nsecond line", " word", "é", "\x1b[31m"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown_either(more, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}{more}")
    with pytest.raises(ConfigError, match=r"^OPENAI_API_KEY has white space or non-ASCII") as caught:
        OpenAIChatClient("tiny")
    assert SECRET not in str(caught.value)


# -- checking ----------------------------------------------------------------------------------------------


def test_a_check_passes_where_the_server_lists_the_llm_or_lists_nothing():
    for models in (listing("other", "tiny"), listing(), as_json(404, {"error": "no such page"})):
        with serving() as server:
            server.gets["/v1/models"] = models
            client_of(server).check()


def test_a_missing_llm_fails_the_check_with_what_there_is():
    with serving() as server:
        server.gets["/v1/models"] = listing("phi", "gemma")
        with pytest.raises(ConfigError, match=r"^reasoner.model: 'tiny' is not on the server \(it has: gemma, phi\)$"):
            client_of(server).check()


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (late, r"no answer within 0\.3 s"),
        (as_json(401, {"error": {"message": f"wrong {SECRET}"}}), r"wrong \*\*\* .*: set OPENAI_API_KEY"),
        (as_json(500, {"error": {"message": "x"}}), "status 500"),
        (raw(200, b"<html>"), "not JSON"),
        (as_json(200, [1]), "not a chat answer"),
    ],
)
def test_a_server_that_answers_wrongly_fails_the_check_in_one_line(models, said):
    with serving() as server:
        server.gets["/v1/models"] = models
        with pytest.raises(ConfigError, match=rf"^reasoner.host: {server.url}/v1 does not answer \(.*{said}") as caught:
            client_of(server, timeout_s=0.3).check()
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


# -- as a reasoner -------------------------------------------------------------------------------------------


def test_a_server_of_ones_own_decides_and_is_asked_for_probabilities_with_few_tokens():
    tops = [{"token": "B", "logprob": -0.2, "bytes": None}, {"token": "A", "logprob": -1.7, "bytes": None}]
    logprobs = {"content": [{"token": "B", "logprob": -0.2, "bytes": None, "top_logprobs": tops}]}
    with serving(always=says("B", logprobs=logprobs)) as server:
        server.gets["/v1/models"] = listing("tiny")
        params = ReasonerParams(kind="openai", model="tiny", host=f"{server.url}/v1", answer="probabilities")
        question = Question(Persona("Ann"), AgentState.EVALUATING, "decides", (C, S))
        with make_reasoner(params) as reasoner:
            answers = reasoner.answer(
                [PlacedQuestion(question, agent=i, draw=draw) for i, draw in enumerate((0.1, 0.9))]
            )
        assert reasoner.label == f"tiny at {server.url}/v1"
    assert [answer.choice for answer in answers] == [C, S]
    assert [body["max_tokens"] for body in server.sent] == [16]


def test_an_llm_must_be_named():
    with pytest.raises(ConfigError, match=r"reasoner\.model: empty; with reasoner\.kind=openai name the LLM"):
        make_reasoner(ReasonerParams(kind="openai"))
