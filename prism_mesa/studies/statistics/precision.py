"""How wide intervals are, and will be, with so and so many seeds."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ARM, Cells, RunTable, cells_of, level_text, variance
from prism_mesa.studies.statistics.comparisons import compare, pairs_of_terms
from prism_mesa.studies.statistics.tables import EXPECTED_WIDTH, PRECISION, table_of

MOST_ROWS: Final = 50_000
_FEW: Final = 12

type Pair = tuple[str, int, int]


def precision(cells: Cells, pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return how wide the interval of each difference is with 2, 3, ... seeds, as the table `precision`.

    The half width is t(.975, k - 1) s / sqrt(k), where s is the standard deviation over all seeds that are there: what
    is to be expected of k seeds, not what the first k happened to give. Where seeds are not paired it is Welch's, of
    the runs that k seeds make. Pairs are those of arms, or of factors in a study without; with very many rows not all
    numbers of seeds are there.
    """
    arms = [pair for pair in pairs if pair[0] == ARM]
    shown = arms or list(pairs)
    seeds = _seeds(cells.planned.shape[1], len(shown) * len(cells.measures))
    parts = []
    for term, left, right in shown:
        over = [other for other in cells.terms if other != term]
        tested = compare(cells, cells.at(term, left), cells.at(term, right), over).samples
        spread = np.asarray(sum(map(variance, tested)))
        each = 1 if cells.paired else int(min(cells.at(term, left).sum(), cells.at(term, right).sum()))
        n = seeds[:, None] * each
        widths = _half_width(spread, n, df=n - 1 if cells.paired else 2 * (n - 1))
        measures = list(cells.measures) * len(seeds)
        numbers = {"seeds": np.repeat(seeds, len(cells.measures)), "half_width": widths.reshape(-1)}
        parts.append(_row(cells, (term, left, right)) | {"measure": measures} | numbers)
    return table_of(PRECISION, parts)


def _seeds(most: int, rows_each: int) -> Ints:
    every = np.arange(2, most + 1)
    if len(every) * rows_each <= MOST_ROWS or len(every) <= _FEW:
        return every
    return np.unique(np.geomspace(2, most, _FEW).round().astype(np.int64))


def _row(cells: Cells, pair: Pair) -> dict[str, object]:
    term, left, right = pair
    texts = (level_text(cells.levels[term][place]) for place in (left, right))
    return {"measure": list(cells.measures), "term": term, **dict(zip(("left", "right"), texts, strict=True))}


def _half_width(spread: Floats, n: int | Ints, df: int | Ints) -> Floats:
    return np.asarray(stats.t.ppf(0.975, df) * np.sqrt(spread / n))


def expected_width(pilot: RunTable, seeds: int) -> pd.DataFrame:
    """Return how wide the intervals of differences will be with so many seeds, from a pilot with two seeds or more.

    Two seeds say little of one pair of conditions. So the variance of a difference is pooled over all pairs of a term
    and over the conditions in which they were compared, and taken for independent between these: half width
    t(.975, k - 1) s / sqrt(k c) with k seeds and c conditions. Where differences of a seed go up and down together in
    all conditions, intervals will be wider. Where no two conditions of any pair were run, it is twice the variance
    within conditions, as if seeds were not paired.

    Args:
        pilot: Its runs; best all that are planned, those that are not of the pilot as `missing`: which conditions
            there will be counts too.
        seeds: Of the study that is planned, for each condition; 2 or more.

    Returns:
        `measure`, `term`, `left`, `right`, `half_width` of the 95 % interval; NaN where the pilot cannot tell. No rows
        of a study without pairs to compare.
    """
    cells = cells_of(pilot)
    pairs, _ = pairs_of_terms(cells, pilot.design)
    parts = []
    for term in dict.fromkeys(pair[0] for pair in pairs):
        of_term = [pair for pair in pairs if pair[0] == term]
        conditions = max(1, len(cells.conditions) // len(cells.levels[term]))
        pooled = _pooled(cells, of_term) / conditions
        df = seeds - 1 if cells.paired else 2 * (seeds * conditions - 1)
        width = _half_width(pooled, seeds, df)
        parts += [_row(cells, pair) | {"half_width": width} for pair in of_term]
    return table_of(EXPECTED_WIDTH, parts)


def _pooled(cells: Cells, pairs: Sequence[Pair]) -> Floats:
    """Return the variance of a difference within conditions, for each measure: the mean over pairs of a term."""
    apart = 2 * _mean_there(np.stack([variance(one) for one in cells.values]))
    found = []
    for term, left, right in pairs if cells.paired else ():
        over = [other for other in cells.terms if other != term]
        keys = [tuple(int(cells.codes[other][place]) for other in over) for place in range(len(cells.conditions))]
        lefts = {keys[place]: place for place in np.flatnonzero(cells.at(term, left))}
        rights = {keys[place]: place for place in np.flatnonzero(cells.at(term, right))}
        found += [variance(cells.values[lefts[key]] - cells.values[rights[key]]) for key in lefts if key in rights]
    together = _mean_there(np.stack(found)) if found else apart
    return np.where(np.isnan(together), apart, together)


def _mean_there(rows: Floats) -> Floats:
    there = np.isfinite(rows)
    sums, n = np.where(there, rows, 0.0).sum(axis=0), there.sum(axis=0)
    return np.asarray(np.divide(sums, n, out=np.full(rows.shape[1], np.nan), where=n > 0))
