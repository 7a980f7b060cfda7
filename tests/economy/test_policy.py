"""The instruments: named once, and told alike wherever a nation is told of them or its words are read."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_measures import LIMITS, MACRO, NAMES, US, WORLD, against, budget, judged, measures, rate
from prism_mesa.economy.policy_text.refusals import INSTRUMENTS
from prism_mesa.economy.policy_text.sizes import _UNITS_SAID

from prism_mesa.economy import prompts
from prism_mesa.economy.instruments import level_of, with_policies
from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.observation import observed, standing_of
from prism_mesa.economy.params import Domain
from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, UNITS, Measure, Policy, in_words, moved, repeated
from prism_mesa.economy.policy_text import UnclearPolicyError, is_about, parse_policy
from prism_mesa.economy.reading import reading_prompt
from prism_mesa.economy.validator import judge
from prism_mesa.streams import Streams

PLAIN = {
    "policy_rate": "Raise the policy rate by 1 percentage point",
    "spending": "Raise government spending by 1% of GDP",
    "taxes": "Raise taxes by 1% of GDP",
    "tariff": "Impose a 1% tariff on Canada",
    "sanction": "Impose trade sanctions on Canada of 1%",
    "debt": "Raise government debt by 1% of GDP",
}
DOMAINS = {
    "monetary": {"policy_rate"},
    "fiscal": {"spending", "taxes", "debt"},
    "trade": {"tariff", "sanction"},
    "economic": set(LEVERS),
}


def test_every_instrument_has_units_and_is_known_to_all_who_speak_of_it():
    assert set(LEVERS) == set(UNITS) == set(_UNITS_SAID) == set(PLAIN)
    assert set(AGAINST_NATIONS) <= set(LEVERS)
    prompt = reading_prompt("Do it", "Sweden", NAMES)
    assert [line for line in prompt.splitlines() if line.startswith("- ")] == [
        f"- {lever}: {' or '.join(UNITS[lever])}" for lever in LEVERS
    ]


@pytest.mark.parametrize("lever", LEVERS)
def test_every_instrument_can_be_set_in_plain_words(lever):
    [measure] = parse_policy(PLAIN[lever], NAMES[US], NAMES).measures
    assert (measure.lever, abs(measure.size), measure.unit in UNITS[lever]) == (lever, 1, True)
    assert judged(measure).accepted


@pytest.mark.parametrize("domain", get_args(Domain.__value__))
def test_a_nation_is_told_of_the_instruments_whose_words_count_as_its_domains(domain):
    assert {lever for lever in LEVERS if is_about(PLAIN[lever], domain)} == DOMAINS[domain]
    told = prompts.instruments(domain)
    words = {"spending": "spending", "debt": "borrowing"}
    assert {lever for lever in LEVERS if words.get(lever, in_words(lever)) in told} == DOMAINS[domain]


def test_a_refusal_lists_every_instrument():
    assert all(in_words(lever) in INSTRUMENTS for lever in LEVERS)


def test_where_an_instrument_stands_is_the_same_to_the_reader_of_words_and_to_the_validator():
    draws = np.random.default_rng(3)
    sanction, tariff = draws.uniform(0, 100, (5, 5)).round(1), draws.uniform(0, 50, (5, 5)).round(1)
    np.fill_diagonal(sanction, 0.0)
    np.fill_diagonal(tariff, 0.0)
    model = EconomyModel(economy_policy="random", rng=2)
    model.run_for(3)
    policies = {
        row: Policy(
            measures=tuple(
                against(lever, NAMES[other], float(of[row, other]))
                for lever, of in (("tariff", tariff), ("sanction", sanction))
                for other in range(5)
                if other != row
            )
        )
        for row in range(5)
    }
    world = with_policies(model.world, policies, NAMES)
    for row, state in enumerate(observed(MACRO, world, "2010Q1", Streams(1), 0.5)):
        standing = standing_of(NAMES[row], state)
        assert {lever for lever, _ in standing} == set(LEVERS)
        assert len(standing) == 4 + 2 * 4
        for (lever, target), level in standing.items():
            measure = Measure(lever=lever, size=0, unit=UNITS[lever][0], target=target)
            assert level == level_of(world, row, measure, NAMES), (lever, target)


@pytest.mark.parametrize(
    ("level", "size", "unit", "after"),
    [
        (2.0, 0.5, "points", 2.5),
        (35.0, -1.0, "percent_of_gdp", 34.0),
        (40.0, 10.0, "percent", 44.0),
        (40.0, -10.0, "percent", 36.0),
        (-50.0, 10.0, "percent", -45.0),  # up is up for a creditor too
        (-50.0, -10.0, "percent", -55.0),
    ],
)
def test_a_move_goes_by_its_unit_from_where_the_instrument_stands(level, size, unit, after):
    assert moved(level, size, unit) == after


@pytest.mark.parametrize(
    ("measures", "again"),
    [
        ((), []),
        ((rate(1), budget("taxes", 1), budget("spending", 1)), []),
        ((rate(1), rate(2)), [1]),
        ((rate(1), rate(2), budget("taxes", 1), rate(1)), [1, 3]),
        ((against("tariff", "Canada", 1), against("tariff", "Sweden", 1), against("sanction", "Canada", 1)), []),
        ((against("tariff", "Canada", 1), against("tariff", "Sweden", 1), against("tariff", "Canada", 2)), [2]),
    ],
)
def test_what_is_set_twice_is_an_instrument_against_the_same_nation(measures, again):
    assert repeated(measures) == again
    told = [one.measure for one in judged(*measures).verdicts if one.reason.endswith("is set twice")]
    assert told == again


def test_a_text_and_a_policy_are_refused_alike_for_what_is_set_twice():
    with pytest.raises(UnclearPolicyError, match=r"moves one instrument twice \(taxes by \+2 % of GDP\)") as caught:
        parse_policy("Raise taxes by 1% of GDP. Raise taxes by 2% of GDP.", "Sweden", NAMES)
    assert caught.value.reason == "twice"


@settings(max_examples=200, deadline=None)
@given(st.lists(measures(), max_size=4), st.integers(0, 4))
def test_borrowing_beside_a_budget_changes_nothing_of_the_world_and_alone_comes_in_instalments(found, row):
    policy = Policy(measures=tuple(found))
    if not judge(policy, WORLD, row, NAMES, LIMITS).accepted:
        return
    borrows = [measure for measure in found if measure.lever == "debt"]
    world = with_policies(WORLD, {row: policy}, NAMES)
    assert policy.sets_budget == bool({measure.lever for measure in found} & {"spending", "taxes"})
    if policy.sets_budget or not borrows:
        assert not world.instalments.any()
    else:
        assert world.instalments[row].sum() == pytest.approx(
            sum(level - WORLD.debt[row] for level in [after(m, row) for m in borrows]), abs=1e-6
        )


def after(measure, row):
    if measure.how == "to":
        return measure.size
    return moved(float(WORLD.debt[row]), measure.size, measure.unit)
