import numpy as np
import pytest

from prism_mesa.studies.calibration.calibrate import spread
from prism_mesa.studies.calibration.plan import Axis
from prism_mesa.studies.calibration.surrogate import IDENTIFIED, ONLY_BELOW, OPEN, Surrogate, fit_profiles, probe

SPACE = (Axis("a", 0, 10), Axis("b", 1, 100, log=True))
RISE = 3.84


def profiles(distances_at, best, n=60):
    points = spread(n, 2, 1)
    distances = distances_at(points)
    return fit_profiles(SPACE, points, distances, (distances**2).sum(1), np.array(best), RISE)


def test_the_interval_of_an_identified_parameter_is_where_the_objective_rises_by_so_much():
    found = profiles(lambda at: np.stack([10 * (at[:, 0] - 0.4), 8 * (at[:, 1] - 0.5)], axis=1), [0.4, 0.5])
    a, b = found.intervals.to_dict("records")
    half = np.sqrt(RISE)
    assert (a["verdict"], b["verdict"]) == (IDENTIFIED, IDENTIFIED)
    assert (a["low"], a["high"]) == pytest.approx((4 - half, 4 + half), abs=0.25)
    assert np.log10([b["low"], b["high"]]) == pytest.approx([1 - half / 4, 1 + half / 4], abs=0.05)
    assert found.least == pytest.approx(0, abs=0.01)
    curve = found.curves[found.curves["parameter"] == "a"]
    assert curve["objective"].to_numpy() == pytest.approx((curve["value"] - 4) ** 2, abs=0.6)
    assert (curve["possible"] <= curve["objective"] + 1e-9).all()
    around = curve["objective"].rolling(3, center=True, min_periods=1).min()  # a trial lies up to half a step beside
    assert (curve["tried"] >= around - 0.1)[curve["tried"].notna()].all()


def test_a_parameter_without_effect_is_not_identified():
    found = profiles(lambda at: 10 * (at[:, :1] - 0.4), [0.4, 0.7])
    a, b = found.intervals.to_dict("records")
    assert (a["verdict"], b["verdict"]) == (IDENTIFIED, OPEN)
    assert (b["low"], b["high"]) == (1, 100)


def test_two_parameters_of_which_only_the_sum_counts_are_not_identified_although_each_moves_the_measure():
    found = profiles(lambda at: 10 * (at.sum(axis=1, keepdims=True) - 1.0), [0.3, 0.7])
    assert found.intervals["verdict"].tolist() == [OPEN, OPEN]


def test_a_parameter_that_saturates_has_no_upper_end():
    found = profiles(lambda at: np.stack([9 * np.minimum(at[:, 0] - 0.5, 0), 8 * (at[:, 1] - 0.5)], axis=1), [0.7, 0.5])
    a, _ = found.intervals.to_dict("records")
    assert a["verdict"] == ONLY_BELOW
    assert 2.0 < a["low"] < 4.0
    assert a["high"] == 10


def test_profiles_of_one_parameter_need_no_others():
    space = (Axis("a", 0, 10),)
    points = spread(20, 1, 1)
    distances = 10 * (points - 0.3)
    found = fit_profiles(space, points, distances, (distances**2).sum(1), np.array([0.3]), RISE)
    assert found.intervals["verdict"].tolist() == [IDENTIFIED]


def test_a_probe_goes_where_a_profile_is_said_to_be_low_and_no_trial_has_been():
    points = spread(60, 2, 1)
    points = points[np.abs(points.sum(axis=1) - 1) < 0.3 + 0.7 * (points[:, 0] < 0.5)]
    points = points[(points[:, 0] < 0.6) | (np.abs(points.sum(axis=1) - 1) > 0.2)]
    distances = 12 * (points.sum(axis=1, keepdims=True) - 1.0)
    objectives = (distances**2).sum(1)
    surrogate = Surrogate.fit(points, distances)
    found = probe(surrogate, points, objectives, 0, RISE)
    assert found[0] > 0.6
    assert found.sum() == pytest.approx(1, abs=0.1)
    known = np.vstack([points, *[[at, 1 - at] for at in np.linspace(0, 1, 9)]])
    distances = 12 * (known.sum(axis=1, keepdims=True) - 1.0)
    assert probe(Surrogate.fit(known, distances), known, (distances**2).sum(1), 0, RISE) is None
