"""Budgets must add up and be financed."""

from dataclasses import replace

import numpy as np
import pytest
from policy_measures import budget, failed, judged, owing, rate


@pytest.mark.parametrize(
    ("spending", "taxes", "debt", "adds_up"),
    [
        (2, 0, 1, False),
        (2, 0, 3, False),
        (2, 0, 1.95, True),
        (2, 0, 2.05, True),
        (2, 0, 1.948, False),
        (2, 0, 2.052, False),
        (0, -1, 1, True),
        (0, -1, -1, False),
        (0, 1, -1, True),
        (1, 2, -1, True),
        (1, 2, 1, False),
        (-1, 1, -2, True),
        (-1, 1, 0, False),
    ],
)
def test_neither_more_nor_less_is_borrowed_than_is_needed(spending, taxes, debt, adds_up):
    said = {"spending": spending, "taxes": taxes, "debt": debt}
    judgement = judged(*[budget(lever, size) for lever, size in said.items() if size or lever == "debt"])
    assert failed(judgement) == ([] if adds_up else [(-1, "conservation")])
    [verdict] = [verdict for verdict in judgement.verdicts if verdict.check == "conservation"]
    is_or_not = "is" if adds_up else "is not"
    assert verdict.reason == (
        f"spending {spending:+.2f} less taxes {taxes:+.2f} {is_or_not} borrowing {debt:+.2f} (percent of GDP)"
    )


@pytest.mark.parametrize(
    ("debt", "measures", "financed"),
    [
        (199.5, [budget("spending", 1)], False),
        (199.5, [budget("taxes", -1)], False),
        (199.5, [budget("spending", 2), budget("taxes", 1.6)], True),
        (199.5, [budget("spending", 2), budget("taxes", 1.4)], False),
        (199.0, [budget("spending", 1)], True),
        (199.5, [budget("spending", 1), budget("debt", 1)], False),
        (199.5, [budget("taxes", 1)], True),
        (200.5, [budget("spending", -1), budget("taxes", -1)], True),
        (205.0, [budget("spending", -1), budget("taxes", -1.5)], False),
    ],
)
def test_a_debt_that_only_the_new_deficit_lifts_over_its_limit_is_not_financed(debt, measures, financed):
    judgement = judged(*measures, world=owing(debt))
    assert judgement.accepted is financed
    if not financed:
        assert (-1, "feasibility") in failed(judgement) or (1, "feasibility") in failed(judgement)
        assert "beyond 200" in judgement.reason


@pytest.mark.parametrize(
    ("deficit", "measures", "financed"),
    [
        (14.0, [budget("spending", 1)], True),
        (14.0, [budget("spending", 1.01)], False),
        (14.0, [budget("debt", 1)], True),
        (14.0, [budget("debt", 1.01)], False),
        (14.0, [budget("spending", 3), budget("taxes", 2), budget("debt", 1)], True),
        (14.0, [budget("spending", 3), budget("taxes", 1), budget("debt", 2)], False),
        (14.0, [budget("taxes", 3), budget("debt", -3)], True),
        (16.0, [budget("debt", -1)], True),
        (16.0, [rate(0.5)], True),
        (16.0, [budget("spending", 0)], True),
        (12.0, [budget("spending", 2), budget("debt", 2.04)], True),
    ],
)
def test_what_widens_the_deficit_beyond_its_limit_is_not_financed(deficit, measures, financed):
    judgement = judged(*measures, world=owing(60.0, deficit))
    assert judgement.accepted is financed
    assert ("nobody finances more than 15" in judgement.reason) is not financed


@pytest.mark.parametrize(("wider", "financed"), [(1e-9, True), (2e-9, False)])
def test_a_deficit_that_is_wider_by_the_rounding_of_sums_is_no_wider(wider, financed):
    for world in (owing(60.0, 16.0), owing(200.5)):
        world = replace(world, spending=np.zeros(5))
        assert judged(budget("spending", wider), world=world).accepted is financed


@pytest.mark.parametrize(("beyond", "financed"), [(0, True), (1e-6, True), (1.5e-6, False)])
def test_a_millionth_beyond_what_is_financed_is_the_rounding_of_sums(beyond, financed):
    deep, wide = owing((200 + beyond) - 1), owing(60.0, (15 + beyond) - 1)
    for world in (deep, wide):
        level = replace(world, spending=np.full(5, 30.0))
        assert judged(budget("spending", 1), world=level).accepted is financed
