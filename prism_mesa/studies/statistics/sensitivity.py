"""Sensitivity of measures to factors: Sobol and Morris indices (SALib), and variance shares of crossed designs."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
from SALib.analyze import morris, sobol

from prism_mesa.arrays import Floats, Mask
from prism_mesa.errors import format_count
from prism_mesa.streams import make_generator
from prism_mesa.studies.design.sampling import LEVELS, repeat_points
from prism_mesa.studies.statistics.cells import ARM, ROUNDING, SENSITIVITY, Cells, RunTable, is_flat, make_table

DRAWS: Final = 4000
RESAMPLES: Final = 200
_RESAMPLING_SEED: Final = 1  # SALib ignores a seed of 0

type Row = dict[str, Any]


def variance_shares(cells: Cells) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `sensitivity` of a factorial design (see `analysis.Analysis`), and notes on omitted measures.

    The analysis of variance uses the seeds that all conditions have, and leaves out arms that lack a condition. The
    variance due to a term is the variance of its levels' means minus the part due to chance. `interactions` is the
    remaining variance between conditions, and `seed` the variance within conditions. Levels of a seed (`agents.seed`)
    count as a sample of all seeds. Intervals are generalised 95 % intervals: quantiles of the shares for redrawn mean
    squares (Weerahandi 1993, doi:10.1080/01621459.1993.10476355).
    """
    rows: list[Row] = []
    omitted_measures = []
    for index, measure in enumerate(cells.measures):
        is_finite = np.isfinite(cells.values[:, :, index])
        is_kept = ~np.isin(cells.codes[ARM], cells.codes[ARM][~is_finite.any(axis=1)])
        values = cells.values[is_kept][:, is_finite[is_kept].all(axis=0), index]
        if not cells.terms or values.shape[1] < 2 or len(values) < 2 or is_flat(values.reshape(-1, 1))[0]:
            omitted_measures += [measure] * bool(cells.terms)
            continue
        parts = _variance_parts(cells, is_kept, values)
        shares = np.array(list(parts.values())) / sum(parts.values())
        low, high = np.quantile(shares[:, 1:], (0.025, 0.975), axis=1)
        numbers = {"value": shares[:, 0], "low": low, "high": high}
        rows.append({"measure": [measure] * len(parts), "factor": list(parts), "index": "share", **numbers})
    reason = "the measure is constant, or fewer than two seeds are complete"
    note = f"Variance of {', '.join(omitted_measures)}: not split: {reason}."
    return make_table(SENSITIVITY, rows), (note,) if omitted_measures else ()


def _variance_parts(cells: Cells, is_kept: Mask, values: Floats) -> dict[str, Floats]:
    """Return the variance due to each source: the estimate, then draws; values have shape (conditions, seeds)."""
    draws, (conditions, seeds), grand_mean = make_generator("variance shares"), values.shape, values.mean()

    def mean_square(squares: float, df: int) -> Floats:
        return np.asarray(squares / np.append(df, draws.chisquare(df, DRAWS)))

    def fixed_effect(squares: float, df: int) -> Floats:
        redrawn = error[1:] * (draws.noncentral_chisquare(df, squares / error[1:]) - 2 * df)
        return np.asarray(np.maximum(np.append(squares - df * error[0], redrawn), 0.0) / values.size)

    seed_squares = conditions * ((values.mean(axis=0) - grand_mean) ** 2).sum()
    remaining, df_remaining = seeds * ((values.mean(axis=1) - grand_mean) ** 2).sum(), conditions - 1
    total = ((values - grand_mean) ** 2).sum()
    error = mean_square(max(total - seed_squares - remaining, ROUNDING * total), df_remaining * (seeds - 1))
    parts = {}
    for term in cells.terms:
        level = np.unique(cells.codes[term][is_kept], return_inverse=True)[1]
        n = int(level.max()) + 1
        if n > 1:
            size = values.size // n
            squares = size * ((np.bincount(level, values.mean(axis=1)) * n / conditions - grand_mean) ** 2).sum()
            sampled_effect = np.maximum(mean_square(squares, n - 1) - error, 0.0) / size
            parts[term] = sampled_effect if term.endswith(".seed") else fixed_effect(squares, n - 1)
            remaining, df_remaining = remaining - squares, df_remaining - n + 1
    if df_remaining:
        parts["interactions"] = fixed_effect(max(remaining, 0.0), df_remaining)
    parts["seed"] = (mean_square(seed_squares, seeds - 1) + (conditions - 1) * error) / conditions
    return parts


