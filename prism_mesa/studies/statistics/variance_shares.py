"""The shares of a measure's variance that come from the terms of a crossed study and from its seeds."""

from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.streams import Floats, generator
from prism_mesa.studies.statistics.cells import ARM, ROUNDING, Bools, Cells, constant
from prism_mesa.studies.statistics.tables import SENSITIVITY, table_of

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
    return table_of(SENSITIVITY, rows), (note,) if unsplit else ()


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
