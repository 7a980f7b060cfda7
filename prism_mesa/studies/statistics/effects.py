"""Answers by condition, tests of three levels or more (Kruskal-Wallis), and effects of factors (ANOVA)."""

from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ANSWERS, ARM, EFFECTS, GROUPS, Bools, Cells, alike, make_table
from prism_mesa.studies.statistics.significance import holm, interval


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
            described["low"][some], described["high"][some] = interval(there)
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
    table = make_table(GROUPS, parts)
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


MOST_COLUMNS: Final = 400  # columns of a design's matrix; with more of them interactions are left out
_NO_ERROR: Final = "which do not vary between seeds of a condition, or have too few runs"
_NOT_APART: Final = "so that their effects are not independent of each other (sums of squares of type II)"

type Effect = tuple[str, ...]


def effects(cells: Cells, design: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `effects` (see `analysis.Analysis`), and notes on what is not in it.

    Sums of squares are of type II: each effect beside all others that do not contain it (Langsrud 2003,
    doi:10.1023/A:1023260610025). Where seeds are paired, each is a block. They are what statsmodels' `anova_lm` gives
    with `typ` 2, for all measures at once.
    """
    if design != "factorial" or not cells.planned.any():
        return make_table(EFFECTS, []), ()
    notes: list[str] = []
    names = _effects_of(cells, notes)
    condition = np.repeat(np.arange(len(cells.conditions)), cells.planned.sum(axis=1))
    runs = np.asarray(cells.values[cells.planned])
    block = np.nonzero(cells.planned)[1] if cells.paired else np.zeros(len(runs), np.int64)
    dummies = {effect: _dummies(cells, effect)[condition] for effect in names}
    parts, flat, unbalanced = [], 0, 0
    for columns, rows in alike(runs):
        some = {effect: matrix[rows] for effect, matrix in dummies.items()}
        found, usable = _variance(some, block[rows], runs[rows][:, columns])
        flat += int((~usable).sum())
        unbalanced += 0 if rows.all() else int(usable.sum())
        measures = [cells.measures[place] for place in columns[usable]]
        counts = {"n": int(rows.sum()), "missing": int((~rows).sum())}
        parts += [{"measure": measures, **one, **counts, "p_holm": np.nan} for one in found if measures]
    if names and flat:
        notes.append(f"Effects: none of {flat} of {len(cells.measures)} measures, {_NO_ERROR}.")
    if names and unbalanced:
        notes.append(f"Effects: runs are missing for {unbalanced} of {len(cells.measures)} measures, {_NOT_APART}.")
    table = make_table(EFFECTS, parts)
    order = table["measure"].map({name: place for place, name in enumerate(cells.measures)})
    table = table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)
    table["p_holm"] = holm(table["p"])
    return table, tuple(notes)


def _effects_of(cells: Cells, notes: list[str]) -> list[Effect]:
    """Return main effects and two-way interactions, as terms; what is left out goes to the notes."""
    terms = cells.terms
    main: list[Effect] = [(term,) for term in terms]
    two: list[Effect] = list(combinations(terms, 2))
    if len(terms) > 2:
        notes.append("Effects: interactions of three terms and more are left out.")
    columns = sum(int(np.prod([len(cells.levels[term]) - 1 for term in effect])) for effect in main + two)
    if columns > MOST_COLUMNS:
        notes.append(f"Effects: interactions would take {columns} columns (at most {MOST_COLUMNS}) and are left out.")
        return main
    return main + two


def _dummies(cells: Cells, effect: Effect) -> Floats:
    """Return columns of an effect for each condition: products of what tells levels from the first one."""
    product = np.ones((len(cells.conditions), 1))
    for term in effect:
        apart = (cells.codes[term][:, None] == np.arange(1, len(cells.levels[term]))).astype(np.float64)
        product = (product[:, :, None] * apart[:, None, :]).reshape(len(product), -1)
    return product


def _variance(dummies: dict[Effect, Floats], block: Ints, values: Floats) -> tuple[list[dict[str, Any]], Bools]:
    """Return rows of effects for measures with the same runs, and which of the measures have any.

    Args:
        dummies: Columns of each effect, a row for each run.
        block: For each run, its block.
        values: Shape (runs, measures), without gaps.
    """
    none = np.zeros(values.shape[1], bool)
    if not dummies or len(values) < 2:
        return [], none
    x = _within(np.column_stack(list(dummies.values())), block)
    y = _within(values, block)
    gram, cross, total = x.T @ x, x.T @ y, (y**2).sum(axis=0)
    of = np.repeat(np.arange(len(dummies)), [matrix.shape[1] for matrix in dummies.values()])
    explained, rank = _explained(gram, cross, of >= 0)
    rest, df_error = total - explained, len(values) - len(np.unique(block)) - rank
    usable = rest > np.maximum(1e-12 * total, 1e-24 * (values**2).sum(axis=0))  # else it is rounding
    if df_error < 1 or not usable.any():
        return [], none
    rows = []
    for place, effect in enumerate(dummies):
        others = np.isin(of, [k for k, other in enumerate(dummies) if not set(effect) <= set(other)])
        without, rank_without = _explained(gram, cross, others)
        with_it, rank_with = _explained(gram, cross, others | (of == place))
        df = rank_with - rank_without
        if df < 1:
            continue
        own, error = np.maximum(with_it - without, 0.0)[usable], rest[usable]
        f = (own / df) / (error / df_error)
        numbers = {"f": f, "p": stats.f.sf(f, df, df_error), "partial_eta_squared": own / (own + error)}
        rows.append({"effect": " x ".join(effect), "df": df, **numbers})
    return rows, usable


def _explained(gram: Floats, cross: Floats, some: Bools) -> tuple[Floats, int]:
    """Return the sums of squares that some columns of a linear model explain, and their rank.

    Args:
        gram: Products of all its columns with each other.
        cross: Their products with each measure.
        some: Which columns.
    """
    values, vectors = np.linalg.eigh(gram[np.ix_(some, some)])
    kept = values > 1e-9 * max(values.max(initial=0.0), 1.0)
    along = vectors[:, kept].T @ cross[some]
    return (along**2 / values[kept][:, None]).sum(axis=0), int(kept.sum())


def _within(columns: Floats, block: Ints) -> Floats:
    """Return columns less their means within each block."""
    places = np.unique(block, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((places.max() + 1, columns.shape[1]))
    np.add.at(sums, places, columns)
    return np.asarray(columns - (sums / np.bincount(places)[:, None])[places])
