"""The rules that nations can follow, and that the validator lets them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_measures import MACRO, NAMES, US, WORLD

from prism_mesa.economy.params import LimitsParams
from prism_mesa.economy.rules import RULES, RuleContext
from prism_mesa.economy.validator import judge
from prism_mesa.streams import Streams

LIMITS = LimitsParams()


def context_of(world=WORLD, limits=LIMITS, seed=1, macro=MACRO):
    return RuleContext(world, macro, limits, Streams(seed))


def rate_of(world, limits=LIMITS):
    [measure] = RULES["taylor"].policy(context_of(world, limits), US)[0].measures
    assert (measure.lever, measure.how, measure.unit, measure.target) == ("policy_rate", "to", "points", None)
    return measure.size


def hot(inflation, rate):
    return replace(WORLD, inflations=np.full((5, 4), inflation), policy_rate=np.full(5, rate), gaps=np.zeros((5, 5)))


@pytest.mark.parametrize(
    ("inflation", "rate", "wished"),
    [
        (2.0, 3.0, 4.0),
        (2.0, 0.5, 3.5),  # three points a quarter
        (2.0, 9.0, 6.0),
        (-9.0, 2.0, 0.0),  # the zero lower bound
        (90.0, 24.0, 25.0),
        (90.0, 30.0, 27.0),  # from above the highest rate down in steps
        (90.0, -4.0, -1.0),
    ],
)
def test_taylors_rate_goes_as_far_as_the_limits_of_a_quarter_allow(inflation, rate, wished):
    assert rate_of(hot(inflation, rate)) == wished


@settings(deadline=None)
@given(
    st.floats(-100, 1000), st.floats(-5, 1000), st.floats(-50, 50), st.floats(-5, 5), st.floats(0, 989), st.floats(0, 9)
)
def test_the_validator_accepts_whatever_taylors_rule_says(inflation, rate, gap, lowest, room, step):
    limits = LimitsParams(lower_bound=lowest, highest_rate=lowest + room + 5.1, rate_step=step + 0.01)
    world = replace(hot(inflation, rate), gaps=np.full((5, 5), gap))
    policy, _ = RULES["taylor"].policy(context_of(world, limits), US)
    judgement = judge(policy, world, US, NAMES, limits)
    assert judgement.accepted, judgement.reason


def drawn(row, n_quarters=300, macro=MACRO, seed=1):
    found = []
    for quarter in range(n_quarters):
        policy, why = RULES["random"].policy(context_of(replace(WORLD, quarter=quarter), seed=seed, macro=macro), row)
        assert why == "drawn at random"
        found += policy.measures
    return found


@pytest.mark.parametrize("row", [0, 4])
def test_chance_draws_every_instrument_size_and_other_nation(row):
    found = drawn(row)
    assert len(found) == 300
    assert {measure.lever for measure in found} == {"policy_rate", "spending", "taxes", "tariff"}
    assert {measure.target for measure in found} == {None, *NAMES} - {NAMES[row]}
    own = [measure.size for measure in found if measure.lever != "tariff"]
    assert -0.5 <= min(own) < -0.4
    assert 0.4 < max(own) <= 0.5
    assert {measure.how for measure in found if measure.lever != "tariff"} == {"by"}
    tariffs = [measure for measure in found if measure.lever == "tariff"]
    assert {measure.how for measure in tariffs} == {"to"}
    assert 0 <= min(one.size for one in tariffs) < 1
    assert 9 < max(one.size for one in tariffs) <= 10


def test_chance_is_keyed_by_seed_quarter_and_nation():
    assert drawn(0, 20) == drawn(0, 20)
    assert drawn(0, 20) != drawn(0, 20, seed=2)
    assert drawn(0, 20) != drawn(1, 20)
