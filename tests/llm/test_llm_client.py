"""`LLMClient`: asking, asking again, several prompts at a time, and limits."""

import asyncio
import json
import logging
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ollama_server import chat_answer, late, serving
from pydantic import BaseModel
from toy_clients import Said, ask, failure, found_or_failed, nobody, one_after_another, quick, says

from prism_mesa.economy.params import AdvisorParams
from prism_mesa.llm import HostPool, Ledger, LLMClient, OllamaChatClient, RunPosition
from prism_mesa.llm.clients.event_loop import run_now


def ollama(server, timeout_s=5.0, **given):
    chat = OllamaChatClient("llama3.2", server.url, timeout_s, temperature=0.7, seed=40)
    return LLMClient(chat, quick(kind="ollama", **given), kind="ollama")


def seeds(server):
    return [body["options"]["seed"] for body in server.sent]


# -- asking --------------------------------------------------------------------------------------------


def test_an_answer_is_an_instance_of_the_form():
    with LLMClient(lambda prompt: says(prompt.upper())) as client:
        assert ask(client, "hello") == Said(word="HELLO")


def test_the_schema_of_the_form_is_what_the_server_is_to_hold_the_llm_to():
    with serving(chat_answer(says("yes"))) as server, ollama(server) as client:
        ask(client, "Well?")
        [body] = server.sent
    assert body["format"] == Said.model_json_schema()
    assert body["messages"] == [{"role": "user", "content": "Well?"}]


def test_it_can_be_asked_from_a_running_loop_and_from_plain_code():
    async def cell():
        first = await client.call_with_retry("a", Said)
        return first, await asyncio.to_thread(ask, client, "b")

    with LLMClient(says) as client:
        assert [said.word for said in asyncio.run(cell())] == ["a", "b"]
        assert ask(client, "c").word == "c"
        assert client.counts == {"llm": 3}


def test_half_a_surrogate_pair_in_a_prompt_or_an_answer_does_no_harm(tmp_path):
    raw = json.dumps({"word": "a \ud800"}, ensure_ascii=False)
    with Ledger(tmp_path / "d.sqlite") as ledger, LLMClient(one_after_another(raw, says("a \\ud800"))) as client:
        client.record(ledger, "scope/run")
        assert ask(client, "why \ud800?").word == "a \\ud800"
        assert failure(LLMClient(lambda prompt: raw)).reason == "wrong-shape"
        assert failure(LLMClient(lambda prompt: says("a \ud800"))).reason == "unparsable"
        assert [row.prompt for row in ledger.answers()] == ["why ??"]


# -- what is asked again -------------------------------------------------------------------------------


def test_by_default_a_prompt_is_asked_again_once_with_the_next_seed():
    with serving(chat_answer("Sure!"), chat_answer(says("yes"))) as server, ollama(server) as client:
        assert ask(client).word == "yes"
        assert seeds(server) == [40, 41]
        assert client.usage == {"calls": 2, "prompt_tokens": 1800, "completion_tokens": 16}


def test_by_default_an_attempt_may_take_a_minute_and_there_are_two_with_the_embedded_llm_eight():
    assert [LLMClient(nobody).params.timeout_s, AdvisorParams().timeout_s] == [60.0, 60.0]
    assert [LLMClient(nobody, params).attempts for params in (None, AdvisorParams(), quick(attempts=5))] == [2, 2, 5]
    assert [LLMClient(nobody, params, kind="embedded").attempts for params in (None, quick(attempts=5))] == [8, 5]


def test_an_answer_in_a_fence_is_one():
    with LLMClient(lambda prompt: '```json\n{"word": "yes"}\n```\n', quick()) as client:
        assert asyncio.run(client.call_with_retry(prompt="Well?", response_model=Said)).word == "yes"


@pytest.mark.parametrize(
    ("reason", "answer"),
    [
        ("unparsable", "Sure, here you go!"),
        ("unparsable", 'Here: ```json\n{"word": "yes"}\n```'),
        ("unparsable", "[" * 100_000),
        ("wrong-shape", '{"answer": "yes"}'),
        ("wrong-shape", '{"word": 7}'),
        ("wrong-shape", "[]"),
        ("irrelevant", says("bananas")),
    ],
)
def test_an_answer_of_no_use_is_asked_again_and_then_fails_by_its_name(reason, answer):
    def is_about_rates(said):
        return "rate" in said.word

    with LLMClient(one_after_another(answer, answer), quick()) as client:
        failed = failure(client, accept=is_about_rates)
    assert (failed.reason, failed.attempts, client.reasons) == (reason, 2, {reason: 1})
    with LLMClient(one_after_another(answer, says("rates")), quick()) as client:
        assert ask(client, accept=is_about_rates).word == "rates"


