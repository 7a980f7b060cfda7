"""Options of closed questions, by letters and by how much likelier a text makes them: asked for, read back, kept."""

import json
import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.errors import ConfigError, LLMFailureException, OracleError
from prism_mesa.llm import (
    AnswerStore,
    Completion,
    FunctionClient,
    Ledger,
    LLMClient,
    LLMParams,
    LLMRequest,
    OllamaChatClient,
    RunPosition,
    StoredAnswer,
    UselessAnswerError,
)
from prism_mesa.llm.clients.recorded import recorded_client
from prism_mesa.llm.formats.association import AssociationScore
from prism_mesa.llm.formats.multiple_choice import MultipleChoice, recordable
from prism_mesa.llm.stand_in import Said, StandIn, Token
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.reasoner.replayed import recorded_oracle

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


@pytest.mark.parametrize("first", range(3))
def test_an_llm_that_prefers_a_letter_whatever_it_stands_for_is_evened_out_over_all_turns(first):
    raw = json.dumps({"top_logprobs": {"A": math.log(0.8), "B": math.log(0.15), "C": math.log(0.05)}})
    shown = MultipleChoice(TEA, first).read(raw)
    assert shown[first] == pytest.approx(0.8)
    over_turns = [sum(MultipleChoice(TEA, turn).read(raw)[place] for turn in range(3)) / 3 for place in range(3)]
    assert over_turns == pytest.approx([1 / 3] * 3)


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
        ("a", "unparsable"),
        ("A or B", "unparsable"),
        ("", "unparsable"),
        ("[1]", "unparsable"),
        ("{}", "no-option"),
        ('{"gin": 1}', "no-option"),
        ('{"tea": 1, "coffee": "some"}', "no-option"),
        ('{"tea": 1, "coffee": -1}', "no-option"),
        ("tea or coffee", "unparsable"),
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
    said = form.heard(Completion("?", top_logprobs=(tops,)))
    assert form.read(said.text) == pytest.approx([weight / sum(weights) for weight in weights])


def test_options_of_states_and_of_texts_are_read_by_one_rule():
    said = Completion("...", 9, 3, 1.0, ((("Well", -0.01),), ((" B", math.log(0.7)), ("A", math.log(0.2)))))
    kept = recordable(said, 2)
    assert (kept.prompt_tokens, kept.completion_tokens, kept.latency_ms, kept.top_logprobs) == (9, 3, 1.0, ())
    assert MultipleChoice(("x", "y")).read(kept.text) == pytest.approx((2 / 9, 7 / 9))
    assert recordable(Completion("A"), 2) == Completion("A")


# -- asked for beside forms and plain text ------------------------------------------------------------


def test_log_probabilities_are_asked_for_with_no_schema_and_of_other_forms_not():
    llm = Likes({"tea": 0.5, "coffee": 0.3, "water": 0.2})
    with LLMClient(llm) as client:
        answer(client, MultipleChoice(TEA))
        client.answer([LLMRequest("Say anything.", str)])
    assert llm.asked == [(prompt_of(MultipleChoice(TEA)), None, 0, 20), ("Say anything.", None, 0, 0)]


def test_options_texts_and_turns_have_keys_of_their_own():
    wanted = [LLMRequest("Which?", MultipleChoice(texts)) for texts in permutations(TEA)]
    wanted += [LLMRequest("Which?", MultipleChoice(TEA[:2])), LLMRequest("Which?", str)]
    assert len({one.options for one in wanted}) == len(wanted)
    assert (
        LLMRequest("Which?", MultipleChoice(TEA, 1)).options
        == LLMRequest("Which?", MultipleChoice(("coffee", "water", "tea"))).options
    )


