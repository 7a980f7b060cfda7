"""Measures on tables, against counts made by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.experiments.measures import cascade_summary, ccdf


def cascades_table(*rows):
    return pd.DataFrame(rows, columns=["root", "size", "depth", "breadth", "structural_virality"])


def test_the_ccdf_is_the_share_at_least_as_large():
    sizes, shares = ccdf([1, 1, 1, 2, 2, 10])
    assert sizes.tolist() == [1, 2, 10]
    assert shares.tolist() == pytest.approx([1, 1 / 2, 1 / 6])


def test_the_ccdf_of_nothing_is_nothing():
    sizes, shares = ccdf([])
    assert (len(sizes), len(shares)) == (0, 0)


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
        "max_depth": 5,
        "max_breadth": 3,
        "mean_structural_virality": 2.0,  # of the two that spread
    }


def test_without_any_reshare_virality_is_0_and_no_number_is_missing():
    summary = cascade_summary(cascades_table((0, 1, 0, 1, 0.0)))
    assert (summary["share_never_reshared"], summary["mean_structural_virality"]) == (1.0, 0.0)


def test_a_platform_without_posts_has_no_cascades():
    assert cascade_summary(cascades_table()) == {"n": 0}
