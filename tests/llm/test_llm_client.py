"""Answers in a form: who is asked, how often, what is written down, and what an answer that does not come is called."""

import asyncio
import gc
import json
import logging
import re
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ollama_server import as_json, chat_answer, drop, late, serving
from pydantic import BaseModel

from prism_mesa.economy.params import AdvisorParams
from prism_mesa.errors import ConfigError, LLMFailureException, OracleError
from prism_mesa.llm import (
    AnswerStore,
    AskedRow,
    Completion,
    FunctionClient,
    HostPool,
    Ledger,
    LLMClient,
    LLMParams,
    OllamaChatClient,
    RunPosition,
    StoredAnswer,
    factory,
    make_llm_client,
)
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.reasoner import ReasonerParams
from prism_mesa.reasoner.replayed import recorded_oracle


class Said(BaseModel):
    word: str


class Counted(BaseModel):
    word: str
    times: int = 1


def says(word):
    return json.dumps({"word": word})


def nobody(prompt):
    raise AssertionError("nobody is to be asked")


def toy(function):
    """Return a function as an LLM; all of them have one name, so that their keys are equal."""
    return FunctionClient(function, "toy")


def one_after_another(*replies):
    """Return an LLM that says (or raises) one thing after another; its prompts are in `.prompts`."""
    left, prompts = list(replies), []

    def llm(prompt):
        prompts.append(prompt)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    llm.prompts = prompts
    return llm


def quick(**given):
    return LLMParams(**({"kind": "python", "timeout_s": 60.0, "backoff_s": 0.001} | given))


def ask(client, prompt="What now?", form=Said, **more):
    return run_now(client.call_with_retry(prompt, form, **more))


def failure(client, prompt="What now?", form=Said, **more):
    """Return the failure that asking ends in."""
    with pytest.raises(LLMFailureException, match=r"gave the \w+ no usable answer|is of no use") as caught:
        ask(client, prompt, form, **more)
    return caught.value


async def found_or_failed(client, prompts, **more):
    """Return what becomes of some prompts that are out at the same time."""
    work = (client.call_with_retry(prompt, Said, **more) for prompt in prompts)
    return await asyncio.gather(*work, return_exceptions=True)


def ollama(server, timeout_s=5.0, **given):
    chat = OllamaChatClient("llama3.2", server.url, timeout_s, temperature=0.7, seed=40)
    return LLMClient(chat, quick(kind="ollama", **given), kind="ollama")


def seeds(server):
    return [body["options"]["seed"] for body in server.sent]


# -- asking --------------------------------------------------------------------------------------------


def test_an_answer_is_an_instance_of_the_form():
    with LLMClient(lambda prompt: says(prompt.upper())) as client:
        assert ask(client, "hello") == Said(word="HELLO")


def test_an_async_function_can_play_the_llm():
    async def llm(prompt):
        await asyncio.sleep(0)
        return says("late")

    with LLMClient(llm) as client:
        assert ask(client).word == "late"


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


def test_loops_in_several_threads_share_one_client_and_its_answers():
    async def llm(prompt):
        await asyncio.sleep(0.02)
        return says(prompt)

    with LLMClient(llm) as client, ThreadPoolExecutor(4) as threads:
        words = [said.word for said in threads.map(lambda prompt: ask(client, prompt), "abababab")]
    assert words == list("abababab")
    assert client.usage["calls"] == 2


def test_text_of_any_script_goes_out_and_comes_back():
    text = "½ Zinsen senken 🏦 \u200f利下げ\x00\x1b[31m"
    with serving(chat_answer(says(text))) as server, ollama(server) as client:
        assert ask(client, text).word == text
        assert server.sent[0]["messages"][0]["content"] == text


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
        assert client.usage == {"calls": 2, "prompt_tokens": 180, "completion_tokens": 16}


def test_by_default_an_attempt_may_take_a_minute_and_there_are_two_with_the_embedded_llm_eight():
    assert [LLMClient(nobody).params.timeout_s, AdvisorParams().timeout_s] == [60.0, 60.0]
    assert [LLMClient(nobody, params).attempts for params in (None, AdvisorParams(), quick(attempts=5))] == [2, 2, 5]
    assert [LLMClient(nobody, params, kind="embedded").attempts for params in (None, quick(attempts=5))] == [8, 5]


