"""Turns repeated from a ledger, and events as JSON."""

import asyncio

import pytest
from pydantic import TypeAdapter
from turn_events import (
    Garden,
    by_prompt,
    call,
    nobody,
    quick,
    run_together,
    scripted,
    talk,
    thought,
    toy,
    turns_of,
)
from turn_paths import PATHS

from prism_mesa.deliberation import (
    AgentErrorEvent,
    Conversation,
    Event,
    Limits,
    ToolRegistry,
    TurnContext,
    run_turns,
    start_turn,
)
from prism_mesa.errors import OracleError
from prism_mesa.llm import AnswerStore, Ledger, LLMClient

# -- the ledger ----------------------------------------------------------------------------------------


def replaying(path):
    client = LLMClient(toy(nobody), store=AnswerStore("replay", Ledger(path)))
    client.store.run = "scope/again"
    return client


@pytest.mark.parametrize("name", PATHS)
def test_a_replay_has_the_same_events_failures_included(name, tmp_path):
    limits, answers, expected = PATHS[name]
    path, limits = tmp_path / "decisions.sqlite", Limits(**limits)
    with Ledger(path) as ledger, quick(scripted(*answers)) as client:
        client.record(ledger, "scope/run")
        with talk(client, Garden(), limits=limits) as agent:
            assert list(agent.chat_stream("What grows here?")) == expected
    with replaying(path) as client, talk(client, Garden(), limits=limits) as again:
        assert list(again.chat_stream("What grows here?")) == expected
        assert again.conversation.messages == agent.conversation.messages
        assert again.response == agent.response


@pytest.mark.parametrize("limits", [{}, {"max_calls": 60}])
def test_a_replay_of_many_turns_has_the_same_events_failures_and_all(limits, tmp_path):
    path = tmp_path / "decisions.sqlite"
    turns, _ = turns_of(24)
    twins, _ = turns_of(24)  # they ask the same at the same time, and fail with their elders
    with Ledger(path) as ledger, quick(by_prompt, **limits) as client:
        client.record(ledger, "scope/run")
        before = run_together(client, [*turns, *twins])
    turns, _ = turns_of(24)
    twins, _ = turns_of(24)
    with replaying(path) as client:
        assert run_together(client, [*turns, *twins]) == before
        assert client.usage["calls"] == 0
    failed = {event.reason for own in before[0] for event in own if isinstance(event, AgentErrorEvent)}
    assert failed - {"budget"}
    assert ("budget" in failed) == bool(limits)


def test_a_prompt_that_was_not_recorded_is_an_error_and_the_agent_can_go_on(tmp_path):
    path = tmp_path / "decisions.sqlite"
    with Ledger(path) as ledger, LLMClient(toy(scripted(thought("Hm."), "Yes.", thought("Fine.")))) as client:
        client.record(ledger, "scope/run")
        events = list(talk(client).chat_stream("Recorded?"))
    with replaying(path) as client:
        agent = talk(client)
        for _ in range(2):
            with pytest.raises(OracleError, match="holds no answer for round 0, agent -1") as caught:
                next(agent.chat_stream("Another?"))
            assert caught.value.reason == "not-recorded"
        with pytest.raises(OracleError, match="holds no answer"):
            asyncio.run(agent.respond("Another?"))
        with pytest.raises(OracleError, match="holds no answer"):
            run_turns(client, [start_turn("Another?", Conversation(), TurnContext())])
        agent.conversation.messages.clear()
        assert list(agent.chat_stream("Recorded?")) == events


# -- values --------------------------------------------------------------------------------------------


def test_all_events_survive_a_json_round_trip():
    events = [event for _, _, expected in PATHS.values() for event in expected]
    anything = TypeAdapter(list[Event])
    assert anything.validate_json(anything.dump_json(events)) == events
    one = TypeAdapter(Event)
    assert all(one.validate_python(event.model_dump(mode="json")) == event for event in events)


def test_a_call_written_differently_is_the_same_call():
    tools, ran = ToolRegistry(timeout_s=None), []

    @tools.tool
    def like(post: int, loud: bool = False) -> str:
        """Like a post."""
        ran.append(post)
        return "liked"

    calls = [call("like", post=3), call("like", post="3"), call("like", post=3.0, loud=False)]
    llm = scripted(thought("Hm.", *calls), "Done.", thought("Fine.", call("like", loud=False, post=" 3")))
    with talk(llm, tools=tools) as agent:
        events = list(agent.chat_stream("Like it!"))
    assert ran == [3]
    assert [event.reason for event in events if isinstance(event, AgentErrorEvent)] == ["repeated-call"] * 3
