"""The oracle: choices and probabilities that an LLM says."""

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_questions import REST, C, Logged, S, question

from prism_mesa.llm import Completion, FunctionClient, UselessAnswerError
from prism_mesa.llm.multiple_choice import make_recordable
from prism_mesa.reasoner import ChatOracle, answer_schema, question_prompt


def probabilities(oracle, asked):
    said = asyncio.run(oracle.ask(oracle.write(asked), asked))
    return oracle.read(asked, said.text)


def of_letters(*places, options=(C, S)):
    return probabilities(ChatOracle(Logged(*places), "probabilities"), question(options))


# -- a choice --------------------------------------------------------------------------------------------


def test_for_a_choice_the_client_is_held_to_the_options_and_the_next_seed():
    client = Logged(text='{"next_state": "scrolling"}')
    oracle, asked = ChatOracle(client), question()
    said = asyncio.run(oracle.ask(oracle.write(asked), asked, 2))
    assert client.asked == [(question_prompt(asked), answer_schema((C, S)), 2, 0)]
    assert oracle.read(asked, said.text) == (0.0, 1.0)


def test_a_choice_outside_the_options_is_useless():
    with pytest.raises(UselessAnswerError, match="invalid state 'resting'") as caught:
        ChatOracle(Logged()).read(question(), '{"next_state": "resting"}')
    assert caught.value.reason == "invalid-state"


def test_an_oracle_has_the_name_digest_and_label_of_its_client_and_the_form_in_its_decoding():
    oracle = ChatOracle(Logged(), "probabilities")
    assert (oracle.name, oracle.digest, oracle.label) == ("logged", "d7", "Logged at home")
    assert oracle.decoding == {"temperature": 0, "max_tokens": 16, "answer": "probabilities"}


# -- probabilities -----------------------------------------------------------------------------------------


def test_for_probabilities_one_letter_is_asked_for_with_the_twenty_likeliest_tokens():
    client = Logged({"A": 0.5, "B": 0.5})
    oracle, asked = ChatOracle(client, "probabilities"), question()
    said = asyncio.run(oracle.ask(oracle.write(asked), asked, 1))
    assert client.asked == [(question_prompt(asked, lettered=True), None, 1, 20)]
    assert (said.prompt_tokens, said.completion_tokens, said.latency_ms) == (90, 1, 5.0)
    assert json.loads(said.text) == {"text": "A", "top_logprobs": {"A": math.log(0.5), "B": math.log(0.5)}}


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"A": 0.6, "B": 0.3, "C": 0.1}, (2 / 3, 1 / 3)),
        ({" A": 0.4, "A": 0.2, '"A"': 0.1, "a": 0.1, "B": 0.1, " b": 0.1}, (7 / 8, 1 / 8)),
        ({"(A)": 0.3, "A.": 0.3, "**B**": 0.4}, (0.6, 0.4)),
        ({"B": 0.5, "A": 0.25, "Sure": 0.25}, (1 / 3, 2 / 3)),
        ({"A": 0.5, "Apple": 0.3, "AB": 0.1, "B": 0.1}, (5 / 6, 1 / 6)),
        ({"A": 1.0, "B": 0.0}, (1.0, 0.0)),
    ],
)
def test_the_probabilities_are_those_of_the_letters_however_they_are_spelled(place, expected):
    assert of_letters(place) == pytest.approx(expected)


def test_a_letter_that_is_not_among_the_likeliest_counts_as_the_least_likely_of_these():
    assert of_letters({"A": 0.6, "x": 0.1, "y": 0.05}) == pytest.approx((0.6 / 0.65, 0.05 / 0.65))
    three = of_letters({"B": 0.5, "x": 0.2}, options=(C, S, REST))
    assert three == pytest.approx((0.2 / 0.9, 0.5 / 0.9, 0.2 / 0.9))