def test_the_embedded_llm_is_asked_up_to_eight_times_in_a_row():
    count = []
    with LLMClient(lambda prompt: count.append(1) or "Sure!", quick(), kind="embedded") as client:
        failed = failure(client)
    assert (failed.attempts, len(count)) == (8, 8)


@pytest.mark.parametrize("status", [400, 401, 404, 429])
def test_a_refusal_is_not_asked_again(status):
    reply = as_json(status, {"error": "model not found"})
    with serving(reply, always=chat_answer(says("yes"))) as server, ollama(server) as client:
        failed = failure(client)
        assert (failed.reason, failed.attempts, len(server.sent)) == (f"http-{status}", 1, 1)


PASSING = [
    ("server-error", as_json(500, {"error": "out of memory"})),
    ("busy", as_json(503, {"error": "queue full"})),
    ("dropped", drop),
    ("timeout", late),
    ("empty", chat_answer("  ")),
    ("partial", chat_answer(says("half"), done=False)),
]


@pytest.mark.parametrize(("reason", "reply"), PASSING)
def test_what_may_pass_is_asked_once_more_and_then_fails_by_its_name(reason, reply):
    timeout_s = 0.05 if reply is late else 5.0
    with serving(reply, reply, always=chat_answer(says("yes"))) as server, ollama(server, timeout_s) as client:
        failed = failure(client, component="policy")
        assert (failed.reason, failed.attempts, failed.component) == (reason, 2, "policy")
        assert seeds(server) == [40, 41]


@pytest.mark.parametrize(("reason", "reply"), PASSING)
def test_what_may_pass_and_does_leaves_no_trace_in_the_answer(reason, reply):
    timeout_s = 1.0 if reply is late else 5.0
    with serving(reply, chat_answer(says("yes"))) as server, ollama(server, timeout_s) as client:
        assert ask(client).word == "yes"
        assert (client.counts, client.reasons) == ({"llm": 1}, {})


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


def test_a_bug_in_a_function_that_plays_the_llm_is_named_and_not_asked_again():
    with LLMClient(one_after_another(RuntimeError("my own bug"))) as client:
        failed = failure(client)
    assert (failed.reason, failed.attempts) == ("RuntimeError", 1)
    assert "my own bug" in str(failed)


def test_a_failure_is_logged_as_an_error_with_who_asked_and_why(caplog):
    with LLMClient(lambda prompt: "Sure!", quick()) as client:
        failure(client, component="reading", place=RunPosition(3, 7))
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


def test_the_wait_before_the_second_attempt_is_keyed_by_the_prompt(monkeypatch):
    slept = []
    sleep = asyncio.sleep

    async def noted(seconds, *more):
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    for prompt in ("a", "a", "b"):
        with LLMClient(toy(one_after_another(*[OracleError("busy", "x")] * 2)), quick(backoff_s=2.0)) as client:
            failure(client, prompt)
    first, again, other = slept
    assert first == again != other
    assert all(1 <= pause <= 3 for pause in slept)


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


# -- several at a time ---------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3])
def test_at_most_max_concurrency_prompts_are_out_at_once(limit):
    out = Counter()

    async def llm(prompt):
        out["now"] += 1
        out["most"] = max(out["most"], out["now"])
        await asyncio.sleep(0.002)
        out["now"] -= 1
        return says(prompt)

    prompts = [f"p{i}" for i in range(20)]
    with LLMClient(llm, quick(max_concurrency=limit)) as client:
        assert [said.word for said in run_now(found_or_failed(client, prompts))] == prompts
    assert out["most"] == limit


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


def test_a_failure_is_shared_by_those_who_wait_and_not_kept():
    async def llm(prompt):
        await asyncio.sleep(0.01)
        return next(replies)

    replies = iter(["Sure!", "Sure!", says("at last")])
    with LLMClient(llm, quick()) as client:
        assert [(error.reason, error.attempts) for error in run_now(found_or_failed(client, "aa"))] == [
            ("unparsable", 2)
        ] * 2
        assert ask(client, "a").word == "at last"
        assert (client.counts, client.reasons) == ({"failed": 2, "llm": 1}, {"unparsable": 2})


def test_one_failure_does_not_touch_its_neighbours():
    with LLMClient(lambda prompt: "Sure!" if prompt == "b" else says(prompt), quick()) as client:
        first, failed, last = run_now(found_or_failed(client, "abc"))
    assert (first.word, failed.reason, last.word) == ("a", "unparsable", "c")


