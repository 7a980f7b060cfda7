"""The compared values of two sides, and their differences by pair (other minus base)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import isfinite, nan
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats
from prism_mesa.domain import SHARE, states_in
from prism_mesa.economy.tables import INDICATOR_COLUMNS
from prism_mesa.errors import ConfigError, PrismError, did_you_mean
from prism_mesa.runs.run_files import has_table, read_column_names, read_table
from prism_mesa.social.tables import ROUND_COUNTS
from prism_mesa.studies.comparison.pairs import ComparedRun
from prism_mesa.studies.measures.catalogue import MEASURES, compute_measures, find_measure, measure_names
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.studies.statistics.comparisons import Comparison, compare_pairs
from prism_mesa.studies.statistics.significance import holm, interval

_FOLLOW_EVENTS: Final = {
    "new_follows": "follow",
    "unfollows": "unfollow",
    "mutes": "mute",
    "blocks": "block",
    "reports": "report",
}
"""Columns that count events in the table `follows`, and these events."""
_INDICATOR_UNITS: Final = {column.name: column.unit for column in INDICATOR_COLUMNS}
LOSS: Final = "loss"
_SIDES: Final = ("base", "other")

type Series = tuple[str, str]
"""A column that is compared by round, and its nation (empty for a platform)."""


def run_measures(
    run: ComparedRun, names: Sequence[str] | None, rounds: int, *, trust: bool
) -> tuple[dict[str, float], dict[str, str]]:
    """Return measures of a complete run by name (None: all measures), and the errors of failed measures by name.

    Platforms have the measures of the catalogue. Nations have means over the first `rounds` quarters.
    """
    if run.manifest.is_economy:
        means = mean_over_quarters(run, rounds)
        if unknown := [name for name in names or () if name not in means]:
            indicators = sorted({name.partition(" of ")[0] for name in means})
            allowed = f"INDICATOR of NATION, {LOSS}; indicators: {', '.join(indicators)}"
            suggestion = did_you_mean(unknown[0], means)
            raise ConfigError(f"measures: {unknown[0]!r}: not in {run.folder} ({allowed}).{suggestion}")
        return {name: means[name] for name in names or means}, {}
    finished = finished_run(run.folder, trust=trust)
    finished = replace(finished, table=cache(finished.table), follows=cache(finished.follows))
    values: dict[str, float] = {}
    errors: dict[str, str] = {}
    for name in measure_names(finished) if names is None else names:
        try:
            values |= compute_measures(finished, [name])
        except PrismError as error:
            if names is not None:
                raise
            errors[name] = str(error)
    return values, errors


def mean_over_quarters(run: ComparedRun, rounds: int) -> dict[str, float]:
    """Return the mean of each nation's indicators over quarters, and the loss if the run has one."""
    columns, values = read_series(run, rounds)
    with np.errstate(invalid="ignore"):
        means = {series_name(series): float(column.mean()) for series, column in zip(columns, values.T, strict=True)}
    summary = run.facts.get("summary")
    loss = summary.get(LOSS) if isinstance(summary, dict) else None
    losses = {LOSS: float(loss)} if isinstance(loss, int | float) and not isinstance(loss, bool) else {}
    return losses | {name: value if isfinite(value) else nan for name, value in means.items()}


def series_name(series: Series) -> str:
    """Return the name of a series: ``likes``, ``inflation of Canada``."""
    column, nation = series
    return f"{column} of {nation}" if nation else column


def measure_unit(name: str) -> str:
    """Return the unit of a measure; empty if unknown."""
    if name in MEASURES or name.startswith(SHARE):
        return find_measure(name).unit
    return "points squared" if name == LOSS else _INDICATOR_UNITS.get(name.partition(" of ")[0], "")


def measure_span(name: str) -> float | None:
    """Return the range of a measure that may be negative, 100 points for rates of nations, or None for other measures.

    If a measure has a range here, its differences are shares of this range, not of a value.
    """
    if name in MEASURES:
        low, high = MEASURES[name].low, MEASURES[name].high
        return high - low if low < 0 and isfinite(low) and isfinite(high) else None
    return 100.0 if measure_unit(name).startswith("%") else None


