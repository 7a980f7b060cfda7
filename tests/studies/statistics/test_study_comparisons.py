"""One side against another, by means and by ranks, and how often intervals hold the true value."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.cells import make_cells
from prism_mesa.studies.statistics.comparisons import compare_pairs, differences
from prism_mesa.studies.statistics.significance import holm, mann_whitney, t_test


def test_arms_with_the_same_seeds_are_compared_seed_by_seed():
    common = 5 * noise(1, 20)
    plain, ranked = common + noise(2, 20), common + noise(3, 20) + 0.4
    found = row(analyse(study({"reach": [plain, ranked]}, ("plain", "ranked")), []).differences)
    expected = stats.ttest_rel(ranked, plain)
    assert (found["left"], found["right"], found["term"]) == ("ranked", "plain", "arm")
    assert found["difference"] == pytest.approx(np.mean(ranked - plain))
    assert found["p"] == pytest.approx(expected.pvalue)
    assert (found["low"], found["high"]) == pytest.approx(tuple(expected.confidence_interval()))


def test_conditions_of_other_factors_are_averaged_within_a_seed_before_the_test():
    values = noise(4, 6, 10) + np.arange(6)[:, None]  # arm by arm, three bands each
    found = row(analyse(study({"reach": values}, ("a", "b"), {"band": [1, 2, 3]}), []).differences, term="arm")
    expected = stats.ttest_rel(values[3:].mean(axis=0), values[:3].mean(axis=0))
    assert (found["n"], found["p"]) == (30, pytest.approx(expected.pvalue))
    assert found["difference"] == pytest.approx(3 + (noise(4, 6, 10)[3:] - noise(4, 6, 10)[:3]).mean())


def test_a_pair_without_one_of_its_runs_is_missing_and_the_others_count():
    values = noise(5, 4, 8)
    table = failed(study({"reach": values}, ("a", "b"), {"band": [1, 2]}), 0, 24 + 3)
    found = row(analyse(table, []).differences, term="arm")
    apart = values[2:] - values[:2]
    apart[0, 0] = apart[1, 3] = np.nan
    assert (found["n"], found["missing"]) == (14, 2)
    assert found["difference"] == pytest.approx(np.nanmean(apart))
    assert found["low"] < found["difference"] < found["high"]


def test_seeds_with_missing_pairs_count_as_much_as_they_have_pairs():
    """The interval is that of a ratio's linearised estimate, so it lies around the mean over all pairs."""
    values = noise(13, 4, 10) * 0.1 + np.array([0, 0, 0, 5])[:, None]
    gone = [30 + seed for seed in (1, 4, 7)]  # without these a seed's mean difference is about 2.5, with them 0
    found = row(analyse(failed(study({"reach": values}, ("a", "b"), {"k": [1, 2]}), *gone), []).differences, term="arm")
    apart = values[2:] - values[:2]
    apart[1, [1, 4, 7]] = np.nan
    sums, counts = np.nansum(apart, axis=0), np.isfinite(apart).sum(axis=0)
    mean = sums.sum() / counts.sum()
    error = np.std(sums - mean * counts, ddof=1) / counts.mean() / np.sqrt(10)
    assert found["difference"] == pytest.approx(mean)
    half = stats.t.ppf(0.975, 9) * error
    assert (found["low"], found["high"]) == pytest.approx((mean - half, mean + half))
    assert found["p"] == pytest.approx(2 * stats.t.sf(mean / error, 9))


def test_runs_that_were_never_planned_are_not_missing():
    table = study({"reach": noise(14, 2, 6)}, ("a", "b"))
    fewer = replace(table, runs=table.runs.drop(index=[0, 1, 11]))  # an arm was added with other seeds
    found = row(analyse(failed(fewer, 4), []).differences)
    assert (found["n"], found["missing"]) == (2, 1)


def test_arms_with_their_own_seeds_are_compared_by_welch():
    values = noise(6, 2, 15) * [[1], [3]]
    table = failed(study({"reach": values}, ("a", "b"), paired=False), 2)
    found = row(analyse(table, []).differences)
    expected = stats.ttest_ind(values[1], np.delete(values[0], 2), equal_var=False)
    assert found["p"] == pytest.approx(expected.pvalue)
    assert (found["n"], found["missing"]) == (14, 1)
    assert (found["low"], found["high"]) == pytest.approx(tuple(expected.confidence_interval()))


@pytest.mark.parametrize("paired", [True, False])
def test_arms_that_are_equal_everywhere_do_not_differ(paired):
    same = np.full(9, 0.7) if not paired else noise(7, 9)
    found = row(analyse(study({"reach": [same, same]}, ("a", "b"), paired=paired), []).differences)
    assert (found["difference"], found["p"], found["p_holm"], found["low"], found["high"]) == (0, 1, 1, 0, 0)


@pytest.mark.parametrize("base", [0.1, 1e6 + 0.1])  # of large numbers, differences are rounded more
def test_a_difference_that_is_the_same_for_all_seeds_has_the_p_of_its_signs(base):
    steps = base + np.arange(20) / 10
    for seeds, interval in ((2, False), (5, False), (6, True), (20, True)):
        table = study({"share": [steps[:seeds], steps[:seeds] + 0.3]}, ("a", "b"))
        found = row(analyse(table, []).differences)
        assert found["p"] == 2 * 0.5**seeds
        if interval:
            assert (found["low"], found["high"]) == (pytest.approx(0.3), pytest.approx(0.3))
        else:
            assert np.isnan([found["low"], found["high"]]).all()