def test_another_form_or_another_name_for_what_is_accepted_is_another_question():
    llm = one_after_another(*map(says, "abc"))
    with LLMClient(llm) as client:
        assert ask(client).word == "a"
        assert ask(client, form=Counted).word == "b"
        assert ask(client, accepts="money").word == "c"
        again = [ask(client), ask(client, form=Counted), ask(client, accepts="money")]
    assert [said.word for said in again] == ["a", "b", "c"]
    assert llm.prompts == ["What now?"] * 3


# -- limits --------------------------------------------------------------------------------------------


def test_what_a_limit_leaves_over_fails_as_budget_without_being_asked():
    with LLMClient(says, quick(max_calls=2)) as client:
        assert [ask(client, prompt).word for prompt in "ab"] == ["a", "b"]
        failed = failure(client, "c", place=RunPosition(1))
        assert (failed.reason, failed.attempts, client.usage["calls"]) == ("budget", 0, 2)
        assert "None" not in str(failed)
        assert ask(client, "a").word == "a"  # what is known costs nothing


def test_a_limit_of_rounds_begins_anew_with_each_round():
    with LLMClient(says, quick(max_calls_per_round=1)) as client:
        assert ask(client, "a", place=RunPosition(1)).word == "a"
        assert failure(client, "b", place=RunPosition(1)).reason == "budget"
        assert ask(client, "b", place=RunPosition(2)).word == "b"


def test_a_limit_is_spent_by_place_whichever_answer_comes_first():
    async def llm(prompt):
        await asyncio.sleep(0.01 if prompt in "0a" else 0)
        return says(prompt)

    async def all_at_once():
        work = (
            client.call_with_retry(prompt, Said, place=RunPosition(1, agent)) for agent, prompt in enumerate("0abcde")
        )
        return await asyncio.gather(*work, return_exceptions=True)

    with LLMClient(llm, quick(max_calls=4)) as client:
        found = run_now(all_at_once())
    assert [getattr(said, "word", "-") for said in found] == ["0", "a", "b", "c", "-", "-"]


# -- beginning and ending ------------------------------------------------------------------------------


def test_closing_twice_does_no_harm_ends_the_thread_and_the_client_can_be_used_again():
    before = threading.active_count()
    client = LLMClient(says)
    assert ask(client, "a").word == "a"
    assert threading.active_count() == before + 1
    client.close()
    client.close()
    assert threading.active_count() == before
    assert ask(client, "b").word == "b"
    client.close()


def test_a_forgotten_client_leaves_no_thread_behind():
    before = set(threading.enumerate())
    ask(LLMClient(says))
    gc.collect()
    until = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.005)
    assert set(threading.enumerate()) <= before


def test_beginning_anew_drops_what_is_out_and_fills_the_limits():
    async def llm(prompt):
        asked.set()
        await release.wait()
        return says(prompt)

    async def dropped():
        waiting = asyncio.ensure_future(client.call_with_retry("a", Said))
        await asyncio.to_thread(asked.wait, 5)
        client.begin()
        await waiting

    asked, release = threading.Event(), asyncio.Event()
    with LLMClient(llm, quick(max_calls=1)) as client:
        with pytest.raises(asyncio.CancelledError, match=r"^$"):
            asyncio.run(dropped())
        release = asyncio.Event()
        release.set()
        assert ask(client, "a").word == "a"
        assert client.usage["calls"] == 1


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
    books = AnswerStore(mode, None if path is None else Ledger(path))
    found = []
    with LLMClient(toy(function), quick(**given), books=books) as client:
        if own is not None:
            client.record(own, run)
        else:
            client.books.run = run
        for agent, prompt in enumerate(prompts):
            try:
                place = RunPosition(2, agent, tick=1)
                found.append(ask(client, prompt, form, accept=accept, place=place, component="policy").word)
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


def test_a_later_attempt_that_brings_an_answer_is_counted_in_the_ledger(own):
    answered(one_after_another("Sure!", says("yes")), "live", None, ["a"], own=own)
    assert [(row.source, row.attempts) for row in own.asked()] == [("llm", 2)]
    assert [row.raw for row in own.answers()] == [says("yes")]


def test_tokens_and_latency_are_written_down(own):
    class PromptInterests(FunctionClient):
        async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
            return Completion(says("yes"), 120, 7, 33.5)

    with LLMClient(PromptInterests(str)) as client:
        client.record(own, "scope/run")
        ask(client)
        [row] = own.answers()
    assert (row.prompt_tokens, row.completion_tokens, row.latency_ms) == (120, 7, 33.5)


