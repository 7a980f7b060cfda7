"""Means by condition, tests of three or more levels (Kruskal-Wallis), and effects of factors (ANOVA)."""

from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.streams import Floats, Ints
from prism_mesa.studies.statistics.cells import ANSWERS, ARM, EFFECTS, GROUPS, Bools, Cells, columns_by_gaps, make_table
from prism_mesa.studies.statistics.significance import holm, interval

CONDITION: Final = "condition"  # the term whose levels are the conditions


def answers(cells: Cells) -> pd.DataFrame:
    """Return the table `answers` (see `analysis.Analysis`)."""
    conditions, replicates, measures = cells.values.shape
    columns = np.sort(cells.values.transpose(1, 0, 2).reshape(replicates, conditions * measures), axis=0)  # NaN last
    n = np.isfinite(columns).sum(axis=0)
    numbers = {name: np.full(len(n), np.nan) for name in ("mean", "median", "sd", "low", "high")}
    for size in np.unique(n[n > 0]):
        places = np.flatnonzero(n == size)
        values = columns[:size, places]
        numbers["mean"][places] = values.mean(axis=0)
        numbers["median"][places] = np.median(values, axis=0)
        if size > 1:
            numbers["sd"][places] = values.std(axis=0, ddof=1)
            numbers["low"][places], numbers["high"][places] = interval(values)
    table: dict[str, Any] = {
        "measure": np.tile(np.array(cells.measures, object), conditions),
        "n": n,
        "missing": np.repeat(cells.planned.sum(axis=1), measures) - n,
        **numbers,
    }
    rows = cells.conditions.loc[np.repeat(np.arange(conditions), measures)].reset_index(drop=True)
    return rows.assign(**{name: pd.Series(table[name], dtype=kind) for name, kind in ANSWERS.items()})


def groups(cells: Cells, design: str) -> pd.DataFrame:
    """Return the table `groups` (see `analysis.Analysis`); only arms are compared if the design is not factorial."""
    factorial, n = design == "factorial", len(cells.conditions)
    terms = [term for term in cells.terms if len(cells.levels[term]) > 2 and (term == ARM or factorial)]
    codes = {term: cells.codes[term] for term in terms}
    if len(cells.terms) > 1 and n > 2 and factorial:  # with one term, conditions are its levels
        codes[CONDITION] = np.arange(n)
    parts: list[dict[str, Any]] = []
    runs = np.asarray(cells.values[cells.planned])
    counts = np.isfinite(runs).sum(axis=0)
    for term, group in codes.items():
        h, df, p = kruskal_wallis(runs, np.repeat(group, cells.planned.sum(axis=1)))
        numbers = {"n": counts, "missing": len(runs) - counts, "h": h, "df": df, "p": p, "p_holm": np.nan}
        parts.append({"measure": list(cells.measures), "term": term, **numbers})
    table = make_table(GROUPS, parts)
    table["p_holm"] = holm(table["p"])
    return table


def kruskal_wallis(values: Floats, group: Ints) -> tuple[Floats, Ints, Floats]:
    """Return H, degrees of freedom and p of each column of values (runs, columns), which may hold NaN.

    H is 0 and p is 1 if all numbers are equal. Groups without a number do not count.
    """
    h, p = np.full((2, values.shape[1]), np.nan)
    df = np.zeros(values.shape[1], np.int64)
    for columns, rows in columns_by_gaps(values):
        numbers, group_of_row = values[rows][:, columns], group[rows]
        present = np.unique(group_of_row)
        df[columns] = max(0, len(present) - 1)
        if len(present) < 2:
            continue
        flat = (numbers == numbers[0]).all(axis=0)
        h[columns[flat]], p[columns[flat]] = 0.0, 1.0
        if not flat.all():
            test = stats.kruskal(*(numbers[group_of_row == label][:, ~flat] for label in present), axis=0)
            h[columns[~flat]], p[columns[~flat]] = test.statistic, test.pvalue
    return h, df, p


MAX_COLUMNS: Final = 400  # columns of the design matrix; interactions are left out if it would have more

type Effect = tuple[str, ...]


