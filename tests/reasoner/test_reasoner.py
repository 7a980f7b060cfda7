"""The reasoner: one agent, and a batch."""

import asyncio
import logging
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from asked_reasoners import POST, C, S, Script, ask, says

from prism_mesa.errors import OracleError
from prism_mesa.llm import Completion
from prism_mesa.reasoner import DistilledModel, DistilledReasoner, Reasoner, RuleReasoner, asks_llm, is_distilled
from prism_mesa.reasoner.distilled import LinearScore, OptionModel
from prism_mesa.reasoner.features import DECLARATION, LINEAR_NAMES, NAMES
from prism_mesa.statechart import AgentState

ANN = SimpleNamespace(name="Ann", interests=["art"], personality="Calm.")


def decide(reasoner, options=(C, S), agent=ANN, context=POST):
    return asyncio.run(reasoner.decide(agent, AgentState.EVALUATING, "decides", list(options), context))


# -- one agent ---------------------------------------------------------------------------------------


def test_a_plain_function_can_play_the_llm():
    assert decide(Reasoner(lambda prompt: says(S) if "Rain" in prompt else says(C))) is S


def test_an_async_function_can_play_the_llm():
    async def llm(prompt):
        await asyncio.sleep(0)
        return says(S)

    assert decide(Reasoner(llm)) is S


def test_no_options_are_an_error():
    with pytest.raises(ValueError, match="no options for 'decides'"):
        decide(Reasoner(Script()), options=())


def test_a_single_option_is_taken_without_asking():
    reasoner = Reasoner(Script())
    assert decide(reasoner, options=[S]) is S
    assert reasoner.counts == Counter()


FAILURES = [
    ("Sure, let me scroll!", "unparsable"),
    ('{"next_state": "resting"}', "invalid-state"),
    ("   ", "empty"),
    (None, "empty"),
    (TimeoutError(), "timeout"),
    (OracleError("busy", "the queue is full"), "busy"),
    (RuntimeError("my own bug"), "RuntimeError"),
]


@pytest.mark.parametrize(("reply", "reason"), FAILURES)
def test_whatever_goes_wrong_is_logged_counted_by_reason_and_ends_in_the_first_option(reply, reason, caplog):
    reasoner = Reasoner(Script(reply), attempts=1)
    assert decide(reasoner) is C
    [record] = caplog.records
    assert (record.name, record.levelno) == ("prism_mesa.reasoner", logging.WARNING)
    assert f"Ann, decides in evaluating: fallback 'first' ({reason}" in record.message
    assert reasoner.counts == {"fallback": 1}
    assert reasoner.reasons == {reason: 1}


def test_the_fallback_stay_leaves_the_agent_where_it_is():
    reasoner = Reasoner(Script("useless", "useless"), fallback="stay", attempts=1)
    assert decide(reasoner) is AgentState.EVALUATING
    [answer] = asyncio.run(reasoner.answer_all([ask()]))
    assert (answer.choice, answer.source, answer.reason) == (None, "fallback", "unparsable")


def test_the_fallback_rule_uses_the_asks_own_draw():
    reasoner = Reasoner(Script("useless"), fallback="rule", attempts=1)
    asks = [ask(draw=0.01), ask(draw=0.99)]
    assert [answer.choice for answer in asyncio.run(reasoner.answer_all(asks))] == [C, S]
    assert [answer.choice for answer in RuleReasoner().answer(asks)] == [C, S]
    assert reasoner.counts == {"fallback": 2}


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(TypeError, match="is not an LLM client: give a client"):
        Reasoner("llama3.2")


def test_a_client_of_ones_own_needs_a_name_its_decoding_and_chat():
    class Parrot:
        name = "parrot"
        decoding = {"temperature": 0}  # noqa: RUF012

        async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
            assert schema["properties"]["next_state"]["enum"] == ["composing", "scrolling"]
            return Completion(says(S), 10, 5)

    reasoner = Reasoner(Parrot())
    assert decide(reasoner) is S
    assert reasoner.label == "parrot"


# -- a batch -----------------------------------------------------------------------------------------


def test_within_a_round_a_failure_is_shared_by_later_ticks_and_the_next_round_asks_again():
    llm = Script("useless", says(S))
    with Reasoner(llm, attempts=1) as reasoner:
        places = [(1, 0, 4), (1, 3, 5), (2, 0, 4), (2, 1, 5)]
        answers = [reasoner.answer([ask(round=r, tick=t, agent=a)])[0] for r, t, a in places]
    assert [(a.source, a.reason, a.attempts) for a in answers] == [
        ("fallback", "unparsable", 1),
        ("fallback", "unparsable", 0),
        ("llm", "", 1),
        ("cache", "", 0),
    ]
    assert reasoner.reasons == {"unparsable": 2}


def test_relevance_is_not_told_so_it_makes_no_other_question():
    llm = Script(says(S))
    posts = [replace(POST, relevance=relevance, post_id=i) for i, relevance in enumerate((0.45, 0.55))]
    asyncio.run(Reasoner(llm).answer_all([ask(post=post) for post in posts]))
    assert len(llm.prompts) == 1


# -- kinds ---------------------------------------------------------------------------------------------


class Moody(RuleReasoner):
    """A rule of a user's own."""


def learned():
    facts = {"features": list(NAMES), "declaration": DECLARATION, "persona": "individual", "archetypes": 1}
    options = [AgentState.COMPOSING, AgentState.SCROLLING]
    scores = [LinearScore(intercept=0.2, weights=[0.0] * len(LINEAR_NAMES))]
    facts |= {"choices": [OptionModel(options=options, scores=scores, rows=1)], "provenance": {}, "report": {}}
    return DistilledReasoner(DistilledModel(format=1, kind="logistic", **facts))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (RuleReasoner, (False, False)),
        (Moody, (False, False)),
        (learned, (False, True)),
        (lambda: Reasoner(lambda prompt: "composing"), (True, False)),
    ],
)
def test_one_asks_and_one_has_learned(make, expected):
    reasoner = make()
    assert (asks_llm(reasoner), is_distilled(reasoner)) == expected


def test_nobody_has_learned_nothing():
    assert not is_distilled(None)
