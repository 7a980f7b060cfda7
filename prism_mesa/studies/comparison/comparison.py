"""Runs compared: what differs in their settings, what diverged first and why, and by how much their results differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.analysis.compare.divergence import Divergence, Divergences, divergences
from prism_mesa.analysis.compare.reasons import Reasons, reasons
from prism_mesa.analysis.compare.settings import (
    Branching,
    Setting,
    branching_of,
    facts_that_differ,
    first_free_round,
    settings_that_differ,
)
from prism_mesa.errors import DataError, counted
from prism_mesa.streams import Floats
from prism_mesa.studies.comparison.pairs import Given, OneRun, Pairs, pair_runs
from prism_mesa.studies.comparison.values import (
    Measured,
    Series,
    measure_differences,
    per_round,
    round_differences,
    run_measures,
)

_MOST_NAMED: Final = 6


@dataclass(frozen=True, repr=False)
class RunComparison:
    """What came of comparing runs, other less base.

    Attributes:
        pairs: The runs, paired by seed.
        settings: In what configurations, versions and deciders differ: columns `key`, `base`, `other`.
        measures: A row for each measure that both sides have, what differs most first: `measure`, `unit`, the means
            `base` and `other`, their `difference`, `low` and `high` of its 95 % interval (NaN of one pair), `change`
            (difference as a share of base), `standardised` (difference in standard deviations of the pairs'
            differences), `p` (paired t-test) and `p_holm`, `n` pairs, `missing` pairs, and whether all pairs are
            `equal`.
        rounds: A row for each column (and `nation`) and `round`, with the same, and intervals of each side's mean.
        divergences: Of each pair, what its tables have in common.
        first_divergence: The earliest of all pairs; None if no table differs in what happened.
        diverged: The place of the pair that it is of.
        reasons: Why each side did what it did there; None if nobody asked, or nothing diverged.
        branched: Where the first pair's runs branched from, of each side that did.
        free_from: The first round in which the first pair can differ.
        notes: What is to be known besides.
    """

    pairs: Pairs
    settings: pd.DataFrame
    measures: pd.DataFrame
    rounds: pd.DataFrame
    divergences: tuple[Divergences, ...]
    first_divergence: Divergence | None
    diverged: int
    reasons: Reasons | None
    branched: dict[str, Branching]
    free_from: int
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether every table that both runs of a pair have is equal, in all pairs."""
        return all(divergence.equal for divergence in self.divergences)

    @property
    def names(self) -> tuple[str, str]:
        """What the two sides are called: the folder of a single run, else the first one and how many there are."""
        sides = (self.pairs.base, self.pairs.other)
        first, second = (
            side[0].name if len(side) == 1 else f"{side[0].name} and {len(side) - 1} more" for side in sides
        )
        return first, second

    @property
    def n_differ(self) -> int:
        """How many measures differ."""
        return int((~self.measures["equal"] & self.measures["difference"].notna()).sum())


def compare_runs(
    base: Given, other: Given, *, measures: Sequence[str] | None = None, why: bool = True, trust: bool = False
) -> RunComparison:
    """Compare runs; arguments are those of `api.comparison.compare`.

    Raises:
        DataError: If a run cannot be read, or the runs cannot be compared.
        ConfigError: If there is no such measure.
    """
    pairs = pair_runs(base, other)
    notes = list(pairs.notes)
    left, right = pairs.base[0], pairs.other[0]
    settings = _settings(pairs, notes)
    rounds = _rounds(pairs, notes)
    found = tuple(
        divergences(one.folder, two.folder, pairs.rounds, whole=pairs.is_whole(one) and pairs.is_whole(two))
        for one, two in zip(pairs.base, pairs.other, strict=True)
    )
    diverged, first = _earliest(found)
    free_from = first_free_round(left.facts, right.facts, (left.name, right.name))
    if free_from and first is not None and first.round < free_from:
        notes.append(f"they branched in round {free_from}, and differ before it: one was changed, or made otherwise")
    told = None
    if why and first is not None:
        told = reasons(pairs.base[diverged].folder, pairs.other[diverged].folder, first, trust=trust)
    branched = {side: found_ for side, run in (("base", left), ("other", right)) if (found_ := branching_of(run.facts))}
    return RunComparison(
        pairs=pairs,
        settings=pd.DataFrame([vars(setting) for setting in settings], columns=["key", "base", "other"], dtype=object),
        measures=_measures(pairs, measures, notes, trust),
        rounds=rounds,
        divergences=found,
        first_divergence=first,
        diverged=diverged,
        reasons=told,
        branched=branched,
        free_from=free_from,
        notes=tuple(notes),
    )


def _settings(pairs: Pairs, notes: list[str]) -> list[Setting]:
    """Return in what the first pair's settings differ; notes say if runs of one side do."""
    left, right = pairs.base[0], pairs.other[0]
    for side in (pairs.base, pairs.other):
        apart = {one.key for run in side[1:] for one in settings_that_differ(_config(side[0]), _config(run)) if one.key}
        if apart:
            notes.append(f"runs of one side, {side[0].name} and others, differ among themselves in {_some(apart)}")
    return [
        *settings_that_differ(_config(left), _config(right)),
        *facts_that_differ(left.facts, right.facts),
    ]


def _config(run: OneRun) -> dict[str, Any]:
    return dict(run.manifest.config or {})


def _some(names: set[str]) -> str:
    shown = sorted(names)[:_MOST_NAMED]
    return ", ".join(shown) + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")


def _earliest(found: Sequence[Divergences]) -> tuple[int, Divergence | None]:
    """Return which pair diverged first, and in what; the first pair, and None, if none did."""
    firsts = [(one.first, place) for place, one in enumerate(found)]
    known = [(first.moment, place, first) for first, place in firsts if first is not None]
    if not known:
        return 0, None
    _, place, first = min(known, key=lambda one: one[:2])
    return place, first


