"""`LLMClient`: several prompts at a time, limits, beginning and ending."""

import asyncio
from collections import Counter

from pydantic import BaseModel
from toy_clients import ask, failure, found_or_failed, one_after_another, quick, says

from prism_mesa.llm import (
    LLMClient,
    RunPosition,
)
from prism_mesa.llm.clients.event_loop import run_now


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
