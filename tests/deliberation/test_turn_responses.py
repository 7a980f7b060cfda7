"""What tools are given and return in a turn, what a response is, and which notes come to mind."""

from datetime import date
from typing import Literal

from pydantic import BaseModel
from turn_events import call, finished, kept, no_answer, says, scripted, started, talk, thinks, thought

from prism_mesa.deliberation import (
    Message,
    ThoughtContent,
)

# -- tools ---------------------------------------------------------------------------------------------


def test_tools_receive_parameters_of_their_types_and_events_what_the_llm_gave(garden):
    given = {"litres": "2.5", "beds": ["1", 2], "day": "2026-05-01"}
    with talk(scripted(thought("Dry.", call("water", **given)), "Done.", thought("Fine.")), garden) as agent:
        events = list(agent.chat_stream("Water, please"))
    assert garden.done == [("water", 2.5, [1, 2], date(2026, 5, 1))]
    assert events[1:3] == [
        started("reasoning_1_1", "water", **given),
        finished("reasoning_1_1", "water", "done", **given),
    ]


# -- what a response is --------------------------------------------------------------------------------


class Verse(BaseModel):
    line: str
    mood: Literal["glad", "sad"] = "glad"


def test_a_response_can_have_a_form():
    llm = scripted(thought("Hm."), '{"line": "O bean!"}', thought("Fine."))
    with talk(llm, response_type=Verse) as agent:
        events = list(agent.chat_stream("Sing!"))
    assert events == [thinks("Hm."), says('{"line":"O bean!","mood":"glad"}'), thinks("Fine.")]
    assert agent.response == Verse(line="O bean!", mood="glad")
    assert 'Your response: <<< {"line":"O bean!","mood":"glad"} >>>' in llm.prompts[2]


def test_a_response_of_another_form_or_of_no_use_ends_the_turn():
    def is_sad(verse):
        return verse.mood == "sad"

    for answers, reason in ((["O bean!"] * 2, "unparsable"), (['{"line": "O bean!"}'] * 2, "irrelevant")):
        with talk(scripted(thought("Hm."), *answers), response_type=Verse, accept=is_sad, accept_rule="sad") as agent:
            assert list(agent.chat_stream("Sing!")) == [thinks("Hm."), no_answer(reason, "response")]
            assert agent.response is None


# -- what comes to mind --------------------------------------------------------------------------------


def test_notes_come_to_mind_are_kept_as_thoughts_and_stand_in_the_prompts():
    asked = []

    def recall(text):
        asked.append(text)
        return ["Bo likes chess.", "It rained."]

    llm = scripted(thought("Hm."), "Chess?", thought("Fine."))
    with talk(llm, recall=recall) as agent:
        events = list(agent.chat_stream("What shall we play?"))
    assert events == [thinks("Hm."), says("Chess?"), thinks("Fine.")]
    user, own = kept("What shall we play?", *events)
    notes = (ThoughtContent(text="Bo likes chess."), ThoughtContent(text="It rained."))
    assert agent.conversation.messages == [user, Message(role="assistant", contents=(*notes, *own.contents))]
    told = "What came before:\nYou thought: <<< Bo likes chess. >>>\nYou thought: <<< It rained. >>>\n"
    assert [told in prompt for prompt in llm.prompts] == [True, True, True]
    assert asked == ["What shall we play?"]
