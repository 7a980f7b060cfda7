"""The answers of a study: what each condition comes to."""

import numpy as np
import pandas as pd

from prism_mesa.streams import Floats
from prism_mesa.studies.statistics.cells import Cells
from prism_mesa.studies.statistics.intervals import interval
from prism_mesa.studies.statistics.tables import ANSWERS


def answers(cells: Cells) -> pd.DataFrame:
    """Return a row for each condition and measure (see `analysis.Analysis`)."""
    conditions, replicates, measures = cells.values.shape
    columns = np.sort(cells.values.transpose(1, 0, 2).reshape(replicates, conditions * measures), axis=0)  # NaN last
    n = np.isfinite(columns).sum(axis=0)
    found = cells.conditions.loc[np.repeat(np.arange(conditions), measures)].reset_index(drop=True)
    numbers = {
        "measure": np.tile(np.array(cells.measures, object), conditions),
        "n": n,
        "missing": np.repeat(cells.planned.sum(axis=1), measures) - n,
        **_described(columns, n),
    }
    return found.assign(**{name: pd.Series(numbers[name], dtype=kind) for name, kind in ANSWERS.items()})


def _described(columns: Floats, n: np.ndarray) -> dict[str, Floats]:
    """Return numbers of each column, of which the first `n` rows are there."""
    described = {name: np.full(len(n), np.nan) for name in ("mean", "median", "sd", "low", "high")}
    for size in np.unique(n[n > 0]):
        some = np.flatnonzero(n == size)
        there = columns[:size, some]
        described["mean"][some] = there.mean(axis=0)
        described["median"][some] = np.median(there, axis=0)
        if size > 1:
            described["sd"][some] = there.std(axis=0, ddof=1)
            described["low"][some], described["high"][some] = interval((there,))
    return described
