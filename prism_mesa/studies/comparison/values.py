"""The numbers of two sides that are compared, and their differences pair by pair (other less base)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, nan
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.economy.tables import INDICATOR_COLUMNS
from prism_mesa.errors import ConfigError, PrismError, did_you_mean
from prism_mesa.runs.run_files import columns_of, has_table, read_table
from prism_mesa.social.tables import ROUND_COUNTS, ROUND_SHARES
from prism_mesa.streams import Floats
from prism_mesa.studies.comparison.pairs import OneRun
from prism_mesa.studies.measures.catalogue import MEASURES, measured
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.studies.statistics.cells import ARM, Cells
from prism_mesa.studies.statistics.comparisons import Comparison, compare
from prism_mesa.studies.statistics.significance import holm, interval

PER_ROUND: Final = tuple(column.name for column in (*ROUND_COUNTS, *ROUND_SHARES))
"""Columns of table `rounds` that are compared."""
FOLLOWS_PER_ROUND: Final = {
    "new_follows": "follow",
    "unfollows": "unfollow",
    "mutes": "mute",
    "blocks": "block",
    "reports": "report",
}
"""What is counted of table `follows`, where both runs have it, and by which event."""
PER_QUARTER: Final = tuple(column.name for column in INDICATOR_COLUMNS)
"""Columns of table `indicators` that are compared, for each nation."""
LOSS: Final = "loss"
_POINTS: Final = {column.name: column.unit for column in INDICATOR_COLUMNS}

type Series = tuple[str, str]
"""A column that is compared round by round: its name, and the nation; of a platform an empty text."""


@dataclass(frozen=True)
class Measured:
    """Measures of a run, and why others could not be taken, both by name."""

    values: dict[str, float]
    failed: dict[str, str]


def run_measures(run: OneRun, names: Sequence[str] | None, rounds: int, *, trust: bool) -> Measured:
    """Return measures of a whole run: of the catalogue, or of nations means over quarters (`mean_over_quarters`).

    Args:
        run: The run.
        names: Which; None: all.
        rounds: Quarters of a run of nations that count.
        trust: As for `finished_run`.

    Raises:
        ConfigError: If there is no such measure.
    """
    if run.manifest.of_nations:
        found = mean_over_quarters(run, rounds)
        if unknown := [name for name in names or () if name not in found]:
            known = sorted({name.partition(" of ")[0] for name in found})
            raise ConfigError(
                f"measures: {unknown[0]!r}: {run.folder} has none of that name (INDICATOR of NATION, {LOSS}; "
                f"indicators: {', '.join(known)}).{did_you_mean(unknown[0], found)}"
            )
        return Measured({name: found[name] for name in names or found}, {})
    finished = finished_run(run.folder, trust=trust)
    finished = replace(finished, table=cache(finished.table), follows=cache(finished.follows))
    values: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name in MEASURES if names is None else names:
        try:
            values |= measured(finished, [name])
        except PrismError as error:
            if names is not None:
                raise
            failed[name] = str(error)
    return Measured(values, failed)


def mean_over_quarters(run: OneRun, rounds: int) -> dict[str, float]:
    """Return the mean over quarters of each indicator of each nation, and the loss, where the run has one."""
    columns, values = per_round(run, rounds)
    with np.errstate(invalid="ignore"):
        means = {series_name(series): float(of.mean()) for series, of in zip(columns, values.T, strict=True)}
    summary = run.facts.get("summary")
    loss = summary.get(LOSS) if isinstance(summary, dict) else None
    known = {LOSS: float(loss)} if isinstance(loss, int | float) and not isinstance(loss, bool) else {}
    return known | {name: value if isfinite(value) else nan for name, value in means.items()}


def series_name(series: Series) -> str:
    """Return what a column of rounds is called: ``likes``, ``inflation of Canada``."""
    column, nation = series
    return f"{column} of {nation}" if nation else column


def measure_unit(name: str) -> str:
    """Return the unit of a measure; nothing for one that is not known."""
    if name in MEASURES:
        return MEASURES[name].unit
    return "points squared" if name == LOSS else _POINTS.get(name.partition(" of ")[0], "")


def measure_span(name: str) -> float | None:
    """Return how far apart two values of a measure can be that may lie on both sides of 0, in whose unit it is.

    Of these no difference is a share of a value: it is told by their range (correlations), or in points of 100 (rates
    and balances of nations). None for all others.
    """
    if name in MEASURES:
        own = MEASURES[name]
        return own.high - own.low if own.low < 0 and isfinite(own.low) and isfinite(own.high) else None
    return 100.0 if _POINTS.get(name.partition(" of ")[0], "").startswith("%") else None


def per_round(run: OneRun, rounds: int) -> tuple[list[Series], Floats]:
    """Return the columns of a run that are compared round by round, and their values, shape (rounds, columns).

    A round that is missing, as in a damaged table, is not a number.
    """
    table, wanted = ("indicators", PER_QUARTER) if run.manifest.of_nations else ("rounds", PER_ROUND)
    have = set(columns_of(run.folder, table))
    columns = [name for name in wanted if name in have]
    keys = ["round", "nation"] if run.manifest.of_nations else ["round"]
    rows = read_table(run.folder, table, [*keys, *columns])
    rows = rows[(rows["round"] >= 0) & (rows["round"] < rounds)].drop_duplicates(keys)
    if not run.manifest.of_nations:
        changes = _changes(run, rounds) if has_table(run.folder, "follows") else {}
        values = np.column_stack([_filled(rows, columns, rounds), *changes.values()])
        return [(name, "") for name in (*columns, *changes)], values
    nations = [str(name) for name in dict.fromkeys(rows["nation"])]
    parts = [_filled(rows[rows["nation"] == nation], columns, rounds) for nation in nations]
    return [(name, nation) for nation in nations for name in columns], np.column_stack(parts)


def _changes(run: OneRun, rounds: int) -> dict[str, Floats]:
    """Return how often in each round agents began or ceased to follow others, muted, blocked or reported them."""
    rows = read_table(run.folder, "follows", ["round", "event"])
    rows = rows[(rows["round"] >= 0) & (rows["round"] < rounds)]
    found = {
        name: np.bincount(rows["round"][rows["event"] == event], minlength=rounds)
        for name, event in FOLLOWS_PER_ROUND.items()
    }
    return {name: count.astype(np.float64) for name, count in found.items()}


def _filled(rows: pd.DataFrame, columns: Sequence[str], rounds: int) -> Floats:
    values: Any = np.full((rounds, len(columns)), np.nan)
    values[rows["round"].to_numpy(np.int64)] = rows[list(columns)].to_numpy(np.float64)
    return np.asarray(values, np.float64)


_SIDES: Final = ("base", "other")


def _compared(base: Floats, other: Floats, names: Sequence[str]) -> Comparison:
    """Return other less base: shapes (pairs, columns), NaN where a pair has no such number."""
    n = len(base)
    values = np.where(np.isfinite([base, other]), [base, other], np.nan)
    there = np.ones((2, n), bool)
    cells = Cells(
        conditions=pd.DataFrame({ARM: _SIDES}),
        codes={ARM: np.arange(2)},
        levels={ARM: _SIDES},
        values=values,
        planned=there,
        done=there,
        measures=tuple(names),
        paired=True,
    )
    return compare(cells, cells.at(ARM, 1), cells.at(ARM, 0), ())


def measure_differences(names: Sequence[str], base: Floats, other: Floats) -> pd.DataFrame:
    """Return a row for each measure, what differs most first: see `comparison.RunComparison.measures`.

    With several pairs that is by the standardised difference, else by the difference as a share of the larger value, or
    of `values.measure_span`.

    Args:
        names: The names of the measures.
        base: Shape (pairs, measures); NaN where one is not defined.
        other: The same of the other side.
    """
    found = _compared(base, other, names)
    mean = found.right_mean + found.difference
    standardised = found.d_z
    with np.errstate(all="ignore"):
        spans = np.array([measure_span(name) or np.nan for name in names], np.float64)
        rated = np.isnan(spans) & (found.right_mean != 0)
        change = np.where(rated, found.difference / np.abs(found.right_mean), np.nan)
        larger = np.maximum(np.abs(found.right_mean), np.abs(mean))
        share = np.abs(found.difference) / np.where(np.isnan(spans), larger, spans)
    table = pd.DataFrame(
        {
            "measure": list(names),
            "unit": [measure_unit(name) for name in names],
            "base": found.right_mean,
            "other": np.where(found.equal, found.right_mean, mean),
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "change": change,
            "standardised": standardised if len(base) > 1 else np.nan,
            "p": found.p,
            "p_holm": holm(found.p),
            "n": found.n,
            "missing": found.missing,
            "equal": found.equal,
        }
    )
    size = np.abs(standardised) if len(base) > 1 else np.where(found.equal, 0.0, share)
    order = np.lexsort((np.arange(len(names)), -np.nan_to_num(share), -np.nan_to_num(size, nan=-1.0, posinf=1e300)))
    return table.iloc[order].reset_index(drop=True)


def round_differences(series: Sequence[Series], base: Floats, other: Floats) -> pd.DataFrame:
    """Return a row for each column and round: see `comparison.RunComparison.rounds`.

    Args:
        series: The columns.
        base: Shape (pairs, rounds, columns).
        other: The same of the other side.
    """
    pairs, rounds, columns = base.shape
    wide = [np.moveaxis(side, 2, 1).reshape(pairs, columns * rounds) for side in (base, other)]
    found = _compared(wide[0], wide[1], [series_name(one) for one in series for _ in range(rounds)])
    table = {
        "column": np.repeat([column for column, _ in series], rounds),
        "nation": np.repeat([nation for _, nation in series], rounds),
        "round": np.tile(np.arange(rounds), columns),
        "base": found.right_mean,
        "other": np.where(found.equal, found.right_mean, found.right_mean + found.difference),
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
    }
    for name, side in zip(_SIDES, wide, strict=True):
        table[f"{name}_low"], table[f"{name}_high"] = _band(side)
    return pd.DataFrame(table | {"n": found.n, "equal": found.equal})


def _band(side: Floats) -> tuple[Floats, Floats]:
    """Return the interval of one side's mean for each column that has all its numbers."""
    low, high = np.full((2, side.shape[1]), np.nan)
    whole = np.isfinite(side).all(axis=0)
    if len(side) > 1 and whole.any():
        low[whole], high[whole] = interval(side[:, whole])
    return low, high
