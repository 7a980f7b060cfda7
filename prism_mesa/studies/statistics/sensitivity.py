"""How far outcomes depend on each factor: Sobol and Morris indices (SALib), shares of variance of crossed designs."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
from SALib.analyze import morris, sobol

from prism_mesa.errors import counted
from prism_mesa.streams import Floats, generator
from prism_mesa.studies.design.sampling import LEVELS, points_again
from prism_mesa.studies.statistics.cells import ARM, ROUNDING, SENSITIVITY, Bools, Cells, RunTable, constant, make_table

DRAWS: Final = 4000
_SEED: Final = "seed"


def variance_shares(cells: Cells) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `sensitivity` of a factorial design (see `analysis.Analysis`), and notes on measures it lacks.

    This is an analysis of variance over the seeds that all conditions have, without arms that lack a condition. The
    part of a term is the variance of its levels' means minus the part due to chance; `interactions` is the further
    variance between conditions; `seed` is the variance within conditions. If a term is itself a seed (`agents.seed`),
    its levels are a sample, and its part is the variance over all seeds. The 95 % intervals are generalised intervals:
    quantiles of shares with redrawn mean squares (Weerahandi 1993, doi:10.1080/01621459.1993.10476355).
    """
    rows, unsplit = [], []
    for place, measure in enumerate(cells.measures):
        finite = np.isfinite(cells.values[:, :, place])
        kept = ~np.isin(cells.codes[ARM], cells.codes[ARM][~finite.any(axis=1)])
        values = cells.values[kept][:, finite[kept].all(axis=0), place]
        if not cells.terms or values.shape[1] < 2 or len(values) < 2 or constant(values.reshape(-1, 1))[0]:
            unsplit += [measure] * bool(cells.terms)
            continue
        parts = _parts(cells, kept, values)
        shares = np.array(list(parts.values())) / sum(parts.values())
        low, high = np.quantile(shares[:, 1:], (0.025, 0.975), axis=1)
        numbers = {"value": shares[:, 0], "low": low, "high": high}
        rows.append({"measure": [measure] * len(parts), "factor": list(parts), "index": "share", **numbers})
    note = f"Variance of {', '.join(unsplit)}: not split; it is constant, or fewer than two seeds have all runs."
    return make_table(SENSITIVITY, rows), (note,) if unsplit else ()


def _parts(cells: Cells, kept: Bools, values: Floats) -> dict[str, Floats]:
    """Return the variance from each source: the estimate, then `DRAWS` values with redrawn mean squares.

    Args:
        cells: The runs.
        kept: Whether each condition counts.
        values: The measure in these conditions, shape (conditions, seeds), without gaps.
    """
    draws, (conditions, seeds), grand = generator("variance shares"), values.shape, values.mean()

    def mean_square(squares: float, df: int) -> Floats:
        return np.asarray(squares / np.append(df, draws.chisquare(df, DRAWS)))

    def fixed(squares: float, df: int) -> Floats:
        drawn = error[1:] * (draws.noncentral_chisquare(df, squares / error[1:]) - 2 * df)
        return np.asarray(np.maximum(np.append(squares - df * error[0], drawn), 0.0) / values.size)

    of_seeds = conditions * ((values.mean(axis=0) - grand) ** 2).sum()
    left, df_left = seeds * ((values.mean(axis=1) - grand) ** 2).sum(), conditions - 1
    total = ((values - grand) ** 2).sum()
    error = mean_square(max(total - of_seeds - left, ROUNDING * total), df_left * (seeds - 1))
    parts = {}
    for term in cells.terms:
        level = np.unique(cells.codes[term][kept], return_inverse=True)[1]
        n = int(level.max()) + 1
        if n > 1:
            each = values.size // n
            squares = each * ((np.bincount(level, values.mean(axis=1)) * n / conditions - grand) ** 2).sum()
            sampled = np.maximum(mean_square(squares, n - 1) - error, 0.0) / each
            parts[term] = sampled if term.endswith(f".{_SEED}") else fixed(squares, n - 1)
            left, df_left = left - squares, df_left - n + 1
    if df_left:
        parts["interactions"] = fixed(max(left, 0.0), df_left)
    parts[_SEED] = (mean_square(of_seeds, seeds - 1) + (conditions - 1) * error) / conditions
    return parts


RESAMPLES: Final = 200
_RESAMPLING_SEED: Final = 1  # of the resamples; SALib takes 0 for none

type Row = dict[str, Any]


