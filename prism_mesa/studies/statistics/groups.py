"""Three levels or more against each other: Kruskal-Wallis."""

from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ARM, Cells, alike
from prism_mesa.studies.statistics.significance import holm
from prism_mesa.studies.statistics.tables import GROUPS, table_of

CONDITION: Final = "condition"
"""The term of which each condition is a level."""


def groups(cells: Cells, design: str) -> pd.DataFrame:
    """Return the table `groups` (see `analysis.Analysis`).

    Of a design that is not factorial only arms are compared: its conditions have a run for each seed and no more.
    """
    parts: list[dict[str, Any]] = []
    for term, codes in _terms(cells, design).items():
        runs = np.asarray(cells.values[cells.planned])
        h, df, p = kruskal_wallis(runs, np.repeat(codes, cells.planned.sum(axis=1)))
        counts = np.isfinite(runs).sum(axis=0)
        numbers = {"n": counts, "missing": len(runs) - counts, "h": h, "df": df, "p": p, "p_holm": np.nan}
        parts.append({"measure": list(cells.measures), "term": term, **numbers})
    table = table_of(GROUPS, parts)
    table["p_holm"] = holm(table["p"])
    return table


def _terms(cells: Cells, design: str) -> dict[str, Ints]:
    """Return terms with three levels or more, with the place of each condition's level."""
    found = {
        term: cells.codes[term]
        for term in cells.terms
        if len(cells.levels[term]) > 2 and (term == ARM or design == "factorial")
    }
    n = len(cells.conditions)
    if len(cells.terms) > 1 and n > 2 and design == "factorial":  # of one term alone, conditions are its levels
        found[CONDITION] = np.arange(n)
    return found


def kruskal_wallis(values: Floats, group: Ints) -> tuple[Floats, Ints, Floats]:
    """Return H, its degrees of freedom and p for each column; of numbers that are all the same, 0 and 1.

    Args:
        values: Shape (runs, columns); NaN where there is none.
        group: For each run, its group. Those without a number do not count.
    """
    h, p = np.full((2, values.shape[1]), np.nan)
    df = np.zeros(values.shape[1], np.int64)
    for columns, rows in alike(values):
        there, of = values[rows][:, columns], group[rows]
        present = np.unique(of)
        df[columns] = max(0, len(present) - 1)
        if len(present) < 2:
            continue
        flat = (there == there[0]).all(axis=0)
        h[columns[flat]], p[columns[flat]] = 0.0, 1.0
        if not flat.all():
            found = stats.kruskal(*(there[of == one][:, ~flat] for one in present), axis=0)
            h[columns[~flat]], p[columns[~flat]] = found.statistic, found.pvalue
    return h, df, p
