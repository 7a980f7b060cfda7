"""Means by condition, tests of three or more levels (Kruskal-Wallis), and effects of factors (ANOVA)."""

from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.studies.statistics.cells import ANSWERS, ARM, EFFECTS, GROUPS, Cells, gap_groups, make_table
from prism_mesa.studies.statistics.significance import holm, interval

CONDITION: Final = "condition"  # the term whose levels are the conditions


def answers(cells: Cells) -> pd.DataFrame:
    """Return the table `answers` (see `analysis.Analysis`)."""
    conditions, replicates, measures = cells.values.shape
    columns = np.sort(cells.values.transpose(1, 0, 2).reshape(replicates, conditions * measures), axis=0)  # NaN last
    n = np.isfinite(columns).sum(axis=0)
    numbers = {name: np.full(len(n), np.nan) for name in ("mean", "median", "sd", "low", "high")}
    for size in np.unique(n[n > 0]):
        column_indices = np.flatnonzero(n == size)
        values = columns[:size, column_indices]
        numbers["mean"][column_indices] = values.mean(axis=0)
        numbers["median"][column_indices] = np.median(values, axis=0)
        if size > 1:
            numbers["sd"][column_indices] = values.std(axis=0, ddof=1)
            numbers["low"][column_indices], numbers["high"][column_indices] = interval(values)
    table: dict[str, Any] = {
        "measure": np.tile(np.array(cells.measures, object), conditions),
        "n": n,
        "missing": np.repeat(cells.planned.sum(axis=1), measures) - n,
        **numbers,
    }
    rows = cells.conditions.loc[np.repeat(np.arange(conditions), measures)].reset_index(drop=True)
    return rows.assign(**{name: pd.Series(table[name], dtype=kind) for name, kind in ANSWERS.items()})


def groups(cells: Cells, design: str) -> pd.DataFrame:
    """Return the table `groups` (see `analysis.Analysis`). If the design is not factorial, only arms are compared."""
    factorial, n = design == "factorial", len(cells.conditions)
    terms = [term for term in cells.terms if len(cells.levels[term]) > 2 and (term == ARM or factorial)]
    codes = {term: cells.codes[term] for term in terms}
    if len(cells.terms) > 1 and n > 2 and factorial:  # with a single term, its levels are the conditions
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
    """Return H, degrees of freedom and p for each column of values, shape (runs, columns); NaN is ignored.

    H is 0 and p is 1 if all numbers are equal. Groups without numbers do not count.
    """
    h, p = np.full((2, values.shape[1]), np.nan)
    df = np.zeros(values.shape[1], np.int64)
    for columns, rows in gap_groups(values):
        numbers, group_of_row = values[rows][:, columns], group[rows]
        labels = np.unique(group_of_row)
        df[columns] = max(0, len(labels) - 1)
        if len(labels) < 2:
            continue
        is_flat = (numbers == numbers[0]).all(axis=0)
        h[columns[is_flat]], p[columns[is_flat]] = 0.0, 1.0
        if not is_flat.all():
            test = stats.kruskal(*(numbers[group_of_row == label][:, ~is_flat] for label in labels), axis=0)
            h[columns[~is_flat]], p[columns[~is_flat]] = test.statistic, test.pvalue
    return h, df, p


MAX_COLUMNS: Final = 400  # maximum for the design matrix; interactions are left out if they would exceed it

type Effect = tuple[str, ...]


