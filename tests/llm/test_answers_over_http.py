"""Thoughts, fences, byte order marks, cut prompts and retries together: what is recorded is what the LLM meant."""

import json

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.domain import Post
from prism_mesa.llm import Ledger, OllamaChatClient
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
WHO = Persona("Ada Kaya", ("politics", "cooking"), "curious and calm")
THOUGHTS = ("", "A person: composing, {'next_state': 'composing'} A or B?", "scrolling")


class Played(OllamaChatClient):
    """The client over a transport in memory, which gives one reply after the other."""

    def __init__(self, replies):
        super().__init__(max_tokens=64)
        self.replies = list(replies)

    def _client_options(self):
        return super()._client_options() | {"transport": httpx.MockTransport(self.reply), "verify": True}

    def reply(self, request):
        if request.url.path == "/api/ps":
            return httpx.Response(200, json={"models": [{"model": "llama3.2:latest", "context_length": 256}]})
        return httpx.Response(200, json=self.replies.pop(0))


@st.composite
def replies(draw):
    """Draw an answer as a server sends it, and whether it can be used: it then means the option that is `meant`."""
    way = draw(st.sampled_from(["beside", "inline", "unopened"]))
    thought, fence = draw(st.sampled_from(THOUGHTS)), draw(st.sampled_from(["{}", "```json\n{}\n```", "``` {} ```"]))
    bom, is_useless = draw(st.sampled_from(["", "\ufeff"])), draw(st.sampled_from([False, False, True]))
    ends, is_cut = draw(st.booleans()), draw(st.sampled_from([False, False, False, True]))

    def reply(said):
        said = "composing or scrolling" if is_useless else said
        content = fence.format(said) if ends else ""
        if way == "inline" and thought:
            content = f"<think>{thought}{'</think>' if ends else ''}{content}"
        elif way == "unopened" and thought and ends:
            content = f"{thought}</think>\n{content}"
        message = {"role": "assistant", "content": bom + content if content else ""}
        message |= {"thinking": thought} if way == "beside" and thought else {}
        counts = {"prompt_eval_count": 130 if is_cut else 400, "eval_count": 64, "done": True}
        return {"model": "llama3.2", "message": message, "done_reason": "stop" if ends else "length"} | counts

    return reply, ends and not is_useless and not is_cut, is_cut


@settings(deadline=None, max_examples=60)
@given(st.lists(replies(), min_size=3, max_size=3), st.permutations((C, S)), st.sampled_from((C, S)), st.booleans())
def test_what_is_recorded_is_what_the_llm_meant_or_nothing(tmp_path_factory, drawn, options, meant, as_name):
    said = meant.value if as_name else json.dumps({"next_state": meant.value})
    post = Post(text="The library stays open on Saturdays, says the council, and all are happy about it. " * 4)
    asked = PlacedQuestion(Question(WHO, AgentState.EVALUATING, "decides", tuple(options), post), agent=1)
    usable = [is_usable for _, is_usable, _ in drawn]
    cuts = [is_cut for *_, is_cut in drawn]
    # a cut prompt is not asked again: it would be cut again
    first = next((at for at in range(3) if usable[at] or cuts[at]), 2)
    with Ledger(tmp_path_factory.mktemp("l") / "l.sqlite") as ledger:
        client = Played(reply(said) for reply, *_ in drawn)
        with Reasoner(client, attempts=3, backoff_s=0) as reasoner:
            reasoner.record(ledger, "run")
            [answer] = reasoner.answer([asked])
        stored = [row.choice for row in ledger.answers()]
    assert answer.attempts == first + 1
    assert (answer.source == "llm") == usable[first]
    assert stored == ([meant.value] if usable[first] else [])
    assert answer.source == "fallback" or answer.choice is meant
    assert (answer.reason == "cut-prompt") == cuts[first]
