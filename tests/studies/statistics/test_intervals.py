"""How often a 95 % interval holds the value that it is about."""

import numpy as np
import pandas as pd
import pytest

from prism_mesa.studies.statistics.cells import ARM, Cells
from prism_mesa.studies.statistics.comparisons import compare
from prism_mesa.studies.statistics.effects import answers

SETS = 20_000
"""Samples of which each is a measure of one study."""


def cells_with(sides, *, paired):
    """Return a study of two arms; `sides` has shape (2, seeds, measures)."""
    there, arms = np.ones(sides.shape[:2], bool), ("base", "other")
    return Cells(
        conditions=pd.DataFrame({ARM: arms}),
        codes={ARM: np.arange(2)},
        levels={ARM: arms},
        values=sides,
        planned=there,
        done=there,
        measures=tuple(f"m{k}" for k in range(sides.shape[2])),
        paired=paired,
    )


def coverage(draw, n):
    """Return how often intervals of a mean, a paired difference and Welch's difference hold the true value."""
    sides = draw((2, n, SETS))
    described = answers(cells_with(sides, paired=True))
    shares = [((described["low"] <= 0) & (described["high"] >= 0)).mean()]
    for paired in (True, False):
        cells = cells_with(sides, paired=paired)
        found = compare(cells, cells.at(ARM, 1), cells.at(ARM, 0), ())
        shares.append(((found.low <= 0) & (found.high >= 0)).mean())
    return shares


@pytest.mark.parametrize("n", [5, 9, 10, 20, 30])
def test_intervals_of_normal_values_hold_the_true_value_95_times_in_100(n):
    draw = np.random.Generator(np.random.PCG64(n))
    assert all(0.94 <= share <= 0.96 for share in coverage(draw.standard_normal, n)), n
