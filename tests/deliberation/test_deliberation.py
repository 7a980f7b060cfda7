"""Every path through the loop: think, call tools, respond, think about the response. Its events are compared whole."""

import asyncio

import pytest
from turn_events import Garden, finished, kept, quick, says, scripted, started, talk, thinks, thought
from turn_paths import LOOK, MEND, NO_LOOK, OTHER, PATHS, SPENT

from prism_mesa.deliberation import (
    AgentTextEvent,
    Conversation,
    DeliberationParams,
    Limits,
    ToolRegistry,
    TurnContext,
    run_turns,
    start_turn,
)
from prism_mesa.errors import ConfigError

# -- every path ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATHS)
def test_each_path_has_its_events_and_the_conversation_keeps_what_was_streamed(name, garden):
    limits, answers, expected = PATHS[name]
    llm = scripted(*answers)
    with quick(llm) as client:
        agent = talk(client, garden, limits=Limits(**limits))
        assert list(agent.chat_stream("What grows here?")) == expected
    about = ("user",) if isinstance(expected[0], AgentTextEvent) else ("assistant",)
    assert agent.conversation.messages == kept("What grows here?", *expected, about=about)
    assert llm.left == []
    said = [event.text for event in expected if isinstance(event, AgentTextEvent) and event.type == "text"]
    assert agent.response == (said[-1] if said else None)


@pytest.mark.parametrize("name", PATHS)
def test_callers_that_await_and_callers_of_many_turns_get_the_same(name):
    limits, answers, expected = PATHS[name]
    response = [event.text for event in expected if isinstance(event, AgentTextEvent) and event.type == "text"][-1:]
    with quick(scripted(*answers)) as client:
        agent = talk(client, Garden(), limits=Limits(**limits))
        assert asyncio.run(agent.respond("What grows here?")) == ((response or [None])[0], expected)
        by_respond = agent.conversation.messages
    events, conversation = [], Conversation()
    context = TurnContext(tools=Garden().tools, limits=Limits(**limits))
    with quick(scripted(*answers)) as client:
        turn = start_turn("What grows here?", conversation, context)
        assert run_turns(client, [turn], lambda place, event: events.append(event)) == (response or [None])
    assert (events, conversation.messages) == (expected, by_respond)


def test_when_the_time_is_up_it_calls_nothing_thinks_no_further_and_responds(garden):
    now = [100.0]
    slow = ToolRegistry(timeout_s=None)

    @slow.tool
    def look(bed: int) -> str:
        """Look, for two seconds."""
        now[0] += 2
        return "tomatoes"

    llm = scripted(thought("Hm.", LOOK, OTHER, MEND), "Tomatoes.")
    events, context = [], TurnContext(tools=slow, limits=Limits(seconds=4))
    with quick(llm) as client:
        turn = start_turn("Well?", Conversation(), context, clock=lambda: now[0])
        assert run_turns(client, [turn], lambda place, event: events.append(event)) == ["Tomatoes."]
    assert events == [
        thinks("Hm.", LOOK, OTHER, MEND),
        started("reasoning_1_1", "look", bed=1),
        finished("reasoning_1_1", "look", "tomatoes", bed=1),
        started("reasoning_1_2", "look", bed=2),
        finished("reasoning_1_2", "look", "tomatoes", bed=2),
        NO_LOOK,
        says("Tomatoes."),
        SPENT,
    ]


def test_tokens_are_those_of_the_prompts_and_of_the_answers():
    """A limit that the first two prompts and their answers just reach stops the turn; one more token does not."""

    def bytes_of(text):
        return -(-len(text.encode()) // 4)

    answers = [thought("Hm."), "Yes.", thought("Fine.")]
    llm = scripted(*answers)
    with talk(llm) as agent:
        list(agent.chat_stream("Well?"))
    compact = (
        '{"understanding":"Hm.","needs":"","connection":"","plan":"Answer.","verdict":"continue","proposed_tools":[]}'
    )
    spent = sum(map(bytes_of, [llm.prompts[0], compact, llm.prompts[1], "Yes."]))
    ends = {}
    for tokens in (spent, spent + 1):
        with talk(scripted(*answers), limits=Limits(tokens=tokens)) as agent:
            ends[tokens] = list(agent.chat_stream("Well?"))[-1]
    assert ends == {spent: SPENT, spent + 1: thinks("Fine.")}


def test_a_turn_without_an_iteration_could_not_respond():
    with pytest.raises(ConfigError, match="limits: iterations: must be at least 1, not 0"):
        Limits(iterations=0)
    with pytest.raises(ValueError, match="iterations"):
        DeliberationParams(iterations=0)
