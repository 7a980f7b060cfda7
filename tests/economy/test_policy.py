"""The instruments: named once, and told alike wherever a nation is told of them or its words are read."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from policy_measures import NAMES, US, WORLD, against, budget, judged, rate

from prism_mesa.economy import prompts
from prism_mesa.economy.params import Domain
from prism_mesa.economy.policy import (
    AGAINST_NATIONS,
    DOMAINS,
    LEVERS,
    UNITS,
    find_repeats,
    level_after,
    spell_out,
)
from prism_mesa.economy.policy_text import parse_policy
from prism_mesa.economy.reading import is_about, reading_prompt

PLAIN = {
    "policy_rate": "Raise the policy rate by 1 percentage point",
    "spending": "Raise government spending by 1% of GDP",
    "taxes": "Raise taxes by 1% of GDP",
    "tariff": "Impose a 1% tariff on Canada",
    "sanction": "Impose trade sanctions on Canada of 1%",
    "debt": "Raise government debt by 1% of GDP",
}


def test_every_instrument_has_units_and_is_known_to_all_who_speak_of_it():
    assert set(LEVERS) == set(UNITS) == set(DOMAINS["economic"]) == set(PLAIN)
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
    assert {lever for lever in LEVERS if is_about(PLAIN[lever], domain)} == set(DOMAINS[domain])
    told = prompts.instruments(domain)
    words = {"spending": "spending", "debt": "borrowing"}
    assert {lever for lever in LEVERS if words.get(lever, spell_out(lever)) in told} == set(DOMAINS[domain])


@pytest.mark.parametrize(
    ("level", "size", "unit", "after"),
    [
        (35.0, -1.0, "percent_of_gdp", 34.0),
        (40.0, 10.0, "percent", 44.0),
        (40.0, -10.0, "percent", 36.0),
        (-50.0, 10.0, "percent", -45.0),  # up is up for a creditor too
        (-50.0, -10.0, "percent", -55.0),
    ],
)
def test_a_move_goes_by_its_unit_from_where_the_instrument_stands(level, size, unit, after):
    world = replace(WORLD, debt=np.full(5, level))
    assert level_after(world, US, budget("debt", size, unit), NAMES) == after


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
    assert find_repeats(measures) == again
    told = [one.measure for one in judged(*measures).verdicts if one.reason.endswith("is set twice")]
    assert told == again
