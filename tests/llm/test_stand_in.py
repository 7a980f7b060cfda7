"""The stand-in for Ollama answers as Ollama does."""

import asyncio
import importlib.util
import json
import math
import threading

import ollama
import pydantic
import pytest
import stand_in
from stand_in import (
    Said,
    StandIn,
    Token,
    choose_by_hash,
    embedded_brain,
)
from stand_in_clients import OPTIONS, SCHEMA, WHICH, ask, ask_all, async_client_of, client_of, plain

from prism_mesa.statechart import AgentState

NAMES = [option.value for option in OPTIONS]


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


def test_all_its_public_names_are_there():
    assert [name for name in stand_in.__all__ if not hasattr(stand_in, name)] == []
