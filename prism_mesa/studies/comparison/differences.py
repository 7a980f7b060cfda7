"""Differences of two sides, pair by pair, the other side less the base; intervals where there are several pairs."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.streams import Floats
from prism_mesa.studies.comparison.values import Series, name_of, span_of, unit_of
from prism_mesa.studies.statistics.cells import ARM, Cells
from prism_mesa.studies.statistics.comparisons import Comparison, compare
from prism_mesa.studies.statistics.intervals import interval
from prism_mesa.studies.statistics.significance import holm

_SIDES: Final = ("base", "other")


def _compared(base: Floats, other: Floats, names: Sequence[str]) -> Comparison:
    """Return other less base: shapes (pairs, columns), NaN where a pair has no such number."""
    n = len(base)
    values = np.where(np.isfinite([base, other]), [base, other], np.nan)
    there = np.ones((2, n), bool)
    cells = Cells(
        conditions=pd.DataFrame({ARM: _SIDES}),
        codes={ARM: np.arange(2)},
        levels={ARM: _SIDES},
        values=values,
        planned=there,
        done=there,
        measures=tuple(names),
        paired=True,
    )
    return compare(cells, cells.at(ARM, 1), cells.at(ARM, 0), ())


def measure_differences(names: Sequence[str], base: Floats, other: Floats) -> pd.DataFrame:
    """Return a row for each measure, what differs most first: see `comparison.RunComparison.measures`.

    With several pairs that is by the standardised difference, else by the difference as a share of the larger value, or
    of `values.span_of`.

    Args:
        names: Of the measures.
        base: Shape (pairs, measures); NaN where one is not defined.
        other: The same of the other side.
    """
    found = _compared(base, other, names)
    mean = found.right_mean + found.difference
    standardised = found.d_z
    with np.errstate(all="ignore"):
        spans = np.array([span_of(name) or np.nan for name in names], np.float64)
        rated = np.isnan(spans) & (found.right_mean != 0)
        change = np.where(rated, found.difference / np.abs(found.right_mean), np.nan)
        larger = np.maximum(np.abs(found.right_mean), np.abs(mean))
        share = np.abs(found.difference) / np.where(np.isnan(spans), larger, spans)
    table = pd.DataFrame(
        {
            "measure": list(names),
            "unit": [unit_of(name) for name in names],
            "base": found.right_mean,
            "other": np.where(found.equal, found.right_mean, mean),
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "change": change,
            "standardised": standardised if len(base) > 1 else np.nan,
            "p": found.p,
            "p_holm": holm(found.p),
            "n": found.n,
            "missing": found.missing,
            "equal": found.equal,
        }
    )
    size = np.abs(standardised) if len(base) > 1 else np.where(found.equal, 0.0, share)
    order = np.lexsort((np.arange(len(names)), -np.nan_to_num(share), -np.nan_to_num(size, nan=-1.0, posinf=1e300)))
    return table.iloc[order].reset_index(drop=True)


def round_differences(series: Sequence[Series], base: Floats, other: Floats) -> pd.DataFrame:
    """Return a row for each column and round: see `comparison.RunComparison.rounds`.

    Args:
        series: The columns.
        base: Shape (pairs, rounds, columns).
        other: The same of the other side.
    """
    pairs, rounds, columns = base.shape
    wide = [np.moveaxis(side, 2, 1).reshape(pairs, columns * rounds) for side in (base, other)]
    found = _compared(wide[0], wide[1], [name_of(one) for one in series for _ in range(rounds)])
    table = {
        "column": np.repeat([column for column, _ in series], rounds),
        "nation": np.repeat([nation for _, nation in series], rounds),
        "round": np.tile(np.arange(rounds), columns),
        "base": found.right_mean,
        "other": np.where(found.equal, found.right_mean, found.right_mean + found.difference),
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
    }
    for name, side in zip(_SIDES, wide, strict=True):
        table[f"{name}_low"], table[f"{name}_high"] = _band(side)
    return pd.DataFrame(table | {"n": found.n, "equal": found.equal})


def _band(side: Floats) -> tuple[Floats, Floats]:
    """Return the interval of one side's mean for each column that has all its numbers."""
    low, high = np.full((2, side.shape[1]), np.nan)
    whole = np.isfinite(side).all(axis=0)
    if len(side) > 1 and whole.any():
        low[whole], high[whole] = interval((side[:, whole],))
    return low, high
