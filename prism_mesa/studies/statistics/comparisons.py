"""One side of a study against another: differences with intervals, seed by seed where seeds are paired."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ARM, ROUNDING, Bools, Cells, alike, constant
from prism_mesa.studies.statistics.intervals import FEW, bootstrap, interval, mean_of_all
from prism_mesa.studies.statistics.levels import level_text
from prism_mesa.studies.statistics.significance import holm, mann_whitney, p_of_mean, p_of_two
from prism_mesa.studies.statistics.tables import DIFFERENCES, table_of

MOST_LEVELS: Final = 6
"""Levels of a factor of which all pairs are compared."""
MOST_ARMS: Final = 20

PAIRED: Final = "paired t-test of the seeds' mean differences"
WELCH: Final = "Welch's t-test"


@dataclass(frozen=True)
class Comparison:
    """Left against right, for each measure of some cells: arrays over the measures.

    Attributes:
        n: Pairs, or runs of the smaller side where seeds are not paired.
        missing: Pairs, or runs of both sides, that were planned and are not there.
        difference: The mean over all pairs of left minus right.
        low: Where its interval of 95 % begins (bootstrap over seeds, BCa; of fewer than ten that of the t-test).
        high: Where it ends.
        p: Two-sided.
        equal: Whether there is a pair, and none differs.
        right_mean: The mean of the right side, of pairs that are there.
        samples: What was tested: differences by seed, shape (seeds, measures), or the runs of left and right.
        scale: The size of what differences were taken of: how far they can be rounded.
        test: In words.
    """

    n: Ints
    missing: Ints
    difference: Floats
    low: Floats
    high: Floats
    p: Floats
    equal: Bools
    right_mean: Floats
    samples: tuple[Floats, ...]
    scale: Floats
    test: str


def compare(cells: Cells, left: Bools, right: Bools, over: Sequence[str]) -> Comparison:
    """Return one side of a study against another.

    Args:
        cells: The runs.
        left: For each condition, whether it is on the left.
        right: The same for the right.
        over: Terms that tell neither side: each pair has the same levels of them. Where a side holds several
            conditions for one pair, their mean counts, and the pair is missing if one of them is.
    """
    return _paired(cells, left, right, over) if cells.paired else _unpaired(cells, left, right)


def _paired(cells: Cells, left: Bools, right: Bools, over: Sequence[str]) -> Comparison:
    differences, rights, planned = _pairs(cells, left, right, over)
    there = np.isfinite(differences)
    n = there.sum(axis=(0, 1))
    sums, counts = _by_seed(differences)
    scale = np.where(there, np.abs(rights) + np.abs(differences), 0.0).max(axis=(0, 1), initial=0.0)
    equal = (n > 0) & ~(there & (differences != 0)).any(axis=(0, 1))
    low, high = _interval_over_seeds(sums, counts, scale)
    certain = equal & ((counts > 0).sum(axis=0) > 1)
    low[certain] = high[certain] = 0.0
    return Comparison(
        n=n,
        missing=planned.sum() - n,
        difference=_ratio(sums.sum(axis=0), n),
        low=low,
        high=high,
        p=p_of_mean(_ratio(sums, counts), scale),
        equal=equal,
        right_mean=_ratio(np.where(there, rights, 0.0).sum(axis=(0, 1)), n),
        samples=(_ratio(sums, counts),),
        scale=scale,
        test=PAIRED,
    )


def samples(cells: Cells, left: Bools, right: Bools, over: Sequence[str]) -> tuple[Floats, ...]:
    """Return what `compare` tests, as `Comparison.samples` has it."""
    if cells.paired:
        return (_ratio(*_by_seed(_pairs(cells, left, right, over)[0])),)
    return _runs(cells, left), _runs(cells, right)


def _pairs(cells: Cells, left: Bools, right: Bools, over: Sequence[str]) -> tuple[Floats, Floats, Bools]:
    """Return differences and what was on the right, shape (pairs of conditions, seeds, measures), and what was planned.

    The last has shape (pairs of conditions, seeds, 1). A difference that is but rounding is 0.
    """
    keys = np.column_stack([cells.codes[term] for term in over] or [np.zeros(len(left), np.int64)])
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    shared = np.intersect1d(group[left], group[right])
    lefts, planned_left = _sides(cells, left, group, shared)
    rights, planned_right = _sides(cells, right, group, shared)
    differences = lefts - rights
    rounded = np.abs(differences) <= ROUNDING * np.maximum(np.abs(lefts), np.abs(rights))
    return np.where(rounded, 0.0, differences), rights, planned_left & planned_right


def _by_seed(differences: Floats) -> tuple[Floats, Floats]:
    """Return for each seed the sum of differences that are there, and their number, shape (seeds, measures)."""
    there = np.isfinite(differences)
    return np.where(there, differences, 0.0).sum(axis=0), there.sum(axis=0).astype(np.float64)


def _sides(cells: Cells, side: Bools, group: Ints, shared: Ints) -> tuple[Floats, Bools]:
    """Return the mean of a side's conditions in each shared group, and whether all its runs were planned.

    Shapes (groups, replicates, measures) and (groups, replicates, 1).
    """
    conditions = np.flatnonzero(side & np.isin(group, shared))
    place = np.searchsorted(shared, group[conditions])
    sums = np.zeros((len(shared), *cells.values.shape[1:]))
    planned = np.ones((len(shared), cells.planned.shape[1]), bool)
    np.add.at(sums, place, cells.values[conditions])
    np.logical_and.at(planned, place, cells.planned[conditions])
    return sums / np.bincount(place, minlength=len(shared))[:, None, None], planned[:, :, None]


def _ratio(sums: Floats, counts: Floats | Ints) -> Floats:
    return np.asarray(np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=np.asarray(counts) > 0))


def _interval_over_seeds(sums: Floats, counts: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return intervals of the mean over pairs, drawn by seed; a seed may have fewer pairs than another.

    Of few seeds it is that of the t-test, of the mean of the seeds' mean differences.
    """
    low, high = np.full((2, sums.shape[1]), np.nan)
    for columns, rows in alike(np.where(counts > 0, sums, np.nan)):
        some_sums, some_counts = sums[rows][:, columns], counts[rows][:, columns]
        if not len(some_sums):
            continue
        means = some_sums / some_counts
        even = (some_counts == some_counts[0]).all(axis=0) | constant(means, scale[columns]) | (len(means) < FEW)
        low[columns[even]], high[columns[even]] = interval((means[:, even],), scale[columns[even]])
        rest = (some_sums[:, ~even], some_counts[:, ~even])
        low[columns[~even]], high[columns[~even]] = bootstrap(rest, mean_of_all, paired=True)
    return low, high


