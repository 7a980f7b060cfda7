"""A turn that nobody listens to any more, that is entered twice or that was given nothing."""

import asyncio

import pytest
from turn_events import kept, nobody, says, scripted, talk, thinks, thought
from turn_paths import ANSWERS, PATHS

from prism_mesa.errors import AgentError

# -- stopping to listen --------------------------------------------------------------------------------


EVENTS = PATHS["self-correction"][2]


# by how many events were read: how often the LLM was asked, how many tools were run
SO_FAR = [(0, 0), (1, 0), (1, 0), (1, 1), (2, 1), (3, 1), (3, 1), (3, 2), (4, 2), (5, 2)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 9])
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


def test_two_turns_at_once_are_an_error_and_the_first_goes_on(garden):
    llm = scripted(*ANSWERS)
    with talk(llm, garden) as agent:
        stream = agent.chat_stream("What grows here?")
        other = agent.chat_stream("And there?")
        first = next(stream)
        with pytest.raises(AgentError, match="another turn"):
            next(other)
        with pytest.raises(AgentError, match="respond: another turn"):
            asyncio.run(agent.respond("And there?"))
        assert [first, *stream] == EVENTS
        assert agent.conversation.messages == kept("What grows here?", *EVENTS)


@pytest.mark.parametrize("nothing", ["  \n", None])
def test_a_blank_input_is_an_error_at_once(nothing):
    with talk(nobody) as agent:
        with pytest.raises(AgentError, match=r"chat_stream: .* is empty or not a string"):
            agent.chat_stream(nothing)
        with pytest.raises(AgentError, match=r"respond: .* is empty or not a string"):
            asyncio.run(agent.respond(nothing))
        assert agent.conversation.messages == []
