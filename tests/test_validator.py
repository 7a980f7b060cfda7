"""The validator and the instruments: what can be done, what not and why; a policy reaches its own nation only."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.economy.instruments import with_policies
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import NATIONS
from prism_mesa.economy.params import LimitsParams, MacroParams
from prism_mesa.economy.policy import LEVERS, UNITS, Measure, Policy
from prism_mesa.economy.validator import judge

NAMES = tuple(NATIONS)
US, UK, CANADA, AUSTRALIA, SWEDEN = range(5)
MACRO = Macro(tuple(NATIONS.values()), MacroParams())
WORLD = MACRO.start()
LIMITS = LimitsParams()


def rate(size, how="by"):
    return Measure(lever="policy_rate", how=how, size=size, unit="points")


def budget(lever, size, unit="percent_of_gdp", how="by"):
    return Measure(lever=lever, how=how, size=size, unit=unit)


def against(lever, target, size, how="to"):
    return Measure(lever=lever, how=how, size=size, unit="points", target=target)


def judged(*measures, row=US, world=WORLD, limits=LIMITS):
    return judge(Policy(measures=measures), world, row, NAMES, limits)


def failed(judgement):
    return [(verdict.measure, verdict.check) for verdict in judgement.verdicts if not verdict.passed]


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


def test_one_wrong_measure_rejects_the_whole_policy_and_the_others_are_told_apart():
    judgement = judged(rate(0.5), budget("taxes", -300, "percent"))
    assert failed(judgement) == [(1, "bounds"), (1, "feasibility")]


@pytest.mark.parametrize(
    ("measures", "reason"),
    [
        ((rate(0.5), rate(-0.1)), "policy rate is set twice"),
        ((against("tariff", "Canada", 10.0), against("tariff", "Canada", 20.0)), "tariff on Canada is set twice"),
        ((against("tariff", "Canada", 10.0), against("sanction", "Canada", 100.0)), "with which all trade is stopped"),
    ],
    ids=["rates", "tariffs", "embargo"],
)
def test_measures_that_contradict_each_other_are_rejected(measures, reason):
    judgement = judged(*measures)
    assert {check for _, check in failed(judgement)} == {"conflict"}
    assert reason in judgement.reason


def test_more_measures_than_allowed_are_rejected_but_one_against_everybody_counts_once():
    everybody = [against("tariff", name, 10.0) for name in NAMES[1:]]
    assert judged(*everybody, rate(0.5), budget("spending", 1), budget("taxes", 1)).accepted
    five = [*everybody, rate(0.5), budget("spending", 1), budget("taxes", 1), against("sanction", "Sweden", 5)]
    assert "5 measures: no more than 4" in judged(*five).reason


def test_a_budget_must_add_up_when_all_of_it_is_said():
    assert judged(budget("spending", 2), budget("taxes", 1), budget("debt", 1)).accepted
    wrong = judged(budget("spending", 2), budget("taxes", 1), budget("debt", 5))
    assert failed(wrong) == [(-1, "conservation")]
    assert "spending +2.00 less taxes +1.00 is not borrowing +5.00" in wrong.reason


def test_nobody_lends_beyond_the_highest_debt_but_it_can_be_paid_back():
    deep = replace(WORLD, debt=np.full(5, 205.0))
    assert not judged(budget("debt", 1.0), world=deep).accepted
    assert not judged(budget("spending", 1.0), world=deep).accepted
    assert judged(budget("debt", -5.0), world=deep).accepted
    assert judged(budget("spending", -1.0), world=deep).accepted


def test_a_deficit_has_a_limit_that_a_smaller_one_does_not_meet():
    wide = replace(WORLD, deficit=np.full(5, 14.0))
    assert "a deficit of 16.0 % of GDP: nobody finances more than 15" in judged(budget("taxes", -2), world=wide).reason
    assert judged(budget("taxes", 2), world=wide).accepted
    # what taxes pay for is no wider deficit
    assert judged(budget("spending", 2), budget("taxes", 2), world=replace(wide, deficit=np.full(5, 16.0))).accepted


def test_to_do_nothing_is_always_possible():
    judgement = judge(Policy(), WORLD, US, NAMES, LIMITS)
    assert (judgement.accepted, judgement.verdicts) == (True, ())


def test_an_embargo_and_a_tariff_on_it_clash_however_the_embargo_is_put():
    assert not judged(against("tariff", "Canada", 10.0), against("sanction", "Canada", 100.0, "by")).accepted


def test_what_began_beyond_a_limit_may_come_nearer_but_no_further():
    high = replace(WORLD, spending=np.full(5, 80.0))
    assert judged(budget("spending", -2.0), world=high).accepted
    assert not judged(budget("spending", 1.0), world=high).accepted


def test_paying_back_by_percent_is_paying_back_for_a_creditor_too():
    rich = replace(WORLD, debt=np.full(5, -50.0))
    world = with_policies(rich, {US: Policy(measures=(budget("debt", -10, "percent"),))}, NAMES)
    assert world.instalments[US].sum() == pytest.approx(-5.0)


def test_limits_are_parameters():
    assert judged(rate(-0.5), limits=LimitsParams(lower_bound=-1.0)).accepted


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


def measures():
    def made(lever, how, size, place, target):
        units = UNITS[lever]
        return Measure(lever=lever, how=how, size=size, unit=units[place % len(units)], target=target)

    return st.builds(
        made,
        st.sampled_from(LEVERS),
        st.sampled_from(["by", "to"]),
        st.floats(-1e6, 1e6),
        st.integers(0, 1),
        st.sampled_from([None, *NAMES, "Atlantis"]),
    )


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
