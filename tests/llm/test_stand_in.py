"""The stand-in for Ollama against the real `ollama` package, which decides what a fault looks like to a caller."""

import asyncio
import importlib.util
import json
import math
import socket
import subprocess
import sys
import threading
import time
from typing import get_args

import httpx
import ollama
import pydantic
import pytest

from prism_mesa.economy.model import EconomyModel
from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.ollama import OllamaChatClient
from prism_mesa.llm.stand_in import (
    FAULTS,
    FaultName,
    Said,
    StandIn,
    Token,
    choose_by_hash,
    embedded_brain,
    first_attempts,
)
from prism_mesa.llm.stand_in.__main__ import main
from prism_mesa.reasoner.prompt import answer_schema
from prism_mesa.statechart import AgentState

OPTIONS = (AgentState.COMPOSING, AgentState.SCROLLING, AgentState.ENGAGING_LIKE, AgentState.ENGAGING_REPLY)
NAMES = [option.value for option in OPTIONS]
SCHEMA = answer_schema(OPTIONS)
WHICH = [{"role": "user", "content": "Which?"}]


def client_of(server, timeout=5.0, kind=ollama.Client, **given):
    """Return a real client; without certificates, as reading them takes longer than most tests."""
    return kind(server.url, timeout=timeout, trust_env=False, verify=False, **given)


def async_client_of(server, timeout=5.0, **given):
    return client_of(server, timeout, ollama.AsyncClient, **given)


def plain(method, server, path, **given):
    """Return the reply to a request that the `ollama` package would not send."""
    return httpx.request(method, server.url + path, trust_env=False, verify=False, timeout=5, **given)


@pytest.fixture
def server():
    with StandIn() as server:
        yield server


@pytest.fixture
def client(server):
    with client_of(server) as client:
        yield client


def ask(server, prompt="Which?", **given):
    with client_of(server) as client:
        reply = client.chat("llama3.2", [{"role": "user", "content": prompt}], format=SCHEMA, **given)
        return list(reply) if given.get("stream") else reply


def ask_all(server, n, max_connections=None):
    """Ask n questions at once; return the states, or the exceptions."""

    async def run():
        limits = httpx.Limits(max_connections=max_connections)
        async with async_client_of(server, 20, limits=limits) as client:
            chats = [client.chat("llama3.2", [{"role": "user", "content": f"{i}?"}], format=SCHEMA) for i in range(n)]
            return await asyncio.gather(*chats, return_exceptions=True)

    return asyncio.run(run())