def test_sides_that_are_each_the_same_have_the_p_of_dealing_out_their_runs():
    for seeds, ways in ((2, 6), (3, 20), (4, 70)):
        sides = np.repeat([[1e6], [1e6 + 1]], seeds, axis=1)
        found = row(analyse(study({"m": sides}, ("a", "b"), paired=False), []).differences)
        assert found["p"] == 2 / ways
        assert np.isnan(found["low"]) == (found["p"] > 0.05)


def test_what_differs_by_rounding_alone_is_the_same():
    found = row(analyse(study({"m": [[0.3, 0.6, 0.9], [0.1 + 0.2, 0.6, 0.9]]}, ("a", "b")), []).differences)
    assert (found["difference"], found["p"], found["low"], found["high"]) == (0, 1, 0, 0)


@pytest.mark.parametrize("seeds", [2, 9, 10, 30])
@pytest.mark.parametrize("paired", [True, False])
def test_an_interval_leaves_out_0_exactly_where_p_is_below_05(seeds, paired):
    factors = {"k": [1, 2]} if paired else {"k": [1]}
    sides = np.repeat([[0.0], [3 / seeds**0.5]], len(factors["k"]), axis=0)
    values = {f"m{k}": noise(k, len(sides), seeds) + sides for k in range(60)}
    table = study(values, ("a", "b"), factors, paired=paired)
    if paired:
        failed(table, 0)  # a seed has fewer pairs than the others
    cells = make_cells(table)
    found = differences(cells, [("arm", 1, 0)])
    clear = found["p"] < 0.05
    assert 0 < clear.sum() < 60
    assert ((found["low"] > 0) | (found["high"] < 0)).tolist() == clear.tolist()


def test_one_seed_tests_nothing_and_no_run_says_nothing():
    single = row(analyse(study({"reach": [[1.0], [2.0]]}, ("a", "b")), []).differences)
    assert (single["difference"], single["n"]) == (1, 1)
    assert np.isnan([single["p"], single["p_holm"], single["low"]]).all()
    none = row(analyse(failed(study({"reach": noise(8, 2, 3)}, ("a", "b")), 0, 1, 2), []).differences)
    assert (none["n"], none["missing"]) == (0, 3)
    assert np.isnan([none["difference"], none["p"], none["u"], none["rank_biserial"]]).all()


def test_ranks_agree_with_scipy_on_its_own_example():
    """Ages at diagnosis of diabetes: U = 17 and p = .111 (scipy.stats.mannwhitneyu, examples)."""
    males, females = [19.0, 22, 16, 29, 24], [20.0, 11, 17, 12]
    u, p, r = mann_whitney(np.array(males)[:, None], np.array(females)[:, None])
    assert (u[0], round(p[0], 4)) == (17, 0.1111)
    assert r[0] == pytest.approx((17 - 3) / 20)  # favourable less unfavourable pairs, of all


def test_ranks_of_many_columns_are_those_of_each_alone():
    left, right = noise(9, 12, 3), noise(10, 9, 3) + 0.5
    left[:, 1], right[:, 1] = np.round(left[:, 1]), np.round(right[:, 1])
    left[:, 2] = right[:, 2] = 4.0
    u, p, r = mann_whitney(left, right)
    for column in (0, 1):
        alone = stats.mannwhitneyu(left[:, column], right[:, column])
        assert (u[column], p[column]) == (alone.statistic, pytest.approx(alone.pvalue))
    assert (p[2], r[2]) == (1, 0)


@pytest.mark.parametrize("p", [[0.3], [0.04, 0.01, 0.03, 0.01, 0.9], [0.0, np.nan, 0.02, 1.0, np.nan, 0.015]])
def test_holm_is_that_of_statsmodels_over_the_numbers_that_are_there(p):
    given = np.array(p)
    known = np.isfinite(given)
    found = holm(given)
    assert np.isnan(found[~known]).all()
    assert found[known] == pytest.approx(multipletests(given[known], method="holm")[1])


def test_all_pairs_of_arms_and_of_few_levels_are_compared_and_many_levels_are_named():
    table = study({"reach": noise(11, 3 * 2 * 7, 2)}, ("a", "b", "c"), {"media": [False, True], "size": list(range(7))})
    found = analyse(table, [])
    pairs = found.differences[["term", "left", "right"]].apply(tuple, axis=1).tolist()
    assert pairs == [("arm", "b", "a"), ("arm", "c", "a"), ("arm", "c", "b"), ("media", "true", "false")]
    assert any(note.startswith("size: 7 levels") for note in found.notes)
    sampled = study({"reach": noise(12, 6, 4)}, ("a", "b"), {"band": [0.1, 0.2, 0.3]}, design="csv")
    assert set(analyse(sampled, []).differences["term"]) == {"arm"}


def test_differences_are_corrected_over_the_whole_table():
    found = analyse(study({f"m{k}": noise(k, 3, 9) for k in range(4)}, ("a", "b", "c")), []).differences
    assert found["p_holm"].to_numpy() == pytest.approx(multipletests(found["p"], method="holm")[1])


@pytest.mark.parametrize("n", [5, 10, 30])
def test_intervals_of_normal_values_hold_the_true_value_95_times_in_100(n):
    left, right = np.random.Generator(np.random.PCG64(n)).standard_normal((2, n, 10_000))
    paired = compare_pairs(left[None], right[None], n)
    intervals = (*(t_test(samples)[1:] for samples in ((left,), (left, right))), (paired.low, paired.high))
    shares = [((low <= 0) & (high >= 0)).mean() for low, high in intervals]
    assert all(0.94 <= share <= 0.96 for share in shares)