def _unpaired(cells: Cells, left: Bools, right: Bools) -> Comparison:
    lefts, rights = _runs(cells, left), _runs(cells, right)
    n_left, n_right = np.isfinite(lefts).sum(axis=0), np.isfinite(rights).sum(axis=0)
    measures = len(cells.measures)
    difference, low, high, p, right_mean = np.full((5, measures), np.nan)
    equal = np.zeros(measures, bool)
    for columns, rows in alike(np.concatenate([lefts, rights])):
        x, y = lefts[rows[: len(lefts)]][:, columns], rights[rows[len(lefts) :]][:, columns]
        if not (len(x) and len(y)):
            continue
        difference[columns], right_mean[columns] = x.mean(axis=0) - y.mean(axis=0), y.mean(axis=0)
        low[columns], high[columns] = interval((x, y))
        p[columns] = p_of_two(x, y)
        equal[columns] = (x == y[0]).all(axis=0) & (y == y[0]).all(axis=0)
    return Comparison(
        n=np.minimum(n_left, n_right),
        missing=cells.planned[left].sum() + cells.planned[right].sum() - n_left - n_right,
        difference=np.where(equal, 0.0, difference),
        low=low,
        high=high,
        p=p,
        equal=equal,
        right_mean=right_mean,
        samples=(lefts, rights),
        scale=np.zeros(measures),
        test=WELCH,
    )


def _runs(cells: Cells, side: Bools) -> Floats:
    """Return all planned runs of a side, shape (runs, measures)."""
    return np.asarray(cells.values[side][cells.planned[side]])


def pairs_of_terms(cells: Cells, design: str) -> tuple[list[tuple[str, int, int]], tuple[str, ...]]:
    """Return which levels are compared (term, left, right), and notes on what is left out.

    All pairs of arms; in a factorial design also those of levels of factors with few of them.
    """
    found: list[tuple[str, int, int]] = []
    notes = []
    for term in cells.terms:
        most = MOST_ARMS if term == ARM else MOST_LEVELS
        n = len(cells.levels[term])
        if term != ARM and design != "factorial":
            continue
        if n > most:
            notes.append(f"{term}: its {n} levels are not compared in pairs, which is done for at most {most}.")
            continue
        found += [(term, left, right) for left, right in cells.pairs(term)]
    return found, tuple(notes)


def differences(cells: Cells, pairs: Sequence[tuple[str, int, int]]) -> pd.DataFrame:
    """Return all pairs as a table, a row for each pair and measure (see `analysis.Analysis`)."""
    found = table_of(DIFFERENCES, [_difference(cells, *pair) for pair in pairs])
    found["p_holm"] = holm(found["p"])
    return found


def _difference(cells: Cells, term: str, left: int, right: int) -> dict[str, Any]:
    over = [other for other in cells.terms if other != term]
    found = compare(cells, cells.at(term, left), cells.at(term, right), over)
    u, p_mann_whitney, rank_biserial = _ranked(cells, cells.at(term, left), cells.at(term, right))
    return {
        "measure": list(cells.measures),
        "term": term,
        "left": level_text(cells.levels[term][left]),
        "right": level_text(cells.levels[term][right]),
        "n": found.n,
        "missing": found.missing,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "p_holm": np.nan,
        "u": u,
        "p_mann_whitney": p_mann_whitney,
        "rank_biserial": rank_biserial,
    }


def _ranked(cells: Cells, left: Bools, right: Bools) -> tuple[Floats, Floats, Floats]:
    """Return Mann-Whitney's U, p and r of all runs of one side against all of the other."""
    lefts, rights = _runs(cells, left), _runs(cells, right)
    found = np.full((3, len(cells.measures)), np.nan)
    for columns, rows in alike(np.concatenate([lefts, rights])):
        found[:, columns] = mann_whitney(lefts[rows[: len(lefts)]][:, columns], rights[rows[len(lefts) :]][:, columns])
    return found[0], found[1], found[2]
