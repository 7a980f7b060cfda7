"""Verdicts on expectations, and tests of equivalence."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind, ttost_paired
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.cells import make_cells
from prism_mesa.studies.statistics.comparisons import differences
from prism_mesa.studies.statistics.expectation import parse_expectation
from prism_mesa.studies.statistics.significance import tost
from prism_mesa.studies.statistics.verdicts import verdicts

ARMS = ("plain", "ranked")


def by(more):
    """Return what makes the second arm larger by `more`."""
    return np.array([[0.0], [more]])


def judged(table, *texts):
    return analyse(table, texts).expectations


def test_what_is_clearly_so_holds_and_its_opposite_fails():
    table = study({"gini": noise(1, 2, 20) + by(3)}, ARMS)
    right, wrong = judged(table, "gini: ranked > plain", "gini: ranked < plain")
    assert (right.verdict, wrong.verdict) == ("holds", "fails")
    assert right.difference == wrong.difference == pytest.approx(np.mean(noise(1, 2, 20)[1] - noise(1, 2, 20)[0]) + 3)
    assert right.text == "gini: ranked > plain"
    assert 0 < right.interval[0] < right.difference < right.interval[1]


def test_what_the_runs_cannot_tell_is_open():
    verdict = judged(study({"gini": noise(2, 2, 20)}, ARMS), "gini: ranked > plain")[0]
    assert verdict.verdict == "open"
    assert verdict.interval[0] < 0 < verdict.interval[1]


@pytest.mark.parametrize("seeds", [1, 20])
@pytest.mark.parametrize("paired", [True, False])
def test_arms_without_any_difference_do_not_hold(paired, seeds):
    same = np.full(seeds, 0.3) if not paired else noise(3, seeds)
    table = study({"gini": [same, same]}, ARMS, paired=paired)
    for verdict in judged(table, "gini: ranked > plain", "gini: ranked < plain"):
        assert (verdict.verdict, verdict.difference) == ("fails", 0)
        assert "is exactly the same in ranked and in plain" in verdict.sentence


def test_one_seed_or_no_run_leaves_it_open():
    single = judged(study({"gini": [[1.0], [2.0]]}, ARMS), "gini: ranked > plain")[0]
    assert (single.verdict, single.difference, single.n) == ("open", 1, 1)
    assert single.sentence.endswith("is 1 (1 pair), and one seed is too few to tell.")
    none = judged(failed(study({"gini": noise(4, 2, 2)}, ARMS), 0, 1), "gini: ranked > plain")[0]
    assert (none.verdict, none.n, none.missing) == ("open", 0, 2)
    assert "no runs are available to compare gini in ranked and in plain" in none.sentence


def test_p_is_corrected_over_all_expectations_those_of_equality_too():
    table = study({f"m{k}": noise(k, 2, 12) + by(k / 4) for k in range(5)}, ARMS)
    texts = [f"m{k}: ranked > plain" for k in range(5)] + ["m0: ranked = plain within 2"]
    found = judged(table, *texts)
    p = [verdict.p for verdict in found]
    assert p[3] == pytest.approx(stats.ttest_rel(*(noise(3, 2, 12) + by(3 / 4))).pvalue)
    assert [verdict.p_holm for verdict in found] == pytest.approx(multipletests(p, method="holm")[1])
    assert found[5].test.startswith("two one-sided tests (TOST), each a paired t-test")


def test_an_equality_holds_within_its_margin_fails_beyond_it_and_is_open_between():
    table = study({"gini": noise(6, 2, 30) + 10 + by(1)}, ARMS)
    wide, narrow, near = judged(
        table,
        "gini: ranked = plain within 25 %",
        "gini: ranked = plain within 1 %",
        "gini: ranked = plain within 1",
    )
    assert (wide.verdict, narrow.verdict, near.verdict) == ("holds", "fails", "open")
    assert judged(table, "gini: plain = ranked within 1 %")[0].verdict == "fails"
    assert wide.sentence.startswith("Holds: gini in ranked is the same as in plain within 2.")
    assert "(25 % of the mean in plain)" in wide.sentence


def test_an_equality_fails_by_the_test_against_its_margin():
    values = noise(6, 2, 5) + by(1.5)
    [verdict] = judged(study({"gini": values}, ARMS), "gini: ranked = plain within 0.1")
    assert (verdict.verdict, verdict.test) == (
        "fails",
        "paired t-test of the seeds' mean differences, against the margin",
    )
    assert verdict.p == verdict.p_holm == pytest.approx(stats.ttest_1samp(values[1] - values[0], 0.1).pvalue)
    assert verdict.interval == pytest.approx(stats.ttest_rel(values[1], values[0]).confidence_interval())


@pytest.mark.parametrize("seeds", [2, 3, 5, 9])
def test_of_few_seeds_an_equality_fails_where_its_interval_lies_beyond_the_margin(seeds):
    names = [f"m{k}" for k in range(25)]
    cells = make_cells(study({name: noise(k, 2, seeds) / 3 + by(0.7) for k, name in enumerate(names)}, ARMS))
    found = []
    for name in names:
        text = f"{name}: ranked = plain within 0.2"
        [verdict] = verdicts(cells, [parse_expectation(text, measures=names, arms=ARMS, factors={})])[0]
        found.append(verdict.verdict == "fails")
        assert found[-1] == (verdict.interval[0] > 0.2 or verdict.interval[1] < -0.2)
    assert any(found)
    assert not all(found)


def test_levels_of_factors_are_compared_over_what_neither_side_names():
    values = noise(7, 8, 6) + np.array([0, 0, 5, 5, 0, 0, 5, 5])[:, None]
    table = study({"gini": values}, ARMS, {"mode": ["x", "y"], "share": [0.0, 0.5]})
    over_all, within = judged(table, "gini: mode=y > mode=x", "gini: ranked, mode=y > ranked, mode=x")
    by_mode = values.reshape(2, 2, 2, 6)
    assert (over_all.n, within.n) == (24, 12)
    assert over_all.difference == pytest.approx((by_mode[:, 1] - by_mode[:, 0]).mean())
    assert within.difference == pytest.approx((by_mode[1, 1] - by_mode[1, 0]).mean())
    assert "with mode=y than with mode=x" in over_all.sentence
    assert "in ranked with mode=y than in ranked with mode=x" in within.sentence


def test_a_factor_that_one_side_names_is_averaged_on_the_other_and_a_gap_there_is_a_missing_pair():
    values = noise(8, 4, 5)
    table = failed(study({"gini": values}, ARMS, {"share": [0.0, 0.5]}), 5 + 2)  # plain, share .5, the third seed
    verdict = judged(table, "gini: ranked, share=0.5 > plain")[0]
    keep = [0, 1, 3, 4]
    assert (verdict.n, verdict.missing) == (4, 1)
    assert verdict.difference == pytest.approx((values[3] - values[:2].mean(axis=0))[keep].mean())


def test_a_sentence_has_the_figures_and_says_what_is_missing():
    table = failed(study({"gini": noise(9, 2, 20) / 50 + 0.6 + by(0.1)}, ARMS), 0, 3, 25)
    verdict = judged(table, "gini: ranked > plain")[0]
    low, high = verdict.interval
    assert verdict.sentence == (
        f"Holds: gini is larger in ranked than in plain by {verdict.difference:.3g} (95 % interval {low:.3g} to "
        f"{high:.3g}; 17 pairs; Holm p < .001). 3 of 20 pairs are missing, and failed runs are not random."
    )
    opposite = judged(table, "gini: plain > ranked")[0]
    assert opposite.sentence.startswith(
        f"Fails: gini is not larger but smaller in plain than in ranked by {verdict.difference:.3g} "
        f"(95 % interval {low:.3g} to {high:.3g};"
    )


RELATIONS = (
    "{}: ranked > plain",
    "{}: ranked < plain",
    "{}: ranked = plain within 0.05",
    "{}: ranked = plain within 1 %",
)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_seeds_of_equal_arms_find_nothing_in_200_measures(n, paired):
    names = [f"m{k}" for k in range(200)]
    texts = [RELATIONS[k % 4].format(name) for k, name in enumerate(names)]
    asked = [parse_expectation(text, measures=names, arms=ARMS, factors={}) for text in texts]
    found = []
    for seed in range(3):
        cells = make_cells(study(dict(zip(names, noise(seed, 200, 2, n), strict=True)), ARMS, paired=paired))
        wrong = [verdict.verdict != "open" for verdict in verdicts(cells, asked)[0]]
        rows = differences(cells, [("arm", 1, 0)])["p_holm"] < 0.05
        found.append((any(wrong), rows.any()))
    assert (np.sum(found, axis=0) <= 1).all()


@pytest.mark.parametrize(
    ("texts", "place", "family"),
    [
        (["reach: plain = ranked within 9"], 0, "expectations, of a margin"),
        (["reach: plain = ranked within 9", "reach: plain < ranked"], 1, "expectations"),
    ],
)
def test_a_row_of_the_differences_has_the_p_of_the_expectation_about_it(texts, place, family):
    found = analyse(study({"reach": noise(1, 2, 12) + by(2)}, ARMS), texts)
    row = found.differences.iloc[0]
    assert (row["p_holm"], row["family"]) == (found.expectations[place].p_holm, family)


def test_paired_arms_have_the_effect_size_of_their_differences():
    values = noise(3, 2, 12) + by(1)
    paired, apart = (
        analyse(study({"reach": values}, ARMS, paired=one), []).differences.iloc[0] for one in (True, False)
    )
    differences = values[1] - values[0]
    assert paired["d_z"] == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert np.isnan(apart["d_z"])
    same = analyse(study({"reach": [values[0], values[0] + 1], "none": [values[0], values[0]]}, ARMS), []).differences
    assert same["d_z"].tolist() == [pytest.approx(np.nan, nan_ok=True), 0.0]


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
    assert (inside.p, inside.p_beyond, inside.is_beyond) == (0.5**5, 1, False)
    assert (at.p, at.p_beyond, at.is_beyond) == (1, 1, False)
    assert (beyond.p, beyond.p_beyond, beyond.is_beyond) == (1, 2 * 0.5**5, True)
    assert tost((np.full(5, 4.0), np.full(3, 4.5)), 1.0).p == 1 / 56
    assert np.isnan(tost((np.full(4, 0.2),), 0.3).low)


def test_that_a_difference_is_larger_than_the_margin_is_tested_against_its_nearer_end():
    left, right = noise(1, 20) + 3, noise(2, 20) * 2
    paired, unpaired = tost((left - right,), 0.2), tost((right, left), 0.2)
    assert paired.p_beyond == pytest.approx(stats.ttest_1samp(left - right, 0.2).pvalue)
    assert unpaired.p_beyond == pytest.approx(stats.ttest_ind(right + 0.2, left, equal_var=False).pvalue)
    assert (paired.is_beyond, unpaired.is_beyond) == (True, True)
    within = tost((left - right,), 9.0)
    assert (within.p_beyond, within.is_beyond) == (1, False)


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
