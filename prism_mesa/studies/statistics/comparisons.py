"""Compare two sides of a study: differences with intervals, and the width of intervals with more seeds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.studies.statistics.cells import (
    ARM,
    DIFFERENCES,
    EXPECTED,
    EXPECTED_WIDTH,
    MARGINS,
    OTHERS,
    PRECISION,
    ROUNDING,
    TREATMENTS,
    Cells,
    RunTable,
    Treatment,
    gap_groups,
    level_text,
    make_cells,
    make_table,
    ratio,
    variance,
)
from prism_mesa.studies.statistics.expectation import Expectation, Verdict
from prism_mesa.studies.statistics.significance import holm, mann_whitney, t_test

MAX_LEVELS: Final = 6  # maximum number of levels of a factor that is compared in pairs
MAX_ARMS: Final = 20
MAX_ROWS: Final = 50_000  # maximum for the table `precision`; a larger table has `_REDUCED_SEEDS` numbers of seeds
_REDUCED_SEEDS: Final = 12

type Pair = tuple[str, int, int]
"""A term, and the indices of the left and the right level."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of left and right: arrays with a value for each measure.

    Attributes:
        n: Number of pairs, or of runs on the smaller side if seeds are not paired.
        missing: Number of planned pairs, or of runs on both sides, without a value.
        difference: The mean of left minus right over all pairs.
        low: Lower end of its 95 % interval: Student's over seeds, or Welch's over the runs of both sides.
        high: Upper end.
        p: Two-sided p of the difference.
        equal: Whether all pairs are equal; False without pairs.
        right_mean: The mean of the right side over the pairs with a value.
        samples: The tested samples: a difference for each seed, shape (seeds, measures), or the runs of left and right.
        scale: The size of the subtracted values, which bounds the rounding error of differences.
        test: The name of the test.
    """

    n: Ints
    missing: Ints
    difference: Floats
    low: Floats
    high: Floats
    p: Floats
    equal: Mask
    right_mean: Floats
    samples: tuple[Floats, ...]
    scale: Floats
    test: str

    @property
    def d_z(self) -> Floats:
        """Cohen's d for paired seeds: the mean difference divided by the standard deviation of the seeds' differences.

        Infinite if all seeds have the same difference; NaN for fewer than two seeds or unpaired runs (Cohen 1988;
        Lakens 2013, doi:10.3389/fpsyg.2013.00863).
        """
        if len(self.samples) > 1:
            return np.full(len(self.difference), np.nan)
        sd = np.sqrt(variance(self.samples[0]))
        sd[sd <= ROUNDING * np.maximum(self.scale, np.abs(self.difference))] = 0.0
        with np.errstate(all="ignore"):
            return np.where(self.equal & np.isfinite(sd), 0.0, self.difference / sd)


def compare(cells: Cells, left: Mask, right: Mask, shared_terms: Sequence[str]) -> Comparison:
    """Compare the conditions on the left with those on the right.

    The conditions of a pair have the same levels of the terms in `shared_terms`. If a side has several conditions in a
    pair, their mean is compared, and the pair is missing if a condition is missing.
    """
    if not cells.paired:
        return _compare_unpaired(cells, left, right)
    keys = np.column_stack([cells.codes[term] for term in shared_terms] or [np.zeros(len(left), np.int64)])
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    shared_groups = np.intersect1d(group[left], group[right])
    left_means, planned_left = _group_means(cells, left, group, shared_groups)
    right_means, planned_right = _group_means(cells, right, group, shared_groups)
    return compare_pairs(left_means, right_means, int((planned_left & planned_right).sum()))


def compare_pairs(left: Floats, right: Floats, planned: int) -> Comparison:
    """Compare left with right, both of shape (pairs of conditions, seeds, measures), with NaN if missing."""
    differences = left - right
    is_rounding = np.abs(differences) <= ROUNDING * np.maximum(np.abs(left), np.abs(right))
    differences = np.where(is_rounding, 0.0, differences)
    is_finite = np.isfinite(differences)
    n = is_finite.sum(axis=(0, 1))
    seed_differences = _seed_differences(differences)
    scale = np.where(is_finite, np.abs(right) + np.abs(differences), 0.0).max(axis=(0, 1), initial=0.0)
    equal = (n > 0) & ~(is_finite & (differences != 0)).any(axis=(0, 1))
    p, low, high = np.full((3, len(n)), np.nan)
    for columns, rows in gap_groups(seed_differences):
        p[columns], low[columns], high[columns] = t_test((seed_differences[rows][:, columns],), scale[columns])
    is_exact = equal & (np.isfinite(seed_differences).sum(axis=0) > 1)
    low[is_exact] = high[is_exact] = 0.0
    return Comparison(
        n=n,
        missing=planned - n,
        difference=ratio(np.where(is_finite, differences, 0.0).sum(axis=(0, 1)), n),
        low=low,
        high=high,
        p=p,
        equal=equal,
        right_mean=ratio(np.where(is_finite, right, 0.0).sum(axis=(0, 1)), n),
        samples=(seed_differences,),
        scale=scale,
        test="paired t-test of the seeds' mean differences",
    )


def _seed_differences(differences: Floats) -> Floats:
    """Return a difference for each seed, shape (seeds, measures), whose mean is the mean over all pairs.

    A seed's difference is the mean of its pairs. If seeds have different numbers of pairs, it is the linearised value
    of a ratio (Cochran 1977, Sampling Techniques, section 6.3).
    """
    is_finite = np.isfinite(differences)
    sums, counts = np.where(is_finite, differences, 0.0).sum(axis=0), is_finite.sum(axis=0).astype(np.float64)
    mean = ratio(sums.sum(axis=0), counts.sum(axis=0))
    share = ratio(counts, ratio(counts.sum(axis=0), (counts > 0).sum(axis=0)))
    return share * ratio(sums, counts) + (1 - share) * mean


def _group_means(cells: Cells, side: Mask, group: Ints, shared_groups: Ints) -> tuple[Floats, Mask]:
    """Return the means of a side's conditions in each shared group, and whether all runs of the group were planned."""
    conditions = np.flatnonzero(side & np.isin(group, shared_groups))
    group_index = np.searchsorted(shared_groups, group[conditions])
    sums = np.zeros((len(shared_groups), *cells.values.shape[1:]))
    planned = np.ones((len(shared_groups), cells.planned.shape[1]), bool)
    np.add.at(sums, group_index, cells.values[conditions])
    np.logical_and.at(planned, group_index, cells.planned[conditions])
    return sums / np.bincount(group_index, minlength=len(shared_groups))[:, None, None], planned