def until(condition):
    """Wait for what another thread does."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "it did not happen within 5 s"
        time.sleep(0.005)


# -- answering ---------------------------------------------------------------------------------------


def test_a_chat_has_everything_that_ollama_sends(client):
    reply = client.chat("llama3.2", WHICH, format=SCHEMA)
    assert json.loads(reply.message.content)["next_state"] in NAMES
    assert (reply.model, reply.message.role, reply.done, reply.done_reason) == ("llama3.2", "assistant", True, "stop")
    assert reply.prompt_eval_count > 0
    assert reply.eval_count > 0
    assert reply.created_at.endswith("Z")
    assert reply.logprobs is None


def test_the_durations_tell_the_wait_and_the_work():
    with StandIn(slots=1, latency=0.2) as server:
        first, second = sorted(ask_all(server, 2), key=lambda reply: reply.load_duration)
    for reply in (first, second):
        assert reply.prompt_eval_duration + reply.eval_duration == pytest.approx(200e6, abs=5)
        assert reply.total_duration == pytest.approx(200e6 + reply.load_duration, abs=5)
    assert first.load_duration < 10e6 < second.load_duration


def test_the_same_question_has_the_same_answer_however_it_is_asked(server, client):
    chat = client.chat("llama3.2", WHICH, format=SCHEMA, options={"seed": 1, "temperature": 0})
    other = client.chat("llama3.2", WHICH, format=SCHEMA, options={"seed": 2, "temperature": 1.5})
    generated = client.generate("llama3.2", "Which?", format=SCHEMA)
    server.latency = 0.02
    late = client.chat("llama3.2", WHICH, format=SCHEMA)
    assert {chat.message.content, other.message.content, late.message.content} == {generated.response}
    assert server.n_requests == 4
    assert server.requests[0]["options"] == {"seed": 1, "temperature": 0}


def test_answers_spread_over_the_options():
    said = [json.loads(choose_by_hash({"prompt": f"{i}?", "format": SCHEMA}).text)["next_state"] for i in range(400)]
    assert all(70 <= said.count(name) <= 130 for name in NAMES)


def test_a_stream_says_the_same_in_pieces_and_counts_at_its_end(client):
    whole = client.chat("llama3.2", WHICH, format=SCHEMA)
    *parts, last = client.chat("llama3.2", WHICH, format=SCHEMA, stream=True)
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert len(parts) == last.eval_count == whole.eval_count
    assert [part.done for part in parts] == [False] * len(parts)
    assert (last.message.content, last.done, parts[0].eval_count) == ("", True, None)
    words = client.generate("llama3.2", "Which?", format=SCHEMA, stream=True)
    assert "".join(part.response for part in words) == whole.message.content


def test_the_async_client_gets_the_same_whole_and_streamed(server):
    async def both():
        async with async_client_of(server) as client:
            whole = await client.chat("llama3.2", WHICH, format=SCHEMA)
            parts = [part async for part in await client.chat("llama3.2", WHICH, format=SCHEMA, stream=True)]
            return whole.message.content, "".join(part.message.content for part in parts)

    whole, streamed = asyncio.run(both())
    assert whole == streamed == ask(server).message.content


def test_a_request_that_does_not_say_is_streamed(server):
    reply = plain("POST", server, "/api/chat", json={"model": "llama3.2", "messages": WHICH})
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["done"] for line in reply.text.splitlines()][-2:] == [False, True]


@pytest.mark.parametrize("shape", ["", "json"])
def test_without_a_schema_it_says_a_sentence_or_an_object(client, shape):
    said = client.chat("llama3.2", WHICH, format=shape).message.content
    assert isinstance(json.loads(said), dict) if shape else said.startswith("I would choose ")


class Feeling(pydantic.BaseModel):
    state: AgentState
    strength: int = pydantic.Field(ge=1, le=5)
    why: str | None
    sure: bool
    tags: list[str]


def test_a_schema_made_by_pydantic_is_followed(client):
    for n in range(10):
        said = client.generate("llama3.2", f"{n}?", format=Feeling.model_json_schema()).response
        assert Feeling.model_validate_json(said).state in AgentState


def test_num_predict_cuts_the_answer_and_says_so(client):
    reply = client.chat("llama3.2", WHICH, format=SCHEMA, options={"num_predict": 2})
    assert (reply.message.content, reply.eval_count, reply.done_reason) == ('{"next', 2, "length")


def test_the_logprobs_multiply_to_a_distribution_over_the_options_whose_best_is_the_answer(client):
    """Of four options, two share their first token; the others are decided at once."""

    def logprobs(reply):
        return [(entry.token, entry.logprob, entry.top_logprobs) for entry in reply.logprobs]

    for n in range(20):
        prompt = [{"role": "user", "content": f"{n}?"}]
        reply = client.chat("llama3.2", prompt, format=SCHEMA, logprobs=True, top_logprobs=20)
        entries = logprobs(reply)
        assert "".join(token for token, _, _ in entries) == reply.message.content
        assert all(len(top) == 20 and (top[0].token, top[0].logprob) == (token, lp) for token, lp, top in entries[:5])
        first = {one.token: math.exp(one.logprob) for one in entries[5][2]}
        assert set(first) > {"composing", "scrolling", "engaging"}
        assert sum(first[token] for token in ("composing", "scrolling", "engaging")) == pytest.approx(1, abs=1e-4)


def test_logprobs_have_bytes_and_come_only_when_asked_for(server):
    body = {"model": "llama3.2", "prompt": "Which?", "format": SCHEMA, "stream": False, "logprobs": True}
    [first, *_] = plain("POST", server, "/api/generate", json=body).json()["logprobs"]
    assert first == {"token": '{"', "logprob": 0.0, "bytes": [123, 34]}
    body |= {"top_logprobs": 2, "stream": True}
    lines = plain("POST", server, "/api/generate", json=body).text.splitlines()
    [entry] = json.loads(lines[0])["logprobs"]
    assert [set(one) for one in entry["top_logprobs"]] == [{"token", "logprob", "bytes"}] * 2
    assert "logprobs" not in json.loads(lines[-1])


def test_a_brain_may_be_a_function_and_give_its_own_tokens():
    tokens = (Token("Yes", -0.5, (("Yes", -0.5), ("No", -1.0))), Token("!", -0.1))
    with StandIn(lambda body: Said("Yes!", tokens, prompt_tokens=7)) as server:
        reply = ask(server, logprobs=True, top_logprobs=2)
    assert (reply.message.content, reply.prompt_eval_count, reply.eval_count) == ("Yes!", 7, 2)
    assert [(one.token, one.logprob) for one in reply.logprobs[0].top_logprobs] == [("Yes", -0.5), ("No", -1.0)]


def test_an_async_brain_is_awaited_while_others_are_served():
    asked, told = threading.Event(), threading.Event()

    async def brain(body):
        asked.set()
        await asyncio.to_thread(told.wait, 5)
        return "done"

    with StandIn(brain) as server, client_of(server) as client:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(client.chat("llama3.2", WHICH)))
        thread.start()
        asked.wait(5)
        assert plain("GET", server, "/api/version").status_code == 200
        told.set()
        thread.join()
    assert answers[0].message.content == "done"


def test_a_brain_that_fails_is_a_server_error_and_frees_its_slot():
    def brain(body):
        raise KeyError("forgot")

    with StandIn(brain, slots=1) as server:
        for _ in range(2):
            with pytest.raises(ollama.ResponseError, match="stand-in: KeyError") as caught:
                ask(server)
            assert caught.value.status_code == 500


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_the_embedded_llm_answers_over_the_protocol():
    with StandIn(embedded_brain(), ("smollm2:135m",)) as server, client_of(server, 60) as client:
        reply = client.chat("smollm2:135m", WHICH, format=SCHEMA, logprobs=True, top_logprobs=5)
    assert json.loads(reply.message.content)["next_state"] in NAMES
    assert "".join(entry.token for entry in reply.logprobs) == reply.message.content
    assert all(len(entry.top_logprobs) == 5 for entry in reply.logprobs)
    assert reply.prompt_eval_count > 10


# -- the rest of the protocol ------------------------------------------------------------------------


def test_models_are_listed_shown_and_loaded_on_first_use():
    with StandIn(models=("llama3.2", "phi3:mini")) as server:
        with client_of(server) as client:
            assert [entry.model for entry in client.list().models] == ["llama3.2:latest", "phi3:mini"]
            assert all(len(entry.digest) == 64 for entry in client.list().models)
            assert client.show("llama3.2").capabilities == ["completion"]
            assert client.ps().models == []
            client.chat("LLama3.2", WHICH)
            [running] = client.ps().models
            assert (running.model, running.context_length) == ("llama3.2:latest", 4096)
            assert client.generate("llama3.2", "", keep_alive=0).done_reason == "unload"
            assert client.ps().models == []
            assert client.chat("phi3:mini", []).done_reason == "load"
        assert plain("GET", server, "/api/version").json() == {"version": "0.35.0-stand-in"}
        assert plain("GET", server, "/").text == "Ollama is running"
        assert plain("HEAD", server, "/api/tags").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "error"),
    [
        ("POST", "/api/chat", b"", 400, "missing request body"),
        ("POST", "/api/chat", b"{oops", 400, "invalid character 'o' looking for beginning of value"),
        ("POST", "/api/chat", b"[1]", 400, "json: cannot unmarshal body into Go value of type dict"),
        ("POST", "/api/chat", b"{}", 400, "model is required"),
        ("POST", "/api/show", b"{}", 400, "model is required"),
        ("POST", "/api/generate", b"{}", 404, "model '' not found"),
        ("POST", "/api/chat", b'{"model": "gemma"}', 404, "model 'gemma' not found"),
        ("POST", "/api/show", b'{"model": "gemma"}', 404, "model 'gemma' not found"),
        (
            "POST",
            "/api/chat",
            b'{"model": "llama3.2", "top_logprobs": 21}',
            400,
            "top_logprobs must be between 0 and 20",
        ),
        ("POST", "/api/chat", b'{"model": "llama3.2", "think": true}', 400, '"llama3.2" does not support thinking'),
        ("POST", "/api/chat", b'{"model": "llama3.2", "format": "xml"}', 500, r'invalid format: "\"xml\""; expected '),
        ("GET", "/api/chat", b"", 405, None),
        ("GET", "/v1/models", b"", 404, None),
    ],
)
def test_what_ollama_refuses_is_refused_in_its_words(server, method, path, content, status, error):
    reply = plain(method, server, path, content=content)
    assert reply.status_code == status
    assert error is None or reply.json()["error"].startswith(error)


def test_requests_may_come_in_pieces_and_several_at_once(server):
    body = json.dumps({"model": "llama3.2", "messages": WHICH, "stream": False}).encode()
    request = b"POST /api/chat HTTP/1.1\r\nHost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        for piece in (request[:9], request[9:60], request[60:] + request + request):
            connection.sendall(piece)
            time.sleep(0.01)
        received = b""
        while received.count(b'"done": true') < 3:
            received += connection.recv(65536)
    assert received.count(b"HTTP/1.1 200 OK") == 3


# -- slots -------------------------------------------------------------------------------------------


def test_slots_are_never_exceeded_and_all_are_used():
    with StandIn(slots=3, latency=0.005) as server:
        assert all(reply.done for reply in ask_all(server, 60))
        assert (server.n_requests, server.max_busy) == (60, 3)


def test_beyond_the_queue_a_request_is_turned_away_at_once():
    replies = []
    with StandIn(slots=2, queue=3, fault=lambda number, body: "timeout" if number <= 2 else None) as server:
        thread = threading.Thread(target=lambda: replies.extend(ask_all(server, 10)))
        thread.start()
        until(lambda: server.n_requests == 10)
        assert (server.max_busy, server.n_waiting) == (2, 3)
        server.release()
        thread.join()
    busy = [reply for reply in replies if isinstance(reply, ollama.ResponseError)]
    assert len(busy) == 5
    assert {error.status_code for error in busy} == {503}
    assert busy[0].error == "server busy, please try again.  maximum pending requests exceeded"


def test_two_hundred_questions_through_four_slots_all_get_their_answers():
    with StandIn(latency=0.01) as server:
        replies = ask_all(server, 200, max_connections=8)
        assert server.max_busy == 4
    for i, reply in enumerate(replies):
        assert reply.message.content == choose_by_hash({"prompt": f"{i}?", "format": SCHEMA}).text


def test_latency_may_depend_on_the_request():
    seen = []

    def latency(number, body):
        seen.append((number, body["messages"][0]["content"]))
        return 0.001

    with StandIn(latency=latency) as server:
        ask(server, "a")
        ask(server, "b")
    assert seen == [(1, "a"), (2, "b")]


def test_a_client_that_gives_up_frees_its_slot():
    with StandIn(slots=1, latency=30) as server:
        with client_of(server, 0.1) as client, pytest.raises(httpx.ReadTimeout):
            client.chat("llama3.2", WHICH)
        server.latency = 0
        assert ask(server).done


def test_a_client_that_gives_up_frees_its_place_in_the_queue():
    with StandIn(slots=1, queue=1, latency=0.4) as server:
        first = threading.Thread(target=ask, args=(server,))
        first.start()
        until(lambda: server.n_requests == 1)
        with client_of(server, 0.1) as client, pytest.raises(httpx.ReadTimeout):
            client.chat("llama3.2", WHICH)
        until(lambda: server.n_requests == 2 and server.n_waiting == 0)
        assert ask(server).done
        first.join()
        assert (server.n_requests, server.max_busy) == (3, 1)


# -- faults ------------------------------------------------------------------------------------------


def patience(fault):
    """Return a timeout: short where it must pass, else long enough for a busy machine."""
    return 0.2 if fault in ("timeout", "drip") else 10.0


STREAMED = {"stream": True}
RAISED = [
    ("timeout", {}, httpx.ReadTimeout, "^(timed out)?$"),
    ("dropped", {}, httpx.RemoteProtocolError, "disconnected"),
    ("dropped", STREAMED, httpx.RemoteProtocolError, "disconnected"),
    ("partial-body", {}, httpx.RemoteProtocolError, "without sending complete message body"),
    ("partial-body", STREAMED, httpx.RemoteProtocolError, "incomplete chunked read"),
    ("bad-request", {}, ollama.ResponseError, r"invalid options.*\(status code: 400\)"),
    ("not-found", {}, ollama.ResponseError, r"model 'llama3.2' not found \(status code: 404\)"),
    ("not-found", STREAMED, ollama.ResponseError, r"status code: 404"),
    ("server-error", {}, ollama.ResponseError, r"runner process has terminated.*\(status code: 500\)"),
    ("busy", {}, ollama.ResponseError, r"server busy.*\(status code: 503\)"),
    ("error-dict", {}, ollama.ResponseError, r"\{'code': 400, 'message': 'invalid format'\} \(status code: 400\)"),
    ("error-array", {}, AttributeError, "'list' object has no attribute 'get'"),
    ("error-in-stream", {}, ollama.ResponseError, r"status code: 500"),
    ("error-in-stream", STREAMED, ollama.ResponseError, r"unexpected EOF \(status code: -1\)"),
    ("not-json", {}, json.JSONDecodeError, "Expecting value"),
    ("not-json", STREAMED, json.JSONDecodeError, "Expecting value"),
    ("wrong-shape", {}, pydantic.ValidationError, "ChatResponse"),
    ("json-array", {}, TypeError, "must be a mapping"),
    ("json-array", STREAMED, AttributeError, "'list' object has no attribute 'get'"),
]


@pytest.mark.parametrize(("fault", "how", "exception", "said"), RAISED)
def test_each_fault_raises_in_the_real_client_what_the_real_server_would(server, fault, how, exception, said):
    server.fault = fault
    with client_of(server, patience(fault)) as client:
        with pytest.raises(exception, match=said):
            list(client.chat("llama3.2", WHICH, **how))
        server.fault = None
        assert ask(server).done


@pytest.mark.parametrize(("fault", "how", "exception", "said"), RAISED)
def test_and_in_the_async_client_too(server, fault, how, exception, said):
    async def chat():
        async with async_client_of(server, patience(fault)) as client:
            reply = await client.chat("llama3.2", WHICH, **how)
            return [part async for part in reply] if how else reply

    server.fault = fault
    with pytest.raises(exception, match=said):
        asyncio.run(chat())


def test_the_faults_of_an_llm_raise_nothing_and_must_be_looked_for(server):
    said = {}
    for fault in ("empty", "useless", "invalid-state", "not-done"):
        server.fault = fault
        said[fault] = ask(server)
    assert said["empty"].message.content == ""
    assert said["useless"].message.content.startswith("Sure!")
    assert said["invalid-state"].message.content == '{"next_state": "flying"}'
    assert (said["not-done"].done, said["not-done"].eval_count) == (False, None)
    assert [part.done for part in ask(server, stream=True)] == [False] * 7


def test_an_empty_model_is_refused_by_the_client_itself(server, client):
    with pytest.raises(pydantic.ValidationError, match="at least 1 character"):
        client.chat("", WHICH)
    assert server.n_requests == 0


def test_every_fault_is_named_explained_and_tested(server):
    raised = {fault for fault, *_ in RAISED}
    assert set(FAULTS) == set(get_args(FaultName.__value__))
    assert set(FAULTS) - raised == {"drip", "empty", "useless", "invalid-state", "not-done"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("timeout", "timeout"),
        ("drip", "timeout"),
        ("dropped", "dropped"),
        ("partial-body", "dropped"),
        ("busy", "busy"),
    ],
)
def test_our_own_client_gives_faults_their_reasons(server, fault, reason):
    server.fault = fault
    with pytest.raises(OracleError, match=f"Ollama llama3.2 at {server.url}") as caught:
        asyncio.run(OllamaChatClient(host=server.url, timeout_s=patience(fault)).chat("Which?"))
    assert caught.value.reason == reason


def test_an_unknown_fault_is_refused_with_the_nearest_name(server):
    with pytest.raises(ValueError, match=r"'time-out' is no fault .* Did you mean 'timeout'"):
        server.fault = "time-out"


def test_a_fault_may_be_scripted_by_number_and_body(server):
    server.fault = lambda number, body: "server-error" if number == 2 else None
    assert ask(server).done
    with pytest.raises(ollama.ResponseError, match="500"):
        ask(server)
    assert ask(server).done


def test_each_prompts_first_attempt_can_fail(server):
    server.fault = first_attempts("dropped")
    for prompt in ("a", "b"):
        with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
            ask(server, prompt)
        assert ask(server, prompt, options={"seed": 1}).done
    server.fault = first_attempts("dropped", by_seed=True)
    for seed in (1, 2):
        with pytest.raises(httpx.RemoteProtocolError, match="disconnected"):
            ask(server, options={"seed": seed})
        assert ask(server, options={"seed": seed}).done


def test_requests_that_are_held_back_are_answered_on_release(server):
    server.fault = "timeout"
    replies = []
    thread = threading.Thread(target=lambda: replies.append(ask(server)))
    thread.start()
    until(lambda: server.n_requests == 1)
    server.release()
    thread.join()
    assert replies[0].done


# -- its life ----------------------------------------------------------------------------------------


def test_a_server_dies_with_its_requests_and_comes_back_at_the_same_address():
    with StandIn(slots=1, latency=30) as server:
        url = server.url
        replies = []
        thread = threading.Thread(target=lambda: replies.extend(ask_all(server, 3)))
        thread.start()
        until(lambda: server.n_requests == 3)
        server.stop()
        thread.join()
        assert {type(reply) for reply in replies} <= {httpx.RemoteProtocolError, httpx.ReadError}
        with pytest.raises(ConnectionError, match="Failed to connect"):
            ask(server)
        with pytest.raises(httpx.ConnectError):
            ask(server, stream=True)
        server.latency = 0
        server.start()
        assert server.url == url
        assert ask(server).done
        assert server.n_requests == 4


def test_nothing_is_left_after_it(server):
    assert ask(server).done
    server.stop()
    server.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "stand-in"]
    with pytest.raises(ConnectionError):
        ask(server)


@pytest.mark.slow
def test_the_command_says_how_to_use_it_and_ends_on_ctrl_c():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "prism_mesa.llm.stand_in", "--port", str(port), "--latency-ms", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        with ollama.Client(f"http://127.0.0.1:{port}", timeout=5, trust_env=False) as client:
            assert client.chat("llama3.2", WHICH).done
        process.send_signal(2)
        try:
            assert (process.wait(20), process.stderr.read()) == (0, "")
        finally:
            process.kill()
    assert f"prism run reasoner.kind=ollama reasoner.host=http://127.0.0.1:{port} reasoner.model=llama3.2" in line


@pytest.mark.parametrize("settings", [{}, {"economy_deliberate": True}, {"economy_domain": "trade"}], ids=str)
def test_it_answers_nations_with_policies_that_are_read(server, settings):
    ollama_at = {"reasoner_kind": "ollama", "reasoner_host": server.url, "reasoner_model": "llama3.2"}
    model = EconomyModel(economy_policy="llm", rng=1, **ollama_at, **settings)
    model.run_for(2)
    model.close()
    assert model.read_by == {"parser": 10}
    assert model.totals["not_understood"] == 0
    assert model.totals["accepted"] >= 3


def test_a_question_that_names_no_instruments_is_not_answered_with_a_policy(client):
    schema = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}
    said = client.chat("llama3.2", WHICH, format=schema).message.content
    assert json.loads(said)["action"] in {"yes", "no"}


def test_the_command_says_when_the_port_is_taken(server, capsys):
    assert main(["--port", str(server.port)]) == 2
    assert "Take another --port" in capsys.readouterr().err
