"""Draws from an oracle's probabilities, and what can be an oracle."""

import json
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_questions import REST, C, Logged, S, question

from prism_mesa.domain import Post
from prism_mesa.llm import Completion, Ledger
from prism_mesa.reasoner import ChatOracle, Persona, PlacedQuestion, Question, Reasoner, ReasonerParams
from prism_mesa.reasoner.batch import select_options
from prism_mesa.reasoner.oracle import as_oracle
from prism_mesa.statechart import STATES, AgentState

# -- draws -------------------------------------------------------------------------------------------------


def kind_asks(n, draws, archetype=2):
    """Return what n agents of one kind ask about one text, each with numbers and a draw of its own."""
    return [
        PlacedQuestion(
            Question(
                Persona(f"a{i}", ("art",), "Calm.", low=0.001 * i, high=0.9, archetype=archetype),
                AgentState.EVALUATING,
                "decides",
                (C, S, REST),
                Post(post_id=i, text="Rain again", likes=i, relevance=0.3),
                ("idle -> scrolling (feed_ready)",) * (i % 3),
            ),
            agent=i,
            draw=draws[i],
        )
        for i in range(n)
    ]


def test_all_agents_of_a_kind_share_one_call_and_each_draws_for_itself():
    n, calls = 1000, []

    def llm(prompt):
        calls.append(prompt)
        return '{"composing": 0.2, "scrolling": 0.5, "resting": 0.3}'

    draws = [(i * 0.618034) % 1 for i in range(n)]
    with Reasoner(llm, answer="probabilities") as reasoner:
        answers = reasoner.answer(kind_asks(n, draws))
    assert len(calls) == reasoner.usage["calls"] == 1
    assert {answer.probabilities for answer in answers} == {(0.2, 0.5, 0.3)}
    chosen = [answer.choice for answer in answers]
    assert [chosen.count(option) / n for option in (C, S, REST)] == pytest.approx([0.2, 0.5, 0.3], abs=0.01)
    assert chosen == [C if draw < 0.2 else S if draw < 0.7 else REST for draw in draws]


shares = st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.3, 1.0, 1e-17]), min_size=1, max_size=6).filter(any)


@given(shares, st.one_of(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1 - 2**-53]), st.floats(0, 1, exclude_max=True)))
def test_a_draw_never_selects_an_option_without_a_chance(weights, draw):
    told = [weight / sum(weights) for weight in weights]
    [found] = select_options(np.array([told]), np.array([draw])).tolist()
    assert told[found] > 0
    assert [0.0, *accumulate(told)][found] <= draw  # added up one by one: sum() would round otherwise


@settings(max_examples=30, deadline=None)
@given(
    weights=st.lists(st.integers(0, 9), min_size=2, max_size=8).filter(any),
    draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_a_draw_takes_the_first_option_whose_cumulative_probability_exceeds_it(weights, draws):
    options = STATES[: len(weights)]
    said = json.dumps({option.value: weight for option, weight in zip(options, weights, strict=True)})
    asks = [PlacedQuestion(question(options), agent=i, draw=draw) for i, draw in enumerate(draws)]
    with Reasoner(lambda prompt: said, answer="probabilities") as reasoner:
        twice = [[answer.choice for answer in reasoner.answer(asks)] for _ in range(2)]
    assert twice[0] == twice[1]
    for draw, choice in zip(draws, twice[0], strict=True):
        place = options.index(choice)
        below, upto = sum(weights[:place]) / sum(weights), sum(weights[: place + 1]) / sum(weights)
        assert weights[place] > 0
        assert below - 1e-9 <= draw <= upto + 1e-9


def test_a_plain_choice_does_not_depend_on_the_draw():
    with Reasoner(lambda prompt: '{"next_state": "scrolling"}') as reasoner:
        answers = reasoner.answer(
            [PlacedQuestion(question(), agent=i, draw=draw) for i, draw in enumerate((0.0, 0.5, 1 - 2**-53))]
        )
    assert {answer.choice for answer in answers} == {S}
    assert {answer.probabilities for answer in answers} == {(0.0, 1.0)}


def test_probabilities_are_recorded_and_read_again_for_every_agents_own_draw(tmp_path):
    with Ledger(tmp_path / "d.sqlite") as ledger:
        with Reasoner(Logged({"A": 0.25, "B": 0.75}), answer="probabilities", ledger=ledger) as reasoner:
            first, second = reasoner.answer(
                [PlacedQuestion(question(), agent=i, draw=draw) for i, draw in enumerate((0.2, 0.3))]
            )
        [row] = ledger.answers()
    assert (first.choice, first.source, second.choice, second.source) == (C, "llm", S, "cache")
    assert (row.choice, json.loads(row.probabilities)) == ("", [0.25, 0.75])
    assert json.loads(row.decoding) == {"temperature": 0, "max_tokens": 16, "answer": "probabilities"}
    assert ChatOracle(Logged(), "probabilities").read(question(), row.raw) == pytest.approx((0.25, 0.75))


# -- what can be asked -----------------------------------------------------------------------------------


def test_an_oracle_stays_as_it_is_and_a_client_or_a_function_is_put_in_one():
    oracle = ChatOracle(Logged(), "probabilities")
    assert as_oracle(oracle, ReasonerParams()) is oracle
    assert as_oracle(Logged(), ReasonerParams(answer="probabilities")).form == "probabilities"
    assert as_oracle(str, ReasonerParams()).name == "str"
    with pytest.raises(TypeError, match="is not an LLM client: give a client"):
        as_oracle(7, ReasonerParams())


def test_an_oracle_of_ones_own_decides_without_any_words():
    class Coin:
        name, digest, label, decoding = "coin", "", "a coin", {"sides": 2}

        def write(self, asked):
            return "heads or tails"

        async def ask(self, prompt, asked, attempt=0):
            return Completion("heads")

        def read(self, asked, raw):
            return (0.5, 0.5)

    with Reasoner(Coin()) as reasoner:
        answers = reasoner.answer([PlacedQuestion(question(name=f"a{i}"), agent=i, draw=i / 4) for i in range(4)])
    assert [answer.choice for answer in answers] == [C, C, S, S]
    assert reasoner.usage["calls"] == 1
