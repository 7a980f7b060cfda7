"""Power laws on sizes of known exponents, and against the published exponents of VoterFraud2020."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, zipf

from prism_mesa.streams import make_generator
from prism_mesa.studies.estimators.power_law import distance, draw_sizes, fit_power_law, plausibility

DATA = Path(__file__).parents[4] / "shared" / "data"
VOTERFRAUD = DATA / "cascades_voterfraud" / "cascade_size_histogram.csv"
GRAPHS = DATA / "follow_graph"


def drawn(exponent, least=1, n=20_000, name="sizes"):
    return draw_sizes(exponent, least, n, make_generator("a test of power laws", name, str(exponent)))


@pytest.mark.parametrize(("exponent", "least"), [(1.9, 1), (2.2, 1), (2.2, 10), (3.0, 2)])
def test_the_exponent_of_draw_sizes_is_found_again(exponent, least):
    fit = fit_power_law(drawn(exponent, least), least)
    assert abs(fit.exponent - exponent) < 4 * fit.se
    assert fit.se < 0.03
    assert fit.n == 20_000
    assert fit.ks < 1.63 / math.sqrt(fit.n)  # what a true law exceeds in one of a hundred samples


def test_sizes_are_drawn_as_scipy_has_them_and_far_beyond_the_table():
    sizes = drawn(2.5)
    assert abs((sizes == 1).mean() - zipf.pmf(1, 2.5)) < 0.012
    assert abs((sizes >= 10).mean() - zipf.sf(9, 2.5)) < 0.005
    heavy = drawn(1.5, n=200_000)
    assert heavy.max() > 10_000_000
    assert abs((heavy > 1_000_000).mean() / zipf.sf(1_000_000, 1.5) - 1) < 0.3


def test_the_distance_is_that_of_scipy_on_the_steps_of_the_law():
    sizes = drawn(2.2, n=500)
    law = kstest(sizes, lambda x: zipf.cdf(np.floor(x), 2.2))
    at_steps = max(abs((sizes <= x).mean() - zipf.cdf(x, 2.2)) for x in range(1, sizes.max() + 1))
    assert distance(sizes, 2.2, 1) == pytest.approx(at_steps)
    assert distance(sizes, 2.2, 1) <= law.statistic


def test_where_a_tail_begins_is_found():
    body = make_generator("a body").integers(1, 20, 20_000)
    fit = fit_power_law(np.concatenate([body, drawn(2.5, 20, n=5_000)]))
    assert 19 <= fit.min_size <= 30
    assert fit.exponent == pytest.approx(2.5, abs=0.1)


def test_a_true_law_is_plausible_and_another_tail_is_not():
    fit = fit_power_law(drawn(2.2, n=1_000), 1)
    assert plausibility(fit, draws=60) > 0.1
    lognormal = np.round(np.exp(1 + make_generator("lognormal").normal(size=3_000))).astype(int) + 1
    assert plausibility(fit_power_law(lognormal, 1), draws=60) == 0


@pytest.mark.parametrize("sizes", [[], [5, 5, 5], [1, 2]])
def test_without_two_sizes_in_the_tail_there_is_no_law(sizes):
    fit = fit_power_law(np.array(sizes, int), 5)
    assert math.isnan(fit.exponent)
    assert math.isnan(fit.ks)
    assert math.isnan(plausibility(fit))


@pytest.mark.skipif(not VOTERFRAUD.exists(), reason="shared/data is not here")
def test_the_exponents_of_voterfraud_are_those_that_were_published():
    table = pd.read_csv(VOTERFRAUD)
    large = table[table["size"] >= 10]
    sizes = np.repeat(large["size"].to_numpy(), large["n"].to_numpy())
    assert fit_power_law(sizes, 10).exponent == pytest.approx(1.92, abs=0.01)
    assert fit_power_law(sizes, 100).exponent == pytest.approx(2.22, abs=0.01)


@pytest.mark.skipif(not GRAPHS.exists(), reason="shared/data is not here")
@pytest.mark.parametrize(
    ("graph", "column", "least", "exponent", "ks", "n"),
    [
        ("verizoncareers", "src", 1, 1.71, 0.0166, 5078),
        ("verizoncareers", "dst", 28, 2.70, 0.0336, 366),
        ("bofa_careers", "src", 2, 1.81, 0.0170, 3303),
        ("bofa_careers", "dst", 22, 2.55, 0.0224, 466),
    ],
)
def test_tails_of_real_graphs_begin_and_fall_as_was_published(graph, column, least, exponent, ks, n):
    degrees = pd.read_csv(GRAPHS / f"{graph}_edges.csv.gz")[column].value_counts()
    fit = fit_power_law(degrees.to_numpy())
    assert (fit.min_size, fit.n) == (least, n)
    assert fit.exponent == pytest.approx(exponent, abs=0.006)
    assert fit.ks == pytest.approx(ks, abs=1e-4)