def test_a_letter_cannot_count_more_than_what_the_likeliest_leave_of_one():
    assert of_letters({"A": 0.9}) == pytest.approx((0.9, 0.1))
    assert of_letters({"A": 0.7, "x": 0.299}) == pytest.approx((0.7 / 0.701, 0.001 / 0.701))
    assert of_letters({"B": 1.0}) == (0.0, 1.0)


@pytest.mark.parametrize("said", ["A. composing? No, B", "A. composing. Or rather B.", "B. scrolling, not A", "A, B"])
def test_a_letter_that_is_followed_by_another_is_useless(said):
    answer = make_recordable(Completion(said, top_logprobs=((("A", -0.1), ("B", -2.5)),)), ["composing", "scrolling"])
    with pytest.raises(UselessAnswerError, match="names no option"):
        ChatOracle(Logged(), "probabilities").read(question(), answer.text)


def test_the_first_place_with_a_letter_decides():
    assert of_letters({"Answer": 0.9, "The": 0.1}, {":": 1.0}, {"B": 0.75, "A": 0.25}, {"A": 1.0}) == pytest.approx(
        (0.25, 0.75)
    )


@pytest.mark.parametrize("places", [({"Sure": 0.9, "!": 0.1},), ({"C": 0.5, "Z": 0.5},), ({},)])
def test_log_probabilities_without_any_letter_are_useless(places):
    with pytest.raises(UselessAnswerError, match=r"names no option \(allowed: composing, scrolling\)") as caught:
        of_letters(*places)
    assert caught.value.reason == "invalid-state"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"composing": 0.7, "scrolling": 0.3}', (0.7, 0.3)),
        ('{"composing": 3, "scrolling": 1, "resting": 99}', (0.75, 0.25)),
        ('{"scrolling": 1e-3}', (0.0, 1.0)),
        ('{"composing": 2, "scrolling": 0, "top_logprobs": []}', (1.0, 0.0)),
        ('{"composing": 1, "scrolling": 1, "resting": "never"}', (0.5, 0.5)),
        ("composing", (1.0, 0.0)),
        (" 'Scrolling'\n", (0.0, 1.0)),
        ("B", (0.0, 1.0)),
    ],
)
def test_a_function_may_say_the_probabilities_themselves(said, expected):
    assert ChatOracle(FunctionClient(str), "probabilities").read(question(), said) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("C", "unparsable"),
        ("", "unparsable"),
        ("{}", "invalid-state"),
        ('{"composing": 0, "scrolling": 0}', "invalid-state"),
        ('{"composing": 2, "scrolling": -5}', "invalid-state"),
        ('{"composing": true, "scrolling": 1}', "invalid-state"),
        ('{"composing": Infinity, "scrolling": 1}', "invalid-state"),
        ('{"composing": 1' + "0" * 400 + ', "scrolling": 1}', "invalid-state"),
        ('{"top_logprobs": {"A": NaN, "B": -0.1}}', "invalid-state"),
        ('{"top_logprobs": {"A": 0.7, "B": 0.3}}', "invalid-state"),
        ('{"composing": 1e308, "scrolling": 1e308}', "invalid-state"),
        ('{"top_logprobs": {"A": -1' + "0" * 400 + "}}", "invalid-state"),
    ],
)
def test_what_holds_no_probability_of_an_option_is_useless(said, reason):
    with pytest.raises(UselessAnswerError) as caught:
        ChatOracle(FunctionClient(str), "probabilities").read(question(), said)
    assert caught.value.reason == reason


KEYS = ["composing", "scrolling", "top_logprobs", "A", "B", " a"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["A", "B", "composing"]) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)


@given(st.text().map(repr) | JSON.map(json.dumps), st.sampled_from(["choice", "probabilities"]))
def test_whatever_is_said_is_probabilities_of_the_options_or_useless(said, form):
    try:
        found = ChatOracle(FunctionClient(str), form).read(question(), said)
    except UselessAnswerError:
        return
    assert len(found) == 2
    assert all(0 <= p <= 1 for p in found)
    assert sum(found) == pytest.approx(1)