def read_series(run: ComparedRun, rounds: int) -> tuple[list[Series], Floats]:
    """Return the series to compare, and their values, shape (rounds, series); NaN for a missing round."""
    is_economy = run.manifest.is_economy
    table = "indicators" if is_economy else "rounds"
    available = read_column_names(run.folder, table)
    shares = (SHARE + state.value for state in states_in(available))
    names = _INDICATOR_UNITS if is_economy else (*(column.name for column in ROUND_COUNTS), *shares)
    columns = [name for name in names if name in available]
    keys = ["round", "nation"] if is_economy else ["round"]
    rows = _rows_within(run, table, [*keys, *columns], rounds).drop_duplicates(keys)
    if not is_economy:
        events = _event_counts(run, rounds) if has_table(run.folder, "follows") else {}
        values = np.column_stack([_round_values(rows, columns, rounds), *events.values()])
        return [(name, "") for name in (*columns, *events)], values
    nations = [str(name) for name in dict.fromkeys(rows["nation"])]
    parts = [_round_values(rows[rows["nation"] == nation], columns, rounds) for nation in nations]
    return [(name, nation) for nation in nations for name in columns], np.column_stack(parts)


def _event_counts(run: ComparedRun, rounds: int) -> dict[str, Floats]:
    rows = _rows_within(run, "follows", ["round", "event"], rounds)
    return {
        name: np.bincount(rows["round"][rows["event"] == event], minlength=rounds).astype(np.float64)
        for name, event in _FOLLOW_EVENTS.items()
    }


def _rows_within(run: ComparedRun, table: str, columns: list[str], rounds: int) -> pd.DataFrame:
    rows = read_table(run.folder, table, columns)
    return rows[(rows["round"] >= 0) & (rows["round"] < rounds)]


def _round_values(rows: pd.DataFrame, columns: Sequence[str], rounds: int) -> Floats:
    values = np.full((rounds, len(columns)), np.nan)
    values[rows["round"].to_numpy(np.int64)] = rows[list(columns)].to_numpy(np.float64)
    return values


def _compare(base: Floats, other: Floats) -> Comparison:
    """Compare two sides of shape (pairs, columns); values that are not finite are missing."""
    left, right = (np.where(np.isfinite(side), side, np.nan)[None] for side in (other, base))
    return compare_pairs(left, right, len(base))


def _shared_columns(comparison: Comparison) -> dict[str, Any]:
    """Return the columns that the tables of measures and of rounds share."""
    right = comparison.right_mean
    return {
        "base": right,
        "other": np.where(comparison.equal, right, right + comparison.difference),
        "difference": comparison.difference,
        "low": comparison.low,
        "high": comparison.high,
    }


def measure_differences(names: Sequence[str], base: Floats, other: Floats) -> pd.DataFrame:
    """Return `comparison.RunComparison.measures`; sides have shape (pairs, measures), with NaN where undefined.

    The rows with the largest standardised differences come first. For one pair, rows are ordered by the difference as a
    share of the larger value or of `measure_span`.
    """
    comparison = _compare(base, other)
    difference, right = comparison.difference, comparison.right_mean
    has_pairs = len(base) > 1
    with np.errstate(all="ignore"):
        spans = np.array([measure_span(name) or np.nan for name in names], np.float64)
        change = np.where(np.isnan(spans) & (right != 0), difference / np.abs(right), np.nan)
        larger = np.maximum(np.abs(right), np.abs(right + difference))
        share = np.abs(difference) / np.where(np.isnan(spans), larger, spans)
    table = pd.DataFrame(
        {
            "measure": list(names),
            "unit": [measure_unit(name) for name in names],
            **_shared_columns(comparison),
            "change": change,
            "standardised": comparison.d_z if has_pairs else np.nan,
            "p": comparison.p,
            "p_holm": holm(comparison.p),
            "n": comparison.n,
            "missing": comparison.missing,
            "equal": comparison.equal,
        }
    )
    effect = np.abs(comparison.d_z) if has_pairs else np.where(comparison.equal, 0.0, share)
    order = np.lexsort((np.arange(len(names)), -np.nan_to_num(share), -np.nan_to_num(effect, nan=-1.0, posinf=1e300)))
    return table.iloc[order].reset_index(drop=True)


def round_differences(series: Sequence[Series], base: Floats, other: Floats) -> pd.DataFrame:
    """Return `comparison.RunComparison.rounds`; sides have shape (pairs, rounds, columns)."""
    pairs, rounds, columns = base.shape
    flat_sides = [np.moveaxis(side, 2, 1).reshape(pairs, columns * rounds) for side in (base, other)]
    comparison = _compare(*flat_sides)
    table = {
        "column": np.repeat([column for column, _ in series], rounds),
        "nation": np.repeat([nation for _, nation in series], rounds),
        "round": np.tile(np.arange(rounds), columns),
        **_shared_columns(comparison),
    }
    for name, side in zip(_SIDES, flat_sides, strict=True):
        low, high = np.full((2, side.shape[1]), np.nan)
        complete = np.isfinite(side).all(axis=0)
        low[complete], high[complete] = interval(side[:, complete])
        table |= {f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(table | {"n": comparison.n, "equal": comparison.equal})
