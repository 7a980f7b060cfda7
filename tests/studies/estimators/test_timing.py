"""Burstiness, hours and shifts of events whose timing is known."""

import math

import numpy as np
import pytest

from prism_mesa.streams import make_generator
from prism_mesa.studies.estimators.timing import burstiness, correlation, hour_profile, shift_between


def test_a_poisson_process_has_none():
    times = make_generator("poisson").exponential(size=(300, 200)).cumsum(axis=1)
    found = burstiness(times.ravel(), np.repeat(np.arange(300), 200))
    assert len(found) == 300
    assert abs(found.mean()) < 0.01


def test_lognormal_gaps_have_the_burstiness_of_their_spread():
    sigma = 1.2
    gaps = np.exp(sigma * make_generator("bursts").normal(size=(60, 4_000)))
    spread = math.sqrt(math.exp(sigma**2) - 1)  # standard deviation over mean
    found = burstiness(gaps.cumsum(axis=1).ravel(), np.repeat(np.arange(60), 4_000))
    assert found.mean() == pytest.approx((spread - 1) / (spread + 1), abs=0.02)


def test_who_has_too_few_events_is_left_out_and_so_is_who_did_all_at_once():
    times = [*range(10), *range(9), *[4] * 12]
    whose = [0] * 10 + [3] * 9 + [5] * 12
    assert burstiness(times, whose).tolist() == [-1]
    assert len(burstiness([], [])) == 0
    assert len(burstiness(times, whose, min_events=9)) == 2


def test_hours_are_counted_as_shares():
    profile = hour_profile([0, 0, 23, 5])
    assert (profile[0], profile[5], profile[23], profile.sum()) == (0.5, 0.25, 0.25, 1)
    assert hour_profile([]).sum() == 0


def test_correlations_are_numpys_and_undefined_without_variation():
    a, b = make_generator("correlation").normal(size=(2, 30))
    assert correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert math.isnan(correlation(np.ones(24), a[:24]))


@pytest.mark.parametrize("hours", [0, 5, 23])
def test_the_shift_of_a_profile_is_found(hours):
    profile = make_generator("profile").random(24)
    assert shift_between(np.roll(profile, hours), profile) == hours
    assert shift_between(np.ones(24), profile) == 0