def _compare_unpaired(cells: Cells, left: Mask, right: Mask) -> Comparison:
    left_runs, right_runs = _planned_runs(cells, left), _planned_runs(cells, right)
    n_left, n_right = np.isfinite(left_runs).sum(axis=0), np.isfinite(right_runs).sum(axis=0)
    measures = len(cells.measures)
    difference, low, high, p, right_mean = np.full((5, measures), np.nan)
    equal = np.zeros(measures, bool)
    for columns, x, y in _complete_samples(left_runs, right_runs):
        if len(x) and len(y):
            difference[columns], right_mean[columns] = x.mean(axis=0) - y.mean(axis=0), y.mean(axis=0)
            p[columns], low[columns], high[columns] = t_test((x, y))
            equal[columns] = (x == y[0]).all(axis=0) & (y == y[0]).all(axis=0)
    return Comparison(
        np.minimum(n_left, n_right),
        cells.planned[left].sum() + cells.planned[right].sum() - n_left - n_right,
        np.where(equal, 0.0, difference),
        *(low, high, p, equal, right_mean),
        samples=(left_runs, right_runs),
        scale=np.zeros(measures),
        test="Welch's t-test",
    )


def _planned_runs(cells: Cells, side: Mask) -> Floats:
    """Return the values of all planned runs of a side, shape (runs, measures)."""
    return np.asarray(cells.values[side][cells.planned[side]])


