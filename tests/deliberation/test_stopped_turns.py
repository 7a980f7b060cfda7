"""A turn that nobody listens to any more, that is entered twice or that was given nothing."""

import asyncio
import gc

import pytest
from turn_events import call, kept, nobody, says, scripted, talk, thinks, thought
from turn_paths import ANSWERS, PATHS

from prism_mesa.deliberation import (
    ToolFinishedEvent,
    ToolRegistry,
)
from prism_mesa.errors import AgentError

# -- stopping to listen --------------------------------------------------------------------------------


EVENTS = PATHS["self-correction"][2]


# by how many events were read: how often the LLM was asked, how many tools were run
SO_FAR = [(0, 0), (1, 0), (1, 0), (1, 1), (2, 1), (3, 1), (3, 1), (3, 2), (4, 2), (5, 2)]


@pytest.mark.parametrize("n", range(len(EVENTS) + 1))
def test_who_stops_listening_stops_the_turn(n, garden):
    llm = scripted(*ANSWERS)
    with talk(llm, garden) as agent:
        stream = agent.chat_stream("What grows here?")
        assert (llm.prompts, agent.conversation.messages) == ([], [])  # nothing happens before it is asked for
        assert [next(stream) for _ in range(n)] == EVENTS[:n]
        stream.close()
        assert (len(llm.prompts), len(garden.done)) == SO_FAR[n]
        before = kept("What grows here?", *EVENTS[:n]) if n else []
        assert agent.conversation.messages == before
        assert agent.response is None

        llm.left[:] = [thought("Go on."), "Where was I?", thought("There.")]
        again = [thinks("Go on."), says("Where was I?"), thinks("There.")]
        assert list(agent.chat_stream("And?")) == again
        assert agent.conversation.messages == [*before, *kept("And?", *again)]
        assert agent.response == "Where was I?"

        llm.left[:] = [thought("And now?")]
        stream = agent.chat_stream("And now?")
        next(stream)
        stream.close()
        assert agent.response is None


@pytest.mark.slow
def test_a_stream_that_is_forgotten_or_broken_off_by_an_error_is_stopped(garden):
    def listen(agent):
        for event in agent.chat_stream("What grows there?"):
            raise RuntimeError("the listener's own", event)

    llm = scripted(*ANSWERS, *ANSWERS)
    with talk(llm, garden) as agent:
        for _ in agent.chat_stream("What grows here?"):
            break
        gc.collect()
        llm.left[:] = ANSWERS
        with pytest.raises(RuntimeError, match="the listener's own"):
            listen(agent)
        gc.collect()
        llm.left[:] = ANSWERS
        garden.done.clear()
        assert list(agent.chat_stream("And where?")) == EVENTS
        assert garden.done == [("look", 1), ("look", 2)]


def test_two_turns_at_once_are_an_error_and_the_first_goes_on(garden):
    llm = scripted(*ANSWERS)
    with talk(llm, garden) as agent:
        stream = agent.chat_stream("What grows here?")
        other = agent.chat_stream("And there?")
        first = next(stream)
        with pytest.raises(AgentError, match="another turn is still going on: read it to its end, or close it"):
            next(other)
        with pytest.raises(AgentError, match="respond: another turn is still going on"):
            asyncio.run(agent.respond("And there?"))
        assert [first, *stream] == EVENTS
        assert agent.conversation.messages == kept("What grows here?", *EVENTS)


def test_two_turns_at_once_are_an_error_for_callers_that_await_too():
    async def llm(prompt):
        await asyncio.sleep(0)
        return thought("Hm.") if prompt.endswith("as JSON:") else "Yes."

    async def both():
        return await asyncio.gather(agent.respond("One?"), agent.respond("Two?"), return_exceptions=True)

    with talk(llm) as agent:
        (response, events), failed = asyncio.run(both())
        assert (response, events) == ("Yes.", [thinks("Hm."), says("Yes."), thinks("Hm.")])
        assert isinstance(failed, AgentError)
        assert agent.conversation.messages == kept("One?", *events)
        assert asyncio.run(agent.respond("Two?"))[0] == "Yes."


@pytest.mark.parametrize("nothing", ["", "  \n", None, 7])
def test_a_blank_input_is_an_error_at_once(nothing):
    with talk(nobody) as agent:
        with pytest.raises(AgentError, match=r"chat_stream: .* is no text"):
            agent.chat_stream(nothing)
        with pytest.raises(AgentError, match=r"respond: .* is no text"):
            asyncio.run(agent.respond(nothing))
        assert agent.conversation.messages == []


def test_a_tool_that_talks_to_its_own_agent_fails_and_the_turn_goes_on():
    tools = ToolRegistry(timeout_s=None)

    @tools.tool
    def ask() -> str:
        """Ask myself."""
        return str(list(agent.chat_stream("Me?")))

    with talk(scripted(thought("Hm.", call("ask")), "Well.", thought("Fine.")), tools=tools) as agent:
        events = list(agent.chat_stream("Who?"))
    assert [event.result.reason for event in events if isinstance(event, ToolFinishedEvent)] == ["AgentError"]
    assert events[-2:] == [says("Well."), thinks("Fine.")]
