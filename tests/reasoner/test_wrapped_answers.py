"""Answers that name exactly one option, whatever an LLM puts around it; and what looks like one and is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_questions import C, S, question

from prism_mesa.llm.clients.base import FunctionClient
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.reasoner.oracle import ChatOracle

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
        "composing?",
        '["composing"]',
        '{"next_state": "composing"}{"next_state": "scrolling"}',
        '{"next_state": "composing", "next_state": "scrolling"}',
        "```\ncomposing\n```\nor\n```\nscrolling\n```",
        "<think>A</think>B</think>A",
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
    with pytest.raises(UselessAnswerError, match="nothing but a thought") as caught:
        chosen(form, said)
    assert caught.value.reason == "thought"