def _complete_samples(left: Floats, right: Floats) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield groups of columns, and their left and right values without NaN."""
    for columns, rows in gap_groups(np.concatenate([left, right])):
        yield columns, left[rows[: len(left)]][:, columns], right[rows[len(left) :]][:, columns]


def pairs_of_terms(cells: Cells, design: str) -> tuple[list[Pair], tuple[str, ...]]:
    """Return the pairs of levels to compare, with the later level on the left, and notes on omitted terms.

    The pairs are all pairs of arms and, in a factorial design, the pairs of levels of each factor with few levels.
    """
    pairs: list[Pair] = []
    notes = []
    for term in cells.terms:
        if term != ARM and design != "factorial":
            continue
        max_levels, n = MAX_ARMS if term == ARM else MAX_LEVELS, len(cells.levels[term])
        if n > max_levels:
            notes.append(f"{term}: {n} levels are too many to compare in pairs (at most {max_levels}).")
            continue
        pairs += [(term, left, right) for right in range(n) for left in range(right + 1, n)]
    return pairs, tuple(notes)


def _compare_pair(cells: Cells, pair: Pair) -> Comparison:
    term, left, right = pair
    others = [other for other in cells.terms if other != term]
    return compare(cells, cells.has_level(term, left), cells.has_level(term, right), others)


def _pair_columns(cells: Cells, pair: Pair) -> dict[str, Any]:
    term, left, right = pair
    levels = cells.levels[term]
    texts = {"left": level_text(levels[left]), "right": level_text(levels[right])}
    return {"measure": list(cells.measures), "term": term, **texts}


def differences(
    cells: Cells, pairs: Sequence[Pair], expected: Iterable[tuple[Expectation, Verdict]] = ()
) -> pd.DataFrame:
    """Return the table `differences` (see `analysis.Analysis`).

    A row that an expectation is about has the p of the verdict. Holm's correction covers all other rows.
    """
    table = make_table(DIFFERENCES, [_difference_row(cells, pair) for pair in pairs])
    p_by_levels = _expected_p(expected)
    for row_index, row in enumerate(table[["measure", "term", "left", "right"]].itertuples(index=False)):
        if columns := p_by_levels.get((row.measure, row.term, frozenset([row.left, row.right]))):
            table.loc[row_index, ["p", "p_holm", "family"]] = columns
    others = table["family"] == OTHERS
    table.loc[others, "p_holm"] = holm(table.loc[others, "p"])
    return table


def _expected_p(
    expected: Iterable[tuple[Expectation, Verdict]],
) -> dict[tuple[str, str, frozenset[str]], tuple[float, float, str]]:
    """Return p, p after Holm's correction, and the family, by measure, term and levels; > and < precede =."""
    p_by_levels: dict[tuple[str, str, frozenset[str]], tuple[float, float, str]] = {}
    for expectation, verdict in sorted(expected, key=lambda item: item[0].relation == "="):
        left, right = expectation.left.terms, expectation.right.terms
        if len(left) == len(right) == 1 and left[0][0] == right[0][0]:
            family = MARGINS if expectation.relation == "=" else EXPECTED
            levels = frozenset(level_text(level) for _, level in (*left, *right))
            p_by_levels.setdefault((expectation.measure, left[0][0], levels), (verdict.p, verdict.p_holm, family))
    return p_by_levels


def _difference_row(cells: Cells, pair: Pair) -> dict[str, Any]:
    term, left, right = pair
    comparison = _compare_pair(cells, pair)
    rank_tests = np.full((3, len(cells.measures)), np.nan)
    left_runs, right_runs = (_planned_runs(cells, cells.has_level(term, level)) for level in (left, right))
    for columns, x, y in _complete_samples(left_runs, right_runs):
        rank_tests[:, columns] = mann_whitney(x, y)
    return _pair_columns(cells, pair) | {
        **{name: getattr(comparison, name) for name in ("n", "missing", "difference", "low", "high", "p")},
        "d_z": np.where(np.isfinite(comparison.d_z), comparison.d_z, np.nan),
        "p_holm": np.nan,
        "family": OTHERS,
        **dict(zip(("u", "p_mann_whitney", "rank_biserial"), rank_tests, strict=True)),
    }


def treatment_effects(cells: Cells, treatments: Iterable[Treatment]) -> pd.DataFrame:
    """Return the table `treatments` (see `analysis.Analysis`)."""
    parts: list[dict[str, Any]] = []
    for treatment in treatments:
        selected, whole, none = cells.select([treatment.measure, treatment.level]), treatment.whole, treatment.none
        # rows of an arm are sorted by the levels of the factors, so rows of several arms are pairs
        rows = {arm: cells.has_level(ARM, index) for index, arm in enumerate(cells.levels[ARM])}
        levels, within = ({arm: selected.values[rows[arm]][..., [k]] for arm in rows} for k in (1, 0))
        platform = levels[whole] - levels[none]
        sides = [("within", arm, within[arm], np.zeros_like(platform), [arm]) for arm in treatment.partial]
        sides.append(("platform", whole, levels[whole], levels[none], [whole, none]))
        sides += [("difference", arm, within[arm], platform, [arm, whole, none]) for arm in treatment.partial]
        for effect, arm, left, right, arms in sides:
            is_planned = np.all([cells.planned[rows[arm]] for arm in arms], axis=0)
            comparison = compare_pairs(left, right, int(is_planned.sum()))
            names = {"measure": [treatment.measure], "effect": effect, "arm": arm, "whole": whole, "none": none}
            numbers = {name: getattr(comparison, name) for name in ("n", "missing", "low", "high")}
            parts.append(names | numbers | {"mean": comparison.difference})
    return make_table(TREATMENTS, parts)


