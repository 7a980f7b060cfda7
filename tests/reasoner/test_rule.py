"""The rule: how likely an agent engages, and what it then takes."""

import asyncio
import math
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from prism_mesa.domain import Post
from prism_mesa.reasoner import OpenChoices, Persona, PlacedQuestion, Question, ReasonerParams, RuleParams, RuleReasoner
from prism_mesa.statechart import STATES, AgentState
from prism_mesa.streams import Streams

C, S, LIKE, REPLY, RESHARE, REST = (
    AgentState.COMPOSING,
    AgentState.SCROLLING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
    AgentState.RESTING,
)
MEANS = [3.1, 3.86, 3.64, 2.68, 3.91]
RULE = RuleReasoner()


def choices(n=1, options=(C, S), **changed):
    columns = {
        "relevance": np.full(n, 0.3),
        "utility": np.full(n, 0.5),
        "low": np.full(n, 0.4),
        "high": np.full(n, 0.6),
        "velocity": np.zeros(n, np.int64),
        "media": np.zeros(n, np.bool_),
        "traits": np.tile(MEANS, (n, 1)),
        "propensities": np.tile([0.5, 0.2, 0.3], (n, 1)),
        "draws": (np.arange(n) + 0.5) / n,
    }
    return OpenChoices(options=options, **(columns | {name: np.asarray(value) for name, value in changed.items()}))


def some_choices(n, seed, options):
    draw = Streams(seed)
    rows = np.arange(n)
    column = {name: draw.uniform(name, rows) for name in ("relevance", "utility", "low", "width", "draws")}
    traits = 1 + 4 * np.stack([draw.uniform(f"trait {k}", rows) for k in range(5)], axis=1)
    shares = np.stack([draw.uniform(f"share {k}", rows) for k in range(3)], axis=1)
    return choices(
        n,
        options,
        relevance=column["relevance"],
        utility=column["utility"],
        low=column["low"],
        high=column["low"] + 0.3 * column["width"],
        velocity=draw.integers("velocity", rows, 3000),
        media=draw.uniform("media", rows) < 0.5,
        traits=traits,
        propensities=shares / shares.sum(axis=1, keepdims=True),
        draws=column["draws"],
    )


def row(columns, i):
    return OpenChoices(
        columns.options, **{f.name: getattr(columns, f.name)[i : i + 1] for f in fields(OpenChoices)[1:]}
    )


def test_an_average_agent_in_the_middle_of_its_band_engages_as_the_data_say():
    assert RULE.engage_probability(choices())[0] == pytest.approx(1 / (1 + math.exp(0.33)), abs=0.005)


def test_the_probability_is_the_logistic_of_the_published_sum():
    z = -0.33 + 1.5 * 0.5 + 0.3 * math.log(1 + 6)
    z += 0.34 * (4 - 3.1) / 0.78 + 0.10 * (3 - 3.86) / 0.59 - 0.15 * (2 - 3.64) / 0.77
    z += 0.31 * (1.5 - 2.68) / 0.87 + 0.24 * (3.5 - 3.91) / 0.7
    given_ = choices(utility=[0.55], velocity=[6], traits=[[4, 3, 2, 1.5, 3.5]])
    assert RULE.engage_probability(given_)[0] == pytest.approx(1 / (1 + math.exp(-z)), abs=0.25 / 64 + 1e-9)


def test_media_multiply_the_odds_by_the_published_ratio():
    without, with_media = RULE.engage_probability(choices(2, media=[False, True]))
    ratio = (with_media / (1 - with_media)) / (without / (1 - without))
    assert ratio == pytest.approx(1.35, rel=1 / 32)  # log-odds are rounded to 1/32


def test_utility_and_velocity_raise_the_probability_up_to_their_caps():
    by_utility = RULE.engage_probability(choices(41, utility=np.linspace(0, 1, 41)))
    by_velocity = RULE.engage_probability(choices(6, velocity=[0, 1, 10, 100, 1023, 10**9]))
    assert (np.diff(by_utility) >= 0).all()
    assert by_utility[0] == by_utility[5] < by_utility[20] < by_utility[35] == by_utility[40]
    assert (np.diff(by_velocity[:5]) > 0).all()
    assert by_velocity[4] == by_velocity[5]


def test_a_band_without_width_counts_as_its_middle():
    narrow = choices(2, utility=[0.1, 0.9], low=[0.5, 0.5], high=[0.5, 0.5])
    assert (RULE.engage_probability(narrow) == RULE.engage_probability(choices())[0]).all()


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ((C, S), lambda p: [p, 1 - p]),
        ((S, C), lambda p: [1 - p, p]),
        ((S, C, REST), lambda p: [(1 - p) / 2, p, (1 - p) / 2]),
        ((LIKE, REPLY, RESHARE), lambda p: [0.5, 0.2, 0.3]),
        ((LIKE, RESHARE, S), lambda p: [p * 5 / 8, p * 3 / 8, 1 - p]),
        ((C, LIKE, S), lambda p: [p * 0.5, p * 0.5, 1 - p]),
        ((C, LIKE, REPLY, RESHARE), lambda p: [0, 0.5, 0.2, 0.3]),
        ((S, REST), lambda p: [0.5, 0.5]),
        ((C,), lambda p: [1.0]),
    ],
)
def test_options_share_the_probability_by_kind_and_propensity(options, shares):
    p = RULE.engage_probability(choices())[0]
    assert RULE.probabilities(choices(options=options))[0] == pytest.approx(shares(p))