def _measures(pairs: Pairs, names: Sequence[str] | None, notes: list[str], trust: bool) -> pd.DataFrame:
    """Return the differences of measures; of runs that differ in length there are none."""
    runs = (*pairs.base, *pairs.other)
    if not pairs.whole or not all(isinstance(run.facts.get("summary"), dict) for run in runs):
        if pairs.whole:
            notes.append("measures are left out: a run that has not come to an end has none")
        return measure_differences([], np.zeros((len(pairs.base), 0)), np.zeros((len(pairs.base), 0)))
    found = [run_measures(run, names, pairs.rounds, trust=trust) for run in runs]
    failed = {name: why for one in found for name, why in one.failed.items()}
    if failed:
        told = next(iter(failed.values()))
        notes.append(f"{counted(len(failed), 'measure')} left out ({_some(set(failed))}): {told}")
    common = [name for name in found[0].values if all(name in one.values for one in found)]
    n = len(pairs.base)
    table = measure_differences(common, _values(found[:n], common), _values(found[n:], common))
    undefined = table["measure"][table["n"] == 0]
    by_run = [one.values for one in found]
    if some := {name for name in undefined if names or any(isfinite(of[name]) for of in by_run)}:
        where = "for no pair" if names else "for one side only"
        notes.append(f"{counted(len(some), 'measure')} left out, as defined {where} ({_some(some)})")
    return table[~table["measure"].isin(undefined)].reset_index(drop=True)


def _values(found: Sequence[Measured], names: Sequence[str]) -> Floats:
    return np.array([[one.values[name] for name in names] for one in found], np.float64).reshape(-1, len(names))


def _rounds(pairs: Pairs, notes: list[str]) -> pd.DataFrame:
    """Return the differences of rounds, for the columns that all runs have."""
    found = [per_round(run, pairs.rounds) for run in (*pairs.base, *pairs.other)]
    common: list[Series] = [one for one in found[0][0] if all(one in columns for columns, _ in found)]
    if pairs.of_nations:
        alone = {nation for columns, _ in found for _, nation in columns} - {nation for _, nation in common}
        if not common:
            raise DataError(f"{pairs.base[0].folder} and others have no nation in common ({_some(alone)})")
        if alone:
            notes.append(f"nations that not all runs have are left out: {_some(alone)}")
    values = [of[:, [columns.index(one) for one in common]] for columns, of in found]
    n = len(pairs.base)
    table = round_differences(common, np.array(values[:n]), np.array(values[n:]))
    return table if pairs.of_nations else table.drop(columns="nation")


def as_json(found: RunComparison) -> dict[str, Any]:
    """Return a comparison as plain values: what ``prism compare --json`` prints; None where there is no number."""
    first, pairs = found.first_divergence, found.pairs
    table = found.measures.set_index("measure")
    return {
        "base": [str(run.folder) for run in pairs.base],
        "other": [str(run.folder) for run in pairs.other],
        "seeds": list(pairs.seeds),
        "pairs": len(pairs.base),
        "n_rounds": pairs.rounds,
        "equal": found.equal,
        "settings": {row["key"]: {"base": row["base"], "other": row["other"]} for row in _records(found.settings)},
        "branched": {side: vars(one) for side, one in found.branched.items()},
        "can_differ_from": found.free_from,
        "first_divergence": None if first is None else _divergence(found, first),
        "start": found.divergences[found.diverged].start or None,
        "tables": {
            one.table: {"equal": one.equal, "told": one.told, "note": one.note}
            for one in found.divergences[found.diverged].tables
        },
        "measures": {str(name): _numbers(row) for name, row in zip(table.index, _records(table), strict=True)},
        "rounds": _columns(found.rounds),
        "notes": list(found.notes),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _divergence(found: RunComparison, first: Divergence) -> dict[str, Any]:
    told = found.reasons
    base, other = first.sides
    return {
        "seed": found.pairs.seeds[found.diverged],
        "where": first.where,
        "table": first.table,
        "round": first.round,
        "tick": first.tick,
        "agent": first.agent,
        "who": first.who or None,
        "columns": list(first.columns),
        "base": base,
        "other": other,
        "why": None if told is None else {"base": list(told.base), "other": list(told.other)},
    }


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Return a measure's row, its interval as two ends, or None if it has none."""
    ends = [_plain(row[end]) for end in ("low", "high")]
    rest = {name: _plain(value) for name, value in row.items() if name not in ("difference", "low", "high")}
    return {"difference": _plain(row["difference"]), "interval": None if None in ends else ends, **rest}


def _columns(table: pd.DataFrame) -> dict[str, dict[str, list[Any]]]:
    """Return each column of rounds as lists over the rounds."""
    keys = ["column", "nation"] if "nation" in table else ["column"]
    wanted = ("base", "other", "difference", "low", "high")
    found = {}
    for key, rows in table.groupby(keys, sort=False):
        name = " of ".join(str(part) for part in (key if isinstance(key, tuple) else (key,)))
        found[name] = {column: [_plain(one) for one in rows[column].tolist()] for column in wanted}
    return found


def _plain(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not isfinite(plain) else plain


def folder_name(found: RunComparison) -> str:
    """Return what the folder of a comparison is called: ``compare-<base>-<other>``, and how many pairs, if several."""
    n, sides = len(found.pairs.base), (found.pairs.base, found.pairs.other)
    names = [side[0].name[:60] for side in sides]
    return "-".join(["compare", *names, *([f"{n}-pairs"] if n > 1 else [])])
