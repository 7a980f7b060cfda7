"""The compared values of two sides, and their differences by pair (other minus base)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import isfinite, nan
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.economy.tables import INDICATOR_COLUMNS
from prism_mesa.errors import ConfigError, PrismError, did_you_mean
from prism_mesa.runs.run_files import has_table, read_column_names, read_table
from prism_mesa.social.tables import ROUND_COUNTS, ROUND_SHARES
from prism_mesa.streams import Floats
from prism_mesa.studies.comparison.pairs import ComparedRun
from prism_mesa.studies.measures.catalogue import MEASURES, compute_measures
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.studies.statistics.comparisons import Comparison, compare_pairs
from prism_mesa.studies.statistics.significance import holm, interval

_PER_ROUND: Final = tuple(column.name for column in (*ROUND_COUNTS, *ROUND_SHARES))
_FOLLOW_EVENTS: Final = {
    "new_follows": "follow",
    "unfollows": "unfollow",
    "mutes": "mute",
    "blocks": "block",
    "reports": "report",
}
"""Columns counted from the table `follows` if both runs have it, and their events."""
_INDICATOR_UNITS: Final = {column.name: column.unit for column in INDICATOR_COLUMNS}
LOSS: Final = "loss"
_SIDES: Final = ("base", "other")

type Series = tuple[str, str]
"""A column that is compared by round, and its nation, which is empty for a platform."""


def run_measures(
    run: ComparedRun, names: Sequence[str] | None, rounds: int, *, trust: bool
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the named measures of a complete run (None: all), and the errors of failed measures, by name.

    A platform has the measures of the catalogue; nations have means over the first `rounds` quarters.
    """
    if run.manifest.of_nations:
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
    failed: dict[str, str] = {}
    for name in MEASURES if names is None else names:
        try:
            values |= compute_measures(finished, [name])
        except PrismError as error:
            if names is not None:
                raise
            failed[name] = str(error)
    return values, failed


def mean_over_quarters(run: ComparedRun, rounds: int) -> dict[str, float]:
    """Return the means over quarters of all indicators and nations, and the loss if the run has one."""
    columns, values = per_round(run, rounds)
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
    if name in MEASURES:
        return MEASURES[name].unit
    return "points squared" if name == LOSS else _INDICATOR_UNITS.get(name.partition(" of ")[0], "")


def measure_span(name: str) -> float | None:
    """Return the range of a measure that may be negative, 100 points for rates of nations, or None for others.

    Differences of these measures are compared with this range, and not with a value.
    """
    if name in MEASURES:
        low, high = MEASURES[name].low, MEASURES[name].high
        return high - low if low < 0 and isfinite(low) and isfinite(high) else None
    return 100.0 if measure_unit(name).startswith("%") else None


def per_round(run: ComparedRun, rounds: int) -> tuple[list[Series], Floats]:
    """Return the columns to compare by round, and their values, shape (rounds, columns); NaN for a missing round."""
    of_nations = run.manifest.of_nations
    table, names = ("indicators", _INDICATOR_UNITS) if of_nations else ("rounds", _PER_ROUND)
    available = set(read_column_names(run.folder, table))
    columns = [name for name in names if name in available]
    keys = ["round", "nation"] if of_nations else ["round"]
    rows = _rows_within(run, table, [*keys, *columns], rounds).drop_duplicates(keys)
    if not of_nations:
        events = _event_counts(run, rounds) if has_table(run.folder, "follows") else {}
        values = np.column_stack([_by_round(rows, columns, rounds), *events.values()])
        return [(name, "") for name in (*columns, *events)], values
    nations = [str(name) for name in dict.fromkeys(rows["nation"])]
    parts = [_by_round(rows[rows["nation"] == nation], columns, rounds) for nation in nations]
    return [(name, nation) for nation in nations for name in columns], np.column_stack(parts)


def _event_counts(run: ComparedRun, rounds: int) -> dict[str, Floats]:
    """Return the numbers of new and ended follows, mutes, blocks and reports by round."""
    rows = _rows_within(run, "follows", ["round", "event"], rounds)
    return {
        name: np.bincount(rows["round"][rows["event"] == event], minlength=rounds).astype(np.float64)
        for name, event in _FOLLOW_EVENTS.items()
    }


def _rows_within(run: ComparedRun, table: str, columns: list[str], rounds: int) -> pd.DataFrame:
    rows = read_table(run.folder, table, columns)
    return rows[(rows["round"] >= 0) & (rows["round"] < rounds)]


def _by_round(rows: pd.DataFrame, columns: Sequence[str], rounds: int) -> Floats:
    values = np.full((rounds, len(columns)), np.nan)
    values[rows["round"].to_numpy(np.int64)] = rows[list(columns)].to_numpy(np.float64)
    return values


def _compare(base: Floats, other: Floats) -> Comparison:
    """Compare two sides of shape (pairs, columns); values that are not finite are missing."""
    left, right = (np.where(np.isfinite(side), side, np.nan)[None] for side in (other, base))
    return compare_pairs(left, right, len(base))


def _columns(compared: Comparison) -> dict[str, Any]:
    """Return the columns that the tables of measures and of rounds share."""
    right = compared.right_mean
    return {
        "base": right,
        "other": np.where(compared.equal, right, right + compared.difference),
        "difference": compared.difference,
        "low": compared.low,
        "high": compared.high,
    }


def measure_differences(names: Sequence[str], base: Floats, other: Floats) -> pd.DataFrame:
    """Return `comparison.RunComparison.measures`; sides have shape (pairs, measures), with NaN where undefined.

    Rows are ordered by the standardised difference, or for one pair by the difference as a share of the larger value or
    of `measure_span`, the largest first.
    """
    compared = _compare(base, other)
    difference, right = compared.difference, compared.right_mean
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
            **_columns(compared),
            "change": change,
            "standardised": compared.d_z if has_pairs else np.nan,
            "p": compared.p,
            "p_holm": holm(compared.p),
            "n": compared.n,
            "missing": compared.missing,
            "equal": compared.equal,
        }
    )
    effect = np.abs(compared.d_z) if has_pairs else np.where(compared.equal, 0.0, share)
    order = np.lexsort((np.arange(len(names)), -np.nan_to_num(share), -np.nan_to_num(effect, nan=-1.0, posinf=1e300)))
    return table.iloc[order].reset_index(drop=True)


def round_differences(series: Sequence[Series], base: Floats, other: Floats) -> pd.DataFrame:
    """Return `comparison.RunComparison.rounds`; sides have shape (pairs, rounds, columns)."""
    pairs, rounds, columns = base.shape
    flattened = [np.moveaxis(side, 2, 1).reshape(pairs, columns * rounds) for side in (base, other)]
    compared = _compare(*flattened)
    table = {
        "column": np.repeat([column for column, _ in series], rounds),
        "nation": np.repeat([nation for _, nation in series], rounds),
        "round": np.tile(np.arange(rounds), columns),
        **_columns(compared),
    }
    for name, side in zip(_SIDES, flattened, strict=True):
        low, high = np.full((2, side.shape[1]), np.nan)
        complete = np.isfinite(side).all(axis=0)
        low[complete], high[complete] = interval(side[:, complete])
        table |= {f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(table | {"n": compared.n, "equal": compared.equal})