def precision(cells: Cells, pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return the table `precision`: the expected width of each difference's interval with 2, 3, ... seeds.

    With k seeds the half width is t(.975, k - 1) s / sqrt(k), where s is the standard deviation over all seeds, or
    Welch's if seeds are not paired. The pairs are pairs of arms, or of levels in a study without arms.
    """
    main_pairs = [pair for pair in pairs if pair[0] == ARM] or list(pairs)
    seeds = np.arange(2, cells.planned.shape[1] + 1)
    if len(seeds) > _REDUCED_SEEDS and len(seeds) * len(main_pairs) * len(cells.measures) > MAX_ROWS:
        seeds = np.unique(np.geomspace(2, seeds[-1], _REDUCED_SEEDS).round().astype(np.int64))
    parts = []
    for pair in main_pairs:
        term, left, right = pair
        pooled_variance = np.asarray(sum(map(variance, _compare_pair(cells, pair).samples)))
        n_runs = 1 if cells.paired else int(min(cells.has_level(term, left).sum(), cells.has_level(term, right).sum()))
        n = seeds[:, None] * n_runs
        widths = _half_width(pooled_variance, n, df=n - 1 if cells.paired else 2 * (n - 1)).reshape(-1)
        numbers = {"seeds": np.repeat(seeds, len(cells.measures)), "half_width": widths}
        parts.append(_pair_columns(cells, pair) | {"measure": list(cells.measures) * len(seeds)} | numbers)
    return make_table(PRECISION, parts)


def _half_width(spread: Floats, n: int | Ints, df: int | Ints) -> Floats:
    return np.asarray(stats.t.ppf(0.975, df) * np.sqrt(spread / n))


def expected_width(pilot: RunTable, seeds: int) -> pd.DataFrame:
    """Return the expected width of the intervals of differences with `seeds` seeds, from a pilot of two seeds or more.

    Two seeds say little about one pair of conditions, so the variance of a difference is pooled over all pairs of a
    term and all conditions. With k seeds and c conditions, the half width is t(.975, k - 1) s / sqrt(k c) if conditions
    are independent; intervals are wider if differences are correlated over conditions. Without a complete pair, twice
    the variance within conditions is used, as for unpaired seeds. `half_width` is NaN if unknown.
    """
    cells = make_cells(pilot)
    pairs, _ = pairs_of_terms(cells, pilot.design)
    parts = []
    for term in dict.fromkeys(pair[0] for pair in pairs):
        term_pairs = [pair for pair in pairs if pair[0] == term]
        conditions = max(1, len(cells.conditions) // len(cells.levels[term]))
        df = seeds - 1 if cells.paired else 2 * (seeds * conditions - 1)
        width = _half_width(_pooled_variance(cells, term_pairs) / conditions, seeds, df)
        parts += [_pair_columns(cells, pair) | {"half_width": width} for pair in term_pairs]
    return make_table(EXPECTED_WIDTH, parts)


def _pooled_variance(cells: Cells, pairs: Sequence[Pair]) -> Floats:
    """Return the variance of a difference between seeds for each measure, pooled over pairs of conditions."""
    unpaired_variance = 2 * _finite_mean(np.stack([variance(value) for value in cells.values]))
    variances = []
    for term, left, right in pairs if cells.paired else ():
        others = [cells.codes[other] for other in cells.terms if other != term]
        keys = list(zip(*others, strict=True)) if others else [()] * len(cells.conditions)
        left_runs, right_runs = (
            {keys[condition]: cells.values[condition] for condition in np.flatnonzero(cells.has_level(term, level))}
            for level in (left, right)
        )
        variances += [variance(values - right_runs[key]) for key, values in left_runs.items() if key in right_runs]
    paired_variance = _finite_mean(np.stack(variances)) if variances else unpaired_variance
    return np.where(np.isnan(paired_variance), unpaired_variance, paired_variance)


def _finite_mean(rows: Floats) -> Floats:
    is_finite = np.isfinite(rows)
    return ratio(np.where(is_finite, rows, 0.0).sum(axis=0), is_finite.sum(axis=0))
