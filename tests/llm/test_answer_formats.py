"""Letters and texts that an LLM chooses among, and what is asked for beside them."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in import Said, StandIn, Token

from prism_mesa.errors import ConfigError
from prism_mesa.llm import (
    AnswerStore,
    Completion,
    Ledger,
    LLMClient,
    LLMParams,
    LLMRequest,
    OllamaChatClient,
    RunPosition,
    UselessAnswerError,
)
from prism_mesa.llm.multiple_choice import MultipleChoice, make_recordable

TEA = ("tea", "coffee", "water")


class Likes:
    """An LLM that gives each text its own probability, wherever the text stands."""

    name, digest, label = "likes", "d1", "likes"

    def __init__(self, shares):
        self.shares, self.decoding, self.asked = shares, {"temperature": 0.0}, []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        self.asked.append((prompt, schema, seed_offset, top_logprobs))
        lines = (line.split(". ") for line in prompt.splitlines() if line[1:3] == ". ")
        place = tuple((letter, math.log(self.shares[text])) for letter, text in lines)
        return Completion("?", 50, 1, 3.0, (place,))


def prompt_of(form):
    return f"Which?\n{form.lines}\n{form.request}"


def answer(client, form, **more):
    [found] = client.answer([LLMRequest(prompt_of(form), form, **more)])
    return found


# -- letters -------------------------------------------------------------------------------------------


def test_the_first_text_and_those_after_it_are_lettered_in_turn():
    assert [MultipleChoice(TEA, first).lines for first in range(3)] == [
        "A. tea\nB. coffee\nC. water",
        "A. coffee\nB. water\nC. tea",
        "A. water\nB. tea\nC. coffee",
    ]
    assert MultipleChoice(TEA).request == "Respond with one letter only: A, B, C"


@pytest.mark.parametrize("first", range(3))
def test_probabilities_come_back_to_the_texts_however_they_were_lettered(first):
    with LLMClient(Likes({"tea": 0.5, "coffee": 0.3, "water": 0.2})) as client:
        assert answer(client, MultipleChoice(TEA, first)) == pytest.approx((0.5, 0.3, 0.2))


@pytest.mark.parametrize("said", ["C", " C.", '"C"', "**C**\n"])
def test_an_llm_without_log_probabilities_may_say_a_letter(said):
    assert MultipleChoice(TEA, 1).read(said) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("said", ["water", ' "Water"', "`WATER`\n"])
def test_an_llm_without_log_probabilities_may_say_a_text_alone(said):
    assert MultipleChoice(TEA, 1).read(said) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("first", range(3))
def test_it_may_say_the_probabilities_of_the_texts(first):
    assert MultipleChoice(TEA, first).read('{"water": 3, "tea": 1, "gin": 7}') == (0.25, 0.0, 0.75)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("D", "unparsable"),
        ("A or B", "unparsable"),
        ("", "unparsable"),
        ("{}", "no-option"),
        ('{"gin": 1}', "no-option"),
        ('{"tea": 1, "coffee": -1}', "no-option"),
        ('{"text": "Well", "top_logprobs": {}}', "no-option"),
    ],
)
def test_what_names_no_option_is_useless(said, reason):
    with pytest.raises(UselessAnswerError, match="the answer") as caught:
        MultipleChoice(TEA).read(said)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("texts", "first", "match"),
    [
        (("tea",), 0, "needs 2 to 26 different texts"),
        ((), 0, "needs 2 to 26"),
        (("tea", "tea"), 0, "different texts"),
        (tuple(map(str, range(27))), 0, "needs 2 to 26"),
        (TEA, 3, "first: must be 0 to 2, not 3"),
        (TEA, -1, "first: must be 0 to 2"),
    ],
)
def test_texts_that_cannot_be_lettered_are_refused(texts, first, match):
    with pytest.raises(ConfigError, match=match):
        MultipleChoice(texts, first)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=26, unique=True), st.data())
def test_reading_undoes_the_turning_of_any_texts(texts, data):
    first = data.draw(st.integers(0, len(texts) - 1))
    weights = data.draw(st.lists(st.integers(1, 99), min_size=len(texts), max_size=len(texts)))
    form = MultipleChoice(tuple(texts), first)
    shown = [(first + place) % len(texts) for place in range(len(texts))]
    tops = tuple((chr(65 + at), math.log(weights[text] / sum(weights))) for at, text in enumerate(shown))
    said = make_recordable(Completion("?", top_logprobs=(tops,)), form._lettered_texts)
    assert form.read(said.text) == pytest.approx([weight / sum(weights) for weight in weights])


# -- asked for beside forms and plain text ------------------------------------------------------------


def test_an_answer_is_replayed_from_what_was_recorded(tmp_path):
    form, position = MultipleChoice(TEA, 2), RunPosition(0, 7, 3)
    with Ledger(tmp_path / "d.sqlite") as ledger:
        with LLMClient(Likes({"tea": 0.5, "coffee": 0.3, "water": 0.2})) as client:
            client.record(ledger, "scope/run")
            first = answer(client, form, position=position)
        [row] = ledger.answers()
    assert json.loads(row.raw)["top_logprobs"] == pytest.approx(
        {"A": math.log(0.2), "B": math.log(0.5), "C": math.log(0.3)}
    )
    assert json.loads(row.options) == ["lettered", '["water", "tea", "coffee"]']
    silent = Likes({})
    store = AnswerStore("replay", Ledger(tmp_path / "d.sqlite", read_only=True))
    with LLMClient(silent, store=store) as client:
        client.store.run = "scope/again"
        assert answer(client, form, position=position) == first
    assert silent.asked == []


def test_a_server_with_ollamas_protocol_tells_the_probabilities_of_letters():
    tops = (("B", math.log(0.6)), ("A", math.log(0.3)), ("C", math.log(0.1)))

    def brain(body):
        return Said("B", (Token("B", tops[0][1], tops),))

    with StandIn(brain) as server:
        chat = OllamaChatClient("llama3.2", server.url, 5.0, temperature=0.0, seed=0, max_tokens=16)
        with LLMClient(chat, LLMParams(kind="ollama")) as client:
            assert answer(client, MultipleChoice(TEA, 1)) == pytest.approx((0.1, 0.3, 0.6))
        [body] = server.requests
    assert (body["logprobs"], body["top_logprobs"], body.get("format")) == (True, 20, None)
