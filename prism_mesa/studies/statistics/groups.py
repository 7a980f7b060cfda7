"""The answers of a study, and tests of three levels or more (Kruskal-Wallis)."""

from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ARM, Cells, alike
from prism_mesa.studies.statistics.significance import holm, interval
from prism_mesa.studies.statistics.tables import ANSWERS, GROUPS, table_of


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


CONDITION: Final = "condition"  # the term of which each condition is a level


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
