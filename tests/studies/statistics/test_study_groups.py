"""Three groups or more: Kruskal-Wallis."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.effects import kruskal_wallis


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


def test_conditions_are_compared_all_together_where_more_than_one_term_varies():
    table = study({"reach": noise(2, 4, 6)}, ("a", "b"), {"media": [0.0, 0.5]})
    found = analyse(table, [])
    assert row(found.groups)["term"] == "condition"
    assert list(analyse(study({"reach": noise(3, 3, 6)}, ("a", "b", "c")), []).groups["term"]) == ["arm"]


def test_two_levels_are_no_groups():
    found = analyse(study({"reach": noise(4, 2, 6)}, ("a", "b")), [])
    assert len(found.groups) == 0
