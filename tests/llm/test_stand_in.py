"""The stand-in answers and fails as Ollama does, for Ollama's own client."""

import asyncio
import json
import math
import socket
import threading
import time

import httpx
import ollama
import pydantic
import pytest
from stand_in import FAULTS, Said, StandIn, Token
from stand_in.__main__ import main

from prism_mesa.economy.model import EconomyModel
from prism_mesa.reasoner.prompt import answer_schema
from prism_mesa.statechart import AgentState

OPTIONS = (AgentState.COMPOSING, AgentState.SCROLLING, AgentState.ENGAGING_LIKE, AgentState.ENGAGING_REPLY)
NAMES = [option.value for option in OPTIONS]
SCHEMA = answer_schema(OPTIONS)


def chat(server, prompt="Which?", timeout=5.0, model="llama3.2", **options):
    client = ollama.Client(server.url, timeout=timeout, trust_env=False, verify=False)
    with client:
        return client.chat(model, [{"role": "user", "content": prompt}], **({"format": SCHEMA} | options))


def chat_all(server, n):
    """Ask n questions at once; return the answers, or the exceptions."""

    async def run():
        async with ollama.AsyncClient(server.url, timeout=20, trust_env=False, verify=False) as client:
            asked = (client.chat("llama3.2", [{"role": "user", "content": f"{i}?"}], format=SCHEMA) for i in range(n))
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(run())


