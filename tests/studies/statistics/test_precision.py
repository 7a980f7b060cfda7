"""Width of intervals against number of seeds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from study_tables import noise, row, study

from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.comparisons import expected_width


def half(n, df):
    return stats.t.ppf(0.975, df) / np.sqrt(n)


def test_the_width_at_all_seeds_is_that_of_the_t_interval_of_the_paired_difference():
    values = noise(1, 2, 9)
    found = analyse(study({"reach": values}, ("a", "b")), []).precision
    assert list(found["seeds"]) == [2, 3, 4, 5, 6, 7, 8, 9]
    interval = stats.ttest_rel(values[1], values[0]).confidence_interval()
    assert found["half_width"].iloc[-1] == pytest.approx((interval.high - interval.low) / 2)
    sd = np.std(values[1] - values[0], ddof=1)
    assert found["half_width"].iloc[0] == pytest.approx(sd * half(2, 1))


def test_without_arms_levels_of_factors_are_shown_and_with_arms_only_these():
    bare = analyse(study({"reach": noise(2, 2, 4)}, factors={"k": [1, 2]}), []).precision
    assert set(bare["term"]) == {"k"}
    armed = analyse(study({"reach": noise(2, 4, 4)}, ("a", "b"), {"k": [1, 2]}), []).precision
    assert set(armed["term"]) == {"arm"}


def test_a_pilot_of_two_seeds_tells_how_wide_intervals_will_be():
    values = noise(3, 6, 2) * 0.2
    pilot = study({"reach": values}, ("a", "b"), {"k": [1, 2, 3]})
    found = row(expected_width(pilot, 20), term="arm")
    within = np.var(values[3:] - values[:3], axis=1, ddof=1).mean()
    assert found["half_width"] == pytest.approx(np.sqrt(within / 3) * half(20, 19))
    assert (found["left"], found["right"]) == ("b", "a")


def test_a_pilot_with_seeds_of_its_own_counts_runs():
    values = noise(4, 4, 3)
    pilot = study({"reach": values}, ("a", "b"), {"k": [1, 2]}, paired=False)
    found = row(expected_width(pilot, 10), term="arm")
    variance = 2 * np.var(values, axis=1, ddof=1).mean()
    assert found["half_width"] == pytest.approx(np.sqrt(variance) * half(20, 38))


def test_a_pilot_of_some_conditions_counts_on_all_that_are_planned():
    values = noise(5, 6, 20)
    whole = study({"reach": values}, ("a", "b"), {"k": [1, 2, 3]})
    run = (whole.runs["seed"] < 2) & (whole.runs["k"] == 2)
    pilot = replace(whole, runs=whole.runs.assign(status=np.where(run, "done", "missing")))
    found = expected_width(pilot, 20)
    within = np.var(values[4, :2] - values[1, :2], ddof=1)
    assert row(found, term="arm")["half_width"] == pytest.approx(np.sqrt(within / 3) * half(20, 19))
    alone = 2 * np.var(values[[1, 4], :2], axis=1, ddof=1).mean() / 2  # of two arms; no two levels of k were run
    assert row(found, term="k", left="2", right="1")["half_width"] == pytest.approx(np.sqrt(alone) * half(20, 19))


def test_a_pilot_that_cannot_tell_says_so():
    assert np.isnan(row(expected_width(study({"reach": [[1.0], [2.0]]}, ("a", "b")), 20))["half_width"])
    nothing = expected_width(study({"reach": noise(5, 1, 2)}), 20)
    assert list(nothing.columns) == ["measure", "term", "left", "right", "half_width"]
    assert len(nothing) == 0