def test_actions_without_any_propensity_share_equally():
    given_ = choices(options=(LIKE, REPLY, S), propensities=[[0, 0, 1.0]])
    p = RULE.engage_probability(given_)[0]
    assert RULE.probabilities(given_)[0] == pytest.approx([p / 2, p / 2, 1 - p])


def test_choices_come_as_often_as_their_probabilities_say():
    n, options = 10_000, (C, LIKE, S, REST)
    chosen = RULE.choose(choices(n, options))
    assert np.bincount(chosen, minlength=4) / n == pytest.approx(
        RULE.probabilities(choices(options=options))[0], abs=2 / n
    )


def test_the_first_option_whose_cumulative_probability_exceeds_the_draw_is_taken():
    p = RULE.engage_probability(choices())[0]
    assert RULE.choose(choices(4, draws=[0.0, np.nextafter(p, 0), p, 1 - 2**-53])).tolist() == [0, 0, 1, 1]


@given(
    seed=st.integers(0, 2**31),
    options=st.lists(st.sampled_from(STATES), min_size=1, max_size=6, unique=True).map(tuple),
)
def test_one_row_alone_gets_what_it_gets_among_all(seed, options):
    columns = some_choices(37, seed, options)
    together = RULE.choose(columns)
    alone = [int(RULE.choose(row(columns, i))[0]) for i in range(37)]
    assert together.tolist() == alone
    probabilities = RULE.probabilities(columns)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(37))
    assert (np.take_along_axis(probabilities, together[:, None], axis=1) > 0).all()


def test_a_batch_of_questions_gets_what_the_columns_get_in_the_order_of_asks():
    asks, expected = [], []
    for i, options in enumerate([(C, S), (LIKE, REPLY, S), (C, S), (S, REST)] * 5):
        draw = (i * 0.37) % 1
        persona = Persona(f"a{i}", propensities=(0.5, 0.2, 0.3), low=0.4, high=0.6)
        post = Post(relevance=0.5, utility=0.4 + i / 100, velocity=i)
        asks.append(
            PlacedQuestion(Question(persona, AgentState.EVALUATING, "decides", options, post), agent=i, draw=draw)
        )
        columns = choices(options=options, utility=[post.utility], velocity=[i], draws=[draw])
        expected.append(options[RULE.choose(columns)[0]])
    answers = RULE.answer(asks)
    assert [answer.choice for answer in answers] == expected
    assert {answer.source for answer in answers} == {"rule"}


def test_decide_reads_the_agent_and_uses_its_draw():
    agent = SimpleNamespace(name="Ann", engagement_threshold=0.5)
    taken = [
        asyncio.run(RULE.decide(agent, AgentState.EVALUATING, "decides", [C, S], Post(relevance=0.5), draw=draw))
        for draw in (0.1, 0.9)
    ]
    assert taken == [C, S]


def test_without_a_post_the_middle_of_the_band_counts():
    question = Question(Persona("a", low=0.7, high=0.9), AgentState.COMPOSING, "compose_done", (C, S))
    p = RULE.engage_probability(choices())[0]
    draws = [p - 0.001, p + 0.001]
    assert [a.choice for a in RULE.answer([PlacedQuestion(question, draw=d) for d in draws])] == [C, S]


def test_the_weights_of_the_parameters_are_used():
    flat = RuleReasoner(RuleParams(slope=0, velocity=0, media=0))
    many = choices(3, utility=[0, 0.5, 1], velocity=[0, 50, 1000], media=[True, False, True])
    assert len(set(flat.engage_probability(many))) == 1


@pytest.mark.parametrize(
    ("given_", "complaint"),
    [
        ({"kind": "magic"}, "Input should be 'auto', 'ollama', 'embedded', 'openai', 'rule' or 'distilled'"),
        ({"host": []}, "at least 1 item"),
        ({"attempts": 0}, "greater than or equal to 1"),
        ({"max_seconds_per_round": float("nan")}, "finite number"),
        ({"ledger": "forget"}, "Input should be 'live', 'cache' or 'replay'"),
        ({"max_fallback_share": 1.5}, "less than or equal to 1"),
        ({"model": ""}, "give the name of an LLM"),
        ({"rule": {"slop": 1}}, "Extra inputs are not permitted"),
    ],
)
def test_parameters_outside_their_range_are_refused(given_, complaint):
    with pytest.raises(ValidationError, match=complaint):
        ReasonerParams.model_validate(given_)