def sensitivity(table: RunTable, cells: Cells) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `sensitivity` (see `analysis.Analysis`), and notes on what is not in it.

    At each point the mean over its runs (seeds and arms) counts, and only if all of them have the measure: a mean over
    other seeds or arms than elsewhere would look like an effect of the point. A measure with a single point that is
    not complete has no indices: with one gap they would come out wrong without a word.
    """
    if table.design == "factorial":
        return variance_shares(cells)
    if table.design not in ("sobol", "morris") or not table.sampling:
        return make_table(SENSITIVITY, []), ()
    points = points_again(table.sampling)
    outcomes = _outcomes(cells, points)
    parts: list[Row] = []
    notes = ["Sensitivity: at each point the mean over all arms counts."] if len(cells.levels[ARM]) > 1 else []
    for column, measure in enumerate(cells.measures):
        y = outcomes[:, column]
        gaps = int(np.isnan(y).sum())
        if gaps:
            notes.append(
                f"Sensitivity of {measure}: {gaps} of {counted(len(y), 'point')} are not complete (not all of their "
                "runs have this measure); indices of an incomplete design would be wrong, so there are none."
            )
        elif not _varies(table, y, len(points.columns)):
            notes.append(f"Sensitivity of {measure}: it hardly differs between points, so there is nothing to explain.")
        else:
            rows = _sobol(table, y) if table.design == "sobol" else _morris(table, points, y)
            parts += [{"measure": [measure], **row} for row in rows]
    return make_table(SENSITIVITY, parts), tuple(notes)


def _outcomes(cells: Cells, points: pd.DataFrame) -> Floats:
    """Return the mean of each measure at each point, shape (points, measures); NaN where one of its runs is missing.

    Each point is to have as many runs as the one of which most were planned.
    A factor of which all runs have whole numbers was rounded, if it was not drawn as such.
    """
    there = np.isfinite(cells.values)
    sums, n = np.where(there, cells.values, 0.0).sum(axis=1), there.sum(axis=1)
    places: dict[tuple[float, ...], list[int]] = {}
    drawn = cells.conditions[list(points.columns)].astype(np.float64)
    whole = [key for key in points.columns if (drawn[key] % 1 == 0).all()]
    points = points.assign(**{key: points[key].round() for key in whole})
    for place, row in enumerate(drawn.itertuples(index=False)):
        places.setdefault(tuple(float(value) for value in row), []).append(place)
    found = np.full((len(points), len(cells.measures)), np.nan)
    planned = cells.planned.sum(axis=1)
    whole_point = max((int(planned[here].sum()) for here in places.values()), default=0)
    for at, row in enumerate(points.itertuples(index=False)):
        here = places.get(tuple(float(value) for value in row), [])
        total, count = sums[here].sum(axis=0), n[here].sum(axis=0)
        complete = (count == whole_point) & (count > 0)
        found[at] = np.divide(total, count, out=np.full(len(count), np.nan), where=complete)
    return found


def _varies(table: RunTable, y: Floats, factors: int) -> bool:
    """Return whether an outcome differs between points; for Sobol's indices, between those that vary all factors."""
    if table.design == "sobol":
        y = np.concatenate([y[:: factors + 2], y[factors + 1 :: factors + 2]])
    return bool(np.ptp(y) > 1e-12 * np.abs(y).max())


def _sobol(table: RunTable, y: Floats) -> Iterator[Row]:
    problem = _problem(table)
    found = sobol.analyze(problem, y, calc_second_order=False, num_resamples=RESAMPLES, seed=_RESAMPLING_SEED)
    for index, key in (("s1", "S1"), ("st", "ST")):
        for name, value, half in zip(problem["names"], found[key], found[f"{key}_conf"], strict=True):
            yield {"factor": name, "index": index, "value": value, "low": value - half, "high": value + half}


def _morris(table: RunTable, points: pd.DataFrame, y: Floats) -> Iterator[Row]:
    problem = _problem(table)
    x = points.to_numpy(np.float64)
    found = morris.analyze(problem, x, y, num_levels=LEVELS, num_resamples=RESAMPLES * 5, seed=_RESAMPLING_SEED)
    for index in ("mu_star", "mu", "sigma"):
        for place, name in enumerate(problem["names"]):
            value = float(found[index][place])
            half = float(found["mu_star_conf"][place]) if index == "mu_star" else np.nan
            yield {"factor": name, "index": index, "value": value, "low": value - half, "high": value + half}


def _problem(table: RunTable) -> dict[str, Any]:
    sampling: dict[str, Any] = dict(table.sampling or {})
    return dict(sampling["problem"])  # SALib adds to it
