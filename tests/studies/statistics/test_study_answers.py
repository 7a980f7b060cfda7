"""What each condition of a study comes to, with intervals, and with what is missing."""

import numpy as np
import pytest
from scipy import stats
from study_tables import failed, noise, row, study

from prism_mesa.studies.statistics.analysis import analyse


def test_a_condition_is_described_by_mean_median_and_sd_of_its_runs():
    values = noise(1, 4, 12)
    table = study({"reach": values}, ("plain", "ranked"), {"agents.band": [0.02, 0.1]})
    answers = analyse(table, []).answers
    assert list(answers.columns[:3]) == ["arm", "agents.band", "measure"]
    found = row(answers, arm="ranked", **{"agents.band": 0.02})
    assert found["mean"] == pytest.approx(np.mean(values[2]))
    assert found["median"] == pytest.approx(np.median(values[2]))
    assert found["sd"] == pytest.approx(np.std(values[2], ddof=1))
    assert (found["n"], found["missing"]) == (12, 0)


def test_a_run_that_failed_does_not_count_even_if_it_left_a_number():
    table = failed(study({"reach": [[1.0, 2.0, 300.0, 4.0]], "depth": [[1.0, np.nan, 3.0, -np.inf]]}), 2)
    found = analyse(table, [])
    reach, depth = (row(found.answers, measure=name) for name in ("reach", "depth"))
    assert (reach["n"], reach["missing"], reach["median"]) == (3, 1, 2.0)
    assert (depth["n"], depth["missing"], depth["mean"]) == (1, 3, 1.0)
    told = " ".join(found.notes)
    assert "1 of 4 runs are not there" in told
    assert "depth: 2 finished runs without this measure" in told


def test_runs_that_are_not_there_are_told_by_arm():
    table = failed(study({"reach": noise(3, 2, 12)}, ("plain", "ranked")), 13, 14)
    table.runs.loc[3, "status"] = "missing"
    assert (
        "3 of 24 runs are not there (plain 1, ranked 2), 2 of them because they failed" in analyse(table, []).notes[0]
    )


def test_equal_numbers_have_an_interval_without_width_and_a_single_one_has_none():
    flat = analyse(study({"reach": [[0.1] * 7]}), []).answers.iloc[0]
    assert flat["low"] == flat["high"] == pytest.approx(0.1)
    few = analyse(study({"reach": [[4.0] * 5]}), []).answers.iloc[0]
    assert np.isnan([few["low"], few["high"]]).all()  # five equal numbers do not say what the sixth will be
    single = analyse(study({"reach": [[4.0]]}), []).answers.iloc[0]
    assert (single["n"], single["mean"]) == (1, 4.0)
    assert np.isnan([single["low"], single["high"], single["sd"]]).all()


def test_an_interval_depends_neither_on_the_order_of_seeds_nor_on_other_measures():
    values = noise(4, 1, 15)
    alone = analyse(study({"reach": values}), []).answers.iloc[0]
    beside = analyse(study({"other": noise(5, 1, 15) * 9, "reach": values[:, ::-1]}), []).answers.iloc[1]
    assert (alone["low"], alone["high"]) == pytest.approx((beside["low"], beside["high"]), rel=1e-12)


@pytest.mark.parametrize("seeds", [2, 9, 10, 30])
def test_the_interval_of_a_mean_is_students(seeds):
    values = noise(6, 1, seeds)
    found = analyse(study({"reach": values}), [])
    expected = stats.ttest_1samp(values[0], 0).confidence_interval()
    assert tuple(found.answers[["low", "high"]].iloc[0]) == pytest.approx(tuple(expected))
    assert found.notes == ()


def test_conditions_come_by_arm_in_the_order_of_the_study_and_keep_their_levels():
    table = study({"reach": noise(7, 6, 2)}, ("z", "a"), {"posts": [True, None, "x"]})
    answers = analyse(table, []).answers
    assert list(answers["arm"]) == ["z"] * 3 + ["a"] * 3
    assert list(answers["posts"])[:3] == [True, None, "x"]