def sensitivity(table: RunTable, cells: Cells) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `sensitivity` (see `analysis.Analysis`), and notes on omitted measures.

    The value at a point is the mean over its runs (seeds and arms). A measure has no indices if a point is incomplete,
    because a mean over fewer runs would look like an effect of the point.
    """
    if table.design == "factorial":
        return variance_shares(cells)
    if table.design not in ("sobol", "morris") or not table.sampling:
        return make_table(SENSITIVITY, []), ()
    points = repeat_points(table.sampling)
    point_means = _point_means(cells, points)
    parts: list[Row] = []
    notes = ["Sensitivity: values are means over all arms."] if len(cells.levels[ARM]) > 1 else []
    for measure, y in zip(cells.measures, point_means.T, strict=True):
        n_gaps = int(np.isnan(y).sum())
        varied_values = y
        if table.design == "sobol":  # use only the points that vary all factors
            step = len(points.columns) + 2
            varied_values = np.concatenate([y[::step], y[step - 1 :: step]])
        if n_gaps:
            points_text = f"{n_gaps} of {format_count(len(y), 'point')}"
            notes.append(f"Sensitivity of {measure}: no indices, because {points_text} lack runs or the measure.")
        elif not np.ptp(varied_values) > 1e-12 * np.abs(varied_values).max():
            notes.append(f"Sensitivity of {measure}: no indices, because it hardly differs between points.")
        else:
            parts += [{"measure": [measure], **row} for row in _indices(table, points, y)]
    return make_table(SENSITIVITY, parts), tuple(notes)


def _point_means(cells: Cells, points: pd.DataFrame) -> Floats:
    """Return the mean of each measure at each point, shape (points, measures); NaN if a run is missing.

    A point must have as many runs as the point with the most planned runs. Integer factors are rounded.
    """
    is_finite = np.isfinite(cells.values)
    sums, n = np.where(is_finite, cells.values, 0.0).sum(axis=1), is_finite.sum(axis=1)
    values = cells.conditions[list(points.columns)].astype(np.float64)
    integer_columns = [key for key in points.columns if (values[key] % 1 == 0).all()]
    points = points.assign(**{key: points[key].round() for key in integer_columns})
    rows_by_point: dict[tuple[float, ...], list[int]] = {}
    for index, row in enumerate(values.itertuples(index=False)):
        rows_by_point.setdefault(tuple(map(float, row)), []).append(index)
    planned = cells.planned.sum(axis=1)
    max_planned = max((int(planned[rows].sum()) for rows in rows_by_point.values()), default=0)
    point_means = np.full((len(points), len(cells.measures)), np.nan)
    for index, row in enumerate(points.itertuples(index=False)):
        rows = rows_by_point.get(tuple(map(float, row)), [])
        total, count = sums[rows].sum(axis=0), n[rows].sum(axis=0)
        point_means[index] = np.divide(total, count, out=point_means[index], where=(count == max_planned) & (count > 0))
    return point_means


def _indices(table: RunTable, points: pd.DataFrame, y: Floats) -> Iterator[Row]:
    """Yield rows with the indices of each factor; `y` has the values of a measure, shape (points,)."""
    sampling: dict[str, Any] = dict(table.sampling or {})
    problem = dict(sampling["problem"])  # a copy, because SALib changes the problem
    if table.design == "sobol":
        indices, half_widths = {"s1": "S1", "st": "ST"}, {"s1": "S1_conf", "st": "ST_conf"}
        options = {"calc_second_order": False, "num_resamples": RESAMPLES, "seed": _RESAMPLING_SEED}
        results = sobol.analyze(problem, y, **options)
    else:
        indices, half_widths = {name: name for name in ("mu_star", "mu", "sigma")}, {"mu_star": "mu_star_conf"}
        x, options = points.to_numpy(np.float64), {"num_resamples": RESAMPLES * 5, "seed": _RESAMPLING_SEED}
        results = morris.analyze(problem, x, y, num_levels=LEVELS, **options)
    for index, key in indices.items():
        for position, factor in enumerate(problem["names"]):
            value = float(results[key][position])
            half = float(results[half_widths[index]][position]) if index in half_widths else np.nan
            yield {"factor": factor, "index": index, "value": value, "low": value - half, "high": value + half}
