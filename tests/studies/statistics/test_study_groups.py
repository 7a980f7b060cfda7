"""Three groups or more: Kruskal-Wallis and Dunn."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.groups import dunn, kruskal_wallis
from prism_mesa.studies.statistics.significance import holm

REST = """85 85 88 90 92 93 97 97 94 80 82 83 91 92 91 83 83 84 87 88 90 92 94 95 97 99 96 100 97 100"""
WALKING = """86 86 84 93 103 104 90 92 93 95 96 100 89 96 95 84 86 89 103 109 90 92 96 101 97 98 100 102 104 103"""
RUNNING = """93 98 110 98 104 112 98 105 99 87 132 120 94 110 116 95 126 143 100 126 140 103 124 140 94 135 130 99 111
150"""


def test_dunn_agrees_with_r_on_numbers_of_which_many_are_equal():
    """Pulses at rest, walking and running (`exercise` of seaborn-data), p by R's PMCMR with Holm.

    R's p are those in the tests of scikit-posthocs (`test_posthoc_dunn`).
    """
    values = np.array([*REST.split(), *WALKING.split(), *RUNNING.split()], float)[:, None]
    pairs, z, p = dunn(values, np.repeat([0, 1, 2], 30), 3)
    assert pairs == [(1, 0), (2, 0), (2, 1)]
    assert holm(p)[:, 0] == pytest.approx([4.390066e-02, 9.570998e-09, 1.873208e-04], rel=1e-6)
    assert (z > 0).all()


def test_dunn_agrees_with_another_program_on_five_groups():
    """As in the README of pereirabarataap/dunn, which takes the first group less the second."""
    a = [0.28551035, 0.338524035, 0.088631321, 0.205930807, 0.363240102]
    b = [0.52173913, 0.763358779, 0.325436786, 0.425305688, 0.378071834]
    c = [0.98911968, 1.192718142, 0.788288288, 0.549176236, 0.544588155]
    d = [1.26705653, 1.625320787, 1.266108976, 1.154187629, 1.268489431]
    e = [1.25697569, 1.265897356, 1.237814561, 0.954612564, 2.365415457]
    _, z, p = dunn(np.array(a + b + c + d + e)[:, None], np.repeat(np.arange(5), 5), 5)
    assert z[:4, 0] == pytest.approx([0.9882, 2.1054, 3.8241, 3.3944], abs=5e-5)
    assert (z[-1, 0], p[-1, 0]) == (pytest.approx(-0.42967, abs=5e-6), pytest.approx(0.66744, abs=5e-6))


def test_kruskal_wallis_is_scipys_for_each_measure_with_its_own_gaps():
    values = np.round(noise(1, 3, 10), 1)
    table = failed(study({"reach": values, "flat": np.ones((3, 10))}, ("a", "b", "c")), 4)
    table.runs.loc[[11, 25], "reach"] = np.nan
    found = analyse(table, []).groups
    reach, flat = row(found, measure="reach"), row(found, measure="flat")
    expected = stats.kruskal(np.delete(values[0], 4), np.delete(values[1], 1), np.delete(values[2], 5))
    assert (reach["h"], reach["p"], reach["df"]) == (
        pytest.approx(expected.statistic),
        pytest.approx(expected.pvalue),
        2,
    )
    assert (reach["n"], reach["missing"], flat["n"], flat["missing"]) == (27, 3, 29, 1)
    assert (flat["h"], flat["p"]) == (0, 1)
    assert found["p_holm"].to_numpy() == pytest.approx(multipletests(found["p"], method="holm")[1])


def test_a_group_without_runs_takes_a_degree_of_freedom():
    values = np.array([[1.0], [2.0], [np.nan], [5.0], [4.0]])
    h, df, p = kruskal_wallis(values, np.array([0, 0, 1, 2, 2]))
    assert (df[0], h[0], p[0]) == (1, pytest.approx(2.4), pytest.approx(stats.chi2.sf(2.4, 1)))
    pairs, z, _ = dunn(values, np.array([0, 0, 1, 2, 2]), 3)
    assert [bool(np.isnan(one)) for one in z[:, 0]] == [True, False, True]
    assert pairs[1] == (2, 0)


def test_conditions_are_compared_all_together_where_more_than_one_term_varies():
    table = study({"reach": noise(2, 4, 6)}, ("a", "b"), {"media": [0.0, 0.5]})
    found = analyse(table, [])
    assert row(found.groups)["term"] == "condition"
    assert len(found.dunn) == 6
    assert row(found.dunn, left="b, media=0.5", right="a, media=0")["p_holm"] <= 1
    assert list(analyse(study({"reach": noise(3, 3, 6)}, ("a", "b", "c")), []).groups["term"]) == ["arm"]


def test_two_levels_are_no_groups():
    found = analyse(study({"reach": noise(4, 2, 6)}, ("a", "b")), [])
    assert len(found.groups) == len(found.dunn) == 0


def test_dunn_is_corrected_within_a_measure_and_left_out_of_very_many_pairs():
    found = analyse(study({"x": noise(5, 3, 8), "y": noise(6, 3, 8)}, ("a", "b", "c")), []).dunn
    for measure in ("x", "y"):
        some = found[found["measure"] == measure]
        assert some["p_holm"].to_numpy() == pytest.approx(multipletests(some["p"], method="holm")[1])
    many = analyse(study({"x": noise(7, 16, 3)}, ("a", "b", "c", "d"), {"k": [1, 2, 3, 4]}), [])
    assert set(many.dunn["term"]) == {"arm", "k"}
    assert "condition: its 16 levels are too many for Dunn's test of all pairs (12)." in many.notes
