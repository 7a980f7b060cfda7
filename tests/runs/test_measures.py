"""Measures on tables, against counts made by hand and against what others measured on real data."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.runs.measures import (
    activity_summary,
    cascade_summary,
    ccdf,
    gini,
    tail_exponent,
    top_share,
)

VOTERFRAUD = Path(__file__).parents[3] / "shared" / "data" / "cascades_voterfraud"
needs_voterfraud = pytest.mark.skipif(
    not VOTERFRAUD.is_dir(), reason=f"the real data are not there: {VOTERFRAUD} is needed"
)


def cascades_table(*rows):
    return pd.DataFrame(rows, columns=["root", "size", "depth", "breadth", "structural_virality"])


def test_the_ccdf_is_the_share_at_least_as_large():
    sizes, shares = ccdf([1, 1, 1, 2, 2, 10])
    assert sizes.tolist() == [1, 2, 10]
    assert shares.tolist() == pytest.approx([1, 1 / 2, 1 / 6])


@given(st.lists(st.integers(1, 50), min_size=1))
def test_the_ccdf_begins_at_1_falls_and_says_of_each_value_what_counting_says(values):
    sizes, shares = ccdf(values)
    assert shares[0] == 1
    assert (np.diff(shares) < 0).all()
    assert list(shares) == pytest.approx([sum(v >= size for v in values) / len(values) for size in sizes])


def test_cascades_are_summed_up():
    table = cascades_table((0, 1, 0, 1, 0.0), (1, 1, 0, 1, 0.0), (2, 4, 1, 3, 1.5), (3, 6, 5, 1, 2.5))
    assert cascade_summary(table) == {
        "n": 4,
        "share_never_reshared": 0.5,
        "mean_size": 3.0,
        "max_size": 6,
        "tail_exponents": {},  # too few
        "max_depth": 5,
        "max_breadth": 3,
        "mean_structural_virality": 2.0,  # of the two that spread
        "median_structural_virality": 2.0,
        "max_structural_virality": 2.5,
    }


def test_a_tail_is_measured_where_fifty_cascades_reach_it():
    for n, tails in ((49, []), (50, ["above_10"])):
        sizes = [10, 11] * 25
        table = cascades_table(*((i, size, 1, size - 1, 1.5) for i, size in enumerate(sizes[:n])))
        found = cascade_summary(table)["tail_exponents"]
        assert list(found) == tails
        assert all(tail.keys() == {"exponent", "se", "n"} and tail["n"] == 50 for tail in found.values())


# -- inequality --------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60))
def test_gini_is_half_the_relative_mean_difference(values):
    differences = [abs(a - b) for a in values for b in values]
    mean = sum(values) / len(values)
    expected = sum(differences) / len(differences) / (2 * mean) if mean else 0
    assert gini(values) == pytest.approx(expected, abs=1e-12)


def test_what_the_most_active_hold_is_a_share_of_all():
    assert top_share([5, 1, 1, 1, 1, 1], 1 / 6) == 0.5
    assert top_share([4, 4], 0.1) == 0.5  # at least one
    assert top_share([0, 0], 0.1) == gini([0, 0]) == gini([]) == 0
    assert top_share(np.arange(7), 1) == 1


def test_activity_is_told_of_all_and_of_those_who_did_anything():
    told = activity_summary(np.array([0] * 10 + [1] * 9 + [11]))
    assert told == {
        "mean": 1.0,
        "share_active": 0.5,
        "gini": pytest.approx(0.725),
        "top_10_share": pytest.approx(12 / 20),
        "gini_active": pytest.approx(0.45),
        "top_10_share_active": pytest.approx(11 / 20),
    }
    assert activity_summary(np.zeros(3, np.int32))["gini_active"] == 0


# -- tails -------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.lists(st.integers(0, 60), min_size=5, max_size=40))
def test_no_other_exponent_is_likelier(above, beyond):
    sizes = np.array([above, above + 1, *(above + more for more in beyond)])
    tail = tail_exponent(sizes, above)

    def likelihood(exponent):
        x = np.arange(above, above + 200_000, dtype=float)
        rest = (x[-1] + 0.5) ** (1 - exponent) / (exponent - 1)
        return -len(sizes) * math.log((x**-exponent).sum() + rest) - exponent * np.log(sizes).sum()

    most = likelihood(tail.exponent)
    step = 0.02 * (tail.exponent - 1)
    assert most >= likelihood(tail.exponent - step)
    assert most >= likelihood(tail.exponent + step)
    curve = (2 * most - likelihood(tail.exponent - step) - likelihood(tail.exponent + step)) / step**2
    assert tail.se == pytest.approx(curve**-0.5, rel=0.02)


def test_the_exponent_that_sizes_were_drawn_with_is_found():
    sizes = np.repeat(np.arange(1, 400_000), np.rint(3e6 * np.arange(1, 400_000, dtype=float) ** -2.5).astype(int))
    for above in (1, 5):
        assert tail_exponent(sizes, above).exponent == pytest.approx(2.5, abs=0.01)
    assert tail_exponent(sizes, 5).n == (sizes >= 5).sum()


def test_a_tail_without_values_or_without_differences_has_no_number():
    assert (tail_exponent([1, 2], 3).n, math.isnan(tail_exponent([1, 2], 3).exponent)) == (0, True)
    assert tail_exponent([3, 3], 3).exponent == math.inf


@needs_voterfraud
def test_the_cascades_of_voterfraud_have_the_exponents_that_were_published_with_the_data():
    table = pd.read_csv(VOTERFRAUD / "cascade_size_histogram.csv")
    sizes = np.repeat(table["size"].to_numpy(), table["n"].to_numpy())
    assert tail_exponent(sizes, 10).exponent == pytest.approx(1.92, abs=0.005)
    assert tail_exponent(sizes, 100).exponent == pytest.approx(2.22, abs=0.005)


@needs_voterfraud
def test_the_users_of_voterfraud_are_as_unequal_as_was_measured():
    activity = pd.read_csv(VOTERFRAUD / "users.csv.gz")["activity_level"]
    assert gini(activity) == pytest.approx(0.743, abs=0.001)
    assert top_share(activity, 0.1) == pytest.approx(0.622, abs=0.001)
