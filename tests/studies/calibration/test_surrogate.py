"""Surrogates, what they propose, and profiles of parameters."""

import numpy as np
import pytest

from prism_mesa.streams import make_generator
from prism_mesa.studies.calibration.calibrate import likely_points, spread_points
from prism_mesa.studies.calibration.plan import Axis
from prism_mesa.studies.calibration.surrogate import (
    IDENTIFIED,
    ONLY_BELOW,
    OPEN,
    GaussianProcess,
    Surrogate,
    best_guess,
    fit_profiles,
    propose_probe,
)


def wavy(points):
    return np.sin(4 * points[:, 0]) + 2 * points[:, 1] ** 2


def test_a_process_tells_a_smooth_function_between_the_places_that_it_knows_and_how_unsure_it_is():
    known, new = spread_points(40, 2, 1), spread_points(64, 2, 2)
    process = GaussianProcess.fit(known, wavy(known))
    mean, sd = process.predict(new)
    assert np.abs(mean - wavy(new)).max() < 0.1
    assert process.predict(known)[1].max() < 0.05
    corner = GaussianProcess.fit(known[(known < 0.5).all(axis=1)], wavy(known[(known < 0.5).all(axis=1)]))
    assert corner.predict(np.array([[1.0, 1.0]]))[1][0] > 10 * sd.mean()


def test_a_process_does_not_follow_noise():
    known = spread_points(60, 1, 3)
    noise = make_generator("test/noise").normal(0, 0.3, 60)
    mean, _ = GaussianProcess.fit(known, 3 * known[:, 0] + noise).predict(known)
    assert np.abs(mean - 3 * known[:, 0]).mean() < 0.5 * np.abs(noise).mean()


def test_the_objective_of_a_surrogate_is_the_sum_of_squared_distances_far_and_near():
    known = spread_points(48, 2, 4)
    distances = np.stack([30 * (known[:, 0] - 0.5), 3 * (known[:, 1] - 0.2)], axis=1)
    distances[5, 1] = np.nan
    surrogate = Surrogate.fit(known, distances)
    new = np.array([[0.5, 0.2], [0.6, 0.8], [0.1, 0.2]])
    expected = (30 * (new[:, 0] - 0.5)) ** 2 + (3 * (new[:, 1] - 0.2)) ** 2
    assert surrogate.objective(new) == pytest.approx(expected, rel=0.05, abs=0.05)
    assert (surrogate.objective(new, leeway=2) <= surrogate.objective(new)).all()
    assert best_guess(surrogate, known, seed=1) == pytest.approx([0.5, 0.2], abs=0.02)


def test_places_that_are_spread_fill_the_space_and_more_of_them_begin_with_the_same():
    some, more = spread_points(12, 3, 7), spread_points(40, 3, 7)
    assert (more[:12] == some).all()
    assert (spread_points(12, 3, 8) != some).any()
    for axis in more.T:
        assert np.bincount((axis * 4).astype(int), minlength=4).min() >= 8


def test_likely_places_are_nearer_to_the_best_depend_on_arguments_alone_and_take_failures():
    known = spread_points(64, 2, 5)
    objectives = [*((known[:, 0] - 0.8) ** 2 * 100).tolist()[:-1], None]
    found = likely_points(known, objectives, 8, seed=3)
    assert (found == likely_points(known, objectives, 8, seed=3)).all()
    assert (found != likely_points(known, objectives, 8, seed=4)).any()
    assert np.median(np.abs(found[:, 0] - 0.8)) < 0.15
    assert len(np.unique(found.round(6), axis=0)) == 8


SPACE = (Axis("a", 0, 10), Axis("b", 1, 100, log=True))
RISE = 3.84


def profiles(distances_at, best, n=40):
    points = spread_points(n, 2, 1)
    distances = distances_at(points)
    return fit_profiles(SPACE, points, distances, (distances**2).sum(1), np.array(best), RISE)


def test_the_interval_of_an_identified_parameter_is_where_the_objective_rises_by_so_much():
    found = profiles(lambda at: np.stack([10 * (at[:, 0] - 0.4), 8 * (at[:, 1] - 0.5)], axis=1), [0.4, 0.5])
    a, b = found.intervals.to_dict("records")
    half = np.sqrt(RISE)
    assert (a["verdict"], b["verdict"]) == (IDENTIFIED, IDENTIFIED)
    assert (a["low"], a["high"]) == pytest.approx((4 - half, 4 + half), abs=0.25)
    assert np.log10([b["low"], b["high"]]) == pytest.approx([1 - half / 4, 1 + half / 4], abs=0.05)
    assert found.minimum == pytest.approx(0, abs=0.01)
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
    points = spread_points(20, 1, 1)
    distances = 10 * (points - 0.3)
    found = fit_profiles(space, points, distances, (distances**2).sum(1), np.array([0.3]), RISE)
    assert found.intervals["verdict"].tolist() == [IDENTIFIED]


def test_a_probe_goes_where_a_profile_is_said_to_be_low_and_no_trial_has_been():
    points = spread_points(60, 2, 1)
    points = points[np.abs(points.sum(axis=1) - 1) < 0.3 + 0.7 * (points[:, 0] < 0.5)]
    points = points[(points[:, 0] < 0.6) | (np.abs(points.sum(axis=1) - 1) > 0.2)]
    distances = 12 * (points.sum(axis=1, keepdims=True) - 1.0)
    objectives = (distances**2).sum(1)
    surrogate = Surrogate.fit(points, distances)
    found = propose_probe(surrogate, points, objectives, 0, RISE)
    assert found[0] > 0.6
    assert found.sum() == pytest.approx(1, abs=0.1)
    known = np.vstack([points, *[[at, 1 - at] for at in np.linspace(0, 1, 9)]])
    distances = 12 * (known.sum(axis=1, keepdims=True) - 1.0)
    assert propose_probe(Surrogate.fit(known, distances), known, (distances**2).sum(1), 0, RISE) is None
