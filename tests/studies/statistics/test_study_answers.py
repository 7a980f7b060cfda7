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
    assert [note.partition(" ")[0] for note in found.notes] == ["1", "depth:"]


def test_equal_numbers_have_an_interval_without_width_and_a_single_one_has_none():
    flat = analyse(study({"reach": [[0.1] * 7]}), []).answers.iloc[0]
    assert flat["low"] == flat["high"] == pytest.approx(0.1)
    few = analyse(study({"reach": [[4.0] * 5]}), []).answers.iloc[0]
    assert np.isnan([few["low"], few["high"]]).all()  # five equal numbers do not say what the sixth will be
    single = analyse(study({"reach": [[4.0]]}), []).answers.iloc[0]
    assert (single["n"], single["mean"]) == (1, 4.0)
    assert np.isnan([single["low"], single["high"], single["sd"]]).all()


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
