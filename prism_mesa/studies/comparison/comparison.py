"""Compare runs: the settings that differ, the first divergence with its reasons, and differences of results."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.analysis.compare.divergence import Divergence, Divergences, divergences
from prism_mesa.analysis.compare.reasons import Reasons, explain_divergence
from prism_mesa.analysis.compare.settings import (
    Branching,
    Setting,
    earliest_divergence_round,
    facts_that_differ,
    read_branching,
    settings_that_differ,
)
from prism_mesa.domain import SHARE
from prism_mesa.errors import DataError, format_count
from prism_mesa.studies.comparison.pairs import ComparedRun, Pairs, Runs, join_names, pair_runs
from prism_mesa.studies.comparison.values import measure_differences, read_series, round_differences, run_measures

_MAX_NAMED: Final = 6


@dataclass(frozen=True, repr=False)
class RunComparison:
    """The differences between runs, other minus base.

    Attributes:
        pairs: The runs, paired by seed.
        settings: Settings, versions and deciders that differ: columns `key`, `base`, `other`.
        measures: A row for each measure that both sides have, the largest differences first: `measure`, `unit`, the
            means `base` and `other`, their `difference`, `low` and `high` of its 95 % interval (NaN for one pair),
            `change` (difference as a share of base), `standardised` (difference in standard deviations of the pairs'
            differences), `p` (paired t-test) and `p_holm`, `n` pairs, `missing` pairs, and whether all pairs are
            `equal`.
        rounds: A row for each `column` (of each `nation`) and `round`, with the same columns, and with the intervals of
            both sides' means.
        divergences: The divergences of each pair's tables.
        first_divergence: The earliest divergence of all pairs; None if no table diverges.
        diverged_pair: The index of the pair with the first divergence.
        reasons: The reasons on both sides for the first divergence; None without a divergence, or without `why`.
        branched: Side -> the origin of the first pair's run, for runs that branched.
        can_differ_from: The first round in which the first pair's runs can differ.
        notes: Other remarks, such as omitted runs and measures.
    """

    pairs: Pairs
    settings: pd.DataFrame
    measures: pd.DataFrame
    rounds: pd.DataFrame
    divergences: tuple[Divergences, ...]
    first_divergence: Divergence | None
    diverged_pair: int
    reasons: Reasons | None
    branched: dict[str, Branching]
    can_differ_from: int
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether all tables that the two runs of a pair share are equal, in all pairs."""
        return all(divergence.equal for divergence in self.divergences)

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two sides: the first run's folder, and the number of further runs."""
        n_more = len(self.pairs.base) - 1
        suffix = f" and {n_more} more" if n_more else ""
        return f"{self.pairs.base[0].name}{suffix}", f"{self.pairs.other[0].name}{suffix}"

    @property
    def n_differ(self) -> int:
        """Number of measures that differ."""
        return int((~self.measures["equal"] & self.measures["difference"].notna()).sum())


def compare_runs(
    base: Runs, other: Runs, *, measures: Sequence[str] | None = None, why: bool = True, trust: bool = False
) -> RunComparison:
    """Compare runs (see `api.comparison.compare`)."""
    pairs = pair_runs(base, other)
    notes = list(pairs.notes)
    left, right = pairs.base[0], pairs.other[0]
    settings = _settings(pairs, notes)
    rounds = _rounds(pairs, notes)
    pair_divergences = tuple(
        divergences(
            left.folder,
            right.folder,
            pairs.rounds,
            same_length=pairs.is_fully_compared(left) and pairs.is_fully_compared(right),
        )
        for left, right in zip(pairs.base, pairs.other, strict=True)
    )
    pair, divergence = _earliest_divergence(pair_divergences)
    can_differ_from = earliest_divergence_round(left.facts, right.facts, (left.name, right.name))
    if can_differ_from and divergence is not None and divergence.round < can_differ_from:
        notes.append(f"the runs branched in round {can_differ_from}, but differ before: one of them was changed")
    explanation = None
    if why and divergence is not None:
        explanation = explain_divergence(pairs.base[pair].folder, pairs.other[pair].folder, divergence, trust=trust)
    origins = {"base": read_branching(left.facts), "other": read_branching(right.facts)}
    for side, run, other_run in (("base", left, right), ("other", right, left)):
        notes += [f"{side}: {note}" for note in _act_notes(run) if note not in _act_notes(other_run)]
    return RunComparison(
        pairs=pairs,
        settings=pd.DataFrame([vars(setting) for setting in settings], columns=["key", "base", "other"], dtype=object),
        measures=_measures(pairs, measures, notes, trust),
        rounds=rounds,
        divergences=pair_divergences,
        first_divergence=divergence,
        diverged_pair=pair,
        reasons=explanation,
        branched={side: branching for side, branching in origins.items() if branching},
        can_differ_from=can_differ_from,
        notes=tuple(notes),
    )