PROSE = (
    [{"The": 0.9, " a": 0.09, "A": 0.01}, {" answer": 1.0}, {" is": 1.0}, {" B": 0.98, " A": 0.02}],
    [{"\n": 0.98, "A": 0.01, "B": 0.01}, {"B": 0.98, "A": 0.02}],
)


@pytest.mark.parametrize("places", PROSE)
def test_the_place_counts_at_which_the_llm_names_a_letter_not_one_at_which_it_might(places):
    assert of_places(places) == pytest.approx((0.02, 0.98))


def test_an_llm_that_talks_and_names_no_letter_has_given_no_answer():
    with pytest.raises(UselessAnswerError, match="names no option"):
        of_places([{"I": 0.99, " a": 0.005, "A": 0.001}, {" cannot": 0.9, "B": 0.1}])


def of_places(places):
    return probabilities(ChatOracle(Logged(*places, text="..."), "probabilities"), question())


# -- what stands around an answer ------------------------------------------------------------------------

FORMS = ("choice", "probabilities")
NAMED = {
    "choice": (
        "{}",
        '{{"next_state": "{}"}}',
        '{{"why": "tired of A", "next_state": "{}"}}',
        "**{}**",
        "`{}`.",
        "({})",
    ),
    "probabilities": ("{}", '{{"next_state": "{}"}}', '{{"answer": "{}"}}', "**{}**", '"{}"!', "_{}_"),
}
THOUGHTS = ("<think>A person likes this: composing.</think>", "<thinking>B?</thinking>\n", "<think></think>\n\n", "")
UNOPENED = "Either A or composing, I choose A.\n</think>\n\n"
FENCES = ("```json\n{}\n```", "```\n{}\n```", "``` {} ```", "{}")


def chosen(form, said, options=(C, S)):
    shares = ChatOracle(FunctionClient(str), form).read(question(options), said)
    return options[shares.index(1.0)]


@given(
    st.sampled_from(FORMS), st.data(), st.sampled_from((*THOUGHTS, UNOPENED)), st.sampled_from(FENCES),
    st.booleans(), st.booleans(), st.permutations((C, S)), st.sampled_from((C, S)), st.sampled_from(("", " ", "\n")),
)  # fmt: skip
def test_one_option_is_read_whatever_stands_around_it(form, data, thought, fence, inside, bom, options, meant, blank):
    said = data.draw(st.sampled_from(NAMED[form])).format(meant.value)
    said = fence.format(thought + said) if inside and thought is not UNOPENED else thought + fence.format(said)
    assert chosen(form, ("\ufeff" if bom else "") + blank + said + blank, tuple(options)) is meant


@given(st.sampled_from(THOUGHTS), st.sampled_from(FENCES), st.permutations((C, S)), st.sampled_from((C, S)))
def test_a_letter_is_read_where_the_options_have_letters_and_nowhere_else(thought, fence, options, meant):
    said = thought + fence.format("**" + "AB"[options.index(meant)] + "**")
    assert chosen("probabilities", said, tuple(options)) is meant
    with pytest.raises(UselessAnswerError):
        chosen("choice", said, tuple(options))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "said",
    [
        "I would not choose composing; I choose scrolling",
        "A or B",
        "not composing",
        '["composing"]',
        '{"next_state": "composing"}{"next_state": "scrolling"}',
        '{"next_state": "composing", "next_state": "scrolling"}',
        "composing <think>no</think> scrolling",
        "a",
    ],
)
def test_what_names_no_option_or_several_is_refused(form, said):
    with pytest.raises(UselessAnswerError):
        chosen(form, said)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", ["<think>composing", "<think>A</think>", "\ufeff<thinking>A or B", "</think> "])
def test_a_thought_alone_is_no_answer_and_has_a_name(form, said):
    with pytest.raises(UselessAnswerError, match="is only a thought") as caught:
        chosen(form, said)
    assert caught.value.reason == "thought"
