"""A single thought, and many turns side by side."""

import asyncio
import json
import threading
from collections import Counter

import pytest
from turn_events import (
    ABOUT_ME,
    ABOUT_THEM,
    by_prompt,
    no_answer,
    nobody,
    number,
    quick,
    run_together,
    says,
    scripted,
    thinks,
    thought,
    turns_of,
)
from turn_paths import LOOK

from prism_mesa.deliberation import (
    Conversation,
    Limits,
    Message,
    ReasoningResult,
    TurnContext,
    as_llm_client,
    reason_about_text,
    run_turns,
    start_turn,
)
from prism_mesa.errors import ConfigError, LLMFailureException
from prism_mesa.llm import FunctionClient, RunPosition

# -- a single thought ----------------------------------------------------------------------------------


def test_a_thought_of_anothers_words_and_of_ones_own(garden):
    llm = scripted(thought("A question.", LOOK), thought("An answer."))
    asked = ReasoningResult.model_validate(json.loads(thought("A question.", LOOK)))
    assert reason_about_text("Beans?", "user", "It rained.", garden.tools, llm) == asked
    assert reason_about_text("Beans!", "assistant", [Message.of("user", "Beans?")], None, llm).understanding == (
        "An answer."
    )
    other, own = llm.prompts
    assert "What came before:\n<<< It rained. >>>\n\nThey say: <<< Beans? >>>" in other
    assert all(question in other for question in ABOUT_THEM)
    assert garden.tools.describe() in other
    assert "What came before:\nThey said: <<< Beans? >>>\n\nYour response: <<< Beans! >>>" in own
    assert all(question in own for question in ABOUT_ME)
    assert "there are no tools" in own
    assert garden.done == []


def test_a_thought_that_does_not_come_is_a_failure_and_leaves_no_thread():
    before = threading.active_count()
    llm = scripted("Sure!", "Sure!")
    with pytest.raises(LLMFailureException, match="gave the thought no usable answer") as caught:
        reason_about_text("Beans?", "user", "", None, llm)
    assert (caught.value.reason, caught.value.attempts, caught.value.component) == ("unparsable", 2, "thought")
    assert threading.active_count() == before


def test_a_role_or_a_name_that_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="message_role: 'User'"):
        reason_about_text("Beans?", "User", "", None, nobody)
    assert as_llm_client(nobody, "tiny").client.name == "tiny"
    with pytest.raises(ConfigError, match="model: must be 'toy'"):
        as_llm_client(FunctionClient(nobody, "toy"), "tiny")


# -- many turns at once --------------------------------------------------------------------------------


def test_many_turns_side_by_side_are_as_many_one_after_the_other():
    turns, conversations = turns_of(24)
    with quick(by_prompt) as client:
        events, responses = run_together(client, turns)
        calls = client.usage["calls"]
    alone, kept_alone = turns_of(24)
    with quick(by_prompt) as client:
        one_by_one = [run_together(client, [turn]) for turn in alone]
        assert client.usage["calls"] == calls
    assert [([own], [said]) for own, said in zip(events, responses, strict=True)] == one_by_one
    assert [talked.messages for talked in conversations] == [talked.messages for talked in kept_alone]
    kinds = Counter(type(event).__name__ for own in events for event in own)
    assert len({len(own) for own in events}) > 3  # turns of different length
    assert set(kinds) == {"AgentTextEvent", "AgentErrorEvent", "ToolStartedEvent", "ToolFinishedEvent"}
    assert None in responses


def test_a_limit_is_spent_in_the_order_of_priority_then_agents_whichever_answer_comes_first():
    async def llm(prompt):
        await asyncio.sleep(0.003 * (number(prompt) % 3))
        return thought("Hm.") if prompt.endswith("as JSON:") else "Yes."

    answered, none = [thinks("Hm."), says("Yes.")], [no_answer("budget"), no_answer("budget", "response")]
    thought_only = [thinks("Hm."), no_answer("budget", "response")]
    for priorities, expected in (
        ([0] * 5, [thought_only] * 4 + [none]),
        ([5, 4, 3, 2, 1], [none] + [thought_only] * 4),
    ):
        contexts = [
            TurnContext(position=RunPosition(1, i), priority=float(p), limits=Limits(iterations=1))
            for i, p in enumerate(priorities)
        ]
        turns = [start_turn(f"Number {i}?", Conversation(), context) for i, context in enumerate(contexts)]
        with quick(llm, max_calls=4) as client:
            assert run_together(client, turns)[0] == expected
            assert client.usage["calls"] == 4
    contexts = [TurnContext(position=RunPosition(1, i), limits=Limits(iterations=1)) for i in range(2)]
    with quick(llm, max_calls=3) as client:
        turns = [start_turn(f"Number {i}?", Conversation(), context) for i, context in enumerate(contexts)]
        assert run_together(client, turns)[0] == [answered, thought_only]


def test_a_listener_that_fails_ends_all_turns():
    def fails(position, event):
        raise RuntimeError("the listener's own")

    turns, _ = turns_of(3)
    with quick(by_prompt) as client, pytest.raises(RuntimeError, match="the listener's own"):
        run_turns(client, turns, fails)
    assert [list(turn) for turn in turns] == [[], [], []]
