"""One side of a study against another: differences with intervals, and how wide these are with more seeds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import (
    ARM,
    DIFFERENCES,
    EXPECTED,
    EXPECTED_WIDTH,
    MARGINS,
    OTHERS,
    PRECISION,
    ROUNDING,
    Bools,
    Cells,
    RunTable,
    alike,
    level_text,
    make_cells,
    make_table,
    variance,
)
from prism_mesa.studies.statistics.expectation import Expectation, Verdict
from prism_mesa.studies.statistics.significance import holm, interval, mann_whitney, mean_p, two_sample_p

MOST_LEVELS: Final = 6  # levels of a factor of which all pairs are compared
MOST_ARMS: Final = 20

PAIRED: Final = "paired t-test of the seeds' mean differences"
WELCH: Final = "Welch's t-test"

type Key = tuple[str, str, frozenset[str]]
"""A measure, a term, and two of its levels."""


@dataclass(frozen=True)
class Comparison:
    """Left against right, for each measure of some cells: arrays over the measures.

    Attributes:
        n: Pairs, or runs of the smaller side where seeds are not paired.
        missing: Pairs, or runs of both sides, that were planned and are not there.
        difference: The mean over all pairs of left minus right.
        low: Where its 95 % interval begins: Student's with as many degrees of freedom as seeds minus one, or Welch's
            over the runs of both sides.
        p: Two-sided.
        equal: Whether there is a pair, and none differs.
        right_mean: The mean of the right side, of pairs that are there.
        samples: What was tested: a difference for each seed, shape (seeds, measures), or the runs of left and right.
        scale: The size of what differences were taken of: how far they can be rounded.
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

    @property
    def d_z(self) -> Floats:
        """Cohen's d of paired seeds: the mean difference in standard deviations of the seeds' differences.

        It is infinite where all seeds have the same difference, and NaN for fewer than two seeds or unpaired runs
        (Cohen 1988; Lakens 2013, doi:10.3389/fpsyg.2013.00863).
        """
        if len(self.samples) > 1:
            return np.full(len(self.difference), np.nan)
        sd = np.sqrt(variance(self.samples[0]))
        sd[sd <= ROUNDING * np.maximum(self.scale, np.abs(self.difference))] = 0.0
        with np.errstate(all="ignore"):
            return np.where(self.equal & np.isfinite(sd), 0.0, self.difference / sd)


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
    by_seed = _by_seed(differences)
    scale = np.where(there, np.abs(rights) + np.abs(differences), 0.0).max(axis=(0, 1), initial=0.0)
    equal = (n > 0) & ~(there & (differences != 0)).any(axis=(0, 1))
    low, high = _intervals(by_seed, scale)
    certain = equal & (np.isfinite(by_seed).sum(axis=0) > 1)
    low[certain] = high[certain] = 0.0
    return Comparison(
        n=n,
        missing=planned.sum() - n,
        difference=_ratio(np.where(there, differences, 0.0).sum(axis=(0, 1)), n),
        low=low,
        high=high,
        p=mean_p(by_seed, scale),
        equal=equal,
        right_mean=_ratio(np.where(there, rights, 0.0).sum(axis=(0, 1)), n),
        samples=(by_seed,),
        scale=scale,
        test=PAIRED,
    )


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


def _by_seed(differences: Floats) -> Floats:
    """Return a difference for each seed, shape (seeds, measures); their mean is the mean over all pairs.

    It is the mean of the seed's pairs. Where seeds have different numbers of pairs, it is the linearised value of a
    ratio (Cochran 1977, Sampling Techniques, section 6.3), so that each seed is weighted by its number of pairs.
    """
    there = np.isfinite(differences)
    sums, counts = np.where(there, differences, 0.0).sum(axis=0), there.sum(axis=0).astype(np.float64)
    mean = _ratio(sums.sum(axis=0), counts.sum(axis=0))
    share = _ratio(counts, _ratio(counts.sum(axis=0), (counts > 0).sum(axis=0)))
    return share * _ratio(sums, counts) + (1 - share) * mean


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


def _intervals(by_seed: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return the interval of each column's mean over the seeds that it has."""
    low, high = np.full((2, by_seed.shape[1]), np.nan)
    for columns, rows in alike(by_seed):
        low[columns], high[columns] = interval((by_seed[rows][:, columns],), scale[columns])
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
        p[columns] = two_sample_p(x, y)
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


def differences(
    cells: Cells, pairs: Sequence[tuple[str, int, int]], expected: Iterable[tuple[Expectation, Verdict]] = ()
) -> pd.DataFrame:
    """Return all pairs as a table, a row for each pair and measure (see `analysis.Analysis`).

    If an expectation is about a row, the row has its p; Holm's correction of the other rows covers only these.
    """
    table = make_table(DIFFERENCES, [_difference(cells, *pair) for pair in pairs])
    asked = _asked(expected)
    for place, row in enumerate(table[["measure", "term", "left", "right"]].itertuples(index=False)):
        if columns := asked.get((row.measure, row.term, frozenset([row.left, row.right]))):
            table.loc[place, ["p", "p_holm", "family"]] = columns
    others = table["family"] == OTHERS
    table.loc[others, "p_holm"] = holm(table.loc[others, "p"])
    return table


def _asked(expected: Iterable[tuple[Expectation, Verdict]]) -> dict[Key, tuple[float, float, str]]:
    """Return p, p after Holm and the family of each pair that an expectation is about: > and < before equalities."""
    asked: dict[Key, tuple[float, float, str]] = {}
    for expectation, verdict in sorted(expected, key=lambda item: item[0].relation == "="):
        terms = [
            [(ARM, side.arm)] * (side.arm is not None) + list(side.levels)
            for side in (expectation.left, expectation.right)
        ]
        if len(terms[0]) == len(terms[1]) == 1 and terms[0][0][0] == terms[1][0][0]:
            [[(term, left)], [(_, right)]] = terms
            family = MARGINS if expectation.relation == "=" else EXPECTED
            key = (expectation.measure, term, frozenset(map(level_text, (left, right))))
            asked.setdefault(key, (verdict.p, verdict.p_holm, family))
    return asked


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
        "d_z": np.where(np.isfinite(found.d_z), found.d_z, np.nan),
        "p": found.p,
        "p_holm": np.nan,
        "family": OTHERS,
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
    return make_table(PRECISION, parts)


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
    cells = make_cells(pilot)
    pairs, _ = pairs_of_terms(cells, pilot.design)
    parts = []
    for term in dict.fromkeys(pair[0] for pair in pairs):
        of_term = [pair for pair in pairs if pair[0] == term]
        conditions = max(1, len(cells.conditions) // len(cells.levels[term]))
        pooled = _pooled(cells, of_term) / conditions
        df = seeds - 1 if cells.paired else 2 * (seeds * conditions - 1)
        width = _half_width(pooled, seeds, df)
        parts += [_row(cells, pair) | {"half_width": width} for pair in of_term]
    return make_table(EXPECTED_WIDTH, parts)


def _pooled(cells: Cells, pairs: Sequence[Pair]) -> Floats:
    """Return the variance of a difference within conditions, for each measure: the mean over pairs of a term."""
    apart = 2 * _mean_there(np.stack([variance(value) for value in cells.values]))
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
