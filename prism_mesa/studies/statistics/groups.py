"""Three levels or more against each other: Kruskal-Wallis, and Dunn's test for which of them differ."""

from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ARM, Cells, alike
from prism_mesa.studies.statistics.levels import level_text
from prism_mesa.studies.statistics.significance import holm
from prism_mesa.studies.statistics.tables import DUNN, GROUPS, table_of

CONDITION: Final = "condition"
"""The term of which each condition is a level."""
MOST_GROUPS: Final = 12
"""Groups of which all pairs are tested."""


def groups(cells: Cells, design: str) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Return the tables `groups` and `dunn` (see `analysis.Analysis`), and notes on what is left out.

    Of a design that is not factorial only arms are compared: its conditions have a run for each seed and no more.
    """
    parts, pairs, notes = [], [], []
    for term, (codes, labels) in _terms(cells, design).items():
        runs = np.asarray(cells.values[cells.planned])
        group = np.repeat(codes, cells.planned.sum(axis=1))
        found = kruskal_wallis(runs, group)
        counts = np.isfinite(runs).sum(axis=0)
        parts.append(
            {"measure": list(cells.measures), "term": term, "n": counts, "missing": len(runs) - counts}
            | {name: found[place] for place, name in enumerate(("h", "df", "p"))}
            | {"p_holm": np.nan}
        )
        if len(labels) > MOST_GROUPS:
            notes.append(f"{term}: its {len(labels)} levels are too many for Dunn's test of all pairs ({MOST_GROUPS}).")
            continue
        pairs += _dunn_rows(cells.measures, term, labels, runs, group)
    table = table_of(GROUPS, parts)
    table["p_holm"] = holm(table["p"])
    return table, table_of(DUNN, pairs), tuple(notes)


def _terms(cells: Cells, design: str) -> dict[str, tuple[Ints, tuple[str, ...]]]:
    """Return terms with three levels or more: the place of each condition's level, and the levels in words."""
    found = {
        term: (cells.codes[term], cells.texts(term))
        for term in cells.terms
        if len(cells.levels[term]) > 2 and (term == ARM or design == "factorial")
    }
    n = len(cells.conditions)
    if len(cells.terms) > 1 and n > 2 and design == "factorial":  # of one term alone, conditions are its levels
        found[CONDITION] = (np.arange(n), tuple(_condition_texts(cells)))
    return found


def _condition_texts(cells: Cells) -> list[str]:
    told = []
    for _, row in cells.conditions.iterrows():
        levels = [level_text(row[term]) if term == ARM else f"{term}={level_text(row[term])}" for term in cells.terms]
        told.append(", ".join(levels))
    return told


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


def dunn(values: Floats, group: Ints, n_groups: int) -> tuple[list[tuple[int, int]], Floats, Floats]:
    """Return all pairs of groups (left, right), and z and the two-sided p of each, shape (pairs, columns).

    z is the difference of mean ranks, left minus right, in standard errors corrected for ties (Dunn 1964,
    doi:10.1080/00401706.1964.10490181).

    Args:
        values: Shape (runs, columns); NaN where there is none.
        group: For each run, its group, 0 to `n_groups` - 1.
        n_groups: How many there are.
    """
    pairs = [(right, left) for left, right in combinations(range(n_groups), 2)]
    z = np.full((len(pairs), values.shape[1]), np.nan)
    for columns, rows in alike(values):
        there, of = values[rows][:, columns], group[rows]
        sizes = np.bincount(of, minlength=n_groups)
        ranks = stats.rankdata(there, axis=0)
        n = len(there)
        variance = np.array([n * (n + 1) / 12 * stats.tiecorrect(one) if n > 1 else 0.0 for one in ranks.T])
        for place, (left, right) in enumerate(pairs):
            if sizes[left] and sizes[right]:
                apart = ranks[of == left].mean(axis=0) - ranks[of == right].mean(axis=0)
                error = np.sqrt(variance * (1 / sizes[left] + 1 / sizes[right]))
                z[place, columns] = np.divide(apart, error, out=np.zeros_like(apart), where=error > 0)
    return pairs, z, 2 * stats.norm.sf(np.abs(z))


def _dunn_rows(
    measures: tuple[str, ...], term: str, labels: tuple[str, ...], runs: Floats, group: Ints
) -> list[dict[str, Any]]:
    pairs, z, p = dunn(runs, group, len(labels))
    corrected = holm(p)
    return [
        {
            "measure": list(measures),
            "term": term,
            "left": labels[left],
            "right": labels[right],
            "z": z[place],
            "p": p[place],
            "p_holm": corrected[place],
        }
        for place, (left, right) in enumerate(pairs)
    ]