def _settings(pairs: Pairs, notes: list[str]) -> list[Setting]:
    """Return the settings that differ in the first pair; note differences within a side."""
    for side in (pairs.base, pairs.other):
        first = _config(side[0])
        different = {setting.key for run in side[1:] for setting in settings_that_differ(first, _config(run))}
        if different:
            notes.append(f"runs of one side, {side[0].name} and others, differ in {_join_sorted(different)}")
    left, right = pairs.base[0], pairs.other[0]
    return [*settings_that_differ(_config(left), _config(right)), *facts_that_differ(left.facts, right.facts)]


def _act_notes(run: ComparedRun) -> list[str]:
    """Return the notes of a run on its interventions, and on what each did."""
    summary = run.facts.get("summary")
    notes = summary.get("notes") if isinstance(summary, dict) else ()
    return [text for text in map(str, notes or ()) if text.startswith("interventions: ")]


def _config(run: ComparedRun) -> dict[str, Any]:
    return dict(run.manifest.config or {})


def _join_sorted(names: Iterable[str]) -> str:
    return join_names(sorted(names), _MAX_NAMED)


def _earliest_divergence(pair_divergences: Sequence[Divergences]) -> tuple[int, Divergence | None]:
    """Return the index and the divergence of the pair that diverged first; 0 and None without a divergence."""
    divergences = [(index, pair.first) for index, pair in enumerate(pair_divergences) if pair.first is not None]
    return min(divergences, key=lambda item: (item[1].moment, item[0]), default=(0, None))


def _measures(pairs: Pairs, names: Sequence[str] | None, notes: list[str], trust: bool) -> pd.DataFrame:
    """Return the differences of measures; an empty table if runs differ in length."""
    runs, n = (*pairs.base, *pairs.other), len(pairs.base)
    if not pairs.same_length or not all(isinstance(run.facts.get("summary"), dict) for run in runs):
        if pairs.same_length:
            notes.append("measures are left out: unfinished runs have none")
        return measure_differences([], np.zeros((n, 0)), np.zeros((n, 0)))
    run_values, failures = zip(*(run_measures(run, names, pairs.rounds, trust=trust) for run in runs), strict=True)
    faults = {name: fault for failure in failures for name, fault in failure.items()}
    if faults:
        reason = next(iter(faults.values()))
        notes.append(f"{format_count(len(faults), 'measure')} left out ({_join_sorted(faults)}): {reason}")
    common = [name for name in run_values[0] if all(name in values for values in run_values)]
    numbers = np.array([[values[name] for name in common] for values in run_values], np.float64)
    table = measure_differences(common, *numbers.reshape(2, n, len(common)))
    undefined = set(table["measure"][table["n"] == 0])
    if left_out := {name for name in undefined if names or any(isfinite(values[name]) for values in run_values)}:
        reason = "undefined in all pairs" if names else "defined on one side only"
        notes.append(f"{format_count(len(left_out), 'measure')} left out, {reason}: {_join_sorted(left_out)}")
    return table[~table["measure"].isin(undefined)].reset_index(drop=True)