def until(condition):
    """Wait for another thread."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "it did not happen within 5 s"
        time.sleep(0.005)


# -- answers -----------------------------------------------------------------------------------------


def test_the_same_prompt_has_the_same_answer_with_the_fields_of_ollama(server):
    first, again = chat(server, options={"seed": 1}), chat(server, options={"seed": 2, "temperature": 1.5})
    assert first.message.content == again.message.content
    assert json.loads(first.message.content)["next_state"] in NAMES
    assert (first.model, first.message.role, first.done, first.done_reason) == ("llama3.2", "assistant", True, "stop")
    assert min(first.prompt_eval_count, first.eval_count) > 0
    assert (first.logprobs, server.n_requests, server.requests[0]["options"]) == (None, 2, {"seed": 1})


class Feeling(pydantic.BaseModel):
    state: AgentState
    strength: int = pydantic.Field(ge=1, le=5)
    why: str | None
    sure: bool
    tags: list[str]


def test_a_schema_made_by_pydantic_is_followed(server):
    for n in range(10):
        reply = chat(server, f"{n}?", format=Feeling.model_json_schema())
        assert Feeling.model_validate_json(reply.message.content).state in AgentState


def test_log_probabilities_are_a_distribution_over_the_options(server):
    for n in range(10):
        reply = chat(server, f"{n}?", logprobs=True, top_logprobs=20)
        assert "".join(entry.token for entry in reply.logprobs) == reply.message.content
        first = {top.token: math.exp(top.logprob) for top in reply.logprobs[5].top_logprobs}
        assert sum(first[token] for token in ("composing", "scrolling", "engaging")) == pytest.approx(1, abs=1e-4)


def test_a_function_may_give_its_own_tokens_and_an_async_one_is_awaited():
    tokens = (Token("Yes", -0.5, (("Yes", -0.5), ("No", -1.0))), Token("!", -0.1))

    async def brain(body):
        await asyncio.sleep(0)
        return Said("Yes!", tokens, prompt_tokens=7)

    for function in (brain, lambda body: Said("Yes!", tokens, prompt_tokens=7)):
        with StandIn(function) as server:
            reply = chat(server, logprobs=True, top_logprobs=2)
        assert (reply.message.content, reply.prompt_eval_count, reply.eval_count) == ("Yes!", 7, 2)
        assert [(top.token, top.logprob) for top in reply.logprobs[0].top_logprobs] == [("Yes", -0.5), ("No", -1.0)]


@pytest.mark.parametrize("settings", [{}, {"economy_deliberate": True}, {"economy_domain": "trade"}], ids=str)
def test_it_answers_nations_with_policies_that_are_read(server, settings):
    ollama_at = {"reasoner_kind": "ollama", "reasoner_host": server.url, "reasoner_model": "llama3.2"}
    model = EconomyModel(economy_policy="llm", rng=1, **ollama_at, **settings)
    model.run_for(2)
    model.close()
    assert model.read_by["answer"] + model.read_by["parser"] == 10
    assert model.totals["not_understood"] == 0
    assert model.totals["accepted"] >= 3


# -- faults ------------------------------------------------------------------------------------------

RAISED = {
    "timeout": (httpx.ReadTimeout, "^(timed out)?$"),
    "drip": (httpx.ReadTimeout, "^(timed out)?$"),
    "dropped": (httpx.RemoteProtocolError, "disconnected"),
    "partial-body": (httpx.RemoteProtocolError, "without sending complete message body"),
    "bad-request": (ollama.ResponseError, "400"),
    "not-found": (ollama.ResponseError, "404"),
    "server-error": (ollama.ResponseError, "500"),
    "busy": (ollama.ResponseError, "503"),
    "error-dict": (ollama.ResponseError, "400"),
    "error-array": (AttributeError, "'list' object"),
    "not-json": (json.JSONDecodeError, "Expecting value"),
    "wrong-shape": (pydantic.ValidationError, "ChatResponse"),
    "json-array": (TypeError, "must be a mapping"),
}


@pytest.mark.parametrize("fault", sorted(RAISED.keys() - {"drip"}))
def test_each_fault_raises_in_the_real_client_what_the_real_server_would(server, fault):
    exception, match = RAISED[fault]
    server.fault = fault
    with pytest.raises(exception, match=match):
        chat(server, timeout=0.2 if fault == "timeout" else 10.0)
    server.fault = None
    assert chat(server).done


def test_the_faults_of_an_llm_raise_nothing(server):
    replies = {}
    for fault in FAULTS.keys() - RAISED.keys():
        server.fault = fault
        replies[fault] = chat(server)
    contents = {fault: reply.message.content for fault, reply in replies.items() if fault != "not-done"}
    useless = "Sure! I think I would keep scrolling."
    assert contents == {"empty": "", "useless": useless, "invalid-state": '{"next_state": "flying"}'}
    assert (replies["not-done"].done, replies["not-done"].eval_count) == (False, None)


@pytest.mark.parametrize(
    ("options", "status"),
    [({"model": "gemma"}, 404), ({"top_logprobs": 21}, 400), ({"think": True}, 400)],
)
def test_what_ollama_refuses_is_refused(server, options, status):
    with pytest.raises(ollama.ResponseError, match=str(status)):
        chat(server, **options)


# -- the server --------------------------------------------------------------------------------------


def test_models_are_listed_and_shown():
    with StandIn(models=("llama3.2", "phi3:mini")) as server, ollama.Client(server.url, trust_env=False) as client:
        assert [entry.model for entry in client.list().models] == ["llama3.2:latest", "phi3:mini"]
        assert client.show("LLama3.2").capabilities == ["completion"]
        assert client.ps().models[0].context_length == 4096
        with pytest.raises(ollama.ResponseError, match="404"):
            client.show("gemma")


def test_slots_are_never_exceeded_and_all_are_used():
    with StandIn(slots=3, latency=lambda number, body: 0.005) as server:
        assert all(reply.done for reply in chat_all(server, 60))
        assert (server.n_requests, server.max_busy) == (60, 3)


def test_a_client_that_gives_up_frees_its_slot_or_its_place_in_the_queue():
    with StandIn(slots=1, latency=0.4) as server:
        first = threading.Thread(target=chat, args=(server,))
        first.start()
        until(lambda: server.n_requests == 1)
        with pytest.raises(httpx.ReadTimeout):
            chat(server, timeout=0.1)
        first.join()
        server.latency = 30
        with pytest.raises(httpx.ReadTimeout):
            chat(server, timeout=0.1)
        server.latency = 0
        assert chat(server).done
        assert (server.n_requests, server.max_busy) == (4, 1)


def test_a_server_dies_with_its_requests_and_comes_back_at_the_same_address():
    with StandIn(slots=1, latency=30) as server:
        url, replies = server.url, []
        thread = threading.Thread(target=lambda: replies.extend(chat_all(server, 3)))
        thread.start()
        until(lambda: server.n_requests == 3)
        server.stop()
        thread.join()
        assert {type(reply) for reply in replies} <= {httpx.RemoteProtocolError, httpx.ReadError}
        with pytest.raises(ConnectionError):
            chat(server)
        server.latency = 0
        server.start()
        assert (server.url, chat(server).done) == (url, True)


def test_the_command_says_when_the_port_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert main(["--port", str(listener.getsockname()[1])]) == 2
    assert "Take another --port" in capsys.readouterr().err