def test_an_answer_is_replayed_from_what_was_recorded(tmp_path):
    form, place = MultipleChoice(TEA, 2), RunPosition(0, 7, 3)
    with Ledger(tmp_path / "d.sqlite") as ledger:
        with LLMClient(Likes({"tea": 0.5, "coffee": 0.3, "water": 0.2})) as client:
            client.record(ledger, "scope/run")
            first = answer(client, form, place=place)
        [row] = ledger.answers()
    assert json.loads(row.raw)["top_logprobs"] == pytest.approx(
        {"A": math.log(0.2), "B": math.log(0.5), "C": math.log(0.3)}
    )
    assert json.loads(row.options) == ["lettered", '["water", "tea", "coffee"]']
    silent = Likes({})
    books = AnswerStore("replay", Ledger(tmp_path / "d.sqlite", read_only=True))
    with LLMClient(silent, books=books) as client:
        client.books.run = "scope/again"
        assert answer(client, form, place=place) == first
    assert silent.asked == []


def test_a_useless_answer_is_asked_again_and_then_named():
    replies = ["I would rather not", "B", "no", "no"]
    with LLMClient(lambda prompt: replies.pop(0)) as client:
        assert answer(client, MultipleChoice(TEA)) == (0.0, 1.0, 0.0)
        failed = answer(client, MultipleChoice(TEA[:2]))
    assert isinstance(failed, LLMFailureException)
    assert (failed.reason, failed.attempts) == ("unparsable", 2)


def test_probabilities_can_be_refused_as_answers_of_other_forms_can():
    wanted = LLMRequest("Which?", MultipleChoice(TEA[:2]), accept=lambda shares: max(shares) < 1, accepts="unsure")
    with LLMClient(FunctionClient(lambda prompt: "A", "toy")) as client:
        [failed] = client.answer([wanted])
    assert failed.reason == "irrelevant"


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


# -- how much likelier a text makes them ---------------------------------------------------------------


class Weighing:
    """An LLM that is not talked with, and finds a text the likelier the more often it was named, and the shorter."""

    name, digest, label = "weighing", "d1", "weighing"

    def __init__(self, decoding=None):
        self.decoding, self.asked = decoding or {"temperature": 0.0}, []

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        raise OracleError("refused-request", "it does not talk")

    async def weigh(self, prompt, texts):
        self.asked.append(prompt)
        return tuple(prompt.count(text.strip()) - 2.5 * len(text) for text in texts), 7


SAYS = AssociationScore(TEA, "Someone says:")


def softmax(*scores):
    return pytest.approx([math.exp(score) / sum(map(math.exp, scores)) for score in scores])


def test_the_score_is_what_the_prompt_adds_to_what_is_likely_without_it():
    with LLMClient(Weighing()) as client:
        assert client.answer([LLMRequest("tea, tea, water. Someone says:", SAYS)]) == [softmax(2, 0, 1)]
        assert client.answer([LLMRequest("Nothing at all.", SAYS)]) == [softmax(0, 0, 0)]


def test_the_lines_of_a_prompt_are_read_apart_and_their_scores_add_up():
    llm = Weighing()
    with LLMClient(llm) as client:
        [found] = client.answer([LLMRequest("tea, tea\ncoffee, tea", AssociationScore(TEA, "I like water:"))])
    assert llm.asked == ["I like water:", "tea, tea", "coffee, tea"]
    assert found == softmax(3, 1, -2)


@given(
    st.lists(st.tuples(st.floats(-50, 0), st.floats(-50, 0)), min_size=3, max_size=3),
    st.permutations(range(3)),
    st.floats(-20, 20),
)
def test_neither_the_order_of_texts_nor_what_all_have_in_common_counts(numbers, order, common):
    raw = json.dumps({"logprob": dict(zip(TEA, numbers, strict=True))})
    shares = AssociationScore(TEA, "").read(raw)
    assert sum(shares) == pytest.approx(1)
    assert AssociationScore(tuple(TEA[at] for at in order), "").read(raw) == pytest.approx([shares[at] for at in order])
    shifted = {text: [without, with_ + common] for text, (without, with_) in zip(TEA, numbers, strict=True)}
    assert AssociationScore(TEA, "").read(json.dumps({"logprob": shifted})) == pytest.approx(shares)


