"""Student's 95 % intervals of means and of differences of means, for many columns at once."""

from typing import Final

import numpy as np
from scipy import stats

from prism_mesa.streams import Floats
from prism_mesa.studies.statistics.cells import constant
from prism_mesa.studies.statistics.significance import ALPHA, nearly_equal, p_of_constant

LEVEL: Final = 0.95


def interval(samples: tuple[Floats, ...], scale: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Return the ends of Student's 95 % intervals of a mean, or Welch's of the difference of two means.

    The degrees of freedom are n - 1 for one sample, and Welch-Satterthwaite's for two, as in the t-tests of
    `significance`: an interval leaves out 0 exactly where p is below .05. Values that are all equal have an interval
    without width if there are enough of them (`p_of_constant` below .05), else none (NaN). Fewer than two values have
    no interval either.

    Args:
        samples: One or two, each of shape (rows, columns), without gaps. Rows are independent: seeds, or runs.
        scale: As in `cells.constant`, of one sample.
    """
    low, high = np.full((2, samples[0].shape[1]), np.nan)
    if min(len(sample) for sample in samples) < 2:
        return low, high
    flat = np.all([constant(sample, scale if len(samples) == 1 else 0.0) for sample in samples], axis=0)
    if p_of_constant(*map(len, samples)) < ALPHA:
        low[flat] = high[flat] = samples[0][0, flat] - (samples[1][0, flat] if len(samples) > 1 else 0.0)
    if not flat.all():
        rest = tuple(sample[:, ~flat] for sample in samples)
        with nearly_equal():
            test = stats.ttest_1samp(*rest, 0.0) if len(rest) == 1 else stats.ttest_ind(*rest, equal_var=False)
        low[~flat], high[~flat] = test.confidence_interval(LEVEL)
    return low, high
