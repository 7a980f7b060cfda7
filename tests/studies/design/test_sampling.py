"""Points of sampled designs."""

import json

import numpy as np
import pytest

from prism_mesa.errors import ConfigError
from prism_mesa.studies.design.sampling import repeat_points, sample_points
from prism_mesa.studies.params import SAMPLED

RANGES = {"agents.band": (0.02, 0.1), "feed.glances": (1, 5), "utility.sensitivity": (-1.0, 1.0)}


@pytest.mark.parametrize("kind", SAMPLED)
def test_points_are_within_their_ranges_as_many_as_said_and_the_same_again(kind):
    points, sampling = sample_points(kind, 16, RANGES, seed=3)
    assert list(points.columns) == list(RANGES)
    assert len(points) == 16 * {"sobol": 5, "lhs": 1, "morris": 4}[kind]
    for key, (low, high) in RANGES.items():
        assert points[key].between(low, high).all()
        assert points[key].max() - points[key].min() > 0.7 * (high - low)
    assert repeat_points(json.loads(json.dumps(sampling))).equals(points)
    assert not sample_points(kind, 16, RANGES, seed=4)[0].equals(points)


@pytest.mark.parametrize("kind", ["sobol", "morris"])
def test_a_smaller_sample_is_the_beginning_of_a_larger_one(kind):
    small, large = (sample_points(kind, n, RANGES)[0] for n in (8, 32))
    assert large.iloc[: len(small)].equals(small)


@pytest.mark.parametrize("kind", SAMPLED)
def test_nobody_elses_random_numbers_change(kind):
    before = np.random.get_state()[1].copy()
    sample_points(kind, 8, RANGES)
    assert (np.random.get_state()[1] == before).all()


def test_saltellis_blocks_change_one_factor_at_a_time():
    points = sample_points("sobol", 4, RANGES)[0].to_numpy().reshape(4, 5, 3)
    for block in points:
        for factor in range(3):
            changed = block[factor + 1] != block[0]
            assert changed.tolist() == [place == factor for place in range(3)]
            assert block[factor + 1][factor] == block[4][factor]


def test_a_latin_hypercube_has_one_point_in_each_slice_of_each_factor():
    points = sample_points("lhs", 20, {"x": (0.0, 1.0), "y": (0.0, 2.0)})[0]
    assert sorted((points["x"] * 20).astype(int)) == list(range(20))
    assert sorted((points["y"] * 10).astype(int)) == list(range(20))


def test_whole_numbers_stay_whole_and_their_ends_are_as_likely_as_the_rest():
    points, sampling = sample_points("lhs", 300, {"k": (1, 3), "x": (0.0, 1.0)}, integer_keys={"k"})
    assert points["k"].dtype == np.int64
    assert points["k"].value_counts().to_dict() == pytest.approx({1: 100, 2: 100, 3: 100}, abs=2)
    assert sampling["whole"] == ["k"]
    assert set(sample_points("morris", 20, {"k": (1, 10)}, integer_keys={"k"})[0]["k"]) == {1, 4, 7, 10}


@pytest.mark.parametrize(
    ("kind", "n", "ranges", "told"),
    [
        ("sobol", 60, RANGES, r"^sobol: 60 is not a power of two; 64 is"),
        ("morris", 5, {"x": (1.0, 1.0)}, r"^x: the range 1\.0 to 1\.0 is empty"),
        ("lhs", 5, {"x": (0.0, float("inf"))}, r"^x: the range 0\.0 to inf is empty"),
        ("lhs", 100_001, RANGES, r"100001 makes 100,001 points; at most 100,000"),
    ],
)
def test_what_cannot_be_sampled_is_refused_in_one_line(kind, n, ranges, told):
    with pytest.raises(ConfigError, match=told) as caught:
        sample_points(kind, n, ranges)
    assert "\n" not in str(caught.value)