def test_a_failure_is_logged_as_an_error_with_who_asked_and_why(caplog):
    with LLMClient(lambda prompt: "Sure!", quick()) as client:
        failure(client, component="reading", position=RunPosition(3, 7))
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.message.startswith("LLM_FAILURE component=reading agent=7 (unparsable: the answer 'Sure!'")


def test_the_time_limit_holds_for_each_attempt_of_a_function_that_never_answers():
    async def never(prompt):
        await asyncio.Event().wait()

    began = time.monotonic()
    with LLMClient(never, quick(timeout_s=0.05)) as client:
        failed = failure(client)
    assert (failed.reason, failed.attempts) == ("timeout", 2)
    assert "no answer within 0.05 s" in str(failed)
    assert time.monotonic() - began < 5


def test_the_next_attempt_goes_to_another_server_if_the_first_does_not_answer():
    with serving(always=late) as hangs, serving(always=chat_answer(says("yes"))) as works:
        clients = [OllamaChatClient("llama3.2", server.url, 1.0) for server in (hangs, works)]
        with LLMClient(HostPool(clients), quick(timeout_s=1.0)) as client:
            assert ask(client).word == "yes"
        assert (len(hangs.sent), len(works.sent)) == (1, 1)


def test_an_answer_of_no_use_is_asked_again_at_once(monkeypatch):
    slept = []
    sleep = asyncio.sleep

    async def noted(seconds, *more):
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    with LLMClient(lambda prompt: "Sure!", quick(backoff_s=600.0)) as client:
        failure(client)
    assert slept == [0.0]


@settings(max_examples=40, deadline=None)
@given(st.one_of(st.text(), st.text().map(says), st.binary().map(lambda raw: raw.decode("latin-1"))))
def test_whatever_an_llm_says_is_an_answer_or_a_failure_with_a_name(text):
    with LLMClient(lambda prompt: text, quick(attempts=1)) as client:
        [found] = run_now(found_or_failed(client, [""]))
    said = found.word if isinstance(found, Said) else found.reason
    assert said in ("unparsable", "wrong-shape", "empty") or said == json.loads(text)["word"]


class Counted(BaseModel):
    word: str
    times: int = 1


# -- several at a time ---------------------------------------------------------------------------------


def test_the_embedded_llm_is_asked_one_thing_at_a_time():
    out = Counter()

    async def llm(prompt):
        out["now"] += 1
        out["most"] = max(out["most"], out["now"])
        await asyncio.sleep(0.001)
        out["now"] -= 1
        return says(prompt)

    with LLMClient(llm, quick(max_concurrency=8), kind="embedded") as client:
        run_now(found_or_failed(client, "abcdef"))
    assert out["most"] == 1


def test_equal_prompts_are_asked_once_and_whoever_comes_later_gets_the_same():
    async def llm(prompt):
        await asyncio.sleep(0.01)
        return says(f"{prompt} {len(asked.append(prompt) or asked)}")

    asked = []
    with LLMClient(llm) as client:
        words = [said.word for said in run_now(found_or_failed(client, "aab"))]
        assert words[0] == words[1] != words[2]
        assert ask(client, "a").word == words[0]
        assert (sorted(asked), client.counts) == (["a", "b"], {"llm": 2, "cache": 2})


def test_another_form_or_another_name_for_what_is_accepted_is_another_question():
    llm = one_after_another(*map(says, "abc"))
    with LLMClient(llm) as client:
        assert ask(client).word == "a"
        assert ask(client, form=Counted).word == "b"
        assert ask(client, accept_rule="money").word == "c"
        again = [ask(client), ask(client, form=Counted), ask(client, accept_rule="money")]
    assert [said.word for said in again] == ["a", "b", "c"]
    assert llm.prompts == ["What now?"] * 3


# -- limits --------------------------------------------------------------------------------------------


def test_what_a_limit_leaves_over_fails_as_budget_without_being_asked():
    with LLMClient(says, quick(max_calls=2)) as client:
        assert [ask(client, prompt).word for prompt in "ab"] == ["a", "b"]
        failed = failure(client, "c", position=RunPosition(1))
        assert (failed.reason, failed.attempts, client.usage["calls"]) == ("budget", 0, 2)
        assert "None" not in str(failed)
        assert ask(client, "a").word == "a"  # what is known costs nothing
