"""Main effects and interactions, and tests of three groups or more."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.effects import kruskal_wallis

FACTORS = {"feed.mode": ["x", "y"], "share": [0.0, 0.5, 1.0]}


def built(seeds=6, paired=True):
    values = noise(1, 12, seeds) + noise(2, seeds) + np.repeat([0, 0.5], 6)[:, None] + np.tile([0, 0, 1], 4)[:, None]
    return study({"reach": values, "other": noise(3, 12, seeds)}, ("a", "b"), FACTORS, paired=paired)


def anova(table, formula, measure="reach"):
    runs = table.runs[(table.runs["status"] == "done") & table.runs[measure].notna()]
    found = anova_lm(ols(f"{measure} ~ {formula}", runs).fit(), typ=2)
    names = {"C(arm)": "arm", "C(Q('feed.mode'))": "feed.mode", "C(share)": "share"}
    found.index = [" x ".join(names.get(part, part) for part in name.split(":")) for name in found.index]
    return found


TERMS = "(C(arm) + C(Q('feed.mode')) + C(share)) ** 2"


def agrees(effects, expected):
    for _, found in effects.iterrows():
        other = expected.loc[found["effect"]]
        assert (found["f"], found["p"]) == (pytest.approx(other["F"]), pytest.approx(other["PR(>F)"]))
        assert found["df"] == other["df"]
        eta = other["sum_sq"] / (other["sum_sq"] + expected.loc["Residual", "sum_sq"])
        assert found["partial_eta_squared"] == pytest.approx(eta)


def test_effects_are_those_of_statsmodels_with_a_block_for_each_seed():
    table = built()
    found = analyse(table, [])
    reach = found.effects[found.effects["measure"] == "reach"]
    assert list(reach["effect"]) == ["arm", "feed.mode", "share", "arm x feed.mode", "arm x share", "feed.mode x share"]
    assert (reach["n"] == 72).all()
    agrees(reach, anova(table, f"{TERMS} + C(seed)"))
    assert "Effects: interactions of three terms and more are left out." in found.notes
    assert row(reach, effect="share")["p_holm"] < 0.05


def test_effects_of_runs_with_their_own_seeds_have_no_blocks():
    table = built(paired=False)
    found = analyse(table, []).effects
    agrees(found[found["measure"] == "other"], anova(table, TERMS, "other"))


def test_with_runs_missing_sums_of_squares_are_of_type_two():
    table = failed(built(seeds=4), 0, 1, 2, 13, 30)
    table.runs.loc[[7, 40], "reach"] = np.nan
    found = analyse(table, [])
    reach = found.effects[found.effects["measure"] == "reach"]
    agrees(reach, anova(table, f"{TERMS} + C(seed)"))
    assert (reach.iloc[0]["n"], reach.iloc[0]["missing"]) == (41, 7)
    agrees(found.effects[found.effects["measure"] == "other"], anova(table, f"{TERMS} + C(seed)", "other"))
    assert any("2 of 2 measures lack runs" in note for note in found.notes)


def test_two_arms_alone_have_the_paired_t_tests_p():
    found = analyse(study({"reach": noise(4, 2, 15)}, ("a", "b")), [])
    assert row(found.effects)["p"] == pytest.approx(row(found.differences)["p"])


def test_a_condition_without_any_run_takes_the_interactions_degree_of_freedom():
    table = failed(study({"reach": noise(5, 4, 5)}, ("a", "b"), {"k": [1, 2]}), *range(15, 20))
    found = analyse(table, []).effects
    assert list(found["effect"]) == ["arm", "k"]
    runs = table.runs[table.runs["status"] == "done"]
    expected = anova_lm(ols("reach ~ C(arm) + C(k) + C(seed)", runs).fit(), typ=2)
    assert found["f"].to_numpy() == pytest.approx(expected["F"].to_numpy()[:2])


@pytest.mark.parametrize("values", [np.ones((4, 5)), np.arange(4.0)[:, None] * np.ones((4, 5)), noise(6, 4, 1)])
def test_what_does_not_vary_between_seeds_or_has_one_has_no_effects_and_a_note_says_so(values):
    found = analyse(study({"reach": values}, ("a", "b"), {"k": [1, 2]}), [])
    assert len(found.effects) == 0
    assert any(note.startswith("Effects: 1 of 1 measures are left out") for note in found.notes)


def test_interactions_that_would_take_too_many_columns_are_left_out():
    table = study({"reach": noise(7, 25 * 25, 2)}, factors={"k": list(range(25)), "l": list(range(25))})
    found = analyse(table, [])
    assert list(found.effects["effect"]) == ["k", "l"]
    assert any("interactions would take" in note for note in found.notes)


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
