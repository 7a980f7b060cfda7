"""Two one-sided tests."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_ind, ttost_paired
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.significance import tost


def sample(n, mean, sd):
    """Return numbers with exactly this mean and standard deviation."""
    values = noise(n, n)
    return (values - values.mean()) / values.std(ddof=1) * sd + mean


def test_tost_agrees_with_a_published_example():
    """Moery and Calin-Jageman's replication of Eskine, in Lakens 2017 (doi:10.1177/1948550617697177).

    M = 5.25 and 5.22, SD = .95 and .83, n = 95 and 89, bounds of d = -.43 and .43, variances not assumed equal:
    t(182) = -2.69, p = .004; also in the documentation of his R package TOSTER (`TOSTtwo`).
    """
    margin = 0.43 * np.sqrt((0.95**2 + 0.83**2) / 2)
    found = tost((sample(95, 5.25, 0.95), sample(89, 5.22, 0.83)), margin)
    assert round(found.p, 3) == 0.004
    assert round(-stats.t.isf(found.p, 182), 2) == -2.69
    assert found.p == found.p_high > found.p_low
    half = stats.t.isf(0.05, 181.15) * np.sqrt(0.95**2 / 95 + 0.83**2 / 89)
    assert (found.low, found.high) == pytest.approx((0.03 - half, 0.03 + half), rel=1e-4)


def test_paired_and_unpaired_tests_are_those_of_statsmodels():
    left, right = noise(1, 20) + 0.1, noise(2, 20) * 2
    assert tost((left - right,), 1.5).p == pytest.approx(ttost_paired(left, right, -1.5, 1.5)[0])
    assert tost((left, right), 1.5).p == pytest.approx(ttost_ind(left, right, -1.5, 1.5, usevar="unequal")[0])


def test_a_study_tests_an_equality_seed_by_seed_with_a_margin_in_percent_of_the_right_side():
    plain, ranked = noise(3, 20) + 40, noise(4, 20) + 40.5
    table = failed(study({"reach": [plain, ranked]}, ("plain", "ranked")), 5)
    found = analyse(table, ["reach: ranked = plain within 5 %", "reach: ranked = plain within 0.6"])
    percent, absolute = (found.equivalence.iloc[place] for place in (0, 1))
    left, right = np.delete(ranked, 5), np.delete(plain, 5)
    assert percent["margin"] == pytest.approx(right.mean() * 0.05)
    assert percent["p"] == pytest.approx(ttost_paired(left, right, -percent["margin"], percent["margin"])[0])
    assert (percent["n"], percent["missing"]) == (19, 1)
    assert (percent["equivalent"], absolute["equivalent"]) == (True, False)
    assert absolute["p"] == pytest.approx(max(absolute["p_low"], absolute["p_high"]))


def test_a_difference_without_variation_has_the_p_of_its_signs_or_of_dealing_out_its_runs():
    inside, at, beyond = (tost((np.full(5, 0.2),), margin) for margin in (0.3, 0.2, 0.1))
    assert (inside.p, inside.p_apart, inside.beyond) == (0.5**5, 1, False)
    assert (at.p, at.p_apart, at.beyond) == (1, 1, False)
    assert (beyond.p, beyond.p_apart, beyond.beyond) == (1, 2 * 0.5**5, True)
    assert tost((np.full(5, 4.0), np.full(3, 4.5)), 1.0).p == 1 / 56
    assert np.isnan(tost((np.full(4, 0.2),), 0.3).low)


def test_that_a_difference_is_larger_than_the_margin_is_tested_against_its_nearer_end():
    left, right = noise(1, 20) + 3, noise(2, 20) * 2
    paired, unpaired = tost((left - right,), 0.2), tost((right, left), 0.2)
    assert paired.p_apart == pytest.approx(stats.ttest_1samp(left - right, 0.2).pvalue)
    assert unpaired.p_apart == pytest.approx(stats.ttest_ind(right + 0.2, left, equal_var=False).pvalue)
    assert (paired.beyond, unpaired.beyond) == (True, True)
    within = tost((left - right,), 9.0)
    assert (within.p_apart, within.beyond) == (1, False)


def test_runs_that_are_identical_seed_by_seed_are_the_same_and_others_are_not():
    texts = ["m: a = b within 1", "m: a = b within 1 %"]
    for measured, words in (
        ([[3.0, 4.0], [3.0, 4.0]], ["holds", "holds"]),
        ([[0.0, 0.0], [0.0, 0.0]], ["holds", "holds"]),
        ([[3.0, 4.0], [3.5, 4.5]], ["open", "open"]),
    ):
        found = analyse(study({"m": measured}, ("a", "b")), texts)
        assert [verdict.verdict for verdict in found.expectations] == words
    apart = study({"m": [[3.0] * 2, [3.0] * 2]}, ("a", "b"), paired=False)
    assert analyse(apart, texts).expectations[0].verdict == "open"
    crossed = study({"m": [[3.0, 4.0], [4.0, 3.0], [4.0, 3.0], [3.0, 4.0]]}, ("a", "b"), {"k": [1, 2]})
    assert analyse(crossed, texts).expectations[0].p == 0.25  # the same on average alone


def test_with_too_few_runs_nothing_is_equivalent():
    found = analyse(study({"reach": [[1.0], [1.0]]}, ("a", "b")), ["reach: a = b within 3"])
    assert not row(found.equivalence)["equivalent"]
    assert np.isnan(row(found.equivalence)["p"])
    assert found.expectations[0].verdict == "open"
