"""Keyed randomness: each draw hangs on its own key and on nothing else."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.kernels.draws import mix
from prism_mesa.streams import Streams, digest64

agents = np.arange(20_000)


def test_the_mixing_function_is_splitmix64():
    """The first outputs of splitmix64 for the seeds 0 and 1234567, as published with the algorithm."""
    assert [mix(np.uint64(0), np.uint64(seed)) for seed in (0, 1234567)] == [0xE220A8397B1DCDAF, 6457827717110365317]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.integers(0, 10**6))
def test_a_draw_alone_is_the_draw_among_many(seed, keys, round_):
    streams = Streams(seed)
    together = streams.uniform("purpose", keys, round_=round_, tick=3)
    assert together.tolist() == [streams.uniform("purpose", key, round_=round_, tick=3)[0] for key in keys]


def test_every_part_of_the_key_changes_the_draw():
    streams = Streams(5)
    base = {"agent": 7, "round_": 2, "tick": 3, "index": 4}
    draws = {streams.bits("a", **base)[0], streams.bits("b", **base)[0], Streams(6).bits("a", **base)[0]}
    draws |= {streams.bits("a", **(base | {name: 99}))[0] for name in base}
    swapped = {**base, "round_": 3, "tick": 2}
    draws.add(streams.bits("a", **swapped)[0])
    assert len(draws) == 8


def test_keys_are_broadcast():
    streams = Streams(1)
    drawn = streams.uniform("x", agents[:3], index=np.array([5, 5, 6]))
    assert drawn.tolist() == [streams.uniform("x", i, index=k)[0] for i, k in ((0, 5), (1, 5), (2, 6))]


def test_uniform_numbers_are_uniform_and_those_of_two_purposes_independent():
    a, b = Streams(3).uniform("a", agents), Streams(3).uniform("b", agents)
    assert a.min() >= 0
    assert a.max() < 1
    counts = np.histogram(a, bins=20, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-square, 19 degrees of freedom: P < .001
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.03  # neighbours have nothing in common either
    assert abs(np.corrcoef(a, Streams(4).uniform("a", agents))[0, 1]) < 0.03


def test_integers_are_whole_below_the_bound_and_equally_frequent():
    drawn = Streams(3).integers("dice", agents, 6)
    assert drawn.dtype == np.int64
    counts = np.bincount(drawn)
    assert len(counts) == 6
    assert ((counts - 20_000 / 6) ** 2 / (20_000 / 6)).sum() < 21  # 5 degrees of freedom: P < .001
    assert Streams(3).integers("one", agents, 1).max() == 0


def test_normal_numbers_have_mean_0_variance_1_and_normal_tails():
    drawn = Streams(8).normal("x", agents)
    assert drawn.mean() == pytest.approx(0, abs=0.03)
    assert drawn.std() == pytest.approx(1, abs=0.03)
    assert (np.abs(drawn) < 1.96).mean() == pytest.approx(0.95, abs=0.01)
    assert (drawn**3).mean() == pytest.approx(0, abs=0.1)


@pytest.mark.slow
def test_a_draw_that_lasts_is_of_the_round_before_with_that_probability():
    draws, agents = Streams(3), np.arange(20_000)
    since = [draws.last_redraw_round("lasts", agents, round_=round_, persistence=0.7) for round_ in range(6)]
    assert since[0].tolist() == [0] * 20_000
    for round_ in range(1, 6):
        kept = since[round_] == since[round_ - 1]
        assert (since[round_][~kept] == round_).all()
        assert kept.mean() == pytest.approx(0.7, abs=0.015)
    assert draws.last_redraw_round("lasts", 7, round_=5, persistence=0.7).tolist() == [since[5][7]]
    assert draws.last_redraw_round("lasts", [7, 8], round_=5, persistence=0.0).tolist() == [5, 5]


def test_draws_and_digests_are_the_same_in_another_process():
    code = "from prism_mesa.streams import Streams, digest64; print(Streams(9).bits('p', 4)[0], digest64('x', 'y'))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(Streams(9).bits("p", 4)[0]), str(digest64("x", "y"))]
