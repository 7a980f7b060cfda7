"""Measures set instruments, and only those of their nation."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_measures import CANADA, LIMITS, NAMES, SWEDEN, US, WORLD, against, budget, measures, rate

from prism_mesa.economy.instruments import with_policies
from prism_mesa.economy.policy import Policy
from prism_mesa.economy.validator import judge

# -- instruments ----------------------------------------------------------------------------------------


def test_measures_set_what_they_say():
    measures = (
        rate(0.5),
        budget("spending", 10, "percent"),
        budget("taxes", 30.0, how="to"),
        against("tariff", "Canada", 10.0),
        against("sanction", "Sweden", 25.0),
    )
    world = with_policies(WORLD, {US: Policy(measures=measures)}, NAMES)
    assert world.policy_rate[US] == pytest.approx(0.62)
    assert world.spending[US] == pytest.approx(1.1 * WORLD.spending[US])
    assert world.taxes[US] == 30
    assert (world.tariff[US, CANADA], world.sanction[US, SWEDEN]) == (10, 25)
    assert np.count_nonzero(world.tariff) == np.count_nonzero(world.sanction) == 1


def test_borrowing_comes_in_four_instalments_unless_it_finances_the_budget():
    alone = with_policies(WORLD, {US: Policy(measures=(budget("debt", 2.0),))}, NAMES)
    assert alone.instalments[US].tolist() == [0.5] * 4
    finances = with_policies(WORLD, {US: Policy(measures=(budget("spending", 2), budget("debt", 2.0)))}, NAMES)
    assert finances.instalments[US].tolist() == [0.0] * 4


@settings(max_examples=200, deadline=None)
@given(st.lists(measures(), max_size=5), st.integers(0, 4))
def test_no_policy_that_is_accepted_changes_another_nations_instruments(found, row):
    policy = Policy(measures=tuple(found))
    if not judge(policy, WORLD, row, NAMES, LIMITS).accepted:
        return
    world = with_policies(WORLD, {row: policy}, NAMES)
    others = [other for other in range(5) if other != row]
    for field in fields(WORLD):
        before, after = getattr(WORLD, field.name), getattr(world, field.name)
        if isinstance(before, np.ndarray):
            assert (after[others] == before[others]).all(), field.name
    assert 0 <= world.policy_rate[row] <= LIMITS.highest_rate
    assert 0 <= world.tariff[row].min() <= world.tariff[row].max() <= LIMITS.highest_tariff
    assert 0 <= world.sanction[row].min() <= world.sanction[row].max() <= 100