def effects(cells: Cells, design: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table `effects` (see `analysis.Analysis`), and notes on omitted measures and effects.

    Sums of squares are of type II (Langsrud 2003, doi:10.1023/A:1023260610025), and paired seeds are blocks. Results
    equal those of statsmodels' `anova_lm` with `typ=2`, but all measures are computed at once.
    """
    if design != "factorial" or not cells.planned.any():
        return make_table(EFFECTS, []), ()
    chosen_effects, notes = _choose_effects(cells)
    condition = np.repeat(np.arange(len(cells.conditions)), cells.planned.sum(axis=1))
    runs = np.asarray(cells.values[cells.planned])
    block = np.nonzero(cells.planned)[1] if cells.paired else np.zeros(len(runs), np.int64)
    dummies = {effect: _dummies(cells, effect)[condition] for effect in chosen_effects}
    parts, n_untestable, n_unbalanced = [], 0, 0
    for columns, rows in gap_groups(runs):
        matrices = {effect: matrix[rows] for effect, matrix in dummies.items()}
        tests, testable = _anova(matrices, block[rows], runs[rows][:, columns])
        n_untestable += int((~testable).sum())
        n_unbalanced += 0 if rows.all() else int(testable.sum())
        measures = [cells.measures[index] for index in columns[testable]]
        counts = {"n": int(rows.sum()), "missing": int((~rows).sum())}
        parts += [{"measure": measures, **test, **counts, "p_holm": np.nan} for test in tests if measures]
    if chosen_effects and n_untestable:
        reason = "they do not vary between seeds, or have too few runs"
        notes.append(f"Effects: {n_untestable} of {len(cells.measures)} measures are left out: {reason}.")
    if chosen_effects and n_unbalanced:
        meaning = "effects are not independent of each other (sums of squares of type II)"
        notes.append(f"Effects: {n_unbalanced} of {len(cells.measures)} measures lack runs: their {meaning}.")
    table = make_table(EFFECTS, parts)
    order = table["measure"].map({name: index for index, name in enumerate(cells.measures)})
    table = table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)
    table["p_holm"] = holm(table["p"])
    return table, tuple(notes)


def _choose_effects(cells: Cells) -> tuple[list[Effect], list[str]]:
    """Return main effects and two-way interactions, and notes on omitted interactions."""
    main_effects: list[Effect] = [(term,) for term in cells.terms]
    interactions: list[Effect] = list(combinations(cells.terms, 2))
    notes = ["Effects: interactions of three terms and more are left out."] if len(cells.terms) > 2 else []
    all_effects = main_effects + interactions
    columns = sum(int(np.prod([len(cells.levels[term]) - 1 for term in effect])) for effect in all_effects)
    if columns <= MAX_COLUMNS:
        return all_effects, notes
    notes.append(f"Effects: interactions would take {columns} columns (at most {MAX_COLUMNS}) and are left out.")
    return main_effects, notes


def _dummies(cells: Cells, effect: Effect) -> Floats:
    """Return the design columns of an effect for each condition: products of dummies of all levels but the first."""
    product = np.ones((len(cells.conditions), 1))
    for term in effect:
        dummies = (cells.codes[term][:, None] == np.arange(1, len(cells.levels[term]))).astype(np.float64)
        product = (product[:, :, None] * dummies[:, None, :]).reshape(len(product), -1)
    return product


def _anova(dummies: dict[Effect, Floats], block: Ints, values: Floats) -> tuple[list[dict[str, Any]], Mask]:
    """Return rows of effects, and a mask of the measures that can be tested; values have no NaN."""
    no_measures = np.zeros(values.shape[1], bool)
    if not dummies or len(values) < 2:
        return [], no_measures
    x = _subtract_block_means(np.column_stack(list(dummies.values())), block)
    y = _subtract_block_means(values, block)
    gram, cross, total = x.T @ x, x.T @ y, (y**2).sum(axis=0)
    effect_of_column = np.repeat(np.arange(len(dummies)), [matrix.shape[1] for matrix in dummies.values()])
    explained, rank = _explained_squares(gram, cross, effect_of_column >= 0)
    residual, df_error = total - explained, len(values) - len(np.unique(block)) - rank
    testable = residual > np.maximum(1e-12 * total, 1e-24 * (values**2).sum(axis=0))  # beyond rounding errors
    if df_error < 1 or not testable.any():
        return [], no_measures
    rows = []
    for index, effect in enumerate(dummies):
        independent = [k for k, other in enumerate(dummies) if not set(effect) <= set(other)]
        others = np.isin(effect_of_column, independent)
        explained_without, rank_without = _explained_squares(gram, cross, others)
        explained_with, rank_with = _explained_squares(gram, cross, others | (effect_of_column == index))
        df = rank_with - rank_without
        if df < 1:
            continue
        squares, error = np.maximum(explained_with - explained_without, 0.0)[testable], residual[testable]
        f = (squares / df) / (error / df_error)
        numbers = {"f": f, "p": stats.f.sf(f, df, df_error), "partial_eta_squared": squares / (squares + error)}
        rows.append({"effect": " x ".join(effect), "df": df, **numbers})
    return rows, testable


def _explained_squares(gram: Floats, cross: Floats, selected: Mask) -> tuple[Floats, int]:
    """Return the sums of squares that the selected columns of a linear model explain, and their rank."""
    values, vectors = np.linalg.eigh(gram[np.ix_(selected, selected)])
    is_kept = values > 1e-9 * max(values.max(initial=0.0), 1.0)
    projections = vectors[:, is_kept].T @ cross[selected]
    return (projections**2 / values[is_kept][:, None]).sum(axis=0), int(is_kept.sum())


def _subtract_block_means(columns: Floats, block: Ints) -> Floats:
    block_indices = np.unique(block, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((block_indices.max() + 1, columns.shape[1]))
    np.add.at(sums, block_indices, columns)
    return np.asarray(columns - (sums / np.bincount(block_indices)[:, None])[block_indices])
