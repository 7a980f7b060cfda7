"""What a nation can do, with the numbers of what it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from policy_measures import WORLD, against, budget, failed, judged, owing, rate

from prism_mesa.economy.params import LimitsParams
from prism_mesa.economy.policy import Measure


@pytest.mark.parametrize(
    "measure",
    [
        rate(0.5),
        rate(2.0, "to"),
        budget("spending", 1.0),
        budget("spending", -5.0, "percent"),
        budget("taxes", 36.0, how="to"),
        budget("debt", 2.0),
        budget("debt", -3.0),
        against("tariff", "Canada", 10.0),
        against("sanction", "Sweden", 100.0),
    ],
    ids=str,
)
def test_what_a_nation_can_do_is_accepted_and_every_check_says_so(measure):
    judgement = judged(measure)
    assert judgement.accepted
    assert judgement.reason == ""
    assert {verdict.check for verdict in judgement.verdicts} == {"target", "bounds", "feasibility", "conservation"}
    assert all(verdict.reason for verdict in judgement.verdicts)


@pytest.mark.parametrize(
    ("measure", "check", "reason"),
    [
        (rate(-0.5), "feasibility", "policy rate of -0.38: the lowest is 0 (the zero lower bound)"),
        (rate(30, "to"), "feasibility", "policy rate of 30.00: the highest is 25"),
        (rate(5), "bounds", "policy rate 0.12 -> 5.12, a step of +5.00: no more than 3 in a quarter"),
        (budget("taxes", -300, "percent"), "feasibility", "the lowest is 0"),
        (budget("spending", 6.0), "bounds", "a step of +6.00: no more than 5 in a quarter"),
        (budget("spending", 90.0, how="to"), "feasibility", "spending of 90.00: the highest is 65"),
        (budget("debt", 12.0), "bounds", "no more than 10 in a quarter"),
        (against("tariff", "Canada", 500.0), "feasibility", "tariff of 500.00: the highest is 200"),
        (against("tariff", "Canada", 60.0), "bounds", "tariff 0.00 -> 60.00, a step of +60.00: no more than 25"),
        (against("tariff", "Canada", -5.0, "by"), "feasibility", "tariff of -5.00: the lowest is 0"),
        (against("sanction", "Sweden", 130.0), "feasibility", "sanction of 130.00: the highest is 100"),
        (against("tariff", "Atlantis", 10.0), "target", "no nation 'Atlantis'"),
        (against("tariff", "Swedn", 10.0), "target", "Did you mean 'Sweden'?"),
        (against("tariff", None, 10.0), "target", "no nation None"),
        (against("sanction", "United States", 50.0), "target", "a sanction against oneself"),
        (Measure(lever="taxes", size=1, unit="percent_of_gdp", target="Canada"), "target", "a nation's own"),
        (Measure(lever="policy_rate", size=1, unit="percent"), "target", "a policy rate is not set in percent"),
    ],
    ids=str,
)
def test_what_a_nation_cannot_do_is_rejected_with_the_numbers(measure, check, reason):
    judgement = judged(measure)
    assert not judgement.accepted
    assert check in {found for _, found in failed(judgement)}
    assert reason in judgement.reason


@pytest.mark.parametrize(
    ("measure", "most", "further"),
    [
        (rate, 3.0, 3.01),
        (lambda size: budget("spending", size), 5.0, 5.01),
        (lambda size: budget("taxes", size), 5.0, 5.01),
        (lambda size: budget("debt", size), 10.0, 10.01),
        (lambda size: against("tariff", "Canada", size, "by"), 25.0, 25.01),
    ],
    ids=["policy_rate", "spending", "taxes", "debt", "tariff"],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_step_is_allowed_either_way_and_no_larger_one(measure, most, further, sign):
    tariff, row = np.full((5, 5), 50.0), [10.0] * 5
    world = replace(owing(60.0, 0.0), policy_rate=np.array(row), spending=np.full(5, 30.0), taxes=np.full(5, 30.0))
    world = replace(world, tariff=tariff)
    assert judged(measure(sign * most), world=world).accepted
    over = judged(measure(sign * further), world=world)
    assert failed(over) == [(0, "bounds")]
    assert f"a step of {sign * further:+.2f}: no more than {most:g} in a quarter" in over.reason


@pytest.mark.parametrize(
    ("world", "lowest", "highest"),
    [
        ({"policy_rate": 1.0}, rate(0, "to"), rate(-0.01, "to")),
        ({"policy_rate": 24.0}, rate(25, "to"), rate(25.01, "to")),
        ({"spending": 64.0}, budget("spending", 65, how="to"), budget("spending", 65.01, how="to")),
        ({"taxes": 1.0}, budget("taxes", 0, how="to"), budget("taxes", -0.01, how="to")),
        ({"debt": 199.0}, budget("debt", 200, how="to"), budget("debt", 200.01, how="to")),
    ],
    ids=["lowest rate", "highest rate", "highest spending", "lowest taxes", "highest debt"],
)
def test_an_instrument_may_stand_at_its_limit_and_not_beyond(world, lowest, highest):
    there = replace(owing(60.0, 0.0), **{name: np.full(5, level) for name, level in world.items()})
    assert judged(lowest, world=there).accepted
    beyond = judged(highest, world=there)
    assert failed(beyond)[0] == (0, "feasibility")


def test_a_rate_out_of_bounds_may_stay_where_it_is_and_come_nearer():
    low = replace(WORLD, policy_rate=np.full(5, -2.0))
    assert judged(rate(-2, "to"), world=low).accepted
    assert judged(rate(0.5), world=low).accepted
    assert failed(judged(rate(-0.5), world=low)) == [(0, "feasibility")]
    high = replace(WORLD, policy_rate=np.full(5, 30.0))
    assert judged(rate(30, "to"), world=high).accepted
    assert judged(rate(-1), world=high).accepted
    assert failed(judged(rate(0.5), world=high)) == [(0, "feasibility")]


@pytest.mark.parametrize(
    ("measures", "goes_together"),
    [
        ((against("tariff", "Canada", 10), against("sanction", "Canada", 99.0)), True),
        ((against("tariff", "Canada", 0), against("sanction", "Canada", 100.0)), True),
        ((against("tariff", "Canada", 10), against("sanction", "Sweden", 100.0)), True),
        ((against("tariff", "Canada", 10), against("sanction", "Canada", 100.0)), False),
        ((against("sanction", "Canada", 100.0), against("tariff", "Canada", 0.5)), False),
        ((against("tariff", "Canada", 5), against("tariff", "Sweden", 5)), True),
        ((budget("spending", 100.0, "percent"), budget("taxes", 1)), True),
        ((against("tariff", "Canada", 120), rate(0.5)), True),
    ],
)
def test_a_tariff_clashes_only_with_an_embargo_on_the_same_nation(measures, goes_together):
    conflicts = [one for one in judged(*measures).verdicts if one.check == "conflict"]
    assert [one.passed for one in conflicts] == [goes_together]
    if goes_together:
        assert (conflicts[0].measure, conflicts[0].reason) == (-1, "the measures do not contradict each other")
    else:
        [place] = [at for at, measure in enumerate(measures) if measure.lever == "sanction"]
        assert (conflicts[0].measure, "a tariff on Canada, with which" in conflicts[0].reason) == (place, True)


def test_the_most_measures_are_allowed_and_one_more_is_not():
    four = [rate(0.5), budget("spending", 1), budget("taxes", 1), against("tariff", "Canada", 5)]
    assert judged(*four).accepted
    five = judged(*four, against("tariff", "Sweden", 6))
    assert failed(five) == [(-1, "conflict")]
    assert judged(*four, against("tariff", "Sweden", 5)).accepted


@pytest.mark.parametrize(("size", "possible"), [(-0.5, False), (0, True), (0.5, True), (100, True), (100.5, False)])
def test_a_sanction_stops_none_to_all_of_the_trade(size, possible):
    judgement = judged(against("sanction", "Sweden", size))
    assert failed(judgement) == ([] if possible else [(0, "feasibility")])
    if size < 0:
        assert "sanction of -0.50: the lowest is 0" in judgement.reason


@pytest.mark.parametrize(("beyond", "possible"), [(0, True), (1e-9, True), (2e-9, False)])
def test_the_last_digit_that_counts_is_the_rounding_of_sums(beyond, possible):
    half = LimitsParams(rate_step=0.5, lower_bound=-0.5, highest_rate=0.5)
    still = replace(WORLD, policy_rate=np.zeros(5))
    assert judged(rate(0.5 + beyond), world=still, limits=LimitsParams(rate_step=0.5)).accepted is possible
    assert judged(rate(0.5 + beyond), world=still, limits=half).accepted is possible
    wide = LimitsParams(rate_step=2.0, lower_bound=-0.5, highest_rate=0.5)
    for sign in (1, -1):
        judgement = judged(rate(sign * (0.5 + beyond), "to"), world=still, limits=wide)
        assert failed(judgement) == ([] if possible else [(0, "feasibility")])