def effects(cells: Cells, design: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `effects` (see `analysis.Analysis`), and notes on omitted measures and effects.

    Sums of squares are of type II (Langsrud 2003, doi:10.1023/A:1023260610025), and paired seeds are blocks. The result
    equals that of statsmodels' `anova_lm` with `typ=2`, but for all measures at once.
    """
    if design != "factorial" or not cells.planned.any():
        return make_table(EFFECTS, []), ()
    names, notes = _choose_effects(cells)
    condition = np.repeat(np.arange(len(cells.conditions)), cells.planned.sum(axis=1))
    runs = np.asarray(cells.values[cells.planned])
    block = np.nonzero(cells.planned)[1] if cells.paired else np.zeros(len(runs), np.int64)
    dummies = {effect: _dummies(cells, effect)[condition] for effect in names}
    parts, flat, unbalanced = [], 0, 0
    for columns, rows in columns_by_gaps(runs):
        matrices = {effect: matrix[rows] for effect, matrix in dummies.items()}
        tests, usable = _anova(matrices, block[rows], runs[rows][:, columns])
        flat += int((~usable).sum())
        unbalanced += 0 if rows.all() else int(usable.sum())
        measures = [cells.measures[index] for index in columns[usable]]
        counts = {"n": int(rows.sum()), "missing": int((~rows).sum())}
        parts += [{"measure": measures, **test, **counts, "p_holm": np.nan} for test in tests if measures]
    if names and flat:
        reason = "they do not vary between seeds, or have too few runs"
        notes.append(f"Effects: {flat} of {len(cells.measures)} measures are left out: {reason}.")
    if names and unbalanced:
        meaning = "effects are not independent of each other (sums of squares of type II)"
        notes.append(f"Effects: {unbalanced} of {len(cells.measures)} measures lack runs: their {meaning}.")
    table = make_table(EFFECTS, parts)
    order = table["measure"].map({name: index for index, name in enumerate(cells.measures)})
    table = table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)
    table["p_holm"] = holm(table["p"])
    return table, tuple(notes)


def _choose_effects(cells: Cells) -> tuple[list[Effect], list[str]]:
    """Return main effects and two-way interactions, and notes on omitted interactions."""
    main: list[Effect] = [(term,) for term in cells.terms]
    interactions: list[Effect] = list(combinations(cells.terms, 2))
    notes = ["Effects: interactions of three terms and more are left out."] if len(cells.terms) > 2 else []
    columns = sum(int(np.prod([len(cells.levels[term]) - 1 for term in effect])) for effect in main + interactions)
    if columns <= MAX_COLUMNS:
        return main + interactions, notes
    notes.append(f"Effects: interactions would take {columns} columns (at most {MAX_COLUMNS}) and are left out.")
    return main, notes


def _dummies(cells: Cells, effect: Effect) -> Floats:
    """Return the columns of an effect by condition: products of the dummies of all levels except the first."""
    product = np.ones((len(cells.conditions), 1))
    for term in effect:
        dummies = (cells.codes[term][:, None] == np.arange(1, len(cells.levels[term]))).astype(np.float64)
        product = (product[:, :, None] * dummies[:, None, :]).reshape(len(product), -1)
    return product


def _anova(dummies: dict[Effect, Floats], block: Ints, values: Floats) -> tuple[list[dict[str, Any]], Bools]:
    """Return rows of effects for values (runs, measures) without gaps, and which measures can be tested."""
    no_measures = np.zeros(values.shape[1], bool)
    if not dummies or len(values) < 2:
        return [], no_measures
    x = _within(np.column_stack(list(dummies.values())), block)
    y = _within(values, block)
    gram, cross, total = x.T @ x, x.T @ y, (y**2).sum(axis=0)
    effect_of_column = np.repeat(np.arange(len(dummies)), [matrix.shape[1] for matrix in dummies.values()])
    explained, rank = _explained(gram, cross, effect_of_column >= 0)
    residual, df_error = total - explained, len(values) - len(np.unique(block)) - rank
    usable = residual > np.maximum(1e-12 * total, 1e-24 * (values**2).sum(axis=0))  # otherwise it is rounding
    if df_error < 1 or not usable.any():
        return [], no_measures
    rows = []
    for index, effect in enumerate(dummies):
        independent = [k for k, other in enumerate(dummies) if not set(effect) <= set(other)]
        others = np.isin(effect_of_column, independent)
        without, rank_without = _explained(gram, cross, others)
        with_effect, rank_with = _explained(gram, cross, others | (effect_of_column == index))
        df = rank_with - rank_without
        if df < 1:
            continue
        squares, error = np.maximum(with_effect - without, 0.0)[usable], residual[usable]
        f = (squares / df) / (error / df_error)
        numbers = {"f": f, "p": stats.f.sf(f, df, df_error), "partial_eta_squared": squares / (squares + error)}
        rows.append({"effect": " x ".join(effect), "df": df, **numbers})
    return rows, usable


def _explained(gram: Floats, cross: Floats, chosen: Bools) -> tuple[Floats, int]:
    """Return the sums of squares that columns of a linear model explain, and their rank."""
    values, vectors = np.linalg.eigh(gram[np.ix_(chosen, chosen)])
    is_kept = values > 1e-9 * max(values.max(initial=0.0), 1.0)
    projections = vectors[:, is_kept].T @ cross[chosen]
    return (projections**2 / values[is_kept][:, None]).sum(axis=0), int(is_kept.sum())


def _within(columns: Floats, block: Ints) -> Floats:
    """Return columns minus their means within each block."""
    places = np.unique(block, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((places.max() + 1, columns.shape[1]))
    np.add.at(sums, places, columns)
    return np.asarray(columns - (sums / np.bincount(places)[:, None])[places])