@pytest.mark.parametrize(
    "told",
    [
        "tea",
        "[1]",
        "{}",
        '{"logprob": {"tea": [-1, -2], "coffee": [-1, -2]}}',
        '{"logprob": {"tea": [], "coffee": [-1, -2], "water": [-1, -2]}}',
        '{"logprob": {"tea": [-1, true], "coffee": [-1, -2], "water": [-1, -2]}}',
        '{"logprob": {"tea": [-1, NaN], "coffee": [-1, -2], "water": [-1, -2]}}',
        '{"logprob": {"tea": [-1, -Infinity], "coffee": [-1, -2], "water": [-1, -2]}}',
        '{"logprob": {"tea": 3, "coffee": [-1, -2], "water": [-1, -2]}}',
        "[" * 9999,
    ],
)
def test_what_does_not_hold_numbers_for_each_text_is_useless(told):
    with pytest.raises(UselessAnswerError, match=r"the answer .* is not an object") as caught:
        SAYS.read(told)
    assert caught.value.reason == "unparsable"


@pytest.mark.parametrize("texts", [(), ("tea",), ("tea", "tea")])
def test_too_few_texts_or_equal_ones_cannot_be_told_apart(texts):
    with pytest.raises(ConfigError, match="needs at least 2 different texts"):
        AssociationScore(texts, "")


def test_a_client_that_cannot_weigh_texts_is_named():
    with LLMClient(lambda prompt: "tea") as client:
        [failed] = client.answer([LLMRequest("tea", SAYS)])
    assert failed.reason == "no-weights"


def test_texts_and_what_is_read_without_the_prompt_have_keys_of_their_own():
    forms = [
        SAYS,
        AssociationScore(TEA[:2], "Someone says:"),
        AssociationScore(TEA, "Nobody says:"),
        MultipleChoice(TEA),
    ]
    assert len({LLMRequest("Which?", form).options for form in forms}) == len(forms)
    name, key = LLMRequest("Which?", SAYS).options
    assert (name, json.loads(key)["method"]) == ("likelier", "pmi")


def test_weights_are_replayed_from_what_was_recorded_and_nobody_is_asked(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger, LLMClient(Weighing()) as client:
        client.record(ledger, "scope/run")
        [first] = client.answer([LLMRequest("tea", SAYS)])
        [row] = ledger.answers()
    assert json.loads(row.raw) == {"logprob": {"tea": [-10, -9], "coffee": [-17.5, -17.5], "water": [-15, -15]}}
    assert (row.prompt, row.prompt_tokens, json.loads(row.options)[0]) == ("tea", 7, "likelier")
    silent = Weighing()
    with LLMClient(silent, books=AnswerStore("replay", Ledger(tmp_path / "d.sqlite", read_only=True))) as client:
        assert client.answer([LLMRequest("tea", SAYS)]) == [first]
    assert silent.asked == []


def test_in_a_replay_weights_are_taken_neither_for_an_oracles_nor_for_a_writers(tmp_path):
    own = {"seed": 0, "build": "xllamacpp 2"}
    oracle = {"method": "pmi", "top": 200, "build": "xllamacpp 2"}
    closed, writer = {"temperature": 0.0, "max_tokens": 16, **own}, {"temperature": 0.8, "max_tokens": 64, **own}
    with Ledger(tmp_path / "d.sqlite") as ledger:
        for key, decoding in (("1", oracle), ("2", writer)):
            ledger.put(StoredAnswer(key, "?", "[]", "weighing", "d1", json.dumps(decoding), "{}"))
        with LLMClient(Weighing(closed)) as client:
            client.record(ledger, "scope/run")
            client.answer([LLMRequest("tea", SAYS)])
        asks = LLMParams(kind="embedded", temperature=0.0, max_answer_tokens=16)
        assert recorded_client(ledger, asks).decoding == closed
        writes = LLMParams(kind="embedded", temperature=0.8, max_answer_tokens=64)
        assert recorded_client(ledger, writes).decoding == writer
        assert recorded_oracle(ledger, ReasonerParams(kind="embedded")).decoding == oracle