def test_live_asks_what_another_run_knows(path):
    answered(lambda prompt: says("first"), "live", path, ["a"], run="scope/one")
    assert answered(lambda prompt: says("second"), "live", path, ["a"], run="scope/two")[0] == ["second"]


def test_cache_asks_only_what_no_run_knows(path, own):
    answered(says, "live", path, ["a", "not used"])
    llm = one_after_another(says("new"))
    found, client = answered(llm, "cache", path, ["a", "b", "b"], own=own)
    assert (found, llm.prompts, client.counts) == (["a", "new", "new"], ["b"], {"cache": 2, "llm": 1})
    assert [row.prompt for row in own.answers()] == ["a", "b"]


def test_whoever_is_second_with_an_answer_takes_the_first_one(path):
    def slow(prompt):
        answered(lambda _: says("quick"), "cache", path, [prompt], run="other/run")  # meanwhile, elsewhere
        return says("slow")

    assert answered(slow, "cache", path, ["a"])[0] == ["quick"]


def test_a_failure_is_no_answer_for_others(path):
    answered(good_and_bad, "cache", path, ["bad"])
    assert answered(lambda prompt: says("good"), "cache", path, ["bad"])[0] == ["good"]


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
    with LLMClient(FunctionClient(nobody, "unknown"), books=AnswerStore("replay", Ledger(path))) as client:
        client.books.run = "scope/again"
        failed = failure(client, "bad", place=RunPosition(2, 0, tick=1))
    assert [(failed.reason, failed.attempts, "policy")] == before


def test_a_replay_can_itself_be_replayed(path, tmp_path):
    before, _ = answered(good_and_bad, "live", path, ["a", "bad"])
    with Ledger(tmp_path / "again.sqlite") as again:
        answered(nobody, "replay", path, ["a", "bad"], own=again)
    assert answered(nobody, "replay", tmp_path / "again.sqlite", ["a", "bad"])[0] == before


def test_what_failed_once_and_was_answered_later_is_replayed_in_that_order(path):
    llm = one_after_another("Sure!", "Sure!", says("at last"))
    for mode, function in (("live", llm), ("replay", nobody)):
        with LLMClient(toy(function), quick(), books=AnswerStore(mode, Ledger(path))) as client:
            client.books.run = "scope/run"
            failed = failure(client, "a", place=RunPosition(1, 2))
            assert (failed.reason, failed.attempts) == ("unparsable", 2)
            assert ask(client, "a", place=RunPosition(1, 2)).word == "at last"


def test_an_unknown_prompt_is_not_recorded_and_the_error_says_where(path):
    answered(says, "live", path, ["a"])
    with pytest.raises(OracleError, match=rf"the ledger {re.escape(str(path))} holds no answer for round 2, agent 1$"):
        answered(nobody, "replay", path, ["a", "b"])
    with pytest.raises(OracleError, match="another prompt stands there: has the configuration changed") as caught:
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


def test_the_error_about_a_shared_answer_that_does_not_fit_names_the_ledger(path):
    answered(says, "live", path, ["a"])
    with LLMClient(toy(nobody), books=AnswerStore("cache", Ledger(path))) as client:
        failed = failure(client, "a", accept=lambda said: False, component="reading")
    assert str(failed).startswith("what the ledger holds for the reading is of no use: the answer")


# -- who is asked --------------------------------------------------------------------------------------


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_with_kind_rule_no_llm_is_wanted():
    assert make_llm_client(AdvisorParams(kind="rule")) == (None, "reasoner.kind=rule asks no LLM")


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


def test_an_ollama_that_is_asked_for_by_name_and_is_not_there_is_an_error(closed_port):
    with pytest.raises(ConfigError, match=rf"reasoner.host: {re.escape(closed_port)} does not answer"):
        make_llm_client(AdvisorParams(kind="ollama", host=closed_port))


def test_a_model_that_the_server_has_not_is_an_error():
    with (
        serving() as server,
        pytest.raises(ConfigError, match=r"reasoner\.model: 'llama9' is not on the server"),
    ):
        make_llm_client(AdvisorParams(kind="ollama", host=server.url, model="llama9"))


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
    with pytest.raises(ConfigError, match=r"holds no answers of the LLM .* \(it has: toy \{\}\)"):
        make_llm_client(AdvisorParams(ledger="replay", ledger_path=str(path), model="llama3.2"))
