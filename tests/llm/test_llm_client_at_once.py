"""`LLMClient`: several prompts at a time, limits, beginning and ending."""

import asyncio
import gc
import threading
import time
from collections import Counter

import pytest
from pydantic import BaseModel
from toy_clients import Said, ask, failure, found_or_failed, one_after_another, quick, says

from prism_mesa.llm import (
    LLMClient,
    RunPosition,
)
from prism_mesa.llm.clients.event_loop import run_now


class Counted(BaseModel):
    word: str
    times: int = 1


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
