import numpy as np
import pytest

from prism_mesa.streams import generator
from prism_mesa.studies.calibration.calibrate import likely, spread
from prism_mesa.studies.calibration.surrogate import GaussianProcess, Surrogate, best_guess


def wavy(points):
    return np.sin(4 * points[:, 0]) + 2 * points[:, 1] ** 2


def test_a_process_tells_a_smooth_function_between_the_places_that_it_knows_and_how_unsure_it_is():
    known, new = spread(40, 2, 1), spread(64, 2, 2)
    process = GaussianProcess.fit(known, wavy(known))
    mean, sd = process.at(new)
    assert np.abs(mean - wavy(new)).max() < 0.1
    assert process.at(known)[1].max() < 0.05
    corner = GaussianProcess.fit(known[(known < 0.5).all(axis=1)], wavy(known[(known < 0.5).all(axis=1)]))
    assert corner.at(np.array([[1.0, 1.0]]))[1][0] > 10 * sd.mean()


def test_a_process_does_not_follow_noise():
    known = spread(60, 1, 3)
    noise = generator("test/noise").normal(0, 0.3, 60)
    mean, _ = GaussianProcess.fit(known, 3 * known[:, 0] + noise).at(known)
    assert np.abs(mean - 3 * known[:, 0]).mean() < 0.5 * np.abs(noise).mean()


def test_the_objective_of_a_surrogate_is_the_sum_of_squared_distances_far_and_near():
    known = spread(48, 2, 4)
    distances = np.stack([30 * (known[:, 0] - 0.5), 3 * (known[:, 1] - 0.2)], axis=1)
    distances[5, 1] = np.nan
    surrogate = Surrogate.fit(known, distances)
    new = np.array([[0.5, 0.2], [0.6, 0.8], [0.1, 0.2]])
    expected = (30 * (new[:, 0] - 0.5)) ** 2 + (3 * (new[:, 1] - 0.2)) ** 2
    assert surrogate.objective(new) == pytest.approx(expected, rel=0.05, abs=0.05)
    assert (surrogate.objective(new, leeway=2) <= surrogate.objective(new)).all()
    assert best_guess(surrogate, known, seed=1) == pytest.approx([0.5, 0.2], abs=0.02)


def test_places_that_are_spread_fill_the_space_and_more_of_them_begin_with_the_same():
    some, more = spread(12, 3, 7), spread(40, 3, 7)
    assert (more[:12] == some).all()
    assert (spread(12, 3, 8) != some).any()
    for axis in more.T:
        assert np.bincount((axis * 4).astype(int), minlength=4).min() >= 8


def test_likely_places_are_nearer_to_the_best_depend_on_arguments_alone_and_take_failures():
    known = spread(64, 2, 5)
    objectives = [*((known[:, 0] - 0.8) ** 2 * 100).tolist()[:-1], None]
    found = likely(known, objectives, 8, seed=3)
    assert (found == likely(known, objectives, 8, seed=3)).all()
    assert (found != likely(known, objectives, 8, seed=4)).any()
    assert np.median(np.abs(found[:, 0] - 0.8)) < 0.15
    assert len(np.unique(found.round(6), axis=0)) == 8