def _rounds(pairs: Pairs, notes: list[str]) -> pd.DataFrame:
    """Return the differences by round of the columns that all runs have."""
    run_values = [read_series(run, pairs.rounds) for run in (*pairs.base, *pairs.other)]
    common = [series for series in run_values[0][0] if all(series in columns for columns, _ in run_values)]
    unshared = {series for columns, _ in run_values for series in columns} - set(common)
    if pairs.is_economy:
        kind, names = "nations", {nation for _, nation in unshared} - {nation for _, nation in common}
        if not common:
            raise DataError(f"{pairs.base[0].folder} and others have no nation in common ({_join_sorted(names)})")
    else:
        kind, names = "states", {name.removeprefix(SHARE) for name, _ in unshared if name.startswith(SHARE)}
    if names:
        notes.append(f"{kind} that not all runs have are left out: {_join_sorted(names)}")
    values = np.array([numbers[:, [columns.index(series) for series in common]] for columns, numbers in run_values])
    n = len(pairs.base)
    table = round_differences(common, values[:n], values[n:])
    return table if pairs.is_economy else table.drop(columns="nation")


def as_json(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison as plain values for ``prism compare --json``, with None in place of NaN."""
    first, pairs = comparison.first_divergence, comparison.pairs
    pair_divergences = comparison.divergences[comparison.diverged_pair]
    return {
        "base": [str(run.folder) for run in pairs.base],
        "other": [str(run.folder) for run in pairs.other],
        "seeds": list(pairs.seeds),
        "pairs": len(pairs.base),
        "n_rounds": pairs.rounds,
        "equal": comparison.equal,
        "settings": {
            row["key"]: {"base": row["base"], "other": row["other"]} for row in comparison.settings.to_dict("records")
        },
        "branched": {side: vars(branching) for side, branching in comparison.branched.items()},
        "can_differ_from": comparison.can_differ_from,
        "first_divergence": None if first is None else _divergence_values(comparison, first),
        "start": pair_divergences.start or None,
        "tables": {
            table.table: {"equal": table.equal, "told": table.difference, "note": table.note}
            for table in pair_divergences.tables
        },
        "measures": {
            row.pop("measure"): _join_interval(row) for row in _plain_values(comparison.measures).to_dict("records")
        },
        "rounds": _round_columns(_plain_values(comparison.rounds)),
        "notes": list(comparison.notes),
    }


def _divergence_values(comparison: RunComparison, first: Divergence) -> dict[str, Any]:
    explanation = comparison.reasons
    base, other = first.row_texts
    return {
        "seed": comparison.pairs.seeds[comparison.diverged_pair],
        "where": first.location,
        "table": first.table,
        "round": first.round,
        "tick": first.tick,
        "agent": first.agent,
        "who": first.name or None,
        "columns": list(first.columns),
        "base": base,
        "other": other,
        "why": None if explanation is None else {"base": list(explanation.base), "other": list(explanation.other)},
    }


def _plain_values(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of plain Python values, with None in place of NaN and infinities."""
    finite = table.replace([np.inf, -np.inf], np.nan)
    return finite.astype(object).where(finite.notna(), None)


def _join_interval(row: dict[str, Any]) -> dict[str, Any]:
    """Return a measure's row with its interval as a list, or None if unknown."""
    ends = [row.pop("low"), row.pop("high")]
    return {"difference": row.pop("difference"), "interval": None if None in ends else ends, **row}


def _round_columns(table: pd.DataFrame) -> dict[str, dict[str, list[Any]]]:
    """Return the values by round as lists, for each column (and nation)."""
    keys = ["column", "nation"] if "nation" in table else ["column"]
    value_columns = ("base", "other", "difference", "low", "high")
    return {
        " of ".join(map(str, key)): {column: rows[column].tolist() for column in value_columns}
        for key, rows in table.groupby(keys, sort=False)
    }


def folder_name(comparison: RunComparison) -> str:
    """Return the name of a comparison's folder: ``compare-<base>-<other>``, with the number of pairs if several."""
    n, sides = len(comparison.pairs.base), (comparison.pairs.base, comparison.pairs.other)
    names = [side[0].name[:60] for side in sides]
    return "-".join(["compare", *names, *([f"{n}-pairs"] if n > 1 else [])])
