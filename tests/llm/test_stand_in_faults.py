"""Faults that the stand-in can have."""

import asyncio
import json
import threading
from typing import get_args

import httpx
import ollama
import pydantic
import pytest
from stand_in import (
    FAULTS,
    FaultName,
    first_attempts,
)
from stand_in_clients import WHICH, ask, async_client_of, client_of, until

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.ollama import OllamaChatClient

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
